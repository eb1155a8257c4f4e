//! What git tracks, from the file in which it remembers that: `index`, in the versions 2 to 4.

use std::collections::HashMap;
use std::ffi::CStr;
use std::fmt;
use std::ops::Range;

use crate::files::join;
use crate::stat::{Moment, Stat};

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
    modified: Moment,
    changed: Moment,
    /// The lower 32 bits of each: there is no more in the index.
    inode: u32,
    size: u32,
    /// The object may not have the bytes of the file: a filter or another line end is between them.
    pub(crate) is_converted: bool,
}

impl TrackedFile {
    /// Whether an object of that size could have the bytes of the file.
    pub(crate) fn has_size(&self, size: u64) -> bool {
        self.size == lower_half(size)
    }
}

/// All files that git tracks below the root.
///
/// There are many, so they are kept by folder, as whoever asks for a file has just asked for its neighbours.
#[derive(Debug, Default)]
pub(crate) struct Tracked {
    /// In the order of their names, as git has them. A folder with nothing but folders in it has none.
    folders: HashMap<String, Vec<TrackedFile>, foldhash::fast::RandomState>,
    /// The names of all files, one after the other.
    names: String,
    /// When the index was written. What was modified at that moment or later may have changed since, unnoticed by git.
    written: Moment,
}

impl Tracked {
    /// Reads an index. `prefix` is the way from the top of the repository to the root.
    pub(crate) fn read(index: &[u8], prefix: &str, written: Moment) -> Option<Tracked> {
        let tracked = OBJECT_ID_LENGTHS.iter().find_map(|length| parse(index, *length, prefix))?;
        Some(Tracked { written, ..tracked })
    }

    /// How many files there are.
    pub(crate) fn count(&self) -> usize {
        self.folders.values().map(Vec::len).sum()
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.get(path).is_some()
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
    pub(crate) fn object_of(&self, path: &str, stat: &Stat) -> Option<ObjectId> {
        let file = self.get(path)?;
        let is_same = !file.is_converted
            && file.modified < self.written
            && (file.modified, file.changed) == (stat.modified, stat.changed)
            && (file.inode, file.size) == (lower_half(stat.inode), lower_half(stat.size))
            && is_same_kind(file.mode, stat.mode.bits());
        is_same.then_some(file.object)
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

/// Bytes that are read from their start.
struct Reader<'b> {
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_be_bytes)
    }

    fn short(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_be_bytes)
    }

    fn moment(&mut self) -> Option<Moment> {
        Some(Moment::new(self.number()?.into(), self.number()?.into()))
    }

    /// Up to a zero byte, which is taken too.
    fn text(&mut self) -> Option<&'b [u8]> {
        let text = CStr::from_bytes_until_nul(self.rest).ok()?.to_bytes();
        self.take(text.len() + 1)?;
        Some(text)
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
fn parse(index: &[u8], id_length: ObjectIdLength, prefix: &str) -> Option<Tracked> {
    let content = index.get(..index.len().checked_sub(id_length)?)?;
    let mut reader = Reader { rest: content };
    let signature = reader.take(4)?;
    let (version, count) = (reader.number()?, reader.number()?);
    if signature != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    let mut tracked = Tracked::default();
    // Neighbours come one after the other.
    let (mut folder, mut files) = (String::new(), Vec::new());
    let mut path = Vec::new();
    for _ in 0..count {
        let file = parse_file(&mut reader, version, id_length, &mut path)?;
        // A name that can't be said can't be asked for either.
        let path = std::str::from_utf8(&path).ok().and_then(|path| below(prefix, path));
        let (Some(mut file), Some(path)) = (file, path) else { continue };
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
    skip_extensions(&mut reader)?;
    Some(tracked)
}

fn below<'p>(prefix: &str, path: &'p str) -> Option<&'p str> {
    if prefix.is_empty() { Some(path) } else { path.strip_prefix(prefix)?.strip_prefix('/') }
}

