//! A command that runs, as Helve sees it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use helve_protocol::ConfinementLevel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{Shutdown, shutdown};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::command_mark::CommandMark;
use crate::command_spec::{CommandInput, CommandSpec, MAX_COMMAND_SPEC_BYTES};
use crate::confinement::NetworkAccess;
use crate::error::{CommandInputError, ExecError};
use crate::fd_passing::send_file;
use crate::input::{InputTarget, InputWriter};
use crate::network::LocalNetwork;
use crate::report::{CommandOutcome, SupervisorReport};
use crate::supervisor::SUPERVISOR_ARG;
use crate::terminal::CommandTerminal;
use crate::tree::ProcessTree;

/// How much output is read at once. Nothing more is held: a command that says more waits until it is read.
const OUTPUT_CHUNK_BYTES: usize = 16 << 10;
/// How long a keeper may take to start a command.
const COMMAND_START_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a keeper may take to say that everything has ended. It does so earlier by itself.
const END_REPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// When all is over, what stands in the pipes is there at once. Only a process that got away can keep them open.
const OUTPUT_DRAIN_TIMEOUT: Duration = Duration::from_millis(200);
/// A command that is silent for so long on a terminal where nobody types may wait for input.
const UNATTENDED_INPUT_TIMEOUT: Duration = Duration::from_secs(1);
/// How often, and with what pause, the processes of a dead keeper are looked for.
const MAX_ORPHAN_SWEEPS: u32 = 50;
const ORPHAN_SWEEP_INTERVAL: Duration = Duration::from_millis(10);

/// A piece of what a command says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandOutputChunk {
    Stdout(Bytes),
    Stderr(Bytes),
}

/// A command that runs. Dropping it stops the command.
#[derive(Debug)]
pub struct RunningCommand {
    keeper: SupervisorProcess,
    control: ControlSocket,
    stdout: OutputPipe,
    stderr: OutputPipe,
    typing: InputWriter,
    /// The command's side of its terminal. While it is open here too, a command may close it and open it again.
    terminal: Option<OwnedFd>,
    /// Whether the command has a terminal where nobody types.
    is_unattended: bool,
    family: ProcessTree,
    /// Whether it has a network that reaches nobody.
    has_own_network: bool,
    /// Wakes a wait, so that the keeper's time begins to count.
    is_stopped: Notify,
    /// When the keeper must have ended everything.
    deadline: Option<Instant>,
    ended: Option<CommandOutcome>,
}

/// Starts a command. Must be called inside a Tokio runtime with I/O and time.
pub async fn start(order: CommandSpec) -> Result<RunningCommand, ExecError> {
    start_with_network(order, None).await
}

/// The same, with the network of another command instead of one of its own. An order that has no such network, or that may
/// use the real one, is left as it is.
pub async fn start_sharing_network(
    mut order: CommandSpec,
    network: &LocalNetwork,
) -> Result<RunningCommand, ExecError> {
    match &mut order.confinement {
        Some(confinement)
            if confinement.level == ConfinementLevel::Full && confinement.network == NetworkAccess::Off =>
        {
            confinement.network = NetworkAccess::Shared;
            start_with_network(order, Some(network)).await
        }
        _ => start_with_network(order, None).await,
    }
}

