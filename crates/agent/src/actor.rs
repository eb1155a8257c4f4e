//! Commands in, events out: a session that fronts talk to.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use helve_journal::{Journal, MAX_EVENT_BYTES};
use helve_protocol::{
    BlobId, CallId, CommandRefused, EventBody, MessagePart, ModeSwitched, ModelSwitchReason, PermissionMode,
    QueryReply, QueueChanged, QueuedMessage, Rewound, SessionCommand, SessionId, SessionQuery,
    SessionRenamed, SessionState, SessionStatus, StatusChanged, TurnOutcome, UserPrompt,
};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::gate::PermissionGate;
use crate::recorder::{Feed, Recorder, SessionError};
use crate::session::{Session, TurnStop, TurnTask};
use crate::spec::{ParentSession, SessionSpec};

/// So many letters wait for the session; who sends more waits too.
const MAILBOX_CAPACITY: usize = 64;
/// So many messages wait for the model.
const MAX_QUEUED_MESSAGES: usize = 100;
/// How often an idle session says that it is alive.
const IDLE_HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);

/// A session's address. Its copies lead to the same session; when the last one is gone, the session ends after its turn.
#[derive(Clone)]
pub struct SessionHandle {
    letters: mpsc::Sender<ActorMessage>,
    record: Recorder,
    journal: Arc<dyn Journal>,
    spec: Arc<SessionSpec>,
    turn_stop: TurnStop,
}

enum ActorMessage {
    Command(SessionCommand),
    Query(SessionQuery, oneshot::Sender<QueryReply>),
}

/// The session behind a handle. It works while [`SessionActor::run`] is polled.
pub struct SessionActor {
    session: Session,
    letters: mpsc::Receiver<ActorMessage>,
    /// What came during a turn and has to wait for its end.
    later: VecDeque<SessionCommand>,
    /// Whether the next message of the queue follows by itself.
    goes_on: bool,
    leaving: bool,
}

impl SessionHandle {
    pub fn session(&self) -> SessionId {
        self.record.session()
    }

    /// Looks at where the session stands.
    pub fn state<T>(&self, look: impl FnOnce(&SessionState) -> T) -> T {
        self.record.state(look)
    }

    /// Everything that this process told of the session, and tells from here on.
    pub fn feed(&self) -> Feed {
        self.record.feed(self.journal.clone())
    }

    /// Keeps a file beside the session's log, so that a message can name it.
    pub fn keep(&self, content: &[u8]) -> Result<BlobId, SessionError> {
        Ok(self.record.blobs().put(content)?)
    }

    /// The session as one that it starts for a call knows it: its rights bound the child's, and its interrupt ends the child.
    pub fn as_parent(&self, call: CallId) -> ParentSession {
        let stop = self.turn_stop.token();
        ParentSession { record: self.record.clone(), spec: self.spec.clone(), call, stop }
    }

    /// Asks for something to be done. Whether it was tells an event. A session that has ended does nothing any more.
    pub async fn send(&self, command: SessionCommand) {
        let _ = self.letters.send(ActorMessage::Command(command)).await;
    }

    pub async fn ask(&self, query: SessionQuery) -> QueryReply {
        let (reply, replied) = oneshot::channel();
        let _ = self.letters.send(ActorMessage::Query(query, reply)).await;
        replied.await.unwrap_or_else(|_| QueryReply::Failed { why: "the session has ended".to_owned() })
    }
}

impl Session {
    /// Gives the session an address.
    pub fn listen(self) -> (SessionHandle, SessionActor) {
        let (sender, letters) = mpsc::channel(MAILBOX_CAPACITY);
        let (record, journal) = (self.record.clone(), self.services.journal.clone());
        let (spec, turn_stop) = (self.spec.clone(), self.turn_stop.clone());
        let actor =
            SessionActor { session: self, letters, later: VecDeque::new(), goes_on: false, leaving: false };
        (SessionHandle { letters: sender, record, journal, spec, turn_stop }, actor)
    }
}

