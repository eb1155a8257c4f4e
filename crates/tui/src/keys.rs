//! Which key does what. One table: the help, the reference and the keys themselves are made from it.

use std::collections::HashMap;

use helve_widgets::Edit;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Where a key is pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Context {
    /// The text input, and everything around it.
    Composer,
    /// A question that waits for a person.
    Approval,
    List,
    Pager,
}

impl Context {
    pub const ALL: [Context; 4] = [Context::Composer, Context::Approval, Context::List, Context::Pager];

    pub fn name(self) -> &'static str {
        match self {
            Context::Composer => "Writing",
            Context::Approval => "A question of the agent",
            Context::List => "Lists",
            Context::Pager => "Reading (Ctrl-O)",
        }
    }
}

macro_rules! actions {
    ($($context:ident $variant:ident $name:literal [$($key:literal),*] $about:literal,)*) => {
        /// What a key does.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Action {
            $($variant,)*
            Edit(Edit),
        }

        /// Each action: where it counts, its name in settings, its keys, and what it does.
        const TABLE: &[(Context, Action, &str, &[&str], &str)] =
            &[$((Context::$context, Action::$variant, $name, &[$($key),*], $about),)*];
    };
}

actions! {
    Composer Send "send" ["enter"] "send; while the agent works, put it into the queue",
    Composer Steer "steer" ["ctrl-s"] "send it to the agent at work, before its next step",
    Composer Interrupt "interrupt" ["esc"] "stop the agent, or close a menu",
    Composer Leave "leave" ["ctrl-c"] "clear the input, stop the agent; twice: leave",
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
const EDITS: &[(Edit, &[&str])] = &[
    (Edit::Left, &["left", "ctrl-b"]),
    (Edit::Right, &["right", "ctrl-f"]),
    (Edit::Up, &["up", "ctrl-p"]),
    (Edit::Down, &["down", "ctrl-n"]),
    (Edit::WordLeft, &["alt-b", "ctrl-left", "alt-left"]),
    (Edit::WordRight, &["alt-f", "ctrl-right", "alt-right"]),
    (Edit::LineStart, &["ctrl-a", "home"]),
    (Edit::LineEnd, &["ctrl-e", "end"]),
    (Edit::TextStart, &["ctrl-home", "alt-<"]),
    (Edit::TextEnd, &["ctrl-end", "alt->"]),
    (Edit::NewLine, &["alt-enter", "shift-enter", "ctrl-j"]),
    (Edit::DeleteLeft, &["backspace", "ctrl-h", "shift-backspace"]),
    (Edit::DeleteRight, &["delete"]),
    (Edit::KillWordLeft, &["ctrl-w", "alt-backspace"]),
    (Edit::KillWordRight, &["alt-d"]),
    (Edit::KillToStart, &["ctrl-u"]),
    (Edit::KillToEnd, &["ctrl-k"]),
    (Edit::Yank, &["ctrl-y"]),
    (Edit::YankOlder, &["alt-y"]),
    (Edit::Transpose, &["ctrl-t"]),
    (Edit::Undo, &["ctrl-_", "ctrl-7", "ctrl-/"]),
    (Edit::Redo, &["alt-_"]),
];

/// A key with what is held down beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    code: KeyCode,
    held: KeyModifiers,
}

impl Key {
    /// Terminals differ in how they tell shifted letters and Shift-Tab; here each has one form.
    pub fn of(event: &KeyEvent) -> Key {
        let held = event.modifiers & (KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT);
        match event.code {
            KeyCode::BackTab => Key { code: KeyCode::BackTab, held: held - KeyModifiers::SHIFT },
            KeyCode::Tab if held.contains(KeyModifiers::SHIFT) => {
                Key { code: KeyCode::BackTab, held: held - KeyModifiers::SHIFT }
            }
            KeyCode::Char(letter) if held.contains(KeyModifiers::CONTROL) => {
                Key { code: KeyCode::Char(letter.to_ascii_lowercase()), held: held - KeyModifiers::SHIFT }
            }
            KeyCode::Char(_) => Key { code: event.code, held: held - KeyModifiers::SHIFT },
            code => Key { code, held },
        }
    }

