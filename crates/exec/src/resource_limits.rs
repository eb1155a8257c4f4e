//! The limits that the system puts on a process and on those that it starts.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lowers a limit of this process; never raises it, and changes nothing if none is given.
pub(crate) fn lower_limit(resource: Resource, to: Option<u64>) -> io::Result<()> {
    let Some(to) = to else { return Ok(()) };
    let now = getrlimit(resource);
    let lowered = |limit: Option<u64>| Some(limit.map_or(to, |limit| limit.min(to)));
    Ok(setrlimit(resource, Rlimit { current: lowered(now.current), maximum: lowered(now.maximum) })?)
}
