//! `read`

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use helve_protocol::{ToolClass, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{Context, Done, ToolFailure, TypedTool};

/// Reads files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Read;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The file, relative to the project or absolute.
    path: String,
    /// The first line, counted from 1.
    #[serde(default)]
    offset: Option<u32>,
    /// How many lines.
    #[serde(default)]
    limit: Option<u32>,
}

const LINES: usize = 2_000;
const LETTERS_PER_LINE: usize = 2_000;
/// What reaches the model at most.
const BYTES: usize = 48 << 10;
/// A larger file is no text that anybody reads.
const MAX_FILE_BYTES: u64 = 64 << 20;
const MAX_ENTRIES: usize = 500;

impl TypedTool for Read {
    const NAME: &'static str = "read";
    const DESCRIPTION: &'static str = include_str!("read.md");
    const CLASS: ToolClass = ToolClass::Reads;
    type Input = Input;

    fn intent(&self, input: &Input) -> String {
        format!("read {}", input.path)
    }

    async fn run(&self, input: Input, context: &Context) -> Done {
        let path = context.place(&input.path);
        let text = if path.is_dir() { listing(&path)? } else { part(&path, &input)? };
        Ok(ToolOutput { text, ..ToolOutput::default() })
    }
}

fn failure(path: &Path, error: &std::io::Error) -> ToolFailure {
    let shown = path.display();
    ToolFailure(match error.kind() {
        ErrorKind::NotFound => {
            format!("There is no file {shown}. Read its folder to see what is there.")
        }
        ErrorKind::PermissionDenied => format!("{shown} may not be read by this user."),
        _ => format!("{shown} can't be read: {error}."),
    })
}

fn listing(path: &Path) -> Result<String, ToolFailure> {
    let entries = fs::read_dir(path).map_err(|error| failure(path, &error))?;
    let name = |entry: fs::DirEntry| {
        let slash = if entry.file_type().is_ok_and(|kind| kind.is_dir()) { "/" } else { "" };
        format!("{}{slash}", entry.file_name().to_string_lossy())
    };
    let mut names: Vec<String> = entries.filter_map(Result::ok).map(name).collect();
    names.sort();
    let more = names.len().saturating_sub(MAX_ENTRIES);
    names.truncate(MAX_ENTRIES);
    if more > 0 {
        names.push(format!("[{more} more are not shown]"));
    }
    Ok(if names.is_empty() { "[The folder is empty.]".to_owned() } else { names.join("\n") })
}

fn part(path: &Path, input: &Input) -> Result<String, ToolFailure> {
    let facts = path.metadata().map_err(|error| failure(path, &error))?;
    if !facts.is_file() {
        return Err(ToolFailure(format!("{} is neither a file nor a folder.", path.display())));
    }
    if facts.len() > MAX_FILE_BYTES {
        return Err(ToolFailure(format!(
            "{} has {} bytes, which is too much. Use the shell to look at a part of it.",
            path.display(),
            facts.len()
        )));
    }
    let bytes = fs::read(path).map_err(|error| failure(path, &error))?;
    if bytes.iter().take(8_192).any(|byte| *byte == 0) {
        return Err(ToolFailure(format!("{} is not a text file.", path.display())));
    }
    Ok(numbered(&String::from_utf8_lossy(&bytes), input))
}

fn numbered(text: &str, input: &Input) -> String {
    let total = text.lines().count();
    let first = input.offset.map_or(1, |line| line.max(1) as usize);
    let limit = input.limit.map_or(LINES, |lines| (lines as usize).min(LINES));
    if total == 0 {
        return "[The file is empty.]".to_owned();
    }
    if first > total {
        return format!("[The file has only {total} lines.]");
    }
    let mut shown = String::new();
    let mut last = first - 1;
    for (number, line) in text.lines().enumerate().skip(first - 1).take(limit) {
        let cut: String = line.chars().take(LETTERS_PER_LINE).collect();
        let mark = if cut.len() < line.len() { " [cut]" } else { "" };
        let line = format!("{:>6}\t{cut}{mark}\n", number + 1);
        if shown.len() + line.len() > BYTES {
            break;
        }
        shown.push_str(&line);
        last = number + 1;
    }
    if last < total {
        shown.push_str(&format!(
            "[{} of {total} lines follow: read on with offset {}]\n",
            total - last,
            last + 1
        ));
    }
    shown
}
