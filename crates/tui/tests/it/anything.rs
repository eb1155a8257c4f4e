//! Random keys, events and sizes.

use std::collections::BTreeSet;
use std::time::Duration;

use helve_protocol::*;
use helve_testkit::{sample_event_bodies, sample_id};
use helve_tui::{SessionOverview, TYPING_GUARD_TIME};
use proptest::prelude::*;
use ratatui::crossterm::event::{Event as Input, KeyCode, KeyModifiers};

use crate::desk::Desk;

#[derive(Clone, Debug)]
enum Deed {
    Key(KeyCode, KeyModifiers),
    Paste(String),
    Resize(u16, u16),
    Pass(u64),
    Text(String),
    Thought(String),
    Output(String),
    Other(usize),
    Ask {
        rules: bool,
        diff: bool,
    },
    Question {
        options: usize,
    },
    /// The session settles the n-th of what waits.
    Settle(usize),
    EndTurn,
    Draw,
}

fn key() -> impl Strategy<Value = Deed> {
    let code = prop_oneof![
        6 => any::<char>().prop_map(KeyCode::Char),
        6 => prop::sample::select("yapnmq/@!#?1oGj\\ ".chars().collect::<Vec<_>>()).prop_map(KeyCode::Char),
        8 => prop::sample::select(vec![
            KeyCode::Enter, KeyCode::Esc, KeyCode::Tab, KeyCode::BackTab, KeyCode::Backspace, KeyCode::Delete,
            KeyCode::Up, KeyCode::Down, KeyCode::Left, KeyCode::Right, KeyCode::Home, KeyCode::End,
            KeyCode::PageUp, KeyCode::PageDown, KeyCode::F(1),
        ]),
    ];
    let held = prop::sample::select(vec![
        KeyModifiers::NONE,
        KeyModifiers::NONE,
        KeyModifiers::NONE,
        KeyModifiers::CONTROL,
        KeyModifiers::ALT,
        KeyModifiers::SHIFT,
    ]);
    (code, held).prop_map(|(code, held)| Deed::Key(code, held))
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        12 => key(),
        1 => "[ -~\\n日é\\x1b\\t]{0,40}".prop_map(Deed::Paste),
        1 => (1..200usize).prop_map(|lines| Deed::Paste("line\n".repeat(lines))),
        2 => (1..140u16, 1..60u16).prop_map(|(columns, rows)| Deed::Resize(columns, rows)),
        2 => (0..2_000u64).prop_map(Deed::Pass),
        3 => "[a-z *`#|>\\n日\\x1b\\[-]{0,60}".prop_map(Deed::Text),
        1 => "[a-z\\n]{0,40}".prop_map(Deed::Thought),
        1 => "[a-z\\n\\r\\x1b\\[m0-9]{0,60}".prop_map(Deed::Output),
        3 => any::<prop::sample::Index>().prop_map(|index| Deed::Other(index.index(1_000))),
        2 => any::<(bool, bool)>().prop_map(|(rules, diff)| Deed::Ask { rules, diff }),
        1 => (0..4usize).prop_map(|options| Deed::Question { options }),
        1 => (0..4usize).prop_map(Deed::Settle),
        1 => Just(Deed::EndTurn),
        3 => Just(Deed::Draw),
    ]
}

