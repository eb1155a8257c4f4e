//! What the commands of the shell tool are confined to: the project, their caches, and what a person granted.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use helve_exec::{Confinement, Level, Network};

use crate::Context;
use crate::shell::commands::read_up_to;
use crate::shell::guarded::in_git;
use crate::shell::private::{Private, is_sent_elsewhere};

/// How commands are confined. The model has no say in it.
#[derive(Clone, Debug)]
pub struct Fence {
    /// As it was found on this machine.
    pub level: Level,
    /// What the project has for itself: temporary files, and its changes of the user's caches.
    pub private: Private,
    /// Secrets outside the project, and what is this program's own.
    pub hidden: Vec<PathBuf>,
    /// What can be read of the home folder, which is hidden otherwise: toolchains.
    pub shown: Vec<PathBuf>,
    /// Variables that confined commands have instead of the user's.
    pub variables: Vec<(OsString, OsString)>,
    /// What can't be written although it is in the project, as paths in it: `.helve`.
    pub protected: Vec<PathBuf>,
    /// What can't be written in a git folder: `hooks`.
    pub protected_in_git: &'static [&'static str],
    /// Whether a file by this name holds secrets, wherever it is.
    pub is_secret: fn(&str) -> bool,
    pub home: Option<PathBuf>,
    /// The socket of the agent that has the user's keys, for commands that may read those.
    pub agent: Option<(PathBuf, PathBuf)>,
}

/// Variables, and folders that they name, as paths inside another.
pub type Variables = &'static [(&'static str, &'static str)];

/// What files in memory may take, where `/tmp` is not a folder.
const SCRATCH: u64 = 1 << 30;
/// Secrets are looked for so deep in the project, in so many files and folders.
const DEPTH: usize = 3;
const LOOKED_AT: usize = 3_000;
const MAX_INDEX: u64 = 256 << 20;
/// A file that says where git keeps something.
const MAX_GIT_FILE: u64 = 64 << 10;
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
        // What is not there can't be protected, or the folder around it would be. It is put aside afterwards.
        for folder in &writable {
            protected
                .extend(self.protected.iter().map(|path| folder.join(path)).filter(|path| path.exists()));
            let git = if is_git(folder) { folder.clone() } else { folder.join(".git") };
            protected.extend(in_git(&git, self.protected_in_git));
        }
        let is_granted = |path: &PathBuf, granted: &[PathBuf]| {
            granted.iter().any(|granted| granted.starts_with(path) || path.starts_with(granted))
        };
        writable.extend(granted.writes.iter().filter_map(|path| opened_for(path, self.home.as_deref())));
        if let Some((keys, socket)) = &self.agent
            && is_granted(keys, &granted.reads)
            && socket.exists()
        {
            writable.push(socket.clone());
        }
        let mut hidden = self.hidden.clone();
        if is_full {
            folders.iter().for_each(|folder| self.find(folder, &mut hidden, &mut protected));
        } else {
            writable.push(temporary.to_owned());
            writable.extend(self.private.elsewhere(granted.network).ok().map(|(folder, _)| folder));
        }
        protected.retain(|path| is_full && !is_granted(path, &granted.writes));
        hidden.retain(|path| path.exists() && !is_granted(path, &granted.reads));
        let is_inside = |path: &Path| writable.iter().any(|folder| path.starts_with(folder));
        hidden.retain(|path| is_full || !is_inside(path));
        let is_open = |home: &&PathBuf| {
            folders.iter().chain(&granted.reads).any(|folder| home.starts_with(folder)) || is_inside(home)
        };
        hidden.extend(self.home.iter().filter(|home| !is_open(home)).cloned());
        let caches = self.private.caches.iter().chain(&self.private.fetched);
        let shown = self.shown.iter().chain(&granted.reads).chain(caches).cloned().collect();
        let layers = self.home.as_deref().filter(|_| is_full);
        let layers = layers.map(|home| self.private.layers(home, granted.network));
        Some(Confinement {
            level: self.level,
            writable,
            protected,
            hidden,
            shown,
            layers,
            temporary: is_full.then(|| temporary.to_owned()),
            scratch: SCRATCH,
            network: if granted.network { Network::On } else { Network::Off },
        })
    }

    /// Files of the project that hold secrets, and the settings of repositories in it, as far as they are found in a moment.
    fn find(&self, root: &Path, hidden: &mut Vec<PathBuf>, protected: &mut Vec<PathBuf>) {
        let mut folders = VecDeque::from([(root.to_owned(), 0)]);
        let (mut left, mut secrets) = (LOOKED_AT, Vec::new());
        while let Some((folder, depth)) = folders.pop_front() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let Some(rest) = left.checked_sub(1) else { break };
                left = rest;
                let (name, kind) = (entry.file_name(), entry.file_type());
                let Some(name) = name.to_str() else { continue };
                match kind {
                    Ok(kind) if kind.is_dir() && name == ".git" && depth > 0 => {
                        protected.extend(in_git(&entry.path(), self.protected_in_git));
                    }
                    Ok(kind) if kind.is_dir() && depth < DEPTH && !NOT_LOOKED_AT.contains(&name) => {
                        folders.push_back((entry.path(), depth + 1));
                    }
                    Ok(kind) if kind.is_file() && (self.is_secret)(name) => secrets.push(entry.path()),
                    _ => {}
                }
            }
        }
        if secrets.is_empty() {
            return;
        }
        let index = read_up_to(&root.join(".git/index"), MAX_INDEX).unwrap_or_default();
        secrets.retain(|path| {
            let inside = path.strip_prefix(root).ok().and_then(Path::to_str);
            !inside.is_some_and(|inside| is_tracked(&index, inside))
        });
        hidden.extend(secrets);
    }

    /// The variables that confined commands have instead of the user's.
    pub(crate) fn environment(&self, has_network: bool) -> Vec<(OsString, OsString)> {
        let mut all = self.variables.clone();
        if is_sent_elsewhere(self.level)
            && let Ok((_, named)) = self.private.elsewhere(has_network)
        {
            all.extend(named.into_iter().map(|(name, path)| (name.into(), path.into())));
        }
        all
    }

    /// What decides about what may be done and can't be protected: it is not there, or it could be moved away as a whole.
    pub(crate) fn unprotected(&self, context: &Context) -> Vec<PathBuf> {
        let folders = std::iter::once(&context.root).chain(&context.added);
        let in_git = self.protected_in_git.iter().map(|name| Path::new(".git").join(name));
        let names: Vec<PathBuf> = self.protected.iter().cloned().chain(in_git).collect();
        let is_absent = |path: &PathBuf| path.symlink_metadata().is_err();
        let of_folder = |folder: &PathBuf| {
            let absent = names.iter().map(|name| folder.join(name)).filter(is_absent);
            absent.chain([folder.join(".git")]).collect::<Vec<PathBuf>>()
        };
        folders.flat_map(of_folder).collect()
    }
}

