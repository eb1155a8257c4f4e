//! Commands in, events out: a session that fronts talk to.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use helve_journal::{Journal, MAX_EVENT_BYTES};
use helve_protocol::{
    BlobId, Body, Command, CommandRefused, Mode, ModeSwitched, Outcome, Part, Prompt, Query, QueueChanged,
    Queued, Reply, RewindScope, Rewound, SessionId, SessionRenamed, SessionState, Status, StatusChanged,
};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::gate::Gate;
use crate::record::{Error, Feed, Recorder};
use crate::session::{Session, Task};

/// So many letters wait for the session; who sends more waits too.
const MAILBOX: usize = 64;
/// So many messages wait for the model.
const MAX_QUEUE: usize = 100;
/// How often an idle session says that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// A session's address. Its copies lead to the same session; when the last one is gone, the session ends after its turn.
#[derive(Clone)]
pub struct Handle {
    letters: mpsc::Sender<Letter>,
    record: Recorder,
    journal: Arc<dyn Journal>,
}

enum Letter {
    Do(Command),
    Ask(Query, oneshot::Sender<Reply>),
}

/// The session behind a handle. It works while [`Actor::run`] is polled.
pub struct Actor {
    session: Session,
    letters: mpsc::Receiver<Letter>,
    /// What came during a turn and has to wait for its end.
    later: VecDeque<Command>,
    /// Whether the next message of the queue follows by itself.
    goes_on: bool,
    leaving: bool,
}

impl Handle {
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
    pub fn keep(&self, content: &[u8]) -> Result<BlobId, Error> {
        Ok(self.record.blobs().put(content)?)
    }

    /// Asks for something to be done. Whether it was tells an event. A session that has ended does nothing any more.
    pub async fn send(&self, command: Command) {
        let _ = self.letters.send(Letter::Do(command)).await;
    }

    pub async fn ask(&self, query: Query) -> Reply {
        let (reply, replied) = oneshot::channel();
        let _ = self.letters.send(Letter::Ask(query, reply)).await;
        replied.await.unwrap_or_else(|_| Reply::Failed { why: "the session has ended".to_owned() })
    }
}

impl Session {
    /// Gives the session an address.
    pub fn listen(self) -> (Handle, Actor) {
        let (sender, letters) = mpsc::channel(MAILBOX);
        let (record, journal) = (self.record.clone(), self.house.journal.clone());
        let actor = Actor { session: self, letters, later: VecDeque::new(), goes_on: false, leaving: false };
        (Handle { letters: sender, record, journal }, actor)
    }
}

impl Actor {
    /// Works until it is told to stop, or until nobody has its address any more. Gives the session back.
    pub async fn run(mut self) -> Result<Session, Error> {
        while let Some(task) = self.next_task().await? {
            let outcome = self.turn(task).await?;
            // What waits follows by itself only after a turn that went well; else a person looks first.
            self.goes_on = outcome == Outcome::EndTurn;
        }
        self.session.record.tell(StatusChanged { status: Status::Ended })?;
        Ok(self.session)
    }

