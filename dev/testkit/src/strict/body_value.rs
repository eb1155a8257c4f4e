//! A value in a body, with the way to it.

use std::fmt::Display;

use serde_json::{Map, Value};

use super::CheckResult;

#[derive(Clone, Debug)]
pub(super) struct BodyValue<'a> {
    path: String,
    pub(super) value: &'a Value,
}

impl<'a> BodyValue<'a> {
    pub(super) fn top(value: &'a Value) -> BodyValue<'a> {
        BodyValue { path: String::new(), value }
    }

    fn below(&self, name: impl Display, value: &'a Value) -> BodyValue<'a> {
        let path = if self.path.is_empty() { name.to_string() } else { format!("{}.{name}", self.path) };
        BodyValue { path, value }
    }

    /// Says that something is wrong here.
    pub(super) fn fail<T>(&self, what: impl Display) -> CheckResult<T> {
        let path = if self.path.is_empty() { "the body" } else { &self.path };
        Err(format!("{path}: {what}"))
    }

    pub(super) fn require(&self, holds: bool, what: impl Display) -> CheckResult {
        if holds { Ok(()) } else { self.fail(what) }
    }

    pub(super) fn optional_field(&self, field: &str) -> Option<BodyValue<'a>> {
        self.value.get(field).map(|value| self.below(field, value))
    }

    pub(super) fn field(&self, field: &str) -> CheckResult<BodyValue<'a>> {
        self.optional_field(field).map_or_else(|| self.fail(format!("has no {field:?}")), Ok)
    }

    pub(super) fn has(&self, field: &str) -> bool {
        self.value.get(field).is_some()
    }

    pub(super) fn object(&self) -> CheckResult<&'a Map<String, Value>> {
        self.value.as_object().map_or_else(|| self.fail("is no object"), Ok)
    }

    /// An object with none but these fields.
    pub(super) fn only_fields(&self, fields: &[&str]) -> CheckResult {
        match self.object()?.keys().find(|key| !fields.contains(&key.as_str())) {
            Some(unknown) => self.fail(format!("has an unknown field {unknown:?}")),
            None => Ok(()),
        }
    }

    /// The elements of a list that has some.
    pub(super) fn items(&self) -> CheckResult<Vec<BodyValue<'a>>> {
        match self.list() {
            items if items.is_empty() => self.fail("is no list with something in it"),
            items => Ok(items),
        }
    }

    /// The elements, if it is a list.
    pub(super) fn list(&self) -> Vec<BodyValue<'a>> {
        let items = self.value.as_array().map_or(&[][..], Vec::as_slice);
        items.iter().enumerate().map(|(number, value)| self.below(number, value)).collect()
    }

    pub(super) fn string(&self) -> CheckResult<&'a str> {
        self.value.as_str().map_or_else(|| self.fail("is no string"), Ok)
    }

    /// A text in which there is something to read.
    pub(super) fn text(&self) -> CheckResult<&'a str> {
        let text = self.string()?;
        self.require(!text.trim().is_empty(), "is empty")?;
        Ok(text)
    }

    pub(super) fn word(&self, words: &[&str]) -> CheckResult<&'a str> {
        let word = self.string()?;
        self.require(words.contains(&word), format!("is {word:?}, none of {words:?}"))?;
        Ok(word)
    }

    pub(super) fn number(&self, least: u64) -> CheckResult<u64> {
        let number = self.value.as_u64().filter(|number| *number >= least);
        number.map_or_else(|| self.fail(format!("is no whole number from {least} on")), Ok)
    }

    pub(super) fn flag(&self) -> CheckResult<bool> {
        self.value.as_bool().map_or_else(|| self.fail("is neither true nor false"), Ok)
    }

    /// What a block or an item says that it is.
    pub(super) fn kind(&self) -> CheckResult<&'a str> {
        self.field("type")?.string()
    }

    pub(super) fn is_kind(&self, kinds: &[&str]) -> bool {
        self.kind().is_ok_and(|kind| kinds.contains(&kind))
    }

    /// An id of at most so many bytes, of characters that every server takes.
    pub(super) fn id(&self, most: usize) -> CheckResult<&'a str> {
        let id = self.string()?;
        let is_plain = id.bytes().all(|byte| byte.is_ascii_graphic());
        self.require(
            is_plain && (1..=most).contains(&id.len()),
            format!("is {id:?}, no id of 1 to {most} characters"),
        )?;
        Ok(id)
    }

    /// Bytes as base64.
    pub(super) fn base64(&self) -> CheckResult {
        let text = self.text()?;
        let body = text.trim_end_matches('=');
        let is_plain = body.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(&byte));
        let is_whole = text.len().is_multiple_of(4) && text.len() - body.len() <= 2;
        self.require(is_plain && is_whole, "is no base64")
    }

    /// Bytes as a `data:` URL of one of these media types; or any other address.
    pub(super) fn address(&self, media_types: &[&str]) -> CheckResult {
        let address = self.text()?;
        let Some(data) = address.strip_prefix("data:") else {
            return self.require(address.starts_with("https://"), "is no address");
        };
        let Some((media_type, bytes)) = data.split_once(";base64,") else {
            return self.fail("is data, but not as base64");
        };
        self.require(media_types.contains(&media_type), format!("is of the type {media_type:?}"))?;
        let bytes = Value::from(bytes);
        BodyValue { path: self.path.clone(), value: &bytes }.base64()
    }
}

/// The images that every wire takes.
pub(super) const IMAGE_MEDIA_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
