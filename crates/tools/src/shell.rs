//! `shell`

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use helve_exec::{ExecError, Limits, Order, Output, Running, Status, start};
use helve_protocol::{ToolClass, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{Context, Done, Live, ToolFailure, TypedTool};

/// Runs commands.
#[derive(Clone, Debug)]
pub struct Shell {
    /// The program that keeps the command: Helve itself.
    pub keeper: PathBuf,
    /// The whole environment of the commands.
    pub env: Vec<(OsString, OsString)>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The command.
    command: String,
    /// How many seconds it may take; 120 if left out.
    #[serde(default)]
    timeout: Option<u32>,
}

const TIMEOUT: u32 = 120;
const LONGEST: u32 = 3_600;
/// What is kept of the beginning and of the end of the output.
const HALF: usize = 24 << 10;

impl TypedTool for Shell {
    const NAME: &'static str = "shell";
    const DESCRIPTION: &'static str = include_str!("shell.md");
    const CLASS: ToolClass = ToolClass::Changes;
    type Input = Input;

    fn intent(&self, input: &Input) -> String {
        format!("run {}", input.command)
    }

    async fn run(&self, input: Input, context: &Context) -> Done {
        let order = Order {
            program: "sh".into(),
            args: vec!["-c".into(), input.command.into()],
            cwd: context.root.clone(),
            env: self.env.clone(),
            stdin: None,
            limits: Limits::default(),
            keeper: self.keeper.clone(),
        };
        let mut running = start(order).await.map_err(|error| failure(&error))?;
        let seconds = input.timeout.unwrap_or(TIMEOUT).min(LONGEST);
        let mut kept = Kept::default();
        let time = tokio::time::sleep(Duration::from_secs(seconds.into()));
        let is_late = tokio::select! {
            () = listen(&mut running, &mut kept, &context.live) => false,
            () = time => true,
            () = context.stop.cancelled() => false,
        };
        if is_late || context.stop.is_cancelled() {
            running.stop();
        }
        let ended = running.wait().await;
        let mut text = kept.text();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&match (is_late, ended.status) {
            (true, _) => format!("[stopped after {seconds} s, with everything that it had started]"),
            (false, Status::Exited(code)) => format!("[exit code {code}]"),
            (false, Status::Signalled(signal)) => format!("[ended by signal {signal}]"),
            (false, status) => format!("[ended: {status:?}]"),
        });
        if is_late {
            return Err(ToolFailure(text));
        }
        // What went well needs no word for people.
        let display = (ended.status != Status::Exited(0)).then(|| last_lines(&text));
        Ok(ToolOutput { text, display, ..ToolOutput::default() })
    }
}

fn failure(error: &ExecError) -> ToolFailure {
    ToolFailure(format!("The command was not run: {error}. {}", error.hint()))
}

/// How a command ended, with what it said last.
fn last_lines(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().rev().filter(|line| !line.trim().is_empty()).take(2).collect();
    lines.reverse();
    lines.join(" ")
}

async fn listen(running: &mut Running, kept: &mut Kept, live: &Live) {
    while let Some(Output::Stdout(piece) | Output::Stderr(piece)) = running.next().await {
        live.show(&String::from_utf8_lossy(&piece));
        kept.take(&piece);
    }
}

/// The beginning and the end of an output, however long it is.
#[derive(Default)]
struct Kept {
    head: Vec<u8>,
    tail: Vec<u8>,
    left_out: usize,
}

impl Kept {
    fn take(&mut self, piece: &[u8]) {
        let room = HALF.saturating_sub(self.head.len()).min(piece.len());
        let (head, rest) = piece.split_at_checked(room).unwrap_or((piece, &[]));
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(rest);
        if self.tail.len() > 2 * HALF {
            let over = self.tail.len() - HALF;
            self.tail.drain(..over);
            self.left_out += over;
        }
    }

    fn text(mut self) -> String {
        let over = self.tail.len().saturating_sub(HALF);
        self.tail.drain(..over);
        self.left_out += over;
        let [head, tail] = [&self.head, &self.tail].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        match self.left_out {
            0 => format!("{head}{tail}"),
            left_out => format!("{head}\n[{left_out} bytes are left out here]\n{tail}"),
        }
    }
}
