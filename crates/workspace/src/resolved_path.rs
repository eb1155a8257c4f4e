//! Opening paths so that nobody can lead whoever opens them elsewhere.
//!
//! A path that is looked at and then opened may have become a link in between. Here a path is resolved once, from the root
//! of all files down, each folder opened in the one before and never through a link. Links are read and followed by us: where
//! one leads, the way begins anew. What comes out is an open folder, the last name in it, and the real path of both, which
//! is known because no step of it was a link. Whoever judges that path and then works with the folder and the name works on
//! what was judged, whatever becomes of the path meanwhile.
//!
//! Where the kernel has `openat2`, a path without links is opened in one step (`RESOLVE_NO_SYMLINKS`, which keeps to it more
//! strictly than `RESOLVE_BENEATH`). Where it has not, and where there are links, each name is opened by itself.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{self, AtFlags, CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::stat::{FileStat, PathKind};

/// Links that lead to links are followed so far.
const MAX_RESOLVED_LINKS: usize = 40;
/// How often something is looked at again that is a link at one moment and none at the next.
const MAX_RESOLVE_ATTEMPTS: usize = 1_000;

const OPEN_FOLDER_FLAGS: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// A pipe opened so does not wait for its other end, and a terminal does not become ours.
pub(crate) const READ_FILE_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);
const LIST_FOLDER_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

static IS_OPENAT2_DISABLED: AtomicBool = AtomicBool::new(false);

/// Opens name by name from now on, as on kernels that have no `openat2`. For tests.
#[doc(hidden)]
pub fn disable_openat2() {
    IS_OPENAT2_DISABLED.store(true, Ordering::Relaxed);
}

/// A path that was resolved: the folder that it is in, open, and its name there.
#[derive(Clone, Debug)]
pub struct ResolvedPath {
    folder: Arc<OwnedFd>,
    /// The folders between the open one and the name, which do not exist yet.
    missing: Vec<OsString>,
    name: OsString,
    path: PathBuf,
    is_link: bool,
}

/// What opening a resolved path gave.
#[derive(Debug)]
pub enum OpenedPath {
    /// A regular file, open for reading.
    File(File),
    /// A folder.
    Folder(OwnedFd),
    /// A pipe, a socket, a device: nothing that is opened.
    Special,
}

impl ResolvedPath {
    /// Resolves an absolute path. What does not exist yet resolves to where it would be.
    pub fn new(path: &Path) -> io::Result<ResolvedPath> {
        let mut walk = PathWalk::new(path)?;
        loop {
            if let Some(resolved) = walk.step()? {
                return Ok(resolved);
            }
        }
    }

    /// The real path: no link leads further. It was, or would be, that of the file when it was resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder that it is in; if there are missing ones, the last that exists.
    pub fn folder(&self) -> &Arc<OwnedFd> {
        &self.folder
    }

    /// The folders that have to be made for it.
    pub fn missing_folders(&self) -> &[OsString] {
        &self.missing
    }

    /// Its last name.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Whether the path that was given is that of a link.
    pub fn is_link(&self) -> bool {
        self.is_link
    }

