//! Events that come when the test says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Shared;

/// How many events have been let through.
pub(super) type Opened = Arc<AtomicUsize>;

/// Holds back the events of one answer. Its headers come at once. A gate that is dropped is open.
#[derive(Debug)]
pub struct Gate {
    shared: Arc<Shared>,
    opened: Opened,
}

impl Gate {
    pub(super) fn new(shared: Arc<Shared>) -> Gate {
        Gate { shared, opened: Opened::default() }
    }

    pub(super) fn opened(&self) -> Opened {
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

impl Drop for Gate {
    fn drop(&mut self) {
        self.open_all();
    }
}
