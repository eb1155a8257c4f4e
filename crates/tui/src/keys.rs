//! What keys do, and which ones usually do it. One table: the help, the reference and the keys themselves are made from it.

use helve_widgets::EditorCommand;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Where a key is pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyContext {
    /// The text input, and everything around it.
    Composer,
    /// A question that waits for a person.
    Approval,
    List,
    Pager,
}

impl KeyContext {
    pub const ALL: [KeyContext; 4] =
        [KeyContext::Composer, KeyContext::Approval, KeyContext::List, KeyContext::Pager];

    pub fn name(self) -> &'static str {
        match self {
            KeyContext::Composer => "Writing",
            KeyContext::Approval => "A question of the agent",
            KeyContext::List => "Lists",
            KeyContext::Pager => "Reading (Ctrl-O)",
        }
    }
}

macro_rules! actions {
    ($($context:ident $variant:ident $name:literal [$($key:literal),*] $about:literal,)*) => {
        /// What a key does.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum KeyAction {
            $($variant,)*
            Edit(EditorCommand),
        }

        /// Each action: where it counts, its name in settings, its keys, and what it does.
        const ACTION_TABLE: &[(KeyContext, KeyAction, &str, &[&str], &str)] =
            &[$((KeyContext::$context, KeyAction::$variant, $name, &[$($key),*], $about),)*];
    };
}

actions! {
    Composer Send "send" ["enter"] "send; while the agent works, put it into the queue",
    Composer Steer "steer" ["ctrl-s"] "send it to the agent at work, before its next step",
    Composer Interrupt "interrupt" ["esc"] "stop the agent, or close a menu",
    Composer Leave "leave" ["ctrl-c"] "clear the input, stop the agent; twice: leave",
    Composer Background "background" ["ctrl-b"] "let the command that runs go on by itself; else: left",
    Composer EndInput "end-input" ["ctrl-d"] "leave, if nothing is written",
    Composer CycleMode "cycle-mode" ["shift-tab"] "the next permission mode",
    Composer SearchHistory "history" ["ctrl-r"] "search what you wrote before",
    Composer OpenPager "pager" ["ctrl-o"] "read the last item in full, and those before it",
    Composer OpenEditor "editor" ["ctrl-g"] "write in your own editor",
    Composer Suspend "suspend" ["ctrl-z"] "go back to the shell; `fg` returns",
    Composer Redraw "redraw" ["ctrl-l"] "draw anew",
    Composer Help "help" ["?", "f1"] "show the keys (`?` if nothing is written)",
    Composer Complete "complete" ["tab"] "take the offered completion",
    Approval AllowOnce "allow-once" ["y"] "yes, this once",
    Approval AllowSession "allow-session" ["a"] "yes, by the rule, for this session",
    Approval AllowProject "allow-project" ["p"] "yes, by the rule, in this project from now on",
    Approval Reject "reject" ["n"] "no",
    Approval RejectWithMessage "reject-with-message" ["m"] "no, and say what to do instead",
    Approval StopTurn "stop-turn" ["esc", "ctrl-c"] "stop the agent",
    Approval ReadAll "read-all" ["ctrl-o"] "read the whole request",
    List ListUp "list-up" ["up", "ctrl-p"] "up",
    List ListDown "list-down" ["down", "ctrl-n"] "down",
    List ListPageUp "list-page-up" ["pageup"] "a page up",
    List ListPageDown "list-page-down" ["pagedown"] "a page down",
    List Choose "choose" ["enter", "tab"] "take it",
    List Cancel "cancel" ["esc", "ctrl-c"] "close the list",
    Pager ScrollUp "scroll-up" ["up", "k"] "a row up",
    Pager ScrollDown "scroll-down" ["down", "j", "enter"] "a row down",
    Pager PageUp "page-up" ["pageup", "b"] "a page up",
    Pager PageDown "page-down" ["pagedown", "space", "f"] "a page down",
    Pager HalfUp "half-page-up" ["u", "ctrl-u"] "half a page up",
    Pager HalfDown "half-page-down" ["d", "ctrl-d"] "half a page down",
    Pager ToStart "to-start" ["g", "home"] "to the beginning",
    Pager ToEnd "to-end" ["G", "end"] "to the end",
    Pager Search "search" ["/"] "search",
    Pager SearchNext "search-next" ["n"] "the next place",
    Pager SearchPrevious "search-previous" ["N"] "the place before",
    Pager Older "older" ["left", "["] "the item before",
    Pager Newer "newer" ["right", "]"] "the item after",
    Pager Close "close" ["q", "esc", "ctrl-c", "ctrl-o"] "close",
}

