//! Search and replace.
//!
//! Models copy text with small slips: a line ending, a space at the end, another quote, another depth. So an old text that
//! is not there as written is looked for on a ladder of ever more tolerant rungs. A rung counts only if it finds exactly
//! one place; what it finds twice is refused, not passed on to a rung that would find even more.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt;
use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;
use thiserror::Error;

use super::blocks::{LineMatchMode, MIN_RECOGNIZABLE_LETTERS, SearchableLines, has_letters};
use super::nearest::{NearestLine, nearest, shown};
use super::normalize::{NormalizationLevel, NormalizedText};
use super::rebuild::{kept, rebuild};
use super::shift::IndentShift;
use super::similarity::{LineSimilarity, is_slip};
use super::unicode_form::line_in_other_form;

/// One replacement.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TextReplacement {
    /// The text to replace, exactly as it stands in the file, with enough around it to occur only once.
    pub old: String,
    /// What stands there afterwards.
    pub new: String,
    /// Whether to replace every occurrence.
    #[serde(default)]
    pub all: bool,
}

/// How tolerant a match had to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchRung {
    Exact,
    /// `\r\n` for `\n`.
    LineEndings,
    /// Curly quotes, dashes and special spaces for plain ones.
    Unicode,
    /// Space at the end of lines, and that.
    TrailingSpace,
    /// Every line is deeper or shallower by the same, or indented with tabs for spaces.
    Indentation,
    /// The first and the last line are the same, as are all that change; a line between is a few letters off.
    Anchors,
}

impl MatchRung {
    /// What to tell of it.
    pub fn describe(self) -> &'static str {
        match self {
            MatchRung::Exact => "exactly",
            MatchRung::LineEndings => "with the file's line endings",
            MatchRung::Unicode => "with the file's quotes, dashes and spaces",
            MatchRung::TrailingSpace => "but for space at the end of lines",
            MatchRung::Indentation => "at the file's indentation",
            MatchRung::Anchors => "but for a line between that differs slightly and was left as it is",
        }
    }
}

/// A text with all edits made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditedText {
    pub text: String,
    /// One for each edit.
    pub applied: Vec<AppliedEdit>,
}

/// How an edit was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedEdit {
    pub rung: MatchRung,
    /// How many places were changed.
    pub places: usize,
    /// The lines that the first of them began at, in the text as it was then; counted from 1.
    pub lines: Vec<usize>,
}

/// Why nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("edit {edit}: {reason}")]
pub struct EditError {
    /// Which edit, counted from 1.
    pub edit: usize,
    pub reason: EditProblem,
}

/// What is wrong with an edit, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EditProblem {
    #[error("there are more than {MAX_EDITS} edits. Make them in several calls.")]
    TooMany,
    #[error("the file would have more than {} MiB then.", MAX_EDITED_BYTES >> 20)]
    TooLong,
    #[error(
        "the old text is empty. Give the text that the new one replaces; to insert, repeat a line next to the place."
    )]
    EmptyOld,
    #[error("the old and the new text are the same, so there is nothing to change.")]
    Same,
    #[error("the file already says what the new text says, so there is nothing to change.")]
    NoEffect,
    #[error("the old text is there more than once. Add lines around it until it is unique, or ask for all. It is at:{}", listed(.0))]
    Ambiguous(Vec<NearestLine>),
    #[error("the old text is not in the file.{}{}", .hint.map(MismatchHint::words).unwrap_or_default(), nearest_words(.nearest))]
    NotFound { nearest: Vec<NearestLine>, hint: Option<MismatchHint> },
}

/// What may explain that a text is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MismatchHint {
    /// The new text stands at this line.
    AlreadyThere(usize),
    /// Every line begins with a number and a tab, as `read` shows them.
    LineNumbers,
    /// The text stands at this line, in another Unicode form: an accent is a character of its own in one of them.
    OtherForm(usize),
}

impl MismatchHint {
    pub(super) fn words(self) -> String {
        match self {
            MismatchHint::AlreadyThere(line) => format!(" The new text is already there, at line {line}."),
            MismatchHint::OtherForm(line) => format!(
                " The same text is there, at line {line}, but in another Unicode form: letters with accents are one character \
                 in one of them and two in the other (NFC and NFD), which looks the same. Give an old text without these \
                 letters, or change the line with the shell."
            ),
            MismatchHint::LineNumbers => {
                " Leave out the line numbers: they are not part of the file.".to_owned()
            }
        }
    }
}

