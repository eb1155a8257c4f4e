//! Making the changes of a patch, to all files or to none.

use std::collections::HashMap;

use helve_workspace::{FileTextBuilder, main_ending};

use super::blocks::{LineMatchMode, MIN_RECOGNIZABLE_LETTERS, SearchableLines, has_letters};
use super::nearest::{NearestLine, nearest, shown};
use super::normalize::MistypedChars;
use super::patch::{HunkMark, Patch, PatchError, PatchHunk, PatchOperation, PatchProblem};
use super::replace::{MatchRung, MismatchHint};
use super::shift::IndentShift;
use super::unicode_form::line_in_other_form;

/// What there is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchTarget {
    Text(String),
    /// A file that can't be edited, and why.
    NotText(String),
    Folder,
    Missing,
}

/// What shall be at a path when the patch is applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchedFile {
    pub path: String,
    /// Nothing if the file is deleted.
    pub text: Option<String>,
    /// Where a file stood that was moved here; it is encoded as that one was.
    pub moved_from: Option<String>,
    /// Whether there was a file before.
    pub was_there: bool,
    /// How tolerant the matches had to be.
    pub rung: MatchRung,
}

/// What the patch makes of the files, each once, in the order in which it speaks of them. Nothing is written.
pub fn apply_patch(
    patch: &Patch,
    find: impl FnMut(&str) -> PatchTarget,
) -> Result<Vec<PatchedFile>, PatchError> {
    let mut desk = PatchApplier { find, results: Vec::new(), places: HashMap::new() };
    for operation in &patch.operations {
        desk.apply(operation)?;
    }
    // What the patch itself made and took away again was never there.
    desk.results.retain(|result| result.was_there || result.text.is_some());
    Ok(desk.results)
}

/// The files as the operations so far have left them.
struct PatchApplier<F> {
    find: F,
    results: Vec<PatchedFile>,
    places: HashMap<String, usize>,
}

impl<F: FnMut(&str) -> PatchTarget> PatchApplier<F> {
    fn apply(&mut self, operation: &PatchOperation) -> Result<(), PatchError> {
        match operation {
            PatchOperation::Add { line, path, text } => {
                let was_there = self.is_file(path, *line)?;
                self.put(path, Some((text.clone(), MatchRung::Exact)), None, was_there);
            }
            PatchOperation::Delete { line, path, hunks } => {
                if !self.is_file(path, *line)? {
                    return Err(PatchProblem::Missing(path.clone()).at(*line));
                }
                if !hunks.is_empty() && !change(path, &self.text(path, *line)?, hunks)?.0.is_empty() {
                    return Err(PatchProblem::NotAllDeleted(path.clone()).at(*line));
                }
                self.put(path, None, None, true);
            }
            PatchOperation::Update { line, path, moved_to, hunks } => {
                let changed = change(path, &self.text(path, *line)?, hunks)?;
                match moved_to.as_ref().filter(|to| plain_path(to) != plain_path(path)) {
                    Some(to) => {
                        let was_there = self.is_file(to, *line)?;
                        let origin = self.origin(path);
                        self.put(path, None, None, true);
                        self.put(to, Some(changed), origin, was_there);
                    }
                    None => {
                        let origin = self.origin(path).filter(|origin| *origin != plain_path(path));
                        self.put(path, Some(changed), origin, true);
                    }
                }
            }
        }
        Ok(())
    }

    /// What the patch has made of a path so far, if it spoke of it.
    fn result(&self, path: &str) -> Option<&PatchedFile> {
        self.places.get(path).and_then(|place| self.results.get(*place))
    }

    /// Where a file stood before the patch; nothing if the patch made it.
    fn origin(&self, path: &str) -> Option<String> {
        let path = plain_path(path);
        match self.result(&path) {
            Some(result) => result.moved_from.clone().or_else(|| result.was_there.then_some(path)),
            None => Some(path),
        }
    }

    fn look(&mut self, path: &str) -> PatchTarget {
        let path = plain_path(path);
        match self.result(&path) {
            Some(PatchedFile { text: Some(text), .. }) => PatchTarget::Text(text.clone()),
            Some(_) => PatchTarget::Missing,
            None => (self.find)(&path),
        }
    }

    fn is_file(&mut self, path: &str, line: usize) -> Result<bool, PatchError> {
        match self.look(path) {
            PatchTarget::Text(_) | PatchTarget::NotText(_) => Ok(true),
            PatchTarget::Missing => Ok(false),
            PatchTarget::Folder => Err(PatchProblem::Folder(path.to_owned()).at(line)),
        }
    }