impl SessionActor {
    /// Works until it is told to stop, or until nobody has its address any more. Gives the session back.
    pub async fn run(mut self) -> Result<Session, SessionError> {
        let (hooks, id) = (self.session.services.hooks.clone(), self.session.id());
        hooks.session_started(id).await;
        while let Some(task) = self.next_task().await? {
            let outcome = self.turn(task).await?;
            // What waits follows by itself only after a turn that went well; else a person looks first.
            self.goes_on = outcome == TurnOutcome::EndTurn;
        }
        self.session.record.emit(StatusChanged { status: SessionStatus::Ended })?;
        hooks.session_ended(id).await;
        Ok(self.session)
    }

    /// Waits for something to do.
    async fn next_task(&mut self) -> Result<Option<TurnTask>, SessionError> {
        loop {
            if let Some(command) = self.later.pop_front() {
                if let Some(task) = self.handle_idle_command(command)? {
                    return Ok(Some(task));
                }
                continue;
            }
            if self.leaving {
                return Ok(None);
            }
            if self.goes_on
                && let Some(queued) = self.session.record.state(|state| state.queue.first().cloned())
            {
                return Ok(Some(TurnTask::UserMessage { message: queued.message, parts: queued.parts }));
            }
            match tokio::time::timeout(IDLE_HEARTBEAT_INTERVAL, self.letters.recv()).await {
                Err(_) => self.session.record.emit(StatusChanged { status: SessionStatus::Idle })?,
                Ok(None) => return Ok(None),
                Ok(Some(ActorMessage::Command(command))) => self.later.push_back(command),
                Ok(Some(ActorMessage::Query(query, reply))) => {
                    let _ = reply.send(answer(query, &self.session.record, &*self.session.services.journal));
                }
            }
        }
    }

    /// One turn. Whatever comes meanwhile is taken at once.
    async fn turn(&mut self, task: TurnTask) -> Result<TurnOutcome, SessionError> {
        let SessionActor { session, letters, later, leaving, .. } = self;
        let stop = CancellationToken::new();
        let desk = CommandHandler { record: session.record.clone(), gate: session.services.gate.clone() };
        let journal = session.services.journal.clone();
        let background = session.background.clone();
        let work = session.run_turn(task, &stop);
        tokio::pin!(work);
        let mut is_open = true;
        loop {
            tokio::select! {
                biased;
                outcome = &mut work => return outcome,
                letter = letters.recv(), if is_open => match letter {
                    Some(ActorMessage::Command(command)) => {
                        match desk.handle_anytime_command(command)? {
                            None => {}
                            Some(SessionCommand::Submit(prompt)) => desk.queue(prompt)?,
                            Some(SessionCommand::Interrupt) => stop.cancel(),
                            Some(SessionCommand::Background) => background.notify_waiters(),
                            Some(SessionCommand::ShutDown) => {
                                stop.cancel();
                                *leaving = true;
                            }
                            Some(command @ SessionCommand::GoOn) => desk.refuse(&command, "a turn is running")?,
                            Some(command) if later.len() < MAX_QUEUED_MESSAGES => later.push_back(command),
                            Some(command) => desk.refuse(&command, "too much waits already")?,
                        }
                    }
                    Some(ActorMessage::Query(query, reply)) => {
                        let _ = reply.send(answer(query, &desk.record, &*journal));
                    }
                    None => is_open = false,
                },
            }
        }
    }

