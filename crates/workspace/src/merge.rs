//! What two hands did to one text, put together.
//!
//! Lines are compared without their endings, so that an editor that turns every `\n` into `\r\n` is in nobody's way.
//! Changes that touch each other are a conflict, even if no line is in both: what stands between them is no longer
//! there to say in which order they belong.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use similar::{DiffOp, TextDiff};

use crate::text::{FileLine, FileTextBuilder, LineEndings, lines, main_ending};

/// How long two texts are compared.
const MERGE_DIFF_TIMEOUT: Duration = Duration::from_secs(1);

/// What came of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeOutcome {
    /// Both sides are in the text. The hunks are what the user did, where it stands now.
    Clean {
        /// The merged text.
        text: String,
        /// What the user did.
        by_user: Vec<MergeHunk>,
    },
    /// Nothing is merged: both sides changed the same places.
    Conflict(Vec<MergeConflict>),
}

/// Lines in the place of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeHunk {
    /// The lines that stood there.
    pub before: Vec<String>,
    /// The lines that stand there now.
    pub after: NumberedLines,
}

/// A place that both sides changed, each in its own way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeConflict {
    /// What the agent had seen.
    pub seen: NumberedLines,
    /// What the agent wants.
    pub wanted: NumberedLines,
    /// What is there now.
    pub there: NumberedLines,
}

/// Lines without their endings, and the number of the first, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberedLines {
    /// The number of the first line.
    pub first: usize,
    /// The lines.
    pub lines: Vec<String>,
}

/// Merges what the agent wants with what is there now, both made from what the agent had seen.
pub fn merge(seen: &str, wanted: &str, there: &str) -> MergeOutcome {
    let [base, agent, user] = [seen, wanted, there].map(|text| lines(text).collect::<Vec<_>>());
    let stretches = stretches(&base, &agent, &user);
    let conflicts: Vec<MergeConflict> = stretches
        .iter()
        .filter(|stretch| stretch.by == ChangedBy::Conflicting)
        .map(|stretch| MergeConflict {
            seen: numbered(&base, &stretch.base),
            wanted: numbered(&agent, &stretch.agent),
            there: numbered(&user, &stretch.user),
        })
        .collect();
    if !conflicts.is_empty() {
        return MergeOutcome::Conflict(conflicts);
    }
    let mut merged = MergedText::new(seen, there);
    for stretch in &stretches {
        merged.add(stretch, &base, &agent, &user);
    }
    MergeOutcome::Clean { text: merged.sheet.into_text(), by_user: merged.by_user }
}

/// Who changed a stretch of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChangedBy {
    Nobody,
    Agent,
    User,
    /// In the same way.
    Both,
    /// In different ways.
    Conflicting,
}

/// The same place in the three texts.
struct MergeRegion {
    by: ChangedBy,
    base: Range<usize>,
    agent: Range<usize>,
    user: Range<usize>,
}

/// The merged text as it grows.
struct MergedText {
    sheet: FileTextBuilder<'static>,
    /// The user turned all line endings from the one to the other.
    turned: Option<(&'static str, &'static str)>,
    by_user: Vec<MergeHunk>,
}

impl MergedText {
    fn new(seen: &str, there: &str) -> MergedText {
        let turned = match (LineEndings::of(seen), LineEndings::of(there)) {
            (LineEndings::Lf, LineEndings::CrLf) => Some(("\n", "\r\n")),
            (LineEndings::CrLf, LineEndings::Lf) => Some(("\r\n", "\n")),
            _ => None,
        };
        MergedText { sheet: FileTextBuilder::new(main_ending(there)), turned, by_user: Vec::new() }
    }

