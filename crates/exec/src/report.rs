//! What the keeper tells: that the command has started or could not, and how it ended.

use rustix::process::WaitStatus;

use crate::confinement::Part;

/// How a command ended, and what was left of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    pub status: Status,
    pub cause: Cause,
    /// How many of its processes were still there after the command had ended by itself, and had to be ended too.
    pub leftovers: u32,
    /// How many processes could not be ended in time: they belong to another user, hang inside the kernel, or flee.
    pub survivors: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Exited(i32),
    /// Ended by a signal, its own or ours.
    Signalled(i32),
    /// Nobody saw it end.
    Unknown,
}

/// Why it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The command was over.
    Itself,
    /// Somebody stopped it.
    Stopped,
    /// It had more processes than its limits allow.
    TooManyProcesses,
    /// The keeper was killed, or is too late. What could be found was ended.
    KeeperLost,
}

impl Ended {
    /// What can be said when the keeper can't say it.
    pub(crate) const UNSEEN: Ended =
        Ended { status: Status::Unknown, cause: Cause::KeeperLost, leftovers: 0, survivors: 0 };
}

impl From<WaitStatus> for Status {
    fn from(status: WaitStatus) -> Status {
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Status::Exited(code),
            (None, Some(signal)) => Status::Signalled(signal),
            (None, None) => Status::Unknown,
        }
    }
}

/// Why the keeper could not start a command: the step that failed, and the system's number for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) step: Step,
    pub(crate) errno: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Folder,
    Program,
    Keeper,
    Confinement(Part),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// With the process id of the command.
    Started(i32),
    Refused(Refusal),
    Ended(Ended),
}

type Numbers = [i32; 6];

impl Report {
    pub(crate) const BYTES: usize = size_of::<Numbers>();

    /// Always as long, so that a report is written and read at once.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        self.to_numbers().into_iter().flat_map(i32::to_le_bytes).collect()
    }

    /// `None` if no keeper wrote this.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Report> {
        let mut numbers: Numbers = [0; 6];
        let (chunks, rest) = bytes.as_chunks();
        if chunks.len() != numbers.len() || !rest.is_empty() {
            return None;
        }
        numbers.iter_mut().zip(chunks).for_each(|(number, chunk)| *number = i32::from_le_bytes(*chunk));
        Report::from_numbers(numbers)
    }

    fn to_numbers(self) -> Numbers {
        match self {
            Report::Started(pid) => [0, pid, 0, 0, 0, 0],
            Report::Refused(Refusal { step, errno }) => {
                let step = match step {
                    Step::Folder => 0,
                    Step::Program => 1,
                    Step::Keeper => 2,
                    Step::Confinement(part) => 3_i32.saturating_add(part.to_number()),
                };
                [1, step, errno, 0, 0, 0]
            }
            Report::Ended(ended) => {
                let (kind, number) = match ended.status {
                    Status::Exited(code) => (0, code),
                    Status::Signalled(signal) => (1, signal),
                    Status::Unknown => (2, 0),
                };
                let cause = match ended.cause {
                    Cause::Itself => 0,
                    Cause::Stopped => 1,
                    Cause::TooManyProcesses => 2,
                    Cause::KeeperLost => 3,
                };
                [2, kind, number, cause, ended.leftovers.cast_signed(), ended.survivors.cast_signed()]
            }
        }
    }

    fn from_numbers(numbers: Numbers) -> Option<Report> {
        let report = match numbers {
            [0, pid, ..] => Report::Started(pid),
            [1, step, errno, ..] => {
                let step = match step {
                    0 => Step::Folder,
                    1 => Step::Program,
                    2 => Step::Keeper,
                    other => Step::Confinement(Part::from_number(other.checked_sub(3)?)?),
                };
                Report::Refused(Refusal { step, errno })
            }
            [2, kind, number, cause, leftovers, survivors] => {
                let status = match kind {
                    0 => Status::Exited(number),
                    1 => Status::Signalled(number),
                    2 => Status::Unknown,
                    _ => return None,
                };
                let cause = match cause {
                    0 => Cause::Itself,
                    1 => Cause::Stopped,
                    2 => Cause::TooManyProcesses,
                    3 => Cause::KeeperLost,
                    _ => return None,
                };
                let (leftovers, survivors) = (leftovers.cast_unsigned(), survivors.cast_unsigned());
                Report::Ended(Ended { status, cause, leftovers, survivors })
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

    fn report() -> impl Strategy<Value = Report> {
        use prop::sample::select;
        let confined = [Part::Request, Part::Mounts, Part::Filter].map(Step::Confinement);
        let step = select([vec![Step::Folder, Step::Program, Step::Keeper], confined.to_vec()].concat());
        let status = prop_oneof![
            any::<i32>().prop_map(Status::Exited),
            any::<i32>().prop_map(Status::Signalled),
            Just(Status::Unknown)
        ];
        let cause = select(vec![Cause::Itself, Cause::Stopped, Cause::TooManyProcesses, Cause::KeeperLost]);
        prop_oneof![
            any::<i32>().prop_map(Report::Started),
            (step, any::<i32>()).prop_map(|(step, errno)| Report::Refused(Refusal { step, errno })),
            (status, cause, any::<u32>(), any::<u32>()).prop_map(|(status, cause, leftovers, survivors)| {
                Report::Ended(Ended { status, cause, leftovers, survivors })
            }),
        ]
    }

    proptest! {
        #[test]
        fn a_report_arrives_as_it_was_sent(report in report()) {
            let bytes = report.to_bytes();
            prop_assert_eq!(bytes.len(), Report::BYTES);
            prop_assert_eq!(Report::from_bytes(&bytes), Some(report));
        }

        #[test]
        fn garbage_never_panics(bytes in vec(any::<u8>(), 0..40)) {
            let _ = Report::from_bytes(&bytes);
        }
    }
}
