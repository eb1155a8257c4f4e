//! What the file tools know together: what was seen of each file, and what that means for changing it.
//!
//! Nothing is overwritten unseen. Whoever replaces a file must have seen all of it; whoever changes a part must know what
//! stands there. What somebody else did to a file since it was seen is kept: both changes are merged, or the tool refuses.

pub(crate) mod apply_patch;
pub(crate) mod atomic;
pub(crate) mod edit;
pub(crate) mod file_attributes;
mod lease;
pub(crate) mod notebook;
pub(crate) mod notebook_cells;
pub(crate) mod notebook_edit;
pub(crate) mod picture;
pub(crate) mod read;
pub(crate) mod report;
pub(crate) mod write;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use helve_protocol::{BlobId, BlobStore};
use helve_workspace::{
    LineEndings, MergeHunk, MergeOutcome, OpenedPath, ResolvedPath, TextFile, lines, main_ending, merge,
};
use rustix::io::Errno;
use similar::DiffOp;

use crate::display::display_path;
use crate::editing::unicode_form::is_other_form;
use crate::files::atomic::{AttributedContent, PlannedChange, commit};
use crate::files::file_attributes::FileAttributes;
use crate::files::read::is_long;
use crate::tool::changed_while_opening;
use crate::{FileAccess, ToolContext, ToolFailure};

/// Larger files are neither remembered nor changed.
pub(crate) const MAX_CHANGED_BYTES: u64 = 16 << 20;
/// So many files are remembered; of more, those that were seen last.
const MAX_REMEMBERED_FILES: usize = 10_000;

/// What was seen of the files of a session. All its file tools share one.
#[derive(Debug, Default)]
pub struct SessionFiles {
    memory: Mutex<FileMemory>,
    /// Held while files are changed: sub-agents change them at the same time.
    changing: Mutex<()>,
    unread: UnreadPolicy,
}

/// What a file counts as that was never read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum UnreadPolicy {
    #[default]
    Unknown,
    /// A person knows their own files.
    Known,
}

/// The contents lie in the blobs, so that this stays small.
#[derive(Debug, Default)]
struct FileMemory {
    seen: HashMap<PathBuf, SeenFile>,
    counter: u64,
}

#[derive(Clone, Copy, Debug)]
struct SeenFile {
    /// The whole file. Its id is its hash.
    content: BlobId,
    extent: SeenExtent,
    /// Grows with every look.
    at: u64,
}

/// How much of a file was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SeenExtent {
    Whole,
    /// The lines from the first to this one, and maybe others.
    UpToLine(usize),
}

/// Some lines of a file that were shown: those between `first` and `last`, counted from 1, of `total`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShownLines {
    pub(crate) first: usize,
    pub(crate) last: usize,
    pub(crate) total: usize,
}

impl SessionFiles {
    /// For tools that a person calls by hand, who need not read a file before they replace it.
    pub fn for_person() -> SessionFiles {
        SessionFiles { unread: UnreadPolicy::Known, ..SessionFiles::default() }
    }