/// Whether a folder is a git folder itself.
fn is_git(folder: &Path) -> bool {
    folder.join("HEAD").is_file() && folder.join("objects").is_dir()
}

/// What is opened so that a path can be written: the path, or the folder that it would be made in. Never the home folder,
/// nor anything that that is in, nor all of `/tmp`.
pub fn opened_for(path: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let there = if path.exists() { path } else { path.parent().filter(|folder| folder.is_dir())? };
    let is_everybodys = there == Path::new("/tmp") || there.parent().is_none();
    let is_too_much = is_everybodys || home.is_some_and(|home| home.starts_with(there));
    (!is_too_much).then(|| there.to_owned())
}

/// Where git keeps what belongs to a work tree whose repository is elsewhere, if that repository says so too: what lies in
/// the project says nothing, since commands write there.
fn git_elsewhere(root: &Path) -> Option<PathBuf> {
    let git = root.join(".git");
    let read = |path: &Path| String::from_utf8(read_up_to(path, MAX_GIT_FILE).ok()?).ok();
    let said = read(&git)?;
    let own = root.join(said.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
    let back = read(&own.join("gitdir"))?;
    let common = own.parent().filter(|folder| folder.ends_with("worktrees"))?.parent()?;
    let is_known = Path::new(back.trim()).canonicalize().ok()? == git.canonicalize().ok()?;
    (is_git(common) && is_known).then(|| common.to_owned())
}

/// Whether git tracks a file of the project: then it is no secret, and a commit must find it as it is.
fn is_tracked(index: &[u8], path: &str) -> bool {
    let name = [path.as_bytes(), b"\0"].concat();
    let length = u16::try_from(path.len()).unwrap_or(u16::MAX).min(0xfff);
    index.windows(name.len() + 2).any(|window| {
        // Before a name stand its flags, with its length.
        let flags = window.first_chunk::<2>().map_or(0, |flags| u16::from_be_bytes(*flags));
        flags & 0xfff == length && window.get(2..) == Some(&name)
    })
}
