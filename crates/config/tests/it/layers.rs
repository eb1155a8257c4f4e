//! Which value wins, and whose it is (R-BOOT-4).

use helve_config::{ColorSetting, ConfigLayer, ConfigLocation, ConfigPosition, SettingOrigin, Settings};
use helve_protocol::{PermissionVerdict, StatusBarItem};
use serde_json::json;

use crate::setup::{Setup, entry};

#[test]
fn without_any_source_the_defaults_count() {
    let config = Setup::new().config();
    assert_eq!(config.settings, Settings::default());
    assert_eq!(config.origin("limits.max_steps"), Some(&SettingOrigin::BUILT_IN));
    assert_eq!(config.settings.limits.max_steps, 50);
    assert!(config.notices().is_empty());
}

/// Sets `limits.max_steps` in one layer. The project may only lower it, so each layer's value is lower than
/// the one before.
fn set_steps(setup: Setup, layer: ConfigLayer) -> Setup {
    let value = steps_of(layer).to_string();
    match layer {
        ConfigLayer::BuiltIn => setup,
        ConfigLayer::Environment => setup.variable("HELVE_MAX_STEPS", &value),
        ConfigLayer::Flags => setup.flag("limits.max_steps", &value),
        _ => setup.file(layer, format!("[limits]\nmax_steps = {value}\n")),
    }
}

fn steps_of(layer: ConfigLayer) -> u32 {
    match layer {
        ConfigLayer::BuiltIn => 50,
        ConfigLayer::User => 40,
        ConfigLayer::Project => 30,
        ConfigLayer::Local => 20,
        ConfigLayer::Environment => 90,
        ConfigLayer::Flags => 80,
        ConfigLayer::Administrator => 10,
    }
}

#[test]
fn of_any_two_layers_the_stronger_wins() {
    let layers = [
        ConfigLayer::BuiltIn,
        ConfigLayer::User,
        ConfigLayer::Project,
        ConfigLayer::Local,
        ConfigLayer::Environment,
        ConfigLayer::Flags,
        ConfigLayer::Administrator,
    ];
    for (index, weaker) in layers.iter().enumerate() {
        for stronger in &layers[index + 1..] {
            let config = set_steps(set_steps(Setup::new(), *stronger), *weaker).config();
            let entry = entry(&config, "limits.max_steps");
            assert_eq!(config.settings.limits.max_steps, steps_of(*stronger), "{weaker} < {stronger}");
            assert_eq!(entry.origin.layer, *stronger);
            let overridden: Vec<ConfigLayer> = entry.overridden.iter().map(|origin| origin.layer).collect();
            let expected: Vec<ConfigLayer> =
                [*weaker].into_iter().filter(|layer| *layer != ConfigLayer::BuiltIn).collect();
            assert_eq!(overridden, expected);
        }
    }
}

#[test]
fn an_origin_names_the_spot() {
    let setup = Setup::new()
        .file(
            ConfigLayer::User,
            "\n[limits]\n  max_steps = 7\nmax_cost = 2.5\n[providers.p.headers]\n\"A.B\" = 'x'\n[providers.p]\nwire = 'chat'",
        )
        .variable("HELVE_MODEL", "a/b")
        .flag("ui.color", "never");
    let config = setup.config();
    let origin = |key: &str| setup.tidy(config.origin(key).unwrap());
    assert_eq!(origin("limits.max_steps"), "user.toml:3:3");
    assert_eq!(origin("limits.max_cost"), "user.toml:4:1");
    assert_eq!(origin("providers.p.headers.\"A.B\""), "user.toml:6:1");
    assert_eq!(origin("model"), "HELVE_MODEL");
    assert_eq!(origin("ui.color"), "--set ui.color");
    assert_eq!(origin("providers.p.auth"), "built-in");
    assert_eq!(config.origin("no.such.key"), None);
    let at = Some(ConfigPosition { line: 3, column: 3 });
    let place = ConfigLocation::File { path: setup.path("user.toml"), at };
    assert_eq!(config.origin("limits.max_steps"), Some(&SettingOrigin { layer: ConfigLayer::User, place }));
}

