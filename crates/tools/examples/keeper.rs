//! The keeper of the commands that the tests of the shell tools run.

use std::process::ExitCode;

fn main() -> ExitCode {
    helve_exec::supervisor_main(std::env::args_os()).unwrap_or(ExitCode::FAILURE)
}
