//! The shape of the settings: the derived JSON schema, and a typed reading of it that the rest of the crate
//! asks.

use std::sync::LazyLock;

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::{Map, Value};

use crate::setting_key::SettingKey;
use crate::settings::Settings;

/// The JSON schema of a settings file, with the `x-` facts about each setting.
pub fn schema() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    let mut schema = settings.into_generator().into_root_schema_for::<Settings>();
    NullTypeRemover.transform(&mut schema);
    schema.to_value()
}

/// TOML has no null: an optional setting is simply left out.
struct NullTypeRemover;

impl Transform for NullTypeRemover {
    fn transform(&mut self, schema: &mut Schema) {
        if let Some(object) = schema.as_object_mut() {
            drop_null_type(object);
            drop_null_choice(object);
            object.retain(|name, value| name != "default" || !(value.is_null() || value.is_object()));
        }
        transform_subschemas(self, schema);
    }
}

fn drop_null_type(schema: &mut Map<String, Value>) {
    let Some(Value::Array(types)) = schema.get_mut("type") else { return };
    types.retain(|kind| kind != "null");
    if let [only] = types.as_slice() {
        let only = only.clone();
        schema.insert("type".to_owned(), only);
    }
}

/// `anyOf: [X, null]` becomes X; what was said beside it stays.
fn drop_null_choice(schema: &mut Map<String, Value>) {
    let Some(Value::Array(options)) = schema.get("anyOf") else { return };
    let real: Vec<&Value> =
        options.iter().filter(|option| option.get("type") != Some(&"null".into())).collect();
    let [Value::Object(only)] = real.as_slice() else { return };
    let only = only.clone();
    schema.remove("anyOf");
    for (name, value) in only {
        schema.entry(name).or_insert(value);
    }
}

/// The shape of the whole settings file.
pub(crate) fn settings_shape() -> &'static SettingShape {
    static SHAPE: LazyLock<SettingShape> =
        LazyLock::new(|| SettingShape::read(&schema(), &SettingFacts::default()));
    &SHAPE
}

#[derive(Debug)]
pub(crate) struct SettingShape {
    pub(crate) kind: SettingKind,
    pub(crate) about: String,
    pub(crate) default: Option<Value>,
    pub(crate) facts: SettingFacts,
}

#[derive(Debug)]
pub(crate) enum SettingKind {
    Text {
        min_chars: usize,
    },
    Boolean,
    Integer {
        least: u64,
        most: u64,
    },
    Money,
    Span,
    Choice(Vec<SettingChoice>),
    /// Strings, or a single one.
    OneOrMoreTexts,
    List(Box<SettingShape>),
    Table(TableShape),
    Map(MapKeyKind, Box<SettingShape>),
    /// A schema that this module can't read. Nothing of this kind is ever accepted, and a test finds none.
    Opaque,
}

#[derive(Debug)]
pub(crate) struct SettingChoice {
    pub(crate) name: String,
    pub(crate) about: String,
}

/// What the keys of a map may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapKeyKind {
    Anything,
    Name,
    /// `provider/model`
    ModelName,
}

#[derive(Debug)]
pub(crate) struct TableShape {
    /// In the order of the declaration.
    pub(crate) keys: Vec<(String, SettingShape)>,
    pub(crate) required: Vec<String>,
    /// Its keys belong together: nobody adds to another's.
    pub(crate) is_whole: bool,
}

impl TableShape {
    pub(crate) fn get(&self, name: &str) -> Option<&SettingShape> {
        self.keys.iter().find(|(key, _)| key == name).map(|(_, shape)| shape)
    }

    /// Whether a table of this kind is one thing, such as a server.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole || !self.required.is_empty()
    }
}

/// What the types don't say: see `settings`.
#[derive(Clone, Debug, Default)]
pub(crate) struct SettingFacts {
    pub(crate) env: Option<String>,
    pub(crate) untrusted: UntrustedPolicy,
    pub(crate) user_only: bool,
    pub(crate) append: bool,
    pub(crate) limit: bool,
    pub(crate) secret: bool,
    pub(crate) unused: bool,
}

/// What a project may do to a setting that the user has not trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum UntrustedPolicy {
    #[default]
    Nothing,
    Tighten,
    Anything,
}

impl SettingFacts {
    fn read(schema: &Value, above: &SettingFacts) -> SettingFacts {
        let text = |name: &str| schema.get(name).and_then(Value::as_str);
        let flag = |name: &str| schema.get(name).and_then(Value::as_bool);
        let untrusted = match text("x-untrusted") {
            Some("ok") => UntrustedPolicy::Anything,
            Some("tighten") => UntrustedPolicy::Tighten,
            Some(_) => UntrustedPolicy::Nothing,
            None => above.untrusted,
        };
        SettingFacts {
            env: text("x-env").map(str::to_owned),
            untrusted,
            user_only: flag("x-user-only").unwrap_or(above.user_only),
            append: text("x-merge").map_or(above.append, |merge| merge == "append"),
            limit: flag("x-limit").unwrap_or(false),
            secret: flag("x-secret").unwrap_or(above.secret),
            unused: flag("x-unused").unwrap_or(above.unused),
        }
    }
}

