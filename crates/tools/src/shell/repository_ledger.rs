//! What is known of the repositories of a session: which were there, which commands made, and what decided in each when it was last
//! looked at.
//!
//! A repository that a command made is judged again whenever something changed in it that decides what git runs: a job that was
//! started before it was there can write to it. What the user has can only be read by commands; but what is replaced as a whole, as git
//! does with its settings, loses that protection for whatever runs already. So that is compared with what it was.

use std::collections::HashMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::shell::bounded_read::read_up_to;
use crate::shell::forbidden_paths::{is_granted_near, put_away, rename_aside};
use crate::shell::git_folders::git_folders_in;
use crate::shell::repository_safety::{RepositoryJudge, harmful_settings, has_only_samples};

/// What decides in a git folder, where it is enough to know when it was last changed. Of a folder, all names in it decide.
const DECIDING_ENTRIES: [&str; 8] = [
    "config",
    "config.worktree",
    "commondir",
    "hooks",
    "info",
    "objects/info/alternates",
    "remotes",
    "branches",
];
/// What decides by what it is: it changes all the time.
const DECIDING_BY_KIND: [&str; 3] = ["objects", "refs", "modules"];
/// Larger settings are not kept.
const MAX_KEPT_SETTINGS_BYTES: u64 = 256 << 10;

/// Who may have changed what is found changed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ChangeAuthor<'a> {
    /// Nobody but the user, or a command that was allowed anything.
    User,
    /// A command or a job that a person allowed to write these, and nothing else that decides.
    Commands { granted: &'a [PathBuf] },
}

/// What is known of the repositories of a session.
#[derive(Debug, Default)]
pub(crate) struct RepositoryLedger(Mutex<HashMap<PathBuf, KnownRepository>>);

#[derive(Debug)]
struct KnownRepository {
    fingerprint: u64,
    origin: RepositoryOrigin,
}

#[derive(Debug)]
enum RepositoryOrigin {
    Commands,
    /// With what decided in it when nobody but the user can have changed it.
    User(Vec<KeptEntry>),
}

/// Something that decides, as it was.
#[derive(Debug)]
struct KeptEntry {
    path: PathBuf,
    was: Option<(u64, u64)>,
    text: Option<String>,
    /// It was replaced: jobs that are older than that can write it.
    is_replaced: bool,
}

impl RepositoryLedger {
    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, KnownRepository>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at all repositories. What could run something and is not the user's is put aside; gives the new names. `converted` are
    /// folders that were something else before: they stay, and are no repositories any more.
    pub(crate) fn inspect(
        &self,
        repositories: &[PathBuf],
        converted: impl Fn(&Path) -> bool,
        judge: RepositoryJudge<'_>,
        author: ChangeAuthor<'_>,
    ) -> Vec<PathBuf> {
        let mut known = self.lock();
        let mut aside = Vec::new();
        for git in repositories.iter().flat_map(|repository| git_folders_in(repository)) {
            if git.symlink_metadata().is_err() {
                known.remove(&git);
                continue;
            }
            let fingerprint = fingerprint(&git);
            let ChangeAuthor::Commands { granted } = author else {
                match known.get_mut(&git) {
                    Some(repository) => repository.accept(fingerprint),
                    None => {
                        let origin = RepositoryOrigin::User(kept_entries(&git));
                        known.insert(git, KnownRepository { fingerprint, origin });
                    }
                }
                continue;
            };
            let is_granted = is_granted_near(&git, granted);
            match known.get_mut(&git) {
                Some(repository) if repository.fingerprint == fingerprint => continue,
                Some(repository) if is_granted => {
                    repository.accept_from_command(fingerprint);
                    continue;
                }
                Some(KnownRepository { origin: RepositoryOrigin::User(kept), fingerprint: last }) => {
                    aside.extend(kept.iter_mut().filter_map(|entry| entry.put_back(judge)));
                    *last = self::fingerprint(&git);
                    continue;
                }
                _ => {}
            }
            if is_granted || judge.is_harmless(&git) {
                known.insert(git, KnownRepository { fingerprint, origin: RepositoryOrigin::Commands });
            } else {
                known.remove(&git);
                aside.push(if converted(&git) { rename_aside(&git.join("HEAD")) } else { put_away(&git) });
            }
        }
        aside
    }
}

impl KnownRepository {
    /// What is there now is what the user wanted, and nothing runs that could write it.
    fn accept(&mut self, fingerprint: u64) {
        let is_changed = std::mem::replace(&mut self.fingerprint, fingerprint) != fingerprint;
        let RepositoryOrigin::User(kept) = &mut self.origin else { return };
        for entry in kept {
            if is_changed {
                *entry = KeptEntry::new(entry.path.clone());
            }
            entry.is_replaced = false;
        }
    }

