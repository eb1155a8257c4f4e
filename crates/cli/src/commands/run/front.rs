//! What a person or a program sees of a session.

use std::io::Write;
use std::time::Instant;

use helve_agent::Session;
use helve_protocol::{
    Body, Cost, ErrorRaised, Event, Outcome, Part, Reply, Role, ToolPart, ToolState, TurnMetrics, Usage,
};
use serde_json::{Value, json};

use super::exit_of;
use super::progress::Spinner;
use crate::args::OutputForm;
use crate::failure::{Exit, Failure};
use crate::screen::{self, BAD, DIM, Screen, WARN};
use crate::text::{count, fit, one_line, printable};

pub(super) struct Front {
    form: OutputForm,
    quiet: bool,
    spinner: Spinner,
    began: Instant,
    /// Whether the last thing that was printed is a text without its end of line.
    in_text: bool,
    usage: Usage,
    cost: Cost,
    denied: bool,
    error: Option<ErrorRaised>,
    ended: Option<(Outcome, TurnMetrics)>,
}

impl Front {
    pub(super) fn new(form: OutputForm, quiet: bool) -> Front {
        Front {
            form,
            quiet,
            spinner: Spinner::new(),
            began: Instant::now(),
            in_text: false,
            usage: Usage::default(),
            cost: Cost::ZERO,
            denied: false,
            error: None,
            ended: None,
        }
    }

    fn is_for_people(&self) -> bool {
        self.form == OutputForm::Text && !self.quiet
    }

    /// Waits a moment, and shows that something is going on.
    pub(super) async fn tick(&mut self) {
        if self.is_for_people() { self.spinner.tick().await } else { std::future::pending().await }
    }

    pub(super) fn clear(&mut self) {
        self.spinner.clear();
    }

    pub(super) fn show(&mut self, event: &Event, screen: &mut Screen) -> Result<(), Failure> {
        match &event.body {
            Body::StepEnded(step) => {
                self.usage += step.usage;
                self.cost += step.cost;
            }
            Body::ToolEnded(ended) => self.denied |= matches!(ended.end, ToolState::Denied { .. }),
            Body::ErrorRaised(error) => self.error = Some(error.clone()),
            Body::TurnEnded(ended) => self.ended = Some((ended.outcome, ended.metrics)),
            _ => {}
        }
        match self.form {
            OutputForm::StreamJson => {
                writeln!(screen, "{}", event.to_json()?)?;
                screen.finish()
            }
            OutputForm::Text if !self.quiet => {
                self.spinner.follow(event);
                self.tell(event, screen)
            }
            OutputForm::Text | OutputForm::Json => Ok(()),
        }
    }

    /// What a query was answered.
    pub(super) fn reply(&mut self, reply: &Reply, screen: &mut Screen) -> Result<(), Failure> {
        match (self.form, reply) {
            (OutputForm::Text, Reply::Failed { why }) => {
                self.spinner.clear();
                screen::complain(&format!("{WARN}{}{WARN:#}", one_line(why)));
                Ok(())
            }
            _ => {
                writeln!(screen, "{}", serde_json::to_string(reply)?)?;
                screen.finish()
            }
        }
    }

    /// A line beside the answer.
    fn remark(&mut self, line: &str) {
        self.spinner.clear();
        screen::complain(line);
    }

    fn tell(&mut self, event: &Event, screen: &mut Screen) -> Result<(), Failure> {
        match &event.body {
            Body::TextDelta(delta) => {
                write!(screen, "{}", printable(&delta.text))?;
                self.in_text = true;
                screen.finish()?;
            }
            Body::ResponseEnded(ended) => {
                if std::mem::take(&mut self.in_text) {
                    writeln!(screen)?;
                    screen.finish()?;
                }
                for part in &ended.parts {
                    if let Part::Tool(tool) = part {
                        self.remark(&format!("{DIM}· {}{DIM:#}", fit(&brief(tool), 100)));
                    }
                }
            }
            Body::RetryScheduled(retry) => {
                let reason = one_line(&retry.reason);
                self.remark(&format!("{WARN}trying again in {} ms: {reason}{WARN:#}", retry.delay_ms));
            }
            Body::ModelSwitched(switch) => {
                let reason = one_line(&switch.reason);
                self.remark(&format!(
                    "{WARN}{} takes over from {}: {reason}{WARN:#}",
                    switch.to, switch.from
                ));
            }
            Body::ToolEnded(ended) => {
                if let ToolState::Error { message } | ToolState::Denied { reason: message } = &ended.end {
                    self.remark(&format!("{BAD}  {}{BAD:#}", fit(&one_line(message), 120)));
                }
            }
            Body::LimitReached(limit) => {
                let text = one_line(&limit.text);
                self.remark(&format!("{WARN}{text} `helve run --continue` goes on.{WARN:#}"));
            }
            Body::ErrorRaised(error) => {
                self.remark(&format!("{BAD}helve: {}{BAD:#}", one_line(&error.what)));
                let (why, hint) = (one_line(&error.why), one_line(&error.hint));
                self.remark(&format!("  why:  {why}\n  do:   {hint}"));
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn finish(mut self, session: &Session, screen: &mut Screen) -> Result<Exit, Failure> {
        self.spinner.clear();
        let answer = last_answer(session);
        // A program that said nothing ends well.
        let (outcome, metrics) = self.ended.unwrap_or((Outcome::EndTurn, TurnMetrics::default()));
        let exit = exit_of(outcome, self.denied);
        match self.form {
            OutputForm::Json | OutputForm::StreamJson => {
                let mut result = json!({
                    "type": "result",
                    "session": session.id(),
                    "outcome": outcome,
                    "answer": answer,
                    "usage": self.usage,
                    "cost_usd": self.cost.to_string().trim_start_matches('$'),
                    "metrics": metrics,
                    "duration_ms": u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
                    "exit_code": exit as u8,
                });
                if let (Some(error), Outcome::Error) = (&self.error, outcome) {
                    add(&mut result, "error", json!(error));
                }
                writeln!(screen, "{result}")?;
            }
            OutputForm::Text if self.quiet => writeln!(screen, "{}", printable(&answer))?,
            OutputForm::Text => {
                let tokens = usize::try_from(self.usage.context()).unwrap_or(usize::MAX);
                let tokens = count(tokens, "token", "tokens");
                let seconds = self.began.elapsed().as_secs();
                let id = session.id();
                screen::complain(&format!("{DIM}{tokens}, {}, {seconds} s; session {id}{DIM:#}", self.cost));
            }
        }
        Ok(exit)
    }
}

fn add(result: &mut Value, key: &str, value: Value) {
    if let Value::Object(fields) = result {
        fields.insert(key.to_owned(), value);
    }
}

/// With JSON the last line is a result, whatever happened.
pub(super) fn tell_failure(failure: &Failure, screen: &mut Screen) -> Result<(), Failure> {
    if let Failure::ClosedPipe = failure {
        return Ok(());
    }
    let error = match failure {
        Failure::Told { what, why, hint, .. } => json!({ "what": what, "why": why, "hint": hint }),
        other => json!({ "what": other.to_string() }),
    };
    let result = json!({
        "type": "result",
        "outcome": Outcome::Error,
        "answer": "",
        "error": error,
        "exit_code": failure.exit() as u8,
    });
    writeln!(screen, "{result}")?;
    screen.finish()
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
        let last = state.history.messages().filter(|message| message.role == Role::Assistant).last();
        let texts = last.into_iter().flat_map(|message| &message.parts).filter_map(|part| match part {
            Part::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    })
}
