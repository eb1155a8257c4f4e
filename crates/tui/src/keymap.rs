//! The keys as the user has them: the usual ones, but for those that the settings give to other actions.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use ratatui::crossterm::event::KeyEvent;

use crate::keys::{KeyAction, KeyActionInfo, KeyContext, KeyPress, all_actions, find};

#[derive(Clone, Debug)]
pub struct KeyMap {
    bound: HashMap<(KeyContext, KeyPress), KeyAction>,
    rows: Vec<KeyBinding>,
}

/// An action with its keys as they are written.
#[derive(Clone, Debug)]
struct KeyBinding {
    row: KeyActionInfo,
    keys: Vec<String>,
}

/// A wish that can't be granted, by the name of its action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedBinding {
    pub action: String,
    pub why: BindingProblem,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindingProblem {
    UnknownAction,
    UnknownKey(String),
    /// Another wish has the key.
    Taken {
        key: String,
        by: &'static str,
    },
    /// Another action would be left without a key.
    Needed {
        key: String,
        by: &'static str,
    },
    /// The key stops or leaves, always.
    Fixed(String),
    /// The letter could not be written any more.
    Letter(String),
}

impl fmt::Display for BindingProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BindingProblem::UnknownAction => f.write_str("there is no such action"),
            BindingProblem::UnknownKey(key) => write!(f, "there is no key {key:?}"),
            BindingProblem::Taken { key, by } => write!(f, "{key} is given to `{by}` already"),
            BindingProblem::Needed { key, by } => write!(f, "{key} is the only key of `{by}`"),
            BindingProblem::Fixed(key) => write!(f, "{key} always stops, closes or leaves"),
            BindingProblem::Letter(key) => write!(f, "{key} could not be written any more"),
        }
    }
}

impl BindingProblem {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            BindingProblem::UnknownAction => "`helve reference keys` lists the actions".to_owned(),
            BindingProblem::UnknownKey(_) => {
                "write it as ctrl-o, alt-enter, shift-tab, f2, pageup, space or G".to_owned()
            }
            BindingProblem::Taken { .. } | BindingProblem::Fixed(_) => "choose another key".to_owned(),
            BindingProblem::Needed { by, .. } => format!("give `{by}` another key too, or none: {by} = []"),
            BindingProblem::Letter(key) => {
                format!("hold something down with it, such as ctrl-{key} or alt-{key}")
            }
        }
    }
}

impl Default for KeyMap {
    fn default() -> KeyMap {
        let mut map = KeyMap { bound: HashMap::new(), rows: Vec::new() };
        for row in all_actions() {
            map.rows.push(KeyBinding { row, keys: Vec::new() });
            row.keys.iter().for_each(|key| map.give(row, key));
        }
        map
    }
}

impl KeyMap {
    /// The usual keys, but for the actions that the user wants to have others; and the wishes that can't be granted.
    pub fn with(wishes: &BTreeMap<String, Vec<String>>) -> (KeyMap, Vec<RefusedBinding>) {
        let mut map = KeyMap::default();
        let mut refused = Vec::new();
        let mut granted = Vec::new();
        for (name, keys) in wishes {
            match find(name) {
                Some(row) => granted.push((row, keys)),
                None => {
                    refused.push(RefusedBinding { action: name.clone(), why: BindingProblem::UnknownAction })
                }
            }
        }
        // First all let go of their keys, so that two can exchange them.
        granted.iter().for_each(|(row, _)| map.let_go(*row));
        let is_wished = |action: KeyAction| granted.iter().any(|(row, _)| row.action == action);
        for (row, keys) in &granted {
            for key in *keys {
                match map.refusal(*row, key, &is_wished) {
                    Some(why) => refused.push(RefusedBinding { action: row.name.to_owned(), why }),
                    None => map.give(*row, key),
                }
            }
        }
        // Whoever got nothing of what was wished has the usual keys that are left.
        for (row, _) in granted.iter().filter(|(_, keys)| !keys.is_empty()) {
            if map.keys(row.action).is_empty() {
                for key in row.keys {
                    if map.holder(*row, key).is_none() {
                        map.give(*row, key);
                    }
                }
            }
        }
        (map, refused)
    }

