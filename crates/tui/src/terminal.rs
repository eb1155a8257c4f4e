//! The terminal as a device: raw mode, keys, and putting everything back whatever happens.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use helve_widgets::RESTORE_TERMINAL;
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use rustix::termios::{self, InputModes, LocalModes, OptionalActions, OutputModes};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// The keyboard is let go within this time.
const KEYBOARD_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// So many keys wait; who types faster waits too.
const MAX_WAITING_KEYS: usize = 256;

/// Raw mode, as long as it lives.
#[derive(Debug)]
pub struct RawMode;

impl RawMode {
    pub fn enter() -> io::Result<RawMode> {
        enable_raw_mode()?;
        Ok(RawMode)
    }

    /// For a while, as it was before.
    pub fn pause(&self) -> io::Result<()> {
        disable_raw_mode()
    }

    pub fn resume(&self) -> io::Result<()> {
        enable_raw_mode()
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let _ = disable_raw_mode();
    }
}

/// Puts back what a program left that was killed: without line editing and echo, no shell had this terminal.
pub fn repair_terminal(terminal: impl AsFd, out: &mut dyn io::Write) -> io::Result<()> {
    let mut modes = termios::tcgetattr(&terminal)?;
    if modes.local_modes.intersects(LocalModes::ICANON | LocalModes::ECHO) {
        return Ok(());
    }
    out.write_all(RESTORE_TERMINAL)?;
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
            let _ = out.write_all(RESTORE_TERMINAL);
            let _ = out.flush();
        }
        let _ = disable_raw_mode();
        usual(panic);
    }));
}

/// What is typed. It is read on a thread of its own, which can be told to leave the keyboard to another program.
pub struct KeyboardReader {
    events: mpsc::Receiver<Event>,
    reading: Arc<Mutex<()>>,
    is_paused: Arc<AtomicBool>,
}

/// The thread holds this while it reads.
fn lock(reading: &Mutex<()>) -> MutexGuard<'_, ()> {
    reading.lock().unwrap_or_else(PoisonError::into_inner)
}

impl KeyboardReader {
    pub fn listen() -> KeyboardReader {
        let (sender, events) = mpsc::channel(MAX_WAITING_KEYS);
        let (reading, is_paused) = (Arc::new(Mutex::new(())), Arc::new(AtomicBool::new(false)));
        let (turn, paused) = (reading.clone(), is_paused.clone());
        std::thread::spawn(move || {
            while !sender.is_closed() {
                if paused.load(Ordering::SeqCst) {
                    std::thread::sleep(KEYBOARD_POLL_INTERVAL);
                    continue;
                }
                let read = {
                    let _turn = lock(&turn);
                    event::poll(KEYBOARD_POLL_INTERVAL)
                        .and_then(|is_there| is_there.then(event::read).transpose())
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
        KeyboardReader { events, reading, is_paused }
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
pub(crate) enum TerminalSignal {
    Terminate,
    Suspend,
    Continue,
}

pub(crate) struct TerminalSignals {
    ends: [Signal; 3],
    suspend: Signal,
    continued: Signal,
}

impl TerminalSignals {
    pub(crate) fn listen() -> io::Result<TerminalSignals> {
        let ends = [SignalKind::terminate(), SignalKind::hangup(), SignalKind::interrupt()];
        let [terminate, hang_up, interrupt] = ends.map(signal);
        Ok(TerminalSignals {
            ends: [terminate?, hang_up?, interrupt?],
            suspend: signal(SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw()))?,
            continued: signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?,
        })
    }

    pub(crate) async fn next(&mut self) -> TerminalSignal {
        let [terminate, hang_up, interrupt] = &mut self.ends;
        tokio::select! {
            _ = terminate.recv() => TerminalSignal::Terminate,
            _ = hang_up.recv() => TerminalSignal::Terminate,
            _ = interrupt.recv() => TerminalSignal::Terminate,
            _ = self.suspend.recv() => TerminalSignal::Suspend,
            _ = self.continued.recv() => TerminalSignal::Continue,
        }
    }
}

/// Stops this process until somebody lets it go on.
pub(crate) fn suspend_process() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP);
}
