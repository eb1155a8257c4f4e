//! What a turn does.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use helve_agent::{
    BoxFuture, CallIntervention, HookedCall, PermissionGate, Session, SessionHooks, TurnBudget,
};
use helve_journal::MemoryJournal;
use helve_models::script::ModelScript;
use helve_models::{
    KeyPlacement, ModelCatalogue, ModelPreferences, ModelRouter, ModelTarget, ProviderOverrides, WireProtocol,
};
use helve_protocol::*;
use helve_tools::{ShellOutputTool, Tool};
use tokio_util::sync::CancellationToken;

use crate::house::*;

const EDIT: &str = r#"
    [[step]]
    when = { asked = "fix" }
    thinking = "Look first."
    text = "I look."
    calls = [{ tool = "read", input = { path = "a.txt" } }, { tool = "read", input = { path = "." } }]
    usage = { input = 100, output = 10 }
    [[step]]
    when = { tool = "read", result = "old" }
    calls = [{ tool = "write", input = { path = "a.txt", content = "new\n" } }]
    usage = { input = 200, output = 20 }
    [[step]]
    when = { tool = "write", result = "replaced" }
    text = "Fixed."
    usage = { input = 300, output = 30 }
"#;

struct Run {
    session: Session,
    journal: Arc<MemoryJournal>,
    outcome: TurnOutcome,
    folder: tempfile::TempDir,
}

fn turn(script: &str, gate: PermissionGate, limits: TurnBudget) -> Run {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.txt"), "old\n").unwrap();
    let journal = Arc::new(MemoryJournal::default());
    let mut house = house(&journal, folder.path(), tools());
    (house.services.gate, house.spec.limits) = (gate, limits);
    let mut session = session(script, house);
    let outcome = run(session.submit(said("fix it"), &CancellationToken::new())).unwrap();
    assert_well_formed(&session, &journal, &tools());
    Run { session, journal, outcome, folder }
}

#[test]
fn a_turn_reads_writes_and_ends() {
    let run = turn(EDIT, PermissionGate::answering_yes(None), TurnBudget::default());
    assert_eq!(run.outcome, TurnOutcome::EndTurn);
    assert_eq!(fs::read_to_string(run.folder.path().join("a.txt")).unwrap(), "new\n");
    let kinds: Vec<String> =
        events(&run.journal, run.session.id()).iter().map(|event| event.body.kind().to_owned()).collect();
    let told = [
        "session_created",
        "dialogue_began",
        "turn_started",
        "user_message",
        "step_started",
        "response_ended",
        "tool_started",
        "tool_started",
        "tool_ended",
        "tool_ended",
        "step_ended",
        "step_started",
        "response_ended",
        "tool_started",
        "tool_ended",
        "step_ended",
        "step_started",
        "response_ended",
        "step_ended",
        "turn_ended",
    ];
    assert_eq!(kinds, told);
}

#[test]
fn without_anybody_to_ask_nothing_is_changed() {
    let script = format!("{EDIT}\n[[step]]\ntext = 'I may not.'\nrepeat = true");
    let run = turn(&script, PermissionGate::answering_no(None), TurnBudget::default());
    assert_eq!(run.outcome, TurnOutcome::EndTurn);
    assert_eq!(fs::read_to_string(run.folder.path().join("a.txt")).unwrap(), "old\n");
    assert!(matches!(states(&run.session)[2].1, ToolState::Denied { .. }));
}

#[test]
fn limits_end_a_turn_in_their_own_way() {
    let endless =
        "[[step]]\ncalls = [{ tool = 'read', input = { path = 'a.txt' } }]\nrepeat = true\ndelay = '1s'";
    let steps =
        turn(endless, PermissionGate::answering_yes(None), TurnBudget { steps: 3, ..TurnBudget::default() });
    assert_eq!(steps.outcome, TurnOutcome::MaxTurns);
    let time = TurnBudget { time: Some(Duration::from_millis(2_500)), ..TurnBudget::default() };
    assert_eq!(turn(endless, PermissionGate::answering_yes(None), time).outcome, TurnOutcome::Timeout);
}

