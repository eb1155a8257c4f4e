//! What git tracks, from the file in which it remembers that: `index`, in the versions 2 to 4.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;

use crate::files::join;
use crate::stat::{FileStat, FileTime};

/// The name of an object.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ObjectId {
    bytes: [u8; 32],
    /// There are many: a byte is enough.
    length: u8,
}

/// Of SHA-1 or of SHA-256, in bytes.
type ObjectIdLength = usize;
const OBJECT_ID_LENGTHS: [ObjectIdLength; 2] = [20, 32];

/// So much of an index is read at once.
const INDEX_READ_BYTES: usize = 128 << 10;
/// No system has longer paths.
const MAX_INDEX_PATH_BYTES: u64 = 16 << 10;

impl ObjectId {
    pub(crate) fn new(name: &[u8]) -> ObjectId {
        let mut bytes = [0; 32];
        bytes.iter_mut().zip(name).for_each(|(to, from)| *to = *from);
        ObjectId { bytes, length: u8::try_from(name.len()).unwrap_or(32) }
    }

    /// Reads what is displayed.
    pub(crate) fn parse(text: &str) -> Option<ObjectId> {
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let (pairs, rest) = text.as_bytes().as_chunks();
        let bytes: Option<Vec<u8>> =
            pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect();
        let bytes = bytes.filter(|bytes| rest.is_empty() && OBJECT_ID_LENGTHS.contains(&bytes.len()))?;
        Some(ObjectId::new(&bytes))
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes.iter().take(self.length.into()).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectId({self})")
    }
}

/// A file that git tracks, as it was when git last looked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrackedFile {
    name: Range<usize>,
    pub(crate) object: ObjectId,
    mode: u32,
    modified: FileTime,
    changed: FileTime,
    /// The lower 32 bits of each: there is no more in the index.
    inode: u32,
    size: u32,
    /// The object may not have the bytes of the file: a filter or another line end is between them.
    pub(crate) is_converted: bool,
    /// Git was told not to look at the file, or has not checked it out.
    pub(crate) is_unwatched: bool,
}

impl TrackedFile {
    /// Whether an object of that size could have the bytes of the file.
    pub(crate) fn has_size(&self, size: u64) -> bool {
        self.size == lower_half(size)
    }
}

/// How a file stands to what git has of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrackedStatus {
    Same,
    Changed,
    /// Only its content can tell.
    Unsure(ObjectId),
    NotTracked,
}

/// All files that git tracks below the root.
///
/// There are many, so they are kept by folder, as whoever asks for a file has just asked for its neighbours.
#[derive(Debug, Default)]
pub(crate) struct TrackedFiles {
    /// In the order of their names, as git has them. A folder with nothing but folders in it has none.
    folders: HashMap<String, Vec<TrackedFile>, foldhash::fast::RandomState>,
    /// The names of all files, one after the other.
    names: String,
    /// Repositories within that belong to this one.
    submodules: Vec<String>,
    has_conflicts: bool,
    /// When the index was written. What was modified at that moment or later may have changed since, unnoticed by git.
    written: FileTime,
}

impl TrackedFiles {
    /// Reads an index; none if it is not one that is understood. `prefix` is the way from the top of the repository to
    /// the root.
    pub(crate) fn read(
        index: &mut (impl Read + Seek),
        prefix: &str,
        written: FileTime,
    ) -> io::Result<Option<TrackedFiles>> {
        let size = index.seek(SeekFrom::End(0))?;
        for id_length in OBJECT_ID_LENGTHS {
            index.seek(SeekFrom::Start(0))?;
            let checksum = u64::try_from(id_length).unwrap_or(u64::MAX);
            let Some(content) = size.checked_sub(checksum) else { continue };
            let mut reader =
                GitIndexReader::new(BufReader::with_capacity(INDEX_READ_BYTES, &mut *index), content);
            if let Some(tracked) = parse(&mut reader, id_length, prefix) {
                return Ok(Some(TrackedFiles { written, ..tracked }));
            }
        }
        Ok(None)
    }

    /// Repositories within that belong to this one.
    pub(crate) fn submodules(&self) -> &[String] {
        &self.submodules
    }

    /// Whether files are in the middle of a merge.
    pub(crate) fn has_conflicts(&self) -> bool {
        self.has_conflicts
    }

    /// How many files there are.
    pub(crate) fn count(&self) -> usize {
        self.folders.values().map(Vec::len).sum()
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.get(path).is_some()
    }

