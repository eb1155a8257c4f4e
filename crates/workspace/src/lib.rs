//! What is worked on: the files of a project.
//!
//! - [`TextFile`] is a file as text, and [`merge`] brings together what several hands did to one.
//! - [`Root`] is the folder that is worked on.
//! - [`Workspace`] knows what changed in it. [`Workspace::begin`] keeps everything that a command could change,
//!   [`Workspace::end`] says what it did change. [`Workspace::about_to_write`] and [`Workspace::note_written`] are the
//!   same for one path, without a walk.
//! - [`Workspace::refresh`] looks for what others changed meanwhile, and [`Workspace::outside_to_tell`] tells it.
//! - [`Workspace::restore`] puts a path back to what it was.
//! - [`ResolvedPath`] is a path that was opened so that nobody can lead it elsewhere afterwards.
//!
//! What is seen: all files below the root but `.git` and what is ignored (`.ignore`, `.gitignore`, `info/exclude`), unless
//! git tracks it. Of an ignored file it is noticed that it changed, of an ignored folder only that it is gone. Links are not
//! followed. Repositories within are folders like others: their files are kept by content. A folder without files is not
//! part of a workspace, as with git.
//!
//! What is kept: a file that is as in git's objects stays there, held by a private reference for as long as a call
//! could make git forget it; every other file is put into the blobs, up to [`Limits`]. What is not kept is known, and said
//! when it changes.

mod beneath;
mod bounded;
mod diff;
mod effects;
mod error;
mod files;
mod git;
mod held;
mod index;
mod keep;
mod look;
mod merge;
mod notes;
mod outside;
mod restore;
mod root;
mod rules;
mod stat;
mod status;
mod text;
mod tracked;
mod walk;
mod workspace;

#[doc(hidden)]
pub use beneath::do_without_openat2;
pub use beneath::{
    OpenedPath, ResolvedPath, metadata_without_links, names_in, open_without_links, read_link_without_links,
};
pub use diff::one_line;
pub use effects::{Effect, Effects, Image, NotKept, WhyNotKept};
pub use error::WorkspaceError;
pub use git::GitProgram;
pub use merge::{Conflict, Hunk, Merged, NumberedLines, merge};
pub use outside::{NoDiff, Outside, OutsideChange};
pub use restore::Guard;
pub use root::Root;
pub use rules::can_read_ignore_files;
pub use stat::{FileMode, Kind};
pub use status::{GitStatus, StatusQuestion};
pub use text::{Encoding, Endings, Line, NotText, Sheet, TextFile, lines, main_ending, read_lossily};
pub use walk::Unseen;
pub use workspace::{Limits, Setup, Watch, Workspace, Writing};
