//! The first start: a model is found with the user, and a project's settings are trusted or not.

use std::io::Write;

use helve_config::ProjectTrust;

use super::guided_setup::restart_program;
use crate::args;
use crate::console::{self, ConsoleOutput, DIM, HEADING};
use crate::failure::{CliFailure, ProgramExit};
use crate::setup::CliSetup;
use crate::user_models::{UserModels, block_on};

/// Asks whether the project may do what needs trust. Without a yes it is worked on all the same, without those settings.
pub(super) fn ask_for_trust(setup: &CliSetup) -> Result<(), CliFailure> {
    let config = setup.config()?;
    if !matches!(config.trust(), ProjectTrust::Untrusted | ProjectTrust::Changed) {
        return Ok(());
    }
    let mut screen = setup.screen();
    let options = args::TrustArgs { forget: false, list: false, yes: false };
    match super::trust::run(&options, setup, &mut screen) {
        Ok(_) => {
            screen.finish()?;
            Err(restart_program())
        }
        Err(_) => {
            console::print_to_stderr("They are left out. `helve trust` asks again.");
            Ok(())
        }
    }
}

/// Sees to it that there is a model. If there is none and none is wanted, the program is over.
pub(super) fn find_model(setup: &CliSetup) -> Result<Option<ProgramExit>, CliFailure> {
    loop {
        let models = UserModels::new(setup)?;
        let found = block_on(models.main())?;
        let failure = match found {
            Ok(_) => return Ok(None),
            // A name that means nothing is a mistake, and no first start.
            Err(failure) if failure.exit() != ProgramExit::NoKey => return Err(failure),
            Err(failure) => failure,
        };
        let mut screen = setup.screen();
        welcome(&failure, &mut screen)?;
        let said = console::ask_once("1, 2, 3, or Enter to leave: ");
        match said.trim() {
            "1" => {
                let provider = console::ask_once("Which provider (such as anthropic, openai, openrouter)? ");
                match super::login::login(provider.trim(), setup, &mut screen) {
                    Ok(_) => screen.finish()?,
                    Err(failure) => drop(failure.report()),
                }
            }
            "2" => {
                let hint = "Start one (such as `ollama serve`), load a model, and press Enter. ";
                console::ask_once(hint);
            }
            "3" => return super::demo::run(setup, &mut screen).map(Some),
            _ => return Ok(Some(ProgramExit::NoKey)),
        }
    }
}

fn welcome(failure: &CliFailure, screen: &mut ConsoleOutput) -> Result<(), CliFailure> {
    writeln!(screen, "{HEADING}Welcome to Helve.{HEADING:#} It needs a model, and found none.")?;
    writeln!(screen, "{DIM}{failure}{DIM:#}\n")?;
    writeln!(screen, "  1  paste the key of a provider (it is stored for you alone)")?;
    writeln!(screen, "  2  use a local server, such as Ollama or llama.cpp")?;
    writeln!(screen, "  3  watch the demo: a scripted model fixes a small project, offline\n")?;
    Ok(screen.finish()?)
}
