//! Where git may have the user's credentials: in the project's own repository, as long as nothing that git reads there runs
//! something or leads elsewhere.
//!
//! What git would use is found as git finds it: the git folder from the folder that it is run in upwards, where a `.git` that is
//! a file leads, and the folder that several work trees share. Each file of settings in those must have nothing but settings
//! that are known to be harmless. For `git submodule` the same holds for every repository in the work tree and below
//! `modules`, wherever they lie and however many there are.

use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::commands::read_up_to;
use crate::shell::repository_safety::{HARMLESS_IN_MODULES, harmful_setting};

/// A file that says where git keeps something.
const MAX_GIT_FILE_BYTES: u64 = 64 << 10;
/// Files of settings, in a git folder.
const GIT_SETTINGS_FILES: [&str; 2] = ["config", "config.worktree"];
/// Folders that a command has for itself, whatever they are outside.
const PRIVATE_FOLDERS: [&str; 5] = ["/tmp", "/var/tmp", "/dev", "/run", "/proc"];

/// Variables by which git works on another repository, with other settings or with other parts than it finds by itself.
pub(crate) const REDIRECTING_GIT_VARIABLES: [&str; 23] = [
    "GIT_ALLOW_PROTOCOL",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CEILING_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_PROTOCOL_FROM_USER",
    "GIT_PROXY_COMMAND",
    "GIT_SHALLOW_FILE",
    "GIT_SSH",
    "GIT_SSH_VARIANT",
    "GIT_TEMPLATE_DIR",
    "GIT_WORK_TREE",
];

/// What git works on in the project.
pub(crate) enum CheckedRepository {
    /// The folder above which git must not look for a repository.
    Fine { ceiling: PathBuf },
    /// Why it gets no credentials, in words.
    Refused(String),
}

/// Looks at all that decides what git does in a folder of the project, where `root` is the project's. Both are real paths.
pub(crate) fn check_repository(words: &[String], at: &Path, root: &Path) -> CheckedRepository {
    let top = root.ancestors().find(|folder| is_repository_top(folder));
    let ceiling = top.unwrap_or(root).parent().unwrap_or(Path::new("/")).to_owned();
    let obstacle = nested_repository(at, root).or_else(|| match top {
        None => None,
        Some(top) if top != root && is_private(top) => {
            Some(format!("{} is not the project's", top.display()))
        }
        Some(top) => obstacle_in(top, root, words.iter().any(|word| word == "submodule")),
    });
    match obstacle {
        None => CheckedRepository::Fine { ceiling },
        Some(obstacle) => CheckedRepository::Refused(obstacle),
    }
}

/// A repository between a folder and the project's.
fn nested_repository(at: &Path, root: &Path) -> Option<String> {
    let between = at.ancestors().take_while(|folder| *folder != root && folder.starts_with(root));
    let nested = { between }.find(|folder| is_repository_top(folder))?;
    Some(format!("{} is another repository than the project's", shown(nested, root)))
}

/// Whether git would find a repository in a folder: a `.git` of any kind, or a git folder as such.
fn is_repository_top(folder: &Path) -> bool {
    is_there(&folder.join(".git")) || is_git_folder(folder)
}

