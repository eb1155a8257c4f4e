//! What a terminal shows is what was printed, once and in order, and below it the live area.

use helve_widgets::{
    CursorShape, KeyboardProtocol, RESTORE_TERMINAL, ReflowMode, ScreenCursor, ScreenOptions, TerminalScreen,
    put_line, width, wrap,
};
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Size};
use ratatui::style::{Color, Style};
use ratatui::text::Line;

use crate::terminal::{Shared, Tap, terminal};

fn fill(buffer: &mut Buffer, rows: &[String]) {
    for (y, row) in (0..buffer.area.height).zip(rows) {
        put_line(buffer, Position::new(0, y), buffer.area.width, &Line::from(row.as_str()));
    }
}

fn draw<S: FnMut() -> Size>(screen: &mut TerminalScreen<Tap, S>, rows: &[&str]) {
    let rows: Vec<String> = rows.iter().map(|row| (*row).to_owned()).collect();
    screen
        .draw(rows.len() as u16, |buffer| {
            fill(buffer, &rows);
            None
        })
        .unwrap();
}

fn lines(texts: &[&str]) -> Vec<Line<'static>> {
    texts.iter().map(|text| Line::from((*text).to_owned())).collect()
}

fn shown(terminal: &Shared) -> Vec<String> {
    terminal.borrow_mut().rows()
}

#[test]
fn the_live_area_follows_what_is_printed() {
    let (terminal, mut screen) = terminal(10, 4, ScreenOptions::default());
    draw(&mut screen, &["> hello", "status"]);
    assert_eq!(shown(&terminal), ["> hello", "status"]);
    screen.print(lines(&["one", "two"]));
    draw(&mut screen, &["> hello", "status"]);
    assert_eq!(shown(&terminal), ["one", "two", "> hello", "status"]);
    screen.print(lines(&["three and four", "日本語日本語"]));
    draw(&mut screen, &["> "]);
    assert_eq!(shown(&terminal), ["one", "two", "three and", "four", "日本語日本", "語", ">"]);
}

#[test]
fn growing_and_shrinking_leave_no_ghosts() {
    let (terminal, mut screen) = terminal(10, 4, ScreenOptions::default());
    screen.print(lines(&["a", "b", "c"]));
    draw(&mut screen, &["1"]);
    draw(&mut screen, &["1", "2", "3", "4"]);
    assert_eq!(shown(&terminal), ["a", "b", "c", "1", "2", "3", "4"]);
    draw(&mut screen, &["9"]);
    assert_eq!(shown(&terminal), ["a", "b", "c", "9"]);
    draw(&mut screen, &[]);
    assert_eq!(shown(&terminal), ["a", "b", "c"]);
    draw(&mut screen, &["1", "2"]);
    assert_eq!(shown(&terminal), ["a", "b", "c", "1", "2"]);
}

#[test]
fn only_what_changes_is_written_between_the_marks_of_a_frame() {
    let (terminal, mut screen) = terminal(40, 4, ScreenOptions::default());
    draw(&mut screen, &["a long row that stays", "count 1"]);
    terminal.borrow_mut().take_bytes();
    draw(&mut screen, &["a long row that stays", "count 2"]);
    let bytes = terminal.borrow_mut().take_bytes();
    insta::assert_snapshot!(bytes.escape_debug(), @r"\u{1b}[?2026h\u{1b}[?7l\u{1b}[?25l\u{1b}[7G2\r\u{1b}[?7h\u{1b}[?2026l");
    draw(&mut screen, &["a long row that stays", "count 2"]);
    assert_eq!(terminal.borrow_mut().take_bytes(), "", "nothing changed");
}

#[test]
fn half_of_a_wide_character_never_stays() {
    let (terminal, mut screen) = terminal(8, 2, ScreenOptions::default());
    for row in ["日本", "a日", "日本語", "ab", "a日b", "日日日日", "a日日日", "x"] {
        draw(&mut screen, &[row]);
        assert_eq!(shown(&terminal), [row]);
    }
}

