//! Other processes: `examples/journal_child.rs`, told by its arguments what to do.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use helve_protocol::SessionId;

/// A command that runs the child in a role. It may be wrapped in another one, such as strace.
pub(crate) fn role(wrapper: &[&str], role: &str, root: &Path, session: SessionId) -> Command {
    let mut words = wrapper.iter().map(OsString::from).chain([program().into()]);
    let mut command = Command::new(words.next().unwrap());
    command.args(words).arg(role).arg(root).arg(session.to_string());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().unwrap().parent().unwrap().join("examples/journal_child");
    assert!(path.exists(), "{} is built by `cargo test -p helve-journal`", path.display());
    path
}

/// What a child said.
pub(crate) fn lines(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let output = BufReader::new(child.stdout.take().unwrap());
    output.lines().map_while(Result::ok).filter_map(|line| Some(line.split_once("CHILD ")?.1.to_owned()))
}
