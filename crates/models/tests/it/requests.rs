//! Requests as we send them. The whole bodies lie in `tests/requests`; `cargo xtask test --wire` shows them to the types of
//! the providers' own libraries.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use helve_models::{
    CallIdFormat, Conversation, MediaSupport, ModelCatalogue, ModelDialect, ModelPreferences, ModelPrompt,
    ModelRouter, OutputSchema, PrefixChange, ProviderOverrides, Quirks, ThinkingSupport, ToolChoice,
    ToolSpec, VENDORS, WireProtocol,
};
use helve_protocol::*;
use helve_testkit::sample_id;
use serde_json::{Value, json};

/// Every file is the same picture.
struct OnePicture;

impl BlobStore for OnePicture {
    fn put(&self, _: &[u8]) -> Result<BlobId, BlobError> {
        Err(BlobError("nothing is kept here".into()))
    }

    fn get(&self, blob: BlobId) -> Result<Vec<u8>, BlobError> {
        if blob == picture() { Ok(b"\x89PNG".to_vec()) } else { Err(BlobError("lost".into())) }
    }
}

fn picture() -> BlobId {
    BlobId::from_hash([1; 32])
}

fn file(name: &str, media_type: &str, content: BlobId) -> FilePart {
    FilePart { name: name.to_owned(), media_type: media_type.to_owned(), content }
}

fn dialect(wire: WireProtocol) -> ModelDialect {
    let (provider, model) = match wire {
        WireProtocol::Messages => ("anthropic", "claude-sonnet-5"),
        WireProtocol::Chat => ("openai-chat", "gpt-5.5"),
        WireProtocol::Responses => ("openai", "gpt-5.5"),
        WireProtocol::Gemini => ("gemini", "gemini-3.1-pro-preview"),
    };
    ModelDialect {
        wire,
        quirks: VENDORS.iter().find(|vendor| vendor.name == provider).unwrap().quirks,
        name: ModelName::new(format!("{provider}/{model}")),
        model: model.to_owned(),
        images: MediaSupport::Yes,
        documents: MediaSupport::Yes,
        thinking: ThinkingSupport::Yes,
        output: Some(64_000),
    }
}

fn tools() -> Vec<ToolSpec> {
    let schema = |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    vec![
        ToolSpec {
            name: "read".to_owned(),
            description: "Reads a file.".to_owned(),
            schema: schema(
                json!({"path": {"type": "string"}, "limit": {"type": "integer"}}),
                json!(["path"]),
            ),
        },
        ToolSpec {
            name: "list".to_owned(),
            description: "Lists a folder.".to_owned(),
            schema: schema(json!({}), json!([])),
        },
    ]
}

fn prompt() -> ModelPrompt {
    ModelPrompt {
        system: "You are Helve.".to_owned(),
        tools: tools(),
        effort: Some(ReasoningEffort::High),
        cache_key: Some("session-1".to_owned()),
        ..ModelPrompt::default()
    }
}

fn message(n: u64, role: MessageRole, parts: Vec<MessagePart>) -> Message {
    Message { id: sample_id(n), role, time: Timestamp::from_millis(n), parts }
}

fn user(n: u64, text: &str) -> Message {
    message(n, MessageRole::User, vec![MessagePart::Text(TextPart::said(text))])
}

/// What each wire seals, as it comes.
fn sealed(wire: WireProtocol) -> Value {
    match wire {
        WireProtocol::Messages => json!({"signature": "c2lnbmVk"}),
        WireProtocol::Chat => {
            json!({"details": [{"type": "reasoning.text", "text": "Look first.", "signature": "s"}]})
        }
        WireProtocol::Responses => json!({
            "type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Look first."}],
            "encrypted_content": "c2VhbGVk", "status": null,
        }),
        WireProtocol::Gemini => json!({"thoughtSignature": "c2lnbmVk"}),
    }
}

fn call(n: u64, name: &str, input: Value, state: ToolState) -> ToolPart {
    let wire_id = Some(format!("call_{n}"));
    ToolPart { call: sample_id(100 + n), name: name.to_owned(), input, wire_id, sealed: Value::Null, state }
}

