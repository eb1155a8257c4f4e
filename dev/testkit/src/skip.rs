//! Tests that can't run somewhere say so, where a person will see it.

use std::fs::OpenOptions;
use std::io::Write;

/// Reports that a test was skipped and why. `cargo xtask test` collects the lines and shows them at the end.
#[expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test tells the runner what it could not do"
)]
pub fn skip(test: &str, reason: &str) {
    eprintln!("SKIPPED {test}: {reason}");
    let Some(list) = std::env::var_os("HELVE_TEST_SKIPS") else { return };
    if let Ok(mut list) = OpenOptions::new().create(true).append(true).open(list) {
        let _ = writeln!(list, "{test}: {reason}");
    }
}
