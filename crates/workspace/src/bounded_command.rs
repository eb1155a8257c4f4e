//! A program that is asked something, with an end to every wait.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// So much of what a program says about its failure is kept.
const MAX_STDERR_CHARS: usize = 300;
const MAX_STDERR_BYTES: usize = 4096;

/// A question to a program.
pub(crate) struct BoundedCommand<'a> {
    pub(crate) command: Command,
    /// How long it may be silent.
    pub(crate) timeout: Duration,
    pub(crate) input: &'a [u8],
}

/// Whether a program was ended because it was silent for too long.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut
}

impl BoundedCommand<'_> {
    /// Runs the program to its end and reads what it says. It is ended when it is silent for too long, and when the reader has
    /// had enough. That it did not end well is an error.
    pub(crate) fn run<T>(self, read: impl FnOnce(&mut dyn BufRead) -> io::Result<T>) -> io::Result<T> {
        let BoundedCommand { mut command, timeout, input } = self;
        let stdin = if input.is_empty() { Stdio::null() } else { Stdio::piped() };
        let mut child = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let questions = child.stdin.take();
        let pipes = child.stdout.take().zip(child.stderr.take());
        let mut ending = ChildGuard(child);
        let (stdout, stderr) = pipes.ok_or(io::ErrorKind::BrokenPipe)?;
        thread::scope(|scope| {
            if let Some(mut questions) = questions {
                // It ends when the program does, at the latest; then the missing answers say what happened.
                scope.spawn(move || questions.write_all(input));
            }
            let mut answers = BufReader::new(ChildAnswers::new(stdout, stderr, timeout));
            let done = read(&mut answers);
            let mut answers = answers.into_inner();
            let ended = done.and_then(|done| answers.wait(AwaitedEvent::End).map(|()| done));
            let status = ending.end(ended.is_ok())?;
            match ended {
                Ok(done) if status.success() => Ok(done),
                Err(error) if is_timeout(&error) => Err(error),
                Ok(_) | Err(_) => Err(answers.failure(&status.to_string())),
            }
        })
    }
}

/// A program that does not outlive the question.
struct ChildGuard(Child);

impl ChildGuard {
    fn end(&mut self, is_over: bool) -> io::Result<std::process::ExitStatus> {
        if !is_over {
            let _ = self.0.kill();
        }
        self.0.wait()
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        // Does nothing if it has been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a program says, as it comes. It starts no others, so that its pipes close with it.
struct ChildAnswers {
    stdout: ChildStdout,
    stderr: ChildStderr,
    errors: Vec<u8>,
    /// Whether it can still say something about failures: until it ends.
    is_alive: bool,
    timeout: Duration,
}

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AwaitedEvent {
    Answer,
    End,
}

impl ChildAnswers {
    fn new(stdout: ChildStdout, stderr: ChildStderr, timeout: Duration) -> ChildAnswers {
        ChildAnswers { stdout, stderr, errors: Vec::new(), is_alive: true, timeout }
    }

    #[expect(clippy::disallowed_methods, reason = "programs take real time; nothing of it is replayed")]
    fn wait(&mut self, awaited: AwaitedEvent) -> io::Result<()> {
        let deadline = Instant::now() + self.timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let (has_answer, has_error) = self.poll(awaited, left)?;
            if has_error {
                self.read_error()?;
            }
            if has_answer || (awaited == AwaitedEvent::End && !self.is_alive) {
                return Ok(());
            }
        }
    }

    /// Waits once. Whether there is an answer, or something about a failure.
    fn poll(&self, awaited: AwaitedEvent, left: Duration) -> io::Result<(bool, bool)> {
        let none = PollFlags::empty();
        let (answer, error) = (
            if awaited == AwaitedEvent::Answer { PollFlags::IN } else { none },
            if self.is_alive { PollFlags::IN } else { none },
        );
        let mut fds = [PollFd::new(&self.stdout, answer), PollFd::new(&self.stderr, error)];
        // A pipe that nobody writes any more would be told again and again, also if it is not asked for.
        let wanted = match (awaited, self.is_alive) {
            (AwaitedEvent::Answer, true) => fds.get_mut(..),
            (AwaitedEvent::Answer, false) => fds.get_mut(..1),
            (AwaitedEvent::End, _) => fds.get_mut(1..),
        };
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(wanted.unwrap_or_default(), Some(&left)) {
            Ok(0) => {
                let why = format!("git did not answer within {} seconds", self.timeout.as_secs());
                Err(io::Error::new(io::ErrorKind::TimedOut, why))
            }
            Ok(_) | Err(Errno::INTR) => {
                let [answer, error] = fds.each_ref().map(|fd| !fd.revents().is_empty());
                Ok((answer, error))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn read_error(&mut self) -> io::Result<()> {
        let mut piece = [0; 1024];
        let length = self.stderr.read(&mut piece)?;
        self.is_alive = length > 0;
        if self.errors.len() < MAX_STDERR_BYTES {
            self.errors.extend_from_slice(piece.get(..length).unwrap_or_default());
        }
        Ok(())
    }

    fn failure(&self, status: &str) -> io::Error {
        let said = String::from_utf8_lossy(&self.errors);
        let said: String = said.trim().chars().take(MAX_STDERR_CHARS).collect();
        io::Error::other(if said.is_empty() { format!("git failed: {status}") } else { said })
    }
}

impl Read for ChildAnswers {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait(AwaitedEvent::Answer)?;
        self.stdout.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(script: &str, input: &[u8]) -> io::Result<String> {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(script);
        BoundedCommand { command, timeout: Duration::from_millis(500), input }.run(|answers| {
            let mut text = String::new();
            answers.read_to_string(&mut text)?;
            Ok(text)
        })
    }

    #[test]
    fn what_is_said_is_read_and_a_failure_is_told() {
        assert_eq!(ask("echo an answer", b"").unwrap(), "an answer\n");
        assert_eq!(ask("cat", &[b'x'; 300_000]).unwrap().len(), 300_000);
        assert_eq!(ask("echo so far; echo why >&2; exit 3", b"").unwrap_err().to_string(), "why");
        let talkative =
            "i=0; while [ $i -lt 9000 ]; do echo 0123456789012345 >&2; i=$((i+1)); done; echo done";
        assert_eq!(ask(talkative, b"").unwrap(), "done\n");
    }

    #[test]
    fn who_is_silent_is_ended_wherever_that_is() {
        for script in ["exec sleep 60", "echo begun; exec sleep 60", "echo begun; exec >&-; exec sleep 60"] {
            assert!(is_timeout(&ask(script, b"").unwrap_err()), "{script}");
        }
        // What is asked is more than a pipe holds, and nobody reads it.
        assert!(is_timeout(&ask("exec sleep 60", &[b'x'; 300_000]).unwrap_err()));
    }

    #[test]
    fn who_is_slow_but_not_silent_is_heard_out() {
        let text = ask("for i in 1 2 3 4 5; do sleep 0.2; echo $i; done", b"").unwrap();
        assert_eq!(text.lines().count(), 5);
    }
}
