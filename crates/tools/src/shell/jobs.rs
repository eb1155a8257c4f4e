//! Commands that run in the background for as long as the session lives.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use helve_exec::{
    Ended, ExecError, InputError, LocalNetwork, Network, Order, Output, Running, start, start_beside,
};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::ToolFailure;
use crate::shell::cleaned::Cleaner;
use crate::shell::commands::Sheet;
use crate::shell::ending;
use crate::shell::kept::{Kept, Whole};

/// So many run at once.
const MAX_RUNNING: usize = 16;
/// So many that have ended can still be asked for.
const MAX_ENDED: usize = 16;
/// What is kept of the output that nobody has looked at.
const UNSEEN: usize = 1 << 20;
/// A command that was silent for so long has said what it had to say.
const QUIET: Duration = Duration::from_millis(150);
/// A job answers at once, or not at all.
const ANSWER: Duration = Duration::from_secs(5);

/// The jobs of a session. Dropping it ends them all.
#[derive(Debug, Default)]
pub struct Jobs(Mutex<Shelf>);

#[derive(Debug, Default)]
struct Shelf {
    last: u32,
    jobs: BTreeMap<u32, Arc<Job>>,
    /// That of the first job without the real one. All that come after share it, so that servers are reached.
    network: Option<LocalNetwork>,
}

/// One command in the background.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) number: u32,
    pub(crate) command: String,
    pub(crate) has_terminal: bool,
    pub(crate) is_confined: bool,
    heard: Arc<Heard>,
    asks: mpsc::Sender<Ask>,
    task: AbortHandle,
}

/// A command that becomes a job.
pub(crate) struct Adopted {
    pub(crate) command: String,
    pub(crate) has_terminal: bool,
    pub(crate) is_confined: bool,
    pub(crate) running: Running,
    /// Its shell's.
    pub(crate) sheet: Option<Sheet>,
}

/// What is asked of the task that holds a job.
enum Ask {
    Write(Vec<u8>, oneshot::Sender<Result<(), InputError>>),
    EndInput,
    Stop,
}

/// What a job has said, and how it ended.
#[derive(Debug)]
struct Heard {
    state: Mutex<State>,
    news: watch::Sender<()>,
}

#[derive(Debug)]
struct State {
    cleaner: Cleaner,
    unseen: Kept,
    has_news: bool,
    ended: Option<Ended>,
}

impl Jobs {
    pub(crate) async fn start(
        &self,
        command: String,
        order: Order,
        sheet: Sheet,
    ) -> Result<Arc<Job>, ToolFailure> {
        if self.running() >= MAX_RUNNING {
            return Err(ToolFailure(format!(
                "{MAX_RUNNING} jobs run already. End one with shell_kill, then try again."
            )));
        }
        let (has_terminal, is_confined) =
            (order.terminal.is_some(), order.confinement.as_ref().is_some_and(|c| c.network == Network::Off));
        let running = self.begin(order).await.map_err(|error| ending::not_run(&error))?;
        Ok(self.adopt(Adopted { command, has_terminal, is_confined, running, sheet: Some(sheet) }))
    }

    /// Lets a command go on as a job that was none.
    pub(crate) fn adopt(&self, adopted: Adopted) -> Arc<Job> {
        let Adopted { command, has_terminal, is_confined, running, sheet } = adopted;
        let network = running.network();
        let heard = Arc::new(Heard::new());
        let (asks, asked) = mpsc::channel(8);
        let task = tokio::spawn(hold(running, heard.clone(), asked, sheet)).abort_handle();
        let mut shelf = self.shelf();
        shelf.forget_old();
        shelf.network = shelf.network.take().or(network);
        shelf.last += 1;
        let job = Arc::new(Job { number: shelf.last, command, has_terminal, is_confined, heard, asks, task });
        shelf.jobs.insert(job.number, job.clone());
        job
    }