/// The keys of the text input.
const EDITOR_KEYS: &[(EditorCommand, &[&str])] = &[
    (EditorCommand::Left, &["left"]),
    (EditorCommand::Right, &["right", "ctrl-f"]),
    (EditorCommand::Up, &["up", "ctrl-p"]),
    (EditorCommand::Down, &["down", "ctrl-n"]),
    (EditorCommand::WordLeft, &["alt-b", "ctrl-left", "alt-left"]),
    (EditorCommand::WordRight, &["alt-f", "ctrl-right", "alt-right"]),
    (EditorCommand::LineStart, &["ctrl-a", "home"]),
    (EditorCommand::LineEnd, &["ctrl-e", "end"]),
    (EditorCommand::TextStart, &["ctrl-home", "alt-<"]),
    (EditorCommand::TextEnd, &["ctrl-end", "alt->"]),
    (EditorCommand::NewLine, &["alt-enter", "shift-enter", "ctrl-j"]),
    (EditorCommand::DeleteLeft, &["backspace", "ctrl-h", "shift-backspace"]),
    (EditorCommand::DeleteRight, &["delete"]),
    (EditorCommand::KillWordLeft, &["ctrl-w", "alt-backspace"]),
    (EditorCommand::KillWordRight, &["alt-d"]),
    (EditorCommand::KillToStart, &["ctrl-u"]),
    (EditorCommand::KillToEnd, &["ctrl-k"]),
    (EditorCommand::KillAll, &[]),
    (EditorCommand::Yank, &["ctrl-y"]),
    (EditorCommand::YankOlder, &["alt-y"]),
    (EditorCommand::Transpose, &["ctrl-t"]),
    (EditorCommand::Undo, &["ctrl-_", "ctrl-7", "ctrl-/"]),
    (EditorCommand::Redo, &["alt-_"]),
];

/// A key with what is held down beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyPress {
    code: KeyCode,
    held: KeyModifiers,
}

impl KeyPress {
    /// Terminals differ in how they tell shifted letters and Shift-Tab; here each has one form.
    pub fn of(event: &KeyEvent) -> KeyPress {
        let held = event.modifiers & (KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT);
        match event.code {
            KeyCode::BackTab => KeyPress { code: KeyCode::BackTab, held: held - KeyModifiers::SHIFT },
            KeyCode::Tab if held.contains(KeyModifiers::SHIFT) => {
                KeyPress { code: KeyCode::BackTab, held: held - KeyModifiers::SHIFT }
            }
            KeyCode::Char(letter) if held.contains(KeyModifiers::CONTROL) => KeyPress {
                code: KeyCode::Char(letter.to_ascii_lowercase()),
                held: held - KeyModifiers::SHIFT,
            },
            KeyCode::Char(_) => KeyPress { code: event.code, held: held - KeyModifiers::SHIFT },
            code => KeyPress { code, held },
        }
    }

    /// As in settings: `ctrl-o`, `shift-tab`, `alt-enter`, `f2`, `G`.
    pub fn parse(text: &str) -> Option<KeyPress> {
        let mut held = KeyModifiers::NONE;
        let mut rest = text;
        while let Some((name, after)) = rest.split_once('-').filter(|(_, after)| !after.is_empty()) {
            held |= match name.to_ascii_lowercase().as_str() {
                "ctrl" => KeyModifiers::CONTROL,
                "alt" => KeyModifiers::ALT,
                "shift" => KeyModifiers::SHIFT,
                _ => break,
            };
            rest = after;
        }
        Some(KeyPress::of(&KeyEvent::new(code(rest)?, held)))
    }

    /// Whether it writes a letter.
    pub(crate) fn is_letter(self) -> bool {
        matches!(self.code, KeyCode::Char(_)) && self.held.is_empty()
    }

    /// Whether whoever wants to stop or to leave relies on it, whatever the settings say.
    pub(crate) fn is_fixed(self) -> bool {
        let ctrl_c = KeyPress { code: KeyCode::Char('c'), held: KeyModifiers::CONTROL };
        self == ctrl_c || self == KeyPress { code: KeyCode::Esc, held: KeyModifiers::NONE }
    }
}

