//! Instruction files found in trees of every kind.
#![expect(clippy::unwrap_used, reason = "a test that can't prepare its files has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use helve_library::{
    FileText, InstructionFiles, InstructionOrigin, InstructionPlaces, KnownInstructions, LoadedInstructions,
    ReadFailure, ResolvedInstruction, SkipReason, load_instructions,
};

/// Plain files, with a list of secrets.
struct DiskFiles {
    secrets: Vec<PathBuf>,
}

struct DiskFile(PathBuf);

impl InstructionFiles for DiskFiles {
    fn resolve(&self, path: &Path) -> io::Result<Box<dyn ResolvedInstruction>> {
        Ok(Box::new(DiskFile(fs::canonicalize(path)?)))
    }

    fn markdown_below(&self, folder: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                found.extend(self.markdown_below(&path));
            } else if path.extension().is_some_and(|end| end == "md") {
                found.push(path);
            }
        }
        found.sort();
        found
    }

    fn is_hidden(&self, path: &Path) -> bool {
        self.secrets.iter().any(|secret| path.starts_with(secret))
    }
}

impl ResolvedInstruction for DiskFile {
    fn path(&self) -> &Path {
        &self.0
    }

    fn read(&self, max_bytes: usize) -> Result<FileText, ReadFailure> {
        if !fs::metadata(&self.0).unwrap().is_file() {
            return Err(ReadFailure::NotAFile);
        }
        let mut bytes =
            fs::read(&self.0).map_err(|error| ReadFailure::Unreadable(error.kind().to_string()))?;
        let total_bytes = bytes.len() as u64;
        bytes.truncate(max_bytes);
        Ok(FileText { bytes, total_bytes })
    }
}

struct Tree {
    _folder: tempfile::TempDir,
    base: PathBuf,
    places: InstructionPlaces,
}