fn listed(lines: &[NearestLine]) -> String {
    lines.iter().map(|near| format!("\n{near}")).collect()
}

fn nearest_words(lines: &[NearestLine]) -> String {
    if lines.is_empty() {
        return " Nothing in it is like the old text: read the file again.".to_owned();
    }
    format!(" Copy it from the lines that are there. The nearest are:{}", listed(lines))
}

const MAX_EDITS: usize = 500;
/// No text that is edited becomes longer.
const MAX_EDITED_BYTES: usize = 64 << 20;
/// So many places are looked at whether they tear a line ending apart.
const MAX_TRIED_MATCHES: usize = 2_000;
/// How many places are shown.
const MAX_SHOWN_MATCHES: usize = 10;
/// How many places the anchors are looked for at, and how many pairs of lines are compared letter by letter.
const MAX_ANCHOR_PLACES: usize = 2_000;
const MAX_COMPARED_PAIRS: usize = 200;

/// Makes the edits one after another, or none of them.
pub fn replace(text: &str, edits: &[TextReplacement]) -> Result<EditedText, EditError> {
    if edits.len() > MAX_EDITS {
        return Err(EditError { edit: MAX_EDITS + 1, reason: EditProblem::TooMany });
    }
    let mut replaced = EditedText { text: text.to_owned(), applied: Vec::with_capacity(edits.len()) };
    for (index, edit) in edits.iter().enumerate() {
        let made = make(&replaced.text, edit).map_err(|reason| EditError { edit: index + 1, reason })?;
        replaced.text = made.0;
        replaced.applied.push(made.1);
    }
    Ok(replaced)
}

fn make(text: &str, edit: &TextReplacement) -> Result<(String, AppliedEdit), EditProblem> {
    if edit.old.is_empty() {
        return Err(EditProblem::EmptyOld);
    }
    if edit.old == edit.new {
        return Err(EditProblem::Same);
    }
    let edit = &unmarked(edit);
    let search = MatchSearch { text, edit, blocks: OnceCell::new() };
    let (rung, spots) = search.find_on_ladder()?;
    if text.len().saturating_add(spots.len().saturating_mul(edit.new.len())) > MAX_EDITED_BYTES {
        return Err(EditProblem::TooLong);
    }
    let after = search.swap(&spots).ok_or_else(|| search.not_found())?;
    if after == text {
        return Err(EditProblem::NoEffect);
    }
    let lines = spots.iter().take(MAX_SHOWN_MATCHES).map(|spot| search.line_of(spot.range.start)).collect();
    Ok((after, AppliedEdit { rung, places: spots.len(), lines }))
}

/// An edit without the mark that some files begin with: it is no part of their text.
fn unmarked(edit: &TextReplacement) -> Cow<'_, TextReplacement> {
    const MARK: char = '\u{feff}';
    let without = |text: &str| text.strip_prefix(MARK).unwrap_or(text).to_owned();
    match edit.old.strip_prefix(MARK) {
        Some(old) if !old.is_empty() => {
            Cow::Owned(TextReplacement { old: old.to_owned(), new: without(&edit.new), all: edit.all })
        }
        _ => Cow::Borrowed(edit),
    }
}

/// A place that an edit is about.
struct MatchSpot {
    range: Range<usize>,
    shift: IndentShift,
}

impl MatchSpot {
    fn at(range: Range<usize>) -> MatchSpot {
        MatchSpot { range, shift: IndentShift::None }
    }
}

/// Looks for the old text on one rung.
type MatchFinder<'a> = fn(&MatchSearch<'a>) -> Vec<MatchSpot>;

struct MatchSearch<'a> {
    text: &'a str,
    edit: &'a TextReplacement,
    blocks: OnceCell<SearchableLines<'a>>,
}

