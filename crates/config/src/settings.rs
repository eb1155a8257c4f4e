//! Every setting there is, with its type, its default and what it means.
//!
//! The facts that types can't say are extensions of the derived JSON schema. A table hands them down to its
//! keys, except `x-env` and `x-limit`:
//!
//! - `x-env`: the environment variable that sets it.
//! - `x-untrusted`: what a project may do that the user has not trusted. `"ok"`: set it. `"tighten"`: lower
//!   it, or add rules that deny or ask. Without the mark: nothing.
//! - `x-user-only`: no project sets it, trusted or not.
//! - `x-merge = "append"`: the items of all layers count, the strongest layer's first.
//! - `x-limit`: the administrator's value is an upper bound. Choices are then listed from strict to loose.
//! - `x-secret`: may hold a password or a key, so it is not shown unasked.
//! - `x-whole`: the keys of this table belong together, so that nobody adds to what the administrator wrote.
//! - `x-unused`: read and checked, but nothing in this version uses it yet.

use std::borrow::Cow;
use std::collections::BTreeMap;

use helve_protocol::{
    KeyPlacement, PermissionMode, PermissionVerdict, ReasoningEffort, StatusBarItem, WireProtocol,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::dollars::Dollars;
use crate::time_span::TimeSpan;

/// What a user can decide about Helve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "Settings of Helve")]
pub struct Settings {
    /// The model that does the work, as "provider/model" or an alias.
    #[schemars(length(min = 1), extend("x-env" = "HELVE_MODEL"))]
    pub model: Option<String>,

    /// Models for other purposes.
    pub models: ModelSettings,

    /// How much the model thinks; if left out, as much as its provider lets it by default.
    #[schemars(extend("x-env" = "HELVE_EFFORT"))]
    pub effort: Option<ReasoningEffort>,

    /// Servers that models are reached through, by name: known ones with other addresses or keys, and new ones.
    #[schemars(extend("propertyNames" = name_schema()))]
    pub providers: BTreeMap<String, ProviderSettings>,

    /// What models can do and cost, by provider/model: for those that Helve does not know, or knows wrongly.
    #[schemars(extend("propertyNames" = json!({ "pattern": "^[A-Za-z0-9_-]{1,64}/.{1,200}$" })))]
    pub catalogue: BTreeMap<String, ModelFactSettings>,

    /// How patiently a failed request is tried again.
    pub retry: RetrySetting,

    /// How long nothing may come from a model's server.
    pub timeouts: TimeoutSettings,

    /// Where a turn stops by itself.
    #[schemars(extend("x-untrusted" = "tighten"))]
    pub limits: LimitSettings,

    /// What the model can do.
    #[schemars(extend("x-untrusted" = "ok"))]
    pub tools: ToolSettings,

    /// What may be fetched from the web.
    pub web: WebSettings,

    /// The shell that the model's commands run in.
    pub shell: ShellSettings,

    /// How actions are approved in general.
    #[schemars(extend("x-untrusted" = "tighten"))]
    pub permissions: PermissionSettings,

    /// Rules about single actions. In one layer the first that matches decides. Over the layers a deny is final;
    /// else the strongest layer that has a verdict decides.
    #[schemars(extend("x-merge" = "append", "x-untrusted" = "tighten"))]
    pub permission: Vec<PermissionRule>,

    /// Parts of the program that can be switched off.
    #[schemars(extend("x-untrusted" = "ok", "x-unused" = true))]
    pub features: FeatureSettings,

    /// How things look.
    #[schemars(extend("x-untrusted" = "ok"))]
    pub ui: UiSettings,

    /// The terminal interface.
    #[schemars(extend("x-user-only" = true))]
    pub interface: InterfaceSettings,

    /// Keys of the terminal interface by the names of actions, such as `pager = "ctrl-p"`; they take the place of the
    /// usual ones, `[]` leaves none. Esc and Ctrl-C always stop and leave too. `helve reference keys` lists all.
    #[schemars(extend("propertyNames" = name_schema(), "x-user-only" = true))]
    pub keys: BTreeMap<String, OneOrMoreStrings>,

    /// What is written to the log.
    pub log: LogSettings,
}

fn name_schema() -> Value {
    json!({ "pattern": "^[A-Za-z0-9_-]{1,64}$" })
}

/// Models for other purposes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelSettings {
    /// A small, quick model for small jobs.
    #[schemars(length(min = 1))]
    pub fast: Option<String>,
    /// The model that writes summaries of long conversations.
    #[schemars(length(min = 1))]
    pub summary: Option<String>,
    /// The models that take over if the main one can't be reached, in this order.
    pub fallback: Vec<String>,
    /// Short names for models.
    #[schemars(extend("propertyNames" = name_schema()))]
    pub aliases: BTreeMap<String, String>,
}

