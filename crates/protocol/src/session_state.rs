//! Events in, the whole state of a session out.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    AgentName, ApprovalAnswer, ApprovalId, BlobId, CallId, ConversationHistory, Cost, EventBody, ModelName,
    PermissionMode, PlanTask, QueuedMessage, SessionActivity, SessionEvent, SessionStatus, StepId,
    StepStarted, TokenUsage, ToolClass, TurnId, TurnOutcome,
};

/// Where a session stands: a fold over its journal. Nothing else of a session outlives a process.
#[derive(Clone, Debug)]
pub struct SessionState {
    pub history: ConversationHistory,
    /// The messages that wait.
    pub queue: Vec<QueuedMessage>,
    pub model: Option<ModelName>,
    pub agent: AgentName,
    pub mode: PermissionMode,
    /// What all steps took and cost.
    pub usage: TokenUsage,
    pub cost: Cost,
    /// The turn that has begun and not ended.
    pub turn: Option<OpenTurn>,
    /// How the last turn ended.
    pub outcome: Option<TurnOutcome>,
    /// The segments of the last request.
    pub request: Vec<BlobId>,
    /// What a person allowed for the rest of the session, as rules.
    pub allowed: BTreeSet<String>,
    /// The task list.
    pub plan: Vec<PlanTask>,
    /// The calls that have begun and not ended.
    pub running: BTreeMap<CallId, ToolClass>,
    /// What this build can't read of the session.
    pub unreadable: UnreadableEvents,
    activity: SessionActivity,
    asked: BTreeMap<ApprovalId, Vec<String>>,
}

/// A turn at work, or one that was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenTurn {
    pub id: TurnId,
    pub step: Option<StepId>,
}

/// The events of a session that this build can't read, because a newer one wrote them.
///
/// Such a session can be shown, but not continued: what the model was told, or what a person allowed, may stand in
/// just those events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnreadableEvents {
    /// The kinds of events that are unknown here, or known in another form.
    pub kinds: BTreeSet<String>,
    /// The versions of Helve that wrote them, as far as the session tells.
    pub versions: BTreeSet<String>,
    /// The version that writes at this point of the session.
    writer: Option<String>,
}

impl UnreadableEvents {
    /// Takes the next event in.
    pub fn apply(&mut self, event: &SessionEvent) {
        match &event.body {
            EventBody::SessionCreated(created) => self.writer = Some(created.helve.clone()),
            EventBody::SessionOpened(opened) => self.writer = Some(opened.helve.clone()),
            EventBody::Unknown(unknown) => {
                self.kinds.insert(unknown.kind.clone());
                self.versions.extend(self.writer.clone());
            }
            _ => {}
        }
    }

    /// Whether everything could be read.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }
}

impl Default for SessionState {
    fn default() -> SessionState {
        SessionState {
            history: ConversationHistory::default(),
            queue: Vec::new(),
            model: None,
            agent: AgentName::new("build"),
            mode: PermissionMode::default(),
            usage: TokenUsage::default(),
            cost: Cost::ZERO,
            turn: None,
            outcome: None,
            request: Vec::new(),
            allowed: BTreeSet::new(),
            plan: Vec::new(),
            running: BTreeMap::new(),
            unreadable: UnreadableEvents::default(),
            activity: SessionActivity::default(),
            asked: BTreeMap::new(),
        }
    }
}

impl SessionState {
    pub fn status(&self) -> SessionStatus {
        self.activity.status()
    }

    pub fn apply(&mut self, event: &SessionEvent) {
        if event.seq <= self.history.last() {
            return;
        }
        self.history.apply(event);
        self.activity.apply(event);
        self.unreadable.apply(event);
        match &event.body {
            EventBody::SessionCreated(created) => self.model.clone_from(&created.model),
            EventBody::QueueChanged(changed) => self.queue.clone_from(&changed.queue),
            // Whatever was handed over waits no longer, even if nobody came to say so.
            EventBody::UserMessage(said) => self.queue.retain(|queued| queued.message != said.message),
            EventBody::TurnStarted(_) => {
                self.turn = event.turn.map(|id| OpenTurn { id, step: None });
            }
            EventBody::DialogueBegan(dialogue) => self.model = Some(dialogue.model.clone()),
            EventBody::StepStarted(step) => {
                self.keep_request(step);
                if let Some(turn) = &mut self.turn {
                    turn.step = event.step;
                }
            }
            EventBody::StepEnded(step) => {
                self.usage += step.usage;
                self.cost += step.cost;
                if let Some(turn) = &mut self.turn {
                    turn.step = None;
                }
            }
            EventBody::ApprovalRequested(asked) => {
                self.asked.insert(asked.approval, asked.rules.clone());
            }
            EventBody::ApprovalResolved(resolved) => {
                let rules = self.asked.remove(&resolved.approval);
                if matches!(resolved.answer, ApprovalAnswer::Session | ApprovalAnswer::Project) {
                    self.allowed.extend(rules.into_iter().flatten());
                }
            }
            EventBody::ToolStarted(started) => drop(self.running.insert(started.call, started.class)),
            EventBody::ToolEnded(ended) => drop(self.running.remove(&ended.call)),
            EventBody::PlanChanged(changed) => self.plan.clone_from(&changed.tasks),
            EventBody::ModelSwitched(switch) => self.model = Some(switch.to.clone()),
            EventBody::ModeSwitched(switch) => self.mode = switch.to,
            EventBody::TurnEnded(ended) => {
                self.turn = None;
                self.outcome = Some(ended.outcome);
                self.asked.clear();
            }
            _ => {}
        }
    }

    fn keep_request(&mut self, step: &StepStarted) {
        self.request.truncate(usize::try_from(step.kept).unwrap_or(usize::MAX));
        self.request.extend(&step.segments);
    }
}
