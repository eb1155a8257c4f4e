//! The attacks, each with who can do it and what stops it.

use std::fs;

use helve_testkit::skip;
use rustix::process::{Pid, Signal, kill_process};

use super::ground::{Ground, Outcome, User, users};
use crate::Mark;

/// Where an attack must be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopped {
    Everywhere,
    /// The lower level does not claim to.
    AtFull,
}

/// Whether an attack gets through where nothing is confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bare {
    Succeeds,
    /// Only for root; others are stopped by the system.
    SucceedsAsRoot,
    /// Only for a user whom it can make root.
    SucceedsAsUser,
    /// It depends on the machine. Where it does not, that is told as a skip.
    DependsOnMachine,
}

const ATTACKS: &[(&str, Bare, Stopped)] = &[
    ("write", Bare::Succeeds, Stopped::Everywhere),
    ("write-above", Bare::Succeeds, Stopped::Everywhere),
    ("write-link", Bare::Succeeds, Stopped::Everywhere),
    ("write-race", Bare::Succeeds, Stopped::Everywhere),
    ("write-hard-link", Bare::Succeeds, Stopped::Everywhere),
    ("write-own-root", Bare::Succeeds, Stopped::Everywhere),
    ("write-other-root", Bare::Succeeds, Stopped::Everywhere),
    ("write-other-folder", Bare::Succeeds, Stopped::Everywhere),
    ("create", Bare::Succeeds, Stopped::Everywhere),
    ("remove", Bare::Succeeds, Stopped::Everywhere),
    ("take", Bare::Succeeds, Stopped::Everywhere),
    ("truncate", Bare::Succeeds, Stopped::Everywhere),
    ("permissions", Bare::Succeeds, Stopped::AtFull),
    ("hook", Bare::Succeeds, Stopped::AtFull),
    ("hook-aside", Bare::Succeeds, Stopped::AtFull),
    ("git-config", Bare::Succeeds, Stopped::AtFull),
    ("secret", Bare::Succeeds, Stopped::Everywhere),
    ("secret-link", Bare::Succeeds, Stopped::Everywhere),
    ("secret-own-root", Bare::Succeeds, Stopped::Everywhere),
    ("secret-first-root", Bare::DependsOnMachine, Stopped::Everywhere),
    ("secret-handle", Bare::SucceedsAsRoot, Stopped::Everywhere),
    ("secret-hard-link", Bare::Succeeds, Stopped::Everywhere),
    ("secret-other-root", Bare::Succeeds, Stopped::Everywhere),
    ("secret-moved", Bare::Succeeds, Stopped::AtFull),
    ("tcp", Bare::Succeeds, Stopped::Everywhere),
    ("udp", Bare::Succeeds, Stopped::Everywhere),
    ("dns", Bare::Succeeds, Stopped::Everywhere),
    ("name", Bare::DependsOnMachine, Stopped::Everywhere),
    ("icmp", Bare::SucceedsAsRoot, Stopped::Everywhere),
    ("route", Bare::DependsOnMachine, Stopped::Everywhere),
    ("packets", Bare::SucceedsAsRoot, Stopped::Everywhere),
    ("socket", Bare::Succeeds, Stopped::Everywhere),
    ("socket-datagram", Bare::Succeeds, Stopped::Everywhere),
    ("socket-agent", Bare::Succeeds, Stopped::Everywhere),
    ("socket-docker", Bare::DependsOnMachine, Stopped::Everywhere),
    ("socket-link", Bare::Succeeds, Stopped::Everywhere),
    ("socket-abstract", Bare::Succeeds, Stopped::Everywhere),
    ("signal", Bare::Succeeds, Stopped::Everywhere),
    ("signal-handle", Bare::Succeeds, Stopped::Everywhere),
    ("starve", Bare::Succeeds, Stopped::Everywhere),
    ("trace", Bare::SucceedsAsRoot, Stopped::Everywhere),
    ("memory", Bare::SucceedsAsRoot, Stopped::Everywhere),
    ("user-namespace", Bare::DependsOnMachine, Stopped::Everywhere),
    ("bind", Bare::DependsOnMachine, Stopped::Everywhere),
    ("remount", Bare::SucceedsAsRoot, Stopped::Everywhere),
    ("uncover", Bare::SucceedsAsRoot, Stopped::Everywhere),
    ("chroot", Bare::SucceedsAsRoot, Stopped::Everywhere),
    ("key", Bare::DependsOnMachine, Stopped::Everywhere),
    ("keyring", Bare::DependsOnMachine, Stopped::Everywhere),
    ("io-uring", Bare::DependsOnMachine, Stopped::Everywhere),
    ("device", Bare::SucceedsAsRoot, Stopped::Everywhere),
    ("kernel-setting", Bare::SucceedsAsRoot, Stopped::Everywhere),
    ("setuid", Bare::SucceedsAsUser, Stopped::Everywhere),
    ("fill", Bare::Succeeds, Stopped::Everywhere),
    ("large-file", Bare::Succeeds, Stopped::Everywhere),
    ("type", Bare::DependsOnMachine, Stopped::Everywhere),
];

impl Bare {
    fn is_expected_of(self, user: User) -> bool {
        let is_root = user == User::Oneself && rustix::process::getuid().is_root();
        match self {
            Bare::Succeeds => true,
            Bare::SucceedsAsRoot => is_root,
            Bare::SucceedsAsUser => user == User::Nobody,
            Bare::DependsOnMachine => true,
        }
    }
}