impl SettingShape {
    fn read(schema: &Value, above: &SettingFacts) -> SettingShape {
        let facts = SettingFacts::read(schema, above);
        let about = schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
        SettingShape {
            kind: SettingKind::read(schema, &facts),
            about,
            default: schema.get("default").cloned(),
            facts,
        }
    }

    /// The shape of one key of this table or map.
    pub(crate) fn child(&self, name: &str) -> Option<&SettingShape> {
        match &self.kind {
            SettingKind::Table(table) => table.get(name),
            SettingKind::Map(_, entry) => Some(entry),
            _ => None,
        }
    }

    pub(crate) fn at(&self, key: &SettingKey) -> Option<&SettingShape> {
        key.parts().iter().try_fold(self, |shape, name| shape.child(name))
    }

    pub(crate) fn as_table(&self) -> Option<&TableShape> {
        if let SettingKind::Table(table) = &self.kind { Some(table) } else { None }
    }

    /// Calls `visit` for everything that has a fixed key: not for what users name themselves.
    pub(crate) fn walk<'a>(
        &'a self,
        key: &SettingKey,
        visit: &mut impl FnMut(&SettingKey, &'a SettingShape),
    ) {
        visit(key, self);
        if let SettingKind::Table(table) = &self.kind {
            for (name, shape) in &table.keys {
                shape.walk(&key.child(name), visit);
            }
        }
    }

    /// How loose a value of a limit is: a lower rank is stricter.
    pub(crate) fn rank(&self, value: &Value) -> Option<u64> {
        match &self.kind {
            SettingKind::Integer { .. } => value.as_u64(),
            SettingKind::Money => Some(value.as_str()?.parse::<crate::Dollars>().ok()?.0.pico_dollars()),
            SettingKind::Span => Some(value.as_str()?.parse::<crate::TimeSpan>().ok()?.millis()),
            SettingKind::Choice(choices) => {
                let index = choices.iter().position(|choice| Some(choice.name.as_str()) == value.as_str())?;
                u64::try_from(index).ok()
            }
            _ => None,
        }
    }
}

impl SettingKind {
    fn read(schema: &Value, facts: &SettingFacts) -> SettingKind {
        let choices = choices(schema);
        if !choices.is_empty() {
            return SettingKind::Choice(choices);
        }
        match (schema.get("format").and_then(Value::as_str), schema.get("type").and_then(Value::as_str)) {
            (Some("dollars"), _) => SettingKind::Money,
            (Some("time-span"), _) => SettingKind::Span,
            (Some("one-or-more"), _) => SettingKind::OneOrMoreTexts,
            (_, Some("string")) => {
                SettingKind::Text { min_chars: usize::from(schema.get("minLength").is_some()) }
            }
            (_, Some("boolean")) => SettingKind::Boolean,
            (Some("uint32"), Some("integer")) => {
                let bound = |name: &str| schema.get(name).and_then(Value::as_u64);
                let most = bound("maximum").unwrap_or(u32::MAX.into());
                SettingKind::Integer { least: bound("minimum").unwrap_or(0), most }
            }
            (_, Some("array")) => match schema.get("items") {
                Some(items) => SettingKind::List(Box::new(SettingShape::read(items, facts))),
                None => SettingKind::Opaque,
            },
            (_, Some("object")) => object_kind(schema, facts),
            _ => SettingKind::Opaque,
        }
    }
}

fn choices(schema: &Value) -> Vec<SettingChoice> {
    let options = schema.get("oneOf").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let choice = |option: &Value| {
        let about = option.get("description").and_then(Value::as_str).unwrap_or_default();
        let name = option.get("const").and_then(Value::as_str)?;
        Some(SettingChoice { name: name.to_owned(), about: about.to_owned() })
    };
    options.iter().filter_map(choice).collect()
}

