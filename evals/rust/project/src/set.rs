use crate::Range;

/// Ranges that neither overlap nor meet, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    ranges: Vec<Range>,
}

impl RangeSet {
    pub fn insert(&mut self, range: Range) {
        let mut joined = range;
        self.ranges.retain(|known| {
            let touches = known.touches(joined);
            if touches {
                joined = known.joined(joined);
            }
            !touches
        });
        let at = self.ranges.partition_point(|known| known.start < joined.start);
        self.ranges.insert(at, joined);
    }

    pub fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    pub fn minutes(&self) -> u32 {
        self.ranges.iter().map(|range| range.minutes()).sum()
    }
}
