//! Custody of confined commands: they are stopped, ended and told about as any others.

use std::fs;
use std::path::Path;

use helve_exec::{
    CommandEndCause, CommandExitStatus, CommandInput, CommandLimits, CommandSpec, Confinement,
    ConfinementLevel, ConfinementPart, ExecError, SandboxProbe, WindowSize, probe, start,
    start_sharing_network,
};
use helve_testkit::skip;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::timeout;

use crate::deaths::dies_with_helve;
use crate::stopping::{misbehaving, stop};
use crate::{LONG, Mark, all, custody, line, order, shell};

/// The levels that work here.
pub(crate) fn levels() -> Vec<ConfinementLevel> {
    let SandboxProbe { level, why, .. } = probe(&custody(), None);
    why.iter().for_each(|why| skip("confined", &why.to_string()));
    [ConfinementLevel::Landlock, ConfinementLevel::Full].into_iter().filter(|it| *it <= level).collect()
}

/// Confined to the helper's folder, which may lie in a place that is covered.
pub(crate) fn confined(level: ConfinementLevel, order: CommandSpec) -> CommandSpec {
    let writable = vec![custody().parent().unwrap().into()];
    let confinement = Confinement { writable, ..Confinement::new(level) };
    CommandSpec { confinement: Some(confinement), ..order }
}

async fn refused(order: CommandSpec) -> ExecError {
    match start(order).await {
        Ok(mut running) => panic!("it runs: {:?}", running.wait().await),
        Err(error) => error,
    }
}

#[tokio::test]
async fn whatever_it_does_it_is_stopped() {
    let mark = Mark::new();
    for level in levels() {
        for (what, order, count) in misbehaving(&mark) {
            for is_dropped in [false, true] {
                let mut running = start(confined(level, order.clone())).await.unwrap();
                assert_eq!(line(&mut running).await, "ready", "{what}");
                mark.wait_for(count);
                if is_dropped {
                    drop(running);
                    mark.wait_until_gone();
                } else {
                    println!("{level:?} {what}: gone after {:?}", stop(&mark, &mut running).await);
                }
            }
        }
    }
}

#[test]
fn nothing_outlives_helve() {
    let custody = custody();
    let writable = format!("writable={}", custody.parent().unwrap().display());
    let custody = custody.to_str().unwrap();
    for level in levels() {
        let level = if level == ConfinementLevel::Full { "level=full" } else { "level=landlock" };
        dies_with_helve(&[level, &writable, "sh", "-c", "echo ready; sleep 60 | cat | cat"], 3);
        dies_with_helve(&[level, &writable, custody, "daemon"], 2);
        dies_with_helve(&[level, &writable, custody, "breed"], 6);
    }
}

/// In a namespace, not even a daemon with a session of its own outlives a keeper that is killed.
#[tokio::test]
async fn all_of_a_namespace_ends_with_its_keeper() {
    let mark = Mark::new();
    for level in levels().into_iter().filter(|level| *level == ConfinementLevel::Full) {
        let mut running = start(confined(level, order(&mark, custody(), &["daemon"]))).await.unwrap();
        assert_eq!(line(&mut running).await, "ready");
        mark.wait_for(2);
        let stat = fs::read_to_string(format!("/proc/{}/stat", running.id())).unwrap();
        let keeper = Pid::from_raw(stat.split(' ').nth(3).unwrap().parse().unwrap()).unwrap();
        kill_process(keeper, Signal::KILL).unwrap();
        assert_eq!(timeout(LONG, running.wait()).await.unwrap().cause, CommandEndCause::SupervisorLost);
        mark.wait_until_gone();
    }
}

#[tokio::test]
async fn a_fork_bomb_is_ended_by_its_limit() {
    let mark = Mark::new();
    for level in levels() {
        let limits = CommandLimits { processes: Some(60), ..CommandLimits::default() };
        let bomb = CommandSpec { limits, ..order(&mark, custody(), &["bomb"]) };
        let mut running = start(confined(level, bomb)).await.unwrap();
        let ended = timeout(LONG, running.wait()).await.unwrap();
        assert_eq!((ended.cause, ended.survivors), (CommandEndCause::TooManyProcesses, 0));
        assert_eq!(mark.processes(), [0; 0]);
    }
}

#[tokio::test]
async fn input_output_and_end_are_told() {
    let mark = Mark::new();
    let text = "0123456789".repeat(100_000);
    for level in levels() {
        let cat =
            CommandSpec { input: CommandInput::Text(text.clone().into_bytes()), ..order(&mark, "cat", &[]) };
        assert_eq!(all(start(confined(level, cat)).await.unwrap()).await.0, text);
        let (out, err, ended) =
            all(start(confined(level, shell(&mark, "echo out; echo err >&2; exit 7"))).await.unwrap()).await;
        assert_eq!(
            (out.as_str(), err.as_str(), ended.status),
            ("out\n", "err\n", CommandExitStatus::Exited(7))
        );
        assert_eq!((ended.leftovers, ended.survivors, ended.cause), (0, 0, CommandEndCause::Completed));
        let ended = all(start(confined(level, shell(&mark, "kill -9 $$"))).await.unwrap()).await.2;
        assert_eq!(ended.status, CommandExitStatus::Signalled(9));
        let left = shell(&mark, "sleep 60 & setsid sleep 60 & sleep 0.2; echo started; exit 3");
        let (out, _, ended) = timeout(LONG, all(start(confined(level, left)).await.unwrap())).await.unwrap();
        assert_eq!(
            (out.as_str(), ended.status, ended.leftovers),
            ("started\n", CommandExitStatus::Exited(3), 2)
        );
        assert_eq!(mark.processes(), [0; 0]);
    }
}