    /// What is there now is what a person wanted, and a job may be able to write it.
    fn accept_from_command(&mut self, fingerprint: u64) {
        self.fingerprint = fingerprint;
        let RepositoryOrigin::User(kept) = &mut self.origin else { return };
        for entry in kept {
            let is_replaced = entry.is_replaced || identity(&entry.path) != entry.was;
            *entry = KeptEntry { is_replaced, ..KeptEntry::new(entry.path.clone()) };
        }
    }
}

/// What decides in a git folder, or the file that leads to one, as it is now.
fn kept_entries(git: &Path) -> Vec<KeptEntry> {
    let names = ["config", "config.worktree", "hooks"].map(|name| git.join(name));
    let paths = if git.is_dir() { names.to_vec() } else { vec![git.to_owned()] };
    paths.into_iter().map(KeptEntry::new).collect()
}

impl KeptEntry {
    fn new(path: PathBuf) -> KeptEntry {
        let text = settings_text(&path);
        KeptEntry { was: identity(&path), text, is_replaced: false, path }
    }

    /// Brings back what was there, if a job can have changed it so that something runs. Gives the name of what came in its place.
    fn put_back(&mut self, judge: RepositoryJudge<'_>) -> Option<PathBuf> {
        let now = identity(&self.path);
        // What was not there is looked at elsewhere.
        let was = self.was?;
        self.is_replaced |= now.is_some_and(|now| now != was);
        let text = settings_text(&self.path);
        if !self.is_replaced || now.is_none() {
            self.text = text;
            return None;
        }
        let is_harmless = match self.path.file_name().and_then(|name| name.to_str()) {
            Some("hooks") => has_only_samples(&self.path),
            Some(".git") => text == self.text || judge.is_harmless(&self.path),
            _ => text.as_ref().is_some_and(|text| has_nothing_new(text, self.text.as_deref())),
        };
        if is_harmless {
            (self.text, self.was) = (text, now);
            return None;
        }
        let aside = rename_aside(&self.path);
        if let Some(text) = &self.text {
            let _ = fs::write(&self.path, text);
        }
        Some(aside)
    }
}

fn settings_text(path: &Path) -> Option<String> {
    let bytes = read_up_to(path, MAX_KEPT_SETTINGS_BYTES + 1).ok()?;
    String::from_utf8(bytes).ok().filter(|text| text.len() as u64 <= MAX_KEPT_SETTINGS_BYTES)
}

/// Whether settings run nothing that they did not run before.
fn has_nothing_new(text: &str, before: Option<&str>) -> bool {
    let known = before.map(|before| harmful_settings(before, &[])).unwrap_or_default();
    harmful_settings(text, &[]).iter().all(|setting| known.contains(setting))
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    path.symlink_metadata().ok().map(|facts| (facts.dev(), facts.ino()))
}

/// Changes whenever something changes that decides what git does with a repository.
fn fingerprint(git: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    let facts = |path: &Path| path.symlink_metadata().ok();
    // A `.git` that is a file is all that decides. A folder changes with everything that git does.
    let own = facts(git)
        .map(|facts| (facts.dev(), facts.ino(), facts.mode(), facts.is_file().then_some(times(&facts))));
    own.hash(&mut hasher);
    for name in DECIDING_ENTRIES {
        let facts = facts(&git.join(name));
        facts
            .map(|facts| (facts.dev(), facts.ino(), facts.mode(), facts.size(), times(&facts)))
            .hash(&mut hasher);
    }
    for name in DECIDING_BY_KIND {
        facts(&git.join(name)).map(|facts| facts.mode()).hash(&mut hasher);
    }
    hasher.finish()
}

