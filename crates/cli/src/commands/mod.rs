//! One file per command.

mod config;
mod demo;
mod doctor;
mod guided;
pub(crate) mod interactive;
mod login;
mod machine;
mod models;
mod models_list;
mod models_probe;
mod opening;
mod own_command;
mod past;
mod permissions;
mod reference;
mod replay;
mod run;
mod sessions;
mod tool;
mod trust;
mod welcome;

use clap::CommandFactory;

use crate::args::{Args, Print, Work};
use crate::failure::{Exit, Failure};
use crate::screen::Screen;
use crate::setup::Setup;

pub(crate) fn text(command: Print) -> Result<String, Failure> {
    Ok(match command {
        Print::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), "helve", &mut script);
            String::from_utf8_lossy(&script).into_owned()
        }
        Print::Reference { page } => reference::page(page),
    })
}

pub(crate) fn run(command: Work, setup: &Setup, screen: &mut Screen) -> Result<Exit, Failure> {
    match command {
        Work::Demo => demo::run(setup, screen),
        Work::Run(options) => run::run(&options, setup, screen),
        Work::Permissions(command) => permissions::run(&command, setup, screen),
        Work::Tool(options) => tool::run(&options, setup, screen),
        Work::Replay(options) => replay::run(&options, setup, screen),
        Work::Config(command) => config::run(command, setup, screen),
        Work::Sessions(command) => sessions::run(command, setup, screen),
        Work::Trust(options) => trust::run(&options, setup, screen),
        Work::Models(command) => models::run(command, setup, screen),
        Work::Login { provider } => login::login(&provider, setup, screen),
        Work::Logout { provider } => login::logout(&provider, setup, screen),
        Work::Doctor(options) => doctor::run(&options, setup, screen),
    }
}
