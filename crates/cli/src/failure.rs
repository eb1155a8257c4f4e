//! What a person sees when something fails: what, why, and what to do. And how the program ends.

use std::fmt;
use std::io;

use helve_config::{KeyError, Problems, TrustError};
use helve_models::{FailureKind, RouteError};

use crate::screen::{self, BAD, DIM};
use crate::text::{self, count, one_line};

/// How the program ends. Scripts rely on these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    Fine = 0,
    Error = 1,
    /// Wrong words on the command line, or mistakes in the settings.
    Usage = 2,
    /// A key is missing or wrong.
    NoKey = 3,
    /// The limit of steps was reached.
    Steps = 10,
    /// The limit of money was reached.
    Budget = 11,
    /// The time was up.
    Time = 12,
    /// Something had to be asked, and there was nobody.
    Denied = 13,
    /// Somebody stopped it.
    Interrupted = 130,
}

#[derive(Debug)]
pub(crate) enum Failure {
    /// Told in three lines.
    Told { what: String, why: String, hint: String, exit: Exit },
    /// Every mistake in the settings.
    Settings(Problems),
    /// Nobody reads our output any more. That is no failure of ours.
    ClosedPipe,
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>, why: impl fmt::Display, hint: impl Into<String>) -> Failure {
        Failure::Told { what: what.into(), why: why.to_string(), hint: hint.into(), exit: Exit::Error }
    }

    pub(crate) fn usage(what: impl Into<String>, why: impl fmt::Display, hint: impl Into<String>) -> Failure {
        Failure::Told { what: what.into(), why: why.to_string(), hint: hint.into(), exit: Exit::Usage }
    }

    pub(crate) fn journal(what: impl Into<String>, error: &helve_journal::Error) -> Failure {
        Failure::new(what, error, error.hint())
    }

    pub(crate) fn trust(what: impl Into<String>, error: &TrustError) -> Failure {
        Failure::new(what, error, error.hint())
    }

    pub(crate) fn keys(what: impl Into<String>, error: &KeyError) -> Failure {
        Failure::new(what, error, error.hint())
    }

    pub(crate) fn route(error: &RouteError) -> Failure {
        let exit = if error.is_about_keys() { Exit::NoKey } else { Exit::Usage };
        let what = "there is no model to speak with".to_owned();
        Failure::Told { what, why: error.to_string(), hint: error.hint(), exit }
    }

    pub(crate) fn model(what: impl Into<String>, failure: &helve_models::Failure) -> Failure {
        let exit = if failure.kind == FailureKind::Auth { Exit::NoKey } else { Exit::Error };
        let resets = failure.resets.map(|time| format!(" (at {})", text::moment(time)));
        let why = format!("{failure}{}", resets.unwrap_or_default());
        Failure::Told { what: what.into(), why, hint: failure.kind.hint().to_owned(), exit }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Failure::Told { exit, .. } => *exit,
            Failure::Settings(_) => Exit::Usage,
            Failure::ClosedPipe => Exit::Fine,
        }
    }

    /// Tells it on the standard error.
    pub(crate) fn report(&self) -> Exit {
        match self {
            Failure::Told { what, why, hint, .. } => {
                screen::complain(&format!("{BAD}helve: {}{BAD:#}", one_line(what)));
                screen::complain(&format!("  {DIM}why:{DIM:#}  {}", one_line(why)));
                screen::complain(&format!("  {DIM}do:{DIM:#}   {}", one_line(hint)));
            }
            Failure::Settings(problems) => {
                let mistakes = count(problems.count(), "mistake", "mistakes");
                screen::complain(&format!("{BAD}helve: the settings have {mistakes}{BAD:#}\n"));
                for paragraph in paragraphs(problems) {
                    screen::complain(&format!("{paragraph}\n"));
                }
                screen::complain(
                    "Nothing was done. `helve reference settings` lists all settings and what they take.",
                );
            }
            Failure::ClosedPipe => {}
        }
        self.exit()
    }
}

/// One problem each. Names of files and what they say are the project's: nothing in them is obeyed by a terminal.
fn paragraphs(problems: &Problems) -> Vec<String> {
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
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Told { what, why, .. } => write!(f, "{what}: {why}"),
            Failure::Settings(problems) => write!(f, "settings: {problems}"),
            Failure::ClosedPipe => f.write_str("nobody reads the output"),
        }
    }
}

/// Writing to the screen fails when nobody reads it, or when it goes to a full disk.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            _ => Failure::new("the output can't be written", error, "Check where it goes."),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        Failure::from(io::Error::from(error))
    }
}
