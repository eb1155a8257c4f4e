//! How well commands can be confined here, found by doing it.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::io::Errno;

use crate::confinement::{Confinement, Layers, Level, Part};
use crate::keeper::{KEEPER_ARG, errno};
use crate::order::{Input, Limits, Order};
use crate::report::{Refusal, Report, Status, Step};

/// The first argument of a program that is started to see whether it is confined.
pub(crate) const PROBE_ARG: &str = "__probe-confinement";

/// How long a trial may take.
const PATIENCE: Duration = Duration::from_secs(10);
const SCRATCH: u64 = 1 << 20;
/// Folders that a command sees as empty.
const COVERED: [&str; 4] = ["/tmp", "/var/tmp", "/run", "/dev"];

/// The best level that works, and why no better one does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    pub level: Level,
    pub why: Vec<Shortfall>,
    /// Whether folders of the user can be changed for one project only: [`Layers`].
    pub has_layers: bool,
}

impl Probe {
    /// Commands are not confined at all.
    pub const NONE: Probe = Probe { level: Level::None, why: Vec::new(), has_layers: false };
}

/// Why a level does not work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortfall {
    pub level: Level,
    pub part: Part,
    errno: i32,
}

impl Shortfall {
    /// What can be done about it, once, by whoever owns the machine.
    pub fn remedy(&self) -> &'static str {
        self.part.remedy()
    }
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Full => "full",
            Level::Landlock => "Landlock",
            Level::None => "no",
        };
        let error = io::Error::from_raw_os_error(self.errno);
        write!(f, "{level} confinement: {} failed: {error}", self.part)
    }
}

/// Tries each level, the best one first, with a command that does nothing but look at itself. Takes some milliseconds,
/// and is true for as long as nobody changes the system's settings. `keeper` is as in [`Order::keeper`]; `private` is a
/// folder of ours, made if it is absent, on the file system where layers would be kept.
pub fn probe(keeper: &Path, private: Option<&Path>) -> Probe {
    let mut why = Vec::new();
    let full = private.map(|private| (Level::Full, Some(private)));
    for (level, private) in full.into_iter().chain([(Level::Full, None), (Level::Landlock, None)]) {
        // Without layers it is as impossible as with them, unless it was they that failed.
        if why.iter().any(|it: &Shortfall| it.level == level && it.part != Part::Layers) {
            continue;
        }
        match attempt(keeper, level, private) {
            Ok(()) => return Probe { level, why, has_layers: private.is_some() },
            Err(refusal) => {
                let part = match refusal.step {
                    Step::Confinement(part) => part,
                    Step::Folder | Step::Program | Step::Keeper => Part::System,
                };
                why.push(Shortfall { level, part, errno: refusal.errno });
            }
        }
    }
    Probe { level: Level::None, why, has_layers: false }
}

fn attempt(keeper: &Path, level: Level, private: Option<&Path>) -> Result<(), Refusal> {
    let lost = |error: io::Error| Refusal::of(Step::Keeper, &error);
    let (mut ours, theirs) = UnixStream::pair().map_err(lost)?;
    ours.set_read_timeout(Some(PATIENCE)).map_err(lost)?;
    let mut process = Command::new(keeper)
        .arg(KEEPER_ARG)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(lost)?;
    let answer = converse(&mut ours, &order(keeper, level, private));
    // Without its socket it ends, and all that is left with it.
    drop(ours);
    let _ = process.wait();
    answer.map_err(lost)?
}

fn converse(keeper: &mut UnixStream, order: &Order) -> io::Result<Result<(), Refusal>> {
    keeper.write_all(&order.to_bytes())?;
    loop {
        let mut bytes = [0; Report::BYTES];
        keeper.read_exact(&mut bytes)?;
        match Report::from_bytes(&bytes).ok_or(io::ErrorKind::InvalidData)? {
            Report::Started(_) => {}
            Report::Refused(refusal) => return Ok(Err(refusal)),
            Report::Ended(ended) if ended.status == Status::Exited(0) => return Ok(Ok(())),
            Report::Ended(_) => {
                return Ok(Err(Refusal::of(Step::Confinement(Part::Filter), &Errno::PERM.into())));
            }
        }
    }
}

fn order(keeper: &Path, level: Level, private: Option<&Path>) -> Order {
    let confinement = Confinement {
        // Where the command has a folder of its own, the program would not be found.
        writable: COVERED
            .iter()
            .any(|covered| keeper.starts_with(covered))
            .then(|| keeper.into())
            .into_iter()
            .collect(),
        layers: private.map(|private| Layers {
            folder: private.into(),
            base: private.into(),
            over: vec![private.join("over")],
            own: Vec::new(),
            is_kept: true,
        }),
        scratch: SCRATCH,
        ..Confinement::new(level)
    };
    Order {
        program: keeper.into(),
        args: vec![OsString::from(PROBE_ARG)],
        cwd: "/".into(),
        env: Vec::new(),
        input: Input::Nothing,
        terminal: None,
        limits: Limits::default(),
        confinement: Some(confinement),
        keeper: keeper.into(),
    }
}

/// Whether this process is confined, as far as it can see.
pub(crate) fn is_confined() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let is = |name: &str, value: &str| {
        let mut fields = status.lines().filter_map(|line| line.split_once(':'));
        fields.any(|(field, found)| field == name && found.trim() == value)
    };
    is("Seccomp", "2") && is("NoNewPrivs", "1") && is("CapEff", "0000000000000000")
}

/// For whoever has an error only.
impl Refusal {
    pub(crate) fn of(step: Step, error: &io::Error) -> Refusal {
        Refusal { step, errno: errno(error) }
    }
}
