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

use helve_protocol::ConfinementLevel;
use rustix::io::Errno;

use crate::command_spec::{CommandInput, CommandLimits, CommandSpec};
use crate::confinement::{Confinement, ConfinementPart, PrivateLayers};
use crate::report::{CommandExitStatus, StartRefusal, StartStep, SupervisorReport};
use crate::supervisor::SUPERVISOR_ARG;

/// The first argument of a program that is started to see whether it is confined.
pub(crate) const PROBE_ARG: &str = "__probe-confinement";

/// How long a trial may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
const PROBE_SCRATCH_BYTES: u64 = 1 << 20;
/// Folders that a command sees as empty.
const COVERED_FOLDERS: [&str; 4] = ["/tmp", "/var/tmp", "/run", "/dev"];

/// The best level that works, and why no better one does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxProbe {
    pub level: ConfinementLevel,
    pub why: Vec<ConfinementShortfall>,
    /// Whether folders of the user can be changed for one project only: [`PrivateLayers`].
    pub has_layers: bool,
}

impl SandboxProbe {
    /// Commands are not confined at all.
    pub const NONE: SandboxProbe =
        SandboxProbe { level: ConfinementLevel::None, why: Vec::new(), has_layers: false };
}

/// Why a level does not work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfinementShortfall {
    pub level: ConfinementLevel,
    pub part: ConfinementPart,
    errno: i32,
}

impl ConfinementShortfall {
    /// What can be done about it, once, by whoever owns the machine.
    pub fn remedy(&self) -> &'static str {
        self.part.remedy()
    }
}

impl fmt::Display for ConfinementShortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            ConfinementLevel::Full => "full",
            ConfinementLevel::Landlock => "Landlock",
            ConfinementLevel::None => "no",
        };
        let error = io::Error::from_raw_os_error(self.errno);
        write!(f, "{level} confinement: {} failed: {error}", self.part)
    }
}

/// Tries each level, the best one first, with a command that does nothing but look at itself. Takes some milliseconds,
/// and is true for as long as nobody changes the system's settings. `keeper` is as in [`CommandSpec::keeper`]; `private` is a
/// folder of ours, made if it is absent, on the file system where layers would be kept.
pub fn probe(keeper: &Path, private: Option<&Path>) -> SandboxProbe {
    let mut why = Vec::new();
    let full = private.map(|private| (ConfinementLevel::Full, Some(private)));
    for (level, private) in
        full.into_iter().chain([(ConfinementLevel::Full, None), (ConfinementLevel::Landlock, None)])
    {
        // Without layers it is as impossible as with them, unless it was they that failed.
        if why.iter().any(|it: &ConfinementShortfall| it.level == level && it.part != ConfinementPart::Layers)
        {
            continue;
        }
        match try_level(keeper, level, private) {
            Ok(()) => return SandboxProbe { level, why, has_layers: private.is_some() },
            Err(refusal) => {
                let part = match refusal.step {
                    StartStep::Confinement(part) => part,
                    StartStep::Folder | StartStep::Program | StartStep::SupervisorSetup => {
                        ConfinementPart::System
                    }
                };
                why.push(ConfinementShortfall { level, part, errno: refusal.errno });
            }
        }
    }
    SandboxProbe { level: ConfinementLevel::None, why, has_layers: false }
}

fn try_level(keeper: &Path, level: ConfinementLevel, private: Option<&Path>) -> Result<(), StartRefusal> {
    let lost = |error: io::Error| StartRefusal::of(StartStep::SupervisorSetup, &error);
    let (mut ours, theirs) = UnixStream::pair().map_err(lost)?;
    ours.set_read_timeout(Some(PROBE_TIMEOUT)).map_err(lost)?;
    let mut process = Command::new(keeper)
        .arg(SUPERVISOR_ARG)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(lost)?;
    let answer = run_probe_command(&mut ours, &probe_spec(keeper, level, private));
    // Without its socket it ends, and all that is left with it.
    drop(ours);
    let _ = process.wait();
    answer.map_err(lost)?
}

fn run_probe_command(keeper: &mut UnixStream, order: &CommandSpec) -> io::Result<Result<(), StartRefusal>> {
    keeper.write_all(&order.to_bytes())?;
    loop {
        let mut bytes = [0; SupervisorReport::BYTES];
        keeper.read_exact(&mut bytes)?;
        match SupervisorReport::from_bytes(&bytes).ok_or(io::ErrorKind::InvalidData)? {
            SupervisorReport::Started(_) => {}
            SupervisorReport::Refused(refusal) => return Ok(Err(refusal)),
            SupervisorReport::Ended(ended) if ended.status == CommandExitStatus::Exited(0) => {
                return Ok(Ok(()));
            }
            SupervisorReport::Ended(_) => {
                return Ok(Err(StartRefusal::of(
                    StartStep::Confinement(ConfinementPart::Filter),
                    &Errno::PERM.into(),
                )));
            }
        }
    }
}

fn probe_spec(keeper: &Path, level: ConfinementLevel, private: Option<&Path>) -> CommandSpec {
    let confinement = Confinement {
        // Where the command has a folder of its own, the program would not be found.
        writable: COVERED_FOLDERS
            .iter()
            .any(|covered| keeper.starts_with(covered))
            .then(|| keeper.into())
            .into_iter()
            .collect(),
        layers: private.map(|private| PrivateLayers {
            folder: private.into(),
            base: private.into(),
            over: vec![private.join("over")],
            own: Vec::new(),
            is_kept: true,
        }),
        scratch: PROBE_SCRATCH_BYTES,
        ..Confinement::new(level)
    };
    CommandSpec {
        program: keeper.into(),
        args: vec![OsString::from(PROBE_ARG)],
        cwd: "/".into(),
        env: Vec::new(),
        input: CommandInput::Nothing,
        terminal: None,
        limits: CommandLimits::default(),
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
