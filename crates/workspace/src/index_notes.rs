//! What was last seen, noted in a file, so that a later process can tell what happened since: what a call did whose end
//! nobody saw, and what others did between two sessions.
//!
//! The file is a list of entries. A later line about a path replaces an earlier one, so that usually only a few are
//! added. It is not synced: after a power cut there may be less of it, and then less is known. Whatever can't be read is as if
//! it had not been written.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use helve_protocol::{BlobId, UnkeptReason};

use crate::git_index::ObjectId;
use crate::index::{ContentSource, PathMap, PathRecord, WorkspaceIndex};
use crate::stat::{FileMode, FileStat, FileTime};

const NOTES_FIRST_LINE: &str = "helve seen 1";
/// Of a million files.
const MAX_NOTES_BYTES: u64 = 512 << 20;
/// What is added to a file of this size lets it be written anew.
const NOTES_REWRITE_BYTES: u64 = 1 << 20;

/// Which paths have to be noted.
#[derive(Debug)]
enum PendingPaths {
    All,
    Only(HashSet<String>),
}

#[derive(Debug)]
pub(crate) struct IndexNotes {
    path: PathBuf,
    open: PendingPaths,
    /// How long the file was when it was last written anew, and how long it is.
    base: u64,
    length: u64,
}

impl IndexNotes {
    pub(crate) fn new(path: PathBuf) -> IndexNotes {
        IndexNotes { path, open: PendingPaths::All, base: 0, length: 0 }
    }

    /// What an earlier process saw, if it noted that about this folder.
    pub(crate) fn read(&self, root: &Path) -> Option<WorkspaceIndex> {
        let mut bytes = Vec::new();
        File::open(&self.path).ok()?.take(MAX_NOTES_BYTES).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        parse(&text, &head(root))
    }

    /// These paths are not as they were noted.
    pub(crate) fn open<'p>(&mut self, paths: impl IntoIterator<Item = &'p str>) {
        if let PendingPaths::Only(open) = &mut self.open {
            open.extend(paths.into_iter().map(str::to_owned));
        }
    }

    /// Whether it matters which paths are not as they were noted.
    pub(crate) fn wants_names(&self) -> bool {
        matches!(self.open, PendingPaths::Only(_))
    }

    /// Everything has to be noted.
    pub(crate) fn open_all(&mut self) {
        self.open = PendingPaths::All;
    }

    /// Notes what is open.
    pub(crate) fn write(&mut self, root: &Path, index: &WorkspaceIndex) -> io::Result<()> {
        let written = self.write_open(root, index);
        if written.is_err() {
            // Half a line may be there now, or no file at all: the next time it is written anew.
            self.open = PendingPaths::All;
        }
        written
    }

    fn write_open(&mut self, root: &Path, index: &WorkspaceIndex) -> io::Result<()> {
        let is_long = self.length > 2 * self.base + NOTES_REWRITE_BYTES;
        match &self.open {
            PendingPaths::Only(open) if open.is_empty() => return Ok(()),
            PendingPaths::Only(open) if !is_long => {
                let mut text = String::new();
                open.iter().for_each(|path| put(&mut text, path, index.entries.get(path)));
                let mut file = OpenOptions::new().append(true).open(&self.path)?;
                file.write_all(text.as_bytes())?;
                self.length += text.len() as u64;
            }
            _ => {
                let mut text = head(root);
                index.ignored_folders.iter().for_each(|folder| put_name(&mut text, "f", folder));
                index.entries.iter().for_each(|(path, entry)| put(&mut text, path, Some(entry)));
                self.replace(&text)?;
                self.base = text.len() as u64;
                self.length = self.base;
            }
        }
        self.open = PendingPaths::Only(HashSet::new());
        Ok(())
    }

    fn replace(&self, text: &str) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let new = self.path.with_extension("new");
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&new, &self.path)
    }
}