#[tokio::test]
async fn a_terminal_is_one() {
    let script =
        "test -t 0 && test -t 2 && stty size; echo there > /dev/tty; test -c \"$(tty)\" && echo named";
    for level in levels() {
        let terminal = Some(WindowSize { rows: 33, columns: 97 });
        let order = CommandSpec { terminal, ..shell(&Mark::new(), script) };
        let (said, ..) = timeout(LONG, all(start(confined(level, order)).await.unwrap())).await.unwrap();
        assert_eq!(said, "33 97\r\nthere\r\nnamed\r\n", "{level:?}");
    }
}

/// A fake question for a password on the user's terminal, or what is typed there.
#[tokio::test]
async fn the_users_terminals_are_out_of_reach() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let users = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&users).unwrap();
    unlockpt(&users).unwrap();
    let name = ptsname(&users, Vec::new()).unwrap().into_string().unwrap();
    let script = format!("echo Password: > {name} && echo written; exec 3< {name} && echo opened; true");
    let bare = start(shell(&Mark::new(), &script)).await.unwrap();
    assert_eq!(all(bare).await.0, "written\nopened\n", "without confinement");
    for level in levels() {
        for terminal in [None, Some(WindowSize { rows: 9, columns: 9 })] {
            let order = CommandSpec { terminal, ..shell(&Mark::new(), &script) };
            let (said, ..) = timeout(LONG, all(start(confined(level, order)).await.unwrap())).await.unwrap();
            assert!(!said.contains("written") && !said.contains("opened"), "{level:?} {terminal:?}: {said}");
        }
    }
}

#[tokio::test]
async fn a_command_has_no_files_but_the_three() {
    for level in levels() {
        let running = start(confined(level, shell(&Mark::new(), "ls /proc/$$/fd; :"))).await.unwrap();
        let said = all(running).await.0;
        // A shell may hold copies of its own, high up.
        let low: Vec<&str> = said.split_whitespace().filter(|name| name.len() == 1).collect();
        assert_eq!(low, ["0", "1", "2"], "{level:?}");
    }
}

#[tokio::test]
async fn what_can_not_be_started_says_why() {
    let mark = Mark::new();
    for level in levels() {
        let missing = confined(level, order(&mark, "no-such-program", &[]));
        assert!(matches!(refused(missing).await, ExecError::ProgramNotFound(_)));
        let nowhere =
            CommandSpec { cwd: "/no/such/folder".into(), ..confined(level, order(&mark, "true", &[])) };
        assert!(matches!(refused(nowhere).await, ExecError::NoFolder(_)));
    }
    assert_eq!(mark.processes(), [0; 0]);
}

/// A workspace in `/tmp`, which is covered and laid open again, is no way around what holds elsewhere.
#[tokio::test]
async fn a_workspace_among_temporary_files_is_one_like_others() {
    for level in levels().into_iter().filter(|level| *level == ConfinementLevel::Full) {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["work/.git/hooks", "work/secrets", "other"] {
            fs::create_dir_all(path(name)).unwrap();
        }
        for name in ["work/.env", "work/secrets/key", "other/file"] {
            fs::write(path(name), "secret").unwrap();
        }
        std::os::unix::fs::symlink(path("work"), path("link")).unwrap();
        let script =
            "cat .env secrets/key ../other/file; echo x > .git/hooks/pre-commit; mv .git .g; echo y > new";
        let mut order = confined(level, CommandSpec { cwd: path("work"), ..shell(&Mark::new(), script) });
        let confinement = order.confinement.as_mut().unwrap();
        confinement.writable.push(path("link"));
        confinement.hidden = vec![path("link/.env"), path("work/secrets")];
        confinement.protected = vec![path("link/.git/hooks")];
        let (out, err, _) = all(start(order).await.unwrap()).await;
        assert_eq!(out, "", "nothing is read: {err}");
        assert!(!path("work/.git/hooks/pre-commit").exists() && path("work/.git").exists());
        assert_eq!(fs::read_to_string(path("work/new")).unwrap(), "y\n");
        assert_eq!(fs::read_to_string(path("work/.env")).unwrap(), "secret");
    }
}

