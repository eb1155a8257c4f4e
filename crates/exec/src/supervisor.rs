//! The keeper: a process that watches over one command, and ends all that came of it when it is over.
//!
//! It is Helve's own program, started anew, so it touches nothing but what is here.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeWriter, Read, Write};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Signal, WaitOptions, chdir, getpid, kill_process_group, setsid, wait};
use rustix::stdio::{dup2_stderr, dup2_stdout, stdin, stdout};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::low_level::pipe;

use crate::command_spec::{CommandInput, CommandLimits, CommandSpec, WindowSize};
use crate::confinement::NetworkAccess;
use crate::fd_passing::receive_file;
use crate::network::NamespaceFiles;
use crate::report::{
    CommandEndCause, CommandExitStatus, CommandOutcome, StartRefusal, StartStep, SupervisorReport,
};
use crate::resource_limits::lower_limit;
use crate::sandbox::{self, ConfinedCommand, LayerLock, NamespaceHolder, SandboxPlan};
use crate::terminal;
use crate::tree::{self, ProcessTree, TreeProcess};

/// The first argument of a program that is started to be a keeper.
pub const SUPERVISOR_ARG: &str = "__keep-command";

/// How long processes have to end by themselves before they are killed.
const TERMINATE_GRACE: Duration = Duration::from_millis(300);
/// How long killed processes have to be gone before they are told as survivors.
const KILL_TIMEOUT: Duration = Duration::from_secs(8);
/// How long survivors are hunted, after that.
const SURVIVOR_KILL_TIMEOUT: Duration = Duration::from_secs(60);
/// How often the processes are counted.
const PROCESS_COUNT_INTERVAL: Duration = Duration::from_millis(20);
/// How long to wait for processes to end before looking again.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(5);
/// The same for survivors: most of them can't be ended at all.
const SURVIVOR_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Keeps the one command that stands in the order on standard input, which is the socket to Helve.
pub(crate) fn supervise_command() -> io::Result<()> {
    sandbox::keep_files_to_ourselves();
    let mut control = UnixStream::from(stdin().try_clone_to_owned()?);
    let begun = start_command(&mut control);
    let answer = match &begun {
        Ok(keeper) => SupervisorReport::Started(keeper.family.command.as_raw_pid()),
        Err(refusal) => SupervisorReport::Refused(*refusal),
    };
    // Nobody may be there to hear it; then the command is ended all the same.
    let _ = control.write_all(&answer.to_bytes());
    if let Ok(mut keeper) = begun {
        let ended = keeper.keep(&control);
        let _ = control.write_all(&SupervisorReport::Ended(ended).to_bytes());
        if ended.survivors > 0 {
            keeper.wait_until_gone(SURVIVOR_KILL_TIMEOUT, SURVIVOR_POLL_INTERVAL, Supervisor::kill);
        }
    }
    Ok(())
}

/// Prepares this process, and starts the command.
fn start_command(control: &mut UnixStream) -> Result<Supervisor, StartRefusal> {
    let at = |step| move |error: io::Error| StartRefusal::of(step, &error);
    // Away from Helve's terminal: no Ctrl-C reaches the keeper, and no command the screen.
    setsid().map_err(io::Error::from).map_err(at(StartStep::SupervisorSetup))?;
    tree::adopt_orphans().map_err(at(StartStep::SupervisorSetup))?;
    let signals = SupervisorSignals::listen().map_err(at(StartStep::SupervisorSetup))?;
    let order = CommandSpec::read(control).map_err(at(StartStep::SupervisorSetup))?;
    let open_input = match (&order.input, order.terminal) {
        (CommandInput::Open, None) => Some(receive_file(&*control).map_err(at(StartStep::SupervisorSetup))?),
        _ => None,
    };
    let is_shared = order.confinement.as_ref().is_some_and(|it| it.network == NetworkAccess::Shared);
    let beside = match is_shared {
        true => Some(NamespaceFiles {
            users: receive_file(&*control).map_err(at(StartStep::SupervisorSetup))?,
            network: receive_file(&*control).map_err(at(StartStep::SupervisorSetup))?,
        }),
        false => None,
    };
    if signals.wait(Some(control), Some(Duration::ZERO)) {
        // Given up before it began.
        return Err(StartRefusal { step: StartStep::SupervisorSetup, errno: Errno::CANCELED.raw_os_error() });
    }

    let other_tasks = tree::machine_task_count();
    let processes = order.limits.processes;
    let ConfinedCommand { command, holder, layer } = spawn(order, open_input, beside, other_tasks)?;
    let _ = chdir("/");
    let _ = forget_output();
    let family = ProcessTree {
        keeper: getpid(),
        command,
        holder: holder.as_ref().map(|holder| holder.pid),
        mark: None,
    };
    Ok(Supervisor { family, signals, status: None, processes, other_tasks, _holder: holder, _layer: layer })
}

