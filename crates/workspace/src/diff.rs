//! What differs between two contents, in lines.

use std::fmt::Write;
use std::time::Duration;

use helve_protocol::one_line;
use similar::{DiffTag, TextDiff};

use crate::stat::{FileMode, PathKind};

/// Above this, lines are counted and not compared.
const MAX_DIFFED_BYTES: usize = 4 << 20;
/// Where git looks for a zero byte, too.
const BINARY_PROBE_BYTES: usize = 8_000;
const CONTEXT_LINES: usize = 3;
/// How long two texts are compared.
const LINE_DIFF_TIMEOUT: Duration = Duration::from_millis(300);

/// A path's content at one time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiffSide<'c> {
    pub(crate) mode: FileMode,
    pub(crate) content: &'c [u8],
}

pub(crate) fn is_binary(content: &[u8]) -> bool {
    content.get(..BINARY_PROBE_BYTES).unwrap_or(content).contains(&0)
}

/// How much is compared in one look. What comes after is only counted: whoever waits for it waits for thousands of files.
#[derive(Debug)]
pub(crate) struct DiffBudget {
    bytes: usize,
}

impl Default for DiffBudget {
    fn default() -> DiffBudget {
        DiffBudget { bytes: 32 << 20 }
    }
}

impl DiffBudget {
    fn lasts_for(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_sub(bytes);
        self.bytes > 0
    }
}

/// How many lines were added and removed. Those of a binary content do not count.
pub(crate) fn count_lines(before: &[u8], after: &[u8], patience: &mut DiffBudget) -> (u64, u64) {
    if is_binary(before) || is_binary(after) {
        return (0, 0);
    }
    let is_one_empty = before.is_empty() || after.is_empty();
    let is_large = before.len().max(after.len()) > MAX_DIFFED_BYTES;
    if is_one_empty || is_large || !patience.lasts_for(before.len() + after.len()) {
        return (lines_in(after), lines_in(before));
    }
    let (before, after) = (String::from_utf8_lossy(before), String::from_utf8_lossy(after));
    let diff = diff_with_timeout(&before, &after);
    let changes = diff.ops().iter().filter(|op| op.tag() != DiffTag::Equal);
    changes.fold((0, 0), |(added, removed), op| {
        (added + as_u64(op.new_range().len()), removed + as_u64(op.old_range().len()))
    })
}

/// Lines that have nothing in common take for ever to compare: then what is left counts as removed and added.
fn diff_with_timeout<'t>(before: &'t str, after: &'t str) -> TextDiff<'t, 't, str> {
    TextDiff::configure().timeout(LINE_DIFF_TIMEOUT).diff_lines(before, after)
}

fn lines_in(content: &[u8]) -> u64 {
    let ends = content.iter().filter(|byte| **byte == b'\n').count();
    as_u64(ends + usize::from(content.last().is_some_and(|byte| *byte != b'\n')))
}

fn as_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// A unified diff as git writes it, cut after whole lines so that it has at most `max_bytes` and a line that says so.
pub(crate) fn unified(
    path: &str,
    before: Option<DiffSide<'_>>,
    after: Option<DiffSide<'_>>,
    max_bytes: usize,
) -> String {
    // A name can have line breaks in it, and must not pass for more than a name.
    let path = &one_line(path);
    let mut text = heading(path, before, after);
    let content = |side: Option<DiffSide<'_>>| side.map_or(&[][..], |side| side.content).to_vec();
    let (old, new) = (content(before), content(after));
    if old == new {
        return text;
    }
    let old_name = before.map_or("/dev/null".to_owned(), |_| format!("a/{path}"));
    let new_name = after.map_or("/dev/null".to_owned(), |_| format!("b/{path}"));
    if is_binary(&old) || is_binary(&new) {
        let _ = writeln!(text, "Binary files {old_name} and {new_name} differ");
    } else if old.len().max(new.len()) > MAX_DIFFED_BYTES {
        let _ = writeln!(text, "Files {old_name} and {new_name} differ, too large to be compared");
    } else {
        let (old, new) = (String::from_utf8_lossy(&old), String::from_utf8_lossy(&new));
        let diff = diff_with_timeout(&old, &new);
        let mut unified = diff.unified_diff();
        let unified = unified.context_radius(CONTEXT_LINES).header(&old_name, &new_name);
        push_bounded(&mut text, &unified.to_string(), max_bytes);
    }
    text
}

