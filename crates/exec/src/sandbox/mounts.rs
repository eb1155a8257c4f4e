//! The files as a confined command sees them: all of them read-only, with holes where it may write and covers where it
//! may not look.
//!
//! Nothing is moved away and nothing is entered: in a mount namespace of its own, the tree that is there is changed in
//! place. What shall stay as it is (workspace, devices) is taken as a copy of its mount before, and put back where it
//! was after.

use std::collections::BTreeSet;
use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2, statat};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change, move_mount,
    open_tree,
};
use rustix::stdio::stdout;
use rustix::termios::ttyname;

use super::layers::{self, OverlayMount};
use super::syscalls::{NOSUID_NODEV_MOUNT, READ_ONLY_MOUNT, restrict_all_mounts, restrict_mount};
use super::view::{HiddenFolderRemains, PlaceAccess, SandboxView, is_replaced};
use crate::confinement::Confinement;

const DEVICE_NAMES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// More files than an ordinary command makes in `/tmp`: each takes memory, however small it is.
const MAX_SCRATCH_FILES: u32 = 1_000_000;
/// More sockets than any machine has outside `/run` and `/tmp`: each is covered one by one.
const MAX_COVERED_SOCKETS: usize = 1_000;
/// Where the folders of one new file system are made, before they are put in their places.
const STAGING_FOLDER: &str = "/tmp";

/// A mount that is put somewhere.
struct PlacedMount {
    at: PathBuf,
    mount: OwnedFd,
}

impl PlacedMount {
    /// A copy of what is at a path, to be put back there.
    fn again(path: &Path, attributes: u64) -> io::Result<PlacedMount> {
        Ok(PlacedMount { mount: copy(path, attributes)?, at: path.to_owned() })
    }

    /// Puts it in its place, which is made where it can be.
    fn put(&self) -> io::Result<()> {
        let place = match open_real(&self.at) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_place(&self.at, is_folder(&self.mount)?)?;
                open_real(&self.at)?
            }
            place => place?,
        };
        attach(&self.mount, place)
    }
}

/// Whether what is open is a folder.
fn is_folder(mount: &OwnedFd) -> io::Result<bool> {
    Ok(FileType::from_raw_mode(fstat(mount)?.st_mode).is_dir())
}

/// Makes something empty on which a mount can be put.
fn make_place(at: &Path, is_folder: bool) -> io::Result<()> {
    if is_folder {
        return fs::create_dir_all(at);
    }
    if let Some(folder) = at.parent() {
        fs::create_dir_all(folder)?;
    }
    File::create(at).map(drop)
}

/// Opens a path that has no links in it. It had none when it was resolved; if it has one now, somebody wants a mount to be
/// somewhere else.
fn open_real(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    Ok(openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?)
}

/// Changes the tree of this mount namespace, all but `/proc`.
pub(super) fn arrange(
    confinement: &Confinement,
    view: &SandboxView,
    overlays: &[OverlayMount],
) -> io::Result<()> {
    let places = view.places_around();
    let places = places.map(|(at, access, around)| SandboxPlace::take(at, access, around, confinement));
    let mut places: Vec<SandboxPlace<'_>> = places.collect::<io::Result<_>>()?;
    let temporary =
        confinement.temporary.as_deref().map(|path| copy(path, NOSUID_NODEV_MOUNT)).transpose()?;
    let devices = devices();
    let names = names_in_run();

    restrict_all_mounts(READ_ONLY_MOUNT | NOSUID_NODEV_MOUNT)?;
    let stage = StagingFileSystem::build(confinement.scratch, &names.links, &devices)?;
    let empty = EmptyCovers::on_stage()?;
    take_from_overlays(&mut places, overlays)?;
    furnish_hidden(&mut places, view)?;
    stage.put(temporary)?;
    devices.iter().try_for_each(PlacedMount::put)?;
    let options = c"newinstance,ptmxmode=0666,mode=0620";
    mount(c"devpts", c"/dev/pts", c"devpts", MountFlags::NOSUID | MountFlags::NOEXEC, options)?;

    names.resolver.iter().try_for_each(PlacedMount::put)?;
    let mut folders = LastFolder::default();
    places.into_iter().try_for_each(|place| place.put(&empty, &mut folders))
}

