//! Which projects the user trusts, in a file of the user's own.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::bounded_file::read_bytes;
use crate::escaping::escape_and_shorten;
use crate::user_file::{lock, replace};

/// The trusted projects: the root of each, and the digest of what it asked for when it was trusted.
#[derive(Clone, Debug)]
pub struct TrustStore {
    path: PathBuf,
    digests: BTreeMap<PathBuf, String>,
}

/// Why the list of trusted projects can't be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum TrustStoreError {
    /// The file can't be opened or read.
    #[error("the list of trusted projects can't be read: {path}: {source}")]
    Unreadable {
        /// The file with the list.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// The file is no such list.
    #[error("the list of trusted projects is damaged: {path}: {message}")]
    Damaged {
        /// The file with the list.
        path: PathBuf,
        /// What is wrong with it, safe to show in a terminal.
        message: String,
    },
    /// The file can't be replaced.
    #[error("the list of trusted projects can't be saved: {path}: {source}")]
    Unwritable {
        /// The file with the list.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// A project whose path can't be written to the file.
    #[error("{root:?} can't be trusted: its path is not absolute, or not Unicode")]
    Root {
        /// The root of the project.
        root: PathBuf,
    },
}

impl TrustStoreError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            TrustStoreError::Unreadable { .. } => "check who owns the file and who may read it",
            TrustStoreError::Damaged { .. } => "fix the file, or delete it and trust your projects again",
            TrustStoreError::Unwritable { .. } => {
                "check that the disk is not full and that the folder may be written to"
            }
            TrustStoreError::Root { .. } => "rename the folder, or move the project",
        }
    }
}

/// The file as it is written.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrustFileDocument {
    #[serde(default)]
    trusted: Vec<TrustedProject>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrustedProject {
    root: String,
    digest: String,
}

impl TrustStore {
    /// A file that is not there is an empty list. One that can't be understood is an error: nothing is
    /// trusted then, and nothing in it is overwritten.
    pub fn read(path: impl Into<PathBuf>) -> Result<TrustStore, TrustStoreError> {
        let path = path.into();
        let digests = read_digests(&path)?;
        Ok(TrustStore { path, digests })
    }

    /// Trusts nobody, and can't be saved.
    pub fn empty() -> TrustStore {
        TrustStore { path: PathBuf::new(), digests: BTreeMap::new() }
    }

    /// What was trusted of the project with this root.
    pub fn digest_of(&self, root: &Path) -> Option<&str> {
        self.digests.get(root).map(String::as_str)
    }

    /// The roots of all trusted projects.
    pub fn roots(&self) -> impl Iterator<Item = &Path> {
        self.digests.keys().map(PathBuf::as_path)
    }

    /// Trusts a project, given its canonical root and the digest of what it asks for, and saves that.
    pub fn trust(&mut self, root: &Path, digest: &str) -> Result<(), TrustStoreError> {
        if !root.is_absolute() || root.to_str().is_none() {
            return Err(TrustStoreError::Root { root: root.to_owned() });
        }
        self.update(|digests| {
            digests.insert(root.to_owned(), digest.to_owned());
        })
    }

    /// Trusts a project no longer, and saves that.
    pub fn forget(&mut self, root: &Path) -> Result<(), TrustStoreError> {
        self.update(|digests| {
            digests.remove(root);
        })
    }

    /// Other processes may have saved something since: the file is read again, under a lock that they take
    /// too.
    fn update(&mut self, change: impl FnOnce(&mut BTreeMap<PathBuf, String>)) -> Result<(), TrustStoreError> {
        let unwritable = |source| TrustStoreError::Unwritable { path: self.path.clone(), source };
        let _lock = lock(&self.path).map_err(unwritable)?;
        let mut digests = read_digests(&self.path)?;
        change(&mut digests);
        let text =
            toml::to_string(&document(&digests)).map_err(|error| unwritable(io::Error::other(error)))?;
        replace(&self.path, &text).map_err(unwritable)?;
        self.digests = digests;
        Ok(())
    }
}

fn read_digests(path: &Path) -> Result<BTreeMap<PathBuf, String>, TrustStoreError> {
    let text = match read_bytes(path) {
        Ok(bytes) => String::from_utf8(bytes).map_err(|_| damaged(path, "it is not UTF-8 text"))?,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(source) => return Err(TrustStoreError::Unreadable { path: path.to_owned(), source }),
    };
    let document: TrustFileDocument =
        toml::from_str(&text).map_err(|error| damaged(path, error.message()))?;
    Ok(document.trusted.into_iter().map(|trusted| (trusted.root.into(), trusted.digest)).collect())
}

fn damaged(path: &Path, message: &str) -> TrustStoreError {
    TrustStoreError::Damaged { path: path.to_owned(), message: escape_and_shorten(message) }
}

fn document(digests: &BTreeMap<PathBuf, String>) -> TrustFileDocument {
    let entry = |(root, digest): (&PathBuf, &String)| {
        Some(TrustedProject { root: root.to_str()?.to_owned(), digest: digest.clone() })
    };
    TrustFileDocument { trusted: digests.iter().filter_map(entry).collect() }
}
