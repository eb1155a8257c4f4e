//! What is heard of an answer while it comes, told on as live events.

use std::collections::{BTreeMap, BTreeSet};

use helve_models::{ModelEvent, StreamEvent};
use helve_protocol::{
    CallAnnounced, CallDelta, CallId, ResponsePartial, ResponseStarted, RetryScheduled, TextDelta,
    ThinkingDelta, ThinkingEnded, ThinkingStarted, TokenUsage,
};

use crate::recorder::{Recorder, SessionError};

/// After so many pieces of text, what came is kept for readers.
const PARTIAL_TEXT_INTERVAL: u32 = 10;

/// Listens to one request.
pub(crate) struct StreamRecorder<'a> {
    record: &'a Recorder,
    /// The ids of the calls that were seen, by their blocks.
    calls: BTreeMap<u32, CallId>,
    thinking: BTreeSet<u32>,
    partial: String,
    pieces: u32,
    /// What tries took that came to nothing.
    lost: TokenUsage,
    failed: Option<SessionError>,
}

impl<'a> StreamRecorder<'a> {
    pub(crate) fn new(record: &'a Recorder) -> StreamRecorder<'a> {
        StreamRecorder {
            record,
            calls: BTreeMap::new(),
            thinking: BTreeSet::new(),
            partial: String::new(),
            pieces: 0,
            lost: TokenUsage::default(),
            failed: None,
        }
    }

    pub(crate) fn hear(&mut self, heard: &StreamEvent<'_>) {
        if self.failed.is_none()
            && let Err(error) = self.tell(heard)
        {
            self.failed = Some(error);
        }
    }

    /// The ids of the calls, in their order, and what was lost on the way; or why something could not be recorded.
    pub(crate) fn end(self) -> Result<(Vec<CallId>, TokenUsage), SessionError> {
        match self.failed {
            Some(error) => Err(error),
            None => Ok((self.calls.into_values().collect(), self.lost)),
        }
    }

    fn tell(&mut self, heard: &StreamEvent<'_>) -> Result<(), SessionError> {
        match heard {
            StreamEvent::Started => self.record.emit(ResponseStarted {}),
            StreamEvent::Received(event) => self.said(event),
            StreamEvent::Retrying { attempt, delay, failure } => {
                self.calls.clear();
                self.thinking.clear();
                self.partial.clear();
                self.lost += failure.spent;
                let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
                self.record.emit(RetryScheduled { attempt: *attempt, delay_ms, reason: failure.to_string() })
            }
        }
    }

    fn said(&mut self, event: &ModelEvent) -> Result<(), SessionError> {
        match event {
            ModelEvent::Text { block, text } => {
                self.end_thinking()?;
                self.record.emit(TextDelta { index: *block, text: text.clone() })?;
                self.keep(text)
            }
            ModelEvent::Thinking { block, text } => {
                if self.thinking.insert(*block) {
                    self.record.emit(ThinkingStarted { index: *block })?;
                }
                self.record.emit(ThinkingDelta { index: *block, text: text.clone() })
            }
            ModelEvent::CallStarted { block, name, .. } => {
                self.end_thinking()?;
                let call = self.record.draw();
                self.calls.insert(*block, call);
                self.record.emit(CallAnnounced { index: *block, call, name: name.clone() })
            }
            ModelEvent::CallArguments { block, json } => match self.calls.get(block) {
                Some(call) => self.record.emit(CallDelta { call: *call, arguments: json.clone() }),
                None => Ok(()),
            },
            ModelEvent::Sealed { .. } | ModelEvent::Usage(_) | ModelEvent::Stopped(_) => Ok(()),
        }
    }

    fn end_thinking(&mut self) -> Result<(), SessionError> {
        for index in std::mem::take(&mut self.thinking) {
            self.record.emit(ThinkingEnded { index, summary: None })?;
        }
        Ok(())
    }

    /// Keeps what came for readers, now and then.
    fn keep(&mut self, text: &str) -> Result<(), SessionError> {
        self.partial.push_str(text);
        self.pieces += 1;
        if self.pieces.is_multiple_of(PARTIAL_TEXT_INTERVAL) {
            let text = std::mem::take(&mut self.partial);
            self.record.emit(ResponsePartial { text })?;
        }
        Ok(())
    }
}
