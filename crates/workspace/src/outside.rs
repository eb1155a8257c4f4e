//! What others changed meanwhile, in a form that can be told to a model.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use helve_protocol::one_line;

use crate::diff::is_binary;
use crate::effects::{PathEffect, PathSnapshot};
use crate::error::WorkspaceResult;
use crate::workspace::{Workspace, is_content_known};

/// All diffs together.
const MAX_OUTSIDE_DIFF_BYTES: usize = 100 * 1024;
/// So many changes are named; of the others, how many there are.
const MAX_OUTSIDE_CHANGES_NAMED: usize = 200;
/// So many changes wait to be told. Of more, the oldest are only written down.
const MAX_WAITING_CHANGES: usize = 10_000;
/// Nobody writes lines like this by hand.
const MAX_HANDWRITTEN_LINE_BYTES: usize = 5_000;

/// Files that programs write for programs: that they changed says enough.
const GENERATED_NAMES: [&str; 6] = [
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    "go.sum",
    "packages.lock.json",
    "Package.resolved",
];
const GENERATED_SUFFIXES: [&str; 10] =
    [".lock", ".lockb", ".min.js", ".min.css", ".min.mjs", ".map", ".snap", ".svg", ".pbxproj", ".ipynb"];

/// What others changed since it was last asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutsideReport {
    pub changes: Vec<OutsideChange>,
    /// How many more there are than are named.
    pub left_out: usize,
}

/// What others changed, as it was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutsideEffects {
    pub effects: Vec<PathEffect>,
    /// How many more there were, too many to be remembered.
    pub forgotten: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideChange {
    pub effect: PathEffect,
    pub diff: Result<String, NoDiffReason>,
}

/// Why the diff of a change is not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoDiffReason {
    Generated,
    Binary,
    /// It may hold secrets.
    Hidden,
    /// One of the contents is not known.
    Unknown,
    /// The diffs before it took all the room.
    NoRoom,
}

impl fmt::Display for NoDiffReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoDiffReason::Generated => "generated",
            NoDiffReason::Binary => "binary",
            NoDiffReason::Hidden => "it may hold secrets",
            NoDiffReason::Unknown => "its content before is not known",
            NoDiffReason::NoRoom => "too much to show",
        })
    }
}

/// A diff, or a line that names the path and says why there is none.
impl fmt::Display for OutsideChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match (self.effect.before, self.effect.after) {
            (None, _) => "created",
            (_, None) => "deleted",
            _ => "changed",
        };
        match &self.diff {
            Ok(diff) => f.write_str(diff),
            Err(why) => writeln!(f, "{} was {verb} ({why})", one_line(&self.effect.path)),
        }
    }
}

impl fmt::Display for OutsideReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.changes.iter().try_for_each(|change| change.fmt(f))?;
        match self.left_out {
            0 => Ok(()),
            more => writeln!(f, "… and {more} more files"),
        }
    }
}

impl Workspace {
    /// What others changed since this was last asked, as far as somebody has looked: whatever changed between the calls that
    /// may change something.
    pub fn take_outside_changes(&mut self) -> OutsideEffects {
        self.note();
        let effects = std::mem::take(&mut self.outside);
        OutsideEffects { effects, forgotten: std::mem::take(&mut self.outside_forgotten) }
    }

    /// Changes by others in a form that can be told. Of what is hidden only the names are told.
    pub fn outside_report(
        &self,
        changes: Vec<PathEffect>,
        forgotten: usize,
        hides: &dyn Fn(&Path) -> bool,
    ) -> OutsideReport {
        let left_out = changes.len().saturating_sub(MAX_OUTSIDE_CHANGES_NAMED) + forgotten;
        let mut room = MAX_OUTSIDE_DIFF_BYTES;
        let mut told = Vec::new();
        for effect in changes.into_iter().take(MAX_OUTSIDE_CHANGES_NAMED) {
            // A content that can't be had any more leaves the rest to tell.
            let diff = match hides(&self.files.absolute(&effect.path)) {
                true => Err(NoDiffReason::Hidden),
                false => self.diff_to_tell(&effect, room).unwrap_or(Err(NoDiffReason::Unknown)),
            };
            room = room.saturating_sub(diff.as_ref().map_or(0, String::len));
            told.push(OutsideChange { effect, diff });
        }
        OutsideReport { changes: told, left_out }
    }

    /// [`take_outside_changes`](Workspace::take_outside_changes), told.
    pub fn take_outside_report(&mut self, hides: &dyn Fn(&Path) -> bool) -> OutsideReport {
        let OutsideEffects { effects, forgotten } = self.take_outside_changes();
        self.outside_report(effects, forgotten, hides)
    }

    fn diff_to_tell(
        &self,
        effect: &PathEffect,
        room: usize,
    ) -> WorkspaceResult<Result<String, NoDiffReason>> {
        if is_generated(&effect.path) {
            return Ok(Err(NoDiffReason::Generated));
        }
        if !is_content_known(effect.before) || !is_content_known(effect.after) {
            return Ok(Err(NoDiffReason::Unknown));
        }
        for blob in [effect.before, effect.after]
            .into_iter()
            .flatten()
            .filter_map(|image: PathSnapshot| image.content)
        {
            let content = self.blobs.get(blob)?;
            if is_binary(&content) {
                return Ok(Err(NoDiffReason::Binary));
            }
            if content.split(|byte| *byte == b'\n').any(|line| line.len() > MAX_HANDWRITTEN_LINE_BYTES) {
                return Ok(Err(NoDiffReason::Generated));
            }
        }
        let diff = self.diff(effect, room)?;
        Ok(if diff.len() > room { Err(NoDiffReason::NoRoom) } else { Ok(diff) })
    }

    /// What others changed since this was last asked, to be written down before what the next call did: its story begins
    /// where theirs ends.
    pub fn take_outside_effects(&mut self) -> Vec<PathEffect> {
        std::mem::take(&mut self.unwritten)
    }

    /// Remembers changes by others until they are told and written down.
    pub(crate) fn note_outside(&mut self, changes: Vec<PathEffect>) {
        if changes.is_empty() {
            return;
        }
        add_to_waiting(&mut self.unwritten, changes.clone());
        add_to_waiting(&mut self.outside, changes);
        let surplus = self.outside.len().saturating_sub(MAX_WAITING_CHANGES);
        self.outside.drain(..surplus);
        self.outside_forgotten += surplus;
    }
}

/// Adds changes to those that wait. Two of one path are one, if nothing of ours is between them.
fn add_to_waiting(waiting: &mut Vec<PathEffect>, changes: Vec<PathEffect>) {
    let mut places: HashMap<String, usize> =
        waiting.iter().enumerate().map(|(at, waits)| (waits.path.clone(), at)).collect();
    for change in changes {
        let last = places.get(&change.path).and_then(|at| waiting.get_mut(*at));
        match last {
            Some(last) if last.after == change.before => {
                last.after = change.after;
                last.added_lines += change.added_lines;
                last.removed_lines += change.removed_lines;
            }
            _ => {
                places.insert(change.path.clone(), waiting.len());
                waiting.push(change);
            }
        }
    }
    waiting.retain(|change| change.before != change.after || !is_content_known(change.before));
}

fn is_generated(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    GENERATED_NAMES.contains(&name) || GENERATED_SUFFIXES.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_write_for_programs_is_known_by_its_name() {
        assert!(
            is_generated("Cargo.lock") && is_generated("a/package-lock.json") && is_generated("x.min.js")
        );
        assert!(!is_generated("src/lock.rs") && !is_generated("package.json") && !is_generated("main.js"));
    }
}
