//! `helve permissions explain`: what would come of a command, and why.

use std::io::{BufRead, Write};
use std::path::Path;

use helve_agent::{Book, Grounds, Rulebook};
use helve_permissions::shell::{self, Access, Reading, Word};
use helve_permissions::{Decision, Level, Policy, Verdict, decide};
use helve_protocol::{Action, Mode};
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
    mode: Mode,
    level: Level,
}

impl Explained {
    fn of(command: &str, policy: Policy<'_>, folder: &Path) -> Explained {
        let (text, folder) = (command.to_owned(), folder.to_owned());
        let action = Action::Run { command: text, folder, network: false, credentials: false };
        let decision = decide("shell", &[action], policy);
        Explained { reading: shell::read(command), decision, mode: policy.mode, level: policy.level }
    }

    fn print_json(&self, screen: &mut Screen) -> Result<(), Failure> {
        let Explained { reading, decision, .. } = self;
        let commands: Vec<Value> = reading
            .commands
            .iter()
            .map(|simple| json!({ "argv": simple.argv.iter().map(Word::known).collect::<Vec<_>>() }))
            .collect();
        let touched = |is_wanted: fn(Access) -> bool| -> Vec<String> {
            let targets =
                reading.writes.iter().chain(&reading.reads).filter(|target| is_wanted(target.access));
            targets.map(|target| written(&target.path)).collect()
        };
        let unknown: Vec<&str> = reading.unknown.iter().map(|unknown| unknown.reason.as_str()).collect();
        let rule = decision.proof.as_ref().map(ToString::to_string);
        let line = json!({
            "decision": decision.verdict.to_string(),
            "reason": decision.reason,
            "reasons": decision.reasons,
            "mode": self.mode,
            "sandbox": sandbox(self.level),
            "rule": rule,
            "suggestions": decision.suggestions.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "commands": commands,
            "reads": touched(|access| access == Access::Read),
            "writes": touched(|access| !matches!(access, Access::Read | Access::Delete | Access::Network)),
            "deletes": touched(|access| access == Access::Delete),
            "unknown": unknown,
        });
        writeln!(screen, "{line}")?;
        Ok(())
    }

    fn print(&self, screen: &mut Screen) -> Result<(), Failure> {
        let Explained { reading, decision, .. } = self;
        let style = match decision.verdict {
            Verdict::Allow => GOOD,
            Verdict::Ask => WARN,
            Verdict::Deny => BAD,
        };
        writeln!(screen, "{style}{}{style:#}: {}", decision.verdict, decision.reason)?;
        for reason in decision.reasons.iter().filter(|reason| !decision.reason.contains(reason.as_str())) {
            writeln!(screen, "  and     {reason}")?;
        }
        for simple in &reading.commands {
            let words: Vec<String> = simple.argv.iter().map(written).collect();
            writeln!(screen, "  runs    {}", words.join(" "))?;
        }
        for target in reading.writes.iter().chain(&reading.reads) {
            let verb = match target.access {
                Access::Delete => "deletes",
                Access::Read => "reads  ",
                _ => "writes ",
            };
            writeln!(screen, "  {verb} {}", written(&target.path))?;
        }
        for unknown in &reading.unknown {
            writeln!(screen, "  unknown {}", unknown.reason)?;
        }
        for rule in &decision.suggestions {
            writeln!(screen, "{DIM}  would be allowed by {rule}{DIM:#}")?;
        }
        writeln!(
            screen,
            "{DIM}  in mode {}, with {}{DIM:#}",
            json!(self.mode).as_str().unwrap_or_default(),
            sandbox(self.level)
        )?;
        Ok(())
    }
}

/// A word as a person would write it; `…` stands for what only the running shell knows.
fn written(word: &Word) -> String {
    match word {
        Word::Known(text) | Word::Pattern(text) => text.clone(),
        Word::Home(rest) => format!("~{rest}"),
        Word::Begins(text) => format!("{text}…"),
        Word::One | Word::Any => "…".to_owned(),
    }
}

fn sandbox(level: Level) -> &'static str {
    match level {
        Level::None => "no sandbox",
        Level::Partly => "the Landlock sandbox",
        Level::Fully => "the full sandbox",
    }
}