#[test]
fn a_model_that_waits_for_a_job_goes_in_no_circles() {
    let script =
        "[[step]]\ncalls = [{ tool = 'shell_output', input = {} }]\n".repeat(4) + "[[step]]\ntext = 'Done.'";
    let folder = tempfile::tempdir().unwrap();
    let journal = Arc::new(MemoryJournal::default());
    let tools: Vec<Arc<dyn Tool>> = vec![Arc::new(ShellOutputTool::default())];
    let mut session = session(&script, house(&journal, folder.path(), tools.clone()));
    run(session.submit(said("go"), &CancellationToken::new())).unwrap();
    let states = states(&session);
    assert_eq!(states.len(), 4);
    assert!(states.iter().all(|(_, state)| matches!(state, ToolState::Completed { .. })), "{states:?}");
    assert_well_formed(&session, &journal, &tools);
}

#[test]
fn a_model_that_goes_in_circles_is_noticed() {
    let endless = "[[step]]\ncalls = [{ tool = 'read', input = { path = 'a.txt' } }]\nrepeat = true";
    let run =
        turn(endless, PermissionGate::answering_yes(None), TurnBudget { steps: 8, ..TurnBudget::default() });
    let states = states(&run.session);
    assert!(matches!(states[1].1, ToolState::Completed { .. }));
    assert!(
        matches!(&states[2].1, ToolState::Denied { reason } if reason.contains("same call")),
        "{states:?}"
    );
    let notes = events(&run.journal, run.session.id());
    assert!(
        notes.iter().any(
            |event| matches!(&event.body, EventBody::NoteAdded(note) if note.topic == NoteTopic::ReadLoop)
        )
    );
}

#[test]
fn wrong_calls_are_answered_and_the_turn_goes_on() {
    let script = r#"
        [[step]]
        calls = [
            { tool = "fly", input = {} },
            { tool = "read", input = { pth = "a.txt" } },
            { tool = "read", arguments = '{"path": "a' },
            { tool = "read", input = { path = "nowhere" } },
            { tool = "read", input = { path = "a.txt", limit = "1" } },
        ]
        [[step]]
        text = "I see."
    "#;
    let run = turn(script, PermissionGate::answering_yes(None), TurnBudget::default());
    assert_eq!(run.outcome, TurnOutcome::EndTurn);
    let messages: Vec<String> =
        states(&run.session).iter().map(|(_, state)| state.for_model().text.into_owned()).collect();
    assert!(messages[0].contains("There are: read, write"), "{messages:?}");
    assert!(messages[1].contains("path"), "{messages:?}");
    assert!(messages[2].contains("JSON"), "{messages:?}");
    assert!(messages[3].contains("There is no file"), "{messages:?}");
    assert!(messages[4].contains("old"), "a number in quotes is one: {messages:?}");
}

#[test]
fn the_next_model_takes_over() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Arc::new(MemoryJournal::default());
    let house = house(&journal, folder.path(), tools());
    let script = |name: &str, text: &str| ModelTarget::script(name, ModelScript::parse(text).unwrap());
    let targets = vec![
        script("script:broken", "[[step]]\nfail = { status = 529 }\nrepeat = true"),
        script("script:whole", "[[step]]\ntext = 'Here I am.'"),
    ];
    let model = model_of(targets, &house);
    let mut session = Session::create(house.services, house.spec, model).unwrap();
    let outcome = run(session.submit(said("hello"), &CancellationToken::new())).unwrap();
    assert_eq!(outcome, TurnOutcome::EndTurn);
    assert_well_formed(&session, &journal, &tools());
    let events = events(&journal, session.id());
    let count = |kind: &str| events.iter().filter(|event| event.body.kind() == kind).count();
    assert_eq!((count("retry_scheduled"), count("model_switched"), count("step_started")), (2, 1, 2));
    assert_eq!(session.state(|state| state.history.for_model().len()), 2);
}

