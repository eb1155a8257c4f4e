//! The reference of the vocabulary, as Markdown. It is made from the types, so that it can't differ from them.

use std::fmt::Write;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value};

use crate::{EventBody, Persistence, QueryReply, SessionCommand, SessionQuery};

const EVENTS_INTRODUCTION: &str = "\
# Events

<!-- Made by `cargo xtask docs`. Do not edit. -->

Everything that happens in a session is an event. The same events go to the screen, the browser, the editor, the
JSON lines of the headless mode, the journal and the tests. **Durable** events are stored before anybody sees
them and are never lost. **Live** events are for whoever looks just then; a slow reader may miss some.

An event is one JSON object:

| field | type | meaning |
|---|---|---|
| `seq` | number | a durable event's own position in the journal, from 1; for a live event, the position of the last durable one |
| `session` | string | the session's id |
| `turn` | string, optional | the turn's id, from a user's message to an outcome |
| `step` | string, optional | the step's id: one model request with the tools it calls |
| `agent` | string | the name of the agent that acts |
| `time` | number | milliseconds since 1970-01-01 UTC |
| `kind` | string | one of the kinds below |
| `data` | object | what the kind says it carries |

Ids are UUIDs of version 7. Money is a whole number of pico-dollars (10⁻¹² USD). A reader must skip kinds and fields
that it does not know: new ones may come in any version. Those that there are keep their meaning.
";

/// The field that tells the variants of a shared type apart.
const TYPE_TAG: &str = "type";

/// The page `docs/reference/events.md`.
pub fn events() -> String {
    let mut generator = SchemaGenerator::default();
    let mut page = EVENTS_INTRODUCTION.to_owned();
    for (title, persistence) in [("Durable events", Persistence::Durable), ("Live events", Persistence::Live)]
    {
        let _ = write!(page, "\n## {title}\n");
        for kind in EventBody::KINDS.iter().filter(|kind| kind.persistence == persistence) {
            let schema = (kind.schema)(&mut generator);
            let _ = write!(page, "\n### `{}`\n{}\n", kind.name, kind.about.trim());
            page.push_str(&fields(resolve(&schema, &generator)));
        }
    }
    page.push_str(&tagged_enum_chapter::<SessionCommand>(
        &mut generator,
        "Commands",
        "command",
        "Sent to a session, to do something.",
    ));
    page.push_str(&tagged_enum_chapter::<SessionQuery>(
        &mut generator,
        "Queries",
        "query",
        "Asked of a session; it changes nothing.",
    ));
    page.push_str(&tagged_enum_chapter::<QueryReply>(
        &mut generator,
        "Replies",
        "reply",
        "What a query gets.",
    ));
    page.push_str(&shared_types(&generator));
    page
}

/// A chapter for an enum whose variants are told apart by `tag`.
fn tagged_enum_chapter<T: JsonSchema>(
    generator: &mut SchemaGenerator,
    title: &str,
    tag: &str,
    about: &str,
) -> String {
    let schema = generator.root_schema_for::<T>();
    let mut page = format!("\n## {title}\n{about} The field `{tag}` says which.\n");
    for variant in variants(schema.as_value()) {
        let name = tag_value(variant, tag).unwrap_or("?");
        let about = description(variant).map(|about| format!("{about}\n")).unwrap_or_default();
        let _ = write!(page, "\n### `{name}`\n{about}");
        page.push_str(&fields_except(variant, tag));
    }
    page
}

/// A chapter with the types that the others speak of.
fn shared_types(generator: &SchemaGenerator) -> String {
    let mut page = "\n## Types\n".to_owned();
    let mut known = SchemaGenerator::default();
    let told: Vec<String> =
        EventBody::KINDS.iter().map(|kind| ref_name(&(kind.schema)(&mut known)).to_owned()).collect();
    let mut types: Vec<(&String, &Value)> = generator.definitions().iter().collect();
    types.sort_by_key(|(name, _)| name.as_str());
    for (name, schema) in types {
        if told.contains(name) {
            continue;
        }
        let _ = write!(page, "\n### {name}\n");
        if let Some(about) = description(schema) {
            let _ = writeln!(page, "{about}");
        }
        page.push_str(&type_layout(schema));
    }
    page
}

/// What a type looks like: its fields, its variants, or its plain JSON type.
fn type_layout(schema: &Value) -> String {
    let choices = variants(schema);
    if choices.is_empty() {
        let table = fields(schema);
        return if table.is_empty() { format!("\nJSON: {}\n", type_name(schema)) } else { table };
    }
    let is_tagged = choices.iter().any(|choice| tag_value(choice, TYPE_TAG).is_some());
    let which = if is_tagged { "\nThe field `type` says which.\n" } else { "" };
    let mut page = format!("{which}\n| value | fields | meaning |\n|---|---|---|\n");
    for choice in choices {
        let about = description(choice).unwrap_or_default();
        for name in choice_names(choice) {
            let _ = writeln!(page, "| `{name}` | {} | {about} |", inline_fields(choice));
        }
    }
    page
}

