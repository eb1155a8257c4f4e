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

mod aliases;
mod filter;
mod layers;
mod loopback;
mod mounts;
mod privileges;
mod raw;
mod rules;
mod view;

use std::fs;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, Resource, Signal, chdir, getgid, getppid, getuid, set_dumpable_behavior,
    set_parent_process_death_signal,
};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, set_name};

use self::filter::{Processes, Sockets};
pub(crate) use self::layers::LayerLock;
pub(crate) use self::raw::keep_files_to_ourselves;
use self::raw::{Parent, fork, leave};
use self::view::View;
use crate::confinement::{Confinement, Level, Network, Part};
use crate::keeper::lower;
use crate::network::Files;
use crate::report::{Refusal, Report, Step};

/// How long it may take until a confined command has begun: less than Helve waits for it.
const START: Duration = Duration::from_secs(15);

/// How many threads a process has, at most, where many processes have as many.
const THREADS: u64 = 8;

/// What is to be confined.
pub(crate) struct Plan<'a> {
    pub(crate) confinement: &'a Confinement,
    pub(crate) cwd: &'a Path,
    pub(crate) processes: Option<u32>,
    /// Sockets that the environment names.
    pub(crate) sockets: Vec<PathBuf>,
    /// The network to share.
    pub(crate) beside: Option<&'a Files>,
}

/// A confined command that has begun.
pub(crate) struct Confined {
    pub(crate) command: Pid,
    pub(crate) holder: Option<Holder>,
    /// To be kept until all of it has ended.
    pub(crate) layer: Option<LayerLock>,
}

/// The first process of a PID namespace.
pub(crate) struct Holder {
    pub(crate) pid: Pid,
    /// It ends when this is closed.
    _lifeline: OwnedFd,
}

/// What went wrong where.
fn at<E: Into<io::Error>>(step: Step) -> impl FnOnce(E) -> Refusal {
    move |error| Refusal::of(step, &error.into())
}

fn at_part<E: Into<io::Error>>(part: Part) -> impl FnOnce(E) -> Refusal {
    at(Step::Confinement(part))
}

/// Starts a command that is confined. To be called only while this process has one thread.
pub(crate) fn start(command: Command, plan: &Plan<'_>) -> Result<Confined, Refusal> {
    let settled = plan.confinement.settled();
    let mut settled = settled.ok_or_else(|| at_part(Part::Request)(Errno::INVAL))?;
    let aliases = aliases::of(&settled.hidden).map_err(at_part(Part::Mounts))?;
    // What is asked for by another name of a hidden folder is not hidden by it.
    settled.hidden.extend(aliases.into_iter().filter(|alias| !settled.writable.contains(alias)));
    if let Some(layers) = &mut settled.layers {
        let (fitted, others) = layers::fitted(layers).map_err(at_part(Part::Layers))?;
        *layers = fitted;
        settled.shown.extend(others);
    }
    let layer = settled.layers.as_ref().map(LayerLock::take).transpose().map_err(at_part(Part::Layers))?;
    let confinement = &settled;
    let plan = &Plan { confinement, sockets: plan.sockets.clone(), ..*plan };
    let (heard, told) = io::pipe().map_err(at(Step::Keeper))?;
    let (theirs, lifeline) = io::pipe().map_err(at(Step::Keeper))?;
    let Some(child) = fork(Parent::Us).map_err(at(Step::Program))? else {
        drop((heard, lifeline));
        let done = match plan.confinement.level {
            Level::Full => build(command, plan, layer.as_ref(), &theirs, &told),
            Level::Landlock | Level::None => Err(become_command(command, plan)),
        };
        leave_with(done, &told)
    };
    drop((theirs, told));
    match (hear(heard)?.as_slice(), confinement.level) {
        ([], Level::Landlock) => Ok(Confined { command: child, holder: None, layer: None }),
        ([holder, command], Level::Full) => {
            let holder = Holder { pid: *holder, _lifeline: lifeline.into() };
            Ok(Confined { command: *command, holder: Some(holder), layer })
        }
        _ => Err(at(Step::Keeper)(Errno::PROTO)),
    }
}

/// Ends a process that came of the keeper, and tells the keeper what stopped it.
fn leave_with(done: Result<(), Refusal>, mut told: &PipeWriter) -> ! {
    if let Err(refusal) = done {
        let _ = told.write_all(&Report::Refused(refusal).to_bytes());
    }
    leave(i32::from(done.is_err()))
}

/// Waits until the command has begun, and everybody has let go of the pipe. Says which processes the builder has made.
fn hear(mut heard: PipeReader) -> Result<Vec<Pid>, Refusal> {
    let mut said = Vec::new();
    let mut piece = [0; 256];
    loop {
        let patience = Timespec::try_from(START).ok();
        match poll(&mut [PollFd::new(&heard, PollFlags::IN)], patience.as_ref()) {
            Ok(0) => return Err(at(Step::Keeper)(Errno::TIMEDOUT)),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(at(Step::Keeper)(error)),
        }
        match heard.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => said.extend(piece.get(..length).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(at(Step::Keeper)(error)),
        }
    }
    let mut pids = Vec::new();
    for report in said.chunks(Report::BYTES).filter_map(Report::from_bytes) {
        match report {
            Report::Refused(refusal) => return Err(refusal),
            Report::Started(pid) => pids.extend(Pid::from_raw(pid)),
            Report::Ended(_) => {}
        }
    }
    Ok(pids)
}