#[test]
fn a_model_that_fails_ends_the_turn_with_a_reason() {
    let run = turn(
        "[[step]]\nfail = { status = 401, message = 'bad key' }",
        PermissionGate::answering_yes(None),
        TurnBudget::default(),
    );
    assert_eq!(run.outcome, TurnOutcome::Error);
    let events = events(&run.journal, run.session.id());
    let raised = events.iter().find_map(|event| match &event.body {
        EventBody::ErrorRaised(error) => Some(error.why.clone()),
        _ => None,
    });
    assert!(raised.unwrap().contains("bad key"));
}

/// A server that answers each request with the next of some bodies.
fn serve(bodies: Vec<String>) -> String {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for body in bodies {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            // Requests are small, and sent at once; this is the end of each.
            while !request.ends_with(b"}") {
                let mut piece = [0; 4_096];
                match stream.read(&mut piece).unwrap() {
                    0 => break,
                    count => request.extend_from_slice(piece.get(..count).unwrap()),
                }
            }
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            // Whoever has heard enough hangs up.
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
        }
    });
    url
}

/// An answer with one block that comes in many pieces.
fn answer_in_pieces(block: &serde_json::Value, piece: &serde_json::Value, count: usize) -> String {
    use serde_json::json;
    let event = |event: serde_json::Value| format!("data: {event}\n\n");
    let start = event(json!({"type": "content_block_start", "index": 0, "content_block": block}));
    let piece = event(json!({"type": "content_block_delta", "index": 0, "delta": piece}));
    let end = [
        event(json!({"type": "content_block_stop", "index": 0})),
        event(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})),
        event(json!({"type": "message_stop"})),
    ];
    start + &piece.repeat(count) + &end.concat()
}

/// A whole answer is one event of the journal, which takes 16 MB at most.
#[test]
fn an_answer_that_is_too_large_to_keep_ends_the_turn_and_not_the_session() {
    use serde_json::json;
    const PIECE: usize = 64 << 10;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let text = json!({"type": "text", "text": ""});
    let small = answer_in_pieces(&text, &json!({"type": "text_delta", "text": "Here I am."}), 1);
    // No larger than others, but nested as deeply as arguments may be.
    let deep = (0..98).fold(json!(1), |inner, _| json!({"a": inner}));
    let deep = json!({"type": "tool_use", "id": "c1", "name": "write", "input": deep});
    for (block, piece) in [
        (&deep, json!({"type": "text_delta", "text": ""})),
        (&text, json!({"type": "text_delta", "text": "x".repeat(PIECE)})),
        // Little text, but much as JSON.
        (&text, json!({"type": "text_delta", "text": "\u{1}".repeat(PIECE / 6)})),
        (
            &json!({"type": "thinking", "thinking": ""}),
            json!({"type": "thinking_delta", "thinking": "x".repeat(PIECE)}),
        ),
        (
            &json!({"type": "tool_use", "id": "c1", "name": "write"}),
            json!({"type": "input_json_delta", "partial_json": "x".repeat(PIECE)}),
        ),
    ] {
        let url = serve(vec![answer_in_pieces(block, &piece, (17 << 20) / PIECE), small.clone()]);
        let wish = ProviderOverrides {
            wire: Some(WireProtocol::Messages),
            base_url: Some(url),
            key_env: None,
            auth: Some(KeyPlacement::None),
            headers: Vec::new(),
        };
        let wishes =
            ModelPreferences { providers: [("test".to_owned(), wish)].into(), ..ModelPreferences::default() };
        let router = ModelRouter::new(wishes, ModelCatalogue::built_in(), &|_| None, &|_| None);
        let folder = tempfile::tempdir().unwrap();
        let journal = Arc::new(MemoryJournal::default());
        let house = house(&journal, folder.path(), tools());
        let model = model_of(vec![router.find("test/model").unwrap()], &house);
        let mut session = Session::create(house.services, house.spec, model).unwrap();
        let outcome = runtime.block_on(session.submit(said("go"), &CancellationToken::new())).unwrap();
        assert_eq!(outcome, TurnOutcome::Error, "{block}");
        let raised = events(&journal, session.id()).into_iter().find_map(|event| match event.body {
            EventBody::ErrorRaised(error) => Some(error.why),
            _ => None,
        });
        let words = if *block == deep { "can't be kept" } else { "too large" };
        assert!(raised.as_deref().unwrap().contains(words), "{block}: {raised:?}");
        let outcome = runtime.block_on(session.submit(said("and now?"), &CancellationToken::new())).unwrap();
        assert_eq!(outcome, TurnOutcome::EndTurn, "{block}");
        assert_well_formed(&session, &journal, &tools());
    }
}