/// Whether git could take a folder for a git folder.
fn is_git_folder(folder: &Path) -> bool {
    is_there(&folder.join("HEAD"))
        && (is_there(&folder.join("objects")) || is_there(&folder.join("commondir")))
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn is_private(path: &Path) -> bool {
    PRIVATE_FOLDERS.iter().any(|folder| path.starts_with(folder))
}

fn shown(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

/// What decides something in the repository of a folder.
fn obstacle_in(top: &Path, root: &Path, has_submodules: bool) -> Option<String> {
    let git = top.join(".git");
    let folders = match git.symlink_metadata() {
        Err(_) => vec![top.to_owned()],
        Ok(facts) if facts.is_dir() => match is_there(&git.join("commondir")) {
            true => return Some(format!("{} leads elsewhere", shown(&git.join("commondir"), root))),
            false => vec![git.clone()],
        },
        Ok(facts) if facts.is_file() => match linked_folders(&git, top, root) {
            Some(folders) => folders,
            None => return Some(format!("{} leads to a repository that is not its own", shown(&git, root))),
        },
        Ok(_) => return Some(format!("{} is a link", shown(&git, root))),
    };
    let is_module = git.is_file();
    let of_repository = folders.iter().find_map(|folder| settings_obstacle(folder, root, is_module));
    of_repository.or_else(|| submodules_obstacle(&folders, top, root).filter(|_| has_submodules))
}

/// The git folders that a `.git` file leads to, if they lie outside the project and belong to it by their own word: commands
/// write the project, and could name any other.
fn linked_folders(file: &Path, top: &Path, root: &Path) -> Option<Vec<PathBuf>> {
    let own = top.join(said(file)?.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
    let is_outside = |folder: &Path| !folder.starts_with(root);
    let commondir = own.join("commondir");
    if !is_there(&commondir) {
        // A submodule that is worked on by itself says where its files are.
        let files = own.join(work_tree_in(&own.join("config"))?).canonicalize().ok()?;
        let is_own = files == top && is_outside(&own) && !is_private(&own) && is_git_folder(&own);
        return is_own.then(|| vec![own]);
    }
    // A work tree is known to the repository that it belongs to.
    let common = own.join(said(&commondir)?).canonicalize().ok()?;
    let back = Path::new(said(&own.join("gitdir"))?.as_str()).canonicalize().ok()?;
    let is_own = own.parent() == Some(common.join("worktrees").as_path())
        && back == *file
        && is_outside(&own)
        && is_outside(&common)
        && !is_there(&common.join("commondir"))
        && is_git_folder(&common);
    is_own.then(|| vec![own, common])
}

/// Where the settings of a module say that its files are.
fn work_tree_in(config: &Path) -> Option<String> {
    let text = said(config)?;
    let line = text.lines().map(str::trim).find_map(|line| line.strip_prefix("worktree"))?;
    Some(line.trim().strip_prefix('=')?.trim().trim_matches('"').to_owned())
}

fn said(path: &Path) -> Option<String> {
    Some(String::from_utf8(read_up_to(path, MAX_GIT_FILE_BYTES).ok()?).ok()?.trim().to_owned())
}

/// The first setting of a git folder that could run something, or lead elsewhere.
fn settings_obstacle(folder: &Path, root: &Path, is_module: bool) -> Option<String> {
    let files = GIT_SETTINGS_FILES.map(|name| folder.join(name));
    { files.iter() }.filter(|file| is_there(file)).find_map(|file| {
        let setting = harmful_setting(file, if is_module { &HARMLESS_IN_MODULES } else { &[] })?;
        Some(format!("{} has `{setting}`", shown(file, root)))
    })
}

/// The same for all repositories that `git submodule` could go to: those that git keeps for modules, and those in the work tree.
fn submodules_obstacle(folders: &[PathBuf], top: &Path, root: &Path) -> Option<String> {
    let modules: Vec<PathBuf> = folders.iter().map(|folder| folder.join("modules")).collect();
    let mut waiting = modules.clone();
    while let Some(folder) = waiting.pop() {
        if is_git_folder(&folder) {
            let leads = Some(folder.join("commondir")).filter(|file| is_there(file));
            let leads = leads.map(|file| format!("{} leads elsewhere", shown(&file, root)));
            if let Some(obstacle) = leads.or_else(|| settings_obstacle(&folder, root, true)) {
                return Some(obstacle);
            }
        }
        match subfolders(&folder) {
            Ok(inside) => waiting.extend(inside),
            Err(_) => return Some(format!("{} can't be read", shown(&folder, root))),
        }
    }
    let own = top.join(".git");
    let mut waiting = vec![top.to_owned()];
    while let Some(folder) = waiting.pop() {
        let git = folder.join(".git");
        if git != own
            && is_there(&git)
            && let Some(obstacle) = embedded_obstacle(&git, &modules, root)
        {
            return Some(obstacle);
        }
        match subfolders(&folder) {
            Ok(inside) => waiting.extend(inside.into_iter().filter(|inside| !inside.ends_with(".git"))),
            Err(_) => return Some(format!("{} can't be read", shown(&folder, root))),
        }
    }
    None
}

/// What decides something in a repository of the work tree.
fn embedded_obstacle(git: &Path, modules: &[PathBuf], root: &Path) -> Option<String> {
    let leads = || Some(format!("{} leads elsewhere", shown(git, root)));
    match git.symlink_metadata() {
        Ok(facts) if facts.is_dir() && is_there(&git.join("commondir")) => leads(),
        Ok(facts) if facts.is_dir() => settings_obstacle(git, root, false),
        Ok(facts) if facts.is_file() => {
            let to = said(git).and_then(|text| {
                git.parent()?.join(text.strip_prefix("gitdir:")?.trim()).canonicalize().ok()
            });
            // Those have been looked at.
            let is_module = |to: &PathBuf| modules.iter().any(|folder| to.starts_with(folder));
            if to.is_some_and(|to| is_module(&to)) { None } else { leads() }
        }
        _ => leads(),
    }
}

/// The folders in a folder, links aside. None in one that is not there.
fn subfolders(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut folders = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            folders.push(entry.path());
        }
    }
    Ok(folders)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const PLAIN: &str = "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://example.com/x\n";
    const TRAP: &str = "[remote \"origin\"]\n\turl = .\n\tuploadpack = sh evil.sh\n";

    struct Machine(tempfile::TempDir);

    impl Machine {
        /// Not in `/tmp`, which commands have for themselves.
        fn new() -> Machine {
            let machine = Machine(tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap());
            machine.repository("p/.git", PLAIN);
            machine
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(name)
        }

        fn write(&self, name: &str, text: &str) {
            fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
            fs::write(self.path(name), text).unwrap();
        }

        fn repository(&self, name: &str, config: &str) {
            self.write(&format!("{name}/HEAD"), "ref: refs/heads/main\n");
            self.write(&format!("{name}/config"), config);
            for folder in ["objects", "refs"] {
                fs::create_dir_all(self.path(name).join(folder)).unwrap();
            }
        }

        fn refused(&self, command: &str, at: &str) -> Option<String> {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            match check_repository(&words, &self.path(at), &self.path("p")) {
                CheckedRepository::Fine { .. } => None,
                CheckedRepository::Refused(why) => Some(why),
            }
        }
    }

    #[test]
    fn the_repository_of_the_project_is_fine_also_from_a_folder_of_it() {
        let machine = Machine::new();
        fs::create_dir(machine.path("p/src")).unwrap();
        assert_eq!(machine.refused("git fetch", "p"), None);
        assert_eq!(machine.refused("git fetch", "p/src"), None);
        let CheckedRepository::Fine { ceiling } =
            check_repository(&[], &machine.path("p/src"), &machine.path("p"))
        else {
            panic!("it is fine");
        };
        assert_eq!(ceiling, machine.path(""));
    }

    #[test]
    fn settings_that_run_something_are_found_wherever_git_reads_them() {
        let machine = Machine::new();
        machine.write("p/.git/config.worktree", TRAP);
        assert!(machine.refused("git fetch", "p").is_some());
        fs::remove_file(machine.path("p/.git/config.worktree")).unwrap();
        machine.repository("p/x", TRAP);
        machine.write("p/.git/commondir", "../x\n");
        assert!(machine.refused("git fetch", "p").is_some_and(|why| why.contains("commondir")));
        fs::remove_file(machine.path("p/.git/commondir")).unwrap();
        // A repository below, as such or by its `.git`.
        assert!(machine.refused("git fetch", "p/x").is_some());
        machine.write("p/y/.git", "gitdir: ../x\n");
        assert!(machine.refused("git fetch", "p/y").is_some());
        assert_eq!(machine.refused("git fetch", "p"), None);
        assert!(machine.refused("git submodule update", "p").is_some());
    }

    #[test]
    fn submodules_are_looked_at_wherever_they_lie() {
        for (git, config) in [
            ("p/sub/.git", TRAP),
            ("p/a/b/c/d/e/f/sub/.git", TRAP),
            ("p/.git/modules/a/b/c/d/e/f/sub", TRAP),
            ("p/.git/modules/objects/x", TRAP),
            ("p/.git/modules/a/modules/b", TRAP),
        ] {
            let machine = Machine::new();
            machine.repository(git, config);
            assert!(machine.refused("git submodule update --init", "p").is_some(), "{git}");
            machine.repository(git, PLAIN);
            assert_eq!(machine.refused("git submodule update --init", "p"), None, "{git}");
            machine.write(&format!("{git}/commondir"), "/elsewhere");
            assert!(machine.refused("git submodule update --init", "p").is_some(), "{git}");
        }
        let machine = Machine::new();
        machine.repository("other", PLAIN);
        fs::create_dir(machine.path("p/sub")).unwrap();
        symlink(machine.path("other"), machine.path("p/sub/.git")).unwrap();
        assert!(machine.refused("git submodule update", "p").is_some());
    }

    #[test]
    fn a_git_file_leads_only_to_what_is_its_own() {
        let machine = Machine::new();
        fs::remove_dir_all(machine.path("p/.git")).unwrap();
        // In the project, where commands write.
        machine.repository("p/g", PLAIN);
        machine.write("p/.git", "gitdir: g\n");
        assert!(machine.refused("git fetch", "p").is_some());
        // Elsewhere, and nobody there knows of it.
        machine.repository("main/.git", PLAIN);
        machine.write("p/.git", "gitdir: ../main/.git\n");
        assert!(machine.refused("git fetch", "p").is_some());
        // A work tree.
        machine.write("main/.git/worktrees/p/HEAD", "ref: refs/heads/x\n");
        machine.write("main/.git/worktrees/p/commondir", "../..\n");
        machine.write("main/.git/worktrees/p/gitdir", &format!("{}\n", machine.path("p/.git").display()));
        machine.write("p/.git", "gitdir: ../main/.git/worktrees/p\n");
        assert_eq!(machine.refused("git fetch", "p"), None);
        machine.write("main/.git/worktrees/p/config.worktree", TRAP);
        assert!(machine.refused("git fetch", "p").is_some());
        fs::remove_file(machine.path("main/.git/worktrees/p/config.worktree")).unwrap();
        machine.write("main/.git/config", TRAP);
        assert!(machine.refused("git fetch", "p").is_some());
        // A submodule that is the project.
        let module = "[core]\n\tworktree = ../../../../p\n";
        machine.repository("super/.git/modules/p", module);
        machine.write("p/.git", "gitdir: ../super/.git/modules/p\n");
        assert_eq!(machine.refused("git fetch", "p"), None);
        machine.repository("super/.git/modules/p", &format!("{module}{TRAP}"));
        assert!(machine.refused("git fetch", "p").is_some());
        machine.repository("super/.git/modules/p", "[core]\n\tworktree = ../../../other\n");
        assert!(machine.refused("git fetch", "p").is_some());
        fs::remove_file(machine.path("p/.git")).unwrap();
        symlink(machine.path("main/.git"), machine.path("p/.git")).unwrap();
        assert!(machine.refused("git fetch", "p").is_some());
    }
}