/// Reads one file and its path, not yet where its name is kept; none for conflicts, submodules and folders that are not checked out.
fn parse_file(
    reader: &mut Reader<'_>,
    version: u32,
    id_length: ObjectIdLength,
    path: &mut Vec<u8>,
) -> Option<Option<TrackedFile>> {
    const IS_EXTENDED: u16 = 0x4000;
    const STAGE: u16 = 0x3000;
    let start = reader.rest.len();
    let (changed, modified) = (reader.moment()?, reader.moment()?);
    let _device = reader.number()?;
    let inode = reader.number()?;
    let mode = reader.number()?;
    let _owner = reader.take(8)?;
    let size = reader.number()?;
    let object = ObjectId::new(reader.take(id_length)?);
    let flags = reader.short()?;
    if version >= 3 && flags & IS_EXTENDED != 0 {
        reader.short()?;
    }
    if version == 4 {
        let shared = path.len().checked_sub(reader.packed()?)?;
        path.truncate(shared);
        path.extend_from_slice(reader.text()?);
    } else {
        path.clear();
        path.extend_from_slice(reader.text()?);
        let length = start - reader.rest.len();
        reader.take(length.next_multiple_of(8) - length)?;
    }
    let is_file = matches!(mode, 0o100_644 | 0o100_755 | 0o120_000) && flags & STAGE == 0;
    let file = TrackedFile { name: 0..0, object, mode, modified, changed, inode, size, is_converted: false };
    Some(is_file.then_some(file))
}

/// What comes after the files must end where the index does, or it was not read rightly.
fn skip_extensions(reader: &mut Reader<'_>) -> Option<()> {
    while !reader.rest.is_empty() {
        let name = reader.take(4)?;
        let size = reader.number()?;
        reader.take(usize::try_from(size).ok()?)?;
        // The other files are in another index.
        if name == b"link" {
            return None;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::stat::FileMode;

    const LATER: Moment = Moment::new(20, 0);

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

    fn read(files: &[Vec<u8>]) -> Tracked {
        Tracked::read(&index(files, b""), "", LATER).unwrap()
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
        assert!(tracked.has("link"));
        let first = tracked.get("a\tb\n.rs").unwrap();
        assert_eq!((first.modified, first.changed), (Moment::new(16, 4), Moment::new(17, 5)));
        assert_eq!((first.inode, first.size, first.mode), (99, 12, 0o100_644));
        assert_eq!(first.object.to_string(), "07".repeat(20));
    }

    #[test]
    fn extensions_are_skipped_and_a_divided_index_is_not_read() {
        let files = [file(0o100_644, 0, "a")];
        let with = |extensions: &[u8]| Tracked::read(&index(&files, extensions), "", LATER);
        assert!(with(b"TREE\0\0\0\x03abc").is_some());
        assert!(with(b"TREE\0\0\0\x04abc").is_none());
        assert!(with(b"link\0\0\0\x00").is_none());
    }

    #[test]
    fn the_root_may_be_a_folder_of_the_repository() {
        let files = [file(0o100_644, 0, "a/b/c"), file(0o100_644, 0, "a/bb"), file(0o100_644, 0, "d")];
        let tracked = Tracked::read(&index(&files, b""), "a/b", LATER).unwrap();
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
        let stat = Stat {
            size: 12,
            modified: Moment::new(16, 4),
            changed: Moment::new(17, 5),
            inode: 99,
            mode: FileMode::from_bits(0o100_600),
        };
        let bytes = index(&[file(0o100_644, 0, "a")], b"");
        let tracked = |seconds| Tracked::read(&bytes, "", Moment::new(seconds, 0)).unwrap();
        assert!(tracked(20).object_of("a", &stat).is_some());
        assert!(tracked(16).object_of("a", &stat).is_none(), "written with the index");
        let others = [
            Stat { size: 13, ..stat },
            Stat { changed: Moment::new(18, 5), ..stat },
            Stat { inode: 98, ..stat },
            Stat { mode: FileMode::from_bits(0o100_700), ..stat },
            Stat { mode: FileMode::from_bits(0o120_777), ..stat },
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
            let _ = Tracked::read(&[&head[..], &bytes].concat(), "", LATER);
            let _ = Tracked::read(&bytes, "", LATER);
        }

        #[test]
        fn a_cut_or_damaged_index_is_refused_or_read(at in 0usize..200, byte in any::<u8>()) {
            let mut bytes = index(&[file(0o100_644, 0, "a"), file(0o100_755, 0, "b/c")], b"TREE\0\0\0\x03abc");
            prop_assert!(Tracked::read(&bytes[..at.min(bytes.len() - 1)], "", LATER).is_none_or(|read| read.paths().count() <= 2));
            let at = at.min(bytes.len() - 1);
            bytes[at] = byte;
            let _ = Tracked::read(&bytes, "", LATER);
        }
    }
}
