//! How changes are told: to people as a diff, to the model as the lines that are there now.

use std::time::Duration;

use helve_workspace::{FileLine, MergeConflict, MergeHunk, NumberedLines, lines};
use similar::{ChangeTag, DiffOp, TextDiff, group_diff_ops};

use crate::display::count_with_noun;

/// What people are shown of one change at most.
const MAX_DISPLAY_DIFF_LINES: usize = 200;
const MAX_DISPLAY_DIFF_BYTES: usize = 16 << 10;
/// What the model is shown of a change, of what others did, and of conflicts.
const MAX_TOLD_LINES: usize = 80;
const MAX_TOLD_LINE_CHARS: usize = 300;
/// A diff that takes longer is coarser.
const REPORT_DIFF_TIMEOUT: Duration = Duration::from_millis(500);
const REPORT_CONTEXT_LINES: usize = 3;

/// A line that counts what changed, and the beginning of a unified diff.
pub(crate) fn diff(name: &str, before: Option<&str>, after: Option<&str>) -> String {
    let [old, new] = [before, after].map(Option::unwrap_or_default);
    let diff = TextDiff::configure().timeout(REPORT_DIFF_TIMEOUT).diff_lines(old, new);
    let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
    let counts = format!("{name}: +{} -{}", count(ChangeTag::Insert), count(ChangeTag::Delete));
    let side = |text: Option<&str>, side: &str| match text {
        Some(_) => format!("{side}/{name}"),
        None => "/dev/null".to_owned(),
    };
    let mut unified = diff.unified_diff();
    unified.context_radius(REPORT_CONTEXT_LINES).header(&side(before, "a"), &side(after, "b"));
    let unified = unified.to_string();
    bounded(std::iter::once(counts.as_str()).chain(unified.lines()))
}

pub(crate) fn bounded<'a>(mut all: impl Iterator<Item = &'a str>) -> String {
    let mut shown = Vec::new();
    let mut bytes = 0;
    for line in all.by_ref().take(MAX_DISPLAY_DIFF_LINES) {
        shown.push(cut(line));
        bytes += shown.last().map_or(0, String::len);
        if bytes > MAX_DISPLAY_DIFF_BYTES {
            break;
        }
    }
    match all.count() {
        0 => {}
        left => shown.push(format!("[{} more]", counted_lines(left))),
    }
    shown.join("\n")
}

/// A number of lines, with their word.
pub(crate) fn counted_lines(count: usize) -> String {
    count_with_noun(count as u64, "line", "lines")
}

/// A line, if it is long only its beginning.
fn cut(line: &str) -> String {
    let line = line.trim_end_matches('\r');
    match line.char_indices().nth(MAX_TOLD_LINE_CHARS) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or(line)),
        None => line.to_owned(),
    }
}

fn numbered(first: usize, lines: impl Iterator<Item = impl AsRef<str>>) -> impl Iterator<Item = String> {
    lines.enumerate().map(move |(at, line)| format!("{:>6}\t{}", first + at, cut(line.as_ref())))
}

/// What differs between lines, whatever they end with.
pub(crate) fn line_diff(before: &[FileLine<'_>], after: &[FileLine<'_>]) -> Vec<DiffOp> {
    let [before, after] =
        [before, after].map(|lines| lines.iter().map(|line| line.content).collect::<Vec<_>>());
    TextDiff::configure().timeout(REPORT_DIFF_TIMEOUT).diff_slices(&before, &after).ops().to_vec()
}

/// The lines that a change made or touched, as they are now, with a few around them.
pub(crate) fn changed_lines(before: &str, after: &str) -> String {
    let [before, all] = [before, after].map(|text| lines(text).collect::<Vec<_>>());
    let diff = line_diff(&before, &all);
    let mut told = Vec::new();
    let mut left = MAX_TOLD_LINES;
    for group in group_diff_ops(diff, REPORT_CONTEXT_LINES) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let range = first.new_range().start..last.new_range().end;
        if range.len() > left {
            told.push("[more changed lines are not shown]".to_owned());
            break;
        }
        left -= range.len();
        if !told.is_empty() {
            told.push("...".to_owned());
        }
        let now = all.iter().skip(range.start).take(range.len());
        told.extend(numbered(range.start + 1, now.map(|line| line.content)));
    }
    told.join("\n")
}

