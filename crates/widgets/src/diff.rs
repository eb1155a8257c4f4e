//! A unified diff as coloured lines: files, line numbers, and which part of a line has changed.

use std::collections::HashMap;
use std::ops::Range;

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::theme::Theme;
use crate::width::{grouped, truncate};
use crate::word_diff::changed_parts;
use crate::wrap::wrap_with_prefix;

/// In narrower windows, line numbers are left out.
const MIN_WIDTH_FOR_LINE_NUMBERS: usize = 24;
/// More lines at once are not compared word by word.
const MAX_COMPARED_ROWS: usize = 200;

/// One line of a diff, understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DiffRow<'a> {
    /// A file begins.
    File(&'a str),
    /// Something about the file: modes, renames.
    FileDetail(&'a str),
    /// A part begins.
    Hunk(&'a str),
    Unchanged(usize, &'a str),
    Added(usize, &'a str),
    Removed(usize, &'a str),
}

/// At most `most` rows; if there are more lines, the last row says how many.
pub fn diff_lines(diff: &str, width: usize, most: usize, theme: &Theme) -> Vec<Line<'static>> {
    let rows = parse(diff);
    let numbers =
        if width < MIN_WIDTH_FOR_LINE_NUMBERS { 0 } else { largest_number(&rows).to_string().len() + 1 };
    let mut painter =
        DiffPainter { width, numbers, theme, rows: &rows, parts: HashMap::new(), lines: Vec::new() };
    // Where the lines of each row end.
    let mut ends = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        painter.paint(at, row);
        if painter.lines.len() > most {
            let shown = ends.iter().filter(|end| **end < most).count();
            painter
                .lines
                .truncate(shown.checked_sub(1).and_then(|last| ends.get(last)).copied().unwrap_or(0));
            return folded(painter, rows.len() - shown, most);
        }
        ends.push(painter.lines.len());
    }
    painter.lines
}

fn folded(painter: DiffPainter<'_>, left: usize, most: usize) -> Vec<Line<'static>> {
    let mut lines = painter.lines;
    if most > 0 {
        let noun = if left == 1 { "line" } else { "lines" };
        let note = Line::styled(format!("… {} more {noun}", grouped(left)), painter.theme.muted);
        lines.push(truncate(&note, painter.width));
    }
    lines
}

fn largest_number(rows: &[DiffRow<'_>]) -> usize {
    let number = |row: &DiffRow<'_>| match row {
        DiffRow::Unchanged(number, _) | DiffRow::Added(number, _) | DiffRow::Removed(number, _) => *number,
        _ => 0,
    };
    rows.iter().map(number).max().unwrap_or(0)
}

/// Where in the old and the new file we are, and how many lines of each are still to come.
#[derive(Default)]
struct UnifiedDiffParser {
    old: usize,
    new: usize,
    old_left: usize,
    new_left: usize,
    /// Git has told the name of the file.
    is_named: bool,
}

fn parse(diff: &str) -> Vec<DiffRow<'_>> {
    let mut place = UnifiedDiffParser::default();
    diff.lines().filter_map(|line| place.row(line)).collect()
}

impl UnifiedDiffParser {
    fn row<'a>(&mut self, line: &'a str) -> Option<DiffRow<'a>> {
        if self.old_left > 0 || self.new_left > 0 {
            return self.inside(line);
        }
        if let Some(place) = line.strip_prefix("@@ -").and_then(hunk) {
            *self = place;
            return Some(DiffRow::Hunk(line.splitn(3, "@@").nth(2).unwrap_or_default().trim()));
        }
        match line.split_once(' ') {
            Some(("diff", names)) => {
                self.is_named = true;
                Some(DiffRow::File(names.rsplit_once(" b/").map_or(names, |(_, new)| new)))
            }
            Some(("index" | "similarity" | "dissimilarity", _)) | Some(("---" | "+++", "/dev/null")) => None,
            Some(("---" | "+++", name)) => (!self.is_named).then(|| DiffRow::File(file_name(name))),
            _ if line.trim().is_empty() => None,
            _ => Some(DiffRow::FileDetail(line)),
        }
    }

    fn inside<'a>(&mut self, line: &'a str) -> Option<DiffRow<'a>> {
        let text = line.get(1..).unwrap_or_default();
        match line.as_bytes().first() {
            Some(b'+') => {
                self.new_left = self.new_left.saturating_sub(1);
                self.new += 1;
                Some(DiffRow::Added(self.new - 1, text))
            }
            Some(b'-') => {
                self.old_left = self.old_left.saturating_sub(1);
                self.old += 1;
                Some(DiffRow::Removed(self.old - 1, text))
            }
            Some(b'\\') => Some(DiffRow::FileDetail(line)),
            // Some tools drop the space of an empty line.
            Some(b' ') | None => {
                self.old_left = self.old_left.saturating_sub(1);
                self.new_left = self.new_left.saturating_sub(1);
                self.old += 1;
                self.new += 1;
                Some(DiffRow::Unchanged(self.new - 1, text))
            }
            Some(_) => {
                *self = UnifiedDiffParser::default();
                self.row(line)
            }
        }
    }
}

/// The name as `diff` writes it, perhaps with a time behind it.
fn file_name(text: &str) -> &str {
    let name = text.split('\t').next().unwrap_or(text);
    name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")).unwrap_or(name)
}