/// Limits this process, and so the command that it starts.
fn limit(limits: CommandLimits, other_tasks: Option<u64>) -> io::Result<()> {
    // The system counts all processes of the user, so those that are there already are added. It only holds back
    // what forks faster than it is counted.
    let processes =
        limits.processes.zip(other_tasks).map(|(ours, others)| others.saturating_add(ours.into()));
    lower_limit(Resource::Nproc, processes)?;
    lower_limit(Resource::Fsize, limits.file_size)?;
    lower_limit(Resource::Data, limits.memory)?;
    lower_limit(Resource::Cpu, limits.cpu.map(|cpu| cpu.as_secs().max(1)))
}

/// Starts the command, confined or not.
fn spawn(
    order: CommandSpec,
    open_input: Option<OwnedFd>,
    beside: Option<NamespaceFiles>,
    other_tasks: Option<u64>,
) -> Result<ConfinedCommand, StartRefusal> {
    let failed = |error: io::Error| StartRefusal::of(StartStep::Program, &error);
    let CommandSpec { program, args, cwd, env, input, terminal, limits, confinement, .. } = order;
    limit(limits, other_tasks).map_err(failed)?;
    let sockets = sockets_named_in(&env);
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(env);
    let feeding = connect(&mut command, terminal, input, open_input).map_err(failed)?;
    let begun = match &confinement {
        Some(confinement) => {
            let processes = limits.processes;
            sandbox::start(
                command,
                &SandboxPlan { confinement, cwd: &cwd, processes, sockets, beside: beside.as_ref() },
            )?
        }
        None => {
            chdir(&cwd).map_err(|error| StartRefusal::of(StartStep::Folder, &error.into()))?;
            // Not waited for here: the keeper reaps all its children in one place.
            let command = Pid::from_child(&command.spawn().map_err(failed)?);
            ConfinedCommand { command, holder: None, layer: None }
        }
    };
    feed(feeding).map_err(failed)?;
    Ok(begun)
}

/// A text, and where it is to be written.
type StdinFeed = Option<(Vec<u8>, PipeWriter)>;

/// Gives the command its input, in a process group of its own; on a terminal, in a session of its own.
fn connect(
    command: &mut Command,
    terminal: Option<WindowSize>,
    input: CommandInput,
    open_input: Option<OwnedFd>,
) -> io::Result<StdinFeed> {
    if terminal.is_some() {
        terminal::attach_terminal(command, stdout())?;
        return Ok(None);
    }
    command.process_group(0);
    if let CommandInput::Text(text) = input {
        let (reader, writer) = io::pipe()?;
        command.stdin(reader);
        return Ok(Some((text, writer)));
    }
    command.stdin(open_input.map_or(Stdio::null(), Stdio::from));
    Ok(None)
}

/// Writes the text to the command's input. Only after it has begun: a confined command is forked from this process while
/// that has one thread.
fn feed(feeding: StdinFeed) -> io::Result<()> {
    let Some((text, mut writer)) = feeding else { return Ok(()) };
    // It ends when all is written or nobody can read any more, at the latest with this process.
    thread::Builder::new().spawn(move || writer.write_all(&text))?;
    Ok(())
}

