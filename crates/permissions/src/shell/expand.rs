//! Which words a word becomes.

use std::collections::BTreeMap;

use super::braces::{self, Atom};
use super::budget::Budget;
use super::tree::{Expansion, Part, RawWord};
use super::{Dialect, Word};

/// The words that a program gets for a word that is written. `Err` says why that can't be known.
pub(super) fn words(raw: &RawWord, dialect: Dialect, budget: &Budget) -> Result<Vec<Word>, &'static str> {
    let atoms = atoms(&raw.parts);
    let expanded = braces::expand(&atoms, budget)?;
    if dialect == Dialect::Posix && (expanded.len() != 1 || expanded.first() != Some(&atoms)) {
        return Err("not every shell reads braces in the same way");
    }
    // What becomes nothing without having had quotes is no word.
    Ok(expanded.iter().filter(|atoms| !atoms.is_empty()).map(|atoms| word(atoms)).collect())
}

/// So many texts of one word are looked at.
const MAX_TEXTS: usize = 16;

/// What a word could be whose variables are `$HOME`, `$PWD`, or ones that were given these texts. Nothing if it has none, or
/// others.
pub(super) fn candidates(raw: &RawWord, constants: &BTreeMap<String, Vec<String>>) -> Vec<Word> {
    let is_tilde =
        matches!(raw.parts.first(), Some(Part::Text(text)) if text == "~" || text.starts_with("~/"));
    if !raw.parts.iter().any(|part| matches!(part, Part::Expansion { .. })) {
        let text = || raw.literal().unwrap_or_default();
        // A pattern in the home folder.
        return if is_tilde && text().contains(['*', '?', '[']) {
            vec![home(&text(), "~")]
        } else {
            Vec::new()
        };
    }
    let mut texts = vec![String::new()];
    for part in &raw.parts {
        let pieces: Vec<String> = match part {
            Part::Text(text) | Part::Quoted(text) => vec![text.clone()],
            Part::Expansion { what: Expansion::Parameter(parameter), .. } if parameter.is_plain() => {
                match parameter.name.as_str() {
                    "HOME" if !constants.contains_key("HOME") => vec![HOME.to_owned()],
                    "PWD" => vec![".".to_owned()],
                    name => constants.get(name).cloned().unwrap_or_default(),
                }
            }
            Part::Expansion { .. } => Vec::new(),
        };
        if pieces.is_empty() {
            return Vec::new();
        }
        let joined = texts.iter().flat_map(|text| pieces.iter().map(move |piece| format!("{text}{piece}")));
        texts = joined.take(MAX_TEXTS).collect();
    }
    let word = |text: String| match text.starts_with(HOME) {
        true => home(&text, HOME),
        false if is_tilde || text.starts_with("~/") || text == "~" => home(&text, "~"),
        false => Word::Known(text),
    };
    texts.into_iter().map(word).collect()
}

/// No text has it.
const HOME: &str = "\u{0}home";

fn home(text: &str, mark: &str) -> Word {
    Word::Home(text.strip_prefix(mark).unwrap_or(text).to_owned())
}

/// A word that is not split: a value, a pattern.
pub(super) fn unsplit(raw: &RawWord) -> Word {
    match word(&atoms(&raw.parts)) {
        Word::Pattern(text) => Word::Known(text),
        Word::Any => Word::One,
        word if has_tilde(&raw.parts) && !matches!(word, Word::Home(_)) => Word::One,
        word => word,
    }
}

/// A tilde that is expanded after a colon, as in `PATH`.
fn has_tilde(parts: &[Part]) -> bool {
    parts.iter().any(|part| matches!(part, Part::Text(text) if text.contains('~')))
}

fn atoms(parts: &[Part]) -> Vec<Atom<'_>> {
    let mut atoms = Vec::new();
    for part in parts {
        match part {
            Part::Text(text) => atoms.extend(text.chars().map(Atom::Plain)),
            Part::Quoted(text) => atoms.push(Atom::Quoted(text)),
            Part::Expansion { what, is_quoted } => {
                atoms.push(if *is_quoted && !is_many(what) { Atom::One } else { Atom::Any })
            }
        }
    }
    atoms
}

fn is_many(what: &Expansion) -> bool {
    matches!(what, Expansion::Parameter(parameter) if parameter.is_many)
}

fn word(atoms: &[Atom<'_>]) -> Word {
    let is_pattern = is_pattern(atoms);
    let has_unknown = atoms.contains(&Atom::One);
    if atoms.contains(&Atom::Any) || has_unknown && is_pattern {
        return Word::Any;
    }
    let tilde = tilde(atoms);
    if has_unknown {
        let known = atoms.iter().take_while(|atom| **atom != Atom::One).copied().collect::<Vec<_>>();
        let begin = if matches!(tilde, Tilde::None) { text(&known) } else { String::new() };
        return if begin.is_empty() { Word::One } else { Word::Begins(begin) };
    }
    match tilde {
        Tilde::None if is_pattern => Word::Pattern(text(atoms)),
        Tilde::None => Word::Known(text(atoms)),
        _ if is_pattern => Word::Any,
        Tilde::Home => Word::Home(text(atoms.get(1..).unwrap_or_default())),
        Tilde::Other => Word::One,
    }
}

fn text(atoms: &[Atom<'_>]) -> String {
    let mut text = String::new();
    for atom in atoms {
        match atom {
            Atom::Plain(char) => text.push(*char),
            Atom::Quoted(piece) => text.push_str(piece),
            Atom::One | Atom::Any => {}
        }
    }
    text
}

fn is_pattern(atoms: &[Atom<'_>]) -> bool {
    let set = atoms.iter().position(|atom| *atom == Atom::Plain('['));
    let is_closed = |open: usize| atoms.iter().skip(open).any(|atom| *atom == Atom::Plain(']'));
    atoms.iter().any(|atom| matches!(atom, Atom::Plain('*' | '?'))) || set.is_some_and(is_closed)
}

enum Tilde {
    None,
    /// The user's own folder.
    Home,
    /// Another folder that can't be known.
    Other,
}

fn tilde(atoms: &[Atom<'_>]) -> Tilde {
    let plain = |at: usize| match atoms.get(at) {
        Some(Atom::Plain(char)) => Some(*char),
        _ => None,
    };
    let inside = || {
        let has = |at: usize| plain(at) == Some('~') && matches!(plain(at - 1), Some('=' | ':'));
        (1..atoms.len()).any(has)
    };
    if plain(0) != Some('~') {
        return if inside() { Tilde::Other } else { Tilde::None };
    }
    let name: Vec<&Atom<'_>> = atoms.iter().skip(1).take_while(|atom| **atom != Atom::Plain('/')).collect();
    if name.is_empty() {
        return Tilde::Home;
    }
    let is_name = name.iter().all(|atom| matches!(atom, Atom::Plain(_)));
    if is_name || inside() { Tilde::Other } else { Tilde::None }
}
