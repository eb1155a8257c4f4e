//! Gemini's `generateContent`.

use super::CheckResult;
use super::body_value::{BodyValue, IMAGE_MEDIA_TYPES};
use super::conversation_order::{CallIdentity, ConversationOrder};
use super::tools::{self, ToolNames};

const GEMINI_FIELDS: [&str; 8] = [
    "cachedContent",
    "contents",
    "generationConfig",
    "labels",
    "safetySettings",
    "systemInstruction",
    "toolConfig",
    "tools",
];

/// What a part may hold, one of them at a time.
const PART_DATA_FIELDS: [&str; 4] = ["text", "inlineData", "functionCall", "functionResponse"];

const GENERATION_CONFIG_FIELDS: [&str; 13] = [
    "candidateCount",
    "frequencyPenalty",
    "maxOutputTokens",
    "presencePenalty",
    "responseJsonSchema",
    "responseMimeType",
    "responseModalities",
    "seed",
    "stopSequences",
    "temperature",
    "thinkingConfig",
    "topK",
    "topP",
];

pub(super) fn check(body: &BodyValue<'_>) -> CheckResult {
    body.only_fields(&GEMINI_FIELDS)?;
    if let Some(system) = body.optional_field("systemInstruction") {
        system.only_fields(&["role", "parts"])?;
        for part in system.field("parts")?.items()? {
            part.only_fields(&["text"])?;
            part.field("text")?.text()?;
        }
    }
    generation(body)?;
    check_tools(body)?;
    conversation(body)?;
    signatures(body)
}

fn generation(body: &BodyValue<'_>) -> CheckResult {
    let Some(config) = body.optional_field("generationConfig") else { return Ok(()) };
    config.only_fields(&GENERATION_CONFIG_FIELDS)?;
    config.optional_field("maxOutputTokens").map_or(Ok(0), |most| most.number(1))?;
    if let Some(schema) = config.optional_field("responseJsonSchema") {
        schema.object()?;
        config.field("responseMimeType")?.word(&["application/json"])?;
    }
    let Some(thinking) = config.optional_field("thinkingConfig") else { return Ok(()) };
    thinking.only_fields(&["includeThoughts", "thinkingBudget", "thinkingLevel"])?;
    let both = thinking.has("thinkingBudget") && thinking.has("thinkingLevel");
    thinking.require(!both, "says twice how much to think")?;
    if let Some(level) = thinking.optional_field("thinkingLevel") {
        level.word(&["MINIMAL", "LOW", "MEDIUM", "HIGH"])?;
    }
    if let Some(budget) = thinking.optional_field("thinkingBudget") {
        budget.require(budget.value.as_i64().is_some_and(|budget| budget >= -1), "is no number of tokens")?;
    }
    Ok(())
}

fn check_tools(body: &BodyValue<'_>) -> CheckResult {
    let mut names = ToolNames::default();
    for tool in body.optional_field("tools").map_or(Ok(Vec::new()), |tools| tools.items())? {
        tool.only_fields(&["functionDeclarations"])?;
        for function in tool.field("functionDeclarations")?.items()? {
            function.only_fields(&["name", "description", "parametersJsonSchema"])?;
            function.field("description")?.text()?;
            let at = function.field("name")?;
            names.add(&at)?;
            let begins = at.string()?.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            at.require(begins, "begins neither with a letter nor with an underscore")?;
            tools::schema(&function.field("parametersJsonSchema")?)?;
        }
    }
    let Some(config) = body.optional_field("toolConfig") else { return Ok(()) };
    config.only_fields(&["functionCallingConfig"])?;
    config.require(body.has("tools"), "there are no tools to choose from")?;
    let calling = config.field("functionCallingConfig")?;
    calling.only_fields(&["mode", "allowedFunctionNames"])?;
    let mode = calling.field("mode")?.word(&["AUTO", "ANY", "NONE", "VALIDATED"])?;
    let Some(allowed) = calling.optional_field("allowedFunctionNames") else { return Ok(()) };
    allowed.require(matches!(mode, "ANY" | "VALIDATED"), format!("is not for the mode {mode:?}"))?;
    allowed.items()?.iter().try_for_each(|name| names.must_have(name))
}

