//! One line that shows that something is going on, where a person looks.

use std::time::{Duration, Instant};

use helve_protocol::{EventBody, SessionEvent};

use crate::console::ProgressLine;
use crate::text::{fit, one_line};

const PROGRESS_FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
const MAX_PROGRESS_COLUMNS: usize = 76;

pub(super) struct ProgressSpinner {
    line: ProgressLine,
    /// What is going on, since when; nothing while an answer streams in.
    doing: Option<(String, Instant)>,
    /// The last line that a tool showed.
    shown: String,
    frame: usize,
}

impl ProgressSpinner {
    pub(super) fn new() -> ProgressSpinner {
        ProgressSpinner { line: ProgressLine::new(), doing: None, shown: String::new(), frame: 0 }
    }

    pub(super) fn follow(&mut self, event: &SessionEvent) {
        match &event.body {
            EventBody::StepStarted(_) => self.begin("thinking"),
            EventBody::ThinkingStarted(_) => self.begin("thinking hard"),
            EventBody::CallAnnounced(call) => self.begin(&format!("preparing {}", one_line(&call.name))),
            EventBody::ToolStarted(_) => self.begin("running"),
            EventBody::ToolOutputDelta(delta) => {
                if let Some(line) = delta.text.lines().map(str::trim).rfind(|line| !line.is_empty()) {
                    self.shown = one_line(line);
                }
            }
            EventBody::RetryScheduled(_) => self.begin("waiting to try again"),
            EventBody::TextDelta(_)
            | EventBody::TurnEnded(_)
            | EventBody::ApprovalRequested(_)
            | EventBody::QuestionAsked(_) => self.stop(),
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
        tokio::time::sleep(PROGRESS_INTERVAL).await;
        let Some((doing, since)) = &self.doing else { return };
        self.frame += 1;
        let frame = PROGRESS_FRAMES.get(self.frame % PROGRESS_FRAMES.len()).copied().unwrap_or_default();
        let seconds = since.elapsed().as_secs();
        let shown = if self.shown.is_empty() { String::new() } else { format!(" · {}", self.shown) };
        self.line.tell(&fit(&format!("{frame} {doing} · {seconds} s{shown}"), MAX_PROGRESS_COLUMNS));
    }
}