#[test]
fn the_cursor_stands_where_it_is_wanted() {
    let (terminal, mut screen) = terminal(10, 5, ScreenOptions::default());
    screen.print(lines(&["above"]));
    let cursor = ScreenCursor { position: Position::new(3, 1), shape: CursorShape::Bar };
    screen.draw(3, |_| Some(cursor)).unwrap();
    assert_eq!(terminal.borrow().parser.screen().cursor_position(), (2, 3));
    assert!(!terminal.borrow().parser.screen().hide_cursor());
    assert!(terminal.borrow_mut().take_bytes().contains("\x1b[6 q"));
    screen.draw(3, |_| None).unwrap();
    assert!(terminal.borrow().parser.screen().hide_cursor());
    screen.draw(3, |_| Some(ScreenCursor::at(Position::new(99, 99)))).unwrap();
    assert!(terminal.borrow().parser.screen().hide_cursor(), "there is no such place");
}

#[test]
fn styles_reach_the_terminal() {
    let (terminal, mut screen) = terminal(20, 2, ScreenOptions::default());
    let styles = [
        Style::new().red().bold(),
        Style::new().fg(Color::Rgb(1, 2, 3)).bg(Color::Indexed(9)),
        Style::new().light_blue().on_dark_gray().italic().underlined().reversed(),
        Style::new(),
    ];
    let spans: Vec<_> = styles.iter().map(|style| ratatui::text::Span::styled("x", *style)).collect();
    screen.print(vec![Line::from(spans)]);
    screen.draw(0, |_| None).unwrap();
    let terminal = terminal.borrow();
    let cell = |x| terminal.parser.screen().cell(0, x).unwrap();
    assert_eq!((cell(0).fgcolor(), cell(0).bold()), (vt100::Color::Idx(1), true));
    assert_eq!((cell(1).fgcolor(), cell(1).bgcolor()), (vt100::Color::Rgb(1, 2, 3), vt100::Color::Idx(9)));
    assert_eq!((cell(2).fgcolor(), cell(2).bgcolor()), (vt100::Color::Idx(12), vt100::Color::Idx(8)));
    assert!(cell(2).italic() && cell(2).underline() && cell(2).inverse() && !cell(2).bold());
    assert_eq!((cell(3).fgcolor(), cell(3).bold()), (vt100::Color::Default, false));
}

#[test]
fn a_full_screen_comes_and_goes_without_a_trace() {
    let options = ScreenOptions { keys: KeyboardProtocol::Enhanced, ..ScreenOptions::default() };
    let (terminal, mut screen) = terminal(10, 4, options);
    screen.enter().unwrap();
    screen.print(lines(&["a", "b"]));
    draw(&mut screen, &["live", "area"]);
    screen.open_full().unwrap();
    draw(&mut screen, &["page 1", "", "", "bottom"]);
    assert_eq!(terminal.borrow().parser.screen().contents(), "page 1\n\n\nbottom");
    screen.print(lines(&["c"]));
    draw(&mut screen, &["page 2"]);
    assert_eq!(terminal.borrow().parser.screen().contents().trim_end(), "page 2");
    screen.close_full().unwrap();
    assert_eq!(shown(&terminal), ["a", "b", "live", "area"]);
    draw(&mut screen, &["live", "AREA"]);
    assert_eq!(shown(&terminal), ["a", "b", "c", "live", "AREA"]);
    screen.leave().unwrap();
    assert_eq!(shown(&terminal), ["a", "b", "c"]);
    assert!(!terminal.borrow().parser.screen().bracketed_paste());
}

#[test]
fn what_waits_behind_a_full_screen_is_bounded() {
    let (terminal, mut screen) = terminal(10, 4, ScreenOptions::default());
    draw(&mut screen, &["live"]);
    screen.open_full().unwrap();
    for _ in 0..3 {
        screen.print(vec![Line::from("x"); 6_000]);
        draw(&mut screen, &["page"]);
    }
    assert_eq!(terminal.borrow().parser.screen().contents().trim_end(), "page");
    screen.close_full().unwrap();
    assert_eq!(shown(&terminal).len(), 12_001, "the first two were written");
    draw(&mut screen, &["live"]);
    assert_eq!(shown(&terminal).len(), 18_001);
}

