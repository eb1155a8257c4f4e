//! Texts that mean harm, through every widget to a terminal.

use helve_widgets::{
    Editor, Highlighter, MarkdownStream, Pager, Picker, PickerChoice, PlainText, ScreenOptions, Theme,
    diff_lines,
};
use proptest::prelude::*;
use ratatui::layout::Rect;
use ratatui::text::Line;

use crate::terminal::terminal;

/// Everything that steers a terminal, between other things.
fn hostile() -> impl Strategy<Value = String> {
    let parts = [
        "\x1b[2J",
        "\x1b]0;x\x07",
        "\x1b]8;;http://x\x1b\\",
        "\x1bP",
        "\u{9b}5A",
        "\u{90}",
        "\x08",
        "\r",
        "\x0e",
        "\x7f",
        "\u{202e}",
        "\u{2028}",
        "\u{200d}",
        "\u{301}",
        "日",
        "a",
        " ",
        "\t",
        "```",
        "- ",
        "> ",
        "|",
        "+",
        "👩‍💻",
        "\u{fffc}",
    ];
    prop::collection::vec(prop::sample::select(parts.to_vec()), 0..30).prop_map(|parts| parts.concat())
}

/// The sequences that a screen itself writes.
fn is_ours(sequence: &str) -> bool {
    let end = sequence.find(|c: char| c.is_ascii_alphabetic()).map_or("", |at| &sequence[..=at]);
    let kind = end.chars().last().unwrap_or(' ');
    let is_frame = ["[?2026h", "[?2026l", "[?7l", "[?7h", "[?25l", "[?25h", "[J", "[K"].contains(&end);
    is_frame
        || (end.starts_with('[') && "ABGm".contains(kind))
        || sequence.starts_with("[0 q")
        || sequence.starts_with(['7', '8'])
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_widget_lets_it_through(text in hostile()) {
        let theme = Theme::default();
        let (emulator, mut screen) = terminal(30, 12, ScreenOptions::default());
        screen.print(vec![Line::from(text.clone())]);
        screen.print(MarkdownStream::render(&text, 30, &theme));
        screen.print(vec![Line::from(Highlighter::for_language("rust").line(&text, &theme))]);
        screen.print(diff_lines(&format!("--- {text}\n+++ {text}\n@@ -1 +1 @@ {text}\n-{text}\n+{text}"), 30, 20, &theme));
        let mut editor = Editor::default();
        editor.insert(&text);
        editor.insert_chip(&text, &text);
        let mut picker = Picker::new(vec![PickerChoice::new(&text, &text)]);
        picker.prompt = Some(text.clone());
        let mut pager = Pager::new(&text, PlainText::new(text.clone()));
        pager.search(&text);
        screen.draw(12, |buffer| {
            editor.draw(Rect::new(0, 0, 30, 4), buffer, &theme);
            picker.draw(Rect::new(0, 4, 30, 4), buffer, &theme);
            pager.draw(Rect::new(0, 8, 30, 4), buffer, &theme);
            None
        }).unwrap();
        let bytes = emulator.borrow_mut().take_bytes();
        for sequence in bytes.split('\x1b').skip(1) {
            prop_assert!(is_ours(sequence), "{:?}", sequence);
        }
        prop_assert!(!bytes.chars().any(|c| c.is_control() && !"\x1b\r\n".contains(c)), "{:?}", bytes);
    }
}
