//! What a person or a program sees of a session.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::time::Instant;

use helve_agent::Session;
use helve_protocol::{
    CallId, Cost, ErrorRaised, EventBody, FileChange, FileChangeKind, MessagePart, MessageRole,
    PlanTaskState, QueryReply, SessionEvent, StopReason, TokenUsage, ToolPart, ToolState, TurnMetrics,
    TurnOutcome, UnkeptReason,
};
use serde_json::{Value, json};

use super::progress::ProgressSpinner;
use super::{AnswerSource, exit_of};
use crate::args::OutputFormat;
use crate::console::{self, BAD, ConsoleOutput, DIM, WARN};
use crate::failure::{CliFailure, ProgramExit};
use crate::text::{count, fit, one_line, printable, question};

/// So many files that somebody else changed are named.
const MAX_LISTED_CHANGES: usize = 10;
/// Tools that run what the model writes, so that nobody knows beforehand what they change.
const COMMAND_TOOLS: [&str; 3] = ["shell", "shell_input", "shell_kill"];

/// How much is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputDetail {
    /// The answer, and beside it what is done.
    Full,
    /// The answer, and why there is none.
    AnswerOnly,
}

pub(super) struct RunPrinter {
    form: OutputFormat,
    detail: OutputDetail,
    spinner: ProgressSpinner,
    began: Instant,
    /// Whether somebody reads the answer as it comes. A program gets it whole: what is sent again would come twice.
    streams: bool,
    /// What was printed of an answer that is not whole.
    streamed: String,
    /// Nobody reads our output any more.
    is_closed: bool,
    /// The names of the calls.
    calls: HashMap<CallId, String>,
    usage: TokenUsage,
    cost: Cost,
    /// What was refused because nobody could be asked.
    denials: Vec<String>,
    /// Whether somebody can be asked.
    asks: bool,
    limit: Option<String>,
    error: Option<ErrorRaised>,
    stop: Option<StopReason>,
    ended: Option<(TurnOutcome, TurnMetrics)>,
}

impl RunPrinter {
    pub(super) fn new(form: OutputFormat, detail: OutputDetail, asker: AnswerSource) -> RunPrinter {
        RunPrinter {
            form,
            detail,
            spinner: ProgressSpinner::new(),
            began: Instant::now(),
            streams: std::io::stdout().is_terminal(),
            streamed: String::new(),
            is_closed: false,
            calls: HashMap::new(),
            usage: TokenUsage::default(),
            cost: Cost::ZERO,
            denials: Vec::new(),
            asks: asker != AnswerSource::Nobody,
            limit: None,
            error: None,
            stop: None,
            ended: None,
        }
    }

    fn is_for_people(&self) -> bool {
        self.form == OutputFormat::Text && self.detail == OutputDetail::Full
    }

    /// From here on nobody can be asked.
    pub(super) fn nobody_is_there(&mut self) {
        self.asks = false;
    }

    /// Waits a moment, and shows that something is going on.
    pub(super) async fn tick(&mut self) {
        if self.is_for_people() { self.spinner.tick().await } else { std::future::pending().await }
    }

    pub(super) fn clear(&mut self) {
        self.spinner.clear();
    }

    /// Shows an event. If nobody reads any more, the work goes on all the same.
    pub(super) fn show(
        &mut self,
        event: &SessionEvent,
        screen: &mut ConsoleOutput,
    ) -> Result<(), CliFailure> {
        self.follow(event);
        if self.is_closed {
            return Ok(());
        }
        match self.write(event, screen) {
            Err(CliFailure::ClosedPipe) => {
                self.is_closed = true;
                Ok(())
            }
            shown => shown,
        }
    }

    fn follow(&mut self, event: &SessionEvent) {
        match &event.body {
            EventBody::ResponseEnded(response) => {
                self.stop = Some(response.stop);
                let calls = response.parts.iter().filter_map(|part| match part {
                    MessagePart::Tool(tool) => Some((tool.call, tool.name.clone())),
                    _ => None,
                });
                self.calls.extend(calls);
            }
            EventBody::StepEnded(step) => {
                self.usage += step.usage;
                self.cost += step.cost;
            }
            EventBody::ToolEnded(ended) => {
                if let ToolState::Denied { reason } = &ended.end
                    && !self.asks
                {
                    self.denials.push(format!("{}: {reason}", self.name(ended.call)));
                }
            }
            EventBody::LimitReached(limit) => self.limit = Some(limit.text.clone()),
            EventBody::ErrorRaised(error) => self.error = Some(error.clone()),
            EventBody::TurnStarted(_) => (self.limit, self.error, self.stop) = (None, None, None),
            EventBody::TurnEnded(ended) => self.ended = Some((ended.outcome, ended.metrics)),
            _ => {}
        }
    }