/// Never bare instead.
#[tokio::test]
async fn what_can_not_be_confined_does_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let ran = folder.path().join("ran");
    let touch = order(&Mark::new(), "touch", &[ran.to_str().unwrap()]);
    let asked = |level, change: &dyn Fn(&mut Confinement)| {
        let mut order = confined(level, touch.clone());
        change(order.confinement.as_mut().unwrap());
        order
    };
    let part = |error| match error {
        ExecError::CannotConfine { part, .. } => part,
        other => panic!("{other}"),
    };
    assert_eq!(part(refused(asked(ConfinementLevel::None, &|_| {})).await), ConfinementPart::Request);
    let protects = |it: &mut Confinement| it.protected.push("/usr".into());
    assert_eq!(part(refused(asked(ConfinementLevel::Landlock, &protects)).await), ConfinementPart::Request);
    for level in levels().into_iter().filter(|level| *level == ConfinementLevel::Full) {
        let all = |it: &mut Confinement| it.writable = vec!["/".into()];
        assert_eq!(part(refused(asked(level, &all)).await), ConfinementPart::Request);
        let absent = |it: &mut Confinement| it.writable = vec!["/no/such/folder".into()];
        assert_eq!(part(refused(asked(level, &absent)).await), ConfinementPart::Mounts);
    }
    assert!(!ran.exists());
}

/// A confined program can make no namespaces, so it finds the lower level only, and can use it.
#[tokio::test]
async fn a_probe_says_what_is_missing() {
    let mark = Mark::new();
    for level in levels() {
        let (said, ..) =
            all(start(confined(level, order(&mark, custody(), &["probe"]))).await.unwrap()).await;
        let lines: Vec<&str> = said.lines().collect();
        let [found, why] = lines.as_slice() else { panic!("{said}") };
        assert_eq!(*found, "Landlock", "{level:?}");
        assert!(why.contains("namespaces failed: Operation not permitted"), "{why}");
        assert!(why.contains("sysctl"), "{why}");
    }
}

/// As in a container: a part of `/proc` is covered, so the system shows no other one.
#[test]
fn a_probe_in_a_container_says_what_is_missing() {
    let script = "mount -t tmpfs none /proc/irq && echo covered && exec \"$0\" probe";
    let mut container = std::process::Command::new("unshare");
    let output = container.args(["-Urm", "sh", "-c", script]).arg(custody()).output();
    let said = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = said.lines().collect();
    let ["covered", found, why @ ..] = lines.as_slice() else {
        return skip("a_probe_in_a_container", "namespaces can't be made by `unshare` here");
    };
    assert_ne!(*found, "Full");
    assert!(why.concat().contains("systempaths=unconfined"), "{why:?}");
}

#[test]
fn a_probe_without_a_keeper_finds_nothing() {
    let SandboxProbe { level, why, .. } = probe(Path::new("/no/such/keeper"), None);
    assert_eq!((level, why.len()), (ConfinementLevel::None, 2));
    assert!(why.iter().all(|why| !why.to_string().is_empty() && !why.remedy().is_empty()));
    assert_eq!(probe(Path::new("/bin/true"), None).level, ConfinementLevel::None);
}

/// Says hello to whoever comes.
const SERVER: &str = "import socket as s\n\
    server = s.create_server(('127.0.0.1', 8124))\n\
    print('ready', flush=True)\n\
    while True: server.accept()[0].sendall(b'hello')";
const CLIENT: &str =
    "import socket as s; print(s.create_connection(('127.0.0.1', 8124), 5).recv(9).decode(), end='')";

#[tokio::test]
async fn commands_that_share_a_network_reach_each_other_and_nobody_else() {
    let has_python = fs::metadata("/usr/bin/python3").is_ok();
    if !levels().contains(&ConfinementLevel::Full) || !has_python {
        return skip("commands_that_share_a_network", "the full level or python3 is missing");
    }
    let mark = Mark::new();
    let python =
        |script: &str| confined(ConfinementLevel::Full, order(&mark, "/usr/bin/python3", &["-c", script]));
    let mut server = start(python(SERVER)).await.unwrap();
    assert_eq!(line(&mut server).await, "ready");
    let network = server.network().unwrap();
    let (said, complaint, _) = all(start_sharing_network(python(CLIENT), &network).await.unwrap()).await;
    assert_eq!(said, "hello", "{complaint}");
    let (_, complaint, _) = all(start(python(CLIENT)).await.unwrap()).await;
    assert!(complaint.contains("refused"), "a network of its own: {complaint}");

    // A server of this machine is not there.
    let outside = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = outside.local_addr().unwrap().port().to_string();
    let client = python(&CLIENT.replace("8124", &port));
    let (_, complaint, _) = all(start_sharing_network(client, &network).await.unwrap()).await;
    assert!(complaint.contains("refused"), "{complaint}");

    // It lasts, though the one whose it was is gone, and each still has its own processes.
    stop(&mark, &mut server).await;
    let look = confined(ConfinementLevel::Full, shell(&mark, "echo /proc/[0-9]* | wc -w"));
    let (said, _, _) = all(start_sharing_network(look, &network).await.unwrap()).await;
    assert!(said.trim().parse::<u32>().unwrap() <= 5, "{said}");
    // What may use the real network, or is not confined, has no other.
    let open = start_sharing_network(shell(&mark, "true"), &network).await.unwrap();
    assert!(open.network().is_none());
}
