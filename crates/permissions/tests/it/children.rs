//! A child never has more than its parent, whatever its own rules say.

use helve_permissions::{Layer, Level, Places, Rights, Rule, Rules, Verdict};
use helve_protocol::{Action, Mode};
use proptest::prelude::*;

const TEXTS: [&str; 8] = [
    "*",
    "shell",
    "shell(make:*)",
    "shell(rm:*)",
    "read",
    "read(./src)",
    "write(./src/**)",
    "web_fetch(domain:docs.rs)",
];
const LAYERS: [Layer; 5] =
    [Layer::Administrator, Layer::Session, Layer::Project, Layer::User, Layer::BuiltIn];
const VERDICTS: [Verdict; 3] = [Verdict::Allow, Verdict::Ask, Verdict::Deny];
const MODES: [Mode; 5] = [Mode::Plan, Mode::Ask, Mode::AcceptEdits, Mode::Auto, Mode::Bypass];

fn own() -> impl Strategy<Value = (Rules, Mode)> {
    let rule = (
        prop::sample::select(&LAYERS[..]),
        prop::sample::select(&TEXTS[..]),
        prop::sample::select(&VERDICTS[..]),
    );
    let rules = prop::collection::vec(rule, 0..6).prop_map(|list| {
        let mut rules = Rules::default();
        for (layer, text, verdict) in list {
            rules.add(layer, "settings", Rule::parse(text, verdict).unwrap());
        }
        rules
    });
    (rules, prop::sample::select(&MODES[..]))
}

fn actions() -> Vec<(&'static str, Action)> {
    let run = |command: &str| Action::Run {
        command: command.to_owned(),
        folder: "/p".into(),
        network: false,
        credentials: false,
    };
    vec![
        ("shell", run("make all")),
        ("shell", run("rm -rf x && make")),
        ("shell", run("ls; $x")),
        ("read", Action::Read("/p/src/a".into())),
        ("read", Action::Read("/etc/passwd".into())),
        ("write", Action::Write("/p/src/a".into())),
        ("edit", Action::Write("/p/.git/hooks/x".into())),
        ("web_fetch", Action::Fetch("https://docs.rs/x".to_owned())),
    ]
}

proptest! {
    #[test]
    fn a_child_never_has_more(
        (rules, mode) in own(),
        children in prop::collection::vec(own(), 1..4),
        level in prop::sample::select(vec![Level::None, Level::Partly, Level::Fully]),
    ) {
        let places = Places { home: Some("/home/me".into()), ..Places::of("/p") };
        let mut rights = Rights::new(rules, mode, places, level);
        for (rules, mode) in children {
            let child = rights.child(rules, mode);
            for (tool, action) in actions() {
                let (parents, childs) = (rights.decide(tool, std::slice::from_ref(&action)), child.decide(tool, std::slice::from_ref(&action)));
                prop_assert!(childs.verdict >= parents.verdict, "{tool} {action:?}: {parents:?} {childs:?}");
            }
            rights = child;
        }
    }
}