    /// Makes the folders that are missing. One that is a link by now is not followed.
    pub fn make_folders(mut self) -> io::Result<ResolvedPath> {
        for name in std::mem::take(&mut self.missing) {
            match fs::mkdirat(&self.folder, &name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            self.folder = Arc::new(fs::openat(&self.folder, &name, OPEN_FOLDER_FLAGS, Mode::empty())?);
        }
        Ok(self)
    }

    /// The folder, opened once more, so that it can be locked or listed.
    pub fn reopen_folder(&self) -> io::Result<File> {
        Ok(File::from(fs::openat(&self.folder, ".", LIST_FOLDER_FLAGS, Mode::empty())?))
    }

    /// Opens what is there. A link there now was not there before, and is not followed.
    pub fn open(&self) -> io::Result<OpenedPath> {
        if !self.missing.is_empty() {
            return Err(Errno::NOENT.into());
        }
        open_in(&self.folder, &self.name)
    }
}

/// Opens what has a name in a folder, if it is a file or a folder. A link is an error.
pub(crate) fn open_in(folder: impl AsFd, name: &OsStr) -> io::Result<OpenedPath> {
    let folder = folder.as_fd();
    let kind = FileStat::from(fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?).kind();
    match kind {
        // Opening some devices does something already.
        PathKind::Special => return Ok(OpenedPath::Special),
        PathKind::Folder => {
            return Ok(OpenedPath::Folder(fs::openat(folder, name, LIST_FOLDER_FLAGS, Mode::empty())?));
        }
        PathKind::Link => return Err(Errno::LOOP.into()),
        PathKind::File => {}
    }
    let file = fs::openat(folder, name, READ_FILE_FLAGS, Mode::empty())?;
    opened(file)
}

fn opened(file: OwnedFd) -> io::Result<OpenedPath> {
    Ok(match FileStat::from(fs::fstat(&file)?).kind() {
        PathKind::File => OpenedPath::File(File::from(file)),
        PathKind::Folder => OpenedPath::Folder(file),
        PathKind::Link | PathKind::Special => OpenedPath::Special,
    })
}

/// Opens a file or a folder whose path has no links in it. If it has some by now, that is an error.
pub fn open_without_links(path: &Path) -> io::Result<OpenedPath> {
    opened(open_exactly(path, READ_FILE_FLAGS)?)
}

/// What is at a path that has no links in it, but maybe its last name. If it has some by now, that is an error.
pub fn metadata_without_links(path: &Path) -> io::Result<Metadata> {
    File::from(open_exactly(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC)?).metadata()
}

/// Where a link leads, if the path to it has no links in it.
pub fn read_link_without_links(path: &Path) -> io::Result<PathBuf> {
    let link = open_exactly(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC)?;
    let target = fs::readlinkat(link, "", Vec::new())?;
    Ok(OsString::from_vec(target.into_bytes()).into())
}

/// The names in a folder that is open, each with whether it is a folder, in no order.
pub fn names_in(folder: impl AsFd) -> io::Result<Vec<(OsString, bool)>> {
    let mut names = Vec::new();
    // Another description of the same folder: whoever reads moves on in it.
    let folder = fs::openat(folder.as_fd(), ".", LIST_FOLDER_FLAGS, Mode::empty())?;
    for entry in fs::Dir::new(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            let is_folder = entry.file_type() == fs::FileType::Directory;
            names.push((OsStr::from_bytes(name).to_owned(), is_folder));
        }
    }
    Ok(names)
}

/// Opens an absolute path in which nothing is a link.
pub(crate) fn open_exactly(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    if !IS_OPENAT2_DISABLED.load(Ordering::Relaxed) {
        let how = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match fs::openat2(CWD, path, flags, Mode::empty(), how) {
            // Old kernels have no such call, and some sandboxes forbid it.
            Err(Errno::NOSYS | Errno::PERM) => {}
            opened => return Ok(opened?),
        }
    }
    let mut at = fs::openat(CWD, "/", OPEN_FOLDER_FLAGS, Mode::empty())?;
    let mut names = path.components().skip_while(|part| *part == Component::RootDir).peekable();
    if names.peek().is_none() {
        return Ok(fs::openat(&at, ".", flags, Mode::empty())?);
    }
    while let Some(part) = names.next() {
        let Component::Normal(name) = part else { return Err(Errno::INVAL.into()) };
        let flags = if names.peek().is_some() { OPEN_FOLDER_FLAGS } else { flags };
        at = fs::openat(&at, name, flags, Mode::empty())?;
    }
    Ok(at)
}

/// A path on the way to being resolved.
struct PathWalk {
    /// The folders that are open, each in the one before, with their names. The first is the root of all.
    open: Vec<(Arc<OwnedFd>, OsString)>,
    /// What is left to do.
    names: VecDeque<OsString>,
    links: usize,
    attempts: usize,
    is_link: bool,
    /// Several folders may be opened in one step.
    may_skip: bool,
}

impl PathWalk {
    fn new(path: &Path) -> io::Result<PathWalk> {
        if !path.is_absolute() {
            return Err(io::Error::other("it is no absolute path"));
        }
        let mut walk = PathWalk {
            open: Vec::new(),
            names: VecDeque::new(),
            links: MAX_RESOLVED_LINKS,
            attempts: MAX_RESOLVE_ATTEMPTS,
            is_link: false,
            may_skip: !IS_OPENAT2_DISABLED.load(Ordering::Relaxed),
        };
        walk.restart_at(path)?;
        Ok(walk)
    }

    /// Puts where a link leads before what is left to do.
    fn follow(&mut self, target: &Path) -> io::Result<()> {
        // It may lead up, through folders that were not opened one by one.
        let here = self.path_of(&[]);
        self.may_skip = false;
        self.restart_at(&here.join(target))
    }

    fn restart_at(&mut self, path: &Path) -> io::Result<()> {
        let root = fs::openat(CWD, "/", OPEN_FOLDER_FLAGS, Mode::empty())?;
        self.open = vec![(Arc::new(root), OsString::new())];
        for part in path.components().rev() {
            match part {
                Component::Normal(name) => self.names.push_front(name.to_owned()),
                Component::ParentDir => self.names.push_front("..".into()),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            }
        }
        Ok(())
    }

    fn path_of(&self, names: &[OsString]) -> PathBuf {
        let open = self.open.iter().skip(1).map(|(_, name)| name);
        Path::new("/").join(open.chain(names).collect::<PathBuf>())
    }

