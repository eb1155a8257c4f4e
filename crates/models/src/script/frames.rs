//! Server-sent events with the waits between them, as a script's answer is sent.

use std::time::Duration;

use serde_json::Value;

/// One server-sent event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptFrame {
    /// Before it comes.
    pub wait: Duration,
    /// The event as it goes over the wire.
    pub bytes: Vec<u8>,
}

/// What the wires write on.
pub(super) struct ScriptFrameWriter {
    frames: Vec<ScriptFrame>,
    /// Before the next frame.
    wait: Duration,
}

impl ScriptFrameWriter {
    /// Writes nothing yet. The first frame comes after this time.
    pub(super) fn starting_after(delay: Duration) -> ScriptFrameWriter {
        ScriptFrameWriter { frames: Vec::new(), wait: delay }
    }

    pub(super) fn into_frames(self) -> Vec<ScriptFrame> {
        self.frames
    }

    pub(super) fn wait(&mut self, wait: Duration) {
        self.wait = self.wait.saturating_add(wait);
    }

    /// An event of which only the data counts.
    pub(super) fn data(&mut self, data: &Value) {
        self.raw(format!("data: {data}\n\n"));
    }

    /// An event with the name that its data has, too.
    pub(super) fn named(&mut self, data: &Value) {
        let name = data.get("type").and_then(Value::as_str).unwrap_or_default();
        self.raw(format!("event: {name}\ndata: {data}\n\n"));
    }

    pub(super) fn raw(&mut self, event: String) {
        let wait = std::mem::take(&mut self.wait);
        self.frames.push(ScriptFrame { wait, bytes: event.into_bytes() });
    }
}

/// A moment for the fields that want one: a script knows no clock.
pub(super) const SCRIPT_CREATED_AT: u64 = 1_767_225_600;

/// Something in the place of what a provider would seal: text in base64's letters, another one for each block.
pub(super) fn sealed(seed: u64, block: usize) -> String {
    format!("c2NyaXB0{seed:08x}{block:08x}")
}