/// `12,3 +14,4 @@ …`
fn hunk(text: &str) -> Option<UnifiedDiffParser> {
    let (ranges, _) = text.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let range = |text: &str| -> Option<(usize, usize)> {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        // Line numbers are added to: no file has so many.
        Some((start.parse::<u32>().ok()? as usize, count.parse::<u32>().ok()? as usize))
    };
    let ((old, old_left), (new, new_left)) = (range(old)?, range(new)?);
    Some(UnifiedDiffParser { old, new, old_left, new_left, is_named: false })
}

struct DiffPainter<'a> {
    width: usize,
    /// Columns for line numbers.
    numbers: usize,
    theme: &'a Theme,
    rows: &'a [DiffRow<'a>],
    /// What has changed in some of the rows.
    parts: HashMap<usize, Vec<Range<usize>>>,
    lines: Vec<Line<'static>>,
}

impl<'a> DiffPainter<'a> {
    fn row(&self, at: Option<usize>) -> Option<&'a DiffRow<'a>> {
        at.and_then(|at| self.rows.get(at))
    }

    fn paint(&mut self, at: usize, row: &DiffRow<'_>) {
        let before = self.row(at.checked_sub(1)).copied();
        match row {
            DiffRow::File(name) => self.file(at, name, before.as_ref()),
            DiffRow::FileDetail(text) => {
                self.put("", Span::raw(" "), vec![Span::styled((*text).to_owned(), self.theme.muted)])
            }
            DiffRow::Hunk(context) => {
                let is_first = matches!(before, None | Some(DiffRow::File(_) | DiffRow::FileDetail(_)));
                if !context.is_empty() || !is_first {
                    let text = format!("⋯ {context}").trim_end().to_owned();
                    self.put("", Span::raw(" "), vec![Span::styled(text, self.theme.muted)]);
                }
            }
            DiffRow::Unchanged(number, text) => {
                let spans = vec![Span::styled((*text).to_owned(), self.theme.text)];
                self.put(&number.to_string(), Span::raw(" "), spans);
            }
            DiffRow::Added(number, text) => {
                let styles = [self.theme.added, self.theme.added_part];
                self.changed(at, *number, "+", text, styles);
            }
            DiffRow::Removed(number, text) => {
                if !matches!(before, Some(DiffRow::Removed(..))) {
                    self.compare(at);
                }
                let styles = [self.theme.removed, self.theme.removed_part];
                self.changed(at, *number, "-", text, styles);
            }
        }
    }

    /// Two rows name a file that has changed, one a file that is new or gone: the last of them is drawn.
    fn file(&mut self, at: usize, name: &str, before: Option<&DiffRow<'_>>) {
        if matches!(self.row(Some(at + 1)), Some(DiffRow::File(_))) {
            return;
        }
        let name = match before {
            Some(DiffRow::File(old)) if *old != name => format!("{old} → {name}"),
            _ => name.to_owned(),
        };
        let (mut added, mut removed) = (0, 0);
        for row in self.rows.iter().skip(at + 1).take_while(|row| !matches!(row, DiffRow::File(_))) {
            added += usize::from(matches!(row, DiffRow::Added(..)));
            removed += usize::from(matches!(row, DiffRow::Removed(..)));
        }
        if !self.lines.is_empty() {
            self.lines.push(Line::default());
        }
        let line = Line::from(vec![
            Span::styled(name, self.theme.heading),
            Span::styled(format!(" +{added}"), self.theme.added),
            Span::styled(format!(" -{removed}"), self.theme.removed),
        ]);
        self.lines.extend(wrap_with_prefix(&line, self.width, &Line::default(), &Line::from("  ")));
    }

    /// Compares the removed rows that begin here with the added ones that take their places. Only as many against as many
    /// can be told to be the same lines.
    fn compare(&mut self, at: usize) {
        let rows = self.rows.get(at..).unwrap_or_default();
        let removed = rows.iter().take_while(|row| matches!(row, DiffRow::Removed(..))).count();
        let added = rows.iter().skip(removed).take_while(|row| matches!(row, DiffRow::Added(..))).count();
        if removed != added || removed > MAX_COMPARED_ROWS {
            return;
        }
        for (offset, pair) in rows.iter().zip(rows.iter().skip(removed)).take(removed).enumerate() {
            if let (DiffRow::Removed(_, old), DiffRow::Added(_, new)) = pair {
                let (gone, came) = changed_parts(old, new);
                self.parts.insert(at + offset, gone);
                self.parts.insert(at + offset + removed, came);
            }
        }
    }

    fn changed(
        &mut self,
        at: usize,
        number: usize,
        sign: &'static str,
        text: &str,
        [style, part_style]: [Style; 2],
    ) {
        let mut spans = Vec::new();
        let mut from = 0;
        for part in self.parts.remove(&at).unwrap_or_default() {
            spans.push(Span::styled(text.get(from..part.start).unwrap_or_default().to_owned(), style));
            from = part.end;
            let changed = text.get(part).unwrap_or_default();
            spans.push(Span::styled(changed.to_owned(), style.patch(part_style)));
        }
        spans.push(Span::styled(text.get(from..).unwrap_or_default().to_owned(), style));
        self.put(&number.to_string(), Span::styled(sign, style), spans);
    }

    fn put(&mut self, number: &str, sign: Span<'static>, spans: Vec<Span<'static>>) {
        let width = self.numbers.saturating_sub(1);
        let number = if self.numbers == 0 { String::new() } else { format!("{number:>width$} ") };
        let first = Line::from(vec![Span::styled(number, self.theme.muted), sign, Span::raw(" ")]);
        let rest = Line::from(" ".repeat(self.numbers + 2));
        self.lines.extend(wrap_with_prefix(&Line::from(spans), self.width, &first, &rest));
    }
}