    fn memory(&self) -> MutexGuard<'_, FileMemory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody else changes files as long as this is held.
    pub(crate) fn change(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a file of which some lines were shown.
    pub(crate) fn saw(&self, place: &Path, bytes: &[u8], shown: ShownLines, blobs: &dyn BlobStore) {
        let Some(content) = kept(bytes, blobs) else { return self.forget(place) };
        let mut memory = self.memory();
        let before = memory.seen.get(place).filter(|seen| seen.content == content).map(|seen| seen.extent);
        memory.put(place, content, shown.added_to(before));
    }

    /// Remembers a file that was written.
    pub(crate) fn remember_written(
        &self,
        place: &Path,
        bytes: &[u8],
        extent: SeenExtent,
        blobs: &dyn BlobStore,
    ) {
        match kept(bytes, blobs) {
            Some(content) => self.memory().put(place, content, extent),
            None => self.forget(place),
        }
    }

    /// Whether something was seen there.
    pub(crate) fn knows(&self, place: &Path) -> bool {
        self.memory().seen.contains_key(place)
    }

    pub(crate) fn forget(&self, place: &Path) {
        self.memory().seen.remove(place);
    }

    /// The file at a place in the project, as it stands and as it was seen; nothing if there is none.
    pub(crate) fn open(
        &self,
        place: &WritablePlace,
        context: &ToolContext,
    ) -> Result<Option<ExistingFile>, ToolFailure> {
        let name = &place.name;
        let cannot = |error: io::Error| {
            ToolFailure(format!("{name} can't be read: {}. Nothing was changed.", explain_link_error(error)))
        };
        let file = match place.at.open() {
            Ok(OpenedPath::File(file)) => file,
            Ok(OpenedPath::Folder(_)) => {
                return Err(ToolFailure(format!("{name} is a folder. Nothing was changed.")));
            }
            Ok(OpenedPath::Special) => {
                return Err(ToolFailure(format!("{name} is no ordinary file. Nothing was changed.")));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(cannot(error)),
        };
        let like = FileAttributes::of(&file).map_err(cannot)?;
        let bytes = read_bounded(&file, MAX_CHANGED_BYTES)
            .map_err(|error| ToolFailure(format!("{name} can't be changed: {error}. Use the shell.")))?;
        let seen = self.seen(&place.path, &bytes, &*context.blobs);
        Ok(Some(ExistingFile { place: place.clone(), bytes, like, seen }))
    }

    /// What was seen of a file; nothing if it never was, or if nobody knows any more.
    fn seen(&self, path: &Path, there: &[u8], blobs: &dyn BlobStore) -> Option<(Vec<u8>, SeenExtent)> {
        let seen = self.memory().seen.get(path).copied();
        let known = seen.and_then(|seen| Some((blobs.get(seen.content).ok()?, seen.extent)));
        match self.unread {
            UnreadPolicy::Known => known.or_else(|| Some((there.to_vec(), SeenExtent::Whole))),
            UnreadPolicy::Unknown => known,
        }
    }

    /// Makes all changes or none, and remembers them. Gives what is to be told of that, mostly nothing.
    pub(crate) fn commit(
        &self,
        drafts: Vec<ChangeDraft>,
        context: &ToolContext,
    ) -> Result<String, ToolFailure> {
        let (changes, extents): (Vec<PlannedChange>, Vec<SeenExtent>) =
            drafts.into_iter().map(|draft| (draft.change, draft.extent)).unzip();
        if let Some(change) = changes.iter().find(|change| change.is_too_large()) {
            let name = display_path(&context.root, change.place.path());
            return Err(ToolFailure(format!(
                "{name} would have more than {} MiB, which could not be edited any more. Nothing was changed.",
                MAX_CHANGED_BYTES >> 20
            )));
        }
        if let Some((change, reason)) = changes.iter().find_map(|change| Some((change, change.no_text()?))) {
            let name = display_path(&context.root, change.place.path());
            return Err(ToolFailure(format!(
                "{name} could not be edited any more: {reason}. Write such a character as an escape (`\\0`) where the language has \
                 one, or use the shell. Nothing was changed."
            )));
        }
        let told = |change| [other_names(change, &context.root), other_owner(change, &context.root)];
        let told = changes.iter().flat_map(told).flatten().collect();
        if context.is_trial {
            return Ok(told);
        }
        let places: Vec<&ResolvedPath> = changes.iter().map(|change| &change.place).collect();
        let make = || commit(&changes).map_err(|error| ToolFailure(error.to_string()));
        context.ground.change(&places, make)?;
        for (change, extent) in changes.iter().zip(extents) {
            match &change.after {
                Some(after) => {
                    self.remember_written(change.place.path(), &after.bytes, extent, &*context.blobs)
                }
                None => self.forget(change.place.path()),
            }
        }
        Ok(told)
    }
}

/// What is told of a file with several names: only one of them gets the new text.
fn other_names(change: &PlannedChange, root: &Path) -> Option<String> {
    change.after.as_ref()?;
    let names = change.before.as_ref()?.like.as_ref()?.facts.nlink();
    let name = display_path(root, change.place.path());
    (names > 1).then(|| format!("\n{name} has {names} names (hard links); the others keep the old text."))
}

/// What is told of a file that belonged to somebody else: whoever replaces it can't give it back to them.
fn other_owner(change: &PlannedChange, root: &Path) -> Option<String> {
    change.after.as_ref()?;
    let owner = change.before.as_ref()?.like.as_ref()?.facts.uid();
    let user = rustix::process::geteuid();
    let name = display_path(root, change.place.path());
    let is_others = owner != user.as_raw() && !user.is_root();
    is_others
        .then(|| format!("\n{name} belonged to another user (number {owner}); now it belongs to this one."))
}

fn kept(bytes: &[u8], blobs: &dyn BlobStore) -> Option<BlobId> {
    if bytes.len() as u64 > MAX_CHANGED_BYTES {
        return None;
    }
    // What can't be kept has to be read again; that is all.
    blobs.put_unsynced(bytes).ok()
}

impl FileMemory {
    fn put(&mut self, place: &Path, content: BlobId, extent: SeenExtent) {
        self.counter += 1;
        self.seen.insert(place.to_owned(), SeenFile { content, extent, at: self.counter });
        if self.seen.len() > MAX_REMEMBERED_FILES {
            let oldest = self.seen.iter().min_by_key(|(_, seen)| seen.at).map(|(place, _)| place.clone());
            oldest.and_then(|oldest| self.seen.remove(&oldest));
        }
    }
}

impl ShownLines {
    fn added_to(self, before: Option<SeenExtent>) -> SeenExtent {
        let known = match before {
            Some(SeenExtent::Whole) => return SeenExtent::Whole,
            Some(SeenExtent::UpToLine(line)) => line,
            None => 0,
        };
        let to = if self.first <= known + 1 { known.max(self.last) } else { known };
        if to >= self.total { SeenExtent::Whole } else { SeenExtent::UpToLine(to) }
    }
}

/// A place in the project where a file may be changed.
#[derive(Clone, Debug)]
pub(crate) struct WritablePlace {
    /// As the model calls it.
    pub(crate) name: String,
    /// Where it really is: no link leads further.
    pub(crate) path: PathBuf,
    /// What was found there, open.
    pub(crate) at: ResolvedPath,
    /// Whether the name is that of a link.
    pub(crate) is_link: bool,
}

impl WritablePlace {
    /// The place that a path of the model's means, if it is in the project or in a folder that was added to it.
    pub(crate) fn find(name: &str, context: &ToolContext) -> Result<WritablePlace, ToolFailure> {
        if name.is_empty() || name.ends_with('/') || name == "~" || name.starts_with("~/") {
            return Err(ToolFailure(format!(
                "{name:?} is no name of a file. Give a path in the project, or a whole one. Nothing was changed."
            )));
        }
        let cannot =
            |error: io::Error| ToolFailure(format!("{name} can't be written: {error}. Nothing was changed."));
        let at = context.resolve(name, FileAccess::Write).map_err(cannot)?;
        let root = real_path(&context.root).map_err(cannot)?;
        let path = at.path().to_owned();
        let added = context.added.iter().filter_map(|folder| real_path(folder).ok());
        let is_inside = |folder: PathBuf| path != folder && path.starts_with(&folder);
        let is_granted = context.granted.writes.contains(&path);
        if !is_granted && !is_inside(root.clone()) && !added.into_iter().any(is_inside) {
            return Err(ToolFailure(format!(
                "{name} is not in the project ({}), and files outside it can only be read. Nothing was changed. \
                 (The user can add a folder: --add-dir.)",
                root.display()
            )));
        }
        Ok(WritablePlace { name: name.to_owned(), path, is_link: at.is_link(), at })
    }
}

/// Where a file really is or would be, whichever links lead there.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    Ok(ResolvedPath::new(path)?.path().to_owned())
}

/// What is told of an error: a link where there was none a moment ago has a name of its own.
pub(crate) fn explain_link_error(error: io::Error) -> io::Error {
    let is_link = Errno::from_io_error(&error) == Some(Errno::LOOP);
    if is_link { changed_while_opening() } else { error }
}

/// The bytes of a file, if they are not too many.
pub(crate) fn read_bounded(file: &File, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it has more than {} MiB", most >> 20)));
    }
    Ok(bytes)
}

