//! Names for things. Each kind of id is a type of its own, so that none can be taken for another.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// A text that is not an id of the kind that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {expected}")]
pub struct IdError {
    text: String,
    expected: &'static str,
}

/// An id that is drawn.
pub trait GeneratedId: From<Uuid> {
    const KIND: IdKind;
}

/// Ids drawn by the session: UUIDs of version 7, so that they sort by age.
macro_rules! uuid_ids {
    ($($(#[doc = $doc:literal])* $name:ident, $kind:ident, $expected:literal;)*) => {
    /// What an id is for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum IdKind {
        $($kind,)*
    }
    $(
        impl GeneratedId for $name {
            const KIND: IdKind = IdKind::$kind;
        }

        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> $name {
                $name(uuid)
            }
        }

        impl From<$name> for Uuid {
            fn from(id: $name) -> Uuid {
                id.0
            }
        }

        impl $name {
            pub fn uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<$name, IdError> {
                let error = || IdError { text: text.to_owned(), expected: $expected };
                Uuid::try_parse(text).map($name).map_err(|_| error())
            }
        }
    )*};
}

uuid_ids! {
    /// A conversation with its journal.
    SessionId, Session, "a session id";
    /// From a user's message to an outcome.
    TurnId, Turn, "a turn id";
    /// One model request with the tools it calls.
    StepId, Step, "a step id";
    /// One message of the conversation.
    MessageId, Message, "a message id";
    /// One call of a tool. Drawn by the session: the provider's own id may repeat and is only kept.
    CallId, Call, "a call id";
    /// One question to a person.
    ApprovalId, Approval, "an approval id";
    /// One request to a provider; a retry is a new one.
    RequestId, Request, "a request id";
}

/// Names chosen by people.
macro_rules! names {
    ($($(#[doc = $doc:literal])* $name:ident;)*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            pub fn new(name: impl Into<String>) -> $name {
                $name(name.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

names! {
    /// The name of an agent's definition, such as `build`.
    AgentName;
    /// A model as `provider/model`.
    ModelName;
}

/// A position in a session's journal. The first event has 1; a fork goes on after its parent's.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// Before the first event.
    pub const START: Seq = Seq(0);

    pub fn next(self) -> Seq {
        Seq(self.0.saturating_add(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The name of a blob: the BLAKE3 hash of its content, in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(with = "String")]
pub struct BlobId([u8; 32]);

impl BlobId {
    pub fn from_hash(hash: [u8; 32]) -> BlobId {
        BlobId(hash)
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlobId({self})")
    }
}

impl FromStr for BlobId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<BlobId, IdError> {
        let error = || IdError { text: text.to_owned(), expected: "a blob id" };
        let digit = |byte: &u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let mut hash = [0; 32];
        let pairs = text.as_bytes().chunks(2);
        if text.len() != 64 {
            return Err(error());
        }
        for (byte, pair) in hash.iter_mut().zip(pairs) {
            let [high, low] = pair else { return Err(error()) };
            *byte = digit(high).zip(digit(low)).map(|(high, low)| high << 4 | low).ok_or_else(error)?;
        }
        Ok(BlobId(hash))
    }
}

impl Serialize for BlobId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for BlobId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<BlobId, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_blob_id_survives_its_text(hash: [u8; 32]) {
            let id = BlobId::from_hash(hash);
            prop_assert_eq!(id.to_string().parse::<BlobId>(), Ok(id));
        }

        #[test]
        fn any_text_is_an_id_or_refused(text in "[0-9a-fA-Fé-]{0,70}") {
            let _ = text.parse::<BlobId>();
            let _ = text.parse::<SessionId>();
        }
    }

    #[test]
    fn an_error_says_what_was_expected() {
        let error = "last".parse::<SessionId>().unwrap_err();
        assert_eq!(error.to_string(), r#""last" is not a session id"#);
    }
}
