//! What the session is doing and with what: the line below the composer, and what is pinned above it.

use std::time::{Duration, Instant};

use helve_protocol::{
    AgentName, Cost, EventBody, MessagePart, ModelName, PermissionMode, PlanTask, PlanTaskState,
    QueuedMessage, ReasoningEffort, SessionEvent, SessionState, SessionStatus as Doing, StatusBarItem,
    TokenUsage, ToolClass,
};
use helve_widgets::{Theme, width};
use ratatui::text::{Line, Span};

use crate::cards::spinner_frame;
use crate::keymap::KeyMap;
use crate::keys::KeyAction;
use crate::link::SessionOverview;
use crate::text_format::{duration, one_line, tokens};

/// So many tasks and waiting messages are shown.
const MAX_SHOWN_TASKS: usize = 6;
const MAX_SHOWN_QUEUED: usize = 3;
/// Whoever waits so long for a command is told how not to.
const LONG_COMMAND_DURATION: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub(crate) struct StatusBar {
    pub(crate) model: Option<ModelName>,
    /// Which agent answers, if it is not the usual one.
    agent: Option<AgentName>,
    /// How much the model thinks, if that was said.
    pub(crate) effort: Option<ReasoningEffort>,
    pub(crate) mode: PermissionMode,
    pub(crate) usage: TokenUsage,
    pub(crate) cost: Cost,
    pub(crate) queue: Vec<QueuedMessage>,
    pub(crate) branch: Option<String>,
    /// How commands are confined.
    pub(crate) sandbox: String,
    /// How many tokens the last request filled.
    context: u64,
    plan: Vec<PlanTask>,
    doing: Doing,
    /// Since when a call runs that may be a command.
    command: Option<Instant>,
    /// Since when the turn runs.
    turn: Option<Instant>,
    /// A turn has just ended, and took so long.
    ended: Option<Duration>,
}

impl StatusBar {
    pub(crate) fn new(opened: &SessionOverview) -> StatusBar {
        StatusBar {
            model: opened.model.clone(),
            agent: opened.agent.clone().filter(is_unusual),
            effort: None,
            mode: opened.mode,
            usage: TokenUsage::default(),
            cost: opened.cost,
            queue: opened.queue.clone(),
            branch: None,
            sandbox: String::new(),
            context: 0,
            plan: opened.plan.clone(),
            doing: Doing::Idle,
            command: None,
            turn: None,
            ended: None,
        }
    }

    /// All of the session is known now.
    pub(crate) fn catch_up(&mut self, opened: &SessionOverview) {
        let SessionOverview { model, mode, cost, queue, plan, .. } = opened.clone();
        (self.model, self.mode, self.cost, self.queue, self.plan) = (model, mode, cost, queue, plan);
    }

    /// Whether a turn runs.
    pub(crate) fn is_busy(&self) -> bool {
        self.turn.is_some()
    }

    /// Whether something runs that a person may not want to wait for.
    pub(crate) fn has_command(&self) -> bool {
        self.command.is_some()
    }

    /// How long the turn took that has just ended.
    pub(crate) fn take_ended(&mut self) -> Option<Duration> {
        self.ended.take()
    }

    pub(crate) fn apply(&mut self, event: &SessionEvent, now: Instant) {
        self.agent = Some(event.agent.clone()).filter(is_unusual);
        match &event.body {
            EventBody::TurnStarted(_) => (self.turn, self.doing) = (Some(now), Doing::Thinking),
            EventBody::StepStarted(step) => {
                self.model = Some(step.model.clone());
                self.doing = Doing::Thinking;
            }
            EventBody::ToolStarted(started) => {
                self.doing = Doing::RunningTools;
                self.command = Some(now).filter(|_| started.class == ToolClass::Changes);
            }
            EventBody::ToolEnded(_) => self.command = None,
            EventBody::StepEnded(step) => {
                self.usage += step.usage;
                self.cost += step.cost;
                self.context = step.usage.context();
            }
            EventBody::TurnEnded(_) => {
                self.ended = self.turn.take().map(|since| now.saturating_duration_since(since));
                (self.doing, self.command) = (Doing::Idle, None);
            }
            EventBody::QueueChanged(changed) => self.queue.clone_from(&changed.queue),
            EventBody::UserMessage(said) => self.queue.retain(|queued| queued.message != said.message),
            EventBody::PlanChanged(changed) => self.plan.clone_from(&changed.tasks),
            EventBody::DialogueBegan(dialogue) => {
                self.model = Some(dialogue.model.clone());
                self.effort = dialogue.effort;
            }
            EventBody::ModelSwitched(switch) => self.model = Some(switch.to.clone()),
            EventBody::ModeSwitched(switch) => self.mode = switch.to,
            _ => {}
        }
    }

