//! One file per command.

mod config;
mod demo;
mod doctor;
mod guided_setup;
pub(crate) mod interactive;
mod login;
mod machine;
mod models;
mod models_list;
mod models_probe;
mod permissions;
mod reference;
mod replay;
mod run;
mod session_lookup;
mod session_opening;
mod sessions;
mod tool;
mod trust;
mod user_command;
mod welcome;

use clap::CommandFactory;

use crate::args::{CliArgs, PrintCommand, WorkCommand};
use crate::console::ConsoleOutput;
use crate::failure::{CliFailure, ProgramExit};
use crate::setup::CliSetup;

pub(crate) fn text(command: PrintCommand) -> Result<String, CliFailure> {
    Ok(match command {
        PrintCommand::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut CliArgs::command(), "helve", &mut script);
            String::from_utf8_lossy(&script).into_owned()
        }
        PrintCommand::Reference { page } => reference::page(page),
    })
}

pub(crate) fn run(
    command: WorkCommand,
    setup: &CliSetup,
    screen: &mut ConsoleOutput,
) -> Result<ProgramExit, CliFailure> {
    match command {
        WorkCommand::Demo => demo::run(setup, screen),
        WorkCommand::Run(options) => run::run(&options, setup, screen),
        WorkCommand::Permissions(command) => permissions::run(&command, setup, screen),
        WorkCommand::Tool(options) => tool::run(&options, setup, screen),
        WorkCommand::Replay(options) => replay::run(&options, setup, screen),
        WorkCommand::Config(command) => config::run(command, setup, screen),
        WorkCommand::Sessions(command) => sessions::run(command, setup, screen),
        WorkCommand::Trust(options) => trust::run(&options, setup, screen),
        WorkCommand::Models(command) => models::run(command, setup, screen),
        WorkCommand::Login { provider } => login::login(&provider, setup, screen),
        WorkCommand::Logout { provider } => login::logout(&provider, setup, screen),
        WorkCommand::Doctor(options) => doctor::run(&options, setup, screen),
    }
}
