//! The commands that begin with a slash.

/// One command: its word, what may stand behind it, and what it does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlashCommand {
    pub(crate) word: &'static str,
    pub(crate) takes: &'static str,
    pub(crate) about: &'static str,
    pub(crate) does: SlashAction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlashAction {
    Help,
    New,
    Model,
    Mode,
    Effort,
    Cost,
    Diff,
    Continue,
    Resume,
    Rename,
    Copy,
    Permissions,
    Doctor,
    Quit,
}

const fn slash(
    word: &'static str,
    takes: &'static str,
    about: &'static str,
    does: SlashAction,
) -> SlashCommand {
    SlashCommand { word, takes, about, does }
}

pub(crate) const SLASH_COMMANDS: [SlashCommand; 15] = [
    slash("help", "", "the keys and the commands", SlashAction::Help),
    slash("new", "", "start a new session; this one is kept", SlashAction::New),
    slash("clear", "", "same as /new", SlashAction::New),
    slash("continue", "", "resume a turn that stopped", SlashAction::Continue),
    slash("resume", "", "resume another session", SlashAction::Resume),
    slash("model", "[NAME]", "switch to another model", SlashAction::Model),
    slash("mode", "[MODE]", "how freely the agent may act", SlashAction::Mode),
    slash("effort", "[LEVEL]", "how much the model thinks", SlashAction::Effort),
    slash("diff", "", "which files the session changed, and how", SlashAction::Diff),
    slash("cost", "", "what was spent in this session", SlashAction::Cost),
    slash("rename", "TITLE", "give the session a title", SlashAction::Rename),
    slash("copy", "", "copy the last answer to the clipboard", SlashAction::Copy),
    slash("permissions", "", "the mode and the rules of your settings", SlashAction::Permissions),
    slash("doctor", "", "what works on this machine, and what does not", SlashAction::Doctor),
    slash("quit", "", "quit; `helve --continue` resumes", SlashAction::Quit),
];

/// What a line that begins with a slash means.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SlashLine<'a> {
    Command(SlashCommand, &'a str),
    /// A path, or whatever: a message like any other.
    Message,
    Unknown(&'a str),
}

pub(crate) fn parse(line: &str) -> SlashLine<'_> {
    let Some(rest) = line.strip_prefix('/') else { return SlashLine::Message };
    let (word, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    match SLASH_COMMANDS.iter().find(|command| command.word == word) {
        Some(command) => SlashLine::Command(*command, argument.trim()),
        None if word.contains('/') || word.is_empty() || line.contains('\n') => SlashLine::Message,
        None => SlashLine::Unknown(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_no_command() {
        assert!(matches!(parse("/etc/hosts is wrong"), SlashLine::Message));
        assert!(matches!(parse("/ what"), SlashLine::Message));
        assert!(matches!(parse("/fly"), SlashLine::Unknown("fly")));
        let SlashLine::Command(command, argument) = parse("/model  fast ") else { panic!("no command") };
        assert_eq!((command.does, argument), (SlashAction::Model, "fast"));
    }
}