/// A file as it stands, and as it was seen.
pub(crate) struct ExistingFile {
    pub(crate) place: WritablePlace,
    pub(crate) bytes: Vec<u8>,
    pub(crate) like: FileAttributes,
    seen: Option<(Vec<u8>, SeenExtent)>,
}

impl ExistingFile {
    /// Whether all of it was seen, whatever happened to it since; else what to do.
    pub(crate) fn must_be_known(&self) -> Result<(), ToolFailure> {
        let name = &self.place.name;
        match &self.seen {
            Some((_, SeenExtent::Whole)) => Ok(()),
            Some((seen, SeenExtent::UpToLine(line))) if has_long_line(seen, *line) => {
                Err(ToolFailure(format!(
                    "Line {} of {name} is too long to be shown whole, so nobody knows what would be lost with it. Use edit to \
                 change a part of the file. Nothing was changed.",
                    line + 1
                )))
            }
            Some((_, SeenExtent::UpToLine(line))) => Err(ToolFailure(format!(
                "Only a part of {name} was read. To replace it, read the rest first (offset {}); to change a part of it, \
                 use edit. Nothing was changed.",
                line + 1
            ))),
            None => Err(ToolFailure(format!(
                "{name} exists, and you have not read it. Read it first, so that nothing is lost. Nothing was changed."
            ))),
        }
    }

