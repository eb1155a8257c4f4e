//! From files, variables and flags to what they say.

use std::borrow::Cow;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::check::{Source, check, expected};
use crate::config::Flag;
use crate::found::Found;
use crate::key::Key;
use crate::place::{Layer, Origin, Place};
use crate::problem::Problem;
use crate::shape::{Kind, shape};
use crate::syntax::mend;
use crate::text::Text;

/// No settings file is longer than this.
const LONGEST_FILE: u64 = 1024 * 1024;

pub(crate) fn read_file(layer: Layer, path: &Path, problems: &mut Vec<Problem>) -> Found {
    match text_of(layer, path) {
        Ok(None) => Found::default(),
        Ok(Some(text)) => check_text(&text, problems),
        Err(problem) => {
            problems.push(*problem);
            Found { has_gaps: true, ..Found::default() }
        }
    }
}

/// `None` if there is no such file.
fn text_of(layer: Layer, path: &Path) -> Result<Option<Text>, Box<Problem>> {
    let whole_file = || Origin { layer, place: Place::File { path: path.to_owned(), at: None } };
    let bytes = match bytes_of(path) {
        Ok(bytes) => bytes,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(Problem::new(whole_file(), format!("can't be read: {error}")).into()),
    };
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(Text::new(layer, path, &text))),
        Err(error) => {
            let good = error.utf8_error().valid_up_to();
            let bytes = error.into_bytes();
            let text = String::from_utf8_lossy(bytes.get(..good).unwrap_or_default());
            let origin = Text::new(layer, path, &text).end();
            Err(Problem::new(origin, "the file is not UTF-8 text").hint("save it again as UTF-8").into())
        }
    }
}

pub(crate) fn bytes_of(path: &Path) -> std::io::Result<Vec<u8>> {
    // Asked before opening, because opening a pipe would wait for a writer.
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(LONGEST_FILE + 1).read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= LONGEST_FILE => Ok(bytes),
        _ => Err(std::io::Error::other("it is larger than 1 MiB")),
    }
}

fn check_text(text: &Text, problems: &mut Vec<Problem>) -> Found {
    let (mistakes, sound) = mend(text.as_str());
    let has_gaps = !mistakes.is_empty();
    problems.extend(
        mistakes.into_iter().map(|mistake| Problem::new(text.origin(mistake.offset), mistake.message)),
    );
    let (table, _) = DeTable::parse_recoverable(&sound);
    check(Source::File { text, has_gaps }, table.get_ref(), problems)
}

/// Only the variables that set something count. An empty one counts as not set.
pub(crate) fn read_variables(environment: &[(String, String)], problems: &mut Vec<Problem>) -> Vec<Found> {
    let mut found = Vec::new();
    shape().walk(&Key::root(), &mut |key, shape| {
        let Some(name) = &shape.facts.env else { return };
        let value = environment.iter().rev().find(|(variable, _)| variable == name).map(|(_, value)| value);
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            let origin = Origin { layer: Layer::Environment, place: Place::Variable(name.clone()) };
            found.push(read_line(origin, key, value, problems));
        }
    });
    found
}

pub(crate) fn read_flags(flags: &[Flag], problems: &mut Vec<Problem>) -> Vec<Found> {
    let mut found = Vec::new();
    for flag in flags {
        let origin = Origin { layer: Layer::Flags, place: Place::Flag(flag.shown_as.clone()) };
        match Key::parse(&flag.key) {
            Some(key) => found.push(read_line(origin, &key, &flag.value, problems)),
            None => {
                let problem = Problem::new(origin, format!("{:?} is not a key", flag.key));
                problems.push(problem.hint("write it with dots, such as limits.max_steps"));
            }
        }
    }
    found
}

/// One value given as text, which is checked as if it stood in a file.
fn read_line(origin: Origin, key: &Key, text: &str, problems: &mut Vec<Problem>) -> Found {
    let value = match value_of(key, text) {
        Ok(value) => value,
        Err(message) => {
            problems.push(Problem::new(origin, format!("{key}: {message}")).about(key));
            return Found { has_gaps: true, ..Found::default() };
        }
    };
    match nested(key, value) {
        DeValue::Table(table) => check(Source::Line(origin), &table, problems),
        _ => Found::default(),
    }
}

/// The text as it is, quotes aside, where the setting is written as a string; else it is TOML.
fn value_of<'a>(key: &Key, text: &'a str) -> Result<DeValue<'a>, String> {
    let is_quoted = text.len() > 1
        && (text.starts_with('"') && text.ends_with('"') || text.starts_with('\'') && text.ends_with('\''));
    // Who writes quotes, as in a file, does not mean them to be part of the value.
    let quoted = DeValue::parse(text).ok().filter(|_| is_quoted).map(Spanned::into_inner);
    let as_it_is = || Ok(quoted.unwrap_or(DeValue::String(Cow::Borrowed(text))));
    let Some(shape) = shape().at(key) else { return as_it_is() };
    match &shape.kind {
        Kind::Text { .. } | Kind::Choice(_) | Kind::Money | Kind::Span => as_it_is(),
        kind => match DeValue::parse(text) {
            Ok(value) => Ok(value.into_inner()),
            Err(_) => Err(format!("expected {}, found {text:?}", expected(kind))),
        },
    }
}

/// `a.b` and 1 make `{ a = { b = 1 } }`.
fn nested<'a>(key: &'a Key, value: DeValue<'a>) -> DeValue<'a> {
    key.parts().iter().rev().fold(value, |inner, name| {
        let mut table = DeTable::new();
        table.insert(Spanned::new(0..0, Cow::Borrowed(name.as_str())), Spanned::new(0..0, inner));
        DeValue::Table(table)
    })
}
