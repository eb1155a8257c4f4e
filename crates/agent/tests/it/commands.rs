//! A session that fronts talk to.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use helve_agent::{Feed, PermissionGate, Session, SessionHandle};
use helve_journal::MemoryJournal;
use helve_models::ModelTarget;
use helve_models::script::ModelScript;
use helve_protocol::*;
use helve_tools::{Tool, ToolContext, ToolFuture};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::house::*;

/// A tool of any class that takes a while, and shows something meanwhile.
struct Slow(ToolClass, &'static str);

impl Tool for Slow {
    fn name(&self) -> &'static str {
        self.1
    }
    fn description(&self) -> &'static str {
        "Takes a while."
    }
    fn schema(&self) -> Value {
        json!({"type": "object"})
    }
    fn class(&self) -> ToolClass {
        self.0
    }
    fn intent(&self, _: &Value) -> String {
        format!("{} for a while", self.1)
    }
    fn run<'a>(&'a self, _: Value, context: &'a ToolContext) -> ToolFuture<'a> {
        Box::pin(async move {
            context.live.show("one ");
            tokio::time::sleep(Duration::from_millis(100)).await;
            context.live.show("two");
            Ok(ToolOutput {
                text: "slept".to_owned(),
                ends_turn: self.1 == "enough",
                ..ToolOutput::default()
            })
        })
    }
}

fn slow_tools() -> Vec<Arc<dyn Tool>> {
    let slow: Vec<Arc<dyn Tool>> = vec![
        Arc::new(Slow(ToolClass::Reads, "wait")),
        Arc::new(Slow(ToolClass::Changes, "work")),
        Arc::new(Slow(ToolClass::Subagent, "send")),
        Arc::new(Slow(ToolClass::Reads, "enough")),
    ];
    [tools(), slow].concat()
}

struct Talk {
    handle: SessionHandle,
    feed: Feed,
    journal: Arc<MemoryJournal>,
}

impl Talk {
    async fn say(&self, text: &str, delivery: PromptDelivery) {
        self.handle.send(SessionCommand::Submit(UserPrompt { parts: said(text), delivery })).await;
    }

    /// Waits for an event, and gives it.
    async fn until(&mut self, is_it: impl Fn(&EventBody) -> bool) -> Arc<SessionEvent> {
        loop {
            let event = self.feed.next().await.expect("the session has ended");
            if is_it(&event.body) {
                return event;
            }
        }
    }

    async fn turn_ends(&mut self) -> TurnOutcome {
        let event = self.until(|body| matches!(body, EventBody::TurnEnded(_))).await;
        let EventBody::TurnEnded(ended) = &event.body else { unreachable!() };
        ended.outcome
    }

    async fn queue(&self) -> Vec<QueuedMessage> {
        let QueryReply::Queue { queue } = self.handle.ask(SessionQuery::Queue).await else { panic!() };
        queue
    }

    /// Who said what, in the order in which the model saw it.
    fn said(&self) -> Vec<String> {
        let events = events(&self.journal, self.handle.session());
        let history = ConversationHistory::of(&events);
        let texts = history.messages().flat_map(|message| {
            message.parts.iter().filter_map(|part| match part {
                MessagePart::Text(text) => Some(text.text.clone()),
                MessagePart::Tool(tool) => Some(format!("[{}]", tool.name)),
                _ => None,
            })
        });
        texts.collect()
    }
}

/// Talks with a session, and looks at it when everybody is done.
fn talk<F: Future<Output = Talk>>(
    script: &str,
    gate: PermissionGate,
    talking: impl FnOnce(Talk) -> F,
) -> Talk {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.txt"), "a").unwrap();
    let journal = Arc::new(MemoryJournal::default());
    let mut house = house(&journal, folder.path(), slow_tools());
    house.services.gate = gate;
    house.services.models = Arc::new(NamedModels(|name| match name.as_str() {
        "script:other" => Ok(ModelTarget::script(
            "script:other",
            ModelScript::parse("[[step]]\ntext = 'I am another.'\nrepeat = true").unwrap(),
        )),
        other => Err(format!("there is no model {other}")),
    }));
    let session = session(script, house);
    let (handle, actor) = session.listen();
    let talk = Talk { feed: handle.feed(), handle, journal };
    run(async {
        let work = async {
            let session: Session = actor.run().await.unwrap();
            session
        };
        let (session, talk) = tokio::join!(work, async {
            let talk = talking(talk).await;
            talk.handle.send(SessionCommand::ShutDown).await;
            talk
        });
        (session, talk)
    })
    .pipe(|(session, talk)| {
        assert_well_formed(&session, &talk.journal, &slow_tools());
        talk
    })
}

