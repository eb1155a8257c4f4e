//! Events that come when the test says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::ScriptedServerShared;

/// How many events have been let through.
pub(super) type OpenEventCount = Arc<AtomicUsize>;

/// Holds back the events of one answer. Its headers come at once. A gate that is dropped is open.
#[derive(Debug)]
pub struct EventGate {
    shared: Arc<ScriptedServerShared>,
    opened: OpenEventCount,
}

impl EventGate {
    pub(super) fn new(shared: Arc<ScriptedServerShared>) -> EventGate {
        EventGate { shared, opened: OpenEventCount::default() }
    }

    pub(super) fn opened(&self) -> OpenEventCount {
        Arc::clone(&self.opened)
    }

    /// Lets some more events through.
    pub fn open(&self, events: usize) {
        self.shared.change(|_| {
            let opened = self.opened.load(Ordering::Relaxed);
            self.opened.store(opened.saturating_add(events), Ordering::Relaxed);
        });
    }

    pub fn open_all(&self) {
        self.open(usize::MAX);
    }
}

impl Drop for EventGate {
    fn drop(&mut self) {
        self.open_all();
    }
}
