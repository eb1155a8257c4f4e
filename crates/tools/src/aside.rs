//! Work that blocks, away from the loop: whoever steers, asks or stops is heard meanwhile.

use std::time::Duration;

use tokio::time::timeout;

use crate::{Context, Done, ToolFailure};

/// So long it may take. Then it is told to stop, and given up if it does not.
const LONGEST: Duration = Duration::from_secs(120);
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Runs work that blocks. Whoever no longer waits for it stops it too.
pub(crate) async fn aside<W>(context: &Context, work: W) -> Done
where
    W: FnOnce(&Context) -> Done + Send + 'static,
{
    let stop = context.stop.child_token();
    let _stops_it = stop.clone().drop_guard();
    let within = Context { stop: stop.clone(), ..context.clone() };
    let mut work = tokio::task::spawn_blocking(move || work(&within));
    let mut done = timeout(LONGEST, &mut work).await.ok();
    if done.is_none() {
        stop.cancel();
        done = match context.ground.call_off() {
            true => timeout(LAST_WORDS, work).await.ok(),
            // Files are being written: that comes to an end.
            false => Some(work.await),
        };
    }
    let slow = || {
        Err(ToolFailure(format!(
            "It took longer than {} s and was given up. Something on its way may never answer: a pipe, a device, a disk of \
             another machine. Nothing was changed.",
            LONGEST.as_secs()
        )))
    };
    let broken = |_| Err(ToolFailure::new("The tool broke off: a mistake in Helve. Try it in another way."));
    done.map_or_else(slow, |done| done.unwrap_or_else(broken))
}