/// When something was last changed. The second can't be set by anybody.
fn times(facts: &fs::Metadata) -> [(i64, i64); 2] {
    [(facts.mtime(), facts.mtime_nsec()), (facts.ctime(), facts.ctime_nsec())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::git_folders::is_git_folder;

    const PLAIN: &str = "[core]\n\tbare = false\n";
    const TRAP: &str = "[core]\n\tfsmonitor = ./x\n";
    const NOBODY: ChangeAuthor<'_> = ChangeAuthor::Commands { granted: &[] };

    fn write(path: PathBuf, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A repository in a folder, and its path.
    fn repository(root: &Path, name: &str) -> PathBuf {
        let git = root.join(name);
        for (name, text) in
            [("HEAD", "ref: refs/heads/main\n"), ("objects/x", ""), ("refs/x", ""), ("config", PLAIN)]
        {
            write(git.join(name), text);
        }
        git
    }

    fn inspect(ledger: &RepositoryLedger, git: &Path, root: &Path, author: ChangeAuthor<'_>) -> Vec<PathBuf> {
        let roots = [root.to_owned()];
        ledger.inspect(&[git.to_owned()], |_| false, RepositoryJudge { roots: &roots }, author)
    }

    #[test]
    fn what_changes_in_a_repository_that_a_command_made_is_judged_again() {
        type Change = fn(&Path);
        let changes: [(&str, Change); 12] = [
            ("settings", |git| write(git.join("config"), TRAP)),
            ("settings of a work tree", |git| write(git.join("config.worktree"), TRAP)),
            ("a hook", |git| write(git.join("hooks/pre-commit"), "")),
            ("attributes", |git| write(git.join("info/attributes"), "* filter=x\n")),
            ("a repository elsewhere", |git| write(git.join("commondir"), "../../other")),
            ("objects elsewhere", |git| write(git.join("objects/info/alternates"), "/elsewhere/objects\n")),
            ("an old remote", |git| write(git.join("remotes/origin"), "URL: ext::sh\n")),
            ("a module", |git| {
                let module = repository(git, "modules/new");
                write(module.join("config.worktree"), TRAP);
            }),
            ("attributes of a module", |git| {
                let module = repository(git, "modules/deep/er/new");
                write(module.join("info/attributes"), "* filter=x\n");
            }),
            ("a linked module", |git| {
                repository(git, "elsewhere");
                fs::create_dir(git.join("modules")).unwrap();
                std::os::unix::fs::symlink("../elsewhere", git.join("modules/new")).unwrap();
            }),
            ("a work tree", |git| {
                write(git.join("worktrees/w/HEAD"), "");
                write(git.join("worktrees/w/commondir"), "../../../other");
            }),
            ("many samples", |git| {
                for number in 0..3_000 {
                    write(git.join(format!("hooks/{number}.sample")), "");
                }
                write(git.join("hooks/pre-commit"), "");
            }),
        ];
        for (what, change) in changes {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().canonicalize().unwrap();
            let ledger = RepositoryLedger::default();
            let git = repository(&root, "sub/.git");
            assert!(inspect(&ledger, &git, &root, NOBODY).is_empty(), "{what}");
            // What git does all the time is nothing.
            write(git.join("objects/y"), "");
            write(git.join("HEAD"), "ref: refs/heads/other\n");
            write(git.join("index"), "");
            assert!(inspect(&ledger, &git, &root, NOBODY).is_empty(), "{what}");
            change(&git);
            let aside = inspect(&ledger, &git, &root, NOBODY);
            assert_eq!(aside.len(), 1, "{what}: {aside:?}");
            assert!(!is_git_folder(&aside[0]), "{what}: it is still one");
            assert!(inspect(&ledger, &git, &root, NOBODY).is_empty(), "{what}");
        }
    }

    #[test]
    fn what_the_user_or_a_person_wanted_stays() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let ledger = RepositoryLedger::default();
        let (own, granted) = (repository(&root, "own/.git"), repository(&root, "granted/.git"));
        write(own.join("config"), TRAP);
        assert!(inspect(&ledger, &own, &root, ChangeAuthor::User).is_empty());
        assert!(inspect(&ledger, &own, &root, NOBODY).is_empty());
        write(granted.join("config"), TRAP);
        let author = ChangeAuthor::Commands { granted: &[granted.join("config")] };
        assert!(inspect(&ledger, &granted, &root, author).is_empty());
        assert!(inspect(&ledger, &granted, &root, NOBODY).is_empty());
        // A new module in the user's repository is not the user's.
        write(own.join("modules/new/HEAD"), "");
        write(own.join("modules/new/config"), TRAP);
        assert_eq!(inspect(&ledger, &own, &root, NOBODY), [own.join("modules/new.put-aside")]);
    }

    #[test]
    fn what_was_a_folder_before_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let git = repository(&root, "docs");
        write(git.join("config"), TRAP);
        let ledger = RepositoryLedger::default();
        let roots = [root.clone()];
        let aside =
            ledger.inspect(std::slice::from_ref(&git), |_| true, RepositoryJudge { roots: &roots }, NOBODY);
        assert_eq!(aside, [git.join("HEAD.put-aside")]);
        assert!(git.join("config").exists() && !is_git_folder(&git));
    }

    #[test]
    fn settings_that_were_replaced_while_a_job_runs_are_compared() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let git = repository(&root, ".git");
        let config = git.join("config");
        write(config.clone(), "[core]\n\tpager = less\n");
        let ledger = RepositoryLedger::default();
        inspect(&ledger, &git, &root, ChangeAuthor::User);
        // In place, which no job can do.
        fs::write(&config, "[core]\n\tpager = delta\n").unwrap();
        assert!(inspect(&ledger, &git, &root, NOBODY).is_empty());
        // As git does it: from then on a job can write it.
        let replace = |text: &str| {
            fs::write(git.join("config.lock"), text).unwrap();
            fs::rename(git.join("config.lock"), &config).unwrap();
        };
        replace("[core]\n\tpager = delta\n[user]\n\tname = me\n");
        assert!(inspect(&ledger, &git, &root, NOBODY).is_empty());
        fs::write(&config, "[core]\n\tpager = delta\n\tfsmonitor = ./x\n").unwrap();
        assert_eq!(inspect(&ledger, &git, &root, NOBODY), [git.join("config.put-aside")]);
        assert_eq!(fs::read_to_string(&config).unwrap(), "[core]\n\tpager = delta\n[user]\n\tname = me\n");
        assert!(inspect(&ledger, &git, &root, NOBODY).is_empty());
    }
}