async fn start_with_network(
    mut order: CommandSpec,
    network: Option<&LocalNetwork>,
) -> Result<RunningCommand, ExecError> {
    let mark = CommandMark::new();
    order.env.push(mark.variable());
    let mark = Some(mark);
    let bytes = order.to_bytes();
    if bytes.len() > MAX_COMMAND_SPEC_BYTES {
        return Err(ExecError::TooLarge(bytes.len()));
    }
    let SupervisorConnection { keeper, mut control, stdout, stderr, typing, terminal, open_input } =
        connect(&order)?;
    let pid = keeper.pid().ok_or_else(|| ExecError::SupervisorFailed(io::ErrorKind::NotFound.into()))?;
    let handed = open_input.iter().chain(network.into_iter().flat_map(LocalNetwork::files));
    let begun = timeout(COMMAND_START_TIMEOUT, control.begin(&bytes, handed)).await;
    // The command's side must be closed here for its end to be seen.
    drop(open_input);
    let command = match begun.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
        Ok(SupervisorReport::Started(command)) => command,
        Ok(SupervisorReport::Refused(refusal)) => return Err(ExecError::refused(refusal, &order)),
        Ok(SupervisorReport::Ended(_)) => {
            return Err(ExecError::SupervisorFailed(io::ErrorKind::InvalidData.into()));
        }
        Err(error) => {
            // The keeper may have been killed just after the command began, whose number nobody has told.
            sweep(ProcessTree { keeper: pid, command: pid, holder: None, mark }).await;
            return Err(ExecError::SupervisorFailed(error));
        }
    };
    let family =
        ProcessTree { keeper: pid, command: Pid::from_raw(command).unwrap_or(pid), holder: None, mark };
    Ok(RunningCommand {
        stdout,
        stderr,
        typing,
        is_unattended: terminal.is_some() && order.input == CommandInput::Nothing,
        terminal,
        keeper,
        control,
        family,
        has_own_network: order.confinement.as_ref().is_some_and(|confinement| {
            confinement.level == ConfinementLevel::Full && confinement.network != NetworkAccess::On
        }),
        is_stopped: Notify::new(),
        deadline: None,
        ended: None,
    })
}

/// A keeper, and all that leads to it and its command.
struct SupervisorConnection {
    keeper: SupervisorProcess,
    control: ControlSocket,
    stdout: OutputPipe,
    stderr: OutputPipe,
    typing: InputWriter,
    /// The command's side of its terminal.
    terminal: Option<OwnedFd>,
    /// The command's side of an input that is written while it runs.
    open_input: Option<OwnedFd>,
}

fn connect(order: &CommandSpec) -> Result<SupervisorConnection, ExecError> {
    match order.terminal {
        Some(size) => {
            let terminal = CommandTerminal::open(size).map_err(ExecError::NoTerminal)?;
            connect_terminal(order, terminal).map_err(ExecError::SupervisorFailed)
        }
        None => connect_pipes(order).map_err(ExecError::SupervisorFailed),
    }
}

fn connect_terminal(order: &CommandSpec, terminal: CommandTerminal) -> io::Result<SupervisorConnection> {
    let CommandTerminal { output, input, theirs } = terminal;
    let (keeper, control) = start_keeper(order, theirs.try_clone()?.into(), Stdio::null())?;
    let mut typing = InputWriter::new(InputTarget::Terminal(input));
    if let CommandInput::Text(text) = &order.input {
        typing.write(text).map_err(|_| io::ErrorKind::FileTooLarge)?;
        typing.end();
    }
    let (stdout, stderr) = (OutputPipe::new(Some(OutputSource::Terminal(output))), OutputPipe::new(None));
    Ok(SupervisorConnection {
        keeper,
        control,
        stdout,
        stderr,
        typing,
        terminal: Some(theirs),
        open_input: None,
    })
}

fn connect_pipes(order: &CommandSpec) -> io::Result<SupervisorConnection> {
    let (mut keeper, control) = start_keeper(order, Stdio::piped(), Stdio::piped())?;
    let stdout = OutputPipe::new(keeper.0.stdout.take().map(OutputSource::Stdout));
    let stderr = OutputPipe::new(keeper.0.stderr.take().map(OutputSource::Stderr));
    let (way, open_input) = match order.input {
        CommandInput::Open => {
            let (theirs, ours) = io::pipe()?;
            (InputTarget::Pipe(pipe::Sender::from_owned_fd(ours.into())?), Some(theirs.into()))
        }
        CommandInput::Nothing | CommandInput::Text(_) => (InputTarget::Closed, None),
    };
    Ok(SupervisorConnection {
        keeper,
        control,
        stdout,
        stderr,
        typing: InputWriter::new(way),
        terminal: None,
        open_input,
    })
}

/// The keeper gets nothing of the order but its end of the socket, and where the output goes: not even the environment,
/// which could change what it does.
fn start_keeper(
    order: &CommandSpec,
    stdout: Stdio,
    stderr: Stdio,
) -> io::Result<(SupervisorProcess, ControlSocket)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let keeper = Command::new(&order.keeper)
        .arg(SUPERVISOR_ARG)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(stdout)
        .stderr(stderr)
        .spawn()?;
    Ok((
        SupervisorProcess(keeper),
        ControlSocket { socket: UnixStream::from_std(ours)?, heard: BytesMut::new() },
    ))
}

