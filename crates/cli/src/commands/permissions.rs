//! `helve permissions explain`: what would come of a command, and why.

use std::io::{BufRead, Write};
use std::path::Path;

use helve_agent::{JudgeContext, RuleSet, Rulebook};
use helve_permissions::shell::{self, CommandAnalysis, ShellWord, TargetAccess};
use helve_permissions::{ConfinementLevel, PermissionPolicy, PermissionVerdict, PolicyDecision, decide};
use helve_protocol::{PermissionMode, ToolAction};
use serde_json::{Value, json};

use crate::args::PermissionsCommand;
use crate::console::{BAD, ConsoleOutput, DIM, GOOD, WARN};
use crate::failure::{CliFailure, ProgramExit};
use crate::rulebook::{SettingsRulebook, judge_context};
use crate::sandbox_policy;
use crate::setup::CliSetup;

const MAX_EXPLAINED_COMMANDS: usize = 1_000_000;

pub(crate) fn run(
    command: &PermissionsCommand,
    setup: &CliSetup,
    screen: &mut ConsoleOutput,
) -> Result<ProgramExit, CliFailure> {
    let PermissionsCommand::Explain { command, file, json, .. } = command;
    let mode = setup.config()?.settings.permissions.mode;
    let RuleSet { rules, .. } = SettingsRulebook::new(setup)?
        .read()
        .map_err(|why| CliFailure::usage("the rules can't be read", why, "`helve config show` says more."))?;
    let JudgeContext { places, level } = judge_context(setup, sandbox_policy::probe_sandbox(setup).level);
    let policy = PermissionPolicy { rules: &rules, places: &places, mode, level };
    let explain = |command: &str, screen: &mut ConsoleOutput| -> Result<(), CliFailure> {
        let explained = CommandExplanation::of(command, policy, &setup.cwd);
        if *json || file.is_some() { explained.print_json(screen) } else { explained.print(screen) }
    };
    for command in command {
        explain(command, screen)?;
    }
    if let Some(path) = file {
        let cannot = |error| {
            let what = format!("{} can't be read", path.display());
            CliFailure::usage(what, error, "Give a file with one command a line.")
        };
        let lines =
            std::io::BufReader::new(std::fs::File::open(setup.cwd.join(path)).map_err(cannot)?).lines();
        for line in lines.take(MAX_EXPLAINED_COMMANDS) {
            let line = line.map_err(cannot)?;
            if !line.trim().is_empty() {
                explain(&line, screen)?;
            }
        }
    }
    Ok(ProgramExit::Success)
}

struct CommandExplanation {
    reading: CommandAnalysis,
    decision: PolicyDecision,
    mode: PermissionMode,
    level: ConfinementLevel,
}

impl CommandExplanation {
    fn of(command: &str, policy: PermissionPolicy<'_>, folder: &Path) -> CommandExplanation {
        let (text, folder) = (command.to_owned(), folder.to_owned());
        let action = ToolAction::Run { command: text, folder, network: false, credentials: false };
        let decision = decide("shell", &[action], policy);
        CommandExplanation {
            reading: shell::analyze(command),
            decision,
            mode: policy.mode,
            level: policy.level,
        }
    }

    fn print_json(&self, screen: &mut ConsoleOutput) -> Result<(), CliFailure> {
        let CommandExplanation { reading, decision, .. } = self;
        let commands: Vec<Value> = reading
            .commands
            .iter()
            .map(|simple| json!({ "argv": simple.argv.iter().map(ShellWord::known).collect::<Vec<_>>() }))
            .collect();
        let touched = |is_wanted: fn(TargetAccess) -> bool| -> Vec<String> {
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
            "reads": touched(|access| access == TargetAccess::Read),
            "writes": touched(|access| !matches!(access, TargetAccess::Read | TargetAccess::Delete | TargetAccess::Network)),
            "deletes": touched(|access| access == TargetAccess::Delete),
            "unknown": unknown,
        });
        writeln!(screen, "{line}")?;
        Ok(())
    }

    fn print(&self, screen: &mut ConsoleOutput) -> Result<(), CliFailure> {
        let CommandExplanation { reading, decision, .. } = self;
        let style = match decision.verdict {
            PermissionVerdict::Allow => GOOD,
            PermissionVerdict::Ask => WARN,
            PermissionVerdict::Deny => BAD,
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
                TargetAccess::Delete => "deletes",
                TargetAccess::Read => "reads  ",
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
fn written(word: &ShellWord) -> String {
    match word {
        ShellWord::Known(text) | ShellWord::Pattern(text) => text.clone(),
        ShellWord::Home(rest) => format!("~{rest}"),
        ShellWord::Prefix(text) => format!("{text}…"),
        ShellWord::UnknownOne | ShellWord::UnknownMany => "…".to_owned(),
    }
}

fn sandbox(level: ConfinementLevel) -> &'static str {
    match level {
        ConfinementLevel::None => "no sandbox",
        ConfinementLevel::Landlock => "the Landlock sandbox",
        ConfinementLevel::Full => "the full sandbox",
    }
}