impl<'a> MatchSearch<'a> {
    /// The places, found on the first rung that finds any.
    fn find_on_ladder(&self) -> Result<(MatchRung, Vec<MatchSpot>), EditProblem> {
        if self.edit.all
            && let Some(found) = self.everywhere()
        {
            return Ok(found);
        }
        let ladder: [(MatchRung, MatchFinder<'a>); 6] = [
            (MatchRung::Exact, MatchSearch::exact),
            (MatchRung::LineEndings, |search| search.squeezed(NormalizationLevel::Endings)),
            (MatchRung::Unicode, |search| search.squeezed(NormalizationLevel::Letters)),
            (MatchRung::TrailingSpace, MatchSearch::trailing_space),
            (MatchRung::Indentation, MatchSearch::indented),
            (MatchRung::Anchors, MatchSearch::anchored),
        ];
        for (rung, find) in ladder {
            let mut spots = find(self);
            // Who does not see line endings sees the same text twice where only they differ.
            if rung == MatchRung::Exact && spots.len() == 1 && self.edit.old.contains('\n') {
                let alike = self.squeezed(NormalizationLevel::Endings);
                spots = if alike.len() > 1 { alike } else { spots };
            }
            match spots.len() {
                0 => {}
                1 => return Ok((rung, spots)),
                _ => return Err(EditProblem::Ambiguous(self.candidates(&spots))),
            }
        }
        Err(self.not_found())
    }

    /// All places that differ in line endings at most.
    fn everywhere(&self) -> Option<(MatchRung, Vec<MatchSpot>)> {
        let [text, old] =
            [self.text, &self.edit.old].map(|text| NormalizedText::new(text, NormalizationLevel::Endings));
        let place = |at: usize| text.original(at)..text.original(at + old.text.len());
        let ranges: Vec<_> = text.text.match_indices(&old.text).map(|(at, _)| place(at)).collect();
        let is_exact = |range: &Range<usize>| self.text.get(range.clone()) == Some(&self.edit.old);
        let rung = if ranges.iter().all(is_exact) { MatchRung::Exact } else { MatchRung::LineEndings };
        (!ranges.is_empty()).then(|| (rung, ranges.into_iter().map(MatchSpot::at).collect()))
    }

    fn exact(&self) -> Vec<MatchSpot> {
        let old = &self.edit.old;
        let spots = occurrences(self.text, old).map(|at| at..at + old.len());
        // What begins or ends within a `\r\n` would tear it apart; the next rung takes it whole.
        let tears = |at: usize| {
            self.text.get(..at).is_some_and(|before| before.ends_with('\r'))
                && self.text.get(at..).is_some_and(|after| after.starts_with('\n'))
        };
        let whole = spots.take(MAX_TRIED_MATCHES).filter(|range| !tears(range.start) && !tears(range.end));
        whole.take(MAX_SHOWN_MATCHES).map(MatchSpot::at).collect()
    }

    fn squeezed(&self, tolerance: NormalizationLevel) -> Vec<MatchSpot> {
        let both = [self.text, &self.edit.old];
        let may_differ = match tolerance {
            NormalizationLevel::Endings => both.iter().any(|text| text.contains("\r\n")),
            NormalizationLevel::Letters => self.has_letters(1) && !both.iter().all(|text| text.is_ascii()),
        };
        if !may_differ {
            return Vec::new();
        }
        let [text, old] = both.map(|text| NormalizedText::new(text, tolerance));
        let places = occurrences(&text.text, &old.text).take(MAX_SHOWN_MATCHES);
        places.map(|at| MatchSpot::at(text.original(at)..text.original(at + old.text.len()))).collect()
    }

    fn trailing_space(&self) -> Vec<MatchSpot> {
        if !self.has_letters(1) {
            return Vec::new();
        }
        let old = block(&self.edit.old);
        let places = self.blocks().find(&old, LineMatchMode::Folded, 0, MAX_SHOWN_MATCHES);
        places.into_iter().map(|line| MatchSpot::at(self.extent(line, old.len()))).collect()
    }

    fn indented(&self) -> Vec<MatchSpot> {
        if !self.has_letters(MIN_RECOGNIZABLE_LETTERS) {
            return Vec::new();
        }
        let old = block(&self.edit.old);
        let places = self.blocks().find(&old, LineMatchMode::IgnoreIndent, 0, MAX_SHOWN_MATCHES);
        if let [line] = places.as_slice() {
            let shift = IndentShift::between(&old, &self.blocks().contents(*line, old.len()));
            return shift
                .map(|shift| MatchSpot { range: self.extent(*line, old.len()), shift })
                .into_iter()
                .collect();
        }
        places.into_iter().map(|line| MatchSpot::at(self.extent(line, old.len()))).collect()
    }

    /// One place with the same first and last line and similar ones between, of which only those that the edit keeps may
    /// differ, by a slip.
    fn anchored(&self) -> Vec<MatchSpot> {
        let [old, new] = [&self.edit.old, &self.edit.new].map(|text| block(text));
        let ([first, .., last], true) = (old.as_slice(), self.has_letters(MIN_RECOGNIZABLE_LETTERS)) else {
            return Vec::new();
        };
        if old.len() < 3 {
            return Vec::new();
        }
        let blocks = self.blocks();
        let last = LineMatchMode::Folded.key(last);
        let mut left = MAX_COMPARED_PAIRS;
        let mut similar = blocks
            .find(&[first], LineMatchMode::Folded, 0, MAX_ANCHOR_PLACES)
            .into_iter()
            .filter_map(|line| {
                let end = blocks.lines.get(line + old.len() - 1)?;
                let ends_alike = LineMatchMode::Folded.key(end.content) == last;
                let slips =
                    if ends_alike { slips(&old, &blocks.contents(line, old.len()), &mut left) } else { None };
                slips.map(|slips| (line, slips))
            });
        let (Some((line, slips)), None) = (similar.next(), similar.next()) else { return Vec::new() };
        if left == 0 {
            // Not all places were looked at, so nobody knows that this is the only one.
            return Vec::new();
        }
        let real = blocks.contents(line, old.len());
        let kept = kept(&old, &new);
        let times = |lines: &[&str], wanted: &str| lines.iter().filter(|line| **line == wanted).count();
        let is_harmless = |at: &usize| {
            let pair = old.get(*at).zip(real.get(*at));
            // Where the new text has it once more, the slip would come into the file.
            let is_only_kept = |line| kept.get(*at) == Some(&true) && times(&new, line) <= times(&old, line);
            pair.is_some_and(|(old, real)| is_only_kept(old) && is_slip(old, real))
        };
        if slips.iter().all(is_harmless) {
            vec![MatchSpot::at(self.extent(line, old.len()))]
        } else {
            Vec::new()
        }
    }

    fn blocks(&self) -> &SearchableLines<'a> {
        self.blocks.get_or_init(|| SearchableLines::new(self.text))
    }

