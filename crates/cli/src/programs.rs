//! Programs that Helve starts by itself, found where nobody but the user puts them.
//!
//! A `PATH` may lead into the project (`.venv/bin`, `node_modules/.bin`, `.`), and whoever writes the project, or runs a confined
//! command in it, could put a `git` there. Such places are passed over, also where a link leads into one.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use helve_workspace::WorkspaceRoot;

use crate::setup::CliSetup;

/// Where everybody can write.
const WORLD_WRITABLE_FOLDERS: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Finds programs outside of all that a project or its commands can write.
#[derive(Clone, Debug)]
pub(crate) struct ProgramFinder {
    folders: Vec<PathBuf>,
    /// Canonical paths.
    writable: Vec<PathBuf>,
}

impl ProgramFinder {
    /// Finds programs outside of the project, of `caches` and of whatever else others may write.
    pub(crate) fn new(setup: &CliSetup, caches: Vec<PathBuf>) -> ProgramFinder {
        let roots = WorkspaceRoot::named(&setup.root).into_iter().chain(setup.added.iter().cloned());
        let of_root = |root: WorkspaceRoot| {
            let repository = root.repository().map(Path::to_owned);
            std::iter::once(root.folder().to_owned()).chain(repository)
        };
        let everybodys = WORLD_WRITABLE_FOLDERS.iter().map(PathBuf::from).chain([std::env::temp_dir()]);
        let writable = roots.flat_map(of_root).chain([setup.cwd.clone()]).chain(caches).chain(everybodys);
        ProgramFinder::outside(std::env::var_os("PATH").unwrap_or_default(), writable)
    }

    fn outside(path: OsString, writable: impl Iterator<Item = PathBuf>) -> ProgramFinder {
        let writable: Vec<PathBuf> = writable.filter_map(|folder| folder.canonicalize().ok()).collect();
        ProgramFinder { folders: std::env::split_paths(&path).collect(), writable }
    }

    /// The program of this name, as the `PATH` has it.
    pub(crate) fn find(&self, name: &str) -> Option<PathBuf> {
        // A name that is a path has no place to be looked for.
        let is_name = !name.is_empty() && !name.contains('/');
        let folders = self.folders.iter().filter(|folder| is_name && self.is_outside(folder));
        folders
            .map(|folder| folder.join(name))
            .find(|program| is_program(program) && self.is_outside(program))
    }

    /// A shell that understands what every shell does.
    pub(crate) fn shell(&self) -> PathBuf {
        self.find("sh").unwrap_or_else(|| PathBuf::from("/bin/sh"))
    }

    /// The `PATH` without the places where programs are not looked for.
    pub(crate) fn path(&self) -> OsString {
        let outside = self.folders.iter().filter(|folder| self.is_outside(folder));
        std::env::join_paths(outside).unwrap_or_default()
    }

    /// Whether nobody but the user could have put there what is at a path, wherever links lead.
    pub(crate) fn is_outside(&self, path: &Path) -> bool {
        let is_written = |path: &Path| self.writable.iter().any(|folder| path.starts_with(folder));
        // The folder is looked at by itself: a link in a project may lead to a program elsewhere, until it does not.
        let real_folder = path.parent().and_then(|folder| folder.canonicalize().ok());
        let is_real_outside = path.canonicalize().is_ok_and(|real| !is_written(&real));
        path.is_absolute()
            && !is_written(path)
            && is_real_outside
            && !real_folder.is_some_and(|folder| is_written(&folder))
    }
}

pub(crate) fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}

/// The first word of a command, if it is a plain one that a shell would take as it stands.
pub(crate) fn first_word(command: &str) -> Option<&str> {
    let word = command.split_whitespace().next()?;
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._+-~".contains(letter);
    word.chars().all(is_plain).then_some(word)
}

/// What a program is called, for those who know shells by name.
pub(crate) fn is_called(program: &OsStr, names: &[&str]) -> bool {
    Path::new(program).file_name().and_then(OsStr::to_str).is_some_and(|name| names.contains(&name))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    struct Machine {
        folder: tempfile::TempDir,
    }

    impl Machine {
        fn new() -> Machine {
            let machine = Machine { folder: tempfile::tempdir().unwrap() };
            for folder in ["usr/bin", "project/.venv/bin", "linked"] {
                fs::create_dir_all(machine.at(folder)).unwrap();
            }
            machine.plant("usr/bin/git");
            machine.plant("project/.venv/bin/git");
            machine
        }

        fn at(&self, path: &str) -> PathBuf {
            self.folder.path().join(path)
        }

        fn plant(&self, path: &str) {
            fs::write(self.at(path), "#!/bin/sh\n").unwrap();
            fs::set_permissions(self.at(path), fs::Permissions::from_mode(0o755)).unwrap();
        }

        fn find(&self, folders: &[PathBuf]) -> Option<PathBuf> {
            let path = std::env::join_paths(folders).unwrap();
            ProgramFinder::outside(path, [self.at("project")].into_iter()).find("git")
        }
    }

    #[test]
    fn what_is_in_the_project_is_passed_over() {
        let machine = Machine::new();
        let good = machine.at("usr/bin");
        assert_eq!(machine.find(&[machine.at("project/.venv/bin"), good.clone()]), Some(good.join("git")));
        assert_eq!(
            machine.find(&[machine.at("usr/../project/.venv/bin"), good.clone()]),
            Some(good.join("git"))
        );
        assert_eq!(
            machine.find(&[".".into(), "bin".into(), "".into(), good.clone()]),
            Some(good.join("git"))
        );
        assert_eq!(machine.find(&[machine.at("project/.venv/bin")]), None);
    }

    #[test]
    fn no_link_leads_into_the_project_or_out_of_it() {
        let machine = Machine::new();
        symlink(machine.at("project/.venv/bin"), machine.at("bin")).unwrap();
        assert_eq!(machine.find(&[machine.at("bin")]), None, "a folder that is a link");
        symlink(machine.at("project/.venv/bin/git"), machine.at("linked/git")).unwrap();
        assert_eq!(machine.find(&[machine.at("linked")]), None, "a program that is a link");
        fs::create_dir(machine.at("project/bin")).unwrap();
        symlink(machine.at("usr/bin/git"), machine.at("project/bin/git")).unwrap();
        assert_eq!(machine.find(&[machine.at("project/bin")]), None, "a link that the project has");
    }

    #[test]
    fn a_path_is_no_name() {
        let machine = Machine::new();
        let path = std::env::join_paths([machine.at("usr/bin")]).unwrap();
        let programs = ProgramFinder::outside(path, [machine.at("project")].into_iter());
        assert_eq!(programs.find("../../project/.venv/bin/git"), None);
        assert_eq!(programs.find(""), None);
    }

    #[test]
    fn the_first_word_is_known_only_where_a_shell_leaves_it() {
        assert_eq!(first_word("code --wait"), Some("code"));
        assert_eq!(first_word("  /usr/bin/vim -n "), Some("/usr/bin/vim"));
        for strange in ["", "\"my editor\"", "$EDITOR", "a;b", "X=1 vim", "`vim`"] {
            assert_eq!(first_word(strange), None, "{strange}");
        }
    }
}