    fn at(&self) -> io::Result<&Arc<OwnedFd>> {
        self.open.last().map(|(folder, _)| folder).ok_or_else(|| Errno::INVAL.into())
    }

    /// Takes the next name. Gives the result with the last.
    fn step(&mut self) -> io::Result<Option<ResolvedPath>> {
        if self.names.len() > 1 && self.skip_folders() {
            return Ok(None);
        }
        let Some(name) = self.names.pop_front() else { return self.end_at_folder().map(Some) };
        if name == ".." {
            // What was opened on the way here is above: nobody can put something else there.
            self.open.truncate(self.open.len().saturating_sub(1).max(1));
            return Ok(None);
        }
        let at = self.at()?.clone();
        match fs::readlinkat(&at, &name, Vec::new()) {
            Ok(target) => {
                self.links = self.links.checked_sub(1).ok_or(Errno::LOOP)?;
                self.is_link |= self.names.is_empty();
                self.follow(Path::new(OsStr::from_bytes(target.as_bytes())))?;
                return Ok(None);
            }
            Err(Errno::NOENT) => return self.end_at_nothing(name).map(Some),
            // It is no link.
            Err(Errno::INVAL) if self.names.is_empty() => return self.end_at(name).map(Some),
            Err(Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
        match fs::openat(&at, &name, OPEN_FOLDER_FLAGS, Mode::empty()) {
            Ok(folder) => self.open.push((Arc::new(folder), name)),
            // A moment ago it was no link.
            Err(Errno::LOOP | Errno::NOTDIR | Errno::NOENT) if self.is_other_now(&at, &name) => {
                self.attempts = self.attempts.checked_sub(1).ok_or(Errno::AGAIN)?;
                self.names.push_front(name);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(None)
    }

    /// Opens all folders but for the last name in one step, if there are no links among them. Says whether it did.
    fn skip_folders(&mut self) -> bool {
        let may_skip = std::mem::replace(&mut self.may_skip, false);
        if !may_skip || self.names.iter().any(|name| name == "..") {
            return false;
        }
        let names: Vec<OsString> = self.names.iter().take(self.names.len() - 1).cloned().collect();
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let way: PathBuf = names.iter().collect();
        let Ok(root) = self.at() else { return false };
        let Ok(folder) = fs::openat2(root, &way, OPEN_FOLDER_FLAGS, Mode::empty(), how) else { return false };
        self.names.drain(..names.len());
        self.open.push((Arc::new(folder), way.into_os_string()));
        true
    }

    /// Whether something can't be opened because it became something else, and not because it is no folder.
    fn is_other_now(&self, at: &OwnedFd, name: &OsStr) -> bool {
        let stat = fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW).map(FileStat::from);
        stat.is_ok_and(|stat| matches!(stat.kind(), PathKind::Link | PathKind::Folder))
    }

    fn end_at(&self, name: OsString) -> io::Result<ResolvedPath> {
        let path = self.path_of(std::slice::from_ref(&name));
        let folder = self.at()?.clone();
        Ok(ResolvedPath { folder, missing: Vec::new(), name, path, is_link: self.is_link })
    }

    /// The path ends with a folder that is open: the root of all, or one that `..` leads to.
    fn end_at_folder(&self) -> io::Result<ResolvedPath> {
        let folder = self.at()?.clone();
        let path = self.path_of(&[]);
        Ok(ResolvedPath { folder, missing: Vec::new(), name: ".".into(), path, is_link: self.is_link })
    }

    fn end_at_nothing(&mut self, name: OsString) -> io::Result<ResolvedPath> {
        let mut missing: Vec<OsString> = std::iter::once(name).chain(self.names.drain(..)).collect();
        if missing.iter().any(|name| name == "..") {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "it leads through a folder that does not exist",
            ));
        }
        let path = self.path_of(&missing);
        let name = missing.pop().unwrap_or_default();
        Ok(ResolvedPath { folder: self.at()?.clone(), missing, name, path, is_link: self.is_link })
    }
}

impl AsFd for ResolvedPath {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new() -> Tree {
            let tree = Tree(tempfile::tempdir().unwrap());
            fs::create_dir_all(tree.at("in/a/b")).unwrap();
            fs::create_dir_all(tree.at("out")).unwrap();
            fs::write(tree.at("in/a/b/f"), "inside").unwrap();
            fs::write(tree.at("out/f"), "outside").unwrap();
            symlink("a/b", tree.at("in/relative")).unwrap();
            symlink(tree.at("in/a"), tree.at("in/absolute")).unwrap();
            symlink("../../out", tree.at("in/a/up")).unwrap();
            symlink("relative/f", tree.at("in/twice")).unwrap();
            symlink("x", tree.at("in/loop")).unwrap();
            symlink("loop", tree.at("in/x")).unwrap();
            symlink("new/deep/er", tree.at("in/dangling")).unwrap();
            tree
        }

