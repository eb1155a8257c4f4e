//! The last lines of a text, on which a cursor can go back and write over what is there.

/// How far back the cursor gets, in bytes: what lies before can't change any more.
const CURSOR_REACH_BYTES: usize = 16 << 10;
/// What is settled is given away in pieces of this size.
const SETTLED_CHUNK_BYTES: usize = 64 << 10;

/// The offsets are always at the beginning of a letter or at the end of the text, and `floor <= cursor`.
#[derive(Debug, Default)]
pub(super) struct CursorPage {
    text: String,
    cursor: usize,
    /// What is before this is settled. It never goes back, so that it does not matter when that is given away.
    floor: usize,
}

impl CursorPage {
    /// Writes text whose only control characters are line ends and tabs.
    pub(super) fn write(&mut self, plain: &str) {
        let mut letters = plain.chars();
        while self.cursor < self.text.len() {
            match letters.next() {
                Some('\n') => self.next_line(),
                Some(letter) => self.put(letter),
                None => return,
            }
            self.raise_floor();
        }
        self.text.push_str(letters.as_str());
        self.cursor = self.text.len();
        self.raise_floor();
    }

    fn put(&mut self, letter: char) {
        match self.after().chars().next() {
            Some(old) if old != '\n' => {
                let end = self.cursor + old.len_utf8();
                self.text.replace_range(self.cursor..end, letter.encode_utf8(&mut [0; 4]));
            }
            _ => self.text.insert(self.cursor, letter),
        }
        self.cursor += letter.len_utf8();
    }

    fn next_line(&mut self) {
        match self.after().find('\n') {
            Some(at) => self.cursor += at + 1,
            None => {
                self.text.push('\n');
                self.cursor = self.text.len();
            }
        }
    }

    fn raise_floor(&mut self) {
        let reached = self.text.len().saturating_sub(CURSOR_REACH_BYTES);
        self.floor = self.floor.max(self.text.ceil_char_boundary(reached)).min(self.cursor);
    }

    /// From the floor to the cursor.
    fn before(&self) -> &str {
        self.text.get(self.floor..self.cursor).unwrap_or_default()
    }

    fn after(&self) -> &str {
        self.text.get(self.cursor..).unwrap_or_default()
    }

    fn line_start(&self) -> usize {
        self.before().rfind('\n').map_or(self.floor, |at| self.floor + at + 1)
    }

    fn line_end(&self) -> usize {
        self.after().find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    pub(super) fn return_to_start(&mut self) {
        self.cursor = self.line_start();
    }

    /// How many letters stand before the cursor in its line.
    fn column(&self) -> usize {
        self.text.get(self.line_start()..self.cursor).map_or(0, |text| text.chars().count())
    }

    /// Goes forward by so many letters, but not beyond the line.
    fn step(&mut self, count: usize) -> usize {
        let line = self.text.get(self.cursor..self.line_end()).unwrap_or_default();
        let mut steps = 0;
        let passed: usize = line.chars().take(count).inspect(|_| steps += 1).map(char::len_utf8).sum();
        self.cursor += passed;
        steps
    }

    pub(super) fn up(&mut self, count: usize) {
        let column = self.column();
        self.return_to_start();
        for _ in 0..count {
            if self.cursor <= self.floor {
                break;
            }
            self.cursor -= 1;
            self.return_to_start();
        }
        self.step(column);
    }

    pub(super) fn down(&mut self, count: usize) {
        let column = self.column();
        for _ in 0..count {
            match self.after().find('\n') {
                Some(at) => self.cursor += at + 1,
                None => break,
            }
        }
        self.return_to_start();
        self.step(column);
    }

    pub(super) fn back(&mut self, count: usize) {
        let column = self.column().saturating_sub(count);
        self.return_to_start();
        self.step(column);
    }

    /// A gap behind the end of a line is told as one space, however wide it is.
    pub(super) fn forward(&mut self, count: usize) {
        let is_beyond = self.step(count) < count;
        if is_beyond && self.before().ends_with(|letter: char| !letter.is_whitespace()) {
            self.put(' ');
            self.raise_floor();
        }
    }

    pub(super) fn erase_below(&mut self) {
        self.text.truncate(self.cursor);
    }

    pub(super) fn erase_to_line_end(&mut self) {
        let end = self.line_end();
        self.text.replace_range(self.cursor..end, "");
    }

    pub(super) fn erase_to_line_start(&mut self) {
        let (start, column) = (self.line_start(), self.column());
        self.text.replace_range(start..self.cursor, &" ".repeat(column));
        self.cursor = start + column;
    }

    /// A line of its own, after all that is there.
    pub(super) fn begin_line(&mut self) {
        self.cursor = self.text.len();
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.write("\n");
        }
    }

    /// Gives away what is settled, when it is much.
    pub(super) fn settle(&mut self, mut give: impl FnMut(&str)) {
        if self.floor < SETTLED_CHUNK_BYTES {
            return;
        }
        give(self.text.get(..self.floor).unwrap_or_default());
        self.text.replace_range(..self.floor, "");
        self.cursor -= self.floor;
        self.floor = 0;
    }

    pub(super) fn flush(&mut self, mut give: impl FnMut(&str)) {
        give(&self.text);
        *self = CursorPage::default();
    }
}
