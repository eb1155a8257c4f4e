//! Files with several names (hard links): what holds for one name of a file holds for all.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use helve_permissions::{AgentRights, SECRET_HOME_PATHS};
use helve_protocol::ToolAction;

/// Outside the project so many files are looked at for what a rule denies.
const MAX_OUTSIDE_ENTRIES: usize = 20_000;

/// The other names of files that may not be read or written unasked. They are looked for when somebody first opens a file with several
/// names, and again when such a file is not as it was then.
#[derive(Debug, Default)]
pub(crate) struct LinkedFiles(Mutex<Option<LinkIndex>>);

#[derive(Debug)]
struct LinkIndex {
    /// Changes with the rules.
    key: String,
    files: HashMap<FileNumber, LinkedFile>,
    /// Folders in which there may be more.
    unknown: Vec<PathBuf>,
}

/// The device and the number of a file.
type FileNumber = (u64, u64);

/// A file with several names.
#[derive(Debug, Default)]
struct LinkedFile {
    state: LinkState,
    /// Those of its names that are special.
    special: Vec<PathBuf>,
}

/// How many names a file has, and when it was last changed. To give it another name changes that, and nobody can set it.
type LinkState = (u64, i64, i64);

fn link_state(facts: &fs::Metadata) -> LinkState {
    (facts.nlink(), facts.ctime(), facts.ctime_nsec())
}

impl LinkedFiles {
    /// The actions, and the same with the other names of the files that they are about.
    pub(crate) fn with_other_names(&self, actions: &[ToolAction], rights: &AgentRights) -> Vec<ToolAction> {
        let mut all = actions.to_vec();
        for action in actions {
            let (path, of): (&Path, fn(PathBuf) -> ToolAction) = match action {
                ToolAction::Read(path) => (path, ToolAction::Read),
                ToolAction::Write(path) => (path, ToolAction::Write),
                _ => continue,
            };
            all.extend(self.other_names(path, rights).into_iter().map(of));
        }
        all
    }

    /// The special names of a file that has several.
    fn other_names(&self, path: &Path, rights: &AgentRights) -> Vec<PathBuf> {
        // There is nothing to be read in an empty one, which stores of packages give many names.
        let has_names = |facts: &fs::Metadata| facts.is_file() && facts.nlink() > 1 && facts.size() > 0;
        let Some(facts) = path.symlink_metadata().ok().filter(has_names) else { return Vec::new() };
        let key: String = ["read", "write"]
            .iter()
            .flat_map(|tool| rights.denied_paths(tool))
            .map(|rule| format!("{rule}\n"))
            .collect();
        let (number, state) = ((facts.dev(), facts.ino()), link_state(&facts));
        let mut index = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = |index: &LinkIndex| {
            index.key == key && index.files.get(&number).is_some_and(|file| file.state == state)
        };
        if !index.as_ref().is_some_and(is_known) {
            *index = Some(LinkIndex::new(key, rights));
        }
        let Some(index) = index.as_mut() else { return Vec::new() };
        // One that lies elsewhere need not be looked for each time.
        let file = index.files.entry(number).or_default();
        file.state = state;
        let known = file.special.iter().filter(|name| *name != path);
        known.chain(&index.unknown).cloned().collect()
    }
}

