//! Markdown, whole and as it comes.

use helve_widgets::{MarkdownStream, Theme};
use proptest::prelude::*;
use ratatui::text::Line;

use crate::shot::{plain, text};

const SAMPLE: &str = include_str!("sample.md");

fn rendered(source: &str, width: usize) -> String {
    text(&MarkdownStream::render(source, width, &plain()))
}

/// The same text in pieces, taken after each.
fn streamed(pieces: &[&str], width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut markdown = MarkdownStream::default();
    let mut lines = Vec::new();
    for piece in pieces {
        markdown.push(piece);
        lines.extend(markdown.take_finished(width, theme));
    }
    lines.extend(markdown.pending(width, theme));
    lines
}

#[test]
fn a_sample_at_80_columns() {
    insta::assert_snapshot!(rendered(SAMPLE, 80));
}

#[test]
fn a_sample_at_40_columns() {
    insta::assert_snapshot!(rendered(SAMPLE, 40));
}

#[test]
fn a_sample_at_10_columns() {
    insta::assert_snapshot!(rendered(SAMPLE, 10));
}

#[test]
fn a_sample_in_colours() {
    let lines = MarkdownStream::render(
        "# Hi *you*\n\n`x` **b** [a](http://b)\n\n```rust\nfn f() {}\n```",
        30,
        &Theme::default(),
    );
    insta::assert_debug_snapshot!(lines);
}

#[test]
fn what_is_finished_is_taken_at_once() {
    let mut markdown = MarkdownStream::default();
    let mut take = |piece: &str| {
        markdown.push(piece);
        (text(&markdown.take_finished(20, &plain())), text(&markdown.pending(20, &plain())))
    };
    let pair = |finished: &str, pending: &str| (finished.to_owned(), pending.to_owned());
    assert_eq!(take("# Title"), pair("", "Title\n"));
    assert_eq!(take("\nA **bo"), pair("Title\n", "\nA **bo\n"));
    assert_eq!(take("ld** word\n"), pair("", "\nA bold word\n"));
    assert_eq!(take("\n```py\nx = 1\ny ="), pair("\nA bold word\n\n  x = 1\n", "  y =\n"));
    assert_eq!(take(" 2\n```\n- one\n"), pair("  y = 2\n", "\n• one\n"));
    assert_eq!(take("- two"), pair("", "\n• one\n• two\n"));
    assert_eq!(take("\n"), pair("\n• one\n", "• two\n"));
    markdown.finish();
    assert_eq!(text(&markdown.take_finished(20, &plain())), "• two\n");
}

#[test]
fn structure_is_read_as_commonmark_does() {
    let cases = [
        ("Text:\n- a\n- b\n\nmore", "Text:\n• a\n• b\n\nmore\n"),
        ("1. a\n1. b\n\n   second\n1. c", "1. a\n2. b\n\n   second\n3. c\n"),
        ("- a\n  - b\n    - c\n- d", "• a\n  • b\n    • c\n• d\n"),
        ("1. run\n   ```sh\n   - x\n   ```\n2. go", "1. run\n     - x\n2. go\n"),
        ("> q\nlazy\n> > deep\n\nout", "│ q\n│ lazy\n│\n│ │ deep\n\nout\n"),
        ("Title\n---\ntext", "Title\n\ntext\n"),
        ("a\n\n---\n\nb", "a\n\n────────────────────\n\nb\n"),
        ("- [x] done\n- [ ] open", "• [x] done\n• [ ] open\n"),
        ("~~~\n```\n~~~", "  ```\n"),
        ("a `b` _c_ ~~d~~ <http://e> [f](g)", "a b c ~~d~~ http://e\nf (g)\n"),
        ("[x]: http://y", "[x]: http://y\n"),
        ("line one\nline two", "line one\nline two\n"),
        ("- a\n\n- b", "• a\n\n• b\n"),
        ("-\n- b", "•\n• b\n"),
        ("    code\n    more", "  code\n  more\n"),
        ("", ""),
    ];
    for (source, expected) in cases {
        assert_eq!(rendered(source, 20), expected, "{source:?}");
    }
}

