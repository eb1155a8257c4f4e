//! What is generated for people and editors.

use helve_config::{
    ConfigLayer, EXAMPLE_SETTINGS, Settings, environment_reference, schema, settings_reference,
};

use crate::setup::Setup;

#[test]
fn the_example_on_the_page_loads() {
    let config = Setup::new().file(ConfigLayer::User, EXAMPLE_SETTINGS).config();
    assert!(config.notices().is_empty());
    assert_eq!(config.settings, toml::from_str::<Settings>(EXAMPLE_SETTINGS).unwrap());
    assert!(settings_reference().contains(EXAMPLE_SETTINGS));
}

#[test]
fn the_schema_says_what_an_editor_needs() {
    let schema = schema();
    let at = |path: &str| schema.pointer(path).cloned().unwrap_or_default();
    assert_eq!(at("/properties/limits/properties/max_steps/minimum"), 1);
    assert_eq!(at("/properties/limits/properties/max_steps/default"), 50);
    assert_eq!(at("/properties/limits/properties/max_steps/x-limit"), true);
    assert_eq!(at("/properties/permission/x-merge"), "append");
    assert_eq!(at("/properties/providers/propertyNames/pattern"), "^[A-Za-z0-9_-]{1,64}$");
    assert_eq!(at("/properties/permission/items/required/0"), "tool");
    assert_eq!(at("/properties/ui/properties/color/oneOf/1/const"), "always");
    assert_eq!(at("/additionalProperties"), false);
}

#[test]
fn the_pages_are_stable_text() {
    assert_eq!(settings_reference(), settings_reference());
    assert!(environment_reference().contains("| `HELVE_MODEL` | `model` |"));
}
