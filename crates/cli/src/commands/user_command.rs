//! A command of the user's own: unconfined, but in custody, so that it can be stopped and nothing of it outlives Helve.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use helve_exec::{
    CommandExitStatus, CommandInput, CommandLimits, CommandOutcome, CommandOutputChunk, CommandSpec, start,
};
use helve_tui::{CommandStopFlag, UserCommandResult};

use crate::programs::{ProgramFinder, is_called};
use crate::sandbox_policy::own_program;
use crate::user_models::block_on;

/// Shells that understand what any of them does.
const POSIX_SHELLS: [&str; 6] = ["sh", "bash", "zsh", "dash", "ash", "ksh"];
/// So much of its output is kept, from the end.
const MAX_USER_COMMAND_OUTPUT_BYTES: usize = 1 << 20;
/// So much of it is shown while it runs.
const USER_COMMAND_TAIL_BYTES: usize = 4 << 10;
/// How often it is looked whether it is to stop, and its output is told.
const USER_COMMAND_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// A command that takes longer is ended.
const USER_COMMAND_TIMEOUT: Duration = Duration::from_secs(3_600);

pub(super) fn run_user_command(
    command: &str,
    cwd: &Path,
    programs: &ProgramFinder,
    stop: &CommandStopFlag,
    tell: &dyn Fn(String),
) -> UserCommandResult {
    let failed =
        |why: String| UserCommandResult { output: format!("it can't be run: {why}"), is_well: false };
    // The user's own, unless it lies where the project could have put it.
    let own = std::env::var_os("SHELL").map(PathBuf::from).filter(|shell| programs.is_outside(shell));
    let shell = own.unwrap_or_else(|| programs.shell()).into_os_string();
    // Both outputs as one keep their order; not every shell can be told so.
    let is_plain = is_called(&shell, &POSIX_SHELLS);
    let script = if is_plain { format!("exec 2>&1\n{command}") } else { command.to_owned() };
    let keeper = match own_program() {
        Ok(keeper) => keeper,
        Err(error) => return failed(error.to_string()),
    };
    let order = CommandSpec {
        program: shell,
        args: vec!["-c".into(), script.into()],
        cwd: cwd.to_owned(),
        env: std::env::vars_os().collect(),
        input: CommandInput::Nothing,
        terminal: None,
        limits: CommandLimits::default(),
        confinement: None,
        keeper,
    };
    match block_on(follow(order, stop, tell)) {
        Ok(ran) => ran.unwrap_or_else(failed),
        Err(failure) => failed(failure.to_string()),
    }
}

async fn follow(
    order: CommandSpec,
    stop: &CommandStopFlag,
    tell: &dyn Fn(String),
) -> Result<UserCommandResult, String> {
    let mut running = start(order).await.map_err(|error| error.to_string())?;
    let began = Instant::now();
    let mut kept = UserCommandOutput::default();
    let mut is_news = false;
    let mut why = None;
    let mut look_up = tokio::time::interval(USER_COMMAND_POLL_INTERVAL);
    loop {
        tokio::select! {
            piece = running.next() => match piece {
                Some(CommandOutputChunk::Stdout(bytes) | CommandOutputChunk::Stderr(bytes)) => {
                    kept.push(&bytes);
                    is_news = true;
                }
                None => break,
            },
            _ = look_up.tick() => {
                if why.is_none() && (stop.is_stopped() || began.elapsed() > USER_COMMAND_TIMEOUT) {
                    why = Some(if stop.is_stopped() { "stopped" } else { "ended: it took too long" });
                    running.stop();
                }
                if std::mem::take(&mut is_news) {
                    tell(kept.tail());
                }
            }
        }
    }
    let CommandOutcome { status, .. } = running.wait().await;
    let mut output = kept.text();
    let end = match (why, status) {
        (Some(why), _) => Some(why.to_owned()),
        (None, CommandExitStatus::Exited(0)) => None,
        (None, CommandExitStatus::Exited(code)) => Some(format!("exit code {code}")),
        (None, CommandExitStatus::Signalled(signal)) => Some(format!("ended by signal {signal}")),
        (None, CommandExitStatus::Unknown) => Some("nobody saw how it ended".to_owned()),
    };
    let is_well = end.is_none();
    if let Some(end) = end {
        let gap = if output.is_empty() || output.ends_with('\n') { "" } else { "\n" };
        output.push_str(&format!("{gap}[{end}]"));
    }
    Ok(UserCommandResult { output, is_well })
}

/// The last of an output.
#[derive(Default)]
struct UserCommandOutput {
    bytes: Vec<u8>,
    dropped: usize,
}

impl UserCommandOutput {
    fn push(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
        // Not for each piece: what is moved should have been worth it.
        if self.bytes.len() > 2 * MAX_USER_COMMAND_OUTPUT_BYTES {
            let most = self.bytes.len() - MAX_USER_COMMAND_OUTPUT_BYTES;
            self.bytes.drain(..most);
            self.dropped += most;
        }
    }

    fn tail(&self) -> String {
        let from = self.bytes.len().saturating_sub(USER_COMMAND_TAIL_BYTES);
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
        let mut kept = UserCommandOutput::default();
        for number in 0..400_000 {
            kept.push(format!("line {number}\n").as_bytes());
            assert!(kept.bytes.len() <= 2 * MAX_USER_COMMAND_OUTPUT_BYTES + 32);
        }
        assert!(kept.tail().ends_with("line 399999\n") && kept.tail().len() <= USER_COMMAND_TAIL_BYTES);
        assert!(kept.text().starts_with('[') && kept.text().ends_with("line 399999\n"));
    }
}