/// How patiently a failed request is tried again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RetrySetting {
    /// with longer and longer waits, for limits.max_retry_time
    #[default]
    Long,
    /// three times, for a few seconds
    Short,
}

/// How long nothing may come from a model's server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TimeoutSettings {
    /// Until the connection stands.
    pub connect: TimeSpan,
    /// From the request until the response begins; slow local models need minutes for a long conversation.
    pub first_byte: TimeSpan,
    /// Between two pieces of the response.
    pub idle: TimeSpan,
    /// Between two words of the answer, while the server sends nothing but signs of life, as some do while the model thinks. Never
    /// less than timeouts.idle.
    pub keep_alive: TimeSpan,
}

impl Default for TimeoutSettings {
    fn default() -> TimeoutSettings {
        TimeoutSettings {
            connect: TimeSpan::from_secs(15),
            first_byte: TimeSpan::from_secs(600),
            idle: TimeSpan::from_secs(300),
            keep_alive: TimeSpan::from_secs(600),
        }
    }
}

/// What a model can do and cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelFactSettings {
    /// How many tokens it can read and write together.
    #[schemars(range(min = 1))]
    pub context: Option<u32>,
    /// How many tokens it can write.
    #[schemars(range(min = 1))]
    pub output: Option<u32>,
    /// Dollars for a million tokens that it reads.
    pub input_price: Option<Dollars>,
    /// Dollars for a million tokens that it writes.
    pub output_price: Option<Dollars>,
    /// Dollars for a million tokens that it reads from the cache.
    pub cache_read_price: Option<Dollars>,
    /// Dollars for a million tokens that it writes to the cache.
    pub cache_write_price: Option<Dollars>,
    /// Whether it can call tools.
    pub tools: Option<bool>,
    /// Whether it can think before it answers.
    pub thinking: Option<bool>,
    /// Whether it can look at images.
    pub images: Option<bool>,
    /// Whether it can read PDF files.
    pub pdf: Option<bool>,
}

/// A server that models are reached through.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-whole" = true))]
pub struct ProviderSettings {
    /// The protocol that the server speaks; needed for a name that Helve does not know.
    #[serde(default)]
    pub wire: Option<WireProtocol>,
    /// The address that requests go to.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub base_url: Option<String>,
    /// The environment variable that holds the key.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub key_env: Option<String>,
    /// How the key is shown to the server.
    #[serde(default)]
    pub auth: Option<KeyPlacement>,
    /// Headers that are added to each request.
    #[serde(default)]
    #[schemars(extend("x-secret" = true))]
    pub headers: BTreeMap<String, String>,
}

/// Where a turn stops by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitSettings {
    /// How many model requests one turn may take.
    #[schemars(range(min = 1), extend("x-env" = "HELVE_MAX_STEPS", "x-limit" = true))]
    pub max_steps: u32,
    /// How many dollars may be spent.
    #[schemars(extend("x-env" = "HELVE_MAX_COST", "x-limit" = true))]
    pub max_cost: Option<Dollars>,
    /// How long a turn may take.
    #[schemars(extend("x-env" = "HELVE_MAX_TIME", "x-limit" = true))]
    pub max_time: Option<TimeSpan>,
    /// How long a failed request is tried again; at most twelve hours. If you set it, it holds for rate limits too; otherwise one
    /// that does not say when it ends is waited for up to twelve hours.
    pub max_retry_time: TimeSpan,
}

impl Default for LimitSettings {
    fn default() -> LimitSettings {
        LimitSettings {
            max_steps: 50,
            max_cost: None,
            max_time: None,
            max_retry_time: TimeSpan::from_secs(300),
        }
    }
}

