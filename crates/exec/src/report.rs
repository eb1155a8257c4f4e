//! What the keeper tells: that the command has started or could not, and how it ended.

use std::io;

use rustix::io::Errno;
use rustix::process::WaitStatus;

use crate::confinement::ConfinementPart;

/// How a command ended, and what was left of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandOutcome {
    pub status: CommandExitStatus,
    pub cause: CommandEndCause,
    /// How many of its processes were still there after the command had ended by itself, and had to be ended too.
    pub leftovers: u32,
    /// How many processes could not be ended in time: they belong to another user, hang inside the kernel, or flee.
    pub survivors: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandExitStatus {
    Exited(i32),
    /// Ended by a signal, its own or ours.
    Signalled(i32),
    /// Nobody saw it end.
    Unknown,
}

/// Why it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandEndCause {
    /// The command was over.
    Completed,
    /// Somebody stopped it.
    Stopped,
    /// It had more processes than its limits allow.
    TooManyProcesses,
    /// The keeper was killed, or is too late. What could be found was ended.
    SupervisorLost,
}

impl CommandOutcome {
    /// What can be said when the keeper can't say it.
    pub(crate) const UNSEEN: CommandOutcome = CommandOutcome {
        status: CommandExitStatus::Unknown,
        cause: CommandEndCause::SupervisorLost,
        leftovers: 0,
        survivors: 0,
    };
}

impl From<WaitStatus> for CommandExitStatus {
    fn from(status: WaitStatus) -> CommandExitStatus {
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => CommandExitStatus::Exited(code),
            (None, Some(signal)) => CommandExitStatus::Signalled(signal),
            (None, None) => CommandExitStatus::Unknown,
        }
    }
}

/// Why the keeper could not start a command: the step that failed, and the system's number for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StartRefusal {
    pub(crate) step: StartStep,
    pub(crate) errno: i32,
}

impl StartRefusal {
    /// The refusal for a step that failed with this error.
    pub(crate) fn of(step: StartStep, error: &io::Error) -> StartRefusal {
        // An error without a number is that the arguments hold a zero byte.
        let errno = error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error());
        StartRefusal { step, errno }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartStep {
    Folder,
    Program,
    SupervisorSetup,
    Confinement(ConfinementPart),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SupervisorReport {
    /// With the process id of the command.
    Started(i32),
    Refused(StartRefusal),
    Ended(CommandOutcome),
}

type EncodedReport = [i32; 6];

impl SupervisorReport {
    pub(crate) const BYTES: usize = size_of::<EncodedReport>();

    /// Always as long, so that a report is written and read at once.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        self.to_numbers().into_iter().flat_map(i32::to_le_bytes).collect()
    }

    /// `None` if no keeper wrote this.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<SupervisorReport> {
        let mut numbers: EncodedReport = [0; 6];
        let (chunks, rest) = bytes.as_chunks();
        if chunks.len() != numbers.len() || !rest.is_empty() {
            return None;
        }
        numbers.iter_mut().zip(chunks).for_each(|(number, chunk)| *number = i32::from_le_bytes(*chunk));
        SupervisorReport::from_numbers(numbers)
    }

    fn to_numbers(self) -> EncodedReport {
        match self {
            SupervisorReport::Started(pid) => [0, pid, 0, 0, 0, 0],
            SupervisorReport::Refused(StartRefusal { step, errno }) => {
                let step = match step {
                    StartStep::Folder => 0,
                    StartStep::Program => 1,
                    StartStep::SupervisorSetup => 2,
                    StartStep::Confinement(part) => 3_i32.saturating_add(part.to_number()),
                };
                [1, step, errno, 0, 0, 0]
            }
            SupervisorReport::Ended(ended) => {
                let (kind, number) = match ended.status {
                    CommandExitStatus::Exited(code) => (0, code),
                    CommandExitStatus::Signalled(signal) => (1, signal),
                    CommandExitStatus::Unknown => (2, 0),
                };
                let cause = match ended.cause {
                    CommandEndCause::Completed => 0,
                    CommandEndCause::Stopped => 1,
                    CommandEndCause::TooManyProcesses => 2,
                    CommandEndCause::SupervisorLost => 3,
                };
                [2, kind, number, cause, ended.leftovers.cast_signed(), ended.survivors.cast_signed()]
            }
        }
    }

    fn from_numbers(numbers: EncodedReport) -> Option<SupervisorReport> {
        let report = match numbers {
            [0, pid, ..] => SupervisorReport::Started(pid),
            [1, step, errno, ..] => {
                let step = match step {
                    0 => StartStep::Folder,
                    1 => StartStep::Program,
                    2 => StartStep::SupervisorSetup,
                    other => StartStep::Confinement(ConfinementPart::from_number(other.checked_sub(3)?)?),
                };
                SupervisorReport::Refused(StartRefusal { step, errno })
            }
            [2, kind, number, cause, leftovers, survivors] => {
                let status = match kind {
                    0 => CommandExitStatus::Exited(number),
                    1 => CommandExitStatus::Signalled(number),
                    2 => CommandExitStatus::Unknown,
                    _ => return None,
                };
                let cause = match cause {
                    0 => CommandEndCause::Completed,
                    1 => CommandEndCause::Stopped,
                    2 => CommandEndCause::TooManyProcesses,
                    3 => CommandEndCause::SupervisorLost,
                    _ => return None,
                };
                let (leftovers, survivors) = (leftovers.cast_unsigned(), survivors.cast_unsigned());
                SupervisorReport::Ended(CommandOutcome { status, cause, leftovers, survivors })
            }
            _ => return None,
        };
        Some(report)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn report() -> impl Strategy<Value = SupervisorReport> {
        use prop::sample::select;
        let confined = [ConfinementPart::Request, ConfinementPart::Mounts, ConfinementPart::Filter]
            .map(StartStep::Confinement);
        let step = select(
            [vec![StartStep::Folder, StartStep::Program, StartStep::SupervisorSetup], confined.to_vec()]
                .concat(),
        );
        let status = prop_oneof![
            any::<i32>().prop_map(CommandExitStatus::Exited),
            any::<i32>().prop_map(CommandExitStatus::Signalled),
            Just(CommandExitStatus::Unknown)
        ];
        let cause = select(vec![
            CommandEndCause::Completed,
            CommandEndCause::Stopped,
            CommandEndCause::TooManyProcesses,
            CommandEndCause::SupervisorLost,
        ]);
        prop_oneof![
            any::<i32>().prop_map(SupervisorReport::Started),
            (step, any::<i32>())
                .prop_map(|(step, errno)| SupervisorReport::Refused(StartRefusal { step, errno })),
            (status, cause, any::<u32>(), any::<u32>()).prop_map(|(status, cause, leftovers, survivors)| {
                SupervisorReport::Ended(CommandOutcome { status, cause, leftovers, survivors })
            }),
        ]
    }

    proptest! {
        #[test]
        fn a_report_arrives_as_it_was_sent(report in report()) {
            let bytes = report.to_bytes();
            prop_assert_eq!(bytes.len(), SupervisorReport::BYTES);
            prop_assert_eq!(SupervisorReport::from_bytes(&bytes), Some(report));
        }

        #[test]
        fn garbage_never_panics(bytes in vec(any::<u8>(), 0..40)) {
            let _ = SupervisorReport::from_bytes(&bytes);
        }
    }
}
