//! What the program itself costs while a model works, seen from the model's server. `cargo xtask bench` runs it, with the
//! path of the program.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark that can't run has nothing to say"
)]
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures time and prints it")]

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use helve_models::script::ModelScript;
use helve_testkit::{HttpProtocol, SecureServer};
use tempfile::TempDir;

/// How often the program is started.
const STARTS: usize = 21;
const EARLY: usize = 50;
const LATE: usize = 2_000;
/// So many steps on each side of one are looked at with it.
const AROUND: usize = 25;
/// The same call again and again would be taken for a circle.
const FILES: usize = 7;

fn main() {
    let Some(helve) = std::env::args().nth(1).map(PathBuf::from).filter(|path| path.is_file()) else {
        println!("skipped: the loop: no program is named");
        return;
    };
    starts(&helve);
    long_session(&helve);
    interrupt(&helve);
}

/// A server that does nothing but answer and look at the clock: calls of `read`, and an end.
struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    /// When the first byte of each request came.
    came: Vec<Instant>,
    /// When its answer was handed over.
    answered: Vec<Instant>,
    /// Whose memory is looked at.
    process: Option<u32>,
    /// The most memory that it had taken, in bytes, by the request with this number.
    memory: Vec<(usize, u64)>,
}

impl Server {
    /// Starts a server that calls a tool so many times.
    fn calling(calls: usize) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let shared = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let seen = Arc::clone(&shared);
                thread::spawn(move || serve(stream.unwrap(), &seen, calls));
            }
        });
        Server { address, seen }
    }

    fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// How long the client took from each answer to the next request.
    fn gaps(&self) -> Vec<Duration> {
        let seen = self.seen.lock().unwrap();
        let next = seen.came.iter().skip(1);
        seen.answered.iter().zip(next).map(|(sent, came)| came.saturating_duration_since(*sent)).collect()
    }
}

/// Answers until the client has gone.
fn serve(mut stream: TcpStream, seen: &Mutex<Seen>, calls: usize) {
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::with_capacity(1 << 20, stream.try_clone().unwrap());
    while reader.fill_buf().is_ok_and(|bytes| !bytes.is_empty()) {
        let came = Instant::now();
        if skip_request(&mut reader).is_err() {
            return;
        }
        let mut state = seen.lock().unwrap();
        let number = state.came.len();
        state.came.push(came);
        if [EARLY, LATE].contains(&number) {
            let memory = state.process.map_or(0, peak_memory);
            state.memory.push((number, memory));
        }
        let response = response(number, calls);
        state.answered.push(Instant::now());
        drop(state);
        if stream.write_all(&response).is_err() {
            return;
        }
    }
}

/// Reads a request as far as its end can be known.
fn skip_request(reader: &mut impl BufRead) -> io::Result<()> {
    let mut length = 0;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
        line.clear();
    }
    io::copy(&mut reader.take(length), &mut io::sink()).map(drop)
}

