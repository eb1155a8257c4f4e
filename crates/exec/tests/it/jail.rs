//! Programs in the jail: they do their own work, and start nobody, write nothing, reach nobody.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use helve_exec::{JAIL_FAILED, jail_arguments};

use crate::custody;

fn command(program: &str, writable: &[&Path], args: &[&str]) -> Command {
    let mut command = Command::new(custody());
    command.args(jail_arguments(Path::new(program), std::process::id()).unwrap());
    command.args(writable).arg("--").args(args).stdin(Stdio::null());
    command
}

fn shell(script: &str, writable: &[&Path]) -> Output {
    command("/bin/bash", writable, &["-c", script]).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_jailed_program_does_its_own_work() {
    let output = shell("read -r line < /proc/self/status; echo \"$line\" $((1 + 2)); exit 7", &[]);
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("Name:\tbash 3\n", Some(7)));
}

#[test]
fn a_jailed_program_starts_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let trap = folder.path().join("trap");
    // By fork, by a pipe, by a substitution, in the background.
    for script in ["/bin/touch TRAP; :", ": | echo > TRAP", "x=$(echo > TRAP)", "echo > TRAP & wait"] {
        let output = shell(&script.replace("TRAP", trap.to_str().unwrap()), &[folder.path()]);
        assert!(text(&output.stderr).contains("fork"), "{script}: {output:?}");
        assert!(!trap.exists(), "{script}");
    }
}

#[test]
fn a_jailed_program_writes_only_what_it_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let (given, other) = (folder.path().join("given"), folder.path().join("other"));
    std::fs::create_dir(&given).unwrap();
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("kept"), "as it was").unwrap();
    let script = format!(
        "echo 1 > {0}/new; echo 2 > {1}/new; echo 3 > {1}/kept; echo 4 > /dev/null && echo fine",
        given.display(),
        other.display()
    );
    let output = shell(&script, &[&given]);
    assert_eq!(text(&output.stdout), "fine\n", "{output:?}");
    assert!(given.join("new").exists());
    if std::fs::read_to_string("/sys/kernel/security/lsm").is_ok_and(|lsm| !lsm.contains("landlock")) {
        return helve_testkit::skip("jail", "this kernel has no Landlock");
    }
    assert!(!other.join("new").exists());
    assert_eq!(std::fs::read_to_string(other.join("kept")).unwrap(), "as it was");
}

#[test]
fn a_jailed_program_reaches_nobody() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let script = format!("echo > /dev/tcp/127.0.0.1/{}", listener.local_addr().unwrap().port());
    let output = shell(&script, &[]);
    assert!(text(&output.stderr).contains("Permission denied"), "{output:?}");
}

#[test]
fn a_jailed_program_ends_with_who_started_it() {
    let start = || {
        let sleeper = command("/bin/sleep", &[], &["30"]).spawn().unwrap();
        let name = format!("/proc/{}/comm", sleeper.id());
        while std::fs::read_to_string(&name).unwrap().trim() != "sleep" {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        sleeper
    };
    let mut sleeper = std::thread::spawn(start).join().unwrap();
    assert_eq!(sleeper.wait().unwrap().signal(), Some(9));
}

#[test]
fn what_cannot_be_jailed_is_not_run() {
    for program in ["/no/such/program", "/etc"] {
        let output = command(program, &[], &[]).output().unwrap();
        assert_eq!(output.status.code(), Some(JAIL_FAILED.into()), "{program}");
    }
    let mut stranger = Command::new(custody());
    // Nobody's child.
    stranger.args(jail_arguments(Path::new("/bin/true"), 999_999_999).unwrap()).arg("--");
    assert_eq!(stranger.output().unwrap().status.code(), Some(JAIL_FAILED.into()));
}