fn heading(path: &str, before: Option<DiffSide<'_>>, after: Option<DiffSide<'_>>) -> String {
    let mut text = format!("diff --git a/{path} b/{path}\n");
    let _ = match (before.map(|side| side.mode), after.map(|side| side.mode)) {
        (None, Some(mode)) => writeln!(text, "new file mode {}", octal(mode)),
        (Some(mode), None) => writeln!(text, "deleted file mode {}", octal(mode)),
        (Some(old), Some(new)) if old != new => {
            writeln!(text, "old mode {}\nnew mode {}", octal(old), octal(new))
        }
        _ => Ok(()),
    };
    text
}

/// Of a link the permissions mean nothing.
fn octal(mode: FileMode) -> String {
    let bits = if mode.kind() == PathKind::Link { 0o120_000 } else { mode.bits() };
    format!("{bits:06o}")
}

fn push_bounded(text: &mut String, more: &str, max_bytes: usize) {
    let mut left_out = 0;
    for line in more.split_inclusive('\n') {
        if left_out > 0 || text.len() + line.len() > max_bytes {
            left_out += 1;
        } else {
            text.push_str(line);
        }
    }
    if left_out > 0 {
        let _ = writeln!(text, "… {left_out} more lines of this diff are left out");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lines that are alike and in no order: comparing them to the end would take minutes.
    #[test]
    fn what_has_no_order_is_compared_as_far_as_there_is_time() {
        let digits = |seed: u64| -> String {
            let mut state = seed;
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                state >> 60
            };
            (0..300_000).map(|_| format!("{}\n", next())).collect()
        };
        let (before, after) = (digits(1), digits(2));
        let (added, removed) = counted(before.as_bytes(), after.as_bytes());
        assert!(added == removed && added > 0);
        assert!(unified("a", file(&before), file(&after), 10_000).len() < 11_000);
    }

    fn counted(before: &[u8], after: &[u8]) -> (u64, u64) {
        count_lines(before, after, &mut DiffBudget::default())
    }

    #[test]
    fn what_is_too_much_to_compare_is_counted() {
        let mut patience = DiffBudget { bytes: 8 };
        assert_eq!(count_lines(b"a\nb\n", b"a\nc", &mut patience), (1, 1));
        assert_eq!(count_lines(b"a\nb\n", b"a\nc\n", &mut patience), (2, 2));
    }

    fn file(content: &str) -> Option<DiffSide<'_>> {
        Some(DiffSide { mode: FileMode::from_bits(0o100_644), content: content.as_bytes() })
    }

    #[test]
    fn lines_are_counted() {
        assert_eq!(counted(b"a\nb\nc\n", b"a\nx\ny\nc\n"), (2, 1));
        assert_eq!(counted(b"", b"a\nb"), (2, 0));
        assert_eq!(counted(b"a\n", b""), (0, 1));
        assert_eq!(counted(b"a\0", b"b\0"), (0, 0));
    }

    #[test]
    fn a_diff_reads_as_gits() {
        let text = unified("f", file("a\nb\n"), file("a\nc\n"), 1_000);
        assert_eq!(text, "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
        let text = unified("f", None, file("a\n"), 1_000);
        assert!(text.contains("new file mode 100644\n--- /dev/null\n+++ b/f\n"), "{text}");
        let text = unified("f", file("\0a"), None, 1_000);
        assert!(
            text.ends_with("deleted file mode 100644\nBinary files a/f and /dev/null differ\n"),
            "{text}"
        );
    }

    #[test]
    fn a_change_of_the_mode_alone_is_shown() {
        let runs = DiffSide { mode: FileMode::from_bits(0o100_755), content: b"a" };
        let text = unified("f", file("a"), Some(runs), 1_000);
        assert_eq!(text, "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n");
    }

    proptest! {
        #[test]
        fn a_diff_is_bounded(old in "[ab\n]{0,400}", new in "[ab\n]{0,400}", max in 0usize..300) {
            let text = unified("f", file(&old), file(&new), max);
            prop_assert!(text.len() <= max + 100, "{} bytes of {max}", text.len());
        }

        #[test]
        fn counts_agree_with_the_lengths(
            old in prop::collection::vec("[ab]{0,2}\n", 0..20),
            new in prop::collection::vec("[ab]{0,2}\n", 0..20),
        ) {
            let (added, removed) = counted(old.concat().as_bytes(), new.concat().as_bytes());
            prop_assert_eq!(old.len() as u64 + added, new.len() as u64 + removed);
        }
    }
}