    /// As in settings: `ctrl-o`, `shift-tab`, `alt-enter`, `f2`, `G`.
    pub fn parse(text: &str) -> Option<Key> {
        let mut held = KeyModifiers::NONE;
        let mut rest = text;
        loop {
            let (modifier, after) = match rest.split_once('-') {
                Some(("ctrl", after)) if !after.is_empty() => (KeyModifiers::CONTROL, after),
                Some(("alt", after)) if !after.is_empty() => (KeyModifiers::ALT, after),
                Some(("shift", after)) if !after.is_empty() => (KeyModifiers::SHIFT, after),
                _ => break,
            };
            held |= modifier;
            rest = after;
        }
        Some(Key::of(&KeyEvent::new(code(rest)?, held)))
    }
}

fn code(name: &str) -> Option<KeyCode> {
    let mut letters = name.chars();
    if let (Some(letter), None) = (letters.next(), letters.next()) {
        return Some(KeyCode::Char(letter));
    }
    Some(match name {
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
        _ => KeyCode::F(name.strip_prefix('f')?.parse().ok().filter(|number| (1..=24).contains(number))?),
    })
}

/// The keys as the user has them.
#[derive(Clone, Debug)]
pub struct KeyMap {
    bound: HashMap<(Context, Key), Action>,
    /// The keys of each action as they are written, for the help.
    written: Vec<(Context, Action, Vec<String>)>,
}

impl Default for KeyMap {
    fn default() -> KeyMap {
        let mut map = KeyMap { bound: HashMap::new(), written: Vec::new() };
        let edits = EDITS.iter().map(|(edit, keys)| (Context::Composer, Action::Edit(*edit), *keys));
        let actions = TABLE.iter().map(|(context, action, _, keys, _)| (*context, *action, *keys));
        for (context, action, keys) in actions.chain(edits) {
            for key in keys.iter().filter_map(|key| Key::parse(key)) {
                map.bound.insert((context, key), action);
            }
            map.written.push((context, action, keys.iter().map(|key| (*key).to_owned()).collect()));
        }
        map
    }
}

impl KeyMap {
    /// The usual keys, with some that the user wants otherwise: key and name of the action; `none` takes a key away.
    pub fn with(wishes: &[(String, String)]) -> Result<KeyMap, String> {
        let mut map = KeyMap::default();
        for (key, action) in wishes {
            map.bind(key, action)?;
        }
        Ok(map)
    }

    fn bind(&mut self, written: &str, name: &str) -> Result<(), String> {
        let key =
            Key::parse(written).ok_or_else(|| format!("{written:?} is no key; write it as ctrl-o or f2"))?;
        let target = find(name);
        if target.is_none() && name != "none" {
            return Err(format!("{name:?} is no action; `helve reference keys` lists them"));
        }
        let contexts = target.map_or(Context::ALL.to_vec(), |(context, _)| vec![context]);
        for context in contexts {
            self.bound.remove(&(context, key));
            for (_, _, keys) in self.written.iter_mut().filter(|(other, ..)| *other == context) {
                keys.retain(|other| Key::parse(other) != Some(key));
            }
        }
        if let Some((context, action)) = target {
            self.bound.insert((context, key), action);
            let row = self.written.iter_mut().find(|(_, other, _)| *other == action);
            row.into_iter().for_each(|(_, _, keys)| keys.insert(0, written.to_owned()));
        }
        Ok(())
    }

    pub fn action(&self, context: Context, event: &KeyEvent) -> Option<Action> {
        self.bound.get(&(context, Key::of(event))).copied()
    }

    /// The first key of an action, for hints.
    pub fn key(&self, action: Action) -> &str {
        let row = self.written.iter().find(|(_, other, _)| *other == action);
        row.and_then(|(_, _, keys)| keys.first()).map_or("?", String::as_str)
    }

    /// The keys of a context with what they do.
    pub fn rows(&self, context: Context) -> Vec<(String, &'static str)> {
        let rows = self.written.iter().filter(|(other, _, keys)| *other == context && !keys.is_empty());
        rows.map(|(_, action, keys)| (keys.join(", "), about(*action))).collect()
    }
}

