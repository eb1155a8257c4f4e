//! What the model can do. One file per tool: its typed input, whose schema is derived; its class; and its work. What the
//! model is told about it stands beside it in a `.md` file.
//!
//! - `files`: reading and changing files; `editing` is how texts are matched and changed, without touching a file.
//! - `search`: finding files, and what is in them.
//! - `shell`: running commands, in the foreground and as jobs.
//! - `web`: fetching pages.
//!
//! Tools never ask and never decide. What goes wrong is told to the model in words that say what to do next
//! ([`ToolFailure`]).

mod aside;
mod ask_user;
pub mod editing;
mod files;
mod ground;
mod host;
mod remember;
mod search;
mod shell;
mod todo;
mod tool;
mod web;

pub use aside::is_aside;
pub use ask_user::AskUser;
pub use files::apply_patch::ApplyPatch;
pub use files::edit::Edit;
pub use files::notebook_edit::NotebookEdit;
pub use files::picture::fitted;
pub use files::read::Read;
pub use files::write::Write;
pub use files::{Files, real_path};
pub use ground::{Ground, Shared, Touches};
pub use host::{Host, Nobody, Question, Reply};
pub use remember::Remember;
pub use search::glob::Glob;
pub use search::grep::Grep;
pub use search::list::List;
pub use shell::Shell;
pub use shell::commands::Commands;
pub use shell::fence::{Credential, Fence, FindObstacle, Variables, opened_for};
pub use shell::jobs::Jobs;
pub use shell::private::Private;
pub use shell::shell_input::ShellInput;
pub use shell::shell_kill::ShellKill;
pub use shell::shell_output::ShellOutput;
pub use shell::survey::{Denied, PathTest};
pub use todo::Todo;
pub use tool::{Access, Allows, Context, Done, Hides, Live, Running, Tool, ToolFailure, TypedTool};
pub use web::web_fetch::WebFetch;