/// What the model can do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ToolSettings {
    /// Tools that the model is not offered, such as "shell".
    #[schemars(extend("x-merge" = "append"))]
    pub remove: Vec<String>,
}

/// What may be fetched from the web.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WebSettings {
    /// Hosts on this machine or in its network that may be fetched all the same, such as "localhost:3000" or
    /// "*.corp.example".
    #[schemars(extend("x-merge" = "append"))]
    pub allow: Vec<String>,
}

/// The shell that the model's commands run in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ShellSettings {
    /// Its name or path; bash if left out, or sh where there is none. It must understand what sh does.
    #[schemars(length(min = 1))]
    pub program: Option<String>,
    /// A script that every shell reads first. What it prints is shown once, before the first command.
    #[schemars(length(min = 1))]
    pub startup: Option<String>,
    /// Variables that commands get although they look like secrets: `["DATABASE_URL"]`. `helve doctor` lists what is withheld.
    #[schemars(extend("x-user-only" = true))]
    pub env: Vec<String>,
}

/// How actions are approved in general.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PermissionSettings {
    /// What happens to an action that no rule decides.
    #[schemars(extend("x-env" = "HELVE_PERMISSION_MODE", "x-limit" = true))]
    pub mode: PermissionMode,
    /// More files than this are never deleted unasked, but in the mode bypass.
    #[schemars(extend("x-limit" = true))]
    pub max_deletes: u32,
    /// Confine the model's commands to the project, as far as this machine can.
    pub confine: bool,
    /// Folders and files in your home folder that commands may read, besides toolchains and caches: `["~/data"]`.
    #[schemars(extend("x-user-only" = true))]
    pub show: Vec<String>,
}

impl Default for PermissionSettings {
    fn default() -> PermissionSettings {
        PermissionSettings {
            mode: PermissionMode::default(),
            max_deletes: 100,
            confine: true,
            show: Vec::new(),
        }
    }
}

/// A rule about single actions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PermissionRule {
    /// The tool that the rule is about, or `*` for all.
    #[schemars(length(min = 1))]
    pub tool: String,
    /// The command, path, query or URL that the rule is about, with `*`, `**` and `?`; all if left out.
    #[serde(default)]
    pub pattern: Option<String>,
    /// What happens then.
    pub action: PermissionVerdict,
}

/// Parts of the program that can be switched off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FeatureSettings {
    /// Index the workspace in the background.
    pub background_index: bool,
    /// Run tools that only read at the same time.
    pub parallel_tools: bool,
    /// Run sub-agents at the same time.
    pub parallel_subagents: bool,
}

impl Default for FeatureSettings {
    fn default() -> FeatureSettings {
        FeatureSettings { background_index: true, parallel_tools: true, parallel_subagents: true }
    }
}

/// How things look.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UiSettings {
    /// Whether output is coloured.
    pub color: ColorSetting,
}

/// The terminal interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct InterfaceSettings {
    /// What the line below the input tells, in this order. What has nothing to tell is left out.
    pub status: Vec<StatusBarItem>,
}

impl Default for InterfaceSettings {
    fn default() -> InterfaceSettings {
        InterfaceSettings { status: StatusBarItem::ALL.to_vec() }
    }
}

/// Strings; a single one need not stand in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OneOrMoreStrings(pub Vec<String>);

impl JsonSchema for OneOrMoreStrings {
    fn schema_name() -> Cow<'static, str> {
        "OneOrMore".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "array"], "format": "one-or-more", "items": { "type": "string" } })
    }
}

/// Whether output is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ColorSetting {
    /// when it goes to a terminal
    #[default]
    Auto,
    /// wherever it goes
    Always,
    /// nowhere
    Never,
}

/// What is written to the log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LogSettings {
    /// The least important kind of message that is still written.
    #[schemars(extend("x-env" = "HELVE_LOG"))]
    pub level: LogLevel,
}

/// How important a message in the log is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LogLevel {
    /// something failed
    Error,
    /// something is odd
    Warn,
    /// what happened, in short
    #[default]
    Info,
    /// everything
    Debug,
}