impl Tree {
    fn new(files: &[(&str, &str)]) -> Tree {
        let folder = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(folder.path()).unwrap();
        let places = InstructionPlaces {
            root: base.join("project"),
            working_folder: base.join("project"),
            home: Some(base.join("home")),
            ..InstructionPlaces::default()
        };
        fs::create_dir_all(base.join("project")).unwrap();
        fs::create_dir_all(base.join("home/.ssh")).unwrap();
        fs::write(base.join("home/.ssh/id_rsa"), "PRIVATE KEY").unwrap();
        let tree = Tree { _folder: folder, base, places };
        for (path, text) in files {
            tree.write(path, text);
        }
        tree
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.base.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn load(&self, touched: &[&str]) -> LoadedInstructions {
        self.load_knowing(touched, &KnownInstructions::new())
    }

    fn load_knowing(&self, touched: &[&str], known: &KnownInstructions) -> LoadedInstructions {
        let files = DiskFiles { secrets: vec![self.base.join("home/.ssh"), self.base.join("project/.env")] };
        let touched: BTreeSet<PathBuf> = touched.iter().map(|path| self.base.join(path)).collect();
        load_instructions(&self.places, &files, &touched, known)
    }

    /// The texts that were loaded.
    fn texts(&self, touched: &[&str]) -> Vec<String> {
        self.load(touched).parts.into_iter().map(|part| part.text).collect()
    }

    fn skipped(&self) -> Vec<(String, SkipReason)> {
        let relative = |path: &Path| path.strip_prefix(&self.base).unwrap().display().to_string();
        self.load(&[]).skipped.into_iter().map(|skipped| (relative(&skipped.path), skipped.reason)).collect()
    }
}

#[test]
fn files_count_from_the_root_down_and_nested_ones_once_something_below_is_touched() {
    let mut tree = Tree::new(&[
        ("AGENTS.md", "above the root"),
        ("project/AGENTS.md", "root"),
        ("project/CLAUDE.md", "claude"),
        ("project/CLAUDE.local.md", "local"),
        ("project/a/AGENTS.md", "replaced"),
        ("project/a/AGENTS.override.md", "override"),
        ("project/a/b/CLAUDE.md", "nested"),
        ("project/other/AGENTS.md", "other"),
        ("project/.helve/guidelines.md", "guidelines"),
        ("project/.helve/rules/always.md", "always"),
        ("project/.helve/rules/deep/rust.md", "---\npaths: '**/*.rs'\n---\nrust"),
    ]);
    assert_eq!(tree.texts(&[]), ["root", "claude", "local", "guidelines", "always"]);
    assert_eq!(
        tree.texts(&["project/a/b/main.rs"]),
        ["root", "claude", "local", "guidelines", "always", "rust", "override", "nested"]
    );
    tree.places.working_folder = tree.base.join("project/a");
    assert_eq!(tree.texts(&[]), ["root", "claude", "local", "override", "guidelines", "always"]);
}

#[test]
fn people_come_first_and_each_file_counts_once() {
    let mut tree = Tree::new(&[
        ("etc/AGENTS.md", "administrator"),
        ("config/AGENTS.md", "user"),
        ("config/memory.md", "- user memory @../project/extra.md"),
        ("project/AGENTS.md", "root"),
        ("project/.helve/memory.md", "- project memory"),
        ("project/extra.md", "extra"),
        ("elsewhere/rules.md", "named"),
    ]);
    symlink("AGENTS.md", tree.base.join("project/CLAUDE.md")).unwrap();
    tree.write("project/CLAUDE.local.md", "root");
    tree.places.administrator = Some(tree.base.join("etc/AGENTS.md"));
    tree.places.user = vec![tree.base.join("config/AGENTS.md"), tree.base.join("home/.claude/CLAUDE.md")];
    tree.places.user_memory = Some(tree.base.join("config/memory.md"));
    tree.places.project_memory = Some(tree.base.join("project/.helve/memory.md"));
    tree.places.named = vec![tree.base.join("elsewhere/rules.md")];
    // The link and the copy are the same text; a memory imports nothing.
    assert_eq!(
        tree.texts(&[]),
        ["administrator", "user", "- user memory @../project/extra.md", "root", "- project memory", "named"]
    );
}

#[test]
fn imports_are_followed_four_times_and_in_no_circle() {
    let tree = Tree::new(&[
        ("project/AGENTS.md", "0 @docs/1.md `@docs/code.md`"),
        ("project/docs/1.md", "1 @2.md @../AGENTS.md @1.md @missing.md"),
        ("project/docs/2.md", "2 @3.md"),
        ("project/docs/3.md", "3 @4.md"),
        ("project/docs/4.md", "4 @5.md"),
        ("project/docs/5.md", "5"),
        ("project/docs/code.md", "code"),
    ]);
    let loaded = tree.load(&[]);
    let firsts: String = loaded.parts.iter().filter_map(|part| part.text.chars().next()).collect();
    assert_eq!(firsts, "01234");
    let importer = tree.base.join("project/AGENTS.md");
    assert_eq!(loaded.parts.get(1).unwrap().origin, InstructionOrigin::ImportedBy(importer));
    assert_eq!(tree.skipped(), [("project/docs/5.md".to_owned(), SkipReason::TooManyHops)]);
}

#[test]
fn nothing_outside_the_project_and_no_secret_is_read_unless_exactly_that_is_allowed() {
    let mut tree = Tree::new(&[
        ("project/AGENTS.md", "root @~/.ssh/id_rsa @../outside.md @.env @linked/outside.md"),
        ("project/.env", "TOKEN=1"),
        ("outside.md", "outside"),
        ("folder/outside.md", "also outside"),
    ]);
    symlink(tree.base.join("home/.ssh/id_rsa"), tree.base.join("project/CLAUDE.md")).unwrap();
    symlink(tree.base.join("folder"), tree.base.join("project/linked")).unwrap();
    fs::create_dir_all(tree.base.join("project/.helve")).unwrap();
    symlink(tree.base.join("folder"), tree.base.join("project/.helve/rules")).unwrap();
    assert_eq!(tree.texts(&[]), ["root @~/.ssh/id_rsa @../outside.md @.env @linked/outside.md"]);
    let outside = |path: &str| (path.to_owned(), SkipReason::OutsideProject);
    assert_eq!(
        tree.skipped(),
        [
            outside("home/.ssh/id_rsa"),
            outside("outside.md"),
            ("project/.env".to_owned(), SkipReason::Hidden),
            outside("project/.helve/rules/outside.md"),
            outside("project/CLAUDE.md"),
            outside("project/linked/outside.md"),
        ]
    );
    // The user's own file reaches further, but not to secrets.
    tree.places.user = vec![tree.base.join("home/own.md")];
    tree.write("home/own.md", "own @../outside.md @.ssh/id_rsa");
    let texts = tree.texts(&[]);
    assert!(texts.contains(&"outside".to_owned()) && !texts.iter().any(|text| text.contains("PRIVATE")));
    tree.places.user.clear();
    tree.places.allowed = vec![tree.base.join("outside.md")];
    let texts = tree.texts(&[]);
    assert!(texts.contains(&"outside".to_owned()) && !texts.contains(&"also outside".to_owned()));
}

#[test]
fn large_broken_and_special_files_are_bounded_and_named() {
    let tree = Tree::new(&[("project/AGENTS.md", "root")]);
    tree.write("project/CLAUDE.md", "a line of text\n".repeat(700_000));
    tree.write("project/CLAUDE.local.md", b"caf\xe9\n");
    tree.write("project/.helve/rules/closed.md", "closed");
    fs::create_dir_all(tree.base.join("project/.helve/guidelines.md")).unwrap();
    let closed = tree.base.join("project/.helve/rules/closed.md");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o0)).unwrap();
    let is_root = fs::read(&closed).is_ok();
    let loaded = tree.load(&[]);
    let cut = loaded.parts.get(1).unwrap();
    assert!(cut.text.len() <= tree.places.limits.file_bytes && cut.text.ends_with("text\n"));
    assert!(cut.warning.as_ref().unwrap().contains("CLAUDE.md has 10500000 bytes"), "{cut:?}");
    let broken = loaded.parts.get(2).unwrap();
    assert_eq!(broken.text, "caf\u{fffd}\n");
    assert!(broken.warning.as_ref().unwrap().contains("not valid UTF-8"));
    let skipped = tree.skipped();
    assert!(
        skipped.contains(&("project/.helve/guidelines.md".to_owned(), SkipReason::NotAFile)),
        "{skipped:?}"
    );
    let is_closed = |(path, reason): &(String, SkipReason)| {
        path.ends_with("closed.md") && matches!(reason, SkipReason::Unreadable(_))
    };
    assert!(is_root || skipped.iter().any(is_closed), "{skipped:?}");
}

