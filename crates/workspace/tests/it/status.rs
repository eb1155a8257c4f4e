//! The branch and what is not committed, as `git status` has it, without running anything of the project.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use helve_workspace::{GitStatus, GitStatusRequest, WorkspaceRoot};

use crate::support::{git, git_program, init, settle_index, try_git};

struct Repository {
    folder: tempfile::TempDir,
}

impl Repository {
    fn new() -> Repository {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("project")).unwrap();
        let repository = Repository { folder };
        init(&repository.top());
        repository
    }

    fn committed(files: &[(&str, &str)]) -> Repository {
        let repository = Repository::new();
        files.iter().for_each(|(path, text)| repository.write(path, text));
        repository.git(&["add", "-A"]);
        repository.git(&["commit", "-qm", "all"]);
        settle_index(&repository.top());
        repository
    }

    fn top(&self) -> std::path::PathBuf {
        self.folder.path().canonicalize().unwrap().join("project")
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.top().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn git(&self, arguments: &[&str]) -> String {
        git(&self.top(), arguments)
    }

    fn status(&self) -> Option<GitStatus> {
        status_of(&self.top())
    }

    /// Whether ours and git's own answer are the same, and what that is.
    fn is_dirty(&self) -> bool {
        let ours = self.status().unwrap().is_dirty.unwrap();
        let gits = self.git(&["--no-optional-locks", "status", "--porcelain"]);
        assert_eq!(ours, !gits.is_empty(), "git says {gits:?}");
        ours
    }
}

fn status_of(folder: &Path) -> Option<GitStatus> {
    let root = WorkspaceRoot::named(folder).unwrap();
    GitStatusRequest { root: &root, git: Some(git_program()), user_ignores: None, max_files: 10_000 }.answer()
}

fn named(branch: &str, is_dirty: bool) -> Option<GitStatus> {
    Some(GitStatus { branch: branch.to_owned(), is_dirty: Some(is_dirty) })
}

#[test]
fn a_clean_project_is_clean_and_every_change_is_seen() {
    type Change<'a> = (&'a str, &'a dyn Fn(&Repository));
    let changes: [Change<'_>; 9] = [
        ("other content", &|it| it.write("deep/b", "2")),
        ("longer content", &|it| it.write("a", "1 and more")),
        ("a new file", &|it| it.write("new", "")),
        ("a file that is gone", &|it| fs::remove_file(it.top().join("a")).unwrap()),
        ("a folder in place of a file", &|it| {
            fs::remove_file(it.top().join("a")).unwrap();
            it.write("a/b", "1");
        }),
        ("a link in place of a file", &|it| {
            fs::remove_file(it.top().join("a")).unwrap();
            symlink("deep/b", it.top().join("a")).unwrap();
        }),
        ("something staged", &|it| {
            it.write("a", "2");
            it.git(&["add", "a"]);
        }),
        ("something staged and taken back", &|it| {
            it.write("a", "2");
            it.git(&["add", "a"]);
            it.write("a", "1");
        }),
        ("something taken out", &|it| drop(it.git(&["rm", "-q", "--cached", "a"]))),
    ];
    for (what, change) in changes {
        let repository = Repository::committed(&[("a", "1"), ("deep/b", "1"), (".gitignore", "*.log\n")]);
        assert_eq!(repository.status(), named("main", false));
        change(&repository);
        assert!(repository.is_dirty(), "{what}");
    }
}

#[test]
fn what_is_no_change_is_none() {
    let repository = Repository::committed(&[("a", "1"), ("kept.log", "1"), (".gitignore", "*.txt\nout/\n")]);
    repository.write("ignored.txt", "1");
    repository.write("out/made", "1");
    // The same content at another time.
    repository.write("a", "1");
    rustix::fs::mkfifoat(rustix::fs::CWD, repository.top().join("pipe"), 0o600.into()).unwrap();
    assert!(!repository.is_dirty());
    repository.write("a", "2");
    repository.git(&["update-index", "--assume-unchanged", "a"]);
    assert!(!repository.is_dirty());
}