    /// Waits for something to do.
    async fn next_task(&mut self) -> Result<Option<Task>, Error> {
        loop {
            if let Some(command) = self.later.pop_front() {
                if let Some(task) = self.idle(command)? {
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
                return Ok(Some(Task::Said { message: queued.message, parts: queued.parts }));
            }
            match tokio::time::timeout(HEARTBEAT, self.letters.recv()).await {
                Err(_) => self.session.record.tell(StatusChanged { status: Status::Idle })?,
                Ok(None) => return Ok(None),
                Ok(Some(Letter::Do(command))) => self.later.push_back(command),
                Ok(Some(Letter::Ask(query, reply))) => {
                    let _ = reply.send(answer(query, &self.session.record, &*self.session.house.journal));
                }
            }
        }
    }

    /// One turn. Whatever comes meanwhile is taken at once.
    async fn turn(&mut self, task: Task) -> Result<Outcome, Error> {
        let Actor { session, letters, later, leaving, .. } = self;
        let stop = CancellationToken::new();
        let desk = Desk { record: session.record.clone(), gate: session.house.gate.clone() };
        let journal = session.house.journal.clone();
        let background = session.background.clone();
        let work = session.work(task, &stop);
        tokio::pin!(work);
        let mut is_open = true;
        loop {
            tokio::select! {
                biased;
                outcome = &mut work => return outcome,
                letter = letters.recv(), if is_open => match letter {
                    Some(Letter::Do(command)) => {
                        match desk.at_any_time(command)? {
                            None => {}
                            Some(Command::Submit(prompt)) => desk.queue(prompt)?,
                            Some(Command::Interrupt) => stop.cancel(),
                            Some(Command::Background) => background.notify_waiters(),
                            Some(Command::ShutDown) => {
                                stop.cancel();
                                *leaving = true;
                            }
                            Some(command @ Command::GoOn) => desk.refuse(&command, "a turn is running")?,
                            Some(command) if later.len() < MAX_QUEUE => later.push_back(command),
                            Some(command) => desk.refuse(&command, "too much waits already")?,
                        }
                    }
                    Some(Letter::Ask(query, reply)) => {
                        let _ = reply.send(answer(query, &desk.record, &*journal));
                    }
                    None => is_open = false,
                },
            }
        }
    }

    /// A command between two turns.
    fn idle(&mut self, command: Command) -> Result<Option<Task>, Error> {
        let desk = Desk { record: self.session.record.clone(), gate: self.session.house.gate.clone() };
        let Some(command) = desk.at_any_time(command)? else { return Ok(None) };
        match command {
            Command::Submit(prompt) => {
                self.goes_on = true;
                if desk.record.state(|state| !state.queue.is_empty()) {
                    // What waited before comes first.
                    desk.queue(prompt)?;
                } else if let Some(prompt) = desk.taken(prompt, Command::Submit)? {
                    return Ok(Some(Task::Said { message: desk.record.draw(), parts: prompt.parts }));
                }
            }
            Command::GoOn if desk.record.state(|state| state.history.messages().next().is_none()) => {
                desk.refuse(&Command::GoOn, "nothing was said yet")?;
            }
            Command::GoOn => return Ok(Some(Task::GoOn)),
            Command::ShutDown => self.leaving = true,
            Command::SetModel { ref model } => match (self.session.house.models)(model) {
                Ok(target) => self.session.switch(target, "chosen")?,
                Err(why) => desk.refuse(&command, &why)?,
            },
            Command::SetMode { mode } => desk.set_mode(mode)?,
            Command::SetEffort { effort } => self.session.set_effort(effort)?,
            Command::Rewind { to, scope: RewindScope::Messages } => {
                desk.record.tell(Rewound { to, scope: RewindScope::Messages })?;
                self.session.dialogue.renew();
            }
            // Nothing runs that they could be about.
            Command::Interrupt | Command::Background => {}
            other => desk.refuse(&other, "this version can't do it")?,
        }
        Ok(None)
    }
}

/// Where commands are taken.
struct Desk {
    record: Recorder,
    gate: Gate,
}

impl Desk {
    /// Does what can be done at any time, and gives back what can't.
    fn at_any_time(&self, command: Command) -> Result<Option<Command>, Error> {
        match command {
            Command::EditQueued { message, prompt } => {
                let edit = |prompt| Command::EditQueued { message, prompt };
                let mut queue = self.record.state(|state| state.queue.clone());
                let Some(queued) = queue.iter_mut().find(|queued| queued.message == message) else {
                    self.refuse(&edit(prompt), NOT_WAITING)?;
                    return Ok(None);
                };
                let Some(prompt) = self.taken(prompt, edit)? else { return Ok(None) };
                (queued.delivery, queued.parts) = (prompt.delivery, prompt.parts.clone());
                self.change_queue(queue, &edit(prompt))?;
            }
            Command::DropQueued { message } => {
                let mut queue = self.record.state(|state| state.queue.clone());
                let waiting = queue.len();
                queue.retain(|queued| queued.message != message);
                if queue.len() < waiting {
                    self.record.tell(QueueChanged { queue })?;
                } else {
                    self.refuse(&Command::DropQueued { message }, NOT_WAITING)?;
                }
            }
            Command::Decide { approval, ref answer } => {
                if let Err(why) = self.gate.answer(approval, answer.clone()) {
                    self.refuse(&command, why)?;
                }
            }
            Command::Answer { call, ref text } => {
                if let Err(why) = self.gate.reply(call, text.clone()) {
                    self.refuse(&command, why)?;
                }
            }
            Command::Rename { title } => self.record.tell(SessionRenamed { title })?,
            other => return Ok(Some(other)),
        }
        Ok(None)
    }

