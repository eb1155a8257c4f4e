//! What of a git repository runs nothing: a repository that a command makes is left where it is only if all of it is so.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use crate::shell::bounded_read::read_up_to;
use crate::shell::git_folders::{GitElsewhere, git_link_target, is_git_folder, read_git_file};

/// A file of settings, or one that says where git keeps something, is not larger.
const MAX_GIT_SETTINGS_BYTES: u64 = 64 << 10;
/// Settings that run nothing and lead nowhere: `section.name`, whatever stands between in quotes. Each by its whole name: among
/// those of one section there is often one that runs something (`gc.recentObjectsHook`).
const HARMLESS_REPOSITORY_SETTINGS: &str = "\
    advice.addembeddedrepo advice.addemptypathspec advice.addignoredfile advice.ambiguousfetchrefspec \
    advice.detachedhead advice.fetchshowforcedupdates advice.graftfiledeprecated advice.ignoredhook \
    advice.implicitidentity advice.mergeconflict advice.nestedtag advice.pushalreadyexists \
    advice.pushfetchfirst advice.pushneedsforce advice.pushnonffcurrent advice.pushnonffmatching \
    advice.pushrefneedsupdate advice.pushunqualifiedrefname advice.pushupdaterejected advice.refsyntax \
    advice.resetnorefresh advice.resolveconflict advice.rmhints advice.sequencerinuse \
    advice.skippedcherrypicks advice.statusahead advice.statushints advice.statusuoption \
    advice.submodulealternateerrorstrategydie advice.submodulemergeconflict advice.submodulesnotupdated \
    advice.suggestdetachinghead advice.updatesparsepath advice.waitingforeditor advice.worktreeaddorphan \
    branch.autosetupmerge branch.autosetuprebase branch.description branch.gh-merge-base branch.merge \
    branch.pushremote branch.rebase branch.remote branch.sort branch.vscode-merge-base color.advice \
    color.branch color.diff color.grep color.interactive color.pager color.push color.remote color.showbranch \
    color.status color.transport color.ui column.branch column.clean column.status column.tag column.ui \
    commit.gpgsign core.abbrev core.autocrlf core.bare core.bigfilethreshold core.compression core.eol \
    core.filemode core.ignorecase core.logallrefupdates core.longpaths core.precomposeunicode core.protecthfs \
    core.protectntfs core.quotepath core.repositoryformatversion core.safecrlf core.sharedrepository \
    core.sparsecheckout core.sparsecheckoutcone core.splitindex core.symlinks core.untrackedcache \
    extensions.compatobjectformat extensions.noop extensions.objectformat extensions.partialclone \
    extensions.preciousobjects extensions.refstorage extensions.relativeworktrees extensions.worktreeconfig \
    fetch.prune fetch.prunetags gc.aggressivedepth gc.aggressivewindow gc.auto gc.autodetach gc.autopacklimit \
    gc.bigpackthreshold gc.cruftpacks gc.logexpiry gc.maxcruftsize gc.packrefs gc.pruneexpire gc.reflogexpire \
    gc.reflogexpireunreachable gc.rerereresolved gc.rerereunresolved gc.worktreepruneexpire \
    gc.writecommitgraph index.recordendofindexentries index.recordoffsettable index.skiphash index.sparse \
    index.threads index.version init.defaultbranch lfs.access lfs.repositoryformatversion maintenance.auto \
    maintenance.strategy merge.conflictstyle pack.allowpackreuse pack.buildbitmaphashcache pack.compression \
    pack.deltacachelimit pack.deltacachesize pack.depth pack.indexversion pack.island pack.islandcore \
    pack.packsizelimit pack.preferbitmaptips pack.threads pack.usebitmapboundarytraversal pack.usebitmaps \
    pack.usesparse pack.window pack.windowmemory pack.writebitmaphashcache pack.writebitmaplookuptable \
    pack.writebitmaps pack.writereverseindex pull.ff pull.rebase push.autosetupremote push.default \
    receive.denycurrentbranch receive.denydeletes receive.denynonfastforwards remote.fetch remote.mirror \
    remote.partialclonefilter remote.promisor remote.prune remote.push remote.pushurl \
    remote.skipdefaultupdate remote.skipfetchall remote.tagopt remote.url rerere.autoupdate rerere.enabled \
    submodule.active submodule.branch submodule.fetchrecursesubmodules submodule.ignore submodule.url \
    tag.gpgsign user.email user.name";

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
    harmful_settings(text, also_harmless).into_iter().next().map(|(name, _)| name)
}

