//! What a person sees when something fails: what, why, and what to do. And how the program ends.

use std::fmt;
use std::io;

use helve_config::{ConfigProblems, KeyStoreError, TrustStoreError};
use helve_models::{FailureKind, RouteError};

use crate::console::{self, BAD, DIM};
use crate::text::{self, count, one_line};

/// How the program ends. Scripts rely on these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ProgramExit {
    Success = 0,
    Error = 1,
    /// Wrong words on the command line, or mistakes in the settings.
    Usage = 2,
    /// A key is missing or wrong.
    NoKey = 3,
    /// The limit of steps was reached.
    StepLimit = 10,
    /// The limit of money was reached.
    CostLimit = 11,
    /// The time was up.
    TimeLimit = 12,
    /// Something had to be asked, and there was nobody.
    Denied = 13,
    /// Somebody stopped it.
    Interrupted = 130,
}

#[derive(Debug)]
pub(crate) enum CliFailure {
    /// Told in three lines.
    Explained { what: String, why: String, hint: String, exit: ProgramExit },
    /// Every mistake in the settings.
    Settings(ConfigProblems),
    /// Nobody reads our output any more. That is no failure of ours.
    ClosedPipe,
}

impl CliFailure {
    pub(crate) fn new(
        what: impl Into<String>,
        why: impl fmt::Display,
        hint: impl Into<String>,
    ) -> CliFailure {
        CliFailure::Explained {
            what: what.into(),
            why: why.to_string(),
            hint: hint.into(),
            exit: ProgramExit::Error,
        }
    }

    pub(crate) fn usage(
        what: impl Into<String>,
        why: impl fmt::Display,
        hint: impl Into<String>,
    ) -> CliFailure {
        CliFailure::Explained {
            what: what.into(),
            why: why.to_string(),
            hint: hint.into(),
            exit: ProgramExit::Usage,
        }
    }

    pub(crate) fn journal(what: impl Into<String>, error: &helve_journal::JournalError) -> CliFailure {
        CliFailure::new(what, error, error.hint())
    }

    pub(crate) fn trust(what: impl Into<String>, error: &TrustStoreError) -> CliFailure {
        CliFailure::new(what, error, error.hint())
    }

    pub(crate) fn keys(what: impl Into<String>, error: &KeyStoreError) -> CliFailure {
        CliFailure::new(what, error, error.hint())
    }

    pub(crate) fn route(error: &RouteError) -> CliFailure {
        let exit = if error.is_about_keys() { ProgramExit::NoKey } else { ProgramExit::Usage };
        let what = "no model available".to_owned();
        CliFailure::Explained { what, why: error.to_string(), hint: error.hint(), exit }
    }

    pub(crate) fn model(what: impl Into<String>, failure: &helve_models::RequestFailure) -> CliFailure {
        let exit = if failure.kind == FailureKind::Auth { ProgramExit::NoKey } else { ProgramExit::Error };
        let resets = failure.resets.map(|time| format!(" (at {})", text::local_time(time)));
        let why = format!("{failure}{}", resets.unwrap_or_default());
        CliFailure::Explained { what: what.into(), why, hint: failure.kind.hint().to_owned(), exit }
    }

    pub(crate) fn exit(&self) -> ProgramExit {
        match self {
            CliFailure::Explained { exit, .. } => *exit,
            CliFailure::Settings(_) => ProgramExit::Usage,
            CliFailure::ClosedPipe => ProgramExit::Success,
        }
    }

    /// Tells it on the standard error.
    pub(crate) fn report(&self) -> ProgramExit {
        match self {
            CliFailure::Explained { what, why, hint, .. } => {
                console::print_to_stderr(&format!("{BAD}helve: {}{BAD:#}", one_line(what)));
                console::print_to_stderr(&format!("  {DIM}why:{DIM:#}  {}", one_line(why)));
                console::print_to_stderr(&format!("  {DIM}do:{DIM:#}   {}", one_line(hint)));
            }
            CliFailure::Settings(problems) => {
                let mistakes = count(problems.count(), "mistake", "mistakes");
                console::print_to_stderr(&format!("{BAD}helve: the settings have {mistakes}{BAD:#}\n"));
                for paragraph in paragraphs(problems) {
                    console::print_to_stderr(&format!("{paragraph}\n"));
                }
                console::print_to_stderr(
                    "Nothing was done. `helve reference settings` lists all settings and what they take.",
                );
            }
            CliFailure::ClosedPipe => {}
        }
        self.exit()
    }
}

/// One problem each. Names of files and what they say are the project's: nothing in them is obeyed by a terminal.
fn paragraphs(problems: &ConfigProblems) -> Vec<String> {
    let mut paragraphs: Vec<String> = Vec::new();
    for problem in problems.list() {
        let place = one_line(&problem.place.to_string());
        let mut paragraph = format!("{place}: {}", one_line(&problem.message));
        if let Some(hint) = &problem.hint {
            paragraph.push_str(&format!("\n  {}", one_line(hint)));
        }
        paragraphs.push(paragraph);
    }
    let more = problems.count() - problems.list().len();
    if more > 0 {
        paragraphs.push(format!("and {more} more"));
    }
    paragraphs
}

/// For the logs.
impl fmt::Display for CliFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CliFailure::Explained { what, why, .. } => write!(f, "{what}: {why}"),
            CliFailure::Settings(problems) => write!(f, "settings: {problems}"),
            CliFailure::ClosedPipe => f.write_str("nobody reads the output"),
        }
    }
}

/// Writing to the screen fails when nobody reads it, or when it goes to a full disk.
impl From<io::Error> for CliFailure {
    fn from(error: io::Error) -> CliFailure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => CliFailure::ClosedPipe,
            _ => CliFailure::new("the output can't be written", error, "Check where it goes."),
        }
    }
}

impl From<serde_json::Error> for CliFailure {
    fn from(error: serde_json::Error) -> CliFailure {
        CliFailure::from(io::Error::from(error))
    }
}
