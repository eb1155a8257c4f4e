//! Which paths are ignored: `.ignore`, `.gitignore` and git's `info/exclude`, as git and ripgrep read them.

use std::borrow::Cow;
use std::iter;
use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::files::{FileReadOutcome, RootFiles};
use crate::root::{WorkspaceRoot, common_folder, git_folder};

/// What is longer is not a list of rules that somebody wrote.
const MAX_IGNORE_FILE_BYTES: u64 = 1 << 20;

pub(crate) const IGNORE_FILES: [&str; 2] = [DOT_IGNORE, GITIGNORE];
const DOT_IGNORE: &str = ".ignore";
const GITIGNORE: &str = ".gitignore";
/// Heeded by searches only.
const RGIGNORE: &str = ".rgignore";

/// The rules of one folder, with those of the folders around it.
#[derive(Debug)]
pub(crate) struct IgnoreRules {
    place: RulesLocation,
    plain: Gitignore,
    git: Gitignore,
    /// Of `info/exclude`, at the top of a repository.
    exclude: Gitignore,
    /// What git's rules outside of a repository say does not hold within it.
    is_repository: bool,
    outer: Option<Arc<IgnoreRules>>,
}

/// Where the rules' folder is, seen from the root.
#[derive(Debug)]
enum RulesLocation {
    /// Below the root, or the root itself: so many bytes of a path are the folder's.
    Below(usize),
    /// Above the root: the path from there to the root.
    Above(String),
}

impl RulesLocation {
    fn of(folder: &str) -> RulesLocation {
        RulesLocation::Below(if folder.is_empty() { 0 } else { folder.len() + 1 })
    }

    /// A path below the root, seen from here.
    fn local<'p>(&self, path: &'p str) -> Cow<'p, str> {
        match self {
            RulesLocation::Below(skip) => Cow::Borrowed(path.get(*skip..).unwrap_or_default()),
            RulesLocation::Above(way) => Cow::Owned(format!("{way}/{path}")),
        }
    }
}

impl IgnoreRules {
    /// Those that hold in the root before its own: of the folders above it, up to the top of its repository.
    pub(crate) fn above(root: &WorkspaceRoot) -> Arc<IgnoreRules> {
        let mut rules = Arc::new(IgnoreRules::none());
        let Some(top) = root.repository().filter(|top| *top != root.folder()) else { return rules };
        let mut above: Vec<&Path> =
            root.folder().ancestors().skip(1).take_while(|f| f.starts_with(top)).collect();
        above.reverse();
        for folder in above {
            let Some(way) = root.folder().strip_prefix(folder).ok().and_then(Path::to_str) else { continue };
            let place = RulesLocation::Above(way.to_owned());
            rules = Arc::new(IgnoreRules::read(&RootFiles::new(folder), "", folder == top, place, &rules));
        }
        rules
    }

    pub(crate) fn none() -> IgnoreRules {
        IgnoreRules {
            place: RulesLocation::of(""),
            plain: Gitignore::empty(),
            git: Gitignore::empty(),
            exclude: Gitignore::empty(),
            is_repository: false,
            outer: None,
        }
    }

    /// Those of a folder that has rules of its own or is the top of a repository.
    pub(crate) fn of_folder(
        files: &RootFiles,
        folder: &str,
        is_repository: bool,
        outer: &Arc<IgnoreRules>,
    ) -> IgnoreRules {
        IgnoreRules::read(files, folder, is_repository, RulesLocation::of(folder), outer)
    }

    fn read(
        files: &RootFiles,
        folder: &str,
        is_repository: bool,
        place: RulesLocation,
        outer: &Arc<IgnoreRules>,
    ) -> IgnoreRules {
        let here = RootFiles::new(&files.absolute(folder));
        let exclude = || {
            let git = git_folder(&files.absolute(folder))?;
            Some(read_rules(&RootFiles::new(&common_folder(&git)), "info/exclude"))
        };
        IgnoreRules {
            place,
            plain: read_rules(&here, DOT_IGNORE),
            git: read_rules(&here, GITIGNORE),
            exclude: is_repository.then(exclude).flatten().unwrap_or_else(Gitignore::empty),
            is_repository,
            outer: Some(Arc::clone(outer)),
        }
    }

    /// Whether a path is ignored, the folders that it is in aside. The innermost rule decides; `.ignore` comes before
    /// `.gitignore`, and that before `info/exclude`.
    pub(crate) fn ignores(&self, path: &str, is_folder: bool) -> bool {
        let all = || iter::successors(Some(self), |rules| rules.outer.as_deref());
        let verdict = |rules: &IgnoreRules, list: &Gitignore| match list.is_empty() {
            true => None,
            false => match list.matched(rules.place.local(path).as_ref(), is_folder) {
                Match::None => None,
                Match::Ignore(_) => Some(true),
                Match::Whitelist(_) => Some(false),
            },
        };
        let plain = || all().find_map(|rules| verdict(rules, &rules.plain));
        let git = || of_repository(all()).find_map(|rules| verdict(rules, &rules.git));
        let exclude = || of_repository(all()).find_map(|rules| verdict(rules, &rules.exclude));
        plain().or_else(git).or_else(exclude).unwrap_or(false)
    }
}

