//! Confinement on Linux.
//!
//! At the lower level, the keeper's child gives up what it may do, and becomes the command. At the full level there are
//! two more:
//!
//! ```text
//! keeper ─┬─ builder: makes the namespaces and the view of the files, and leaves
//!         ├─ holder: the first process of the PID namespace; with it, all the others in it end
//!         └─ command: gives up what it may do, and becomes the command
//! ```
//!
//! The builder starts the other two as its own siblings, so the keeper, which stays outside, is the parent of the command
//! as ever. The holder ends with the keeper, however that ends, because the keeper holds the other end of a pipe. All of
//! this is forked from the keeper before that has a second thread, so what is done after a fork is as safe as before.

mod landlock_rules;
mod layers;
mod loopback;
mod mount_aliases;
mod mounts;
mod privileges;
mod seccomp;
mod syscalls;
mod view;

use std::fs;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use helve_protocol::ConfinementLevel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, Resource, Signal, chdir, getgid, getppid, getuid, set_dumpable_behavior,
    set_parent_process_death_signal,
};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, set_name};

pub(crate) use self::layers::LayerLock;
use self::seccomp::{ProcessPolicy, SocketPolicy};
pub(crate) use self::syscalls::keep_files_to_ourselves;
use self::syscalls::{ForkParent, fork, leave};
use self::view::SandboxView;
use crate::confinement::{Confinement, ConfinementPart, NetworkAccess};
use crate::network::NamespaceFiles;
use crate::report::{StartRefusal, StartStep, SupervisorReport};
use crate::resource_limits::lower_limit;

/// How long it may take until a confined command has begun: less than Helve waits for it.
const CONFINED_START_TIMEOUT: Duration = Duration::from_secs(15);

/// How many threads a process has, at most, where many processes have as many.
const MAX_THREADS_PER_PROCESS: u64 = 8;

/// What is to be confined.
pub(crate) struct SandboxPlan<'a> {
    pub(crate) confinement: &'a Confinement,
    pub(crate) cwd: &'a Path,
    pub(crate) processes: Option<u32>,
    /// Sockets that the environment names.
    pub(crate) sockets: Vec<PathBuf>,
    /// The network to share.
    pub(crate) beside: Option<&'a NamespaceFiles>,
}

/// A confined command that has begun.
pub(crate) struct ConfinedCommand {
    pub(crate) command: Pid,
    pub(crate) holder: Option<NamespaceHolder>,
    /// To be kept until all of it has ended.
    pub(crate) layer: Option<LayerLock>,
}

/// The first process of a PID namespace.
pub(crate) struct NamespaceHolder {
    pub(crate) pid: Pid,
    /// It ends when this is closed.
    _lifeline: OwnedFd,
}

/// What went wrong where.
fn refused_at<E: Into<io::Error>>(step: StartStep) -> impl FnOnce(E) -> StartRefusal {
    move |error| StartRefusal::of(step, &error.into())
}

fn at_part<E: Into<io::Error>>(part: ConfinementPart) -> impl FnOnce(E) -> StartRefusal {
    refused_at(StartStep::Confinement(part))
}

/// Starts a command that is confined. To be called only while this process has one thread.
pub(crate) fn start(command: Command, plan: &SandboxPlan<'_>) -> Result<ConfinedCommand, StartRefusal> {
    let settled = plan.confinement.settled();
    let mut settled = settled.ok_or_else(|| at_part(ConfinementPart::Request)(Errno::INVAL))?;
    let aliases = mount_aliases::find_aliases(&settled.hidden).map_err(at_part(ConfinementPart::Mounts))?;
    // What is asked for by another name of a hidden folder is not hidden by it.
    settled.hidden.extend(aliases.into_iter().filter(|alias| !settled.writable.contains(alias)));
    if let Some(layers) = &mut settled.layers {
        let (fitted, others) = layers::fit_to_mounts(layers).map_err(at_part(ConfinementPart::Layers))?;
        *layers = fitted;
        settled.shown.extend(others);
    }
    let layer =
        settled.layers.as_ref().map(LayerLock::take).transpose().map_err(at_part(ConfinementPart::Layers))?;
    let confinement = &settled;
    let plan = &SandboxPlan { confinement, sockets: plan.sockets.clone(), ..*plan };
    let (heard, told) = io::pipe().map_err(refused_at(StartStep::SupervisorSetup))?;
    let (theirs, lifeline) = io::pipe().map_err(refused_at(StartStep::SupervisorSetup))?;
    let Some(child) = fork(ForkParent::ThisProcess).map_err(refused_at(StartStep::Program))? else {
        drop((heard, lifeline));
        let done = match plan.confinement.level {
            ConfinementLevel::Full => build(command, plan, layer.as_ref(), &theirs, &told),
            ConfinementLevel::Landlock | ConfinementLevel::None => Err(become_command(command, plan)),
        };
        leave_with(done, &told)
    };
    drop((theirs, told));
    match (wait_for_start(heard)?.as_slice(), confinement.level) {
        ([], ConfinementLevel::Landlock) => Ok(ConfinedCommand { command: child, holder: None, layer: None }),
        ([holder, command], ConfinementLevel::Full) => {
            let holder = NamespaceHolder { pid: *holder, _lifeline: lifeline.into() };
            Ok(ConfinedCommand { command: *command, holder: Some(holder), layer })
        }
        _ => Err(refused_at(StartStep::SupervisorSetup)(Errno::PROTO)),
    }
}