fn done(text: &str, files: Vec<FilePart>) -> ToolState {
    ToolState::Completed { output: ToolOutput { text: text.to_owned(), files, ..ToolOutput::default() } }
}

/// A conversation with something of everything.
fn conversation(wire: WireProtocol) -> Vec<Message> {
    let model = dialect(wire).name;
    let thinking = ReasoningPart { text: "Look first.".to_owned(), sealed: sealed(wire) };
    let mut first = call(
        1,
        "read",
        json!({"path": "a.png"}),
        done("a picture", vec![file("a.png", "image/png", picture())]),
    );
    if wire == WireProtocol::Gemini {
        first.sealed = json!({"thoughtSignature": "Y2FsbA=="});
    }
    vec![
        message(
            1,
            MessageRole::User,
            vec![
                MessagePart::Text(TextPart::said("What is in these? \"é☃\"\n")),
                MessagePart::File(file("shot.png", "image/png", picture())),
                MessagePart::File(file("paper.pdf", "application/pdf", picture())),
                MessagePart::File(file("gone.png", "image/png", BlobId::from_hash([2; 32]))),
            ],
        ),
        message(2, MessageRole::User, vec![MessagePart::Text(TextPart::note("Today is Monday."))]),
        message(
            3,
            MessageRole::Assistant,
            vec![
                MessagePart::StepStart { step: sample_id(50), model: model.clone() },
                MessagePart::Reasoning(thinking),
                MessagePart::Text(TextPart::said("I look.")),
                MessagePart::Tool(Box::new(first)),
                MessagePart::Tool(Box::new(call(
                    2,
                    "list",
                    json!({}),
                    ToolState::Error { message: "no such folder".to_owned() },
                ))),
            ],
        ),
        message(
            4,
            MessageRole::Assistant,
            vec![
                MessagePart::StepStart { step: sample_id(51), model },
                MessagePart::Text(TextPart::said("A cat.")),
            ],
        ),
        user(5, "Thanks."),
    ]
}

fn body_of(dialect: ModelDialect, prompt: &ModelPrompt, messages: &[Message]) -> String {
    let mut conversation = Conversation::new(dialect, prompt);
    messages.iter().for_each(|message| conversation.push(message, &OnePicture));
    String::from_utf8(conversation.next_request().body.to_vec()).unwrap()
}

const WIRES: [WireProtocol; 4] =
    [WireProtocol::Messages, WireProtocol::Chat, WireProtocol::Responses, WireProtocol::Gemini];

/// Compares with a file, or writes it anew if `HELVE_BLESS` is set.
#[expect(clippy::disallowed_methods, reason = "whoever changes a request on purpose says so")]
fn assert_is_kept(name: &str, body: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/requests").join(name);
    let body = format!("{body}\n");
    if std::env::var_os("HELVE_BLESS").is_some() {
        fs::write(&path, &body).unwrap();
    }
    assert_eq!(
        body,
        fs::read_to_string(&path).unwrap_or_default(),
        "{}: set HELVE_BLESS to accept",
        path.display()
    );
}

#[test]
fn requests_are_the_same_bytes_as_ever() {
    let forced = ModelPrompt {
        tool_choice: ToolChoice::Named("read".to_owned()),
        effort: Some(ReasoningEffort::Off),
        max_output: Some(1_000),
        output: Some(OutputSchema {
            name: "verdict".to_owned(),
            schema: json!({
                "type": "object", "properties": {"good": {"type": "boolean"}},
                "required": ["good"], "additionalProperties": false,
            }),
        }),
        ..prompt()
    };
    for wire in WIRES {
        let name = format!("{wire:?}").to_ascii_lowercase();
        assert_is_kept(&format!("{name}.json"), &body_of(dialect(wire), &prompt(), &conversation(wire)));
        assert_is_kept(
            &format!("{name}-forced.json"),
            &body_of(dialect(wire), &forced, &[user(1, "Judge.")]),
        );
    }
}

/// All strings of a JSON value.
fn strings(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| strings(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| strings(field, found)),
        _ => {}
    }
}