    fn queue(&self, prompt: Prompt) -> Result<(), Error> {
        let mut queue = self.record.state(|state| state.queue.clone());
        let Some(prompt) = self.taken(prompt, Command::Submit)? else { return Ok(()) };
        if queue.len() >= MAX_QUEUE {
            return self.refuse(&Command::Submit(prompt), "too many messages wait already");
        }
        let (delivery, parts) = (prompt.delivery, prompt.parts.clone());
        queue.push(Queued { message: self.record.draw(), delivery, parts });
        self.change_queue(queue, &Command::Submit(prompt))
    }

    /// The message as it is kept, unless it is refused: whoever sends one that no journal or model takes must not end the
    /// session with it.
    fn taken(
        &self,
        mut prompt: Prompt,
        command: impl FnOnce(Prompt) -> Command,
    ) -> Result<Option<Prompt>, Error> {
        // Only a provider seals something.
        for part in &mut prompt.parts {
            if let Part::Text(text) = part {
                text.sealed = Value::Null;
            }
        }
        match self.problem(&prompt.parts) {
            None => Ok(Some(prompt)),
            Some(why) => self.refuse(&command(prompt), why).map(|()| None),
        }
    }

    fn problem(&self, parts: &[Part]) -> Option<&'static str> {
        let says_nothing = |part: &Part| matches!(part, Part::Text(text) if text.text.trim().is_empty());
        let is_lost = |part: &Part| match part {
            Part::File(file) => self.record.blobs().get(file.content).is_err(),
            _ => false,
        };
        if !parts.iter().all(|part| matches!(part, Part::Text(_) | Part::File(_))) {
            Some("a message is made of texts and files")
        } else if parts.iter().all(says_nothing) {
            Some("the message is empty")
        } else if parts.iter().any(is_lost) {
            Some("a file of the message was never kept")
        } else {
            is_too_much(&serde_json::to_vec(parts)).then_some(TOO_MUCH)
        }
    }

    /// The whole queue is one event, which has a limit.
    fn change_queue(&self, queue: Vec<Queued>, command: &Command) -> Result<(), Error> {
        if is_too_much(&serde_json::to_vec(&queue)) {
            return self.refuse(command, TOO_MUCH);
        }
        self.record.tell(QueueChanged { queue })
    }

    fn set_mode(&self, to: Mode) -> Result<(), Error> {
        if to > self.gate.loosest() {
            return self.refuse(
                &Command::SetMode { mode: to },
                "the administrator of this machine does not allow it",
            );
        }
        let from = self.record.state(|state| state.mode);
        if from == to { Ok(()) } else { self.record.tell(ModeSwitched { from, to }) }
    }

    fn refuse(&self, command: &Command, why: &str) -> Result<(), Error> {
        self.record.tell(CommandRefused { command: command.name().to_owned(), why: why.to_owned() })
    }
}

const NOT_WAITING: &str = "no such message waits (any more)";
const TOO_MUCH: &str = "it is too much at once";
/// What an event says besides what a person said.
const ENVELOPE_BYTES: usize = 64 << 10;

/// Whether something does not fit into an event.
fn is_too_much(json: &serde_json::Result<Vec<u8>>) -> bool {
    json.as_ref().map_or(usize::MAX, Vec::len) > MAX_EVENT_BYTES - ENVELOPE_BYTES
}

fn answer(query: Query, record: &Recorder, journal: &dyn Journal) -> Reply {
    match query {
        Query::State => record.state(|state| Reply::State {
            status: state.status(),
            model: state.model.clone(),
            agent: state.agent.clone(),
            mode: state.mode,
            usage: state.usage,
            cost: state.cost,
            unfinished: state.outcome.filter(|outcome| *outcome != Outcome::EndTurn && state.turn.is_none()),
        }),
        Query::Queue => Reply::Queue { queue: record.state(|state| state.queue.clone()) },
        Query::Messages => {
            Reply::Messages { messages: record.state(|state| state.history.messages().cloned().collect()) }
        }
        Query::Sessions => match journal.list() {
            Ok(sessions) => Reply::Sessions { sessions },
            Err(error) => Reply::Failed { why: error.to_string() },
        },
        Query::Changes { from, to } => {
            let mut changes = Vec::new();
            let read = journal.read(record.session(), from, &mut |event| {
                match event.body {
                    _ if event.seq > to => return ControlFlow::Break(()),
                    Body::FilesChanged(files) => changes.extend(files.changes),
                    _ => {}
                }
                ControlFlow::Continue(())
            });
            match read {
                Ok(_) => Reply::Changes { changes },
                Err(error) => Reply::Failed { why: error.to_string() },
            }
        }
        Query::Models | Query::Agents | Query::Context => {
            Reply::Failed { why: "this version can't tell".to_owned() }
        }
    }
}