    /// Whether the old text says enough to be recognised in another form.
    fn has_letters(&self, count: usize) -> bool {
        has_letters(&self.edit.old, count)
    }

    /// The bytes of some lines, with the last break only if the old text has it.
    fn extent(&self, line: usize, count: usize) -> Range<usize> {
        let lines = &self.blocks().lines;
        let length = |line: &helve_workspace::FileLine<'_>| line.content.len() + line.ending.len();
        let start = lines.iter().take(line).map(length).sum();
        let end: usize = start + lines.iter().skip(line).take(count).map(length).sum::<usize>();
        let last = lines.get(line + count - 1).filter(|_| !self.edit.old.ends_with('\n'));
        start..end - last.map_or(0, |last| last.ending.len())
    }

    /// The text with the new one at all places; nothing if it can't be written there.
    fn swap(&self, spots: &[MatchSpot]) -> Option<String> {
        let TextReplacement { old, new, .. } = self.edit;
        // Who writes `\r\n` knows about line endings and means it.
        let is_literal = [old, new].iter().any(|text| text.contains("\r\n")) || !self.text.contains("\r\n");
        let mut after = String::with_capacity(self.text.len() + new.len());
        let mut cursor = 0;
        for spot in spots {
            let real = self.text.get(spot.range.clone())?;
            after.push_str(self.text.get(cursor..spot.range.start)?);
            if is_literal && real == old {
                after.push_str(new);
            } else {
                after.push_str(&rebuild(real, old, new, &spot.shift, self.ending_at(spot.range.end))?);
            }
            cursor = spot.range.end;
        }
        after.push_str(self.text.get(cursor..)?);
        Some(after)
    }

