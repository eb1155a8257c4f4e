//! What holds for any input.

use std::collections::BTreeMap;

use helve_config::{
    ColorSetting, ConfigLayer, ConfigLocation, Dollars, FeatureSettings, InterfaceSettings, LimitSettings,
    LogLevel, LogSettings, ModelFactSettings, ModelSettings, OneOrMoreStrings, PermissionRule,
    PermissionSettings, ProviderSettings, RetrySetting, Settings, ShellSettings, TimeSpan, TimeoutSettings,
    ToolSettings, UiSettings, WebSettings,
};
use helve_protocol::{
    KeyPlacement, PermissionMode, PermissionVerdict, ReasoningEffort, StatusBarItem, WireProtocol,
};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::setup::Setup;

fn text() -> impl Strategy<Value = String> {
    ".{1,12}"
}

fn name() -> impl Strategy<Value = String> {
    "[A-Za-z0-9_-]{1,12}"
}

fn pairs() -> impl Strategy<Value = BTreeMap<String, String>> {
    btree_map(".{0,8}", ".{0,8}", 0..3)
}

fn span() -> impl Strategy<Value = TimeSpan> {
    (1..u64::MAX).prop_map(TimeSpan::from_millis)
}

fn models() -> impl Strategy<Value = ModelSettings> {
    (option::of(text()), option::of(text()), vec(".{0,8}", 0..3), btree_map(name(), ".{0,8}", 0..3))
        .prop_map(|(fast, summary, fallback, aliases)| ModelSettings { fast, summary, fallback, aliases })
}

fn provider() -> impl Strategy<Value = ProviderSettings> {
    let wires = select(vec![
        WireProtocol::Messages,
        WireProtocol::Chat,
        WireProtocol::Responses,
        WireProtocol::Gemini,
    ]);
    let auths =
        select(vec![KeyPlacement::Bearer, KeyPlacement::XApiKey, KeyPlacement::Query, KeyPlacement::None]);
    (wires, option::of(text()), option::of(text()), option::of(auths), pairs()).prop_map(
        |(wire, base_url, key_env, auth, headers)| ProviderSettings {
            wire: Some(wire),
            base_url,
            key_env,
            auth,
            headers,
        },
    )
}

fn facts() -> impl Strategy<Value = ModelFactSettings> {
    // An empty table says nothing, and is not there afterwards.
    (1..u32::MAX, option::of(1..u32::MAX), option::of(dollars()), option::of(any::<bool>())).prop_map(
        |(context, output, input_price, tools)| ModelFactSettings {
            context: Some(context),
            output,
            input_price,
            tools,
            ..ModelFactSettings::default()
        },
    )
}

fn dollars() -> impl Strategy<Value = Dollars> {
    any::<u64>().prop_map(|pico| {
        let dollars = format!("{}.{:012}", pico / 1_000_000_000_000, pico % 1_000_000_000_000);
        dollars.parse::<Dollars>().unwrap()
    })
}

fn limits() -> impl Strategy<Value = LimitSettings> {
    (1..u32::MAX, option::of(dollars()), option::of(span()), span()).prop_map(
        |(max_steps, max_cost, max_time, max_retry_time)| LimitSettings {
            max_steps,
            max_cost,
            max_time,
            max_retry_time,
        },
    )
}

fn rule() -> impl Strategy<Value = PermissionRule> {
    (
        text(),
        option::of(".{0,8}"),
        select(vec![PermissionVerdict::Allow, PermissionVerdict::Deny, PermissionVerdict::Ask]),
    )
        .prop_map(|(tool, pattern, action)| PermissionRule { tool, pattern, action })
}

fn features() -> impl Strategy<Value = FeatureSettings> {
    any::<[bool; 3]>().prop_map(|[background_index, parallel_tools, parallel_subagents]| FeatureSettings {
        background_index,
        parallel_tools,
        parallel_subagents,
    })
}

fn settings() -> impl Strategy<Value = Settings> {
    let modes =
        [PermissionMode::Plan, PermissionMode::Ask, PermissionMode::AcceptEdits, PermissionMode::Bypass];
    let model = "[A-Za-z0-9_-]{1,8}/[a-z0-9./:-]{1,12}";
    let named = (btree_map(name(), provider(), 0..3), btree_map(model, facts(), 0..3));
    let speaking = (
        option::of(select(vec![ReasoningEffort::Off, ReasoningEffort::Low, ReasoningEffort::Max])),
        select(vec![RetrySetting::Long, RetrySetting::Short]),
        (span(), span(), span(), span()),
    );
    let lists =
        (vec(rule(), 0..4), vec(name(), 0..3), vec(name(), 0..3), (option::of(name()), option::of(name())));
    let item = select(vec![StatusBarItem::Model, StatusBarItem::Cost, StatusBarItem::Queue]);
    let interface =
        (vec(item, 0..4), btree_map(name(), vec(".{0,8}", 0..3).prop_map(OneOrMoreStrings), 0..3));
    let plain = (
        interface,
        select(modes.to_vec()),
        select(vec![ColorSetting::Auto, ColorSetting::Always, ColorSetting::Never]),
        select(vec![LogLevel::Error, LogLevel::Warn, LogLevel::Info, LogLevel::Debug]),
    );
    (option::of(text()), models(), limits(), features(), named, speaking, lists, plain).prop_map(
        |(
            model,
            models,
            limits,
            features,
            (providers, catalogue),
            (effort, retry, times),
            (permission, remove, allow, (program, startup)),
            ((status, keys), mode, color, level),
        )| {
            let (connect, first_byte, idle, keep_alive) = times;
            Settings {
                model,
                models,
                effort,
                providers,
                catalogue,
                retry,
                timeouts: TimeoutSettings { connect, first_byte, idle, keep_alive },
                limits,
                tools: ToolSettings { remove },
                web: WebSettings { allow },
                shell: ShellSettings { program, startup, env: Vec::new() },
                permissions: PermissionSettings { mode, ..PermissionSettings::default() },
                permission,
                features,
                ui: UiSettings { color },
                interface: InterfaceSettings { status },
                keys,
                log: LogSettings { level },
            }
        },
    )
}