fn line_count(hunks: &[MergeHunk]) -> usize {
    hunks.iter().map(|hunk| 1 + hunk.before.len() + hunk.after.lines.len()).sum()
}

fn is_cut(line: &str) -> bool {
    line.chars().nth(MAX_TOLD_LINE_CHARS).is_some()
}

/// Whether all that others did can be told.
pub(crate) fn can_be_told_whole(hunks: &[MergeHunk]) -> bool {
    let mut all = hunks.iter().flat_map(|hunk| hunk.before.iter().chain(&hunk.after.lines));
    line_count(hunks) <= MAX_TOLD_LINES && !all.any(|line| is_cut(line))
}

/// What others did to a file meanwhile; nothing if they did nothing.
pub(crate) fn describe_outside_changes(name: &str, hunks: &[MergeHunk]) -> String {
    if hunks.is_empty() {
        return String::new();
    }
    let all = hunks.iter().flat_map(hunk);
    format!(
        "\n{name} had been changed by somebody else since you read it. Those changes are kept:\n{}",
        limited(all, line_count(hunks))
    )
}

fn hunk(hunk: &MergeHunk) -> impl Iterator<Item = String> + '_ {
    let place = match hunk.after.lines.len() {
        0 => format!("before line {}:", hunk.after.first),
        1 => format!("line {}:", hunk.after.first),
        more => format!("lines {}-{}:", hunk.after.first, hunk.after.first + more - 1),
    };
    let removed = hunk.before.iter().map(|line| format!("-{}", cut(line)));
    let added = hunk.after.lines.iter().map(|line| format!("+{}", cut(line)));
    std::iter::once(place).chain(removed).chain(added)
}

fn limited(all: impl Iterator<Item = String>, count: usize) -> String {
    let mut told: Vec<String> = all.take(MAX_TOLD_LINES).collect();
    if count > MAX_TOLD_LINES {
        told.push("[there is more: read the file again]".to_owned());
    }
    told.join("\n")
}

/// What both sides did in the same places.
pub(crate) fn conflicts(conflicts: &[MergeConflict]) -> String {
    let side = |title: &str, side: &NumberedLines| {
        let lines = numbered(side.first, side.lines.iter()).collect::<Vec<_>>();
        let nothing = if lines.is_empty() { " (nothing)" } else { "" };
        std::iter::once(format!("{title}:{nothing}")).chain(lines).collect::<Vec<_>>()
    };
    let all: Vec<String> = conflicts
        .iter()
        .flat_map(|conflict| {
            [
                side("You read", &conflict.seen),
                side("You want", &conflict.wanted),
                side("There is now", &conflict.there),
            ]
        })
        .flatten()
        .collect();
    let count = all.len();
    format!("\n{}", limited(all.into_iter(), count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_begins_with_its_counts() {
        let shown = diff("f", Some("a\nb\nc\n"), Some("a\nB\nc\n"));
        assert_eq!(shown, "f: +1 -1\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c");
        assert!(diff("f", None, Some("a\n")).starts_with("f: +1 -0\n--- /dev/null\n+++ b/f\n"));
    }

    #[test]
    fn what_is_shown_is_bounded() {
        let long = "x".repeat(10_000) + "\n";
        let shown = diff("f", Some(""), Some(&long.repeat(1_000)));
        assert!(shown.len() < MAX_DISPLAY_DIFF_BYTES + 4 * MAX_TOLD_LINE_CHARS + 100, "{}", shown.len());
        assert!(shown.ends_with("lines more]"), "{shown}");
        assert!(changed_lines("", &"y\n".repeat(1_000)).ends_with("not shown]"));
    }

    #[test]
    fn changed_lines_are_numbered_as_they_are_now() {
        let before: String = (1..30).map(|line| format!("{line}\n")).collect();
        let after = before.replace("\n5\n", "\nfive\n5\n").replace("\n20\n", "\n");
        let told = changed_lines(&before, &after);
        assert!(told.contains("     5\tfive\n     6\t5") && told.contains("\n...\n"), "{told}");
        assert!(told.contains("    20\t19\n    21\t21"), "{told}");
    }
}