trait Pipe: Sized {
    fn pipe<T>(self, then: impl FnOnce(Self) -> T) -> T {
        then(self)
    }
}
impl<T> Pipe for T {}

const TWO_WAITS: &str = r#"
    [[step]]
    calls = [{ tool = "wait", input = {} }]
    [[step]]
    calls = [{ tool = "wait", input = {} }]
    [[step]]
    text = "Done."
    repeat = true
"#;

fn is_tool_start(body: &EventBody) -> bool {
    matches!(body, EventBody::ToolStarted(_))
}

#[test]
fn what_is_said_meanwhile_is_handed_over_between_steps_or_after_the_turn() {
    let talk = talk(TWO_WAITS, PermissionGate::answering_yes(None), async |mut talk| {
        talk.say("go", PromptDelivery::Queue).await;
        talk.until(is_tool_start).await;
        talk.say("later", PromptDelivery::Queue).await;
        talk.say("now", PromptDelivery::Steer).await;
        let queue = talk.queue().await;
        assert_eq!(
            queue.iter().map(|queued| queued.delivery).collect::<Vec<_>>(),
            [PromptDelivery::Queue, PromptDelivery::Steer]
        );
        assert_eq!(talk.turn_ends().await, TurnOutcome::EndTurn);
        assert_eq!(talk.turn_ends().await, TurnOutcome::EndTurn);
        assert_eq!(talk.queue().await, []);
        talk
    });
    assert_eq!(talk.said(), ["go", "[wait]", "now", "[wait]", "Done.", "later", "Done."]);
}

#[test]
fn steering_during_the_last_step_is_not_left_behind() {
    let script = "[[step]]\ntext = 'Done.'\ndelay = '100ms'\nrepeat = true";
    let talk = talk(script, PermissionGate::answering_yes(None), async |mut talk| {
        talk.say("go", PromptDelivery::Queue).await;
        talk.until(|body| matches!(body, EventBody::StepStarted(_))).await;
        talk.say("and this", PromptDelivery::Steer).await;
        assert_eq!(talk.turn_ends().await, TurnOutcome::EndTurn);
        talk
    });
    assert_eq!(talk.said(), ["go", "Done.", "and this", "Done."]);
}

#[test]
fn what_waits_can_be_changed_and_taken_back() {
    let talk = talk(TWO_WAITS, PermissionGate::answering_yes(None), async |mut talk| {
        talk.say("go", PromptDelivery::Queue).await;
        talk.until(is_tool_start).await;
        talk.say("one", PromptDelivery::Queue).await;
        talk.say("two", PromptDelivery::Queue).await;
        let queue = talk.queue().await;
        let prompt = UserPrompt { parts: said("better"), delivery: PromptDelivery::Steer };
        talk.handle.send(SessionCommand::EditQueued { message: queue[0].message, prompt }).await;
        talk.handle.send(SessionCommand::DropQueued { message: queue[1].message }).await;
        talk.handle.send(SessionCommand::DropQueued { message: queue[1].message }).await;
        let refused = talk.until(|body| matches!(body, EventBody::CommandRefused(_))).await;
        let EventBody::CommandRefused(refused) = &refused.body else { unreachable!() };
        assert_eq!(
            (refused.command.as_str(), refused.why.as_str()),
            ("drop_queued", "no such message waits (any more)")
        );
        assert_eq!(talk.turn_ends().await, TurnOutcome::EndTurn);
        talk
    });
    assert_eq!(talk.said(), ["go", "[wait]", "better", "[wait]", "Done."]);
}