    fn text(&mut self, path: &str, line: usize) -> Result<String, PatchError> {
        let problem = match self.look(path) {
            PatchTarget::Text(text) => return Ok(text),
            PatchTarget::NotText(reason) => PatchProblem::NotText { path: path.to_owned(), reason },
            PatchTarget::Folder => PatchProblem::Folder(path.to_owned()),
            PatchTarget::Missing => PatchProblem::Missing(path.to_owned()),
        };
        Err(problem.at(line))
    }

    fn put(
        &mut self,
        path: &str,
        made: Option<(String, MatchRung)>,
        moved_from: Option<String>,
        was_there: bool,
    ) {
        let path = plain_path(path);
        let (text, rung) = made.map_or((None, MatchRung::Exact), |(text, rung)| (Some(text), rung));
        let place = self.places.get(&path).copied();
        match place.and_then(|place| self.results.get_mut(place)) {
            Some(result) => {
                result.text = text;
                result.moved_from = moved_from;
                result.rung = result.rung.max(rung);
            }
            None => {
                self.places.insert(path.clone(), self.results.len());
                self.results.push(PatchedFile { path, text, moved_from, was_there, rung });
            }
        }
    }
}

/// `./x` is `x`.
fn plain_path(path: &str) -> String {
    path.trim_start_matches("./").to_owned()
}

/// How many places a hunk is looked for at.
const MAX_HUNK_PLACES: usize = 100;
/// How many places are shown.
const MAX_SHOWN_PLACES: usize = 10;

/// The text with the hunks in it, and the most tolerant match that took.
fn change(path: &str, text: &str, hunks: &[PatchHunk]) -> Result<(String, MatchRung), PatchError> {
    let mut file =
        HunkPlacer { path, blocks: SearchableLines::new(text), placed: Vec::new(), cursor: 0, drift: 0 };
    for hunk in hunks {
        let placed = file.place(hunk)?;
        file.cursor = placed.start + placed.old_count();
        file.placed.push(placed);
    }
    file.placed.sort_by_key(|placed| placed.start);
    file.check_overlaps()?;
    let rung = file.placed.iter().map(|placed| placed.fit.rung).max().unwrap_or(MatchRung::Exact);
    Ok((file.write(main_ending(text)), rung))
}

/// A hunk with the line that it begins at, counted from 0.
struct PlacedHunk<'a> {
    hunk: &'a PatchHunk,
    /// Its lines, without a blank one at the end that is not in the file.
    count: usize,
    start: usize,
    fit: HunkFit,
}

/// How the lines of a hunk fit those that are there.
#[derive(Clone, Debug, PartialEq, Eq)]
struct HunkFit {
    rung: MatchRung,
    shift: IndentShift,
    mistyped: MistypedChars,
}

impl HunkFit {
    fn exact() -> HunkFit {
        HunkFit { rung: MatchRung::Exact, shift: IndentShift::None, mistyped: MistypedChars::default() }
    }

    /// For lines that are alike.
    fn between(old: &[&str], real: &[&str], likeness: LineMatchMode) -> Option<HunkFit> {
        let pairs = || old.iter().copied().zip(real.iter().copied());
        let rung = match likeness {
            LineMatchMode::Exact => return Some(HunkFit::exact()),
            LineMatchMode::Folded if pairs().all(|(old, real)| old.trim_end() == real.trim_end()) => {
                MatchRung::TrailingSpace
            }
            LineMatchMode::Folded => MatchRung::Unicode,
            LineMatchMode::IgnoreIndent => MatchRung::Indentation,
        };
        let shift = if likeness == LineMatchMode::IgnoreIndent {
            IndentShift::between(old, real)?
        } else {
            IndentShift::None
        };
        Some(HunkFit { rung, shift, mistyped: MistypedChars::between(pairs()) })
    }

    /// A new line as it must be here; nothing if nobody knows.
    fn line(&self, line: &str) -> Option<String> {
        self.shift.line(&self.mistyped.line(line))
    }
}

impl PlacedHunk<'_> {
    fn old_count(&self) -> usize {
        self.hunk.lines.iter().take(self.count).filter(|line| line.mark != HunkMark::Add).count()
    }
}

struct HunkPlacer<'a> {
    path: &'a str,
    blocks: SearchableLines<'a>,
    placed: Vec<PlacedHunk<'a>>,
    /// Where the last hunk ends.
    cursor: usize,
    /// How far the last hunk stood from where it said.
    drift: isize,
}

