//! What the file system says about a path, without its content.

use std::time::Duration;

use helve_protocol::Timestamp;
use rustix::fs::FileType;

/// File systems round times: ext4 to a tick of some milliseconds on older kernels, FAT to two seconds. Whatever
/// changed so shortly before a look may change again and look the same, so it is read the next time.
const COARSEST_TICK: Duration = Duration::from_secs(2);

/// A moment as file systems tell it, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileTime(i64);

impl FileTime {
    pub(crate) const fn new(seconds: i64, nanoseconds: i64) -> FileTime {
        FileTime(seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds))
    }

    pub(crate) const fn from_nanoseconds(nanoseconds: i64) -> FileTime {
        FileTime(nanoseconds)
    }

    pub(crate) const fn nanoseconds(self) -> i64 {
        self.0
    }

    /// Whether a later change could have the same time as this one, if it was seen at `look`.
    fn is_fresh_at(self, look: FileTime) -> bool {
        let tick = i64::try_from(COARSEST_TICK.as_nanos()).unwrap_or(i64::MAX);
        self.0.saturating_add(tick) >= look.0
    }
}

impl From<Timestamp> for FileTime {
    fn from(time: Timestamp) -> FileTime {
        FileTime(i64::try_from(time.millis()).unwrap_or(i64::MAX).saturating_mul(1_000_000))
    }
}

/// The type and the permissions of a file, as `st_mode` has them: `0o100644`, `0o120777`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileMode(u32);

/// What a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
    /// A folder.
    Folder,
    /// A pipe, a socket, a device.
    Special,
}

impl FileMode {
    /// The mode with these bits of `st_mode`.
    pub const fn from_bits(bits: u32) -> FileMode {
        FileMode(bits)
    }

    /// All bits, as `st_mode` has them.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The permissions alone: `0o644`.
    pub const fn permissions(self) -> u32 {
        self.0 & 0o7777
    }

    /// The type alone.
    pub fn kind(self) -> PathKind {
        match FileType::from_raw_mode(self.0) {
            FileType::RegularFile => PathKind::File,
            FileType::Symlink => PathKind::Link,
            FileType::Directory => PathKind::Folder,
            _ => PathKind::Special,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStat {
    pub(crate) size: u64,
    pub(crate) modified: FileTime,
    /// When anything about the file last changed. Nobody can set it, so it finds what `touch -d` hides.
    pub(crate) changed: FileTime,
    pub(crate) inode: u64,
    pub(crate) mode: FileMode,
}

impl FileStat {
    pub(crate) fn kind(&self) -> PathKind {
        self.mode.kind()
    }

    pub(crate) fn is_racy_at(&self, look: FileTime) -> bool {
        self.changed.is_fresh_at(look)
    }

    /// Whether the content may differ, as far as can be told without reading it.
    pub(crate) fn may_differ_in_content(&self, other: &FileStat) -> bool {
        (self.size, self.modified, self.inode) != (other.size, other.modified, other.inode)
            || self.kind() != other.kind()
    }

    /// The same for what nobody reads, so that a time that was put back must not hide anything.
    pub(crate) fn may_differ(&self, other: &FileStat) -> bool {
        self.may_differ_in_content(other) || self.changed != other.changed
    }
}

impl From<rustix::fs::Stat> for FileStat {
    fn from(stat: rustix::fs::Stat) -> FileStat {
        let nanoseconds = |part| i64::try_from(part).unwrap_or(0);
        FileStat {
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: FileTime::new(stat.st_mtime, nanoseconds(stat.st_mtime_nsec)),
            changed: FileTime::new(stat.st_ctime, nanoseconds(stat.st_ctime_nsec)),
            inode: stat.st_ino,
            mode: FileMode(stat.st_mode),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_within_a_tick_of_the_look_is_racy() {
        let look = FileTime::from(Timestamp::from_millis(10_000));
        let changed = |seconds| FileStat {
            size: 1,
            modified: FileTime::new(0, 0),
            changed: FileTime::new(seconds, 0),
            inode: 1,
            mode: FileMode::from_bits(0o100_644),
        };
        let racy: Vec<bool> = [7, 8, 9, 10, 11].map(|s| changed(s).is_racy_at(look)).to_vec();
        assert_eq!(racy, [false, true, true, true, true]);
    }

    #[test]
    fn modes_know_their_kind() {
        let kind = |bits| FileMode::from_bits(bits).kind();
        assert_eq!(kind(0o100_755), PathKind::File);
        assert_eq!(kind(0o120_777), PathKind::Link);
        assert_eq!(kind(0o040_755), PathKind::Folder);
        assert_eq!(kind(0o010_644), PathKind::Special);
    }
}
