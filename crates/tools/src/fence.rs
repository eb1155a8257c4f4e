//! What the commands of the shell tool are confined to: the project, their caches, and what a person granted.

use std::fs;
use std::path::{Path, PathBuf};

use helve_exec::{Confinement, Level, Network};

use crate::Context;

/// How commands are confined. The model has no say in it.
#[derive(Clone, Debug)]
pub struct Fence {
    /// As it was found on this machine.
    pub level: Level,
    /// What tools keep for themselves and can be written: `~/.cargo/registry`.
    pub caches: Vec<PathBuf>,
    /// Secrets outside the project, and what is this program's own.
    pub hidden: Vec<PathBuf>,
    /// What can't be written although it is in the project, as paths in it: `.git/hooks`.
    pub protected: Vec<PathBuf>,
    /// Whether a file by this name holds secrets, wherever it is.
    pub is_secret: fn(&str) -> bool,
    /// The socket of the agent that has the user's keys, for commands that may read those.
    pub agent: Option<(PathBuf, PathBuf)>,
}

/// What files in memory may take, where `/tmp` is not a folder.
const SCRATCH: u64 = 1 << 30;
/// Secrets are looked for so deep in the project, in so many files and folders.
const DEPTH: usize = 3;
const LOOKED_AT: usize = 3_000;
/// Where there are many files, and none that anybody wrote.
const NOT_LOOKED_AT: [&str; 5] = [".git", "node_modules", "target", ".venv", "vendor"];

impl Fence {
    /// What confines a command; none if nothing does. `temporary` is the folder for temporary files, `own` one more
    /// that the command can write.
    pub(crate) fn around(&self, context: &Context, temporary: &Path, own: &Path) -> Option<Confinement> {
        let granted = &context.granted;
        if self.level == Level::None || granted.unconfined {
            return None;
        }
        let is_full = self.level == Level::Full;
        let folders: Vec<PathBuf> = std::iter::once(&context.root).chain(&context.added).cloned().collect();
        let mut writable = folders.clone();
        writable.push(own.to_owned());
        writable.extend(folders.iter().filter_map(|folder| git_elsewhere(folder)));
        let mut protected: Vec<PathBuf> = Vec::new();
        // What is not there can't be protected, or the folder around it would be. Who makes it is told afterwards.
        for folder in &writable {
            let below = self.protected.iter().map(|path| folder.join(path));
            let bare = ["config", "hooks"].map(|name| folder.join(name));
            let is_git = folder.join("HEAD").is_file() && folder.join("objects").is_dir();
            protected.extend(below.chain(bare.into_iter().filter(|_| is_git)).filter(|path| path.exists()));
        }
        let is_granted = |path: &PathBuf, granted: &[PathBuf]| {
            granted.iter().any(|granted| granted.starts_with(path) || path.starts_with(granted))
        };
        protected.retain(|path| is_full && !is_granted(path, &granted.writes));
        writable.extend(granted.writes.iter().filter_map(|path| nearest(path)));
        if let Some((keys, socket)) = &self.agent
            && is_granted(keys, &granted.reads)
            && socket.exists()
        {
            writable.push(socket.clone());
        }
        let mut hidden = self.hidden.clone();
        if is_full {
            folders.iter().for_each(|folder| self.find_secrets(folder, &mut hidden));
        } else {
            writable.push(temporary.to_owned());
        }
        hidden.retain(|path| path.exists() && !is_granted(path, &granted.reads));
        let is_inside = |path: &Path| writable.iter().any(|folder| path.starts_with(folder));
        hidden.retain(|path| is_full || !is_inside(path));
        Some(Confinement {
            level: self.level,
            writable,
            caches: self.caches.clone(),
            protected,
            hidden,
            temporary: is_full.then(|| temporary.to_owned()),
            scratch: SCRATCH,
            network: if granted.network { Network::On } else { Network::Off },
        })
    }

    /// Files of the project that hold secrets, as far as they are found in a moment.
    fn find_secrets(&self, root: &Path, hidden: &mut Vec<PathBuf>) {
        let mut folders = vec![(root.to_owned(), 0)];
        let mut left = LOOKED_AT;
        while let Some((folder, depth)) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let Some(rest) = left.checked_sub(1) else { return };
                left = rest;
                let (name, kind) = (entry.file_name(), entry.file_type());
                let Some(name) = name.to_str() else { continue };
                match kind {
                    Ok(kind) if kind.is_dir() && depth < DEPTH && !NOT_LOOKED_AT.contains(&name) => {
                        folders.push((entry.path(), depth + 1));
                    }
                    Ok(kind) if kind.is_file() && (self.is_secret)(name) => hidden.push(entry.path()),
                    _ => {}
                }
            }
        }
    }
}

/// The path, or the nearest folder around it that is there: to make a file is to write its folder. Never everything.
fn nearest(path: &Path) -> Option<PathBuf> {
    let there = path.ancestors().find(|path| path.exists())?;
    there.parent().map(|_| there.to_owned())
}

/// Where git keeps what belongs to a work tree whose repository is elsewhere, if that repository knows it too.
fn git_elsewhere(root: &Path) -> Option<PathBuf> {
    let git = root.join(".git");
    let said = fs::read_to_string(&git).ok().filter(|_| git.is_file())?;
    let own = root.join(said.strip_prefix("gitdir:")?.trim());
    let back = fs::read_to_string(own.join("gitdir")).ok()?;
    if Path::new(back.trim()).canonicalize().ok()? != git.canonicalize().ok()? {
        return None;
    }
    let common = fs::read_to_string(own.join("commondir")).ok()?;
    own.join(common.trim()).canonicalize().ok()
}