#[test]
fn what_is_tracked_in_an_ignored_folder_counts() {
    let repository = Repository::committed(&[("a", "1"), ("out/kept", "1")]);
    repository.write(".gitignore", "out/\n");
    repository.git(&["add", "-A"]);
    repository.git(&["commit", "-qm", "rules"]);
    assert!(!repository.is_dirty());
    repository.write("out/kept", "22");
    assert!(repository.is_dirty());
}

#[test]
fn the_branch_is_named_wherever_it_is_written() {
    let repository = Repository::new();
    assert_eq!(repository.status(), named("main", false), "nothing is committed yet");
    repository.write("a", "1");
    assert_eq!(repository.status(), named("main", true));
    repository.git(&["add", "-A"]);
    assert_eq!(repository.status(), named("main", true));
    repository.git(&["commit", "-qm", "all"]);
    assert_eq!(repository.status(), named("main", false));
    repository.git(&["checkout", "-q", "-b", "feature/one"]);
    repository.git(&["pack-refs", "--all"]);
    assert_eq!(repository.status(), named("feature/one", false));
    let linked = repository.top().with_file_name("linked");
    repository.git(&["worktree", "add", "-q", "-b", "linked", linked.to_str().unwrap()]);
    assert_eq!(status_of(&linked), named("linked", false));
    repository.git(&["checkout", "-q", "--detach"]);
    let commit = repository.git(&["rev-parse", "HEAD"]);
    assert_eq!(repository.status(), named(&format!("{} (detached)", &commit[..7]), false));
}

#[test]
fn a_table_of_references_is_asked_for_by_git() {
    let repository = Repository::new();
    fs::remove_dir_all(repository.top().join(".git")).unwrap();
    if !try_git(&repository.top(), &["init", "-q", "--ref-format=reftable"]).status.success() {
        helve_testkit::skip("a_table_of_references_is_asked_for_by_git", "git has no tables of references");
        return;
    }
    repository.write("a", "1");
    repository.git(&["add", "-A"]);
    repository.git(&["commit", "-qm", "all"]);
    assert_eq!(repository.status(), named("main", false));
}

#[test]
fn submodules_are_not_new_files_and_clones_are() {
    let repository = Repository::committed(&[("a", "1")]);
    let other = Repository::committed(&[("b", "1")]);
    repository.git(&["submodule", "--quiet", "add", other.top().to_str().unwrap(), "sub"]);
    repository.git(&["commit", "-qm", "sub"]);
    assert!(!repository.is_dirty());
    repository.git(&["clone", "-q", other.top().to_str().unwrap(), "clone"]);
    assert!(repository.is_dirty());
}

#[test]
fn what_the_user_ignores_everywhere_is_no_change() {
    let repository = Repository::committed(&[("a", "1")]);
    repository.write(".idea/workspace", "1");
    let list = repository.folder.path().join("ignores");
    fs::write(&list, ".idea\n").unwrap();
    let root = WorkspaceRoot::named(&repository.top()).unwrap();
    let question =
        GitStatusRequest { root: &root, git: Some(git_program()), user_ignores: Some(&list), max_files: 100 };
    assert_eq!(question.answer(), named("main", false));
}

#[test]
fn whatever_stands_in_place_of_gits_files_nothing_waits() {
    let pipe = |path: &Path| {
        let _ = fs::remove_file(path);
        rustix::fs::mkfifoat(rustix::fs::CWD, path, 0o600.into()).unwrap();
    };
    let head = Repository::committed(&[("a", "1")]);
    pipe(&head.top().join(".git/HEAD"));
    assert_eq!(head.status(), None);
    let index = Repository::committed(&[("a", "1")]);
    pipe(&index.top().join(".git/index"));
    assert_eq!(index.status().unwrap().is_dirty, None);
    let config = Repository::committed(&[("a", "1")]);
    pipe(&config.top().join(".git/config"));
    assert_eq!(config.status().unwrap(), GitStatus { branch: "main".to_owned(), is_dirty: None });
    let huge = Repository::committed(&[("a", "1")]);
    fs::File::create(huge.top().join(".git/index")).unwrap().set_len(1 << 30).unwrap();
    assert_eq!(huge.status().unwrap().is_dirty, None);
}
