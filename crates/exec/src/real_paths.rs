//! The real names of many paths, each folder on their way looked at once.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::ffi::{CString, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// What is at a path, once all links are followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathResolution {
    pub(crate) path: PathBuf,
    pub(crate) exists: bool,
}

/// Finds real names, and remembers those of folders: hundreds of paths often lie in a few of them.
#[derive(Default)]
pub(crate) struct RealPathCache {
    folders: HashMap<PathBuf, PathResolution>,
    /// The folder that was last looked into, open.
    last: Option<(PathBuf, OwnedFd)>,
}

impl RealPathCache {
    /// The real name of a path, as far as it exists.
    pub(crate) fn of(&mut self, path: &Path) -> PathBuf {
        self.find(path).path
    }

    pub(crate) fn find(&mut self, path: &Path) -> PathResolution {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return resolve(path) };
        if !path.is_absolute() || path.components().any(|part| part == Component::ParentDir) {
            return resolve(path);
        }
        let folder = self.find_folder(folder);
        let next = folder.path.join(name);
        if !folder.exists {
            return PathResolution { path: next, exists: false };
        }
        match self.read_link(&folder.path, name) {
            // There is something, and it is no link.
            Err(Errno::INVAL) => PathResolution { path: next, exists: true },
            Err(Errno::NOENT) => PathResolution { path: next, exists: false },
            _ => resolve(path),
        }
    }

    fn read_link(&mut self, folder: &Path, name: &OsStr) -> rustix::io::Result<CString> {
        let last = self.last.take().filter(|(last, _)| last.as_os_str() == folder.as_os_str());
        let open = match last {
            Some(last) => last,
            None => {
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                (folder.to_owned(), rustix::fs::open(folder, flags, Mode::empty())?)
            }
        };
        let (_, folder) = self.last.insert(open);
        rustix::fs::readlinkat(folder, name, Vec::new())
    }

    fn find_folder(&mut self, folder: &Path) -> PathResolution {
        if let Some(known) = self.folders.get(folder) {
            return known.clone();
        }
        let found = self.find(folder);
        self.folders.insert(folder.to_owned(), found.clone());
        found
    }
}

/// A real path, in the order of its parts, so that a folder comes right before all that is in it. To compare the bytes is
/// faster than to take both apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RealPath(pub(crate) PathBuf);

impl RealPath {
    pub(crate) fn of(path: &Path) -> RealPath {
        RealPath(path.to_owned())
    }

    /// Nothing in a name comes before the mark between two of them.
    fn sortable(&self) -> impl Iterator<Item = u8> + '_ {
        self.0.as_os_str().as_bytes().iter().map(|byte| if *byte == b'/' { 0 } else { *byte })
    }
}

impl Ord for RealPath {
    fn cmp(&self, other: &RealPath) -> Ordering {
        self.sortable().cmp(other.sortable())
    }
}

impl PartialOrd for RealPath {
    fn partial_cmp(&self, other: &RealPath) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Like `starts_with` for real paths, which have nothing that would have to be left out: hundreds of them are compared.
pub(crate) fn is_at_or_below(path: &Path, folder: &Path) -> bool {
    let (path, folder) = (path.as_os_str().as_bytes(), folder.as_os_str().as_bytes());
    let rest = path.strip_prefix(folder);
    rest.is_some_and(|rest| folder == b"/" || rest.first().is_none_or(|next| *next == b'/'))
}

/// The real name of a path without what is known already: that of the nearest folder around it that has one.
fn resolve(path: &Path) -> PathResolution {
    let mut around = path.ancestors().filter_map(|around| Some((around, around.canonicalize().ok()?)));
    let Some((around, real)) = around.next() else {
        return PathResolution { path: path.to_owned(), exists: false };
    };
    match path.strip_prefix(around) {
        Ok(rest) if around != path => PathResolution { path: real.join(rest), exists: false },
        _ => PathResolution { path: real, exists: true },
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn links_are_resolved_as_far_as_they_lead() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("folder")).unwrap();
        symlink("folder", root.join("link")).unwrap();
        let real = |path: &Path| RealPathCache::default().find(path);
        assert_eq!(real(&root.join("link")), PathResolution { path: root.join("folder"), exists: true });
        let new = PathResolution { path: root.join("folder/new/file"), exists: false };
        assert_eq!(real(&root.join("link/new/file")), new);
        assert_eq!(real(Path::new("relative")).path, Path::new("relative"));
    }

    proptest! {
        #[test]
        fn a_path_is_below_what_it_starts_with(path in "(/[a-c-]{1,2}){1,3}", folder in "/|(/[a-c-]{1,2}){1,2}") {
            let (path, folder) = (Path::new(&path), Path::new(&folder));
            prop_assert_eq!(is_at_or_below(path, folder), path.starts_with(folder));
        }

        #[test]
        fn real_paths_have_the_order_of_paths(one in "(/[a-c!-]{1,2}){1,3}", other in "/|(/[a-c!-]{1,2}){1,3}") {
            let (one, other) = (Path::new(&one), Path::new(&other));
            prop_assert_eq!(RealPath::of(one).cmp(&RealPath::of(other)), one.cmp(other));
        }

        /// What is remembered changes nothing: in a tree full of links, each path has the name that it has by itself.
        #[test]
        fn every_path_has_the_name_that_it_has_alone(
            links in prop::collection::vec(("[a-c](/[a-c])?", "(/|\\.\\./)?[a-c](/[a-c])?"), 0..5),
            paths in prop::collection::vec("[a-c](/(\\.\\.|[a-c])){0,4}", 1..8),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().canonicalize().unwrap();
            fs::create_dir_all(root.join("a/b/c")).unwrap();
            fs::write(root.join("a/c"), "").unwrap();
            for (link, to) in links {
                let to = to.strip_prefix('/').map_or(PathBuf::from(&to), |inside| root.join(inside));
                let _ = symlink(to, root.join(link));
            }
            let mut names = RealPathCache::default();
            for path in paths.iter().map(|path| root.join(path)) {
                prop_assert_eq!(names.find(&path), resolve(&path));
            }
        }
    }
}