    /// Whether any of it was seen; else what to do.
    pub(crate) fn must_be_seen(&self) -> Result<(), ToolFailure> {
        let name = &self.place.name;
        let unseen = || ToolFailure(format!("You have not read {name}. Read it first. Nothing was changed."));
        self.seen.is_some().then_some(()).ok_or_else(unseen)
    }

    /// Refuses if somebody changed it since it was seen.
    pub(crate) fn must_be_as_seen(&self) -> Result<(), ToolFailure> {
        match &self.seen {
            Some((seen, _)) if *seen != self.bytes => Err(self.was_changed()),
            _ => Ok(()),
        }
    }

    pub(crate) fn must_be_writable(&self) -> Result<(), ToolFailure> {
        let name = &self.place.name;
        match self.like.facts.permissions().readonly() {
            true => Err(ToolFailure(format!(
                "{name} is read-only, so somebody does not want it changed. Nothing was changed."
            ))),
            false => Ok(()),
        }
    }

    fn was_changed(&self) -> ToolFailure {
        let name = &self.place.name;
        ToolFailure(format!(
            "{name} was changed since you read it. Read it again first. Nothing was changed."
        ))
    }

    /// How much of it was seen.
    pub(crate) fn extent(&self) -> SeenExtent {
        self.seen.as_ref().map_or(SeenExtent::UpToLine(0), |(_, extent)| *extent)
    }

    pub(crate) fn text(&self) -> Result<EditableText, ToolFailure> {
        let name = &self.place.name;
        let there = TextFile::read(&self.bytes).map_err(|reason| {
            ToolFailure(format!(
                "{name} can't be changed: {reason}. Use the shell if it must be. Nothing was changed."
            ))
        })?;
        self.must_be_writable()?;
        let seen = match &self.seen {
            Some((seen, _)) if *seen != self.bytes => match TextFile::read(seen) {
                Ok(file) => Some(file.text),
                Err(_) => return Err(self.was_changed()),
            },
            _ => None,
        };
        Ok(EditableText { name: name.clone(), seen: seen.filter(|seen| *seen != there.text), there })
    }

    /// What is there, for whoever replaces it.
    pub(crate) fn content(&self) -> AttributedContent {
        AttributedContent { bytes: self.bytes.clone(), like: Some(self.like.clone()) }
    }
}

