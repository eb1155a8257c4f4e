//! What the terminal interface costs: opening a long session, a key while an answer streams in, memory. `cargo xtask bench` runs
//! it, with the path of the program. Everything goes over a real terminal with an emulator at its end.
#![expect(clippy::unwrap_used, reason = "a benchmark that can't run has nothing to say")]
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures time and prints it")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use helve_journal::{FileJournal, Journal};
use helve_protocol::{EventBody, SessionEvent, SessionId, TurnLimits, TurnStarted};
use helve_testkit::{SampleSession, TerminalWindow, sample_id};
use tempfile::TempDir;

const TURNS: usize = 10_000;
/// So many turns are written at a time.
const TURNS_PER_APPEND: usize = 500;
/// How often a session is opened.
const OPENINGS: usize = 9;
const KEYS: usize = 300;
const TOKENS_PER_SECOND: u32 = 1_000;
/// Ten minutes of tokens are some 2.4 MB.
const ANSWERS: usize = 12;
const ANSWER_BYTES: usize = 200 << 10;
/// Some 20 MB.
const OUTPUT: &str = "seq 1 2700000";

const PATIENCE: Duration = Duration::from_secs(60);
const ROWS: u16 = 40;
const COLUMNS: u16 = 100;
const READY: &str = "Ask Helve anything";

fn main() {
    let Some(helve) = std::env::args().nth(1).map(PathBuf::from).filter(|path| path.is_file()) else {
        println!("skipped: the interface: no program is named");
        return;
    };
    let wanted = std::env::args().nth(2).filter(|word| !word.starts_with('-'));
    let is_wanted = |name: &str| wanted.as_deref().is_none_or(|wanted| wanted == name);
    let server = Server::start();
    let home = Home::new(&server);
    let (short, long) = (home.store(1, 1), home.store(2, TURNS));
    if is_wanted("opening") {
        opening(&helve, &home, short, long);
    }
    if is_wanted("typing") {
        typing(&helve, &home);
    }
    if is_wanted("memory") {
        memory(&helve, &home, short, long);
    }
}

/// From the start of the program to the first whole screen, and to the first key on it.
fn opening(helve: &Path, home: &Home, short: SessionId, long: SessionId) {
    let mut times = [short, long].map(|session| (session, Vec::new(), Vec::new()));
    // In turns, so that both meet the same machine.
    for _ in 0..OPENINGS {
        for (session, screens, keys) in &mut times {
            let begun = Instant::now();
            let mut window = home.open(helve, &["--resume", &session.to_string()]);
            let is_whole = |screen: &vt100::Screen| {
                let text = screen.contents();
                text.contains(READY) && text.contains("That was the last word.")
            };
            screens.push(moment(&window, is_whole) - begun);
            window.type_in("x");
            keys.push(moment(&window, |screen| is_typed(screen, "x")) - begun);
            // What is not sent would be there the next time.
            window.type_in("\x03");
            moment(&window, |screen| screen.contents().contains(READY));
            window.type_in("\x04");
            window.wait();
        }
    }
    let [(_, mut base_screens, mut base_keys), (_, mut screens, mut keys)] = times;
    for (what, ours, base) in [
        ("a session of 10,000 turns: to its screen", &mut screens, &mut base_screens),
        ("a session of 10,000 turns: to its first key", &mut keys, &mut base_keys),
    ] {
        ours.sort();
        base.sort();
        let (ours, base) = (median(ours), median(base));
        row(what, &millis(ours), "of one turn", &millis(base), Some(ratio(ours, base)), "≤ 100 ms");
    }
}

/// From a key to the cell that shows it, while an answer comes in, and while nothing does.
fn typing(helve: &Path, home: &Home) {
    let mut window = home.open(helve, &[]);
    moment(&window, |screen| screen.contents().contains(READY));
    let mut idle = type_keys(&mut window);
    window.type_in("\x03stream\r");
    moment(&window, |screen| screen.contents().contains("word 21 "));
    let mut busy = type_keys(&mut window);
    let still_comes = window.look(|screen| !screen.contents().contains("the end of it"));
    assert!(still_comes, "the answer ended before the keys did");
    // What is not sent would be there the next time.
    window.type_in("\x15");
    moment(&window, |screen| screen.contents().contains("enter queues"));
    thread::sleep(Duration::from_millis(300));
    idle.sort();
    busy.sort();
    for (what, of) in [("median", 50), ("99 of 100", 99)] {
        let at = |times: &[Duration]| times.get(times.len() * of / 100).copied().unwrap_or_default();
        let (busy, idle) = (at(&busy), at(&idle));
        let what = format!("a key while {TOKENS_PER_SECOND} tokens/s come: {what}");
        row(&what, &millis(busy), "while none come", &millis(idle), Some(ratio(busy, idle)), "≤ 5 ms");
    }
}

