//! What a request may say of tools.

use std::collections::BTreeSet;

use super::CheckResult;
use super::body_value::BodyValue;

/// A tool's name: what all four wires take.
pub(super) fn name<'a>(at: &BodyValue<'a>) -> CheckResult<&'a str> {
    let name = at.string()?;
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    at.require(is_plain && (1..=64).contains(&name.len()), format!("is {name:?}, no name that is taken"))?;
    Ok(name)
}

/// The names of all tools, each of which is there once.
#[derive(Debug, Default)]
pub(super) struct ToolNames<'a>(BTreeSet<&'a str>);

impl<'a> ToolNames<'a> {
    pub(super) fn add(&mut self, at: &BodyValue<'a>) -> CheckResult {
        let is_new = self.0.insert(name(at)?);
        at.require(is_new, "two tools have the same name")
    }

    /// A choice of a tool must be of one that there is.
    pub(super) fn must_have(&self, at: &BodyValue<'_>) -> CheckResult {
        at.require(self.0.contains(at.string()?), "there is no such tool")
    }
}

/// A tool's schema: an object at the top, with nothing there that could make it another thing.
pub(super) fn schema(at: &BodyValue<'_>) -> CheckResult {
    at.field("type")?.word(&["object"])?;
    at.field("properties")?.object()?;
    for choice in ["oneOf", "anyOf", "allOf", "not", "enum"] {
        at.require(!at.has(choice), format!("has {choice:?} at the top"))?;
    }
    for required in at.optional_field("required").iter().flat_map(BodyValue::list) {
        let property = required.string()?;
        at.require(
            at.field("properties")?.has(property),
            format!("requires {property:?}, which it has not"),
        )?;
    }
    Ok(())
}

/// A schema that the server shall hold the model to: nothing optional, nothing more.
pub(super) fn strict_schema(at: &BodyValue<'_>) -> CheckResult {
    let closed = at.optional_field("additionalProperties").is_some_and(|more| more.value == false);
    at.require(closed, "is strict, but allows more properties")?;
    let required: Vec<_> =
        at.optional_field("required").iter().flat_map(BodyValue::list).map(|name| name.value).collect();
    let properties = at.field("properties")?.object()?;
    let optional = properties.keys().find(|name| !required.iter().any(|required| *required == name.as_str()));
    at.require(optional.is_none(), format!("is strict, but {optional:?} is optional"))
}

/// What a model called a tool with: JSON in a string.
pub(super) fn arguments(at: &BodyValue<'_>) -> CheckResult {
    let parsed = serde_json::from_str::<serde_json::Map<_, _>>(at.string()?);
    at.require(parsed.is_ok(), "is no JSON object")
}
