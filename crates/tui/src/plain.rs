//! The interface as plain lines, for screen readers and for terminals that can't draw: what happens is printed once, line by
//! line, and lines are read.

use std::io::{self, Write};
use std::time::Instant;

use helve_protocol::{Command, Delivery, ModelName, Part, Prompt, TextPart};
use helve_widgets::width::harmless;
use helve_widgets::{Colours, Ground, Theme};
use ratatui::text::Line;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::approvals::Approvals;
use crate::items::Tone;
use crate::link::{Ending, Link, Opened, Order, Told, World};
use crate::slash::{self, Does, Meaning};
use crate::status::{MODES, Status, mode_name};
use crate::transcript::Transcript;

/// Lines are cut here for nobody: a reader or a dumb terminal wraps them itself.
const WIDTH: usize = 10_000;

struct Plain<'a, W: Write> {
    out: &'a mut W,
    theme: Theme,
    transcript: Transcript,
    approvals: Approvals,
    status: Status,
    ending: Option<Ending>,
}

/// Runs until it is left. `lines` are what a person writes; it is closed when nobody does any more.
pub async fn run_plain<W: Write>(
    opened: Opened,
    lines: &mut mpsc::Receiver<String>,
    out: &mut W,
    mut link: Link,
    world: &World,
) -> io::Result<Ending> {
    let mut plain = Plain {
        out,
        theme: Theme::new(Colours::None, Ground::Dark),
        transcript: Transcript::default(),
        approvals: Approvals::new(),
        status: Status::new(&opened),
        ending: None,
    };
    plain.transcript.recall(&opened.recent);
    plain.transcript.remark(Tone::Note, "write a line and press Enter; /help tells more, /quit leaves");
    let mut interrupts = signal(SignalKind::interrupt())?;
    let (mut terminate, mut hang_up) = (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
    let mut orders: Vec<Command> = opened.prompt.map(|prompt| submit(&prompt)).into_iter().collect();
    loop {
        for command in orders.drain(..) {
            let _ = link.orders.send(Order::Do(command)).await;
        }
        plain.print((world.now)())?;
        if let Some(ending) = plain.ending.take() {
            return Ok(ending);
        }
        tokio::select! {
            line = lines.recv() => match line {
                Some(line) => orders.extend(plain.take(&line, (world.now)())?),
                None => return Ok(Ending::Quit),
            },
            told = link.told.recv() => match told {
                Some(Told::Event(event)) => {
                    let now = (world.now)();
                    plain.status.apply(&event, now);
                    plain.transcript.apply(&event, now);
                    let before = plain.approvals.first();
                    plain.approvals.apply(&event, now);
                    if plain.approvals.is_open() && plain.approvals.first() != before {
                        plain.ask()?;
                    }
                }
                Some(Told::Opened(opened)) => plain.status.catch_up(&opened),
                Some(Told::Reply(_)) => {}
                None => return Ok(Ending::SessionEnded),
            },
            _ = interrupts.recv() => match plain.status.is_busy() {
                true => orders.push(Command::Interrupt),
                false => return Ok(Ending::Quit),
            },
            _ = terminate.recv() => return Ok(Ending::Told),
            _ = hang_up.recv() => return Ok(Ending::Told),
        }
    }
}

impl<W: Write> Plain<'_, W> {
    fn print(&mut self, now: Instant) -> io::Result<()> {
        let lines = self.transcript.take_final(WIDTH, now, &self.theme);
        self.write(&lines)
    }

    fn write(&mut self, lines: &[Line<'_>]) -> io::Result<()> {
        for line in lines {
            let text: String = line.spans.iter().map(|span| span.content.as_ref()).collect();
            writeln!(self.out, "{}", harmless(text.trim_end()))?;
        }
        self.out.flush()
    }

    /// Tells what a person has to decide.
    fn ask(&mut self) -> io::Result<()> {
        let Some(entry) = self.approvals.entry() else { return Ok(()) };
        let lines = entry.lines(WIDTH, &self.theme);
        writeln!(self.out, "? {}", harmless(&entry.title))?;
        self.write(&lines)?;
        writeln!(self.out, "{}", self.approvals.line_hint())?;
        self.out.flush()
    }

    fn take(&mut self, line: &str, now: Instant) -> io::Result<Option<Command>> {
        let line = line.trim();
        if self.approvals.is_open() && self.approvals.is_closed(now) {
            writeln!(self.out, "that was written before the question could be read; once more, please")?;
            return Ok(None);
        }
        if self.approvals.is_open() {
            return Ok(self.approvals.answer_line(line));
        }
        Ok(self.meant(line))
    }

    fn meant(&mut self, line: &str) -> Option<Command> {
        match slash::parse(line) {
            _ if line.is_empty() => None,
            Meaning::Message => Some(submit(line)),
            Meaning::Unknown(word) => {
                self.transcript
                    .remark(Tone::Warning, format!("there is no command /{word}; /help lists them"));
                None
            }
            Meaning::Command(command, argument) => self.slash(command.does, argument),
        }
    }

    fn slash(&mut self, does: Does, argument: &str) -> Option<Command> {
        match does {
            Does::Quit => self.ending = Some(Ending::Quit),
            Does::GoOn => return Some(Command::GoOn),
            Does::New => self.ending = Some(Ending::New),
            Does::Model if !argument.is_empty() => {
                return Some(Command::SetModel { model: ModelName::new(argument) });
            }
            Does::Rename if !argument.is_empty() => {
                return Some(Command::Rename { title: argument.to_owned() });
            }
            Does::Mode => {
                let named = MODES.iter().find(|(mode, _)| mode_name(*mode) == argument);
                if let Some((mode, _)) = named {
                    return Some(Command::SetMode { mode: *mode });
                }
                self.transcript.remark(
                    Tone::Note,
                    format!("the mode is {}; /mode MODE changes it", mode_name(self.status.mode)),
                );
            }
            Does::Cost => self.transcript.remark(Tone::Note, format!("{} in this session", self.status.cost)),
            Does::Help => {
                let text = "/new /continue /model NAME /mode MODE /cost /rename TITLE /quit; Ctrl-C stops the agent, or leaves";
                self.transcript.remark(Tone::Note, text);
            }
            _ => self
                .transcript
                .remark(Tone::Note, "plain lines can't do that; `helve` on a terminal that draws can"),
        }
        None
    }
}

fn submit(text: &str) -> Command {
    let parts = vec![Part::Text(TextPart::said(text))];
    Command::Submit(Prompt { parts, delivery: Delivery::Queue })
}