fn conversation(body: &BodyValue<'_>) -> CheckResult {
    let contents = body.field("contents")?;
    let mut order = ConversationOrder::default();
    for content in contents.items()? {
        content.only_fields(&["role", "parts"])?;
        let is_models = content.field("role")?.word(&["user", "model"])? == "model";
        let parts = content.field("parts")?.items()?;
        if is_models {
            order.answer(&content)?;
            parts.iter().try_for_each(|part| models_part(part, &mut order))?;
        } else {
            parts.iter().try_for_each(|part| users_part(part, &mut order))?;
        }
    }
    order.end(&contents)
}

/// The one thing that a part holds.
fn part_data<'a>(part: &BodyValue<'a>, beside: &[&str]) -> CheckResult<(&'static str, BodyValue<'a>)> {
    part.only_fields(&[&PART_DATA_FIELDS[..], beside].concat())?;
    let mut found = PART_DATA_FIELDS.into_iter().filter_map(|name| Some((name, part.optional_field(name)?)));
    match (found.next(), found.next()) {
        (Some(data), None) => Ok(data),
        (None, _) => part.fail("is empty"),
        (Some(_), Some(_)) => part.fail("holds two things"),
    }
}

fn models_part<'a>(part: &BodyValue<'a>, order: &mut ConversationOrder<'a>) -> CheckResult {
    let signature = part.optional_field("thoughtSignature");
    signature.as_ref().map_or(Ok(""), BodyValue::text)?;
    part.optional_field("thought").map_or(Ok(true), |thought| thought.flag())?;
    match part_data(part, &["thought", "thoughtSignature"])? {
        // An empty text may be the place of a signature.
        ("text", text) if signature.is_some() => text.string().map(drop),
        ("text", text) => text.text().map(drop),
        ("functionCall", call) => {
            call.only_fields(&["id", "name", "args"])?;
            part.require(!part.has("thought"), "a call is no thought")?;
            call.field("args")?.object()?;
            let name = tools::name(&call.field("name")?)?;
            let id = call.optional_field("id").map(|id| id.id(256)).transpose()?;
            order.call(&call, CallIdentity { id, name: Some(name) })
        }
        (kind, _) => part.fail(format!("the model can't have sent {kind:?}")),
    }
}

fn users_part<'a>(part: &BodyValue<'a>, order: &mut ConversationOrder<'a>) -> CheckResult {
    match part_data(part, &[])? {
        ("functionResponse", result) => {
            result.only_fields(&["id", "name", "response"])?;
            let response = result.field("response")?;
            response.require(!response.object()?.is_empty(), "is empty")?;
            let name = tools::name(&result.field("name")?)?;
            let id = result.optional_field("id").map(|id| id.id(256)).transpose()?;
            order.result(&result, CallIdentity { id, name: Some(name) })
        }
        ("text", text) => {
            order.user(part)?;
            text.text().map(drop)
        }
        ("inlineData", file) => {
            order.user(part)?;
            file.only_fields(&["mimeType", "data"])?;
            file.field("mimeType")?.word(&[&IMAGE_MEDIA_TYPES[..], &["application/pdf"]].concat())?;
            file.field("data")?.base64()
        }
        (kind, _) => part.fail(format!("the user can't send {kind:?}")),
    }
}

/// Models that are told a level to think at want to see what they signed: the first call of each answer since the user
/// spoke last.
fn signatures(body: &BodyValue<'_>) -> CheckResult {
    let thinking = body.value.pointer("/generationConfig/thinkingConfig/thinkingLevel");
    if thinking.is_none() {
        return Ok(());
    }
    let contents = body.field("contents")?.list();
    let speaks = |content: &BodyValue<'_>| {
        let parts = content.optional_field("parts").map(|parts| parts.list()).unwrap_or_default();
        content.value["role"] == "user" && !parts.iter().any(|part| part.has("functionResponse"))
    };
    let since = contents.iter().rev().take_while(|content| !speaks(content));
    for answer in since.filter(|content| content.value["role"] == "model") {
        let parts = answer.field("parts")?.list();
        if let Some(first) = parts.iter().find(|part| part.has("functionCall")) {
            first.require(first.has("thoughtSignature"), "the first call has no signature")?;
        }
    }
    Ok(())
}
