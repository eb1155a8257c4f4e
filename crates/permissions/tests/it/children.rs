//! A child never has more than its parent, whatever its own rules say.

use helve_permissions::{
    AgentRights, ConfinementLevel, LayeredRules, PermissionVerdict, ProjectContext, Rule, RuleLayer,
};
use helve_protocol::{PermissionMode, ToolAction};
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
const LAYERS: [RuleLayer; 5] =
    [RuleLayer::Administrator, RuleLayer::Session, RuleLayer::Project, RuleLayer::User, RuleLayer::BuiltIn];
const VERDICTS: [PermissionVerdict; 3] =
    [PermissionVerdict::Allow, PermissionVerdict::Ask, PermissionVerdict::Deny];
const MODES: [PermissionMode; 5] = [
    PermissionMode::Plan,
    PermissionMode::Ask,
    PermissionMode::AcceptEdits,
    PermissionMode::Auto,
    PermissionMode::Bypass,
];

fn own() -> impl Strategy<Value = (LayeredRules, PermissionMode)> {
    let rule = (
        prop::sample::select(&LAYERS[..]),
        prop::sample::select(&TEXTS[..]),
        prop::sample::select(&VERDICTS[..]),
    );
    let rules = prop::collection::vec(rule, 0..6).prop_map(|list| {
        let mut rules = LayeredRules::default();
        for (layer, text, verdict) in list {
            rules.add(layer, "settings", Rule::parse(text, verdict).unwrap());
        }
        rules
    });
    (rules, prop::sample::select(&MODES[..]))
}

fn actions() -> Vec<(&'static str, ToolAction)> {
    let run = |command: &str| ToolAction::Run {
        command: command.to_owned(),
        folder: "/p".into(),
        network: false,
        credentials: false,
    };
    vec![
        ("shell", run("make all")),
        ("shell", run("rm -rf x && make")),
        ("shell", run("ls; $x")),
        ("read", ToolAction::Read("/p/src/a".into())),
        ("read", ToolAction::Read("/etc/passwd".into())),
        ("write", ToolAction::Write("/p/src/a".into())),
        ("edit", ToolAction::Write("/p/.git/hooks/x".into())),
        ("web_fetch", ToolAction::Fetch("https://docs.rs/x".to_owned())),
    ]
}

proptest! {
    #[test]
    fn a_child_never_has_more(
        (rules, mode) in own(),
        children in prop::collection::vec(own(), 1..4),
        level in prop::sample::select(vec![ConfinementLevel::None, ConfinementLevel::Landlock, ConfinementLevel::Full]),
    ) {
        let places = ProjectContext { home: Some("/home/me".into()), ..ProjectContext::of("/p") };
        let mut rights = AgentRights::new(rules, mode, places, level);
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
