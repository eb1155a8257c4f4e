//! The keys that the user stored, in a file that only they can read.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::bounded_file::read_bytes;
use crate::user_file::{lock, replace};

/// Keys by the names of providers.
#[derive(Clone)]
pub struct KeyStore {
    path: PathBuf,
    keys: BTreeMap<String, String>,
}

/// Why stored keys can't be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum KeyStoreError {
    /// The file can't be opened or read.
    #[error("the stored keys can't be read: {path}: {source}")]
    Unreadable {
        /// The file with the keys.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// The file is no list of keys. What stands in it is not told, for it may be a key.
    #[error("the stored keys can't be understood: {path}")]
    Damaged {
        /// The file with the keys.
        path: PathBuf,
    },
    /// Others than the user may read the file.
    #[error("others on this machine can read the stored keys: {path}")]
    Exposed {
        /// The file with the keys.
        path: PathBuf,
    },
    /// The file can't be replaced.
    #[error("the key can't be stored: {path}: {source}")]
    Unwritable {
        /// The file with the keys.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
}

impl KeyStoreError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            KeyStoreError::Unreadable { .. } => "Check who owns the file and who may read it.".to_owned(),
            KeyStoreError::Damaged { .. } => "Fix the file, or delete it and log in again.".to_owned(),
            KeyStoreError::Exposed { path } => {
                format!("Run `chmod 600 {}`; if others may have read it, make new keys.", path.display())
            }
            KeyStoreError::Unwritable { .. } => {
                "Check that the disk is not full and that the folder may be written to.".to_owned()
            }
        }
    }
}

/// The file as it is written. Errors never quote it.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFileDocument {
    #[serde(default)]
    keys: BTreeMap<String, String>,
}

impl KeyStore {
    /// A file that is not there holds no keys.
    pub fn read(path: impl Into<PathBuf>) -> Result<KeyStore, KeyStoreError> {
        let path = path.into();
        let keys = read_keys(&path)?;
        Ok(KeyStore { path, keys })
    }

    /// The key that is stored for a provider.
    pub fn get(&self, provider: &str) -> Option<&str> {
        self.keys.get(provider).map(String::as_str)
    }

    /// The providers that a key is stored for, sorted by name.
    pub fn providers(&self) -> impl Iterator<Item = &str> {
        self.keys.keys().map(String::as_str)
    }

    /// The file that the keys are in.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Stores a key, in the place of another.
    pub fn store(&mut self, provider: &str, key: &str) -> Result<(), KeyStoreError> {
        self.update(|keys| drop(keys.insert(provider.to_owned(), key.to_owned())))
    }

    /// Forgets a key.
    pub fn forget(&mut self, provider: &str) -> Result<(), KeyStoreError> {
        self.update(|keys| drop(keys.remove(provider)))
    }

    fn update(&mut self, change: impl FnOnce(&mut BTreeMap<String, String>)) -> Result<(), KeyStoreError> {
        let unwritable = |source| KeyStoreError::Unwritable { path: self.path.clone(), source };
        let _lock = lock(&self.path).map_err(unwritable)?;
        let mut keys = read_keys(&self.path)?;
        change(&mut keys);
        let text = toml::to_string(&KeyFileDocument { keys: keys.clone() });
        let text = text.map_err(|error| unwritable(io::Error::other(error)))?;
        replace(&self.path, &text).map_err(unwritable)?;
        self.keys = keys;
        Ok(())
    }
}

/// Shows whose keys there are, and none of them.
impl fmt::Debug for KeyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyStore").field("path", &self.path).field("providers", &self.keys.keys()).finish()
    }
}

fn read_keys(path: &Path) -> Result<BTreeMap<String, String>, KeyStoreError> {
    let bytes = match read_bytes(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(source) => return Err(KeyStoreError::Unreadable { path: path.to_owned(), source }),
    };
    if is_exposed(path) {
        return Err(KeyStoreError::Exposed { path: path.to_owned() });
    }
    let damaged = || KeyStoreError::Damaged { path: path.to_owned() };
    let text = String::from_utf8(bytes).map_err(|_| damaged())?;
    let document: KeyFileDocument = toml::from_str(&text).map_err(|_| damaged())?;
    Ok(document.keys)
}

#[cfg(unix)]
fn is_exposed(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    path.metadata().is_ok_and(|file| file.mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_exposed(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn keys_are_kept_in_a_file_for_the_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new").join("keys.toml");
        let mut keys = KeyStore::read(&path).unwrap();
        assert_eq!(keys.get("anthropic"), None);
        keys.store("anthropic", "sk-1\"'").unwrap();
        let mut other = KeyStore::read(&path).unwrap();
        other.store("openai", "sk-2").unwrap();
        keys.store("anthropic", "sk-3").unwrap();
        let keys = KeyStore::read(&path).unwrap();
        assert_eq!((keys.get("anthropic"), keys.get("openai")), (Some("sk-3"), Some("sk-2")));
        assert!(!format!("{keys:?}").contains("sk-"));
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::MetadataExt::mode(&path.metadata().unwrap()) & 0o777, 0o600);
        other.forget("openai").unwrap();
        assert_eq!(KeyStore::read(&path).unwrap().providers().collect::<Vec<_>>(), ["anthropic"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.toml");
        fs::write(&path, "[keys]\nopenai = \"sk-1\"\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = KeyStore::read(&path).unwrap_err();
        assert!(matches!(error, KeyStoreError::Exposed { .. }) && error.hint().contains("chmod 600"));
    }

    #[test]
    fn a_damaged_file_is_told_without_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.toml");
        fs::write(&path, "openai = sk-secret").unwrap();
        #[cfg(unix)]
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let error = KeyStore::read(&path).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("sk-secret"));
    }
}