/// Ends a process that came of the keeper, and tells the keeper what stopped it.
fn leave_with(done: Result<(), StartRefusal>, mut told: &PipeWriter) -> ! {
    if let Err(refusal) = done {
        let _ = told.write_all(&SupervisorReport::Refused(refusal).to_bytes());
    }
    leave(i32::from(done.is_err()))
}

/// Waits until the command has begun, and everybody has let go of the pipe. Says which processes the builder has made.
fn wait_for_start(mut heard: PipeReader) -> Result<Vec<Pid>, StartRefusal> {
    let mut said = Vec::new();
    let mut piece = [0; 256];
    loop {
        let patience = Timespec::try_from(CONFINED_START_TIMEOUT).ok();
        match poll(&mut [PollFd::new(&heard, PollFlags::IN)], patience.as_ref()) {
            Ok(0) => return Err(refused_at(StartStep::SupervisorSetup)(Errno::TIMEDOUT)),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(refused_at(StartStep::SupervisorSetup)(error)),
        }
        match heard.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => said.extend(piece.get(..length).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(refused_at(StartStep::SupervisorSetup)(error)),
        }
    }
    let mut pids = Vec::new();
    for report in said.chunks(SupervisorReport::BYTES).filter_map(SupervisorReport::from_bytes) {
        match report {
            SupervisorReport::Refused(refusal) => return Err(refusal),
            SupervisorReport::Started(pid) => pids.extend(Pid::from_raw(pid)),
            SupervisorReport::Ended(_) => {}
        }
    }
    Ok(pids)
}

/// Makes the namespaces, and starts the two that live in them.
fn build(
    command: Command,
    plan: &SandboxPlan<'_>,
    layer: Option<&LayerLock>,
    lifeline: &PipeReader,
    mut told: &PipeWriter,
) -> Result<(), StartRefusal> {
    let confinement = plan.confinement;
    let sockets = mounts::sockets(confinement, &plan.sockets).map_err(at_part(ConfinementPart::Mounts))?;
    enter_namespaces(confinement.network, plan.beside).map_err(at_part(ConfinementPart::Namespaces))?;
    if confinement.network == NetworkAccess::Off {
        loopback::switch_on().map_err(at_part(ConfinementPart::Loopback))?;
    }
    mounts::separate().map_err(at_part(ConfinementPart::Mounts))?;
    let overlays = match confinement.layers.as_ref().zip(layer) {
        Some((layers, layer)) => layer.overlays(layers).map_err(at_part(ConfinementPart::Layers))?,
        None => Vec::new(),
    };
    let view = SandboxView::new(confinement, &sockets);
    mounts::arrange(confinement, &view, &overlays).map_err(at_part(ConfinementPart::Mounts))?;

    let (mut shown, mut showing) = io::pipe().map_err(refused_at(StartStep::SupervisorSetup))?;
    let Some(holder) = fork(ForkParent::SameParent).map_err(at_part(ConfinementPart::Namespaces))? else {
        let done = mounts::show_processes().and_then(|()| showing.write_all(&[1]));
        if done.is_err() {
            leave_with(done.map_err(at_part(ConfinementPart::Proc)), told);
        }
        hold(lifeline)
    };
    drop(showing);
    shown.read_exact(&mut [0]).map_err(at_part(ConfinementPart::Proc))?;

    let Some(command) = fork(ForkParent::SameParent).map_err(refused_at(StartStep::Program))? else {
        leave_with(Err(become_command(command, plan)), told)
    };
    let pids = [holder, command].map(|pid| SupervisorReport::Started(pid.as_raw_pid()).to_bytes());
    told.write_all(&pids.concat()).map_err(refused_at(StartStep::SupervisorSetup))
}

