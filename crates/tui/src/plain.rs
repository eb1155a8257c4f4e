//! The interface as plain lines, for screen readers and for terminals that can't draw: what happens is printed once, line by
//! line, and lines are read.

use std::io::{self, Write};
use std::time::Instant;

use helve_protocol::{MessagePart, ModelName, PromptDelivery, SessionCommand, TextPart, UserPrompt};
use helve_widgets::width::sanitize_text;
use helve_widgets::{Background, ColorDepth, Theme};
use ratatui::text::Line;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::approvals::ApprovalDialog;
use crate::link::{AppExitReason, MachineAccess, SessionLink, SessionMessage, SessionOverview, UiRequest};
use crate::slash::{self, SlashAction, SlashLine};
use crate::status::{MODE_DESCRIPTIONS, StatusBar, mode_name};
use crate::transcript::Transcript;
use crate::transcript_items::RemarkTone;

/// Lines are cut here for nobody: a reader or a dumb terminal wraps them itself.
const UNLIMITED_COLUMNS: usize = 10_000;

struct PlainInterface<'a, W: Write> {
    out: &'a mut W,
    theme: Theme,
    transcript: Transcript,
    approvals: ApprovalDialog,
    status: StatusBar,
    ending: Option<AppExitReason>,
}

/// Runs until it is left. `lines` are what a person writes; it is closed when nobody does any more.
pub async fn run_plain<W: Write>(
    opened: SessionOverview,
    lines: &mut mpsc::Receiver<String>,
    out: &mut W,
    mut link: SessionLink,
    world: &MachineAccess,
) -> io::Result<AppExitReason> {
    let mut plain = PlainInterface {
        out,
        theme: Theme::new(ColorDepth::None, Background::Dark),
        transcript: Transcript::default(),
        approvals: ApprovalDialog::new(),
        status: StatusBar::new(&opened),
        ending: None,
    };
    plain.transcript.add_messages(&opened.recent);
    plain.transcript.remark(RemarkTone::Note, "write a line and press Enter; /help for help, /quit leaves");
    let mut interrupts = signal(SignalKind::interrupt())?;
    let (mut terminate, mut hang_up) = (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
    let mut orders: Vec<SessionCommand> = opened.prompt.map(|prompt| submit(&prompt)).into_iter().collect();
    loop {
        for command in orders.drain(..) {
            let _ = link.orders.send(UiRequest::Command(command)).await;
        }
        plain.print((world.now)())?;
        if let Some(ending) = plain.ending.take() {
            return Ok(ending);
        }
        tokio::select! {
            line = lines.recv() => match line {
                Some(line) => orders.extend(plain.take(&line, (world.now)())?),
                None => return Ok(AppExitReason::Quit),
            },
            told = link.told.recv() => match told {
                Some(SessionMessage::Event(event)) => {
                    let now = (world.now)();
                    plain.status.apply(&event, now);
                    plain.transcript.apply(&event, now);
                    let before = plain.approvals.first();
                    plain.approvals.apply(&event, now);
                    if plain.approvals.is_open() && plain.approvals.first() != before {
                        plain.ask()?;
                    }
                }
                Some(SessionMessage::Overview(opened)) => plain.status.catch_up(&opened),
                Some(SessionMessage::Reply(_)) => {}
                None => return Ok(AppExitReason::SessionEnded),
            },
            _ = interrupts.recv() => match plain.status.is_busy() {
                true => orders.push(SessionCommand::Interrupt),
                false => return Ok(AppExitReason::Quit),
            },
            _ = terminate.recv() => return Ok(AppExitReason::Terminated),
            _ = hang_up.recv() => return Ok(AppExitReason::Terminated),
        }
    }
}

impl<W: Write> PlainInterface<'_, W> {
    fn print(&mut self, now: Instant) -> io::Result<()> {
        let lines = self.transcript.take_final(UNLIMITED_COLUMNS, now, &self.theme);
        self.write(&lines)
    }

    fn write(&mut self, lines: &[Line<'_>]) -> io::Result<()> {
        for line in lines {
            let text: String = line.spans.iter().map(|span| span.content.as_ref()).collect();
            writeln!(self.out, "{}", sanitize_text(text.trim_end()))?;
        }
        self.out.flush()
    }

    /// Tells what a person has to decide.
    fn ask(&mut self) -> io::Result<()> {
        let Some(entry) = self.approvals.entry() else { return Ok(()) };
        let lines = entry.lines(UNLIMITED_COLUMNS, &self.theme);
        writeln!(self.out, "? {}", sanitize_text(&entry.title))?;
        self.write(&lines)?;
        writeln!(self.out, "{}", self.approvals.line_hint())?;
        self.out.flush()
    }

    fn take(&mut self, line: &str, now: Instant) -> io::Result<Option<SessionCommand>> {
        let line = line.trim();
        if self.approvals.is_open() && self.approvals.is_guarded(now) {
            writeln!(self.out, "that was written before the question could be read; once more, please")?;
            return Ok(None);
        }
        if self.approvals.is_open() {
            return Ok(self.approvals.answer_line(line));
        }
        Ok(self.parse_line(line))
    }

    fn parse_line(&mut self, line: &str) -> Option<SessionCommand> {
        match slash::parse(line) {
            _ if line.is_empty() => None,
            SlashLine::Message => Some(submit(line)),
            SlashLine::Unknown(word) => {
                self.transcript
                    .remark(RemarkTone::Warning, format!("there is no command /{word}; /help lists them"));
                None
            }
            SlashLine::Command(command, argument) => self.slash(command.does, argument),
        }
    }

    fn slash(&mut self, does: SlashAction, argument: &str) -> Option<SessionCommand> {
        match does {
            SlashAction::Quit => self.ending = Some(AppExitReason::Quit),
            SlashAction::Continue => return Some(SessionCommand::GoOn),
            SlashAction::New => self.ending = Some(AppExitReason::NewSession),
            SlashAction::Model if !argument.is_empty() => {
                return Some(SessionCommand::SetModel { model: ModelName::new(argument) });
            }
            SlashAction::Rename if !argument.is_empty() => {
                return Some(SessionCommand::Rename { title: argument.to_owned() });
            }
            SlashAction::Mode => {
                let named = MODE_DESCRIPTIONS.iter().find(|(mode, _)| mode_name(*mode) == argument);
                if let Some((mode, _)) = named {
                    return Some(SessionCommand::SetMode { mode: *mode });
                }
                self.transcript.remark(
                    RemarkTone::Note,
                    format!("the mode is {}; /mode MODE changes it", mode_name(self.status.mode)),
                );
            }
            SlashAction::Cost => {
                self.transcript.remark(RemarkTone::Note, format!("{} in this session", self.status.cost))
            }
            SlashAction::Help => {
                let text = "/new /continue /model NAME /mode MODE /cost /rename TITLE /quit; Ctrl-C stops the agent, or leaves";
                self.transcript.remark(RemarkTone::Note, text);
            }
            _ => self
                .transcript
                .remark(RemarkTone::Note, "plain lines can't do that; `helve` on a terminal that draws can"),
        }
        None
    }
}

fn submit(text: &str) -> SessionCommand {
    let parts = vec![MessagePart::Text(TextPart::said(text))];
    SessionCommand::Submit(UserPrompt { parts, delivery: PromptDelivery::Queue })
}