impl RunningCommand {
    /// The process id of the command itself.
    pub fn id(&self) -> i32 {
        self.family.command.as_raw_pid()
    }

    /// The command's network, if it is one that reaches nobody but those who share it.
    pub fn network(&self) -> Option<LocalNetwork> {
        LocalNetwork::of(self.family.command).ok().filter(|_| self.has_own_network)
    }

    /// What the command says next; `None` when all is over. May be cancelled: nothing is lost.
    pub async fn next(&mut self) -> Option<CommandOutputChunk> {
        while self.ended.is_none() {
            tokio::select! {
                piece = self.stdout.next(), if self.stdout.is_open() => {
                    if let Some(piece) = piece { return Some(CommandOutputChunk::Stdout(piece)) }
                }
                piece = self.stderr.next(), if self.stderr.is_open() => {
                    if let Some(piece) = piece { return Some(CommandOutputChunk::Stderr(piece)) }
                }
                report = self.control.hear() => self.ended = Some(match report {
                    Ok(SupervisorReport::Ended(ended)) => ended,
                    _ => sweep(self.family).await,
                }),
                () = self.typing.go_on(), if self.typing.has_work() => {}
                () = sleep(UNATTENDED_INPUT_TIMEOUT), if self.is_unattended => self.typing.end(),
                () = self.is_stopped.notified() => {
                    self.deadline.get_or_insert(Instant::now() + END_REPORT_TIMEOUT);
                }
                () = wait_for_deadline(self.deadline) => {
                    // It is not killed: late is better than never.
                    self.ended = Some(sweep(self.family).await);
                }
            }
        }
        self.rest().await
    }

    /// What still stands in the pipes.
    async fn rest(&mut self) -> Option<CommandOutputChunk> {
        self.typing.close();
        self.terminal = None;
        if let Ok(Some(piece)) = timeout(OUTPUT_DRAIN_TIMEOUT, self.stdout.next()).await {
            return Some(CommandOutputChunk::Stdout(piece));
        }
        self.stdout.close();
        if let Ok(Some(piece)) = timeout(OUTPUT_DRAIN_TIMEOUT, self.stderr.next()).await {
            return Some(CommandOutputChunk::Stderr(piece));
        }
        self.stderr.close();
        None
    }

    /// How it ended, when nothing of it is left. Output that was not read before is thrown away. May be cancelled, and
    /// called again.
    pub async fn wait(&mut self) -> CommandOutcome {
        while self.next().await.is_some() {}
        let _ = timeout(OUTPUT_DRAIN_TIMEOUT, self.keeper.0.wait()).await;
        self.ended.unwrap_or(CommandOutcome::UNSEEN)
    }

    /// Writes to the command's input, if that is open. It is handed over as the command takes it, while somebody listens to
    /// [`next`](Self::next).
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), CommandInputError> {
        if self.is_unattended {
            return Err(CommandInputError::Closed);
        }
        self.typing.write(bytes)
    }

    /// Ends the command's input, after all that was written. A terminal has no end: there the command is told so, as by
    /// Ctrl-D.
    pub fn close_input(&mut self) {
        self.typing.end();
    }

    /// Ends the command also where nothing can be awaited, such as when it is dropped.
    pub fn stopper(&self) -> io::Result<CommandStopper> {
        let socket = self.control.socket.as_fd().try_clone_to_owned()?;
        Ok(CommandStopper { socket, keeper: self.keeper.pid() })
    }

    /// Ends the command and all that came of it. Returns at once; [`wait`](Self::wait) tells when it is done.
    pub fn stop(&self) {
        let _ = shutdown(&self.control.socket, Shutdown::Write);
        self.keeper.wake();
        self.is_stopped.notify_one();
    }
}

/// Ends a command from where nothing can be awaited.
#[derive(Debug)]
pub struct CommandStopper {
    socket: OwnedFd,
    keeper: Option<Pid>,
}

