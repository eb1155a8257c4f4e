//! OpenAI Responses.

use super::CheckResult;
use super::body_value::{BodyValue, IMAGE_MEDIA_TYPES};
use super::conversation_order::{CallIdentity, ConversationOrder};
use super::tools::{self, ToolNames};

const RESPONSES_FIELDS: [&str; 27] = [
    "background",
    "context_management",
    "conversation",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_p",
    "truncation",
];

const MAX_RESPONSES_ID_BYTES: usize = 64;
/// Fewer tokens are not to be had.
const MIN_OUTPUT_TOKENS: u64 = 16;

pub(super) fn check(body: &BodyValue<'_>) -> CheckResult {
    body.only_fields(&RESPONSES_FIELDS)?;
    body.field("model")?.text()?;
    body.optional_field("max_output_tokens").map_or(Ok(0), |most| most.number(MIN_OUTPUT_TOKENS))?;
    body.optional_field("instructions").map_or(Ok(""), |system| system.text())?;
    if let Some(reasoning) = body.optional_field("reasoning") {
        reasoning.only_fields(&["effort", "summary"])?;
        if let Some(effort) = reasoning.optional_field("effort") {
            effort.word(&["none", "minimal", "low", "medium", "high", "xhigh"])?;
        }
        if let Some(summary) = reasoning.optional_field("summary") {
            summary.word(&["auto", "concise", "detailed"])?;
        }
    }
    for wanted in body.optional_field("include").map_or(Ok(Vec::new()), |include| include.items())? {
        wanted.word(&["reasoning.encrypted_content", "message.output_text.logprobs"])?;
    }
    check_tools(body)?;
    format(body)?;
    conversation(body)
}

fn check_tools(body: &BodyValue<'_>) -> CheckResult {
    let mut names = ToolNames::default();
    for tool in body.optional_field("tools").map_or(Ok(Vec::new()), |tools| tools.items())? {
        tool.only_fields(&["type", "name", "description", "parameters", "strict"])?;
        tool.field("type")?.word(&["function"])?;
        names.add(&tool.field("name")?)?;
        tools::schema(&tool.field("parameters")?)?;
        if tool.field("strict")?.flag()? {
            tools::strict_schema(&tool.field("parameters")?)?;
        }
    }
    let Some(choice) = body.optional_field("tool_choice") else { return Ok(()) };
    choice.require(body.has("tools"), "there are no tools to choose from")?;
    if choice.value.is_string() {
        return choice.word(&["auto", "none", "required"]).map(drop);
    }
    choice.only_fields(&["type", "name"])?;
    choice.field("type")?.word(&["function"])?;
    names.must_have(&choice.field("name")?)
}

fn format(body: &BodyValue<'_>) -> CheckResult {
    let Some(text) = body.optional_field("text") else { return Ok(()) };
    text.only_fields(&["format", "verbosity"])?;
    let Some(format) = text.optional_field("format") else { return Ok(()) };
    if format.field("type")?.word(&["text", "json_object", "json_schema"])? != "json_schema" {
        return format.only_fields(&["type"]);
    }
    format.only_fields(&["type", "name", "description", "schema", "strict"])?;
    tools::name(&format.field("name")?)?;
    format.field("schema")?.object()?;
    if format.optional_field("strict").is_some_and(|strict| strict.value == true) {
        tools::strict_schema(&format.field("schema")?)?;
    }
    Ok(())
}

/// Here an answer is several items, one after the other.
fn conversation(body: &BodyValue<'_>) -> CheckResult {
    let input = body.field("input")?;
    if input.value.is_string() {
        return input.text().map(drop);
    }
    let is_stored = body.optional_field("store").is_none_or(|store| store.value == true);
    let mut order = ConversationOrder::default();
    let mut model_speaks = false;
    let mut thought: Option<BodyValue<'_>> = None;
    for item in input.items()? {
        let is_models = is_models(&item)?;
        if let Some(thought) = thought.take().filter(|_| !is_models) {
            return thought.fail("nothing of the model's follows this thought");
        }
        if is_models && !model_speaks {
            order.answer(&item)?;
        }
        model_speaks = is_models;
        match item.kind()? {
            "message" if is_models => model_message(&item)?,
            "message" => {
                // What stands before the conversation is in `instructions`.
                item.field("role")?.word(&["user"])?;
                order.user(&item)?;
                item.only_fields(&["type", "role", "content", "id", "status"])?;
                parts(&item.field("content")?)?;
            }
            "reasoning" => {
                reasoning(&item, is_stored)?;
                thought = Some(item);
            }
            "function_call" => call(&item, &mut order)?,
            "function_call_output" => {
                item.only_fields(&["type", "call_id", "output", "id", "status"])?;
                let id = item.field("call_id")?.id(MAX_RESPONSES_ID_BYTES)?;
                order.result(&item, CallIdentity { id: Some(id), name: None })?;
                parts(&item.field("output")?)?;
            }
            kind => return item.fail(format!("{kind:?} is no item")),
        }
    }
    order.end(&input)
}

