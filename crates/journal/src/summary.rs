//! What the list of sessions says of one: a fold over its events.

use helve_protocol::{
    EventBody, MessagePart, Seq, SessionEvent, SessionId, SessionStatus, SessionSummary, Timestamp,
    UserMessage, split_words,
};

use crate::owner::OwnerStatus;
use helve_protocol::SessionActivity;

const MAX_TITLE_CHARS: usize = 80;

/// Where a session's title comes from. A better source replaces a worse one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TitleSource {
    #[default]
    None,
    FirstMessage,
    Given,
}

#[derive(Clone, Debug)]
pub(crate) struct SummaryBuilder {
    pub(crate) summary: SessionSummary,
    pub(crate) title_source: TitleSource,
    pub(crate) activity: SessionActivity,
}

impl SummaryBuilder {
    pub(crate) fn new(session: SessionId, forked_from: Option<(SessionId, Seq)>) -> SummaryBuilder {
        let summary = SessionSummary {
            session,
            title: String::new(),
            workspace: String::new(),
            model: None,
            created: Timestamp::default(),
            updated: Timestamp::default(),
            last: forked_from.map_or(Seq::START, |(_, seq)| seq),
            turns: 0,
            usage: Default::default(),
            cost: Default::default(),
            forked_from,
            parent: None,
            damage: None,
            status: None,
            broken_off: false,
        };
        SummaryBuilder { summary, title_source: TitleSource::None, activity: SessionActivity::default() }
    }

    /// What is listed, with what the session is doing now.
    pub(crate) fn summary_with(self, owner: OwnerStatus) -> SessionSummary {
        let SummaryBuilder { mut summary, activity, .. } = self;
        let is_readable = summary.damage.is_none();
        summary.status = match owner {
            OwnerStatus::Alive => is_readable.then(|| activity.status()),
            OwnerStatus::Nobody => Some(SessionStatus::Ended),
        };
        summary.broken_off =
            is_readable && owner == OwnerStatus::Nobody && activity.status() != SessionStatus::Idle;
        summary
    }

    pub(crate) fn apply(&mut self, event: &SessionEvent) {
        let summary = &mut self.summary;
        // An ancestor's events tell what the session is about; what they cost was paid there, and what they began is not
        // this session's to end.
        let is_own = event.session == summary.session;
        if is_own {
            self.activity.apply(event);
        }
        summary.last = event.seq;
        summary.updated = summary.updated.max(event.time);
        if summary.created == Timestamp::default() {
            summary.created = event.time;
        }
        match &event.body {
            EventBody::SessionCreated(created) => {
                summary.workspace.clone_from(&created.workspace);
                summary.model.clone_from(&created.model);
                summary.parent = created.parent.as_ref().map(|parent| parent.session);
            }
            EventBody::SessionRenamed(renamed) => self.name(&renamed.title, TitleSource::Given),
            EventBody::UserMessage(message) => self.set_title_from_message(message),
            EventBody::ModelSwitched(switched) => summary.model = Some(switched.to.clone()),
            EventBody::TurnStarted(_) => summary.turns += 1,
            EventBody::StepStarted(step) => summary.model = Some(step.model.clone()),
            EventBody::StepEnded(step) if is_own => {
                summary.usage += step.usage;
                summary.cost += step.cost;
            }
            _ => {}
        }
    }

    fn name(&mut self, title: &str, source: TitleSource) {
        self.title_source = source;
        self.summary.title = title_line(title);
    }

    fn set_title_from_message(&mut self, message: &UserMessage) {
        let text = message.parts.iter().find_map(|part| match part {
            MessagePart::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        if let Some(text) =
            text.filter(|text| self.title_source == TitleSource::None && !text.trim().is_empty())
        {
            self.name(text, TitleSource::FirstMessage);
        }
    }
}

/// The beginning of a text, on one line, with nothing in it that a terminal would obey.
fn title_line(text: &str) -> String {
    let mut line = String::new();
    let mut room = MAX_TITLE_CHARS;
    for word in split_words(text) {
        let length = word.chars().count() + usize::from(!line.is_empty());
        if length > room {
            if line.is_empty() {
                line.extend(word.chars().take(MAX_TITLE_CHARS));
            }
            line.push('…');
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        room -= length;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use helve_protocol::SessionRenamed;
    use helve_testkit::{SampleSession, sample_id};
    use proptest::prelude::*;

    fn digest(events: &[SessionEvent]) -> SummaryBuilder {
        let mut digest = SummaryBuilder::new(sample_id(1), None);
        events.iter().for_each(|event| digest.apply(event));
        digest
    }

    #[test]
    fn a_session_is_named_after_its_first_message_until_it_gets_a_title() {
        let mut session = SampleSession::new(sample_id(1));
        let mut events = vec![
            session.created(),
            session.user_message("fix\nthe\tparser"),
            session.user_message("now test it"),
        ];
        assert_eq!(digest(&events).summary.title, "fix the parser");
        events.push(session.event(SessionRenamed { title: "Parser".to_owned() }));
        events.push(session.user_message("and again"));
        assert_eq!(digest(&events).summary.title, "Parser");
    }

    #[test]
    fn costs_add_up_over_steps() {
        let mut session = SampleSession::new(sample_id(1));
        let mut events = session.step("a", &[]);
        events.extend(session.step("b", &[]));
        let summary = digest(&events).summary;
        assert_eq!((summary.usage.input, summary.cost.to_string()), (2400, "$0.012".to_owned()));
    }

    proptest! {
        #[test]
        fn a_title_is_one_short_printable_line(text: String) {
            let line = title_line(&text);
            prop_assert!(line.chars().count() <= MAX_TITLE_CHARS + 1);
            prop_assert!(!line.contains(|c: char| c.is_control()));
        }
    }
}