    /// What is pinned above the composer: the plan, what waits, and what is going on.
    pub(crate) fn above(
        &self,
        width: usize,
        now: Instant,
        is_asking: bool,
        keys: &KeyMap,
        theme: &Theme,
    ) -> Vec<Line<'static>> {
        let mut lines = self.tasks(theme);
        if let Some(since) = self.turn.filter(|_| !is_asking) {
            let time = now.saturating_duration_since(since);
            let doing = match self.doing {
                Doing::RunningTools => "working",
                _ => "thinking",
            };
            lines.push(Line::from(vec![
                Span::styled(format!("{} {doing}", spinner_frame(time)), theme.accent),
                Span::styled(
                    format!(" · {} · {} stops", duration(time), keys.key(KeyAction::Interrupt)),
                    theme.muted,
                ),
            ]));
            let is_long = |since: Instant| now.saturating_duration_since(since) >= LONG_COMMAND_DURATION;
            if let (true, Some(line)) = (self.command.is_some_and(is_long), lines.last_mut()) {
                let text = format!(" · {} lets it go on by itself", keys.key(KeyAction::Background));
                line.spans.push(Span::styled(text, theme.muted));
            }
        }
        lines.extend(self.waiting(keys, theme));
        lines.iter().map(|line| width::truncate(line, width.max(1))).collect()
    }

    fn tasks(&self, theme: &Theme) -> Vec<Line<'static>> {
        let is_open =
            |task: &&PlanTask| matches!(task.state, PlanTaskState::Open | PlanTaskState::InProgress);
        let open = self.plan.iter().filter(is_open).count();
        if open == 0 {
            return Vec::new();
        }
        let done = self.plan.iter().filter(|task| task.state == PlanTaskState::Done).count();
        let mut lines = vec![Line::styled(format!("plan · {done} of {} done", self.plan.len()), theme.muted)];
        // What comes next matters more than what is done.
        let first = self.plan.iter().position(|task| is_open(&task)).unwrap_or(0).saturating_sub(1);
        for task in self.plan.iter().skip(first).take(MAX_SHOWN_TASKS) {
            let (mark, style) = match task.state {
                PlanTaskState::Open => ("☐", theme.text),
                PlanTaskState::InProgress => ("▶", theme.accent),
                PlanTaskState::Done => ("☑", theme.muted),
                PlanTaskState::Dropped => ("☒", theme.muted),
            };
            lines.push(Line::styled(format!("  {mark} {}", one_line(&task.text)), style));
        }
        let more = self.plan.len().saturating_sub(first + MAX_SHOWN_TASKS);
        if more > 0 {
            lines.push(Line::styled(format!("  … {more} more"), theme.muted));
        }
        lines
    }

    fn waiting(&self, keys: &KeyMap, theme: &Theme) -> Vec<Line<'static>> {
        let row = |queued: &QueuedMessage| {
            let how = match queued.delivery {
                helve_protocol::PromptDelivery::Queue => "queued",
                helve_protocol::PromptDelivery::Steer => "steers",
            };
            Line::styled(format!("  {how}: {}", one_line(&text_of(&queued.parts))), theme.muted)
        };
        let hidden = self.queue.len().saturating_sub(MAX_SHOWN_QUEUED);
        let mut lines: Vec<Line<'static>> = self.queue.iter().skip(hidden).map(row).collect();
        if hidden > 0 {
            lines.insert(0, Line::styled(format!("  … {hidden} more"), theme.muted));
        }
        if let Some(last) = lines.last_mut() {
            let key = keys.key(KeyAction::Edit(helve_widgets::EditorCommand::Up));
            last.spans.push(Span::styled(format!(" · {key} takes it back"), theme.muted));
        }
        lines
    }

    /// The status line. What does not fit is left out.
    pub(crate) fn line(
        &self,
        wanted: &[StatusBarItem],
        width: usize,
        limit: Option<u64>,
        theme: &Theme,
    ) -> Line<'static> {
        let mut line = Line::default();
        for item in wanted.iter().filter_map(|item| self.item(*item, limit, theme)) {
            let separator = if line.spans.is_empty() { "" } else { " · " };
            let needed = width::width(separator) + width::width(&item.content);
            if width::line_width(&line) + needed <= width || line.spans.is_empty() {
                line.spans.push(Span::styled(separator, theme.muted));
                line.spans.push(item);
            }
        }
        width::truncate(&line, width.max(1))
    }

    fn item(&self, item: StatusBarItem, limit: Option<u64>, theme: &Theme) -> Option<Span<'static>> {
        let muted =
            |text: String| Some(Span::styled(one_line(&text), theme.muted)).filter(|_| !text.is_empty());
        match item {
            StatusBarItem::Model => {
                let model = self.model.as_ref().map_or("no model", ModelName::as_str);
                let effort = EFFORT_DESCRIPTIONS
                    .iter()
                    .find(|(effort, ..)| effort.is_some() && *effort == self.effort);
                let effort = effort.map(|(_, name, _)| format!(" ({name})")).unwrap_or_default();
                Some(Span::styled(one_line(&format!("{model}{effort}")), theme.text))
            }
            StatusBarItem::Agent => {
                self.agent.as_ref().map(|agent| Span::styled(one_line(agent.as_str()), theme.accent))
            }
            StatusBarItem::Mode => {
                let style = if self.mode == PermissionMode::Bypass { theme.warning } else { theme.accent };
                Some(Span::styled(mode_name(self.mode), style))
            }
            StatusBarItem::Context => self.fill(limit, theme),
            StatusBarItem::Cost if self.cost == Cost::ZERO => None,
            StatusBarItem::Cost => muted(self.cost.to_string()),
            StatusBarItem::Branch => muted(self.branch.clone()?),
            // Whoever asks for no questions gets no walls either.
            StatusBarItem::Sandbox if self.mode == PermissionMode::Bypass => {
                Some(Span::styled("not confined", theme.warning))
            }
            StatusBarItem::Sandbox => muted(self.sandbox.clone()),
            StatusBarItem::Queue if self.queue.is_empty() => None,
            StatusBarItem::Queue => muted(format!("{} queued", self.queue.len())),
        }
    }

    /// How full the model's memory is.
    fn fill(&self, limit: Option<u64>, theme: &Theme) -> Option<Span<'static>> {
        match limit.filter(|limit| *limit > 0) {
            _ if self.context == 0 => None,
            Some(limit) => {
                let percent = self.context.saturating_mul(100) / limit;
                let style = if percent >= 80 { theme.warning } else { theme.muted };
                Some(Span::styled(format!("{percent}% of {}", tokens(limit)), style))
            }
            None => Some(Span::styled(format!("{} tokens", tokens(self.context)), theme.muted)),
        }
    }
}