impl CommandStopper {
    /// Ends the command and all that came of it, and waits until that is done, but no longer than this.
    pub fn stop_and_wait(&self, longest: Duration) {
        let _ = shutdown(&self.socket, Shutdown::Write);
        if let Some(keeper) = self.keeper {
            let _ = kill_process(keeper, Signal::CONT);
        }
        // The keeper closes its side when nothing is left. What it says before is read by whoever holds the command.
        let timeout = Timespec::try_from(longest).ok();
        let _ = poll(&mut [PollFd::new(&self.socket, PollFlags::empty())], timeout.as_ref());
    }
}

/// Ends what a keeper that is dead or late has left.
async fn sweep(family: ProcessTree) -> CommandOutcome {
    for _ in 0..MAX_ORPHAN_SWEEPS {
        let orphans = family.orphans();
        if orphans.is_empty() {
            break;
        }
        family.signal(&orphans, Signal::KILL);
        sleep(ORPHAN_SWEEP_INTERVAL).await;
    }
    CommandOutcome::UNSEEN
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        if self.ended.is_none() && !matches!(self.keeper.0.try_wait(), Ok(None)) {
            self.family.signal(&self.family.orphans(), Signal::KILL);
        }
    }
}

/// The keeper's process. Once its socket is closed it ends by itself, and is reaped by Tokio.
#[derive(Debug)]
struct SupervisorProcess(Child);

impl SupervisorProcess {
    /// `None` once it has been reaped.
    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.0.id()?).ok()?)
    }

    /// A command could have paused its keeper, which then would not notice that it shall end.
    fn wake(&self) {
        if let Some(pid) = self.pid() {
            let _ = kill_process(pid, Signal::CONT);
        }
    }
}

impl Drop for SupervisorProcess {
    fn drop(&mut self) {
        self.wake();
    }
}

/// Ends at the deadline, or never.
async fn wait_for_deadline(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Helve's end of the socket. Whatever closes it, the death of Helve too, ends the command.
#[derive(Debug)]
struct ControlSocket {
    socket: UnixStream,
    heard: BytesMut,
}

impl ControlSocket {
    /// Sends an order, and files that are handed over with it.
    async fn begin(
        &mut self,
        order: &[u8],
        files: impl Iterator<Item = &OwnedFd>,
    ) -> io::Result<SupervisorReport> {
        self.socket.write_all(order).await?;
        for file in files {
            self.socket.async_io(Interest::WRITABLE, || send_file(&self.socket, file)).await?;
        }
        self.hear().await
    }

    /// The next report. May be cancelled: what has come of it is kept.
    async fn hear(&mut self) -> io::Result<SupervisorReport> {
        while self.heard.len() < SupervisorReport::BYTES {
            if self.socket.read_buf(&mut self.heard).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let report = self.heard.split_to(SupervisorReport::BYTES);
        SupervisorReport::from_bytes(&report).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

/// Where output comes from.
#[derive(Debug)]
enum OutputSource {
    Stdout(ChildStdout),
    Stderr(ChildStderr),
    Terminal(pipe::Receiver),
}

impl OutputSource {
    async fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        match self {
            OutputSource::Stdout(pipe) => pipe.read(piece).await,
            OutputSource::Stderr(pipe) => pipe.read(piece).await,
            // Once nobody has its other side, reading fails: that is its end.
            OutputSource::Terminal(terminal) => terminal.read(piece).await,
        }
    }
}

/// One of the two outputs.
#[derive(Debug)]
struct OutputPipe {
    /// `None` once it has ended.
    source: Option<OutputSource>,
    piece: Vec<u8>,
}

impl OutputPipe {
    fn new(source: Option<OutputSource>) -> Self {
        OutputPipe { source, piece: vec![0; OUTPUT_CHUNK_BYTES] }
    }

    fn is_open(&self) -> bool {
        self.source.is_some()
    }

    fn close(&mut self) {
        self.source = None;
    }

    async fn next(&mut self) -> Option<Bytes> {
        let count = self.source.as_mut()?.read(&mut self.piece).await.unwrap_or(0);
        match self.piece.get(..count) {
            Some(piece) if count > 0 => Some(Bytes::copy_from_slice(piece)),
            _ => {
                self.close();
                None
            }
        }
    }
}
