//! `helve permissions explain`: what would come of a command, and why.

use std::io::{BufRead, Write};
use std::path::Path;

use helve_agent::{Book, Grounds, Rulebook};
use helve_permissions::shell::{self, Access, Reading, Word};
use helve_permissions::{Decision, Policy, Verdict, decide};
use helve_protocol::Action;
use serde_json::{Value, json};

use crate::args::Permissions;
use crate::confine;
use crate::failure::{Exit, Failure};
use crate::rulebook::{SettingsBook, grounds};
use crate::screen::{BAD, DIM, GOOD, Screen, WARN};
use crate::setup::Setup;

const MAX_COMMANDS: usize = 1_000_000;

pub(crate) fn run(command: &Permissions, setup: &Setup, screen: &mut Screen) -> Result<Exit, Failure> {
    let Permissions::Explain { command, file, json, .. } = command;
    let mode = setup.config()?.settings.permissions.mode;
    let Book { rules, .. } = SettingsBook::new(setup)?
        .read()
        .map_err(|why| Failure::usage("the rules can't be read", why, "`helve config show` says more."))?;
    let Grounds { places, level } = grounds(setup, confine::level(confine::found(setup).level));
    let policy = Policy { rules: &rules, places: &places, mode, level };
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

struct Explained {
    reading: Reading,
    decision: Decision,
}

impl Explained {
    fn of(command: &str, policy: Policy<'_>, folder: &Path) -> Explained {
        let (text, folder) = (command.to_owned(), folder.to_owned());
        let action = Action::Run { command: text, folder, network: false, credentials: false };
        Explained { reading: shell::read(command), decision: decide("shell", &[action], policy) }
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
            "suggestions": decision.suggestions.iter().map(ToString::to_string).collect::<Vec<_>>(),
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
        for rule in &decision.suggestions {
            writeln!(screen, "{DIM}  would be allowed by {rule}{DIM:#}")?;
        }
        Ok(())
    }
}