#[test]
fn after_an_interrupt_what_waits_stays_until_somebody_goes_on() {
    let talk = talk(TWO_WAITS, PermissionGate::answering_yes(None), async |mut talk| {
        talk.say("go", PromptDelivery::Queue).await;
        talk.until(is_tool_start).await;
        talk.say("later", PromptDelivery::Queue).await;
        talk.handle.send(SessionCommand::Interrupt).await;
        assert_eq!(talk.turn_ends().await, TurnOutcome::Cancelled);
        let QueryReply::State { status, unfinished, .. } = talk.handle.ask(SessionQuery::State).await else {
            panic!()
        };
        assert_eq!((status, unfinished), (SessionStatus::Idle, Some(TurnOutcome::Cancelled)));
        assert_eq!(talk.queue().await.len(), 1);
        talk.handle.send(SessionCommand::GoOn).await;
        assert_eq!(talk.turn_ends().await, TurnOutcome::EndTurn);
        assert_eq!(talk.turn_ends().await, TurnOutcome::EndTurn);
        talk
    });
    assert_eq!(talk.said(), ["go", "[wait]", "[wait]", "Done.", "later", "Done."]);
}

#[test]
fn going_on_after_the_model_had_the_last_word_asks_it_to() {
    let talk = talk(
        "[[step]]\ntext = 'Hm.'\nrepeat = true",
        PermissionGate::answering_yes(None),
        async |mut talk| {
            talk.handle.send(SessionCommand::GoOn).await;
            talk.until(|body| matches!(body, EventBody::CommandRefused(_))).await;
            talk.say("go", PromptDelivery::Queue).await;
            talk.turn_ends().await;
            talk.handle.send(SessionCommand::GoOn).await;
            talk.turn_ends().await;
            talk
        },
    );
    assert_eq!(talk.said(), ["go", "Hm.", "Go on.", "Hm."]);
}

#[test]
fn each_answer_of_a_person_counts() {
    let script = r#"
        [[step]]
        calls = [{ tool = "work", input = {} }]
        [[step]]
        calls = [{ tool = "work", input = { again = 1 } }]
        [[step]]
        text = "Done."
    "#;
    let reject = |message: Option<&str>| ApprovalAnswer::Reject { message: message.map(str::to_owned) };
    for (answer, asked, ended) in [
        (ApprovalAnswer::Once, 2, "slept"),
        (ApprovalAnswer::Session, 1, "slept"),
        (ApprovalAnswer::Project, 1, "slept"),
        (reject(None), 2, "Denied: the user does not want this"),
        (reject(Some("not that")), 2, "Denied: not that"),
    ] {
        let talk = talk(script, PermissionGate::asking_person(None), async |mut talk| {
            talk.say("go", PromptDelivery::Queue).await;
            let (mut questions, mut refused, mut ended_turns) = (0, 0, 0);
            loop {
                let event = talk.feed.next().await.unwrap();
                match &event.body {
                    EventBody::ApprovalRequested(request) => {
                        questions += 1;
                        assert_eq!(request.effects, ["work for a while"]);
                        let QueryReply::State { status, .. } = talk.handle.ask(SessionQuery::State).await
                        else {
                            panic!()
                        };
                        assert_eq!(status, SessionStatus::WaitingForPerson);
                        let (approval, answer) = (request.approval, answer.clone());
                        talk.handle.send(SessionCommand::Decide { approval, answer: answer.clone() }).await;
                        // A second answer changes nothing, and that is told.
                        talk.handle.send(SessionCommand::Decide { approval, answer }).await;
                    }
                    EventBody::CommandRefused(_) => refused += 1,
                    EventBody::TurnEnded(ended) => {
                        assert_eq!(ended.outcome, TurnOutcome::EndTurn);
                        ended_turns += 1;
                    }
                    _ => {}
                }
                if ended_turns == 1 && refused == questions {
                    break;
                }
            }
            assert_eq!((questions, refused), (asked, asked), "{answer:?}");
            talk
        });
        let events = events(&talk.journal, talk.handle.session());
        let ends: Vec<String> = events
            .iter()
            .filter_map(|event| match &event.body {
                EventBody::ToolEnded(ended) => Some(ended.end.for_model().text.into_owned()),
                _ => None,
            })
            .collect();
        assert_eq!(ends, [ended, ended], "{answer:?}");
    }
}