    fn refusal(
        &self,
        row: KeyActionInfo,
        written: &str,
        is_wished: &impl Fn(KeyAction) -> bool,
    ) -> Option<BindingProblem> {
        let Some(key) = KeyPress::parse(written) else {
            return Some(BindingProblem::UnknownKey(written.to_owned()));
        };
        // In a list, letters look for something.
        if key.is_letter()
            && matches!(row.context, KeyContext::Composer | KeyContext::List)
            && row.action != KeyAction::Help
        {
            return Some(BindingProblem::Letter(written.to_owned()));
        }
        let holder = self.holder(row, written).filter(|holder| holder.action != row.action)?;
        let (key_name, by) = (written.to_owned(), holder.name);
        if key.is_fixed() {
            return Some(BindingProblem::Fixed(key_name));
        }
        if is_wished(holder.action) {
            return Some(BindingProblem::Taken { key: key_name, by });
        }
        let is_last = self.keys(holder.action).len() == 1 && !matches!(holder.action, KeyAction::Edit(_));
        is_last.then_some(BindingProblem::Needed { key: key_name, by })
    }

    /// Who has this key where an action counts.
    fn holder(&self, row: KeyActionInfo, written: &str) -> Option<KeyActionInfo> {
        let action = self.bound.get(&(row.context, KeyPress::parse(written)?))?;
        self.rows.iter().map(|bound| bound.row).find(|row| row.action == *action)
    }

    fn give(&mut self, row: KeyActionInfo, written: &str) {
        let Some(key) = KeyPress::parse(written) else { return };
        self.bound.insert((row.context, key), row.action);
        for bound in self.rows.iter_mut().filter(|bound| bound.row.context == row.context) {
            bound.keys.retain(|other| KeyPress::parse(other) != Some(key));
            if bound.row.action == row.action {
                bound.keys.push(written.to_owned());
            }
        }
    }

    /// Takes an action's keys away, but for those that must always work.
    fn let_go(&mut self, row: KeyActionInfo) {
        self.bound.retain(|(_, key), action| *action != row.action || key.is_fixed());
        for bound in self.rows.iter_mut().filter(|bound| bound.row.action == row.action) {
            bound.keys.retain(|key| KeyPress::parse(key).is_some_and(KeyPress::is_fixed));
        }
    }

    pub fn action(&self, context: KeyContext, event: &KeyEvent) -> Option<KeyAction> {
        self.bound.get(&(context, KeyPress::of(event))).copied()
    }

    fn keys(&self, action: KeyAction) -> &[String] {
        let bound = self.rows.iter().find(|bound| bound.row.action == action);
        bound.map(|bound| bound.keys.as_slice()).unwrap_or_default()
    }

    /// The key of an action, for hints: the user's own, if there is one.
    pub fn key(&self, action: KeyAction) -> &str {
        let keys = self.keys(action);
        let own = keys.iter().find(|key| !KeyPress::parse(key).is_some_and(KeyPress::is_fixed));
        own.or(keys.first()).map_or("/help", String::as_str)
    }

    /// The actions of a context that have keys: the keys, the name, and what it does.
    pub(crate) fn rows(
        &self,
        context: KeyContext,
    ) -> impl Iterator<Item = (String, &'static str, &'static str)> {
        let rows =
            self.rows.iter().filter(move |bound| bound.row.context == context && !bound.keys.is_empty());
        rows.map(|bound| (bound.keys.join(", "), bound.row.name, bound.row.about))
    }
}

const KEYS_REFERENCE_INTRO: &str = "\
# Keys

The table `[keys]` in your settings gives an action other keys than the usual ones, by its name:

```toml
[keys]
pager = \"ctrl-p\"
send = [\"ctrl-enter\", \"f9\"]
transpose = []
```

A key is a letter or `enter`, `esc`, `tab`, `space`, `backspace`, `delete`, `insert`, `up`, `down`, `left`, `right`, `home`, `end`, `pageup`,
`pagedown`, `f1` to `f24`, with `ctrl-`, `alt-` or `shift-` before it. Whoever had the key before loses it. Esc and Ctrl-C always do what they
do here, besides other keys for the same. Project settings can't change keys. `?` shows those that you have.
";

