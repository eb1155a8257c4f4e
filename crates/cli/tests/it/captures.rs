//! The main screens as they are drawn, in `docs/captures`. `cargo xtask captures` writes them; this test sees to it that they
//! are true.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use helve_testkit::TerminalWindow;

use crate::home::Home;
use crate::picture::{self, Row};

const SCRIPT: &str = r#"
[[step]]
when = { tool = "write" }
text = "It greets by name now, and says **hello** to everybody else.\n\n- `greet.py` takes a name\n- nothing else changed\n"
repeat = true

[[step]]
when = { asked = "greet" }
text = "I let it take a name."
calls = [{ tool = "write", input = { path = "greet.py", content = "import sys\n\n\ndef greet(name):\n    return f\"hello, {name or 'everybody'}\"\n\n\nprint(greet(sys.argv[-1]))\n" } }]
repeat = true
"#;

/// A home in which something can be greeted, and the program in it.
fn home() -> Home {
    let home = Home::new();
    home.write("project/script.toml", SCRIPT);
    home
}

fn start(home: &Home, words: &[&str], rows: u16, columns: u16) -> TerminalWindow {
    let mut command: Command = home.helve(words);
    command.env("COLORTERM", "truecolor");
    TerminalWindow::start(&command, rows, columns)
}

fn open(home: &Home, mode: &str, rows: u16, columns: u16) -> TerminalWindow {
    let window = start(home, &["-m", "script:script.toml", "--permission-mode", mode], rows, columns);
    window.wait_for("Ask Helve anything");
    if columns >= 80 {
        window.wait_for("confined");
    }
    window
}

/// What is drawn when nothing moves any more, the same on every machine.
fn capture(name: &str, home: &Home, window: &TerminalWindow) {
    let is_as_kept = || text_of(&drawn(home, window)) == kept(name);
    // A busy machine takes its time.
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(100));
        if !is_written() && is_as_kept() {
            return;
        }
        if is_written() {
            std::thread::sleep(Duration::from_millis(400));
            break;
        }
    }
    keep(name, &drawn(home, window));
}

fn drawn(home: &Home, window: &TerminalWindow) -> Vec<Row> {
    // How far it has scrolled depends on how high the lines at the bottom ever were: the empty ones below do not count.
    let is_empty = |row: &&Row| picture::text(row).trim().is_empty();
    let below = window.look(picture::rows).iter().rev().take_while(is_empty).count();
    let mut rows = window.look_back(below, picture::rows);
    for row in &mut rows {
        picture::replace(row, &home.project().display().to_string(), "/home/you/project");
        for level in ["not confined", "confined (landlock)"] {
            picture::replace(row, level, "confined");
        }
        without_time(row);
    }
    rows
}

fn text_of(rows: &[Row]) -> String {
    let lines: Vec<String> = rows.iter().map(|row| picture::text(row).trim_end().to_owned()).collect();
    format!("{}\n", lines.join("\n").trim_end())
}

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/captures"))
}

fn kept(name: &str) -> String {
    fs::read_to_string(folder().join(name).with_extension("txt")).unwrap_or_default()
}

/// How long a call took is another each time.
fn without_time(row: &mut Row) {
    let text: String = picture::text(row);
    let time = text.starts_with('✓').then(|| text.trim_end().rsplit_once(" · ")).flatten();
    if let Some((_, time)) = time.filter(|(_, time)| time.ends_with('s')) {
        picture::replace(row, &format!(" · {time}"), "");
    }
}

#[expect(clippy::disallowed_methods, reason = "xtask tells by the environment that they are to be written")]
fn is_written() -> bool {
    std::env::var_os("HELVE_CAPTURES").is_some_and(|value| value == "write")
}

fn keep(name: &str, rows: &[Row]) {
    let text = text_of(rows);
    if is_written() {
        fs::create_dir_all(folder()).unwrap();
        fs::write(folder().join(name).with_extension("txt"), &text).unwrap();
        fs::write(folder().join(name).with_extension("svg"), picture::svg(rows)).unwrap();
        return;
    }
    assert_eq!(
        text,
        kept(name),
        "{name} looks different now: see whether that is meant, then `cargo xtask captures`"
    );
}

#[test]
fn a_chat_with_a_card_and_its_diff_in_the_pager() {
    let home = home();
    let mut window = open(&home, "accept-edits", 24, 80);
    window.say("let greet.py greet somebody by name");
    window.wait_for("nothing else changed");
    window.wait_for("Ask Helve anything");
    capture("chat", &home, &window);
    window.type_in("\x0f");
    window.wait_for("closes");
    window.type_in("\x1b[D");
    window.wait_for("write greet.py");
    capture("pager", &home, &window);
}

#[test]
fn a_question_before_a_file_is_written() {
    let home = home();
    let mut window = open(&home, "ask", 24, 80);
    window.say("let greet.py greet somebody by name");
    window.wait_for("y yes");
    capture("approval", &home, &window);
    window.answer("n");
    window.wait_for("✗ write");
}

#[test]
fn a_list_to_choose_from() {
    let home = home();
    let mut window = open(&home, "ask", 24, 80);
    window.say("/mode");
    window.wait_for("accept-edits");
    capture("picker", &home, &window);
}

#[test]
fn a_small_window() {
    let home = home();
    let mut window = open(&home, "accept-edits", 10, 40);
    window.say("greet by name");
    window.wait_for("nothing else changed");
    window.wait_for("Ask Helve anything");
    capture("small", &home, &window);
}

#[test]
fn the_first_start() {
    let home = Home::new();
    let window = start(&home, &[], 24, 80);
    window.wait_for("enter takes it");
    capture("first-start", &home, &window);
}
