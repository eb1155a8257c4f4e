//! The text input against a naive one.

use helve_widgets::{Editor, EditorCommand, EditorOutcome, EditorPart, Theme};
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use unicode_segmentation::UnicodeSegmentation;

use crate::shot::{plain, shot};

fn editor(text: &str) -> Editor {
    let mut editor = Editor::default();
    editor.insert(text);
    editor
}

fn apply(editor: &mut Editor, edits: &[EditorCommand]) {
    for edit in edits {
        editor.apply(*edit);
    }
}

/// The rows as drawn, with `|` where the cursor stands.
fn drawn(editor: &mut Editor, width: u16, height: u16) -> String {
    let told = shot(width, height, |area, buffer| {
        if let Some(at) = editor.draw(area, buffer, &plain()) {
            buffer.cell_mut(at).unwrap().set_symbol("|");
        }
    });
    told.strip_suffix('\n').unwrap().to_owned()
}

#[test]
fn words_and_lines_are_moved_over() {
    let mut editor = editor("fn main() {\n    let café_2 = 日本;\n}");
    let mut places = Vec::new();
    editor.apply(EditorCommand::TextStart);
    while editor.apply(EditorCommand::WordRight) == EditorOutcome::Moved {
        places.push(editor.raw().1);
    }
    let text = editor.raw().0.to_owned();
    let ends: Vec<&str> = places.iter().map(|place| text[..*place].rsplit(' ').next().unwrap()).collect();
    assert_eq!(ends, ["fn", "main", "let", "café_2", "日本", "日本;\n}"]);
    apply(&mut editor, &[EditorCommand::WordLeft, EditorCommand::WordLeft, EditorCommand::LineStart]);
    assert_eq!(editor.raw().1, "fn main() {\n".len());
    apply(&mut editor, &[EditorCommand::LineEnd, EditorCommand::Right]);
    assert_eq!(&text[editor.raw().1..], "}");
}

#[test]
fn kills_that_follow_each_other_are_yanked_as_one() {
    let mut editor = editor("one two three");
    apply(&mut editor, &[EditorCommand::KillWordLeft, EditorCommand::KillWordLeft]);
    assert_eq!(editor.text(), "one ");
    apply(&mut editor, &[EditorCommand::TextStart, EditorCommand::Yank]);
    assert_eq!(editor.text(), "two threeone ");
    apply(&mut editor, &[EditorCommand::KillToEnd, EditorCommand::Yank, EditorCommand::YankOlder]);
    assert_eq!(editor.text(), "two threetwo three");
    assert_eq!(Editor::default().apply(EditorCommand::Yank), EditorOutcome::Nothing);
}

#[test]
fn a_long_paste_is_one_thing() {
    let mut editor = editor("see ");
    let pasted = "line\r\n".repeat(2_341);
    editor.paste(&pasted);
    editor.insert(" ok");
    assert_eq!(drawn(&mut editor, 40, 1), "see [pasted 2,341 lines] ok|");
    assert_eq!(editor.text(), format!("see {} ok", "line\n".repeat(2_341)));
    apply(&mut editor, &[EditorCommand::WordLeft, EditorCommand::WordLeft]);
    assert_eq!(editor.raw().1, 4, "before the chip");
    apply(&mut editor, &[EditorCommand::DeleteRight]);
    assert_eq!(editor.text(), "see  ok");
    apply(&mut editor, &[EditorCommand::Undo]);
    assert_eq!(editor.parts().len(), 3);
    assert!(matches!(&editor.parts()[1], EditorPart::Chip(chip) if chip.payload.len() == 5 * 2_341));
    editor.set_text("");
    editor.paste(&"x".repeat(1_500));
    editor.insert_chip("image 1", "/tmp/a.png");
    assert_eq!(drawn(&mut editor, 40, 1), "[pasted 1,500 characters][image 1]|");
    assert_eq!(drawn(&mut editor, 12, 3), "[pasted 1,5…\n[image 1]|\n");
    editor.set_text("");
    editor.paste("short \u{fffc} text");
    assert_eq!(editor.text(), "short \u{fffd} text", "nobody fakes a chip");
}