/// A plain enum's undocumented values stand together in one schema.
fn choice_names(choice: &Value) -> Vec<String> {
    let constant = choice.get("const").and_then(Value::as_str);
    match constant.or(tag_value(choice, TYPE_TAG)) {
        Some(name) => vec![name.to_owned()],
        None => strings(choice.get("enum")),
    }
}

fn inline_fields(choice: &Value) -> String {
    let flattened = choice.get("$ref").map(|_| format!("those of {}", type_name_of_ref(choice)));
    let own = properties(choice).filter(|(name, _)| *name != TYPE_TAG);
    let own = own.map(|(name, schema)| format!("`{name}`: {}", type_name(schema)));
    flattened.into_iter().chain(own).collect::<Vec<_>>().join("; ")
}

fn fields(schema: &Value) -> String {
    fields_except(schema, "")
}

fn fields_except(schema: &Value, tag: &str) -> String {
    let required = strings(schema.get("required"));
    let mut rows = String::new();
    for (name, field) in properties(schema).filter(|(name, _)| *name != tag) {
        let optional = if required.contains(name) { "" } else { ", optional" };
        let about = description(field).unwrap_or_default();
        let _ = writeln!(rows, "| `{name}` | {}{optional} | {about} |", type_name(field));
    }
    if let Some(reference) = schema.get("$ref") {
        let _ = writeln!(rows, "| | those of {} | |", link(reference.as_str().unwrap_or_default()));
    }
    if rows.is_empty() { rows } else { format!("\n| field | type | meaning |\n|---|---|---|\n{rows}") }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

fn variants(schema: &Value) -> Vec<&Value> {
    let choices = schema.get("oneOf").or_else(|| schema.get("enum").map(|_| schema));
    match choices {
        Some(Value::Array(choices)) => choices.iter().collect(),
        Some(plain) => vec![plain],
        None => Vec::new(),
    }
}

fn tag_value<'a>(variant: &'a Value, tag: &str) -> Option<&'a str> {
    variant.get("properties")?.get(tag)?.get("const")?.as_str()
}

/// A doc comment is wrapped; a table cell is one line.
fn description(schema: &Value) -> Option<String> {
    let text = schema.get("description")?.as_str()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn type_name(schema: &Value) -> String {
    if schema.get("$ref").is_some() {
        return type_name_of_ref(schema);
    }
    if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
        let names = choices.iter().map(type_name).filter(|name| name != "null");
        return names.collect::<Vec<_>>().join(" or ");
    }
    if let Some(items) = schema.get("prefixItems").and_then(Value::as_array) {
        let names: Vec<String> = items.iter().map(type_name).collect();
        return format!("list of {}", names.join(", "));
    }
    let names = match schema.get("type") {
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).filter(|name| *name != "null").collect()
        }
        Some(Value::String(name)) => vec![name.as_str()],
        _ => return "any JSON".to_owned(),
    };
    let plain = |name: &str| match name {
        "integer" => "number".to_owned(),
        "array" => format!("list of {}", schema.get("items").map(type_name).unwrap_or_default()),
        other => other.to_owned(),
    };
    names.into_iter().map(plain).collect::<Vec<_>>().join(" or ")
}

fn type_name_of_ref(schema: &Value) -> String {
    link(schema.get("$ref").and_then(Value::as_str).unwrap_or_default())
}

fn link(reference: &str) -> String {
    let name = reference.rsplit('/').next().unwrap_or_default();
    format!("[{name}](#{})", name.to_lowercase())
}

fn strings(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn resolve<'a>(schema: &'a Schema, generator: &'a SchemaGenerator) -> &'a Value {
    generator.definitions().get(ref_name(schema)).unwrap_or(schema.as_value())
}

fn ref_name(schema: &Schema) -> &str {
    let reference = schema.get("$ref").and_then(Value::as_str).unwrap_or_default();
    reference.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_leads_somewhere() {
        let page = events();
        let headings: Vec<String> =
            page.lines().filter_map(|line| Some(line.strip_prefix("### ")?.to_lowercase())).collect();
        let targets = page.split("](#").skip(1).filter_map(|rest| rest.split(')').next());
        let lost: Vec<&str> =
            targets.filter(|target| !headings.iter().any(|heading| heading == target)).collect();
        assert_eq!(lost, Vec::<&str>::new());
    }

    #[test]
    fn every_kind_has_a_chapter() {
        let page = events();
        for kind in EventBody::KINDS {
            assert!(page.contains(&format!("\n### `{}`\n", kind.name)), "{}", kind.name);
        }
    }
}
