//! Where git keeps its files: what makes a folder a git folder, which others are inside one, what in there decides what git does, and
//! where a project has its own.

use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::bounded_read::read_up_to;

/// A file that says where git keeps something is not larger.
pub(crate) const MAX_GIT_FILE_BYTES: u64 = 64 << 10;

/// Whether git would take a folder for one of its own, whatever its name: it has a `HEAD`, and objects or a file that says where
/// the rest is.
pub fn is_git_folder(folder: &Path) -> bool {
    let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
    has("HEAD") && (has("objects") || has("commondir"))
}

/// A git folder, and those of its modules and work trees.
pub(crate) fn git_folders_in(git: &Path) -> Vec<PathBuf> {
    let mut found = vec![git.to_owned()];
    let mut open = vec![git.join("modules"), git.join("worktrees")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
            let has_head = || path.join("HEAD").symlink_metadata().is_ok();
            if kind.is_symlink() {
                // Whatever is behind it is looked at as that, and might lead in a circle.
                found.extend(has_head().then_some(path));
            } else if kind.is_dir() && has_head() {
                open.extend([path.join("modules"), path.join("worktrees")]);
                found.push(path);
            } else if kind.is_dir() {
                // A module's name may have slashes, so that it lies deeper.
                open.push(path);
            }
        }
    }
    found
}

/// The names that decide, in a git folder and in those of its modules and work trees, if they are there.
pub(crate) fn in_git(git: &Path, names: &[&str]) -> Vec<PathBuf> {
    deciding(git, names).filter(|path| path.exists()).collect()
}

/// The same names where there is nothing yet.
pub(crate) fn absent_in_git(git: &Path, names: &[&str]) -> Vec<PathBuf> {
    deciding(git, names).filter(|path| path.symlink_metadata().is_err()).collect()
}

fn deciding(git: &Path, names: &[&str]) -> impl Iterator<Item = PathBuf> {
    let folders = git_folders_in(git);
    let all = folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name)));
    all.collect::<Vec<_>>().into_iter()
}

/// Where git keeps what belongs to a folder, which may be a repository without a work tree.
pub(crate) fn git_folder(folder: &Path) -> PathBuf {
    if is_git_folder(folder) { folder.to_owned() } else { folder.join(".git") }
}

/// What a small file of git's says, without the end of its line.
pub(crate) fn read_git_file(path: &Path) -> Option<String> {
    Some(String::from_utf8(read_up_to(path, MAX_GIT_FILE_BYTES).ok()?).ok()?.trim().to_owned())
}

/// Where a `.git` that is a file leads.
pub(crate) fn git_link_target(file: &Path) -> Option<PathBuf> {
    let said = read_git_file(file)?;
    file.parent()?.join(said.strip_prefix("gitdir:")?.trim()).canonicalize().ok()
}

/// The git folders of a project that lie elsewhere: it is a linked work tree, or a submodule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GitElsewhere {
    /// What belongs to this work tree alone.
    pub(crate) own: PathBuf,
    /// What it shares with others, which is around its own; the same for a submodule.
    pub(crate) common: PathBuf,
}

impl GitElsewhere {
    /// Where git keeps what belongs to a work tree whose repository is elsewhere, if that repository says so too: what lies in
    /// the project says nothing, since commands write there.
    pub(crate) fn of(root: &Path) -> Option<GitElsewhere> {
        let git = root.join(".git");
        let own = git_link_target(&git)?;
        let is_of = |path: PathBuf, wanted: &Path| {
            path.canonicalize()
                .ok()
                .is_some_and(|path| wanted.canonicalize().is_ok_and(|wanted| wanted == path))
        };
        let worktrees = own.parent().filter(|folder| folder.ends_with("worktrees"));
        if let Some(common) = worktrees.and_then(Path::parent).map(Path::to_owned) {
            let back = read_git_file(&own.join("gitdir"))?;
            let is_known = is_of(own.join(back), &git);
            return (is_git_folder(&common) && is_known).then_some(GitElsewhere { own, common });
        }
        let is_module = own
            .ancestors()
            .skip(1)
            .any(|folder| folder.ends_with("modules") && folder.parent().is_some_and(is_git_folder));
        let back = own.join(work_tree_setting(&read_git_file(&own.join("config"))?)?);
        (is_module && is_git_folder(&own) && is_of(back, root))
            .then(|| GitElsewhere { common: own.clone(), own })
    }

    /// What a yes to something in the project's `.git` means where that really is.
    pub(crate) fn real_paths(&self, root: &Path, granted: &[PathBuf]) -> Vec<PathBuf> {
        let below = granted.iter().filter_map(|path| path.strip_prefix(root.join(".git")).ok());
        below.flat_map(|rest| [join(&self.common, rest), join(&self.own, rest)]).collect()
    }
}

