use shifts::{parse_range, uncovered, Range, RangeSet};

#[test]
fn overlapping_shifts_count_once() {
    let shifts = [parse_range("08:00-12:00").unwrap(), parse_range("10:00-14:00").unwrap()];
    assert_eq!(uncovered(&shifts), 24 * 60 - 6 * 60);
}

#[test]
fn shifts_that_meet_are_one() {
    let mut set = RangeSet::default();
    set.insert(Range::new(480, 720));
    set.insert(Range::new(720, 960));
    assert_eq!(set.ranges(), [Range::new(480, 960)]);
}

#[test]
fn a_shift_that_fills_a_gap_joins_its_neighbours() {
    let mut set = RangeSet::default();
    set.insert(Range::new(0, 60));
    set.insert(Range::new(120, 180));
    set.insert(Range::new(60, 120));
    assert_eq!(set.ranges(), [Range::new(0, 180)]);
}
