//! Commands that behave, and orders that can't be carried out.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use helve_exec::{
    CommandEndCause, CommandExitStatus, CommandInput, CommandLimits, CommandSpec, ExecError, start,
};

use crate::{Mark, all, order, shell};

async fn error(order: CommandSpec) -> ExecError {
    match start(order).await {
        Ok(mut running) => panic!("it runs: {:?}", running.wait().await),
        Err(error) => error,
    }
}

#[tokio::test]
async fn output_and_code_arrive() {
    let mark = Mark::new();
    let running = start(shell(&mark, "echo out; echo err >&2; exit 7")).await.unwrap();
    let (stdout, stderr, ended) = all(running).await;
    assert_eq!((stdout.as_str(), stderr.as_str()), ("out\n", "err\n"));
    assert_eq!((ended.status, ended.cause), (CommandExitStatus::Exited(7), CommandEndCause::Completed));
    assert_eq!((ended.leftovers, ended.survivors), (0, 0));
}

#[tokio::test]
async fn a_signal_is_told() {
    let running = start(shell(&Mark::new(), "kill -9 $$")).await.unwrap();
    assert_eq!(all(running).await.2.status, CommandExitStatus::Signalled(9));
}

#[tokio::test]
async fn input_is_read_whole() {
    let text = "0123456789".repeat(100_000);
    let order = CommandSpec {
        input: CommandInput::Text(text.clone().into_bytes()),
        ..order(&Mark::new(), "cat", &[])
    };
    assert_eq!(all(start(order).await.unwrap()).await.0, text);
}

#[tokio::test]
async fn input_that_nobody_reads_holds_nothing_up() {
    let order =
        CommandSpec { input: CommandInput::Text(vec![0; 1 << 20]), ..order(&Mark::new(), "true", &[]) };
    assert_eq!(all(start(order).await.unwrap()).await.2.status, CommandExitStatus::Exited(0));
}

#[tokio::test]
async fn without_input_there_is_none() {
    let running = start(order(&Mark::new(), "cat", &[])).await.unwrap();
    assert_eq!(all(running).await.0, "");
}

#[tokio::test]
async fn much_output_arrives_whole() {
    let running = start(shell(&Mark::new(), "head -c 3000000 /dev/zero | tr '\\0' x")).await.unwrap();
    let (stdout, ..) = all(running).await;
    assert_eq!(stdout.len(), 3_000_000);
    assert!(stdout.bytes().all(|byte| byte == b'x'));
}

#[tokio::test]
async fn environment_and_folder_are_those_of_the_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let env = vec![("A".into(), "b c".into())];
    let order = CommandSpec {
        cwd: path.clone(),
        env,
        ..order(&Mark::new(), "/bin/sh", &["-c", "/usr/bin/env; pwd -P"])
    };
    let (stdout, ..) = all(start(order).await.unwrap()).await;
    let lines: Vec<&str> = stdout.lines().filter(|line| !line.starts_with("PWD=")).collect();
    assert!(lines.contains(&"A=b c"), "{lines:?}");
    assert_eq!(lines.last(), Some(&path.to_str().unwrap()));
    assert!(!lines.iter().any(|line| line.starts_with("HOME=") || line.starts_with("CARGO")), "{lines:?}");
}

#[tokio::test]
async fn a_command_gets_no_terminal_and_no_file_of_ours() {
    let running = start(shell(&Mark::new(), "ls -l /proc/self/fd; : < /dev/tty")).await.unwrap();
    let (stdout, stderr, ended) = all(running).await;
    assert!(stdout.contains("pipe:") && !stdout.contains("socket:"), "{stdout}");
    assert!(stderr.contains("/dev/tty"), "{stderr}");
    assert_ne!(ended.status, CommandExitStatus::Exited(0));
}

#[tokio::test]
async fn a_file_can_be_too_large() {
    let folder = tempfile::tempdir().unwrap();
    let limits = CommandLimits { file_size: Some(1000), ..CommandLimits::default() };
    let order = CommandSpec {
        cwd: folder.path().into(),
        limits,
        ..shell(&Mark::new(), "exec head -c 5000 /dev/zero > f")
    };
    let ended = all(start(order).await.unwrap()).await.2;
    assert_ne!(ended.status, CommandExitStatus::Exited(0));
    assert_eq!(fs::metadata(folder.path().join("f")).unwrap().len(), 1000);
}

#[tokio::test]
async fn memory_can_be_too_much() {
    for (memory, expected) in
        [(None, CommandExitStatus::Exited(0)), (Some(100 << 20), CommandExitStatus::Exited(1))]
    {
        let limits = CommandLimits { memory, ..CommandLimits::default() };
        let order = CommandSpec {
            limits,
            ..order(&Mark::new(), "dd", &["if=/dev/zero", "of=/dev/null", "bs=500M", "count=1"])
        };
        assert_eq!(all(start(order).await.unwrap()).await.2.status, expected);
    }
}

#[tokio::test]
async fn what_can_not_be_started_says_why() {
    let mark = Mark::new();
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text");
    fs::write(&text, "hello").unwrap();

    assert!(matches!(error(order(&mark, "no-such-program", &[])).await, ExecError::ProgramNotFound(_)));
    assert!(matches!(error(order(&mark, &text, &[])).await, ExecError::NotExecutable(_)));
    fs::set_permissions(&text, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(matches!(error(order(&mark, &text, &[])).await, ExecError::NotExecutable(_)));
    let nowhere = CommandSpec { cwd: folder.path().join("none"), ..order(&mark, "true", &[]) };
    assert!(matches!(error(nowhere).await, ExecError::NoFolder(_)));
    let no_folder = CommandSpec { cwd: text, ..order(&mark, "true", &[]) };
    assert!(matches!(error(no_folder).await, ExecError::NoFolder(_)));
    assert!(matches!(error(order(&mark, "a\0b", &[])).await, ExecError::Other { .. }));
    let long = "x".repeat(10 << 20);
    assert!(matches!(error(order(&mark, "true", &[&long])).await, ExecError::TooLong));
    let large = CommandSpec { input: CommandInput::Text(vec![0; 65 << 20]), ..order(&mark, "true", &[]) };
    assert!(matches!(error(large).await, ExecError::TooLarge(_)));
    mark.wait_until_gone();
}

#[tokio::test]
async fn a_keeper_that_is_none_is_noticed() {
    let missing = CommandSpec { keeper: "/no/such/keeper".into(), ..order(&Mark::new(), "true", &[]) };
    assert!(matches!(error(missing).await, ExecError::SupervisorFailed(_)));
    let other = CommandSpec { keeper: "/bin/true".into(), ..order(&Mark::new(), "true", &[]) };
    assert!(matches!(error(other).await, ExecError::SupervisorFailed(_)));
}
