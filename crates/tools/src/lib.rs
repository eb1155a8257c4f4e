//! What the model can do. One file per tool: its typed input, whose schema is derived; its class; and its work. What the
//! model is told about it stands beside it in a `.md` file.
//!
//! Tools never ask and never decide. What goes wrong is told to the model in words that say what to do next
//! ([`ToolFailure`]).

pub mod editing;
mod read;
mod shell;
mod tool;
mod write;

pub use read::Read;
pub use shell::Shell;
pub use tool::{Context, Done, Live, Running, Tool, ToolFailure, TypedTool};
pub use write::Write;
