//! A session: a conversation with its journal, its model, its tools and its files.

use std::sync::{Arc, Mutex, PoisonError};

use helve_models::{Dialogue, ModelPrompt, ModelTarget};
use helve_protocol::{
    EventBody, IdKind, MessageId, MessagePart, ModeSwitched, ModelSwitchReason, NoteAdded, PermissionMode,
    QueueChanged, ReasoningEffort, SessionCreated, SessionId, SessionOpened, SessionState, ToolsRefreshed,
    TurnEnded, TurnOutcome, TurnStarted, UserMessage,
};
use helve_tools::Tool;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::change_watcher::{ChangeWatcher, NoWatcher};
use crate::context::{SessionModel, notes};
use crate::recorder::{Feed, Recorder, SessionError};
use crate::recovery;
use crate::services::Services;
use crate::spec::{ParentSession, SessionSpec};
use crate::tool_runner::{DirectRunner, ToolRunner};
use crate::tool_set::ToolSet;
use crate::turn::{TurnRunner, dialogue_began};
use crate::turn_context::TurnContext;
use crate::workspace_watch::WorkspaceWatch;

/// A session that this process owns.
pub struct Session {
    pub(crate) record: Recorder,
    pub(crate) dialogue: Dialogue,
    pub(crate) services: Services,
    pub(crate) spec: Arc<SessionSpec>,
    tools: ToolSet,
    watcher: Arc<dyn ChangeWatcher>,
    runner: Arc<dyn ToolRunner>,
    /// Told when a person does not want to wait for what runs.
    pub(crate) background: Arc<Notify>,
    pub(crate) turn_stop: TurnStop,
}

/// What a session is made of besides what it shares with others. A recorded session brings its own.
pub(crate) struct SessionParts {
    pub(crate) record: Recorder,
    pub(crate) dialogue: Dialogue,
    pub(crate) spec: SessionSpec,
    pub(crate) tools: ToolSet,
    pub(crate) watcher: Arc<dyn ChangeWatcher>,
    pub(crate) runner: Arc<dyn ToolRunner>,
}

/// What stops the turn that runs, if one does.
#[derive(Clone, Default)]
pub(crate) struct TurnStop(Arc<Mutex<Option<CancellationToken>>>);

impl TurnStop {
    fn set(&self, stop: Option<CancellationToken>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = stop;
    }

    /// A token that is cancelled with the turn; one that never is, if no turn runs.
    pub(crate) fn token(&self) -> CancellationToken {
        let stop = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stop.as_ref().map(CancellationToken::child_token).unwrap_or_default()
    }
}

/// What a turn is about.
pub(crate) enum TurnTask {
    /// What a person said.
    UserMessage { message: MessageId, parts: Vec<MessagePart> },
    /// To go on where the last turn stopped.
    ContinueTurn,
}

impl Session {
    /// Begins a session.
    pub fn create(
        services: Services,
        spec: SessionSpec,
        model: SessionModel,
    ) -> Result<Session, SessionError> {
        let id: SessionId = services.ids.draw(IdKind::Session).into();
        let log = services.journal.create(id)?;
        let record =
            Recorder::new(log, SessionState::default(), services.clock.clone(), services.ids.clone());
        let session = Session::with_model(record, services, spec, model);
        let created = SessionCreated {
            workspace: session.spec.root.display().to_string(),
            model: Some(session.dialogue.target().name.clone()),
            helve: session.services.version.clone(),
            parent: session.spec.parent.as_ref().map(ParentSession::to_parent_call),
        };
        session.record.emit_all(vec![created.into(), dialogue_began(&session.dialogue).into()])?;
        session.set_mode(session.spec.mode)?;
        Ok(session)
    }

    /// Opens a session again, and puts in order what a crash left.
    pub fn open(
        services: Services,
        spec: SessionSpec,
        model: SessionModel,
        id: SessionId,
    ) -> Result<Session, SessionError> {
        let mut state = SessionState::default();
        let log = services.journal.open(id, &mut |event| state.apply(&event))?;
        // Before anything is written: a build that can't read all of it could only go on with a part.
        if !state.unreadable.is_empty() {
            return Err(SessionError::Unreadable(state.unreadable));
        }
        let record = Recorder::new(log, state, services.clock.clone(), services.ids.clone());
        let session = Session::with_model(record, services, spec, model);
        let opened = SessionOpened { helve: session.services.version.clone() };
        session.record.emit_all(vec![opened.into(), dialogue_began(&session.dialogue).into()])?;
        recovery::end_broken_turn(&session.record, &*session.watcher)?;
        session.set_mode(session.spec.mode)?;
        let has_acted = |state: &SessionState| {
            let parts = state.history.messages().flat_map(|message| &message.parts);
            parts.into_iter().any(|part| matches!(part, MessagePart::Tool(_)))
        };
        if session.record.state(has_acted) {
            session.watcher.note_resumed();
        }
        Ok(session)
    }

    fn with_model(record: Recorder, services: Services, spec: SessionSpec, model: SessionModel) -> Session {
        let tools = ToolSet::new(services.tools.make_tools(&spec));
        let dialogue = model.into_dialogue(&tools);
        let watcher = watcher_for(&record, &services, &spec);
        let runner = Arc::new(DirectRunner);
        Session::from_parts(services, SessionParts { record, dialogue, spec, tools, watcher, runner })
    }

    pub(crate) fn from_parts(services: Services, parts: SessionParts) -> Session {
        let SessionParts { record, dialogue, spec, tools, watcher, runner } = parts;
        Session {
            record,
            dialogue,
            services,
            spec: Arc::new(spec),
            tools,
            watcher,
            runner,
            background: Arc::default(),
            turn_stop: TurnStop::default(),
        }
    }

