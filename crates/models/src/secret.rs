//! Keys, which must not get out.

use std::fmt;

/// A key or a password. It shows itself to nobody but the request that needs it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text secret from now on.
    pub fn new(secret: impl Into<String>) -> Secret {
        Secret(secret.into())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// Takes the secret out of a text, such as an error that a server wrote.
    pub(crate) fn scrub(&self, text: &str) -> String {
        // Shorter ones are no keys, and would take half of the text along.
        if self.0.len() < 6 { text.to_owned() } else { text.replace(&self.0, "[key]") }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        let secret = Secret::new("sk-live-123456");
        assert_eq!(format!("{secret:?}"), "[secret]");
        assert_eq!(secret.scrub("wrong key sk-live-123456!"), "wrong key [key]!");
    }
}
