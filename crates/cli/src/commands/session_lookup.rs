//! What the journal knows that a person looks for in the interface: other sessions, and what this one changed.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use helve_journal::{FileJournal, Journal};
use helve_protocol::{Clock, EventBody, FilesChanged, MessagePart, Seq, SessionId, SessionSummary, TextKind};
use helve_tui::{SessionFileChange, SessionPreview, SessionRow};

use super::sessions::{cents, title_of};
use crate::setup::SystemClock;
use crate::text::ago;

/// Whoever looks through a list does not wait longer for a long session.
const SESSION_PREVIEW_TIMEOUT: Duration = Duration::from_secs(2);
/// So much of a message is looked at.
const MAX_PREVIEW_CHARS: usize = 400;
/// So many bytes of diffs are kept.
const MAX_SESSION_DIFF_BYTES: usize = 16 << 20;

/// The sessions of people, but for this one.
pub(super) fn sessions(
    journal: &FileJournal,
    current: SessionId,
    here: &Path,
) -> Result<Vec<SessionRow>, String> {
    let now = SystemClock.now();
    // Where nothing was said, there is nothing to resume.
    let has_begun = |summary: &SessionSummary| !summary.title.is_empty() || summary.turns > 0;
    let is_offered = |summary: &SessionSummary| {
        summary.parent.is_none() && summary.session != current && has_begun(summary)
    };
    let past = |summary: SessionSummary| SessionRow {
        session: summary.session,
        title: title_of(&summary),
        when: ago(now, summary.updated),
        cost: cents(&summary),
        model: summary.model.map(|model| model.to_string()),
        turns: summary.turns,
        is_here: Path::new(&summary.workspace) == here,
        place: summary.workspace,
    };
    let listed = journal.list().map_err(|error| format!("the sessions can't be listed: {error}"))?;
    Ok(listed.into_iter().filter(is_offered).map(past).collect())
}

/// How a session began and ended, as far as it can be read soon.
pub(super) fn session_preview(journal: &FileJournal, session: SessionId) -> SessionPreview {
    let began = Instant::now();
    let mut glimpse = SessionPreview::default();
    let mut is_long = false;
    let read = journal.read(session, Seq::START, &mut |event| {
        if let EventBody::UserMessage(_) | EventBody::ResponseEnded(_) = &event.body
            && let Some(words) = words(&event.body)
        {
            if glimpse.first.is_empty() {
                glimpse.first.clone_from(&words);
            }
            glimpse.last = words;
        }
        is_long = began.elapsed() > SESSION_PREVIEW_TIMEOUT;
        if is_long { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if let Err(error) = read {
        glimpse.last = format!("it can't be read: {error}");
    } else if is_long {
        glimpse.last = "(a long session)".to_owned();
    } else if glimpse.first.is_empty() {
        glimpse.first = "nothing was said".to_owned();
    }
    glimpse
}

/// The beginning of what was said.
fn words(body: &EventBody) -> Option<String> {
    let parts = match body {
        EventBody::UserMessage(message) => &message.parts,
        EventBody::ResponseEnded(response) => &response.parts,
        _ => return None,
    };
    let said = parts.iter().find_map(|part| match part {
        MessagePart::Text(text) if text.kind != TextKind::Note && !text.text.trim().is_empty() => {
            Some(text.text.trim())
        }
        _ => None,
    })?;
    let words: Vec<&str> = said.split_whitespace().take(MAX_PREVIEW_CHARS).collect();
    Some(words.join(" ").chars().take(MAX_PREVIEW_CHARS).collect())
}

/// What the agent changed in a session, since it began: each file with all that was done to it.
pub(super) fn changes(journal: &FileJournal, session: SessionId) -> Result<Vec<SessionFileChange>, String> {
    let mut files: BTreeMap<String, SessionFileChange> = BTreeMap::new();
    let mut room = MAX_SESSION_DIFF_BYTES;
    let read = journal.read(session, Seq::START, &mut |event| {
        if let EventBody::FilesChanged(changed) = &event.body
            && changed.call.is_some()
        {
            add(changed, &mut files, &mut room);
        }
        ControlFlow::Continue(())
    });
    read.map_err(|error| format!("the changes can't be read: {error}"))?;
    let told = |mut file: SessionFileChange| {
        if file.diff.is_empty() {
            file.diff = format!("diff --git a/{0} b/{0}\nits lines are not kept\n", file.path);
        }
        file
    };
    Ok(files.into_values().map(told).collect())
}

fn add(changed: &FilesChanged, files: &mut BTreeMap<String, SessionFileChange>, room: &mut usize) {
    for change in &changed.changes {
        let file = files.entry(change.path.clone()).or_default();
        file.path.clone_from(&change.path);
        file.added = file.added.saturating_add(change.added_lines);
        file.removed = file.removed.saturating_add(change.removed_lines);
        let piece = pieces(&changed.diff).find(|piece| is_about(piece, &change.path));
        if let Some(piece) = piece.filter(|piece| piece.len() <= *room) {
            *room -= piece.len();
            file.diff.push_str(piece);
        }
    }
}

/// A diff cut into those of single files. Lines of files have a sign before them, so none is taken for a heading.
fn pieces(diff: &str) -> impl Iterator<Item = &str> {
    let mut rest = diff;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.find("\ndiff --git ").map_or(rest.len(), |end| end + 1);
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

fn is_about(piece: &str, path: &str) -> bool {
    let heading = piece.lines().next().unwrap_or_default();
    heading.strip_suffix(path).is_some_and(|before| before.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_diff_is_cut_by_its_files() {
        let one = "diff --git a/one b/one\n--- a/one\n+++ b/one\n@@ -1 +1 @@\n-diff --git a/x b/x\n+two\n";
        let two = "diff --git a/in/two b/in/two\nnew file mode 100644\n";
        let whole = format!("{one}{two}");
        assert_eq!(pieces(&whole).collect::<Vec<_>>(), [one, two]);
        assert!(is_about(one, "one") && is_about(two, "in/two") && !is_about(two, "wo"));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_between_the_pieces(diff in "(diff --git a/\\PC{0,5} b/x\n|[-+ ]\\PC{0,9}\n|\n){0,9}") {
            prop_assert_eq!(pieces(&diff).collect::<String>(), diff);
        }
    }
}