    /// From here on the session has these tools, and the model is told of them.
    pub fn set_tools(&mut self, tools: Vec<Arc<dyn Tool>>, reason: &str) -> Result<(), SessionError> {
        self.tools = ToolSet::new(tools);
        let prompt = ModelPrompt { tools: self.tools.specs(), ..self.dialogue.prompt().clone() };
        self.dialogue.set_prompt(prompt);
        let refreshed = ToolsRefreshed { reason: reason.to_owned() };
        self.record.emit_all(vec![refreshed.into(), dialogue_began(&self.dialogue).into()])
    }

    /// From here on the agent may act more or less freely.
    pub(crate) fn set_mode(&self, to: PermissionMode) -> Result<(), SessionError> {
        let from = self.record.state(|state| state.mode);
        if from == to { Ok(()) } else { self.record.emit(ModeSwitched { from, to }) }
    }

    pub fn id(&self) -> SessionId {
        self.record.session()
    }

    /// Looks at where the session stands.
    pub fn state<T>(&self, look: impl FnOnce(&SessionState) -> T) -> T {
        self.record.state(look)
    }

    /// Everything that this process told of the session, and tells from here on.
    pub fn feed(&self) -> Feed {
        self.record.feed(self.services.journal.clone())
    }

    /// Keeps a payload for a message that will name it.
    pub fn keep(&self, content: &[u8]) -> Result<helve_protocol::BlobId, SessionError> {
        Ok(self.record.blobs().put(content)?)
    }

    /// Hands a person's message to the model, and works until there is an outcome.
    pub async fn submit(
        &mut self,
        parts: Vec<MessagePart>,
        stop: &CancellationToken,
    ) -> Result<TurnOutcome, SessionError> {
        let message = self.record.draw();
        self.run_turn(TurnTask::UserMessage { message, parts }, stop).await
    }

    /// Goes on where the last turn stopped: at a limit, at an error, in a crash.
    pub async fn go_on(&mut self, stop: &CancellationToken) -> Result<TurnOutcome, SessionError> {
        self.run_turn(TurnTask::ContinueTurn, stop).await
    }

    pub(crate) async fn run_turn(
        &mut self,
        task: TurnTask,
        stop: &CancellationToken,
    ) -> Result<TurnOutcome, SessionError> {
        let record = &self.record;
        self.watcher.start();
        if matches!(task, TurnTask::UserMessage { .. }) {
            recovery::settle_open_calls(record)?;
        }
        let hooks = &self.services.hooks;
        self.services.gate.judge().refresh(record)?;
        record.set_turn(Some(record.draw()));
        let mut events: Vec<EventBody> =
            vec![TurnStarted { limits: self.spec.limits.to_turn_limits() }.into()];
        let mut accepted = Vec::new();
        match task {
            TurnTask::UserMessage { message, parts } => {
                accepted.clone_from(&parts);
                events.push(UserMessage { message, parts }.into());
                let mut queue = record.state(|state| state.queue.clone());
                if let Some(place) = queue.iter().position(|queued| queued.message == message) {
                    queue.remove(place);
                    events.push(QueueChanged { queue }.into());
                }
            }
            // The model has had the last word, so that it can only go on if it is asked to.
            TurnTask::ContinueTurn if record.state(|state| state.history.is_answered()) => {
                let (topic, text) = notes::go_on();
                events.push(NoteAdded { message: record.draw(), topic, text }.into());
            }
            TurnTask::ContinueTurn => {}
        }
        record.emit_all(events)?;
        if !accepted.is_empty() {
            hooks.message_accepted(record.session(), &accepted).await;
        }
        let span = tracing::debug_span!(
            "invoke_agent",
            "gen_ai.operation.name" = "invoke_agent",
            "gen_ai.agent.name" = %record.state(|state| state.agent.clone()),
            "gen_ai.conversation.id" = %record.session(),
        );
        // When the time of the turn is up, only the turn is stopped.
        let stop = &stop.child_token();
        self.turn_stop.set(Some(stop.clone()));
        let context = TurnContext {
            record,
            services: &self.services,
            spec: &self.spec,
            tools: &self.tools,
            watcher: &*self.watcher,
            runner: &self.runner,
            stop,
            background: &self.background,
        };
        let ended = TurnRunner::new(context, &mut self.dialogue).run().instrument(span).await;
        self.turn_stop.set(None);
        let (outcome, metrics) = ended?;
        hooks.before_turn_ends(record.session(), outcome).await;
        record.emit(TurnEnded { outcome, metrics })?;
        record.set_turn(None);
        Ok(outcome)
    }

    /// From here on the model thinks more or less.
    pub(crate) fn set_effort(&mut self, effort: Option<ReasoningEffort>) -> Result<(), SessionError> {
        self.dialogue.set_prompt(ModelPrompt { effort, ..self.dialogue.prompt().clone() });
        self.record.emit(dialogue_began(&self.dialogue))
    }

    /// From here on another model answers.
    pub(crate) fn switch(&mut self, to: ModelTarget, reason: ModelSwitchReason) -> Result<(), SessionError> {
        let switched = self.dialogue.switch(to, reason);
        self.record.emit_all(vec![switched.into(), dialogue_began(&self.dialogue).into()])
    }
}

/// Watches the files that a session works on, together with those that it works for.
pub(crate) fn watcher_for(
    record: &Recorder,
    services: &Services,
    spec: &SessionSpec,
) -> Arc<dyn ChangeWatcher> {
    let Some(config) = &spec.watch else { return Arc::new(NoWatcher) };
    let id = record.session();
    let family = services.workspaces.open(spec.family(id), config, record.blobs(), &services.clock);
    Arc::new(WorkspaceWatch::new(family, id))
}
