//! What a request asks, read from its body.

use serde_json::Value;

use crate::WireProtocol;

/// What a script looks at in a request, whatever its wire.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptRequest {
    /// The model as the request calls it.
    pub model: String,
    /// The system prompt; empty for none.
    pub system: String,
    /// What the user said last.
    pub user: String,
    /// The results that came after the last answer.
    pub results: Vec<ScriptToolResult>,
    /// The names of the tools that the model may call.
    pub tools: Vec<String>,
    /// How often the model has answered in this conversation.
    pub answers: usize,
    /// The whole body.
    pub body: Value,
    pub(super) bytes: usize,
    /// No call of the conversation has a higher number.
    pub(super) last_call: u32,
}

/// The result of a call, as a request tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptToolResult {
    /// Where the request says which call it is for.
    pub tool: Option<String>,
    /// What the tool said.
    pub text: String,
    /// Two of the wires have no word for it.
    pub is_error: bool,
}

/// Why a body is no request of its wire.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptRequestError {
    /// It is no JSON: what is wrong with it.
    #[error("the request's body is not JSON: {0}")]
    NotJson(String),
    /// It lacks the field that this wire has the conversation in.
    #[error("the request's body has no {0:?}")]
    NoConversation(&'static str),
}

impl ScriptRequest {
    /// Reads a request. Gemini names the model in the address instead of the body.
    pub fn read(
        wire: WireProtocol,
        model_in_url: Option<&str>,
        body: &[u8],
    ) -> Result<ScriptRequest, ScriptRequestError> {
        let bytes = body.len();
        let body: Value =
            serde_json::from_slice(body).map_err(|error| ScriptRequestError::NotJson(error.to_string()))?;
        let (field, items) = match wire {
            WireProtocol::Messages => ("messages", messages(&body)),
            WireProtocol::Chat => ("messages", chat(&body)),
            WireProtocol::Responses => ("input", responses(&body)),
            WireProtocol::Gemini => ("contents", gemini(&body)),
        };
        if !body.get(field).is_some_and(|said| said.is_array() || said.is_string()) {
            return Err(ScriptRequestError::NoConversation(field));
        }
        let model = body.get("model").and_then(Value::as_str).or(model_in_url).unwrap_or_default();
        let mut asked = ScriptRequest {
            model: model.to_owned(),
            system: String::new(),
            user: String::new(),
            results: Vec::new(),
            tools: offered(wire, &body),
            answers: 0,
            bytes,
            last_call: 0,
            body: Value::Null,
        };
        asked.follow(items);
        asked.body = body;
        Ok(asked)
    }

    fn follow(&mut self, items: Vec<RequestItem<'_>>) {
        let mut calls: Vec<(&str, &str)> = Vec::new();
        for item in items {
            match item {
                RequestItem::System(text) => join(&mut self.system, &text),
                // What Helve adds by itself is not the user's.
                RequestItem::User(text) if is_note(&text) => {}
                RequestItem::User(text) => self.user = text,
                RequestItem::Answer => {
                    self.answers += 1;
                    self.results.clear();
                }
                RequestItem::Call { id, name } => {
                    let number = id.strip_prefix("call_").and_then(|number| number.parse().ok());
                    self.last_call = self.last_call.saturating_add(1).max(number.unwrap_or(0));
                    calls.push((id, name));
                }
                RequestItem::Result { id, name, text, is_error } => {
                    let known = calls.iter().rev().find(|(of, _)| !id.is_empty() && *of == id);
                    let tool = known.map(|(_, name)| *name).or(name).map(str::to_owned);
                    self.results.push(ScriptToolResult { tool, text, is_error });
                }
            }
        }
    }
}

fn is_note(text: &str) -> bool {
    let text = text.trim();
    text.starts_with("<note>") && text.ends_with("</note>")
}

/// A conversation in the same words for every wire.
enum RequestItem<'a> {
    System(String),
    User(String),
    /// The model begins to speak.
    Answer,
    Call {
        id: &'a str,
        name: &'a str,
    },
    Result {
        id: &'a str,
        name: Option<&'a str>,
        text: String,
        is_error: bool,
    },
}

fn messages(body: &Value) -> Vec<RequestItem<'_>> {
    let mut items = vec![RequestItem::System(text_of(body.get("system")))];
    for message in list(body.get("messages")) {
        let content = message.get("content");
        if role(message) == "assistant" {
            items.push(RequestItem::Answer);
            let calls = list(content).iter().filter(|block| kind(block) == "tool_use");
            items.extend(
                calls.map(|call| RequestItem::Call { id: text(call, "id"), name: text(call, "name") }),
            );
            continue;
        }
        let results = list(content).iter().filter(|block| kind(block) == "tool_result");
        items.extend(results.map(|result| RequestItem::Result {
            id: text(result, "tool_use_id"),
            name: None,
            text: text_of(result.get("content")),
            is_error: result.get("is_error").and_then(Value::as_bool) == Some(true),
        }));
        if content.is_some_and(Value::is_string)
            || list(content).iter().any(|block| kind(block) != "tool_result")
        {
            items.push(RequestItem::User(text_of(content)));
        }
    }
    items
}

