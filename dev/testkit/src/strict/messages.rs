//! Anthropic Messages.

use std::collections::BTreeSet;

use super::Checked;
use super::at::{At, IMAGES};
use super::order::{Call, Order};
use super::tools::{self, Names};

const FIELDS: [&str; 20] = [
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

const MAX_MARKS: usize = 4;
/// Less thinking is not to be had.
const LEAST_BUDGET: u64 = 1_024;

pub(super) fn check(body: &At<'_>) -> Checked {
    body.only(&FIELDS)?;
    body.field("model")?.text()?;
    body.field("max_tokens")?.number(1)?;
    if let Some(system) = body.maybe("system") {
        texts(&system)?;
    }
    offers(body)?;
    conversation(body)?;
    thinking(body)?;
    output(body)?;
    marks(body)
}

fn offers(body: &At<'_>) -> Checked {
    let mut names = Names::default();
    for tool in body.maybe("tools").map_or(Ok(Vec::new()), |tools| tools.items())? {
        tool.only(&["type", "name", "description", "input_schema", "cache_control", "strict"])?;
        names.add(&tool.field("name")?)?;
        if let Some(description) = tool.maybe("description") {
            description.text()?;
        }
        let schema = tool.field("input_schema")?;
        tools::schema(&schema)?;
        for property in schema.field("properties")?.object()?.keys() {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
            let fits = (1..=64).contains(&property.len()) && property.bytes().all(is_plain);
            schema.must(fits, format!("has a property {property:?}, no name that is taken"))?;
        }
    }
    let Some(choice) = body.maybe("tool_choice") else { return Ok(()) };
    choice.only(&["type", "name", "disable_parallel_tool_use"])?;
    choice.must(body.has("tools"), "there are no tools to choose from")?;
    match choice.field("type")?.word(&["auto", "any", "tool", "none"])? {
        "tool" => names.must_have(&choice.field("name")?),
        _ => choice.must(!choice.has("name"), "names a tool that it does not choose"),
    }
}

fn conversation(body: &At<'_>) -> Checked {
    let mut order = Order::default();
    let mut ids = BTreeSet::new();
    for message in body.field("messages")?.items()? {
        message.only(&["role", "content"])?;
        let content = message.field("content")?;
        // Messages of the user that follow each other are one for the server.
        match message.field("role")?.word(&["user", "assistant"])? {
            "user" => user(&content, &mut order)?,
            _ => assistant(&content, &mut order, &mut ids)?,
        }
    }
    body.must(ids.is_empty() || body.has("tools"), "tools were called, and none are there")?;
    order.end(&body.field("messages")?)
}

fn user<'a>(content: &At<'a>, order: &mut Order<'a>) -> Checked {
    if content.value.is_string() {
        content.text()?;
        return order.user(content);
    }
    for block in content.items()? {
        if block.kind()? == "tool_result" {
            let id = block.field("tool_use_id")?.id(256)?;
            order.result(&block, Call { id: Some(id), name: None })?;
            result(&block)?;
        } else {
            order.user(&block)?;
            shown(&block)?;
        }
    }
    Ok(())
}

fn result(block: &At<'_>) -> Checked {
    block.only(&["type", "tool_use_id", "content", "is_error", "cache_control"])?;
    let is_error = block.maybe("is_error").map_or(Ok(false), |flag| flag.flag())?;
    let content = block.field("content")?;
    if content.value.is_string() {
        content.text()?;
    } else {
        let blocks = content.items()?;
        blocks.iter().try_for_each(shown)?;
        let is_text = blocks.iter().all(|block| block.is_kind(&["text"]));
        content.must(!is_error || is_text, "an error is told in text")?;
    }
    Ok(())
}

/// A block that the user may send, results aside.
fn shown(block: &At<'_>) -> Checked {
    match block.kind()? {
        "text" => text(block),
        "image" => {
            block.only(&["type", "source", "cache_control"])?;
            source(&block.field("source")?, &IMAGES)
        }
        "document" => {
            block.only(&["type", "source", "title", "context", "citations", "cache_control"])?;
            source(&block.field("source")?, &["application/pdf"])
        }
        kind => block.wrong(format!("the user can't send {kind:?}")),
    }
}

fn text(block: &At<'_>) -> Checked {
    block.only(&["type", "text", "cache_control", "citations"])?;
    block.field("text")?.text().map(drop)
}

fn source(source: &At<'_>, media_types: &[&str]) -> Checked {
    source.only(&["type", "media_type", "data"])?;
    source.field("type")?.word(&["base64"])?;
    source.field("media_type")?.word(media_types)?;
    source.field("data")?.base64()
}

/// A string, or blocks of text.
fn texts(content: &At<'_>) -> Checked {
    if content.value.is_string() {
        return content.text().map(drop);
    }
    content.items()?.iter().try_for_each(|block| {
        block.field("type")?.word(&["text"])?;
        text(block)
    })
}

