//! Speaking with a real server over real sockets, whatever goes wrong.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use helve_models::script::ModelScript;
use helve_models::{
    Dialogue, FailureKind, KeyPlacement, ModelCatalogue, ModelClient, ModelPreferences, ModelPrompt,
    ModelRequest, ModelRouter, ModelTarget, ProviderOverrides, RequestFailure, RequestTimeouts,
    RetryStrategy, StreamEvent, ToolSpec, WireProtocol,
};
use helve_protocol::*;
use helve_testkit::{InjectedFault, NoBlobs, ScriptedServer, sample_id};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const WIRES: [WireProtocol; 4] =
    [WireProtocol::Messages, WireProtocol::Chat, WireProtocol::Responses, WireProtocol::Gemini];
const KEY: &str = "sk-test-0123456789";

/// Nothing here takes as long; what does, hangs.
const FAR_TOO_LONG: Duration = Duration::from_secs(60);

/// A clock on which nothing takes any time, so that only tries are counted.
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000)
    }
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(FAR_TOO_LONG, work).await.unwrap() })
}

fn client(patience: RetryStrategy) -> Arc<ModelClient> {
    let timeouts = RequestTimeouts {
        connect: Duration::from_secs(5),
        first_byte: Duration::from_millis(700),
        idle: Duration::from_millis(700),
        keep_alive: Duration::from_millis(700),
    };
    Arc::new(ModelClient::new(Arc::new(Still), Box::new(|| Duration::ZERO), patience, timeouts))
}

/// A model of a server, reached as users reach one that they tell of in their settings.
fn target(url: &str, wire: WireProtocol, auth: KeyPlacement) -> ModelTarget {
    let wish = ProviderOverrides {
        wire: Some(wire),
        base_url: Some(url.to_owned()),
        key_env: Some("TEST_KEY".to_owned()),
        auth: Some(auth),
        headers: Vec::new(),
    };
    let providers = [("test".to_owned(), wish)].into();
    let wishes = ModelPreferences { providers, ..ModelPreferences::default() };
    let key = |name: &str| (name == "TEST_KEY").then(|| KEY.to_owned());
    let catalogue = ModelCatalogue::built_in();
    ModelRouter::new(wishes, catalogue, &key, &|_| None).find("test/model").unwrap()
}

fn prompt() -> ModelPrompt {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let read = ToolSpec { name: "read".to_owned(), description: "Reads a file.".to_owned(), schema };
    ModelPrompt { system: "You are Helve.".to_owned(), tools: vec![read], ..ModelPrompt::default() }
}

fn dialogue(client: &Arc<ModelClient>, target: ModelTarget) -> Dialogue {
    Dialogue::new(client.clone(), target, Vec::new(), prompt())
}

/// Asks a model one thing.
fn asked(target: ModelTarget) -> Result<helve_models::ModelAnswer, RequestFailure> {
    run(async {
        let client = client(RetryStrategy::Short);
        let mut dialogue = dialogue(&client, target);
        let request = dialogue.prepare(&[user(1, "go")], &NoBlobs);
        dialogue.send(&request, &mut |_| {}, &CancellationToken::new()).await
    })
}

fn user(n: u64, text: &str) -> Message {
    let parts = vec![MessagePart::Text(TextPart::said(text))];
    Message { id: sample_id(n), role: MessageRole::User, time: Timestamp::from_millis(n), parts }
}

fn script(text: &str) -> ModelScript {
    ModelScript::parse(text).unwrap()
}

const ANSWER: &str = r#"
    [[step]]
    text = "It says: é☃ and more, so that there is something to cut."
    calls = [{ tool = "read", input = { path = "a.rs" } }]
    usage = { input = 10, output = 5 }
    repeat = true
"#;

