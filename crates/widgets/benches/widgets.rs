//! How fast the widgets are. Each baseline is what can't be avoided: reading the same bytes once, or copying them.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark that can't run has nothing to say"
)]
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures time and prints it")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use helve_widgets::{Editor, EditorCommand, MarkdownStream, Picker, PickerChoice, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

const MB: usize = 1 << 20;
const RUNS: usize = 5;

fn main() {
    stream();
    fuzzy();
    typing();
    pasting();
}

fn time<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    black_box(work());
    start.elapsed()
}

fn fastest<T>(mut work: impl FnMut() -> T) -> Duration {
    (0..RUNS).map(|_| time(&mut work)).min().unwrap()
}

fn row(what: &str, ours: Duration, baseline_is: &str, baseline: Duration, target: &str) {
    let ratio = ours.as_secs_f64() / baseline.as_secs_f64().max(1e-9);
    println!("{what}\t{ours:.2?}\t{baseline_is}\t{baseline:.2?}\t{ratio:.2}\t{target}");
}

/// What a model says in a long session: prose, lists, tables, a little code.
fn prose() -> String {
    let page = "## A heading\n\nSome *prose* with `code` and **words** that go on for a line or two, as models write them, and a \
        [link](https://example.org/a/page).\n\n- an item of a list\n- another one\n  - inside\n\n| a | b |\n|---|---|\n| cell | other |\n\n\
        ```rust\nfn main() { println!(\"hello\"); }\n```\n\n";
    page.repeat(MB / page.len() + 1)
}

/// Tokens of four bytes; the screen is drawn after each tenth of them.
fn streamed(text: &str, theme: &Theme) -> usize {
    let mut markdown = MarkdownStream::default();
    let mut lines = 0;
    for (number, token) in text.as_bytes().chunks(4).enumerate() {
        markdown.push(std::str::from_utf8(token).unwrap());
        if number % 10 == 9 {
            lines += markdown.take_finished(80, theme).len();
            black_box(markdown.pending(80, theme));
        }
    }
    markdown.finish();
    lines + markdown.take_finished(80, theme).len()
}

/// The second half of a text costs what the first does, if cost does not grow with what was said before.
fn stream() {
    let theme = Theme::default();
    let text = prose();
    // Grammars are loaded once.
    black_box(MarkdownStream::render(&text[..2_000], 80, &theme));
    let quarter_text = &text[..text.len() / 4];
    // In turns, so that both meet the same machine.
    let runs: Vec<(Duration, Duration)> = (0..RUNS)
        .map(|_| (time(|| streamed(&text, &theme)), time(|| streamed(quarter_text, &theme))))
        .collect();
    let whole = runs.iter().map(|run| run.0).min().unwrap();
    let quarter = runs.iter().map(|run| run.1).min().unwrap();
    row("Markdown, 1 MB in tokens", whole, "4 × a quarter of it", quarter * 4, "≤ 1.2");
}

fn fuzzy() {
    let path = |n: usize| {
        format!(
            "crates/part{}/src/module_{}/file{n}_{}.rs",
            n % 40,
            n % 700,
            ["view", "model", "test"][n % 3]
        )
    };
    let paths: Vec<String> = (0..100_000).map(path).collect();
    let mut picker = Picker::new(paths.iter().map(|path| PickerChoice::new(path, "")).collect());
    let read = fastest(|| {
        black_box(paths.iter().map(|path| path.bytes().filter(|byte| *byte == b'm').count()).sum::<usize>());
    });
    for filter in ["m", "mod7", "src view 99", "zzz"] {
        let ours = fastest(|| {
            picker.set_filter("");
            picker.set_filter(filter);
            black_box(picker.selected());
        });
        row(&format!("fuzzy `{filter}`, 100,000 paths"), ours, "reading them once", read, "10 ms");
    }
}

fn typing() {
    let theme = Theme::default();
    let text = "some words of a long text that was typed here\n".repeat(MB / 46);
    let mut editor = Editor::default();
    editor.set_text(&text);
    for _ in 0..1_000 {
        editor.apply(EditorCommand::Up);
    }
    let area = Rect::new(0, 0, 80, 12);
    let copy = fastest(|| {
        for _ in 0..100 {
            black_box(text.clone());
        }
    });
    let ours = fastest(|| {
        for _ in 0..100 {
            editor.insert("x");
            let mut buffer = Buffer::empty(area);
            black_box(editor.draw(area, &mut buffer, &theme));
        }
    });
    row("100 keys in a text of 1 MB, drawn", ours, "100 copies of it", copy, "500 ms");
}

fn pasting() {
    let text = "a pasted line of text\n".repeat(MB / 22);
    let copy = fastest(|| {
        black_box(text.clone());
    });
    let ours = fastest(|| {
        let mut editor = Editor::default();
        editor.paste(&text);
        black_box(editor.text().len());
    });
    row("paste of 1 MB, and its text", ours, "a copy of it", copy, "10 ms");
}