fn is_unusual(agent: &AgentName) -> bool {
    *agent != SessionState::default().agent
}

/// As it is written in settings.
pub(crate) fn mode_name(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::Plan => "plan",
        PermissionMode::Ask => "ask",
        PermissionMode::AcceptEdits => "accept-edits",
        PermissionMode::Auto => "auto",
        PermissionMode::Bypass => "bypass",
    }
}

pub(crate) const MODE_DESCRIPTIONS: [(PermissionMode, &str); 5] = [
    (PermissionMode::Plan, "nothing is changed, only planned"),
    (PermissionMode::Ask, "you are asked before anything is changed"),
    (PermissionMode::AcceptEdits, "edits in the project are allowed, the rest is asked"),
    (PermissionMode::Auto, "what the sandbox contains is allowed, the rest is asked"),
    (PermissionMode::Bypass, "everything is allowed"),
];

/// How much a model can be let think: as it is written in settings, and in words.
pub(crate) const EFFORT_DESCRIPTIONS: [(Option<ReasoningEffort>, &str, &str); 7] = [
    (None, "default", "as much as its provider lets it"),
    (Some(ReasoningEffort::Off), "off", "not at all"),
    (Some(ReasoningEffort::Minimal), "minimal", "hardly"),
    (Some(ReasoningEffort::Low), "low", "a little"),
    (Some(ReasoningEffort::Medium), "medium", "some"),
    (Some(ReasoningEffort::High), "high", "much"),
    (Some(ReasoningEffort::Max), "max", "as much as it can"),
];

/// The next mode of those that one key should reach: everything at once is not among them.
pub(crate) fn next_mode(mode: PermissionMode) -> PermissionMode {
    match mode {
        PermissionMode::Plan => PermissionMode::Ask,
        PermissionMode::Ask => PermissionMode::AcceptEdits,
        PermissionMode::AcceptEdits => PermissionMode::Auto,
        PermissionMode::Auto | PermissionMode::Bypass => PermissionMode::Plan,
    }
}

/// The words of a message.
pub(crate) fn text_of(parts: &[MessagePart]) -> String {
    let texts = parts.iter().map(|part| match part {
        MessagePart::Text(text) => text.text.clone(),
        MessagePart::File(file) => format!("[{}]", file.name),
        _ => String::new(),
    });
    texts.collect::<Vec<_>>().join("\n")
}
