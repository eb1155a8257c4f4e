//! Commands that run in the background for as long as the session lives.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use helve_exec::{
    CommandInputError, CommandOutcome, CommandOutputChunk, CommandSpec, CommandStopper, ExecError,
    LocalNetwork, NetworkAccess, RunningCommand, start, start_sharing_network,
};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::ToolFailure;
use crate::shell::bounded_output::{CollectedOutput, HeadTailBuffer};
use crate::shell::clean_output::OutputCleaner;
use crate::shell::commands::ShellNotesFolder;
use crate::shell::end_text;

/// So many run at once.
const MAX_RUNNING_JOBS: usize = 16;
/// So many that have ended can still be asked for.
const MAX_ENDED_JOBS: usize = 16;
/// What is kept of the output that nobody has looked at.
const MAX_UNSEEN_OUTPUT_BYTES: usize = 1 << 20;
/// A command that was silent for so long has said what it had to say.
const JOB_QUIET_TIME: Duration = Duration::from_millis(150);
/// A job answers at once, or not at all.
const JOB_ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// The jobs of a session. Dropping it ends them all.
#[derive(Debug, Default)]
pub struct BackgroundJobs(Mutex<JobTable>);

#[derive(Debug, Default)]
struct JobTable {
    last: u32,
    jobs: BTreeMap<u32, Arc<BackgroundJob>>,
    /// That of the first job without the real one. All that come after share it, so that servers are reached.
    network: Option<LocalNetwork>,
}

/// One command in the background.
#[derive(Debug)]
pub(crate) struct BackgroundJob {
    pub(crate) number: u32,
    pub(crate) command: String,
    pub(crate) has_terminal: bool,
    pub(crate) is_confined: bool,
    heard: Arc<JobOutput>,
    asks: mpsc::Sender<JobRequest>,
    task: AbortHandle,
    stopper: Option<CommandStopper>,
}

/// A command that becomes a job.
pub(crate) struct AdoptedCommand {
    pub(crate) command: String,
    pub(crate) has_terminal: bool,
    pub(crate) is_confined: bool,
    pub(crate) running: RunningCommand,
    /// Its shell's.
    pub(crate) sheet: Option<ShellNotesFolder>,
    /// Looks at what it has made.
    pub(crate) on_end: Option<JobEndCheck>,
}

/// What is done when a job is over. Gives what is to be told of that.
pub(crate) type JobEndCheck = Box<dyn FnOnce() -> String + Send>;

/// What is asked of the task that holds a job.
enum JobRequest {
    Write(Vec<u8>, oneshot::Sender<Result<(), CommandInputError>>),
    EndInput,
    Stop,
}

/// What a job has said, and how it ended.
#[derive(Debug)]
struct JobOutput {
    state: Mutex<JobOutputState>,
    news: watch::Sender<()>,
}

#[derive(Debug)]
struct JobOutputState {
    cleaner: OutputCleaner,
    unseen: HeadTailBuffer,
    has_news: bool,
    ended: Option<CommandOutcome>,
}

impl BackgroundJobs {
    pub(crate) async fn start(
        &self,
        command: String,
        order: CommandSpec,
        sheet: ShellNotesFolder,
        on_end: Option<JobEndCheck>,
    ) -> Result<Arc<BackgroundJob>, ToolFailure> {
        if self.running() >= MAX_RUNNING_JOBS {
            return Err(ToolFailure(format!(
                "{MAX_RUNNING_JOBS} jobs run already. End one with shell_kill, then try again."
            )));
        }
        let (has_terminal, is_confined) = (
            order.terminal.is_some(),
            order.confinement.as_ref().is_some_and(|c| c.network == NetworkAccess::Off),
        );
        let running = self.begin(order).await.map_err(|error| end_text::not_run(&error))?;
        let sheet = Some(sheet);
        Ok(self.adopt(AdoptedCommand { command, has_terminal, is_confined, running, sheet, on_end }))
    }

