//! `helve run`: one turn without the interface, or as many as a program asks for.

mod input;
pub(super) mod instruction;
mod printer;
mod progress;

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

use helve_agent::{Feed, PermissionGate, Services, Session, SessionHandle, SessionModel, SessionWorker};
use helve_config::ConfigLayer;
use helve_journal::{FileJournal, Journal};
use helve_models::ModelTarget;
use helve_protocol::{
    ApprovalAnswer, ApprovalId, ApprovalRequested, CallId, CommandRefused, EventBody, IdKind, MessagePart,
    ModelName, PromptDelivery, QueryReply, QuestionAsked, Seq, SessionCommand, SessionId, SessionQuery,
    SessionState, SessionStatus, TurnOutcome, UnreadableEvents, UserPrompt,
};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{InputFormat, OutputFormat, RunCommandArgs};
use crate::console::{self, ConsoleOutput, WARN};
use crate::failure::{CliFailure, ProgramExit};
use crate::setup::CliSetup;
use crate::text::one_line;
use crate::user_models::{UserModels, block_on};
use crate::wiring::{
    SessionWiring, session_failure, session_model, unreadable_session, wire_session, worker_failure,
};
use instruction::RunInstruction;
use printer::{OutputDetail, RunPrinter};

pub(crate) fn run(
    options: &RunCommandArgs,
    setup: &CliSetup,
    screen: &mut ConsoleOutput,
) -> Result<ProgramExit, CliFailure> {
    let ran = start(options, setup, screen);
    if let Err(failure) = &ran
        && options.output != OutputFormat::Text
    {
        printer::tell_failure(failure, screen)?;
    }
    ran
}

fn start(
    options: &RunCommandArgs,
    setup: &CliSetup,
    screen: &mut ConsoleOutput,
) -> Result<ProgramExit, CliFailure> {
    let is_text = options.input == InputFormat::Text;
    let instruction = RunInstruction::read(options, setup, is_text)?;
    // Without a word, a session that broke off goes on.
    if instruction.is_empty() && is_text && !options.goes_on() {
        let hint = "Say what you want: `helve run \"fix the bug\"`.";
        return Err(CliFailure::usage("nothing was run", "there is nothing to do", hint));
    }
    let models = Arc::new(UserModels::new(setup)?);
    block_on(async {
        let which = SessionSelector::of(options);
        let target = session_target(which, setup, &models).await?;
        let fallbacks = models.router.fallbacks().map_err(|error| CliFailure::route(&error))?;
        let asker = AnswerSource::of(options);
        let is_shut = asker == AnswerSource::Nobody && !options.yes;
        let gate = |rules| {
            let gate = match asker {
                _ if is_shut => PermissionGate::answering_no(rules),
                _ if options.yes => PermissionGate::answering_yes(rules),
                _ => PermissionGate::asking_person(rules),
            };
            if asker == AnswerSource::Nobody { gate } else { gate.with_person() }
        };
        let wiring = wire_session(setup, gate, &models)?;
        let model = session_model(&models, target, fallbacks, &wiring.spec);
        let session = open_session(which, setup, wiring, model)?;
        if instruction.is_empty() && is_text && session.state(is_finished) {
            let why = "the last turn of that session ended by itself";
            return Err(CliFailure::usage("nothing to resume", why, "Say what to do next."));
        }
        let first = match instruction.is_empty() {
            false => Some(submit(instruction.parts(&session)?)),
            true if is_text => Some(SessionCommand::GoOn),
            true => None,
        };
        let detail = if options.quiet { OutputDetail::AnswerOnly } else { OutputDetail::Full };
        let front = RunPrinter::new(options.output, detail, asker);
        run_session(session, first, asker, options.input, front, screen).await
    })?
}

/// One turn of a scripted model, as a person sees it.
pub(super) fn run_scripted_turn(
    session: Session,
    task: &str,
    screen: &mut ConsoleOutput,
) -> Result<ProgramExit, CliFailure> {
    let parts = RunInstruction::of(task).parts(&session)?;
    let front = RunPrinter::new(OutputFormat::Text, OutputDetail::Full, AnswerSource::Nobody);
    block_on(run_session(
        session,
        Some(submit(parts)),
        AnswerSource::Nobody,
        InputFormat::Text,
        front,
        screen,
    ))?
}

