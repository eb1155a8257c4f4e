//! What of a git repository runs nothing: a repository that a command makes is left where it is only if all of it is so.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::shell::commands::read_up_to;

/// A file of settings, or one that says where git keeps something, is not larger.
const MAX_GIT_SETTINGS_BYTES: u64 = 64 << 10;
/// The names of a folder of hooks that are looked at.
const MAX_CHECKED_HOOKS: usize = 200;

/// Settings that run nothing and lead nowhere: `section.name`, whatever stands between in quotes. A star stands for all of a
/// section.
const HARMLESS_REPOSITORY_SETTINGS: &[&str] = &[
    "advice.*",
    "branch.*",
    "color.*",
    "column.*",
    "core.abbrev",
    "core.autocrlf",
    "core.bare",
    "core.bigfilethreshold",
    "core.compression",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.logallrefupdates",
    "core.longpaths",
    "core.precomposeunicode",
    "core.protecthfs",
    "core.protectntfs",
    "core.quotepath",
    "core.repositoryformatversion",
    "core.safecrlf",
    "core.sharedrepository",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.splitindex",
    "core.symlinks",
    "core.untrackedcache",
    "extensions.*",
    "fetch.prune",
    "gc.*",
    "index.*",
    "init.defaultbranch",
    "lfs.access",
    "lfs.repositoryformatversion",
    "maintenance.auto",
    "maintenance.strategy",
    "pack.*",
    "pull.ff",
    "pull.rebase",
    "push.autosetupremote",
    "push.default",
    "remote.fetch",
    "remote.partialclonefilter",
    "remote.promisor",
    "remote.prune",
    "remote.push",
    "remote.pushurl",
    "remote.skipdefaultupdate",
    "remote.tagopt",
    "remote.url",
    "rerere.autoupdate",
    "rerere.enabled",
    "submodule.active",
    "submodule.branch",
    "submodule.fetchrecursesubmodules",
    "submodule.ignore",
    "submodule.url",
    "user.email",
    "user.name",
];

/// A module has its files elsewhere, and says where.
pub(crate) const HARMLESS_IN_MODULES: [&str; 1] = ["core.worktree"];

/// The first setting in a file that could run something, or lead elsewhere; none if there is none. A file that can't be read
/// is not harmless.
pub(crate) fn harmful_setting(config: &Path, also_harmless: &[&str]) -> Option<String> {
    let Ok(text) = read_up_to(config, MAX_GIT_SETTINGS_BYTES + 1) else {
        return Some("what can't be read".to_owned());
    };
    match String::from_utf8(text) {
        Ok(text) if text.len() as u64 <= MAX_GIT_SETTINGS_BYTES => harmful(&text, also_harmless),
        _ => Some("what can't be read".to_owned()),
    }
}

fn harmful(text: &str, also_harmless: &[&str]) -> Option<String> {
    let mut section = String::new();
    for line in text.trim_start_matches('\u{feff}').lines() {
        let mut line = line.trim();
        // A setting may stand behind the name of its section.
        while let Some(rest) = line.strip_prefix('[') {
            let Some((name, after)) = rest.split_once(']') else { return Some(line.to_owned()) };
            section = name.split([' ', '"', '.']).next().unwrap_or_default().to_ascii_lowercase();
            line = after.trim();
        }
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let (name, value) = line.split_once('=').unwrap_or((line, "true"));
        let (name, value) = (format!("{section}.{}", name.trim().to_ascii_lowercase()), value.trim());
        let is_known = |known: &&str| match known.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => *known == name,
        };
        // A value that goes on in the next line, or is quoted, could hide another one.
        let is_plain =
            !value.ends_with('\\') && !value.contains("::") && !value.trim_matches('"').starts_with('-');
        if !is_plain || !HARMLESS_REPOSITORY_SETTINGS.iter().chain(also_harmless).any(is_known) {
            return Some(name);
        }
    }
    None
}

/// Whether something in a git folder that decides what git does decides nothing: it is as git makes it.
pub(crate) fn is_harmless(path: &Path) -> bool {
    match path.file_name().and_then(|name| name.to_str()) {
        Some(".git") if is_folder(path) => is_harmless_repository(path),
        Some(".git") => leads_to_harmless(path),
        Some("config" | "config.worktree") => harmful_setting(path, &[]).is_none(),
        Some("hooks") => has_only_samples(path),
        Some("info") => is_folder(path) && !path.join("attributes").exists(),
        // Only a work tree that git has made has one, and it leads to the repository around it.
        Some("commondir") => {
            let is_of_worktree = path.ancestors().nth(2).is_some_and(|around| around.ends_with("worktrees"));
            is_of_worktree && said(path).as_deref() == Some("../..")
        }
        _ => is_harmless_repository(path),
    }
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|facts| facts.is_dir())
}

fn is_harmless_repository(git: &Path) -> bool {
    let names = ["config", "config.worktree", "hooks", "commondir", "info"];
    let mut there = names.iter().map(|name| git.join(name)).filter(|path| path.symlink_metadata().is_ok());
    there.all(|path| is_harmless(&path))
}