/// Keeps what is mounted in this namespace from being seen in others.
pub(super) fn separate() -> io::Result<()> {
    Ok(mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?)
}

/// Shows the processes of this namespace only. To be called by one of them.
pub(super) fn show_processes() -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RDONLY;
    Ok(mount(c"proc", c"/proc", c"proc", flags, None)?)
}

/// A copy of the mount at a path, with all below it, that is nowhere yet.
fn copy(path: &Path, attributes: u64) -> io::Result<OwnedFd> {
    let mount = copy_opened(open_real(path)?)?;
    if attributes != 0 {
        restrict_mount(&mount, attributes)?;
    }
    Ok(mount)
}

fn copy_opened(path: impl AsFd) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    Ok(open_tree(path, c"", flags)?)
}

/// The devices that a command gets, as far as this system has them, and its terminal, by a name that it finds.
fn devices() -> Vec<PlacedMount> {
    let device = |from: &Path, name: &str| {
        let mount = copy(&from.canonicalize().ok()?, libc::MOUNT_ATTR_NOSUID).ok()?;
        Some(PlacedMount { at: Path::new("/dev").join(name), mount })
    };
    let plain = DEVICE_NAMES.iter().filter_map(|name| device(&Path::new("/dev").join(name), name));
    let terminal = ttyname(stdout(), Vec::new()).ok();
    let terminal = terminal.and_then(|name| device(Path::new(name.to_str().ok()?), "console"));
    plain.chain(terminal).collect()
}

/// What of `/run` is needed although it is covered.
struct RunFolderEntries {
    /// Some systems have their programs behind a link there.
    links: Vec<(PathBuf, PathBuf)>,
    /// The list of name servers, where it is kept there.
    resolver: Option<PlacedMount>,
}

fn names_in_run() -> RunFolderEntries {
    let entries = fs::read_dir("/run").into_iter().flatten().flatten();
    let links =
        entries.filter_map(|entry| Some((entry.file_name().into(), fs::read_link(entry.path()).ok()?)));
    let resolver = Path::new("/etc/resolv.conf").canonicalize().ok().filter(|path| path.starts_with("/run"));
    let resolver =
        resolver.and_then(|path| PlacedMount::again(&path, READ_ONLY_MOUNT | NOSUID_NODEV_MOUNT).ok());
    RunFolderEntries { links: links.collect(), resolver }
}

/// A place of the view, and what is put there.
struct SandboxPlace<'v> {
    at: &'v Path,
    access: PlaceAccess,
    content: PlaceContent,
}

enum PlaceContent {
    /// It was taken before anything was covered: afterwards it may be out of sight.
    CopiedMount(OwnedFd),
    /// What is seen there once all around it is in its place, with these attributes.
    Remount(u64),
    /// Something empty of the same kind.
    EmptyCover,
    /// It is still to be found, or it is out of sight anyway.
    Unresolved,
}

impl<'v> SandboxPlace<'v> {
    fn take(
        at: &'v Path,
        access: PlaceAccess,
        around: Option<PlaceAccess>,
        confinement: &Confinement,
    ) -> io::Result<Self> {
        let is_in_sight =
            matches!(around, Some(PlaceAccess::Writable | PlaceAccess::Pinned | PlaceAccess::Protected));
        let content = match access {
            PlaceAccess::Hidden => PlaceContent::EmptyCover,
            PlaceAccess::Layered => PlaceContent::Unresolved,
            PlaceAccess::Replaced => match confinement.replaced.iter().find(|(path, _)| path == at) {
                Some((_, by)) => PlaceContent::CopiedMount(copy(by, READ_ONLY_MOUNT | NOSUID_NODEV_MOUNT)?),
                None => PlaceContent::EmptyCover,
            },
            PlaceAccess::Own => match &confinement.layers {
                Some(layers) => {
                    PlaceContent::CopiedMount(copy(&layers::own_folder(layers, at), NOSUID_NODEV_MOUNT)?)
                }
                None => PlaceContent::Unresolved,
            },
            PlaceAccess::Protected if is_in_sight => {
                PlaceContent::Remount(READ_ONLY_MOUNT | NOSUID_NODEV_MOUNT)
            }
            // It has the attributes of what is around it.
            PlaceAccess::Pinned if is_in_sight => PlaceContent::Remount(0),
            PlaceAccess::Shown | PlaceAccess::Protected => {
                PlaceContent::CopiedMount(copy(at, READ_ONLY_MOUNT | NOSUID_NODEV_MOUNT)?)
            }
            PlaceAccess::Writable | PlaceAccess::Pinned => {
                PlaceContent::CopiedMount(copy(at, NOSUID_NODEV_MOUNT)?)
            }
        };
        Ok(SandboxPlace { at, access, content })
    }

