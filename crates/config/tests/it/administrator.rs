//! What the administrator sets can't be loosened (R-PERM-7).

use helve_config::ConfigLayer;
use helve_protocol::PermissionMode;

use crate::setup::{Setup, entry};

#[test]
fn a_limit_is_an_upper_bound() {
    for (others, bound, effective, cut) in [
        ("max_steps = 100", "max_steps = 60", "max_steps=60", true),
        ("max_steps = 60", "max_steps = 60", "max_steps=60", false),
        ("max_steps = 20", "max_steps = 60", "max_steps=20", false),
        ("", "max_steps = 60", "max_steps=50", false),
        ("", "max_steps = 40", "max_steps=40", false),
        ("max_cost = 10", "max_cost = 9.99", "max_cost=\"9.99\"", true),
        ("max_cost = 2", "max_cost = 10", "max_cost=\"2.00\"", false),
        ("", "max_cost = 10", "max_cost=\"10.00\"", false),
        ("max_time = '2h'", "max_time = '90m'", "max_time=\"1h30m\"", true),
        ("max_time = '59s'", "max_time = '1m'", "max_time=\"59s\"", false),
    ] {
        let setup = Setup::new()
            .file(ConfigLayer::User, format!("[limits]\n{others}"))
            .file(ConfigLayer::Administrator, format!("[limits]\n{bound}"));
        let config = setup.config();
        let (name, value) = effective.split_once('=').unwrap();
        let shown = entry(&config, &format!("limits.{name}")).value.as_ref().unwrap().to_string();
        assert_eq!(shown, value, "{others} under {bound}");
        assert_eq!(config.notices().len(), usize::from(cut), "{others} under {bound}");
    }
}

#[test]
fn the_strongest_flag_is_cut_to_the_bound_with_a_notice() {
    let setup = Setup::new()
        .file(ConfigLayer::Administrator, "limits.max_cost = 5")
        .variable("HELVE_MAX_COST", "7")
        .flag("limits.max_cost", "6");
    assert_eq!(
        setup.notices(),
        ["--set limits.max_cost: limits.max_cost is cut to 5.00, the administrator's bound"]
    );
    let config = setup.config();
    let entry = entry(&config, "limits.max_cost");
    assert_eq!(setup.tidy(&entry.origin), "administrator.toml:1:8");
    let overridden: Vec<_> = entry.overridden.iter().map(|origin| origin.layer).collect();
    assert_eq!(overridden, [ConfigLayer::Environment, ConfigLayer::Flags]);
}

#[test]
fn the_mode_is_the_loosest_that_is_allowed() {
    let modes = [
        ("plan", PermissionMode::Plan),
        ("ask", PermissionMode::Ask),
        ("accept-edits", PermissionMode::AcceptEdits),
        ("auto", PermissionMode::Auto),
        ("bypass", PermissionMode::Bypass),
    ];
    for (bound_name, bound) in modes {
        for (name, mode) in modes {
            let setup = Setup::new()
                .file(ConfigLayer::Administrator, format!("permissions.mode = '{bound_name}'"))
                .flag("permissions.mode", name);
            assert_eq!(
                setup.config().settings.permissions.mode,
                mode.min(bound),
                "{name} under {bound_name}"
            );
            assert_eq!(setup.notices().len(), usize::from(mode > bound));
        }
    }
}

#[test]
fn any_other_value_is_fixed() {
    let setup = Setup::new()
        .file(ConfigLayer::Administrator, "model = 'a/a'\nui.color = 'never'")
        .file(ConfigLayer::User, "\nmodel = 'u/u'\nui.color = 'never'")
        .flag("model", "f/f");
    assert_eq!(setup.config().settings.model.as_deref(), Some("a/a"));
    assert_eq!(
        setup.notices(),
        [
            "user.toml:2:1: model is ignored: the administrator has fixed it",
            "--set model: model is ignored: the administrator has fixed it",
        ]
    );
}

#[test]
fn nobody_adds_to_a_provider_of_the_administrator() {
    let setup = Setup::new()
        .file(ConfigLayer::Administrator, "providers.corp = { wire = 'chat', base_url = 'https://corp' }")
        .file(
            ConfigLayer::User,
            "[providers.corp]\nwire = 'chat'\nheaders = { X = 'y' }\n[providers.own]\nbase_url = 'n'",
        );
    let settings = setup.config().settings;
    assert!(settings.providers["corp"].headers.is_empty());
    assert_eq!(settings.providers["corp"].base_url.as_deref(), Some("https://corp"));
    assert_eq!(settings.providers["own"].base_url.as_deref(), Some("n"));
    assert_eq!(
        setup.notices(),
        ["user.toml:3:13: providers.corp.headers.X is ignored: the administrator has fixed it",]
    );
}

#[test]
fn a_broken_file_of_the_administrator_is_an_error() {
    for content in [&b"limits.max_steps = "[..], b"\xff", b"nonsense = 1"] {
        let setup = Setup::new().file(ConfigLayer::Administrator, content);
        assert!(setup.problems().starts_with("administrator.toml:1:"));
    }
    let setup = Setup::new();
    std::fs::create_dir(setup.path("administrator.toml")).unwrap();
    assert_eq!(setup.problems(), "administrator.toml: can't be read: it is not a file");
}
