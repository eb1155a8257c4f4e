//! What actions are really about: where links lead, and how many files there are.

use std::fs;
use std::path::{Path, PathBuf};

use helve_permissions::{ConfinementLevel, normalize_path};
use helve_protocol::{CallPermissions, ToolAction};
use helve_tools::{is_git_folder, real_path, writable_root_for};

/// The actions, and those that they amount to where a path leads elsewhere.
pub(crate) fn with_real_paths(actions: &[ToolAction]) -> Vec<ToolAction> {
    let mut all = Vec::with_capacity(actions.len());
    for action in actions {
        all.push(in_plain_words(action));
        let real = match action {
            ToolAction::Read(path) => Some(ToolAction::Read(real(path))),
            ToolAction::Write(path) => Some(ToolAction::Write(real(path))),
            // Of a link, only the link is deleted.
            ToolAction::Delete(path) => path
                .parent()
                .and_then(|folder| Some(ToolAction::Delete(real(folder).join(path.file_name()?)))),
            ToolAction::Run { command, folder, network, credentials } => Some(ToolAction::Run {
                command: command.clone(),
                folder: real(folder),
                network: *network,
                credentials: *credentials,
            }),
            ToolAction::Search(_) | ToolAction::Fetch(_) | ToolAction::Other { .. } => None,
        };
        all.extend(real.filter(|real| all.last() != Some(real)));
    }
    all
}

/// The action with a path in which no `..` hides where it leads.
fn in_plain_words(action: &ToolAction) -> ToolAction {
    match action {
        ToolAction::Read(path) => ToolAction::Read(normalize_path(path)),
        ToolAction::Write(path) => ToolAction::Write(normalize_path(path)),
        ToolAction::Delete(path) => ToolAction::Delete(normalize_path(path)),
        other => other.clone(),
    }
}

/// Where a path really is, as far as that can be found out. A link that leads to nothing yet is written through all the same.
fn real(path: &Path) -> PathBuf {
    real_path(path).unwrap_or_else(|_| path.to_owned())
}

/// What a yes to a command gives beyond the paths that it names, in lines: to make something in a folder is to write the folder.
/// Where that would be the home folder or more, the command leaves the sandbox, if it is one plain command; else it fails.
pub(crate) fn widen_access(
    needs: &mut CallPermissions,
    plain: Option<&Vec<String>>,
    level: ConfinementLevel,
    (home, root): (Option<&Path>, &Path),
) -> Vec<String> {
    let mut lines = Vec::new();
    let is_leaving = |path: &PathBuf| writable_root_for(path, home).is_none();
    let new = needs.writes.iter().filter(|path| !path.exists() && !path.starts_with(root));
    for path in new.clone() {
        match (writable_root_for(path, home), plain) {
            (Some(folder), _) => lines.push(format!("may write all of {} meanwhile", folder.display())),
            (None, _) if plain.is_some() || level == ConfinementLevel::None => {}
            (None, _) => lines.push(format!(
                "can't make {} from the sandbox: only one plain command can leave it",
                path.display()
            )),
        }
    }
    let leaves = plain.filter(|_| needs.credentials.is_none() && { new }.any(is_leaving)).cloned();
    if leaves.is_some() {
        needs.unconfined = true;
        needs.alone = leaves;
    }
    lines.extend(needs.unconfined.then(|| "runs without confinement".to_owned()));
    lines.dedup();
    lines
}

/// Whether a command runs in a folder where git works on another repository than the project's.
pub(crate) fn is_in_nested_repository(actions: &[ToolAction], root: &Path) -> bool {
    let folders = actions.iter().filter_map(|action| match action {
        ToolAction::Run { folder, .. } => Some(folder),
        _ => None,
    });
    let has_own = |folder: &Path| folder.join(".git").symlink_metadata().is_ok();
    folders.into_iter().any(|folder| {
        let up_to_root = folder.ancestors().take_while(|around| *around != root && around.starts_with(root));
        up_to_root.into_iter().any(|around| has_own(around) || is_git_folder(around))
    })
}

/// The folders that git takes for its own, or would after this, around what is written. It knows them by what is in them, not by their
/// names.
pub(crate) fn git_folders_around(actions: &[ToolAction]) -> Vec<PathBuf> {
    let written: Vec<&PathBuf> = actions
        .iter()
        .filter_map(|action| match action {
            ToolAction::Write(path) | ToolAction::Delete(path) => Some(path),
            _ => None,
        })
        .collect();
    let would_be = |folder: &Path| {
        let has = |name: &str| {
            let path = folder.join(name);
            path.symlink_metadata().is_ok() || written.iter().any(|written| written.starts_with(&path))
        };
        has("HEAD") && (has("objects") || has("commondir"))
    };
    let mut found: Vec<PathBuf> = Vec::new();
    for path in &written {
        found.extend(path.ancestors().skip(1).filter(|folder| would_be(folder)).map(Path::to_owned));
    }
    found
}