fn submit(parts: Vec<MessagePart>) -> SessionCommand {
    SessionCommand::Submit(UserPrompt { parts, delivery: PromptDelivery::Queue })
}

/// Talks with a session until there is nothing more to say, and shows what happens.
async fn run_session(
    session: Session,
    first: Option<SessionCommand>,
    asker: AnswerSource,
    input: InputFormat,
    mut front: RunPrinter,
    screen: &mut ConsoleOutput,
) -> Result<ProgramExit, CliFailure> {
    let (handle, actor) = session.listen();
    let mut feed = handle.feed();
    let worker = SessionWorker::start(actor);
    let is_single = input == InputFormat::Text;
    if let Some(command) = first {
        handle.send(command).await;
    }
    let shown = follow(&handle, &mut feed, &worker, asker, is_single, &mut front, screen).await;
    // Whatever happened to our output, the turn ends in order.
    handle.send(SessionCommand::ShutDown).await;
    let session = worker.end().await.map_err(|error| worker_failure(&error))?;
    shown?;
    drain(&mut feed, &mut front, screen).await?;
    front.finish(&session, screen)
}

/// Shows events and takes lines until the session is done.
async fn follow(
    handle: &SessionHandle,
    feed: &mut Feed,
    worker: &SessionWorker,
    asker: AnswerSource,
    is_single: bool,
    front: &mut RunPrinter,
    screen: &mut ConsoleOutput,
) -> Result<(), CliFailure> {
    let mut lines = (!is_single).then(input::lines);
    let mut signals = InterruptSignals::new()?;
    let mut interrupts = 0;
    // The question that nobody has answered.
    let mut open: Option<OpenRunQuestion> = None;
    // What is told first may be of a turn that broke off before.
    let mut has_begun = false;
    let done = worker.done();
    loop {
        let more = async {
            match &mut lines {
                Some(lines) => lines.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            is_ctrl_c = signals.next() => {
                interrupts += 1;
                interrupt(handle, interrupts, is_ctrl_c, front).await;
                // Nothing runs whose end could be waited for.
                if is_idle(handle).await {
                    return Ok(());
                }
            }
            event = feed.next() => {
                let Some(event) = event else { return Ok(()) };
                if let (EventBody::CommandRefused(refused), true) = (&event.body, is_single && !has_begun) {
                    return Err(not_done(refused));
                }
                front.show(&event, screen)?;
                match &event.body {
                    EventBody::ApprovalRequested(request) => {
                        let question = OpenRunQuestion::Approval(request.approval);
                        open = Some(question);
                        match asker {
                            AnswerSource::Person => {
                                ask_person(request, handle, front);
                            }
                            _ if lines.is_none() => nobody_answers(question, handle, front).await,
                            _ => {}
                        }
                    }
                    EventBody::QuestionAsked(asked) => {
                        let question = OpenRunQuestion::Question(asked.call);
                        open = Some(question);
                        match asker {
                            AnswerSource::Person => reply_of_person(asked, handle, front),
                            _ if lines.is_none() => nobody_answers(question, handle, front).await,
                            _ => {}
                        }
                    }
                    EventBody::TurnStarted(_) => has_begun = true,
                    EventBody::ApprovalResolved(_) | EventBody::QuestionAnswered(_) | EventBody::TurnEnded(_) => open = None,
                    _ => {}
                }
                let is_over = has_begun && matches!(event.body, EventBody::TurnEnded(_));
                if is_over && (interrupts > 0 || (lines.is_none() && is_idle(handle).await)) {
                    return Ok(());
                }
            }
            () = done.cancelled() => return Ok(()),
            line = more => match line {
                Some(line) => {
                    if let Some(reply) = input::take(line, handle).await {
                        front.reply(&reply, screen)?;
                    }
                }
                None => {
                    lines = None;
                    if let Some(question) = open {
                        nobody_answers(question, handle, front).await;
                    }
                    if is_idle(handle).await {
                        return Ok(());
                    }
                }
            },
            () = front.tick() => {}
        }
    }
}

/// Whether nothing runs. What waits would have begun by itself, if it were to.
async fn is_idle(handle: &SessionHandle) -> bool {
    match handle.ask(SessionQuery::State).await {
        QueryReply::State { status, .. } => status == SessionStatus::Idle,
        _ => true,
    }
}

fn not_done(refused: &CommandRefused) -> CliFailure {
    let hint = "Say something else: `helve run --continue \"fix the bug\"`.";
    CliFailure::usage("nothing was run", &refused.why, hint)
}

/// Who can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerSource {
    Nobody,
    /// Whoever sends commands.
    Program,
    /// Somebody at the terminal.
    Person,
}

