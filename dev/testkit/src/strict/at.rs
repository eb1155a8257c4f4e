//! A value in a body, with the way to it.

use std::fmt::Display;

use serde_json::{Map, Value};

use super::Checked;

#[derive(Clone, Debug)]
pub(super) struct At<'a> {
    path: String,
    pub(super) value: &'a Value,
}

impl<'a> At<'a> {
    pub(super) fn top(value: &'a Value) -> At<'a> {
        At { path: String::new(), value }
    }

    fn below(&self, name: impl Display, value: &'a Value) -> At<'a> {
        let path = if self.path.is_empty() { name.to_string() } else { format!("{}.{name}", self.path) };
        At { path, value }
    }

    /// Says that something is wrong here.
    pub(super) fn wrong<T>(&self, what: impl Display) -> Checked<T> {
        let path = if self.path.is_empty() { "the body" } else { &self.path };
        Err(format!("{path}: {what}"))
    }

    pub(super) fn must(&self, holds: bool, what: impl Display) -> Checked {
        if holds { Ok(()) } else { self.wrong(what) }
    }

    pub(super) fn maybe(&self, field: &str) -> Option<At<'a>> {
        self.value.get(field).map(|value| self.below(field, value))
    }

    pub(super) fn field(&self, field: &str) -> Checked<At<'a>> {
        self.maybe(field).map_or_else(|| self.wrong(format!("has no {field:?}")), Ok)
    }

    pub(super) fn has(&self, field: &str) -> bool {
        self.value.get(field).is_some()
    }

    pub(super) fn object(&self) -> Checked<&'a Map<String, Value>> {
        self.value.as_object().map_or_else(|| self.wrong("is no object"), Ok)
    }

    /// An object with none but these fields.
    pub(super) fn only(&self, fields: &[&str]) -> Checked {
        match self.object()?.keys().find(|key| !fields.contains(&key.as_str())) {
            Some(unknown) => self.wrong(format!("has an unknown field {unknown:?}")),
            None => Ok(()),
        }
    }

    /// The elements of a list that has some.
    pub(super) fn items(&self) -> Checked<Vec<At<'a>>> {
        match self.list() {
            items if items.is_empty() => self.wrong("is no list with something in it"),
            items => Ok(items),
        }
    }

    /// The elements, if it is a list.
    pub(super) fn list(&self) -> Vec<At<'a>> {
        let items = self.value.as_array().map_or(&[][..], Vec::as_slice);
        items.iter().enumerate().map(|(number, value)| self.below(number, value)).collect()
    }

    pub(super) fn string(&self) -> Checked<&'a str> {
        self.value.as_str().map_or_else(|| self.wrong("is no string"), Ok)
    }

    /// A text in which there is something to read.
    pub(super) fn text(&self) -> Checked<&'a str> {
        let text = self.string()?;
        self.must(!text.trim().is_empty(), "is empty")?;
        Ok(text)
    }

    pub(super) fn word(&self, words: &[&str]) -> Checked<&'a str> {
        let word = self.string()?;
        self.must(words.contains(&word), format!("is {word:?}, none of {words:?}"))?;
        Ok(word)
    }

    pub(super) fn number(&self, least: u64) -> Checked<u64> {
        let number = self.value.as_u64().filter(|number| *number >= least);
        number.map_or_else(|| self.wrong(format!("is no whole number from {least} on")), Ok)
    }

    pub(super) fn flag(&self) -> Checked<bool> {
        self.value.as_bool().map_or_else(|| self.wrong("is neither true nor false"), Ok)
    }

    /// What a block or an item says that it is.
    pub(super) fn kind(&self) -> Checked<&'a str> {
        self.field("type")?.string()
    }

    pub(super) fn is_kind(&self, kinds: &[&str]) -> bool {
        self.kind().is_ok_and(|kind| kinds.contains(&kind))
    }

    /// An id of at most so many bytes, of characters that every server takes.
    pub(super) fn id(&self, most: usize) -> Checked<&'a str> {
        let id = self.string()?;
        let is_plain = id.bytes().all(|byte| byte.is_ascii_graphic());
        self.must(
            is_plain && (1..=most).contains(&id.len()),
            format!("is {id:?}, no id of 1 to {most} characters"),
        )?;
        Ok(id)
    }

    /// Bytes as base64.
    pub(super) fn base64(&self) -> Checked {
        let text = self.text()?;
        let body = text.trim_end_matches('=');
        let is_plain = body.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(&byte));
        let is_whole = text.len().is_multiple_of(4) && text.len() - body.len() <= 2;
        self.must(is_plain && is_whole, "is no base64")
    }

    /// Bytes as a `data:` URL of one of these media types; or any other address.
    pub(super) fn address(&self, media_types: &[&str]) -> Checked {
        let address = self.text()?;
        let Some(data) = address.strip_prefix("data:") else {
            return self.must(address.starts_with("https://"), "is no address");
        };
        let Some((media_type, bytes)) = data.split_once(";base64,") else {
            return self.wrong("is data, but not as base64");
        };
        self.must(media_types.contains(&media_type), format!("is of the type {media_type:?}"))?;
        let bytes = Value::from(bytes);
        At { path: self.path.clone(), value: &bytes }.base64()
    }
}

/// The images that every wire takes.
pub(super) const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