#[test]
fn seals_go_back_to_the_model_that_made_them_and_to_no_other() {
    for wire in [WireProtocol::Messages, WireProtocol::Responses, WireProtocol::Gemini] {
        let sealed = if wire == WireProtocol::Responses { "c2VhbGVk" } else { "c2lnbmVk" };
        assert!(body_of(dialect(wire), &prompt(), &conversation(wire)).contains(sealed), "{wire:?}");
        for other in WIRES {
            let mut dialect = dialect(other);
            dialect.name = ModelName::new("another/model");
            let body: Value =
                serde_json::from_str(&body_of(dialect, &prompt(), &conversation(wire))).unwrap();
            let mut found = Vec::new();
            strings(&body, &mut found);
            for word in ["c2lnbmVk", "c2VhbGVk", "Y2FsbA==", "Look first.", "call_1", "rs_1"] {
                assert!(!found.iter().any(|text| text.contains(word)), "{wire:?} to {other:?}: {word}");
            }
            assert!(found.iter().any(|text| text == "I look."));
        }
    }
}

#[test]
fn what_a_model_cannot_look_at_is_told_in_words() {
    for wire in WIRES {
        let blind = ModelDialect { images: MediaSupport::No, documents: MediaSupport::No, ..dialect(wire) };
        let body = body_of(blind, &prompt(), &conversation(wire));
        assert!(body.contains("The file shot.png (image/png) is not shown"), "{wire:?}");
        assert!(body.contains("The file a.png (image/png) is not shown"), "{wire:?}");
        assert!(!body.contains("iVBORw"), "{wire:?}");
        assert!(
            body_of(dialect(wire), &prompt(), &conversation(wire)).contains("gone.png is lost"),
            "{wire:?}"
        );
    }
}

#[test]
fn names_and_inputs_that_models_make_up_are_sent_in_a_form_that_is_taken() {
    let odd = call(1, "shell run! ☃", json!("{not json"), ToolState::Error { message: "no".to_owned() });
    for wire in WIRES {
        let parts = vec![
            MessagePart::StepStart { step: sample_id(50), model: dialect(wire).name },
            MessagePart::Tool(Box::new(ToolPart { wire_id: Some("call 1 ☃".to_owned()), ..odd.clone() })),
        ];
        let messages = [user(1, "go"), message(2, MessageRole::Assistant, parts)];
        let body: Value = serde_json::from_str(&body_of(dialect(wire), &prompt(), &messages)).unwrap();
        let mut found = Vec::new();
        strings(&body, &mut found);
        assert!(found.iter().any(|text| text == "shell_run___"), "{wire:?}: {found:?}");
        assert!(!found.iter().any(|text| text == "call 1 ☃"), "{wire:?}");
        assert!(body.to_string().contains("unreadable"), "{wire:?}");
    }
}

/// What a vendor's server gets, made by way of its name.
fn sent_to(name: &str, prompt: &ModelPrompt, messages: &[Message]) -> Value {
    let keys = |variable: &str| variable.ends_with("_KEY").then(|| "key-for-tests".to_owned());
    let router = ModelRouter::new(ModelPreferences::default(), ModelCatalogue::built_in(), &keys, &|_| None);
    let dialect = router.find(name).unwrap().dialect();
    serde_json::from_str(&body_of(dialect, prompt, messages)).unwrap()
}