    /// The folders with tracked files, and those around them.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &str> {
        self.folders.keys().map(String::as_str)
    }

    pub(crate) fn has_below(&self, folder: &str) -> bool {
        self.folders.contains_key(folder)
    }

    /// Whether a file of that name is tracked in some folder.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.folders.values().any(|files| self.find(files, name).is_ok())
    }

    pub(crate) fn get(&self, path: &str) -> Option<&TrackedFile> {
        let (folder, name) = split(path);
        let files = self.folders.get(folder)?;
        files.get(self.find(files, name).ok()?)
    }

    pub(crate) fn get_mut(&mut self, path: &str) -> Option<&mut TrackedFile> {
        let (folder, name) = split(path);
        let at = self.find(self.folders.get(folder)?, name).ok()?;
        self.folders.get_mut(folder)?.get_mut(at)
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = String> {
        let name = |file: &TrackedFile| self.names.get(file.name.clone()).unwrap_or_default();
        self.folders
            .iter()
            .flat_map(move |(folder, files)| files.iter().map(move |file| join(folder, name(file))))
    }

    /// The object that has the bytes of a file, if git knows for sure.
    pub(crate) fn object_of(&self, path: &str, stat: &FileStat) -> Option<ObjectId> {
        let file = self.get(path)?;
        let is_same = !file.is_converted
            && file.modified < self.written
            && (file.modified, file.changed) == (stat.modified, stat.changed)
            && (file.inode, file.size) == (lower_half(stat.inode), lower_half(stat.size))
            && is_same_kind(file.mode, stat.mode.bits());
        is_same.then_some(file.object)
    }

    /// How a file stands to what git has of it.
    pub(crate) fn status_of(&self, path: &str, stat: &FileStat) -> TrackedStatus {
        let Some(file) = self.get(path) else { return TrackedStatus::NotTracked };
        if file.is_unwatched || self.object_of(path, stat).is_some() {
            return TrackedStatus::Same;
        }
        // Git writes no size where it is not sure of the content.
        let is_size_known = file.size > 0;
        if !is_same_kind(file.mode, stat.mode.bits()) || (is_size_known && !file.has_size(stat.size)) {
            return TrackedStatus::Changed;
        }
        TrackedStatus::Unsure(file.object)
    }

    /// The paths of the files that should be there.
    pub(crate) fn watched_paths(&self) -> impl Iterator<Item = String> {
        self.paths().filter(|path| self.get(path).is_some_and(|file| !file.is_unwatched))
    }

    /// Whether the index still names this object for the path.
    pub(crate) fn still_names(&self, path: &str, object: ObjectId) -> bool {
        self.get(path).is_some_and(|file| file.object == object)
    }

    /// Where a name is among the files of a folder.
    fn find(&self, files: &[TrackedFile], name: &str) -> Result<usize, usize> {
        files.binary_search_by(|file| self.names.get(file.name.clone()).unwrap_or_default().cmp(name))
    }

    /// The files of a folder, to add to them. Where one folder is known, those around it are.
    fn files_of(&mut self, folder: &str) -> &mut Vec<TrackedFile> {
        let mut around = folder;
        while !self.folders.contains_key(around) {
            self.folders.insert(around.to_owned(), Vec::new());
            around = split(around).0;
        }
        self.folders.entry(folder.to_owned()).or_default()
    }
}

/// The folder of a path, which is empty at the root, and the name in it.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

#[expect(clippy::cast_possible_truncation, reason = "it is what git does")]
fn lower_half(number: u64) -> u32 {
    number as u32
}

/// git knows files that can be executed, those that can't, and links.
fn is_same_kind(tracked: u32, mode: u32) -> bool {
    const TYPE: u32 = 0o170_000;
    const EXECUTE: u32 = 0o100;
    let is_file = tracked & TYPE == 0o100_000;
    tracked & TYPE == mode & TYPE && (!is_file || tracked & EXECUTE == mode & EXECUTE)
}

/// Bytes that are read from their start, never more than a piece of them at once: what lies by the name of an index may
/// be of any size.
struct GitIndexReader<R> {
    source: R,
    /// How much there is before the checksum.
    left: u64,
    /// What was last taken.
    piece: Vec<u8>,
}

impl<R: BufRead> GitIndexReader<R> {
    fn new(source: R, left: u64) -> GitIndexReader<R> {
        GitIndexReader { source, left, piece: Vec::new() }
    }