#[test]
fn undo_goes_back_by_words() {
    let mut editor = Editor::default();
    for c in "ab cd".chars() {
        editor.insert(&c.to_string());
    }
    let mut states = Vec::new();
    while editor.apply(EditorCommand::Undo) == EditorOutcome::Changed {
        states.push(editor.text());
    }
    assert_eq!(states, ["ab ", "ab", ""]);
    while editor.apply(EditorCommand::Redo) == EditorOutcome::Changed {}
    assert_eq!((editor.text(), editor.raw().1), ("ab cd".to_owned(), 5));
}

#[test]
fn rows_are_moved_over_as_they_are_drawn() {
    let mut editor = editor("hello wide world\nx\nlast");
    assert_eq!(drawn(&mut editor, 8, 6), "hello\nwide\nworld\nx\nlast|\n");
    assert_eq!(editor.height(8, 10), 5);
    assert_eq!(editor.height(8, 3), 3);
    apply(&mut editor, &[EditorCommand::Up]);
    assert_eq!(drawn(&mut editor, 8, 6), "hello\nwide\nworld\nx|\nlast\n");
    apply(&mut editor, &[EditorCommand::Up]);
    assert_eq!(drawn(&mut editor, 8, 6), "hello\nwide\nworl|\nx\nlast\n", "the column is kept");
    apply(&mut editor, &[EditorCommand::Up, EditorCommand::Up]);
    assert_eq!(editor.apply(EditorCommand::Up), EditorOutcome::Nothing);
    assert_eq!(drawn(&mut editor, 8, 2), "hell|\nwide");
}

#[test]
fn the_cursor_is_always_among_the_rows() {
    let mut editor = editor(&(0..100).map(|n| format!("{n}\n")).collect::<String>());
    assert_eq!(drawn(&mut editor, 10, 3), "98\n99\n|");
    apply(&mut editor, &[EditorCommand::Up; 2]);
    assert_eq!(drawn(&mut editor, 10, 3), "|8\n99\n");
    apply(&mut editor, &[EditorCommand::Up]);
    assert_eq!(drawn(&mut editor, 10, 3), "|7\n98\n99");
    apply(&mut editor, &[EditorCommand::TextStart]);
    assert_eq!(drawn(&mut editor, 10, 3), "|\n1\n2");
    assert_eq!(drawn(&mut editor, 1, 1), "|");
}

/// A text with everything that an input can hold.
fn sample() -> Editor {
    let mut editor = editor("Please look at the 日本語 file and tell me what is wrong with it:\n\t");
    editor.paste(&"x\n".repeat(40));
    editor.insert(" and ");
    editor.insert_chip("image 1", "a.png");
    editor.insert("\nThanks 👩‍💻");
    editor
}

#[test]
fn at_80_by_24() {
    insta::assert_snapshot!(drawn(&mut sample(), 80, 24));
}

#[test]
fn at_40_by_10() {
    insta::assert_snapshot!(drawn(&mut sample(), 40, 10));
}

#[test]
fn at_10_by_3() {
    insta::assert_snapshot!(drawn(&mut sample(), 10, 3));
}

#[test]
fn characters_are_exchanged() {
    let mut editor = editor("ab日");
    editor.apply(EditorCommand::Transpose);
    assert_eq!(editor.text(), "a日b");
    apply(&mut editor, &[EditorCommand::LineStart]);
    assert_eq!(editor.apply(EditorCommand::Transpose), EditorOutcome::Nothing);
}

/// One character, or a chip.
#[derive(Clone, Debug, PartialEq)]
enum Item {
    Char(char),
    Chip(String),
}

/// The same thing with a vector, slowly.
#[derive(Clone, Debug, Default)]
struct Naive {
    items: Vec<Item>,
    cursor: usize,
    killed: Vec<Item>,
    was_kill: bool,
}

impl Naive {
    fn text(&self) -> String {
        let told = |item: &Item| match item {
            Item::Char(c) => c.to_string(),
            Item::Chip(payload) => payload.clone(),
        };
        self.items.iter().map(told).collect()
    }

    fn raw(&self) -> Vec<char> {
        self.items.iter().map(|item| if let Item::Char(c) = item { *c } else { '\u{fffc}' }).collect()
    }

