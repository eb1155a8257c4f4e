//! Events to test with: one of every kind, and whole sessions as an honest program writes them.

use helve_protocol::*;
use serde_json::{Value, json};
use uuid::Uuid;

/// The n-th id. Real ids are drawn; those of tests are counted.
pub fn sample_id<T: From<Uuid>>(n: u64) -> T {
    T::from(Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0000 | u128::from(n)))
}

/// A session that writes itself down: gives each event its envelope and its place.
#[derive(Clone, Debug)]
pub struct SampleSession {
    pub id: SessionId,
    pub last: Seq,
    pub turn: Option<TurnId>,
    pub step: Option<StepId>,
    /// Who answers.
    pub agent: AgentName,
    drawn: u64,
}

impl SampleSession {
    pub fn new(id: SessionId) -> SampleSession {
        SampleSession {
            id,
            last: Seq::START,
            turn: None,
            step: None,
            agent: AgentName::new("build"),
            drawn: 0,
        }
    }

    pub fn draw<T: From<Uuid>>(&mut self) -> T {
        self.drawn += 1;
        sample_id(self.drawn)
    }

    /// The next event.
    pub fn event(&mut self, body: impl Into<EventBody>) -> SessionEvent {
        let body = body.into();
        if body.persistence() == Persistence::Durable {
            self.last = self.last.next();
        }
        SessionEvent {
            session: self.id,
            seq: self.last,
            turn: self.turn,
            step: self.step,
            agent: self.agent.clone(),
            time: Timestamp::from_millis(1_700_000_000_000 + self.last.0),
            body,
        }
    }

    pub fn created(&mut self) -> SessionEvent {
        let workspace = "/home/user/project".to_owned();
        self.event(SessionCreated { workspace, model: None, helve: "0.1.0".to_owned(), parent: None })
    }

    pub fn user_message(&mut self, text: &str) -> SessionEvent {
        let message = self.draw();
        self.event(UserMessage { message, parts: vec![MessagePart::Text(TextPart::said(text))] })
    }

    /// A whole step: a request, an answer with some calls, and their results.
    pub fn step(&mut self, answer: &str, calls: &[(&str, &str)]) -> Vec<SessionEvent> {
        let message = self.draw();
        self.step = Some(self.draw());
        let request = self.draw();
        let model = ModelName::new("test/model");
        let mut events = vec![self.event(StepStarted {
            message,
            request,
            model,
            number: 1,
            kept: 0,
            segments: Vec::new(),
            marks: Vec::new(),
        })];
        let calls: Vec<(CallId, &str, &str)> =
            calls.iter().map(|(name, result)| (self.draw(), *name, *result)).collect();
        let tools = calls.iter().map(|(call, name, _)| {
            MessagePart::Tool(Box::new(ToolPart {
                call: *call,
                name: (*name).to_owned(),
                input: json!({"path": "src/main.rs"}),
                wire_id: Some(format!("toolu_{call}")),
                sealed: Value::Null,
                state: ToolState::Pending,
            }))
        });
        let text = MessagePart::Text(TextPart::said(answer));
        let parts = std::iter::once(text).chain(tools).collect();
        let stop = if calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
        events.push(self.event(ResponseEnded { message, parts, stop }));
        for (call, _, result) in calls {
            events.push(self.event(ToolStarted { call, class: ToolClass::Reads }));
            let output = ToolOutput { text: result.to_owned(), ..ToolOutput::default() };
            events.push(self.event(ToolEnded { call, end: ToolState::Completed { output } }));
        }
        let usage = TokenUsage { input: 1200, output: 80, cache_read: 4000, ..TokenUsage::default() };
        events.push(self.event(StepEnded { usage, cost: Cost::from_pico_dollars(6_000_000_000), stop }));
        self.step = None;
        events
    }

    pub fn turn_ended(&mut self) -> SessionEvent {
        self.event(TurnEnded { outcome: TurnOutcome::EndTurn, metrics: TurnMetrics::default() })
    }
}