#[test]
fn sub_agents_run_side_by_side_if_there_is_nothing_else() {
    let most_at_once = |calls: &str| {
        let script = format!("[[step]]\ncalls = [{calls}]\n[[step]]\ntext = 'Done.'");
        let talk = talk(&script, PermissionGate::answering_yes(None), async |mut talk| {
            talk.say("go", PromptDelivery::Queue).await;
            talk.turn_ends().await;
            talk
        });
        let (mut now, mut most) = (0, 0);
        for event in events(&talk.journal, talk.handle.session()) {
            match event.body {
                EventBody::ToolStarted(_) => now += 1,
                EventBody::ToolEnded(_) => now -= 1,
                _ => {}
            }
            most = most.max(now);
        }
        most
    };
    let send = "{ tool = 'send', input = {} }";
    assert_eq!(most_at_once(&[send; 3].join(", ")), 3);
    assert_eq!(most_at_once(&format!("{send}, {{ tool = 'wait', input = {{}} }}, {send}")), 1);
}

#[test]
fn a_result_may_end_the_turn() {
    let script = "[[step]]\ncalls = [{ tool = 'enough', input = {} }, { tool = 'wait', input = {} }]";
    talk(script, PermissionGate::answering_yes(None), async |mut talk| {
        talk.say("go", PromptDelivery::Queue).await;
        assert_eq!(talk.turn_ends().await, TurnOutcome::EndTurn);
        talk
    });
}

#[test]
fn output_is_shown_while_a_tool_works() {
    let script = "[[step]]\ncalls = [{ tool = 'wait', input = {} }]\n[[step]]\ntext = 'Done.'";
    talk(script, PermissionGate::answering_yes(None), async |mut talk| {
        talk.say("go", PromptDelivery::Queue).await;
        let mut shown = String::new();
        loop {
            let event = talk.feed.next().await.unwrap();
            match &event.body {
                EventBody::ToolOutputDelta(delta) => shown.push_str(&delta.text),
                EventBody::ToolEnded(_) => break,
                _ => {}
            }
        }
        assert_eq!(shown, "one two");
        talk.turn_ends().await;
        talk
    });
}

#[test]
fn another_model_is_chosen_between_turns() {
    let talk = talk(TWO_WAITS, PermissionGate::answering_yes(None), async |mut talk| {
        talk.say("go", PromptDelivery::Queue).await;
        talk.until(is_tool_start).await;
        talk.handle.send(SessionCommand::SetModel { model: ModelName::new("nobody") }).await;
        talk.handle.send(SessionCommand::SetModel { model: ModelName::new("script:other") }).await;
        talk.say("and you?", PromptDelivery::Queue).await;
        talk.turn_ends().await;
        talk.until(|body| matches!(body, EventBody::CommandRefused(_))).await;
        talk.turn_ends().await;
        talk
    });
    assert_eq!(talk.said().last().map(String::as_str), Some("I am another."));
}

#[test]
fn how_much_is_thought_is_chosen_between_turns() {
    talk(TWO_WAITS, PermissionGate::answering_yes(None), async |mut talk| {
        talk.handle.send(SessionCommand::SetEffort { effort: Some(ReasoningEffort::High) }).await;
        let event = talk
            .until(
                |body| matches!(body, EventBody::DialogueBegan(began) if !began.manner["effort"].is_null()),
            )
            .await;
        let EventBody::DialogueBegan(began) = &event.body else { unreachable!() };
        assert_eq!(began.manner["effort"], "high");
        talk.say("go", PromptDelivery::Queue).await;
        talk.turn_ends().await;
        talk
    });
}

#[test]
fn an_idle_session_shows_that_it_lives() {
    talk(TWO_WAITS, PermissionGate::answering_yes(None), async |mut talk| {
        for _ in 0..2 {
            let event = talk.until(|body| matches!(body, EventBody::StatusChanged(_))).await;
            assert_eq!(event.body, StatusChanged { status: SessionStatus::Idle }.into());
        }
        talk.say("go", PromptDelivery::Queue).await;
        talk.turn_ends().await;
        talk
    });
}