impl LinkIndex {
    fn new(key: String, rights: &AgentRights) -> LinkIndex {
        let mut index = LinkIndex { key, files: HashMap::new(), unknown: Vec::new() };
        let places = rights.places();
        for root in places.inside() {
            index.read(root, rights, usize::MAX);
        }
        // Of this program's own folders only what is at their top: below it are sessions and caches.
        let own = places.own.iter().flat_map(|own| fs::read_dir(own).into_iter().flatten().flatten());
        let own =
            own.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file())).map(|entry| entry.path());
        for path in own.chain(home_paths(places.home.as_deref())) {
            index.read(&path, rights, usize::MAX);
        }
        let bases = ["read", "write"].iter().flat_map(|tool| rights.denied_bases(tool));
        for base in bases.filter(|base| !places.is_inside(base)) {
            if !index.read(&base, rights, MAX_OUTSIDE_ENTRIES) {
                index.unknown.push(base.join("any"));
            }
        }
        index
    }

    /// Notes the files with several names at a path, and below. False if there were too many to look at.
    fn read(&mut self, path: &Path, rights: &AgentRights, mut left: usize) -> bool {
        let mut open = vec![path.to_owned()];
        while let Some(path) = open.pop() {
            let Ok(facts) = path.symlink_metadata() else { continue };
            if facts.is_dir() {
                // Nobody is asked about what git has in its store, of which it keeps the same file in several repositories.
                let is_store = path.ends_with("objects") && path.iter().any(|name| name == ".git");
                let entries = fs::read_dir(&path).into_iter().flatten().flatten().filter(|_| !is_store);
                open.extend(entries.map(|entry| entry.path()));
            } else if facts.is_file() && facts.nlink() > 1 {
                let file = self.files.entry((facts.dev(), facts.ino())).or_default();
                file.state = link_state(&facts);
                file.special.extend(rights.is_special(&path).then_some(path));
            }
            let Some(rest) = left.checked_sub(1) else { return false };
            left = rest;
        }
        true
    }
}

/// Where secrets and settings are in a home folder.
fn home_paths(home: Option<&Path>) -> Vec<PathBuf> {
    let Some(home) = home else { return Vec::new() };
    let dotfiles = fs::read_dir(home).into_iter().flatten().flatten().filter(|entry| {
        entry.file_name().as_encoded_bytes().starts_with(b".")
            && entry.file_type().is_ok_and(|kind| kind.is_file())
    });
    SECRET_HOME_PATHS.iter().map(|name| home.join(name)).chain(dotfiles.map(|entry| entry.path())).collect()
}

#[cfg(test)]
mod tests {
    use helve_permissions::{
        ConfinementLevel, LayeredRules, PermissionVerdict, ProjectContext, Rule, RuleLayer,
    };
    use helve_protocol::PermissionMode;

    use super::*;

    fn write(path: PathBuf) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    }

    #[test]
    fn other_names_of_special_files_are_found_also_when_they_come_later() {
        let folder = tempfile::tempdir().unwrap();
        let (root, home) = (folder.path().join("project"), folder.path().join("home"));
        for name in ["secret.txt", ".env", ".git/config", "src/a", "deep/keep/b"] {
            write(root.join(name));
        }
        for name in [".ssh/id_rsa", ".bashrc", "notes"] {
            write(home.join(name));
        }
        let mut rules = LayeredRules::default();
        for rule in ["read(./secret.txt)", "write(./deep/keep/**)"] {
            rules.add(RuleLayer::User, "here", Rule::parse(rule, PermissionVerdict::Deny).unwrap());
        }
        let places = ProjectContext { home: Some(home.clone()), ..ProjectContext::of(&root) };
        let rights = AgentRights::new(rules, PermissionMode::Auto, places, ConfinementLevel::Full);
        let linked = LinkedFiles::default();
        for (number, special) in [
            root.join("secret.txt"),
            root.join(".env"),
            root.join(".git/config"),
            root.join("deep/keep/b"),
            home.join(".ssh/id_rsa"),
            home.join(".bashrc"),
        ]
        .into_iter()
        .enumerate()
        {
            // The index is there already from the second one on.
            let other = root.join(format!("other-{number}"));
            fs::hard_link(&special, &other).unwrap();
            let actions = linked.with_other_names(&[ToolAction::Read(other.clone())], &rights);
            assert_eq!(actions, [ToolAction::Read(other), ToolAction::Read(special)]);
        }
        for (from, to) in [(root.join("src/a"), root.join("src/b")), (home.join("notes"), root.join("notes"))]
        {
            fs::hard_link(from, &to).unwrap();
            assert_eq!(
                linked.with_other_names(&[ToolAction::Write(to.clone())], &rights),
                [ToolAction::Write(to)]
            );
        }
        let plain = [ToolAction::Read(root.join("absent")), ToolAction::Search("x".to_owned())];
        assert_eq!(linked.with_other_names(&plain, &rights), plain);
    }
}
