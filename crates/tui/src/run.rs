//! The loop: keys, events of the session, results of errands, signals; and a frame when something has changed, at most sixty
//! times a second.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use helve_widgets::TerminalScreen;
use ratatui::crossterm::event::Event;
use ratatui::layout::Size;
use tokio::sync::mpsc;

use crate::app::App;
use crate::link::{AppExitReason, MachineAccess, SessionLink};
use crate::machine_jobs::{self, MachineJob, MachineJobResult};
use crate::terminal::{KeyboardReader, RawMode, TerminalSignal, TerminalSignals, suspend_process};

const FRAME_INTERVAL: Duration = Duration::from_millis(16);
/// After a key it is drawn sooner, so that typing feels immediate.
const KEY_FRAME_DELAY: Duration = Duration::from_millis(3);
/// How often something is drawn that moves by itself.
const ANIMATION_INTERVAL: Duration = Duration::from_millis(100);

/// The terminal that it runs on.
pub struct TerminalDevice<W: Write, S: FnMut() -> Size> {
    pub screen: TerminalScreen<W, S>,
    pub keyboard: KeyboardReader,
    pub raw: RawMode,
}

impl<W: Write, S: FnMut() -> Size> TerminalDevice<W, S> {
    /// Lets another program have the terminal while `work` runs.
    fn lend<T>(&mut self, work: impl FnOnce() -> T) -> io::Result<T> {
        self.screen.leave()?;
        let (keyboard, raw) = (&self.keyboard, &self.raw);
        let done = keyboard.lend(|| {
            raw.pause()?;
            let done = work();
            raw.resume()?;
            Ok::<T, io::Error>(done)
        })?;
        self.screen.enter()?;
        Ok(done)
    }
}

/// Runs the interface until it is left. The screen must have been entered, and is not left at the end.
pub async fn run<W: Write, S: FnMut() -> Size>(
    mut app: App,
    device: &mut TerminalDevice<W, S>,
    mut link: SessionLink,
    world: &MachineAccess,
) -> io::Result<AppExitReason> {
    let mut notices = TerminalSignals::listen()?;
    let (sender, mut done) = mpsc::unbounded_channel();
    let mut clock = FrameClock::new((world.now)());
    // Continuing after a stop of our own is no news.
    let mut was_stopped = false;
    loop {
        for order in app.take_requests() {
            // A session that has ended tells so itself.
            let _ = link.orders.send(order).await;
        }
        for errand in app.take_errands() {
            was_stopped |= errand == MachineJob::Suspend;
            perform_job(errand, &mut app, device, world, &sender)?;
        }
        if let Some(ending) = app.ending() {
            let ending = ending.clone();
            app.tick((world.now)() + FRAME_INTERVAL);
            app.draw(&mut device.screen, None, (world.now)())?;
            return Ok(ending);
        }
        let now = (world.now)();
        if clock.is_due(now) {
            let limit = app.model().and_then(|model| (world.context)(model));
            app.draw(&mut device.screen, limit, now)?;
            // What is written is saved after it is shown: a disk may take its time.
            app.tick(now);
            clock.drawn((world.now)(), app.is_moving());
        }
        tokio::select! {
            biased;
            key = device.keyboard.next() => {
                let Some(key) = key else { return Ok(AppExitReason::Terminated) };
                if matches!(key, Event::Resize(..)) {
                    device.screen.resized();
                }
                app.input(&key, (world.now)());
                clock.ask(KEY_FRAME_DELAY);
            }
            notice = notices.next() => match notice {
                TerminalSignal::Terminate => return Ok(AppExitReason::Terminated),
                TerminalSignal::Suspend => {
                    was_stopped = true;
                    device.lend(suspend_process)?;
                    clock.ask(Duration::ZERO);
                }
                TerminalSignal::Continue if std::mem::take(&mut was_stopped) => {}
                TerminalSignal::Continue => {
                    device.raw.resume()?;
                    device.screen.enter()?;
                    clock.ask(Duration::ZERO);
                }
            },
            told = link.told.recv() => {
                let Some(told) = told else { return Ok(AppExitReason::SessionEnded) };
                app.told(&told, (world.now)());
                clock.ask(FRAME_INTERVAL);
            }
            Some(result) = done.recv() => {
                app.done(result);
                clock.ask(FRAME_INTERVAL);
            }
            () = clock.wait((world.now)()) => {}
        }
    }
}

fn perform_job<W: Write, S: FnMut() -> Size>(
    errand: MachineJob,
    app: &mut App,
    device: &mut TerminalDevice<W, S>,
    world: &MachineAccess,
    done: &mpsc::UnboundedSender<MachineJobResult>,
) -> io::Result<()> {
    match errand {
        MachineJob::Edit(text) => {
            let edited = device.lend(|| (world.edit)(&text))?;
            app.done(MachineJobResult::Edited(edited));
        }
        MachineJob::Suspend => device.lend(suspend_process)?,
        MachineJob::Redraw => {
            device.screen.leave()?;
            device.screen.enter()?;
        }
        MachineJob::Copy(text) => device.screen.copy(&BASE64_STANDARD.encode(text))?,
        MachineJob::Notify(text) => device.screen.notify(&text)?,
        errand => machine_jobs::start_job(errand, world, done.clone()),
    }
    Ok(())
}

/// When the next frame is due.
struct FrameClock {
    last: Instant,
    next: Option<Instant>,
}

impl FrameClock {
    fn new(now: Instant) -> FrameClock {
        FrameClock { last: now, next: Some(now) }
    }

    /// Something has changed: a frame is wanted so long after the last one.
    fn ask(&mut self, after: Duration) {
        let wanted = self.last + after;
        self.next = Some(self.next.map_or(wanted, |next| next.min(wanted)));
    }

    fn is_due(&self, now: Instant) -> bool {
        self.next.is_some_and(|next| now >= next)
    }

    fn drawn(&mut self, now: Instant, is_moving: bool) {
        self.last = now;
        self.next = is_moving.then(|| now + ANIMATION_INTERVAL);
    }

    async fn wait(&self, now: Instant) {
        match self.next {
            Some(next) => tokio::time::sleep(next.saturating_duration_since(now)).await,
            None => std::future::pending().await,
        }
    }
}
