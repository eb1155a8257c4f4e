//! What was written before, kept in a file; and what is being written, in case of a crash.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const MAX_HISTORY_ENTRIES: usize = 1_000;
/// A longer one is not kept.
const MAX_HISTORY_ENTRY_BYTES: usize = 64 << 10;
const MAX_HISTORY_FILE_BYTES: u64 = 8 << 20;
/// A draft is saved at most so often.
const DRAFT_SAVE_INTERVAL: Duration = Duration::from_secs(1);

/// Oldest first. The file has one JSON string a line, and is only added to, so that several programs can share it.
#[derive(Debug, Default)]
pub(crate) struct PromptHistory {
    file: Option<PathBuf>,
    entries: Vec<String>,
    /// Which one is shown, and what was written before that.
    shown: Option<(usize, String)>,
}

impl PromptHistory {
    pub(crate) fn read(file: Option<PathBuf>) -> PromptHistory {
        let text = file.as_deref().map(read_bounded).unwrap_or_default();
        let mut entries: Vec<String> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        entries.dedup();
        let is_long = entries.len() > 2 * MAX_HISTORY_ENTRIES;
        entries.drain(..entries.len().saturating_sub(MAX_HISTORY_ENTRIES));
        let history = PromptHistory { file, entries, shown: None };
        if is_long {
            history.rewrite();
        }
        history
    }

    pub(crate) fn entries(&self) -> &[String] {
        &self.entries
    }

    pub(crate) fn add(&mut self, text: &str) {
        self.shown = None;
        if text.trim().is_empty()
            || text.len() > MAX_HISTORY_ENTRY_BYTES
            || self.entries.last().is_some_and(|last| last == text)
        {
            return;
        }
        self.entries.push(text.to_owned());
        self.entries.drain(..self.entries.len().saturating_sub(MAX_HISTORY_ENTRIES));
        let Some(file) = &self.file else { return };
        if let Ok(line) = serde_json::to_string(text)
            && let Ok(mut file) = private().append(true).create(true).open(file)
        {
            // What can't be kept is no reason to stop.
            let _ = file.write_all(format!("{line}\n").as_bytes());
        }
    }

    fn rewrite(&self) {
        let Some(file) = &self.file else { return };
        let lines = self.entries.iter().filter_map(|entry| serde_json::to_string(entry).ok());
        let text: String = lines.map(|line| line + "\n").collect();
        let _ = replace(file, &text);
    }

    /// The one before the one that is shown. `now` is what is written instead, and comes back at the end.
    pub(crate) fn older(&mut self, now: &str) -> Option<&str> {
        let (next, written) = match self.shown.take() {
            Some((0, written)) => {
                self.shown = Some((0, written));
                return None;
            }
            Some((shown, written)) => (shown - 1, written),
            None => (self.entries.len().checked_sub(1)?, now.to_owned()),
        };
        self.shown = Some((next, written));
        self.entries.get(next).map(String::as_str)
    }

    pub(crate) fn newer(&mut self) -> Option<String> {
        let (shown, written) = self.shown.take()?;
        match self.entries.get(shown + 1) {
            Some(entry) => {
                let entry = entry.clone();
                self.shown = Some((shown + 1, written));
                Some(entry)
            }
            None => Some(written),
        }
    }

    /// Somebody goes on with what is shown: it is no longer the old one.
    pub(crate) fn stop(&mut self) {
        self.shown = None;
    }
}

/// What is being written.
#[derive(Debug, Default)]
pub(crate) struct PromptDraft {
    file: Option<PathBuf>,
    saved: String,
    last: Option<Instant>,
}

impl PromptDraft {
    pub(crate) fn new(file: Option<PathBuf>) -> PromptDraft {
        PromptDraft { file, ..PromptDraft::default() }
    }

    /// What a crash has left.
    pub(crate) fn restore(&mut self) -> String {
        let text = self.file.as_deref().map(read_bounded).unwrap_or_default();
        self.saved.clone_from(&text);
        text
    }

    /// Saves it, unless that was just done. Says whether something is still to be saved.
    pub(crate) fn save(&mut self, text: &str, now: Instant) -> bool {
        if text == self.saved {
            return false;
        }
        if self.last.is_some_and(|last| now.saturating_duration_since(last) < DRAFT_SAVE_INTERVAL)
            && !text.is_empty()
        {
            return true;
        }
        self.last = Some(now);
        text.clone_into(&mut self.saved);
        if let Some(file) = &self.file {
            let _ = if text.is_empty() { fs::remove_file(file) } else { replace(file, text) };
        }
        false
    }
}

/// Others have no business with what a person writes.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

fn read_bounded(file: &Path) -> String {
    let mut bytes = Vec::new();
    let read =
        fs::File::open(file).and_then(|file| file.take(MAX_HISTORY_FILE_BYTES).read_to_end(&mut bytes));
    read.map(|_| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// All of it or nothing.
fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    let new = file.with_extension(format!("new-{}", std::process::id()));
    private().write(true).create(true).truncate(true).open(&new)?.write_all(text.as_bytes())?;
    fs::rename(&new, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_comes_back_in_order_and_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let file = Some(folder.path().join("history"));
        let mut history = PromptHistory::read(file.clone());
        ["one", "two\nlines", "two\nlines", " "].iter().for_each(|text| history.add(text));
        let mut history = PromptHistory::read(file);
        assert_eq!(history.entries(), ["one", "two\nlines"]);
        assert_eq!(history.older("new"), Some("two\nlines"));
        assert_eq!(history.older("two\nlines"), Some("one"));
        assert_eq!(history.older("one"), None);
        assert_eq!(history.newer().as_deref(), Some("two\nlines"));
        assert_eq!(history.newer().as_deref(), Some("new"));
        assert_eq!(history.newer(), None);
    }

    #[test]
    fn a_draft_survives_and_is_gone_when_it_was_sent() {
        let folder = tempfile::tempdir().unwrap();
        let file = Some(folder.path().join("draft"));
        #[expect(clippy::disallowed_methods, reason = "any time will do")]
        let now = Instant::now();
        let mut draft = PromptDraft::new(file.clone());
        assert!(!draft.save("half a", now));
        assert!(draft.save("half a sentence", now), "not yet");
        assert_eq!(PromptDraft::new(file.clone()).restore(), "half a");
        assert!(!draft.save("half a sentence", now + DRAFT_SAVE_INTERVAL));
        assert_eq!(PromptDraft::new(file.clone()).restore(), "half a sentence");
        assert!(!draft.save("", now + DRAFT_SAVE_INTERVAL));
        assert_eq!(PromptDraft::new(file).restore(), "");
    }
}
