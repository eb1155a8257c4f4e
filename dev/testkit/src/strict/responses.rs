//! OpenAI Responses.

use super::Checked;
use super::at::{At, IMAGES};
use super::order::{Call, Order};
use super::tools::{self, Names};

const FIELDS: [&str; 27] = [
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

const LONGEST_ID: usize = 64;
/// Fewer tokens are not to be had.
const LEAST_OUTPUT: u64 = 16;

pub(super) fn check(body: &At<'_>) -> Checked {
    body.only(&FIELDS)?;
    body.field("model")?.text()?;
    body.maybe("max_output_tokens").map_or(Ok(0), |most| most.number(LEAST_OUTPUT))?;
    body.maybe("instructions").map_or(Ok(""), |system| system.text())?;
    if let Some(reasoning) = body.maybe("reasoning") {
        reasoning.only(&["effort", "summary"])?;
        if let Some(effort) = reasoning.maybe("effort") {
            effort.word(&["none", "minimal", "low", "medium", "high", "xhigh"])?;
        }
        if let Some(summary) = reasoning.maybe("summary") {
            summary.word(&["auto", "concise", "detailed"])?;
        }
    }
    for wanted in body.maybe("include").map_or(Ok(Vec::new()), |include| include.items())? {
        wanted.word(&["reasoning.encrypted_content", "message.output_text.logprobs"])?;
    }
    offers(body)?;
    format(body)?;
    conversation(body)
}

fn offers(body: &At<'_>) -> Checked {
    let mut names = Names::default();
    for tool in body.maybe("tools").map_or(Ok(Vec::new()), |tools| tools.items())? {
        tool.only(&["type", "name", "description", "parameters", "strict"])?;
        tool.field("type")?.word(&["function"])?;
        names.add(&tool.field("name")?)?;
        tools::schema(&tool.field("parameters")?)?;
        if tool.field("strict")?.flag()? {
            tools::strict_schema(&tool.field("parameters")?)?;
        }
    }
    let Some(choice) = body.maybe("tool_choice") else { return Ok(()) };
    choice.must(body.has("tools"), "there are no tools to choose from")?;
    if choice.value.is_string() {
        return choice.word(&["auto", "none", "required"]).map(drop);
    }
    choice.only(&["type", "name"])?;
    choice.field("type")?.word(&["function"])?;
    names.must_have(&choice.field("name")?)
}

fn format(body: &At<'_>) -> Checked {
    let Some(text) = body.maybe("text") else { return Ok(()) };
    text.only(&["format", "verbosity"])?;
    let Some(format) = text.maybe("format") else { return Ok(()) };
    if format.field("type")?.word(&["text", "json_object", "json_schema"])? != "json_schema" {
        return format.only(&["type"]);
    }
    format.only(&["type", "name", "description", "schema", "strict"])?;
    tools::name(&format.field("name")?)?;
    format.field("schema")?.object()?;
    if format.maybe("strict").is_some_and(|strict| strict.value == true) {
        tools::strict_schema(&format.field("schema")?)?;
    }
    Ok(())
}

/// Here an answer is several items, one after the other.
fn conversation(body: &At<'_>) -> Checked {
    let input = body.field("input")?;
    if input.value.is_string() {
        return input.text().map(drop);
    }
    let is_stored = body.maybe("store").is_none_or(|store| store.value == true);
    let mut order = Order::default();
    let mut model_speaks = false;
    let mut thought: Option<At<'_>> = None;
    for item in input.items()? {
        let is_models = is_models(&item)?;
        if let Some(thought) = thought.take().filter(|_| !is_models) {
            return thought.wrong("nothing of the model's follows this thought");
        }
        if is_models && !model_speaks {
            order.answer(&item)?;
        }
        model_speaks = is_models;
        match item.kind()? {
            "message" if is_models => said(&item)?,
            "message" => {
                // What stands before the conversation is in `instructions`.
                item.field("role")?.word(&["user"])?;
                order.user(&item)?;
                item.only(&["type", "role", "content", "id", "status"])?;
                parts(&item.field("content")?)?;
            }
            "reasoning" => {
                reasoning(&item, is_stored)?;
                thought = Some(item);
            }
            "function_call" => call(&item, &mut order)?,
            "function_call_output" => {
                item.only(&["type", "call_id", "output", "id", "status"])?;
                let id = item.field("call_id")?.id(LONGEST_ID)?;
                order.result(&item, Call { id: Some(id), name: None })?;
                parts(&item.field("output")?)?;
            }
            kind => return item.wrong(format!("{kind:?} is no item")),
        }
    }
    order.end(&input)
}

fn is_models(item: &At<'_>) -> Checked<bool> {
    Ok(match item.kind()? {
        "reasoning" | "function_call" => true,
        "message" => item.field("role")?.string()? == "assistant",
        _ => false,
    })
}

/// What the model said: a text, or parts of it.
fn said(item: &At<'_>) -> Checked {
    item.only(&["type", "role", "content", "id", "status", "phase"])?;
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
fn own_id(item: &At<'_>, begin: &str) -> Checked {
    let Some(at) = item.maybe("id") else { return Ok(()) };
    let id = at.id(LONGEST_ID)?;
    at.must(id.starts_with(begin), format!("is {id:?}, and does not begin with {begin:?}"))
}

fn reasoning(item: &At<'_>, is_stored: bool) -> Checked {
    item.only(&["type", "id", "summary", "content", "encrypted_content", "status"])?;
    own_id(item, "rs_")?;
    let summary = item.field("summary")?;
    summary.must(summary.value.is_array(), "is no list")?;
    for part in summary.list() {
        part.only(&["type", "text"])?;
        part.field("type")?.word(&["summary_text"])?;
        part.field("text")?.string()?;
    }
    let sealed = item.maybe("encrypted_content");
    sealed.as_ref().map_or(Ok(""), At::text)?;
    let has_content =
        sealed.is_some() || item.maybe("content").is_some_and(|content| content.items().is_ok());
    item.must(is_stored || has_content, "has no content, and the server has not stored it")
}

fn call<'a>(item: &At<'a>, order: &mut Order<'a>) -> Checked {
    item.only(&["type", "call_id", "name", "arguments", "id", "status"])?;
    own_id(item, "fc_")?;
    tools::arguments(&item.field("arguments")?)?;
    let (id, name) = (item.field("call_id")?.id(LONGEST_ID)?, tools::name(&item.field("name")?)?);
    order.call(item, Call { id: Some(id), name: Some(name) })
}

/// What the user says or a tool gives: a text, or parts.
fn parts(content: &At<'_>) -> Checked {
    if content.value.is_string() {
        return content.text().map(drop);
    }
    content.items()?.iter().try_for_each(|part| {
        match part.field("type")?.word(&["input_text", "input_image", "input_file"])? {
            "input_text" => {
                part.only(&["type", "text"])?;
                part.field("text")?.text().map(drop)
            }
            "input_image" => {
                part.only(&["type", "detail", "image_url"])?;
                part.field("detail")?.word(&["low", "high", "auto", "original"])?;
                part.field("image_url")?.address(&IMAGES)
            }
            _ => {
                part.only(&["type", "filename", "file_data"])?;
                part.field("filename")?.text()?;
                part.field("file_data")?.address(&["application/pdf"])
            }
        }
    })
}
