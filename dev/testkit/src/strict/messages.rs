//! Anthropic Messages.

use std::collections::BTreeSet;

use super::CheckResult;
use super::body_value::{BodyValue, IMAGE_MEDIA_TYPES};
use super::conversation_order::{CallIdentity, ConversationOrder};
use super::tools::{self, ToolNames};

const MESSAGES_FIELDS: [&str; 20] = [
    "cache_control",
    "container",
    "context_management",
    "inference_geo",
    "max_tokens",
    "mcp_servers",
    "messages",
    "metadata",
    "model",
    "output_config",
    "service_tier",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
];

const MAX_CACHE_MARKS: usize = 4;
/// Less thinking is not to be had.
const MIN_THINKING_BUDGET_TOKENS: u64 = 1_024;

pub(super) fn check(body: &BodyValue<'_>) -> CheckResult {
    body.only_fields(&MESSAGES_FIELDS)?;
    body.field("model")?.text()?;
    body.field("max_tokens")?.number(1)?;
    if let Some(system) = body.optional_field("system") {
        texts(&system)?;
    }
    check_tools(body)?;
    conversation(body)?;
    thinking(body)?;
    output(body)?;
    marks(body)
}

fn check_tools(body: &BodyValue<'_>) -> CheckResult {
    let mut names = ToolNames::default();
    for tool in body.optional_field("tools").map_or(Ok(Vec::new()), |tools| tools.items())? {
        tool.only_fields(&["type", "name", "description", "input_schema", "cache_control", "strict"])?;
        names.add(&tool.field("name")?)?;
        if let Some(description) = tool.optional_field("description") {
            description.text()?;
        }
        let schema = tool.field("input_schema")?;
        tools::schema(&schema)?;
        for property in schema.field("properties")?.object()?.keys() {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
            let fits = (1..=64).contains(&property.len()) && property.bytes().all(is_plain);
            schema.require(fits, format!("has a property {property:?}, no name that is taken"))?;
        }
    }
    let Some(choice) = body.optional_field("tool_choice") else { return Ok(()) };
    choice.only_fields(&["type", "name", "disable_parallel_tool_use"])?;
    choice.require(body.has("tools"), "there are no tools to choose from")?;
    match choice.field("type")?.word(&["auto", "any", "tool", "none"])? {
        "tool" => names.must_have(&choice.field("name")?),
        _ => choice.require(!choice.has("name"), "names a tool that it does not choose"),
    }
}

fn conversation(body: &BodyValue<'_>) -> CheckResult {
    let mut order = ConversationOrder::default();
    let mut ids = BTreeSet::new();
    for message in body.field("messages")?.items()? {
        message.only_fields(&["role", "content"])?;
        let content = message.field("content")?;
        // Messages of the user that follow each other are one for the server.
        match message.field("role")?.word(&["user", "assistant"])? {
            "user" => user(&content, &mut order)?,
            _ => assistant(&content, &mut order, &mut ids)?,
        }
    }
    body.require(ids.is_empty() || body.has("tools"), "tools were called, and none are there")?;
    order.end(&body.field("messages")?)
}

fn user<'a>(content: &BodyValue<'a>, order: &mut ConversationOrder<'a>) -> CheckResult {
    if content.value.is_string() {
        content.text()?;
        return order.user(content);
    }
    for block in content.items()? {
        if block.kind()? == "tool_result" {
            let id = block.field("tool_use_id")?.id(256)?;
            order.result(&block, CallIdentity { id: Some(id), name: None })?;
            result(&block)?;
        } else {
            order.user(&block)?;
            user_block(&block)?;
        }
    }
    Ok(())
}

fn result(block: &BodyValue<'_>) -> CheckResult {
    block.only_fields(&["type", "tool_use_id", "content", "is_error", "cache_control"])?;
    let is_error = block.optional_field("is_error").map_or(Ok(false), |flag| flag.flag())?;
    let content = block.field("content")?;
    if content.value.is_string() {
        content.text()?;
    } else {
        let blocks = content.items()?;
        blocks.iter().try_for_each(user_block)?;
        let is_text = blocks.iter().all(|block| block.is_kind(&["text"]));
        content.require(!is_error || is_text, "an error is told in text")?;
    }
    Ok(())
}

/// A block that the user may send, results aside.
fn user_block(block: &BodyValue<'_>) -> CheckResult {
    match block.kind()? {
        "text" => text(block),
        "image" => {
            block.only_fields(&["type", "source", "cache_control"])?;
            source(&block.field("source")?, &IMAGE_MEDIA_TYPES)
        }
        "document" => {
            block.only_fields(&["type", "source", "title", "context", "citations", "cache_control"])?;
            source(&block.field("source")?, &["application/pdf"])
        }
        kind => block.fail(format!("the user can't send {kind:?}")),
    }
}

fn text(block: &BodyValue<'_>) -> CheckResult {
    block.only_fields(&["type", "text", "cache_control", "citations"])?;
    block.field("text")?.text().map(drop)
}

fn source(source: &BodyValue<'_>, media_types: &[&str]) -> CheckResult {
    source.only_fields(&["type", "media_type", "data"])?;
    source.field("type")?.word(&["base64"])?;
    source.field("media_type")?.word(media_types)?;
    source.field("data")?.base64()
}

/// A string, or blocks of text.
fn texts(content: &BodyValue<'_>) -> CheckResult {
    if content.value.is_string() {
        return content.text().map(drop);
    }
    content.items()?.iter().try_for_each(|block| {
        block.field("type")?.word(&["text"])?;
        text(block)
    })
}

