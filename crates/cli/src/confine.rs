//! What the model's commands are confined to on this machine.

use std::io;
use std::path::{Path, PathBuf};

use helve_exec::{Level, Probe, probe};
use helve_permissions::{GUARDED, GUARDED_IN_GIT, SECRETS_AT_HOME, is_secret_name};
use helve_tools::Fence;

use crate::setup::{Setup, home};

/// What tools keep below the home folder for building, and may write.
const CACHES: [&str; 8] = [
    ".cache/pip",
    ".cache/uv",
    ".cache/yarn",
    ".cache/go-build",
    ".cache/ccache",
    ".cache/sccache",
    ".npm/_cacache",
    ".npm/_logs",
];

/// What they write only when they fetch something. It is run later, so that nobody else shall write it.
const FETCHED: [&str; 12] = [
    ".cargo/registry",
    ".cargo/git",
    ".cache/pypoetry",
    ".cache/pnpm",
    ".cache/node",
    ".local/share/pnpm/store",
    ".yarn/berry/cache",
    "go/pkg/mod",
    ".m2/repository",
    ".gradle/caches",
    ".nuget/packages",
    ".bun/install/cache",
];

/// Finds how well commands can be confined here, unless the user wants none of it.
pub(crate) fn found(setup: &Setup) -> Probe {
    found_if(setup.config().map_or(true, |config| config.settings.permissions.confine))
}

pub(crate) fn found_if(is_wanted: bool) -> Probe {
    let none = || Probe { level: Level::None, why: Vec::new() };
    match own_program() {
        Ok(keeper) if is_wanted => probe(&keeper),
        _ => none(),
    }
}

/// This program, also after an update has replaced its file: it is started anew to keep commands.
pub(crate) fn own_program() -> io::Result<PathBuf> {
    let own = Path::new("/proc/self/exe");
    if cfg!(target_os = "linux") && own.exists() { Ok(own.to_owned()) } else { std::env::current_exe() }
}

/// As the rules know it.
pub(crate) fn level(level: Level) -> helve_permissions::Level {
    match level {
        Level::None => helve_permissions::Level::None,
        Level::Landlock => helve_permissions::Level::Partly,
        Level::Full => helve_permissions::Level::Fully,
    }
}

pub(crate) fn fence(setup: &Setup, level: Level) -> Option<Fence> {
    if level == Level::None {
        return None;
    }
    let home = home();
    let below = |names: &[&str]| -> Vec<PathBuf> {
        home.iter().flat_map(|home| names.iter().map(|name| home.join(name))).collect()
    };
    let agent = std::env::var_os("SSH_AUTH_SOCK").map(PathBuf::from).zip(home.as_deref());
    Some(Fence {
        level,
        // Only where the tool is used: no folders are made for others.
        caches: below(&CACHES).into_iter().filter(|cache| is_used(cache)).collect(),
        fetched: below(&FETCHED).into_iter().filter(|cache| is_used(cache)).collect(),
        hidden: below(&SECRETS_AT_HOME).into_iter().chain(setup.places.own()).collect(),
        protected: vec![PathBuf::from(GUARDED)],
        protected_in_git: GUARDED_IN_GIT,
        is_secret: is_secret_name,
        home: home.clone(),
        agent: agent.map(|(socket, home)| (home.join(".ssh"), socket)),
    })
}

/// All that commands may write below the home folder.
pub(crate) fn caches_below(home: &Path) -> Vec<PathBuf> {
    CACHES.iter().chain(&FETCHED).map(|name| home.join(name)).collect()
}

/// Whether a tool has its folder here. A link in the place of a cache could lead anywhere.
fn is_used(cache: &Path) -> bool {
    cache.symlink_metadata().is_ok_and(|facts| facts.is_dir())
}

/// How much memory the machine has: more is nobody's.
pub(crate) fn memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
