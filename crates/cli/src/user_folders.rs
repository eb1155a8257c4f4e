//! Where things are.

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;

use crate::failure::CliFailure;

/// What nobody but the administrator of the machine can change, and nothing can point elsewhere.
#[cfg(target_os = "macos")]
pub(crate) const ADMINISTRATOR_FILE: &str = "/Library/Application Support/Helve/config.toml";
#[cfg(not(target_os = "macos"))]
pub(crate) const ADMINISTRATOR_FILE: &str = "/etc/helve/config.toml";

const PROJECT_NAME_CHARS: usize = 16;

/// The user's folders.
#[derive(Clone, Debug)]
pub(crate) struct UserFolders {
    config: PathBuf,
    data: PathBuf,
}

impl UserFolders {
    /// `HELVE_HOME` for everything if it is set, else the platform's own.
    pub(crate) fn find() -> Result<UserFolders, CliFailure> {
        if let Some(home) = std::env::var_os("HELVE_HOME").filter(|home| !home.is_empty()) {
            let home = PathBuf::from(home);
            if !home.is_absolute() {
                let what = format!("HELVE_HOME is {:?}", home.display().to_string());
                let why = "that depends on where you are, so your sessions would be somewhere else each time";
                return Err(CliFailure::usage(what, why, "Set it to a path that begins with a slash."));
            }
            return Ok(UserFolders { config: home.clone(), data: home });
        }
        let base = etcetera::choose_base_strategy().map_err(|error| {
            CliFailure::usage(
                "the home folder can't be found",
                error,
                "Set HOME, or HELVE_HOME to a folder of yours.",
            )
        })?;
        Ok(UserFolders { config: base.config_dir().join("helve"), data: base.data_dir().join("helve") })
    }

    pub(crate) fn user_settings(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// Which projects are trusted.
    pub(crate) fn trust(&self) -> PathBuf {
        self.config.join("trust.toml")
    }

    /// The keys that the user stored.
    pub(crate) fn keys(&self) -> PathBuf {
        self.config.join("keys.toml")
    }

    /// What was remembered about the user.
    pub(crate) fn memory(&self) -> PathBuf {
        self.config.join("memory.md")
    }

    /// Sessions and their catalogue.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// What sessions last saw of their projects.
    pub(crate) fn seen(&self) -> PathBuf {
        self.data().join("seen")
    }

    /// What commands leave for those that come after them in the same project: temporary files, changes of caches.
    pub(crate) fn private(&self) -> PathBuf {
        self.data.join("private")
    }

    /// Everything of this program: nobody's business but the user's.
    pub(crate) fn own(&self) -> Vec<PathBuf> {
        let mut own = vec![self.config.clone(), self.data.clone()];
        own.dedup();
        own
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.data.join("logs")
    }
}

/// The project that a folder belongs to: the nearest one above with a `.git` or a `.helve`, else the folder itself. A home
/// folder with such a folder in it does not make everything below it one project.
pub(crate) fn project_root(cwd: &Path, home: Option<&Path>) -> PathBuf {
    let is_home = |folder: &Path| home.is_some_and(|home| home.starts_with(folder));
    let is_marked = |folder: &Path| folder.join(".git").exists() || folder.join(".helve").is_dir();
    let is_root = |folder: &&Path| is_marked(folder) && (*folder == cwd || !is_home(folder));
    cwd.ancestors().find(is_root).unwrap_or(cwd).to_owned()
}

/// A short name for a project, the same with every build: files are stored under it. It does not tell where the project is.
pub(crate) fn project_name(root: &Path) -> String {
    let hash = blake3::hash(root.as_os_str().as_encoded_bytes()).to_hex();
    hash.chars().take(PROJECT_NAME_CHARS).collect()
}

/// What was remembered about a project.
pub(crate) fn project_memory(root: &Path) -> PathBuf {
    root.join(".helve").join("memory.md")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_name_of_a_project_does_not_depend_on_the_build() {
        assert_eq!(project_name(Path::new("/home/ann/work")), "5e2e3968260129d3");
        assert_ne!(project_name(Path::new("/home/ann/work")), project_name(Path::new("/home/ann/work2")));
    }

    #[test]
    fn the_nearest_marked_folder_is_the_project_and_the_home_folder_never_by_accident() {
        let base = tempfile::tempdir().unwrap();
        let folder = |path: &str| {
            fs::create_dir_all(base.path().join(path)).unwrap();
            base.path().join(path)
        };
        let home = folder("home");
        folder("home/.git");
        folder("home/project/.git");
        folder("home/project/part/.helve");
        let root = |path: &str| project_root(&folder(path), Some(&home));
        assert_eq!(root("home/project/src/deep"), folder("home/project"));
        assert_eq!(root("home/project/part/src"), folder("home/project/part"));
        assert_eq!(root("home/notes/deep"), folder("home/notes/deep"));
        assert_eq!(root("home"), home);
        assert_eq!(root("plain"), folder("plain"));
    }
}
