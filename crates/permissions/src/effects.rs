//! What a call would do, in lines that a person can judge.

use helve_protocol::ToolAction;

use crate::shell::{self, CommandTarget, ShellWord, SimpleCommand, TargetAccess};

/// More would fill the screen.
const MAX_EFFECT_LINES: usize = 12;

/// What a command would do, when it is more than one thing. The other tools say it themselves.
pub fn effects(actions: &[ToolAction]) -> Vec<String> {
    let commands = actions.iter().filter_map(|action| match action {
        ToolAction::Run { command, .. } => Some(command),
        _ => None,
    });
    let mut lines: Vec<String> = commands.flat_map(|command| of_command(command)).collect();
    let more = lines.len().saturating_sub(MAX_EFFECT_LINES);
    lines.truncate(MAX_EFFECT_LINES);
    lines.extend((more > 0).then(|| format!("and {more} more")));
    lines
}

fn of_command(command: &str) -> Vec<String> {
    let reading = shell::analyze(command);
    let own: Vec<&SimpleCommand> = reading
        .commands
        .iter()
        .filter(|simple| !simple.only_runs_others && !simple.argv.is_empty())
        .collect();
    let mut lines = Vec::new();
    if own.len() > 1 || own.len() < reading.commands.len() {
        lines.extend(own.iter().map(|simple| format!("runs {}", words(&simple.argv))));
    }
    lines.extend(reading.writes.iter().map(|target| format!("{} {}", verb(target), word(&target.path))));
    lines.extend(reading.unknown.iter().map(|unknown| format!("unknown: {}", unknown.reason)));
    lines.dedup();
    lines
}

fn verb(target: &CommandTarget) -> &'static str {
    match target.access {
        TargetAccess::Delete => "deletes",
        TargetAccess::Network => "connects to",
        TargetAccess::ChangeRights => "changes the rights of",
        TargetAccess::Read => "reads",
        TargetAccess::Write | TargetAccess::Append | TargetAccess::Create => "writes",
    }
}

fn words(argv: &[ShellWord]) -> String {
    argv.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn word(word: &ShellWord) -> String {
    match word {
        ShellWord::Known(text) | ShellWord::Pattern(text) => text.clone(),
        ShellWord::Home(rest) => format!("~{rest}"),
        ShellWord::Prefix(text) => format!("{text}…"),
        ShellWord::UnknownOne | ShellWord::UnknownMany => "…".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(command: &str) -> Vec<String> {
        effects(&[ToolAction::Run {
            command: command.to_owned(),
            folder: "/p".into(),
            network: false,
            credentials: false,
        }])
    }

    #[test]
    fn one_plain_command_says_it_all_by_itself() {
        assert!(lines("cargo test").is_empty());
        assert_eq!(lines("make > log"), ["writes log"]);
        assert_eq!(lines("a && b -x"), ["runs a", "runs b -x"]);
        assert_eq!(lines("for i in 1 2; do a $i; done"), ["runs a …"]);
        assert_eq!(lines("sudo rm -r x"), ["runs rm -r x", "deletes x"]);
        assert_eq!(lines("make; ".repeat(20).as_str()).len(), 1);
    }
}
