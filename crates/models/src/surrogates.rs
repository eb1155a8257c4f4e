//! Halves of characters. JSON escapes a character beyond the first 65,536, such as most emoji, as two surrogates. Servers that
//! cut an answer between the two send half of one in each of two events, and JSON with half a character is none that can be read.
//!
//! So a half is read as a character of a private plane that nobody uses, one for each half, and the text that was read is
//! looked through: halves that meet are joined, others become the replacement character.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::ModelEvent;

/// The halves, in their own order: first the leading ones, then the trailing ones.
const FIRST_SURROGATE: u32 = 0xD800;
const FIRST_LOW_SURROGATE: u32 = 0xDC00;
const LAST_SURROGATE: u32 = 0xDFFF;
/// What stands for the first half. The end of the last private plane has room for all of them.
const STAND_IN_BASE: u32 = 0x10_F800;

/// JSON in which every half of a character that has no other half next to it is replaced by what stands for it. Nothing if there
/// is none.
pub(crate) fn with_stand_ins(json: &str) -> Option<String> {
    let mut mended = String::with_capacity(json.len());
    let mut rest = json;
    let mut has_halves = false;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        mended.push_str(before);
        let length = match unit(escape) {
            Some(leading @ FIRST_SURROGATE..FIRST_LOW_SURROGATE) => {
                let next = escape.get(6..).and_then(unit);
                if next.is_some_and(|next| (FIRST_LOW_SURROGATE..=LAST_SURROGATE).contains(&next)) {
                    mended.push_str(escape.get(..12)?);
                    12
                } else {
                    has_halves = true;
                    mended.push(stand_in(leading)?);
                    6
                }
            }
            Some(trailing @ FIRST_LOW_SURROGATE..=LAST_SURROGATE) => {
                has_halves = true;
                mended.push(stand_in(trailing)?);
                6
            }
            _ => {
                // Whatever is escaped, it is no backslash that begins the next escape.
                let length = 1 + escape.chars().nth(1).map_or(0, char::len_utf8);
                mended.push_str(escape.get(..length)?);
                length
            }
        };
        rest = escape.get(length..)?;
    }
    mended.push_str(rest);
    has_halves.then_some(mended)
}

/// The number in an escape of four hexadecimal digits, such as `\ud83d`, that a text begins with.
fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
}

fn stand_in(half: u32) -> Option<char> {
    char::from_u32(STAND_IN_BASE + half - FIRST_SURROGATE)
}

/// The half that a character stands for.
fn half(stand_in: char) -> Option<u32> {
    let half = u32::from(stand_in).checked_sub(STAND_IN_BASE)? + FIRST_SURROGATE;
    (FIRST_SURROGATE..=LAST_SURROGATE).contains(&half).then_some(half)
}

fn joined(leading: u32, trailing: u32) -> Option<char> {
    char::from_u32(0x1_0000 + ((leading - FIRST_SURROGATE) << 10) + (trailing - FIRST_LOW_SURROGATE))
}

/// Text in which halves that meet are joined, and a leading one at its end, which may meet the other half in the next text.
fn join(text: &str, before: Option<u32>) -> (String, Option<u32>) {
    let mut whole = String::with_capacity(text.len());
    let mut leading = before;
    for character in text.chars() {
        let now = half(character);
        match (leading.take(), now) {
            (Some(leading), Some(trailing @ FIRST_LOW_SURROGATE..)) => {
                whole.push(joined(leading, trailing).unwrap_or(char::REPLACEMENT_CHARACTER));
                continue;
            }
            (Some(_), _) => whole.push(char::REPLACEMENT_CHARACTER),
            (None, _) => {}
        }
        match now {
            Some(FIRST_LOW_SURROGATE..) => whole.push(char::REPLACEMENT_CHARACTER),
            Some(half) => leading = Some(half),
            None => whole.push(character),
        }
    }
    (whole, leading)
}

fn has_stand_ins(text: &str) -> bool {
    text.contains(|character| half(character).is_some())
}

/// Joins or replaces the halves in all texts of a value that does not come in pieces.
fn replace_in(value: &mut Value) {
    match value {
        Value::String(text) if has_stand_ins(text) => {
            let (whole, rest) = join(text, None);
            *text = whole;
            text.extend(rest.map(|_| char::REPLACEMENT_CHARACTER));
        }
        Value::Array(items) => items.iter_mut().for_each(replace_in),
        Value::Object(fields) => fields.values_mut().for_each(replace_in),
        _ => {}
    }
}

/// Joins the halves of characters that came in different pieces of one block.
#[derive(Debug, Default)]
pub(crate) struct SurrogateJoiner {
    /// The half that the text of a block ended with, and an event of its kind without text.
    waiting: BTreeMap<u32, (u32, ModelEvent)>,
}

impl SurrogateJoiner {
    pub(crate) fn join(&mut self, mut said: Vec<ModelEvent>) -> Vec<ModelEvent> {
        for event in &mut said {
            if let ModelEvent::Sealed { sealed, .. } = event {
                replace_in(sealed);
            }
            let Some((block, text)) = event.text_mut() else { continue };
            let before = self.waiting.remove(&block).map(|(half, _)| half);
            if before.is_none() && !has_stand_ins(text) {
                continue;
            }
            let (whole, rest) = join(&std::mem::take(text), before);
            if let Some(rest) = rest {
                self.waiting.insert(block, (rest, event.clone()));
            }
            if let Some((_, text)) = event.text_mut() {
                *text = whole;
            }
        }
        said.retain_mut(|event| event.text_mut().is_none_or(|(_, text)| !text.is_empty()));
        said
    }

    /// What still waits for its other half when the answer has ended.
    pub(crate) fn finish(&mut self) -> Vec<ModelEvent> {
        let waiting = std::mem::take(&mut self.waiting);
        let replaced = |(_, mut event): (u32, ModelEvent)| {
            if let Some((_, text)) = event.text_mut() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
            event
        };
        waiting.into_values().map(replaced).collect()
    }
}
