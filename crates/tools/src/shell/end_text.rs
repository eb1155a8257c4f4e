//! How a command ended, in plain words.

use helve_exec::{CommandEndCause, CommandExitStatus, CommandOutcome, ExecError};

use crate::ToolFailure;

/// What is said of a command that could not be started.
pub(crate) fn not_run(error: &ExecError) -> ToolFailure {
    ToolFailure(format!("The command was not run: {error}. {}", error.hint()))
}

/// How it ended, without brackets.
pub(crate) fn describe_end(ended: CommandOutcome) -> String {
    match (ended.cause, ended.status) {
        (CommandEndCause::TooManyProcesses, _) => {
            "ended, because it had too many processes at once".to_owned()
        }
        (CommandEndCause::SupervisorLost, _) => {
            "ended in an unknown way: the process that watched over it is gone".to_owned()
        }
        (_, CommandExitStatus::Exited(code)) => format!("exit code {code}{}", hint(code)),
        (_, CommandExitStatus::Signalled(signal)) => {
            format!("ended by signal {signal}{}", in_brackets(name(signal)))
        }
        (_, CommandExitStatus::Unknown) => "ended in an unknown way".to_owned(),
    }
}

/// What a person and a model should know besides: processes that were left.
pub(crate) fn remarks(ended: CommandOutcome) -> String {
    let mut remarks = String::new();
    let processes = |count: u32| match count {
        1 => "1 process".to_owned(),
        count => format!("{count} processes"),
    };
    if ended.leftovers > 0 {
        let left = processes(ended.leftovers);
        remarks.push_str(&format!(
            "[{left} left running by it ended too; `background` keeps a command running]\n"
        ));
    }
    if ended.survivors > 0 {
        remarks.push_str(&format!("[{} of it could not be ended]\n", processes(ended.survivors)));
    }
    remarks
}

/// Codes that shells give a meaning, where the command itself may have said nothing.
fn hint(code: i32) -> String {
    match code {
        126 => ": it can't be executed".to_owned(),
        127 => ": a command was not found".to_owned(),
        129..=159 => match name(code - 128) {
            "" => String::new(),
            name => format!(": {name}"),
        },
        _ => String::new(),
    }
}

fn in_brackets(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" ({name})") }
}

/// What the signals mean that are the same everywhere.
fn name(signal: i32) -> &'static str {
    match signal {
        1 => "hung up",
        2 => "interrupted",
        3 => "quit",
        4 => "illegal instruction",
        5 => "trapped",
        6 => "aborted",
        8 => "arithmetic error",
        9 => "killed",
        11 => "invalid memory access",
        13 => "broken pipe",
        14 => "alarm",
        15 => "asked to end",
        24 => "processor time used up",
        25 => "file too large",
        _ => "",
    }
}

/// The text with a line end, if it is not empty.
pub(crate) fn lines(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(status: CommandExitStatus) -> String {
        describe_end(CommandOutcome { status, cause: CommandEndCause::Completed, leftovers: 0, survivors: 0 })
    }

    #[test]
    fn codes_and_signals_are_told_in_words() {
        assert_eq!(told(CommandExitStatus::Exited(0)), "exit code 0");
        assert_eq!(told(CommandExitStatus::Exited(1)), "exit code 1");
        assert_eq!(told(CommandExitStatus::Exited(127)), "exit code 127: a command was not found");
        assert_eq!(told(CommandExitStatus::Exited(137)), "exit code 137: killed");
        assert_eq!(told(CommandExitStatus::Exited(150)), "exit code 150");
        assert_eq!(told(CommandExitStatus::Signalled(9)), "ended by signal 9 (killed)");
        assert_eq!(told(CommandExitStatus::Signalled(64)), "ended by signal 64");
    }
}
