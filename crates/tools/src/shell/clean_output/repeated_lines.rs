//! Runs of the same line.

/// So many of them are shown.
const MAX_SHOWN_REPEATS: u32 = 3;
/// Lines of a run are skipped in blocks of about this size.
const RUN_BLOCK_BYTES: usize = 4 << 10;
/// A longer line is never compared, and so never held.
const MAX_COMPARED_LINE_BYTES: usize = 8 << 10;

#[derive(Debug, Default)]
pub(super) struct RepeatedLines {
    /// The line before, with its end; empty if there is none that counts.
    last: String,
    /// The same line, many times.
    block: String,
    shown: u32,
    skipped: u64,
    /// The beginning of a line whose end has not come yet.
    begun: String,
    /// In the middle of a line that is too long.
    is_in_long: bool,
}

impl RepeatedLines {
    pub(super) fn push(&mut self, text: &str, mut give: impl FnMut(&str)) {
        let mut rest = text;
        while !rest.is_empty() {
            rest = self.skip(rest);
            let (line, after) = match rest.find('\n') {
                Some(at) => rest.split_at_checked(at + 1).unwrap_or((rest, "")),
                None => (rest, ""),
            };
            rest = after;
            if !line.is_empty() {
                self.part(line, &mut give);
            }
        }
    }

    /// Skips the lines of a run. Nothing else is as frequent.
    fn skip<'a>(&mut self, text: &'a str) -> &'a str {
        let mut rest = text;
        if self.shown == MAX_SHOWN_REPEATS
            && self.begun.is_empty()
            && !self.is_in_long
            && !self.last.is_empty()
        {
            let lines = (RUN_BLOCK_BYTES / self.last.len()).max(1);
            if self.block.is_empty() {
                self.block = self.last.repeat(lines);
            }
            for (prefix, count) in [(&self.block, lines as u64), (&self.last, 1)] {
                while let Some(after) = rest.strip_prefix(prefix.as_str()) {
                    rest = after;
                    self.skipped += count;
                }
            }
        }
        rest
    }

    /// Takes a line or a part of one.
    fn part(&mut self, part: &str, give: &mut impl FnMut(&str)) {
        let is_end = part.ends_with('\n');
        if self.is_in_long {
            give(part);
            self.is_in_long = !is_end;
        } else if is_end && self.begun.is_empty() {
            self.line(part, give);
        } else {
            self.begun.push_str(part);
            if is_end || self.begun.len() > MAX_COMPARED_LINE_BYTES {
                self.is_in_long = !is_end;
                let line = std::mem::take(&mut self.begun);
                self.line(&line, give);
            }
        }
    }

    fn line(&mut self, line: &str, give: &mut impl FnMut(&str)) {
        if line == self.last {
            self.shown += 1;
            if self.shown > MAX_SHOWN_REPEATS {
                self.shown = MAX_SHOWN_REPEATS;
                self.skipped += 1;
            } else {
                give(line);
            }
            return;
        }
        self.end_run(give);
        give(line);
        if line.len() <= MAX_COMPARED_LINE_BYTES {
            self.last.push_str(line);
            self.shown = 1;
        }
    }

    /// Tells how many were skipped, or shows them if that is no longer.
    fn end_run(&mut self, give: &mut impl FnMut(&str)) {
        if self.skipped > 0 {
            let note = format!("[the line above {} times more]\n", self.skipped);
            let letters = self.skipped.saturating_mul(self.last.chars().count() as u64);
            if letters <= note.len() as u64 {
                (0..self.skipped).for_each(|_| give(&self.last));
            } else {
                give(&note);
            }
        }
        self.skipped = 0;
        self.shown = 0;
        self.last.clear();
        self.block.clear();
    }

    pub(super) fn flush(&mut self, mut give: impl FnMut(&str)) {
        self.end_run(&mut give);
        give(&self.begun);
        *self = RepeatedLines::default();
    }
}
