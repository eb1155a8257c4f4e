//! `cargo xtask bench`: figures, each beside a baseline of the same run. The machine may be busy, so it is the ratio
//! that counts.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::run::{build_helve, cargo, is_there, output_of, show_and_run};

/// What is measured, ours, what the baseline is, the baseline, the ratio, the target.
type Row = [String; 6];

const TITLES: [&str; 6] = ["", "helve", "baseline", "", "ratio", "target"];

/// What can be measured by itself.
const PARTS: [(&str, Measure); 10] = [
    ("start", starting),
    ("loop", || of_program("loop")),
    ("interface", || of_program("interface")),
    ("commands", || of_bench("helve-tools", "commands", &[])),
    ("exec", || of_bench("helve-exec", "exec", &[])),
    ("journal", || of_bench("helve-journal", "journal", &[])),
    ("models", || of_bench("helve-models", "models", &[])),
    ("search", || of_bench("helve-tools", "search", &[])),
    ("widgets", || of_bench("helve-widgets", "widgets", &[])),
    ("workspace", || of_bench("helve-workspace", "workspace", &[])),
];

type Measure = fn() -> Result<Vec<Row>, String>;

/// Measures the parts that are named, or all.
pub(crate) fn run(wanted: &[&str]) -> Result<(), String> {
    if let Some(unknown) = wanted.iter().find(|name| PARTS.iter().all(|(part, _)| part != *name)) {
        return Err(format!("{unknown} is none of {}", PARTS.map(|(part, _)| part).join(", ")));
    }
    let mut rows = Vec::new();
    for (_, measure) in PARTS.iter().filter(|(part, _)| wanted.is_empty() || wanted.contains(part)) {
        rows.extend(measure()?);
    }
    print(&rows);
    Ok(())
}

/// The rows that a crate's own benchmark prints, which is handed some words.
fn of_bench(package: &str, name: &str, words: &[&str]) -> Result<Vec<Row>, String> {
    let bench = ["bench", "--package", package, "--bench", name];
    show_and_run(cargo().args(bench).arg("--no-run"))?;
    let text = output_of(cargo().args(bench).args(["--quiet", "--"]).args(words))?;
    text.lines().filter(|line| line.starts_with("skipped")).for_each(|line| println!("{line}"));
    let row = |line: &str| -> Option<Row> {
        let cells: Vec<String> = line.split('\t').map(str::to_owned).collect();
        cells.try_into().ok()
    };
    Ok(text.lines().filter_map(row).collect())
}

/// What the program costs while a model works and while a person looks on. The figures come from the benchmarks of the
/// testkit, which has the servers and the terminals: this program stays one that is built in a moment.
fn of_program(name: &str) -> Result<Vec<Row>, String> {
    let helve = build_helve("release")?;
    of_bench("helve-testkit", name, &[helve.to_str().ok_or("the path of helve is no text")?])
}

fn starting() -> Result<Vec<Row>, String> {
    let helve = build_helve("release")?;
    let mut rows = vec![start(&helve)?];
    rows.extend(instructions(&helve));
    rows.push(size(&helve)?);
    Ok(rows)
}

/// Of the program as it is shipped, stripped.
fn size(helve: &Path) -> Result<Row, String> {
    let bytes = helve.metadata().map_err(|error| format!("{}: {error}", helve.display()))?.len();
    let megabytes = format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000);
    Ok(["size of helve", &megabytes, "", "", "", "≤ 20 MB"].map(str::to_owned))
}

/// The best of many starts.
fn fastest(program: &Path, argument: &str) -> Result<Duration, String> {
    let run = || {
        let begun = Instant::now();
        let done = Command::new(program).arg(argument).stdout(Stdio::null()).status();
        done.map(|_| begun.elapsed()).map_err(|error| format!("{}: {error}", program.display()))
    };
    let times: Result<Vec<Duration>, String> = (0..200).map(|_| run()).collect();
    times?.into_iter().min().ok_or_else(|| "nothing was measured".to_owned())
}

fn start(helve: &Path) -> Result<Row, String> {
    let ours = fastest(helve, "--version")?;
    let baseline = fastest(Path::new("true"), "--version")?;
    let ratio = ours.as_secs_f64() / baseline.as_secs_f64().max(1e-9);
    let cells = [
        "helve --version",
        &format!("{ours:.2?}"),
        "true",
        &format!("{baseline:.2?}"),
        &format!("{ratio:.1}"),
        "≤ 5 ms",
    ];
    Ok(cells.map(str::to_owned))
}

/// The same in instructions, which do not depend on what else the machine does.
fn instructions(helve: &Path) -> Option<Row> {
    if !is_there("valgrind", "--version") {
        println!("skipped: instruction counts: valgrind is not installed");
        return None;
    }
    let count = |program: &Path| {
        let valgrind = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(program)
            .arg("--version")
            .output();
        let told = String::from_utf8_lossy(&valgrind.ok()?.stderr).into_owned();
        let (_, refs) = told.split_once("refs:")?;
        refs.split_whitespace().next()?.replace(',', "").parse::<u64>().ok()
    };
    let (ours, baseline) = (count(helve)?, count(Path::new("/bin/true"))?);
    let tenths = ours.saturating_mul(10) / baseline.max(1);
    let ratio = format!("{}.{}", tenths / 10, tenths % 10);
    Some(
        ["helve --version, instructions", &ours.to_string(), "true", &baseline.to_string(), &ratio, ""]
            .map(str::to_owned),
    )
}

fn print(rows: &[Row]) {
    let titles = TITLES.map(str::to_owned);
    let all: Vec<&Row> = std::iter::once(&titles).chain(rows).collect();
    let width = |column: usize| {
        all.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..TITLES.len()).map(width).collect();
    println!();
    for row in all {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        println!("{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}