#[test]
fn everything_is_put_back_by_one_constant() {
    for is_full in [false, true] {
        let options = ScreenOptions { keys: KeyboardProtocol::Enhanced, ..ScreenOptions::default() };
        let (terminal, mut screen) = terminal(10, 5, options);
        screen.enter().unwrap();
        screen.print(lines(&["a"]));
        screen
            .draw(3, |buffer| {
                fill(buffer, &["1".to_owned(), "2".to_owned(), "3".to_owned()]);
                Some(ScreenCursor::at(Position::new(1, 1)))
            })
            .unwrap();
        if is_full {
            screen.open_full().unwrap();
            draw(&mut screen, &["page"]);
        }
        let mut terminal = terminal.borrow_mut();
        // In the middle of a string, as a panic may be.
        terminal.parser.process(b"\x1b]9;half");
        terminal.parser.process(RESTORE_TERMINAL);
        terminal.parser.process(b"message");
        assert_eq!(terminal.rows(), ["a", "1", "2", "message"]);
        let screen = terminal.parser.screen();
        assert!(!screen.alternate_screen() && !screen.bracketed_paste() && !screen.hide_cursor());
    }
}

#[test]
fn nothing_from_outside_steers_the_terminal() {
    let (terminal, mut screen) = terminal(60, 5, ScreenOptions::default());
    let hostile = "\x1b[2J\x1b]0;title\x07\u{9b}31m\r\n\x08\u{90}q\u{9c}";
    screen.print(lines(&[hostile]));
    screen
        .draw(1, |buffer| {
            buffer.cell_mut((0, 0)).unwrap().set_symbol("\x1b[31m");
            None
        })
        .unwrap();
    screen.notify(hostile).unwrap();
    let bytes = terminal.borrow_mut().take_bytes();
    assert!(!bytes.contains("\x1b[2J") && !bytes.contains("\x1b]0") && !bytes.contains("\x1b[31m"));
    assert!(!bytes.contains(['\u{9b}', '\u{90}', '\x08']));
    assert!(bytes.contains("␛[2J␛]0;title␇�31m␈�q�"), "shown instead");
}

/// Some terminals keep what is erased from the corner of the window on.
#[test]
fn nothing_is_erased_from_the_corner_on() {
    let (terminal, mut screen) = terminal(20, 4, ScreenOptions::default());
    for height in [4, 1, 2, 4] {
        terminal.borrow_mut().resize(20, height);
        draw(&mut screen, &["a", "b", "c", "d"]);
        draw(&mut screen, &[]);
        screen.open_full().unwrap();
        draw(&mut screen, &["page"]);
        screen.close_full().unwrap();
        let bytes = terminal.borrow_mut().take_bytes();
        assert!(!bytes.contains("\x1b[2J"));
        let (all, below) = (bytes.matches("\x1b[J").count(), bytes.matches("\x1b[B\x1b[J").count());
        assert_eq!((all, below > 0), (below, height > 1), "{bytes:?}");
    }
}

#[test]
fn what_left_a_small_window_is_erased_when_it_comes_back() {
    let (terminal, mut screen) = terminal(20, 6, ScreenOptions::default());
    screen.print(lines(&["one", "two"]));
    draw(&mut screen, &["LIVE", "AREA OF FOUR", "ROWS", "> "]);
    for (width, height) in [(20, 2), (20, 6), (20, 3), (30, 6)] {
        terminal.borrow_mut().resize(width, height);
        draw(&mut screen, &["LIVE", "AREA OF FOUR", "ROWS", "> "]);
    }
    assert_eq!(shown(&terminal), ["one", "two", "LIVE", "AREA OF FOUR", "ROWS", ">"]);
}

