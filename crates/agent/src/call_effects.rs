//! What a call did to the files, as events and as words for the model.

use std::path::PathBuf;
use std::sync::MutexGuard;

use helve_protocol::{CallId, FileChange, FilesChanged, IrreversibleChange, one_line};
use helve_workspace::{PathEffect, PathSnapshot, Workspace, WorkspaceEffects};

use crate::change_watcher::CallEffects;

/// The diff in one event has about so many bytes at most.
const MAX_EVENT_DIFF_BYTES: usize = 64 << 10;
/// One event has so many changes at most; the rest follows in others.
const MAX_CHANGES_PER_EVENT: usize = 1_000;
/// The model is told the names of so many files that a call changed.
const MAX_CHANGED_FILES_NAMED: usize = 20;

/// The workspaces while somebody works on them.
pub(crate) type LockedWorkspaces<'a> = Vec<MutexGuard<'a, Workspace>>;
/// What was done, with the number of the workspace.
pub(crate) type NumberedEffects = (usize, WorkspaceEffects);

/// Puts into events what a call, or somebody outside, did.
pub(crate) fn to_call_effects(
    workspaces: &LockedWorkspaces<'_>,
    call: Option<CallId>,
    all: &[NumberedEffects],
) -> CallEffects {
    let (mut changes, mut not_kept, mut diff) = (Vec::new(), Vec::new(), BoundedDiff::default());
    for (number, effects) in all {
        let Some(workspace) = workspaces.get(*number) else { continue };
        // What is not in the project is called by its whole path.
        let name = |path: &str| match number {
            0 => path.to_owned(),
            _ => workspace.root().folder().join(path).to_string_lossy().into_owned(),
        };
        for effect in &effects.changes {
            diff.add(workspace, effect);
            let change = effect.to_file_change();
            changes.push(FileChange { path: name(&change.path), ..change });
        }
        let lost = effects.not_recoverable.iter();
        not_kept.extend(lost.map(|lost| IrreversibleChange { path: name(&lost.path), why: lost.why }));
    }
    let changed = changes.iter().map(|change| change.path.clone()).collect();
    let mut diff = diff.text();
    let mut events = Vec::new();
    let mut rest: &[FileChange] = &changes;
    // What can't be brought back is told even if nothing else is known of it.
    while !rest.is_empty() || !not_kept.is_empty() {
        let (these, others) = rest.split_at(rest.len().min(MAX_CHANGES_PER_EVENT));
        rest = others;
        let (diff, not_kept) = (std::mem::take(&mut diff), std::mem::take(&mut not_kept));
        events.push(FilesChanged { call, changes: these.to_vec(), diff, not_kept }.into());
    }
    CallEffects { events, changed, words: None }
}

/// What the model is told besides a result: which files changed, what of that can't be undone, and where nobody could look.
pub(crate) fn describe_effects(all: &[NumberedEffects], folders: &[PathBuf]) -> Option<String> {
    let name = |number: usize, path: &str| match folders.get(number).filter(|_| number > 0) {
        Some(folder) => one_line(&folder.join(path).to_string_lossy()),
        None => one_line(path),
    };
    let (mut changed, mut lost, mut unseen) = (Vec::new(), Vec::new(), Vec::new());
    for (number, effects) in all {
        changed.extend(effects.changes.iter().map(|change| counted(&name(*number, &change.path), change)));
        let of_lost = effects.not_recoverable.iter();
        lost.extend(of_lost.map(|lost| format!("{} ({})", name(*number, &lost.path), lost.why)));
        unseen.extend(effects.unseen.iter().map(|unseen| name(*number, &unseen.folder)));
    }
    let lines =
        [("files changed", changed), ("changed, and can't be undone", lost), ("not looked into", unseen)];
    let lines: Vec<String> = lines.iter().filter_map(|(what, names)| listed(what, names)).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The diff of many files; bounded.
#[derive(Default)]
struct BoundedDiff {
    text: String,
    left_out: usize,
}

impl BoundedDiff {
    fn add(&mut self, workspace: &Workspace, effect: &PathEffect) {
        match MAX_EVENT_DIFF_BYTES.saturating_sub(self.text.len()) {
            0 => self.left_out += 1,
            room => self.text.push_str(&workspace.diff(effect, room).unwrap_or_default()),
        }
    }

    fn text(mut self) -> String {
        if self.left_out > 0 {
            self.text.push_str(&format!("… and {} more files\n", self.left_out));
        }
        self.text
    }
}

/// Some names in a line; of the others, how many there are.
fn listed(what: &str, names: &[String]) -> Option<String> {
    let more = match names.len().saturating_sub(MAX_CHANGED_FILES_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named: Vec<&str> = names.iter().take(MAX_CHANGED_FILES_NAMED).map(String::as_str).collect();
    (!named.is_empty()).then(|| format!("[{what}: {}{more}]", named.join(", ")))
}

fn counted(name: &str, change: &PathEffect) -> String {
    let is_known = |image: Option<PathSnapshot>| image.is_none_or(|image| image.content.is_some());
    match (change.before, change.after) {
        (None, _) => format!("{name} (new)"),
        (_, None) => format!("{name} (deleted)"),
        (before, after) if is_known(before) && is_known(after) => {
            format!("{name} (+{} -{})", change.added_lines, change.removed_lines)
        }
        _ => name.to_owned(),
    }
}