#[test]
fn a_front_that_does_not_listen_misses_nothing_durable() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Arc::new(MemoryJournal::default());
    let text = "word ".repeat(10_000);
    let script = format!("[[step]]\ntext = {text:?}\npiece = 4");
    let mut session = session(&script, house(&journal, folder.path(), tools()));
    let mut feed = session.feed();
    let heard = run(async {
        session.submit(said("talk"), &CancellationToken::new()).await.unwrap();
        let mut heard = Vec::new();
        while let Ok(event) = tokio::time::timeout(Duration::from_secs(1), feed.next()).await {
            let event = event.unwrap();
            if event.body.persistence() == Persistence::Durable {
                heard.push(event.seq);
            }
        }
        heard
    });
    let durable: Vec<Seq> = events(&journal, session.id()).iter().map(|event| event.seq).collect();
    assert!(durable.len() > 100);
    assert_eq!(heard, durable, "also what was told before it listened");
}

/// Refuses one tool, and gives another one a different input.
struct Meddler;

impl SessionHooks for Meddler {
    fn before_call<'a>(&'a self, call: HookedCall<'a>) -> BoxFuture<'a, CallIntervention> {
        let intervention = match call.tool {
            "read" if call.input["path"] == "secret.txt" => {
                CallIntervention::Refuse("not this one".to_owned())
            }
            "read" => CallIntervention::ReplaceInput(serde_json::json!({ "path": "b.txt" })),
            _ => CallIntervention::None,
        };
        Box::pin(std::future::ready(intervention))
    }
}

#[test]
fn a_hook_can_replace_an_input_or_refuse_a_call_and_that_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.txt"), "of a\n").unwrap();
    fs::write(folder.path().join("b.txt"), "of b\n").unwrap();
    let journal = Arc::new(MemoryJournal::default());
    let script = "[[step]]\ncalls = [{ tool = 'read', input = { path = 'a.txt' } }, \
                  { tool = 'read', input = { path = 'secret.txt' } }]\n[[step]]\ntext = 'Done.'";
    let mut house = house(&journal, folder.path(), tools());
    house.services.hooks = Arc::new(Meddler);
    let mut session = session(script, house);
    run(session.submit(said("go"), &CancellationToken::new())).unwrap();
    let states = states(&session);
    let ToolState::Completed { output } = &states[0].1 else { panic!("{states:?}") };
    assert!(output.text.contains("of b") && !output.text.contains("of a"), "{}", output.text);
    assert_eq!(states[1].1, ToolState::Denied { reason: "not this one".to_owned() });
    let replaced = events(&journal, session.id()).into_iter().find_map(|event| match event.body {
        EventBody::ToolInputReplaced(replaced) => Some(replaced.input),
        _ => None,
    });
    assert_eq!(replaced, Some(serde_json::json!({ "path": "b.txt" })));
    assert_well_formed(&session, &journal, &tools());
}

#[test]
fn new_tools_are_told_to_the_model_and_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Arc::new(MemoryJournal::default());
    let script = "[[step]]\ntext = 'One.'\nrepeat = true";
    let mut session = session(script, house(&journal, folder.path(), tools()[..1].to_vec()));
    run(session.submit(said("go"), &CancellationToken::new())).unwrap();
    session.set_tools(tools(), "a server was added").unwrap();
    run(session.submit(said("again"), &CancellationToken::new())).unwrap();
    let events = events(&journal, session.id());
    let refreshed =
        events.iter().position(|event| matches!(event.body, EventBody::ToolsRefreshed(_))).unwrap();
    assert!(matches!(&events[refreshed + 1].body, EventBody::DialogueBegan(_)));
    assert_well_formed(&session, &journal, &tools());
}