/// Bits of real files, so that random ones get past the first character.
fn almost_toml() -> impl Strategy<Value = String> {
    let bits = select(vec![
        "[limits]\n",
        "max_steps = ",
        "[[permission]]\n",
        "tool = 'x'\n",
        "action = ",
        "'allow'",
        "\n",
        "[providers.a]\n",
        "base_url = ",
        "\"",
        "'''",
        "[",
        "]",
        "{",
        "}",
        "=",
        ",",
        "1",
        "é",
        "\r\n",
        "\u{feff}",
        "#",
        "model",
        ".",
        "models",
        "true",
        "\t",
        "\u{0}",
        "[shell]\n",
        "startup = 'c'\n",
        "1h",
        "-",
    ]);
    vec(bits, 0..40).prop_map(|bits| bits.concat())
}

/// Loads the bytes as the user's file. Every problem must be somewhere in it.
fn loads_or_says_where(bytes: &[u8]) -> Result<(), TestCaseError> {
    let setup = Setup::new().file(ConfigLayer::User, bytes);
    let Err(problems) = setup.load() else { return Ok(()) };
    prop_assert!(!problems.list().is_empty());
    let text = String::from_utf8_lossy(bytes);
    // One is the mark of the encoding; a second one is a letter like others.
    let lines: Vec<&str> = text.strip_prefix('\u{feff}').unwrap_or(&text).split('\n').collect();
    for problem in problems.list() {
        let ConfigLocation::File { path, at: Some(at) } = &problem.place else {
            return Err(TestCaseError::fail(format!("no position: {problem}")));
        };
        prop_assert_eq!(path, &setup.path("user.toml"));
        let line = lines.get(at.line - 1).map(|line| line.chars().count());
        prop_assert!(line.is_some_and(|length| at.column <= length + 1), "{} outside of {:?}", problem, text);
        prop_assert!(at.column >= 1);
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_bytes_load_or_have_a_problem_inside_the_file(bytes: Vec<u8>) {
        loads_or_says_where(&bytes)?;
    }

    #[test]
    fn any_text_loads_or_has_a_problem_inside_the_file(text in almost_toml()) {
        loads_or_says_where(text.as_bytes())?;
    }

    #[test]
    fn settings_survive_being_written_and_read(settings in settings()) {
        let text = toml::to_string(&settings).unwrap();
        let setup = Setup::new().file(ConfigLayer::User, &text);
        prop_assert_eq!(setup.problems(), "", "{}", text);
        prop_assert_eq!(setup.config().settings, settings);
    }

    #[test]
    fn any_flag_is_taken_or_refused(key: String, value: String) {
        let setup = Setup::new()
            .flag(&key, &value)
            .flag("limits.max_steps", &value)
            .variable("HELVE_MAX_COST", &value);
        if let Err(problems) = setup.load() {
            let is_safe = |message: &str| !message.contains(char::is_control);
            prop_assert!(problems.list().iter().all(|problem| is_safe(&problem.message)));
        }
    }

    /// Whatever a project says, nothing of it that needs trust counts without trust.
    #[test]
    fn nothing_restricted_gets_through_without_trust(settings in settings()) {
        let setup = Setup::new().file(ConfigLayer::Project, toml::to_string(&settings).unwrap());
        let config = setup.config();
        let of_project = |key: &str| {
            let mut of_project = config.entries().iter().filter(|entry| entry.origin.layer == ConfigLayer::Project);
            of_project.any(|entry| entry.key.starts_with(key))
        };
        for key in ["model", "providers", "shell", "log", "keys", "interface"] {
            prop_assert!(!of_project(key), "{}", key);
        }
        prop_assert!(config.settings.limits.max_steps <= 50);
        prop_assert!(config.settings.permissions.mode <= PermissionMode::Ask);
        prop_assert!(config.settings.permission.iter().all(|rule| rule.action != PermissionVerdict::Allow));

        setup.trust();
        // Not even trust lets a project choose the user's keys.
        let Settings { interface, keys, .. } = Settings::default();
        prop_assert_eq!(setup.config().settings, Settings { interface, keys, ..settings });
    }
}
