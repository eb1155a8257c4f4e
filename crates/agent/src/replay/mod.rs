//! Runs a recorded session again: the same loop, with answers, results, decisions, ids and times from the record, and compares
//! every request that it would send with the one that was sent, byte by byte. Nothing is asked, run or written.

mod tape;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use helve_journal::{Journal, JournalBlobLoader, LogReadEnd};
use helve_models::{
    Dialogue, EncodingProfile, ModelClient, ModelPrompt, ModelTarget, RequestDifference, RequestTimeouts,
    RetryStrategy,
};
use helve_protocol::{
    Clock, EventBody, IdSource, ModelName, ModelSwitchReason, Seq, SessionEvent, SessionId, SessionState,
    TurnLimits, TurnOutcome,
};
use helve_tools::Tool;
use tokio_util::sync::CancellationToken;

use crate::context::base_prompt;
use crate::gate::PermissionGate;
use crate::recorder::{Recorder, SessionError};
use crate::services::{ModelSource, Services};
use crate::session::{Session, SessionParts};
use crate::spec::{SessionSpec, TurnBudget};
use crate::tool_set::ToolSet;
use tape::{ReplayLog, ReplayTape, TapedAnswers, TapedRequest};

/// What a replay found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayReport {
    pub turns: usize,
    /// The requests that were compared.
    pub requests: usize,
    /// Those whose bytes, or the manner in which they were written, were not kept, so that nothing can be said of them.
    pub unkept: usize,
    pub differences: Vec<ReplayMismatch>,
    /// The versions that wrote the record.
    pub versions: Vec<String>,
}

/// Something that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayMismatch {
    /// Counted from 1.
    pub turn: usize,
    /// Counted within the turn, from 1.
    pub step: usize,
    pub what: MismatchKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MismatchKind {
    /// Another request.
    Request(RequestDifference),
    /// More or fewer of them.
    Requests {
        recorded: usize,
        now: usize,
    },
    Outcome {
        recorded: TurnOutcome,
        now: TurnOutcome,
    },
}

/// What a build of the program tells models, without what depends on the machine: that is on record.
pub struct ReplayBuild {
    pub prompt: ModelPrompt,
    tools: ToolSet,
}

impl ReplayBuild {
    /// This build, with these tools of it.
    pub fn current(tools: Vec<Arc<dyn Tool>>) -> ReplayBuild {
        let tools = ToolSet::new(tools);
        ReplayBuild { prompt: base_prompt(&tools), tools }
    }
}

/// Replays a session with what a build tells models.
pub async fn replay_session(
    journal: Arc<dyn Journal>,
    session: SessionId,
    build: ReplayBuild,
) -> Result<ReplayReport, SessionError> {
    let mut events = Vec::new();
    let ending = journal.read(session, Seq::START, &mut |event| {
        events.push(event);
        ControlFlow::Continue(())
    })?;
    let ReplayBuild { prompt, tools } = build;
    let payloads = Arc::new(journal.blob_loader(session)?);
    let sent = TapedRequest::new(payloads.clone());
    let mut player = SessionReplayer {
        journal,
        payloads,
        session,
        prompt,
        tools,
        state: SessionState::default(),
        dialogue: None,
        sent,
        report: ReplayReport::default(),
    };
    player.play(&events).await?;
    if matches!(ending, LogReadEnd::Damaged(_)) {
        // Nobody knows what stood behind the damage.
        player.report.unkept += 1;
    }
    Ok(player.report)
}

struct SessionReplayer {
    journal: Arc<dyn Journal>,
    payloads: Arc<JournalBlobLoader>,
    session: SessionId,
    prompt: ModelPrompt,
    tools: ToolSet,
    /// Where the recorded session stands.
    state: SessionState,
    dialogue: Option<Dialogue>,
    /// What was sent last.
    sent: TapedRequest,
    report: ReplayReport,
}

impl SessionReplayer {
    async fn play(&mut self, events: &[SessionEvent]) -> Result<(), SessionError> {
        let mut rest = events;
        while let Some((event, after)) = rest.split_first() {
            if matches!(event.body, EventBody::TurnStarted(_)) {
                let length = 1 + after.iter().take_while(|later| later.turn == event.turn).count();
                let (turn, after) = rest.split_at(length.min(rest.len()));
                self.turn(turn).await?;
                turn.iter().for_each(|event| self.state.apply(event));
                rest = after;
                continue;
            }
            self.between(event);
            self.state.apply(event);
            rest = after;
        }
        Ok(())
    }

    /// What happens between turns and changes how the model is spoken with.
    fn between(&mut self, event: &SessionEvent) {
        match &event.body {
            EventBody::SessionCreated(created) => self.note_version(&created.helve),
            EventBody::SessionOpened(opened) => {
                self.note_version(&opened.helve);
                self.dialogue = None;
            }
            EventBody::DialogueBegan(began) => {
                let Ok(manner) = serde_json::from_value::<EncodingProfile>(began.manner.clone()) else {
                    self.dialogue = None;
                    return;
                };
                let tape = Arc::new(ReplayTape::default());
                let target = manner.target(began.model.clone(), Box::new(TapedAnswers(tape)));
                match &mut self.dialogue {
                    Some(dialogue) => {
                        dialogue.switch(target, ModelSwitchReason::Chosen);
                        dialogue.set_prompt(manner.prompt(self.prompt.clone()));
                    }
                    None => {
                        let prompt = manner.prompt(self.prompt.clone());
                        self.dialogue = Some(Dialogue::new(idle_client(), target, Vec::new(), prompt));
                    }
                }
            }
            EventBody::Rewound(_) => {
                if let Some(dialogue) = &mut self.dialogue {
                    dialogue.renew();
                }
            }
            _ => {}
        }
    }