    /// The next bytes. Only few are taken at once.
    fn take(&mut self, count: usize) -> Option<&[u8]> {
        self.left = self.left.checked_sub(u64::try_from(count).ok()?)?;
        self.piece.resize(count, 0);
        self.source.read_exact(&mut self.piece).ok()?;
        Some(&self.piece)
    }

    fn skip(&mut self, count: u64) -> Option<()> {
        self.left = self.left.checked_sub(count)?;
        let skipped = io::copy(&mut (&mut self.source).take(count), &mut io::sink()).ok()?;
        (skipped == count).then_some(())
    }

    fn number(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_be_bytes)
    }

    fn short(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_be_bytes)
    }

    /// Adds what comes up to a zero byte, which is taken too.
    fn text(&mut self, to: &mut Vec<u8>) -> Option<()> {
        let start = to.len();
        let most = MAX_INDEX_PATH_BYTES.min(self.left);
        let length = (&mut self.source).take(most).read_until(0, to).ok()?;
        self.left = self.left.checked_sub(u64::try_from(length).ok()?)?;
        let is_whole = to.len() > start && to.pop() == Some(0);
        is_whole.then_some(())
    }

    /// A number in as many bytes as it needs, as git packs offsets.
    fn packed(&mut self) -> Option<usize> {
        let mut value: usize = 0;
        for place in 0..5 {
            let byte = usize::from(*self.take(1)?.first()?);
            value = if place == 0 { byte & 127 } else { ((value + 1) << 7) + (byte & 127) };
            if byte & 128 == 0 {
                return Some(value);
            }
        }
        None
    }
}

/// All files of an index whose objects' names have that length. An index that is divided in two is not read.
fn parse<R: BufRead>(
    reader: &mut GitIndexReader<R>,
    id_length: ObjectIdLength,
    prefix: &str,
) -> Option<TrackedFiles> {
    let is_index = reader.take(4)? == b"DIRC";
    let (version, count) = (reader.number()?, reader.number()?);
    if !is_index || !(2..=4).contains(&version) {
        return None;
    }
    let mut tracked = TrackedFiles::default();
    // Neighbours come one after the other.
    let (mut folder, mut files) = (String::new(), Vec::new());
    let mut path = Vec::new();
    for _ in 0..count {
        let entry = parse_entry(reader, version, id_length, &mut path)?;
        // A name that can't be said can't be asked for either.
        let Some(path) = std::str::from_utf8(&path).ok().and_then(|path| below(prefix, path)) else {
            continue;
        };
        let mut file = match entry {
            GitIndexEntry::File(file) => file,
            GitIndexEntry::Submodule => {
                tracked.submodules.push(path.to_owned());
                continue;
            }
            GitIndexEntry::Conflict => {
                tracked.has_conflicts = true;
                continue;
            }
            GitIndexEntry::Folder => continue,
        };
        let (its_folder, name) = split(path);
        if its_folder != folder {
            tracked.files_of(&folder).append(&mut files);
            its_folder.clone_into(&mut folder);
        }
        let start = tracked.names.len();
        tracked.names.push_str(name);
        file.name = start..tracked.names.len();
        files.push(file);
    }
    tracked.files_of(&folder).append(&mut files);
    skip_extensions(reader)?;
    Some(tracked)
}

fn below<'p>(prefix: &str, path: &'p str) -> Option<&'p str> {
    if prefix.is_empty() { Some(path) } else { path.strip_prefix(prefix)?.strip_prefix('/') }
}

/// What an index has.
enum GitIndexEntry {
    /// Not yet with where its name is kept.
    File(TrackedFile),
    Conflict,
    Submodule,
    /// One that is not checked out.
    Folder,
}