/// The sockets that an environment names: of agents, buses and daemons.
fn sockets_named_in(env: &[(OsString, OsString)]) -> Vec<PathBuf> {
    let path = |value: &OsString| {
        let value = value.to_str()?;
        let start = value.find('/')?;
        let path = value.get(start..)?.trim_start_matches("//");
        Some(PathBuf::from(format!("/{}", path.split([',', ';']).next()?.trim_start_matches('/'))))
    };
    env.iter().filter_map(|(_, value)| path(value)).collect()
}

/// Leaves the output to the command, so that its end is seen by who reads it.
fn forget_output() -> io::Result<()> {
    let nowhere = File::options().write(true).open("/dev/null")?;
    dup2_stdout(&nowhere)?;
    dup2_stderr(&nowhere)?;
    Ok(())
}

/// Signals to the keeper, made readable.
struct SupervisorSignals {
    child_ended: UnixStream,
    asked_to_end: UnixStream,
}

impl SupervisorSignals {
    fn listen() -> io::Result<SupervisorSignals> {
        let (child_ended, to) = UnixStream::pair()?;
        pipe::register(SIGCHLD, to)?;
        let (asked_to_end, to) = UnixStream::pair()?;
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
            pipe::register(signal, to.try_clone()?)?;
        }
        child_ended.set_nonblocking(true)?;
        Ok(SupervisorSignals { child_ended, asked_to_end })
    }

    /// Waits until a child ends or the time is over. With the socket to Helve, also until the keeper is asked to end:
    /// then it says so.
    fn wait(&self, control: Option<&UnixStream>, time: Option<Duration>) -> bool {
        let child_ended = PollFd::new(&self.child_ended, PollFlags::IN);
        let asked_to_end = PollFd::new(&self.asked_to_end, PollFlags::IN);
        let mut fds = match control {
            Some(control) => vec![child_ended, asked_to_end, PollFd::new(control, PollFlags::IN)],
            None => vec![child_ended],
        };
        let time = time.and_then(|time| Timespec::try_from(time).ok());
        let woken = poll(&mut fds, time.as_ref());
        let is_asked = woken.is_ok() && fds.iter().skip(1).any(|fd| !fd.revents().is_empty());
        self.forget_children();
        is_asked
    }

    /// Takes the wake-ups of the children out of the pipe: they are looked for anyway.
    fn forget_children(&self) {
        let mut bytes = [0; 512];
        while matches!((&self.child_ended).read(&mut bytes), Ok(1..)) {}
    }
}

struct Supervisor {
    family: ProcessTree,
    signals: SupervisorSignals,
    /// How the command ended, once it has.
    status: Option<CommandExitStatus>,
    /// How many processes it may have.
    processes: Option<u32>,
    /// How many tasks the machine has besides, as of the last time they were counted.
    other_tasks: Option<u64>,
    /// Ends with this process.
    _holder: Option<NamespaceHolder>,
    /// Others can have it when nothing of the command is left.
    _layer: Option<LayerLock>,
}

impl Supervisor {
    /// Watches until the command is over, by itself or not, and ends all that is left.
    fn keep(&mut self, control: &UnixStream) -> CommandOutcome {
        let cause = self.watch(control);
        let members = if self.are_gone() { Vec::new() } else { self.family.members() };
        let leftovers = if cause == CommandEndCause::Completed { tree::count(&members) } else { 0 };
        let survivors = self.end_all(&members, cause);
        CommandOutcome {
            status: self.status.unwrap_or(CommandExitStatus::Unknown),
            cause,
            leftovers,
            survivors,
        }
    }

    fn watch(&mut self, control: &UnixStream) -> CommandEndCause {
        let counting = self.processes.map(|_| PROCESS_COUNT_INTERVAL);
        loop {
            self.reap();
            if self.status.is_some() {
                return CommandEndCause::Completed;
            }
            if self.has_too_many_processes() {
                return CommandEndCause::TooManyProcesses;
            }
            if self.signals.wait(Some(control), counting) {
                return CommandEndCause::Stopped;
            }
        }
    }

