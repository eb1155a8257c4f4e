//! The first start: a model is found with the user, and a project's settings are trusted or not.

use std::io::Write;

use helve_config::Trust;

use super::guided::begin_again;
use crate::args;
use crate::failure::{Exit, Failure};
use crate::models::{Models, block_on};
use crate::screen::{self, DIM, HEADING, Screen};
use crate::setup::Setup;

/// Asks whether the project may do what needs trust. Without a yes it is worked on all the same, without those settings.
pub(super) fn ask_for_trust(setup: &Setup) -> Result<(), Failure> {
    let config = setup.config()?;
    if !matches!(config.trust(), Trust::Untrusted | Trust::Changed) {
        return Ok(());
    }
    let mut screen = setup.screen();
    let options = args::Trust { forget: false, list: false, yes: false };
    match super::trust::run(&options, setup, &mut screen) {
        Ok(_) => {
            screen.finish()?;
            Err(begin_again())
        }
        Err(_) => {
            screen::complain("They are left out. `helve trust` asks again.");
            Ok(())
        }
    }
}

/// Sees to it that there is a model. If there is none and none is wanted, the program is over.
pub(super) fn find_model(setup: &Setup) -> Result<Option<Exit>, Failure> {
    loop {
        let models = Models::new(setup)?;
        let found = block_on(models.main())?;
        let failure = match found {
            Ok(_) => return Ok(None),
            // A name that means nothing is a mistake, and no first start.
            Err(failure) if failure.exit() != Exit::NoKey => return Err(failure),
            Err(failure) => failure,
        };
        let mut screen = setup.screen();
        welcome(&failure, &mut screen)?;
        let said = screen::ask_once("1, 2, 3, or Enter to leave: ");
        match said.trim() {
            "1" => {
                let provider = screen::ask_once("Which provider (such as anthropic, openai, openrouter)? ");
                match super::login::login(provider.trim(), setup, &mut screen) {
                    Ok(_) => screen.finish()?,
                    Err(failure) => drop(failure.report()),
                }
            }
            "2" => {
                let hint = "Start one (such as `ollama serve`), load a model, and press Enter. ";
                screen::ask_once(hint);
            }
            "3" => return super::demo::run(setup, &mut screen).map(Some),
            _ => return Ok(Some(Exit::NoKey)),
        }
    }
}

fn welcome(failure: &Failure, screen: &mut Screen) -> Result<(), Failure> {
    writeln!(
        screen,
        "{HEADING}Welcome to Helve.{HEADING:#} It needs a model to speak with, and found none."
    )?;
    writeln!(screen, "{DIM}{failure}{DIM:#}\n")?;
    writeln!(screen, "  1  paste the key of a provider (it is stored for you alone)")?;
    writeln!(screen, "  2  use a local server, such as Ollama or llama.cpp")?;
    writeln!(screen, "  3  watch the demo: a scripted model mends a small project, offline\n")?;
    screen.finish()
}
