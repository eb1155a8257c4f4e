//! What the model can do. One file per tool: its typed input, whose schema is derived; its class; and its work. What the
//! model is told about it stands beside it in a `.md` file.
//!
//! Tools never ask and never decide. What goes wrong is told to the model in words that say what to do next
//! ([`ToolFailure`]).

mod address;
mod apply_patch;
mod aside;
mod ask_user;
mod atomic;
mod cells;
mod charset;
mod cleaned;
mod commands;
mod edit;
pub mod editing;
mod ending;
mod fence;
mod fetching;
mod files;
mod glob;
mod grep;
mod ground;
mod guarded;
mod hits;
mod host;
mod jobs;
mod kept;
mod likeness;
mod list;
mod markup;
mod missed;
mod notebook;
mod notebook_edit;
mod page;
mod picture;
mod printing;
mod read;
mod remember;
mod scratch;
mod shell;
mod shell_input;
mod shell_kill;
mod shell_output;
mod telling;
mod thinned;
mod todo;
mod tool;
mod walk;
mod web_fetch;
mod write;

pub use apply_patch::ApplyPatch;
pub use aside::is_aside;
pub use ask_user::AskUser;
pub use commands::Commands;
pub use edit::Edit;
pub use fence::{Fence, opened_for};
pub use files::{Files, real_path};
pub use glob::Glob;
pub use grep::Grep;
pub use ground::{Ground, Shared, Touches};
pub use host::{Host, Nobody, Question, Reply};
pub use jobs::Jobs;
pub use list::List;
pub use notebook_edit::NotebookEdit;
pub use picture::fitted;
pub use read::Read;
pub use remember::Remember;
pub use shell::Shell;
pub use shell_input::ShellInput;
pub use shell_kill::ShellKill;
pub use shell_output::ShellOutput;
pub use todo::Todo;
pub use tool::{Context, Done, Hides, Live, Running, Tool, ToolFailure, TypedTool};
pub use web_fetch::WebFetch;
pub use write::Write;
