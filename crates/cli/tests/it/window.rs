//! A window with the program in it: a real terminal, an emulator that draws it, and somebody who types.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};

pub(crate) struct Window {
    keyboard: Option<File>,
    drawn: Arc<Mutex<vt100::Parser>>,
    is_torn: Arc<AtomicBool>,
    /// The side of the program, kept open so that its state can be looked at afterwards.
    side: File,
    before: Termios,
    child: Child,
}

impl Window {
    /// Starts a program that has this terminal as its own.
    pub(crate) fn start(program: &Command, rows: u16, columns: u16) -> Window {
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
        let drawn = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 2_000)));
        let is_torn = Arc::new(AtomicBool::new(false));
        let (parser, torn) = (drawn.clone(), is_torn.clone());
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let (Ok(read @ 1..), false) = (display.read(&mut bytes), torn.load(Ordering::SeqCst)) {
                parser.lock().unwrap().process(&bytes[..read]);
            }
        });
        // A session of its own, with the terminal as its controlling one: so it hears of its size and of hang-ups.
        let mut command = Command::new("setsid");
        command.arg("-c").arg(program.get_program()).args(program.get_args()).env_clear();
        command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.current_dir(program.get_current_dir().unwrap());
        let child = command.stdin(open()).stdout(open()).stderr(open()).spawn().unwrap();
        Window { keyboard: Some(keyboard), drawn, is_torn, side, before, child }
    }

    pub(crate) fn text(&self) -> String {
        self.drawn.lock().unwrap().screen().contents()
    }

    /// Everything, with what has left the window at the top.
    pub(crate) fn whole_text(&self) -> String {
        let mut parser = self.drawn.lock().unwrap();
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

    pub(crate) fn wait_until(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        let came = (0..3_000).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            is_so(&self.text())
        });
        assert!(came, "{what} did not come:\n{}", self.text());
    }

    pub(crate) fn wait_for(&self, text: &str) {
        self.wait_until(text, |seen| seen.contains(text));
    }

    pub(crate) fn type_in(&mut self, text: &str) {
        self.keyboard.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Writes something and sends it.
    pub(crate) fn say(&mut self, text: &str) {
        self.type_in(text);
        self.type_in("\r");
    }

    /// Answers a question, after the time in which a key does not count.
    pub(crate) fn answer(&mut self, key: &str) {
        std::thread::sleep(Duration::from_millis(500));
        self.type_in(key);
    }

    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        // The emulator itself breaks when text wraps in its only row.
        self.drawn.lock().unwrap().screen_mut().set_size(rows.max(2), columns);
        tcsetwinsize(self.keyboard.as_ref().unwrap(), size(rows, columns)).unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().try_into().unwrap()).unwrap()
    }

    /// Whether the program is stopped, as the system tells.
    pub(crate) fn wait_for_stop(&self) {
        let file = format!("/proc/{}/stat", self.child.id());
        let stopped = (0..3_000).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            std::fs::read_to_string(&file).is_ok_and(|stat| stat.contains(") T "))
        });
        assert!(stopped, "it was not stopped");
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        for _ in 0..3_000 {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it did not end:\n{}", self.text());
    }

    /// The window is closed while the program draws: its terminal is gone. It ends by itself.
    pub(crate) fn tear_off(&mut self) -> ExitStatus {
        self.is_torn.store(true, Ordering::SeqCst);
        self.keyboard = None;
        self.wait()
    }

    pub(crate) fn is_raw(&self) -> bool {
        !tcgetattr(&self.side).unwrap().local_modes.contains(LocalModes::ICANON)
    }

    /// Nothing that the program changed is left.
    pub(crate) fn assert_restored(&self) {
        std::thread::sleep(Duration::from_millis(100));
        let now = tcgetattr(&self.side).unwrap();
        assert_eq!(now.local_modes, self.before.local_modes);
        assert_eq!(now.input_modes, self.before.input_modes);
        assert_eq!(now.output_modes, self.before.output_modes);
        let parser = self.drawn.lock().unwrap();
        let screen = parser.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste());
    }
}

fn size(rows: u16, columns: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

impl Drop for Window {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
