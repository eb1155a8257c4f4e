//! What a file has besides its bytes. Whatever takes its place shall have the same.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, fchown};

use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr};

/// The kernel lets names and a value be no larger.
const MAX_XATTR_BYTES: usize = 64 << 10;
/// What all values of one file may take.
const MAX_XATTR_VALUES_BYTES: usize = 256 << 10;
/// Who may do what, besides the mode.
const ACL_XATTR: &[u8] = b"system.posix_acl_access";
/// These speak of the bytes: other bytes must not have them.
const CONTENT_XATTRS: [&[u8]; 3] = [b"security.capability", b"security.evm", b"security.ima"];

/// Owner, mode and extended attributes of a file.
#[derive(Clone, Debug)]
pub(crate) struct FileAttributes {
    pub(crate) facts: Metadata,
    attributes: Vec<ExtendedAttribute>,
}

#[derive(Clone, Debug)]
struct ExtendedAttribute {
    name: Vec<u8>,
    value: Vec<u8>,
}

impl FileAttributes {
    /// Of a file that is open.
    pub(crate) fn of(file: &File) -> io::Result<FileAttributes> {
        Ok(FileAttributes { facts: file.metadata()?, attributes: attributes(file) })
    }

    /// Makes a new file like this one. Only the mode must work: not every file system has the rest, and not everybody may
    /// give it.
    pub(crate) fn give_to(&self, file: &File) -> io::Result<()> {
        if fchown(file, Some(self.facts.uid()), Some(self.facts.gid())).is_err() {
            // Only the superuser gives files away, but a group that one is in can be given.
            let _ = fchown(file, None, Some(self.facts.gid()));
        }
        // A folder may have given it rights that the old file has not.
        let _ = fremovexattr(file, ACL_XATTR);
        for ExtendedAttribute { name, value } in &self.attributes {
            let _ = fsetxattr(file, name.as_slice(), value, XattrFlags::empty());
        }
        // At last, because a change of owner or rights changes the mode too.
        file.set_permissions(self.facts.permissions())
    }
}

/// What can be read of the attributes.
fn attributes(file: &File) -> Vec<ExtendedAttribute> {
    let mut buffer = vec![0; MAX_XATTR_BYTES];
    let names = flistxattr(file, buffer.as_mut_slice()).unwrap_or_default();
    let names = buffer.get(..names).unwrap_or_default().to_vec();
    let mut room = MAX_XATTR_VALUES_BYTES;
    let mut attributes = Vec::new();
    for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let is_wanted = !CONTENT_XATTRS.contains(&name);
        let Ok(size) = fgetxattr(file, name, buffer.as_mut_slice()) else { continue };
        let value = buffer.get(..size).filter(|value| is_wanted && value.len() <= room);
        if let Some(value) = value {
            room -= value.len();
            attributes.push(ExtendedAttribute { name: name.to_owned(), value: value.to_owned() });
        }
    }
    attributes
}
