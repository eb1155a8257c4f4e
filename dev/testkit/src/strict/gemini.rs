//! Gemini's `generateContent`.

use super::Checked;
use super::at::{At, IMAGES};
use super::order::{Call, Order};
use super::tools::{self, Names};

const FIELDS: [&str; 8] = [
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
const DATA: [&str; 4] = ["text", "inlineData", "functionCall", "functionResponse"];

const GENERATION: [&str; 13] = [
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

pub(super) fn check(body: &At<'_>) -> Checked {
    body.only(&FIELDS)?;
    if let Some(system) = body.maybe("systemInstruction") {
        system.only(&["role", "parts"])?;
        for part in system.field("parts")?.items()? {
            part.only(&["text"])?;
            part.field("text")?.text()?;
        }
    }
    generation(body)?;
    offers(body)?;
    conversation(body)?;
    signatures(body)
}

fn generation(body: &At<'_>) -> Checked {
    let Some(config) = body.maybe("generationConfig") else { return Ok(()) };
    config.only(&GENERATION)?;
    config.maybe("maxOutputTokens").map_or(Ok(0), |most| most.number(1))?;
    if let Some(schema) = config.maybe("responseJsonSchema") {
        schema.object()?;
        config.field("responseMimeType")?.word(&["application/json"])?;
    }
    let Some(thinking) = config.maybe("thinkingConfig") else { return Ok(()) };
    thinking.only(&["includeThoughts", "thinkingBudget", "thinkingLevel"])?;
    let both = thinking.has("thinkingBudget") && thinking.has("thinkingLevel");
    thinking.must(!both, "says twice how much to think")?;
    if let Some(level) = thinking.maybe("thinkingLevel") {
        level.word(&["MINIMAL", "LOW", "MEDIUM", "HIGH"])?;
    }
    if let Some(budget) = thinking.maybe("thinkingBudget") {
        budget.must(budget.value.as_i64().is_some_and(|budget| budget >= -1), "is no number of tokens")?;
    }
    Ok(())
}

fn offers(body: &At<'_>) -> Checked {
    let mut names = Names::default();
    for tool in body.maybe("tools").map_or(Ok(Vec::new()), |tools| tools.items())? {
        tool.only(&["functionDeclarations"])?;
        for function in tool.field("functionDeclarations")?.items()? {
            function.only(&["name", "description", "parametersJsonSchema"])?;
            function.field("description")?.text()?;
            let at = function.field("name")?;
            names.add(&at)?;
            let begins = at.string()?.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            at.must(begins, "begins neither with a letter nor with an underscore")?;
            tools::schema(&function.field("parametersJsonSchema")?)?;
        }
    }
    let Some(config) = body.maybe("toolConfig") else { return Ok(()) };
    config.only(&["functionCallingConfig"])?;
    config.must(body.has("tools"), "there are no tools to choose from")?;
    let calling = config.field("functionCallingConfig")?;
    calling.only(&["mode", "allowedFunctionNames"])?;
    let mode = calling.field("mode")?.word(&["AUTO", "ANY", "NONE", "VALIDATED"])?;
    let Some(allowed) = calling.maybe("allowedFunctionNames") else { return Ok(()) };
    allowed.must(matches!(mode, "ANY" | "VALIDATED"), format!("is not for the mode {mode:?}"))?;
    allowed.items()?.iter().try_for_each(|name| names.must_have(name))
}

fn conversation(body: &At<'_>) -> Checked {
    let contents = body.field("contents")?;
    let mut order = Order::default();
    for content in contents.items()? {
        content.only(&["role", "parts"])?;
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
fn data<'a>(part: &At<'a>, beside: &[&str]) -> Checked<(&'static str, At<'a>)> {
    part.only(&[&DATA[..], beside].concat())?;
    let mut found = DATA.into_iter().filter_map(|name| Some((name, part.maybe(name)?)));
    match (found.next(), found.next()) {
        (Some(data), None) => Ok(data),
        (None, _) => part.wrong("is empty"),
        (Some(_), Some(_)) => part.wrong("holds two things"),
    }
}

fn models_part<'a>(part: &At<'a>, order: &mut Order<'a>) -> Checked {
    let signature = part.maybe("thoughtSignature");
    signature.as_ref().map_or(Ok(""), At::text)?;
    part.maybe("thought").map_or(Ok(true), |thought| thought.flag())?;
    match data(part, &["thought", "thoughtSignature"])? {
        // An empty text may be the place of a signature.
        ("text", text) if signature.is_some() => text.string().map(drop),
        ("text", text) => text.text().map(drop),
        ("functionCall", call) => {
            call.only(&["id", "name", "args"])?;
            part.must(!part.has("thought"), "a call is no thought")?;
            call.field("args")?.object()?;
            let name = tools::name(&call.field("name")?)?;
            let id = call.maybe("id").map(|id| id.id(256)).transpose()?;
            order.call(&call, Call { id, name: Some(name) })
        }
        (kind, _) => part.wrong(format!("the model can't have sent {kind:?}")),
    }
}

fn users_part<'a>(part: &At<'a>, order: &mut Order<'a>) -> Checked {
    match data(part, &[])? {
        ("functionResponse", result) => {
            result.only(&["id", "name", "response"])?;
            let response = result.field("response")?;
            response.must(!response.object()?.is_empty(), "is empty")?;
            let name = tools::name(&result.field("name")?)?;
            let id = result.maybe("id").map(|id| id.id(256)).transpose()?;
            order.result(&result, Call { id, name: Some(name) })
        }
        ("text", text) => {
            order.user(part)?;
            text.text().map(drop)
        }
        ("inlineData", file) => {
            order.user(part)?;
            file.only(&["mimeType", "data"])?;
            file.field("mimeType")?.word(&[&IMAGES[..], &["application/pdf"]].concat())?;
            file.field("data")?.base64()
        }
        (kind, _) => part.wrong(format!("the user can't send {kind:?}")),
    }
}

/// Models that are told a level to think at want to see what they signed: the first call of each answer since the user
/// spoke last.
fn signatures(body: &At<'_>) -> Checked {
    let thinking = body.value.pointer("/generationConfig/thinkingConfig/thinkingLevel");
    if thinking.is_none() {
        return Ok(());
    }
    let contents = body.field("contents")?.list();
    let speaks = |content: &At<'_>| {
        let parts = content.maybe("parts").map(|parts| parts.list()).unwrap_or_default();
        content.value["role"] == "user" && !parts.iter().any(|part| part.has("functionResponse"))
    };
    let since = contents.iter().rev().take_while(|content| !speaks(content));
    for answer in since.filter(|content| content.value["role"] == "model") {
        let parts = answer.field("parts")?.list();
        if let Some(first) = parts.iter().find(|part| part.has("functionCall")) {
            first.must(first.has("thoughtSignature"), "the first call has no signature")?;
        }
    }
    Ok(())
}
