//! The shell that the model's commands run in: which program, with which script and environment.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use helve_tools::{CommandSettings, OutsidePrograms, SandboxPolicy};

use crate::credentials::{is_model_key_variable, withheld_variables};
use crate::failure::CliFailure;
use crate::programs::{ProgramFinder, is_program};
use crate::sandbox_policy::{memory, own_program};
use crate::setup::CliSetup;

/// More than a large build needs, and less than a machine has.
const MAX_COMMAND_PROCESSES: u32 = 2_000;

pub(crate) fn commands(
    settings: &helve_config::Settings,
    setup: &CliSetup,
    fence: Option<SandboxPolicy>,
) -> Result<CommandSettings, CliFailure> {
    let cwd = &setup.cwd;
    let keeper = own_program()
        .map_err(|error| CliFailure::new("commands can't be run", error, "Start helve by its path."))?;
    let wanted = &settings.shell;
    let programs = ProgramFinder::new(setup);
    let program = program(wanted.program.as_deref(), cwd, &programs)?;
    let startup = wanted.startup.as_deref().map(|script| startup(script, cwd)).transpose()?;
    // Both may lie in the home folder, which commands don't see.
    let fence = fence.map(|mut fence| {
        fence.shown.extend(startup.iter().chain([&program]).filter(|path| path.is_absolute()).cloned());
        fence
    });
    Ok(CommandSettings {
        keeper,
        program: program.into(),
        startup,
        // Where the user was before is not where the commands were.
        env: std::env::vars_os()
            .filter(|(name, _)| !is_model_key_variable(name, settings) && name != "OLDPWD")
            .collect(),
        withheld: withheld_variables(settings),
        processes: MAX_COMMAND_PROCESSES,
        memory: memory(),
        fence,
        temporary: std::env::temp_dir(),
        outside: OutsidePrograms { path: programs.path(), find: Arc::new(move |name| programs.find(name)) },
    })
}

fn program(wanted: Option<&str>, cwd: &Path, programs: &ProgramFinder) -> Result<PathBuf, CliFailure> {
    let Some(name) = wanted else {
        return Ok(programs.find("bash").unwrap_or_else(|| programs.shell()));
    };
    found(name, cwd, programs).ok_or_else(|| {
        let hint = "Check --shell and the setting shell.program, or leave them out.";
        CliFailure::usage(format!("the shell {name:?} can't be used"), "there is no such program", hint)
    })
}

/// The program of this name on the PATH, or at this path.
fn found(name: &str, cwd: &Path, programs: &ProgramFinder) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(in_full(name, cwd)).filter(|path| is_program(path));
    }
    programs.find(name)
}

fn startup(script: &str, cwd: &Path) -> Result<PathBuf, CliFailure> {
    let path = in_full(script, cwd);
    if path.is_file() {
        return Ok(path);
    }
    let hint = "Check --startup-script and the setting shell.startup.";
    Err(CliFailure::usage(
        format!("the startup script {script:?} can't be used"),
        "there is no such file",
        hint,
    ))
}

/// With the home folder for `~`, and from the folder where the user is.
fn in_full(path: &str, cwd: &Path) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::home_dir()) {
        (Some(below), Some(home)) => home.join(below),
        _ => cwd.join(path),
    }
}