impl AnswerSource {
    fn of(options: &RunCommandArgs) -> AnswerSource {
        let is_person = options.output == OutputFormat::Text
            && !options.quiet
            && std::io::stdin().is_terminal()
            && std::io::stderr().is_terminal();
        match options.input {
            InputFormat::StreamJson => AnswerSource::Program,
            InputFormat::Text if is_person => AnswerSource::Person,
            InputFormat::Text => AnswerSource::Nobody,
        }
    }
}

/// Asks on a thread of its own, so that the work can be stopped meanwhile.
fn ask_person(request: &ApprovalRequested, handle: &SessionHandle, front: &mut RunPrinter) {
    front.clear();
    let (request, handle) = (request.clone(), handle.clone());
    std::thread::spawn(move || {
        let always = "a = by this rule for the session, p = for the project, ";
        let always = if request.rules.is_empty() { "" } else { always };
        let line = console::ask_once(&format!("y = yes, {always}n = no, or say what to do instead: "));
        let (approval, answer) = (request.approval, request.answer_from_line(&line));
        block_on(handle.send(SessionCommand::Decide { approval, answer }))
    });
}

/// Lets a person answer a question of the model's: by the number of an option, or in words.
fn reply_of_person(asked: &QuestionAsked, handle: &SessionHandle, front: &mut RunPrinter) {
    front.clear();
    let (asked, handle) = (asked.clone(), handle.clone());
    std::thread::spawn(move || {
        let prompt = if asked.options.is_empty() { "your answer: " } else { "a number, or your own words: " };
        let text = asked.answer_from_line(&console::ask_once(prompt));
        block_on(handle.send(SessionCommand::Answer { call: asked.call, text }))
    });
}

/// What waits for an answer.
#[derive(Clone, Copy)]
enum OpenRunQuestion {
    Approval(ApprovalId),
    Question(CallId),
}

async fn nobody_answers(question: OpenRunQuestion, handle: &SessionHandle, front: &mut RunPrinter) {
    front.nobody_is_there();
    let command = match question {
        OpenRunQuestion::Approval(approval) => {
            let message = Some("there is no one left to ask".to_owned());
            SessionCommand::Decide { approval, answer: ApprovalAnswer::Reject { message } }
        }
        OpenRunQuestion::Question(call) => SessionCommand::Answer { call, text: None },
    };
    handle.send(command).await;
}

/// Which session is meant; without any of these, a new one.
#[derive(Clone, Copy, Default)]
pub(super) struct SessionSelector<'a> {
    pub(super) resume: Option<&'a str>,
    pub(super) continue_last: bool,
    pub(super) fork: Option<&'a str>,
}

