//! Other paths to the same files: a folder can be mounted in several places, and what is hidden in one of them would be
//! read in another.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::real_paths::is_at_or_below;

/// More than any machine has: each is covered one by one.
const MAX_MOUNT_ALIASES: usize = 1_000;

/// A part of a file system, and where it is seen.
#[derive(Debug, PartialEq, Eq)]
struct MountEntry<'t> {
    file_system: &'t [u8],
    /// The folder in that file system which is seen.
    root: PathBuf,
    at: PathBuf,
}

/// All other paths that lead to the same as these, which are real.
pub(super) fn find_aliases(paths: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let table = fs::read("/proc/self/mountinfo")?;
    let mounts: Vec<MountEntry<'_>> = table.split(|byte| *byte == b'\n').filter_map(mount).collect();
    let mut all = Vec::new();
    for path in paths {
        let aliases = aliases(&mounts, path).into_iter().filter(|(alias, of)| may_be_same(alias, of));
        all.extend(aliases.map(|(alias, _)| alias));
        if all.len() > MAX_MOUNT_ALIASES {
            return Err(Errno::TOOBIG.into());
        }
    }
    Ok(all)
}

/// Where something is mounted.
pub(super) fn mount_points() -> io::Result<Vec<PathBuf>> {
    let table = fs::read("/proc/self/mountinfo")?;
    Ok(table.split(|byte| *byte == b'\n').filter_map(mount).map(|mount| mount.at).collect())
}

/// Where else a path is seen, or something below it: the other path with the one that it is another name of.
fn aliases(mounts: &[MountEntry<'_>], path: &Path) -> Vec<(PathBuf, PathBuf)> {
    // Of several at one place, the last one is seen.
    let around = mounts.iter().filter(|mount| is_at_or_below(path, &mount.at));
    let Some(own) = around.max_by_key(|mount| mount.at.as_os_str().len()) else { return Vec::new() };
    if mounts.iter().filter(|mount| mount.file_system == own.file_system).nth(1).is_none() {
        return Vec::new();
    }
    let Ok(inside) = path.strip_prefix(&own.at) else { return Vec::new() };
    let real = join(&own.root, inside);
    let alias =
        |mount: &MountEntry<'_>| match (real.strip_prefix(&mount.root), mount.root.strip_prefix(&real)) {
            (Ok(inside), _) => Some((join(&mount.at, inside), path.to_owned())),
            (_, Ok(below)) => Some((mount.at.clone(), join(path, below))),
            _ => None,
        };
    let others = mounts.iter().filter(|mount| mount.file_system == own.file_system);
    others.filter_map(alias).filter(|(alias, _)| !alias.starts_with(path)).collect()
}

/// Like `join`, but a folder joined with nothing has no slash at its end.
fn join(folder: &Path, inside: &Path) -> PathBuf {
    if inside.as_os_str().is_empty() { folder.to_owned() } else { folder.join(inside) }
}

/// Whether both are the same file, as far as can be seen: something else may be mounted over either.
fn may_be_same(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| fs::symlink_metadata(path).map(|it| (it.dev(), it.ino()));
    match (identity(one), identity(other)) {
        (Ok(one), Ok(other)) => one == other,
        (Err(error), _) => error.kind() != io::ErrorKind::NotFound,
        (_, Err(_)) => true,
    }
}

/// A line of the system's table of mounts: number, number, file system, root, place, …
fn mount(line: &[u8]) -> Option<MountEntry<'_>> {
    let mut fields = line.split(|byte| *byte == b' ').skip(2);
    let file_system = fields.next()?;
    let (root, at) = (unescaped(fields.next()?), unescaped(fields.next()?));
    (root.is_absolute() && at.is_absolute()).then_some(MountEntry { file_system, root, at })
}

/// Spaces and their like are written as three octal digits.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let code = after
            .get(..3)
            .filter(|_| *first == b'\\')
            .and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { after.get(3..).unwrap_or_default() } else { after };
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const TABLE: &str = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
        23 22 0:21 / /proc rw - proc proc rw\n\
        24 22 8:2 / /home rw - ext4 /dev/sda2 rw\n\
        25 22 8:2 / /mnt/all rw - ext4 /dev/sda2 rw\n\
        26 22 8:2 /u /mnt/one\\040user rw - ext4 /dev/sda2 rw\n\
        27 22 8:2 /u/.ssh/deep /mnt/deep rw - ext4 /dev/sda2 rw\n\
        28 22 8:2 /v /mnt/other rw - ext4 /dev/sda2 rw\n\
        29 22 8:1 /srv /mnt/srv rw - ext4 /dev/sda1 rw\n";

    fn found(path: &str) -> Vec<(String, String)> {
        let mounts: Vec<MountEntry<'_>> =
            TABLE.as_bytes().split(|byte| *byte == b'\n').filter_map(mount).collect();
        assert_eq!(mounts.len(), 8);
        let text = |path: PathBuf| path.into_os_string().into_string().unwrap();
        aliases(&mounts, Path::new(path)).into_iter().map(|(alias, of)| (text(alias), text(of))).collect()
    }

    #[test]
    fn every_other_way_is_found() {
        let expected = [
            ("/mnt/all/u/.ssh", "/home/u/.ssh"),
            ("/mnt/one user/.ssh", "/home/u/.ssh"),
            ("/mnt/deep", "/home/u/.ssh/deep"),
        ];
        assert_eq!(found("/home/u/.ssh"), expected.map(|(alias, of)| (alias.to_owned(), of.to_owned())));
        assert_eq!(found("/etc/secret"), []);
        assert_eq!(found("/srv/x"), [("/mnt/srv/x".to_owned(), "/srv/x".to_owned())]);
    }

    #[test]
    fn only_the_same_file_is_an_alias() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("a"), "").unwrap();
        fs::write(path("b"), "").unwrap();
        assert!(may_be_same(&path("a"), &path("a")));
        assert!(!may_be_same(&path("a"), &path("b")) && !may_be_same(&path("none"), &path("a")));
    }

    proptest! {
        #[test]
        fn a_garbled_table_never_panics(line in vec(any::<u8>(), 0..200), path in "(/[a-c.]{0,2}){1,4}") {
            let mounts: Vec<MountEntry<'_>> = mount(&line).into_iter().collect();
            let _ = aliases(&mounts, Path::new(&path));
        }

        #[test]
        fn names_are_read_as_they_are_written(name in vec(any::<u8>(), 0..40)) {
            let escape = |byte: &u8| match byte {
                b' ' | b'\t' | b'\n' | b'\\' => format!("\\{byte:03o}").into_bytes(),
                byte => vec![*byte],
            };
            let written: Vec<u8> = name.iter().flat_map(escape).collect();
            let read = unescaped(&written);
            prop_assert_eq!(read.as_os_str().as_bytes(), name);
        }
    }
}