    /// How the line at a place ends, or the one before it.
    fn ending_at(&self, at: usize) -> &'static str {
        let breaks = |at: usize| self.text.get(..at).is_some_and(|before| before.ends_with('\r'));
        let next = self.text.get(at..).and_then(|rest| Some(at + rest.find('\n')?));
        let place = next.or_else(|| self.text.get(..at).and_then(|before| before.rfind('\n')));
        if place.is_some_and(breaks) { "\r\n" } else { "\n" }
    }

    fn line_of(&self, at: usize) -> usize {
        1 + self.text.get(..at).map_or(0, |before| before.matches('\n').count())
    }

    fn candidates(&self, spots: &[MatchSpot]) -> Vec<NearestLine> {
        let line = |spot: &MatchSpot| self.line_of(spot.range.start) - 1;
        spots.iter().flat_map(|spot| shown(&self.blocks().lines, line(spot), 1)).collect()
    }

    fn not_found(&self) -> EditProblem {
        let TextReplacement { old, new, .. } = self.edit;
        let has_number = |line: &&str| {
            let rest = line.trim_start().trim_start_matches(|letter: char| letter.is_ascii_digit());
            rest.len() < line.trim_start().len() && rest.starts_with('\t')
        };
        let there = || self.text.find(new.as_str()).filter(|_| new.trim().len() > 3);
        let hint = if block(old).iter().all(has_number) {
            Some(MismatchHint::LineNumbers)
        } else if let Some(line) = line_in_other_form(self.text, old) {
            Some(MismatchHint::OtherForm(line))
        } else {
            there().map(|at| MismatchHint::AlreadyThere(self.line_of(at)))
        };
        EditProblem::NotFound { nearest: nearest(&self.blocks().lines, &block(old)), hint }
    }
}

impl fmt::Display for MatchRung {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.describe())
    }
}

/// The lines of an edit's text.
fn block(text: &str) -> Vec<&str> {
    helve_workspace::lines(text).map(|line| line.content).collect()
}

/// Where a text is found, overlaps included.
fn occurrences<'a>(text: &'a str, wanted: &'a str) -> impl Iterator<Item = usize> + 'a {
    let step = wanted.chars().next().map_or(1, char::len_utf8);
    let mut from = 0;
    std::iter::from_fn(move || {
        let at = from + text.get(from..)?.find(wanted)?;
        from = at + step;
        Some(at)
    })
}

/// Which lines of two blocks differ, if they are few and not by much.
fn slips(old: &[&str], real: &[&str], left: &mut usize) -> Option<Vec<usize>> {
    const ALIKE: usize = 60;
    let most = (old.len() / 4).max(1);
    let mut slips = Vec::new();
    for (at, (written, there)) in old.iter().zip(real).enumerate() {
        if LineMatchMode::Folded.key(written) == LineMatchMode::Folded.key(there) {
            continue;
        }
        *left = left.checked_sub(1)?;
        slips.push(at);
        if slips.len() > most || LineSimilarity::of(written, there).percent() < ALIKE {
            return None;
        }
    }
    Some(slips)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::editing::nearest::MAX_COMPARED_LINES;
    use crate::editing::similarity::COMPARED_PAIRS;

    #[test]
    fn however_long_a_text_is_few_lines_are_compared_letter_by_letter() {
        let edit = |old: String| TextReplacement { old, new: "x".to_owned(), all: false };
        let alike =
            |n: u32| format!("    // value {n} is computed here\n    let value = compute({n});\n    }}\n");
        let texts = [10, 100_000].map(|count| (0..count).map(alike).collect::<String>());
        let wanted = [
            "    let value = computes(77777);\n".to_owned(),
            "    // value is computed there\n    let values = compute(8);\n    }\n".to_owned(),
            "    }\n".to_owned() + &"    let value = compute(8);\n    }\n".repeat(200),
        ];
        for text in &texts {
            for old in &wanted {
                COMPARED_PAIRS.set(0);
                replace(text, &[edit(old.clone())]).unwrap_err();
                let compared = COMPARED_PAIRS.get();
                assert!(compared <= MAX_COMPARED_PAIRS + MAX_COMPARED_LINES, "{compared} for {old:?}");
            }
        }
    }
}
