//! OpenAI Chat Completions.

use super::Checked;
use super::at::{At, IMAGES};
use super::order::{Call, Order};
use super::tools::{self, Names};

const FIELDS: [&str; 32] = [
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

const LONGEST_ID: usize = 40;

pub(super) fn check(body: &At<'_>) -> Checked {
    body.only(&FIELDS)?;
    body.field("model")?.text()?;
    let both = body.has("max_tokens") && body.has("max_completion_tokens");
    body.must(!both, "says twice how long the answer may be")?;
    for field in ["max_tokens", "max_completion_tokens"] {
        body.maybe(field).map_or(Ok(0), |most| most.number(1))?;
    }
    if let Some(effort) = body.maybe("reasoning_effort") {
        effort.word(&["none", "minimal", "low", "medium", "high", "xhigh"])?;
    }
    if let Some(options) = body.maybe("stream_options") {
        options.only(&["include_usage", "include_obfuscation"])?;
        let streams = body.maybe("stream").is_some_and(|stream| stream.value == true);
        options.must(streams, "is only for streams")?;
    }
    offers(body)?;
    format(body)?;
    conversation(body)
}

fn offers(body: &At<'_>) -> Checked {
    let mut names = Names::default();
    for tool in body.maybe("tools").map_or(Ok(Vec::new()), |tools| tools.items())? {
        tool.only(&["type", "function"])?;
        tool.field("type")?.word(&["function"])?;
        let function = tool.field("function")?;
        function.only(&["name", "description", "parameters", "strict"])?;
        names.add(&function.field("name")?)?;
        tools::schema(&function.field("parameters")?)?;
        if function.maybe("strict").is_some_and(|strict| strict.value == true) {
            tools::strict_schema(&function.field("parameters")?)?;
        }
    }
    let Some(choice) = body.maybe("tool_choice") else { return Ok(()) };
    choice.must(body.has("tools"), "there are no tools to choose from")?;
    if choice.value.is_string() {
        return choice.word(&["auto", "none", "required"]).map(drop);
    }
    choice.only(&["type", "function"])?;
    choice.field("type")?.word(&["function"])?;
    names.must_have(&choice.field("function")?.field("name")?)
}

fn format(body: &At<'_>) -> Checked {
    let Some(format) = body.maybe("response_format") else { return Ok(()) };
    if format.field("type")?.word(&["text", "json_object", "json_schema"])? != "json_schema" {
        return format.only(&["type"]);
    }
    let wanted = format.field("json_schema")?;
    wanted.only(&["name", "description", "schema", "strict"])?;
    tools::name(&wanted.field("name")?)?;
    wanted.field("schema")?.object()?;
    if wanted.maybe("strict").is_some_and(|strict| strict.value == true) {
        tools::strict_schema(&wanted.field("schema")?)?;
    }
    Ok(())
}

fn conversation(body: &At<'_>) -> Checked {
    let mut order = Order::default();
    let mut is_begin = true;
    for message in body.field("messages")?.items()? {
        let role = message.field("role")?.word(&["system", "developer", "user", "assistant", "tool"])?;
        match role {
            "user" => {
                message.only(&["role", "content", "name"])?;
                order.user(&message)?;
                parts(&message.field("content")?, &["text", "image_url", "file", "input_audio"])?;
            }
            "assistant" => assistant(&message, &mut order)?,
            "tool" => {
                message.only(&["role", "content", "tool_call_id"])?;
                let id = message.field("tool_call_id")?.id(LONGEST_ID)?;
                order.result(&message, Call { id: Some(id), name: None })?;
                parts(&message.field("content")?, &["text"])?;
            }
            // OpenAI takes it anywhere; the templates of many models only at the beginning.
            _ => {
                message.only(&["role", "content", "name"])?;
                message.must(is_begin, "stands after the beginning")?;
                parts(&message.field("content")?, &["text"])?;
            }
        }
        is_begin &= matches!(role, "system" | "developer");
    }
    order.end(&body.field("messages")?)
}

/// A text, or parts of some kinds.
fn parts(content: &At<'_>, kinds: &[&str]) -> Checked {
    if content.value.is_string() {
        return content.text().map(drop);
    }
    content.items()?.iter().try_for_each(|part| match part.field("type")?.word(kinds)? {
        "text" => {
            part.only(&["type", "text"])?;
            part.field("text")?.text().map(drop)
        }
        "image_url" => {
            part.only(&["type", "image_url"])?;
            let image = part.field("image_url")?;
            image.only(&["url", "detail"])?;
            image.field("url")?.address(&IMAGES)
        }
        "file" => {
            part.only(&["type", "file"])?;
            let file = part.field("file")?;
            file.only(&["filename", "file_data"])?;
            file.field("filename")?.text()?;
            file.field("file_data")?.address(&["application/pdf"])
        }
        _ => part.field("input_audio")?.object().map(drop),
    })
}

fn assistant<'a>(message: &At<'a>, order: &mut Order<'a>) -> Checked {
    message.only(&["role", "content", "name", "refusal", "audio", "tool_calls"])?;
    order.answer(message)?;
    let calls = message.maybe("tool_calls");
    match message.maybe("content") {
        Some(content) if !content.value.is_null() => parts(&content, &["text"])?,
        _ => message.must(calls.is_some(), "says nothing and calls nothing")?,
    }
    for call in calls.map_or(Ok(Vec::new()), |calls| calls.items())? {
        call.only(&["id", "type", "function"])?;
        call.field("type")?.word(&["function"])?;
        let function = call.field("function")?;
        function.only(&["name", "arguments"])?;
        tools::arguments(&function.field("arguments")?)?;
        let (id, name) = (call.field("id")?.id(LONGEST_ID)?, tools::name(&function.field("name")?)?);
        order.call(&call, Call { id: Some(id), name: Some(name) })?;
    }
    Ok(())
}
