//! The shell that the model's commands run in: which program, with which script and environment.

use std::path::{Path, PathBuf};

use helve_tools::{Commands, Fence};

use crate::confine::{memory, own_program};
use crate::failure::Failure;
use crate::keys::{is_of_model, withheld};
use crate::programs::{Programs, is_program};
use crate::setup::Setup;

/// More than a large build needs, and less than a machine has.
const PROCESSES: u32 = 2_000;

pub(crate) fn commands(
    settings: &helve_config::Settings,
    setup: &Setup,
    fence: Option<Fence>,
) -> Result<Commands, Failure> {
    let cwd = &setup.cwd;
    let keeper = own_program()
        .map_err(|error| Failure::new("commands can't be run", error, "Start helve by its path."))?;
    let wanted = &settings.shell;
    let program = program(wanted.program.as_deref(), cwd, &Programs::new(setup))?;
    let startup = wanted.startup.as_deref().map(|script| startup(script, cwd)).transpose()?;
    // Both may lie in the home folder, which commands don't see.
    let fence = fence.map(|mut fence| {
        fence.shown.extend(startup.iter().chain([&program]).filter(|path| path.is_absolute()).cloned());
        fence
    });
    Ok(Commands {
        keeper,
        program: program.into(),
        startup,
        // Where the user was before is not where the commands were.
        env: std::env::vars_os()
            .filter(|(name, _)| !is_of_model(name, settings) && name != "OLDPWD")
            .collect(),
        withheld: withheld(settings),
        processes: PROCESSES,
        memory: memory(),
        fence,
        temporary: std::env::temp_dir(),
    })
}

fn program(wanted: Option<&str>, cwd: &Path, programs: &Programs) -> Result<PathBuf, Failure> {
    let Some(name) = wanted else {
        return Ok(programs.find("bash").unwrap_or_else(|| programs.shell()));
    };
    found(name, cwd, programs).ok_or_else(|| {
        let hint = "Check --shell and the setting shell.program, or leave them out.";
        Failure::usage(format!("the shell {name:?} can't be used"), "there is no such program", hint)
    })
}

/// The program of this name on the PATH, or at this path.
fn found(name: &str, cwd: &Path, programs: &Programs) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(in_full(name, cwd)).filter(|path| is_program(path));
    }
    programs.find(name)
}

fn startup(script: &str, cwd: &Path) -> Result<PathBuf, Failure> {
    let path = in_full(script, cwd);
    if path.is_file() {
        return Ok(path);
    }
    let hint = "Check --startup-script and the setting shell.startup.";
    Err(Failure::usage(format!("the startup script {script:?} can't be used"), "there is no such file", hint))
}

/// With the home folder for `~`, and from the folder where the user is.
fn in_full(path: &str, cwd: &Path) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::home_dir()) {
        (Some(below), Some(home)) => home.join(below),
        _ => cwd.join(path),
    }
}
