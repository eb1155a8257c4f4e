/// Minutes from `start` up to, but not including, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Range {
    pub start: u32,
    pub end: u32,
}

impl Range {
    pub fn new(start: u32, end: u32) -> Range {
        Range { start, end }
    }

    pub fn minutes(self) -> u32 {
        self.end.saturating_sub(self.start)
    }

    /// Whether the two have a minute in common, or meet.
    pub fn touches(self, other: Range) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// The smallest range that has both in it.
    pub fn joined(self, other: Range) -> Range {
        Range::new(self.start.min(other.start), self.end.max(other.end))
    }
}