/// Reads what an index has next, and its path; none if there is no such thing.
fn parse_entry<R: BufRead>(
    reader: &mut GitIndexReader<R>,
    version: u32,
    id_length: ObjectIdLength,
    path: &mut Vec<u8>,
) -> Option<GitIndexEntry> {
    const IS_TRUSTED: u16 = 0x8000;
    const IS_EXTENDED: u16 = 0x4000;
    const STAGE: u16 = 0x3000;
    const IS_SKIPPED: u16 = 0x4000;
    let start = reader.left;
    let facts: [u8; 40] = reader.take(40)?.try_into().ok()?;
    let number = |at: usize| {
        facts.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes)
    };
    let moment = |at: usize| FileTime::new(number(at).into(), number(at + 4).into());
    let (changed, modified) = (moment(0), moment(8));
    let (inode, mode, size) = (number(20), number(24), number(36));
    let object = ObjectId::new(reader.take(id_length)?);
    let flags = reader.short()?;
    let is_extended = version >= 3 && flags & IS_EXTENDED != 0;
    let more = if is_extended { reader.short()? } else { 0 };
    if version == 4 {
        let shared = path.len().checked_sub(reader.packed()?)?;
        path.truncate(shared);
        reader.text(path)?;
    } else {
        path.clear();
        reader.text(path)?;
        let length = start - reader.left;
        reader.skip(length.next_multiple_of(8) - length)?;
    }
    if path.is_empty() {
        return None;
    }
    let is_unwatched = flags & IS_TRUSTED != 0 || more & IS_SKIPPED != 0;
    match mode {
        _ if flags & STAGE != 0 => Some(GitIndexEntry::Conflict),
        0o100_644 | 0o100_755 | 0o120_000 => Some(GitIndexEntry::File(TrackedFile {
            name: 0..0,
            object,
            mode,
            modified,
            changed,
            inode,
            size,
            is_converted: false,
            is_unwatched,
        })),
        0o160_000 => Some(GitIndexEntry::Submodule),
        _ => Some(GitIndexEntry::Folder),
    }
}

