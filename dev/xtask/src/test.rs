//! `cargo xtask test`: everything that CI runs.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::docs;
use crate::run::{cargo, cargo_has, is_there, root, show_and_run};

/// Programs that some tests and figures need: the program, how to see that it is there, and the package that brings it.
const TOOLS: [(&str, &str, &str); 4] = [
    ("strace", "-V", "strace"),
    ("unshare", "--version", "util-linux"),
    ("bwrap", "--version", "bubblewrap"),
    ("ccache", "--version", "ccache"),
];

pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let install = options.contains(&"--install") || std::env::var_os("CI").is_some();
    let words: Vec<&str> = options.iter().copied().filter(|word| *word != "--install").collect();
    if !words.is_empty() {
        return run_tests(&words);
    }
    let mut skipped = tools(install);
    if install {
        install_typescript();
    }
    check_format(&mut skipped)?;
    check_lints(&mut skipped)?;
    check_dependencies(&mut skipped)?;
    docs::check()?;
    let skips = root().join("target").join("skipped-tests");
    let _ = fs::remove_file(&skips);
    let _ = fs::create_dir_all(root().join("target"));
    run_tests_with(cargo().env("HELVE_TEST_SKIPS", &skips), &[])?;
    if cargo_has("nextest") {
        // It runs no examples in the documentation.
        show_and_run(cargo().args(["test", "--workspace", "--doc", "--quiet"]))?;
    }
    let of_tests = fs::read_to_string(&skips).unwrap_or_default();
    skipped.extend(of_tests.lines().map(str::to_owned));
    // Several tests may miss the same thing.
    let mut told = HashSet::new();
    for line in skipped.iter().filter(|line| told.insert(*line)) {
        println!("skipped: {line}");
    }
    Ok(())
}

/// Installs what is missing where that can be done, and tells what is missing still.
fn tools(install: bool) -> Vec<String> {
    let mut missing = Vec::new();
    for (tool, argument, package) in TOOLS {
        if is_there(tool, argument) {
            continue;
        }
        let installs = install && is_there("apt-get", "--version");
        if installs {
            println!("installing {package}");
            let _ = Command::new("apt-get").arg("update").status();
            let _ = Command::new("apt-get").args(["install", "--yes", package]).status();
        }
        if !is_there(tool, argument) {
            missing
                .push(format!("what needs {tool}: it is not installed (try `cargo xtask test --install`)"));
        }
    }
    missing
}

/// One of the sample projects is in TypeScript. Without the compiler its test says that it is skipped.
fn install_typescript() {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let folder = root().join(target).join("tmp").join("evals");
    if folder.join("node_modules").join("typescript").exists() || !is_there("npm", "--version") {
        return;
    }
    println!("installing TypeScript");
    let _ = fs::create_dir_all(&folder);
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-save", "--no-audit", "--no-fund", "--prefix"])
        .arg(&folder)
        .arg("typescript@5");
    let _ = npm.status();
}

fn check_format(skipped: &mut Vec<String>) -> Result<(), String> {
    if !cargo_has("fmt") {
        skipped.push("the check of the format: rustfmt is not installed".to_owned());
        return Ok(());
    }
    let checked = show_and_run(cargo().args(["fmt", "--all", "--check"]));
    checked.map_err(|why| format!("{why}\nRun `cargo fmt --all`."))
}

fn check_lints(skipped: &mut Vec<String>) -> Result<(), String> {
    if !cargo_has("clippy") {
        skipped.push("the lints: clippy is not installed".to_owned());
        return Ok(());
    }
    show_and_run(cargo().args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--quiet",
        "--",
        "--deny",
        "warnings",
    ]))
}

/// Licences, banned crates and where crates come from need no network; the list of known vulnerabilities does.
fn check_dependencies(skipped: &mut Vec<String>) -> Result<(), String> {
    if !cargo_has("deny") {
        skipped.push("licences and advisories: cargo-deny is not installed".to_owned());
        return Ok(());
    }
    // It reads the sources of every crate for every target, and a machine without network may not have them all.
    let has_all_crates =
        is_successful(cargo().args(["metadata", "--locked", "--offline", "--format-version", "1"]));
    if has_all_crates {
        show_and_run(cargo().args([
            "deny",
            "--locked",
            "--offline",
            "check",
            "licenses",
            "bans",
            "sources",
        ]))?;
    } else {
        skipped.push("licences: not all crates are here (try `cargo fetch --locked`)".to_owned());
    }
    if has_all_crates && is_successful(cargo().args(["deny", "--locked", "fetch", "db"])) {
        show_and_run(cargo().args(["deny", "--locked", "check", "advisories"]))?;
    } else {
        skipped.push("advisories: their database can't be fetched".to_owned());
    }
    Ok(())
}

/// Runs a command without showing anything of it.
fn is_successful(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

fn run_tests(words: &[&str]) -> Result<(), String> {
    run_tests_with(&mut cargo(), words)
}

fn run_tests_with(command: &mut Command, words: &[&str]) -> Result<(), String> {
    let runner: &[&str] = if cargo_has("nextest") { &["nextest", "run"] } else { &["test"] };
    show_and_run(command.args(runner).arg("--workspace").args(words))
}
