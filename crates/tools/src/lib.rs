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

mod ask_user;
mod blocking;
pub mod editing;
mod files;
mod host;
mod remember;
mod search;
mod shell;
mod todo;
mod tool;
mod web;
mod workspace_guard;

pub use ask_user::AskUserTool;
pub use blocking::is_tool_thread;
pub use files::apply_patch::ApplyPatchTool;
pub use files::edit::EditTool;
pub use files::notebook_edit::NotebookEditTool;
pub use files::picture::fit_image;
pub use files::read::ReadTool;
pub use files::write::WriteTool;
pub use files::{SessionFiles, real_path};
pub use host::{NoSessionHost, SessionHost, UserQuestion, UserReplyFuture};
pub use remember::RememberTool;
pub use search::glob::GlobTool;
pub use search::grep::GrepTool;
pub use search::list::ListTool;
pub use shell::ShellTool;
pub use shell::commands::{CommandSettings, OutsidePrograms, ProgramLookup};
pub use shell::jobs::BackgroundJobs;
pub use shell::project_storage::ProjectStorage;
pub use shell::sandbox_policy::{
    FolderVariables, ObstacleFinder, ProgramCredential, SandboxPolicy, writable_root_for,
};
pub use shell::shell_input::ShellInputTool;
pub use shell::shell_kill::ShellKillTool;
pub use shell::shell_output::ShellOutputTool;
pub use shell::survey::{DeniedPaths, PathTest};
pub use todo::TodoTool;
pub use tool::{
    AccessTest, FileAccess, HiddenPathTest, LiveOutput, Tool, ToolContext, ToolFailure, ToolFuture,
    ToolOutcome, TypedTool,
};
pub use web::web_fetch::WebFetchTool;
pub use workspace_guard::{ChangeScope, SharedWorkspace, WorkspaceGuard};
