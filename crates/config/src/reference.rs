//! The page about the settings, in Markdown, from the same schema that files are checked by.

use serde_json::Value;

use crate::setting_key::SettingKey;
use crate::shape::{SettingKind, SettingShape, TableShape, UntrustedPolicy, settings_shape};

/// A settings file that shows a little of everything.
pub const EXAMPLE_SETTINGS: &str = include_str!("example.toml");

const SETTINGS_INTRODUCTION: &str = "\
# Settings

Settings are TOML. Several sources are laid over each other, from the weakest to the strongest: the
built-in defaults, the user's file, the project's file, the user's own file in the project, environment
variables, flags. Tables merge key by key, other values replace each other, and lists marked *adds up*
collect the items of all layers, the strongest layer's first. An administrator's file stands above all:
what it sets is fixed; where a setting is marked *limit*, it is an upper bound that the others may only
lower. `helve config show` says where each value comes from.

A project's files count only in part until you trust the project: settings marked *needs trust* are
ignored, and those marked *may tighten* may be made stricter only. `helve trust` shows what a project asks
for; when that changes later, it must be trusted again. Those marked *not in a project* never count there.

Settings marked *not used yet* are read and checked, but nothing in this version acts on them.
";

/// The page about the settings.
pub fn settings_reference() -> String {
    let mut page = SettingsReference { text: SETTINGS_INTRODUCTION.to_owned() };
    if let Some(table) = settings_shape().as_table() {
        page.table("General", &SettingKey::root(), table);
    }
    page.text.push_str(&format!("\n## Example\n\n```toml\n{EXAMPLE_SETTINGS}```\n"));
    page.text
}

struct SettingsReference {
    text: String,
}

impl SettingsReference {
    /// The simple keys of a table first, then what has sections of its own.
    fn table(&mut self, title: &str, key: &SettingKey, table: &TableShape) {
        let (simple, sections): (Vec<_>, Vec<_>) = table.keys.iter().partition(|(_, shape)| is_simple(shape));
        if !simple.is_empty() {
            self.text.push_str(&format!("\n## {title}\n\n"));
            self.rows(simple.iter().map(|(name, shape)| (key.child(name).to_string(), shape)));
        }
        for (name, shape) in sections {
            self.section(&key.child(name), shape);
        }
    }

    fn section(&mut self, key: &SettingKey, shape: &SettingShape) {
        match &shape.kind {
            SettingKind::Map(_, entry) => {
                self.heading(&format!("[{key}.NAME]"), shape);
                self.rows_of(entry);
            }
            SettingKind::List(item) => {
                self.heading(&format!("[[{key}]]"), shape);
                self.rows_of(item);
            }
            SettingKind::Table(table) if table.keys.iter().all(|(_, shape)| is_list_of_tables(shape)) => {
                self.events(key, shape, table);
            }
            SettingKind::Table(table) => self.table(&format!("`[{key}]`"), key, table),
            _ => {}
        }
    }

    /// Many lists with the same items: the names first, then the items once.
    fn events(&mut self, key: &SettingKey, shape: &SettingShape, table: &TableShape) {
        self.heading(&format!("[[{key}.EVENT]]"), shape);
        self.text.push_str("| event | when |\n|---|---|\n");
        for (name, event) in &table.keys {
            self.text.push_str(&format!("| `{name}` | {} |\n", cell(&event.about)));
        }
        self.text.push('\n');
        if let Some((_, SettingShape { kind: SettingKind::List(item), .. })) = table.keys.first() {
            self.rows_of(item);
        }
    }

    fn heading(&mut self, title: &str, shape: &SettingShape) {
        self.text.push_str(&format!("\n## `{title}`\n\n{}{}\n\n", shape.about, marks(shape)));
    }

    /// The keys of a table that users name or repeat. The marks of the whole are in its heading.
    fn rows_of(&mut self, shape: &SettingShape) {
        if let Some(table) = shape.as_table() {
            let is_needed = |name: &String| table.required.contains(name);
            self.head();
            for (name, shape) in &table.keys {
                let default = if is_needed(name) { "*required*".to_owned() } else { default(shape) };
                self.row(name, shape, &default, &meaning(shape));
            }
        }
    }

    fn rows<'a>(&mut self, rows: impl Iterator<Item = (String, &'a SettingShape)>) {
        self.head();
        for (key, shape) in rows {
            self.row(&key, shape, &default(shape), &format!("{}{}", meaning(shape), marks(shape)));
        }
    }

    fn head(&mut self) {
        self.text.push_str("| key | type | default | environment | meaning |\n|---|---|---|---|---|\n");
    }

    fn row(&mut self, key: &str, shape: &SettingShape, default: &str, meaning: &str) {
        let env = shape.facts.env.as_ref().map(|name| format!("`{name}`")).unwrap_or_default();
        let kind = type_name(&shape.kind);
        self.text.push_str(&format!("| `{key}` | {kind} | {default} | {env} | {} |\n", cell(meaning)));
    }
}

