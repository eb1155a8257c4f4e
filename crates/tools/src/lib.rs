//! What the model can do. One file per tool: its typed input, whose schema is derived; its class; and its work. What the
//! model is told about it stands beside it in a `.md` file.
//!
//! Tools never ask and never decide. What goes wrong is told to the model in words that say what to do next
//! ([`ToolFailure`]).

mod apply_patch;
mod atomic;
mod edit;
pub mod editing;
mod files;
mod glob;
mod grep;
mod hits;
mod list;
mod notebook;
mod read;
mod shell;
mod telling;
mod tool;
mod walk;
mod write;

pub use apply_patch::ApplyPatch;
pub use edit::Edit;
pub use files::Files;
pub use glob::Glob;
pub use grep::Grep;
pub use list::List;
pub use read::Read;
pub use shell::Shell;
pub use tool::{Context, Done, Live, Running, Tool, ToolFailure, TypedTool};
pub use write::Write;