fn type_keys(window: &mut TerminalWindow) -> Vec<Duration> {
    let mut times = Vec::new();
    let mut written = String::new();
    let mut random = 88_172_645_463_325_252_u64;
    for number in 0..KEYS {
        // A xorshift: the moments must have nothing to do with those of the frames.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        thread::sleep(Duration::from_micros(15_000 + random % 20_000));
        if written.len() == 60 {
            written.clear();
            window.type_in("\x15");
            thread::sleep(Duration::from_millis(50));
        }
        let letter = char::from(b'a' + u8::try_from(number % 26).unwrap());
        written.push(letter);
        let begun = Instant::now();
        window.type_in(&letter.to_string());
        times.push(moment(window, |screen| is_typed(screen, &written)) - begun);
    }
    times
}

fn moment(window: &TerminalWindow, is_so: impl Fn(&vt100::Screen) -> bool) -> Instant {
    let came = window.wait_for_screen(PATIENCE, is_so);
    assert!(came.is_some(), "it did not come:\n{}", window.text());
    came.unwrap()
}

fn is_typed(screen: &vt100::Screen, text: &str) -> bool {
    let (_, columns) = screen.size();
    let mut rows: Vec<String> = screen.rows(0, columns).collect();
    // The input is near the bottom.
    rows.reverse();
    rows.iter().any(|row| row.strip_prefix("> ").is_some_and(|written| written.trim_end() == text))
}

/// The most memory that the interface takes, with much that was said before and much that comes.
fn memory(helve: &Path, home: &Home, short: SessionId, long: SessionId) {
    let peaks = [short, long].map(|session| {
        let words = ["--permission-mode", "bypass", "--resume", &session.to_string()];
        let mut window = home.open(helve, &words);
        moment(&window, |screen| screen.contents().contains(READY));
        // What goes on after the first screen counts too.
        thread::sleep(Duration::from_secs(3));
        let opened = peak_memory(window.process());
        for number in 0..=ANSWERS {
            window.type_in(if number == 0 { "work\r" } else { "much\r" });
            moment(&window, |screen| !screen.contents().contains(READY));
            moment(&window, |screen| screen.contents().contains(READY));
        }
        (opened, peak_memory(window.process()))
    });
    let [(short_opened, short_streamed), (opened, streamed)] = peaks;
    for (what, ours, base) in [
        ("memory, 10,000 turns opened", opened, short_opened),
        ("memory, and 10 minutes of tokens, 20 MB of output", streamed, short_streamed),
    ] {
        row(what, &megabytes(ours), "one turn", &megabytes(base), None, "≤ 80 MB");
    }
}

/// A model on this machine. Asked for a stream it speaks at its pace, asked for much it says it at once, asked to work it runs
/// a command.
struct Server {
    address: SocketAddr,
}

impl Server {
    fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                // A client that has gone is no failure.
                thread::spawn(move || serve(stream.unwrap()));
            }
        });
        Server { address }
    }
}

fn serve(mut stream: TcpStream) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut reader = BufReader::with_capacity(1 << 20, stream.try_clone().ok()?);
    loop {
        let asked = read_request(&mut reader)?;
        stream
            .write_all(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
            )
            .ok()?;
        match last_message(&asked) {
            said if said.starts_with(b"tool") => say(&mut stream, "That is done.")?,
            said if is_in(b"stream\"", said) => speak(&mut stream)?,
            said if is_in(b"work\"", said) => call(&mut stream)?,
            _ => say_much(&mut stream)?,
        }
        let end = "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
        chunk(&mut stream, end)?;
        stream.write_all(b"0\r\n\r\n").ok()?;
    }
}

/// A token each millisecond, for longer than the keys take.
fn speak(stream: &mut TcpStream) -> Option<()> {
    let begun = Instant::now();
    for number in 0..30 * TOKENS_PER_SECOND {
        let text = match number % 60 {
            0 => format!("\\n\\n## Part {number}\\n\\n- "),
            20 | 40 => "\\n- ".to_owned(),
            7 => format!("`word {number}` "),
            _ => format!("word {number} "),
        };
        say(stream, &text)?;
        thread::sleep(
            (begun + Duration::from_secs(1) / TOKENS_PER_SECOND * number)
                .saturating_duration_since(Instant::now()),
        );
    }
    say(stream, "the end of it")
}

