//! What a call did to the files.

use helve_protocol::{BlobId, FileChange, FileChangeKind, UnkeptReason};

use crate::stat::FileMode;
use crate::walk::UnseenFolder;

/// What a path held: a file, or a link with its target as content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSnapshot {
    /// Its type and permissions.
    pub mode: FileMode,
    /// None if it could not be kept.
    pub content: Option<BlobId>,
}

/// One path that was created, changed or deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathEffect {
    /// Relative to the root, with `/`; absolute if outside.
    pub path: String,
    /// None if there was nothing.
    pub before: Option<PathSnapshot>,
    /// None if there is nothing any more.
    pub after: Option<PathSnapshot>,
    /// How many lines there are that were not there before; 0 if a content is not known.
    pub added_lines: u64,
    /// How many lines are gone; 0 if a content is not known.
    pub removed_lines: u64,
}

impl PathEffect {
    /// As it is written down.
    pub fn to_file_change(&self) -> FileChange {
        let change = match (self.before, self.after) {
            (None, _) => FileChangeKind::Added,
            (Some(_), Some(_)) => FileChangeKind::Modified,
            (Some(_), None) => FileChangeKind::Deleted,
        };
        let content = |image: Option<PathSnapshot>| image.and_then(|image| image.content);
        FileChange {
            path: self.path.clone(),
            change,
            added_lines: self.added_lines,
            removed_lines: self.removed_lines,
            before: content(self.before),
            after: content(self.after),
            mode_before: self.before.map(|image| image.mode.bits()),
            mode_after: self.after.map(|image| image.mode.bits()),
        }
    }
}

/// Everything that a call did, and what of it can't be undone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkspaceEffects {
    /// In the order of their paths.
    pub changes: Vec<PathEffect>,
    /// What was changed or deleted and can't be brought back.
    pub not_recoverable: Vec<UnkeptPath>,
    /// Folders that could not be looked into: what happened there is not known.
    pub unseen: Vec<UnseenFolder>,
}

impl WorkspaceEffects {
    /// The changes as they are written down.
    pub fn file_changes(&self) -> Vec<FileChange> {
        self.changes.iter().map(PathEffect::to_file_change).collect()
    }
}

/// A path whose content is not kept, so that a change of it can't be undone. A folder's path ends with `/`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnkeptPath {
    /// Relative to the root, with `/`; absolute if outside.
    pub path: String,
    /// Why it is not kept.
    pub why: UnkeptReason,
}