#[test]
fn all_files_together_are_bounded_too() {
    let mut tree = Tree::new(&[
        ("project/AGENTS.md", "123456"),
        ("project/CLAUDE.md", "7890ab"),
        ("project/CLAUDE.local.md", "c"),
    ]);
    tree.places.limits.total_bytes = 10;
    assert_eq!(tree.texts(&[]), ["123456", "c"]);
    assert_eq!(tree.skipped(), [("project/CLAUDE.md".to_owned(), SkipReason::TotalLimit(10))]);
}

#[test]
fn what_is_known_is_not_told_again_until_it_changes() {
    let tree = Tree::new(&[("project/AGENTS.md", "one"), ("project/a/AGENTS.md", "two")]);
    let first = tree.load(&["project/a/x"]);
    let known: KnownInstructions = first.parts.into_iter().map(|part| (part.path, part.hash)).collect();
    assert_eq!(known.len(), 2);
    assert_eq!(tree.load_knowing(&["project/a/x"], &known), LoadedInstructions::default());
    tree.write("project/a/AGENTS.md", "three");
    let again = tree.load_knowing(&["project/a/x"], &known);
    let told: Vec<(&str, bool)> =
        again.parts.iter().map(|part| (part.text.as_str(), part.is_changed)).collect();
    assert_eq!(told, [("three", true)]);
}