fn assert_is_the_answer(answer: &helve_models::ModelAnswer, why: &str) {
    assert_eq!(answer.text(), "It says: é☃ and more, so that there is something to cut.", "{why}");
    let calls: Vec<(&str, &str)> =
        answer.calls().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
    assert_eq!(calls, [("read", r#"{"path":"a.rs"}"#)], "{why}");
    assert_eq!((answer.usage.input, answer.usage.output), (10, 5), "{why}");
    assert_eq!(answer.stop, Some(StopReason::ToolUse), "{why}");
}

/// What a failure must be called, whichever wire it happens on.
fn expected(fault: &InjectedFault) -> &'static [FailureKind] {
    use FailureKind::*;
    match fault {
        InjectedFault::Hang | InjectedFault::HangAfterHeaders | InjectedFault::HangMidStream => &[Timeout],
        InjectedFault::ResetBefore | InjectedFault::ResetMid | InjectedFault::CloseMid => &[Network, Garbled],
        InjectedFault::CutMidEvent
        | InjectedFault::CutMidUtf8
        | InjectedFault::CutBetweenEvents
        | InjectedFault::EmptyBody => &[CutOff],
        InjectedFault::Garbage | InjectedFault::GarbageJson => &[Garbled, CutOff],
        InjectedFault::Status { code: 401 | 403, .. } => &[Auth],
        InjectedFault::Status { code: 429, .. } => &[RateLimited],
        InjectedFault::Status { code: 500, .. } => &[Server],
        InjectedFault::Status { code: 503 | 529, .. } => &[Overloaded],
        InjectedFault::Status { .. } | InjectedFault::Redirect => &[BadRequest, NotFound],
        InjectedFault::WrongContentType => &[NotAModel],
        InjectedFault::HugeEvent(_) => &[TooLarge, CutOff, Garbled],
        InjectedFault::HugeHeaders => &[Network],
        InjectedFault::SlowDrip | InjectedFault::Gzip => &[],
    }
}

/// One fault, once and then always: the client must get over the first if it is of a kind that passes, and must name
/// the second; and never is half an answer taken for a whole one.
async fn meet(name: &str, fault: InjectedFault, wire: WireProtocol) {
    let why = format!("{name} on {wire:?}");
    let server = ScriptedServer::play(script(ANSWER)).unwrap();
    let client = client(RetryStrategy::Short);
    let stop = CancellationToken::new();
    let mut dialogue = dialogue(&client, target(&server.url("/v1"), wire, KeyPlacement::Bearer));
    let request = dialogue.prepare(&[user(1, "go")], &NoBlobs);

    server.fault(fault.clone());
    let once = dialogue.send(&request, &mut |_| {}, &stop).await;
    match &once {
        Ok(answer) => assert_is_the_answer(answer, &why),
        Err(failure) => {
            assert!(expected(&fault).contains(&failure.kind), "{why}: {failure:?}");
            assert!(!failure.kind.is_retryable(), "{why}: it gave up on {failure:?}");
        }
    }
    server.clear_faults();
    server.always(fault.clone());
    let always = dialogue.send(&request, &mut |_| {}, &stop).await;
    match &always {
        Ok(answer) => {
            assert!(fault.leaves_answer_whole(), "{why}: taken for an answer");
            assert_is_the_answer(answer, &why);
        }
        Err(failure) => {
            assert!(!fault.leaves_answer_whole(), "{why}: {failure:?}");
            assert!(expected(&fault).contains(&failure.kind), "{why}: {failure:?}");
        }
    }
    assert_eq!(server.redirects_followed(), 0, "{why}: the redirect was followed");
    let tries = server.requests().len();
    assert!((2..=6).contains(&tries), "{why}: {tries} tries");
}

#[test]
fn every_fault_on_every_wire_is_got_over_or_named() {
    run(async {
        let mut meetings = tokio::task::JoinSet::new();
        for wire in WIRES {
            for (name, fault) in InjectedFault::all() {
                meetings.spawn(meet(name, fault, wire));
            }
        }
        meetings.join_all().await;
    });
}

/// The message that an answer becomes once its calls have results.
fn answered(n: u64, answer: &helve_models::ModelAnswer, model: &ModelName) -> Message {
    let mut drawn = n * 1_000;
    let mut parts = vec![MessagePart::StepStart { step: sample_id(n), model: model.clone() }];
    parts.extend(answer.parts(|| {
        drawn += 1;
        sample_id(drawn)
    }));
    for part in &mut parts {
        if let MessagePart::Tool(tool) = part {
            let output = ToolOutput { text: format!("line {n}\n").repeat(20), ..ToolOutput::default() };
            tool.state = ToolState::Completed { output };
        }
    }
    Message { id: sample_id(n), role: MessageRole::Assistant, time: Timestamp::from_millis(n), parts }
}

const LONG_SESSION: &str = r#"
    [[step]]
    say = [
        { thinking = "What does it say?" },
        { text = "I read it." },
        { call = { tool = "read", input = { path = "a.rs" } } },
        { call = { tool = "read", input = { path = "b.rs" } } },
    ]
    repeat = true
"#;

const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;
const STEPS: u32 = 200;

#[test]
fn over_a_long_session_requests_grow_only_at_their_end() {
    for wire in WIRES {
        let server = ScriptedServer::play(script(LONG_SESSION)).unwrap();
        run(async {
            let client = client(RetryStrategy::Short);
            let mut dialogue = dialogue(&client, target(&server.url("/v1"), wire, KeyPlacement::Bearer));
            let mut messages = vec![user(1, "go")];
            let mut segments: Vec<bytes::Bytes> = Vec::new();
            for n in 0..u64::from(STEPS) {
                let request = dialogue.prepare(&messages, &NoBlobs);
                // What goes on record is enough to write the same bytes again.
                segments.truncate(request.kept);
                segments.extend(request.segments.iter().cloned());
                let pieces: Vec<&[u8]> = segments.iter().map(|segment| &segment[..]).collect();
                assert_eq!(
                    ModelRequest::assemble_body(&pieces, &request.marks),
                    request.body,
                    "{wire:?} step {n}"
                );
                assert_eq!(request.broken, None, "{wire:?} step {n}");
                assert_eq!(request.kept > 0, n > 0, "{wire:?} step {n}");
                let answer = dialogue.send(&request, &mut |_| {}, &CancellationToken::new()).await.unwrap();
                assert_eq!(answer.calls().count(), 2);
                messages.push(answered(10 + n, &answer, &dialogue.target().name));
                if n % 50 == 49 {
                    messages.push(user(100_000 + n, "and then?"));
                }
            }
        });
        let bodies: Vec<String> = server
            .requests()
            .iter()
            .map(|request| String::from_utf8(request.body.clone()).unwrap())
            .collect();
        assert_eq!(u32::try_from(bodies.len()), Ok(STEPS), "{wire:?}");
        for (n, pair) in bodies.windows(2).enumerate() {
            let [before, after] = [&pair[0], &pair[1]].map(|body| body.replace(MARK, ""));
            let kept = before.strip_suffix("]}").unwrap();
            assert!(after.starts_with(kept), "{wire:?} step {n}");
            assert_eq!(wire == WireProtocol::Messages, pair[1].contains(MARK));
            if wire == WireProtocol::Messages {
                assert_cached(&pair[0], &pair[1], kept);
            }
        }
    }
}

/// Two requests in a row on the wire with cache marks: the second marks the place where the first ended, which marked
/// it too. So the second reads everything up to there from the cache, and writes what is new.
fn assert_cached(before: &str, after: &str, kept: &str) {
    let marked = |body: &str| -> Vec<usize> {
        let places = body.match_indices(MARK).enumerate();
        places.map(|(earlier, (at, _))| at - earlier * MARK.len()).collect()
    };
    let (first, second) = (marked(before), marked(after));
    assert!(second.len() <= 4);
    let end_of_first = *first.last().unwrap();
    assert!(kept.len() - end_of_first <= 3, "the last block is marked");
    assert!(second.contains(&end_of_first), "where the first ended, the second is marked too");
}

#[test]
fn an_interrupt_closes_the_connection_at_once() {
    for wire in WIRES {
        let server = ScriptedServer::play(script(ANSWER)).unwrap();
        let gate = server.gate();
        gate.open(2);
        run(async {
            let client = client(RetryStrategy::Short);
            let mut dialogue = dialogue(&client, target(&server.url("/v1"), wire, KeyPlacement::Bearer));
            let request = dialogue.prepare(&[user(1, "go")], &NoBlobs);
            let stop = CancellationToken::new();
            let stopper = stop.clone();
            let mut hear = |heard: StreamEvent<'_>| {
                if let StreamEvent::Started = heard {
                    stopper.cancel();
                }
            };
            let failure = dialogue.send(&request, &mut hear, &stop).await.unwrap_err();
            assert_eq!(failure.kind, FailureKind::Interrupted, "{wire:?}");
        });
        assert!(server.wait_closed(0, FAR_TOO_LONG), "{wire:?}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn an_interrupt_ends_a_wait() {
    let server = ScriptedServer::play(script(ANSWER)).unwrap();
    let headers = vec![("retry-after".to_owned(), "9".to_owned())];
    server.fault(InjectedFault::Status { code: 503, headers, body: None });
    run(async {
        let client = client(RetryStrategy::Short);
        let mut dialogue =
            dialogue(&client, target(&server.url("/v1"), WireProtocol::Chat, KeyPlacement::Bearer));
        let request = dialogue.prepare(&[user(1, "go")], &NoBlobs);
        let stop = CancellationToken::new();
        let stopper = stop.clone();
        let waits = Mutex::new(Vec::new());
        let mut hear = |heard: StreamEvent<'_>| {
            if let StreamEvent::Retrying { attempt, delay, failure } = heard {
                waits.lock().unwrap().push((attempt, delay, failure.kind));
                stopper.cancel();
            }
        };
        let failure = dialogue.send(&request, &mut hear, &stop).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Interrupted);
        assert_eq!(*waits.lock().unwrap(), [(1, Duration::from_secs(9), FailureKind::Overloaded)]);
    });
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn connections_are_used_again() {
    let server = ScriptedServer::play(script(ANSWER)).unwrap();
    run(async {
        let client = client(RetryStrategy::Short);
        for wire in WIRES {
            let mut dialogue = dialogue(&client, target(&server.url("/v1"), wire, KeyPlacement::Bearer));
            let request = dialogue.prepare(&[user(1, "go")], &NoBlobs);
            dialogue.send(&request, &mut |_| {}, &CancellationToken::new()).await.unwrap();
        }
    });
    let connections: Vec<usize> = server.requests().iter().map(|request| request.connection).collect();
    assert_eq!(connections, [connections[0]; 4]);
}

#[test]
fn keys_go_to_the_server_and_nowhere_else() {
    for (auth, shown) in [
        (KeyPlacement::Bearer, "authorization"),
        (KeyPlacement::XApiKey, "x-api-key"),
        (KeyPlacement::Query, ""),
        (KeyPlacement::None, ""),
    ] {
        let server = ScriptedServer::play(script(ANSWER)).unwrap();
        let body =
            json!({"error": {"message": format!("Incorrect key: {KEY}. Bearer {KEY}"), "type": "auth"}});
        server.fault(InjectedFault::Status { code: 401, headers: vec![], body: Some(body.to_string()) });
        let target = target(&server.url("/v1"), WireProtocol::Chat, auth);
        let failure = asked(target.clone()).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Auth);
        assert!(failure.text.contains("Incorrect key"), "{failure}");
        if auth != KeyPlacement::None {
            assert!(!format!("{failure} {failure:?}").contains(KEY), "{failure:?}");
        }
        assert!(!format!("{target:?}").contains(KEY));
        let request = &server.requests()[0];
        let in_header = request.headers.iter().find(|(_, value)| value.contains(KEY));
        assert_eq!(in_header.map_or("", |(name, _)| name), shown);
        assert_eq!(request.query.contains(KEY), matches!(auth, KeyPlacement::Query), "{}", request.query);
    }
    // An address that can't be reached does not show the key either.
    let unreachable = target("http://127.0.0.1:9/v1", WireProtocol::Chat, KeyPlacement::Query);
    let failure = asked(unreachable).unwrap_err();
    assert_eq!(failure.kind, FailureKind::NotRunning);
    assert!(!format!("{failure:?}").contains(KEY) && failure.text.contains("127.0.0.1:9"), "{failure:?}");
}

#[test]
fn the_next_model_takes_over_and_stays() {
    let (broken, whole) =
        (ScriptedServer::play(script(ANSWER)).unwrap(), ScriptedServer::play(script(ANSWER)).unwrap());
    broken.always(InjectedFault::Status { code: 529, headers: vec![], body: None });
    run(async {
        let client = client(RetryStrategy::Short);
        let main = target(&broken.url("/v1"), WireProtocol::Messages, KeyPlacement::Bearer);
        let mut next = target(&whole.url("/v1"), WireProtocol::Responses, KeyPlacement::Bearer);
        next.name = ModelName::new("test/other");
        let mut dialogue = Dialogue::new(client, main, vec![next], prompt());
        let messages = [user(1, "go")];
        let stop = CancellationToken::new();
        let request = dialogue.prepare(&messages, &NoBlobs);
        let failure = dialogue.send(&request, &mut |_| {}, &stop).await.unwrap_err();
        let switch = dialogue.fall_back(&failure).unwrap();
        assert_eq!(
            (switch.from.to_string(), switch.to.to_string()),
            ("test/model".to_owned(), "test/other".to_owned())
        );
        assert!(switch.reason.to_string().contains("529"), "{}", switch.reason);
        let request = dialogue.prepare(&messages, &NoBlobs);
        assert_eq!(request.broken, None, "the switch explains it");
        assert_is_the_answer(&dialogue.send(&request, &mut |_| {}, &stop).await.unwrap(), "the other model");
        assert_eq!(dialogue.target().name.to_string(), "test/other");
        assert_eq!(dialogue.fall_back(&failure), None, "there is no further one");
    });
    assert_eq!((broken.requests().len(), whole.requests().len()), (3, 1));
}

#[test]
fn a_mistake_of_ours_is_not_handed_to_another_model() {
    for code in [400, 401, 403] {
        let server = ScriptedServer::play(script(ANSWER)).unwrap();
        server.always(InjectedFault::Status { code, headers: vec![], body: None });
        run(async {
            let client = client(RetryStrategy::Short);
            let main = target(&server.url("/v1"), WireProtocol::Chat, KeyPlacement::Bearer);
            let mut dialogue = Dialogue::new(client, main.clone(), vec![main], prompt());
            let request = dialogue.prepare(&[user(1, "go")], &NoBlobs);
            let failure = dialogue.send(&request, &mut |_| {}, &CancellationToken::new()).await.unwrap_err();
            assert_eq!(dialogue.fall_back(&failure), None);
        });
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn what_changed_without_a_word_is_told() {
    for wire in WIRES {
        let client = client(RetryStrategy::Short);
        let mut dialogue = dialogue(&client, target("http://127.0.0.1:9/v1", wire, KeyPlacement::Bearer));
        let prepare = |dialogue: &mut Dialogue, messages: &[Message]| -> ModelRequest {
            dialogue.prepare(messages, &NoBlobs)
        };
        prepare(&mut dialogue, &[user(1, "one"), user(2, "two")]);
        let broken =
            prepare(&mut dialogue, &[user(1, "one"), user(3, "three"), user(4, "four")]).broken.unwrap();
        assert!(broken.path.contains('1') || broken.path.contains('2'), "{wire:?}: {broken}");
        assert!(broken.tokens > 0 || broken.path.ends_with("text"), "{wire:?}: {broken}");
        // Said beforehand, it is no surprise.
        dialogue.renew();
        assert_eq!(prepare(&mut dialogue, &[user(9, "nine")]).broken, None);
    }
}

#[test]
fn calls_that_are_only_said_are_calls() {
    let said = r#"
        [[step]]
        text = '''<think>Which file?</think>I look.
```json
{"name": "read", "arguments": {"path": "a.rs"}}
```'''
    "#;
    for wire in WIRES {
        let server = ScriptedServer::play(script(said)).unwrap();
        let answer = asked(target(&server.url("/v1"), wire, KeyPlacement::Bearer)).unwrap();
        assert_eq!(
            (answer.thinking().as_str(), answer.text().as_str()),
            ("Which file?", "I look."),
            "{wire:?}"
        );
        assert_eq!(answer.calls().next().unwrap().arguments, r#"{"path":"a.rs"}"#, "{wire:?}");
        assert_eq!(answer.stop, Some(StopReason::ToolUse));
    }
}

#[test]
fn arguments_that_cannot_be_read_come_back_as_a_failed_call() {
    let cut = r#"
        [[step]]
        calls = [
            { tool = "read", arguments = '{"path": "a' },
            { tool = "read", arguments = "{'path': 'b.rs',}" },
        ]
    "#;
    let server = ScriptedServer::play(script(cut)).unwrap();
    let answer = asked(target(&server.url("/v1"), WireProtocol::Chat, KeyPlacement::Bearer)).unwrap();
    let mut n = 0;
    let parts = answer.parts(|| {
        n += 1;
        sample_id(n)
    });
    let [MessagePart::Tool(broken), MessagePart::Tool(mended)] = &parts[..] else { panic!("{parts:?}") };
    let ToolState::Error { message } = &broken.state else { panic!("{broken:?}") };
    assert!(message.contains("column") && message.contains("JSON"), "{message}");
    assert_eq!((&mended.input, &mended.state), (&json!({"path": "b.rs"}), &ToolState::Pending));
}

/// A clock that goes with the time of the runtime, which tests can stop.
struct Virtual(tokio::time::Instant);

impl Clock for Virtual {
    fn now(&self) -> Timestamp {
        let passed = tokio::time::Instant::now().duration_since(self.0).as_millis();
        Timestamp::from_millis(1_800_000_000_000 + u64::try_from(passed).unwrap())
    }
}

/// Which try failed, how long the wait is in milliseconds, and why.
type Waited = (u32, u128, String);

/// What is heard of a script whose steps fail, in a time that does not really pass.
fn waits_of(text: &str) -> (Vec<Waited>, Result<String, RequestFailure>) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let clock = Arc::new(Virtual(tokio::time::Instant::now()));
        let jitter = Box::new(|| Duration::from_millis(7));
        let client =
            Arc::new(ModelClient::new(clock, jitter, RetryStrategy::default(), RequestTimeouts::default()));
        let mut dialogue =
            Dialogue::new(client, ModelTarget::script("script:x", script(text)), vec![], prompt());
        let request = dialogue.prepare(&[user(1, "go")], &NoBlobs);
        let mut waits = Vec::new();
        let mut hear = |heard: StreamEvent<'_>| {
            if let StreamEvent::Retrying { attempt, delay, failure } = heard {
                waits.push((attempt, delay.as_millis(), failure.to_string()));
            }
        };
        let answer = dialogue.send(&request, &mut hear, &CancellationToken::new()).await;
        (waits, answer.map(|answer| answer.text()))
    })
}