fn chat(body: &Value) -> Vec<RequestItem<'_>> {
    let mut items = Vec::new();
    for message in list(body.get("messages")) {
        let said = text_of(message.get("content"));
        match role(message) {
            "system" | "developer" => items.push(RequestItem::System(said)),
            "user" => items.push(RequestItem::User(said)),
            "assistant" => {
                items.push(RequestItem::Answer);
                let calls = list(message.get("tool_calls")).iter();
                items.extend(calls.map(|call| RequestItem::Call {
                    id: text(call, "id"),
                    name: call.pointer("/function/name").and_then(Value::as_str).unwrap_or_default(),
                }));
            }
            "tool" => items.push(RequestItem::Result {
                id: text(message, "tool_call_id"),
                name: None,
                text: said,
                is_error: false,
            }),
            _ => {}
        }
    }
    items
}

/// Here an answer is several items, one after the other.
fn responses(body: &Value) -> Vec<RequestItem<'_>> {
    let mut items = vec![RequestItem::System(text_of(body.get("instructions")))];
    let input = body.get("input");
    if input.is_some_and(Value::is_string) {
        items.push(RequestItem::User(text_of(input)));
    }
    let mut model_speaks = false;
    for item in list(input) {
        let spoke = model_speaks;
        let is_call = matches!(kind(item), "function_call" | "custom_tool_call");
        model_speaks = is_call || kind(item) == "reasoning" || role(item) == "assistant";
        if model_speaks && !spoke {
            items.push(RequestItem::Answer);
        }
        match (kind(item), role(item)) {
            (_, "system" | "developer") => items.push(RequestItem::System(text_of(item.get("content")))),
            (_, "user") => items.push(RequestItem::User(text_of(item.get("content")))),
            _ if is_call => {
                items.push(RequestItem::Call { id: text(item, "call_id"), name: text(item, "name") })
            }
            ("function_call_output" | "custom_tool_call_output", _) => items.push(RequestItem::Result {
                id: text(item, "call_id"),
                name: None,
                text: text_of(item.get("output")),
                is_error: false,
            }),
            _ => {}
        }
    }
    items
}

fn gemini(body: &Value) -> Vec<RequestItem<'_>> {
    let mut items = vec![RequestItem::System(text_of(body.pointer("/systemInstruction/parts")))];
    for content in list(body.get("contents")) {
        let parts = content.get("parts");
        if role(content) == "model" {
            items.push(RequestItem::Answer);
            let calls = list(parts).iter().filter_map(|part| part.get("functionCall"));
            items.extend(
                calls.map(|call| RequestItem::Call { id: text(call, "id"), name: text(call, "name") }),
            );
            continue;
        }
        let results = list(parts).iter().filter_map(|part| part.get("functionResponse"));
        items.extend(results.map(gemini_result));
        if list(parts).iter().any(|part| part.get("functionResponse").is_none()) {
            items.push(RequestItem::User(text_of(parts)));
        }
    }
    items
}

/// The result is an object, in which people write the text under one of several names.
fn gemini_result(result: &Value) -> RequestItem<'_> {
    let response = result.get("response").unwrap_or(&Value::Null);
    let named = ["error", "output", "result"].iter().find_map(|name| response.get(*name)?.as_str());
    RequestItem::Result {
        id: text(result, "id"),
        name: Some(text(result, "name")),
        text: named.map_or_else(|| response.to_string(), str::to_owned),
        is_error: response.get("error").is_some(),
    }
}

fn offered(wire: WireProtocol, body: &Value) -> Vec<String> {
    let tools = list(body.get("tools")).iter();
    let names: Vec<&str> = match wire {
        WireProtocol::Messages | WireProtocol::Responses => tools.map(|tool| text(tool, "name")).collect(),
        WireProtocol::Chat => tools.filter_map(|tool| tool.pointer("/function/name")?.as_str()).collect(),
        WireProtocol::Gemini => {
            let declared = tools.flat_map(|tool| list(tool.get("functionDeclarations")));
            declared.map(|tool| text(tool, "name")).collect()
        }
    };
    names.into_iter().filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The text of a string, or of the blocks of a list that have one.
fn text_of(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            let mut whole = String::new();
            let texts = blocks.iter().filter_map(|block| block.get("text")?.as_str());
            texts.for_each(|text| join(&mut whole, text));
            whole
        }
        _ => String::new(),
    }
}

fn join(whole: &mut String, text: &str) {
    if !whole.is_empty() && !text.is_empty() {
        whole.push('\n');
    }
    whole.push_str(text);
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn role(message: &Value) -> &str {
    text(message, "role")
}

fn kind(block: &Value) -> &str {
    text(block, "type")
}