/// All settings in a text that could run something, or lead elsewhere, with their values.
pub(crate) fn harmful_settings(text: &str, also_harmless: &[&str]) -> Vec<(String, String)> {
    let mut section = String::new();
    let mut found = Vec::new();
    for line in text.trim_start_matches('\u{feff}').lines() {
        let mut line = line.trim();
        // A setting may stand behind the name of its section.
        while let Some(rest) = line.strip_prefix('[') {
            let Some((name, after)) = rest.split_once(']') else {
                found.push((line.to_owned(), String::new()));
                break;
            };
            section = name.split([' ', '"', '.', '\t']).next().unwrap_or_default().to_ascii_lowercase();
            line = after.trim();
        }
        if line.is_empty() || line.starts_with(['#', ';', '[']) {
            continue;
        }
        let (name, value) = line.split_once('=').unwrap_or((line, "true"));
        let (name, value) = (format!("{section}.{}", name.trim().to_ascii_lowercase()), value.trim());
        let mut known = HARMLESS_REPOSITORY_SETTINGS.split_whitespace().chain(also_harmless.iter().copied());
        // A value that goes on in the next line could hide another one; quotes may stand anywhere in it.
        let plain: String = value.chars().filter(|letter| *letter != '"').collect();
        let is_plain = !plain.contains('\\') && !plain.contains("::") && !plain.starts_with('-');
        if !is_plain || !known.any(|known| known == name) {
            found.push((name, value.to_owned()));
        }
    }
    found
}

/// Names in a git folder that must be what git makes of them, and no links that lead elsewhere.
const UNLINKED_GIT_ENTRIES: [&str; 5] = ["objects", "refs", "logs", "modules", "worktrees"];
/// Folders in which git once kept where its servers are.
const OLD_REMOTE_FOLDERS: [&str; 2] = ["remotes", "branches"];

/// Says of repositories, and of what is in them, whether it could run something or lead git elsewhere.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RepositoryJudge<'a> {
    /// The project, and the folders that were added to it. None if they are not known.
    pub(crate) roots: &'a [PathBuf],
}