    fn is_folder(&self) -> io::Result<bool> {
        match &self.content {
            PlaceContent::CopiedMount(mount) => is_folder(mount),
            _ => Ok(self.at.is_dir()),
        }
    }

    fn put(self, empty: &EmptyCovers, folders: &mut LastFolder) -> io::Result<()> {
        match self.content {
            PlaceContent::CopiedMount(mount) => PlacedMount { at: self.at.to_owned(), mount }.put(),
            PlaceContent::Remount(attributes) => {
                let (folder, name) = folders.around(self.at)?;
                let mount = copy_at(folder, name)?;
                if attributes != 0 {
                    restrict_mount(&mount, attributes)?;
                }
                attach_at(&mount, folder, name)
            }
            PlaceContent::EmptyCover => match cover(self.at, empty, folders) {
                // Nothing is left to be hidden.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                covered => covered,
            },
            PlaceContent::Unresolved => Ok(()),
        }
    }
}

/// Lays something empty over a place.
fn cover(at: &Path, empty: &EmptyCovers, folders: &mut LastFolder) -> io::Result<()> {
    let (folder, name) = folders.around(at)?;
    let kind = FileType::from_raw_mode(statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode);
    if kind.is_symlink() {
        return Err(Errno::LOOP.into());
    }
    let empty = if kind.is_dir() { &empty.folder } else { &empty.file };
    // There is nothing below it that would have to come along.
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    attach_at(open_tree(empty, c"", flags)?, folder, name)
}

/// The folder in which something was last put. Hundreds of places often lie in a few folders, and places come in order: whatever is
/// laid over a folder is there before anything is put into it, so that an open one stays the one that is seen.
#[derive(Default)]
struct LastFolder(Option<(PathBuf, OwnedFd)>);

impl LastFolder {
    /// The folder around a path, opened, and the name in it.
    fn around<'p>(&mut self, path: &'p Path) -> io::Result<(BorrowedFd<'_>, &'p OsStr)> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Errno::INVAL.into());
        };
        // Compared as they are written, which is enough here, and fast.
        let open = match self.0.take() {
            Some((known, open)) if known.as_os_str() == folder.as_os_str() => (known, open),
            _ => (folder.to_owned(), open_real(folder)?),
        };
        Ok((self.0.insert(open).1.as_fd(), name))
    }
}

/// A copy of what has a name in a folder, and is no link, as a mount that is nowhere yet.
fn copy_at(folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    let mount = open_tree(folder, name, flags)?;
    match FileType::from_raw_mode(fstat(&mount)?.st_mode).is_symlink() {
        true => Err(Errno::LOOP.into()),
        false => Ok(mount),
    }
}

