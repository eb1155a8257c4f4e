//! `read`

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use helve_protocol::{BlobId, FilePart, ToolAction, ToolClass, ToolOutput};
use helve_workspace::{
    LineEndings, OpenedPath, ResolvedPath, TextEncoding, TextFile, lines, names_in, read_lossily,
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::blocking::run_blocking;
use crate::files::notebook;
use crate::files::picture;
use crate::files::report::counted_lines;
use crate::files::{SessionFiles, ShownLines, explain_link_error, read_bounded, unicode_form_hint};
use crate::{FileAccess, ToolContext, ToolFailure, ToolOutcome, TypedTool};

/// Reads files.
#[derive(Clone, Debug, Default)]
pub struct ReadTool {
    pub files: Arc<SessionFiles>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadInput {
    /// The file, relative to the project or absolute; or output:ID.
    path: String,
    /// The first line, counted from 1.
    #[serde(default)]
    offset: Option<u32>,
    /// How many lines.
    #[serde(default)]
    limit: Option<u32>,
}

/// Before the id of a command's output.
const OUTPUT_PREFIX: &str = "output:";
const MAX_READ_LINES: usize = 2_000;
const MAX_READ_LINE_CHARS: usize = 2_000;
/// What reaches the model at most.
const MAX_READ_OUTPUT_BYTES: usize = 48 << 10;
/// A larger file is no text that anybody reads.
const MAX_READ_FILE_BYTES: u64 = 64 << 20;
/// What providers take of a document, before it is encoded.
const MAX_DOCUMENT_BYTES: usize = 20 << 20;
const MAX_FOLDER_ENTRIES: usize = 500;

impl TypedTool for ReadTool {
    const NAME: &'static str = "read";
    const DESCRIPTION: &'static str = include_str!("read.md");
    const CLASS: ToolClass = ToolClass::Reads;
    type Input = ReadInput;

    fn intent(&self, input: &ReadInput) -> String {
        format!("read {}", input.path)
    }

    fn actions(&self, input: &ReadInput, root: &Path) -> Vec<ToolAction> {
        match input.path.starts_with(OUTPUT_PREFIX) {
            true => Vec::new(),
            false => vec![ToolAction::Read(root.join(&input.path))],
        }
    }

    async fn run(&self, input: ReadInput, context: &ToolContext) -> ToolOutcome {
        let tool = self.clone();
        run_blocking(context, move |context| tool.read(&input, context)).await
    }
}

impl ReadTool {
    fn read(&self, input: &ReadInput, context: &ToolContext) -> ToolOutcome {
        if let Some(id) = input.path.strip_prefix(OUTPUT_PREFIX) {
            return output(id, input, context);
        }
        let place = context
            .resolve(&input.path, FileAccess::Read)
            .map_err(|error| failure(&input.path, None, error))?;
        let path = place.path();
        let failed = |error| failure(&input.path, Some(&place), error);
        let file = match place.open().map_err(failed)? {
            OpenedPath::File(file) => file,
            OpenedPath::Folder(folder) => {
                let text = listing(&folder).map_err(failed)?;
                return Ok(ToolOutput { text, ..ToolOutput::default() });
            }
            OpenedPath::Special => {
                return Err(ToolFailure(format!("{} is neither a file nor a folder.", input.path)));
            }
        };
        let length = file.metadata().map_err(failed)?.len();
        if length > MAX_READ_FILE_BYTES {
            return Err(ToolFailure(format!(
                "{} has {length} bytes, which is too much. Use the shell to look at a part of it.",
                input.path
            )));
        }
        let bytes = read_bounded(&file, MAX_READ_FILE_BYTES).map_err(failed)?;
        if let Some(format) = picture::format_of(&bytes) {
            return picture::output(&input.path, format, &bytes, context);
        }
        if bytes.starts_with(b"%PDF-") {
            return document(&input.path, path, &bytes, context);
        }
        self.text(input, path, &bytes, context)
    }

    fn text(&self, input: &ReadInput, path: &Path, bytes: &[u8], context: &ToolContext) -> ToolOutcome {
        let name = &input.path;
        let text = read_lossily(bytes).map_err(|reason| {
            ToolFailure(format!("{name} can't be shown: {reason}. Use the shell to look at it."))
        })?;
        let is_notebook = path.extension().is_some_and(|kind| kind == "ipynb");
        let cells = if is_notebook && input.offset.is_none() { notebook::cells(&text) } else { None };
        let (mut told, mut shown) = numbered(cells.as_deref().unwrap_or(&text), input);
        if cells.is_some() {
            told.push_str(
                "[These are the notebook's cells. Its text, which edit changes, is shown with offset 1.]\n",
            );
            shown.last = 0;
            shown.total = shown.total.max(1);
        }
        told.push_str(&notes(bytes, &text, shown));
        // What is outside the project is never changed, but remembering it does no harm.
        self.files.saw(path, bytes, shown, &*context.blobs);
        Ok(ToolOutput { text: told, ..ToolOutput::default() })
    }
}

/// A part of a command's output, which is kept under its id.
fn output(id: &str, input: &ReadInput, context: &ToolContext) -> ToolOutcome {
    let id: BlobId = id.parse().map_err(|_| {
        ToolFailure(format!("{id:?} is no id of an output. Copy it whole from the result that names it."))
    })?;
    let bytes = context.blobs.get(id).map_err(|error| {
        ToolFailure(format!("There is no output {id}: {error}. Copy its id from the result that names it."))
    })?;
    let (text, _) = numbered(&wrapped(&String::from_utf8_lossy(&bytes)), input);
    Ok(ToolOutput { text, ..ToolOutput::default() })
}

/// An output with its long lines broken, so that every part of it can be read. No file is shown like that: its lines have
/// the numbers that others know.
pub(crate) fn wrapped(text: &str) -> Cow<'_, str> {
    if !lines(text).any(|line| is_long(line.content)) {
        return Cow::Borrowed(text);
    }
    let mut wrapped = String::with_capacity(text.len() + text.len() / MAX_READ_LINE_CHARS + 1);
    for line in lines(text) {
        let mut rest = line.content;
        while let Some((at, _)) = rest.char_indices().nth(MAX_READ_LINE_CHARS) {
            let (head, after) = rest.split_at_checked(at).unwrap_or((rest, ""));
            wrapped.extend([head, "\n"]);
            rest = after;
        }
        wrapped.extend([rest, line.ending]);
    }
    Cow::Owned(wrapped)
}

fn failure(name: &str, place: Option<&ResolvedPath>, error: io::Error) -> ToolFailure {
    ToolFailure(match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            let form = place.map(|place| unicode_form_hint(place.path())).unwrap_or_default();
            let nearest = place.map(|place| nearest(name, place)).unwrap_or_default();
            let hint = if form.is_empty() { nearest } else { form };
            format!("There is no file {name}.{hint}")
        }
        ErrorKind::PermissionDenied => format!("{name} may not be read by this user."),
        _ => format!("{name} can't be read: {}.", explain_link_error(error)),
    })
}