    /// A command between two turns.
    fn handle_idle_command(&mut self, command: SessionCommand) -> Result<Option<TurnTask>, SessionError> {
        let desk =
            CommandHandler { record: self.session.record.clone(), gate: self.session.services.gate.clone() };
        let Some(command) = desk.handle_anytime_command(command)? else { return Ok(None) };
        match command {
            SessionCommand::Submit(prompt) => {
                self.goes_on = true;
                if desk.record.state(|state| !state.queue.is_empty()) {
                    // What waited before comes first.
                    desk.queue(prompt)?;
                } else if let Some(prompt) = desk.accept_prompt(prompt, SessionCommand::Submit)? {
                    return Ok(Some(TurnTask::UserMessage {
                        message: desk.record.draw(),
                        parts: prompt.parts,
                    }));
                }
            }
            SessionCommand::GoOn if desk.record.state(|state| state.history.messages().next().is_none()) => {
                desk.refuse(&SessionCommand::GoOn, "nothing was said yet")?;
            }
            SessionCommand::GoOn => return Ok(Some(TurnTask::ContinueTurn)),
            SessionCommand::ShutDown => self.leaving = true,
            SessionCommand::SetModel { ref model } => match self.session.services.models.by_name(model) {
                Ok(target) => self.session.switch(target, ModelSwitchReason::Chosen)?,
                Err(why) => desk.refuse(&command, &why)?,
            },
            SessionCommand::SetMode { mode } => desk.set_mode(mode)?,
            SessionCommand::SetEffort { effort } => self.session.set_effort(effort)?,
            SessionCommand::Rewind { to, scope } => {
                desk.record.emit(Rewound { to, scope })?;
                self.session.dialogue.renew();
            }
            // Nothing runs that they could be about.
            SessionCommand::Interrupt | SessionCommand::Background => {}
            other => desk.refuse(&other, "this version can't do it")?,
        }
        Ok(None)
    }
}

/// Where commands are taken.
struct CommandHandler {
    record: Recorder,
    gate: PermissionGate,
}

impl CommandHandler {
    /// Does what can be done at any time, and gives back what can't.
    fn handle_anytime_command(
        &self,
        command: SessionCommand,
    ) -> Result<Option<SessionCommand>, SessionError> {
        match command {
            SessionCommand::EditQueued { message, prompt } => {
                let edit = |prompt| SessionCommand::EditQueued { message, prompt };
                let mut queue = self.record.state(|state| state.queue.clone());
                let Some(queued) = queue.iter_mut().find(|queued| queued.message == message) else {
                    self.refuse(&edit(prompt), MESSAGE_NOT_QUEUED)?;
                    return Ok(None);
                };
                let Some(prompt) = self.accept_prompt(prompt, edit)? else { return Ok(None) };
                (queued.delivery, queued.parts) = (prompt.delivery, prompt.parts.clone());
                self.change_queue(queue, &edit(prompt))?;
            }
            SessionCommand::DropQueued { message } => {
                let mut queue = self.record.state(|state| state.queue.clone());
                let waiting = queue.len();
                queue.retain(|queued| queued.message != message);
                if queue.len() < waiting {
                    self.record.emit(QueueChanged { queue })?;
                } else {
                    self.refuse(&SessionCommand::DropQueued { message }, MESSAGE_NOT_QUEUED)?;
                }
            }
            SessionCommand::Decide { approval, ref answer } => {
                if let Err(why) = self.gate.judge().answer(approval, answer.clone()) {
                    self.refuse(&command, why)?;
                }
            }
            SessionCommand::Answer { call, ref text } => {
                if let Err(why) = self.gate.answer_question(call, text.clone()) {
                    self.refuse(&command, why)?;
                }
            }
            SessionCommand::Rename { title } => self.record.emit(SessionRenamed { title })?,
            other => return Ok(Some(other)),
        }
        Ok(None)
    }

    fn queue(&self, prompt: UserPrompt) -> Result<(), SessionError> {
        let mut queue = self.record.state(|state| state.queue.clone());
        let Some(prompt) = self.accept_prompt(prompt, SessionCommand::Submit)? else { return Ok(()) };
        if queue.len() >= MAX_QUEUED_MESSAGES {
            return self.refuse(&SessionCommand::Submit(prompt), "too many messages wait already");
        }
        let (delivery, parts) = (prompt.delivery, prompt.parts.clone());
        queue.push(QueuedMessage { message: self.record.draw(), delivery, parts });
        self.change_queue(queue, &SessionCommand::Submit(prompt))
    }

    /// The message as it is kept, unless it is refused: whoever sends one that no journal or model takes must not end the
    /// session with it.
    fn accept_prompt(
        &self,
        mut prompt: UserPrompt,
        command: impl FnOnce(UserPrompt) -> SessionCommand,
    ) -> Result<Option<UserPrompt>, SessionError> {
        // Only a provider seals something.
        for part in &mut prompt.parts {
            if let MessagePart::Text(text) = part {
                text.sealed = Value::Null;
            }
        }
        match self.problem(&prompt.parts) {
            None => Ok(Some(prompt)),
            Some(why) => self.refuse(&command(prompt), why).map(|()| None),
        }
    }

