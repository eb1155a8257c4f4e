//! The services that models are reached through, as data.

use helve_protocol::{KeyPlacement, WireProtocol};

use crate::quirks::{
    AfterToolResults, CacheKeyField, CallIdFormat, EffortField, ForcedChoice, MaxTokensField, OutputOption,
    Quirks, ReturnedThinking, UsageOption,
};

/// A service, or a kind of local server, that Helve knows without being told.
#[derive(Clone, Copy, Debug)]
pub struct Vendor {
    /// The first part of `provider/model`.
    pub name: &'static str,
    /// Other names for it.
    pub also: &'static [&'static str],
    /// What people call it.
    pub title: &'static str,
    /// The vendor under whose name the catalogue has its models, if that is another.
    pub facts: Option<&'static str>,
    /// The protocol that it speaks.
    pub wire: WireProtocol,
    /// What the addresses of all requests begin with.
    pub base_url: &'static str,
    /// The variables that may hold its key, and how such a key is shown to the server. Without any it needs none.
    pub keys: &'static [(&'static str, KeyPlacement)],
    /// The variables that may hold another base URL.
    pub base_url_env: &'static [BaseUrlVariable],
    /// Where its server runs.
    pub place: ServerLocation,
    /// What is peculiar about it.
    pub quirks: Quirks,
    /// What is used if nobody chose a model; empty where the server is asked what it has.
    pub models: VendorModels,
}

/// A variable with an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseUrlVariable {
    /// The whole of it.
    Whole(&'static str),
    /// Only host and port, as `OLLAMA_HOST` has them.
    Host(&'static str),
}

/// Where a provider's server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerLocation {
    /// Somewhere in the network.
    Remote,
    /// On this machine, so it may be running or not.
    Local,
}

/// The models of a vendor that are used if nobody chose one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VendorModels {
    /// The one that does the work.
    pub main: &'static str,
    /// The one for small jobs.
    pub fast: &'static str,
}

const PLAIN_QUIRKS: Quirks = Quirks::PLAIN;
const NO_DEFAULT_MODELS: VendorModels = VendorModels { main: "", fast: "" };

/// A remote service that speaks OpenAI Chat Completions. The table below says where each differs.
const CHAT_VENDOR: Vendor = Vendor {
    name: "",
    also: &[],
    title: "",
    facts: None,
    wire: WireProtocol::Chat,
    base_url: "",
    keys: &[],
    base_url_env: &[],
    place: ServerLocation::Remote,
    quirks: PLAIN_QUIRKS,
    models: NO_DEFAULT_MODELS,
};

const LOCAL_VENDOR: Vendor = Vendor { place: ServerLocation::Local, ..CHAT_VENDOR };