/// Whether the line after so many is one that `read` does not show whole.
fn has_long_line(bytes: &[u8], after: usize) -> bool {
    let text = TextFile::read(bytes).map(|file| file.text).unwrap_or_default();
    lines(&text).nth(after).is_some_and(|line| is_long(line.content))
}

/// The text of a file that is to be changed.
pub(crate) struct EditableText {
    name: String,
    pub(crate) there: TextFile,
    /// What was seen of it, where that is not what is there.
    pub(crate) seen: Option<String>,
}

/// What a file shall say.
pub(crate) struct ResultingText {
    pub(crate) text: String,
    /// What somebody else did meanwhile and is kept.
    pub(crate) by_user: Vec<MergeHunk>,
}

impl ResultingText {
    /// Nobody else did anything.
    pub(crate) fn new(text: impl Into<String>) -> ResultingText {
        ResultingText { text: text.into(), by_user: Vec::new() }
    }

    /// How much the model knows of the file afterwards.
    pub(crate) fn extent(&self, before: SeenExtent) -> SeenExtent {
        if before == SeenExtent::Whole && report::can_be_told_whole(&self.by_user) {
            SeenExtent::Whole
        } else {
            SeenExtent::UpToLine(0)
        }
    }
}

impl EditableText {
    /// What the model made its changes to.
    pub(crate) fn known(&self) -> &str {
        self.seen.as_deref().unwrap_or(&self.there.text)
    }

    /// What is wanted was made of what is there. What somebody else did is in it, and the model has not seen it.
    pub(crate) fn keep_current_changes(&self, text: String) -> ResultingText {
        let Some(seen) = &self.seen else { return ResultingText::new(text) };
        match merge(seen, seen, &self.there.text) {
            MergeOutcome::Clean { by_user, .. } => ResultingText { text, by_user },
            MergeOutcome::Conflict(_) => ResultingText::new(text),
        }
    }

    /// Puts together what is wanted, made of what is known, and what somebody else did meanwhile.
    pub(crate) fn settle(&self, wanted: String) -> Result<ResultingText, ToolFailure> {
        let Some(seen) = &self.seen else { return Ok(ResultingText::new(wanted)) };
        match merge(seen, &wanted, &self.there.text) {
            MergeOutcome::Clean { text, by_user } => Ok(ResultingText { text, by_user }),
            MergeOutcome::Conflict(conflicts) => Err(ToolFailure(format!(
                "{} was changed since you read it, in the same places. Nothing was changed. Read it again, and make your \
                 change to what is there now.{}",
                self.name,
                report::conflicts(&conflicts)
            ))),
        }
    }
}

/// A change that is ready to be made, and how much the model knows of the file afterwards.
pub(crate) struct ChangeDraft {
    pub(crate) change: PlannedChange,
    pub(crate) extent: SeenExtent,
}

impl ChangeDraft {
    /// A file with another text, in its encoding.
    pub(crate) fn of(standing: &ExistingFile, file: &TextFile, settled: &ResultingText) -> ChangeDraft {
        let bytes = file.with(settled.text.clone()).to_bytes();
        ChangeDraft {
            change: PlannedChange {
                place: standing.place.at.clone(),
                before: Some(standing.content()),
                after: Some(AttributedContent { bytes, like: Some(standing.like.clone()) }),
            },
            extent: settled.extent(standing.extent()),
        }
    }
}

/// A whole new text for a file, with its line endings: models write `\n`. Who writes `\r\n` means it.
pub(crate) fn with_endings_of(old: &str, new: String) -> String {
    if new.contains("\r\n") || !old.contains("\r\n") {
        return new;
    }
    let [before, after] = [old, &new].map(|text| lines(text).collect::<Vec<_>>());
    let mut endings = vec![main_ending(old); after.len()];
    for op in report::line_diff(&before, &after) {
        if let DiffOp::Equal { old_index, new_index, len } = op {
            let kept = before.iter().skip(old_index).take(len);
            for (ending, line) in endings.iter_mut().skip(new_index).zip(kept) {
                *ending = if line.ending == "\n" { "\n" } else { *ending };
            }
        }
    }
    let ended = |(line, ending): (&helve_workspace::FileLine<'_>, &'static str)| {
        let ending = if line.ending.is_empty() { "" } else { ending };
        [line.content, ending].concat()
    };
    after.iter().zip(endings).map(ended).collect()
}