impl RepositoryJudge<'_> {
    /// Whether all of a repository is as git makes it: a git folder, by whatever name, or a file that leads to one.
    pub(crate) fn is_harmless(&self, repository: &Path) -> bool {
        match is_folder(repository) {
            true => self.is_harmless_folder(repository),
            false => self.leads_to_harmless(repository),
        }
    }

    fn is_harmless_folder(&self, git: &Path) -> bool {
        let names = ["config", "config.worktree", "hooks", "commondir", "info"];
        let mut there =
            names.iter().map(|name| git.join(name)).filter(|path| path.symlink_metadata().is_ok());
        let is_link = |name: &str| git.join(name).symlink_metadata().is_ok_and(|facts| facts.is_symlink());
        let has_any =
            |name: &str| fs::read_dir(git.join(name)).is_ok_and(|mut entries| entries.next().is_some());
        there.all(|path| self.is_harmless_entry(&path))
            && !UNLINKED_GIT_ENTRIES.iter().any(|name| is_link(name))
            && !OLD_REMOTE_FOLDERS.iter().any(|name| is_link(name) || has_any(name))
            && self.has_harmless_alternates(git)
    }

    /// Whether something in a git folder that decides what git does decides nothing: it is as git makes it.
    fn is_harmless_entry(&self, path: &Path) -> bool {
        let git = path.parent().unwrap_or(path);
        match path.file_name().and_then(|name| name.to_str()) {
            Some("config" | "config.worktree") => {
                let also_harmless: &[&str] = if is_module(git) { &HARMLESS_IN_MODULES } else { &[] };
                harmful_setting(path, also_harmless).is_none() && self.has_harmless_work_tree(path)
            }
            Some("hooks") => has_only_samples(path),
            Some("info") => is_folder(path) && path.join("attributes").symlink_metadata().is_err(),
            // Only a work tree that git has made has one, and it leads to the repository around it.
            Some("commondir") => {
                let around =
                    git.parent().filter(|folder| folder.ends_with("worktrees")).and_then(Path::parent);
                around.is_some_and(is_git_folder) && read_git_file(path).as_deref() == Some("../..")
            }
            _ => false,
        }
    }

    /// Whether a module says that its files are in the project.
    fn has_harmless_work_tree(&self, config: &Path) -> bool {
        let (Some(git), Some(text)) = (config.parent(), read_git_file(config)) else { return true };
        let mut named = harmful_settings(&text, &[]).into_iter().filter(|(name, _)| name == "core.worktree");
        let is_inside = |to: &str| {
            let to = git.join(to.trim_matches('"'));
            let to = to.canonicalize().unwrap_or(to);
            !to.components().any(|part| part == Component::ParentDir || part.as_os_str() == ".git")
                && (self.roots.is_empty() || self.roots.iter().any(|root| to.starts_with(root)))
        };
        named.all(|(_, to)| is_inside(&to))
    }

    /// Whether objects that a repository takes from others are in the project.
    fn has_harmless_alternates(&self, git: &Path) -> bool {
        let file = git.join("objects/info/alternates");
        if file.symlink_metadata().is_err() {
            return true;
        }
        let is_inside = |line: &str| {
            let to = git.join("objects").join(line).canonicalize();
            to.is_ok_and(|to| self.roots.iter().any(|root| to.starts_with(root)))
        };
        read_git_file(&file).is_some_and(|text| text.lines().all(is_inside))
    }

    /// Where a `.git` that is a file leads: only to a part of a repository that lies around it.
    fn leads_to_harmless(&self, file: &Path) -> bool {
        let Some((to, around)) = git_link_target(file).zip(file.parent().and_then(|f| f.canonicalize().ok()))
        else {
            return false;
        };
        let is_part = around.ancestors().any(|folder| {
            let git = folder.join(".git");
            // The project itself may be a work tree whose repository is elsewhere.
            let elsewhere = GitElsewhere::of(folder).map(|elsewhere| [elsewhere.own, elsewhere.common]);
            let folders = elsewhere.into_iter().flatten().chain([git]);
            folders.into_iter().any(|git| {
                to != git && ["modules", "worktrees"].iter().any(|part| to.starts_with(git.join(part)))
            })
        });
        is_part && self.is_harmless_folder(&to)
    }
}

/// Whether something that came in the place of what decides what git does decides nothing: a `.git`, or a part of one.
pub(crate) fn is_harmless(path: &Path) -> bool {
    let judge = RepositoryJudge::default();
    if path.ends_with(".git") { judge.is_harmless(path) } else { judge.is_harmless_entry(path) }
}

/// Whether a git folder is that of a module, which has its files elsewhere and says where.
fn is_module(git: &Path) -> bool {
    let mut around = git.ancestors().skip(1);
    around.any(|folder| folder.ends_with("modules") && folder.parent().is_some_and(is_git_folder))
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|facts| facts.is_dir())
}

pub(crate) fn has_only_samples(hooks: &Path) -> bool {
    if hooks.symlink_metadata().is_err() {
        return true;
    }
    if !is_folder(hooks) {
        return false;
    }
    let Ok(mut entries) = fs::read_dir(hooks) else { return false };
    entries.all(|entry| {
        let Ok(entry) = entry else { return false };
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
