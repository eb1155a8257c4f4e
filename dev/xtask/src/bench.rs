//! `cargo xtask bench`: figures, each beside a baseline of the same run. The machine may be busy, so it is the ratio
//! that counts.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::run::{build_helve, cargo, is_there, output_of, show_and_run};
use crate::{bench_interface, bench_loop};

/// What is measured, ours, what the baseline is, the baseline, the ratio, the target.
pub(crate) type Row = [String; 6];

const TITLES: [&str; 6] = ["", "helve", "baseline", "", "ratio", "target"];

pub(crate) fn run() -> Result<(), String> {
    let helve = build_helve("release")?;
    let mut rows = vec![start(&helve)?];
    rows.extend(instructions(&helve));
    rows.extend(bench_loop::rows(&helve)?);
    rows.extend(bench_interface::rows(&helve)?);
    rows.extend(of_bench("helve-exec", "exec", &[])?);
    rows.extend(of_bench("helve-journal", "journal", &[])?);
    rows.extend(of_bench("helve-models", "models", &[])?);
    rows.extend(of_bench("helve-tools", "search", &[])?);
    rows.extend(of_bench("helve-widgets", "widgets", &[])?);
    rows.extend(of_bench("helve-workspace", "workspace", &[])?);
    print(&rows);
    Ok(())
}

/// The rows that a crate's own benchmark prints, which is handed some words.
pub(crate) fn of_bench(package: &str, name: &str, words: &[&str]) -> Result<Vec<Row>, String> {
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