    fn problem(&self, parts: &[MessagePart]) -> Option<&'static str> {
        let says_nothing =
            |part: &MessagePart| matches!(part, MessagePart::Text(text) if text.text.trim().is_empty());
        let is_lost = |part: &MessagePart| match part {
            MessagePart::File(file) => self.record.blobs().get(file.content).is_err(),
            _ => false,
        };
        if !parts.iter().all(|part| matches!(part, MessagePart::Text(_) | MessagePart::File(_))) {
            Some("a message is made of texts and files")
        } else if parts.iter().all(says_nothing) {
            Some("the message is empty")
        } else if parts.iter().any(is_lost) {
            Some("a file of the message was never kept")
        } else {
            is_too_much(&serde_json::to_vec(parts)).then_some(TOO_LARGE_FOR_EVENT)
        }
    }

    /// The whole queue is one event, which has a limit.
    fn change_queue(&self, queue: Vec<QueuedMessage>, command: &SessionCommand) -> Result<(), SessionError> {
        if is_too_much(&serde_json::to_vec(&queue)) {
            return self.refuse(command, TOO_LARGE_FOR_EVENT);
        }
        self.record.emit(QueueChanged { queue })
    }

    fn set_mode(&self, to: PermissionMode) -> Result<(), SessionError> {
        if to > self.gate.judge().loosest_mode() {
            return self.refuse(
                &SessionCommand::SetMode { mode: to },
                "the administrator of this machine does not allow it",
            );
        }
        let from = self.record.state(|state| state.mode);
        if from == to { Ok(()) } else { self.record.emit(ModeSwitched { from, to }) }
    }

    fn refuse(&self, command: &SessionCommand, why: &str) -> Result<(), SessionError> {
        self.record.emit(CommandRefused { command: command.name().to_owned(), why: why.to_owned() })
    }
}

const MESSAGE_NOT_QUEUED: &str = "no such message waits (any more)";
const TOO_LARGE_FOR_EVENT: &str = "it is too much at once";
/// What an event says besides what a person said.
const EVENT_ENVELOPE_BYTES: usize = 64 << 10;

/// Whether something does not fit into an event.
fn is_too_much(json: &serde_json::Result<Vec<u8>>) -> bool {
    json.as_ref().map_or(usize::MAX, Vec::len) > MAX_EVENT_BYTES - EVENT_ENVELOPE_BYTES
}

fn answer(query: SessionQuery, record: &Recorder, journal: &dyn Journal) -> QueryReply {
    match query {
        SessionQuery::State => record.state(|state| QueryReply::State {
            status: state.status(),
            model: state.model.clone(),
            agent: state.agent.clone(),
            mode: state.mode,
            usage: state.usage,
            cost: state.cost,
            unfinished: state
                .outcome
                .filter(|outcome| *outcome != TurnOutcome::EndTurn && state.turn.is_none()),
        }),
        SessionQuery::Queue => QueryReply::Queue { queue: record.state(|state| state.queue.clone()) },
        SessionQuery::Messages => QueryReply::Messages {
            messages: record.state(|state| state.history.messages().cloned().collect()),
        },
        SessionQuery::Sessions => match journal.list() {
            Ok(sessions) => QueryReply::Sessions { sessions },
            Err(error) => QueryReply::Failed { why: error.to_string() },
        },
        SessionQuery::Changes { from, to } => {
            let mut changes = Vec::new();
            let read = journal.read(record.session(), from, &mut |event| {
                match event.body {
                    _ if event.seq > to => return ControlFlow::Break(()),
                    EventBody::FilesChanged(files) => changes.extend(files.changes),
                    _ => {}
                }
                ControlFlow::Continue(())
            });
            match read {
                Ok(_) => QueryReply::Changes { changes },
                Err(error) => QueryReply::Failed { why: error.to_string() },
            }
        }
    }
}