/// In the order in which one is picked if there are several keys.
pub const VENDORS: &[Vendor] = &[
    Vendor {
        name: "anthropic",
        title: "Anthropic",
        wire: WireProtocol::Messages,
        base_url: "https://api.anthropic.com",
        keys: &[("ANTHROPIC_API_KEY", KeyPlacement::XApiKey), ("ANTHROPIC_AUTH_TOKEN", KeyPlacement::Bearer)],
        base_url_env: &[BaseUrlVariable::Whole("ANTHROPIC_BASE_URL")],
        models: VendorModels { main: "claude-sonnet-5", fast: "claude-haiku-4-5" },
        ..CHAT_VENDOR
    },
    Vendor {
        name: "openai",
        title: "OpenAI",
        wire: WireProtocol::Responses,
        base_url: "https://api.openai.com/v1",
        keys: &[("OPENAI_API_KEY", KeyPlacement::Bearer)],
        base_url_env: &[BaseUrlVariable::Whole("OPENAI_BASE_URL"), BaseUrlVariable::Whole("OPENAI_API_BASE")],
        quirks: Quirks { cache_key: CacheKeyField::PromptCacheKey, ..PLAIN_QUIRKS },
        models: VendorModels { main: "gpt-5.5", fast: "gpt-5.4-mini" },
        ..CHAT_VENDOR
    },
    Vendor {
        name: "openai-chat",
        title: "OpenAI, over Chat Completions",
        facts: Some("openai"),
        base_url: "https://api.openai.com/v1",
        keys: &[("OPENAI_API_KEY", KeyPlacement::Bearer)],
        base_url_env: &[BaseUrlVariable::Whole("OPENAI_BASE_URL"), BaseUrlVariable::Whole("OPENAI_API_BASE")],
        quirks: Quirks {
            cache_key: CacheKeyField::PromptCacheKey,
            effort: EffortField::ReasoningEffort,
            max_tokens: MaxTokensField::MaxCompletionTokens,
            ..PLAIN_QUIRKS
        },
        models: VendorModels { main: "gpt-5.5", fast: "gpt-5.4-mini" },
        ..CHAT_VENDOR
    },
    Vendor {
        name: "gemini",
        also: &["google"],
        title: "Google Gemini",
        wire: WireProtocol::Gemini,
        base_url: "https://generativelanguage.googleapis.com",
        keys: &[("GEMINI_API_KEY", KeyPlacement::XGoogApiKey), ("GOOGLE_API_KEY", KeyPlacement::XGoogApiKey)],
        base_url_env: &[
            BaseUrlVariable::Whole("GOOGLE_GEMINI_BASE_URL"),
            BaseUrlVariable::Whole("GEMINI_BASE_URL"),
        ],
        models: VendorModels { main: "gemini-3.1-pro-preview", fast: "gemini-3.5-flash" },
        ..CHAT_VENDOR
    },
    Vendor {
        name: "deepseek",
        title: "DeepSeek",
        base_url: "https://api.deepseek.com/v1",
        keys: &[("DEEPSEEK_API_KEY", KeyPlacement::Bearer)],
        base_url_env: &[BaseUrlVariable::Whole("DEEPSEEK_BASE_URL")],
        quirks: Quirks {
            thinking_back: ReturnedThinking::ReasoningContent,
            effort: EffortField::Thinking,
            output: OutputOption::JsonObject,
            ..PLAIN_QUIRKS
        },
        models: VendorModels { main: "deepseek-v4-pro", fast: "deepseek-v4-flash" },
        ..CHAT_VENDOR
    },
    Vendor {
        name: "moonshot",
        also: &["moonshotai", "kimi"],
        title: "Moonshot",
        base_url: "https://api.moonshot.ai/v1",
        keys: &[("MOONSHOT_API_KEY", KeyPlacement::Bearer), ("KIMI_API_KEY", KeyPlacement::Bearer)],
        base_url_env: &[BaseUrlVariable::Whole("MOONSHOT_BASE_URL")],
        quirks: Quirks {
            thinking_back: ReturnedThinking::ReasoningContent,
            effort: EffortField::Thinking,
            ..PLAIN_QUIRKS
        },
        models: VendorModels { main: "kimi-k2.6", fast: "kimi-k2.5" },
        ..CHAT_VENDOR
    },
    Vendor {
        name: "qwen",
        also: &["alibaba", "dashscope"],
        title: "Alibaba Qwen",
        base_url: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        keys: &[("DASHSCOPE_API_KEY", KeyPlacement::Bearer), ("QWEN_API_KEY", KeyPlacement::Bearer)],
        base_url_env: &[BaseUrlVariable::Whole("DASHSCOPE_BASE_URL")],
        quirks: Quirks { effort: EffortField::EnableThinking, ..PLAIN_QUIRKS },
        models: VendorModels { main: "qwen3.7-max", fast: "qwen3.6-flash" },
        ..CHAT_VENDOR
    },
    Vendor {
        name: "zhipu",
        also: &["zhipuai", "bigmodel"],
        title: "Zhipu GLM",
        base_url: "https://open.bigmodel.cn/api/paas/v4",
        keys: &[("ZHIPU_API_KEY", KeyPlacement::Bearer), ("ZHIPUAI_API_KEY", KeyPlacement::Bearer)],
        base_url_env: &[BaseUrlVariable::Whole("ZHIPU_BASE_URL")],
        quirks: Quirks {
            thinking_back: ReturnedThinking::ReasoningContent,
            effort: EffortField::Thinking,
            output: OutputOption::JsonObject,
            ..PLAIN_QUIRKS
        },
        models: VendorModels { main: "glm-5.2", fast: "glm-4.7-flash" },
        ..CHAT_VENDOR
    },
    Vendor {
        name: "zai",
        also: &["z-ai"],
        title: "Z.ai (Zhipu GLM, international)",
        base_url: "https://api.z.ai/api/paas/v4",
        keys: &[("ZAI_API_KEY", KeyPlacement::Bearer)],
        base_url_env: &[BaseUrlVariable::Whole("ZAI_BASE_URL")],
        quirks: Quirks {
            thinking_back: ReturnedThinking::ReasoningContent,
            effort: EffortField::Thinking,
            output: OutputOption::JsonObject,
            ..PLAIN_QUIRKS
        },
        models: VendorModels { main: "glm-5.2", fast: "glm-4.7-flash" },
        ..CHAT_VENDOR
    },
    Vendor {
        name: "xai",
        title: "xAI",
        base_url: "https://api.x.ai/v1",
        keys: &[("XAI_API_KEY", KeyPlacement::Bearer)],
        base_url_env: &[BaseUrlVariable::Whole("XAI_BASE_URL")],
        models: VendorModels { main: "grok-4.3", fast: "grok-4.3" },
        ..CHAT_VENDOR
    },
    Vendor {
        name: "mistral",
        title: "Mistral",
        base_url: "https://api.mistral.ai/v1",
        keys: &[("MISTRAL_API_KEY", KeyPlacement::Bearer)],
        base_url_env: &[BaseUrlVariable::Whole("MISTRAL_BASE_URL")],
        quirks: Quirks {
            forced_choice: ForcedChoice::Any,
            call_ids: CallIdFormat::NineAlphanumeric,
            after_results: AfterToolResults::TheModel,
            usage: UsageOption::Unasked,
            ..PLAIN_QUIRKS
        },
        models: VendorModels { main: "mistral-medium-2604", fast: "mistral-small-latest" },
        ..CHAT_VENDOR
    },
    Vendor {
        name: "groq",
        title: "Groq",
        base_url: "https://api.groq.com/openai/v1",
        keys: &[("GROQ_API_KEY", KeyPlacement::Bearer)],
        base_url_env: &[BaseUrlVariable::Whole("GROQ_BASE_URL")],
        quirks: Quirks {
            effort: EffortField::ReasoningEffort,
            max_tokens: MaxTokensField::MaxCompletionTokens,
            ..PLAIN_QUIRKS
        },
        models: VendorModels { main: "openai/gpt-oss-120b", fast: "openai/gpt-oss-20b" },
        ..CHAT_VENDOR
    },
    Vendor {
        name: "cerebras",
        title: "Cerebras",
        base_url: "https://api.cerebras.ai/v1",
        keys: &[("CEREBRAS_API_KEY", KeyPlacement::Bearer)],
        base_url_env: &[BaseUrlVariable::Whole("CEREBRAS_BASE_URL")],
        quirks: Quirks {
            effort: EffortField::ReasoningEffort,
            max_tokens: MaxTokensField::MaxCompletionTokens,
            ..PLAIN_QUIRKS
        },
        models: VendorModels { main: "zai-glm-4.7", fast: "gpt-oss-120b" },
        ..CHAT_VENDOR
    },
    Vendor {
        name: "openrouter",
        title: "OpenRouter",
        base_url: "https://openrouter.ai/api/v1",
        keys: &[("OPENROUTER_API_KEY", KeyPlacement::Bearer)],
        base_url_env: &[BaseUrlVariable::Whole("OPENROUTER_BASE_URL")],
        quirks: Quirks {
            thinking_back: ReturnedThinking::Details,
            effort: EffortField::Reasoning,
            cache_key: CacheKeyField::CacheControl,
            ..PLAIN_QUIRKS
        },
        models: VendorModels { main: "anthropic/claude-sonnet-5", fast: "z-ai/glm-5.2" },
        ..CHAT_VENDOR
    },
    Vendor {
        name: "together",
        also: &["togetherai"],
        title: "Together",
        base_url: "https://api.together.xyz/v1",
        keys: &[("TOGETHER_API_KEY", KeyPlacement::Bearer)],
        base_url_env: &[BaseUrlVariable::Whole("TOGETHER_BASE_URL")],
        models: VendorModels { main: "zai-org/GLM-5.2", fast: "MiniMaxAI/MiniMax-M3" },
        ..CHAT_VENDOR
    },
    Vendor {
        name: "fireworks",
        also: &["fireworks-ai"],
        title: "Fireworks",
        base_url: "https://api.fireworks.ai/inference/v1",
        keys: &[("FIREWORKS_API_KEY", KeyPlacement::Bearer)],
        base_url_env: &[BaseUrlVariable::Whole("FIREWORKS_BASE_URL")],
        models: VendorModels {
            main: "accounts/fireworks/models/glm-5p2",
            fast: "accounts/fireworks/models/deepseek-v4-flash",
        },
        ..CHAT_VENDOR
    },
    Vendor {
        name: "deepinfra",
        title: "DeepInfra",
        base_url: "https://api.deepinfra.com/v1/openai",
        keys: &[("DEEPINFRA_API_KEY", KeyPlacement::Bearer), ("DEEPINFRA_TOKEN", KeyPlacement::Bearer)],
        base_url_env: &[BaseUrlVariable::Whole("DEEPINFRA_BASE_URL")],
        models: VendorModels { main: "zai-org/GLM-5.2", fast: "deepseek-ai/DeepSeek-V4-Flash" },
        ..CHAT_VENDOR
    },
    Vendor {
        name: "ollama",
        title: "Ollama",
        base_url: "http://127.0.0.1:11434/v1",
        base_url_env: &[BaseUrlVariable::Whole("OLLAMA_BASE_URL"), BaseUrlVariable::Host("OLLAMA_HOST")],
        ..LOCAL_VENDOR
    },
    Vendor {
        name: "lmstudio",
        also: &["lm-studio"],
        title: "LM Studio",
        base_url: "http://127.0.0.1:1234/v1",
        base_url_env: &[BaseUrlVariable::Whole("LMSTUDIO_BASE_URL")],
        ..LOCAL_VENDOR
    },
    Vendor {
        name: "llamacpp",
        also: &["llama.cpp", "llama-server"],
        title: "llama.cpp",
        base_url: "http://127.0.0.1:8080/v1",
        base_url_env: &[BaseUrlVariable::Whole("LLAMACPP_BASE_URL")],
        ..LOCAL_VENDOR
    },
    Vendor {
        name: "vllm",
        title: "vLLM",
        base_url: "http://127.0.0.1:8000/v1",
        base_url_env: &[BaseUrlVariable::Whole("VLLM_BASE_URL")],
        ..LOCAL_VENDOR
    },
];