fn find(name: &str) -> Option<(Context, Action)> {
    let own =
        TABLE.iter().find(|(_, _, own, ..)| *own == name).map(|(context, action, ..)| (*context, *action));
    let edit = Edit::ALL.iter().find(|(own, _)| *own == name);
    own.or(edit.map(|(_, edit)| (Context::Composer, Action::Edit(*edit))))
}

fn name(action: Action) -> &'static str {
    match action {
        Action::Edit(edit) => Edit::ALL.iter().find(|(_, own)| *own == edit).map_or("", |(name, _)| name),
        action => TABLE.iter().find(|(_, own, ..)| *own == action).map_or("", |(_, _, name, ..)| name),
    }
}

fn about(action: Action) -> &'static str {
    match action {
        Action::Edit(edit) => match edit {
            Edit::Up => "a row up; in the first row, what you wrote before",
            Edit::Down => "a row down; in the last row, what you wrote after",
            Edit::NewLine => "a new line (`\\` and Enter too)",
            other => name(Action::Edit(other)),
        },
        action => TABLE.iter().find(|(_, own, ..)| *own == action).map_or("", |(.., about)| about),
    }
}

/// All keys, as a page of Markdown.
pub fn reference() -> String {
    let map = KeyMap::default();
    let mut page = String::from("# Keys\n\nEvery key can be given to another action by its name.\n");
    for context in Context::ALL {
        page.push_str(&format!(
            "\n## {}\n\n| keys | action | what it does |\n|---|---|---|\n",
            context.name()
        ));
        for (_, action, keys) in map.written.iter().filter(|(other, ..)| *other == context) {
            let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
            page.push_str(&format!("| {} | `{}` | {} |\n", keys.join(" "), name(*action), about(*action)));
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressed(code: KeyCode, held: KeyModifiers) -> KeyEvent {
        KeyEvent::new(code, held)
    }

    #[test]
    fn every_key_of_the_tables_can_be_read() {
        let keys =
            TABLE.iter().flat_map(|(.., keys, _)| *keys).chain(EDITS.iter().flat_map(|(_, keys)| *keys));
        for key in keys {
            assert!(Key::parse(key).is_some(), "{key}");
        }
    }

    #[test]
    fn a_key_can_be_given_to_another_action_and_taken_away() {
        let ctrl_o = pressed(KeyCode::Char('o'), KeyModifiers::CONTROL);
        let wish = |key: &str, action: &str| (key.to_owned(), action.to_owned());
        assert_eq!(KeyMap::default().action(Context::Composer, &ctrl_o), Some(Action::OpenPager));
        let map = KeyMap::with(&[wish("ctrl-o", "steer"), wish("f5", "pager")]).unwrap();
        assert_eq!(map.action(Context::Composer, &ctrl_o), Some(Action::Steer));
        assert_eq!(map.key(Action::OpenPager), "f5");
        let map = KeyMap::with(&[wish("ctrl-o", "none")]).unwrap();
        assert_eq!(map.action(Context::Composer, &ctrl_o), None);
        assert!(KeyMap::with(&[wish("ctrl-o", "fly")]).is_err());
        assert!(KeyMap::with(&[wish("hyper-o", "pager")]).is_err());
    }

    #[test]
    fn terminals_may_tell_the_same_key_in_different_ways() {
        let map = KeyMap::default();
        for event in [
            pressed(KeyCode::BackTab, KeyModifiers::SHIFT),
            pressed(KeyCode::BackTab, KeyModifiers::NONE),
            pressed(KeyCode::Tab, KeyModifiers::SHIFT),
        ] {
            assert_eq!(map.action(Context::Composer, &event), Some(Action::CycleMode));
        }
        let end = pressed(KeyCode::Char('G'), KeyModifiers::SHIFT);
        assert_eq!(map.action(Context::Pager, &end), Some(Action::ToEnd));
    }

    #[test]
    fn the_reference_names_every_action() {
        let page = reference();
        for (_, _, name, ..) in TABLE {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }
}
