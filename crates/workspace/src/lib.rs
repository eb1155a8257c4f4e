//! What is worked on: the files of a project.
//!
//! - [`TextFile`] is a file as text, and [`merge`] brings together what several hands did to one.
//! - [`WorkspaceRoot`] is the folder that is worked on.
//! - [`Workspace`] knows what changed in it. [`Workspace::begin`] keeps everything that a command could change,
//!   [`Workspace::end`] says what it did change. [`Workspace::about_to_write`] and [`Workspace::note_written`] are the
//!   same for one path, without a walk.
//! - [`Workspace::refresh`] looks for what others changed meanwhile, and [`Workspace::take_outside_report`] tells it.
//! - [`Workspace::restore`] puts a path back to what it was.
//! - [`ResolvedPath`] is a path that was opened so that nobody can lead it elsewhere afterwards.
//!
//! ```
//! use std::fs;
//! use std::sync::Arc;
//!
//! use helve_journal::{Journal, MemoryJournal};
//! use helve_protocol::{Clock, Timestamp};
//! use helve_workspace::{Workspace, WorkspaceLimits, WorkspaceRoot, WorkspaceSetup};
//!
//! struct StoppedClock;
//!
//! impl Clock for StoppedClock {
//!     fn now(&self) -> Timestamp {
//!         Timestamp::from_millis(0)
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let session = MemoryJournal::default().create(helve_testkit::sample_id(1))?;
//! let mut workspace = Workspace::new(WorkspaceSetup {
//!     root: WorkspaceRoot::named(folder.path())?,
//!     blobs: session.blobs(),
//!     clock: Arc::new(StoppedClock),
//!     git: None,
//!     limits: WorkspaceLimits::default(),
//!     notes: None,
//! });
//!
//! let watch = workspace.begin()?;
//! fs::write(folder.path().join("greeting.txt"), "hello\n")?;
//! let effects = workspace.end(watch)?;
//!
//! let paths: Vec<&str> = effects.changes.iter().map(|change| change.path.as_str()).collect();
//! assert_eq!(paths, ["greeting.txt"]);
//! assert_eq!(effects.changes[0].added_lines, 1);
//! # Ok(())
//! # }
//! ```
//!
//! What is seen: all files below the root but `.git` and what is ignored (`.ignore`, `.gitignore`, `info/exclude`), unless
//! git tracks it. Of an ignored file it is noticed that it changed, of an ignored folder only that it is gone. Links are not
//! followed. Repositories within are folders like others: their files are kept by content. A folder without files is not
//! part of a workspace, as with git.
//!
//! What is kept: a file that is as in git's objects stays there, held by a private reference for as long as a call
//! could make git forget it; every other file is put into the blobs, up to [`WorkspaceLimits`]. What is not kept is known, and said
//! when it changes.

#![warn(missing_docs)]

mod bounded_command;
mod diff;
mod effects;
mod error;
mod files;
mod git;
mod git_index;
mod held_references;
mod ignore_rules;
mod index;
mod index_notes;
mod merge;
mod resolved_path;
mod root;
mod stat;
mod status;
mod text;
mod walk;
mod workspace;

pub use effects::{PathEffect, PathSnapshot, UnkeptPath, WorkspaceEffects};
pub use error::WorkspaceError;
pub use git::GitProgram;
pub use ignore_rules::can_read_ignore_files;
pub use merge::{MergeConflict, MergeHunk, MergeOutcome, NumberedLines, merge};
#[doc(hidden)]
pub use resolved_path::disable_openat2;
pub use resolved_path::{
    OpenedPath, ResolvedPath, metadata_without_links, names_in, open_without_links, read_link_without_links,
};
pub use root::WorkspaceRoot;
pub use stat::{FileMode, PathKind};
pub use status::{GitStatus, GitStatusRequest};
pub use text::{
    FileLine, FileTextBuilder, LineEndings, NotTextError, TextEncoding, TextFile, lines, main_ending,
    read_lossily,
};
pub use walk::UnseenFolder;
pub use workspace::{
    ChangeWatch, NoDiffReason, OutsideChange, OutsideEffects, OutsideReport, PendingWrite, RestoreGuard,
    Workspace, WorkspaceLimits, WorkspaceSetup,
};