/// What comes after the files must end where the index does, or it was not read rightly.
fn skip_extensions<R: BufRead>(reader: &mut GitIndexReader<R>) -> Option<()> {
    while reader.left > 0 {
        let name: [u8; 4] = reader.take(4)?.try_into().ok()?;
        let size = reader.number()?;
        // The other files are in another index.
        if !name.iter().all(u8::is_ascii_alphabetic) || name == *b"link" {
            return None;
        }
        reader.skip(size.into())?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::stat::FileMode;

    const LATER: FileTime = FileTime::new(20, 0);

    fn file(mode: u32, stage: u16, path: &str) -> Vec<u8> {
        let numbers = [17, 5, 16, 4, 3, 99, mode, 0, 0, 12];
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|number: &u32| number.to_be_bytes()).collect();
        bytes.extend([7; 20]);
        bytes.extend((stage << 12).to_be_bytes());
        bytes.extend(path.as_bytes());
        bytes.resize((bytes.len() + 8) / 8 * 8, 0);
        bytes
    }

    fn index(files: &[Vec<u8>], extensions: &[u8]) -> Vec<u8> {
        let count = u32::try_from(files.len()).unwrap().to_be_bytes();
        [&b"DIRC\0\0\0\x02"[..], &count, &files.concat(), extensions, &[0; 20]].concat()
    }

    fn read(files: &[Vec<u8>]) -> TrackedFiles {
        read_bytes(&index(files, b""), "").unwrap()
    }

    fn read_bytes(bytes: &[u8], prefix: &str) -> Option<TrackedFiles> {
        TrackedFiles::read(&mut io::Cursor::new(bytes), prefix, LATER).unwrap()
    }

    #[test]
    fn files_are_read_and_nothing_else() {
        let files = [
            file(0o100_644, 0, "a\tb\n.rs"),
            file(0o160_000, 0, "submodule"),
            file(0o100_644, 2, "conflict"),
            file(0o120_000, 0, "link"),
        ];
        let tracked = read(&files);
        assert_eq!(tracked.paths().count(), 2);
        assert_eq!(tracked.submodules(), ["submodule"]);
        assert!(tracked.has_conflicts());
        assert!(tracked.has("link"));
        let first = tracked.get("a\tb\n.rs").unwrap();
        assert_eq!((first.modified, first.changed), (FileTime::new(16, 4), FileTime::new(17, 5)));
        assert_eq!((first.inode, first.size, first.mode), (99, 12, 0o100_644));
        assert_eq!(first.object.to_string(), "07".repeat(20));
    }

    #[test]
    fn extensions_are_skipped_and_a_divided_index_is_not_read() {
        let files = [file(0o100_644, 0, "a")];
        let with = |extensions: &[u8]| read_bytes(&index(&files, extensions), "");
        assert!(with(b"TREE\0\0\0\x03abc").is_some());
        assert!(with(b"TREE\0\0\0\x04abc").is_none());
        assert!(with(b"link\0\0\0\x00").is_none());
    }

    /// It says that it has a million files, and a gigabyte of nothing follows, or one extension of that size.
    #[test]
    fn an_index_of_nothing_is_refused_without_reading_it_all() {
        struct Sparse(io::Cursor<Vec<u8>>, u64);
        impl Read for Sparse {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let read = self.0.read(buffer)?;
                self.1 += buffer.len() as u64;
                assert!(self.1 < 1 << 20, "it is read on and on");
                Ok(if read == 0 { buffer.len() } else { read })
            }
        }
        impl Seek for Sparse {
            fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
                match to {
                    SeekFrom::End(_) => Ok(1 << 30),
                    to => self.0.seek(to),
                }
            }
        }
        for count in [0_u32, 1_000_000] {
            let head = [&b"DIRC\0\0\0\x02"[..], &count.to_be_bytes()].concat();
            let read = TrackedFiles::read(&mut Sparse(io::Cursor::new(head), 0), "", LATER).unwrap();
            assert!(read.is_none(), "{count}");
        }
    }

    #[test]
    fn the_root_may_be_a_folder_of_the_repository() {
        let files = [file(0o100_644, 0, "a/b/c"), file(0o100_644, 0, "a/bb"), file(0o100_644, 0, "d")];
        let tracked = read_bytes(&index(&files, b""), "a/b").unwrap();
        assert_eq!(tracked.paths().collect::<Vec<_>>(), ["c"]);
    }

    #[test]
    fn folders_with_tracked_files_are_known() {
        let tracked =
            read(&[file(0o100_644, 0, "a-b"), file(0o100_644, 0, "a/b/c"), file(0o100_644, 0, "b")]);
        assert!(tracked.has_below("a") && tracked.has_below("a/b"));
        assert!(!tracked.has_below("a-b") && !tracked.has_below("b") && !tracked.has_below("a/b/c"));
    }

    #[test]
    fn a_file_is_found_wherever_its_folder_stands_among_others() {
        // As git orders them: by all bytes of the path.
        let paths = ["a.rs", "a/a", "a/b-c/d", "a/b.rs", "a/b/c", "a/b/e/f/g", "a/c", "b/z", "é/ü"];
        let tracked = read(&paths.map(|path| file(0o100_644, 0, path)));
        assert!(paths.iter().all(|path| tracked.has(path)));
        assert!(["", "a", "a/b", "b", "z", "a/b/e", "a/b/e/f", "a/aa"].iter().all(|path| !tracked.has(path)));
        assert!(tracked.has_below("a/b/e") && tracked.has_below("a/b-c") && !tracked.has_below("a/b/c"));
        assert!(tracked.has_name("g") && tracked.has_name("a.rs") && !tracked.has_name("e"));
        assert_eq!(tracked.paths().collect::<BTreeSet<_>>(), paths.map(str::to_owned).into());
    }

    #[test]
    fn only_what_git_knows_for_sure_has_an_object() {
        let stat = FileStat {
            size: 12,
            modified: FileTime::new(16, 4),
            changed: FileTime::new(17, 5),
            inode: 99,
            mode: FileMode::from_bits(0o100_600),
        };
        let bytes = index(&[file(0o100_644, 0, "a")], b"");
        let tracked = |seconds| {
            TrackedFiles::read(&mut io::Cursor::new(&bytes), "", FileTime::new(seconds, 0)).unwrap().unwrap()
        };
        assert!(tracked(20).object_of("a", &stat).is_some());
        assert!(tracked(16).object_of("a", &stat).is_none(), "written with the index");
        let others = [
            FileStat { size: 13, ..stat },
            FileStat { changed: FileTime::new(18, 5), ..stat },
            FileStat { inode: 98, ..stat },
            FileStat { mode: FileMode::from_bits(0o100_700), ..stat },
            FileStat { mode: FileMode::from_bits(0o120_777), ..stat },
        ];
        assert!(others.iter().all(|stat| tracked(20).object_of("a", stat).is_none()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(
            version in 0u8..6,
            count in any::<u8>(),
            bytes in prop::collection::vec(any::<u8>(), 0..400),
        ) {
            let head = [&b"DIRC\0\0\0"[..], &[version], &[0, 0, 0, count]].concat();
            let _ = read_bytes(&[&head[..], &bytes].concat(), "");
            let _ = read_bytes(&bytes, "");
        }

        #[test]
        fn a_cut_or_damaged_index_is_refused_or_read(at in 0usize..200, byte in any::<u8>()) {
            let mut bytes = index(&[file(0o100_644, 0, "a"), file(0o100_755, 0, "b/c")], b"TREE\0\0\0\x03abc");
            prop_assert!(read_bytes(&bytes[..at.min(bytes.len() - 1)], "").is_none_or(|read| read.paths().count() <= 2));
            let at = at.min(bytes.len() - 1);
            bytes[at] = byte;
            let _ = read_bytes(&bytes, "");
        }
    }
}