/// All keys, as a page of Markdown.
pub fn keys_reference() -> String {
    let mut page = String::from(KEYS_REFERENCE_INTRO);
    for context in KeyContext::ALL {
        page.push_str(&format!(
            "\n## {}\n\n| keys | action | what it does |\n|---|---|---|\n",
            context.name()
        ));
        for row in all_actions().filter(|row| row.context == context) {
            let keys: Vec<String> = row.keys.iter().map(|key| format!("`{key}`")).collect();
            page.push_str(&format!("| {} | `{}` | {} |\n", keys.join(" "), row.name, row.about));
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ratatui::crossterm::event::{KeyCode, KeyModifiers};

    fn made(wishes: &[(&str, &[&str])]) -> (KeyMap, Vec<(String, BindingProblem)>) {
        let owned = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
        let wishes = wishes.iter().map(|(name, keys)| ((*name).to_owned(), owned(keys))).collect();
        let (map, refused) = KeyMap::with(&wishes);
        (map, refused.into_iter().map(|refused| (refused.action, refused.why)).collect())
    }

    fn ctrl(letter: char) -> KeyEvent {
        KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL)
    }

    #[test]
    fn an_action_gets_other_keys_and_whoever_had_them_loses_them() {
        let (map, refused) = made(&[("pager", &["Ctrl-P", "f5"]), ("transpose", &[])]);
        assert_eq!(refused, []);
        assert_eq!(map.action(KeyContext::Composer, &ctrl('p')), Some(KeyAction::OpenPager));
        assert_eq!(map.action(KeyContext::Composer, &ctrl('o')), None);
        assert_eq!(map.action(KeyContext::Composer, &ctrl('t')), None);
        assert_eq!(map.action(KeyContext::List, &ctrl('p')), Some(KeyAction::ListUp), "elsewhere it stays");
        let shown: Vec<(String, &str, &str)> = map.rows(KeyContext::Composer).collect();
        assert!(shown.iter().any(|(keys, name, _)| (keys.as_str(), *name) == ("Ctrl-P, f5", "pager")));
        assert!(shown.iter().any(|(keys, name, _)| (keys.as_str(), *name) == ("up", "up")));
    }

    #[test]
    fn two_actions_can_exchange_their_keys() {
        let (map, refused) = made(&[("allow-once", &["n"]), ("reject", &["y"])]);
        assert_eq!(refused, []);
        assert_eq!((map.key(KeyAction::AllowOnce), map.key(KeyAction::Reject)), ("n", "y"));
    }

    #[test]
    fn what_can_not_be_is_told_and_the_rest_counts() {
        let key = |key: &str| key.to_owned();
        let (map, refused) = made(&[
            ("editor", &["ctrl-x"]),
            ("fly", &["f3"]),
            ("help", &["f7", "hyper-h"]),
            ("history", &["enter"]),
            ("pager", &["ctrl-x"]),
            ("steer", &["x", "esc", "f9"]),
        ]);
        let expected = [
            ("fly", BindingProblem::UnknownAction),
            ("help", BindingProblem::UnknownKey(key("hyper-h"))),
            ("history", BindingProblem::Needed { key: key("enter"), by: "send" }),
            ("pager", BindingProblem::Taken { key: key("ctrl-x"), by: "editor" }),
            ("steer", BindingProblem::Letter(key("x"))),
            ("steer", BindingProblem::Fixed(key("esc"))),
        ];
        assert_eq!(refused, expected.map(|(name, why)| (name.to_owned(), why)));
        assert_eq!((map.key(KeyAction::OpenPager), map.key(KeyAction::SearchHistory)), ("ctrl-o", "ctrl-r"));
        assert_eq!((map.key(KeyAction::Help), map.key(KeyAction::Steer)), ("f7", "f9"));
    }

    #[test]
    fn the_reference_names_every_action() {
        let page = keys_reference();
        assert!(all_actions().all(|row| page.contains(&format!("| `{}` |", row.name))));
    }

    proptest! {
        #[test]
        fn whatever_is_wished_one_can_stop_and_leave(
            wishes in prop::collection::btree_map(
                prop::sample::select(all_actions().map(|row| row.name.to_owned()).collect::<Vec<_>>()),
                prop::collection::vec("(ctrl-|alt-)?(c|esc|enter|[a-z]|f[0-9])", 0..4),
                0..12,
            )
        ) {
            let (map, _) = KeyMap::with(&wishes);
            let usual = KeyMap::default();
            for context in KeyContext::ALL {
                for event in [ctrl('c'), KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE)] {
                    prop_assert_eq!(map.action(context, &event), usual.action(context, &event));
                }
            }
            for bound in &map.rows {
                for key in &bound.keys {
                    let bound_to = map.bound.get(&(bound.row.context, KeyPress::parse(key).unwrap()));
                    prop_assert_eq!(bound_to, Some(&bound.row.action), "{} is shown for another", key);
                }
            }
        }
    }
}