fn response(number: usize, calls: usize) -> Vec<u8> {
    let delta = if number < calls {
        let arguments = format!(r#"{{\"path\":\"{}.txt\"}}"#, number % FILES);
        format!(
            r#"{{"tool_calls":[{{"index":0,"id":"call_{number}","type":"function","function":{{"name":"read","arguments":"{arguments}"}}}}]}}"#
        )
    } else {
        r#"{"content":"Done."}"#.to_owned()
    };
    let reason = if number < calls { "tool_calls" } else { "stop" };
    let body = format!(
        "data: {{\"id\":\"c\",\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n\
         data: {{\"id\":\"c\",\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{reason}\"}}]}}\n\n\
         data: {{\"id\":\"c\",\"choices\":[],\"usage\":{{\"prompt_tokens\":100,\"completion_tokens\":10,\"total_tokens\":110}}}}\n\n\
         data: [DONE]\n\n"
    );
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length:";
    format!("{head} {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// The most memory that a process has taken so far.
fn peak_memory(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kibibytes.unwrap_or(0) << 10
}

/// A person's machine with a small project, whose model is at an address.
struct Home(TempDir);

impl Home {
    fn new(base_url: &str) -> Home {
        let home = Home(tempfile::tempdir().unwrap());
        fs::create_dir_all(home.project().join(".git")).unwrap();
        for file in 0..FILES {
            let text = format!("This is the file with the number {file}.\nIt is small.\n");
            fs::write(home.project().join(format!("{file}.txt")), text).unwrap();
        }
        let settings = format!(
            "model = 'test/model'\n\
             [providers.test]\nwire = 'chat'\nbase_url = '{base_url}'\nauth = 'none'\n\
             [catalogue.'test/model']\ncontext = 100000000\n\
             [limits]\nmax_steps = {}\n",
            2 * LATE
        );
        fs::create_dir(home.own()).unwrap();
        fs::write(home.own().join("config.toml"), settings).unwrap();
        home
    }

    /// What is the program's own. The project is not in it: commands don't see it.
    fn own(&self) -> PathBuf {
        self.0.path().join("own")
    }

    fn project(&self) -> PathBuf {
        self.0.path().join("project")
    }

    fn run(&self, helve: &Path) -> Command {
        let mut command = Command::new(helve);
        command.args(["run", "--quiet", "go"]).current_dir(self.project()).env_clear();
        command.env("PATH", "/usr/bin:/bin").env("HELVE_HOME", self.own());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
        command
    }
}

/// From the start of the program to its first request. The three are measured in turns, so that they meet the same machine.
fn starts(helve: &Path) {
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..STARTS {
        for (times, time) in times.iter_mut().zip([start_of_nothing(), start(helve), secure_start(helve)]) {
            times.push(time);
        }
    }
    times.iter_mut().for_each(|times| times.sort());
    let [baseline, plain, secure] = times;
    for (what, times) in [("http", plain), ("https", secure)] {
        println!(
            "start to first request, {what}: best (median)\t{}\ttrue\t{}\t{:.1}\t≤ 15 ms more",
            best_and_median(&times),
            best_and_median(&baseline),
            ratio(times[0], baseline[0]),
        );
    }
}

fn start_of_nothing() -> Duration {
    let begun = Instant::now();
    assert!(Command::new("true").status().unwrap().success());
    begun.elapsed()
}

fn start(helve: &Path) -> Duration {
    let server = Server::calling(0);
    let home = Home::new(&server.url());
    let begun = Instant::now();
    succeed(home.run(helve).spawn().unwrap());
    server.seen.lock().unwrap().came[0] - begun
}

fn secure_start(helve: &Path) -> Duration {
    let script = ModelScript::parse("[[step]]\ntext = 'Done.'\n").unwrap();
    let server = SecureServer::play(script, &[HttpProtocol::Http2]).unwrap();
    let home = Home::new(&format!("https://{}/v1", server.address()));
    let authority = home.0.path().join("ca.pem");
    fs::write(&authority, server.authority()).unwrap();
    let begun = Instant::now();
    let child = home.run(helve).env("SSL_CERT_FILE", authority).spawn().unwrap();
    while server.requests().is_empty() {
        thread::sleep(Duration::from_micros(100));
        assert!(begun.elapsed() < Duration::from_secs(20), "no request comes");
    }
    let took = begun.elapsed();
    succeed(child);
    took
}

fn succeed(mut child: Child) {
    let status = child.wait().unwrap();
    assert!(status.success(), "the program failed: {status}");
}

fn best_and_median(times: &[Duration]) -> String {
    format!("{} ({})", millis(times[0]), millis(times[times.len() / 2]))
}

/// One session of very many small steps.
fn long_session(helve: &Path) {
    let server = Server::calling(LATE + AROUND + 1);
    let home = Home::new(&server.url());
    let child = home.run(helve).spawn().unwrap();
    server.seen.lock().unwrap().process = Some(child.id());
    succeed(child);
    let gaps = server.gaps();
    assert!(gaps.len() > LATE + AROUND, "only {} steps were made", gaps.len());
    let (early, late, bare) = (around(&gaps, EARLY), around(&gaps, LATE), around(&bare_gaps(), EARLY));
    println!(
        "a step, around the {EARLY}th\t{}\tonly asking again\t{}\t{:.1}\t≤ 1 ms",
        millis(early),
        millis(bare),
        ratio(early, bare)
    );
    println!(
        "a step, around the {LATE}th\t{}\taround the {EARLY}th\t{}\t{:.2}\t≤ 1 ms, ≤ 1.5",
        millis(late),
        millis(early),
        ratio(late, early)
    );
    println!("growth of a step over 1,000 steps\t{:.3} ms\t\t\t\t≤ 0.25 ms", growth(&gaps) * 1e3);
    for (number, bytes) in &server.seen.lock().unwrap().memory {
        let target = if *number == EARLY { "≤ 25 MB" } else { "≤ 60 MB" };
        println!("memory at most, {number} steps\t{}\t\t\t\t{target}", megabytes(*bytes));
    }
}

/// From an interrupt until nothing lives any more of a command whose processes do not listen to it.
fn interrupt(helve: &Path) {
    const SLEEPS: &str = "sleep 7777777";
    let script = format!(
        "[[step]]\ncalls = [{{ tool = 'shell', input = {{ command = 'trap \"\" TERM INT; setsid {SLEEPS} & ({SLEEPS} &) ; {SLEEPS}' }} }}]"
    );
    let home = Home::new("http://127.0.0.1:1/v1");
    fs::write(home.project().join("s.toml"), script).unwrap();
    let mut command = home.run(helve);
    let mut child =
        command.args(["--yes", "--model", "script:s.toml"]).stderr(Stdio::null()).spawn().unwrap();
    let alive = || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
        lines.filter(|line| String::from_utf8_lossy(line).replace('\0', " ").trim_end() == SLEEPS).count()
    };
    while alive() < 3 {
        assert!(child.try_wait().unwrap().is_none(), "the command did not run");
        thread::sleep(Duration::from_millis(1));
    }
    let begun = Instant::now();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    while alive() > 0 {
        thread::sleep(Duration::from_micros(200));
    }
    let took = begun.elapsed();
    child.wait().unwrap();
    println!("interrupt to no process left\t{}\t\t\t\t≤ 1 s", millis(took));
}

/// What a client takes that does nothing but ask again.
fn bare_gaps() -> Vec<Duration> {
    let server = Server::calling(usize::MAX);
    let mut reader = BufReader::new(TcpStream::connect(server.address).unwrap());
    reader.get_ref().set_nodelay(true).unwrap();
    for _ in 0..2 * (EARLY + AROUND) {
        reader.get_mut().write_all(b"POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}").unwrap();
        skip_request(&mut reader).unwrap();
    }
    server.gaps()
}

/// The mean around a step, without the slowest tenth: the machine may be busy.
fn around(gaps: &[Duration], step: usize) -> Duration {
    let mut window = gaps[step - AROUND..=step + AROUND].to_vec();
    window.sort();
    window.truncate(window.len() * 9 / 10);
    window.iter().sum::<Duration>() / u32::try_from(window.len()).unwrap()
}

/// How many seconds a step takes more after a thousand others: the slope of the line through the means of fifty windows.
#[expect(clippy::cast_precision_loss, reason = "a slope for people")]
fn growth(gaps: &[Duration]) -> f64 {
    let places: Vec<usize> = (EARLY..=LATE).step_by((LATE - EARLY) / 50).collect();
    let points: Vec<(f64, f64)> =
        places.into_iter().map(|place| (place as f64 / 1e3, around(gaps, place).as_secs_f64())).collect();
    let count = points.len() as f64;
    let (mean_x, mean_y) =
        points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / count, y + point.1 / count));
    let along: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    along / points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum::<f64>()
}

fn ratio(ours: Duration, baseline: Duration) -> f64 {
    ours.as_secs_f64() / baseline.as_secs_f64().max(1e-9)
}

fn millis(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

fn megabytes(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
}