/// Whether these places hold more files than that. A place may be a pattern of the shell.
pub(crate) fn is_more_than(places: &[PathBuf], most: usize) -> bool {
    let mut left = most;
    places.iter().any(|place| !count_down(place, &mut left))
}

/// Whether so many files are left after these.
fn count_down(place: &Path, left: &mut usize) -> bool {
    let is_pattern = |path: &Path| path.to_string_lossy().contains(['*', '?', '[']);
    let Some(first) = place.ancestors().filter(|path| is_pattern(path)).last() else {
        return count_files(place, left);
    };
    let (Some(folder), Some(name)) = (first.parent(), first.file_name()) else { return true };
    let pattern = name.to_string_lossy().into_owned();
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let matching = entries
        .filter(|entry| helve_permissions::matches_name(&pattern, &entry.file_name().to_string_lossy()));
    let rest = place.strip_prefix(first).unwrap_or(Path::new(""));
    // One that follows no pattern any more is counted as a whole.
    matching.into_iter().all(|entry| {
        let place = if rest.as_os_str().is_empty() { entry.path() } else { entry.path().join(rest) };
        count_down(&place, left)
    })
}

fn count_files(place: &Path, left: &mut usize) -> bool {
    let mut waiting = vec![place.to_owned()];
    while let Some(path) = waiting.pop() {
        match fs::symlink_metadata(&path) {
            Ok(facts) if facts.is_dir() => {
                waiting.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
            }
            Ok(_) => match left.checked_sub(1) {
                Some(rest) => *left = rest,
                None => return false,
            },
            Err(_) => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn where_a_link_leads_is_judged_too() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        symlink("/etc", root.join("link")).unwrap();
        symlink("/etc/not-yet", root.join("new")).unwrap();
        fs::write(root.join("file"), "").unwrap();
        let read = |path: &str| with_real_paths(&[ToolAction::Read(root.join(path))]);
        assert_eq!(read("file"), [ToolAction::Read(root.join("file"))]);
        fs::create_dir(root.join("x")).unwrap();
        assert_eq!(read("x/../file"), [ToolAction::Read(root.join("file"))]);
        assert_eq!(
            read("link/passwd"),
            [ToolAction::Read(root.join("link/passwd")), ToolAction::Read("/etc/passwd".into())]
        );
        assert_eq!(
            with_real_paths(&[ToolAction::Write(root.join("new"))])[1],
            ToolAction::Write("/etc/not-yet".into())
        );
        assert_eq!(
            with_real_paths(&[ToolAction::Delete(root.join("link"))]),
            [ToolAction::Delete(root.join("link"))]
        );
    }

    #[test]
    fn folders_of_git_are_known_by_what_is_or_will_be_in_them() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["bare.git/HEAD", "bare.git/objects/x", "half/HEAD", "split/commondir", "plain/config"] {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), "").unwrap();
        }
        let around = |names: &[&str]| {
            let writes: Vec<ToolAction> =
                names.iter().map(|name| ToolAction::Write(root.join(name))).collect();
            git_folders_around(&writes)
        };
        assert_eq!(around(&["bare.git/hooks/post-update"]), [root.join("bare.git")]);
        assert_eq!(around(&["bare.git/deep/er/x"]), [root.join("bare.git")]);
        assert_eq!(around(&["half/objects/info/x"]), [root.join("half")]);
        assert_eq!(around(&["half/commondir"]), [root.join("half")]);
        assert_eq!(around(&["split/HEAD"]), [root.join("split")]);
        assert_eq!(around(&["new/HEAD", "new/objects/x"]), [root.join("new"), root.join("new")]);
        assert!(around(&["plain/HEAD", "half/config", "split/x", "new/HEAD", "other/objects/x"]).is_empty());
    }

    #[test]
    fn files_are_counted_as_far_as_it_matters() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a/b/1", "a/b/2", "a/3", "c.o", "d.o"] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let is_more = |name: &str, most| is_more_than(&[folder.path().join(name)], most);
        assert!(is_more("a", 2) && !is_more("a", 3));
        assert!(is_more("*.o", 1) && !is_more("*.o", 2));
        assert!(is_more("*/b", 1) && !is_more("*/b", 2));
        assert!(!is_more("absent", 0));
    }
}
