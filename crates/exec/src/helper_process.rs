//! What a program does that Helve started anew for itself: keep a command, be jailed, or see whether it is confined.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::jail::{self, JAIL_ARG};
use crate::probe::{PROBE_ARG, is_confined};
use crate::supervisor::{SUPERVISOR_ARG, supervise_command};

/// Keeps a command, or becomes a jailed one, if the program was started for that, and returns what the program must end with. To be called first
/// thing in `main`, with the program's arguments.
pub fn supervisor_main(args: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut args = args.into_iter().skip(1);
    let is_done = match args.next()?.to_str()? {
        SUPERVISOR_ARG => supervise_command().is_ok(),
        JAIL_ARG => return Some(jail::enter(args)),
        PROBE_ARG => is_confined(),
        _ => return None,
    };
    Some(if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
