//! The sample projects of `evals/`: `helve run` mends each, the project's own tests say so, and the session can be replayed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use helve_testkit::skip;

use crate::home::Home;

fn evals() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../evals")
}

/// Where `cargo xtask test` puts what the projects need from elsewhere.
fn node_modules() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("evals/node_modules")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// A command in the project, with the compilers of this machine.
#[expect(clippy::disallowed_methods, reason = "the compilers are where this machine has them")]
fn with_compilers(command: &mut Command) {
    for name in ["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.env("CARGO_TARGET_DIR", "target").env("CI", "true").stdin(Stdio::null());
}

fn verify(home: &Home, eval: &str) -> Output {
    let script = fs::read_to_string(evals().join(eval).join("verify")).unwrap();
    let mut command = Command::new("sh");
    command.args(["-e", "-c", &script]).current_dir(home.project()).env_clear();
    with_compilers(&mut command);
    command.output().unwrap()
}

fn git(home: &Home, words: &[&str]) -> String {
    let mut command = Command::new("git");
    let who = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.com"];
    command.args(who).args(words).current_dir(home.project());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs one eval, and gives the files that differ afterwards.
fn run(eval: &str) -> (Home, String) {
    let home = Home::new();
    fs::remove_dir(home.project().join(".git")).unwrap();
    copy(&evals().join(eval).join("project"), &home.project());
    if home.project().join("package.json").exists() {
        // A copy: it may lie in the home folder, which commands don't see.
        let done = Command::new("cp").arg("-r").arg(node_modules()).arg(home.project()).status();
        assert!(done.unwrap().success());
    }
    git(&home, &["init", "-q"]);
    git(&home, &["add", "-A"]);
    git(&home, &["commit", "-q", "-m", "as it is"]);
    assert!(!verify(&home, eval).status.success(), "{eval} has no fault");

    let script = format!("script:{}", evals().join(eval).join("script.toml").display());
    let task = evals().join(eval).join("task.md").display().to_string();
    let mut command = home.helve(&["run", "--yes", "--model", &script, "--instruction-file", &task]);
    with_compilers(&mut command);
    let ran = home.run_command(command);
    assert_eq!(ran.code, 0, "{}\n{}", ran.out, ran.err);
    assert!(!ran.out.contains("I could not"), "{}\n{}", ran.out, ran.err);
    let verified = verify(&home, eval);
    let said = [&verified.stdout, &verified.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(verified.status.success(), "{}\n{said:?}", ran.err);
    let changed = git(&home, &["status", "--porcelain"]);
    (home, changed)
}

#[test]
fn a_rust_project_is_mended() {
    let (_home, changed) = run("rust");
    assert_eq!(
        changed.lines().filter(|line| !line.contains("Cargo.lock")).collect::<Vec<_>>(),
        [" M src/range.rs"]
    );
}

#[test]
fn a_python_project_is_mended() {
    if Command::new("python3").arg("--version").output().is_err() {
        return skip("evals::a_python_project_is_mended", "python3 is not installed");
    }
    let (_home, changed) = run("python");
    let changed: Vec<&str> = changed.lines().filter(|line| !line.contains("__pycache__")).collect();
    assert_eq!(changed, [" M inventory/stock.py", " M tests/test_inventory.py"]);
}

#[test]
fn a_typescript_project_is_mended() {
    if !node_modules().join("typescript").exists() {
        return skip(
            "evals::a_typescript_project_is_mended",
            "TypeScript is not installed; `cargo xtask test` does it where npm can reach its registry",
        );
    }
    let (_home, changed) = run("typescript");
    assert_eq!(changed, " M src/pattern.ts\n");
}

#[test]
fn a_c_project_is_mended() {
    if Command::new("make").arg("--version").output().is_err()
        || Command::new("cc").arg("--version").output().is_err()
    {
        return skip("evals::a_c_project_is_mended", "make or cc is not installed");
    }
    let (_home, changed) = run("c");
    assert_eq!(changed, " M ring.c\n");
}