    /// Where clusters begin, and the end, counted in items.
    fn boundaries(&self) -> Vec<usize> {
        let text: String = self.raw().into_iter().collect();
        let starts = text.grapheme_indices(true).map(|(at, _)| text[..at].chars().count());
        starts.chain([self.items.len()]).collect()
    }

    fn up(&self, at: usize) -> usize {
        self.boundaries().into_iter().find(|boundary| *boundary >= at).unwrap()
    }

    fn down(&self, at: usize) -> usize {
        self.boundaries().into_iter().rfind(|boundary| *boundary <= at).unwrap()
    }

    fn left(&self) -> usize {
        self.boundaries().into_iter().rfind(|boundary| *boundary < self.cursor).unwrap_or(0)
    }

    fn right(&self) -> usize {
        self.boundaries().into_iter().find(|boundary| *boundary > self.cursor).unwrap_or(self.items.len())
    }

    fn word_left(&self) -> usize {
        let raw = self.raw();
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let mut at = self.cursor;
        while at > 0 && !is_word(raw[at - 1]) && raw[at - 1] != '\u{fffc}' {
            at -= 1;
        }
        if at > 0 && raw[at - 1] == '\u{fffc}' {
            return self.down(at - 1);
        }
        while at > 0 && is_word(raw[at - 1]) {
            at -= 1;
        }
        self.down(at)
    }

    fn word_right(&self) -> usize {
        let raw = self.raw();
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let mut at = self.cursor;
        while at < raw.len() && !is_word(raw[at]) && raw[at] != '\u{fffc}' {
            at += 1;
        }
        if at < raw.len() && raw[at] == '\u{fffc}' {
            return self.up(at + 1);
        }
        while at < raw.len() && is_word(raw[at]) {
            at += 1;
        }
        self.up(at)
    }

    fn line(&self) -> (usize, usize) {
        let raw = self.raw();
        let start = raw[..self.cursor].iter().rposition(|c| *c == '\n').map_or(0, |at| at + 1);
        let end = raw[self.cursor..].iter().position(|c| *c == '\n').map_or(raw.len(), |at| self.cursor + at);
        (start, end)
    }

    fn replace(&mut self, from: usize, to: usize, with: Vec<Item>) {
        let end = from + with.len();
        self.items.splice(from..to, with);
        self.cursor = self.up(end);
    }

    fn kill(&mut self, from: usize, to: usize, was_kill: bool) {
        if from == to {
            return;
        }
        let removed = self.items[from..to].to_vec();
        let earlier = if was_kill { std::mem::take(&mut self.killed) } else { Vec::new() };
        let is_before = to == self.cursor;
        self.killed = if is_before { [removed, earlier].concat() } else { [earlier, removed].concat() };
        self.replace(from, to, Vec::new());
        self.was_kill = true;
    }

    fn act(&mut self, action: &Action) {
        let was_kill = std::mem::take(&mut self.was_kill);
        let at = self.cursor;
        match action {
            Action::Insert(text) => self.replace(at, at, text.chars().map(Item::Char).collect()),
            Action::Chip(payload) => self.replace(at, at, vec![Item::Chip(payload.clone())]),
            Action::Edit(edit) => match edit {
                EditorCommand::Left => self.cursor = self.left(),
                EditorCommand::Right => self.cursor = self.right(),
                EditorCommand::WordLeft => self.cursor = self.word_left(),
                EditorCommand::WordRight => self.cursor = self.word_right(),
                EditorCommand::LineStart => self.cursor = self.line().0,
                EditorCommand::LineEnd => self.cursor = self.line().1,
                EditorCommand::TextStart => self.cursor = 0,
                EditorCommand::TextEnd => self.cursor = self.items.len(),
                EditorCommand::NewLine => self.replace(at, at, vec![Item::Char('\n')]),
                EditorCommand::DeleteLeft if at > 0 => self.replace(self.left(), at, Vec::new()),
                EditorCommand::DeleteRight if at < self.items.len() => {
                    self.replace(at, self.right(), Vec::new())
                }
                EditorCommand::KillWordLeft => self.kill(self.word_left(), at, was_kill),
                EditorCommand::KillWordRight => self.kill(at, self.word_right(), was_kill),
                EditorCommand::KillToStart => self.kill(self.line().0, at, was_kill),
                EditorCommand::KillToEnd if at == self.line().1 => self.kill(at, self.right(), was_kill),
                EditorCommand::KillToEnd => self.kill(at, self.line().1, was_kill),
                EditorCommand::KillAll => self.kill(0, self.items.len(), was_kill),
                EditorCommand::Yank if !self.killed.is_empty() => self.replace(at, at, self.killed.clone()),
                _ => {}
            },
        }
    }
}

