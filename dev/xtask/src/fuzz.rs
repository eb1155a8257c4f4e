//! `cargo xtask fuzz`: random scripts against the real shells, more of them than a test has time for.

use crate::run::{cargo, show_and_run};

/// How many scripts, if nobody says.
const SCRIPTS: u64 = 100_000;

pub(crate) fn run(count: Option<&str>) -> Result<(), String> {
    let count = match count {
        Some(count) => count.parse().map_err(|_| format!("{count} is not a number of scripts"))?,
        None => SCRIPTS,
    };
    let mut test = cargo();
    test.args(["test", "--package", "helve-permissions", "--test", "it", "run_only", "--", "--nocapture"]);
    show_and_run(test.env("HELVE_FUZZ", count.to_string()))
}
