//! What custody and confinement cost: a command that does nothing, beside the same one spawned without either, and in
//! bubblewrap. `cargo xtask bench` runs it.
#![expect(clippy::unwrap_used, reason = "a benchmark that can't run has nothing to say")]
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures time and prints it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use helve_exec::{
    CommandExitStatus, CommandInput, CommandLimits, CommandSpec, Confinement, ConfinementLevel,
    PrivateLayers, probe, start, supervisor_main,
};

const RUNS: usize = 200;
const SPAWNED: &str = "true, spawned";
const FULL: &str = "true, fully confined";
const MASKED: &str = "true, fully confined, 200 masks";
const LAYERED: &str = "true, fully confined, hidden home, 8 layers";
const MASKS: usize = 200;
const BUBBLEWRAP: &str = "true in bwrap";

/// What is measured, and how it is done once.
type Way<'w> = (&'w str, Box<dyn Fn() + 'w>);

fn main() -> ExitCode {
    // The keeper is whatever program starts it.
    if let Some(code) = supervisor_main(std::env::args_os()) {
        return code;
    }
    let workspace = tempfile::tempdir().unwrap();
    let mut ways: Vec<Way<'_>> = vec![
        (SPAWNED, Box::new(|| spawn(&mut Command::new("/bin/true")))),
        ("true, bare", Box::new(|| run(None))),
    ];
    let found = probe("/proc/self/exe".as_ref(), None).level;
    for (level, name) in [(ConfinementLevel::Landlock, "true, Landlock"), (ConfinementLevel::Full, FULL)] {
        let confinement = confinement(level, workspace.path());
        if level <= found {
            ways.push((name, Box::new(move || run(Some(confinement.clone())))));
        } else {
            println!("skipped: {name}: not possible here");
        }
    }
    // Not in `/tmp`, which is covered as a whole.
    let place = tempfile::Builder::new().prefix(".bench-").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    if found == ConfinementLevel::Full {
        let (masked, layered) = (masked(place.path()), layered(place.path()));
        ways.push((MASKED, Box::new(move || run(Some(masked.clone())))));
        if is_started(layered.clone()) {
            ways.push((LAYERED, Box::new(move || run(Some(layered.clone())))));
        } else {
            println!("skipped: {LAYERED}: no overlays here");
        }
    }
    if bubblewrap(workspace.path()).output().is_ok_and(|output| output.status.success()) {
        ways.push((BUBBLEWRAP, Box::new(|| spawn(&mut bubblewrap(workspace.path())))));
    } else {
        println!("skipped: confinement beside bubblewrap: it is not installed, or does not work here");
    }
    // `cargo bench -p helve-exec -- masks` measures only what has the word in its name, beside a plain spawn.
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    ways.retain(|(what, _)| *what == SPAWNED || wanted.iter().all(|word| what.contains(word.as_str())));
    let best = best_of_each(&ways);
    let ((spawned_is, spawned), others) = best.split_first().unwrap();
    let theirs = best.iter().find(|(what, _)| *what == BUBBLEWRAP);
    for (what, time) in others {
        row(
            what,
            *time,
            spawned_is,
            *spawned,
            if [FULL, MASKED, LAYERED].contains(what) { "≤ 4 ms more" } else { "" },
        );
        if let Some((_, theirs)) = theirs.filter(|_| *what == FULL) {
            row(what, *time, BUBBLEWRAP, *theirs, "");
        }
    }
    ExitCode::SUCCESS
}

/// The best of many runs: what the machine can do when nobody disturbs it. In turns, so that all meet the same machine.
fn best_of_each<'w>(ways: &[Way<'w>]) -> Vec<(&'w str, Duration)> {
    let time = |work: &dyn Fn()| {
        let begun = Instant::now();
        work();
        begun.elapsed()
    };
    let mut best: Vec<_> = ways.iter().map(|(what, _)| (*what, Duration::MAX)).collect();
    for _ in 0..RUNS {
        for ((_, best), (_, work)) in best.iter_mut().zip(ways) {
            *best = time(work).min(*best);
        }
    }
    best
}

fn confinement(level: ConfinementLevel, workspace: &Path) -> Confinement {
    Confinement { writable: vec![workspace.into()], ..Confinement::new(level) }
}

/// A workspace with many files that are hidden and many that are protected.
fn masked(place: &Path) -> Confinement {
    let workspace = place.join("masked");
    let path = |kind: &str, number: usize| {
        workspace.join(format!("folder-{}", number % 20)).join(format!("{kind}-{number}"))
    };
    let make = |kind: &str| -> Vec<PathBuf> {
        let paths: Vec<PathBuf> = (0..MASKS / 2).map(|number| path(kind, number)).collect();
        for path in &paths {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        paths
    };
    let (hidden, protected) = (make("hidden"), make("protected"));
    Confinement { writable: vec![workspace], hidden, protected, ..Confinement::new(ConfinementLevel::Full) }
}

/// A home folder with some toolchains, caches and the workspace.
fn layered(place: &Path) -> Confinement {
    let home = place.join("home");
    let make = |name: &str| -> Vec<PathBuf> {
        let paths: Vec<PathBuf> =
            (0..8).map(|number| home.join(format!(".{name}-{number}/folder"))).collect();
        paths.iter().for_each(|path| fs::create_dir_all(path).unwrap());
        paths
    };
    let workspace = home.join("work");
    fs::create_dir_all(&workspace).unwrap();
    Confinement {
        writable: vec![workspace],
        hidden: vec![home.clone()],
        shown: make("tool"),
        layers: Some(PrivateLayers {
            folder: place.join("private"),
            over: make("cache"),
            own: vec![home.join(".cache")],
            base: home,
            is_kept: true,
        }),
        ..Confinement::new(ConfinementLevel::Full)
    }
}

fn spawn(command: &mut Command) {
    assert!(command.status().unwrap().success());
}

fn is_started(confinement: Confinement) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { start(order(Some(confinement))).await.is_ok() })
}

fn run(confinement: Option<Confinement>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ended = runtime.block_on(async { start(order(confinement)).await.unwrap().wait().await });
    assert_eq!(ended.status, CommandExitStatus::Exited(0));
}

fn order(confinement: Option<Confinement>) -> CommandSpec {
    CommandSpec {
        program: "/bin/true".into(),
        args: Vec::new(),
        cwd: "/".into(),
        env: Vec::new(),
        input: CommandInput::Nothing,
        terminal: None,
        limits: CommandLimits::default(),
        confinement,
        keeper: "/proc/self/exe".into(),
    }
}

/// The same in bubblewrap, with about the same confinement.
fn bubblewrap(workspace: &Path) -> Command {
    let mut command = Command::new("bwrap");
    command.args(["--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind"]);
    command.arg(workspace).arg(workspace).arg("/bin/true");
    command
}

fn row(what: &str, ours: Duration, baseline_is: &str, baseline: Duration, target: &str) {
    let ratio = ours.as_secs_f64() / baseline.as_secs_f64().max(1e-9);
    println!("{what}\t{ours:.2?}\t{baseline_is}\t{baseline:.2?}\t{ratio:.1}\t{target}");
}
