//! The pager as it is drawn.

use helve_widgets::{Pager, PlainText, ScrollStep, SearchDirection, Theme, wrap};
use proptest::prelude::*;
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::text::Line;

use crate::shot::{plain, shot};

fn text() -> PlainText {
    let line = |n: usize| match n % 5 {
        0 => {
            format!("{n}: a line that goes on and on, so that it must be wrapped in smaller windows, 日本語")
        }
        1 => String::new(),
        _ => format!("{n}: \tError in\x1b[31m module {}", n % 7),
    };
    PlainText::new((0..200).map(|n| line(n) + "\n").collect())
}

fn drawn(pager: &mut Pager<PlainText>, width: u16, height: u16) -> String {
    shot(width, height, |area, buffer| pager.draw(area, buffer, &plain()))
}

#[test]
fn at_80_by_24() {
    let mut pager = Pager::new("log", text());
    pager.search("module 3");
    insta::assert_snapshot!(drawn(&mut pager, 80, 24));
}

#[test]
fn at_40_by_10() {
    let mut pager = Pager::new("log", text());
    drawn(&mut pager, 40, 10);
    pager.scroll(ScrollStep::End);
    insta::assert_snapshot!(drawn(&mut pager, 40, 10));
}

#[test]
fn at_10_by_3() {
    let mut pager = Pager::new("log", text());
    pager.search("nowhere");
    insta::assert_snapshot!(drawn(&mut pager, 10, 3));
}

#[test]
fn searches_go_round_in_both_directions() {
    let mut pager = Pager::new("", PlainText::new((0..100).map(|n| format!("line {n}\n")).collect()));
    drawn(&mut pager, 20, 11);
    assert!(pager.search("Line 7") || pager.search("line 7"));
    assert!(pager.top_line() <= 7);
    assert!(pager.find_again(SearchDirection::Next));
    assert!((61..=70).contains(&pager.top_line()), "line 70 is shown");
    assert!(pager.find_again(SearchDirection::Previous));
    assert!(pager.find_again(SearchDirection::Previous));
    assert!((70..=79).contains(&pager.top_line()), "line 79 is shown, from the end");
    assert!(!pager.search("nothing") && !pager.find_again(SearchDirection::Next));
    assert!(drawn(&mut pager, 40, 3).contains("not found"));
}

#[test]
fn a_million_lines_are_as_good_as_ten() {
    let mut pager = Pager::new("big", PlainText::new("some text\n".repeat(1_000_000)));
    drawn(&mut pager, 60, 10);
    pager.scroll(ScrollStep::End);
    assert!(drawn(&mut pager, 60, 10).contains("999,992-1,000,000 of 1,000,000 (100%)"));
    pager.go_to_line(500_000);
    assert!(drawn(&mut pager, 60, 10).contains("500,001-500,009 of"));
    pager.scroll(ScrollStep::Home);
    assert_eq!(pager.top_line(), 0);
}

#[test]
fn a_search_goes_to_the_row_within_a_long_line() {
    let filler = "word ".repeat(2_000);
    let mut pager = Pager::new("", PlainText::new(format!("{filler}first hit {filler}second hit {filler}")));
    drawn(&mut pager, 40, 10);
    assert!(pager.search("hit") && drawn(&mut pager, 40, 10).contains("first hit"));
    assert!(pager.find_again(SearchDirection::Next) && drawn(&mut pager, 40, 10).contains("second hit"));
    assert!(
        pager.find_again(SearchDirection::Next) && drawn(&mut pager, 40, 10).contains("first hit"),
        "round the end"
    );
    assert!(pager.find_again(SearchDirection::Previous) && drawn(&mut pager, 40, 10).contains("second hit"));
    assert!(pager.find_again(SearchDirection::Previous) && drawn(&mut pager, 25, 10).contains("first hit"));
}

#[test]
fn what_is_found_is_marked_far_within_a_line() {
    let line = Line::from(vec![
        "many words ".repeat(900).into(),
        "NEE".into(),
        "DLE".into(),
        " and more".repeat(900).into(),
    ]);
    let mut pager = Pager::new("", vec![line]);
    let theme = Theme::default();
    let area = Rect::new(0, 0, 30, 8);
    pager.draw(area, &mut Buffer::empty(area), &theme);
    assert!(pager.search("needle"));
    let mut buffer = Buffer::empty(area);
    pager.draw(area, &mut buffer, &theme);
    let style = Cell::EMPTY.clone().set_style(theme.found).style();
    let marked = buffer.content.iter().filter(|cell| cell.style() == style);
    assert_eq!(marked.map(Cell::symbol).collect::<String>(), "NEEDLE");
}

#[test]
fn nothing_is_a_document_too() {
    let mut pager = Pager::new("none", PlainText::new(String::new()));
    for scroll in [ScrollStep::Down, ScrollStep::End, ScrollStep::PageUp] {
        pager.scroll(scroll);
    }
    assert!(!pager.search("x"));
    assert_eq!(drawn(&mut pager, 20, 2), "\nnone  empty  /x not…\n");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_row_is_reached_once_by_single_steps(lines in prop::collection::vec("[a-c 日]{0,30}", 1..12), width in 2u16..12, height in 2u16..8) {
        let lines: Vec<Line<'static>> = lines.into_iter().map(Line::from).collect();
        let rows: Vec<String> = lines.iter().flat_map(|line| wrap(line, width.into())).map(|row| row.to_string().trim_end().to_owned()).collect();
        let page = usize::from(height) - 1;
        let mut pager = Pager::new("", lines);
        for top in 0..=rows.len().saturating_sub(page) {
            let shown = shot(width, height, |area, buffer| pager.draw(area, buffer, &plain()));
            let shown: Vec<&str> = shown.lines().take(page.min(rows.len())).collect();
            prop_assert_eq!(&shown[..], &rows[top..(top + page).min(rows.len())]);
            pager.scroll(ScrollStep::Down);
        }
    }

    #[test]
    fn any_steps_keep_the_page_full(
        steps in prop::collection::vec(0usize..11, 0..20),
        sizes in prop::collection::vec((1u16..60, 1u16..12), 1..4),
    ) {
        let mut pager = Pager::new("log", text());
        for (index, step) in steps.iter().enumerate() {
            match step {
                0 => pager.scroll(ScrollStep::Up),
                1 => pager.scroll(ScrollStep::Down),
                2 => pager.scroll(ScrollStep::HalfUp),
                3 => pager.scroll(ScrollStep::HalfDown),
                4 => pager.scroll(ScrollStep::PageUp),
                5 => pager.scroll(ScrollStep::PageDown),
                6 => pager.scroll(ScrollStep::Home),
                7 => pager.scroll(ScrollStep::End),
                8 => assert!(pager.search("error")),
                9 => assert!(!pager.search("ERROR")),
                _ => { pager.find_again(SearchDirection::Previous); }
            }
            let (width, height) = sizes[index % sizes.len()];
            let shown = drawn(&mut pager, width, height);
            let page = usize::from(height.saturating_sub(1).max(1));
            // Each fifth line is empty, none else.
            let blank = shown.lines().take(page).filter(|line| line.trim().is_empty()).count();
            prop_assert!(blank <= page.div_ceil(4), "{}", shown);
        }
    }
}