    /// Lets a command go on as a job that was none.
    pub(crate) fn adopt(&self, adopted: AdoptedCommand) -> Arc<BackgroundJob> {
        let AdoptedCommand { command, has_terminal, is_confined, running, sheet, on_end } = adopted;
        let (network, stopper) = (running.network(), running.stopper().ok());
        let heard = Arc::new(JobOutput::new());
        let (asks, asked) = mpsc::channel(8);
        let task = tokio::spawn(hold(running, heard.clone(), asked, sheet, on_end)).abort_handle();
        let mut shelf = self.shelf();
        shelf.forget_old();
        shelf.network = shelf.network.take().or(network);
        shelf.last += 1;
        let job = Arc::new(BackgroundJob {
            number: shelf.last,
            command,
            has_terminal,
            is_confined,
            heard,
            asks,
            task,
            stopper,
        });
        shelf.jobs.insert(job.number, job.clone());
        job
    }

    /// Starts a command, where it reaches the servers among the jobs.
    pub(crate) async fn begin(&self, order: CommandSpec) -> Result<RunningCommand, ExecError> {
        let network = self.shelf().network.clone();
        match network {
            Some(network) => start_sharing_network(order, &network).await,
            None => start(order).await,
        }
    }

    pub(crate) fn all(&self) -> Vec<Arc<BackgroundJob>> {
        self.shelf().jobs.values().cloned().collect()
    }

    pub(crate) fn find(&self, number: u32) -> Result<Arc<BackgroundJob>, ToolFailure> {
        let shelf = self.shelf();
        shelf.jobs.get(&number).cloned().ok_or_else(|| {
            let numbers: Vec<String> = shelf.jobs.keys().map(u32::to_string).collect();
            ToolFailure(match numbers.is_empty() {
                true => {
                    format!("There is no job {number}, nor any other. Start one with shell and `background`.")
                }
                false => format!("There is no job {number}. There are: {}.", numbers.join(", ")),
            })
        })
    }

    /// Ends all that still run, and waits for that, but not much longer than this for each.
    pub(crate) fn end_all(&self, longest: Duration) {
        let running: Vec<Arc<BackgroundJob>> =
            self.all().into_iter().filter(|job| job.ended().is_none()).collect();
        // All at once, and then one after the other.
        for time in [Duration::ZERO, longest] {
            running
                .iter()
                .filter_map(|job| job.stopper.as_ref())
                .for_each(|stopper| stopper.stop_and_wait(time));
        }
    }

    pub(crate) fn running(&self) -> usize {
        self.shelf().jobs.values().filter(|job| job.ended().is_none()).count()
    }

    fn shelf(&self) -> MutexGuard<'_, JobTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl JobTable {
    /// Makes room by forgetting those that ended first.
    fn forget_old(&mut self) {
        let ended: Vec<u32> =
            self.jobs.values().filter(|job| job.ended().is_some()).map(|job| job.number).collect();
        let too_many = ended.len().saturating_sub(MAX_ENDED_JOBS - 1);
        ended.iter().take(too_many).for_each(|number| drop(self.jobs.remove(number)));
    }
}

impl Drop for BackgroundJobs {
    fn drop(&mut self) {
        // The task goes, and with it the socket whose end the keeper waits for.
        self.shelf().jobs.values().for_each(|job| job.task.abort());
    }
}

impl BackgroundJob {
    /// How it ended, if it has.
    pub(crate) fn ended(&self) -> Option<CommandOutcome> {
        self.heard.state().ended
    }

    pub(crate) fn has_news(&self) -> bool {
        self.heard.state().has_news
    }

    /// What it has said since the last time.
    pub(crate) fn take_news(&self) -> CollectedOutput {
        let mut state = self.heard.state();
        let JobOutputState { cleaner, unseen, has_news, ended } = &mut *state;
        match ended {
            Some(_) => cleaner.flush(|text| unseen.take(text)),
            None => cleaner.show(|text| unseen.take(text)),
        }
        *has_news = false;
        std::mem::replace(unseen, empty()).into_whole()
    }

