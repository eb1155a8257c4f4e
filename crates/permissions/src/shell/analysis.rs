//! What was read in a command.

use std::ops::Range;

/// Everything that a command could do by itself, as far as it can be seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandAnalysis {
    /// Every simple command that could run, builtins included, in the order in which they were found.
    pub commands: Vec<SimpleCommand>,
    /// Files that are written by redirections and by programs that are known to write. `/dev/null` and the standard
    /// streams are left out.
    pub writes: Vec<CommandTarget>,
    /// Files that are read by redirections.
    pub reads: Vec<CommandTarget>,
    /// Folders that it goes to. A relative path may mean a place below one of them.
    pub folders: Vec<ShellWord>,
    /// What is not understood. Unless this is empty, more may run than is listed.
    pub unknown: Vec<UnknownConstruct>,
}

/// One command with its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimpleCommand {
    /// The program and its arguments. Empty if there are only assignments.
    pub argv: Vec<ShellWord>,
    /// Variables that are set for it, or for the shell if there is no program. `None`: the value can't be known.
    pub assignments: Vec<(String, Option<String>)>,
    /// What runs it, outermost first. Empty if the shell does.
    pub via: Vec<CommandWrapper>,
    /// What words of it could be that can't be known for certain: those with a variable that is given a text in the same
    /// command, or with `$HOME` or `$PWD`. For whoever asks which files it may touch.
    pub could_be: Vec<ShellWord>,
    /// It does nothing but run others, which are listed themselves.
    pub only_runs_others: bool,
    /// Where it stands in the text, in bytes; for what is inside a quoted script, where the command stands that runs it.
    pub span: Range<usize>,
}

/// One word of a command, as the program gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShellWord {
    /// Exactly this.
    Known(String),
    /// The names of files that match; if none does, this text, or nothing where `nullglob` is set.
    Pattern(String),
    /// The user's home folder, followed by this.
    Home(String),
    /// One word that begins with this; how it goes on can't be known.
    Prefix(String),
    /// One word that can't be known.
    UnknownOne,
    /// Any number of words that can't be known, also none.
    UnknownMany,
}

/// How a command is run by another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandWrapper {
    pub program: String,
    pub manner: RunManner,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunManner {
    /// Here and now, as the same user.
    Plain,
    /// With the rights of another user.
    OtherUser,
    /// On another machine, in a container, or in another root folder; where, if that is known.
    Elsewhere(Option<String>),
    /// After the command has ended.
    Later,
}

/// A file that a command touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandTarget {
    pub path: ShellWord,
    pub access: TargetAccess,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetAccess {
    Read,
    /// Its content is replaced or changed.
    Write,
    Append,
    Create,
    Delete,
    /// Its rights or its owner change.
    ChangeRights,
    /// It is no file but a connection (`/dev/tcp/…`).
    Network,
}

/// Something that is not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownConstruct {
    /// Why, in words for a person: "the program's name is in a variable".
    pub reason: String,
    pub span: Range<usize>,
}

impl ShellWord {
    /// The text, if exactly one word is certain.
    pub fn known(&self) -> Option<&str> {
        match self {
            ShellWord::Known(text) => Some(text),
            _ => None,
        }
    }

    /// Whether this could be the word that is given.
    pub fn could_be(&self, word: &str) -> bool {
        match self {
            ShellWord::Known(text) => text == word,
            ShellWord::Pattern(text) => text == word || matches(text.as_bytes(), word.as_bytes()),
            ShellWord::Home(rest) => word.ends_with(rest.as_str()) && word.starts_with('/'),
            ShellWord::Prefix(text) => word.starts_with(text.as_str()),
            ShellWord::UnknownOne | ShellWord::UnknownMany => true,
        }
    }

    /// Whether it is certain that a program would not take this for an option.
    pub(super) fn is_no_option(&self) -> bool {
        match self {
            ShellWord::Known(text) | ShellWord::Prefix(text) => !text.starts_with('-'),
            ShellWord::Pattern(text) => !text.starts_with(['-', '*', '?', '[', '+', '@', '!']),
            ShellWord::Home(_) => true,
            ShellWord::UnknownOne | ShellWord::UnknownMany => false,
        }
    }
}

impl SimpleCommand {
    /// The program's name as it is written, if it is known.
    pub fn program(&self) -> Option<&str> {
        self.argv.first().and_then(ShellWord::known)
    }
}

/// Whether a pattern of the shell could match. From a set or a nested pattern on, anything could.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let plain = pattern.iter().position(|byte| matches!(byte, b'[' | b'(' | b'\\'));
    let open_ended = plain.is_some();
    let pattern = pattern.get(..plain.unwrap_or(pattern.len())).unwrap_or_default();
    let (mut at, mut next) = (0, 0);
    // Where to go on if what follows the last star does not match here.
    let mut retry = None;
    loop {
        match (pattern.get(at), text.get(next)) {
            (Some(b'*'), _) => {
                retry = Some((at + 1, next));
                at += 1;
                continue;
            }
            (None, None) => return true,
            (None, _) if open_ended => return true,
            (Some(b'?'), Some(_)) => {}
            (Some(own), Some(other)) if own == other => {}
            _ => {
                let Some((after_star, from)) = retry.filter(|(_, from)| *from < text.len()) else {
                    return false;
                };
                retry = Some((after_star, from + 1));
                (at, next) = (after_star, from + 1);
                continue;
            }
        }
        (at, next) = (at + 1, next + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_what_they_could_become() {
        let pattern = |text: &str| ShellWord::Pattern(text.to_owned());
        assert!(pattern("-delet?").could_be("-delete"));
        assert!(pattern("*").could_be("-delete"));
        assert!(pattern("-del*").could_be("-delete"));
        assert!(pattern("-delet[e]").could_be("-delete"));
        assert!(!pattern("*.rs").could_be("-delete"));
        assert!(!pattern("src*").could_be("-delete"));
    }
}