/// What became of a message that can't be taken. The session must go on all the same.
fn refused(parts: Vec<MessagePart>) -> String {
    let mut why = String::new();
    talk(TWO_WAITS, PermissionGate::answering_yes(None), async |mut talk| {
        let prompt = UserPrompt { parts, delivery: PromptDelivery::Steer };
        let is_refused = |body: &EventBody| matches!(body, EventBody::CommandRefused(_));
        talk.handle.send(SessionCommand::Submit(prompt.clone())).await;
        talk.until(is_refused).await;
        talk.say("go", PromptDelivery::Queue).await;
        talk.until(is_tool_start).await;
        talk.handle.send(SessionCommand::Submit(prompt.clone())).await;
        talk.until(is_refused).await;
        talk.say("later", PromptDelivery::Queue).await;
        let message = talk.queue().await.remove(0).message;
        talk.handle.send(SessionCommand::EditQueued { message, prompt }).await;
        let told = talk.until(is_refused).await;
        let EventBody::CommandRefused(told) = &told.body else { unreachable!() };
        why.clone_from(&told.why);
        assert_eq!(talk.turn_ends().await, TurnOutcome::EndTurn);
        assert_eq!(talk.turn_ends().await, TurnOutcome::EndTurn);
        talk
    });
    why
}

#[test]
fn a_message_that_cant_be_kept_or_sent_is_refused() {
    assert_eq!(refused(vec![]), "the message is empty");
    assert_eq!(refused(said(" \n")), "the message is empty");
    let (name, media_type) = ("a.png".to_owned(), "image/png".to_owned());
    let lost = FilePart { name, media_type, content: BlobId::from_hash([7; 32]) };
    assert_eq!(refused(vec![MessagePart::File(lost)]), "a file of the message was never kept");
    let thought = MessagePart::Reasoning(ReasoningPart { text: "all".to_owned(), sealed: Value::Null });
    assert_eq!(refused(vec![thought]), "a message is made of texts and files");
    assert_eq!(refused(said(&"x".repeat(17 << 20))), "it is too much at once");
}

#[test]
fn many_messages_that_are_too_much_together_do_not_end_the_session() {
    let talk = talk(TWO_WAITS, PermissionGate::answering_yes(None), async |mut talk| {
        talk.say("go", PromptDelivery::Queue).await;
        talk.until(is_tool_start).await;
        for _ in 0..3 {
            talk.say(&"x".repeat(7 << 20), PromptDelivery::Queue).await;
        }
        talk.until(|body| matches!(body, EventBody::CommandRefused(_))).await;
        assert_eq!(talk.queue().await.len(), 2);
        assert_eq!(talk.turn_ends().await, TurnOutcome::EndTurn);
        assert_eq!(talk.turn_ends().await, TurnOutcome::EndTurn);
        assert_eq!(talk.turn_ends().await, TurnOutcome::EndTurn);
        talk
    });
    assert_eq!(talk.said().len(), 8);
}

#[test]
fn in_plan_mode_nothing_is_changed_whoever_said_yes() {
    let script = "[[step]]\ncalls = [{ tool = 'work', input = {} }]\n[[step]]\ntext = 'Done.'";
    let talk = talk(script, PermissionGate::answering_yes(None), async |mut talk| {
        talk.handle.send(SessionCommand::SetMode { mode: PermissionMode::Plan }).await;
        talk.say("go", PromptDelivery::Queue).await;
        assert_eq!(talk.turn_ends().await, TurnOutcome::EndTurn);
        talk
    });
    let events = events(&talk.journal, talk.handle.session());
    let is_denied = |event: &SessionEvent| {
        matches!(&event.body, EventBody::ToolEnded(ToolEnded { end: ToolState::Denied { .. }, .. }))
    };
    assert!(events.iter().any(is_denied));
    assert!(!events.iter().any(|event| is_tool_start(&event.body)));
}

