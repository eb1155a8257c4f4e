//! What the commands of the shell tool are confined to: the project, their caches, and what a person granted.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use helve_exec::{Confinement, ConfinementLevel, NetworkAccess};

use crate::ToolContext;
use crate::shell::commands::read_up_to;
use crate::shell::forbidden_paths::{absent_in_git, in_git};
use crate::shell::git_folders::{GitElsewhere, is_git_folder};
use crate::shell::project_storage::{ProjectStorage, is_sent_elsewhere};
use crate::shell::survey::{DeniedPaths, GuardedElsewhere, PathMasks, ProjectSurvey, SecretCriteria};
use crate::shell::workspace_audit::with_real_git_paths;

/// How commands are confined. The model has no say in it.
#[derive(Clone, Debug)]
pub struct SandboxPolicy {
    /// As it was found on this machine.
    pub level: ConfinementLevel,
    /// What the project has for itself: temporary files, and its changes of the user's caches.
    pub private: ProjectStorage,
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
    /// Whether a file by such a name holds none all the same, by what is in it now.
    pub holds_no_secret: fn(&Path) -> bool,
    /// Settings of git without the logins in their addresses; none if they hold none.
    pub without_logins: fn(&str) -> Option<String>,
    pub home: Option<PathBuf>,
    /// The socket of the agent that has the user's keys.
    pub agent: Option<PathBuf>,
    /// What programs can be given to say who the user is.
    pub credentials: Vec<ProgramCredential>,
}

/// What one program is given to say who the user is, and nobody else.
#[derive(Clone, Debug, Default)]
pub struct ProgramCredential {
    /// The name of the program: `git`.
    pub program: String,
    pub files: Vec<PathBuf>,
    pub variables: Vec<String>,
    /// Whether it also gets the user's SSH agent.
    pub agent: bool,
    /// What can be run: the program, what it needs for its work, and what loads them.
    pub programs: Vec<PathBuf>,
    /// What the environment says instead of the project's settings.
    pub settings: Vec<(OsString, OsString)>,
    /// Where the program is.
    pub path: PathBuf,
    /// Whether it is kept from starting any other process.
    pub single_process: bool,
    /// Looks for what in the project could send what is given elsewhere.
    pub obstacle: Option<ObstacleFinder>,
}

/// What of the settings that a project has for a program could make it hand its credentials on, in words; from the folder that
/// it is run in up to the project's, for a user with this home folder.
pub type ObstacleFinder = fn(folder: &Path, root: &Path, home: &Path) -> Option<String>;

/// Variables, and folders that they name, as paths inside another.
pub type FolderVariables = &'static [(&'static str, &'static str)];

/// What files in memory may take, where `/tmp` is not a folder.
const COMMAND_SCRATCH_BYTES: u64 = 1 << 30;
/// A file that says where git keeps something.
const MAX_GIT_FILE_BYTES: u64 = 64 << 10;

impl SandboxPolicy {
    /// What confines a command; none if nothing does. `temporary` is the folder for temporary files, `own` one more
    /// that the command can write.
    pub(crate) fn around(
        &self,
        context: &ToolContext,
        temporary: &Path,
        own: &Path,
        survey: &ProjectSurvey,
    ) -> Option<Confinement> {
        let granted = &context.granted;
        if self.level == ConfinementLevel::None || granted.unconfined {
            return None;
        }
        let is_full = self.level == ConfinementLevel::Full;
        let folders: Vec<PathBuf> = std::iter::once(&context.root).chain(&context.added).cloned().collect();
        let elsewhere: Vec<PathBuf> =
            folders.iter().filter_map(|folder| GitElsewhere::of(folder)).map(|git| git.common).collect();
        let granted_writes = with_real_git_paths(&granted.writes, &folders);
        let mut writable = vec![own.to_owned()];
        if !granted.read_only {
            writable.extend(folders.iter().chain(&elsewhere).cloned());
        }
        let mut protected: Vec<PathBuf> = Vec::new();
        // What is not there can't be protected, or the folder around it would be. It is put aside afterwards.
        for folder in &writable {
            protected
                .extend(self.protected.iter().map(|path| folder.join(path)).filter(|path| path.exists()));
            protected.extend(in_git(&git_folder(folder), self.protected_in_git));
        }
        let is_granted = |path: &PathBuf, granted: &[PathBuf]| {
            granted.iter().any(|granted| granted.starts_with(path) || path.starts_with(granted))
        };
        // What lies in something writable only loses its protection: a place of its own could not be replaced as a whole, which is
        // how git writes its settings.
        let outside = |path: &&PathBuf| !writable.iter().any(|folder| path.starts_with(folder));
        let opened: Vec<PathBuf> = granted.writes.iter().filter(outside).cloned().collect();
        writable.extend(opened.iter().filter_map(|path| writable_root_for(path, self.home.as_deref())));
        let credential = self.credential(context);
        let mut given: Vec<PathBuf> = granted.reads.clone();
        if let Some(credential) = credential {
            given.extend(credential.files.iter().filter(|path| path.exists()).cloned());
            writable.extend(self.agent.iter().filter(|socket| credential.agent && socket.exists()).cloned());
        }
        let mut hidden = self.hidden.clone();
        let mut git_folders: Vec<PathBuf> = folders.iter().map(|folder| git_folder(folder)).collect();
        git_folders.extend(elsewhere.iter().cloned());
        if is_full {
            let PathMasks { hidden: masked, protected: kept, repositories } =
                survey.masks(&folders, &self.measure(&context.denied));
            hidden.extend(masked);
            protected.extend(kept.into_iter().filter(|path| !(self.holds_no_secret)(path)));
            for repository in &repositories {
                match repository.is_dir() {
                    true => protected.extend(in_git(repository, self.protected_in_git)),
                    false => protected.push(repository.clone()),
                }
            }
            git_folders.extend(repositories);
        } else {
            writable.push(temporary.to_owned());
            writable.extend(self.private.elsewhere(granted.network).ok().map(|(folder, _)| folder));
        }
        // Whoever may use the user's credentials in git, or change its settings, gets them as they are.
        let is_gits = credential.is_some_and(|credential| credential.program == "git");
        let replaced = match is_full && !is_gits {
            true => self.replaced(&git_folders, |path| is_granted(path, &granted_writes)),
            false => Vec::new(),
        };
        protected.retain(|path| is_full && !is_granted(path, &granted_writes));
        hidden.retain(|path| path.exists() && !is_granted(path, &given) && !(self.holds_no_secret)(path));
        let is_inside = |path: &Path| writable.iter().any(|folder| path.starts_with(folder));
        hidden.retain(|path| is_full || !is_inside(path));
        let is_open = |home: &&PathBuf| {
            folders.iter().chain(&given).any(|folder| home.starts_with(folder)) || is_inside(home)
        };
        hidden.extend(self.home.iter().filter(|home| !is_open(home)).cloned());
        let caches = self.private.caches.iter().chain(&self.private.fetched);
        let shown = self.shown.iter().chain(&given).chain(caches);
        // What can't be written is seen all the same.
        let shown = shown.chain(folders.iter().chain(&elsewhere).filter(|_| granted.read_only));
        let shown = shown.cloned().collect();
        let layers = self.home.as_deref().filter(|_| is_full);
        let layers = layers.map(|home| self.private.layers(home, granted.network));
        Some(Confinement {
            level: self.level,
            writable,
            protected,
            hidden,
            programs: credential.map(|credential| credential.programs.clone()),
            single_process: credential.is_some_and(|credential| credential.single_process),
            shown,
            replaced,
            layers,
            temporary: is_full.then(|| temporary.to_owned()),
            scratch: COMMAND_SCRATCH_BYTES,
            network: if granted.network { NetworkAccess::On } else { NetworkAccess::Off },
        })
    }

