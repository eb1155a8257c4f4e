//! A window with the program in it: a real terminal, an emulator that draws it, and somebody who types.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "it measures how long a program takes")]

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};

/// A little longer than the interface lets keys pass unheard, when a question comes and when it comes while somebody types.
const APPROVAL_GUARD: Duration = Duration::from_millis(500);
const TYPING_GUARD: Duration = Duration::from_millis(1_500);

/// So much that has left the window at the top can be looked at.
const SCROLLBACK_ROWS: usize = 2_000;

pub struct TerminalWindow {
    keyboard: Option<File>,
    drawn: Arc<EmulatedScreen>,
    is_torn: Arc<AtomicBool>,
    /// The side of the program, kept open so that its state can be looked at afterwards.
    side: File,
    before: Termios,
    child: Child,
}

struct EmulatedScreen {
    parser: Mutex<vt100::Parser>,
    /// Told after each piece of output.
    changed: Condvar,
}

impl TerminalWindow {
    /// Starts a program that has this terminal as its own.
    pub fn start(program: &Command, rows: u16, columns: u16) -> TerminalWindow {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
        tcsetwinsize(&terminal, size(rows, columns)).unwrap();
        let mut display = File::from(terminal);
        let keyboard = display.try_clone().unwrap();
        let open = || {
            let mut options = OpenOptions::new();
            options.custom_flags(rustix::fs::OFlags::NOCTTY.bits().cast_signed());
            options.read(true).write(true).open(&name).unwrap()
        };
        let side = open();
        let before = tcgetattr(&side).unwrap();
        let parser = Mutex::new(vt100::Parser::new(rows, columns, SCROLLBACK_ROWS));
        let drawn = Arc::new(EmulatedScreen { parser, changed: Condvar::new() });
        let is_torn = Arc::new(AtomicBool::new(false));
        let (emulator, torn) = (drawn.clone(), is_torn.clone());
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let (Ok(read @ 1..), false) = (display.read(&mut bytes), torn.load(Ordering::SeqCst)) {
                emulator.parser.lock().unwrap().process(&bytes[..read]);
                emulator.changed.notify_all();
            }
        });
        // A session of its own, with the terminal as its controlling one: so it hears of its size and of hang-ups.
        let mut command = Command::new("setsid");
        command.arg("-c").arg(program.get_program()).args(program.get_args()).env_clear();
        command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.current_dir(program.get_current_dir().unwrap());
        let child = command.stdin(open()).stdout(open()).stderr(open()).spawn().unwrap();
        TerminalWindow { keyboard: Some(keyboard), drawn, is_torn, side, before, child }
    }

    pub fn text(&self) -> String {
        self.drawn.parser.lock().unwrap().screen().contents()
    }

    /// Everything, with what has left the window at the top.
    pub fn whole_text(&self) -> String {
        let mut parser = self.drawn.parser.lock().unwrap();
        let (rows, columns) = parser.screen().size();
        parser.screen_mut().set_scrollback(usize::MAX);
        let above = parser.screen().scrollback();
        let mut lines = Vec::new();
        for back in (0..=above).rev() {
            parser.screen_mut().set_scrollback(back);
            let row = parser.screen().rows(0, columns).next().unwrap_or_default();
            lines.push(row);
        }
        parser.screen_mut().set_scrollback(0);
        let rest = parser.screen().rows(0, columns).skip(1).take(rows.into());
        lines.extend(rest);
        lines.join("\n")
    }

    /// Looks at what is drawn.
    pub fn look<T>(&self, look: impl FnOnce(&vt100::Screen) -> T) -> T {
        look(self.drawn.parser.lock().unwrap().screen())
    }

    /// Looks at it as if so many rows had not left the window at the top.
    pub fn look_back<T>(&self, rows: usize, look: impl FnOnce(&vt100::Screen) -> T) -> T {
        let mut parser = self.drawn.parser.lock().unwrap();
        parser.screen_mut().set_scrollback(rows);
        let seen = look(parser.screen());
        parser.screen_mut().set_scrollback(0);
        seen
    }

    /// Waits until something is drawn, and tells when that was.
    pub fn wait_for_screen(
        &self,
        patience: Duration,
        is_so: impl Fn(&vt100::Screen) -> bool,
    ) -> Option<Instant> {
        let until = Instant::now() + patience;
        let mut parser = self.drawn.parser.lock().unwrap();
        loop {
            if is_so(parser.screen()) {
                return Some(Instant::now());
            }
            let left = until.checked_duration_since(Instant::now())?;
            parser = self.drawn.changed.wait_timeout(parser, left).unwrap().0;
        }
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    pub fn wait_until(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        let came = (0..3_000).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            is_so(&self.text())
        });
        assert!(came, "{what} did not come:\n{}", self.text());
    }

    pub fn wait_for(&self, text: &str) {
        self.wait_until(text, |seen| seen.contains(text));
    }

    pub fn type_in(&mut self, text: &str) {
        self.keyboard.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Writes something and sends it.
    pub fn say(&mut self, text: &str) {
        self.type_in(text);
        self.type_in("\r");
    }

    /// Answers a question, after the time in which a key does not count.
    pub fn answer(&mut self, key: &str) {
        self.wait_for_guard();
        self.type_in(key);
    }

    /// Answers a question that came while somebody was typing: then keys do not count for longer.
    pub fn answer_after_typing(&mut self, key: &str) {
        std::thread::sleep(TYPING_GUARD);
        self.type_in(key);
    }

    /// Waits until keys count again after a question came. Nothing on the screen tells when.
    pub fn wait_for_guard(&self) {
        std::thread::sleep(APPROVAL_GUARD);
    }

    pub fn resize(&self, rows: u16, columns: u16) {
        // The emulator itself breaks when text wraps in its only row.
        self.drawn.parser.lock().unwrap().screen_mut().set_size(rows.max(2), columns);
        tcsetwinsize(self.keyboard.as_ref().unwrap(), size(rows, columns)).unwrap();
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().try_into().unwrap()).unwrap()
    }

    /// Whether the program is stopped, as the system tells.
    pub fn wait_for_stop(&self) {
        let file = format!("/proc/{}/stat", self.child.id());
        let stopped = (0..3_000).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            std::fs::read_to_string(&file).is_ok_and(|stat| stat.contains(") T "))
        });
        assert!(stopped, "it was not stopped");
    }

    pub fn wait(&mut self) -> ExitStatus {
        for _ in 0..3_000 {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it did not end:\n{}", self.text());
    }

    /// The window is closed while the program draws: its terminal is gone. It ends by itself.
    pub fn tear_off(&mut self) -> ExitStatus {
        self.is_torn.store(true, Ordering::SeqCst);
        self.keyboard = None;
        self.wait()
    }

    pub fn is_raw(&self) -> bool {
        !tcgetattr(&self.side).unwrap().local_modes.contains(LocalModes::ICANON)
    }

    /// Nothing that the program changed is left.
    pub fn assert_restored(&self) {
        std::thread::sleep(Duration::from_millis(100));
        let now = tcgetattr(&self.side).unwrap();
        assert_eq!(now.local_modes, self.before.local_modes);
        assert_eq!(now.input_modes, self.before.input_modes);
        assert_eq!(now.output_modes, self.before.output_modes);
        let parser = self.drawn.parser.lock().unwrap();
        let screen = parser.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste());
    }
}

fn size(rows: u16, columns: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

impl Drop for TerminalWindow {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
