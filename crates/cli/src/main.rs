//! The program `helve`. Here, and only here, the environment, the home folder, the clock and the terminal are
//! touched; everything below takes values.
#![expect(clippy::disallowed_methods, reason = "this is the place that reads them")]

mod args;
mod commands;
mod confine;
mod failure;
mod keys;
mod logs;
mod models;
mod places;
mod programs;
mod redacted;
mod registries;
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
use helve_permissions::Verdict;

use crate::args::{Args, Command, Everywhere, Interactive, Print};
use crate::failure::{Exit, Failure};
use crate::screen::Screen;
use crate::setup::Setup;

fn main() -> ExitCode {
    // A command that the agent runs is kept by this program, started anew.
    if let Some(exit) = helve_exec::keeper_main(std::env::args_os()) {
        return exit;
    }
    end_on_panic();
    let args = Args::parse_from(args::gathered(std::env::args_os()));
    let exit = run(args).unwrap_or_else(|failure| failure.report());
    ExitCode::from(exit as u8)
}

/// A mistake in Helve ends the program, so that nothing goes on half broken; what is acknowledged is on the disk. Only one in
/// the work of a tool is no more than a failed call.
fn end_on_panic() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if helve_tools::is_aside() {
            tracing::error!(name: "tool.panicked", place = panic.location().map(ToString::to_string));
            return;
        }
        usual(panic);
        std::process::abort();
    }));
}

fn run(args: Args) -> Result<Exit, Failure> {
    match args.command {
        Some(_) if args.interactive.is_wanted() => {
            let hint = "Write them behind the command, if it takes them.";
            Err(Failure::usage("nothing was done", "flags of the interface stand before a command", hint))
        }
        Some(Command::Print(command)) => print(command),
        Some(Command::Work(command)) => {
            let (name, own, rules) = (command.name(), command.settings(), command.rules());
            work(name, &own, rules, &args.everywhere, |setup, screen| commands::run(command, setup, screen))
        }
        None => {
            let Interactive { permitting, .. } = &args.interactive;
            let own: Vec<_> = permitting.mode().into_iter().collect();
            work("interactive", &own, permitting.rules(), &args.everywhere, |setup, _| {
                commands::interactive::run(&args.interactive, setup)
            })
        }
    }
}

fn print(command: Print) -> Result<Exit, Failure> {
    let mut screen = Screen::new(ColorChoice::Auto);
    screen.write_all(commands::text(command)?.as_bytes())?;
    screen.finish().map(|()| Exit::Fine)
}

fn work(
    name: &'static str,
    own: &[(&str, String, &str)],
    rules: Vec<(Verdict, String)>,
    everywhere: &Everywhere,
    command: impl FnOnce(&Setup, &mut Screen) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let setup = Setup::new(everywhere, own, rules)?;
    let mut screen = setup.screen();
    logs::start(&setup.places.logs(), setup.log_level());
    tracing::info!(name: "command.started", command = name, version = env!("CARGO_PKG_VERSION"), pid = std::process::id());
    let done = command(&setup, &mut screen);
    let done = done.and_then(|exit| screen.finish().map(|()| exit));
    match &done {
        Ok(exit) => tracing::info!(name: "command.ended", command = name, exit = *exit as u8),
        Err(failure) => {
            tracing::error!(name: "command.failed", command = name, exit = failure.exit() as u8, %failure)
        }
    }
    done
}