/// New namespaces, in which this user is who it was; or new ones besides those of a network that is shared.
fn enter_namespaces(network: NetworkAccess, beside: Option<&NamespaceFiles>) -> io::Result<()> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let own = UnshareFlags::NEWNS | UnshareFlags::NEWPID | UnshareFlags::NEWIPC;
    match (network, beside) {
        (NetworkAccess::Shared, Some(NamespaceFiles { users, network })) => {
            move_into_link_name_space(users.as_fd(), Some(LinkNameSpaceType::User))?;
            move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
            // Who is who is settled there.
            return syscalls::unshare(own);
        }
        (NetworkAccess::Shared, None) => return Err(Errno::INVAL.into()),
        (NetworkAccess::Off, _) => syscalls::unshare(own | UnshareFlags::NEWUSER | UnshareFlags::NEWNET)?,
        (NetworkAccess::On, _) => syscalls::unshare(own | UnshareFlags::NEWUSER)?,
    }
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Lives for as long as the keeper holds the other end, and forgets the orphans that it gets.
fn hold(lifeline: &PipeReader) -> ! {
    syscalls::ignore_children();
    // For whoever lists the processes.
    let _ = set_name(c"helve");
    // The command, which is the same user, must not get hold of this process either.
    let done = set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(io::Error::from)
        .and_then(|()| privileges::give_up())
        .and_then(|()| seccomp::apply(SocketPolicy::FilterOnly(NetworkAccess::Off), ProcessPolicy::Any));
    syscalls::close_all_but(lifeline);
    while done.is_ok() {
        match poll(&mut [PollFd::new(lifeline, PollFlags::IN)], None) {
            Err(Errno::INTR) => {}
            _ => break,
        }
    }
    leave(0)
}

/// Whether a program can be jailed on this machine, as far as is known without trying.
pub(crate) const fn can_jail() -> bool {
    seccomp::is_possible()
}

/// Leaves this process, and what it becomes, nothing but to read files and to write these places.
pub(crate) fn jail(writable: &[PathBuf]) -> io::Result<()> {
    privileges::give_up()?;
    landlock_rules::apply_read_only(writable)?;
    seccomp::apply(SocketPolicy::FilterOnly(NetworkAccess::Off), ProcessPolicy::None)
}

/// Makes this process end when the thread that started it does. Says whether that has not happened before.
pub(crate) fn die_with_parent(parent: Pid) -> io::Result<bool> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(getppid() == Some(parent))
}

/// Gives up what the command may not do, and becomes it. Returns only with what stopped it.
fn become_command(mut command: Command, plan: &SandboxPlan<'_>) -> StartRefusal {
    match give_up(plan) {
        Ok(()) => refused_at(StartStep::Program)(command.exec()),
        Err(refusal) => refusal,
    }
}

fn give_up(plan: &SandboxPlan<'_>) -> Result<(), StartRefusal> {
    let confinement = plan.confinement;
    chdir(plan.cwd).map_err(refused_at(StartStep::Folder))?;
    let sockets = if confinement.level == ConfinementLevel::Full {
        // In a user namespace the system counts the command's own only, but threads too, and not for root. It only
        // holds back what forks faster than the keeper counts.
        let processes = plan.processes.map(|count| u64::from(count).saturating_mul(MAX_THREADS_PER_PROCESS));
        lower_limit(Resource::Nproc, processes).map_err(refused_at(StartStep::Program))?;
        SocketPolicy::Namespaced
    } else {
        SocketPolicy::FilterOnly(confinement.network)
    };
    privileges::give_up().map_err(at_part(ConfinementPart::Privileges))?;
    landlock_rules::apply(confinement).map_err(at_part(ConfinementPart::Landlock))?;
    let processes = if confinement.single_process { ProcessPolicy::None } else { ProcessPolicy::Any };
    seccomp::apply(sockets, processes).map_err(at_part(ConfinementPart::Filter))
}
