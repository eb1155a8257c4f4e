//! How fast things are found in a large tree, beside `rg` in the same tree. `cargo xtask bench` runs it.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark that can't run has nothing to say"
)]
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures time and prints it")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use helve_testkit::{NoBlobs, sample_id};
use helve_tools::{GlobTool, GrepTool, Tool, ToolContext};
use serde_json::{Value, json};

/// What is measured, our tool with its input, and the arguments of `rg`.
type Row<'a> = (&'a str, (Box<dyn Tool>, Value), &'a [&'a str]);

const FOLDERS: usize = 1_000;
const FILES_OF_ONE: usize = 52;
const RUNS: usize = 9;

fn main() {
    if Command::new("rg").arg("--version").output().is_err() {
        println!("skipped: searching: ripgrep is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    make(folder.path());
    let grep = |input: Value| (Box::new(GrepTool::default()) as Box<dyn Tool>, input);
    let glob =
        |pattern: &str| (Box::new(GlobTool::default()) as Box<dyn Tool>, json!({ "pattern": pattern }));
    let table: [Row; 5] = [
        ("grep, a word", grep(json!({ "pattern": "needle_77" })), &["needle_77", "-n", "--heading"]),
        ("grep, a class", grep(json!({ "pattern": r"\w+_7{3}\d\b" })), &[r"\w+_7{3}\d\b", "-n", "--heading"]),
        (
            "grep, of one type",
            grep(json!({ "pattern": "needle_1\\d*9\\(", "type": "py", "mode": "count" })),
            &["needle_1\\d*9\\(", "-tpy", "-c"],
        ),
        ("glob, a few", glob("**/d77*/*7.rs"), &["--files", "-g", "**/d77*/*7.rs"]),
        ("glob, a name", glob("f12.md"), &["--files", "-g", "f12.md"]),
    ];
    for (what, (tool, input), args) in table {
        compare(folder.path(), what, &*tool, &input, args);
    }
}

/// 52,000 files, of which a tenth is ignored.
fn make(root: &Path) {
    fs::create_dir(root.join(".git")).unwrap();
    fs::write(root.join(".gitignore"), "*.log\nbuild/\n").unwrap();
    for folder in 0..FOLDERS {
        let part = if folder % 20 == 19 { "build" } else { "src" };
        let path = root.join(format!("p{}/{part}/d{folder}", folder % 25));
        fs::create_dir_all(&path).unwrap();
        for file in 0..FILES_OF_ONE {
            let number = folder * FILES_OF_ONE + file;
            let ending = ["rs", "py", "md", "ts", "c", "rs", "toml", "rs", "py", "log"][file % 10];
            let line = format!("    let value_{file} = compute({number}, \"some text\").unwrap_or(0);\n");
            let text = format!("{}fn needle_{number}() {{}}\n{}", line.repeat(20), line.repeat(20));
            fs::write(path.join(format!("f{file}.{ending}")), text).unwrap();
        }
    }
}

fn time<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let done = work();
    (start.elapsed(), done)
}

fn compare(root: &Path, what: &str, tool: &dyn Tool, input: &Value, args: &[&str]) {
    let ours = || -> String {
        let context = ToolContext::alone(root.to_owned(), sample_id(1), Arc::new(NoBlobs));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let done = runtime.block_on(tool.run(input.clone(), &context));
        done.unwrap_or_else(|failure| panic!("{}", failure.0)).text
    };
    let theirs = || {
        let output =
            Command::new("rg").arg("--no-config").args(args).current_dir(root).env("HOME", root).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    // In turns, so that both meet the same machine.
    let runs: Vec<_> = (0..RUNS).map(|_| (time(theirs), time(ours))).collect();
    for ((_, theirs), (_, ours)) in &runs {
        assert_same(what, ours, theirs);
    }
    let ours = runs.iter().map(|(_, (time, _))| *time).min().unwrap();
    let rg = runs.iter().map(|((time, _), _)| *time).min().unwrap();
    let ratio = ours.as_secs_f64() / rg.as_secs_f64().max(1e-9);
    println!("{what}, 52,000 files\t{ours:.2?}\trg\t{rg:.2?}\t{ratio:.2}\t≤ 1.1");
}

/// The order is another: what is found is the same. What does not fit is counted in the last line.
fn assert_same(what: &str, ours: &str, theirs: &str) {
    let lines =
        |text: &str| text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect::<BTreeSet<_>>();
    let (mut ours, theirs) = (lines(ours), lines(theirs));
    let count = theirs.len();
    let note = ours.iter().find(|line| line.starts_with('[')).cloned();
    if let Some(note) = note {
        ours.remove(&note);
        assert!(note.contains(&format!(" of {count} files")), "{what}: {note}, but rg has {count}");
        assert!(ours.is_subset(&theirs), "{what}");
    } else {
        assert_eq!(ours, theirs, "{what}");
    }
    assert!(!ours.is_empty(), "{what} finds nothing");
}