impl<'a> HunkPlacer<'a> {
    fn place(&mut self, hunk: &'a PatchHunk) -> Result<PlacedHunk<'a>, PatchError> {
        let after_anchors = self.after_anchors(hunk)?;
        let old: Vec<&str> = hunk
            .lines
            .iter()
            .filter(|line| line.mark != HunkMark::Add)
            .map(|line| line.content.as_str())
            .collect();
        let count = hunk.lines.len();
        if old.is_empty() {
            let start = self.place_of_addition(hunk, after_anchors)?;
            return Ok(PlacedHunk { hunk, count, start, fit: HunkFit::exact() });
        }
        if let Some((start, fit)) = self.find(hunk, &old, after_anchors)? {
            return Ok(PlacedHunk { hunk, count, start, fit });
        }
        // A blank line at the end of a hunk is often the patch's and not the file's.
        let ends_blank =
            hunk.lines.last().is_some_and(|line| line.mark == HunkMark::Keep && line.content.is_empty());
        if let [shorter @ .., _] = old.as_slice()
            && ends_blank
            && !shorter.is_empty()
            && let Some((start, fit)) = self.find(hunk, shorter, after_anchors)?
        {
            return Ok(PlacedHunk { hunk, count: count - 1, start, fit });
        }
        let nearest = nearest(&self.blocks.lines, &old);
        let form = self.other_form(hunk);
        Err(PatchProblem::NoMatch { path: self.path.to_owned(), is_at_end: hunk.is_at_end, form, nearest }
            .at(hunk.line))
    }

    /// Whether the old lines are there in another Unicode form.
    fn other_form(&self, hunk: &PatchHunk) -> Option<MismatchHint> {
        let lines = |lines: &mut dyn Iterator<Item = &str>| -> String {
            lines.flat_map(|line| [line, "\n"]).collect()
        };
        let old = hunk.lines.iter().filter(|line| line.mark != HunkMark::Add);
        let old = lines(&mut old.map(|line| line.content.as_str()));
        let text = lines(&mut self.blocks.lines.iter().map(|line| line.content));
        line_in_other_form(&text, &old).map(MismatchHint::OtherForm)
    }

    /// The line after the anchors, if the hunk has any.
    fn after_anchors(&self, hunk: &PatchHunk) -> Result<Option<usize>, PatchError> {
        let mut at = None;
        for anchor in &hunk.anchors {
            let from = at.unwrap_or(self.cursor);
            let find = |likeness| self.blocks.find(&[anchor], likeness, from, 1).first().copied();
            let found = [LineMatchMode::Exact, LineMatchMode::Folded, LineMatchMode::IgnoreIndent]
                .into_iter()
                .find_map(find);
            let Some(line) = found else {
                let nearest = nearest(&self.blocks.lines, &[anchor]);
                let anchor = super::patch::quote(anchor);
                let problem =
                    PatchProblem::NoAnchor { path: self.path.to_owned(), anchor, after: from, nearest };
                return Err(problem.at(hunk.line));
            };
            at = Some(line + 1);
        }
        Ok(at)
    }

    /// Where lines go that come with none around them: after the line that is named or numbered, or to the end.
    fn place_of_addition(&self, hunk: &PatchHunk, after_anchors: Option<usize>) -> Result<usize, PatchError> {
        let end = self.blocks.lines.len();
        let start = match (hunk.is_at_end, after_anchors, hunk.number) {
            (true, _, _) => end,
            (_, Some(line), _) => line,
            (_, _, Some(number)) => number,
            _ => end,
        };
        if start > end {
            let nearest = shown(&self.blocks.lines, end.saturating_sub(MAX_SHOWN_PLACES), MAX_SHOWN_PLACES);
            let problem =
                PatchProblem::NoMatch { path: self.path.to_owned(), is_at_end: false, form: None, nearest };
            return Err(problem.at(hunk.line));
        }
        Ok(start)
    }

    fn find(
        &mut self,
        hunk: &PatchHunk,
        old: &[&str],
        anchored: Option<usize>,
    ) -> Result<Option<(usize, HunkFit)>, PatchError> {
        for likeness in [LineMatchMode::Exact, LineMatchMode::Folded, LineMatchMode::IgnoreIndent] {
            if likeness == LineMatchMode::IgnoreIndent
                && !has_letters(&old.concat(), MIN_RECOGNIZABLE_LETTERS)
            {
                continue;
            }
            let Some(start) = self.choose(hunk, old, anchored, likeness)? else { continue };
            let fit = HunkFit::between(old, &self.blocks.contents(start, old.len()), likeness);
            let holds = |fit: &HunkFit| hunk.lines.iter().all(|line| fit.line(&line.content).is_some());
            if let Some(fit) = fit.filter(holds) {
                return Ok(Some((start, fit)));
            }
        }
        Ok(None)
    }

    /// The place that a hunk means, of all that look like it.
    fn choose(
        &mut self,
        hunk: &PatchHunk,
        old: &[&str],
        anchored: Option<usize>,
        likeness: LineMatchMode,
    ) -> Result<Option<usize>, PatchError> {
        let end = self.blocks.lines.len();
        if hunk.is_at_end {
            let start = end.checked_sub(old.len());
            return Ok(start.filter(|start| self.blocks.find(old, likeness, *start, 1) == [*start]));
        }
        if let Some(start) = self.at_number(hunk, old, likeness) {
            return Ok(Some(start));
        }
        if let Some(after) = anchored {
            let first = |from: usize| self.blocks.find(old, likeness, from, 1).first().copied();
            // Some repeat the anchor as the first line of the hunk.
            let repeated = || first(after - 1).filter(|start| *start == after - 1);
            if likeness != LineMatchMode::IgnoreIndent {
                return Ok(first(after).or_else(repeated));
            }
        }
        let from = self.blocks.find(old, likeness, anchored.unwrap_or(self.cursor), MAX_SHOWN_PLACES);
        let places = if from.is_empty() {
            self.free(&self.blocks.find(old, likeness, 0, MAX_HUNK_PLACES), old.len())
        } else {
            from
        };
        match places.as_slice() {
            [] => Ok(None),
            [start] => {
                self.note_drift(hunk, *start);
                Ok(Some(*start))
            }
            _ => {
                let places: Vec<NearestLine> = places
                    .iter()
                    .take(MAX_SHOWN_PLACES)
                    .flat_map(|line| shown(&self.blocks.lines, *line, 1))
                    .collect();
                Err(PatchProblem::Ambiguous { path: self.path.to_owned(), places }.at(hunk.line))
            }
        }
    }

    /// The place that the hunk's number means, as it is or moved like the last hunk.
    fn at_number(&self, hunk: &PatchHunk, old: &[&str], likeness: LineMatchMode) -> Option<usize> {
        let said = hunk.number?.checked_sub(1)?;
        let places = [Some(said), said.checked_add_signed(self.drift)];
        places.into_iter().flatten().find(|start| {
            *start >= self.cursor && self.blocks.find(old, likeness, *start, 1).first() == Some(start)
        })
    }

    fn note_drift(&mut self, hunk: &PatchHunk, start: usize) {
        let said = hunk.number.and_then(|number| number.checked_sub(1)).unwrap_or(start);
        self.drift = start.checked_signed_diff(said).unwrap_or_default();
    }

    /// Those places where no hunk stands yet.
    fn free(&self, places: &[usize], count: usize) -> Vec<usize> {
        let is_free = |start: &usize| {
            self.placed
                .iter()
                .all(|other| other.start + other.old_count() <= *start || start + count <= other.start)
        };
        places.iter().copied().filter(is_free).collect()
    }

    fn check_overlaps(&self) -> Result<(), PatchError> {
        let pairs = self.placed.iter().zip(self.placed.iter().skip(1));
        for (one, next) in pairs {
            if one.start + one.old_count() > next.start {
                return Err(PatchProblem::Overlap(self.path.to_owned()).at(next.hunk.line));
            }
        }
        Ok(())
    }

    fn write(&self, ending: &str) -> String {
        let mut sheet = FileTextBuilder::new(ending);
        let mut cursor = 0;
        for placed in &self.placed {
            self.copy(&mut sheet, cursor, placed.start);
            cursor = placed.start;
            for line in placed.hunk.lines.iter().take(placed.count) {
                match line.mark {
                    HunkMark::Add => {
                        let content = placed.fit.line(&line.content).unwrap_or_else(|| line.content.clone());
                        let near = || self.blocks.ending_near(cursor).unwrap_or(ending);
                        sheet.push(&content, line.ending.unwrap_or_else(near));
                    }
                    HunkMark::Keep => {
                        self.copy(&mut sheet, cursor, cursor + 1);
                        cursor += 1;
                    }
                    HunkMark::Remove => cursor += 1,
                }
            }
        }
        self.copy(&mut sheet, cursor, self.blocks.lines.len());
        sheet.into_text()
    }

    fn copy(&self, sheet: &mut FileTextBuilder<'_>, from: usize, to: usize) {
        for line in self.blocks.lines.iter().take(to).skip(from) {
            sheet.push(line.content, line.ending);
        }
    }
}
