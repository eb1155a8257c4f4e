//! A program that panics leaves the terminal as it was. It is this test again, on a terminal of its own.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::process::Command;

use helve_tui::{Raw, restore_on_panic};
use helve_widgets::{Keys, Options, Screen};
use ratatui::layout::Size;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::tcgetattr;

const CHILD: &str = "HELVE_TEST_PANICS";

#[test]
fn a_panic_puts_the_terminal_back() {
    if std::env::var_os(CHILD).is_some() {
        return panic_while_drawing();
    }
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let side = || OpenOptions::new().read(true).write(true).open(&name).unwrap();
    let held = side();
    let before = tcgetattr(&held).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "panicking::a_panic_puts_the_terminal_back", "--nocapture"])
        .env(CHILD, "1")
        .env("RUST_BACKTRACE", "0")
        .stdin(side())
        .stdout(side())
        .stderr(side())
        .spawn()
        .unwrap();
    let mut display = File::from(terminal);
    let reader = std::thread::spawn(move || {
        let (mut parser, mut bytes) = (vt100::Parser::new(24, 80, 0), [0; 4096]);
        while let Ok(read @ 1..) = display.read(&mut bytes) {
            parser.process(&bytes[..read]);
        }
        parser
    });
    assert!(!child.wait().unwrap().success());
    let after = tcgetattr(&held).unwrap();
    drop(held);
    assert_eq!((after.local_modes, after.output_modes), (before.local_modes, before.output_modes));
    let parser = reader.join().unwrap();
    let screen = parser.screen();
    assert!(!screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste());
    assert!(screen.contents().contains("on purpose"), "{}", screen.contents());
}

fn panic_while_drawing() {
    let out = || OpenOptions::new().write(true).open("/proc/self/fd/1").unwrap();
    restore_on_panic(out());
    let raw = Raw::enter().unwrap();
    let options = Options { keys: Keys::Enhanced, ..Options::default() };
    let mut screen = Screen::new(out(), || Size::new(80, 24), options);
    screen.enter().unwrap();
    screen.open_full().unwrap();
    screen.draw(24, |_| None).unwrap();
    // As in a program that ends at once: nothing is dropped in order.
    std::mem::forget((raw, screen));
    panic!("on purpose");
}