#[test]
fn a_script_fails_and_is_tried_again_like_any_server() {
    let (waits, answer) = waits_of(
        r#"
        [[step]]
        fail = { status = 500, message = "broken" }
        [[step]]
        fail = { status = 529, headers = { retry-after = "120" } }
        [[step]]
        text = "half of an answ"
        cut = true
        [[step]]
        fail = { status = 429, message = "slow down" }
        [[step]]
        text = "half"
        error = { kind = "overloaded_error", message = "too much" }
        [[step]]
        text = "whole"
        delay = "59m"
        "#,
    );
    let told: Vec<(u32, u128)> = waits.iter().map(|(attempt, delay, _)| (*attempt, *delay)).collect();
    assert_eq!(told, [(1, 507), (2, 120_000), (3, 1_007), (4, 10_000), (5, 507)], "{waits:?}");
    assert_eq!(answer, Ok("whole".to_owned()), "nothing of the halves is left");
}

#[test]
fn a_reset_that_is_too_far_away_is_named() {
    let (waits, answer) = waits_of("[[step]]\nfail = { status = 429, headers = { retry-after = '3600' } }");
    let failure = answer.unwrap_err();
    assert_eq!(waits, []);
    assert_eq!(failure.resets, Some(Timestamp::from_millis(1_800_000_000_000 + 3_600_000)));
}

