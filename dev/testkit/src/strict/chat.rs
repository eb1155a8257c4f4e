//! OpenAI Chat Completions.

use super::CheckResult;
use super::body_value::{BodyValue, IMAGE_MEDIA_TYPES};
use super::conversation_order::{CallIdentity, ConversationOrder};
use super::tools::{self, ToolNames};

const CHAT_FIELDS: [&str; 32] = [
    "audio",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "modalities",
    "model",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
];

const MAX_CHAT_ID_BYTES: usize = 40;

pub(super) fn check(body: &BodyValue<'_>) -> CheckResult {
    body.only_fields(&CHAT_FIELDS)?;
    body.field("model")?.text()?;
    let both = body.has("max_tokens") && body.has("max_completion_tokens");
    body.require(!both, "says twice how long the answer may be")?;
    for field in ["max_tokens", "max_completion_tokens"] {
        body.optional_field(field).map_or(Ok(0), |most| most.number(1))?;
    }
    if let Some(effort) = body.optional_field("reasoning_effort") {
        effort.word(&["none", "minimal", "low", "medium", "high", "xhigh"])?;
    }
    if let Some(options) = body.optional_field("stream_options") {
        options.only_fields(&["include_usage", "include_obfuscation"])?;
        let streams = body.optional_field("stream").is_some_and(|stream| stream.value == true);
        options.require(streams, "is only for streams")?;
    }
    check_tools(body)?;
    format(body)?;
    conversation(body)
}

fn check_tools(body: &BodyValue<'_>) -> CheckResult {
    let mut names = ToolNames::default();
    for tool in body.optional_field("tools").map_or(Ok(Vec::new()), |tools| tools.items())? {
        tool.only_fields(&["type", "function"])?;
        tool.field("type")?.word(&["function"])?;
        let function = tool.field("function")?;
        function.only_fields(&["name", "description", "parameters", "strict"])?;
        names.add(&function.field("name")?)?;
        tools::schema(&function.field("parameters")?)?;
        if function.optional_field("strict").is_some_and(|strict| strict.value == true) {
            tools::strict_schema(&function.field("parameters")?)?;
        }
    }
    let Some(choice) = body.optional_field("tool_choice") else { return Ok(()) };
    choice.require(body.has("tools"), "there are no tools to choose from")?;
    if choice.value.is_string() {
        return choice.word(&["auto", "none", "required"]).map(drop);
    }
    choice.only_fields(&["type", "function"])?;
    choice.field("type")?.word(&["function"])?;
    names.must_have(&choice.field("function")?.field("name")?)
}

fn format(body: &BodyValue<'_>) -> CheckResult {
    let Some(format) = body.optional_field("response_format") else { return Ok(()) };
    if format.field("type")?.word(&["text", "json_object", "json_schema"])? != "json_schema" {
        return format.only_fields(&["type"]);
    }
    let wanted = format.field("json_schema")?;
    wanted.only_fields(&["name", "description", "schema", "strict"])?;
    tools::name(&wanted.field("name")?)?;
    wanted.field("schema")?.object()?;
    if wanted.optional_field("strict").is_some_and(|strict| strict.value == true) {
        tools::strict_schema(&wanted.field("schema")?)?;
    }
    Ok(())
}

fn conversation(body: &BodyValue<'_>) -> CheckResult {
    let mut order = ConversationOrder::default();
    let mut is_begin = true;
    for message in body.field("messages")?.items()? {
        let role = message.field("role")?.word(&["system", "developer", "user", "assistant", "tool"])?;
        match role {
            "user" => {
                message.only_fields(&["role", "content", "name"])?;
                order.user(&message)?;
                parts(&message.field("content")?, &["text", "image_url", "file", "input_audio"])?;
            }
            "assistant" => assistant(&message, &mut order)?,
            "tool" => {
                message.only_fields(&["role", "content", "tool_call_id"])?;
                let id = message.field("tool_call_id")?.id(MAX_CHAT_ID_BYTES)?;
                order.result(&message, CallIdentity { id: Some(id), name: None })?;
                parts(&message.field("content")?, &["text"])?;
            }
            // OpenAI takes it anywhere; the templates of many models only at the beginning.
            _ => {
                message.only_fields(&["role", "content", "name"])?;
                message.require(is_begin, "stands after the beginning")?;
                parts(&message.field("content")?, &["text"])?;
            }
        }
        is_begin &= matches!(role, "system" | "developer");
    }
    order.end(&body.field("messages")?)
}

/// A text, or parts of some kinds.
fn parts(content: &BodyValue<'_>, kinds: &[&str]) -> CheckResult {
    if content.value.is_string() {
        return content.text().map(drop);
    }
    content.items()?.iter().try_for_each(|part| match part.field("type")?.word(kinds)? {
        "text" => {
            part.only_fields(&["type", "text"])?;
            part.field("text")?.text().map(drop)
        }
        "image_url" => {
            part.only_fields(&["type", "image_url"])?;
            let image = part.field("image_url")?;
            image.only_fields(&["url", "detail"])?;
            image.field("url")?.address(&IMAGE_MEDIA_TYPES)
        }
        "file" => {
            part.only_fields(&["type", "file"])?;
            let file = part.field("file")?;
            file.only_fields(&["filename", "file_data"])?;
            file.field("filename")?.text()?;
            file.field("file_data")?.address(&["application/pdf"])
        }
        _ => part.field("input_audio")?.object().map(drop),
    })
}

fn assistant<'a>(message: &BodyValue<'a>, order: &mut ConversationOrder<'a>) -> CheckResult {
    message.only_fields(&["role", "content", "name", "refusal", "audio", "tool_calls"])?;
    order.answer(message)?;
    let calls = message.optional_field("tool_calls");
    match message.optional_field("content") {
        Some(content) if !content.value.is_null() => parts(&content, &["text"])?,
        _ => message.require(calls.is_some(), "says nothing and calls nothing")?,
    }
    for call in calls.map_or(Ok(Vec::new()), |calls| calls.items())? {
        call.only_fields(&["id", "type", "function"])?;
        call.field("type")?.word(&["function"])?;
        let function = call.field("function")?;
        function.only_fields(&["name", "arguments"])?;
        tools::arguments(&function.field("arguments")?)?;
        let (id, name) = (call.field("id")?.id(MAX_CHAT_ID_BYTES)?, tools::name(&function.field("name")?)?);
        order.call(&call, CallIdentity { id: Some(id), name: Some(name) })?;
    }
    Ok(())
}