#[test]
fn a_table_is_told_row_by_row_where_it_does_not_fit() {
    let source = "|name|what it is about|\n|-|-|\n|protocol|commands and events|\n|cli|the program|";
    assert_eq!(
        rendered(source, 30),
        "name     │ what it is about\n─────────┼────────────────────\nprotocol │ commands and events\ncli      │ the program\n"
    );
    assert_eq!(
        rendered(source, 20),
        "name     │ what it\n         │ is about\n─────────┼──────────\nprotocol │ commands\n         │ and\n         │ events\ncli      │ the\n         │ program\n"
    );
    assert_eq!(
        rendered(source, 12),
        "name:\n  protocol\nwhat it is\n  about:\n  commands\n  and events\n────────\nname: cli\nwhat it is\n  about: the\n  program\n"
    );
}

#[test]
fn hostile_texts_are_drawn_in_bounded_time() {
    let deep = format!("{}x", "> ".repeat(5_000));
    let sources = [
        deep,
        "- ".repeat(5_000),
        "[".repeat(50_000),
        "*_".repeat(30_000),
        "`".repeat(50_000),
        format!("|{}\n|{}\n", "a|".repeat(5_000), "-|".repeat(5_000)),
        "x".repeat(200_000),
        "<a ".repeat(20_000),
        "\u{1b}[31m\u{9b}2J".repeat(100),
        "日".repeat(50_000),
    ];
    for source in sources {
        let lines = MarkdownStream::render(&source, 40, &plain());
        assert!(lines.iter().all(|line| helve_widgets::width::line_width(line) <= 40));
    }
}

/// Cuts a text at places that are given as parts of its length.
fn cut<'a>(source: &'a str, places: &[usize]) -> Vec<&'a str> {
    let mut places: Vec<usize> =
        places.iter().map(|place| source.floor_char_boundary(place % (source.len() + 1))).collect();
    places.sort_unstable();
    let mut pieces = Vec::new();
    let mut from = 0;
    for place in places.into_iter().chain([source.len()]) {
        pieces.push(&source[from..place]);
        from = place;
    }
    pieces
}

fn source() -> impl Strategy<Value = String> {
    let lines = [
        "text",
        "**bold** and `code`",
        "",
        "",
        "- item",
        "  - inner",
        "    deep",
        "1. one",
        "2) two",
        "> quote",
        ">",
        "```rust",
        "```",
        "~~~",
        "   ```",
        "fn x() {}",
        "# head",
        "---",
        "===",
        "|a|b|",
        "|-|-|",
        "|1|2|",
        "<div>",
        "* * *",
        "[a](b",
        "\ttab",
        "- [ ] task",
        "日本語 text",
        "text\r",
        "+",
        "    - code?",
        "_open",
        "[x]: y",
    ];
    let line =
        prop_oneof![8 => prop::sample::select(lines.to_vec()).prop_map(str::to_owned), 1 => "[ -~\n]{0,12}"];
    prop::collection::vec(line, 0..25).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pieces_make_the_same_as_the_whole(source in source(), places in prop::collection::vec(any::<usize>(), 0..12), width in 4usize..40) {
        let theme = Theme::default();
        let whole = MarkdownStream::render(&source, width, &theme);
        prop_assert_eq!(streamed(&cut(&source, &places), width, &theme), whole);
    }

    #[test]
    fn any_text_fits_and_no_word_is_hidden(source in source(), width in 4usize..40) {
        let lines = MarkdownStream::render(&source, width, &plain());
        prop_assert!(lines.iter().all(|line| helve_widgets::width::line_width(line) <= width));
        let told = text(&lines);
        let wanted = source.matches("text").count();
        let found = told.split_whitespace().collect::<String>().matches("text").count();
        prop_assert!(width < 12 || found >= wanted, "{} of {} in {}", found, wanted, told);
    }

    #[test]
    fn any_characters_are_drawn(source in any::<String>(), places in prop::collection::vec(any::<usize>(), 0..4)) {
        let whole = MarkdownStream::render(&source, 20, &plain());
        prop_assert_eq!(streamed(&cut(&source, &places), 20, &plain()), whole);
    }
}