/// Puts a mount that is nowhere yet over what has a name in a folder. Links are not followed.
fn attach_at(mount: impl AsFd, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    Ok(move_mount(mount, c"", folder, name, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

/// Puts a mount that is nowhere yet at a place.
fn attach(mount: impl AsFd, place: impl AsFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(mount, c"", place, c"", flags)?)
}

/// What is laid over hidden places.
struct EmptyCovers {
    folder: OwnedFd,
    file: OwnedFd,
}

impl EmptyCovers {
    /// On the stage. Copies of what is read-only are so too.
    fn on_stage() -> io::Result<EmptyCovers> {
        let read_only = |name: &str| {
            let path = Path::new(STAGING_FOLDER).join(name);
            PlacedMount::again(&path, READ_ONLY_MOUNT)?.put()?;
            open_real(&path)
        };
        Ok(EmptyCovers { folder: read_only("no-folder")?, file: read_only("no-file")? })
    }
}

/// Takes the project's view of folders from overlays, on the stage.
fn take_from_overlays(places: &mut [SandboxPlace<'_>], overlays: &[OverlayMount]) -> io::Result<()> {
    let mut bases: Vec<(&Path, PathBuf)> = Vec::new();
    for (number, OverlayMount { over, mount }) in overlays.iter().enumerate() {
        let at = Path::new(STAGING_FOLDER).join(format!("overlay-{number}"));
        fs::create_dir(&at)?;
        attach(mount, open_real(&at)?)?;
        bases.push((over, at));
    }
    for place in places.iter_mut().filter(|place| place.access == PlaceAccess::Layered) {
        let inside = bases.iter().find_map(|(over, at)| Some((at, place.at.strip_prefix(over).ok()?)));
        let Some((overlay, inside)) = inside else { continue };
        let folder = if inside.as_os_str().is_empty() { overlay.clone() } else { overlay.join(inside) };
        let mount = match copy(&folder, NOSUID_NODEV_MOUNT) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(&folder)?;
                copy(&folder, NOSUID_NODEV_MOUNT)
            }
            mount => mount,
        };
        place.content = PlaceContent::CopiedMount(mount?);
    }
    Ok(())
}

/// Furnishes the hidden folders in which something is seen, and leaves out what is out of sight anyway.
fn furnish_hidden(places: &mut [SandboxPlace<'_>], view: &SandboxView) -> io::Result<()> {
    let hidden = places.iter().enumerate().filter(|(_, place)| place.access == PlaceAccess::Hidden);
    let mut furnished = Vec::new();
    for (number, SandboxPlace { at, .. }) in hidden {
        let remains = view.remains_of(at);
        if !remains.is_empty() {
            let folder = Path::new(STAGING_FOLDER).join(format!("remains-{number}"));
            let inside = |inside: &Path| places.iter().find(|place| place.at == at.join(inside));
            furnish_remains(&folder, &remains, |path| {
                inside(path).map_or(Ok(false), SandboxPlace::is_folder)
            })?;
            furnished.push((number, PlaceContent::CopiedMount(copy(&folder, READ_ONLY_MOUNT)?)));
        } else if view.is_gone(at) {
            furnished.push((number, PlaceContent::Unresolved));
        }
    }
    for (number, content) in furnished {
        if let Some(place) = places.get_mut(number) {
            place.content = content;
        }
    }
    Ok(())
}

/// Places for what is seen in a hidden folder.
fn furnish_remains(
    folder: &Path,
    remains: &HiddenFolderRemains,
    is_folder: impl Fn(&Path) -> io::Result<bool>,
) -> io::Result<()> {
    fs::create_dir(folder)?;
    remains.places.iter().try_for_each(|inside| make_place(&folder.join(inside), is_folder(inside)?))?;
    for (link, to) in &remains.links {
        let link = folder.join(link);
        if let Some(around) = link.parent() {
            fs::create_dir_all(around)?;
        }
        symlink(to, link)?;
    }
    Ok(())
}

/// A new file system in memory, whose folders become `/tmp`, `/dev` and the others that a command has for itself.
struct StagingFileSystem {
    places: Vec<PlacedMount>,
    tmp: OwnedFd,
}

impl StagingFileSystem {
    fn build(
        bytes: u64,
        links: &[(PathBuf, PathBuf)],
        devices: &[PlacedMount],
    ) -> io::Result<StagingFileSystem> {
        let options = CString::new(format!("mode=0755,size={bytes},nr_inodes={MAX_SCRATCH_FILES}"))?;
        mount(
            c"tmpfs",
            STAGING_FOLDER,
            c"tmpfs",
            MountFlags::NOSUID | MountFlags::NODEV,
            Some(options.as_c_str()),
        )?;
        let stage = Path::new(STAGING_FOLDER);
        for name in ["tmp", "var-tmp", "shm"] {
            fs::create_dir(stage.join(name))?;
            rustix::fs::chmod(stage.join(name), 0o1777.into())?;
        }
        fs::DirBuilder::new().mode(0o555).create(stage.join("no-folder"))?;
        File::create(stage.join("no-file"))?;
        fs::create_dir(stage.join("run"))?;
        for (name, to) in links {
            symlink(to, stage.join("run").join(name))?;
        }
        furnish(&stage.join("dev"), devices)?;
        let place = |at: &str, name: &str, attributes: u64| {
            let mount = copy(&stage.join(name), attributes)?;
            Ok(PlacedMount { at: at.into(), mount })
        };
        let places = [
            ("/dev", "dev", READ_ONLY_MOUNT),
            ("/dev/shm", "shm", 0),
            ("/run", "run", 0),
            ("/var/run", "run", 0),
            ("/var/tmp", "var-tmp", 0),
        ];
        // A link leads to one that is covered already.
        let is_folder = |at: &str| at == "/dev/shm" || fs::symlink_metadata(at).is_ok_and(|it| it.is_dir());
        let places = places.into_iter().filter(|(at, ..)| is_folder(at));
        let places = places.map(|(at, name, attributes)| place(at, name, attributes));
        Ok(StagingFileSystem {
            places: places.collect::<io::Result<_>>()?,
            tmp: copy(&stage.join("tmp"), 0)?,
        })
    }

    /// Puts everything in its place; the stage itself, and what of it was not used, is covered by that.
    fn put(self, temporary: Option<OwnedFd>) -> io::Result<()> {
        self.places.iter().try_for_each(PlacedMount::put)?;
        PlacedMount { at: Path::new(STAGING_FOLDER).canonicalize()?, mount: temporary.unwrap_or(self.tmp) }
            .put()
    }
}

/// Places for devices, and the names by which programs find their own open files.
fn furnish(dev: &Path, devices: &[PlacedMount]) -> io::Result<()> {
    fs::create_dir(dev)?;
    let names = devices.iter().filter_map(|device| device.at.file_name());
    names.into_iter().try_for_each(|name| File::create(dev.join(name)).map(drop))?;
    ["pts", "shm"].iter().try_for_each(|name| fs::create_dir(dev.join(name)))?;
    let links = [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("ptmx", "pts/ptmx"),
    ];
    links.iter().try_for_each(|(name, to)| symlink(to, dev.join(name)))
}

/// The sockets of other programs that have a place among the files: those that somebody listens at, and those that the
/// environment names. What is in folders of the command's own, or in its workspace, needs no cover.
pub(super) fn sockets(confinement: &Confinement, named: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let table = fs::read("/proc/net/unix").unwrap_or_default();
    let is_seen = |path: &PathBuf| {
        let is_ours = confinement.writable.iter().any(|folder| path.starts_with(folder));
        !is_replaced(path) && !is_ours && fs::metadata(path).is_ok_and(|it| it.file_type().is_socket())
    };
    let found: BTreeSet<PathBuf> = paths_in(&table).chain(named.iter().cloned()).filter(is_seen).collect();
    if found.len() > MAX_COVERED_SOCKETS {
        Err(Errno::TOOBIG.into())
    } else {
        Ok(found.into_iter().collect())
    }
}

/// The paths in the system's table of Unix sockets: what follows seven columns and begins with a slash.
fn paths_in(table: &[u8]) -> impl Iterator<Item = PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let path = |line: &[u8]| {
        let start = line.windows(2).position(|pair| pair == b" /")?;
        Some(PathBuf::from(OsStr::from_bytes(line.get(start + 1..)?)))
    };
    table.split(|byte| *byte == b'\n').filter_map(path)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sockets_are_found_in_the_systems_table() {
        let table = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 14785 /run/a b.sock\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 18443 @abstract\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 18443\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 18443 /x\n";
        let found: Vec<PathBuf> = paths_in(table).collect();
        assert_eq!(found, ["/run/a b.sock", "/x"].map(PathBuf::from));
    }

    proptest! {
        #[test]
        fn a_garbled_table_never_panics(table in vec(any::<u8>(), 0..200)) {
            paths_in(&table).for_each(drop);
        }
    }
}
