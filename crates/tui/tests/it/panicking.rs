//! A program that panics leaves the terminal as it was. It is this test again, on a terminal of its own.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::process::Command;

use helve_tui::{RawMode, repair_terminal, restore_on_panic};
use helve_widgets::{KeyboardProtocol, ScreenOptions, TerminalScreen};
use ratatui::layout::Size;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

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

#[test]
fn what_a_killed_program_left_is_put_back_by_the_next() {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let side = OpenOptions::new().read(true).write(true).open(&name).unwrap();
    let before = tcgetattr(&side).unwrap();
    let mut told = Vec::new();
    repair_terminal(&side, &mut told).unwrap();
    assert!(told.is_empty(), "a terminal that is in order is left alone");
    let mut raw = before.clone();
    raw.make_raw();
    tcsetattr(&side, OptionalActions::Now, &raw).unwrap();
    repair_terminal(&side, &mut told).unwrap();
    let after = tcgetattr(&side).unwrap();
    let wanted = LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
    assert!(after.local_modes.contains(wanted) && after.output_modes == before.output_modes);
    assert!(!told.is_empty());
}

fn panic_while_drawing() {
    let out = || OpenOptions::new().write(true).open("/proc/self/fd/1").unwrap();
    restore_on_panic(out(), || false);
    let raw = RawMode::enter().unwrap();
    let options = ScreenOptions { keys: KeyboardProtocol::Enhanced, ..ScreenOptions::default() };
    let mut screen = TerminalScreen::new(out(), || Size::new(80, 24), options);
    screen.enter().unwrap();
    screen.open_full().unwrap();
    screen.draw(24, |_| None).unwrap();
    // As in a program that ends at once: nothing is dropped in order.
    std::mem::forget((raw, screen));
    panic!("on purpose");
}
