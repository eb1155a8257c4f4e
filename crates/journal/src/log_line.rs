//! The form of a log: lines of JSON, each sealed with a hash that covers the line and, through the hash of the line
//! before, all lines before it.
//!
//! A line is `{…,"hash":"<64 hexadecimal digits>"}` and a newline. Its hash is BLAKE3 over the hash of the line before
//! (32 bytes) and the line's bytes up to `,"hash"`. So a line can be checked without knowing what it means, and no line
//! can be changed, left out or put in without breaking the chain.
//!
//! The first line is the header. Its form and its seal are the same in all versions of the format.

use helve_protocol::{Seq, SessionEvent, SessionId};
use serde::{Deserialize, Serialize};

/// The version of the format that is written, and the newest that is read. It grows by new kinds of events and optional fields
/// only (`docs/reference/journal.md`); anything else needs another number, and this one is read all the same.
pub(crate) const LOG_VERSION: u64 = 1;

const HASH_FIELD_START: &[u8] = b",\"hash\":\"";
const HASH_FIELD_END: &[u8] = b"\"}";
const SEAL_BYTES: usize = HASH_FIELD_START.len() + 2 * blake3::OUT_LEN + HASH_FIELD_END.len();

/// The hash of a log up to some line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChainHash(pub(crate) [u8; blake3::OUT_LEN]);

impl ChainHash {
    /// Before the first line.
    pub(crate) const NONE: ChainHash = ChainHash([0; blake3::OUT_LEN]);

    fn after(self, body: &[u8]) -> ChainHash {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0).update(body);
        ChainHash(*hasher.finalize().as_bytes())
    }

    fn hex(self) -> impl AsRef<str> {
        blake3::Hash::from_bytes(self.0).to_hex()
    }
}

impl Serialize for ChainHash {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.hex().as_ref())
    }
}

impl<'de> Deserialize<'de> for ChainHash {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<ChainHash, D::Error> {
        let text = String::deserialize(deserializer)?;
        let hash = blake3::Hash::from_hex(text).map_err(serde::de::Error::custom)?;
        Ok(ChainHash(*hash.as_bytes()))
    }
}

/// The first line of a log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LogHeader {
    /// Always `session`: what kind of file this is.
    pub(crate) helve: String,
    pub(crate) version: u64,
    pub(crate) session: SessionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) forked_from: Option<ForkPoint>,
}

impl LogHeader {
    pub(crate) fn new(session: SessionId, forked_from: Option<ForkPoint>) -> LogHeader {
        LogHeader { helve: "session".to_owned(), version: LOG_VERSION, session, forked_from }
    }
}

/// The event of another session after which this one goes on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ForkPoint {
    pub(crate) session: SessionId,
    pub(crate) seq: Seq,
    /// The parent's hash up to that event, so that it can't be exchanged for another.
    pub(crate) tip: ChainHash,
}

/// Appends a sealed line to `out` and gives the new tip. `said` must be serialised as a JSON object with fields.
pub(crate) fn seal<T: Serialize>(
    said: &T,
    tip: ChainHash,
    out: &mut Vec<u8>,
) -> serde_json::Result<ChainHash> {
    let start = out.len();
    serde_json::to_writer(&mut *out, said)?;
    // The closing brace makes room for the seal.
    out.pop();
    let tip = tip.after(out.get(start..).unwrap_or_default());
    out.extend_from_slice(HASH_FIELD_START);
    out.extend_from_slice(tip.hex().as_ref().as_bytes());
    out.extend_from_slice(HASH_FIELD_END);
    out.push(b'\n');
    Ok(tip)
}

/// Whether a line (without its newline) has the form of a sealed one, and if so the hash it claims and the hash that
/// it has after `tip`.
pub(crate) fn unseal(line: &[u8], tip: ChainHash) -> Option<(ChainHash, ChainHash)> {
    let (body, seal) = line.split_at_checked(line.len().checked_sub(SEAL_BYTES)?)?;
    let hex = seal.strip_prefix(HASH_FIELD_START)?.strip_suffix(HASH_FIELD_END)?;
    // Only the form that we write counts: a capital letter is a changed byte.
    if !hex.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let claimed = blake3::Hash::from_hex(hex).ok()?;
    Some((ChainHash(*claimed.as_bytes()), tip.after(body)))
}

/// The position of the event in a line, without reading the rest of it.
pub(crate) fn seq_of(line: &[u8]) -> Option<Seq> {
    let digits = line.strip_prefix(b"{\"seq\":")?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(digits.get(..end)?).ok()?.parse().ok().map(Seq)
}

/// How deep a line of JSON is nested.
pub(crate) fn nesting_depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0usize, 0);
    let (mut in_text, mut escaped) = (false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

pub(crate) fn read_event(line: &[u8]) -> Option<SessionEvent> {
    serde_json::from_slice(line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use helve_testkit::{SampleSession, sample_id};
    use proptest::prelude::*;

    #[test]
    fn a_sealed_line_opens_and_any_changed_byte_is_noticed() {
        let mut session = SampleSession::new(sample_id(1));
        let mut line = Vec::new();
        let tip = seal(&session.user_message("hello"), ChainHash::NONE, &mut line).unwrap();
        let line = line.strip_suffix(b"\n").unwrap();
        assert_eq!(unseal(line, ChainHash::NONE), Some((tip, tip)));
        assert_eq!(seq_of(line), Some(Seq(1)));
        for at in 0..line.len() {
            for bit in 0..8 {
                let mut changed = line.to_vec();
                changed[at] ^= 1 << bit;
                let accepted =
                    unseal(&changed, ChainHash::NONE).is_some_and(|(claimed, real)| claimed == real);
                assert!(!accepted, "bit {bit} of byte {at}");
            }
        }
    }

    #[test]
    fn depth_counts_brackets_outside_of_texts() {
        for (json, expected) in
            [("", 0), ("{}", 1), (r#"{"a":[1,[2]],"b":{}}"#, 3), (r#"{"a":"[[\"[[","b":1}"#, 1), ("]]][", 1)]
        {
            assert_eq!(nesting_depth(json.as_bytes()), expected, "{json}");
        }
    }

    #[test]
    fn a_seal_depends_on_the_line_before() {
        let event = SampleSession::new(sample_id(1)).user_message("hello");
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let tip = seal(&event, ChainHash::NONE, &mut first).unwrap();
        assert_ne!(seal(&event, tip, &mut second).unwrap(), tip);
    }

    proptest! {
        #[test]
        fn any_bytes_open_or_not(bytes: Vec<u8>) {
            let _ = unseal(&bytes, ChainHash::NONE);
            let _ = seq_of(&bytes);
        }
    }
}
