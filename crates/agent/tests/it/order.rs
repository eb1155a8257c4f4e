//! In which order calls run, whatever mix of them a model makes.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use helve_journal::MemoryJournal;
use helve_protocol::{ToolClass, ToolOutput, ToolState, TurnOutcome};
use helve_tools::{Tool, ToolContext, ToolFuture};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::house::*;

/// What the tools of this test share: who is at work, and a number that is written and read.
#[derive(Default)]
struct World {
    reading: AtomicU32,
    writing: AtomicU32,
    number: AtomicU32,
    most_readers: AtomicU32,
    wrong: Mutex<Vec<String>>,
}

struct Look(Arc<World>);
struct Bump(Arc<World>);

fn schema() -> Value {
    json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
}

/// Lets others go on for a while, a different one for each call.
async fn while_others_work(input: &Value) {
    let n = input["n"].as_u64().unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(10 + n * 7 % 5)).await;
}

impl World {
    fn complain(&self, what: String) {
        self.wrong.lock().unwrap().push(what);
    }
}

impl Tool for Look {
    fn name(&self) -> &'static str {
        "look"
    }
    fn description(&self) -> &'static str {
        "Looks."
    }
    fn schema(&self) -> Value {
        schema()
    }
    fn class(&self) -> ToolClass {
        ToolClass::Reads
    }
    fn intent(&self, _: &Value) -> String {
        "look".to_owned()
    }
    fn run<'a>(&'a self, input: Value, _: &'a ToolContext) -> ToolFuture<'a> {
        Box::pin(async move {
            let readers = self.0.reading.fetch_add(1, Ordering::SeqCst) + 1;
            self.0.most_readers.fetch_max(readers, Ordering::SeqCst);
            let seen = self.0.number.load(Ordering::SeqCst);
            while_others_work(&input).await;
            if self.0.writing.load(Ordering::SeqCst) > 0 || self.0.number.load(Ordering::SeqCst) != seen {
                self.0.complain(format!("{input} read while something was written"));
            }
            self.0.reading.fetch_sub(1, Ordering::SeqCst);
            Ok(ToolOutput { text: seen.to_string(), ..ToolOutput::default() })
        })
    }
}

impl Tool for Bump {
    fn name(&self) -> &'static str {
        "bump"
    }
    fn description(&self) -> &'static str {
        "Adds one."
    }
    fn schema(&self) -> Value {
        schema()
    }
    fn class(&self) -> ToolClass {
        ToolClass::Changes
    }
    fn intent(&self, _: &Value) -> String {
        "bump".to_owned()
    }
    fn run<'a>(&'a self, input: Value, _: &'a ToolContext) -> ToolFuture<'a> {
        Box::pin(async move {
            let others =
                self.0.writing.fetch_add(1, Ordering::SeqCst) + self.0.reading.load(Ordering::SeqCst);
            if others > 0 {
                self.0.complain(format!("{input} wrote while others worked"));
            }
            while_others_work(&input).await;
            let number = self.0.number.fetch_add(1, Ordering::SeqCst) + 1;
            self.0.writing.fetch_sub(1, Ordering::SeqCst);
            Ok(ToolOutput { text: number.to_string(), ..ToolOutput::default() })
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn changes_run_alone_and_reads_side_by_side(changes in prop::collection::vec(any::<bool>(), 1..40)) {
        let calls: Vec<String> = changes
            .iter()
            .enumerate()
            .map(|(n, changes)| format!("{{ tool = '{}', input = {{ n = {n} }} }}", if *changes { "bump" } else { "look" }))
            .collect();
        let script = format!("[[step]]\ncalls = [{}]\n[[step]]\ntext = 'done'", calls.join(", "));
        let world = Arc::new(World::default());
        let tools: Vec<Arc<dyn Tool>> = vec![Arc::new(Look(world.clone())), Arc::new(Bump(world.clone()))];
        let journal = Arc::new(MemoryJournal::default());
        let mut session = session(&script, house(&journal, std::path::Path::new("/"), tools.clone()));
        let outcome = run(session.submit(said("go"), &CancellationToken::new())).unwrap();
        prop_assert_eq!(outcome, TurnOutcome::EndTurn);
        assert_well_formed(&session, &journal, &tools);
        prop_assert_eq!(&*world.wrong.lock().unwrap(), &Vec::<String>::new());
        // Results stand in the order of the calls, and each read sees what was written before it and nothing later.
        let mut written = 0;
        for ((_, state), changes) in states(&session).iter().zip(&changes) {
            written += u32::from(*changes);
            let ToolState::Completed { output } = state else { panic!("{state:?}") };
            prop_assert_eq!(&output.text, &written.to_string());
        }
        let longest = changes.split(|changes| *changes).map(<[bool]>::len).max().unwrap_or(0);
        let side_by_side = world.most_readers.load(Ordering::SeqCst) as usize;
        prop_assert_eq!(side_by_side, longest.min(10), "neighbouring reads overlap, ten at most");
    }
}