#[test]
fn steering_that_waits_when_a_turn_goes_on_is_played_again_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Arc::new(MemoryJournal::default());
    let mut house = house(&journal, folder.path(), slow_tools());
    house.spec.limits.steps = 1;
    let session = session("[[step]]\ntext = 'Done.'\ndelay = '100ms'\nrepeat = true", house);
    let (handle, actor) = session.listen();
    let mut talk = Talk { feed: handle.feed(), handle, journal };
    let (session, talk) = run(async {
        let talking = async {
            talk.say("go", PromptDelivery::Queue).await;
            talk.until(|body| matches!(body, EventBody::StepStarted(_))).await;
            talk.say("and this", PromptDelivery::Steer).await;
            assert_eq!(talk.turn_ends().await, TurnOutcome::MaxTurns);
            talk.handle.send(SessionCommand::GoOn).await;
            assert_eq!(talk.turn_ends().await, TurnOutcome::EndTurn);
            talk.handle.send(SessionCommand::ShutDown).await;
            talk
        };
        tokio::join!(actor.run(), talking)
    });
    assert_eq!(talk.said(), ["go", "Done.", "Go on.", "and this", "Done."]);
    assert_well_formed(&session.unwrap(), &talk.journal, &slow_tools());
}

fn any_command() -> impl Strategy<Value = u8> {
    0..11u8
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Whatever is commanded in whatever order, the session stays whole, and every message that was taken is either
    /// handed over, waiting, or taken back.
    #[test]
    fn any_commands_leave_a_session_whole(commands in prop::collection::vec((any_command(), 0..150u64), 1..25)) {
        let script = r#"
            [[step]]
            calls = [{ tool = "wait", input = {} }, { tool = "work", input = {} }]
            [[step]]
            text = "Done."
            [[step]]
            calls = [{ tool = "read", input = { path = "a.txt" } }]
        "#.repeat(40);
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.txt"), "a").unwrap();
        let journal = Arc::new(MemoryJournal::default());
        let session = session(&script, house(&journal, folder.path(), slow_tools()));
        let (handle, actor) = session.listen();
        let (session, (sent, dropped)) = run(async {
            let commanding = async {
                let (mut sent, mut dropped) = (1, 0);
                handle.send(SessionCommand::Submit(UserPrompt { parts: said("0"), delivery: PromptDelivery::Queue })).await;
                for (command, wait) in commands {
                    tokio::time::sleep(Duration::from_millis(wait)).await;
                    let QueryReply::Queue { queue } = handle.ask(SessionQuery::Queue).await else { panic!() };
                    let first = queue.first().map(|queued| queued.message);
                    match (command, first) {
                        (0..=4, _) => {
                            let delivery = if command < 3 { PromptDelivery::Steer } else { PromptDelivery::Queue };
                            handle.send(SessionCommand::Submit(UserPrompt { parts: said(&sent.to_string()), delivery })).await;
                            sent += 1;
                        }
                        (5, _) => handle.send(SessionCommand::Interrupt).await,
                        (6, _) => handle.send(SessionCommand::GoOn).await,
                        (7, Some(message)) => {
                            handle.send(SessionCommand::DropQueued { message }).await;
                            dropped += 1;
                        }
                        (8, Some(message)) => {
                            let prompt = UserPrompt { parts: said("edited"), delivery: PromptDelivery::Steer };
                            handle.send(SessionCommand::EditQueued { message, prompt }).await;
                        }
                        (9, _) => handle.send(SessionCommand::SetModel { model: ModelName::new("nobody") }).await,
                        _ => handle.send(SessionCommand::Rename { title: "New".to_owned() }).await,
                    }
                }
                handle.send(SessionCommand::ShutDown).await;
                (sent, dropped)
            };
            let (session, counted) = tokio::join!(actor.run(), commanding);
            (session.unwrap(), counted)
        });
        assert_well_formed(&session, &journal, &slow_tools());
        let waiting = session.state(|state| state.queue.len());
        let events = events(&journal, session.id());
        let handed = events.iter().filter(|event| matches!(event.body, EventBody::UserMessage(_))).count();
        prop_assert_eq!(handed + waiting + dropped, sent);
    }
}
