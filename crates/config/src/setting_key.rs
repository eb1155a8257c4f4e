//! The dotted name of a setting.

use std::fmt;

use toml::de::{DeTable, DeValue};

/// `limits.max_steps`, `providers.local.headers."A.B"`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SettingKey(Vec<String>);

impl SettingKey {
    pub(crate) fn root() -> SettingKey {
        SettingKey::default()
    }

    pub(crate) fn child(&self, name: &str) -> SettingKey {
        let mut parts = self.0.clone();
        parts.push(name.to_owned());
        SettingKey(parts)
    }

    /// The key of one item of a list: `permission[0]`. For showing only.
    pub(crate) fn item(&self, index: usize) -> SettingKey {
        let mut parts = self.0.clone();
        if let Some(last) = parts.last_mut() {
            last.push_str(&format!("[{index}]"));
        }
        SettingKey(parts)
    }

    pub(crate) fn parts(&self) -> &[String] {
        &self.0
    }

    pub(crate) fn is_inside(&self, table: &SettingKey) -> bool {
        self.0.len() > table.0.len() && self.0.starts_with(&table.0)
    }

    /// Reads a key as a TOML file would have it, quotes and all; `None` when it isn't one.
    pub(crate) fn parse(text: &str) -> Option<SettingKey> {
        let line = format!("{text} = 0");
        let document = DeTable::parse(&line).ok()?;
        let mut table = document.get_ref();
        let mut parts = Vec::new();
        loop {
            let (name, value) = table.iter().next()?;
            parts.push(name.get_ref().to_string());
            match value.get_ref() {
                DeValue::Table(inner) => table = inner,
                // A text with an `=` or a `#` of its own would have its value elsewhere.
                _ => return (value.span() == (line.len() - 1..line.len())).then_some(SettingKey(parts)),
            }
        }
    }
}

impl fmt::Display for SettingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.0.iter().enumerate() {
            let dot = if index == 0 { "" } else { "." };
            if needs_no_quotes(part) { write!(f, "{dot}{part}")? } else { write!(f, "{dot}{part:?}")? }
        }
        Ok(())
    }
}

fn needs_no_quotes(part: &str) -> bool {
    let without_index = || {
        let (name, index) = part.strip_suffix(']')?.rsplit_once('[')?;
        index.bytes().all(|byte| byte.is_ascii_digit()).then_some(name)
    };
    is_name(without_index().unwrap_or(part))
}

/// What a provider, a server or an alias may be called.
pub(crate) fn is_name(text: &str) -> bool {
    let ordinary = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=64).contains(&text.len()) && text.bytes().all(ordinary)
}

/// `provider/model`.
pub(crate) fn is_model(text: &str) -> bool {
    let is_some = |model: &str| (1..=200).contains(&model.chars().count());
    text.split_once('/').is_some_and(|(provider, model)| is_name(provider) && is_some(model))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_read_as_in_a_file() {
        for (text, shown) in [("a", "a"), ("a.b", "a.b"), ("a . 'b.c'", "a.\"b.c\""), ("a.\"é\"", "a.\"é\"")]
        {
            assert_eq!(SettingKey::parse(text).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn what_is_not_a_key_is_refused() {
        for text in ["", ".", "a.", "a b", "a = 1 #", "a = 0 #", "a\nb", "[a]", "a={b=0}#"] {
            assert_eq!(SettingKey::parse(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text: String) {
            let _ = SettingKey::parse(&text);
        }
    }
}
