//! Writes files in a project with the tools, again and again, until it is killed. `tests/it/killing.rs` does that.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper of tests fails by panicking")]

#[path = "../tests/it/written_files.rs"]
mod written_files;

use std::sync::Arc;

use helve_testkit::{NoBlobs, sample_id};
use helve_tools::{ApplyPatchTool, SessionFiles, Tool, ToolContext, WriteTool};
use serde_json::{Value, json};
use written_files::{FILES, content, line};

fn main() {
    let mut words = std::env::args().skip(1);
    let (role, root) = (words.next().unwrap(), words.next().unwrap());
    let context = ToolContext::alone(root.into(), sample_id(1), Arc::new(NoBlobs));
    match role.as_str() {
        "write" => write_on_and_on(&context),
        "patch" => patch_on_and_on(&context),
        other => panic!("no role {other}"),
    }
}

/// Replaces one file.
fn write_on_and_on(context: &ToolContext) {
    let tool = WriteTool { files: SessionFiles::for_person().into() };
    for number in 0.. {
        run(&tool, json!({ "path": "f", "content": content(number) }), context);
    }
}

/// Changes all of several files.
fn patch_on_and_on(context: &ToolContext) {
    let tool = ApplyPatchTool { files: SessionFiles::for_person().into() };
    for number in 0.. {
        let update = |name: &str| {
            let [old, new] = [line(number), line(number + 1)];
            format!("*** Update File: {name}\n@@\n-{old}\n+{new}\n")
        };
        let files: String = FILES.iter().map(|name| update(name)).collect();
        let patch = format!("*** Begin Patch\n{files}*** End Patch\n");
        run(&tool, json!({ "patch": patch }), context);
    }
}

fn run(tool: &dyn Tool, input: Value, context: &ToolContext) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(tool.run(input, context)).map_err(|failure| failure.0).unwrap();
}