/// Where a `.git` that is a file leads: only to a part of a repository that lies around it.
fn leads_to_harmless(file: &Path) -> bool {
    let to = || -> Option<PathBuf> {
        let text = said(file)?;
        let to = file.parent()?.join(text.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
        let around = file.parent()?.canonicalize().ok()?;
        let is_part = around.ancestors().any(|folder| {
            ["modules", "worktrees"].iter().any(|part| to.starts_with(folder.join(".git").join(part)))
        });
        is_part.then_some(to)
    };
    to().is_some_and(|git| is_harmless_repository_of(&git))
}

/// The folder of a module says where its files are.
fn is_harmless_repository_of(git: &Path) -> bool {
    let config = git.join("config");
    let is_settled =
        config.symlink_metadata().is_err() || harmful_setting(&config, &HARMLESS_IN_MODULES).is_none();
    is_settled
        && !git.join("commondir").exists() | is_harmless(&git.join("commondir"))
        && has_only_samples(&git.join("hooks"))
}

fn said(path: &Path) -> Option<String> {
    Some(String::from_utf8(read_up_to(path, MAX_GIT_SETTINGS_BYTES).ok()?).ok()?.trim().to_owned())
}

fn has_only_samples(hooks: &Path) -> bool {
    if hooks.symlink_metadata().is_err() {
        return true;
    }
    if !is_folder(hooks) {
        return false;
    }
    let Ok(entries) = fs::read_dir(hooks) else { return false };
    entries.take(MAX_CHECKED_HOOKS).flatten().all(|entry| {
        let name = entry.file_name();
        let is_program =
            entry.metadata().is_ok_and(|facts| facts.permissions().mode() & 0o111 != 0 && facts.is_file());
        name.to_string_lossy().ends_with(".sample")
            || !is_program && entry.path().is_file() && name == "README"
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn settings_that_run_something_are_found() {
        let plain = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n[remote \"origin\"]\n\turl = https://x/y.git\n\
                     \tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n; a comment\n";
        assert_eq!(harmful(plain, &[]), None);
        let module = "[core]\n\tworktree = ../../../lib\n";
        assert_eq!(harmful(module, &["core.worktree"]), None);
        let trap = format!("{module}\tfsmonitor = ./x\n");
        assert_eq!(harmful(&trap, &["core.worktree"]).as_deref(), Some("core.fsmonitor"));
        for (text, name) in [
            ("[core]\nfsmonitor = ./x", "core.fsmonitor"),
            ("[CORE] sshCommand = x", "core.sshcommand"),
            ("[core]\n\thooksPath=x", "core.hookspath"),
            ("[filter \"x\"]\nclean = ./x", "filter.clean"),
            ("[include]\npath = x", "include.path"),
            ("[includeIf \"gitdir:/\"]\npath = x", "includeif.path"),
            ("[remote \"o\"]\nurl = ext::sh -c x", "remote.url"),
            ("[remote \"o\"]\nuploadpack = ./x", "remote.uploadpack"),
            ("[url \"x\"]\ninsteadOf = y", "url.insteadof"),
            ("[core]\nbare = false \\\nfsmonitor", "core.bare"),
            ("[core \"x\"] pager = x", "core.pager"),
            ("[submodule \"x\"]\nupdate = !x", "submodule.update"),
        ] {
            // Whatever is found first: something is.
            let found = harmful(text, &[]);
            assert!(
                found.is_some() && (found.as_deref() == Some(name) || name == "core.bare"),
                "{text:?} {found:?}"
            );
        }
    }

    #[test]
    fn what_git_makes_is_harmless_and_what_is_planted_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let git = folder.path().join("sub/.git");
        fs::create_dir_all(git.join("hooks")).unwrap();
        fs::create_dir_all(git.join("info")).unwrap();
        fs::write(git.join("hooks/pre-commit.sample"), "").unwrap();
        fs::write(git.join("config"), "[core]\n\tbare = false\n").unwrap();
        assert!(is_harmless(&git));
        fs::write(git.join("hooks/pre-commit"), "").unwrap();
        assert!(!is_harmless(&git));
        fs::remove_file(git.join("hooks/pre-commit")).unwrap();
        fs::write(git.join("commondir"), "/elsewhere").unwrap();
        assert!(!is_harmless(&git));
        fs::remove_file(git.join("commondir")).unwrap();
        fs::write(git.join("config"), "[core]\n\tfsmonitor = ./x\n").unwrap();
        assert!(!is_harmless(&git));
        fs::create_dir(folder.path().join("other")).unwrap();
        fs::write(folder.path().join("other/.git"), "gitdir: ../sub/.git\n").unwrap();
        assert!(!is_harmless(&folder.path().join("other/.git")));
    }

    proptest! {
        #[test]
        fn no_settings_panic(text: String) {
            let _ = harmful(&text, &[]);
        }
    }
}