#[test]
fn a_script_without_a_fitting_step_says_so() {
    let (_, answer) = waits_of("[[step]]\nwhen = { asked = 'something else' }\ntext = 'x'");
    let failure = answer.unwrap_err();
    assert_eq!(failure.kind, FailureKind::NoStep);
    assert!(failure.text.contains("go"), "{failure}");
}

#[test]
fn a_server_tells_which_models_it_has() {
    let server = ScriptedServer::play(script(ANSWER)).unwrap();
    server.list_models(&["one", "two"]);
    for wire in [WireProtocol::Chat, WireProtocol::Messages, WireProtocol::Responses] {
        let target = target(&server.url("/v1"), wire, KeyPlacement::Bearer);
        let helve_models::TargetRoute::Provider(provider) = &target.via else { panic!() };
        let models = run(client(RetryStrategy::Short).models_of(provider, Duration::from_secs(5))).unwrap();
        assert_eq!(models, ["one", "two"]);
    }
}

#[test]
fn requests_say_what_is_asked() {
    let server = ScriptedServer::play(script(ANSWER)).unwrap();
    for wire in WIRES {
        asked(target(&server.url("/v1"), wire, KeyPlacement::Bearer)).unwrap();
    }
    let requests = server.requests();
    let paths: Vec<&str> = requests.iter().map(|request| request.path.as_str()).collect();
    assert_eq!(
        paths,
        ["/v1/messages", "/v1/chat/completions", "/v1/responses", "/v1/models/model:streamGenerateContent"]
    );
    for request in &requests {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        assert!(body.to_string().contains("You are Helve."));
        let header =
            |name: &str| request.headers.iter().find(|(of, _)| of == name).map(|(_, value)| value.as_str());
        assert_eq!(header("content-type"), Some("application/json"));
        assert!(header("user-agent").unwrap().starts_with("helve/"));
    }
}