fn is_models(item: &BodyValue<'_>) -> CheckResult<bool> {
    Ok(match item.kind()? {
        "reasoning" | "function_call" => true,
        "message" => item.field("role")?.string()? == "assistant",
        _ => false,
    })
}

/// What the model said: a text, or parts of it.
fn model_message(item: &BodyValue<'_>) -> CheckResult {
    item.only_fields(&["type", "role", "content", "id", "status", "phase"])?;
    own_id(item, "msg_")?;
    let content = item.field("content")?;
    if content.value.is_string() {
        return content.text().map(drop);
    }
    content.items()?.iter().try_for_each(|part| {
        match part.field("type")?.word(&["output_text", "refusal"])? {
            "output_text" => part.field("text")?.text().map(drop),
            _ => part.field("refusal")?.text().map(drop),
        }
    })
}

/// An id that the server gave to an item, which it knows by its beginning.
fn own_id(item: &BodyValue<'_>, begin: &str) -> CheckResult {
    let Some(at) = item.optional_field("id") else { return Ok(()) };
    let id = at.id(MAX_RESPONSES_ID_BYTES)?;
    at.require(id.starts_with(begin), format!("is {id:?}, and does not begin with {begin:?}"))
}

fn reasoning(item: &BodyValue<'_>, is_stored: bool) -> CheckResult {
    item.only_fields(&["type", "id", "summary", "content", "encrypted_content", "status"])?;
    own_id(item, "rs_")?;
    let summary = item.field("summary")?;
    summary.require(summary.value.is_array(), "is no list")?;
    for part in summary.list() {
        part.only_fields(&["type", "text"])?;
        part.field("type")?.word(&["summary_text"])?;
        part.field("text")?.string()?;
    }
    let sealed = item.optional_field("encrypted_content");
    sealed.as_ref().map_or(Ok(""), BodyValue::text)?;
    let has_content =
        sealed.is_some() || item.optional_field("content").is_some_and(|content| content.items().is_ok());
    item.require(is_stored || has_content, "has no content, and the server has not stored it")
}

fn call<'a>(item: &BodyValue<'a>, order: &mut ConversationOrder<'a>) -> CheckResult {
    item.only_fields(&["type", "call_id", "name", "arguments", "id", "status"])?;
    own_id(item, "fc_")?;
    tools::arguments(&item.field("arguments")?)?;
    let (id, name) = (item.field("call_id")?.id(MAX_RESPONSES_ID_BYTES)?, tools::name(&item.field("name")?)?);
    order.call(item, CallIdentity { id: Some(id), name: Some(name) })
}

/// What the user says or a tool gives: a text, or parts.
fn parts(content: &BodyValue<'_>) -> CheckResult {
    if content.value.is_string() {
        return content.text().map(drop);
    }
    content.items()?.iter().try_for_each(|part| {
        match part.field("type")?.word(&["input_text", "input_image", "input_file"])? {
            "input_text" => {
                part.only_fields(&["type", "text"])?;
                part.field("text")?.text().map(drop)
            }
            "input_image" => {
                part.only_fields(&["type", "detail", "image_url"])?;
                part.field("detail")?.word(&["low", "high", "auto", "original"])?;
                part.field("image_url")?.address(&IMAGE_MEDIA_TYPES)
            }
            _ => {
                part.only_fields(&["type", "filename", "file_data"])?;
                part.field("filename")?.text()?;
                part.field("file_data")?.address(&["application/pdf"])
            }
        }
    })
}
