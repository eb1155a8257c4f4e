//! The jail: for programs that Helve runs by itself where a project could make them run others.
//!
//! A jailed program reads what the user can read, writes the places that it is given, and can't start another program or
//! speak with anybody. So whatever hook, filter, pager or helper a project names for it, none is run. The jail is Helve's own
//! program, started anew, which gives up all that and becomes the other one.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use rustix::process::{Pid, Resource};

use crate::resource_limits::lower_limit;
use crate::sandbox;

/// The first argument of a program that is started to be jailed.
pub(crate) const JAIL_ARG: &str = "__jailed";
/// What the jail ends with if it could not become the program.
pub const JAIL_FAILED: u8 = 125;
/// What stands between the writable places and the program's arguments.
const ARGUMENT_SEPARATOR: &str = "--";
/// More than any program needs that answers in seconds, and less than would hurt the machine.
const MAX_JAIL_MEMORY_BYTES: u64 = 2 << 30;

/// The arguments with which Helve's own program becomes a jailed one. Behind them come the places that it can write, `--`,
/// and its own arguments. It ends with the thread that starts it, which must be one of the process of this number. None
/// where programs can't be jailed.
pub fn jail_arguments(program: &Path, parent: u32) -> Option<Vec<OsString>> {
    sandbox::can_jail().then(|| vec![JAIL_ARG.into(), parent.to_string().into(), program.into()])
}

/// Gives up what a jailed program can't do, and becomes it. Returns only with what the process must end with.
pub(crate) fn enter(args: impl Iterator<Item = OsString>) -> ExitCode {
    let failed = ExitCode::from(JAIL_FAILED);
    let Some(order) = JailSpec::read(args) else { return failed };
    sandbox::keep_files_to_ourselves();
    let is_wanted = sandbox::die_with_parent(order.parent).unwrap_or(false);
    let is_jailed = is_wanted
        && lower_limit(Resource::Data, Some(MAX_JAIL_MEMORY_BYTES)).is_ok()
        && lower_limit(Resource::Core, Some(0)).is_ok()
        && sandbox::jail(&order.writable).is_ok();
    if is_jailed {
        // Comes back only if it fails; the code says so to whoever asked.
        let _ = Command::new(&order.program).args(&order.args).exec();
    }
    failed
}

/// Who shall be jailed, and how.
struct JailSpec {
    parent: Pid,
    program: OsString,
    writable: Vec<PathBuf>,
    args: Vec<OsString>,
}

impl JailSpec {
    fn read(mut args: impl Iterator<Item = OsString>) -> Option<JailSpec> {
        let parent = args.next()?.to_str()?.parse().ok().and_then(Pid::from_raw)?;
        let program = args.next()?;
        let mut writable = Vec::new();
        loop {
            match args.next()? {
                end if end == ARGUMENT_SEPARATOR => break,
                place => writable.push(place.into()),
            }
        }
        Some(JailSpec { parent, program, writable, args: args.collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Option<JailSpec> {
        JailSpec::read(words.iter().map(OsString::from))
    }

    #[test]
    fn places_end_where_arguments_begin() {
        let order = read(&["7", "/bin/git", "/a", "/b", "--", "log", "--", "x"]).unwrap();
        assert_eq!(order.program, "/bin/git");
        assert_eq!(order.writable, ["/a", "/b"].map(PathBuf::from));
        assert_eq!(order.args, ["log", "--", "x"].map(OsString::from));
    }

    #[test]
    fn an_order_that_is_not_whole_is_none() {
        for words in
            [&[][..], &["7"], &["x", "/bin/git", "--"], &["0", "/bin/git", "--"], &["7", "/bin/git", "/a"]]
        {
            assert!(read(words).is_none(), "{words:?}");
        }
    }
}
