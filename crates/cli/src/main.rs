//! The program `helve`. Here, and only here, the environment, the home folder, the clock and the terminal are
//! touched; everything below takes values.
#![expect(clippy::disallowed_methods, reason = "this is the place that reads them")]

mod args;
mod commands;
mod confine;
mod failure;
mod logs;
mod models;
mod places;
mod rulebook;
mod screen;
mod setup;
mod shell;
mod text;
mod wiring;

use std::io::Write;
use std::process::ExitCode;

use anstream::ColorChoice;
use clap::Parser;

use crate::args::{Args, Command, Everywhere, Print, Work};
use crate::failure::{Exit, Failure};
use crate::screen::Screen;
use crate::setup::Setup;

fn main() -> ExitCode {
    // A command that the agent runs is kept by this program, started anew.
    if let Some(exit) = helve_exec::keeper_main(std::env::args_os()) {
        return exit;
    }
    let args = Args::parse_from(args::gathered(std::env::args_os()));
    let exit = run(args).unwrap_or_else(|failure| failure.report());
    ExitCode::from(exit as u8)
}

fn run(args: Args) -> Result<Exit, Failure> {
    match args.command {
        Command::Print(command) => print(command),
        Command::Work(command) => work(command, &args.everywhere),
    }
}

fn print(command: Print) -> Result<Exit, Failure> {
    let mut screen = Screen::new(ColorChoice::Auto);
    screen.write_all(commands::text(command)?.as_bytes())?;
    screen.finish().map(|()| Exit::Fine)
}

fn work(command: Work, everywhere: &Everywhere) -> Result<Exit, Failure> {
    let setup = Setup::new(everywhere, &command.settings(), command.rules())?;
    let mut screen = setup.screen();
    logs::start(&setup.places.logs(), setup.log_level());
    let name = command.name();
    tracing::info!(name: "command.started", command = name, version = env!("CARGO_PKG_VERSION"), pid = std::process::id());
    let done = commands::run(command, &setup, &mut screen);
    let done = done.and_then(|exit| screen.finish().map(|()| exit));
    match &done {
        Ok(exit) => tracing::info!(name: "command.ended", command = name, exit = *exit as u8),
        Err(failure) => {
            tracing::error!(name: "command.failed", command = name, exit = failure.exit() as u8, %failure)
        }
    }
    done
}
