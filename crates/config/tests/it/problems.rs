//! Whatever is wrong is said, all at once, with the place and what to do (R-BOOT-4).

use helve_config::{ConfigLayer, ConfigLocation, ConfigPosition};

use crate::setup::Setup;

fn problems(content: impl AsRef<[u8]>) -> String {
    Setup::new().file(ConfigLayer::User, content).problems()
}

#[test]
fn each_mistake_has_its_message_place_and_hint() {
    for (content, expected) in [
        ("modle = 'x'", "user.toml:1:1: unknown key `modle`\n  did you mean `model`?"),
        (
            "[limits]\nmax-stpes = 3",
            "user.toml:2:1: unknown key `limits.max-stpes`\n  did you mean `max_steps`?",
        ),
        ("max_steps = 3", "user.toml:1:1: unknown key `max_steps`\n  did you mean `limits.max_steps`?"),
        ("[ui]\nxyzzy = 1", "user.toml:2:1: unknown key `ui.xyzzy`\n  valid keys here: color"),
        (
            "[interface]\nstatus = ['model', 'brunch']",
            "user.toml:2:20: interface.status[1]: \"brunch\" is not one of model, agent, mode, context, cost, branch, \
             sandbox, queue\n  did you mean \"branch\"?",
        ),
        (
            "keys.pager = ['f5', 5]",
            "user.toml:1:14: keys.pager: expected a string or a list of strings, found something else in it",
        ),
        (
            "keys.pager = 5",
            "user.toml:1:14: keys.pager: expected a string or a list of strings, found a whole number",
        ),
        (
            "xyzzy = 1",
            "user.toml:1:1: unknown key `xyzzy`\n  `helve reference settings` lists the valid keys",
        ),
        (
            "[providers.p]\nbaseurl = 'x'",
            "user.toml:2:1: unknown key `providers.p.baseurl`\n  did you mean `base_url`?",
        ),
        (
            "[limits]\nmax_steps = 'many'",
            "user.toml:2:13: limits.max_steps: expected a whole number, found a string",
        ),
        ("limits.max_steps = 0", "user.toml:1:20: limits.max_steps: 0 is too small; the least is 1"),
        ("limits.max_steps = -0x1", "user.toml:1:20: not valid TOML: "),
        (
            "limits.max_steps = 4294967296",
            "user.toml:1:20: limits.max_steps: 4294967296 is too large; the most is 4294967295",
        ),
        (
            "limits.max_steps = 99999999999999999999999999999999999999999999",
            "user.toml:1:20: limits.max_steps: 99999999999999999999999999999999999999999999 is too large; the most \
             is 4294967295",
        ),
        (
            "limits.max_time = 30",
            "user.toml:1:19: limits.max_time: \"30\" has no unit: write a unit, such as \"30m\"",
        ),
        (
            "limits.max_time = '1m1h'",
            "user.toml:1:19: limits.max_time: \"1m1h\" is not a time span such as \"90s\", \"30m\" or \"1h30m\"",
        ),
        ("limits.max_time = '0s'", "user.toml:1:19: limits.max_time: this must be longer than zero"),
        (
            "limits.max_cost = -2",
            "user.toml:1:19: limits.max_cost: \"-2\" is not an amount in dollars such as \"2.50\"",
        ),
        (
            "limits.max_cost = 1e3",
            "user.toml:1:19: limits.max_cost: \"1e3\" is not an amount in dollars such as \"2.50\"",
        ),
        (
            "limits.max_cost = true",
            "user.toml:1:19: limits.max_cost: expected an amount in dollars, such as \"2.50\", found true",
        ),
        (
            "ui.color = 'alwyas'",
            "user.toml:1:12: ui.color: \"alwyas\" is not one of auto, always, never\n  did you mean \"always\"?",
        ),
        ("ui = 3", "user.toml:1:6: ui: expected a table, found a whole number"),
        ("model = ''", "user.toml:1:9: model: this must not be empty"),
        ("model = 2020-01-01", "user.toml:1:9: model: expected a string, found a date or time"),
        (
            "[features]\nparallel_tools = 'yes'",
            "user.toml:2:18: features.parallel_tools: expected true or false, found a string",
        ),
        (
            "[providers.'a b']\nwire = 'chat'",
            "user.toml:1:12: providers.\"a b\": this can't be a name\n  use 1 to 64 letters, digits, `_` or `-`",
        ),
        (
            "[[permission]]\ntool = 'x'",
            "user.toml:1:1: permission[0] has no `action`\n  add `action`: one of \"allow\", \"ask\", \"deny\"",
        ),
        (
            "[[permission]]\ntool = 'x'\naction = 'ask'\n[[permission]]\naction = 'deny'",
            "user.toml:4:1: permission[1] has no `tool`\n  add `tool`: a string",
        ),
        (
            "[[permission]]\ntool = 'x'\naction = 'maybe'",
            "user.toml:3:10: permission[0].action: \"maybe\" is not one of allow, ask, deny",
        ),
        (
            "models.fast = 'a/b'\nmodels.fallback = ['a', 1]",
            "user.toml:2:25: models.fallback[1]: expected a string, found a whole number",
        ),
        (
            "ui.color = \"a\\u001b\"",
            "user.toml:1:12: ui.color: \"a\\u{1b}\" is not one of auto, always, never",
        ),
        ("model = 'a'\nmodel = 'b'", "user.toml:2:1: not valid TOML: this key is here a second time"),
        ("model =", "user.toml:1:8: not valid TOML: a value is missing after `=`"),
    ] {
        let shown = problems(content);
        let is_prefix = expected.ends_with(": ") && shown.starts_with(expected);
        assert!(is_prefix || shown == expected, "{content}\n--- expected\n{expected}\n--- got\n{shown}");
    }
}