fn is_list_of_tables(shape: &SettingShape) -> bool {
    matches!(shape.kind, SettingKind::List(_)) && !is_simple(shape)
}

/// Whether it fits in one row.
fn is_simple(shape: &SettingShape) -> bool {
    match &shape.kind {
        SettingKind::Table(_) => false,
        SettingKind::Map(_, inner) | SettingKind::List(inner) => inner.as_table().is_none(),
        _ => true,
    }
}

fn type_name(kind: &SettingKind) -> String {
    match kind {
        SettingKind::Text { .. } => "string".to_owned(),
        SettingKind::Boolean => "true or false".to_owned(),
        SettingKind::Integer { least: 0, .. } => "whole number".to_owned(),
        SettingKind::Integer { least, .. } => format!("whole number from {least}"),
        SettingKind::Money => "dollars, such as `\"2.50\"`".to_owned(),
        SettingKind::Span => "time span, such as `\"30m\"`".to_owned(),
        SettingKind::Choice(choices) => {
            let names: Vec<_> = choices.iter().map(|choice| format!("`\"{}\"`", choice.name)).collect();
            names.join(", ")
        }
        SettingKind::OneOrMoreTexts => "string or list of string".to_owned(),
        SettingKind::List(item) if matches!(item.kind, SettingKind::Choice(_)) => {
            format!("list of {}", type_name(&item.kind))
        }
        SettingKind::List(item) => format!("list of {}s", type_name(&item.kind)),
        SettingKind::Map(_, entry) => format!("table of {}s", type_name(&entry.kind)),
        SettingKind::Table(_) | SettingKind::Opaque => "table".to_owned(),
    }
}

fn default(shape: &SettingShape) -> String {
    match &shape.default {
        None => String::new(),
        Some(Value::Array(items)) if items.is_empty() => String::new(),
        Some(value) => format!("`{value}`"),
    }
}

/// With what each choice means, if there are any.
fn meaning(shape: &SettingShape) -> String {
    let choices = match &shape.kind {
        SettingKind::Choice(choices) => choices,
        SettingKind::List(item) if let SettingKind::Choice(choices) = &item.kind => choices,
        _ => return shape.about.clone(),
    };
    let choices: Vec<_> =
        choices.iter().map(|choice| format!("`{}`: {}", choice.name, choice.about)).collect();
    format!("{} {}.", shape.about, choices.join("; "))
}

fn marks(shape: &SettingShape) -> String {
    let trust = match shape.facts.untrusted {
        _ if shape.facts.user_only => Some("not in a project"),
        UntrustedPolicy::Nothing => Some("needs trust"),
        UntrustedPolicy::Tighten => Some("may tighten"),
        UntrustedPolicy::Anything => None,
    };
    let marks = [
        trust,
        shape.facts.limit.then_some("limit"),
        shape.facts.append.then_some("adds up"),
        shape.facts.unused.then_some("not used yet"),
    ];
    let marks: Vec<_> = marks.into_iter().flatten().collect();
    if marks.is_empty() { String::new() } else { format!(" *({})*", marks.join(", ")) }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_on_the_page() {
        let page = settings_reference();
        settings_shape().walk(&SettingKey::root(), &mut |key, shape| {
            let name = key.parts().last();
            let shown = match &shape.kind {
                SettingKind::Table(_) => return,
                SettingKind::Map(..) | SettingKind::List(_) if !is_simple(shape) => {
                    name.cloned().unwrap_or_default()
                }
                _ => format!("| `{key}` |"),
            };
            assert!(page.contains(&shown), "{shown} is missing");
        });
    }

    #[test]
    fn the_page_is_honest_about_what_is_not_used() {
        let page = settings_reference();
        let line = |start: &str| page.lines().find(|line| line.starts_with(start)).unwrap();
        assert!(page.contains("not used yet"));
        assert!(line("| `limits.max_steps` |").contains("| `50` | `HELVE_MAX_STEPS` |"));
        assert!(line("| `model` |").contains("needs trust"));
        assert!(!line("| `ui.color` |").contains("not used yet"));
        assert!(!line("| `ui.color` |").contains("needs trust"));
        assert!(line("| `permissions.mode` |").contains("may tighten, limit"));
    }

    #[test]
    fn tables_are_well_formed() {
        for line in settings_reference().lines().filter(|line| line.starts_with("| ")) {
            let bars = line.replace("\\|", "").matches('|').count();
            assert!(bars == 6 || bars == 3, "{line}");
        }
    }
}