/// Four printed rows and five live ones are one more than the window has. It becomes smaller and larger again between two
/// frames, and the terminal gives up the last row, which is below the cursor, for the one that had left at the top.
#[test]
fn a_window_that_was_smaller_for_a_moment_loses_no_finished_line() {
    for is_told in [false, true] {
        let (terminal, mut screen) = terminal(10, 8, ScreenOptions::default());
        screen.print(lines(&["one", "two", "three", "four"]));
        let live = ["A", "B", "C", "D", "E"].map(str::to_owned);
        let draw_all = |screen: &mut TerminalScreen<Tap, _>| {
            screen
                .draw(5, |buffer| {
                    fill(buffer, &live);
                    Some(ScreenCursor::at(Position::ORIGIN))
                })
                .unwrap();
        };
        draw_all(&mut screen);
        terminal.borrow_mut().resize(10, 8);
        assert_eq!(shown(&terminal), ["one", "two", "three", "four", "A", "B", "C", "D"]);
        if is_told {
            screen.resized();
            draw_all(&mut screen);
            assert_eq!(shown(&terminal), ["one", "two", "three", "four", "A", "B", "C", "D", "E"]);
        }
        draw(&mut screen, &["A", "B", "C", "Z"]);
        assert_eq!(shown(&terminal), ["one", "two", "three", "four", "A", "B", "C", "Z"]);
    }
}

#[test]
fn the_smallest_window_works() {
    let (terminal, mut screen) = terminal(1, 1, ScreenOptions::default());
    screen.print(lines(&["ab", "日"]));
    draw(&mut screen, &["x", "y", "z"]);
    assert_eq!(shown(&terminal), ["a", "b", "…", "x"]);
    terminal.borrow_mut().resize(3, 2);
    draw(&mut screen, &["x", "y", "z"]);
    assert_eq!(shown(&terminal), ["a", "b", "…", "x", "y"]);
}

/// The window is narrower when the frame has been written, and the terminal has cut its rows.
#[test]
fn no_finished_line_goes_if_the_window_changes_within_a_frame() {
    let (emulator, _) = terminal(20, 6, ScreenOptions::default());
    let mut sizes = [20, 8].into_iter().chain(std::iter::repeat(8)).map(|width| Size::new(width, 6));
    let mut screen =
        TerminalScreen::new(Tap(emulator.clone()), move || sizes.next().unwrap(), ScreenOptions::default());
    screen.print(lines(&["one", "two"]));
    draw(&mut screen, &["LIVE LIVE LIVE", "LIVE"]);
    draw(&mut screen, &["LIVE", "LIVE"]);
    assert_eq!(shown(&emulator), ["one", "two", "LIVE", "LIVE"]);
}

#[test]
fn finished_lines_may_wrap_and_live_rows_may_not() {
    let (terminal, mut screen) = terminal(20, 6, ScreenOptions::default());
    screen.print(lines(&["one"]));
    draw(&mut screen, &["LIVE"]);
    let bytes = terminal.borrow_mut().take_bytes();
    let parts: Vec<&str> = bytes.split("\x1b[?7").collect();
    assert!(parts[2].starts_with('h') && parts[2].contains("one"), "{parts:?}");
    assert!(parts[3].starts_with('l') && parts[3].contains("LIVE"), "{parts:?}");
}

/// One step of a random session.
#[derive(Clone, Debug)]
enum Step {
    /// Lengths of lines.
    Print(Vec<usize>),
    /// Lengths of rows, and where the cursor is.
    Draw(Vec<usize>, Option<(u16, u16)>),
    Resize(u16, u16),
    OpenFull,
    CloseFull,
}

fn step(longest: usize) -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => prop::collection::vec(0..longest, 0..6).prop_map(Step::Print),
        6 => (prop::collection::vec(0usize..40, 0..7), prop::option::of((0u16..40, 0u16..7)))
            .prop_map(|(rows, cursor)| Step::Draw(rows, cursor)),
        // The emulator can't wrap in a window of one row.
        3 => (5u16..40, 2u16..12).prop_map(|(width, height)| Step::Resize(width, height)),
        1 => Just(Step::OpenFull),
        1 => Just(Step::CloseFull),
    ]
}