/// Makes the namespaces, and starts the two that live in them.
fn build(
    command: Command,
    plan: &Plan<'_>,
    layer: Option<&LayerLock>,
    lifeline: &PipeReader,
    mut told: &PipeWriter,
) -> Result<(), Refusal> {
    let confinement = plan.confinement;
    let sockets = mounts::sockets(confinement, &plan.sockets).map_err(at_part(Part::Mounts))?;
    enter_namespaces(confinement.network, plan.beside).map_err(at_part(Part::Namespaces))?;
    if confinement.network == Network::Off {
        loopback::switch_on().map_err(at_part(Part::Loopback))?;
    }
    mounts::separate().map_err(at_part(Part::Mounts))?;
    let overlays = match confinement.layers.as_ref().zip(layer) {
        Some((layers, layer)) => layer.overlays(layers).map_err(at_part(Part::Layers))?,
        None => Vec::new(),
    };
    let view = View::new(confinement, &sockets);
    mounts::arrange(confinement, &view, &overlays).map_err(at_part(Part::Mounts))?;

    let (mut shown, mut showing) = io::pipe().map_err(at(Step::Keeper))?;
    let Some(holder) = fork(Parent::Ours).map_err(at_part(Part::Namespaces))? else {
        let done = mounts::show_processes().and_then(|()| showing.write_all(&[1]));
        if done.is_err() {
            leave_with(done.map_err(at_part(Part::Proc)), told);
        }
        hold(lifeline)
    };
    drop(showing);
    shown.read_exact(&mut [0]).map_err(at_part(Part::Proc))?;

    let Some(command) = fork(Parent::Ours).map_err(at(Step::Program))? else {
        leave_with(Err(become_command(command, plan)), told)
    };
    let pids = [holder, command].map(|pid| Report::Started(pid.as_raw_pid()).to_bytes());
    told.write_all(&pids.concat()).map_err(at(Step::Keeper))
}

/// New namespaces, in which this user is who it was; or new ones besides those of a network that is shared.
fn enter_namespaces(network: Network, beside: Option<&Files>) -> io::Result<()> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let own = UnshareFlags::NEWNS | UnshareFlags::NEWPID | UnshareFlags::NEWIPC;
    match (network, beside) {
        (Network::Shared, Some(Files { users, network })) => {
            move_into_link_name_space(users.as_fd(), Some(LinkNameSpaceType::User))?;
            move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
            // Who is who is settled there.
            return raw::unshare(own);
        }
        (Network::Shared, None) => return Err(Errno::INVAL.into()),
        (Network::Off, _) => raw::unshare(own | UnshareFlags::NEWUSER | UnshareFlags::NEWNET)?,
        (Network::On, _) => raw::unshare(own | UnshareFlags::NEWUSER)?,
    }
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Lives for as long as the keeper holds the other end, and forgets the orphans that it gets.
fn hold(lifeline: &PipeReader) -> ! {
    raw::ignore_children();
    // For whoever lists the processes.
    let _ = set_name(c"helve");
    // The command, which is the same user, must not get hold of this process either.
    let done = set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(io::Error::from)
        .and_then(|()| privileges::give_up())
        .and_then(|()| filter::apply(Sockets::Of(Network::Off), Processes::Any));
    raw::close_all_but(lifeline);
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
    filter::is_possible()
}

/// Leaves this process, and what it becomes, nothing but to read files and to write these places.
pub(crate) fn jail(writable: &[PathBuf]) -> io::Result<()> {
    privileges::give_up()?;
    rules::apply_read_only(writable)?;
    filter::apply(Sockets::Of(Network::Off), Processes::None)
}

/// Makes this process end when the thread that started it does. Says whether that has not happened before.
pub(crate) fn end_with(parent: Pid) -> io::Result<bool> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(getppid() == Some(parent))
}

/// Gives up what the command may not do, and becomes it. Returns only with what stopped it.
fn become_command(mut command: Command, plan: &Plan<'_>) -> Refusal {
    match give_up(plan) {
        Ok(()) => at(Step::Program)(command.exec()),
        Err(refusal) => refusal,
    }
}

fn give_up(plan: &Plan<'_>) -> Result<(), Refusal> {
    let confinement = plan.confinement;
    chdir(plan.cwd).map_err(at(Step::Folder))?;
    let sockets = if confinement.level == Level::Full {
        // In a user namespace the system counts the command's own only, but threads too, and not for root. It only
        // holds back what forks faster than the keeper counts.
        let processes = plan.processes.map(|count| u64::from(count).saturating_mul(THREADS));
        lower(Resource::Nproc, processes).map_err(at(Step::Program))?;
        Sockets::Known
    } else {
        Sockets::Of(confinement.network)
    };
    privileges::give_up().map_err(at_part(Part::Privileges))?;
    rules::apply(confinement).map_err(at_part(Part::Landlock))?;
    let processes = if confinement.single_process { Processes::None } else { Processes::Any };
    filter::apply(sockets, processes).map_err(at_part(Part::Filter))
}
