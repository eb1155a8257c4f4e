//! `helve demo`: the whole loop on a sample project, offline.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use helve_agent::{PermissionGate, Session};
use helve_models::ModelTarget;
use helve_models::script::ModelScript;

use crate::console::{ConsoleOutput, DIM, GOOD, HEADING};
use crate::failure::{CliFailure, ProgramExit};
use crate::programs::ProgramFinder;
use crate::sandbox_policy::program_finder;
use crate::setup::CliSetup;
use crate::text;
use crate::user_models::UserModels;
use crate::wiring::{SessionWiring, session_failure, session_model, wire_session};

const DEMO_FILES: [(&str, &str); 2] =
    [("greet.sh", include_str!("../demo/greet.sh")), ("test.sh", include_str!("../demo/test.sh"))];
const DEMO_SCRIPT: &str = include_str!("../demo/demo.toml");
const DEMO_TASK: &str = "The test fails. Find out why and fix it.";

pub(crate) fn run(setup: &CliSetup, screen: &mut ConsoleOutput) -> Result<ProgramExit, CliFailure> {
    let temporary = std::env::temp_dir();
    let folder = unpack(&temporary).map_err(|error| {
        let what = format!("the sample project can't be made in {}", text::path(&temporary));
        CliFailure::new(what, error, "Set TMPDIR to a folder of yours.")
    })?;
    let shown = text::path(&folder);
    writeln!(screen, "A small project with a failing test is in {shown}.")?;
    writeln!(
        screen,
        "A scripted model fixes it, through the real loop and the real tools; nothing leaves this machine.\n"
    )?;
    writeln!(screen, "{HEADING}> {DEMO_TASK}{HEADING:#}\n")?;
    screen.finish()?;
    let exit = work(&folder, setup, screen)?;
    if exit != ProgramExit::Success || !passes(&folder, &program_finder(setup)) {
        let why = "the test still fails";
        return Err(CliFailure::new(
            "the demo did not work",
            why,
            "Report this with the log; `helve doctor` may say more.",
        ));
    }
    writeln!(screen, "\n{GOOD}✓{GOOD:#} The test passes. Look at it with `cat {shown}/greet.sh`.")?;
    let models = "Set a key such as ANTHROPIC_API_KEY, or `helve login PROVIDER`, or start a local server such as Ollama";
    writeln!(
        screen,
        "{DIM}{models}; then `helve run \"…\"` does the same in your project with a real model.{DIM:#}"
    )?;
    Ok(ProgramExit::Success)
}

/// A new folder, for the user alone: others may write where temporary files are.
fn unpack(temporary: &Path) -> io::Result<PathBuf> {
    let name = |n: u32| temporary.join(format!("helve-demo-{}-{n}", std::process::id()));
    let make = |folder: &PathBuf| fs::DirBuilder::new().mode(0o700).create(folder);
    let is_taken = |error: &io::Error| error.kind() == io::ErrorKind::AlreadyExists;
    let folder = (0..100).map(name).find_map(|folder| match make(&folder) {
        Ok(()) => Some(Ok(folder)),
        Err(error) if is_taken(&error) => None,
        Err(error) => Some(Err(error)),
    });
    let folder = folder.unwrap_or_else(|| Err(io::ErrorKind::AlreadyExists.into()))?;
    DEMO_FILES.iter().try_for_each(|(name, content)| fs::write(folder.join(name), content))?;
    Ok(folder)
}

/// The sample project is a project like any other, and nothing of the one that the user is in counts there.
fn work(folder: &Path, setup: &CliSetup, screen: &mut ConsoleOutput) -> Result<ProgramExit, CliFailure> {
    let script = ModelScript::parse(DEMO_SCRIPT)
        .map_err(|error| CliFailure::new("the demo's script can't be read", error, "Report this."))?;
    let setup = setup.elsewhere(folder, &[("permissions.mode", "ask".to_owned(), "helve demo")])?;
    let models = Arc::new(UserModels::with_short_retries(&setup)?);
    let SessionWiring { services, spec } = wire_session(&setup, PermissionGate::answering_yes, &models)?;
    let target = ModelTarget::script("script:demo", script);
    let model = session_model(&models, target, Vec::new(), &spec);
    let session = Session::create(services, spec, model).map_err(|error| session_failure(&error))?;
    super::run::run_scripted_turn(session, DEMO_TASK, screen)
}

/// Whether the work is really done, whatever the model says.
fn passes(folder: &Path, programs: &ProgramFinder) -> bool {
    let mut test = Command::new(programs.shell());
    test.arg("test.sh")
        .current_dir(folder)
        .env("PATH", programs.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    test.status().is_ok_and(|status| status.success())
}
