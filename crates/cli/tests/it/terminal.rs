//! A real terminal, with somebody who reads and types.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

pub(crate) struct Terminal {
    keyboard: File,
    screen: Arc<Mutex<String>>,
    name: String,
}

impl Terminal {
    pub(crate) fn open() -> Terminal {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
        let mut display = File::from(terminal);
        let keyboard = display.try_clone().unwrap();
        let screen = Arc::new(Mutex::new(String::new()));
        let seen = screen.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = display.read(&mut bytes) {
                seen.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..read]));
            }
        });
        Terminal { keyboard, screen, name }
    }

    /// Starts a program that sees nothing but this terminal.
    pub(crate) fn start(&self, mut command: Command) -> Child {
        let side = || OpenOptions::new().read(true).write(true).open(&self.name).unwrap();
        command.stdin(side()).stdout(side()).stderr(side()).spawn().unwrap()
    }

    pub(crate) fn seen(&self) -> String {
        self.screen.lock().unwrap().clone()
    }

    pub(crate) fn wait_for(&self, text: &str) {
        let came = (0..3_000).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            self.seen().contains(text)
        });
        assert!(came, "{text:?} did not come: {}", self.seen());
    }

    pub(crate) fn type_in(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }
}
