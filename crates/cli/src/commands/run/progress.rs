//! One line that shows that something is going on, where a person looks.

use std::time::{Duration, Instant};

use helve_protocol::{Body, Event};

use crate::screen::Progress;
use crate::text::{fit, one_line};

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const EVERY: Duration = Duration::from_millis(100);
const WIDTH: usize = 76;

pub(super) struct Spinner {
    line: Progress,
    /// What is going on, since when; nothing while an answer streams in.
    doing: Option<(String, Instant)>,
    /// The last line that a tool showed.
    shown: String,
    frame: usize,
}

impl Spinner {
    pub(super) fn new() -> Spinner {
        Spinner { line: Progress::new(), doing: None, shown: String::new(), frame: 0 }
    }

    pub(super) fn follow(&mut self, event: &Event) {
        match &event.body {
            Body::StepStarted(_) => self.begin("thinking"),
            Body::ThinkingStarted(_) => self.begin("thinking hard"),
            Body::CallAnnounced(call) => self.begin(&format!("preparing {}", one_line(&call.name))),
            Body::ToolStarted(_) => self.begin("running"),
            Body::ToolOutputDelta(delta) => {
                if let Some(line) = delta.text.lines().map(str::trim).rfind(|line| !line.is_empty()) {
                    self.shown = one_line(line);
                }
            }
            Body::RetryScheduled(_) => self.begin("waiting to try again"),
            Body::TextDelta(_) | Body::TurnEnded(_) | Body::ApprovalRequested(_) | Body::QuestionAsked(_) => {
                self.stop()
            }
            _ => {}
        }
    }

    fn begin(&mut self, what: &str) {
        if self.doing.as_ref().is_none_or(|(doing, _)| doing != what) {
            self.doing = Some((what.to_owned(), Instant::now()));
            self.shown.clear();
        }
    }

    fn stop(&mut self) {
        self.doing = None;
        self.clear();
    }

    /// Takes the line away, so that something else can be written.
    pub(super) fn clear(&mut self) {
        self.line.clear();
    }

    /// Waits, and turns.
    pub(super) async fn tick(&mut self) {
        tokio::time::sleep(EVERY).await;
        let Some((doing, since)) = &self.doing else { return };
        self.frame += 1;
        let frame = FRAMES.get(self.frame % FRAMES.len()).copied().unwrap_or_default();
        let seconds = since.elapsed().as_secs();
        let shown = if self.shown.is_empty() { String::new() } else { format!(" · {}", self.shown) };
        self.line.tell(&fit(&format!("{frame} {doing} · {seconds} s{shown}"), WIDTH));
    }
}
