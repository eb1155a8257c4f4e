//! From files, variables and flags to what they say.

use std::borrow::Cow;
use std::io::ErrorKind;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::bounded_file::read_bytes;
use crate::check::{CheckedSource, check_table, expected};
use crate::origin::{ConfigLayer, ConfigLocation, SettingOrigin};
use crate::problem::ConfigProblem;
use crate::setting_key::SettingKey;
use crate::settings_text::SettingsText;
use crate::shape::{SettingKind, settings_shape};
use crate::source_values::SourceValues;
use crate::sources::ConfigFlag;
use crate::syntax::blank_broken_lines;

pub(crate) fn read_file(layer: ConfigLayer, path: &Path, problems: &mut Vec<ConfigProblem>) -> SourceValues {
    match read_text(layer, path) {
        Ok(None) => SourceValues::default(),
        Ok(Some(text)) => check_text(&text, problems),
        Err(problem) => {
            problems.push(*problem);
            SourceValues { has_gaps: true, ..SourceValues::default() }
        }
    }
}

/// `None` if there is no such file.
fn read_text(layer: ConfigLayer, path: &Path) -> Result<Option<SettingsText>, Box<ConfigProblem>> {
    let whole_file =
        || SettingOrigin { layer, place: ConfigLocation::File { path: path.to_owned(), at: None } };
    let bytes = match read_bytes(path) {
        Ok(bytes) => bytes,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(ConfigProblem::new(whole_file(), format!("can't be read: {error}")).into()),
    };
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(SettingsText::new(layer, path, &text))),
        Err(error) => {
            let good = error.utf8_error().valid_up_to();
            let bytes = error.into_bytes();
            let text = String::from_utf8_lossy(bytes.get(..good).unwrap_or_default());
            let origin = SettingsText::new(layer, path, &text).end();
            Err(ConfigProblem::new(origin, "the file is not UTF-8 text")
                .hint("save it again as UTF-8")
                .into())
        }
    }
}

fn check_text(text: &SettingsText, problems: &mut Vec<ConfigProblem>) -> SourceValues {
    let (mistakes, sound) = blank_broken_lines(text.as_str());
    let has_gaps = !mistakes.is_empty();
    problems.extend(
        mistakes.into_iter().map(|mistake| ConfigProblem::new(text.origin(mistake.offset), mistake.message)),
    );
    let (table, _) = DeTable::parse_recoverable(&sound);
    check_table(CheckedSource::File { text, has_gaps }, table.get_ref(), problems)
}

/// Only the variables that set something count. An empty one counts as not set.
pub(crate) fn read_variables(
    environment: &[(String, String)],
    problems: &mut Vec<ConfigProblem>,
) -> Vec<SourceValues> {
    let mut found = Vec::new();
    settings_shape().walk(&SettingKey::root(), &mut |key, shape| {
        let Some(name) = &shape.facts.env else { return };
        let value = environment.iter().rev().find(|(variable, _)| variable == name).map(|(_, value)| value);
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            let origin = SettingOrigin {
                layer: ConfigLayer::Environment,
                place: ConfigLocation::Variable(name.clone()),
            };
            found.push(read_single_value(origin, key, value, problems));
        }
    });
    found
}

pub(crate) fn read_flags(flags: &[ConfigFlag], problems: &mut Vec<ConfigProblem>) -> Vec<SourceValues> {
    let mut found = Vec::new();
    for flag in flags {
        let origin =
            SettingOrigin { layer: ConfigLayer::Flags, place: ConfigLocation::Flag(flag.shown_as.clone()) };
        match SettingKey::parse(&flag.key) {
            Some(key) => found.push(read_single_value(origin, &key, &flag.value, problems)),
            None => {
                let problem = ConfigProblem::new(origin, format!("{:?} is not a key", flag.key));
                problems.push(problem.hint("write it with dots, such as limits.max_steps"));
            }
        }
    }
    found
}

/// One value given as text, which is checked as if it stood in a file.
fn read_single_value(
    origin: SettingOrigin,
    key: &SettingKey,
    text: &str,
    problems: &mut Vec<ConfigProblem>,
) -> SourceValues {
    let value = match parse_value(key, text) {
        Ok(value) => value,
        Err(message) => {
            problems.push(ConfigProblem::new(origin, format!("{key}: {message}")).about(key));
            return SourceValues { has_gaps: true, ..SourceValues::default() };
        }
    };
    match nest_in_tables(key, value) {
        DeValue::Table(table) => check_table(CheckedSource::SingleValue(origin), &table, problems),
        _ => SourceValues::default(),
    }
}

/// The text as it is, quotes aside, where the setting is written as a string; else it is TOML.
fn parse_value<'a>(key: &SettingKey, text: &'a str) -> Result<DeValue<'a>, String> {
    let is_quoted = text.len() > 1
        && (text.starts_with('"') && text.ends_with('"') || text.starts_with('\'') && text.ends_with('\''));
    // Who writes quotes, as in a file, does not mean them to be part of the value.
    let quoted = DeValue::parse(text).ok().filter(|_| is_quoted).map(Spanned::into_inner);
    let as_it_is = || Ok(quoted.unwrap_or(DeValue::String(Cow::Borrowed(text))));
    let Some(shape) = settings_shape().at(key) else { return as_it_is() };
    match &shape.kind {
        SettingKind::Text { .. } | SettingKind::Choice(_) | SettingKind::Money | SettingKind::Span => {
            as_it_is()
        }
        kind => match DeValue::parse(text) {
            Ok(value) => Ok(value.into_inner()),
            Err(_) => Err(format!("expected {}, found {text:?}", expected(kind))),
        },
    }
}

/// `a.b` and 1 make `{ a = { b = 1 } }`.
fn nest_in_tables<'a>(key: &'a SettingKey, value: DeValue<'a>) -> DeValue<'a> {
    key.parts().iter().rev().fold(value, |inner, name| {
        let mut table = DeTable::new();
        table.insert(Spanned::new(0..0, Cow::Borrowed(name.as_str())), Spanned::new(0..0, inner));
        DeValue::Table(table)
    })
}
