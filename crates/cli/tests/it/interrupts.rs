//! A turn with real commands, stopped at any moment, leaves nothing behind.

use std::fs;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use helve_agent::{ModelSource, PermissionGate, Services, Session, SessionModel, SessionSpec};
use helve_journal::MemoryJournal;
use helve_models::script::ModelScript;
use helve_models::{ModelClient, ModelTarget, RequestTimeouts, RetryStrategy};
use helve_protocol::{Clock, IdKind, IdSource, MessagePart, ModelName, TextPart, Timestamp, TurnOutcome};
use helve_tools::{BackgroundJobs, CommandSettings, OutsidePrograms, ReadTool, ShellTool, Tool};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// A command with a child, a daemon in a session of its own, and a double fork, none of which listens to SIGTERM.
const SCRIPT: &str = r#"
    [[step]]
    text = "I start some."
    calls = [
        { tool = "read", input = { path = "." } },
        { tool = "shell", input = { command = '''
            trap "" TERM
            sleep 600 &
            setsid sleep 600 &
            (sleep 600 &)
            echo started; sleep 0.05; echo done''' } },
    ]
    [[step]]
    text = "Done."
"#;

struct Drawn(std::sync::atomic::AtomicU64);

impl IdSource for Drawn {
    fn draw(&self, _: IdKind) -> Uuid {
        Uuid::from_u128(self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst).into())
    }
}

/// No other model is there.
struct NoModels;

impl ModelSource for NoModels {
    fn by_name(&self, _: &ModelName) -> Result<ModelTarget, String> {
        Err("there is no other".to_owned())
    }
}

impl Clock for Drawn {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst))
    }
}

/// How many processes carry the mark in their environment.
fn marked(mark: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let environments = processes.filter_map(|process| fs::read(process.path().join("environ")).ok());
    environments
        .filter(|environment| environment.windows(mark.len()).any(|part| part == mark.as_bytes()))
        .count()
}

fn turn(mark: &str, polls: u32) -> (TurnOutcome, bool) {
    let folder = tempfile::tempdir().unwrap();
    let keeper = env!("CARGO_BIN_EXE_helve").into();
    let (name, value) = mark.split_once('=').unwrap();
    let env = vec![("PATH".into(), "/usr/bin:/bin".into()), (name.into(), value.into())];
    let commands = CommandSettings {
        withheld: Vec::new(),
        keeper,
        program: "sh".into(),
        startup: None,
        env,
        processes: 2_000,
        temporary: folder.path().to_owned(),
        memory: None,
        fence: None,
        outside: OutsidePrograms::default(),
    };
    let shell = ShellTool::new(commands, Arc::new(BackgroundJobs::default()));
    let tools: Vec<Arc<dyn Tool>> = vec![Arc::new(ReadTool::default()), Arc::new(shell)];
    let drawn = Arc::new(Drawn(1.into()));
    let services = Services {
        journal: Arc::new(MemoryJournal::default()),
        clock: drawn.clone(),
        ids: drawn.clone(),
        models: Arc::new(NoModels),
        tools: Arc::new(move |_: &SessionSpec| tools.clone()),
        gate: PermissionGate::answering_yes(None),
        workspaces: Arc::default(),
        hooks: Services::no_hooks(),
        version: "test".to_owned(),
    };
    let spec = SessionSpec { root: folder.path().to_owned(), ..SessionSpec::default() };
    let client = ModelClient::new(
        drawn,
        Box::new(|| Duration::ZERO),
        RetryStrategy::Short,
        RequestTimeouts::default(),
    );
    let target = ModelTarget::script("script:test", ModelScript::parse(SCRIPT).unwrap());
    let client = Arc::new(client);
    let model = SessionModel { client, target, fallbacks: Vec::new(), effort: None, cache_key: None };
    let mut session = Session::create(services, spec, model).unwrap();
    let stop = CancellationToken::new();
    let mut polled = 0;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let outcome = runtime.block_on(async {
        let mut turn = pin!(session.submit(vec![MessagePart::Text(TextPart::said("go"))], &stop));
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
    let calls = session.state(|state| state.history.unfinished_calls());
    assert_eq!(calls, [], "after {polls} polls");
    (outcome, polled < polls)
}

#[test]
fn a_turn_stopped_at_any_poll_leaves_no_process() {
    let mut cancelled = 0;
    for polls in 1.. {
        let mark = format!("HELVE_TEST_MARK={}-{polls}", std::process::id());
        let (outcome, is_over) = turn(&mark, polls);
        let is_gone = (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            marked(&mark) == 0
        });
        assert!(is_gone, "{} processes live on after {polls} polls", marked(&mark));
        if is_over {
            assert_eq!(outcome, TurnOutcome::EndTurn);
            break;
        }
        cancelled += u32::from(outcome == TurnOutcome::Cancelled);
    }
    assert!(cancelled >= 5, "only {cancelled} turns were stopped on the way");
}