/// What a person allowed to be written, and where that really is if a project's repository is elsewhere.
pub(crate) fn with_real_git_paths(granted: &[PathBuf], roots: &[PathBuf]) -> Vec<PathBuf> {
    let real = |root: &PathBuf| {
        GitElsewhere::of(root).map(|elsewhere| elsewhere.real_paths(root, granted)).unwrap_or_default()
    };
    // To find that out takes time, and most commands are allowed nothing.
    let elsewhere = roots.iter().filter(|_| !granted.is_empty()).flat_map(real);
    granted.iter().cloned().chain(elsewhere).collect()
}

/// `Path::join` with nothing would end with a slash.
fn join(folder: &Path, rest: &Path) -> PathBuf {
    if rest.as_os_str().is_empty() { folder.to_owned() } else { folder.join(rest) }
}

/// What the settings of a module say about where its files are.
fn work_tree_setting(config: &str) -> Option<String> {
    let mut is_core = false;
    let mut found = None;
    for line in config.lines().map(str::trim) {
        if line.starts_with('[') {
            is_core = line.to_ascii_lowercase().starts_with("[core]");
        } else if let Some((name, value)) = line.split_once('=')
            && is_core
            && name.trim().eq_ignore_ascii_case("worktree")
        {
            found = Some(value.trim().trim_matches('"').to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, name: &str, text: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn git_folders_are_known_by_their_shape() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for name in
            ["bare/HEAD", "bare/objects/x", "split/HEAD", "split/commondir", "none/HEAD", "other/objects/x"]
        {
            write(root, name, "");
        }
        fs::create_dir_all(root.join("linked/objects")).unwrap();
        std::os::unix::fs::symlink("refs/heads/none", root.join("linked/HEAD")).unwrap();
        for (name, is_git) in
            [("bare", true), ("split", true), ("linked", true), ("none", false), ("other", false)]
        {
            assert_eq!(is_git_folder(&root.join(name)), is_git, "{name}");
        }
    }

    #[test]
    fn modules_are_found_however_deep_and_however_many() {
        let folder = tempfile::tempdir().unwrap();
        let git = folder.path().join(".git");
        for number in 0..300 {
            write(&git, &format!("modules/{number}/HEAD"), "");
        }
        write(&git, "modules/a/b/c/d/e/f/g/HEAD", "");
        write(&git, "worktrees/w/modules/m/HEAD", "");
        std::os::unix::fs::symlink("..", git.join("modules/circle")).unwrap();
        write(&git, "HEAD", "");
        let found = git_folders_in(&git);
        assert_eq!(found.len(), 1 + 300 + 1 + 2);
        assert!(found.contains(&git.join("modules/a/b/c/d/e/f/g")));
        assert!(found.contains(&git.join("worktrees/w/modules/m")));
    }

    #[test]
    fn what_decides_is_found_in_modules_and_work_trees_too() {
        let folder = tempfile::tempdir().unwrap();
        let git = folder.path().join(".git");
        for name in ["config", "modules/a/config", "modules/b/c/config", "modules/a/modules/d/hooks/x"] {
            let path = git.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        fs::create_dir_all(git.join("worktrees/w")).unwrap();
        fs::write(git.join("worktrees/w/commondir"), "../..").unwrap();
        for name in ["modules/a", "modules/b/c", "modules/a/modules/d", "worktrees/w"] {
            fs::write(git.join(name).join("HEAD"), "").unwrap();
        }
        let mut found = in_git(&git, &["config", "hooks", "commondir"]);
        found.sort();
        let names: Vec<&Path> = found.iter().map(|path| path.strip_prefix(&git).unwrap()).collect();
        let wanted = [
            "config",
            "modules/a/config",
            "modules/a/modules/d/hooks",
            "modules/b/c/config",
            "worktrees/w/commondir",
        ];
        assert_eq!(names, wanted.map(Path::new));
    }

    #[test]
    fn the_repository_of_a_submodule_is_known_if_it_says_so_too() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        write(&root, ".git/HEAD", "");
        write(&root, ".git/objects/x", "");
        write(&root, ".git/modules/lib/HEAD", "");
        write(&root, ".git/modules/lib/objects/x", "");
        write(&root, ".git/modules/lib/config", "[core]\n\tworktree = ../../../lib\n");
        write(&root, "lib/.git", "gitdir: ../.git/modules/lib\n");
        write(&root, "other/.git", "gitdir: ../.git/modules/lib\n");
        let module = root.join(".git/modules/lib");
        let elsewhere = GitElsewhere::of(&root.join("lib")).unwrap();
        assert_eq!(elsewhere, GitElsewhere { own: module.clone(), common: module.clone() });
        assert_eq!(GitElsewhere::of(&root.join("other")), None);
        assert_eq!(GitElsewhere::of(&root), None);
        let granted = [root.join("lib/.git/config"), root.join("lib/x")];
        assert_eq!(elsewhere.real_paths(&root.join("lib"), &granted)[0], module.join("config"));
    }
}
