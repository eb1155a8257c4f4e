//! The terminal as a device: raw mode, keys, and putting everything back whatever happens.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use helve_widgets::RESTORE;
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use rustix::termios::{self, InputModes, LocalModes, OptionalActions, OutputModes};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// The keyboard is let go within this time.
const LOOK_UP: Duration = Duration::from_millis(50);
/// So many keys wait; who types faster waits too.
const MOST_KEYS: usize = 256;

/// Raw mode, as long as it lives.
#[derive(Debug)]
pub struct Raw;

impl Raw {
    pub fn enter() -> io::Result<Raw> {
        enable_raw_mode()?;
        Ok(Raw)
    }

    /// For a while, as it was before.
    pub fn pause(&self) -> io::Result<()> {
        disable_raw_mode()
    }

    pub fn resume(&self) -> io::Result<()> {
        enable_raw_mode()
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = disable_raw_mode();
    }
}

/// Puts back what a program left that was killed: without line editing and echo, no shell had this terminal.
pub fn mend(terminal: impl AsFd, out: &mut dyn io::Write) -> io::Result<()> {
    let mut modes = termios::tcgetattr(&terminal)?;
    if modes.local_modes.intersects(LocalModes::ICANON | LocalModes::ECHO) {
        return Ok(());
    }
    out.write_all(RESTORE)?;
    modes.local_modes |= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN;
    modes.input_modes |= InputModes::ICRNL | InputModes::IXON | InputModes::BRKINT;
    modes.output_modes |= OutputModes::OPOST | OutputModes::ONLCR;
    Ok(termios::tcsetattr(&terminal, OptionalActions::Now, &modes)?)
}

/// Whoever panics puts everything back first, so that the message can be read, unless it is `harmless`. `out` must be waited
/// for by nobody else.
pub fn restore_on_panic(out: impl io::Write + Send + 'static, harmless: fn() -> bool) {
    let usual = std::panic::take_hook();
    let out = Mutex::new(out);
    std::panic::set_hook(Box::new(move |panic| {
        if harmless() {
            return usual(panic);
        }
        // Only whoever panics while it writes finds it taken.
        if let Ok(mut out) = out.try_lock() {
            let _ = out.write_all(RESTORE);
            let _ = out.flush();
        }
        let _ = disable_raw_mode();
        usual(panic);
    }));
}

/// What is typed. It is read on a thread of its own, which can be told to leave the keyboard to another program.
pub struct Keyboard {
    events: mpsc::Receiver<Event>,
    reading: Arc<Mutex<()>>,
    is_paused: Arc<AtomicBool>,
}

/// The thread holds this while it reads.
fn lock(reading: &Mutex<()>) -> MutexGuard<'_, ()> {
    reading.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Keyboard {
    pub fn listen() -> Keyboard {
        let (sender, events) = mpsc::channel(MOST_KEYS);
        let (reading, is_paused) = (Arc::new(Mutex::new(())), Arc::new(AtomicBool::new(false)));
        let (turn, paused) = (reading.clone(), is_paused.clone());
        std::thread::spawn(move || {
            while !sender.is_closed() {
                if paused.load(Ordering::SeqCst) {
                    std::thread::sleep(LOOK_UP);
                    continue;
                }
                let read = {
                    let _turn = lock(&turn);
                    event::poll(LOOK_UP).and_then(|is_there| is_there.then(event::read).transpose())
                };
                match read {
                    Ok(Some(event)) => {
                        if sender.blocking_send(event).is_err() {
                            return;
                        }
                    }
                    Ok(None) => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    // The terminal is gone.
                    Err(_) => return,
                }
            }
        });
        Keyboard { events, reading, is_paused }
    }

    /// None when the terminal is gone.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// Leaves the keyboard to another program while `work` runs.
    pub(crate) fn lend<T>(&self, work: impl FnOnce() -> T) -> T {
        self.is_paused.store(true, Ordering::SeqCst);
        let _turn = lock(&self.reading);
        let done = work();
        self.is_paused.store(false, Ordering::SeqCst);
        done
    }
}

/// What the system tells us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    End,
    Suspend,
    Continue,
}

pub(crate) struct Notices {
    ends: [Signal; 3],
    suspend: Signal,
    continued: Signal,
}

impl Notices {
    pub(crate) fn listen() -> io::Result<Notices> {
        let ends = [SignalKind::terminate(), SignalKind::hangup(), SignalKind::interrupt()];
        let [terminate, hang_up, interrupt] = ends.map(signal);
        Ok(Notices {
            ends: [terminate?, hang_up?, interrupt?],
            suspend: signal(SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw()))?,
            continued: signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?,
        })
    }

    pub(crate) async fn next(&mut self) -> Notice {
        let [terminate, hang_up, interrupt] = &mut self.ends;
        tokio::select! {
            _ = terminate.recv() => Notice::End,
            _ = hang_up.recv() => Notice::End,
            _ = interrupt.recv() => Notice::End,
            _ = self.suspend.recv() => Notice::Suspend,
            _ = self.continued.recv() => Notice::Continue,
        }
    }
}

/// Stops this process until somebody lets it go on.
pub(crate) fn stop() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP);
}