fn head(root: &Path) -> String {
    let mut head = format!("{NOTES_FIRST_LINE}\n");
    put_name(&mut head, "r", &root.to_string_lossy());
    head
}

/// A path may have any character, so its length stands before it.
fn put_name(text: &mut String, what: &str, name: &str) {
    let _ = writeln!(text, "{what} {}:{name}", name.len());
}

fn put(text: &mut String, path: &str, entry: Option<&PathRecord>) {
    let Some(PathRecord { stat, seen, hash, source }) = entry else { return put_name(text, "x", path) };
    let FileStat { size, modified, changed, inode, mode } = stat;
    let times = [modified, changed, seen].map(|moment| moment.nanoseconds());
    let hash = hash.map_or_else(|| "-".to_owned(), |hash| hash.to_string());
    let source = match source {
        ContentSource::Unread => "u".to_owned(),
        ContentSource::Blobs => "b".to_owned(),
        ContentSource::Git(object) => format!("g{object}"),
        ContentSource::Unavailable(why) => format!("n{}", code(*why)),
    };
    let [modified, changed, seen] = times;
    let what = format!("e {size} {modified} {changed} {inode} {} {seen} {hash} {source}", mode.bits());
    put_name(text, &what, path);
}

const UNKEPT_REASON_CODES: [UnkeptReason; 10] = [
    UnkeptReason::TooLarge,
    UnkeptReason::WorkspaceTooLarge,
    UnkeptReason::Ignored,
    UnkeptReason::Unreadable,
    UnkeptReason::Special,
    UnkeptReason::NotUnicode,
    UnkeptReason::NotReadBefore,
    UnkeptReason::GoneFromGit,
    UnkeptReason::GitInternal,
    UnkeptReason::KeepingDisabled,
];

fn code(why: UnkeptReason) -> usize {
    UNKEPT_REASON_CODES.iter().position(|reason| *reason == why).unwrap_or_default()
}

/// The notes as far as they can be read; none if they are not about this folder.
fn parse(text: &str, head: &str) -> Option<WorkspaceIndex> {
    let mut rest = text.strip_prefix(head)?;
    let mut entries = PathMap::<PathRecord>::default();
    let mut ignored_folders = HashSet::new();
    let mut last = None;
    while let Some((what, name, after)) = line(rest) {
        rest = after;
        match what.split_once(' ') {
            None if what == "x" => drop(entries.remove(name)),
            None if what == "f" => drop(ignored_folders.insert(name.to_owned())),
            Some(("e", fields)) => {
                let Some(entry) = entry(fields) else { break };
                last = last.max(Some(entry.seen));
                entries.insert(name.to_owned(), entry);
            }
            _ => break,
        }
    }
    Some(WorkspaceIndex {
        entries,
        ignored_folders,
        seen: Some(last.unwrap_or_default()),
        ..WorkspaceIndex::default()
    })
}

/// The next line: what it is about, the name, and what follows.
fn line(text: &str) -> Option<(&str, &str, &str)> {
    let (before, after) = text.split_once(':')?;
    let (what, length) = before.rsplit_once(' ')?;
    let (name, rest) = after.split_at_checked(length.parse().ok()?)?;
    Some((what, name, rest.strip_prefix('\n')?))
}

