//! What Landlock lets a command do with files. At the full level, mounts say the same already, and this is a second
//! wall; at the lower level it is the only one.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use helve_protocol::ConfinementLevel;
use landlock::{
    ABI, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::io::Errno;
use rustix::stdio::stdout;
use rustix::termios::ttyname;

use super::view::{PlaceAccess, SandboxView};
use crate::confinement::{Confinement, NetworkAccess};

/// The newest rules that we know well. What the kernel lacks of them is left out, down to the oldest that we can do
/// with: before, any file could be emptied.
const NEWEST_LANDLOCK_ABI: ABI = ABI::V6;
const OLDEST_LANDLOCK_ABI: ABI = ABI::V3;

/// Devices that do nobody harm. The terminal that `/dev/tty` means is the command's own, if it has one.
const HARMLESS_DEVICES: [&str; 7] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx"];

/// How many paths can be told apart: each is an open file and a rule.
const MAX_LANDLOCK_RULES: usize = 10_000;

/// Puts this process under the rules, for good.
pub(super) fn apply(confinement: &Confinement) -> io::Result<()> {
    rules(confinement).map_err(|error| io::Error::other(error).into_errno())
}

trait IntoErrno {
    fn into_errno(self) -> io::Error;
}

impl IntoErrno for io::Error {
    /// The system's own number, wherever in the chain of causes it stands: nothing else is told to Helve.
    fn into_errno(self) -> io::Error {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = self.get_ref().map(|inner| inner as _);
        while let Some(error) = cause {
            if let Some(code) = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) {
                return io::Error::from_raw_os_error(code);
            }
            cause = error.source();
        }
        Errno::NOSYS.into()
    }
}

fn rules(confinement: &Confinement) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let is_all = confinement.level == ConfinementLevel::Landlock;
    // Not to list folders: a right holds for all below a path, so `/` could not be listed either.
    let reading = if is_all { AccessFs::Execute | AccessFs::ReadFile } else { BitFlags::EMPTY };
    let mut ruleset = Ruleset::default();
    if is_all {
        ruleset = ruleset
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_write(OLDEST_LANDLOCK_ABI) | reading)?;
    }
    if confinement.programs.is_some() {
        ruleset = ruleset.set_compatibility(CompatLevel::HardRequirement).handle_access(AccessFs::Execute)?;
    }
    // Where only some programs can be run, no place gives that right.
    let reading = if confinement.programs.is_some() { reading & !AccessFs::Execute } else { reading };
    ruleset = ruleset
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_write(NEWEST_LANDLOCK_ABI))?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?;
    if is_all && confinement.network == NetworkAccess::Off {
        ruleset = ruleset.handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp)?;
    }
    let mut ruleset = ruleset.create()?.set_compatibility(CompatLevel::BestEffort);

    let writing = AccessFs::from_write(NEWEST_LANDLOCK_ABI) | reading;
    let layered = confinement.layers.iter().flat_map(|layers| layers.over.iter().chain(&layers.own));
    for path in confinement.writable.iter().chain(layered) {
        ruleset = grant(ruleset, path, writing)?;
    }
    let devices = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev | reading;
    for path in HARMLESS_DEVICES {
        ruleset = grant(ruleset, Path::new(path), devices)?;
    }
    if is_all {
        // Of all terminals, the command's own: others are where the user types passwords.
        let own = ttyname(stdout(), Vec::new()).ok();
        if let Some(own) = own.as_ref().and_then(|name| name.to_str().ok()) {
            ruleset = grant(ruleset, Path::new(own), devices)?;
        }
    } else {
        for path in ["/tmp", "/var/tmp", "/dev/shm", "/dev/console", "/dev/pts"] {
            ruleset = grant(ruleset, Path::new(path), writing)?;
        }
    }
    if !reading.is_empty() {
        // What is needed of the devices is granted above.
        for path in readable(&SandboxView::new(confinement, &[PathBuf::from("/dev")]))? {
            ruleset = grant(ruleset, &path, reading)?;
        }
    }
    for program in confinement.programs.iter().flatten() {
        ruleset = grant(ruleset, program, AccessFs::Execute.into())?;
    }
    let status = ruleset.restrict_self()?;
    let is_all = is_all || confinement.programs.is_some();
    if is_all && status.ruleset == RulesetStatus::NotEnforced {
        return Err(Box::new(io::Error::from(Errno::NOSYS)));
    }
    Ok(())
}