    fn name(&self, call: CallId) -> String {
        one_line(self.calls.get(&call).map_or("a tool", String::as_str))
    }

    fn write(&mut self, event: &SessionEvent, screen: &mut ConsoleOutput) -> Result<(), CliFailure> {
        match self.form {
            OutputFormat::StreamJson => {
                writeln!(screen, "{}", event.to_json()?)?;
                Ok(screen.finish()?)
            }
            OutputFormat::Text if self.detail == OutputDetail::Full => {
                self.spinner.follow(event);
                self.tell(event, screen)
            }
            OutputFormat::Text | OutputFormat::Json => Ok(()),
        }
    }

    /// What a query was answered.
    pub(super) fn reply(&mut self, reply: &QueryReply, screen: &mut ConsoleOutput) -> Result<(), CliFailure> {
        match (self.form, reply) {
            (OutputFormat::Text, QueryReply::Failed { why }) => {
                self.spinner.clear();
                console::print_to_stderr(&format!("{WARN}{}{WARN:#}", one_line(why)));
                Ok(())
            }
            _ => {
                writeln!(screen, "{}", serde_json::to_string(reply)?)?;
                Ok(screen.finish()?)
            }
        }
    }

    /// Ends a text that breaks off.
    fn end_text(&mut self, screen: &mut ConsoleOutput) -> Result<(), CliFailure> {
        if !std::mem::take(&mut self.streamed).is_empty() {
            writeln!(screen)?;
        }
        Ok(screen.finish()?)
    }