    /// The settings of git that hold a login, each with a copy without it, which commands see instead.
    fn replaced(
        &self,
        git_folders: &[PathBuf],
        is_granted: impl Fn(&PathBuf) -> bool,
    ) -> Vec<(PathBuf, PathBuf)> {
        let files: BTreeSet<PathBuf> =
            git_folders.iter().flat_map(|git| in_git(git, &["config", "config.worktree"])).collect();
        let copied = files.into_iter().filter(|path| !is_granted(path)).filter_map(|path| {
            let text = String::from_utf8(read_up_to(&path, MAX_GIT_FILE_BYTES).ok()?).ok()?;
            let copy = self.private.keep_copy(&path, &(self.without_logins)(&text)?).ok()?;
            Some((path, copy))
        });
        copied.collect()
    }

    /// What a call gets to say who the user is.
    pub(crate) fn credential(&self, context: &ToolContext) -> Option<&ProgramCredential> {
        let wanted = context.granted.credentials.as_deref()?;
        self.credentials.iter().find(|credential| credential.program == wanted)
    }

    pub(crate) fn measure<'a>(&'a self, denied: &'a DeniedPaths) -> SecretCriteria<'a> {
        let elsewhere = GuardedElsewhere {
            in_git: self.protected_in_git,
            in_project: &self.protected,
            hidden: &self.hidden,
            home: self.home.as_deref(),
        };
        SecretCriteria { is_secret: self.is_secret, denied, elsewhere }
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
    pub(crate) fn unprotected(&self, context: &ToolContext, survey: &ProjectSurvey) -> Vec<PathBuf> {
        let folders = std::iter::once(&context.root).chain(&context.added);
        let is_absent = |path: &PathBuf| path.symlink_metadata().is_err();
        let of_folder = |folder: &PathBuf| {
            let own = self.protected.iter().map(|name| folder.join(name)).filter(is_absent);
            own.chain([folder.join(".git")]).collect::<Vec<PathBuf>>()
        };
        let of_roots = folders.clone().map(|folder| folder.join(".git"));
        let elsewhere = folders.clone().filter_map(|folder| GitElsewhere::of(folder)).map(|git| git.common);
        let repositories: BTreeSet<PathBuf> =
            of_roots.chain(survey.repositories()).chain(elsewhere).collect();
        let in_git = repositories.iter().flat_map(|git| absent_in_git(git, self.protected_in_git));
        folders.flat_map(of_folder).chain(in_git).collect()
    }
}

/// Where git keeps what belongs to a folder, which may be a repository without a work tree.
fn git_folder(folder: &Path) -> PathBuf {
    if is_git_folder(folder) { folder.to_owned() } else { folder.join(".git") }
}

/// What is opened so that a path can be written: the path, or the folder that it would be made in. Never the home folder,
/// nor anything that that is in, nor all of `/tmp`.
pub fn writable_root_for(path: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let there = if path.exists() { path } else { path.parent().filter(|folder| folder.is_dir())? };
    let is_everybodys = there == Path::new("/tmp") || there.parent().is_none();
    let is_too_much = is_everybodys || home.is_some_and(|home| home.starts_with(there));
    (!is_too_much).then(|| there.to_owned())
}