fn code(name: &str) -> Option<KeyCode> {
    let mut letters = name.chars();
    if let (Some(letter), None) = (letters.next(), letters.next()) {
        return Some(KeyCode::Char(letter));
    }
    Some(match name.to_ascii_lowercase().as_str() {
        "enter" => KeyCode::Enter,
        "esc" => KeyCode::Esc,
        "tab" => KeyCode::Tab,
        "space" => KeyCode::Char(' '),
        "backspace" => KeyCode::Backspace,
        "delete" => KeyCode::Delete,
        "insert" => KeyCode::Insert,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "pageup" => KeyCode::PageUp,
        "pagedown" => KeyCode::PageDown,
        name => KeyCode::F(name.strip_prefix('f')?.parse().ok().filter(|number| (1..=24).contains(number))?),
    })
}

/// An action: where it counts, its name in settings, its usual keys, and what it does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct KeyActionInfo {
    pub(crate) context: KeyContext,
    pub(crate) action: KeyAction,
    pub(crate) name: &'static str,
    pub(crate) keys: &'static [&'static str],
    pub(crate) about: &'static str,
}

/// Every action there is.
pub(crate) fn all_actions() -> impl Iterator<Item = KeyActionInfo> {
    let actions = ACTION_TABLE.iter().map(|&(context, action, name, keys, about)| KeyActionInfo {
        context,
        action,
        name,
        keys,
        about,
    });
    let edits = EDITOR_KEYS.iter().map(|&(edit, keys)| {
        let name = EditorCommand::ALL.iter().find(|(_, own)| *own == edit).map_or("", |(name, _)| name);
        let about = match edit {
            EditorCommand::Up => "a row up; in the first row, what you wrote before",
            EditorCommand::Down => "a row down; in the last row, what you wrote after",
            EditorCommand::NewLine => "a new line (`\\` and Enter too)",
            _ => name,
        };
        KeyActionInfo { context: KeyContext::Composer, action: KeyAction::Edit(edit), name, keys, about }
    });
    actions.chain(edits)
}

/// The names that settings give to actions.
pub fn names() -> impl Iterator<Item = &'static str> {
    all_actions().map(|row| row.name)
}

pub(crate) fn find(name: &str) -> Option<KeyActionInfo> {
    all_actions().find(|row| row.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keymap::KeyMap;
    use proptest::prelude::*;

    fn pressed(code: KeyCode, held: KeyModifiers) -> KeyEvent {
        KeyEvent::new(code, held)
    }

    #[test]
    fn every_key_of_the_tables_can_be_read() {
        let keys = ACTION_TABLE
            .iter()
            .flat_map(|(.., keys, _)| *keys)
            .chain(EDITOR_KEYS.iter().flat_map(|(_, keys)| *keys));
        for key in keys {
            assert!(KeyPress::parse(key).is_some(), "{key}");
        }
    }

    #[test]
    fn terminals_may_tell_the_same_key_in_different_ways() {
        let map = KeyMap::default();
        for event in [
            pressed(KeyCode::BackTab, KeyModifiers::SHIFT),
            pressed(KeyCode::BackTab, KeyModifiers::NONE),
            pressed(KeyCode::Tab, KeyModifiers::SHIFT),
        ] {
            assert_eq!(map.action(KeyContext::Composer, &event), Some(KeyAction::CycleMode));
        }
        let end = pressed(KeyCode::Char('G'), KeyModifiers::SHIFT);
        assert_eq!(map.action(KeyContext::Pager, &end), Some(KeyAction::ToEnd));
    }

    #[test]
    fn an_action_has_one_name_and_a_name_one_action() {
        let mut names: Vec<&str> = all_actions().map(|row| row.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(all_actions().all(|row| find(row.name) == Some(row)));
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_a_key_or_none(text in "((ctrl|Alt|shift|hyper)-){0,3}(\\PC{0,3}|enter|f[0-9]{0,4}|space)") {
            if let Some(key) = KeyPress::parse(&text) {
                prop_assert_eq!(KeyPress::of(&KeyEvent::new(key.code, key.held)), key);
            }
        }
    }
}
