//! `helve sessions`

use std::io::Write;
use std::ops::ControlFlow;

use helve_journal::{EventVisitor, FileJournal, Journal, JournalError, LogReadEnd};
use helve_protocol::{
    Clock, ConversationHistory, Message, MessagePart, MessageRole, Seq, SessionId, SessionStatus,
    SessionSummary, TextKind, ToolPart, ToolState,
};

use crate::args;
use crate::console::{self, BAD, ConsoleOutput, DIM, GOOD, HEADING, WARN};
use crate::failure::{CliFailure, ProgramExit};
use crate::setup::{CliSetup, SystemClock};
use crate::text::{ago, count, fit, local_time, one_line, pad, printable, thousands};

pub(crate) fn run(
    command: args::SessionsCommand,
    setup: &CliSetup,
    screen: &mut ConsoleOutput,
) -> Result<ProgramExit, CliFailure> {
    setup.mention_problems();
    let journal = setup.journal();
    match command {
        args::SessionsCommand::List { here, limit, all, json } => {
            let mut sessions = list_of(&journal)?;
            sessions.retain(|summary| !here || std::path::Path::new(&summary.workspace) == setup.root);
            // Sub-agents' sessions belong to the one that started them.
            sessions.retain(|summary| all || json || summary.parent.is_none());
            let limit = if all { usize::MAX } else { limit };
            if json { list_json(&sessions, screen) } else { list(&sessions, limit, screen) }
        }
        args::SessionsCommand::Show { id, json, events } => {
            let session = find(&journal, &id)?;
            match (json, events) {
                (_, true) => show_events(&journal, session, screen),
                (true, _) => show_json(&journal, session, screen),
                _ => show(&journal, session, screen),
            }
        }
        args::SessionsCommand::Delete { ids, forks, yes } => {
            let sessions: Result<Vec<SessionId>, CliFailure> =
                ids.iter().map(|id| find(&journal, id)).collect();
            delete(&journal, sessions?, ForkDeletion::included_if(forks), yes, screen)
        }
    }
}

/// Fewer digits would find the wrong session too easily.
const MIN_ID_DIGITS: usize = 4;

fn list_of(journal: &FileJournal) -> Result<Vec<SessionSummary>, CliFailure> {
    journal.list().map_err(|error| CliFailure::journal("the sessions can't be listed", &error))
}

/// Eight digits of an id tell sessions apart for people. The last ones: the first ones are the time.
fn short(session: SessionId) -> String {
    let digits = session.uuid().simple().to_string();
    digits.get(24..).unwrap_or(&digits).to_owned()
}

fn list(
    sessions: &[SessionSummary],
    limit: usize,
    screen: &mut ConsoleOutput,
) -> Result<ProgramExit, CliFailure> {
    if sessions.is_empty() {
        writeln!(screen, "There are no sessions.")?;
        return Ok(ProgramExit::Success);
    }
    let now = SystemClock.now();
    let shown: Vec<&SessionSummary> = sessions.iter().take(limit).collect();
    let when: Vec<String> = shown.iter().map(|summary| ago(now, summary.updated)).collect();
    let cost: Vec<String> = shown.iter().map(|summary| cents(summary)).collect();
    let (last_used, status, costs) = ("LAST USED", "STATUS", "COST");
    let when_width = when.iter().map(String::len).max().unwrap_or(0).max(last_used.len());
    let status_width =
        shown.iter().map(|summary| doing(summary).1.len()).max().unwrap_or(0).max(status.len());
    let cost_width = cost.iter().map(String::len).max().unwrap_or(0).max(costs.len());
    let taken = 8 + when_width + status_width + cost_width + 8;
    let room = screen.width().map(|width| width.saturating_sub(taken).max(8));
    let (last_used, status) = (pad(last_used, when_width), pad(status, status_width));
    writeln!(screen, "{DIM}ID        {last_used}  {status}  {costs:>cost_width$}  TITLE{DIM:#}")?;
    for ((summary, when), cost) in shown.iter().zip(when).zip(cost) {
        let title = title_of(summary);
        let title = room.map_or(title.clone(), |room| fit(&title, room));
        let damage = if summary.damage.is_some() { format!("{BAD}damaged{BAD:#} ") } else { String::new() };
        let id = short(summary.session);
        let when = pad(&when, when_width);
        let (style, status) = doing(summary);
        let status = pad(status, status_width);
        writeln!(
            screen,
            "{HEADING}{id}{HEADING:#}  {DIM}{when}{DIM:#}  {style}{status}{style:#}  {cost:>cost_width$}  {damage}{title}"
        )?;
    }
    if sessions.len() > shown.len() {
        let more = count(sessions.len() - shown.len(), "more", "more");
        writeln!(screen, "{DIM}and {more}: --all shows them{DIM:#}")?;
    }
    Ok(ProgramExit::Success)
}