/// What waits for an answer, as the session knows it.
#[derive(Default)]
struct Waiting {
    approvals: BTreeSet<ApprovalId>,
    questions: BTreeSet<CallId>,
    drawn: u64,
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.approvals.is_empty() && self.questions.is_empty()
    }

    fn ask(&mut self, rules: bool, diff: bool, desk: &mut Desk) {
        self.drawn += 1;
        let approval = sample_id(10_000 + self.drawn);
        self.approvals.insert(approval);
        desk.tell(ApprovalRequested {
            approval,
            call: sample_id(20_000 + self.drawn),
            effects: vec!["run rm -rf /".to_owned(); 3],
            reason: "nobody allowed it".to_owned(),
            diff: diff.then(|| "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n".to_owned()),
            rules: if rules { vec!["shell(rm:*)".to_owned()] } else { Vec::new() },
        });
    }

    fn question(&mut self, options: usize, desk: &mut Desk) {
        self.drawn += 1;
        let call = sample_id(30_000 + self.drawn);
        self.questions.insert(call);
        let options = (0..options).map(|number| format!("option {number}")).collect();
        desk.tell(QuestionAsked { call, text: "which?".to_owned(), options });
    }

    fn settle(&mut self, number: usize, desk: &mut Desk) {
        if let Some(approval) = self.approvals.iter().nth(number).copied() {
            self.approvals.remove(&approval);
            desk.tell(ApprovalResolved { approval, answer: ApprovalAnswer::Once });
        } else if let Some(call) = self.questions.pop_first() {
            desk.tell(QuestionAnswered { call, answer: None });
        }
    }

    /// What the interface answered, the session settles: each once, and only what waits.
    fn follow(&mut self, desk: &mut Desk) {
        for order in std::mem::take(&mut desk.orders) {
            match order {
                SessionCommand::Decide { approval, answer } => {
                    assert!(self.approvals.remove(&approval), "{approval} was answered and did not wait");
                    desk.tell(ApprovalResolved { approval, answer });
                }
                SessionCommand::Answer { call, text } => {
                    assert!(self.questions.remove(&call), "{call} was answered and did not wait");
                    desk.tell(QuestionAnswered { call, answer: text });
                }
                _ => {}
            }
        }
    }
}

fn perform(deed: Deed, desk: &mut Desk, waiting: &mut Waiting) {
    match deed {
        Deed::Key(code, held) => desk.key(code, held),
        Deed::Paste(text) => desk.input(&Input::Paste(text)),
        Deed::Resize(columns, rows) => desk.resize(columns, rows),
        Deed::Pass(millis) => desk.pass(Duration::from_millis(millis)),
        Deed::Text(text) => desk.tell(TextDelta { index: 0, text }),
        Deed::Thought(text) => desk.tell(ThinkingDelta { index: 0, text }),
        Deed::Output(text) => desk.tell(ToolOutputDelta { call: sample_id(4), text }),
        Deed::Other(number) => {
            let kinds: Vec<EventBody> = sample_event_bodies()
                .into_iter()
                .filter(|body| !body.kind().starts_with("approval") && !body.kind().starts_with("question"))
                .filter(|body| !matches!(body, EventBody::TurnEnded(_)))
                .collect();
            desk.tell(kinds[number % kinds.len()].clone());
        }
        Deed::Ask { rules, diff } => waiting.ask(rules, diff, desk),
        Deed::Question { options } => waiting.question(options, desk),
        Deed::Settle(number) => waiting.settle(number, desk),
        Deed::EndTurn => {
            *waiting = Waiting { drawn: waiting.drawn, ..Waiting::default() };
            desk.tell(TurnEnded { outcome: TurnOutcome::EndTurn, metrics: TurnMetrics::default() });
        }
        Deed::Draw => desk.draw(),
    }
}

/// Answers everything that still waits, as a patient person does.
fn answer_all(desk: &mut Desk, waiting: &mut Waiting) {
    for _ in 0..1_000 {
        if waiting.is_empty() {
            return;
        }
        desk.pass(TYPING_GUARD_TIME);
        // Whatever is open on the full screen is closed; what is written is sent.
        for code in [KeyCode::Char('q'), KeyCode::Enter, KeyCode::Char('y'), KeyCode::Enter] {
            desk.key(code, KeyModifiers::NONE);
            waiting.follow(desk);
            desk.pass(TYPING_GUARD_TIME);
        }
        desk.key(KeyCode::Char('o'), KeyModifiers::CONTROL);
        desk.draw();
        desk.key(KeyCode::Esc, KeyModifiers::NONE);
    }
    panic!(
        "{} approvals and {} questions can't be answered",
        waiting.approvals.len(),
        waiting.questions.len()
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn nothing_breaks_and_no_question_is_lost(deeds in prop::collection::vec(deed(), 0..150)) {
        let mut desk = Desk::new(SessionOverview::default());
        let mut waiting = Waiting::default();
        for deed in deeds {
            perform(deed, &mut desk, &mut waiting);
            waiting.follow(&mut desk);
            prop_assert_eq!(desk.app.has_request(), !waiting.is_empty());
        }
        desk.draw();
        answer_all(&mut desk, &mut waiting);
        prop_assert!(!desk.app.has_request());
        desk.assert_restores();
    }
}