#[test]
fn the_entries_show_everything_in_order() {
    let setup = Setup::new()
        .file(
            ConfigLayer::User,
            "providers.p = { wire = 'chat', headers = { T = 'secret' } }\nlimits.max_cost = 2.5",
        )
        .file(ConfigLayer::Local, "[[permission]]\ntool = 't'\naction = 'deny'");
    let config = setup.config();
    let lines: Vec<String> = config
        .entries()
        .iter()
        .map(|entry| {
            let value = entry.value.as_ref().map_or("unset".to_owned(), |value| value.to_string());
            let secret = if entry.secret { " (secret)" } else { "" };
            format!("{} = {value} [{}]{secret}", entry.key, setup.tidy(&entry.origin))
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    catalogue = {} [built-in]
    effort = unset [built-in]
    features.background_index = true [built-in]
    features.parallel_subagents = true [built-in]
    features.parallel_tools = true [built-in]
    interface.status = ["model","agent","mode","context","cost","branch","sandbox","queue"] [built-in]
    keys = {} [built-in]
    limits.max_cost = "2.50" [user.toml:2:8]
    limits.max_retry_time = "5m" [built-in]
    limits.max_steps = 50 [built-in]
    limits.max_time = unset [built-in]
    log.level = "info" [built-in]
    model = unset [built-in]
    models.aliases = {} [built-in]
    models.fallback = [] [built-in]
    models.fast = unset [built-in]
    models.summary = unset [built-in]
    permission[0] = {"action":"deny","tool":"t"} [local.toml:1:1]
    permissions.confine = true [built-in]
    permissions.max_deletes = 100 [built-in]
    permissions.mode = "ask" [built-in]
    permissions.show = [] [built-in]
    providers.p.auth = unset [built-in]
    providers.p.base_url = unset [built-in]
    providers.p.headers.T = "secret" [user.toml:1:44] (secret)
    providers.p.key_env = unset [built-in]
    providers.p.wire = "chat" [user.toml:1:17]
    retry = "long" [built-in]
    shell.env = [] [built-in]
    shell.program = unset [built-in]
    shell.startup = unset [built-in]
    timeouts.connect = "15s" [built-in]
    timeouts.first_byte = "10m" [built-in]
    timeouts.idle = "5m" [built-in]
    timeouts.keep_alive = "10m" [built-in]
    tools.remove = [] [built-in]
    ui.color = "auto" [built-in]
    web.allow = [] [built-in]
    "#);
}

#[test]
fn lists_of_rules_add_up_with_the_strongest_layer_first() {
    let rules = |names: &[&str]| -> String {
        names.iter().map(|name| format!("[[permission]]\ntool = '{name}'\naction = 'deny'\n")).collect()
    };
    let setup = Setup::new()
        .file(ConfigLayer::User, rules(&["u1", "u2"]))
        .file(ConfigLayer::Project, rules(&["p1", "p2"]))
        .file(ConfigLayer::Local, rules(&["l1"]))
        .file(ConfigLayer::Administrator, rules(&["a1", "a2"]))
        .flag("permission", "[{ tool = 'f1', action = 'allow' }]")
        .flag("permission", "[{ tool = 'f2', action = 'ask' }]");
    let config = setup.config();
    let shown: Vec<String> = config
        .permission_rules()
        .iter()
        .map(|(layer, origin, rule)| format!("{layer} {} {}", setup.tidy(origin), rule.tool))
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @r"
    administrator administrator.toml:1:1 a1
    administrator administrator.toml:4:1 a2
    flags --set permission f1
    flags --set permission f2
    local local.toml:1:1 l1
    project project.toml:1:1 p1
    project project.toml:4:1 p2
    user user.toml:1:1 u1
    user user.toml:4:1 u2
    ");
    assert_eq!(config.settings.permission[2].action, PermissionVerdict::Allow);
    assert_eq!(setup.tidy(config.origin("permission[1]").unwrap()), "administrator.toml:4:1");
    assert_eq!(config.origin("permission[8]").unwrap().layer, ConfigLayer::User);
}

#[test]
fn tables_merge_key_by_key_and_other_lists_replace() {
    let setup = Setup::new()
        .file(
            ConfigLayer::User,
            "models.fallback = ['a/a', 'b/b']\n[providers.p]\nwire = 'chat'\nheaders = { A = '1', B = '1' }",
        )
        .flag("models.fallback", "['z/z']")
        .flag("providers.p.headers.B", "2")
        .flag("providers.p.headers", "{ C = '3' }");
    let settings = setup.config().settings;
    assert_eq!(settings.models.fallback, ["z/z"]);
    assert_eq!(json!(settings.providers["p"].headers), json!({ "A": "1", "B": "2", "C": "3" }));
}

#[test]
fn text_from_variables_and_flags_is_read_by_the_type_of_its_setting() {
    let setup = Setup::new()
        .variable("HELVE_MODEL", "true")
        .variable("HELVE_MAX_COST", "2.50")
        .variable("HELVE_MAX_TIME", "90s")
        .variable("HELVE_LOG", "debug")
        .variable("HELVE_PERMISSION_MODE", "")
        .flag("features.parallel_tools", "false")
        .flag("models.aliases.x", "[not a list")
        .flag("ui.color", "always")
        .flag("ui.color", "never");
    let config = setup.config();
    let settings = &config.settings;
    assert_eq!(settings.model.as_deref(), Some("true"));
    assert_eq!(settings.limits.max_cost.unwrap().to_string(), "2.50");
    assert_eq!(settings.limits.max_time.unwrap().to_string(), "1m30s");
    assert_eq!(settings.models.aliases["x"], "[not a list");
    assert!(!settings.features.parallel_tools);
    assert_eq!(settings.ui.color, ColorSetting::Never);
    assert_eq!(config.origin("permissions.mode").unwrap().layer, ConfigLayer::BuiltIn);
}

#[test]
fn money_is_read_from_the_text_of_the_number() {
    for (written, pico) in [
        ("\"2.50\"", 2_500_000_000_000),
        ("2.5", 2_500_000_000_000),
        ("2", 2_000_000_000_000),
        ("+2.5", 2_500_000_000_000),
        ("0x10", 16_000_000_000_000),
        ("1_000.25", 1_000_250_000_000_000),
        ("0.1", 100_000_000_000),
        ("0.000000000001", 1),
        ("9007199.254740993", 9_007_199_254_740_993_000),
    ] {
        let config = Setup::new().file(ConfigLayer::User, format!("limits.max_cost = {written}")).config();
        assert_eq!(config.settings.limits.max_cost.unwrap().0.pico_dollars(), pico, "{written}");
    }
}

#[test]
fn one_key_or_several_and_a_status_line_of_ones_own() {
    let setup = Setup::new().file(
        ConfigLayer::User,
        "[keys]\npager = 'ctrl-p'\nsend = ['ctrl-enter', 'f9']\nundo = []\n[interface]\nstatus = ['cost', 'model']",
    );
    let config = setup.config();
    let keys = |name: &str| config.settings.keys[name].0.clone();
    assert_eq!(
        (keys("pager"), keys("send")),
        (vec!["ctrl-p".to_owned()], vec!["ctrl-enter".into(), "f9".into()])
    );
    assert!(keys("undo").is_empty());
    assert_eq!(config.settings.interface.status, [StatusBarItem::Cost, StatusBarItem::Model]);
    let problem = config.problem("keys.send", "no", "do this");
    assert!(problem.place.to_string().ends_with(":3:1"), "{problem}");
}