#[test]
fn dialects_differ_only_in_what_their_vendors_want() {
    let thought = |model: &str| {
        let parts = vec![
            MessagePart::StepStart { step: sample_id(50), model: ModelName::new(model) },
            MessagePart::Reasoning(ReasoningPart {
                text: "Hm.".to_owned(),
                sealed: json!({"details": [{"type": "t"}]}),
            }),
            MessagePart::Tool(Box::new(call(1, "list", json!({}), done("a.rs", vec![])))),
        ];
        [user(1, "go"), message(2, MessageRole::Assistant, parts), user(3, "and?")]
    };
    let asked = ModelPrompt { tool_choice: ToolChoice::Required, max_output: Some(100), ..prompt() };
    let sent = |name: &str| sent_to(name, &asked, &thought(name));

    let deepseek = sent("deepseek/deepseek-reasoner");
    assert_eq!(deepseek["messages"][2]["reasoning_content"], "Hm.");
    assert_eq!(deepseek["thinking"], json!({"type": "disabled"}), "a call is forced");
    assert_eq!(deepseek["tool_choice"], "required");
    let free = sent_to("deepseek/deepseek-reasoner", &prompt(), &thought("deepseek/deepseek-reasoner"));
    assert_eq!(free["thinking"], json!({"type": "enabled"}));
    assert_eq!(deepseek["max_tokens"], 100);

    let qwen = sent_to("qwen/qwen3.7-max", &prompt(), &thought("qwen/qwen3.7-max"));
    assert_eq!(qwen["enable_thinking"], true);
    assert_eq!(qwen["messages"][2].get("reasoning_content"), None);

    let groq = sent("groq/openai/gpt-oss-120b");
    assert_eq!((&groq["reasoning_effort"], &groq["max_completion_tokens"]), (&json!("high"), &json!(100)));

    let openrouter = sent("openrouter/anthropic/claude-sonnet-5");
    assert_eq!(openrouter["reasoning"], json!({"effort": "high"}));
    assert_eq!(openrouter["messages"][2]["reasoning_details"], json!([{"type": "t"}]));
    assert_eq!(openrouter["cache_control"], json!({"type": "ephemeral"}));

    let mistral = sent("mistral/mistral-medium-2604");
    assert_eq!(mistral["tool_choice"], "any");
    let roles: Vec<&str> =
        mistral["messages"].as_array().unwrap().iter().map(|item| item["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "assistant", "user"]);
    let id = mistral["messages"][2]["tool_calls"][0]["id"].as_str().unwrap();
    assert!(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
    assert_eq!(mistral["messages"][3]["tool_call_id"], id);

    let openai = sent("openai/gpt-5.5");
    assert_eq!(openai["prompt_cache_key"], "session-1");
    assert_eq!(sent("ollama/any").get("prompt_cache_key"), None);
}

#[test]
fn a_call_id_of_nine_letters_is_kept() {
    let quirks = Quirks { call_ids: CallIdFormat::NineAlphanumeric, ..Quirks::PLAIN };
    let dialect = ModelDialect { quirks, ..dialect(WireProtocol::Chat) };
    let tool =
        ToolPart { wire_id: Some("a1B2c3D4e".to_owned()), ..call(1, "list", json!({}), done("x", vec![])) };
    let parts = vec![
        MessagePart::StepStart { step: sample_id(50), model: dialect.name.clone() },
        MessagePart::Tool(Box::new(tool)),
    ];
    let body = body_of(dialect, &prompt(), &[user(1, "go"), message(2, MessageRole::Assistant, parts)]);
    assert_eq!(body.matches("a1B2c3D4e").count(), 2);
}

#[test]
fn older_models_are_told_a_number_of_tokens_to_think() {
    let think = |name: &str, effort: ReasoningEffort| {
        sent_to(name, &ModelPrompt { effort: Some(effort), ..prompt() }, &[user(1, "go")])
    };
    let old = think("anthropic/claude-sonnet-4-5", ReasoningEffort::High);
    assert_eq!(old["thinking"], json!({"type": "enabled", "budget_tokens": 24_576}));
    assert!(old["max_tokens"].as_u64() > Some(24_576));
    let new = think("anthropic/claude-sonnet-5", ReasoningEffort::Low);
    assert_eq!(
        (&new["thinking"]["type"], &new["output_config"]["effort"]),
        (&json!("adaptive"), &json!("low"))
    );
    let old = think("gemini/gemini-2.5-pro", ReasoningEffort::Low);
    assert_eq!(old["generationConfig"]["thinkingConfig"]["thinkingBudget"], 4_096);
    let new = think("gemini/gemini-3.1-pro-preview", ReasoningEffort::Low);
    assert_eq!(new["generationConfig"]["thinkingConfig"]["thinkingLevel"], "LOW");
    let dumb = think("openai/gpt-4o", ReasoningEffort::High);
    assert_eq!((dumb.get("reasoning"), dumb.get("include")), (None, None));
}

/// Where the system prompt stands on each wire, in the order of [`WireProtocol`].
const SYSTEM: [&str; 4] =
    ["/system/0/text", "/messages/0/content", "/instructions", "/systemInstruction/parts/0/text"];

#[test]
fn the_beginning_stays_and_a_break_is_told() {
    for wire in WIRES {
        let messages = conversation(wire);
        let mut conversation = Conversation::new(dialect(wire), &prompt());
        conversation.push(&messages[0], &OnePicture);
        let first = conversation.next_request();
        assert_eq!((first.kept, first.segments.len()), (0, 2), "{wire:?}");
        conversation.push(&messages[1], &OnePicture);
        conversation.push(&messages[2], &OnePicture);
        let second = conversation.next_request();
        assert_eq!((second.kept, second.segments.len(), second.broken), (2, 2, None), "{wire:?}");

        let mut other = Conversation::new(dialect(wire), &prompt());
        other.push(&user(1, "something else"), &OnePicture);
        other.next_request();
        let mut other_prompt = prompt();
        for (change, path) in
            [(PrefixChange::Explained, None), (PrefixChange::Unexplained, Some(SYSTEM[wire as usize]))]
        {
            other_prompt.system.push('!');
            other.renew(dialect(wire), &other_prompt, change);
            other.push(&user(1, "something else"), &OnePicture);
            let request = other.next_request();
            assert_eq!(
                (request.broken.as_ref().map(|broken| &*broken.path), request.kept),
                (path, 0),
                "{wire:?}"
            );
        }
    }
}

#[test]
fn cache_marks_stand_where_the_last_request_ended_and_where_this_one_ends() {
    let messages = conversation(WireProtocol::Messages);
    let mut conversation = Conversation::new(dialect(WireProtocol::Messages), &prompt());
    let mut marked = |upto: usize| -> Vec<String> {
        for message in &messages[conversation.len()..upto] {
            conversation.push(message, &OnePicture);
        }
        let body: Value = serde_json::from_slice(&conversation.next_request().body).unwrap();
        let mut found = Vec::new();
        if body["system"][0].get("cache_control").is_some() {
            found.push("system".to_owned());
        }
        for (m, item) in body["messages"].as_array().unwrap().iter().enumerate() {
            for (b, block) in item["content"].as_array().unwrap().iter().enumerate() {
                if block.get("cache_control").is_some() {
                    found.push(format!("{m}.{b}"));
                }
            }
        }
        found
    };
    assert_eq!(marked(2), ["system", "1.0"]);
    assert_eq!(marked(3), ["system", "1.0", "3.1"]);
    assert_eq!(marked(5), ["system", "3.1", "5.0"]);
    assert_eq!(marked(5), ["system", "5.0"]);
}

#[test]
fn users_add_providers_and_change_known_ones() {
    let wish = |wire, url: &str| ProviderOverrides {
        wire,
        base_url: Some(url.to_owned()),
        ..ProviderOverrides::default()
    };
    let wishes = ModelPreferences {
        providers: [
            ("home".to_owned(), wish(Some(WireProtocol::Chat), "http://127.0.0.1:9/v1")),
            ("openai".to_owned(), wish(Some(WireProtocol::Chat), "http://127.0.0.1:8/v1")),
        ]
        .into(),
        aliases: [
            ("big".to_owned(), "home/llama".to_owned()),
            ("a".to_owned(), "b".to_owned()),
            ("b".to_owned(), "a".to_owned()),
        ]
        .into(),
        ..ModelPreferences::default()
    };
    let router = ModelRouter::new(wishes, ModelCatalogue::built_in(), &|_| None, &|_| None);
    assert_eq!(router.find("big").unwrap().name, ModelName::new("home/llama"));
    assert!(router.find("a").unwrap_err().to_string().contains("itself"));
    assert_eq!(router.provider("openai").unwrap().wire, WireProtocol::Chat);
    let missing = router.find("openai/gpt-5.5").unwrap_err();
    assert!(missing.is_about_keys() && missing.hint().contains("OPENAI_API_KEY"), "{missing}");
    assert!(Arc::strong_count(router.provider("home").unwrap()) >= 1);
}

#[test]
fn a_model_that_takes_over_gets_what_it_insists_on() {
    let parts = vec![
        MessagePart::StepStart { step: sample_id(50), model: ModelName::new("another/model") },
        MessagePart::Tool(Box::new(call(1, "list", json!({}), done("a.rs", vec![])))),
    ];
    let mut messages = vec![user(1, "go"), message(2, MessageRole::Assistant, parts)];
    let prompt = prompt();
    let kimi = sent_to("moonshot/kimi-k2.6", &prompt, &messages);
    assert_eq!(kimi["messages"][2]["reasoning_content"], " ", "{kimi:#}");
    // An older model that thinks would miss its own thoughts about the call, so it goes on without thinking…
    let claude = "anthropic/claude-sonnet-4-5";
    assert_eq!(sent_to(claude, &prompt, &messages)["thinking"], json!({"type": "disabled"}));
    // … until the user speaks again.
    messages.push(user(3, "and now?"));
    assert_eq!(sent_to(claude, &prompt, &messages)["thinking"]["type"], "enabled");
    assert_eq!(sent_to("anthropic/claude-sonnet-5", &prompt, &messages[..2])["thinking"]["type"], "adaptive");
}

#[test]
fn limits_of_models_are_kept() {
    let most = ModelPrompt { effort: Some(ReasoningEffort::Max), ..prompt() };
    let opus = sent_to("anthropic/claude-opus-4-1", &most, &[user(1, "go")]);
    let (budget, all) =
        (opus["thinking"]["budget_tokens"].as_u64().unwrap(), opus["max_tokens"].as_u64().unwrap());
    assert!(budget < all && all <= 32_000, "{budget} {all}");
    let forced = ModelPrompt { tool_choice: ToolChoice::Required, ..prompt() };
    assert_eq!(
        sent_to("deepseek/deepseek-reasoner", &forced, &[user(1, "go")])["thinking"],
        json!({"type": "disabled"})
    );
    assert_eq!(
        sent_to("mistral/mistral-medium-2604", &prompt(), &[user(1, "go")]).get("stream_options"),
        None
    );
}

#[test]
fn only_a_schema_that_leaves_nothing_open_is_strict() {
    let asked = |schema: Value| {
        let output = Some(OutputSchema { name: "x".to_owned(), schema });
        sent_to("openai/gpt-5.5", &ModelPrompt { output, ..prompt() }, &[user(1, "go")])["text"]["format"]["strict"].clone()
    };
    let field = json!({"type": "string"});
    let closed = json!({"type": "object", "properties": {"a": field}, "required": ["a"], "additionalProperties": false});
    let open = json!({"type": "object", "properties": {"a": field}});
    assert_eq!(asked(closed.clone()), true);
    assert_eq!(asked(open.clone()), false);
    assert_eq!(
        asked(
            json!({"type": "object", "properties": {"b": open}, "required": ["b"], "additionalProperties": false})
        ),
        false
    );
}

#[test]
fn a_servers_own_id_goes_back_as_it_came() {
    let tool = ToolPart {
        wire_id: Some("functions.list:0".to_owned()),
        ..call(1, "list", json!({}), done("x", vec![]))
    };
    for (wire, kept) in [(WireProtocol::Chat, 2), (WireProtocol::Responses, 2), (WireProtocol::Messages, 0)] {
        let parts = vec![
            MessagePart::StepStart { step: sample_id(50), model: dialect(wire).name },
            MessagePart::Tool(Box::new(tool.clone())),
        ];
        let body =
            body_of(dialect(wire), &prompt(), &[user(1, "go"), message(2, MessageRole::Assistant, parts)]);
        assert_eq!(body.matches("functions.list:0").count(), kept, "{wire:?}");
    }
}

#[test]
fn thinking_that_led_to_nothing_stays_behind() {
    for wire in [WireProtocol::Messages, WireProtocol::Responses] {
        let thinking = ReasoningPart { text: "Hm.".to_owned(), sealed: sealed(wire) };
        let parts = vec![
            MessagePart::StepStart { step: sample_id(50), model: dialect(wire).name },
            MessagePart::Text(TextPart::said("Well,")),
            MessagePart::Reasoning(thinking),
        ];
        let body = body_of(
            dialect(wire),
            &prompt(),
            &[user(1, "go"), message(2, MessageRole::Assistant, parts), user(3, "?")],
        );
        assert!(
            body.contains("Well,") && !body.contains("c2lnbmVk") && !body.contains("c2VhbGVk"),
            "{wire:?}"
        );
    }
}