/// What a session is doing, in plain words, and how they look.
fn doing(summary: &SessionSummary) -> (anstyle::Style, &'static str) {
    match summary.status {
        _ if summary.broken_off => (WARN, "broken off"),
        Some(SessionStatus::Idle) => (GOOD, "idle"),
        Some(SessionStatus::Thinking) => (GOOD, "thinking"),
        Some(SessionStatus::RunningTools) => (GOOD, "running tools"),
        Some(SessionStatus::WaitingForPerson) => (WARN, "waiting for a person"),
        Some(SessionStatus::Ended) => (DIM, "ended"),
        None => (DIM, "unknown"),
    }
}

pub(super) fn title_of(summary: &SessionSummary) -> String {
    if summary.title.is_empty() && summary.damage.is_some() {
        return "(can't be read)".to_owned();
    }
    if summary.title.is_empty() { "(nothing said yet)".to_owned() } else { one_line(&summary.title) }
}

/// What a session cost, to the cent; less than that is told as such.
pub(super) fn cents(summary: &SessionSummary) -> String {
    let cent = 10_000_000_000;
    match summary.cost.pico_dollars() {
        0 => "-".to_owned(),
        pico if pico < cent => "<$0.01".to_owned(),
        pico => {
            let cents = pico / cent;
            format!("${}.{:02}", thousands(cents / 100), cents % 100)
        }
    }
}

fn list_json(sessions: &[SessionSummary], screen: &mut ConsoleOutput) -> Result<ProgramExit, CliFailure> {
    for summary in sessions {
        writeln!(screen, "{}", serde_json::to_string(summary)?)?;
    }
    Ok(ProgramExit::Success)
}

/// A session by its id, by the beginning or the end of it, or the last one.
pub(super) fn find(journal: &FileJournal, text: &str) -> Result<SessionId, CliFailure> {
    if text == "last" {
        let last = list_of(journal)?.first().map(|summary| summary.session);
        return last.ok_or_else(|| {
            CliFailure::new("there is no last session", "there are no sessions", "Start one first.")
        });
    }
    if let Ok(session) = text.parse() {
        return Ok(session);
    }
    let wanted = text.replace('-', "").to_lowercase();
    if wanted.len() < MIN_ID_DIGITS {
        let what = format!("there is no session {text:?}");
        return Err(CliFailure::new(
            what,
            format!("an id has at least {MIN_ID_DIGITS} digits"),
            "Write more digits of the id.",
        ));
    }
    let matches = |session: &SessionId| {
        let digits = session.uuid().simple().to_string();
        digits.starts_with(&wanted) || digits.ends_with(&wanted) || short(*session).starts_with(&wanted)
    };
    let sessions =
        journal.sessions().map_err(|error| CliFailure::journal("the sessions can't be listed", &error))?;
    let found: Vec<SessionId> = sessions.into_iter().filter(matches).collect();
    match found.as_slice() {
        [session] => Ok(*session),
        [] => Err(CliFailure::new(
            format!("there is no session {text:?}"),
            "no id is, begins with or ends with that",
            "`helve sessions list` shows those that exist.",
        )),
        many => Err(CliFailure::new(
            format!("{text:?} may be any of {}", count(many.len(), "session", "sessions")),
            many.iter().take(5).map(ToString::to_string).collect::<Vec<_>>().join(", "),
            "Write more digits of the id.",
        )),
    }
}

fn read(journal: &FileJournal, session: SessionId, each: EventVisitor<'_>) -> Result<LogReadEnd, CliFailure> {
    let told = journal.read(session, Seq::START, each);
    told.map_err(|error| CliFailure::journal(format!("session {session} can't be read"), &error))
}

