//! The list as it is drawn.

use helve_widgets::{Picker, PickerChoice, PickerMove};
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::shot::{plain, shot};

fn picker() -> Picker {
    let choices = (0..30)
        .map(|n| PickerChoice::new(format!("crates/widgets/src/file_{n}.rs"), format!("{n} KiB, 日本")));
    let mut picker = Picker::new(choices.collect());
    picker.prompt = Some("file: ".to_owned());
    picker.preview = 5;
    picker
}

fn drawn(picker: &mut Picker, width: u16, height: u16) -> String {
    shot(width, height, |area, buffer| {
        let preview = picker.draw(area, buffer, &plain()).preview;
        for y in preview.rows() {
            buffer.set_string(y.x, y.y, "preview", ratatui::style::Style::new());
        }
    })
}

#[test]
fn at_80_by_24() {
    let mut picker = picker();
    picker.set_filter("file1");
    picker.go(PickerMove::Down);
    insta::assert_snapshot!(drawn(&mut picker, 80, 24));
}

#[test]
fn at_40_by_10() {
    let mut picker = picker();
    picker.go(PickerMove::Last);
    insta::assert_snapshot!(drawn(&mut picker, 40, 10));
}

#[test]
fn at_10_by_3() {
    insta::assert_snapshot!(drawn(&mut picker(), 10, 3));
}

#[test]
fn the_selection_goes_round_and_stays_in_view() {
    let mut picker = picker();
    assert_eq!(picker.selected(), Some(0));
    picker.go(PickerMove::Up);
    assert_eq!(picker.selected(), Some(29));
    assert!(drawn(&mut picker, 60, 4).contains("› crates/widgets/src/file_29.rs"));
    picker.go(PickerMove::Down);
    drawn(&mut picker, 60, 6);
    picker.go(PickerMove::PageDown);
    assert_eq!(picker.selected(), Some(4), "a page is as high as the list was drawn");
    picker.set_filter("no such file");
    assert_eq!((picker.selected(), picker.count()), (None, 0));
    picker.go(PickerMove::Down);
    assert!(drawn(&mut picker, 60, 6).contains("nothing matches"));
    picker.set_filter("");
    picker.select(7);
    assert_eq!(picker.selected(), Some(7));
}

#[test]
fn narrowing_finds_what_looking_anew_finds() {
    let mut narrowed = picker();
    for filter in ["f", "fi", "fi2", "fi2 r", "fi2 rs", "fi2 rs S", "fi2"] {
        narrowed.set_filter(filter);
        let mut anew = picker();
        anew.set_filter(filter);
        assert_eq!((narrowed.count(), narrowed.selected()), (anew.count(), anew.selected()), "{filter}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_size_and_any_text_is_drawn(
        titles in prop::collection::vec(any::<String>(), 0..8),
        filter in "[a-z ]{0,2}",
        steps in prop::collection::vec(prop::sample::select(vec![PickerMove::Up, PickerMove::Down, PickerMove::PageUp, PickerMove::PageDown, PickerMove::First, PickerMove::Last]), 0..6),
        size in (0u16..30, 0u16..12),
        preview in 0u16..9,
    ) {
        let mut picker = Picker::new(titles.iter().map(|title| PickerChoice::new(title, title)).collect());
        picker.prompt = Some("> ".to_owned());
        picker.preview = preview;
        picker.set_filter(&filter);
        for step in steps {
            picker.go(step);
        }
        let area = Rect::new(1, 1, size.0, size.1);
        let mut buffer = Buffer::empty(Rect::new(0, 0, size.0 + 2, size.1 + 2));
        let drawn = picker.draw(area, &mut buffer, &plain());
        prop_assert!(drawn.cursor.is_none_or(|at| area.contains(at)));
        prop_assert!(drawn.preview.is_empty() || drawn.preview.intersection(area) == drawn.preview);
        prop_assert!(picker.count() == 0 || picker.selected().is_some());
        let edge = (0..buffer.area.width).flat_map(|x| [(x, 0), (x, size.1 + 1)]);
        prop_assert!(edge.into_iter().all(|at| buffer.cell(at).unwrap().symbol() == " "), "nothing is drawn outside");
    }
}