        fn at(&self, name: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(name)
        }
    }

    fn content(resolved: &ResolvedPath) -> String {
        let OpenedPath::File(mut file) = resolved.open().unwrap() else { panic!("no file") };
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        text
    }

    fn both_ways(test: impl Fn()) {
        test();
        disable_openat2();
        test();
        IS_OPENAT2_DISABLED.store(false, Ordering::Relaxed);
    }

    #[test]
    fn links_are_followed_and_the_real_path_is_known() {
        let tree = Tree::new();
        both_ways(|| {
            for (name, real, is_link, text) in [
                ("in/a/b/f", "in/a/b/f", false, "inside"),
                ("in/relative/f", "in/a/b/f", false, "inside"),
                ("in/absolute/b/f", "in/a/b/f", false, "inside"),
                ("in/twice", "in/a/b/f", true, "inside"),
                ("in/a/up/f", "out/f", false, "outside"),
                ("in/absolute/../a/./b//f", "in/a/b/f", false, "inside"),
                ("in/relative/../b/f", "in/a/b/f", false, "inside"),
            ] {
                let resolved = ResolvedPath::new(&tree.at(name)).unwrap();
                assert_eq!(resolved.path(), tree.at(real), "{name}");
                assert_eq!((resolved.is_link(), content(&resolved).as_str()), (is_link, text), "{name}");
            }
            for (name, real) in [("in/a/..", "in"), ("in/relative", "in/a/b"), ("in/a/up/", "out")] {
                let resolved = ResolvedPath::new(&tree.at(name)).unwrap();
                assert_eq!(resolved.path(), tree.at(real), "{name}");
                assert!(matches!(resolved.open().unwrap(), OpenedPath::Folder(_)));
            }
            assert_eq!(ResolvedPath::new(Path::new("/..")).unwrap().path(), Path::new("/"));
        });
    }

    #[test]
    fn what_is_not_there_resolves_to_where_it_would_be() {
        let tree = Tree::new();
        both_ways(|| {
            for (name, real, missing) in [
                ("in/a/new", "in/a/new", 0),
                ("in/new/er/est", "in/new/er/est", 2),
                ("in/dangling", "in/new/deep/er", 2),
                ("in/relative/new", "in/a/b/new", 0),
            ] {
                let resolved = ResolvedPath::new(&tree.at(name)).unwrap();
                assert_eq!((resolved.path(), resolved.missing_folders().len()), (&*tree.at(real), missing));
                assert_eq!(resolved.open().unwrap_err().kind(), io::ErrorKind::NotFound);
            }
            for name in ["in/loop", "in/new/../f", "in/a/b/f/x"] {
                assert!(ResolvedPath::new(&tree.at(name)).is_err(), "{name}");
            }
            assert!(ResolvedPath::new(Path::new("relative")).is_err());
        });
    }

    #[test]
    fn what_becomes_a_link_is_not_followed() {
        let tree = Tree::new();
        both_ways(|| {
            let resolved = ResolvedPath::new(&tree.at("in/a/b/f")).unwrap();
            fs::rename(tree.at("in/a"), tree.at("was")).unwrap();
            symlink("../out", tree.at("in/a")).unwrap();
            assert_eq!(content(&resolved), "inside");
            assert!(open_without_links(&tree.at("in/a/f")).is_err());
            assert!(metadata_without_links(&tree.at("in/a/f")).is_err());
            assert!(read_link_without_links(&tree.at("in/a")).is_ok());
            fs::rename(tree.at("was/b/f"), tree.at("was/b/g")).unwrap();
            symlink(tree.at("out/f"), tree.at("was/b/f")).unwrap();
            assert!(resolved.open().is_err());
            fs::rename(tree.at("was/b/g"), tree.at("was/b/f")).unwrap();
            fs::remove_file(tree.at("in/a")).unwrap();
            fs::rename(tree.at("was"), tree.at("in/a")).unwrap();
        });
    }

    #[test]
    fn pipes_and_devices_are_not_opened() {
        let tree = Tree::new();
        rustix::fs::mknodat(CWD, tree.at("pipe"), fs_type(), Mode::RUSR, 0).unwrap();
        for path in [tree.at("pipe"), "/dev/null".into(), "/dev/tty".into()] {
            let resolved = ResolvedPath::new(&path).unwrap();
            assert!(matches!(resolved.open().unwrap(), OpenedPath::Special), "{}", path.display());
        }
    }

    fn fs_type() -> rustix::fs::FileType {
        rustix::fs::FileType::Fifo
    }
}