    fn note_version(&mut self, version: &str) {
        if self.report.versions.last().map(String::as_str) != Some(version) {
            self.report.versions.push(version.to_owned());
        }
    }

    async fn turn(&mut self, events: &[SessionEvent]) -> Result<(), SessionError> {
        self.report.turns += 1;
        // Nobody told in a way that we know how the model was written to.
        let Some(dialogue) = self.dialogue.take() else {
            self.report.unkept += requests_of(events);
            return Ok(());
        };
        let (task, tape) = ReplayTape::read(events, std::mem::take(&mut self.sent));
        let tape = Arc::new(tape);
        let mut state = self.state.clone();
        state.queue = tape.first_steering.clone();
        let log = ReplayLog {
            session: self.session,
            last: self.state.history.last(),
            payloads: self.payloads.clone(),
        };
        let (clock, ids): (Arc<dyn Clock>, Arc<dyn IdSource>) = (tape.clone(), tape.clone());
        let record = Recorder::new(Box::new(log), state, clock.clone(), ids.clone());
        let _ = tape.record.set(record.clone());
        let offered = dialogue.encoding_profile().tools;
        let tools = self.tools.filtered(|tool| offered.iter().any(|name| name == tool.name()));
        let services = Services {
            journal: self.journal.clone(),
            clock,
            ids,
            models: Arc::new(NoModels),
            tools: Arc::new(|_: &SessionSpec| Vec::new()),
            gate: PermissionGate::with_judge(tape.clone()),
            workspaces: Arc::default(),
            hooks: tape.clone(),
            version: String::new(),
        };
        let parts = SessionParts {
            record,
            dialogue: with_answers(dialogue, events, &tape, &self.prompt),
            spec: SessionSpec { limits: limits_of(events), ..SessionSpec::default() },
            tools,
            watcher: tape.clone(),
            runner: tape.clone(),
        };
        let mut session = Session::from_parts(services, parts);
        let outcome = session.run_turn(task, &CancellationToken::new()).await?;
        self.dialogue = Some(session.dialogue);
        self.sent = tape.sent();
        self.judge(events, &tape, outcome);
        Ok(())
    }

    fn judge(&mut self, events: &[SessionEvent], tape: &ReplayTape, now: TurnOutcome) {
        let recorded = requests_of(events);
        let found = tape.found();
        self.report.requests += found.compared;
        self.report.unkept += found.unkept;
        let turn = self.report.turns;
        for (step, difference) in &found.differences {
            let what = MismatchKind::Request(difference.clone());
            self.report.differences.push(ReplayMismatch { turn, step: *step, what });
        }
        if found.asked != recorded {
            let what = MismatchKind::Requests { recorded, now: found.asked };
            self.report.differences.push(ReplayMismatch { turn, step: found.asked, what });
        }
        let ended = events.iter().find_map(|event| match &event.body {
            EventBody::TurnEnded(ended) => Some(ended.outcome),
            _ => None,
        });
        if let Some(recorded) = ended.filter(|outcome| *outcome != now && !found.ran_out) {
            let what = MismatchKind::Outcome { recorded, now };
            self.report.differences.push(ReplayMismatch { turn, step: found.asked, what });
        }
    }
}

fn requests_of(events: &[SessionEvent]) -> usize {
    events.iter().filter(|event| matches!(event.body, EventBody::StepStarted(_))).count()
}

/// A dialogue whose models, also those that took over in this turn, answer from the tape.
fn with_answers(
    dialogue: Dialogue,
    events: &[SessionEvent],
    tape: &Arc<ReplayTape>,
    prompt: &ModelPrompt,
) -> Dialogue {
    let manner = dialogue.encoding_profile();
    let name = dialogue.target().name.clone();
    let of =
        |name: ModelName, manner: &EncodingProfile| manner.target(name, Box::new(TapedAnswers(tape.clone())));
    let fallbacks = events.iter().filter_map(|event| match &event.body {
        EventBody::DialogueBegan(began) => {
            let manner: EncodingProfile = serde_json::from_value(began.manner.clone()).ok()?;
            Some(of(began.model.clone(), &manner))
        }
        _ => None,
    });
    let fallbacks = fallbacks.collect();
    dialogue.again(of(name, &manner), fallbacks, manner.prompt(prompt.clone()))
}

fn limits_of(events: &[SessionEvent]) -> TurnBudget {
    let told = events.iter().find_map(|event| match &event.body {
        EventBody::TurnStarted(started) => Some(started.limits),
        _ => None,
    });
    let TurnLimits { steps, cost, .. } = told.unwrap_or_default();
    TurnBudget { steps: steps.unwrap_or(u32::MAX), cost, time: None }
}

/// A client that is never used: recorded models need none.
fn idle_client() -> Arc<ModelClient> {
    let clock = Arc::new(ReplayTape::default());
    Arc::new(ModelClient::new(
        clock,
        Box::new(|| Duration::ZERO),
        RetryStrategy::Short,
        RequestTimeouts::default(),
    ))
}

/// A replay asks no model.
struct NoModels;

impl ModelSource for NoModels {
    fn by_name(&self, _: &ModelName) -> Result<ModelTarget, String> {
        Err("a replay asks nobody".to_owned())
    }
}
