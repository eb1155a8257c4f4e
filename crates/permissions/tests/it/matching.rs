//! Whether what ran was foreseen.

use helve_permissions::shell::{CommandAnalysis, ShellWord, SimpleCommand};

/// Whether a reading foresees a command that really ran, or says that it does not know.
pub(crate) fn foresees(reading: &CommandAnalysis, argv: &[String]) -> bool {
    !reading.unknown.is_empty() || reading.commands.iter().any(|command| is(command, argv))
}

fn is(command: &SimpleCommand, argv: &[String]) -> bool {
    !command.argv.is_empty() && matches(&command.argv, argv)
}

/// Word by word; a word that stands for several takes as many as it needs.
fn matches(words: &[ShellWord], argv: &[String]) -> bool {
    match words.split_first() {
        None => argv.is_empty(),
        Some((ShellWord::UnknownMany, rest)) => (0..=argv.len()).any(|taken| matches(rest, &argv[taken..])),
        Some((word @ ShellWord::Pattern(_), rest)) => {
            let most = argv.iter().take_while(|argument| word.could_be(argument)).count();
            (0..=most).any(|taken| matches(rest, &argv[taken..]))
        }
        Some((word, rest)) => {
            argv.split_first().is_some_and(|(first, left)| word.could_be(first) && matches(rest, left))
        }
    }
}
