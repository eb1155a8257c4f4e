//! What was said and done, read back from the journal: page by page from the end, so that a long session is as good as a
//! short one.

use helve_protocol::{CallId, EventBody, MessagePart, Seq, SessionEvent, TextKind};

use crate::cards::ToolCard;
use crate::link::EventHistoryReader;
use crate::pager_entries::{PagerEntry, PagerSection};
use crate::text_format::one_line;

/// So much of the journal is read at first, and at most. A step may be larger than the one, and never is than the other.
const FIRST_PAGE_BYTES: u64 = 256 << 10;
const MAX_PAGE_BYTES: u64 = 64 << 20;

/// After everything.
pub(crate) const AFTER_LAST_EVENT: Seq = Seq(u64::MAX);

/// Some items that follow each other.
#[derive(Debug, Default)]
pub(crate) struct PagerPage {
    /// The oldest first.
    pub(crate) entries: Vec<PagerEntry>,
    /// The event before which the next older page ends.
    pub(crate) start: Seq,
    /// Nothing is older.
    pub(crate) is_first: bool,
}

/// The items before an event. A page without any is the last that there is.
pub(crate) fn load_page(mut before: Seq, look_back: &EventHistoryReader) -> Result<PagerPage, String> {
    loop {
        let events = whole_steps(before, look_back)?;
        let Some(first) = events.first() else {
            return Ok(PagerPage { is_first: true, ..PagerPage::default() });
        };
        let (start, is_first) = (first.seq, first.seq <= Seq::START.next());
        let entries = entries(&events);
        if is_first || !entries.is_empty() {
            return Ok(PagerPage { entries, start, is_first });
        }
        before = start;
    }
}

/// The last events before one, without a step that is cut: the results of its calls would be without them.
fn whole_steps(before: Seq, look_back: &EventHistoryReader) -> Result<Vec<SessionEvent>, String> {
    let (mut bytes, mut had) = (FIRST_PAGE_BYTES, 0);
    loop {
        let mut events = look_back(before, bytes)?;
        let is_first = events.first().is_none_or(|event| event.seq <= Seq::START.next());
        let begins = |event: &SessionEvent| {
            matches!(event.body, EventBody::UserMessage(_) | EventBody::StepStarted(_))
        };
        let whole = if is_first { Some(0) } else { events.iter().position(begins) };
        // More can't be had where a fork begins.
        let is_all = events.len() == had || bytes >= MAX_PAGE_BYTES;
        match whole {
            Some(place) => return Ok(events.split_off(place)),
            None if is_all => return Ok(events),
            None => (bytes, had) = (bytes * 4, events.len()),
        }
    }
}

/// The items that events tell of, each with all that is known of it.
fn entries(events: &[SessionEvent]) -> Vec<PagerEntry> {
    let mut entries = Vec::new();
    for (number, event) in events.iter().enumerate() {
        let rest = events.get(number..).unwrap_or_default();
        let told: Vec<PagerEntry> = match &event.body {
            EventBody::UserMessage(said) => said.parts.iter().filter_map(said_entry).collect(),
            EventBody::ResponseEnded(answer) => {
                answer.parts.iter().filter_map(|part| answer_entry(part, rest)).collect()
            }
            _ => Vec::new(),
        };
        entries.extend(told.into_iter().map(|entry| PagerEntry { seq: event.seq, ..entry }));
    }
    entries
}

fn said_entry(part: &MessagePart) -> Option<PagerEntry> {
    let text = match part {
        MessagePart::Text(text) if text.kind == TextKind::Note => return None,
        MessagePart::Text(text) => text.text.clone(),
        MessagePart::File(file) => format!("[{}]", one_line(&file.name)),
        _ => return None,
    };
    let first = one_line(text.trim().lines().next().unwrap_or_default());
    Some(PagerEntry::new(format!("> {first}"), PagerSection::Text(text)))
}

