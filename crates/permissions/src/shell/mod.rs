//! Reading shell commands: what would run, without running it.
//!
//! A command goes through four hands:
//!
//! 1. The parser (`parser/`) makes a `tree` of the text: the real grammar of POSIX shell and bash, quotes and
//!    here-documents and all. What the grammar does not allow is not guessed at.
//! 2. `expand` says which words a word becomes: quotes undone, braces expanded. What only the running shell can know
//!    (variables, output of commands) is [`ShellWord::UnknownOne`] or [`ShellWord::UnknownMany`].
//! 3. `analyzer` walks the tree and collects every command that could run, whatever branch it is in. Programs that run
//!    others (`analyzer/programs/`), and builtins that do, are followed into what they run.
//! 4. `taint` finds values that would run as code when the shell calculates with them.
//!
//! It fails closed. Whatever is not understood becomes an [`UnknownConstruct`], and whoever asked has to ask a person. So a
//! [`CommandAnalysis`] without an [`UnknownConstruct`] lists every program that the text can start by itself; what those programs do then is
//! theirs, and so is what the environment and the user's own settings make of them. It may list more than runs.

mod analysis;
mod analyzer;
mod braces;
mod budget;
mod expand;
mod options;
mod parser;
mod taint;
mod tree;
mod variables;

pub use analysis::{
    CommandAnalysis, CommandTarget, CommandWrapper, RunManner, ShellWord, SimpleCommand, TargetAccess,
    UnknownConstruct,
};

/// Reads a command as `bash -c` would.
pub fn analyze(command: &str) -> CommandAnalysis {
    analyzer::analyze_command(command, ShellDialect::Bash)
}

/// Reads a command as `sh -c` would, whichever shell that is. Where they differ it is unknown what happens.
pub fn analyze_posix(command: &str) -> CommandAnalysis {
    analyzer::analyze_command(command, ShellDialect::Posix)
}

/// Which shell reads a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShellDialect {
    Bash,
    /// One of several: only what all of them understand in the same way is understood.
    Posix,
}