/// One event body of every kind, with every field set.
pub fn sample_event_bodies() -> Vec<EventBody> {
    let blob = BlobId::from_hash([0xab; 32]);
    let change = FileChange {
        path: "src/main.rs".to_owned(),
        change: FileChangeKind::Moved { from: "src/old.rs".to_owned() },
        added_lines: 3,
        removed_lines: 1,
        before: Some(blob),
        after: Some(blob),
        mode_before: Some(0o100_644),
        mode_after: Some(0o100_755),
    };
    let file = FilePart { name: "shot.png".to_owned(), media_type: "image/png".to_owned(), content: blob };
    let usage = TokenUsage { input: 1, output: 2, cache_read: 3, cache_write: 4, reasoning: 5 };
    let cost = Cost::from_pico_dollars(75_000_000);
    let text = |text: &str| MessagePart::Text(TextPart::said(text));
    let tool = MessagePart::Tool(Box::new(ToolPart {
        call: sample_id(4),
        name: "read".to_owned(),
        input: json!({"path": "src/main.rs", "limit": 10}),
        wire_id: Some("toolu_01".to_owned()),
        sealed: json!({"thoughtSignature": "c2ln"}),
        state: ToolState::Pending,
    }));
    let output = ToolOutput {
        text: "fn main() {}".to_owned(),
        display: Some("12 characters".to_owned()),
        whole: Some(blob),
        files: vec![file.clone()],
        ends_turn: true,
    };
    let model = ModelName::new("test/model");
    vec![
        SessionCreated {
            workspace: "/home/user/project".to_owned(),
            model: Some(model.clone()),
            helve: "0.1.0".to_owned(),
            parent: Some(ParentCall { session: sample_id(9), call: sample_id(8) }),
        }
        .into(),
        SessionOpened { helve: "0.1.0".to_owned() }.into(),
        SessionRenamed { title: "Fix the parser".to_owned() }.into(),
        StatusChanged { status: SessionStatus::WaitingForPerson }.into(),
        QueueChanged {
            queue: vec![QueuedMessage {
                message: sample_id(3),
                delivery: PromptDelivery::Steer,
                parts: vec![text("stop that")],
            }],
        }
        .into(),
        TurnStarted { limits: TurnLimits { steps: Some(50), cost: Some(cost), time_ms: Some(60_000) } }
            .into(),
        UserMessage { message: sample_id(3), parts: vec![text("fix it"), MessagePart::File(file)] }.into(),
        NoteAdded { message: sample_id(3), topic: NoteTopic::Folders, text: "Also: /srv/lib.".to_owned() }
            .into(),
        DialogueBegan { model: model.clone(), effort: None, manner: json!({"wire": "messages"}) }.into(),
        StepStarted {
            message: sample_id(3),
            request: sample_id(7),
            model: model.clone(),
            number: 1,
            kept: 0,
            segments: vec![blob],
            marks: vec![17],
        }
        .into(),
        ResponseStarted {}.into(),
        ThinkingStarted { index: 0 }.into(),
        ThinkingDelta { index: 0, text: "Hm".to_owned() }.into(),
        ThinkingEnded { index: 0, summary: Some("Thought".to_owned()) }.into(),
        TextDelta { index: 1, text: "I see".to_owned() }.into(),
        CallAnnounced { index: 2, call: sample_id(4), name: "read".to_owned() }.into(),
        CallDelta { call: sample_id(4), arguments: "{\"pa".to_owned() }.into(),
        ResponsePartial { text: "I see".to_owned() }.into(),
        ResponseEnded {
            message: sample_id(3),
            parts: vec![
                MessagePart::Reasoning(ReasoningPart {
                    text: "Hm".to_owned(),
                    sealed: json!({"signature": "c2ln"}),
                }),
                text("I see."),
                tool,
            ],
            stop: StopReason::ToolUse,
        }
        .into(),
        RetryScheduled { attempt: 1, delay_ms: 500, reason: "the server is overloaded (529)".to_owned() }
            .into(),
        QuestionAsked {
            call: sample_id(4),
            text: "Which one?".to_owned(),
            options: vec!["this".to_owned(), "that".to_owned()],
        }
        .into(),
        QuestionAnswered { call: sample_id(4), answer: Some("that".to_owned()) }.into(),
        ApprovalRequested {
            approval: sample_id(5),
            call: sample_id(4),
            effects: vec!["runs: cargo test".to_owned()],
            reason: "no rule covers it".to_owned(),
            diff: None,
            rules: vec!["shell(cargo test:*)".to_owned()],
        }
        .into(),
        ApprovalResolved {
            approval: sample_id(5),
            answer: ApprovalAnswer::Reject { message: Some("not now".to_owned()) },
        }
        .into(),
        ToolInputReplaced { call: sample_id(4), input: serde_json::json!({ "path": "other.txt" }) }.into(),
        ToolStarted { call: sample_id(4), class: ToolClass::Changes }.into(),
        ToolOutputDelta { call: sample_id(4), text: "Compiling".to_owned() }.into(),
        ToolEnded { call: sample_id(4), end: ToolState::Completed { output } }.into(),
        FilesChanged {
            call: Some(sample_id(4)),
            changes: vec![change],
            diff: "--- src/old.rs\n+++ src/main.rs\n".to_owned(),
            not_kept: vec![IrreversibleChange { path: "big.bin".to_owned(), why: UnkeptReason::TooLarge }],
        }
        .into(),
        PlanChanged {
            tasks: vec![PlanTask { text: "find it".to_owned(), state: PlanTaskState::InProgress }],
        }
        .into(),
        StepEnded { usage, cost, stop: StopReason::ToolUse }.into(),
        ModelSwitched {
            from: model.clone(),
            to: model,
            reason: ModelSwitchReason::Fallback { failure: "unavailable".to_owned() },
        }
        .into(),
        ModeSwitched { from: PermissionMode::Plan, to: PermissionMode::AcceptEdits }.into(),
        ToolsRefreshed { reason: "the MCP server docs came back".to_owned() }.into(),
        Rewound { to: Seq(4), scope: RewindScope::Messages }.into(),
        LimitReached { limit: LimitKind::Steps, text: "50 of 50 steps were used".to_owned() }.into(),
        ErrorRaised { what: "a".to_owned(), why: "b".to_owned(), hint: "c".to_owned(), is_about_keys: true }
            .into(),
        TurnEnded {
            outcome: TurnOutcome::EndTurn,
            metrics: TurnMetrics {
                steps: 1,
                calls: 2,
                snapshot_ms: 3,
                request_ms: 4,
                tools_ms: 5,
                changes_ms: 6,
            },
        }
        .into(),
        CommandRefused { command: "go_on".to_owned(), why: "nothing was said yet".to_owned() }.into(),
    ]
}
