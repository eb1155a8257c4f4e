//! `helve permissions explain`: what would come of a command, and why.

use std::io::{BufRead, Write};
use std::path::Path;

use helve_config::{Action as Said, Config, Layer as From};
use helve_permissions::shell::{self, Access, Reading, Word};
use helve_permissions::{Action, Decision, Layer, Level, Places, Policy, Rule, Rules, Verdict, decide};
use serde_json::{Value, json};

use crate::args::Permissions;
use crate::failure::{Exit, Failure};
use crate::screen::{BAD, DIM, GOOD, Screen, WARN};
use crate::setup::{Setup, home};

const MAX_COMMANDS: usize = 1_000_000;

pub(crate) fn run(command: &Permissions, setup: &Setup, screen: &mut Screen) -> Result<Exit, Failure> {
    let Permissions::Explain { command, file, json } = command;
    let config = setup.config()?;
    let (rules, places) = (rules(config), Places { root: setup.root.clone(), home: home() });
    let policy = Policy {
        rules: &rules,
        places: &places,
        mode: config.settings.permissions.mode,
        // Commands are not confined in this version.
        level: Level::None,
        network: false,
    };
    let explain = |command: &str, screen: &mut Screen| -> Result<(), Failure> {
        let explained = Explained::of(command, policy, &setup.cwd);
        if *json || file.is_some() { explained.print_json(screen) } else { explained.print(screen) }
    };
    for command in command {
        explain(command, screen)?;
    }
    if let Some(path) = file {
        let cannot = |error| {
            let what = format!("{} can't be read", path.display());
            Failure::usage(what, error, "Give a file with one command a line.")
        };
        let lines =
            std::io::BufReader::new(std::fs::File::open(setup.cwd.join(path)).map_err(cannot)?).lines();
        for line in lines.take(MAX_COMMANDS) {
            let line = line.map_err(cannot)?;
            if !line.trim().is_empty() {
                explain(&line, screen)?;
            }
        }
    }
    Ok(Exit::Fine)
}

/// The rules of all layers, each with its place.
fn rules(config: &Config) -> Rules {
    let mut rules = Rules::default();
    for (from, origin, rule) in config.permission_rules() {
        let layer = match from {
            From::Administrator => Layer::Administrator,
            From::Flags | From::Environment => Layer::Session,
            From::Project | From::Local => Layer::Project,
            From::User => Layer::User,
            From::BuiltIn => Layer::BuiltIn,
        };
        let verdict = match rule.action {
            Said::Allow => Verdict::Allow,
            Said::Ask => Verdict::Ask,
            Said::Deny => Verdict::Deny,
        };
        rules.add(layer, origin.to_string(), Rule::new(&rule.tool, rule.pattern.as_deref(), verdict));
    }
    rules
}

struct Explained {
    reading: Reading,
    decision: Decision,
}

impl Explained {
    fn of(command: &str, policy: Policy<'_>, folder: &Path) -> Explained {
        let action = Action::Run { command: command.to_owned(), folder: folder.to_owned() };
        Explained { reading: shell::read(command), decision: decide("shell", &action, policy) }
    }

    fn print_json(&self, screen: &mut Screen) -> Result<(), Failure> {
        let Explained { reading, decision } = self;
        let commands: Vec<Value> = reading
            .commands
            .iter()
            .map(|simple| json!({ "argv": simple.argv.iter().map(Word::known).collect::<Vec<_>>() }))
            .collect();
        let writes: Vec<Option<&str>> = reading.writes.iter().map(|target| target.path.known()).collect();
        let unknown: Vec<&str> = reading.unknown.iter().map(|unknown| unknown.reason.as_str()).collect();
        let rule = decision.proof.as_ref().map(ToString::to_string);
        let line = json!({
            "decision": decision.verdict.to_string(),
            "reason": decision.reason,
            "rule": rule,
            "suggestion": decision.suggestion.as_ref().map(ToString::to_string),
            "commands": commands,
            "writes": writes,
            "unknown": unknown,
        });
        writeln!(screen, "{line}")?;
        Ok(())
    }

    fn print(&self, screen: &mut Screen) -> Result<(), Failure> {
        let Explained { reading, decision } = self;
        let style = match decision.verdict {
            Verdict::Allow => GOOD,
            Verdict::Ask => WARN,
            Verdict::Deny => BAD,
        };
        writeln!(screen, "{style}{}{style:#}: {}", decision.verdict, decision.reason)?;
        for simple in &reading.commands {
            let words: Vec<&str> = simple.argv.iter().map(|word| word.known().unwrap_or("…")).collect();
            writeln!(screen, "  runs    {}", words.join(" "))?;
        }
        for target in &reading.writes {
            let verb = if target.access == Access::Delete { "deletes" } else { "writes " };
            writeln!(screen, "  {verb} {}", target.path.known().unwrap_or("a file that can't be known"))?;
        }
        for unknown in &reading.unknown {
            writeln!(screen, "  unknown {}", unknown.reason)?;
        }
        if let Some(rule) = &decision.suggestion {
            writeln!(screen, "{DIM}  would be allowed by {rule}{DIM:#}")?;
        }
        Ok(())
    }
}
