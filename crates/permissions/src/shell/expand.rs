//! Which words a word becomes.

use std::collections::BTreeMap;

use super::braces::{self, WordAtom};
use super::budget::AnalysisBudget;
use super::tree::{RawWord, ShellWordPart, WordExpansion};
use super::{ShellDialect, ShellWord};

/// The words that a program gets for a word that is written. `Err` says why that can't be known.
pub(super) fn words(
    raw: &RawWord,
    dialect: ShellDialect,
    budget: &AnalysisBudget,
) -> Result<Vec<ShellWord>, &'static str> {
    let atoms = atoms(&raw.parts);
    let expanded = braces::expand(&atoms, budget)?;
    if dialect == ShellDialect::Posix && (expanded.len() != 1 || expanded.first() != Some(&atoms)) {
        return Err("not every shell reads braces in the same way");
    }
    // What becomes nothing without having had quotes is no word.
    Ok(expanded.iter().filter(|atoms| !atoms.is_empty()).map(|atoms| word(atoms)).collect())
}

/// So many texts of one word are looked at.
const MAX_WORD_CANDIDATES: usize = 16;

/// What a word could be whose variables are `$HOME_MARK`, `$PWD`, or ones that were given these texts. Nothing if it has none, or
/// others.
pub(super) fn candidates(raw: &RawWord, constants: &BTreeMap<String, Vec<String>>) -> Vec<ShellWord> {
    let is_tilde =
        matches!(raw.parts.first(), Some(ShellWordPart::Text(text)) if text == "~" || text.starts_with("~/"));
    if !raw.parts.iter().any(|part| matches!(part, ShellWordPart::Expansion { .. })) {
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
            ShellWordPart::Text(text) | ShellWordPart::Quoted(text) => vec![text.clone()],
            ShellWordPart::Expansion { what: WordExpansion::Parameter(parameter), .. }
                if parameter.is_plain() =>
            {
                match parameter.name.as_str() {
                    "HOME" if !constants.contains_key("HOME") => vec![HOME_MARK.to_owned()],
                    "PWD" => vec![".".to_owned()],
                    name => constants.get(name).cloned().unwrap_or_default(),
                }
            }
            ShellWordPart::Expansion { .. } => Vec::new(),
        };
        if pieces.is_empty() {
            return Vec::new();
        }
        let joined = texts.iter().flat_map(|text| pieces.iter().map(move |piece| format!("{text}{piece}")));
        texts = joined.take(MAX_WORD_CANDIDATES).collect();
    }
    let word = |text: String| match text.starts_with(HOME_MARK) {
        true => home(&text, HOME_MARK),
        false if is_tilde || text.starts_with("~/") || text == "~" => home(&text, "~"),
        false => ShellWord::Known(text),
    };
    texts.into_iter().map(word).collect()
}

/// No text has it.
const HOME_MARK: &str = "\u{0}home";

fn home(text: &str, mark: &str) -> ShellWord {
    ShellWord::Home(text.strip_prefix(mark).unwrap_or(text).to_owned())
}

/// A word that is not split: a value, a pattern.
pub(super) fn unsplit(raw: &RawWord) -> ShellWord {
    match word(&atoms(&raw.parts)) {
        ShellWord::Pattern(text) => ShellWord::Known(text),
        ShellWord::UnknownMany => ShellWord::UnknownOne,
        word if has_tilde(&raw.parts) && !matches!(word, ShellWord::Home(_)) => ShellWord::UnknownOne,
        word => word,
    }
}

/// A tilde that is expanded after a colon, as in `PATH`.
fn has_tilde(parts: &[ShellWordPart]) -> bool {
    parts.iter().any(|part| matches!(part, ShellWordPart::Text(text) if text.contains('~')))
}

fn atoms(parts: &[ShellWordPart]) -> Vec<WordAtom<'_>> {
    let mut atoms = Vec::new();
    for part in parts {
        match part {
            ShellWordPart::Text(text) => atoms.extend(text.chars().map(WordAtom::Plain)),
            ShellWordPart::Quoted(text) => atoms.push(WordAtom::Quoted(text)),
            ShellWordPart::Expansion { what, is_quoted } => atoms.push(if *is_quoted && !is_many(what) {
                WordAtom::SingleWord
            } else {
                WordAtom::ManyWords
            }),
        }
    }
    atoms
}

fn is_many(what: &WordExpansion) -> bool {
    matches!(what, WordExpansion::Parameter(parameter) if parameter.is_many)
}

fn word(atoms: &[WordAtom<'_>]) -> ShellWord {
    let is_pattern = is_pattern(atoms);
    let has_unknown = atoms.contains(&WordAtom::SingleWord);
    if atoms.contains(&WordAtom::ManyWords) || has_unknown && is_pattern {
        return ShellWord::UnknownMany;
    }
    let tilde = tilde(atoms);
    if has_unknown {
        let known =
            atoms.iter().take_while(|atom| **atom != WordAtom::SingleWord).copied().collect::<Vec<_>>();
        let begin = if matches!(tilde, TildePrefix::None) { text(&known) } else { String::new() };
        return if begin.is_empty() { ShellWord::UnknownOne } else { ShellWord::Prefix(begin) };
    }
    match tilde {
        TildePrefix::None if is_pattern => ShellWord::Pattern(text(atoms)),
        TildePrefix::None => ShellWord::Known(text(atoms)),
        _ if is_pattern => ShellWord::UnknownMany,
        TildePrefix::Home => ShellWord::Home(text(atoms.get(1..).unwrap_or_default())),
        TildePrefix::Other => ShellWord::UnknownOne,
    }
}

fn text(atoms: &[WordAtom<'_>]) -> String {
    let mut text = String::new();
    for atom in atoms {
        match atom {
            WordAtom::Plain(char) => text.push(*char),
            WordAtom::Quoted(piece) => text.push_str(piece),
            WordAtom::SingleWord | WordAtom::ManyWords => {}
        }
    }
    text
}

fn is_pattern(atoms: &[WordAtom<'_>]) -> bool {
    let set = atoms.iter().position(|atom| *atom == WordAtom::Plain('['));
    let is_closed = |open: usize| atoms.iter().skip(open).any(|atom| *atom == WordAtom::Plain(']'));
    atoms.iter().any(|atom| matches!(atom, WordAtom::Plain('*' | '?'))) || set.is_some_and(is_closed)
}

enum TildePrefix {
    None,
    /// The user's own folder.
    Home,
    /// Another folder that can't be known.
    Other,
}

fn tilde(atoms: &[WordAtom<'_>]) -> TildePrefix {
    let plain = |at: usize| match atoms.get(at) {
        Some(WordAtom::Plain(char)) => Some(*char),
        _ => None,
    };
    let inside = || {
        let has = |at: usize| plain(at) == Some('~') && matches!(plain(at - 1), Some('=' | ':'));
        (1..atoms.len()).any(has)
    };
    if plain(0) != Some('~') {
        return if inside() { TildePrefix::Other } else { TildePrefix::None };
    }
    let name: Vec<&WordAtom<'_>> =
        atoms.iter().skip(1).take_while(|atom| **atom != WordAtom::Plain('/')).collect();
    if name.is_empty() {
        return TildePrefix::Home;
    }
    let is_name = name.iter().all(|atom| matches!(atom, WordAtom::Plain(_)));
    if is_name || inside() { TildePrefix::Other } else { TildePrefix::None }
}