/// A server that sends nothing but signs of life, for ever.
fn chatty(sign: &'static str) -> std::net::SocketAddr {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        // Three tries at most; then nobody comes any more.
        for stream in listener.incoming().take(3) {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 65_536]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n");
            while stream.write_all(sign.as_bytes()).is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    });
    address
}

#[test]
fn signs_of_life_alone_do_not_last_for_ever() {
    for sign in [
        ": ping\n\n",
        "event: ping\ndata: {\"type\": \"ping\"}\n\n",
        "data: {\"type\": \"message_delta\", \"delta\": {}, \"usage\": {\"output_tokens\": 1}}\n\n",
        "x",
    ] {
        let address = chatty(sign);
        let failure =
            asked(target(&format!("http://{address}/v1"), WireProtocol::Messages, KeyPlacement::Bearer))
                .unwrap_err();
        assert_eq!(failure.kind, FailureKind::Timeout, "{sign:?}: {failure}");
    }
}

#[test]
fn a_call_that_the_limit_may_have_cut_is_not_run() {
    let cut = r#"
        [[step]]
        calls = [{ tool = "read", input = { path = "a" } }, { tool = "read", input = { path = "b" } }]
        stop = "max_tokens"
    "#;
    for wire in WIRES {
        let server = ScriptedServer::play(script(cut)).unwrap();
        let answer = asked(target(&server.url("/v1"), wire, KeyPlacement::Bearer)).unwrap();
        let mut n = 0;
        let parts = answer.parts(|| {
            n += 1;
            sample_id(n)
        });
        let states: Vec<&str> = parts
            .iter()
            .filter_map(|part| match part {
                MessagePart::Tool(tool) => Some(tool.state.name()),
                _ => None,
            })
            .collect();
        assert_eq!(states, ["pending", "error"], "{wire:?}");
    }
}
