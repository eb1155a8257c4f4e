//! What `examples/file_writer.rs` writes, and the tests that kill it look for.

/// Few lines and long ones, so that most of the time goes into writing.
pub(crate) const LINES: usize = 200;
/// The files that are patched together.
pub(crate) const FILES: [&str; 3] = ["a", "b", "c"];

pub(crate) fn content(number: usize) -> String {
    format!("version {number} {}\n", "x".repeat(20_000)).repeat(LINES)
}

pub(crate) fn line(number: usize) -> String {
    format!("version {number} {}", "x".repeat(300_000))
}