/// Printed lines are small letters and wide ones, live rows are capital ones: so it can be told what is whose.
fn text(number: usize, length: usize, is_live: bool) -> String {
    let letters = if is_live { b'A' } else { b'a' };
    let letter = |index: usize| {
        if !is_live && (number + index) % 7 == 6 {
            return '日';
        }
        char::from(letters + ((number * 5 + index * index) % 26) as u8)
    };
    (0..length).map(letter).collect()
}

fn of(text: &str, is_live: bool) -> String {
    text.chars().filter(|c| !c.is_whitespace() && c.is_ascii_uppercase() == is_live).collect()
}

fn run(steps: &[Step], narrowing: ReflowMode) -> Result<(), TestCaseError> {
    let options = ScreenOptions { narrowing, ..ScreenOptions::default() };
    let (terminal, mut screen) = terminal(20, 6, options);
    let mut printed = String::new();
    let mut waiting = String::new();
    let mut live: Vec<String> = Vec::new();
    let mut may_haunt = false;
    let mut is_full = false;
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Print(lengths) => {
                let texts: Vec<String> = lengths.iter().map(|length| text(number, *length, false)).collect();
                waiting.push_str(&texts.concat());
                screen.print(texts.into_iter().map(Line::from).collect());
            }
            Step::Draw(lengths, cursor) => {
                let rows: Vec<String> = lengths.iter().map(|length| text(number, *length, true)).collect();
                let cursor = cursor.map(|(x, y)| ScreenCursor::at(Position::new(x, y)));
                screen
                    .draw(rows.len() as u16, |buffer| {
                        fill(buffer, &rows);
                        cursor
                    })
                    .unwrap();
                if is_full {
                    continue;
                }
                let Size { width, height } = screen.size();
                live = rows;
                live.truncate(height.into());
                live.iter_mut().for_each(|row| row.truncate(width.into()));
                printed.push_str(&std::mem::take(&mut waiting));
                let all = shown(&terminal).concat();
                prop_assert_eq!(of(&all, false), printed.as_str());
                let (of_live, expected) = (of(&all, true), live.concat());
                prop_assert!(
                    may_haunt || of_live == expected,
                    "{:?} should show {:?}",
                    shown(&terminal),
                    live
                );
            }
            // The emulator has no main screen while the other is shown.
            Step::Resize(width, height) if !is_full => {
                let rows: usize = live.iter().map(|row| row.len().div_ceil((*width).into()).max(1)).sum();
                // What leaves a window that is too small for the live area can't be called back.
                may_haunt |= rows >= usize::from(*height);
                terminal.borrow_mut().resize(*width, *height);
                screen.resized();
            }
            Step::Resize(..) => {}
            Step::OpenFull => {
                screen.open_full().unwrap();
                is_full = true;
            }
            Step::CloseFull => {
                screen.close_full().unwrap();
                is_full = false;
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_terminal_that_wraps_shows_all_once(steps in prop::collection::vec(step(60), 1..40)) {
        run(&steps, ReflowMode::Wraps)?;
    }

    /// What a terminal cuts is gone: lines are short here.
    #[test]
    fn a_terminal_that_cuts_shows_all_once(steps in prop::collection::vec(step(3), 1..40)) {
        run(&steps, ReflowMode::Cuts)?;
    }

    #[test]
    fn any_text_is_printed_as_it_is_wrapped(texts in prop::collection::vec("[ -~é日\t]{0,30}", 1..8), columns in 2u16..20) {
        let (terminal, mut screen) = terminal(columns, 5, ScreenOptions::default());
        let lines: Vec<Line<'static>> = texts.into_iter().map(Line::from).collect();
        let rows = lines.iter().flat_map(|line| wrap(line, columns.into()));
        let mut expected: Vec<String> = rows.map(|row| row.to_string().trim_end().to_owned()).collect();
        prop_assert!(expected.iter().all(|row| width::width(row) <= columns.into()));
        while expected.last().is_some_and(String::is_empty) {
            expected.pop();
        }
        screen.print(lines);
        screen.draw(0, |_| None).unwrap();
        prop_assert_eq!(shown(&terminal), expected);
    }
}