/// The conversation, and how the reading of it ended.
fn history_of(
    journal: &FileJournal,
    session: SessionId,
) -> Result<(ConversationHistory, LogReadEnd), CliFailure> {
    let mut history = ConversationHistory::default();
    let ending = read(journal, session, &mut |event| {
        history.apply(&event);
        ControlFlow::Continue(())
    })?;
    Ok((history, ending))
}

fn show_events(
    journal: &FileJournal,
    session: SessionId,
    screen: &mut ConsoleOutput,
) -> Result<ProgramExit, CliFailure> {
    let mut written = Ok(());
    let ending = read(journal, session, &mut |event| {
        let json = event.to_json().map_err(CliFailure::from);
        written = json.and_then(|json| Ok(writeln!(screen, "{json}")?));
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    written?;
    end_of(ending)
}

fn show_json(
    journal: &FileJournal,
    session: SessionId,
    screen: &mut ConsoleOutput,
) -> Result<ProgramExit, CliFailure> {
    let (history, ending) = history_of(journal, session)?;
    let messages: Vec<&Message> = history.messages().collect();
    writeln!(screen, "{}", serde_json::to_string_pretty(&messages)?)?;
    end_of(ending)
}

fn show(
    journal: &FileJournal,
    session: SessionId,
    screen: &mut ConsoleOutput,
) -> Result<ProgramExit, CliFailure> {
    let (history, ending) = history_of(journal, session)?;
    if let Some(summary) = list_of(journal)?.into_iter().find(|summary| summary.session == session) {
        heading(&summary, screen)?;
    }
    for message in history.messages() {
        show_message(message, screen)?;
    }
    if let Some(partial) = history.partial() {
        writeln!(screen, "\n{DIM}(an answer that was cut off){DIM:#}\n{}", printable(partial))?;
    }
    screen.flush()?;
    end_of(ending)
}

fn heading(summary: &SessionSummary, screen: &mut ConsoleOutput) -> Result<(), CliFailure> {
    writeln!(screen, "{HEADING}{}{HEADING:#}", title_of(summary))?;
    let mut line =
        |name: &str, value: &str| writeln!(screen, "{DIM}{}{DIM:#} {}", pad(name, 9), one_line(value));
    line("session", &summary.session.to_string())?;
    line("in", &summary.workspace)?;
    if let Some(model) = &summary.model {
        line("model", model.as_str())?;
    }
    line("began", &local_time(summary.created))?;
    line("last", &local_time(summary.updated))?;
    let usage = summary.usage;
    let read = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
    line(
        "cost",
        &format!("{} ({} tokens read, {} written)", summary.cost, thousands(read), thousands(usage.output)),
    )?;
    if let Some((parent, seq)) = summary.forked_from {
        line("fork of", &format!("{parent} at event {seq}"))?;
    }
    Ok(())
}

fn show_message(message: &Message, screen: &mut ConsoleOutput) -> Result<(), CliFailure> {
    let mut heard = false;
    for part in &message.parts {
        let Some(text) = part_text(part) else { continue };
        if !heard {
            heard = true;
            match message.role {
                MessageRole::User => {
                    writeln!(screen, "\n{GOOD}you{GOOD:#} {DIM}{}{DIM:#}", local_time(message.time))?
                }
                MessageRole::Assistant => {
                    writeln!(screen, "\n{HEADING}helve{HEADING:#} {DIM}{}{DIM:#}", local_time(message.time))?
                }
            }
        }
        // What was said is set in, so that nothing in it looks like one of our headings.
        for line in text.lines() {
            writeln!(screen, "  {line}")?;
        }
    }
    Ok(())
}

/// What a person wants to see of a part, if anything.
fn part_text(part: &MessagePart) -> Option<String> {
    match part {
        MessagePart::Text(text) if text.text.trim().is_empty() => None,
        MessagePart::Text(text) if text.kind == TextKind::Note => {
            Some(format!("{DIM}({}){DIM:#}", printable(&text.text)))
        }
        MessagePart::Text(text) => Some(printable(&text.text)),
        MessagePart::File(file) => {
            Some(format!("{DIM}[{}, {}]{DIM:#}", one_line(&file.name), one_line(&file.media_type)))
        }
        MessagePart::Tool(tool) => Some(tool_text(tool)),
        MessagePart::Patch(patch) => {
            let files = patch.changes.iter().map(|change| {
                format!("{} +{} -{}", one_line(&change.path), change.added_lines, change.removed_lines)
            });
            Some(format!("{DIM}changed: {}{DIM:#}", files.collect::<Vec<_>>().join(", ")))
        }
        MessagePart::Retry { reason, .. } => Some(format!("{WARN}tried again: {}{WARN:#}", one_line(reason))),
        MessagePart::Reasoning(_) | MessagePart::StepStart { .. } | MessagePart::StepFinish { .. } => None,
    }
}

fn tool_text(tool: &ToolPart) -> String {
    let call = fit(&one_line(&format!("{} {}", tool.name, tool.input)), 100);
    let result = tool.state.for_model();
    let first_line = fit(&one_line(result.text.lines().next().unwrap_or_default()), 100);
    let lines = match result.text.lines().count() {
        0 | 1 => String::new(),
        n => format!(" {DIM}(and {} more){DIM:#}", count(n - 1, "line", "lines")),
    };
    let mark = if matches!(tool.state, ToolState::Completed { .. }) {
        format!("{GOOD}✓{GOOD:#}")
    } else {
        format!("{BAD}✗{BAD:#}")
    };
    format!("{mark} {call}\n  {DIM}{first_line}{DIM:#}{lines}")
}

/// Says on the standard error if something is missing at the end.
fn end_of(ending: LogReadEnd) -> Result<ProgramExit, CliFailure> {
    match ending {
        LogReadEnd::Whole | LogReadEnd::Stopped => Ok(ProgramExit::Success),
        LogReadEnd::Torn { bytes } => {
            console::print_to_stderr(&format!(
                "{WARN}the last line of the log is not complete ({bytes} bytes): it is being written, or was cut off{WARN:#}"
            ));
            Ok(ProgramExit::Success)
        }
        LogReadEnd::Damaged(damage) => Err(CliFailure::new(
            "this is not all: the rest of the log is damaged",
            damage,
            "`helve doctor --repair` sets the damaged file aside and goes on from here.",
        )),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum ForkDeletion {
    Included,
    Kept,
}

impl ForkDeletion {
    fn included_if(wanted: bool) -> ForkDeletion {
        if wanted { ForkDeletion::Included } else { ForkDeletion::Kept }
    }
}

fn delete(
    journal: &FileJournal,
    mut sessions: Vec<SessionId>,
    forks: ForkDeletion,
    yes: bool,
    screen: &mut ConsoleOutput,
) -> Result<ProgramExit, CliFailure> {
    let failed = |session: SessionId, error: &JournalError| {
        CliFailure::journal(format!("session {session} can't be deleted"), error)
    };
    if forks == ForkDeletion::Included {
        sessions = with_forks(journal, sessions)?;
    }
    sessions.dedup();
    let known = list_of(journal)?;
    let title = |session: SessionId| {
        let summary = known.iter().find(|summary| summary.session == session);
        summary.map_or_else(|| "?".to_owned(), title_of)
    };
    if !yes {
        for session in &sessions {
            console::print_to_stderr(&format!("  {}  {}", short(*session), title(*session)));
        }
        let question = format!("Delete {} for good?", count(sessions.len(), "session", "sessions"));
        match console::ask(&question) {
            Some(true) => {}
            Some(false) => return Ok(ProgramExit::Error),
            None => {
                let why = "there is nobody to ask";
                return Err(CliFailure::usage("nothing was deleted", why, "Add --yes if you are sure."));
            }
        }
    }
    for session in sessions {
        journal.delete(session).map_err(|error| failed(session, &error))?;
        writeln!(screen, "deleted {}  {}", short(session), title(session))?;
    }
    Ok(ProgramExit::Success)
}

/// The sessions after all that live on them, so that each can be deleted when its turn comes.
fn with_forks(journal: &FileJournal, sessions: Vec<SessionId>) -> Result<Vec<SessionId>, CliFailure> {
    let mut found = sessions;
    let mut next = 0;
    while let Some(session) = found.get(next).copied() {
        let forks = journal
            .forks(session)
            .map_err(|error| CliFailure::journal("the forks can't be found", &error))?;
        found.retain(|known| !forks.contains(known) || *known == session);
        next = found.iter().position(|known| *known == session).unwrap_or(next) + 1;
        found.extend(forks);
    }
    found.reverse();
    Ok(found)
}
