//! An ordinary day: what a developer types, and what comes of it.

use helve_permissions::{
    ConfinementLevel, LayeredRules, PermissionPolicy, PermissionVerdict, ProjectContext, Rule, RuleLayer,
    decide,
};
use helve_protocol::{PermissionMode, ToolAction};

const DAY: &str = include_str!("day.txt");

fn places() -> ProjectContext {
    ProjectContext { home: Some("/home/me".into()), ..ProjectContext::of("/home/me/project") }
}

/// What comes of a command: `run`, `net` or `ask`, with the reason.
fn came(command: &str, network: bool) -> (&'static str, String) {
    let (mut rules, places) = (LayeredRules::default(), places());
    if network {
        rules.add(RuleLayer::Session, "asked", Rule::parse("network", PermissionVerdict::Allow).unwrap());
    }
    let policy = PermissionPolicy {
        rules: &rules,
        places: &places,
        mode: PermissionMode::Auto,
        level: ConfinementLevel::Full,
    };
    let action = ToolAction::Run {
        command: command.to_owned(),
        folder: places.root.clone(),
        network: false,
        credentials: false,
    };
    let decision = decide("shell", &[action], policy);
    let came = match decision.verdict {
        PermissionVerdict::Allow => "run",
        PermissionVerdict::Ask if decision.needs.network => "net",
        PermissionVerdict::Ask => "ask",
        PermissionVerdict::Deny => "deny",
    };
    (came, decision.reason)
}

fn day() -> Vec<(&'static str, String)> {
    let lines = DAY.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let (expected, command) = line.split_once('\t').unwrap();
            // A here-document needs its end.
            let command = if command.ends_with("<<'EOF'") {
                format!("{command}\ntext\nEOF")
            } else {
                command.to_owned()
            };
            (expected, command)
        })
        .collect()
}

#[test]
fn an_ordinary_day_needs_almost_no_answer_and_nothing_does_harm() {
    let day = day();
    assert!(day.len() >= 150, "{} commands are no day", day.len());
    let mut wrong = Vec::new();
    let mut counts = [0; 3];
    for (expected, command) in &day {
        let (came, reason) = came(command, false);
        let kinds = ["run", "net", "ask"];
        if let Some(at) = kinds.iter().position(|kind| *kind == came) {
            counts[at] += 1;
        }
        // Whoever asks for the network and is harmful besides is stopped either way.
        let is_right = came == *expected || (*expected == "ask" && came == "net");
        if !is_right {
            wrong.push(format!("{expected} → {came}: {command}  ({reason})"));
        }
    }
    let [run, net, ask] = counts;
    println!("{} commands: {run} run, {net} ask for the network, {ask} ask for another reason", day.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn with_the_network_allowed_once_the_rest_of_the_day_is_quiet() {
    let asked: Vec<String> = day()
        .into_iter()
        .filter(|(expected, _)| *expected == "net")
        .filter(|(_, command)| came(command, true).0 != "run")
        .map(|(_, command)| command)
        .collect();
    // What is done in the user's name, or outside of any confinement, is another matter, and so is what another machine says.
    let others = ["ssh", "scp", "git push", "publish", "docker", "gh ", "kubectl", "apt-get", "| sh"];
    let is_another = |command: &&String| others.iter().any(|other| command.contains(other));
    assert!(asked.iter().all(|command| is_another(&command)), "{asked:?}");
    println!("with the network allowed once, {} of them ask again", asked.len());
}