#[derive(Clone, Debug)]
enum Action {
    Insert(String),
    Chip(String),
    Edit(EditorCommand),
}

/// All whose outcome does not depend on the layout or on earlier states.
fn action() -> impl Strategy<Value = Action> {
    let edits: Vec<EditorCommand> = EditorCommand::ALL
        .iter()
        .map(|(_, edit)| *edit)
        .filter(|edit| {
            !matches!(
                edit,
                EditorCommand::Up
                    | EditorCommand::Down
                    | EditorCommand::YankOlder
                    | EditorCommand::Transpose
                    | EditorCommand::Undo
                    | EditorCommand::Redo
            )
        })
        .collect();
    prop_oneof![
        4 => "[a-b _\n日é\u{301}\u{200d}👩🇫🇷]{1,4}".prop_map(Action::Insert),
        1 => "[xyz]{1,3}".prop_map(Action::Chip),
        8 => prop::sample::select(edits).prop_map(Action::Edit),
    ]
}

fn act(editor: &mut Editor, action: &Action) {
    match action {
        Action::Insert(text) => editor.insert(text),
        Action::Chip(payload) => editor.insert_chip("chip", payload),
        Action::Edit(edit) => {
            editor.apply(*edit);
        }
    }
}

fn is_between_clusters(editor: &Editor) -> bool {
    let (text, cursor) = editor.raw();
    text.grapheme_indices(true).map(|(at, _)| at).chain([text.len()]).any(|at| at == cursor)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_does_what_a_naive_one_does(actions in prop::collection::vec(action(), 0..40)) {
        let (mut editor, mut naive) = (Editor::default(), Naive::default());
        for action in &actions {
            act(&mut editor, action);
            naive.act(action);
            prop_assert_eq!(editor.text(), naive.text(), "after {:?}", action);
            let (text, cursor) = editor.raw();
            prop_assert_eq!(text[..cursor].chars().count(), naive.cursor, "after {:?} in {:?}", action, text);
        }
    }

    #[test]
    fn undo_and_redo_walk_through_what_was_there(actions in prop::collection::vec(action(), 0..40)) {
        let mut editor = Editor::default();
        let mut states = vec![(String::new(), 0)];
        for action in &actions {
            act(&mut editor, action);
            states.push((editor.text(), editor.raw().1));
        }
        let last = editor.text();
        let mut unseen = &states[..];
        while editor.apply(EditorCommand::Undo) == EditorOutcome::Changed {
            let state = (editor.text(), editor.raw().1);
            let found = unseen.iter().rposition(|seen| *seen == state);
            prop_assert!(found.is_some(), "{:?} was never there", state);
            unseen = &unseen[..=found.unwrap()];
            prop_assert!(is_between_clusters(&editor));
        }
        prop_assert_eq!(editor.text(), "");
        while editor.apply(EditorCommand::Redo) == EditorOutcome::Changed {}
        prop_assert_eq!(editor.text(), last);
    }

    #[test]
    fn any_layout_shows_the_cursor(
        actions in prop::collection::vec(prop_oneof![2 => action(), 1 => Just(Action::Edit(EditorCommand::Up)), 1 => Just(Action::Edit(EditorCommand::Down))], 0..30),
        width in 1u16..12,
        height in 1u16..5,
    ) {
        let mut editor = Editor::default();
        for action in &actions {
            act(&mut editor, action);
            let area = Rect::new(2, 1, width, height);
            let mut buffer = Buffer::empty(Rect::new(0, 0, width + 3, height + 2));
            let cursor = editor.draw(area, &mut buffer, &Theme::default());
            prop_assert!(cursor.is_some_and(|at: Position| area.contains(at)));
            prop_assert!(is_between_clusters(&editor));
            prop_assert!(editor.height(width, height) <= height);
        }
    }
}
