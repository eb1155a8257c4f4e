//! Server-sent events, cut out of a stream of bytes.

use crate::StreamError;

/// No provider sends an event of this size; a broken one may.
const MAX_SSE_EVENT_BYTES: usize = 8 << 20;

/// Hears the data of each event.
type OnEventData<'a> = &'a mut dyn FnMut(&str) -> Result<(), StreamError>;

/// Takes bytes as they come and gives whole events.
#[derive(Debug, Default)]
pub(crate) struct EventStreamParser {
    /// What came after the last whole line.
    rest: Vec<u8>,
    /// How much of `rest` is known to hold no end of a line.
    searched: usize,
    /// The data of the event that is being read.
    data: String,
    state: EventStreamState,
    /// The last byte was a carriage return: a line feed after it belongs to it.
    after_return: bool,
}

/// What was left at the end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamRemainder {
    Nothing,
    /// An event without the empty line that ends it. It was told.
    Event,
    /// Less than that.
    Fragment,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum EventStreamState {
    /// Nothing has come yet, not even a byte order mark.
    #[default]
    Start,
    Between,
    InEvent,
}

impl EventStreamParser {
    /// Takes bytes, and gives the data of each event that they complete. Comments, names, ids and retry times are not
    /// data: on our wires the data says what it is.
    pub(crate) fn push(&mut self, bytes: &[u8], each: OnEventData<'_>) -> Result<(), StreamError> {
        self.rest.extend_from_slice(bytes);
        let mut rest = std::mem::take(&mut self.rest);
        let mut start = 0;
        let mut search = self.searched;
        while let Some(length) =
            rest.get(search..).and_then(|unread| unread.iter().position(|byte| matches!(byte, b'\n' | b'\r')))
        {
            let end = search + length;
            let is_second_half = self.after_return && rest.get(end) == Some(&b'\n') && end == start;
            self.after_return = rest.get(end) == Some(&b'\r');
            if !is_second_half {
                let line = rest.get(start..end).unwrap_or_default();
                self.line(line, each)?;
            }
            start = end + 1;
            search = start;
        }
        rest.drain(..start);
        self.rest = rest;
        self.searched = self.rest.len();
        if self.searched > 0 {
            self.after_return = false;
        }
        if self.rest.len() + self.data.len() > MAX_SSE_EVENT_BYTES {
            return Err(StreamError::TooLarge);
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8], each: OnEventData<'_>) -> Result<(), StreamError> {
        let line = match self.state {
            EventStreamState::Start => line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line),
            _ => line,
        };
        if line.is_empty() {
            let ended =
                std::mem::replace(&mut self.state, EventStreamState::Between) == EventStreamState::InEvent;
            let data = std::mem::take(&mut self.data);
            return if ended && !data.is_empty() { each(&data) } else { Ok(()) };
        }
        self.state = EventStreamState::InEvent;
        if let Some(value) = line.strip_prefix(b"data") {
            let Some(value) = value.strip_prefix(b":").or(value.is_empty().then_some(value)) else {
                return Ok(());
            };
            let value = value.strip_prefix(b" ").unwrap_or(value);
            if !self.data.is_empty() {
                self.data.push('\n');
            }
            self.data.push_str(std::str::from_utf8(value).map_err(|_| StreamError::NotText)?);
        }
        Ok(())
    }

    /// Reads what is left when the stream has ended, as if it were complete.
    pub(crate) fn finish(&mut self, each: OnEventData<'_>) -> Result<StreamRemainder, StreamError> {
        let line = std::mem::take(&mut self.rest);
        if !line.is_empty() {
            self.line(&line, each)?;
        }
        let left = match self.state {
            EventStreamState::InEvent if self.data.is_empty() => StreamRemainder::Fragment,
            EventStreamState::InEvent => StreamRemainder::Event,
            EventStreamState::Start | EventStreamState::Between => StreamRemainder::Nothing,
        };
        self.line(b"", each)?;
        Ok(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The events of a body that comes in pieces: those that are complete, and what is left at the end.
    fn events_in(pieces: &[&[u8]]) -> (Vec<String>, Vec<String>) {
        let mut events = EventStreamParser::default();
        let (mut found, mut left) = (Vec::new(), Vec::new());
        for piece in pieces {
            events.push(piece, &mut keep(&mut found)).unwrap();
        }
        events.finish(&mut keep(&mut left)).unwrap();
        (found, left)
    }

    fn keep(list: &mut Vec<String>) -> impl FnMut(&str) -> Result<(), StreamError> {
        |data| {
            list.push(data.to_owned());
            Ok(())
        }
    }

    fn owned(events: &[&str]) -> Vec<String> {
        events.iter().map(|event| (*event).to_owned()).collect()
    }

    #[test]
    fn events_are_cut_out_of_the_stream() {
        for (body, expected) in [
            ("data: a\n\n", vec!["a"]),
            ("data:a\n\ndata: b\r\n\r\n", vec!["a", "b"]),
            ("data: a\rdata: b\r\rdata: c\r\r", vec!["a\nb", "c"]),
            ("\u{feff}event: x\nid: 1\ndata: a\n: comment\ndata\ndata: b\n\n", vec!["a\n\nb"]),
            (": ping\n\n\n\nevent: nothing\n\ndatabase: no\n\n", vec![]),
            ("data:  two blanks\n\n", vec![" two blanks"]),
        ] {
            assert_eq!(events_in(&[body.as_bytes()]), (owned(&expected), vec![]), "{body:?}");
        }
    }

    #[test]
    fn what_is_left_at_the_end_is_told_apart() {
        for (body, left) in [
            ("d", vec![]),
            ("data: a", vec!["a"]),
            ("data: a\n", vec!["a"]),
            ("data: a\n\ndata: b\r\n", vec!["b"]),
        ] {
            assert_eq!(events_in(&[body.as_bytes()]).1, owned(&left), "{body:?}");
        }
    }

    #[test]
    fn what_is_not_text_is_refused() {
        let mut events = EventStreamParser::default();
        assert!(matches!(events.push(b"data: \xff\n", &mut |_| Ok(())), Err(StreamError::NotText)));
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(body in "(data: ?[aé☃]{0,3}|: c|\r|\n|\r\n|event: x){0,20}", cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
            let bytes = body.as_bytes();
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).chain([0, bytes.len()]).collect();
            at.sort_unstable();
            let pieces: Vec<&[u8]> = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(events_in(&pieces), events_in(&[bytes]));
        }
    }
}