/// A text with the line endings of the one that it comes from, if they were all the same and are not any more: a model that
/// writes `\r\n` in a part of a file seldom knows what the rest of it has.
pub(crate) fn with_uniform_endings(before: &str, after: String) -> String {
    match (LineEndings::of(before), LineEndings::of(&after)) {
        (LineEndings::Lf, LineEndings::Mixed) => after.replace("\r\n", "\n"),
        (LineEndings::CrLf, LineEndings::Mixed) => after.replace("\r\n", "\n").replace('\n', "\r\n"),
        _ => after,
    }
}

/// What explains that a file is not there though its name is in the folder's list: it is written in another Unicode form.
pub(crate) fn unicode_form_hint(path: &Path) -> String {
    const COMPARED: usize = 10_000;
    let there = path.ancestors().skip(1).find(|folder| folder.is_dir());
    let missing = there.and_then(|folder| path.strip_prefix(folder).ok()?.iter().next()?.to_str());
    let (Some(folder), Some(missing)) = (there, missing.filter(|name| !name.is_ascii())) else {
        return String::new();
    };
    let mut entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).take(COMPARED);
    match entries.find(|entry| entry.file_name().to_str().is_some_and(|name| is_other_form(name, missing))) {
        Some(entry) => format!(
            " There is {:?} with the same name in another Unicode form: letters with accents are one character in one of them \
             and two in the other (NFC and NFD). Use the shell for it with a pattern (`?` and `*` for these letters), or \
             rename it so.",
            entry.file_name()
        ),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_read_one_after_the_other_add_up() {
        let shown = |first, last| ShownLines { first, last, total: 10 };
        assert_eq!(shown(1, 10).added_to(None), SeenExtent::Whole);
        assert_eq!(shown(1, 4).added_to(None), SeenExtent::UpToLine(4));
        assert_eq!(shown(5, 10).added_to(Some(SeenExtent::UpToLine(4))), SeenExtent::Whole);
        assert_eq!(shown(6, 10).added_to(Some(SeenExtent::UpToLine(4))), SeenExtent::UpToLine(4));
        assert_eq!(shown(2, 3).added_to(Some(SeenExtent::UpToLine(4))), SeenExtent::UpToLine(4));
        assert_eq!(shown(2, 3).added_to(Some(SeenExtent::Whole)), SeenExtent::Whole);
        assert_eq!(shown(3, 10).added_to(None), SeenExtent::UpToLine(0));
        assert_eq!(ShownLines { first: 1, last: 0, total: 0 }.added_to(None), SeenExtent::Whole);
    }

    #[test]
    fn line_endings_are_kept() {
        let ended = |old: &str, new: &str| with_endings_of(old, new.to_owned());
        assert_eq!(ended("a\r\nb\r\n", "a\nc\nb\n"), "a\r\nc\r\nb\r\n");
        assert_eq!(ended("a\r\nb\nc\r\n", "x\na\nb\nc"), "x\r\na\r\nb\nc");
        assert_eq!(ended("a\r\n", "b\r\nc\n"), "b\r\nc\n");
        assert_eq!(ended("a\n", "b\n"), "b\n");
    }

    #[test]
    fn the_memory_is_bounded() {
        let mut memory = FileMemory::default();
        for number in 0..MAX_REMEMBERED_FILES + 10 {
            memory.put(Path::new(&number.to_string()), BlobId::from_hash([0; 32]), SeenExtent::Whole);
        }
        assert_eq!(memory.seen.len(), MAX_REMEMBERED_FILES);
        assert!(!memory.seen.contains_key(Path::new("9")) && memory.seen.contains_key(Path::new("10")));
    }
}
