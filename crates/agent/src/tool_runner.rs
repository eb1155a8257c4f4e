//! How the work of a tool is done: by the tool itself, or from a recorded session.

use helve_tools::{Tool, ToolContext, ToolFuture};
use serde_json::Value;

/// Does the work of a tool.
pub(crate) trait ToolRunner: Send + Sync {
    fn run<'a>(&'a self, tool: &'a dyn Tool, input: Value, context: &'a ToolContext) -> ToolFuture<'a>;
}

/// Lets the tool do its work.
pub(crate) struct DirectRunner;

impl ToolRunner for DirectRunner {
    fn run<'a>(&'a self, tool: &'a dyn Tool, input: Value, context: &'a ToolContext) -> ToolFuture<'a> {
        tool.run(input, context)
    }
}