/// Lets this process read everything, and write nothing but these places and what is below them. Where the kernel has no
/// Landlock, nothing is done.
pub(super) fn apply_read_only(writable: &[PathBuf]) -> io::Result<()> {
    let restrict = || -> Result<(), landlock::RulesetError> {
        let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
        let ruleset = ruleset.handle_access(AccessFs::from_write(NEWEST_LANDLOCK_ABI))?;
        let mut ruleset = ruleset.scope(Scope::AbstractUnixSocket | Scope::Signal)?.create()?;
        for path in writable {
            ruleset = grant(ruleset, path, AccessFs::from_write(NEWEST_LANDLOCK_ABI))?;
        }
        // Programs open it for writing to be rid of an output.
        ruleset = grant(ruleset, Path::new("/dev/null"), AccessFs::WriteFile | AccessFs::Truncate)?;
        ruleset.restrict_self().map(drop)
    };
    restrict().map_err(|error| io::Error::other(error).into_errno())
}

/// Allows this at a path and below. What is not there, or may not even be opened, needs no permission.
fn grant(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, landlock::RulesetError> {
    let Ok(file) = PathFd::new(path) else { return Ok(rules) };
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST_LANDLOCK_ABI) };
    rules.add_rule(PathBeneath::new(file, access))
}

/// Everything that is not hidden: whatever stands beside the way to hidden places, and what is seen inside them.
fn readable(view: &SandboxView) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = VecDeque::from([PathBuf::from("/")]);
    while let Some(path) = open.pop_front() {
        if view.is_hidden(&path) {
            open.extend(steps(&path, view.below(&path).filter(|(_, access)| *access != PlaceAccess::Hidden)));
        } else if view.below(&path).any(|(_, access)| access == PlaceAccess::Hidden) {
            open.extend(
                inside(&path).unwrap_or_else(|| steps(&path, view.below(&path)).into_iter().collect()),
            );
        } else {
            found.push(path);
        }
        if found.len() + open.len() > MAX_LANDLOCK_RULES {
            return Err(Errno::TOOBIG.into());
        }
    }
    Ok(found)
}

/// The next steps from a folder to places below it.
fn steps<'p>(folder: &Path, to: impl Iterator<Item = (&'p Path, PlaceAccess)>) -> BTreeSet<PathBuf> {
    let step = |path: &Path| Some(folder.join(path.strip_prefix(folder).ok()?.components().next()?));
    to.filter_map(|(path, _)| step(path)).collect()
}

/// What is in a folder; `None` if it can't be listed.
fn inside(folder: &Path) -> Option<Vec<PathBuf>> {
    // A link has no rights of its own; what it leads to is found where it is.
    let is_own = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| !kind.is_symlink());
    let entries = fs::read_dir(folder).ok()?;
    Some(entries.flatten().filter(is_own).map(|entry| entry.path()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_beside_the_way_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["home/.ssh", "home/work", "other"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        fs::write(root.join("home/.netrc"), "").unwrap();
        fs::write(root.join("home/notes"), "").unwrap();
        std::os::unix::fs::symlink("home/.ssh", root.join("link")).unwrap();
        let hidden = ["link", "home/.netrc", "absent"].map(|name| root.join(name)).to_vec();
        let confinement =
            Confinement { hidden, ..Confinement::new(ConfinementLevel::Landlock) }.settled().unwrap();
        let found = readable(&SandboxView::new(&confinement, &[])).unwrap();
        let mut ours: Vec<&Path> = found.iter().filter_map(|path| path.strip_prefix(&root).ok()).collect();
        ours.sort();
        assert_eq!(ours, ["home/notes", "home/work", "other"].map(Path::new));
        assert!(found.contains(&PathBuf::from("/usr")));
    }

    #[test]
    fn of_a_hidden_folder_only_what_is_shown_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["home/.cargo/bin", "home/.cargo/private", "home/work/src", "home/other", "beside"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let all = |names: &[&str]| names.iter().map(|name| root.join(name)).collect();
        let confinement = Confinement {
            hidden: all(&["home", "home/.cargo/private"]),
            shown: all(&["home/.cargo"]),
            writable: all(&["home/work"]),
            ..Confinement::new(ConfinementLevel::Landlock)
        };
        let found = readable(&SandboxView::new(&confinement, &[])).unwrap();
        let mut ours: Vec<&Path> = found.iter().filter_map(|path| path.strip_prefix(&root).ok()).collect();
        ours.sort();
        assert_eq!(ours, ["beside", "home/.cargo/bin", "home/work"].map(Path::new));
    }
}
