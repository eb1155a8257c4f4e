//! Running other programs.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).map(PathBuf::from).unwrap_or(here)
}

pub(crate) fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root());
    command
}

/// Shows what is run, and runs it.
pub(crate) fn show_and_run(command: &mut Command) -> Result<(), String> {
    let words: Vec<String> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    println!("\n── cargo {}", words.join(" "));
    let status = command.status().map_err(|error| format!("cargo can't be run: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("failed: cargo {}", words.join(" "))) }
}

/// What a program prints.
pub(crate) fn output_of(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let Output { status, stdout, .. } =
        command.stderr(Stdio::inherit()).output().map_err(|error| format!("{name} can't be run: {error}"))?;
    if !status.success() {
        return Err(format!("{name} failed"));
    }
    String::from_utf8(stdout).map_err(|_| format!("{name} printed no text"))
}

pub(crate) fn is_there(program: &str, argument: &str) -> bool {
    let tried = Command::new(program).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status();
    tried.is_ok_and(|status| status.success())
}

/// Whether cargo has a subcommand, such as nextest or clippy.
pub(crate) fn cargo_has(subcommand: &str) -> bool {
    let tried = cargo().args([subcommand, "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    tried.is_ok_and(|status| status.success())
}

/// Where cargo puts the program `helve` that it builds with a profile.
pub(crate) fn build_helve(profile: &str) -> Result<PathBuf, String> {
    show_and_run(cargo().args(["build", "--package", "helve-cli", "--profile", profile]))?;
    let metadata = output_of(cargo().args(["metadata", "--format-version", "1", "--no-deps"]))?;
    let (_, rest) =
        metadata.split_once("\"target_directory\":\"").ok_or("cargo metadata names no target folder")?;
    let (target, _) = rest.split_once('"').ok_or("cargo metadata names no target folder")?;
    let folder = if profile == "dev" { "debug" } else { profile };
    Ok(PathBuf::from(target).join(folder).join("helve"))
}
