//! A command of the user's own: unconfined, but in custody, so that it can be stopped and nothing of it outlives Helve.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use helve_exec::{Ended, Input, Limits, Order, Output, Status, start};
use helve_tui::{Ran, Stop};

use crate::confine::own_program;
use crate::models::block_on;
use crate::programs::{Programs, is_called};

/// Shells that understand what any of them does.
const PLAIN: [&str; 6] = ["sh", "bash", "zsh", "dash", "ash", "ksh"];
/// So much of its output is kept, from the end.
const MOST_OUTPUT: usize = 1 << 20;
/// So much of it is shown while it runs.
const TAIL: usize = 4 << 10;
/// How often it is looked whether it is to stop, and its output is told.
const LOOK_UP: Duration = Duration::from_millis(50);
/// A command that takes longer is ended.
const PATIENCE: Duration = Duration::from_secs(3_600);

pub(super) fn own_command(
    command: &str,
    cwd: &Path,
    programs: &Programs,
    stop: &Stop,
    tell: &dyn Fn(String),
) -> Ran {
    let failed = |why: String| Ran { output: format!("it can't be run: {why}"), is_well: false };
    // The user's own, unless it lies where the project could have put it.
    let own = std::env::var_os("SHELL").map(PathBuf::from).filter(|shell| programs.is_outside(shell));
    let shell = own.unwrap_or_else(|| programs.shell()).into_os_string();
    // Both outputs as one keep their order; not every shell can be told so.
    let is_plain = is_called(&shell, &PLAIN);
    let script = if is_plain { format!("exec 2>&1\n{command}") } else { command.to_owned() };
    let keeper = match own_program() {
        Ok(keeper) => keeper,
        Err(error) => return failed(error.to_string()),
    };
    let order = Order {
        program: shell,
        args: vec!["-c".into(), script.into()],
        cwd: cwd.to_owned(),
        env: std::env::vars_os().collect(),
        input: Input::Nothing,
        terminal: None,
        limits: Limits::default(),
        confinement: None,
        keeper,
    };
    match block_on(follow(order, stop, tell)) {
        Ok(ran) => ran.unwrap_or_else(failed),
        Err(failure) => failed(failure.to_string()),
    }
}

async fn follow(order: Order, stop: &Stop, tell: &dyn Fn(String)) -> Result<Ran, String> {
    let mut running = start(order).await.map_err(|error| error.to_string())?;
    let began = Instant::now();
    let mut kept = Kept::default();
    let mut is_news = false;
    let mut why = None;
    let mut look_up = tokio::time::interval(LOOK_UP);
    loop {
        tokio::select! {
            piece = running.next() => match piece {
                Some(Output::Stdout(bytes) | Output::Stderr(bytes)) => {
                    kept.push(&bytes);
                    is_news = true;
                }
                None => break,
            },
            _ = look_up.tick() => {
                if why.is_none() && (stop.is_stopped() || began.elapsed() > PATIENCE) {
                    why = Some(if stop.is_stopped() { "stopped" } else { "ended: it took too long" });
                    running.stop();
                }
                if std::mem::take(&mut is_news) {
                    tell(kept.tail());
                }
            }
        }
    }
    let Ended { status, .. } = running.wait().await;
    let mut output = kept.text();
    let end = match (why, status) {
        (Some(why), _) => Some(why.to_owned()),
        (None, Status::Exited(0)) => None,
        (None, Status::Exited(code)) => Some(format!("exit code {code}")),
        (None, Status::Signalled(signal)) => Some(format!("ended by signal {signal}")),
        (None, Status::Unknown) => Some("nobody saw how it ended".to_owned()),
    };
    let is_well = end.is_none();
    if let Some(end) = end {
        let gap = if output.is_empty() || output.ends_with('\n') { "" } else { "\n" };
        output.push_str(&format!("{gap}[{end}]"));
    }
    Ok(Ran { output, is_well })
}

/// The last of an output.
#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    dropped: usize,
}

impl Kept {
    fn push(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
        // Not for each piece: what is moved should have been worth it.
        if self.bytes.len() > 2 * MOST_OUTPUT {
            let most = self.bytes.len() - MOST_OUTPUT;
            self.bytes.drain(..most);
            self.dropped += most;
        }
    }

    fn tail(&self) -> String {
        let from = self.bytes.len().saturating_sub(TAIL);
        String::from_utf8_lossy(self.bytes.get(from..).unwrap_or_default()).into_owned()
    }

    fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        match self.dropped {
            0 => text.into_owned(),
            dropped => format!("[{dropped} bytes before this are not kept]\n{text}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_much_comes_the_end_is_kept() {
        let mut kept = Kept::default();
        for number in 0..400_000 {
            kept.push(format!("line {number}\n").as_bytes());
            assert!(kept.bytes.len() <= 2 * MOST_OUTPUT + 32);
        }
        assert!(kept.tail().ends_with("line 399999\n") && kept.tail().len() <= TAIL);
        assert!(kept.text().starts_with('[') && kept.text().ends_with("line 399999\n"));
    }
}