    /// Takes note of the children that have ended. True if there are no more.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.family.command => self.status = Some(status.into()),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
    }

    /// Whether there are more processes than there may be.
    fn has_too_many_processes(&mut self) -> bool {
        let (Some(limit), Some(others), Some(now)) =
            (self.processes, self.other_tasks, tree::machine_task_count())
        else {
            return false;
        };
        // Counting is not cheap: it is done only when the machine has gained so many, for whatever reason.
        if now.saturating_sub(others) <= limit.into() {
            return false;
        }
        // They are held still meanwhile: a fork bomb grows faster than it is counted, and leaves us no processor.
        self.signal_group(Signal::STOP);
        let ours = tree::count(&self.family.members());
        if ours > limit {
            return true;
        }
        self.other_tasks = Some(now.saturating_sub(ours.into()));
        self.signal_group(Signal::CONT);
        false
    }

    /// Signals the command's own group at once, without a search. Before the command is reaped, its number can mean
    /// nobody else.
    fn signal_group(&self, signal: Signal) {
        if self.status.is_none() {
            let _ = kill_process_group(self.family.command, signal);
        }
    }

    /// Whether nobody is left. A holder that holds nobody any more is let go.
    fn are_gone(&mut self) -> bool {
        if self.reap() {
            return self.family.is_gone();
        }
        self.status.is_some() && self.family.let_go() && self.reap()
    }

    /// Ends all processes, first politely. Returns how many could not be ended.
    fn end_all(&mut self, members: &[TreeProcess], cause: CommandEndCause) -> u32 {
        if cause != CommandEndCause::TooManyProcesses && self.end_politely(members) {
            return 0;
        }
        if self.wait_until_gone(KILL_TIMEOUT, EXIT_POLL_INTERVAL, Supervisor::kill) {
            return 0;
        }
        tree::count(&self.family.members())
    }

    fn kill(&mut self) -> ControlFlow<()> {
        self.signal_group(Signal::KILL);
        self.family.kill();
        ControlFlow::Continue(())
    }

    /// Asks these processes to end. True if nobody is left.
    fn end_politely(&mut self, members: &[TreeProcess]) -> bool {
        self.family.signal(members, Signal::TERM);
        // A process that is paused hears nothing before it goes on.
        self.family.signal(members, Signal::CONT);
        self.wait_until_gone(TERMINATE_GRACE, EXIT_POLL_INTERVAL, |keeper| {
            match keeper.has_too_many_processes() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })
    }

    /// Waits until nobody is left, doing something again and again until it breaks off.
    #[expect(
        clippy::disallowed_methods,
        reason = "processes end in real time; nothing of a keeper is replayed"
    )]
    fn wait_until_gone(
        &mut self,
        time: Duration,
        step: Duration,
        again: impl Fn(&mut Supervisor) -> ControlFlow<()>,
    ) -> bool {
        let start = Instant::now();
        loop {
            if self.are_gone() {
                return true;
            }
            if start.elapsed() >= time || again(self).is_break() {
                return false;
            }
            self.signals.wait(None, Some(step));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_environment_names_sockets_in_several_ways() {
        let named = |value: &str| sockets_named_in(&[("X".into(), value.into())]);
        assert_eq!(named("/tmp/agent.1"), [PathBuf::from("/tmp/agent.1")]);
        assert_eq!(named("unix:path=/run/bus,guid=1"), [PathBuf::from("/run/bus")]);
        assert_eq!(named("unix:///var/docker.sock"), [PathBuf::from("/var/docker.sock")]);
        assert!(named("words").is_empty());
    }

    proptest! {
        #[test]
        fn no_environment_panics(value: String) {
            sockets_named_in(&[("X".into(), value.into())]);
        }
    }
}
