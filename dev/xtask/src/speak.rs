//! Tests that need something from outside: the providers' own libraries, or a model that runs on this machine.

use std::path::PathBuf;
use std::process::Command;

use crate::run::{build_helve, is_there, root};

/// The libraries whose types our requests must fit.
const LIBRARIES: [&str; 4] = ["openai", "anthropic", "google-genai", "pydantic"];

/// `cargo xtask test --wire`
pub(crate) fn wire() -> Result<(), String> {
    if !is_there("python3", "--version") {
        return Err("python3 is not installed, and the providers' libraries are written in it".to_owned());
    }
    let folder = root().join("target").join("wire");
    let python = folder.join("bin").join("python");
    if !python.exists() {
        tell(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    }
    tell(
        Command::new(&python)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
            .args(LIBRARIES),
    )?;
    tell(Command::new(&python).arg(root().join("crates/models/tests/wire/check.py")))
}

/// `cargo xtask test --real-model`: the shipped program asks a real model something that wants a tool.
pub(crate) fn real_model() -> Result<(), String> {
    let helve = build_helve("dev")?;
    let home = std::env::temp_dir().join(format!("helve-real-model-{}", std::process::id()));
    std::fs::create_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
    let mut probe = Command::new(helve);
    probe.args(["models", "probe"]).env("HELVE_HOME", &home).current_dir(&home);
    if let Some(server) = std::env::var_os("HELVE_TEST_SERVER") {
        probe.env("LLAMACPP_BASE_URL", server);
    }
    let done = tell(&mut probe);
    let _ = std::fs::remove_dir_all(PathBuf::from(&home));
    done.map_err(|why| {
        format!("{why}\nStart a local server, or set HELVE_TEST_SERVER to the base URL of one that speaks Chat Completions.")
    })
}

fn tell(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    println!(
        "\n── {program} {}",
        command.get_args().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    );
    let status = command.status().map_err(|error| format!("{program} can't be run: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("failed: {program}")) }
}
