//! Events in, the whole state of a session out.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Activity, AgentName, Answer, ApprovalId, BlobId, Body, CallId, Cost, Event, History, Mode, ModelName,
    Outcome, Queued, Status, StepId, StepStarted, Task, ToolClass, TurnId, Usage,
};

/// Where a session stands: a fold over its journal. Nothing else of a session outlives a process.
#[derive(Clone, Debug)]
pub struct SessionState {
    pub history: History,
    /// The messages that wait.
    pub queue: Vec<Queued>,
    pub model: Option<ModelName>,
    pub agent: AgentName,
    pub mode: Mode,
    /// What all steps took and cost.
    pub usage: Usage,
    pub cost: Cost,
    /// The turn that has begun and not ended.
    pub turn: Option<OpenTurn>,
    /// How the last turn ended.
    pub outcome: Option<Outcome>,
    /// The segments of the last request.
    pub request: Vec<BlobId>,
    /// What a person allowed for the rest of the session, as rules.
    pub allowed: BTreeSet<String>,
    /// The task list.
    pub plan: Vec<Task>,
    /// The calls that have begun and not ended.
    pub running: BTreeMap<CallId, ToolClass>,
    activity: Activity,
    asked: BTreeMap<ApprovalId, Vec<String>>,
}

/// A turn at work, or one that was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenTurn {
    pub id: TurnId,
    pub step: Option<StepId>,
}

impl Default for SessionState {
    fn default() -> SessionState {
        SessionState {
            history: History::default(),
            queue: Vec::new(),
            model: None,
            agent: AgentName::new("build"),
            mode: Mode::default(),
            usage: Usage::default(),
            cost: Cost::ZERO,
            turn: None,
            outcome: None,
            request: Vec::new(),
            allowed: BTreeSet::new(),
            plan: Vec::new(),
            running: BTreeMap::new(),
            activity: Activity::default(),
            asked: BTreeMap::new(),
        }
    }
}

impl SessionState {
    pub fn status(&self) -> Status {
        self.activity.status()
    }

    pub fn apply(&mut self, event: &Event) {
        if event.seq <= self.history.last() {
            return;
        }
        self.history.apply(event);
        self.activity.apply(event);
        match &event.body {
            Body::SessionCreated(created) => self.model.clone_from(&created.model),
            Body::QueueChanged(changed) => self.queue.clone_from(&changed.queue),
            // Whatever was handed over waits no longer, even if nobody came to say so.
            Body::UserMessage(said) => self.queue.retain(|queued| queued.message != said.message),
            Body::TurnStarted(_) => {
                self.turn = event.turn.map(|id| OpenTurn { id, step: None });
            }
            Body::DialogueBegan(dialogue) => self.model = Some(dialogue.model.clone()),
            Body::StepStarted(step) => {
                self.keep_request(step);
                if let Some(turn) = &mut self.turn {
                    turn.step = event.step;
                }
            }
            Body::StepEnded(step) => {
                self.usage += step.usage;
                self.cost += step.cost;
                if let Some(turn) = &mut self.turn {
                    turn.step = None;
                }
            }
            Body::ApprovalRequested(asked) => {
                self.asked.insert(asked.approval, asked.rules.clone());
            }
            Body::ApprovalResolved(resolved) => {
                let rules = self.asked.remove(&resolved.approval);
                if matches!(resolved.answer, Answer::Session | Answer::Project) {
                    self.allowed.extend(rules.into_iter().flatten());
                }
            }
            Body::ToolStarted(started) => drop(self.running.insert(started.call, started.class)),
            Body::ToolEnded(ended) => drop(self.running.remove(&ended.call)),
            Body::PlanChanged(changed) => self.plan.clone_from(&changed.tasks),
            Body::ModelSwitched(switch) => self.model = Some(switch.to.clone()),
            Body::AgentSwitched(switch) => self.agent = switch.to.clone(),
            Body::ModeSwitched(switch) => self.mode = switch.to,
            Body::TurnEnded(ended) => {
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