fn assistant<'a>(content: &At<'a>, order: &mut Order<'a>, ids: &mut BTreeSet<&'a str>) -> Checked {
    order.answer(content)?;
    if content.value.is_string() {
        return content.text().map(drop);
    }
    let blocks = content.items()?;
    for block in &blocks {
        match block.kind()? {
            "text" => text(block)?,
            "thinking" => {
                block.only(&["type", "thinking", "signature"])?;
                block.field("thinking")?.string()?;
                block.field("signature")?.text()?;
            }
            "redacted_thinking" => {
                block.only(&["type", "data"])?;
                block.field("data")?.text()?;
            }
            "tool_use" => call(block, order, ids)?,
            kind => return block.wrong(format!("the model can't have sent {kind:?}")),
        }
    }
    let ends_thinking = blocks.last().is_some_and(is_thinking);
    content.must(!ends_thinking, "ends with thinking")
}

fn call<'a>(block: &At<'a>, order: &mut Order<'a>, ids: &mut BTreeSet<&'a str>) -> Checked {
    block.only(&["type", "id", "name", "input", "cache_control"])?;
    let at = block.field("id")?;
    let id = at.id(256)?;
    let is_plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    at.must(is_plain, format!("is {id:?}, no id that is taken"))?;
    at.must(ids.insert(id), "two calls have the same id")?;
    let name = tools::name(&block.field("name")?)?;
    block.field("input")?.object()?;
    order.call(block, Call { id: Some(id), name: Some(name) })
}

fn is_thinking(block: &At<'_>) -> bool {
    block.is_kind(&["thinking", "redacted_thinking"])
}

fn thinking(body: &At<'_>) -> Checked {
    let Some(thinking) = body.maybe("thinking") else { return Ok(()) };
    let kind = thinking.field("type")?.word(&["enabled", "adaptive", "disabled"])?;
    match kind {
        "enabled" => {
            thinking.only(&["type", "budget_tokens", "display"])?;
            let budget = thinking.field("budget_tokens")?;
            let most = body.field("max_tokens")?.number(1)?;
            budget.must(budget.number(LEAST_BUDGET)? < most, "leaves no tokens for the answer")?;
            last_thought(body)?;
        }
        "adaptive" => thinking.only(&["type", "display"])?,
        _ => return thinking.only(&["type"]),
    }
    let is_forced = body.maybe("tool_choice").is_some_and(|choice| choice.is_kind(&["any", "tool"]));
    thinking.must(!is_forced, "a model that thinks can't be forced to call")?;
    let is_warm = body.maybe("temperature").is_some_and(|warmth| warmth.value.as_f64() != Some(1.0));
    thinking.must(!is_warm, "a model that thinks has no temperature")
}

/// A model that is told how long to think wants to see the thought that its last calls came from.
fn last_thought(body: &At<'_>) -> Checked {
    let messages = body.field("messages")?.list();
    let Some(answer) = messages.iter().rev().find(|message| message.value["role"] == "assistant") else {
        return Ok(());
    };
    let blocks = answer.field("content")?.list();
    let calls = blocks.iter().any(|block| block.is_kind(&["tool_use"]));
    let thought = blocks.first().is_some_and(is_thinking);
    answer.must(!calls || thought, "the last calls come without the thought before them")
}

fn output(body: &At<'_>) -> Checked {
    let Some(output) = body.maybe("output_config") else { return Ok(()) };
    output.only(&["effort", "format"])?;
    if let Some(effort) = output.maybe("effort") {
        effort.word(&["low", "medium", "high", "xhigh", "max"])?;
    }
    if let Some(format) = output.maybe("format") {
        format.only(&["type", "schema"])?;
        format.field("type")?.word(&["json_schema"])?;
        format.field("schema")?.object()?;
    }
    Ok(())
}

/// Marks where the server shall keep what it has read.
fn marks(body: &At<'_>) -> Checked {
    let listed = |field: &str| body.maybe(field).map(|list| list.list()).unwrap_or_default();
    let contents = listed("messages").into_iter().filter_map(|message| message.maybe("content"));
    let blocks: Vec<At<'_>> = contents.flat_map(|content| content.list()).collect();
    let inner: Vec<At<'_>> =
        blocks.iter().filter_map(|block| block.maybe("content")).flat_map(|content| content.list()).collect();
    let places = listed("system").into_iter().chain(listed("tools")).chain(blocks).chain(inner);
    let marks: Vec<At<'_>> =
        places.chain([body.clone()]).filter_map(|at| at.maybe("cache_control")).collect();
    for mark in &marks {
        mark.only(&["type", "ttl"])?;
        mark.field("type")?.word(&["ephemeral"])?;
        if let Some(ttl) = mark.maybe("ttl") {
            ttl.word(&["5m", "1h"])?;
        }
    }
    body.must(marks.len() <= MAX_MARKS, format!("has {} cache marks, more than {MAX_MARKS}", marks.len()))
}