#[test]
fn five_different_mistakes_in_one_file_are_all_reported() {
    let setup = Setup::new().file(
        ConfigLayer::User,
        "modell = \"a/b\"\n\
         \n\
         [limits]\n\
         max_steps = 0\n\
         max_cost = \"two\"\n\
         max_time = 1h\n\
         \n\
         [ui]\n\
         color = \"nevre\"\n\
         \n\
         [features]\n\
         parallel_tools = 1\n",
    );
    insta::assert_snapshot!(setup.problems(), @r#"
    user.toml:1:1: unknown key `modell`
      did you mean `model`?

    user.toml:4:13: limits.max_steps: 0 is too small; the least is 1

    user.toml:5:12: limits.max_cost: "two" is not an amount in dollars such as "2.50"

    user.toml:6:12: not valid TOML: string values must be quoted, expected literal string

    user.toml:9:9: ui.color: "nevre" is not one of auto, always, never
      did you mean "never"?

    user.toml:12:18: features.parallel_tools: expected true or false, found a whole number
    "#);
}

#[test]
fn a_syntax_error_brings_no_follow_up_errors() {
    for (content, count) in [
        ("[limits\nmax_steps = 3\nmax_cost = 1\n[ui]\ncolor = 'auto'", 1),
        ("[[permission]]\ntool = 'x'\naction = \n", 1),
        ("models.fallback = ['a', 'b'\nmodels.fast = 'c'\n[ui]\ncolor = 'auto'\n[log]\nlevel = 'info'", 1),
        ("model = 'x\n[ui]\ncolor = 'auto'", 1),
        ("model\nwrong = 1\n[ui]\ncolor = 3", 3),
    ] {
        let shown = problems(content);
        assert_eq!(shown.split("\n\n").count(), count, "{content}\n---\n{shown}");
    }
}

#[test]
fn columns_count_characters_whatever_the_encoding_of_the_line() {
    let at = |content: &str| problems(content).split(": ").next().unwrap().to_owned();
    assert_eq!(at("models.aliases = { a = 'äöü€𝄞', b = 1 }"), "user.toml:1:37");
    assert_eq!(at("model = 'x'\r\n\r\nmodle = 1\r\n"), "user.toml:3:1");
    assert_eq!(at("\u{feff}modle = 1"), "user.toml:1:1");
    assert_eq!(at("\u{feff}model = 1"), "user.toml:1:9");
}

#[test]
fn a_file_that_is_no_text_is_a_problem_of_that_file() {
    assert_eq!(
        problems(b"model = 'x'\nb = '\xff'"),
        "user.toml:2:6: the file is not UTF-8 text\n  save it again as UTF-8"
    );
    assert_eq!(problems(vec![b'\n'; 1024 * 1024 + 1]), "user.toml: can't be read: it is larger than 1 MiB");
    assert_eq!(problems(vec![b'\n'; 1024 * 1024]), "");

    let setup = Setup::new();
    std::fs::create_dir(setup.path("user.toml")).unwrap();
    assert_eq!(setup.problems(), "user.toml: can't be read: it is not a file");
}

#[test]
fn variables_and_flags_have_the_same_problems_with_their_own_names() {
    let setup = Setup::new()
        .variable("HELVE_MAX_STEPS", "lots")
        .variable("HELVE_MAX_TIME", "30")
        .variable("HELVE_UNHEARD_OF", "x")
        .flag("ui.color", "alwais")
        .flag("ui.colour", "auto")
        .flag("a b", "1")
        .flag("providers.new.auth", "bearer");
    insta::assert_snapshot!(setup.problems(), @r#"
    HELVE_MAX_STEPS: limits.max_steps: expected a whole number, found "lots"

    HELVE_MAX_TIME: limits.max_time: "30" has no unit: write a unit, such as "30m"

    --set a b: "a b" is not a key
      write it with dots, such as limits.max_steps

    --set ui.color: ui.color: "alwais" is not one of auto, always, never
      did you mean "always"?

    --set ui.colour: unknown key `ui.colour`
      did you mean `color`?
    "#);
}

#[test]
fn problems_of_all_files_come_together_in_order() {
    let setup = Setup::new()
        .file(ConfigLayer::Administrator, "a = 1")
        .file(ConfigLayer::User, "b = 1\nc = 1")
        .file(ConfigLayer::Project, "d = 1")
        .file(ConfigLayer::Local, "e = 1")
        .flag("f", "1");
    let shown = setup.problems();
    let places: Vec<_> = shown.lines().filter_map(|line| line.split(": unknown").next()).collect();
    let places: Vec<_> =
        places.into_iter().filter(|line| !line.starts_with(' ') && !line.is_empty()).collect();
    assert_eq!(
        places,
        [
            "user.toml:1:1",
            "user.toml:2:1",
            "project.toml:1:1",
            "local.toml:1:1",
            "--set f",
            "administrator.toml:1:1"
        ]
    );
}

#[test]
fn a_problem_has_its_parts() {
    let setup = Setup::new().file(ConfigLayer::Local, "\n  ui.colr = 1");
    let problems = setup.load().unwrap_err();
    let problem = &problems.list()[0];
    let at = Some(ConfigPosition { line: 2, column: 6 });
    assert_eq!(problem.place, ConfigLocation::File { path: setup.path("local.toml"), at });
    assert_eq!(problem.layer, ConfigLayer::Local);
    assert_eq!(problem.key.as_deref(), Some("ui.colr"));
    assert_eq!(problem.message, "unknown key `ui.colr`");
    assert_eq!(problem.hint.as_deref(), Some("did you mean `color`?"));
}

#[test]
fn what_one_layer_lacks_another_may_give() {
    let setup = Setup::new()
        .file(ConfigLayer::User, "[providers.p]\nwire = 'chat'\n[catalogue.'p/m']\ncontext = 7")
        .flag("providers.p.base_url", "http://localhost")
        .flag("catalogue.\"p/m\".tools", "false");
    let settings = setup.config().settings;
    assert_eq!(settings.providers["p"].base_url.as_deref(), Some("http://localhost"));
    let facts = &settings.catalogue["p/m"];
    assert_eq!((facts.context, facts.tools), (Some(7), Some(false)));
}

#[test]
fn a_hostile_file_is_answered_in_good_time() {
    let deep = format!("{}x = 1", "a.".repeat(300_000));
    let nested = format!("model = {}", "[".repeat(500_000));
    let one_line = format!("providers = {{ {} }}", "\"a b\" = 1, ".repeat(50_000));
    let many_tables = "[[a]]\nb\n".repeat(50_000);
    let long_key = format!("{} = 1", "k".repeat(900_000));
    for content in [deep, nested, one_line, many_tables, long_key] {
        let shown = problems(&content);
        assert!(!shown.is_empty() && shown.len() < 200_000, "{}", shown.len());
    }
}
