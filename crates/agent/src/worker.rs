//! A thread for a session: whoever reads what it tells may be slow, or stop reading, and the work goes on.

use std::any::Any;
use std::io;
use std::thread::JoinHandle;

use tokio_util::sync::CancellationToken;

use crate::actor::{SessionActor, SessionHandle};
use crate::recorder::SessionError;
use crate::session::Session;

/// A session at work on a thread of its own.
pub struct SessionWorker {
    thread: JoinHandle<Result<Session, WorkerError>>,
    done: CancellationToken,
}

/// Why the work of a session ended before the session did.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error("no runtime could be started: {0}")]
    Runtime(#[from] io::Error),
    /// A mistake of ours.
    #[error("the thread of the session panicked")]
    Panicked,
}

impl SessionWorker {
    /// Lets a session work.
    pub fn start(actor: SessionActor) -> SessionWorker {
        SessionWorker::spawn(move || run(actor))
    }

    /// Opens a session on its thread, because that may take its time, and tells how to reach it.
    pub fn open(
        open: impl FnOnce() -> Result<Session, SessionError> + Send + 'static,
        tell: impl FnOnce(SessionHandle) + Send + 'static,
    ) -> SessionWorker {
        SessionWorker::spawn(move || {
            let (handle, actor) = open()?.listen();
            tell(handle);
            run(actor)
        })
    }

    fn spawn(work: impl FnOnce() -> Result<Session, WorkerError> + Send + 'static) -> SessionWorker {
        let done = CancellationToken::new();
        let guard = done.clone().drop_guard();
        let thread = std::thread::spawn(move || {
            let _guard = guard;
            work()
        });
        SessionWorker { thread, done }
    }

    /// Is cancelled when the session has ended.
    pub fn done(&self) -> CancellationToken {
        self.done.clone()
    }

    /// Waits until the session has ended, and gives it back.
    pub async fn end(self) -> Result<Session, WorkerError> {
        self.done.cancelled().await;
        self.thread.join().unwrap_or_else(|_: Box<dyn Any + Send>| Err(WorkerError::Panicked))
    }
}

fn run(actor: SessionActor) -> Result<Session, WorkerError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(actor.run())?)
}