impl<'a> SessionSelector<'a> {
    fn of(options: &'a RunCommandArgs) -> SessionSelector<'a> {
        let (resume, fork) = (options.resume.as_deref(), options.fork.as_deref());
        SessionSelector { resume, continue_last: options.continue_last, fork }
    }
}

/// The model that a session is to be with: the one that it was with, if that can still be used.
pub(super) async fn session_target(
    which: SessionSelector<'_>,
    setup: &CliSetup,
    models: &UserModels,
) -> Result<ModelTarget, CliFailure> {
    match resumed_model(which, setup)?.map(|name| (models.find(&name), name)) {
        Some((Ok(target), _)) => Ok(target),
        Some((Err(why), name)) => {
            let target = models.main().await?;
            let line = format!("{name} can't be used again: {why}; {} goes on", target.name);
            console::print_to_stderr(&format!("{WARN}{}{WARN:#}", one_line(&line)));
            Ok(target)
        }
        None => models.main().await,
    }
}

/// The session that is to go on; none if a new one begins.
pub(super) fn resumed_session(
    which: SessionSelector<'_>,
    setup: &CliSetup,
) -> Result<Option<SessionId>, CliFailure> {
    let journal = setup.journal();
    Ok(match (which.resume, which.continue_last) {
        (Some(id), _) => Some(super::sessions::find(&journal, id)?),
        (None, true) => Some(last_here(&journal, &setup.root)?),
        (None, false) => None,
    })
}

/// The model that a session was with, unless another was asked for.
fn resumed_model(which: SessionSelector<'_>, setup: &CliSetup) -> Result<Option<String>, CliFailure> {
    let is_chosen = setup.config()?.origin("model").is_some_and(|origin| origin.layer == ConfigLayer::Flags);
    if is_chosen {
        return Ok(None);
    }
    let journal = setup.journal();
    let id = match (resumed_session(which, setup)?, which.fork) {
        (Some(id), _) => id,
        (None, Some(place)) => super::sessions::find(&journal, place.split('@').next().unwrap_or(place))?,
        (None, None) => return Ok(None),
    };
    if let Some(model) = last_model(&journal, id) {
        return Ok(Some(model.to_string()));
    }
    let sessions =
        journal.list().map_err(|error| CliFailure::journal("the sessions can't be listed", &error))?;
    let model = sessions.into_iter().find(|summary| summary.session == id).and_then(|summary| summary.model);
    Ok(model.map(|name| name.to_string()))
}

/// The model that a session was with, if its end tells: the list would read all that is new in it first.
fn last_model(journal: &FileJournal, id: SessionId) -> Option<ModelName> {
    const END_BYTES: u64 = 64 << 10;
    let end = journal.look_back(id, helve_journal::END_OF_LOG, END_BYTES).ok()?;
    end.into_iter().rev().find_map(|event| match event.body {
        EventBody::StepStarted(step) => Some(step.model),
        EventBody::DialogueBegan(began) => Some(began.model),
        EventBody::ModelSwitched(switch) => Some(switch.to),
        _ => None,
    })
}

/// Whether the last turn ended by itself, so that there is nothing to resume.
fn is_finished(state: &SessionState) -> bool {
    state.outcome == Some(TurnOutcome::EndTurn) && state.queue.is_empty()
}

/// The first time the turn ends in order; the second time the program does.
#[expect(clippy::exit, reason = "somebody pressed Ctrl-C twice and wants out")]
async fn interrupt(handle: &SessionHandle, times: u32, is_ctrl_c: bool, front: &mut RunPrinter) {
    front.clear();
    if times > 1 {
        std::process::exit(i32::from(ProgramExit::Interrupted as u8));
    }
    let how = if is_ctrl_c { "; press Ctrl-C again to leave at once" } else { "" };
    console::print_to_stderr(&format!("{WARN}stopping{how}{WARN:#}"));
    handle.send(SessionCommand::Interrupt).await;
}

/// Ctrl-C, and what a system sends that wants us to end.
struct InterruptSignals([tokio::signal::unix::Signal; 3]);

impl InterruptSignals {
    fn new() -> Result<InterruptSignals, CliFailure> {
        let listen = |kind| {
            signal(kind).map_err(|error| {
                CliFailure::new("signals can't be handled", error, "Check the limits of this process.")
            })
        };
        Ok(InterruptSignals([
            listen(SignalKind::interrupt())?,
            listen(SignalKind::terminate())?,
            listen(SignalKind::hangup())?,
        ]))
    }