fn answer_entry(part: &MessagePart, rest: &[SessionEvent]) -> Option<PagerEntry> {
    match part {
        MessagePart::Text(text) if text.text.trim().is_empty() => None,
        MessagePart::Text(text) => {
            let title = one_line(text.text.trim().lines().next().unwrap_or_default());
            Some(PagerEntry::new(title, PagerSection::Markdown(text.text.clone())))
        }
        MessagePart::Reasoning(thought) if thought.text.trim().is_empty() => None,
        MessagePart::Reasoning(thought) => {
            Some(PagerEntry::new("thinking", PagerSection::Markdown(thought.text.clone())))
        }
        MessagePart::Tool(tool) => {
            let mut card = ToolCard::recorded(tool);
            follow(&mut card, tool.call, rest);
            Some(card.entry())
        }
        _ => None,
    }
}

/// What became of a call, as far as it is told.
fn follow(card: &mut ToolCard, call: CallId, events: &[SessionEvent]) {
    for event in events {
        match &event.body {
            EventBody::ToolEnded(ended) if ended.call == call => card.finish(&ended.end, event.time),
            EventBody::FilesChanged(files) if files.call == Some(call) => card.add_changes(files),
            // A step is over when its calls are.
            EventBody::StepEnded(_) => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use helve_testkit::{SampleSession, sample_id};
    use proptest::prelude::*;

    use super::*;

    /// A session of some turns, and how it is looked back at: so many bytes are so many events, for the test.
    fn journal(turns: usize) -> (Vec<SessionEvent>, EventHistoryReader) {
        let mut session = SampleSession::new(sample_id(1));
        let mut events = vec![session.created()];
        for turn in 0..turns {
            events.push(session.user_message(&format!("question {turn}")));
            events.extend(session.step("I look.", &[("read", "a file"), ("grep", "a line")]));
            events.extend(session.step(&format!("answer {turn}"), &[]));
            events.push(session.turn_ended());
        }
        let all = events.clone();
        let look_back = move |before: Seq, bytes: u64| {
            let end = all.partition_point(|event| event.seq < before);
            let count = usize::try_from(bytes / FIRST_PAGE_BYTES).unwrap() * 5;
            Ok(all.get(end.saturating_sub(count)..end).unwrap_or_default().to_vec())
        };
        (events, Arc::new(look_back))
    }

    fn walk(look_back: &EventHistoryReader) -> Vec<PagerEntry> {
        let (mut all, mut before) = (Vec::new(), AFTER_LAST_EVENT);
        loop {
            let page = load_page(before, look_back).unwrap();
            all.splice(0..0, page.entries);
            if page.is_first {
                return all;
            }
            assert!(page.start < before, "it goes on");
            before = page.start;
        }
    }

    #[test]
    fn every_item_comes_once_with_its_result() {
        let (_, look_back) = journal(30);
        let all = walk(&look_back);
        let titles: Vec<&str> = all.iter().map(|entry| entry.title.as_str()).collect();
        assert_eq!(titles.len(), 30 * 5);
        assert_eq!(
            titles[..5],
            ["> question 0", "I look.", "read src/main.rs", "grep src/main.rs", "answer 0"]
        );
        assert!(all.windows(2).all(|pair| pair[0].seq <= pair[1].seq));
        let results = all.iter().filter(|entry| format!("{entry:?}").contains("a file")).count();
        assert_eq!(results, 30, "no call is without its result");
    }

    #[test]
    fn an_empty_session_has_one_empty_page() {
        let nothing: EventHistoryReader = Arc::new(|_, _| Ok(Vec::new()));
        let page = load_page(AFTER_LAST_EVENT, &nothing).unwrap();
        assert!(page.entries.is_empty() && page.is_first);
        let broken: EventHistoryReader = Arc::new(|_, _| Err("no disk".to_owned()));
        assert_eq!(load_page(AFTER_LAST_EVENT, &broken).unwrap_err(), "no disk");
    }

    proptest! {
        /// Whatever events there are, in whatever order, walking back comes to an end.
        #[test]
        fn any_events_have_a_first_page(picked: Vec<prop::sample::Index>) {
            let mut session = SampleSession::new(sample_id(1));
            let kinds = helve_testkit::sample_event_bodies();
            let events: Vec<SessionEvent> =
                picked.iter().map(|index| session.event(index.get(&kinds).clone())).collect();
            let look_back: EventHistoryReader = Arc::new(move |before, _| {
                Ok(events.iter().filter(|event| event.seq < before).cloned().collect())
            });
            walk(&look_back);
        }
    }
}
