//! A recorded session can be played again to the byte, and whatever is another is named.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use helve_agent::{MismatchKind, ReplayBuild, replay_session};
use helve_journal::{Journal, MemoryJournal};
use helve_protocol::*;
use helve_tools::{Tool, ToolContext, ToolFuture};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::house::*;

const SCRIPT: &str = r#"
    [[step]]
    text = "I look."
    calls = [
        { tool = "read", input = { path = "a.txt" } }, { tool = "read", input = { path = "b.txt" } },
        { tool = "read", input = { path = "." } }, { tool = "write", input = { path = "c.txt", content = "c" } },
    ]
    [[step]]
    text = "Done."
"#;

/// A session of two turns.
fn recorded() -> (SessionId, Arc<MemoryJournal>) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.txt"), "alpha").unwrap();
    fs::write(folder.path().join("b.txt"), "beta").unwrap();
    let journal = Arc::new(MemoryJournal::default());
    let mut session = session(&SCRIPT.repeat(2), house(&journal, folder.path(), tools()));
    for words in ["first", "second"] {
        assert_eq!(
            run(session.submit(said(words), &CancellationToken::new())).unwrap(),
            TurnOutcome::EndTurn
        );
    }
    (session.id(), journal)
}

/// The same session, told a little differently.
fn forged(
    session: SessionId,
    journal: &MemoryJournal,
    mut change: impl FnMut(&mut SessionEvent),
) -> Arc<MemoryJournal> {
    let forged = Arc::new(MemoryJournal::default());
    let mut log = forged.create(session).unwrap();
    for mut event in events(journal, session) {
        for blob in event.body.blobs() {
            log.blobs().put(&journal.blob(session, blob).unwrap()).unwrap();
        }
        change(&mut event);
        log.append(&[event]).unwrap();
    }
    forged
}

/// Where the first request differs.
fn path_of(journal: &Arc<MemoryJournal>, session: SessionId, tools: &[Arc<dyn Tool>]) -> String {
    let report = replayed(session, journal, tools);
    match &report.differences.first().unwrap().what {
        MismatchKind::Request(difference) => difference.path.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_request_is_the_same() {
    let (session, journal) = recorded();
    let report = replayed(session, &journal, &tools());
    assert_eq!((report.turns, report.requests, report.unkept), (2, 4, 0));
    assert_eq!(report.differences, []);
    assert_eq!(report.versions, ["test"]);
}

#[test]
fn another_result_is_named() {
    let (session, journal) = recorded();
    let changed = forged(session, &journal, |event| {
        if let EventBody::ToolEnded(ended) = &mut event.body
            && let ToolState::Completed { output } = &mut ended.end
        {
            output.text = output.text.replace("beta", "bete");
        }
    });
    assert_eq!(path_of(&changed, session, &tools()), "/messages/2/content/1/content/0/text");
}

#[test]
fn another_word_of_the_user_is_named() {
    let (session, journal) = recorded();
    let changed = forged(session, &journal, |event| {
        if let EventBody::UserMessage(message) = &mut event.body
            && message.parts == said("second")
        {
            message.parts = said("third");
        }
    });
    let report = replayed(session, &changed, &tools());
    assert_eq!((report.differences[0].turn, report.differences[0].step), (2, 1));
}

#[test]
fn another_prompt_is_named() {
    let (session, journal) = recorded();
    let mut other = ReplayBuild::current(tools());
    other.prompt.system.push('!');
    let expected = other.prompt.system.clone();
    let report = run(replay_session(journal, session, other)).unwrap();
    let MismatchKind::Request(difference) = &report.differences[0].what else { panic!("{report:?}") };
    assert_eq!(difference.path, "/system/0/text");
    assert_eq!(difference.new.as_deref(), Some(&*expected));
}

/// `read`, with one letter more in what the model is told of it.
struct Reworded(Arc<dyn Tool>);

impl Tool for Reworded {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn description(&self) -> &'static str {
        Box::leak(format!("{}!", self.0.description()).into_boxed_str())
    }
    fn schema(&self) -> Value {
        self.0.schema()
    }
    fn class(&self) -> ToolClass {
        self.0.class()
    }
    fn intent(&self, input: &Value) -> String {
        self.0.intent(input)
    }
    fn run<'a>(&'a self, input: Value, context: &'a ToolContext) -> ToolFuture<'a> {
        self.0.run(input, context)
    }
}

#[test]
fn another_description_of_a_tool_is_named() {
    let (session, journal) = recorded();
    let mut tools = tools();
    tools[1] = Arc::new(Reworded(tools[1].clone()));
    assert_eq!(path_of(&journal, session, &tools), "/tools/1/description");
}

#[test]
fn another_way_of_the_loop_is_noticed() {
    let (session, journal) = recorded();
    // As if the second step had never been.
    let mut steps = 0;
    let shorter = Arc::new(MemoryJournal::default());
    let mut log = shorter.create(session).unwrap();
    for mut event in events(&journal, session) {
        steps += u32::from(matches!(event.body, EventBody::StepStarted(_)));
        if steps == 2 && !matches!(event.body, EventBody::TurnEnded(_)) {
            continue;
        }
        for blob in event.body.blobs() {
            log.blobs().put(&journal.blob(session, blob).unwrap()).unwrap();
        }
        event.seq = log.last().next();
        log.append(&[event]).unwrap();
    }
    let report = replayed(session, &shorter, &tools());
    assert!(
        matches!(report.differences[0].what, MismatchKind::Requests { recorded: 1, now: 2 }),
        "{report:?}"
    );
}

#[test]
fn a_record_that_cant_be_played_is_not_called_the_same() {
    let (session, journal) = recorded();
    let strange = forged(session, &journal, |event| {
        if let EventBody::DialogueBegan(began) = &mut event.body {
            began.manner = serde_json::json!({ "wire": "smoke signals" });
        }
    });
    let report = replayed(session, &strange, &tools());
    assert_eq!((report.turns, report.requests, report.unkept), (2, 0, 4));
}

/// Reads for as long as it is told.
struct Lasting;

impl Tool for Lasting {
    fn name(&self) -> &'static str {
        "last"
    }
    fn description(&self) -> &'static str {
        "Lasts."
    }
    fn schema(&self) -> Value {
        serde_json::json!({ "type": "object" })
    }
    fn class(&self) -> ToolClass {
        ToolClass::Reads
    }
    fn intent(&self, _: &Value) -> String {
        String::new()
    }
    fn run<'a>(&'a self, input: Value, _: &'a ToolContext) -> ToolFuture<'a> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(input.get("ms").and_then(Value::as_u64).unwrap())).await;
            Ok(ToolOutput::default())
        })
    }
}

/// Which calls are the same as twice before depends on what was called, not on what happened to end first.
#[test]
fn the_order_in_which_reads_end_does_not_matter_to_what_is_noticed() {
    let journal = Arc::new(MemoryJournal::default());
    let script = r#"
        [[step]]
        calls = [
            { tool = "last", input = { ms = 50 } }, { tool = "last", input = { ms = 1 } },
            { tool = "last", input = { ms = 1 } },
        ]
        [[step]]
        calls = [{ tool = "last", input = { ms = 1 } }]
        [[step]]
        text = "Done."
    "#;
    let tools: Vec<Arc<dyn Tool>> = vec![Arc::new(Lasting)];
    let mut session = session(script, house(&journal, std::path::Path::new("/"), tools.clone()));
    run(session.submit(said("go"), &CancellationToken::new())).unwrap();
    assert_eq!(states(&session)[3].1.name(), "denied");
    assert_well_formed(&session, &journal, &tools);
}
