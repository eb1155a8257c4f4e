//! The loop: keys, events of the session, results of errands, signals; and a frame when something has changed, at most sixty
//! times a second.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use helve_widgets::Screen;
use ratatui::crossterm::event::Event;
use ratatui::layout::Size;
use tokio::sync::mpsc;

use crate::app::App;
use crate::errands::{self, Done, Errand};
use crate::link::{Ending, Link, World};
use crate::terminal::{Keyboard, Notice, Notices, Raw, stop};

const FRAME: Duration = Duration::from_millis(16);
/// After a key it is drawn sooner, so that typing feels immediate.
const AFTER_KEY: Duration = Duration::from_millis(3);
/// How often something is drawn that moves by itself.
const MOVE: Duration = Duration::from_millis(100);

/// The terminal that it runs on.
pub struct Device<W: Write, S: FnMut() -> Size> {
    pub screen: Screen<W, S>,
    pub keyboard: Keyboard,
    pub raw: Raw,
}

impl<W: Write, S: FnMut() -> Size> Device<W, S> {
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
    device: &mut Device<W, S>,
    mut link: Link,
    world: &World,
) -> io::Result<Ending> {
    let mut notices = Notices::listen()?;
    let (sender, mut done) = mpsc::unbounded_channel();
    let mut clock = Frames::new((world.now)());
    // Continuing after a stop of our own is no news.
    let mut was_stopped = false;
    loop {
        for order in app.take_orders() {
            // A session that has ended tells so itself.
            let _ = link.orders.send(order).await;
        }
        for errand in app.take_errands() {
            was_stopped |= errand == Errand::Suspend;
            serve(errand, &mut app, device, world, &sender)?;
        }
        if let Some(ending) = app.ending() {
            let ending = ending.clone();
            app.tick((world.now)() + FRAME);
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
                let Some(key) = key else { return Ok(Ending::Told) };
                if matches!(key, Event::Resize(..)) {
                    device.screen.resized();
                }
                app.input(&key, (world.now)());
                clock.ask(AFTER_KEY);
            }
            notice = notices.next() => match notice {
                Notice::End => return Ok(Ending::Told),
                Notice::Suspend => {
                    was_stopped = true;
                    device.lend(stop)?;
                    clock.ask(Duration::ZERO);
                }
                Notice::Continue if std::mem::take(&mut was_stopped) => {}
                Notice::Continue => {
                    device.raw.resume()?;
                    device.screen.enter()?;
                    clock.ask(Duration::ZERO);
                }
            },
            told = link.told.recv() => {
                let Some(told) = told else { return Ok(Ending::SessionEnded) };
                app.told(&told, (world.now)());
                clock.ask(FRAME);
            }
            Some(result) = done.recv() => {
                app.done(result);
                clock.ask(FRAME);
            }
            () = clock.wait((world.now)()) => {}
        }
    }
}

fn serve<W: Write, S: FnMut() -> Size>(
    errand: Errand,
    app: &mut App,
    device: &mut Device<W, S>,
    world: &World,
    done: &mpsc::UnboundedSender<Done>,
) -> io::Result<()> {
    match errand {
        Errand::Edit(text) => {
            let edited = device.lend(|| (world.edit)(&text))?;
            app.done(Done::Edited(edited));
        }
        Errand::Suspend => device.lend(stop)?,
        Errand::Redraw => {
            device.screen.leave()?;
            device.screen.enter()?;
        }
        Errand::Copy(text) => device.screen.copy(&BASE64_STANDARD.encode(text))?,
        Errand::Notify(text) => device.screen.notify(&text)?,
        errand => errands::start(errand, world, done.clone()),
    }
    Ok(())
}

/// When the next frame is due.
struct Frames {
    last: Instant,
    next: Option<Instant>,
}

impl Frames {
    fn new(now: Instant) -> Frames {
        Frames { last: now, next: Some(now) }
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
        self.next = is_moving.then(|| now + MOVE);
    }

    async fn wait(&self, now: Instant) {
        match self.next {
            Some(next) => tokio::time::sleep(next.saturating_duration_since(now)).await,
            None => std::future::pending().await,
        }
    }
}