    fn add(
        &mut self,
        stretch: &MergeRegion,
        base: &[FileLine<'_>],
        agent: &[FileLine<'_>],
        user: &[FileLine<'_>],
    ) {
        let [base, agent, user] = [(base, &stretch.base), (agent, &stretch.agent), (user, &stretch.user)]
            .map(|(all, range)| part(all, range));
        match stretch.by {
            ChangedBy::Nobody => {
                for ((base, agent), user) in base.iter().zip(agent).zip(user) {
                    let ending = if user.ending == base.ending { agent.ending } else { user.ending };
                    self.sheet.push(user.content, ending);
                }
            }
            ChangedBy::Agent => {
                for line in agent {
                    let turned = self.turned.filter(|(from, _)| *from == line.ending);
                    self.sheet.push(line.content, turned.map_or(line.ending, |(_, to)| to));
                }
            }
            ChangedBy::User => {
                let after = NumberedLines { first: self.sheet.lines() + 1, lines: contents(user) };
                self.by_user.push(MergeHunk { before: contents(base), after });
                user.iter().for_each(|line| self.sheet.push(line.content, line.ending));
            }
            ChangedBy::Both | ChangedBy::Conflicting => {
                user.iter().for_each(|line| self.sheet.push(line.content, line.ending))
            }
        }
    }
}

fn part<'a, 'b>(lines: &'b [FileLine<'a>], range: &Range<usize>) -> &'b [FileLine<'a>] {
    lines.get(range.clone()).unwrap_or_default()
}

fn contents(lines: &[FileLine<'_>]) -> Vec<String> {
    lines.iter().map(|line| line.content.to_owned()).collect()
}

fn numbered(lines: &[FileLine<'_>], range: &Range<usize>) -> NumberedLines {
    NumberedLines { first: range.start + 1, lines: contents(part(lines, range)) }
}

/// The three texts, cut into the places where nobody changed anything and those where somebody did.
fn stretches(base: &[FileLine<'_>], agent: &[FileLine<'_>], user: &[FileLine<'_>]) -> Vec<MergeRegion> {
    let mut sides = [MergeSide::new(base, agent), MergeSide::new(base, user)];
    let mut stretches = Vec::new();
    let mut cursor = 0;
    while let Some(start) = sides.iter().filter_map(MergeSide::next_start).min() {
        stretches.push(stretch(
            ChangedBy::Nobody,
            cursor..start,
            sides.each_mut().map(|side| side.keep(start - cursor)),
        ));
        let mut end = start;
        let mut grown = sides.each_ref().map(|_| RegionGrowth::default());
        // Each side's next change may reach further, and then touch the next one of the other.
        while sides.iter_mut().zip(&mut grown).any(|(side, grown)| side.take(&mut end, grown)) {}
        let by = match grown.each_ref().map(|grown| grown.changes) {
            [_, 0] => ChangedBy::Agent,
            [0, _] => ChangedBy::User,
            _ => ChangedBy::Conflicting,
        };
        let [of_agent, of_user] = &mut sides;
        let [by_agent, by_user] = &grown;
        let ranges = [of_agent.go_on(end - start, by_agent), of_user.go_on(end - start, by_user)];
        stretches.push(stretch(by, start..end, ranges));
        if let Some(last) = stretches.last_mut()
            && last.by == ChangedBy::Conflicting
            && contents(part(agent, &last.agent)) == contents(part(user, &last.user))
        {
            last.by = ChangedBy::Both;
        }
        cursor = end;
    }
    let rest = base.len() - cursor;
    stretches.push(stretch(
        ChangedBy::Nobody,
        cursor..base.len(),
        sides.each_mut().map(|side| side.keep(rest)),
    ));
    stretches
}

fn stretch(by: ChangedBy, base: Range<usize>, [agent, user]: [Range<usize>; 2]) -> MergeRegion {
    MergeRegion { by, base, agent, user }
}

/// One side's changes, walked along the base.
struct MergeSide {
    changes: VecDeque<(Range<usize>, Range<usize>)>,
    /// Where we are in this side's text.
    at: usize,
}

/// What one side did in a stretch.
#[derive(Default)]
struct RegionGrowth {
    changes: usize,
    removed: usize,
    added: usize,
}

impl MergeSide {
    fn new(base: &[FileLine<'_>], side: &[FileLine<'_>]) -> MergeSide {
        // Where the time is over, the rest counts as changed: that may make a conflict, and loses nothing.
        let [base, side] =
            [base, side].map(|lines| lines.iter().map(|line| line.content).collect::<Vec<_>>());
        let ops = TextDiff::configure().timeout(MERGE_DIFF_TIMEOUT).diff_slices(&base, &side).ops().to_vec();
        let changes = ops.into_iter().filter(|op| !matches!(op, DiffOp::Equal { .. }));
        MergeSide { changes: changes.map(|op| (op.old_range(), op.new_range())).collect(), at: 0 }
    }

    fn next_start(&self) -> Option<usize> {
        self.changes.front().map(|(base, _)| base.start)
    }

    fn keep(&mut self, lines: usize) -> Range<usize> {
        self.go_on(lines, &RegionGrowth::default())
    }

    fn go_on(&mut self, base_lines: usize, grown: &RegionGrowth) -> Range<usize> {
        let start = self.at;
        self.at = start + base_lines + grown.added - grown.removed;
        start..self.at
    }

    /// Takes the next change if it touches the stretch.
    fn take(&mut self, end: &mut usize, grown: &mut RegionGrowth) -> bool {
        let Some((base, side)) = self.changes.pop_front_if(|(base, _)| base.start <= *end) else {
            return false;
        };
        *end = base.end.max(*end);
        grown.changes += 1;
        grown.removed += base.len();
        grown.added += side.len();
        true
    }
}