/// Up to the top of the innermost repository.
fn of_repository<'r>(rules: impl Iterator<Item = &'r IgnoreRules>) -> impl Iterator<Item = &'r IgnoreRules> {
    let mut is_past_top = false;
    rules.take_while(move |rules| {
        let is_within = !is_past_top;
        is_past_top |= rules.is_repository;
        is_within
    })
}

/// Whether a walk of the `ignore` library can read the ignore rules of a folder: it opens whatever has their names, and a
/// pipe among them would stop it for ever. True where there are none.
pub fn can_read_ignore_files(folder: &Path) -> bool {
    if ![DOT_IGNORE, GITIGNORE, RGIGNORE, ".git"].iter().all(|name| is_plain(&folder.join(name))) {
        return false;
    }
    let Some(git) = git_folder(folder) else { return true };
    is_plain(&git.join("commondir")) && is_plain(&common_folder(&git).join("info/exclude"))
}

/// Whether a path can be read to its end: a file that somebody could have written, a folder, or nothing.
fn is_plain(path: &Path) -> bool {
    match path.metadata() {
        Ok(facts) => facts.is_dir() || (facts.is_file() && facts.len() <= MAX_IGNORE_FILE_BYTES),
        Err(_) => true,
    }
}

/// A list of rules, as the user has one for all repositories.
pub(crate) fn read_list(path: &Path) -> Gitignore {
    let (folder, name) =
        (path.parent().unwrap_or(Path::new("/")), path.file_name().and_then(|name| name.to_str()));
    name.map_or_else(Gitignore::empty, |name| read_rules(&RootFiles::new(folder), name))
}

fn read_rules(folder: &RootFiles, name: &str) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    let Ok(Some(stat)) = folder.stat(name) else { return Gitignore::empty() };
    let FileReadOutcome::Read(_, bytes) = folder.read(name, &stat, MAX_IGNORE_FILE_BYTES) else {
        return Gitignore::empty();
    };
    let text = String::from_utf8_lossy(&bytes);
    for line in text.strip_prefix('\u{feff}').unwrap_or(&text).lines() {
        // A line that is no pattern rules nothing, as with git.
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Tree {
        base: tempfile::TempDir,
    }

    impl Tree {
        fn new(files: &[(&str, &str)]) -> Tree {
            let base = tempfile::tempdir().unwrap();
            for (path, text) in files {
                let path = base.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Tree { base }
        }

        fn rules(&self, folders: &[(&str, bool)]) -> Arc<IgnoreRules> {
            let files = RootFiles::new(self.base.path());
            folders.iter().fold(Arc::new(IgnoreRules::none()), |outer, (folder, is_repository)| {
                Arc::new(IgnoreRules::of_folder(&files, folder, *is_repository, &outer))
            })
        }
    }

    #[test]
    fn inner_rules_win_and_plain_ones_come_first() {
        let tree = Tree::new(&[
            (".gitignore", "*.log\n/out/\nsecret\n"),
            (".ignore", "!keep.log\n"),
            ("src/.gitignore", "!secret\n*.tmp"),
        ]);
        let rules = tree.rules(&[("", true), ("src", false)]);
        let ignored = |path: &str| rules.ignores(path, false);
        assert!(ignored("src/a.log") && ignored("src/b.tmp"));
        assert!(!ignored("src/keep.log") && !ignored("src/secret") && !ignored("src/out"));
        let top = tree.rules(&[("", true)]);
        assert!(top.ignores("secret", false) && top.ignores("out", true));
        assert!(!top.ignores("out", false) && !top.ignores("b.tmp", false));
    }

    #[test]
    fn git_rules_end_at_a_repository_within_and_its_own_exclude_holds() {
        let tree = Tree::new(&[
            (".gitignore", "*.log\n"),
            (".ignore", "*.big\n"),
            ("sub/.git/HEAD", ""),
            ("sub/.git/info/exclude", "private\n"),
        ]);
        let rules = tree.rules(&[("", true), ("sub", true)]);
        let ignored = |path: &str| rules.ignores(path, false);
        assert!(!ignored("sub/a.log"));
        assert!(ignored("sub/a.big") && ignored("sub/private"));
    }

    #[test]
    fn rules_above_the_root_hold_in_it() {
        let tree = Tree::new(&[(".git/HEAD", ""), (".gitignore", "/a/b/out\n*.log\n"), ("a/b/x", "")]);
        let root = WorkspaceRoot::named(&tree.base.path().join("a/b")).unwrap();
        let rules = IgnoreRules::above(&root);
        assert!(rules.ignores("out", false) && rules.ignores("deep/x.log", false));
        assert!(!rules.ignores("deep/out", false));
    }
}
