//! What a request asks, read from its body.

use serde_json::Value;

use crate::Wire;

/// What a script looks at in a request, whatever its wire.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    pub model: String,
    pub system: String,
    /// What the user said last.
    pub user: String,
    /// The results that came after the last answer.
    pub results: Vec<ToolResult>,
    /// The names of the tools that the model may call.
    pub tools: Vec<String>,
    /// How often the model has answered in this conversation.
    pub answers: usize,
    pub body: Value,
    pub(super) bytes: usize,
    /// No call of the conversation has a higher number.
    pub(super) last_call: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// Where the request says which call it is for.
    pub tool: Option<String>,
    pub text: String,
    /// Two of the wires have no word for it.
    pub is_error: bool,
}

/// Why a body is no request of its wire.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAsked {
    #[error("the request's body is not JSON: {0}")]
    NotJson(String),
    #[error("the request's body has no {0:?}")]
    NoConversation(&'static str),
}

impl Asked {
    /// Reads a request. Gemini names the model in the address instead of the body.
    pub fn read(wire: Wire, model_in_url: Option<&str>, body: &[u8]) -> Result<Asked, NotAsked> {
        let bytes = body.len();
        let body: Value =
            serde_json::from_slice(body).map_err(|error| NotAsked::NotJson(error.to_string()))?;
        let (field, items) = match wire {
            Wire::Messages => ("messages", messages(&body)),
            Wire::Chat => ("messages", chat(&body)),
            Wire::Responses => ("input", responses(&body)),
            Wire::Gemini => ("contents", gemini(&body)),
        };
        if !body.get(field).is_some_and(|said| said.is_array() || said.is_string()) {
            return Err(NotAsked::NoConversation(field));
        }
        let model = body.get("model").and_then(Value::as_str).or(model_in_url).unwrap_or_default();
        let mut asked = Asked {
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

    fn follow(&mut self, items: Vec<Item<'_>>) {
        let mut calls: Vec<(&str, &str)> = Vec::new();
        for item in items {
            match item {
                Item::System(text) => join(&mut self.system, &text),
                // What Helve adds by itself is not the user's.
                Item::User(text) if is_note(&text) => {}
                Item::User(text) => self.user = text,
                Item::Answer => {
                    self.answers += 1;
                    self.results.clear();
                }
                Item::Call { id, name } => {
                    let number = id.strip_prefix("call_").and_then(|number| number.parse().ok());
                    self.last_call = self.last_call.saturating_add(1).max(number.unwrap_or(0));
                    calls.push((id, name));
                }
                Item::Result { id, name, text, is_error } => {
                    let known = calls.iter().rev().find(|(of, _)| !id.is_empty() && *of == id);
                    let tool = known.map(|(_, name)| *name).or(name).map(str::to_owned);
                    self.results.push(ToolResult { tool, text, is_error });
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
enum Item<'a> {
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

fn messages(body: &Value) -> Vec<Item<'_>> {
    let mut items = vec![Item::System(text_of(body.get("system")))];
    for message in list(body.get("messages")) {
        let content = message.get("content");
        if role(message) == "assistant" {
            items.push(Item::Answer);
            let calls = list(content).iter().filter(|block| kind(block) == "tool_use");
            items.extend(calls.map(|call| Item::Call { id: text(call, "id"), name: text(call, "name") }));
            continue;
        }
        let results = list(content).iter().filter(|block| kind(block) == "tool_result");
        items.extend(results.map(|result| Item::Result {
            id: text(result, "tool_use_id"),
            name: None,
            text: text_of(result.get("content")),
            is_error: result.get("is_error").and_then(Value::as_bool) == Some(true),
        }));
        if content.is_some_and(Value::is_string)
            || list(content).iter().any(|block| kind(block) != "tool_result")
        {
            items.push(Item::User(text_of(content)));
        }
    }
    items
}

fn chat(body: &Value) -> Vec<Item<'_>> {
    let mut items = Vec::new();
    for message in list(body.get("messages")) {
        let said = text_of(message.get("content"));
        match role(message) {
            "system" | "developer" => items.push(Item::System(said)),
            "user" => items.push(Item::User(said)),
            "assistant" => {
                items.push(Item::Answer);
                let calls = list(message.get("tool_calls")).iter();
                items.extend(calls.map(|call| Item::Call {
                    id: text(call, "id"),
                    name: call.pointer("/function/name").and_then(Value::as_str).unwrap_or_default(),
                }));
            }
            "tool" => items.push(Item::Result {
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
fn responses(body: &Value) -> Vec<Item<'_>> {
    let mut items = vec![Item::System(text_of(body.get("instructions")))];
    let input = body.get("input");
    if input.is_some_and(Value::is_string) {
        items.push(Item::User(text_of(input)));
    }
    let mut model_speaks = false;
    for item in list(input) {
        let spoke = model_speaks;
        let is_call = matches!(kind(item), "function_call" | "custom_tool_call");
        model_speaks = is_call || kind(item) == "reasoning" || role(item) == "assistant";
        if model_speaks && !spoke {
            items.push(Item::Answer);
        }
        match (kind(item), role(item)) {
            (_, "system" | "developer") => items.push(Item::System(text_of(item.get("content")))),
            (_, "user") => items.push(Item::User(text_of(item.get("content")))),
            _ if is_call => items.push(Item::Call { id: text(item, "call_id"), name: text(item, "name") }),
            ("function_call_output" | "custom_tool_call_output", _) => items.push(Item::Result {
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

fn gemini(body: &Value) -> Vec<Item<'_>> {
    let mut items = vec![Item::System(text_of(body.pointer("/systemInstruction/parts")))];
    for content in list(body.get("contents")) {
        let parts = content.get("parts");
        if role(content) == "model" {
            items.push(Item::Answer);
            let calls = list(parts).iter().filter_map(|part| part.get("functionCall"));
            items.extend(calls.map(|call| Item::Call { id: text(call, "id"), name: text(call, "name") }));
            continue;
        }
        let results = list(parts).iter().filter_map(|part| part.get("functionResponse"));
        items.extend(results.map(gemini_result));
        if list(parts).iter().any(|part| part.get("functionResponse").is_none()) {
            items.push(Item::User(text_of(parts)));
        }
    }
    items
}

/// The result is an object, in which people write the text under one of several names.
fn gemini_result(result: &Value) -> Item<'_> {
    let response = result.get("response").unwrap_or(&Value::Null);
    let named = ["error", "output", "result"].iter().find_map(|name| response.get(*name)?.as_str());
    Item::Result {
        id: text(result, "id"),
        name: Some(text(result, "name")),
        text: named.map_or_else(|| response.to_string(), str::to_owned),
        is_error: response.get("error").is_some(),
    }
}

fn offered(wire: Wire, body: &Value) -> Vec<String> {
    let tools = list(body.get("tools")).iter();
    let names: Vec<&str> = match wire {
        Wire::Messages | Wire::Responses => tools.map(|tool| text(tool, "name")).collect(),
        Wire::Chat => tools.filter_map(|tool| tool.pointer("/function/name")?.as_str()).collect(),
        Wire::Gemini => {
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