    /// Whether it is Ctrl-C.
    async fn next(&mut self) -> bool {
        let [interrupt, terminate, hang_up] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => true,
            _ = terminate.recv() => false,
            _ = hang_up.recv() => false,
        }
    }
}

/// What is left to be shown when the session has ended.
async fn drain(
    feed: &mut Feed,
    front: &mut RunPrinter,
    screen: &mut ConsoleOutput,
) -> Result<(), CliFailure> {
    while let Ok(Some(event)) = tokio::time::timeout(std::time::Duration::ZERO, feed.next()).await {
        front.show(&event, screen)?;
    }
    Ok(())
}

pub(super) fn open_session(
    which: SessionSelector<'_>,
    setup: &CliSetup,
    wiring: SessionWiring,
    model: SessionModel,
) -> Result<Session, CliFailure> {
    let SessionWiring { services, spec } = wiring;
    let journal = setup.journal();
    let id: Option<SessionId> = match (resumed_session(which, setup)?, which.fork) {
        (Some(id), _) => Some(id),
        (None, Some(place)) => Some(fork(&journal, place, &services)?),
        (None, None) => None,
    };
    let opened = match id {
        Some(id) => Session::open(services, spec, model, id),
        None => Session::create(services, spec, model),
    };
    opened.map_err(|error| session_failure(&error))
}

fn last_here(journal: &FileJournal, root: &Path) -> Result<SessionId, CliFailure> {
    let sessions =
        journal.list().map_err(|error| CliFailure::journal("the sessions can't be listed", &error))?;
    let here =
        sessions.iter().find(|summary| Path::new(&summary.workspace) == root && summary.parent.is_none());
    here.map(|summary| summary.session).ok_or_else(|| {
        let hint = "Leave --continue out, or go to the project of the session.";
        CliFailure::usage("nothing to resume", "this project has no session yet", hint)
    })
}

/// Begins a session that goes on from another: from its end, or from the end of one of its turns.
fn fork(journal: &FileJournal, place: &str, services: &Services) -> Result<SessionId, CliFailure> {
    let (id, turn) = place.split_once('@').unwrap_or((place, ""));
    let parent = super::sessions::find(journal, id)?;
    let failed =
        |error: &helve_journal::JournalError| CliFailure::journal("the session can't be forked", error);
    let (mut ends, mut last) = (Vec::new(), Seq::START);
    let (mut unreadable, mut last_readable) = (UnreadableEvents::default(), Seq::START);
    let read = journal.read(parent, Seq::START, &mut |event| {
        last = event.seq;
        unreadable.apply(&event);
        if unreadable.is_empty() {
            last_readable = event.seq;
        }
        if matches!(event.body, EventBody::TurnEnded(_)) {
            ends.push(event.seq);
        }
        std::ops::ControlFlow::Continue(())
    });
    read.map_err(|error| failed(&error))?;
    let at = match turn {
        "" => last,
        turn => {
            let number = turn.parse::<usize>().ok().and_then(|turn| turn.checked_sub(1));
            *number.and_then(|turn| ends.get(turn)).ok_or_else(|| {
                let why = format!("it has {} turns, counted from 1", ends.len());
                CliFailure::usage(format!("there is no turn {turn:?} in that session"), why, "Write ID@TURN.")
            })?
        }
    };
    if at > last_readable {
        return Err(unreadable_session(&unreadable));
    }
    let child: SessionId = services.ids.draw(IdKind::Session).into();
    journal.fork(parent, at, child).map_err(|error| failed(&error))?;
    Ok(child)
}

/// How the program ends after a turn.
fn exit_of(outcome: TurnOutcome) -> ProgramExit {
    match outcome {
        TurnOutcome::EndTurn => ProgramExit::Success,
        TurnOutcome::Cancelled => ProgramExit::Interrupted,
        TurnOutcome::MaxTurns => ProgramExit::StepLimit,
        TurnOutcome::Timeout => ProgramExit::TimeLimit,
        TurnOutcome::Budget => ProgramExit::CostLimit,
        TurnOutcome::Denied => ProgramExit::Denied,
        TurnOutcome::Error => ProgramExit::Error,
    }
}
