//! Whether a request begins with the bytes of the one before, and where it does not.

use std::fmt;
use std::ops::Range;

use helve_protocol::Cost;
use serde_json::Value;

/// A request that begins otherwise than the one before it: the provider's cache is of no use from there on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefixBreak {
    /// The first field that differs, such as `/messages/3/content/0/text`.
    pub path: String,
    /// About how many tokens of the request before have to be read again.
    pub tokens: u64,
    /// What that costs more than reading them from the cache would, where the prices are known.
    pub price: Option<Cost>,
}

impl fmt::Display for PrefixBreak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PrefixBreak { path, tokens, price } = self;
        write!(f, "the request changed at {path}, so about {tokens} tokens are read afresh")?;
        price.map_or(Ok(()), |price| write!(f, ", which costs about {price} more"))
    }
}

/// About how many bytes of JSON make a token.
const BYTES_PER_TOKEN: usize = 4;

/// Whether `new` begins with `old`, the last `tail` bytes of `old` aside and whatever cache marks stand in either.
pub(crate) fn begins_with(old: (&[u8], &[Range<usize>]), new: (&[u8], &[Range<usize>]), tail: usize) -> bool {
    let mut old = unmarked(old.0.get(..old.0.len().saturating_sub(tail)).unwrap_or_default(), old.1);
    let mut new = unmarked(new.0, new.1);
    let (mut wanted, mut found): (&[u8], &[u8]) = (&[], &[]);
    loop {
        if wanted.is_empty() {
            match old.next() {
                Some(piece) => wanted = piece,
                None => return true,
            }
        }
        if found.is_empty() {
            match new.next() {
                Some(piece) => found = piece,
                None => return wanted.is_empty(),
            }
        }
        let common = wanted.len().min(found.len());
        let (w, rest_wanted) = wanted.split_at(common);
        let (f, rest_found) = found.split_at(common);
        if w != f {
            return false;
        }
        (wanted, found) = (rest_wanted, rest_found);
    }
}

/// The pieces of a body between its marks.
fn unmarked<'a>(body: &'a [u8], marks: &'a [Range<usize>]) -> impl Iterator<Item = &'a [u8]> {
    let starts = std::iter::once(0).chain(marks.iter().map(|mark| mark.end));
    let ends = marks.iter().map(|mark| mark.start).chain([body.len()]);
    starts.zip(ends).filter_map(|(start, end)| body.get(start.min(body.len())..end.min(body.len())))
}

/// Where two requests part. Only done when they do, so it may take its time.
pub(crate) fn explain(old: &[u8], new: &[u8]) -> PrefixBreak {
    let parse = |body: &[u8]| serde_json::from_slice::<Value>(body).unwrap_or_default();
    let (mut old_value, mut new_value) = (parse(old), parse(new));
    let [old_value, new_value] = [&mut old_value, &mut new_value].map(|value| {
        forget_marks(value);
        &*value
    });
    let path = difference(old_value, new_value).path;
    let same = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let tokens = old.len().saturating_sub(same) / BYTES_PER_TOKEN;
    PrefixBreak { path, tokens: u64::try_from(tokens).unwrap_or(u64::MAX), price: None }
}

fn forget_marks(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.shift_remove("cache_control");
            fields.values_mut().for_each(forget_marks);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_marks),
        _ => {}
    }
}

/// Where two requests part, and what stands there in each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestDifference {
    /// The first field that differs, such as `/messages/3/content/0/text`; empty if only the form does.
    pub path: String,
    /// What stands there in the first one; none if nothing does.
    pub old: Option<String>,
    /// What stands there in the second one; none if nothing does.
    pub new: Option<String>,
}

/// Compares two bodies, cache marks included; none if they are the same to the byte.
pub fn first_difference(old: &[u8], new: &[u8]) -> Option<RequestDifference> {
    if old == new {
        return None;
    }
    let parse = |body: &[u8]| serde_json::from_slice::<Value>(body).unwrap_or_default();
    Some(difference(&parse(old), &parse(new)))
}

fn difference(old: &Value, new: &Value) -> RequestDifference {
    let mut path = String::new();
    descend(old, new, &mut path);
    let text = |body: &Value| {
        body.pointer(&path).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    };
    let (old, new) = (text(old), text(new));
    RequestDifference { path, old, new }
}

/// Goes down to the first difference. The order of fields counts, for bytes are compared.
fn descend(old: &Value, new: &Value, path: &mut String) {
    let (key, old, new) = match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let first = old.iter().zip(new).find(|(old, new)| old != new);
            match first {
                Some(((old_key, old), (new_key, new))) if old_key == new_key => (new_key.clone(), old, new),
                Some((_, (new_key, _))) => return path.push_str(&format!("/{new_key}")),
                None => {
                    let longer = if old.len() > new.len() { old } else { new };
                    let extra = longer.keys().nth(old.len().min(new.len()));
                    return extra.into_iter().for_each(|key| path.push_str(&format!("/{key}")));
                }
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            match old.iter().zip(new).enumerate().find(|(_, (old, new))| old != new) {
                Some((place, (old, new))) => (place.to_string(), old, new),
                None => return path.push_str(&format!("/{}", old.len().min(new.len()))),
            }
        }
        _ => return,
    };
    path.push_str(&format!("/{key}"));
    descend(old, new, path);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_break_is_told_by_its_path() {
        let body = |system: &str, messages: Value| {
            json!({"model": "m", "system": system, "messages": messages}).to_string()
        };
        let old = body("s", json!([{"role": "user", "content": "one"}, {"role": "user", "content": "two"}]));
        for (new, path) in [
            (body("t", json!([])), "/system"),
            (body("s", json!([{"role": "user", "content": "one"}])), "/messages/1"),
            (
                body("s", json!([{"role": "user", "content": "one"}, {"role": "user", "content": "other"}])),
                "/messages/1/content",
            ),
            (json!({"model": "m", "messages": []}).to_string(), "/messages"),
        ] {
            assert_eq!(explain(old.as_bytes(), new.as_bytes()).path, path);
        }
    }

    proptest! {
        #[test]
        fn marks_do_not_matter(text in "[a-c]{1,40}", more in "[a-c]{0,20}", at in prop::collection::vec(0usize..40, 0..3)) {
            let (mut marked, mut marks) = (Vec::new(), Vec::new());
            for (place, byte) in text.bytes().enumerate() {
                if at.contains(&place) {
                    marks.push(marked.len()..marked.len() + 2);
                    marked.extend_from_slice(b"##");
                }
                marked.push(byte);
            }
            let new = format!("{text}{more}");
            prop_assert!(begins_with((&marked, &marks), (new.as_bytes(), &[]), 0));
            prop_assert!(begins_with((new.as_bytes(), &[]), (&marked, &marks), more.len()));
            let other = new.replacen(['a', 'b', 'c'], "x", 1);
            prop_assert!(!begins_with((&marked, &marks), (other.as_bytes(), &[]), 0));
        }
    }
}
