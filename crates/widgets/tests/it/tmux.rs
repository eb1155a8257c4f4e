//! The screen on a real tmux, which wraps rows anew, calls them back from its scrollback, and keeps there what is erased
//! from the corner of its window on.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::Command;
use std::rc::Rc;
use std::thread::sleep;
use std::time::Duration;

use helve_widgets::{ScreenCursor, ScreenOptions, TerminalScreen, put_line};
use ratatui::layout::{Position, Size};
use ratatui::text::Line;
use tempfile::TempDir;

const START: Size = Size::new(60, 12);

/// A server of its own with one pane, that shows what is written into a pipe.
struct Tmux {
    folder: TempDir,
    pipe: File,
    size: Rc<Cell<Size>>,
    marks: usize,
}

impl Tmux {
    /// None if there is no tmux here.
    fn start() -> Option<Tmux> {
        if Command::new("tmux").arg("-V").output().is_err() {
            helve_testkit::skip("tmux", "it is not installed");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let show = format!("stty raw -echo; exec cat '{}'", pipe.display());
        let (width, height) = (START.width.to_string(), START.height.to_string());
        let socket = folder.path().join("socket");
        let start = ["-f", "/dev/null", "new-session", "-d", "-x", &width, "-y", &height, &show];
        let status = Command::new("tmux").arg("-S").arg(&socket).args(start).env_remove("TMUX").status();
        assert!(status.unwrap().success());
        // Read too, so that it opens at once.
        let pipe = File::options().read(true).write(true).open(pipe).unwrap();
        let tmux = Tmux { folder, pipe, size: Rc::new(Cell::new(START)), marks: 0 };
        tmux.ask(&["set-option", "-g", "window-size", "manual"]);
        Some(tmux)
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn ask(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux").arg("-S").arg(self.socket()).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    fn wait_for(&self, what: &str, wanted: &str) {
        for _ in 0..1_000 {
            if self.ask(&["display-message", "-p", what]) == wanted {
                return;
            }
            sleep(Duration::from_millis(5));
        }
        panic!("{what} never became {wanted}");
    }

    fn screen(&self) -> TerminalScreen<File, impl FnMut() -> Size + use<>> {
        let size = self.size.clone();
        TerminalScreen::new(self.pipe.try_clone().unwrap(), move || size.get(), ScreenOptions::default())
    }

    /// Waits until all that was written is shown.
    fn settle(&mut self) -> io::Result<()> {
        self.marks += 1;
        write!(self.pipe, "\x1b]2;mark{}\x07", self.marks)?;
        self.wait_for("#{pane_title}", &format!("mark{}", self.marks));
        Ok(())
    }

    fn resize(&mut self, width: u16, height: u16) {
        self.settle().unwrap();
        self.ask(&["resize-window", "-x", &width.to_string(), "-y", &height.to_string()]);
        self.wait_for("#{pane_width}x#{pane_height}", &format!("{width}x{height}"));
        self.size.set(Size::new(width, height));
    }

    /// Scrollback and window, without the rows that are blank.
    fn rows(&mut self) -> Vec<String> {
        self.settle().unwrap();
        let all = self.ask(&["capture-pane", "-p", "-S", "-"]);
        all.lines().map(|row| row.trim_end().to_owned()).filter(|row| !row.is_empty()).collect()
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = Command::new("tmux").arg("-S").arg(self.socket()).arg("kill-server").status();
    }
}

const LIVE: [&str; 5] =
    ["THINKING", "────────────────────────────────────────", "> WHAT SHALL WE DO", "", "STATUS OF ALL"];

fn draw<W: io::Write, S: FnMut() -> Size>(screen: &mut TerminalScreen<W, S>, rows: &[&str]) {
    screen
        .draw(rows.len() as u16, |buffer| {
            for (y, row) in (0..buffer.area.height).zip(rows) {
                put_line(buffer, Position::new(0, y), buffer.area.width, &Line::from(*row));
            }
            Some(ScreenCursor::at(Position::new(18, 2)))
        })
        .unwrap();
}

fn expected(printed: &[&str], width: u16) -> Vec<String> {
    let live = LIVE.iter().filter(|row| !row.is_empty()).map(|row| row.chars().take(width.into()).collect());
    printed.iter().map(|row| (*row).to_owned()).chain(live).collect()
}

#[test]
fn what_is_erased_is_not_kept_in_the_scrollback() {
    let Some(mut tmux) = Tmux::start() else { return };
    let mut screen = tmux.screen();
    screen.enter().unwrap();
    for round in 0..4 {
        draw(&mut screen, &LIVE);
        draw(&mut screen, &[]);
        tmux.resize(60 - round, 12);
        draw(&mut screen, &LIVE);
        assert_eq!(tmux.rows(), expected(&[], 60));
    }
    screen.print(vec![Line::from("one"), Line::from("two")]);
    draw(&mut screen, &LIVE);
    assert_eq!(tmux.rows(), expected(&["one", "two"], 60));
}

#[test]
fn a_full_screen_leaves_nothing_behind() {
    let Some(mut tmux) = Tmux::start() else { return };
    tmux.ask(&["set-option", "-g", "alternate-screen", "on"]);
    let mut screen = tmux.screen();
    screen.enter().unwrap();
    draw(&mut screen, &LIVE);
    screen.open_full().unwrap();
    for width in [60, 50, 60] {
        tmux.resize(width, 12);
        draw(&mut screen, &["PAGE"]);
        assert_eq!(tmux.rows(), ["PAGE"]);
    }
    screen.close_full().unwrap();
    draw(&mut screen, &LIVE);
    assert_eq!(tmux.rows(), expected(&[], 60));
}

#[test]
fn a_storm_of_sizes_leaves_no_ghosts() {
    let sizes = [
        (60, 3),
        (60, 12),
        (20, 12),
        (60, 12),
        (20, 4),
        (60, 12),
        (1, 1),
        (60, 12),
        (9, 2),
        (60, 12),
        (1, 1),
        (30, 2),
        (60, 12),
    ];
    let Some(mut tmux) = Tmux::start() else { return };
    let mut screen = tmux.screen();
    screen.enter().unwrap();
    screen.print(vec![Line::from("one"), Line::from("two")]);
    draw(&mut screen, &LIVE);
    for (width, height) in sizes {
        tmux.resize(width, height);
        draw(&mut screen, &LIVE);
        if (width, height) == (60, 12) {
            assert_eq!(tmux.rows(), expected(&["one", "two"], 60), "after {width}x{height}");
        }
    }
}