    /// Prints what is not printed yet of an answer. If pieces of it were lost on the way, it is printed whole.
    fn answer(&mut self, parts: &[MessagePart], screen: &mut ConsoleOutput) -> Result<(), CliFailure> {
        let texts = parts.iter().filter_map(|part| match part {
            MessagePart::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        let whole: String = texts.collect();
        if !self.streamed.contains(&whole) {
            let rest = whole.strip_prefix(&self.streamed).map(str::to_owned);
            if rest.is_none() {
                self.end_text(screen)?;
            }
            let rest = rest.unwrap_or(whole);
            write!(screen, "{}", printable(&rest))?;
            self.streamed.push_str(&rest);
        }
        self.end_text(screen)
    }

    /// A line beside the answer.
    fn remark(&mut self, line: &str) {
        self.spinner.clear();
        console::print_to_stderr(line);
    }

    fn tell(&mut self, event: &SessionEvent, screen: &mut ConsoleOutput) -> Result<(), CliFailure> {
        match &event.body {
            EventBody::TextDelta(delta) if self.streams => {
                write!(screen, "{}", printable(&delta.text))?;
                self.streamed.push_str(&delta.text);
                screen.finish()?;
            }
            EventBody::ResponseEnded(ended) => {
                self.answer(&ended.parts, screen)?;
                for part in &ended.parts {
                    if let MessagePart::Tool(tool) = part {
                        self.remark(&format!("{DIM}· {}{DIM:#}", fit(&brief(tool), 100)));
                        if let ToolState::Error { message } = &tool.state {
                            self.remark(&format!("{BAD}  {}{BAD:#}", fit(&one_line(message), 120)));
                        }
                    }
                }
                if let Some(notice) = ended.stop.notice() {
                    self.remark(&format!("{WARN}{notice}{WARN:#}"));
                }
            }
            EventBody::RetryScheduled(retry) => {
                let dropped = if !self.streamed.is_empty() { " The partial answer is dropped." } else { "" };
                self.end_text(screen)?;
                let (reason, seconds) = (one_line(&retry.reason), retry.delay_ms as f64 / 1000.0);
                self.remark(&format!("{WARN}trying again in {seconds:.1} s: {reason}.{dropped}{WARN:#}"));
            }
            EventBody::StepEnded(_) => self.end_text(screen)?,
            EventBody::ModelSwitched(switch) => self.remark(&format!("{WARN}{}{WARN:#}", switch.notice())),
            EventBody::ToolEnded(ended) => {
                let (style, said) = match &ended.end {
                    ToolState::Error { message } => (BAD, message.as_str()),
                    ToolState::Denied { reason } => (BAD, reason.as_str()),
                    ToolState::Completed { output } => match &output.display {
                        // What comes after it, such as a diff, needs more room than there is here.
                        Some(display) => (DIM, display.lines().next().unwrap_or_default()),
                        None => return Ok(()),
                    },
                    _ => return Ok(()),
                };
                let name = self.name(ended.call);
                let line = fit(&format!("{name}: {}", one_line(said)), 120);
                self.remark(&format!("{style}  {line}{style:#}"));
            }
            EventBody::ApprovalRequested(request) => {
                self.remark(&question(request));
            }
            EventBody::QuestionAsked(asked) => {
                self.remark(&format!("{WARN}{}{WARN:#}", printable(&asked.text)));
                for (number, option) in asked.options.iter().enumerate() {
                    self.remark(&format!("  {}. {}", number + 1, one_line(option)));
                }
            }
            EventBody::PlanChanged(plan) => {
                for task in &plan.tasks {
                    let (mark, style) = match task.state {
                        PlanTaskState::Open => ("☐", DIM),
                        PlanTaskState::InProgress => ("▶", WARN),
                        PlanTaskState::Done => ("☑", DIM),
                        PlanTaskState::Dropped => ("☒", DIM),
                    };
                    self.remark(&format!("{style}  {mark} {}{style:#}", fit(&one_line(&task.text), 110)));
                }
            }
            EventBody::FilesChanged(files) => {
                // Tools that write files say it themselves.
                let by_command = files.call.filter(|call| COMMAND_TOOLS.contains(&self.name(*call).as_str()));
                if by_command.is_some() && !files.changes.is_empty() {
                    let names: Vec<String> =
                        files.changes.iter().take(MAX_LISTED_CHANGES).map(counted).collect();
                    let more = files.changes.len().saturating_sub(MAX_LISTED_CHANGES);
                    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                    self.remark(&format!("{DIM}  changed: {}{more}{DIM:#}", fit(&names.join(", "), 110)));
                }
                for change in files.changes.iter().filter(|_| files.call.is_none()).take(MAX_LISTED_CHANGES) {
                    self.remark(&format!("{WARN}  {}{WARN:#}", change.outside_notice()));
                }
                for lost in files
                    .not_kept
                    .iter()
                    .filter(|lost| lost.why != UnkeptReason::Ignored)
                    .take(MAX_LISTED_CHANGES)
                {
                    self.remark(&format!("{WARN}  {}{WARN:#}", lost.notice()));
                }
            }
            EventBody::CommandRefused(refused) => {
                self.remark(&format!("{WARN}{}{WARN:#}", refused.notice()));
            }
            EventBody::LimitReached(limit) => {
                let text = one_line(&limit.text);
                self.remark(&format!("{WARN}{text} `helve run --continue` resumes.{WARN:#}"));
            }
            EventBody::ErrorRaised(error) => {
                self.remark(&format!("{BAD}helve: {}{BAD:#}", one_line(&error.what)));
                let (why, hint) = (one_line(&error.why), one_line(&error.hint));
                self.remark(&format!("  why:  {why}\n  do:   {hint}"));
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn finish(
        mut self,
        session: &Session,
        screen: &mut ConsoleOutput,
    ) -> Result<ProgramExit, CliFailure> {
        self.spinner.clear();
        let answer = last_answer(session);
        // A program that said nothing ends well.
        let (mut outcome, metrics) = self.ended.unwrap_or((TurnOutcome::EndTurn, TurnMetrics::default()));
        if outcome == TurnOutcome::EndTurn && !self.denials.is_empty() {
            outcome = TurnOutcome::Denied;
        }
        let exit = match &self.error {
            Some(error) if error.is_about_keys && outcome == TurnOutcome::Error => ProgramExit::NoKey,
            _ => exit_of(outcome),
        };
        match self.form {
            _ if self.is_closed => {}
            OutputFormat::Json | OutputFormat::StreamJson => {
                let mut result = json!({
                    "type": "result",
                    "session": session.id(),
                    "outcome": outcome,
                    "answer": answer,
                    "stop": self.stop,
                    "usage": self.usage,
                    "cost_usd": self.cost.to_string().trim_start_matches('$'),
                    "metrics": metrics,
                    "duration_ms": u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
                    "exit_code": exit as u8,
                });
                if let (Some(error), TurnOutcome::Error) = (&self.error, outcome) {
                    add(&mut result, "error", json!(error));
                }
                if let Some(limit) = &self.limit {
                    add(&mut result, "limit", json!(limit));
                }
                if !self.denials.is_empty() {
                    add(&mut result, "denials", json!(self.denials));
                }
                writeln!(screen, "{result}")?;
            }
            OutputFormat::Text if self.detail == OutputDetail::AnswerOnly => {
                if !answer.is_empty() {
                    writeln!(screen, "{}", printable(&answer))?;
                }
                let error = self.error.as_ref().map(|error| format!("{}: {}", error.what, error.why));
                let reason = error.filter(|_| outcome == TurnOutcome::Error).or_else(|| self.limit.clone());
                if let Some(reason) = reason {
                    console::print_to_stderr(&format!("{WARN}{}{WARN:#}", one_line(&reason)));
                }
            }
            OutputFormat::Text => {
                let tokens = usize::try_from(self.usage.context()).unwrap_or(usize::MAX);
                let tokens = count(tokens, "token", "tokens");
                let seconds = self.began.elapsed().as_secs();
                let id = session.id();
                console::print_to_stderr(&format!(
                    "{DIM}{tokens}, {}, {seconds} s; session {id}{DIM:#}",
                    self.cost
                ));
                if outcome == TurnOutcome::Cancelled {
                    console::print_to_stderr(&format!(
                        "{DIM}`helve run --continue` resumes where it stopped{DIM:#}"
                    ));
                }
            }
        }
        if !self.denials.is_empty() && self.form == OutputFormat::Text {
            let hint = "Nobody could be asked: --allow RULE allows it beforehand, --permission-mode auto all that stays in the project.";
            console::print_to_stderr(&format!("{WARN}{hint}{WARN:#}"));
        }
        Ok(exit)
    }
}

fn counted(change: &FileChange) -> String {
    let path = one_line(&change.path);
    match change.change {
        FileChangeKind::Added => format!("{path} (new)"),
        FileChangeKind::Deleted => format!("{path} (deleted)"),
        _ => format!("{path} (+{} -{})", change.added_lines, change.removed_lines),
    }
}

fn add(result: &mut Value, key: &str, value: Value) {
    if let Value::Object(fields) = result {
        fields.insert(key.to_owned(), value);
    }
}

/// With JSON the last line is a result, whatever happened.
pub(super) fn tell_failure(failure: &CliFailure, screen: &mut ConsoleOutput) -> Result<(), CliFailure> {
    if let CliFailure::ClosedPipe = failure {
        return Ok(());
    }
    let error = match failure {
        CliFailure::Explained { what, why, hint, .. } => json!({ "what": what, "why": why, "hint": hint }),
        other => json!({ "what": other.to_string() }),
    };
    let result = json!({
        "type": "result",
        "outcome": TurnOutcome::Error,
        "answer": "",
        "error": error,
        "exit_code": failure.exit() as u8,
    });
    writeln!(screen, "{result}")?;
    Ok(screen.finish()?)
}

/// A call in a few words: the tool, and the one thing that it is about.
fn brief(tool: &ToolPart) -> String {
    const ABOUT: [&str; 5] = ["command", "path", "pattern", "url", "query"];
    let about = ABOUT.iter().find_map(|field| tool.input.get(field)?.as_str());
    let about = about.map_or_else(|| tool.input.to_string(), str::to_owned);
    format!("{} {}", one_line(&tool.name), one_line(&about))
}

fn last_answer(session: &Session) -> String {
    session.state(|state| {
        let last = state.history.messages().filter(|message| message.role == MessageRole::Assistant).last();
        let texts = last.into_iter().flat_map(|message| &message.parts).filter_map(|part| match part {
            MessagePart::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    })
}