fn assistant<'a>(
    content: &BodyValue<'a>,
    order: &mut ConversationOrder<'a>,
    ids: &mut BTreeSet<&'a str>,
) -> CheckResult {
    order.answer(content)?;
    if content.value.is_string() {
        return content.text().map(drop);
    }
    let blocks = content.items()?;
    for block in &blocks {
        match block.kind()? {
            "text" => text(block)?,
            "thinking" => {
                block.only_fields(&["type", "thinking", "signature"])?;
                block.field("thinking")?.string()?;
                block.field("signature")?.text()?;
            }
            "redacted_thinking" => {
                block.only_fields(&["type", "data"])?;
                block.field("data")?.text()?;
            }
            "tool_use" => call(block, order, ids)?,
            kind => return block.fail(format!("the model can't have sent {kind:?}")),
        }
    }
    let ends_thinking = blocks.last().is_some_and(is_thinking);
    content.require(!ends_thinking, "ends with thinking")
}

fn call<'a>(
    block: &BodyValue<'a>,
    order: &mut ConversationOrder<'a>,
    ids: &mut BTreeSet<&'a str>,
) -> CheckResult {
    block.only_fields(&["type", "id", "name", "input", "cache_control"])?;
    let at = block.field("id")?;
    let id = at.id(256)?;
    let is_plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    at.require(is_plain, format!("is {id:?}, no id that is taken"))?;
    at.require(ids.insert(id), "two calls have the same id")?;
    let name = tools::name(&block.field("name")?)?;
    block.field("input")?.object()?;
    order.call(block, CallIdentity { id: Some(id), name: Some(name) })
}

fn is_thinking(block: &BodyValue<'_>) -> bool {
    block.is_kind(&["thinking", "redacted_thinking"])
}

fn thinking(body: &BodyValue<'_>) -> CheckResult {
    let Some(thinking) = body.optional_field("thinking") else { return Ok(()) };
    let kind = thinking.field("type")?.word(&["enabled", "adaptive", "disabled"])?;
    match kind {
        "enabled" => {
            thinking.only_fields(&["type", "budget_tokens", "display"])?;
            let budget = thinking.field("budget_tokens")?;
            let most = body.field("max_tokens")?.number(1)?;
            budget.require(
                budget.number(MIN_THINKING_BUDGET_TOKENS)? < most,
                "leaves no tokens for the answer",
            )?;
            last_thought(body)?;
        }
        "adaptive" => thinking.only_fields(&["type", "display"])?,
        _ => return thinking.only_fields(&["type"]),
    }
    let is_forced = body.optional_field("tool_choice").is_some_and(|choice| choice.is_kind(&["any", "tool"]));
    thinking.require(!is_forced, "a model that thinks can't be forced to call")?;
    let is_warm = body.optional_field("temperature").is_some_and(|warmth| warmth.value.as_f64() != Some(1.0));
    thinking.require(!is_warm, "a model that thinks has no temperature")
}

/// A model that is told how long to think wants to see the thought that its last calls came from.
fn last_thought(body: &BodyValue<'_>) -> CheckResult {
    let messages = body.field("messages")?.list();
    let Some(answer) = messages.iter().rev().find(|message| message.value["role"] == "assistant") else {
        return Ok(());
    };
    let blocks = answer.field("content")?.list();
    let calls = blocks.iter().any(|block| block.is_kind(&["tool_use"]));
    let thought = blocks.first().is_some_and(is_thinking);
    answer.require(!calls || thought, "the last calls come without the thought before them")
}

fn output(body: &BodyValue<'_>) -> CheckResult {
    let Some(output) = body.optional_field("output_config") else { return Ok(()) };
    output.only_fields(&["effort", "format"])?;
    if let Some(effort) = output.optional_field("effort") {
        effort.word(&["low", "medium", "high", "xhigh", "max"])?;
    }
    if let Some(format) = output.optional_field("format") {
        format.only_fields(&["type", "schema"])?;
        format.field("type")?.word(&["json_schema"])?;
        format.field("schema")?.object()?;
    }
    Ok(())
}

/// Marks where the server shall keep what it has read.
fn marks(body: &BodyValue<'_>) -> CheckResult {
    let listed = |field: &str| body.optional_field(field).map(|list| list.list()).unwrap_or_default();
    let contents = listed("messages").into_iter().filter_map(|message| message.optional_field("content"));
    let blocks: Vec<BodyValue<'_>> = contents.flat_map(|content| content.list()).collect();
    let inner: Vec<BodyValue<'_>> = blocks
        .iter()
        .filter_map(|block| block.optional_field("content"))
        .flat_map(|content| content.list())
        .collect();
    let places = listed("system").into_iter().chain(listed("tools")).chain(blocks).chain(inner);
    let marks: Vec<BodyValue<'_>> =
        places.chain([body.clone()]).filter_map(|at| at.optional_field("cache_control")).collect();
    for mark in &marks {
        mark.only_fields(&["type", "ttl"])?;
        mark.field("type")?.word(&["ephemeral"])?;
        if let Some(ttl) = mark.optional_field("ttl") {
            ttl.word(&["5m", "1h"])?;
        }
    }
    body.require(
        marks.len() <= MAX_CACHE_MARKS,
        format!("has {} cache marks, more than {MAX_CACHE_MARKS}", marks.len()),
    )
}