impl Vendor {
    /// The vendor of a name, or of one of its other names.
    pub fn find(name: &str) -> Option<&'static Vendor> {
        let is_it = |of: &&str| of.eq_ignore_ascii_case(name);
        VENDORS.iter().find(|vendor| is_it(&vendor.name) || vendor.also.iter().any(&is_it))
    }

    /// How a key is shown that comes from no variable.
    pub fn auth(&self) -> KeyPlacement {
        self.keys.first().map_or(KeyPlacement::None, |(_, auth)| *auth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_name_means_one_vendor() {
        let names: Vec<&str> =
            VENDORS.iter().flat_map(|vendor| vendor.also.iter().copied().chain([vendor.name])).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    }

    #[test]
    fn remote_vendors_have_keys_and_favourites_and_use_https() {
        for vendor in VENDORS {
            let is_remote = vendor.place == ServerLocation::Remote;
            assert_eq!(is_remote, !vendor.keys.is_empty(), "{}", vendor.name);
            assert_eq!(is_remote, !vendor.models.main.is_empty(), "{}", vendor.name);
            assert_eq!(is_remote, vendor.base_url.starts_with("https://"), "{}", vendor.name);
            assert!(reqwest::Url::parse(vendor.base_url).is_ok_and(|url| url.has_host()), "{}", vendor.name);
        }
    }
}
