//! Where git keeps what belongs to a folder, and what in there decides what git does.

use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::bounded_read::read_up_to;

/// A file that says where git keeps something.
pub(crate) const MAX_GIT_FILE_BYTES: u64 = 64 << 10;
/// Repositories within a repository are looked for so deep, and so many.
const MAX_REPOSITORY_DEPTH: usize = 4;
const MAX_NESTED_REPOSITORIES: usize = 200;

/// The names that decide, in a git folder and in those of its modules and work trees, if they are there.
pub(crate) fn in_git(git: &Path, names: &[&str]) -> Vec<PathBuf> {
    deciding(git, names).filter(|path| path.exists()).collect()
}

/// The same names where there is nothing yet.
pub(crate) fn absent_in_git(git: &Path, names: &[&str]) -> Vec<PathBuf> {
    deciding(git, names).filter(|path| path.symlink_metadata().is_err()).collect()
}

fn deciding(git: &Path, names: &[&str]) -> impl Iterator<Item = PathBuf> {
    let mut folders = vec![git.to_owned()];
    for within in ["modules", "worktrees"] {
        repositories(&git.join(within), MAX_REPOSITORY_DEPTH, &mut folders);
    }
    let all = folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name)));
    all.collect::<Vec<_>>().into_iter()
}

/// A module's name may have slashes, so that it lies deeper.
fn repositories(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if found.len() >= MAX_NESTED_REPOSITORIES || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if path.join("HEAD").is_file() {
            repositories(&path.join("modules"), depth.saturating_sub(1), found);
            found.push(path);
        } else if depth > 0 {
            repositories(&path, depth - 1, found);
        }
    }
}

/// Where git keeps what belongs to a folder, which may be a repository without a work tree.
pub(crate) fn git_folder(folder: &Path) -> PathBuf {
    if is_git(folder) { folder.to_owned() } else { folder.join(".git") }
}

/// Whether a folder is a git folder itself.
fn is_git(folder: &Path) -> bool {
    folder.join("HEAD").is_file() && folder.join("objects").is_dir()
}

/// Where git keeps what belongs to a work tree whose repository is elsewhere, if that repository says so too: what lies in
/// the project says nothing, since commands write there.
pub(crate) fn git_elsewhere(root: &Path) -> Option<PathBuf> {
    let git = root.join(".git");
    let read = |path: &Path| String::from_utf8(read_up_to(path, MAX_GIT_FILE_BYTES).ok()?).ok();
    let said = read(&git)?;
    let own = root.join(said.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
    let back = read(&own.join("gitdir"))?;
    let common = own.parent().filter(|folder| folder.ends_with("worktrees"))?.parent()?;
    let is_known = Path::new(back.trim()).canonicalize().ok()? == git.canonicalize().ok()?;
    (is_git(common) && is_known).then(|| common.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
