//! What a call did to the files.

use std::fmt;

use helve_protocol::{BlobId, Change, FileChange};

use crate::stat::FileMode;
use crate::walk::Unseen;

/// What a path held: a file, or a link with its target as content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    pub mode: FileMode,
    /// None if it could not be kept.
    pub content: Option<BlobId>,
}

/// One path that was created, changed or deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Relative to the root, with `/`; absolute if outside.
    pub path: String,
    /// None if there was nothing.
    pub before: Option<Image>,
    /// None if there is nothing any more.
    pub after: Option<Image>,
    pub added_lines: u64,
    pub removed_lines: u64,
}

impl Effect {
    /// As it is written down.
    pub fn to_file_change(&self) -> FileChange {
        let change = match (self.before, self.after) {
            (None, _) => Change::Added,
            (Some(_), Some(_)) => Change::Modified,
            (Some(_), None) => Change::Deleted,
        };
        let content = |image: Option<Image>| image.and_then(|image| image.content);
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
pub struct Effects {
    /// In the order of their paths.
    pub changes: Vec<Effect>,
    /// What was changed or deleted and can't be brought back.
    pub not_recoverable: Vec<NotKept>,
    /// Folders that could not be looked into: what happened there is not known.
    pub unseen: Vec<Unseen>,
}

impl Effects {
    pub fn file_changes(&self) -> Vec<FileChange> {
        self.changes.iter().map(Effect::to_file_change).collect()
    }
}

/// A path whose content is not kept, so that a change of it can't be undone. A folder's path ends with `/`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NotKept {
    pub path: String,
    pub why: WhyNotKept,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WhyNotKept {
    TooLarge,
    /// The workspace as a whole has more than is kept.
    TooMuch,
    /// Nobody wants anything to be kept.
    NotWanted,
    Ignored,
    Unreadable,
    /// A pipe, a socket, a device.
    Special,
    NotUnicode,
    /// It changed before anything was kept.
    NotReadBefore,
    /// It was in git's objects, and they were removed.
    GoneFromGit,
    /// It is git's own.
    OfGit,
}

impl fmt::Display for WhyNotKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WhyNotKept::TooLarge => "it is too large to be kept",
            WhyNotKept::TooMuch => "the workspace has more than can be kept",
            WhyNotKept::NotWanted => "nothing is kept outside of a session",
            WhyNotKept::Ignored => "it is ignored",
            WhyNotKept::Unreadable => "it could not be read",
            WhyNotKept::Special => "it is neither a file nor a link",
            WhyNotKept::NotUnicode => "its name is not Unicode",
            WhyNotKept::NotReadBefore => "it had not been read before",
            WhyNotKept::OfGit => "it is git's own",
            WhyNotKept::GoneFromGit => "git does not have its content any more",
        })
    }
}