/// What may have been meant by a path where nothing is.
fn nearest(name: &str, place: &ResolvedPath) -> String {
    const COMPARED: usize = 2_000;
    const ALIKE: f32 = 0.6;
    let path = place.path();
    let Some(folder) = path.ancestors().nth(place.missing_folders().len() + 1) else { return String::new() };
    // Whoever names a path in the project gets one.
    let root = path.ancestors().nth(Path::new(name).components().count()).filter(|_| !name.starts_with('/'));
    let shown = |path: &Path| match root.and_then(|root| path.strip_prefix(root).ok()) {
        Some(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
        Some(inside) => inside.display().to_string(),
        None => path.display().to_string(),
    };
    let missing = place.missing_folders().first().map_or(place.name(), OsString::as_os_str);
    let wanted = missing.to_string_lossy().to_lowercase();
    let names = names_in(place.folder()).unwrap_or_default().into_iter().take(COMPARED);
    let names: Vec<String> = names.map(|(name, _)| name.to_string_lossy().into_owned()).collect();
    let small: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
    let small: Vec<&str> = small.iter().map(String::as_str).collect();
    let near = similar::get_close_matches(wanted.as_str(), &small, 3, ALIKE);
    let near = names.iter().filter(|name| near.contains(&name.to_lowercase().as_str()));
    let near: Vec<String> = near.take(3).map(|name| shown(&folder.join(name))).collect();
    match near.as_slice() {
        [] => format!(" Read {} to see what is there.", shown(folder)),
        near => format!(" There is {}.", near.join(", ")),
    }
}

fn listing(folder: &OwnedFd) -> io::Result<String> {
    let name = |(name, is_folder): (OsString, bool)| {
        format!("{}{}", name.to_string_lossy(), if is_folder { "/" } else { "" })
    };
    let mut names: Vec<String> = names_in(folder)?.into_iter().map(name).collect();
    names.sort();
    let more = names.len().saturating_sub(MAX_FOLDER_ENTRIES);
    names.truncate(MAX_FOLDER_ENTRIES);
    if more > 0 {
        names.push(format!("[{more} more are not shown]"));
    }
    Ok(if names.is_empty() { "[The folder is empty.]".to_owned() } else { names.join("\n") })
}

/// The lines that were asked for, with their numbers, as far as they fit.
fn numbered(text: &str, input: &ReadInput) -> (String, ShownLines) {
    let total = lines(text).count();
    let first = input.offset.map_or(1, |line| line.max(1) as usize);
    let limit = input.limit.map_or(MAX_READ_LINES, |lines| (lines as usize).min(MAX_READ_LINES));
    let mut shown = ShownLines { first, last: first - 1, total };
    if total == 0 {
        return ("[The file is empty.]".to_owned(), shown);
    }
    if first > total {
        return (format!("[The file has only {}.]", counted_lines(total)), shown);
    }
    let mut told = String::new();
    let mut last = shown.last;
    for (at, line) in lines(text).enumerate().skip(first - 1).take(limit) {
        let numbered = format!("{:>6}\t{}\n", at + 1, cut(line.content));
        if told.len() + numbered.len() > MAX_READ_OUTPUT_BYTES {
            break;
        }
        told.push_str(&numbered);
        // Whoever saw the beginning of a line has not seen it.
        if shown.last == last && !is_long(line.content) {
            shown.last = at + 1;
        }
        last = at + 1;
    }
    if last < total {
        let left = total - last;
        let (total, next) = (counted_lines(total), last + 1);
        told.push_str(&format!("[{left} of {total} follow: read on with offset {next}]\n"));
    }
    (told, shown)
}

/// Whether only the beginning of a line is shown.
pub(crate) fn is_long(line: &str) -> bool {
    line.len() > MAX_READ_LINE_CHARS && line.chars().nth(MAX_READ_LINE_CHARS).is_some()
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(MAX_READ_LINE_CHARS) {
        Some((at, _)) => {
            let (head, rest) = line.split_at_checked(at).unwrap_or((line, ""));
            format!("{head} [cut: {} letters more]", rest.chars().count())
        }
        None => line.to_owned(),
    }
}

/// What the lines don't show of a file that is not like most.
fn notes(bytes: &[u8], text: &str, shown: ShownLines) -> String {
    let mut notes = Vec::new();
    match TextFile::read(bytes).map(|file| file.encoding) {
        Ok(TextEncoding::Utf8) => {}
        Ok(TextEncoding::Utf8WithBom) => notes.push("begins with a byte order mark"),
        Ok(TextEncoding::Utf16Le) => notes.push("is UTF-16, little-endian"),
        Ok(TextEncoding::Utf16Be) => notes.push("is UTF-16, big-endian"),
        Err(_) => notes.push("has bytes that are no text, shown as \u{fffd}, so it can't be edited"),
    }
    match LineEndings::of(text) {
        LineEndings::CrLf => notes.push("has CRLF line endings"),
        LineEndings::Mixed => notes.push("has mixed line endings"),
        LineEndings::Lf | LineEndings::None => {}
    }
    if shown.total > 0 && shown.last == shown.total && !text.ends_with('\n') {
        notes.push("has no newline at its end");
    }
    if notes.is_empty() { String::new() } else { format!("[The file {}.]\n", notes.join(", ")) }
}

/// A document that models read by themselves.
fn document(name: &str, path: &Path, bytes: &[u8], context: &ToolContext) -> ToolOutcome {
    const KIND: &str = "application/pdf";
    if bytes.len() > MAX_DOCUMENT_BYTES {
        return Err(ToolFailure(format!(
            "{name} ({KIND}) has {} KiB; at most {} KiB can be looked at. Use the shell to make a smaller copy.",
            bytes.len() >> 10,
            MAX_DOCUMENT_BYTES >> 10
        )));
    }
    let content = context
        .blobs
        .put_unsynced(bytes)
        .map_err(|error| ToolFailure(format!("{name} can't be kept to be looked at: {error}.")))?;
    let part = FilePart {
        name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        media_type: KIND.to_owned(),
        content,
    };
    let text = format!("[{name}: {KIND}, {} KiB]", bytes.len().div_ceil(1 << 10));
    Ok(ToolOutput { text, files: vec![part], ..ToolOutput::default() })
}
