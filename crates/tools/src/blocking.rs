//! Work that blocks, away from the loop: whoever steers, asks or stops is heard meanwhile.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::timeout;

use crate::{ToolContext, ToolFailure, ToolOutcome};

/// So long it may take. Then it is told to stop, and given up if it does not.
const BLOCKING_TIMEOUT: Duration = Duration::from_secs(120);
const STOPPED_WORK_GRACE: Duration = Duration::from_secs(2);

thread_local! {
    static IS_TOOL_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread works aside now: then a panic is one failed call, and nothing else is harmed.
pub fn is_tool_thread() -> bool {
    IS_TOOL_THREAD.get()
}

/// As long as it lives, this thread works aside.
pub(crate) struct ToolThreadGuard;

impl ToolThreadGuard {
    pub(crate) fn begin() -> ToolThreadGuard {
        IS_TOOL_THREAD.set(true);
        ToolThreadGuard
    }
}

impl Drop for ToolThreadGuard {
    fn drop(&mut self) {
        IS_TOOL_THREAD.set(false);
    }
}

/// Runs work that blocks. Whoever no longer waits for it stops it too.
pub(crate) async fn run_blocking<W>(context: &ToolContext, work: W) -> ToolOutcome
where
    W: FnOnce(&ToolContext) -> ToolOutcome + Send + 'static,
{
    let stop = context.stop.child_token();
    let _stops_it = stop.clone().drop_guard();
    let within = ToolContext { stop: stop.clone(), ..context.clone() };
    let mut work = tokio::task::spawn_blocking(move || {
        let _aside = ToolThreadGuard::begin();
        work(&within)
    });
    let mut done = timeout(BLOCKING_TIMEOUT, &mut work).await.ok();
    if done.is_none() {
        stop.cancel();
        done = match context.ground.call_off() {
            true => timeout(STOPPED_WORK_GRACE, work).await.ok(),
            // Files are being written: that comes to an end.
            false => Some(work.await),
        };
    }
    let slow = || {
        Err(ToolFailure(format!(
            "It took longer than {} s and was given up. Something on its way may never answer: a pipe, a device, a disk of \
             another machine. Nothing was changed.",
            BLOCKING_TIMEOUT.as_secs()
        )))
    };
    let broken = |_| Err(ToolFailure::new("The tool broke off: a mistake in Helve. Try it in another way."));
    done.map_or_else(slow, |done| done.unwrap_or_else(broken))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use helve_testkit::{NoBlobs, sample_id};

    use super::*;

    fn run(work: impl FnOnce(&ToolContext) -> ToolOutcome + Send + 'static) -> Result<String, String> {
        let context = ToolContext::alone(PathBuf::from("/"), sample_id(1), Arc::new(NoBlobs));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(run_blocking(&context, work)).map(|output| output.text).map_err(|failure| failure.0)
    }

    #[test]
    fn what_breaks_is_one_failed_call() {
        assert!(run(|_| panic!("a hostile file")).unwrap_err().contains("broke off"));
        let done = run(|_| {
            Ok(helve_protocol::ToolOutput { text: is_tool_thread().to_string(), ..Default::default() })
        });
        assert_eq!((done.unwrap().as_str(), is_tool_thread()), ("true", false));
    }
}