/// The grounds on which the tests can be.
fn grounds() -> impl Iterator<Item = (User, Ground)> {
    users().into_iter().filter_map(|user| Some((user, Ground::reachable(user)?)))
}

fn restore(ground: &Ground) {
    fs::write(ground.path("outside/victim"), "old").unwrap();
}

#[test]
fn without_confinement_the_attacks_succeed() {
    for (user, ground) in grounds() {
        let settings = ground.settings("bare");
        for (attack, bare, _) in ATTACKS.iter().filter(|(_, bare, _)| bare.is_expected_of(user)) {
            let Outcome { code, said } = ground.attack(&settings, attack);
            if code == Some(1) && *bare == Bare::DependsOnMachine {
                skip(attack, &format!("not shown to succeed by {user:?}: {}", said.trim_end()));
                continue;
            }
            assert_eq!(code, Some(0), "{user:?} {bare:?} {attack}: {said}");
            restore(&ground);
        }
    }
}

#[test]
fn with_confinement_they_fail() {
    for (user, ground) in grounds() {
        for level in ground.levels() {
            let settings = ground.settings(level);
            let is_claimed = |bare: Bare, stopped: Stopped| {
                let is_meant = bare != Bare::SucceedsAsUser || bare.is_expected_of(user);
                is_meant && (level == "full" || stopped == Stopped::Everywhere)
            };
            for (attack, ..) in ATTACKS.iter().filter(|(_, bare, stopped)| is_claimed(*bare, *stopped)) {
                let Outcome { code, said } = ground.attack(&settings, attack);
                println!("{user:?} {level} {}", said.trim_end());
                // A file that is too large ends its writer with a signal.
                let is_ended = *attack == "large-file" && code == Some(126);
                let is_stopped = code == Some(1) && said.starts_with(&format!("{attack}: stopped"));
                assert!(is_stopped || is_ended, "{user:?} {level} {attack}: {code:?} {said}");
                let victim = fs::read_to_string(ground.path("outside/victim")).unwrap();
                assert_eq!(victim, "old", "{user:?} {level} {attack}");
            }
            assert_eq!(fs::read_to_string(ground.path("secret/key")).unwrap(), "secret");
        }
    }
}

/// What is hidden is hidden wherever else it is mounted.
#[test]
fn a_secret_is_not_read_through_another_mount() {
    if !rustix::process::getuid().is_root() {
        return skip("a_secret_is_not_read_through_another_mount", "only root can mount something");
    }
    for (user, ground) in grounds() {
        for attack in ["secret-mounted", "secret-mounted-around"] {
            let bare = ground.attack_with_mounts(&ground.settings("bare"), attack);
            assert_eq!(bare.code, Some(0), "{user:?} {attack}: {}", bare.said);
            for level in ground.levels() {
                let Outcome { code, said } = ground.attack_with_mounts(&ground.settings(level), attack);
                assert_eq!(code, Some(1), "{user:?} {level} {attack}: {said}");
            }
        }
    }
}

/// A daemon lives on without Helve, and does not with it.
#[test]
fn nothing_outlives_its_command() {
    for (user, ground) in grounds() {
        let custody = ground.path("bin/custody").display().to_string();
        let leave = ["sh", "-c", "\"$0\" new-session stubborn; exit", custody.as_str()];
        let mark = Mark::new();
        assert_eq!(ground.without_helve(&mark, &leave).code, Some(0), "{user:?}");
        mark.wait_for(1);
        mark.processes().iter().for_each(|pid| end(*pid));
        mark.wait_until_gone();
        for level in ground.levels().into_iter().chain(["bare"]) {
            let outcome = ground.run_marked(&mark, &ground.settings(level), &leave);
            assert_eq!(outcome.code, Some(0), "{user:?} {level}: {}", outcome.said);
            assert_eq!(mark.processes(), [0; 0], "{user:?} {level}");
        }
    }
}

fn end(pid: u32) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    let _ = kill_process(pid, Signal::KILL);
}

/// Nobody gets files that Helve happens to have open: not even without confinement.
#[test]
fn open_files_are_not_inherited() {
    for (user, ground) in grounds() {
        assert_eq!(ground.attack_by_descriptor(None).code, Some(0), "{user:?}: without Helve");
        restore(&ground);
        for level in ground.levels().into_iter().chain(["bare"]) {
            let outcome = ground.attack_by_descriptor(Some(&ground.settings(level)));
            assert_eq!(outcome.code, Some(1), "{user:?} {level}: {}", outcome.said);
            assert_eq!(fs::read_to_string(ground.path("outside/victim")).unwrap(), "old");
        }
    }
}

#[test]
fn a_fork_bomb_is_ended_whoever_it_is() {
    for (user, ground) in grounds() {
        let custody = ground.path("bin/custody").display().to_string();
        // It goes on beyond any limit: without confinement, a higher one ends it.
        let limits = ground.levels().into_iter().map(|level| (level, 60)).chain([("bare", 120)]);
        for (level, limit) in limits {
            let settings = [ground.settings(level), vec![format!("processes={limit}")]].concat();
            let outcome = ground.run(&settings, &[&custody, "bomb"]);
            assert_eq!(outcome.code, Some(126), "{user:?} {level}: ended by a signal: {}", outcome.said);
        }
    }
}
