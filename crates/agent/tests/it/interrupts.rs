//! A turn that is stopped anywhere ends in order.

use std::fs;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use helve_journal::MemoryJournal;
use helve_protocol::{Interruption, ToolClass, ToolOutput, ToolState, TurnOutcome};
use helve_tools::{Tool, ToolContext, ToolFuture};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::house::*;

const WORK: &str = r#"
    [[step]]
    delay = "10ms"
    say = [
        { thinking = "Hm." }, { wait = "1ms" },
        { text = "I look" }, { wait = "1ms" }, { text = " at some" }, { wait = "1ms" }, { text = " things" },
        { wait = "1ms" },
        { call = { tool = "read", input = { path = "a.txt" } } }, { wait = "1ms" },
        { call = { tool = "nap", input = {} } }, { wait = "1ms" },
        { call = { tool = "nap", input = {} } }, { wait = "1ms" },
        { call = { tool = "write", input = { path = "b.txt", content = "b" } } }, { wait = "1ms" },
        { call = { tool = "read", input = { path = "b.txt" } } }, { wait = "1ms" },
    ]
    [[step]]
    fail = { status = 503 }
    [[step]]
    text = "Done."
"#;

/// Sleeps for a while, as a tool that waits for something does.
struct Nap;

impl Tool for Nap {
    fn name(&self) -> &'static str {
        "nap"
    }
    fn description(&self) -> &'static str {
        "Sleeps."
    }
    fn schema(&self) -> Value {
        json!({"type": "object"})
    }
    fn class(&self) -> ToolClass {
        ToolClass::Reads
    }
    fn intent(&self, _: &Value) -> String {
        "nap".to_owned()
    }
    fn run<'a>(&'a self, _: Value, _: &'a ToolContext) -> ToolFuture<'a> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Ok(ToolOutput::default())
        })
    }
}

/// Runs a turn, and stops it when it has been polled so often. Gives the outcome and whether it was over before that.
fn stopped_after(polls: u32) -> (TurnOutcome, bool) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.txt"), "a").unwrap();
    let journal = Arc::new(MemoryJournal::default());
    let tools = [tools(), vec![Arc::new(Nap)]].concat();
    let mut session = session(WORK, house(&journal, folder.path(), tools.clone()));
    let stop = CancellationToken::new();
    let mut polled = 0;
    let outcome = run(async {
        let mut turn = pin!(session.submit(said("go"), &stop));
        poll_fn(|context| {
            polled += 1;
            if polled == polls {
                stop.cancel();
            }
            match turn.as_mut().poll(context) {
                Poll::Ready(outcome) => Poll::Ready(outcome.unwrap()),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    });
    assert_well_formed(&session, &journal, &tools);
    for (name, state) in states(&session) {
        let is_told = !matches!(state, ToolState::Interrupted { how: Interruption::Unknown, .. });
        assert!(is_told, "{name} after {polls} polls: nobody died, so what happened is known");
    }
    (outcome, polled < polls)
}

#[test]
fn a_turn_stopped_at_any_poll_is_cancelled_and_well_formed() {
    for polls in 1.. {
        let (outcome, is_over) = stopped_after(polls);
        if is_over {
            assert_eq!(outcome, TurnOutcome::EndTurn);
            assert!(polls > 15, "a turn takes more polls than {polls}");
            return;
        }
        // The very last polls may come when nothing is left to be stopped.
        assert!(matches!(outcome, TurnOutcome::Cancelled | TurnOutcome::EndTurn), "{polls}: {outcome:?}");
    }
}