fn entry(fields: &str) -> Option<PathRecord> {
    let mut fields = fields.split(' ');
    let mut field = || fields.next();
    let size = field()?.parse().ok()?;
    let modified = FileTime::from_nanoseconds(field()?.parse().ok()?);
    let changed = FileTime::from_nanoseconds(field()?.parse().ok()?);
    let inode = field()?.parse().ok()?;
    let mode = FileMode::from_bits(field()?.parse().ok()?);
    let seen = FileTime::from_nanoseconds(field()?.parse().ok()?);
    let hash = match field()? {
        "-" => None,
        hash => Some(hash.parse::<BlobId>().ok()?),
    };
    let source = field()?;
    let source = match source.split_at_checked(1)? {
        ("u", "") => ContentSource::Unread,
        ("b", "") if hash.is_some() => ContentSource::Blobs,
        ("g", object) => ContentSource::Git(ObjectId::parse(object)?),
        ("n", why) => ContentSource::Unavailable(*UNKEPT_REASON_CODES.get(why.parse::<usize>().ok()?)?),
        _ => return None,
    };
    Some(PathRecord { stat: FileStat { size, modified, changed, inode, mode }, seen, hash, source })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn source() -> impl Strategy<Value = ContentSource> {
        prop_oneof![
            Just(ContentSource::Unread),
            Just(ContentSource::Blobs),
            prop_oneof![Just(20), Just(32)].prop_flat_map(|length| {
                prop::collection::vec(any::<u8>(), length)
                    .prop_map(|bytes| ContentSource::Git(ObjectId::new(&bytes)))
            }),
            prop::sample::select(&UNKEPT_REASON_CODES[..]).prop_map(ContentSource::Unavailable),
        ]
    }

    prop_compose! {
        fn any_entry()(
            size: u64, modified: i64, changed: i64, inode: u64, mode: u32, seen: i64,
            hash in prop::option::of(any::<[u8; 32]>()), source in source(),
        ) -> PathRecord {
            let [modified, changed, seen] = [modified, changed, seen].map(FileTime::from_nanoseconds);
            let stat = FileStat { size, modified, changed, inode, mode: FileMode::from_bits(mode) };
            let hash = hash.map(BlobId::from_hash);
            // What is in the blobs is there by its hash.
            let source = if hash.is_none() && source == ContentSource::Blobs { ContentSource::Unread } else { source };
            PathRecord { stat, seen, hash, source }
        }
    }

    fn any_index() -> impl Strategy<Value = WorkspaceIndex> {
        let entries = prop::collection::hash_map("[a-z /:\\n0-9é]{1,8}", any_entry(), 0..8);
        let folders = prop::collection::hash_set("[a-z /:\\n]{1,8}", 0..4);
        (entries, folders).prop_map(|(entries, ignored_folders)| WorkspaceIndex {
            entries: entries.into_iter().collect(),
            ignored_folders,
            ..WorkspaceIndex::default()
        })
    }

    fn noted(index: &WorkspaceIndex, folder: &Path) -> IndexNotes {
        let mut notes = IndexNotes::new(folder.join("notes"));
        notes.write(Path::new("/r"), index).unwrap();
        notes
    }

    proptest! {
        #[test]
        fn what_is_noted_is_read(first in any_index(), then in any_index()) {
            let folder = tempfile::tempdir().unwrap();
            let mut notes = noted(&first, folder.path());
            let read = notes.read(Path::new("/r")).unwrap();
            prop_assert_eq!(&read.entries, &first.entries);
            prop_assert_eq!(&read.ignored_folders, &first.ignored_folders);
            notes.open(first.entries.keys().chain(then.entries.keys()).map(String::as_str));
            notes.write(Path::new("/r"), &then).unwrap();
            prop_assert_eq!(&notes.read(Path::new("/r")).unwrap().entries, &then.entries);
            prop_assert!(notes.read(Path::new("/other")).is_none());
        }

        #[test]
        fn torn_notes_are_read_as_far_as_they_go(index in any_index(), cut in any::<prop::sample::Index>()) {
            let folder = tempfile::tempdir().unwrap();
            let notes = noted(&index, folder.path());
            let whole = fs::read(&notes.path).unwrap();
            fs::write(&notes.path, &whole[..cut.index(whole.len() + 1)]).unwrap();
            for (path, entry) in notes.read(Path::new("/r")).into_iter().flat_map(|read| read.entries) {
                prop_assert_eq!(Some(&entry), index.entries.get(&path));
            }
        }

        #[test]
        fn any_notes_are_read_without_a_panic(text in "(e|x|f|r|helve|[0-9:é \\n]){0,60}") {
            let _ = parse(&text, "");
        }
    }
}