    /// Waits until it says something or ends, but no longer than this.
    pub(crate) async fn wait_for_news(&self, longest: Duration) {
        let mut news = self.heard.news.subscribe();
        let _ = timeout(longest, async {
            while !self.has_news() && self.ended().is_none() && news.changed().await.is_ok() {}
        })
        .await;
    }

    /// Waits until it has said something and is silent again, or ends, but no longer than this.
    pub(crate) async fn settle(&self, longest: Duration) {
        let mut news = self.heard.news.subscribe();
        let _ = timeout(longest, async {
            while self.ended().is_none() {
                let silence = if self.has_news() { JOB_QUIET_TIME } else { longest };
                if !matches!(timeout(silence, news.changed()).await, Ok(Ok(()))) {
                    break;
                }
            }
        })
        .await;
    }

    pub(crate) async fn wait_until_ended(&self, longest: Duration) {
        let mut news = self.heard.news.subscribe();
        let _ =
            timeout(longest, async { while self.ended().is_none() && news.changed().await.is_ok() {} }).await;
    }

    pub(crate) async fn write(&self, bytes: Vec<u8>) -> Result<(), CommandInputError> {
        let (answer, answered) = oneshot::channel();
        let asking = async {
            self.asks.send(JobRequest::Write(bytes, answer)).await.map_err(|_| CommandInputError::Closed)?;
            answered.await.unwrap_or(Err(CommandInputError::Closed))
        };
        timeout(JOB_ANSWER_TIMEOUT, asking).await.unwrap_or(Err(CommandInputError::Full))
    }

    pub(crate) async fn end_input(&self) {
        let _ = self.asks.send(JobRequest::EndInput).await;
    }

    pub(crate) async fn stop(&self) {
        let _ = self.asks.send(JobRequest::Stop).await;
    }
}

/// Holds a command until it has ended. The sheet is its shell's, and goes with it.
async fn hold(
    mut running: RunningCommand,
    heard: Arc<JobOutput>,
    mut asked: mpsc::Receiver<JobRequest>,
    _sheet: Option<ShellNotesFolder>,
    on_end: Option<JobEndCheck>,
) {
    let mut has_asker = true;
    loop {
        tokio::select! {
            said = running.next() => match said {
                Some(CommandOutputChunk::Stdout(piece) | CommandOutputChunk::Stderr(piece)) => heard.take(&piece),
                None => break,
            },
            ask = asked.recv(), if has_asker => match ask {
                Some(JobRequest::Write(bytes, answer)) => drop(answer.send(running.write(&bytes))),
                Some(JobRequest::EndInput) => running.close_input(),
                Some(JobRequest::Stop) => running.stop(),
                None => has_asker = false,
            },
        }
    }
    let ended = running.wait().await;
    if let Some(on_end) = on_end
        && let Ok(words) = tokio::task::spawn_blocking(on_end).await
        && !words.is_empty()
    {
        heard.take(words.as_bytes());
    }
    heard.end(ended);
}

fn empty() -> HeadTailBuffer {
    HeadTailBuffer::new(0, MAX_UNSEEN_OUTPUT_BYTES)
}

impl JobOutput {
    fn new() -> JobOutput {
        let state = JobOutputState {
            cleaner: OutputCleaner::default(),
            unseen: empty(),
            has_news: false,
            ended: None,
        };
        JobOutput { state: Mutex::new(state), news: watch::Sender::new(()) }
    }

    fn state(&self) -> MutexGuard<'_, JobOutputState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, piece: &[u8]) {
        let mut state = self.state();
        let JobOutputState { cleaner, unseen, has_news, .. } = &mut *state;
        cleaner.push(piece, |text| unseen.take(text));
        *has_news = true;
        drop(state);
        self.news.send_replace(());
    }

    fn end(&self, ended: CommandOutcome) {
        self.state().ended = Some(ended);
        self.news.send_replace(());
    }
}
