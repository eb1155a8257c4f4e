//! References that keep git from forgetting objects. Each worktree has its own, and each workspace one in it, by the number
//! of its process.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, Mode, OFlags, RawDir};
use rustix::io::Errno;

use crate::files::RootFiles;
use crate::git_index::ObjectId;

/// Where they are, below the folder of a worktree.
const HELD_REFERENCE_FOLDERS: [&str; 3] = ["refs", "worktree", "helve"];
const REFERENCE_LISTING_BYTES: usize = 8 << 10;

/// The folder of the references, opened so that no link on the way leads elsewhere.
pub(crate) struct HeldReferences {
    folder: OwnedFd,
}

impl HeldReferences {
    /// Those of a worktree, by the folder that git keeps for it.
    pub(crate) fn of(git_folder: &Path) -> io::Result<HeldReferences> {
        let files = RootFiles::new(git_folder);
        let mut way = PathBuf::new();
        let mut folder = files.open_folder("")?;
        for name in HELD_REFERENCE_FOLDERS {
            match fs::mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            way.push(name);
            folder = files.open_folder(&way.to_string_lossy())?;
        }
        Ok(HeldReferences { folder })
    }

    /// Lets a reference name an object. Git takes no notice of a name that ends like that of the file which becomes it.
    pub(crate) fn set(&self, name: &str, object: ObjectId) -> io::Result<()> {
        let new = format!("{name}.lock");
        let _ = fs::unlinkat(&self.folder, &new, AtFlags::empty());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file =
            std::fs::File::from(fs::openat(&self.folder, &new, flags, Mode::from_raw_mode(0o666))?);
        writeln!(file, "{object}")?;
        Ok(fs::renameat(&self.folder, &new, &self.folder, name)?)
    }

    pub(crate) fn remove(&self, name: &str) {
        let _ = fs::unlinkat(&self.folder, name, AtFlags::empty());
    }

    /// Lets go what processes held that were killed.
    pub(crate) fn remove_stale(&self) {
        let is_of_the_dead = |name: &str| {
            let process = name.split_once('-').and_then(|(process, _)| process.parse::<u32>().ok());
            !process.is_some_and(|process| Path::new(&format!("/proc/{process}")).exists())
        };
        self.names().iter().filter(|name| is_of_the_dead(name)).for_each(|name| self.remove(name));
    }

    fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut buffer = Vec::with_capacity(REFERENCE_LISTING_BYTES);
        let mut listing = RawDir::new(&self.folder, buffer.spare_capacity_mut());
        while let Some(Ok(entry)) = listing.next() {
            names.extend(
                entry.file_name().to_str().ok().filter(|name| !name.starts_with('.')).map(str::to_owned),
            );
        }
        names
    }
}
