//! `helve demo`: the whole loop on a sample project, offline.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use helve_agent::{Gate, Session};
use helve_models::Target;
use helve_models::script::Script;

use crate::failure::{Exit, Failure};
use crate::models::Models;
use crate::programs::Programs;
use crate::screen::{DIM, GOOD, HEADING, Screen};
use crate::setup::Setup;
use crate::text;
use crate::wiring::{dialogue, house, session_failure};

const FILES: [(&str, &str); 2] =
    [("greet.sh", include_str!("../demo/greet.sh")), ("test.sh", include_str!("../demo/test.sh"))];
const SCRIPT: &str = include_str!("../demo/demo.toml");
const TASK: &str = "The test fails. Find out why and mend it.";

pub(crate) fn run(setup: &Setup, screen: &mut Screen) -> Result<Exit, Failure> {
    let temporary = std::env::temp_dir();
    let folder = unpack(&temporary).map_err(|error| {
        let what = format!("the sample project can't be made in {}", text::path(&temporary));
        Failure::new(what, error, "Set TMPDIR to a folder of yours.")
    })?;
    let shown = text::path(&folder);
    writeln!(screen, "A small project with a failing test is in {shown}.")?;
    writeln!(
        screen,
        "A scripted model mends it, through the real loop and the real tools; nothing leaves this machine.\n"
    )?;
    writeln!(screen, "{HEADING}> {TASK}{HEADING:#}\n")?;
    screen.finish()?;
    let exit = work(&folder, setup, screen)?;
    if exit != Exit::Fine || !passes(&folder, &Programs::new(setup)) {
        let why = "the test still fails";
        return Err(Failure::new(
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
    Ok(Exit::Fine)
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
    FILES.iter().try_for_each(|(name, content)| fs::write(folder.join(name), content))?;
    Ok(folder)
}

/// The sample project is a project like any other, and nothing of the one that the user is in counts there.
fn work(folder: &Path, setup: &Setup, screen: &mut Screen) -> Result<Exit, Failure> {
    let script = Script::parse(SCRIPT)
        .map_err(|error| Failure::new("the demo's script can't be read", error, "Report this."))?;
    let setup = setup.elsewhere(folder, &[("permissions.mode", "ask".to_owned(), "helve demo")])?;
    let models = Arc::new(Models::impatient(&setup)?);
    let house = house(&setup, Gate::open(), &models)?;
    let dialogue = dialogue(&models, Target::script("script:demo", script), Vec::new(), &house);
    let session = Session::create(house, dialogue).map_err(|error| session_failure(&error))?;
    super::run::show(session, TASK, screen)
}

/// Whether the work is really done, whatever the model says.
fn passes(folder: &Path, programs: &Programs) -> bool {
    let mut test = Command::new(programs.shell());
    test.arg("test.sh")
        .current_dir(folder)
        .env("PATH", programs.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    test.status().is_ok_and(|status| status.success())
}