fn call(stream: &mut TcpStream) -> Option<()> {
    let arguments = format!(r#"{{\"command\":\"{OUTPUT}\"}}"#);
    let call = format!(
        r#"{{"index":0,"id":"c1","type":"function","function":{{"name":"shell","arguments":"{arguments}"}}}}"#
    );
    chunk(
        stream,
        &format!(
            "data: {{\"id\":\"c\",\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{call}]}}}}]}}\n\n"
        ),
    )
}

fn say_much(stream: &mut TcpStream) -> Option<()> {
    let paragraph = "Of this there is **very** much, and it says `nothing` at all. ".repeat(8) + "\\n\\n";
    let mut left = ANSWER_BYTES;
    while left > 0 {
        say(stream, &paragraph)?;
        left = left.saturating_sub(paragraph.len());
    }
    Some(())
}

fn say(stream: &mut TcpStream, text: &str) -> Option<()> {
    chunk(
        stream,
        &format!(
            "data: {{\"id\":\"c\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"
        ),
    )
}

fn chunk(stream: &mut TcpStream, text: &str) -> Option<()> {
    stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()).ok()
}

fn read_request(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let (mut length, mut line) = (0, String::new());
    while reader.read_line(&mut line).ok()? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    (length > 0).then_some(body)
}

/// The role of the last message of a request, and what follows.
fn last_message(request: &[u8]) -> &[u8] {
    const ROLE: &[u8] = b"\"role\":\"";
    let place = request.windows(ROLE.len()).rposition(|window| window == ROLE);
    place.and_then(|place| request.get(place + ROLE.len()..)).unwrap_or_default()
}

fn is_in(word: &[u8], text: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}

/// A person's machine with a small project.
struct Home(TempDir);

impl Home {
    fn new(server: &Server) -> Home {
        let home = Home(tempfile::tempdir().unwrap());
        fs::create_dir_all(home.project().join(".git")).unwrap();
        let settings = format!(
            "model = 'test/model'\n\
             [providers.test]\nwire = 'chat'\nbase_url = 'http://{}/v1'\nauth = 'none'\n\
             [catalogue.'test/model']\ncontext = 100000000\n",
            server.address
        );
        fs::write(home.0.path().join("config.toml"), settings).unwrap();
        home
    }

    fn project(&self) -> PathBuf {
        self.0.path().join("project")
    }

    fn open(&self, helve: &Path, words: &[&str]) -> TerminalWindow {
        let mut command = Command::new(helve);
        command.args(words).current_dir(self.project());
        command.env("PATH", "/usr/bin:/bin").env("HELVE_HOME", self.0.path()).env("TERM", "xterm-256color");
        TerminalWindow::start(&command, ROWS, COLUMNS)
    }

    /// A session of so many turns, written as every session is.
    fn store(&self, number: u64, turns: usize) -> SessionId {
        let mut session = SampleSession::new(sample_id(number));
        let mut log = FileJournal::new(self.0.path()).create(session.id).unwrap();
        log.append(&[session.created()]).unwrap();
        let numbers: Vec<usize> = (0..turns).collect();
        for numbers in numbers.chunks(TURNS_PER_APPEND) {
            let turn = |number: &usize| turn_of(&mut session, *number, number + 1 == turns);
            log.append(&numbers.iter().flat_map(turn).collect::<Vec<SessionEvent>>()).unwrap();
        }
        session.id
    }
}

/// A message, an answer of some 500 bytes, a call with its result.
fn turn_of(session: &mut SampleSession, number: usize, is_last: bool) -> Vec<SessionEvent> {
    session.turn = Some(session.draw());
    let started: EventBody = TurnStarted { limits: TurnLimits::default() }.into();
    let mut events = vec![session.event(started)];
    events.push(session.user_message(&format!("Why does the parser fail on line {number}?")));
    events.extend(
        session.step("I look at the parser.", &[("read", &"fn line() -> Result<Line, Error>\n".repeat(10))]),
    );
    let answer =
        "The loop ends before the last line, so that its condition has to be another one. ".repeat(6);
    let last = if is_last { "\n\nThat was the last word." } else { "" };
    events.extend(session.step(&format!("{answer}{last}"), &[]));
    events.push(session.turn_ended());
    session.turn = None;
    events
}

/// The most memory that a process has taken so far.
fn peak_memory(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

fn row(what: &str, ours: &str, baseline_is: &str, baseline: &str, ratio: Option<f64>, target: &str) {
    let ratio = ratio.map_or(String::new(), |ratio| format!("{ratio:.1}"));
    println!("{what}\t{ours}\t{baseline_is}\t{baseline}\t{ratio}\t{target}");
}

fn median(sorted: &[Duration]) -> Duration {
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

fn ratio(ours: Duration, baseline: Duration) -> f64 {
    ours.as_secs_f64() / baseline.as_secs_f64().max(1e-9)
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes / 1_000_000)
}
