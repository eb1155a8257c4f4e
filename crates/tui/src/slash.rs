//! The commands that begin with a slash.

/// One command: its word, what may stand behind it, and what it does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slash {
    pub(crate) word: &'static str,
    pub(crate) takes: &'static str,
    pub(crate) about: &'static str,
    pub(crate) does: Does,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Does {
    Help,
    New,
    Model,
    Mode,
    Effort,
    Cost,
    Diff,
    GoOn,
    Resume,
    Rename,
    Copy,
    Permissions,
    Doctor,
    Quit,
}

const fn slash(word: &'static str, takes: &'static str, about: &'static str, does: Does) -> Slash {
    Slash { word, takes, about, does }
}

pub(crate) const ALL: [Slash; 15] = [
    slash("help", "", "the keys and the commands", Does::Help),
    slash("new", "", "begin another session; this one is kept", Does::New),
    slash("clear", "", "the same: begin with an empty conversation", Does::New),
    slash("continue", "", "go on with a turn that stopped", Does::GoOn),
    slash("resume", "", "go on with another session", Does::Resume),
    slash("model", "[NAME]", "let another model answer", Does::Model),
    slash("mode", "[MODE]", "how freely the agent may act", Does::Mode),
    slash("effort", "[LEVEL]", "how much the model thinks", Does::Effort),
    slash("diff", "", "which files the session changed, and how", Does::Diff),
    slash("cost", "", "what was spent in this session", Does::Cost),
    slash("rename", "TITLE", "give the session a title", Does::Rename),
    slash("copy", "", "copy the last answer to the clipboard", Does::Copy),
    slash("permissions", "", "the mode and the rules of your settings", Does::Permissions),
    slash("doctor", "", "what works on this machine, and what does not", Does::Doctor),
    slash("quit", "", "leave; `helve --continue` goes on", Does::Quit),
];

/// What a line that begins with a slash means.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Meaning<'a> {
    Command(Slash, &'a str),
    /// A path, or whatever: a message like any other.
    Message,
    Unknown(&'a str),
}

pub(crate) fn parse(line: &str) -> Meaning<'_> {
    let Some(rest) = line.strip_prefix('/') else { return Meaning::Message };
    let (word, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    match ALL.iter().find(|command| command.word == word) {
        Some(command) => Meaning::Command(*command, argument.trim()),
        None if word.contains('/') || word.is_empty() || line.contains('\n') => Meaning::Message,
        None => Meaning::Unknown(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_no_command() {
        assert!(matches!(parse("/etc/hosts is wrong"), Meaning::Message));
        assert!(matches!(parse("/ what"), Meaning::Message));
        assert!(matches!(parse("/fly"), Meaning::Unknown("fly")));
        let Meaning::Command(command, argument) = parse("/model  fast ") else { panic!("no command") };
        assert_eq!((command.does, argument), (Does::Model, "fast"));
    }
}