    /// Starts a command, where it reaches the servers among the jobs.
    pub(crate) async fn begin(&self, order: Order) -> Result<Running, ExecError> {
        let network = self.shelf().network.clone();
        match network {
            Some(network) => start_beside(order, &network).await,
            None => start(order).await,
        }
    }

    pub(crate) fn all(&self) -> Vec<Arc<Job>> {
        self.shelf().jobs.values().cloned().collect()
    }

    pub(crate) fn find(&self, number: u32) -> Result<Arc<Job>, ToolFailure> {
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

    fn running(&self) -> usize {
        self.shelf().jobs.values().filter(|job| job.ended().is_none()).count()
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelf {
    /// Makes room by forgetting those that ended first.
    fn forget_old(&mut self) {
        let ended: Vec<u32> =
            self.jobs.values().filter(|job| job.ended().is_some()).map(|job| job.number).collect();
        let too_many = ended.len().saturating_sub(MAX_ENDED - 1);
        ended.iter().take(too_many).for_each(|number| drop(self.jobs.remove(number)));
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        // The task goes, and with it the socket whose end the keeper waits for.
        self.shelf().jobs.values().for_each(|job| job.task.abort());
    }
}

impl Job {
    /// How it ended, if it has.
    pub(crate) fn ended(&self) -> Option<Ended> {
        self.heard.state().ended
    }

    pub(crate) fn has_news(&self) -> bool {
        self.heard.state().has_news
    }

    /// What it has said since the last time.
    pub(crate) fn take_news(&self) -> Whole {
        let mut state = self.heard.state();
        let State { cleaner, unseen, has_news, ended } = &mut *state;
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
                let silence = if self.has_news() { QUIET } else { longest };
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

    pub(crate) async fn write(&self, bytes: Vec<u8>) -> Result<(), InputError> {
        let (answer, answered) = oneshot::channel();
        let asking = async {
            self.asks.send(Ask::Write(bytes, answer)).await.map_err(|_| InputError::Closed)?;
            answered.await.unwrap_or(Err(InputError::Closed))
        };
        timeout(ANSWER, asking).await.unwrap_or(Err(InputError::Full))
    }

    pub(crate) async fn end_input(&self) {
        let _ = self.asks.send(Ask::EndInput).await;
    }

    pub(crate) async fn stop(&self) {
        let _ = self.asks.send(Ask::Stop).await;
    }
}

/// Holds a command until it has ended. The sheet is its shell's, and goes with it.
async fn hold(
    mut running: Running,
    heard: Arc<Heard>,
    mut asked: mpsc::Receiver<Ask>,
    _sheet: Option<Sheet>,
) {
    let mut has_asker = true;
    loop {
        tokio::select! {
            said = running.next() => match said {
                Some(Output::Stdout(piece) | Output::Stderr(piece)) => heard.take(&piece),
                None => break,
            },
            ask = asked.recv(), if has_asker => match ask {
                Some(Ask::Write(bytes, answer)) => drop(answer.send(running.write(&bytes))),
                Some(Ask::EndInput) => running.close_input(),
                Some(Ask::Stop) => running.stop(),
                None => has_asker = false,
            },
        }
    }
    heard.end(running.wait().await);
}

fn empty() -> Kept {
    Kept::new(0, UNSEEN)
}

impl Heard {
    fn new() -> Heard {
        let state = State { cleaner: Cleaner::default(), unseen: empty(), has_news: false, ended: None };
        Heard { state: Mutex::new(state), news: watch::Sender::new(()) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, piece: &[u8]) {
        let mut state = self.state();
        let State { cleaner, unseen, has_news, .. } = &mut *state;
        cleaner.push(piece, |text| unseen.take(text));
        *has_news = true;
        drop(state);
        self.news.send_replace(());
    }

    fn end(&self, ended: Ended) {
        self.state().ended = Some(ended);
        self.news.send_replace(());
    }
}
