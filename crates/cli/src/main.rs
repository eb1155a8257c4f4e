//! The program `helve`. Here, and only here, the environment, the home folder, the clock and the terminal are
//! touched; everything below takes values.
#![expect(clippy::disallowed_methods, reason = "this is the place that reads them")]

mod args;
mod commands;
mod console;
mod credentials;
mod failure;
mod git_passwords;
mod logs;
mod programs;
mod redacted;
mod registries;
mod rulebook;
mod sandbox_policy;
mod settings_origins;
mod setup;
mod shell;
mod text;
mod user_folders;
mod user_models;
mod wiring;

use std::io::Write;
use std::process::ExitCode;

use anstream::ColorChoice;
use clap::Parser;
use helve_permissions::PermissionVerdict;

use crate::args::{CliArgs, CliCommand, GlobalArgs, InteractiveArgs, PrintCommand};
use crate::console::ConsoleOutput;
use crate::failure::{CliFailure, ProgramExit};
use crate::setup::CliSetup;

fn main() -> ExitCode {
    // A command that the agent runs is kept by this program, started anew.
    if let Some(exit) = helve_exec::supervisor_main(std::env::args_os()) {
        return exit;
    }
    // So is the question for a password, where git has the user's credentials.
    if let Some(exit) = git_passwords::askpass_main(std::env::args_os()) {
        return exit;
    }
    end_on_panic();
    let args = CliArgs::parse_from(args::hoist_set_flags(std::env::args_os()));
    let exit = run(args).unwrap_or_else(|failure| failure.report());
    ExitCode::from(exit as u8)
}

/// A mistake in Helve ends the program, so that nothing goes on half broken; what is acknowledged is on the disk. Only one in
/// the work of a tool is no more than a failed call.
fn end_on_panic() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if helve_tools::is_tool_thread() {
            tracing::error!(name: "tool.panicked", place = panic.location().map(ToString::to_string));
            return;
        }
        usual(panic);
        std::process::abort();
    }));
}

fn run(args: CliArgs) -> Result<ProgramExit, CliFailure> {
    match args.command {
        Some(_) if args.interactive.is_wanted() => {
            let hint = "Write them behind the command, if it takes them.";
            Err(CliFailure::usage("nothing was done", "flags of the interface stand before a command", hint))
        }
        Some(CliCommand::Print(command)) => print(command),
        Some(CliCommand::Work(command)) => {
            let (name, own, rules) = (command.name(), command.settings(), command.rules());
            work(name, &own, rules, &args.everywhere, |setup, screen| commands::run(command, setup, screen))
        }
        None => {
            let InteractiveArgs { permitting, .. } = &args.interactive;
            let own: Vec<_> = permitting.mode().into_iter().collect();
            work("interactive", &own, permitting.rules(), &args.everywhere, |setup, _| {
                commands::interactive::run(&args.interactive, setup)
            })
        }
    }
}

fn print(command: PrintCommand) -> Result<ProgramExit, CliFailure> {
    let mut screen = ConsoleOutput::new(ColorChoice::Auto);
    screen.write_all(commands::text(command)?.as_bytes())?;
    screen.finish()?;
    Ok(ProgramExit::Success)
}

fn work(
    name: &'static str,
    own: &[(&str, String, &str)],
    rules: Vec<(PermissionVerdict, String)>,
    everywhere: &GlobalArgs,
    command: impl FnOnce(&CliSetup, &mut ConsoleOutput) -> Result<ProgramExit, CliFailure>,
) -> Result<ProgramExit, CliFailure> {
    let setup = CliSetup::new(everywhere, own, rules)?;
    let mut screen = setup.screen();
    logs::start(&setup.places.logs(), setup.log_level());
    tracing::info!(name: "command.started", command = name, version = env!("CARGO_PKG_VERSION"), pid = std::process::id());
    let done = command(&setup, &mut screen);
    let done = done.and_then(|exit| {
        screen.finish()?;
        Ok(exit)
    });
    match &done {
        Ok(exit) => tracing::info!(name: "command.ended", command = name, exit = *exit as u8),
        Err(failure) => {
            tracing::error!(name: "command.failed", command = name, exit = failure.exit() as u8, %failure)
        }
    }
    done
}
