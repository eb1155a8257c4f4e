//! `write`

use std::fs;
use std::io::Write as _;
use std::path::Path;

use helve_protocol::{ToolClass, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{Context, Done, ToolFailure, TypedTool};

/// Writes files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Write;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The file, relative to the project or absolute.
    path: String,
    /// All that shall be in it.
    content: String,
}

impl TypedTool for Write {
    const NAME: &'static str = "write";
    const DESCRIPTION: &'static str = include_str!("write.md");
    const CLASS: ToolClass = ToolClass::Changes;
    type Input = Input;

    fn intent(&self, input: &Input) -> String {
        format!("write {} ({} lines)", input.path, input.content.lines().count())
    }

    async fn run(&self, input: Input, context: &Context) -> Done {
        let path = context.place(&input.path);
        let existed = path.exists();
        replace(&path, input.content.as_bytes()).map_err(|error| {
            ToolFailure(format!("{} was not written: {error}. Nothing was changed.", path.display()))
        })?;
        let done = if existed { "replaced" } else { "made" };
        let text = format!("{} was {done}: {} lines.", path.display(), input.content.lines().count());
        Ok(ToolOutput { text, ..ToolOutput::default() })
    }
}

/// Whoever looks finds the old content or the new one, whatever happens. A link stays one: what it leads to is written.
fn replace(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if target.is_dir() {
        return Err(std::io::Error::other("it is a folder"));
    }
    let folder = target.parent().ok_or_else(|| std::io::Error::other("it has no folder"))?;
    fs::create_dir_all(folder)?;
    let name = target.file_name().ok_or_else(|| std::io::Error::other("it has no name"))?;
    let new = folder.join(format!(".{}.helve-new", name.to_string_lossy()));
    let written = fs::File::create(&new).and_then(|mut file| {
        file.write_all(content)?;
        if let Ok(old) = target.metadata() {
            file.set_permissions(old.permissions())?;
        }
        file.sync_all()
    });
    let moved = written.and_then(|()| fs::rename(&new, &target));
    if moved.is_err() {
        let _ = fs::remove_file(&new);
    }
    moved
}