fn object_kind(schema: &Value, facts: &SettingFacts) -> SettingKind {
    let entry = schema.get("additionalProperties").filter(|entry| entry.is_object());
    match (schema.get("properties").and_then(Value::as_object), entry) {
        (Some(properties), None) => SettingKind::Table(TableShape {
            keys: properties
                .iter()
                .map(|(name, inner)| (name.clone(), SettingShape::read(inner, facts)))
                .collect(),
            required: required(schema),
            is_whole: schema.get("x-whole").is_some(),
        }),
        (None, Some(entry)) => {
            let named_by = match schema.pointer("/propertyNames/pattern").and_then(Value::as_str) {
                None => MapKeyKind::Anything,
                Some(pattern) if pattern.contains('/') => MapKeyKind::ModelName,
                Some(_) => MapKeyKind::Name,
            };
            SettingKind::Map(named_by, Box::new(SettingShape::read(entry, facts)))
        }
        _ => SettingKind::Opaque,
    }
}

fn required(schema: &Value) -> Vec<String> {
    let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visit_all(shape: &SettingShape, visit: &mut impl FnMut(&SettingShape)) {
        visit(shape);
        match &shape.kind {
            SettingKind::Table(table) => table.keys.iter().for_each(|(_, inner)| visit_all(inner, visit)),
            SettingKind::Map(_, inner) | SettingKind::List(inner) => visit_all(inner, visit),
            _ => {}
        }
    }

    #[test]
    fn every_part_of_the_schema_is_understood_and_described() {
        let mut count = 0;
        visit_all(settings_shape(), &mut |shape| {
            assert!(!matches!(shape.kind, SettingKind::Opaque), "{shape:?}");
            count += 1;
        });
        assert!(count > 60, "only {count}");
        settings_shape().walk(&SettingKey::root(), &mut |key, shape| {
            assert!(!shape.about.is_empty(), "{key} has no description")
        });
    }

    #[test]
    fn facts_are_handed_down_and_fail_closed() {
        let at = |key: &str| settings_shape().at(&SettingKey::parse(key).unwrap()).unwrap();
        assert_eq!(at("providers.any.base_url").facts.untrusted, UntrustedPolicy::Nothing);
        assert_eq!(at("limits.max_steps").facts.untrusted, UntrustedPolicy::Tighten);
        assert_eq!(at("ui.color").facts.untrusted, UntrustedPolicy::Anything);
        assert_eq!(at("log.level").facts.untrusted, UntrustedPolicy::Nothing);
        assert!(at("keys.any").facts.user_only && at("interface.status").facts.user_only);
        assert!(!at("ui.color").facts.user_only);
        assert!(
            at("tools.remove").facts.append
                && at("permission").facts.append
                && !at("models.fallback").facts.append
        );
        assert!(at("providers.any.headers.TOKEN").facts.secret && !at("providers.any.base_url").facts.secret);
    }

    #[test]
    fn only_these_settings_are_in_use() {
        let mut used = Vec::new();
        settings_shape().walk(&SettingKey::root(), &mut |key, shape| {
            if !shape.facts.unused && !matches!(shape.kind, SettingKind::Table(_)) {
                used.push(key.to_string());
            }
        });
        assert_eq!(
            used,
            [
                "model",
                "models.fast",
                "models.summary",
                "models.fallback",
                "models.aliases",
                "effort",
                "providers",
                "catalogue",
                "retry",
                "timeouts.connect",
                "timeouts.first_byte",
                "timeouts.idle",
                "timeouts.keep_alive",
                "limits.max_steps",
                "limits.max_cost",
                "limits.max_time",
                "limits.max_retry_time",
                "tools.remove",
                "web.allow",
                "shell.program",
                "shell.startup",
                "shell.env",
                "permissions.mode",
                "permissions.max_deletes",
                "permissions.confine",
                "permissions.show",
                "permission",
                "ui.color",
                "interface.status",
                "keys",
                "log.level",
            ]
        );
    }

    #[test]
    fn the_schema_has_no_null_and_no_references() {
        let text = schema().to_string();
        assert!(!text.contains("null") && !text.contains("$ref"), "{text}");
        assert_eq!(schema()["title"], "Settings of Helve");
        assert_eq!(schema()["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert_eq!(schema()["properties"]["model"]["x-env"], "HELVE_MODEL");
    }

    #[test]
    fn limits_rank_from_strict_to_loose() {
        let rank = |key: &str, value: Value| {
            settings_shape().at(&SettingKey::parse(key).unwrap()).unwrap().rank(&value)
        };
        let modes = ["plan", "ask", "accept-edits", "auto", "bypass"]
            .map(|mode| rank("permissions.mode", mode.into()));
        assert_eq!(modes, [Some(0), Some(1), Some(2), Some(3), Some(4)]);
        assert!(rank("limits.max_cost", "2.50".into()) < rank("limits.max_cost", "10".into()));
        assert!(rank("limits.max_time", "90s".into()) < rank("limits.max_time", "2m".into()));
        assert!(rank("limits.max_steps", 9.into()) < rank("limits.max_steps", 10.into()));
        assert_eq!(rank("model", "x".into()), None);
    }
}
