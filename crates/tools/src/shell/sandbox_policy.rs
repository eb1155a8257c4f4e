//! What the commands of the shell tool are confined to: the project, their caches, and what a person granted.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use helve_exec::{Confinement, ConfinementLevel, NetworkAccess};
use helve_protocol::CallPermissions;

use crate::shell::bounded_read::read_up_to;
use crate::shell::git_folders::{
    GitElsewhere, MAX_GIT_FILE_BYTES, absent_in_git, git_folder, in_git, with_real_git_paths,
};
use crate::shell::project_storage::{ProjectStorage, is_sent_elsewhere};
use crate::shell::survey::{GuardedElsewhere, PathMasks, ProjectSurvey, SecretCriteria};
use crate::{DeniedPaths, ToolContext};

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

/// What files in memory may take, where `/tmp` is not a folder.
const COMMAND_SCRATCH_BYTES: u64 = 1 << 30;
impl SandboxPolicy {
    /// What confines a command; none if nothing does. `temporary` is the folder for temporary files, `own` one more
    /// that the command can write.
    pub(crate) fn confinement_for(
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
        let folders = ProjectFolders::of(context);
        let credential = self.credential(context);
        let readable = granted_reads(granted, credential);
        // Below the full level nothing inside a writable folder can be covered.
        let masks = match is_full {
            true => survey.masks(&folders.roots, &self.measure(&context.denied)),
            false => PathMasks::default(),
        };
        let granted_writes = with_real_git_paths(&granted.writes, &folders.roots);
        let mut writable = folders.writable(own, granted);
        let protected = match is_full {
            true => self.protected_paths(&writable, &masks, &granted_writes),
            false => Vec::new(),
        };
        writable.extend(self.writable_beyond(&writable, granted, credential));
        if !is_full {
            writable.push(temporary.to_owned());
            writable.extend(self.private.elsewhere(granted.network).ok().map(|(folder, _)| folder));
        }
        // Whoever may use the user's credentials in git, or change its settings, gets them as they are.
        let is_gits = credential.is_some_and(|credential| credential.program == "git");
        let replaced = match is_full && !is_gits {
            true => self.replaced(&folders.git_folders(&masks), &granted_writes),
            false => Vec::new(),
        };
        let layers = self.home.as_deref().filter(|_| is_full);
        Some(Confinement {
            level: self.level,
            hidden: self.hidden_paths(masks.hidden, &folders.roots, &readable, &writable),
            writable,
            protected,
            programs: credential.map(|credential| credential.programs.clone()),
            single_process: credential.is_some_and(|credential| credential.single_process),
            shown: self.shown_paths(&folders, &readable, granted),
            replaced,
            layers: layers.map(|home| self.private.layers(home, granted.network)),
            temporary: is_full.then(|| temporary.to_owned()),
            scratch: COMMAND_SCRATCH_BYTES,
            network: if granted.network { NetworkAccess::On } else { NetworkAccess::Off },
        })
    }

    /// What can't be written inside what can, as far as it is there: the rest is put aside afterwards, because protecting
    /// what is absent would protect the folder around it.
    fn protected_paths(&self, writable: &[PathBuf], masks: &PathMasks, granted: &[PathBuf]) -> Vec<PathBuf> {
        let mut protected: Vec<PathBuf> = Vec::new();
        for folder in writable {
            protected
                .extend(self.protected.iter().map(|path| folder.join(path)).filter(|path| path.exists()));
            protected.extend(in_git(&git_folder(folder), self.protected_in_git));
        }
        protected.extend(masks.protected.iter().filter(|path| !(self.holds_no_secret)(path)).cloned());
        for repository in &masks.repositories {
            match repository.is_dir() {
                true => protected.extend(in_git(repository, self.protected_in_git)),
                false => protected.push(repository.clone()),
            }
        }
        protected.retain(|path| !is_granted(path, granted));
        protected
    }

    /// What can be written besides what is writable anyway: what a person allowed, and the socket of the user's agent.
    fn writable_beyond(
        &self,
        writable: &[PathBuf],
        granted: &CallPermissions,
        credential: Option<&ProgramCredential>,
    ) -> Vec<PathBuf> {
        // What lies in something writable only loses its protection: a place of its own could not be replaced as a whole, which is
        // how git writes its settings.
        let outside = |path: &&PathBuf| !writable.iter().any(|folder| path.starts_with(folder));
        let opened = granted.writes.iter().filter(outside);
        let opened = opened.filter_map(|path| writable_root_for(path, self.home.as_deref()));
        let has_agent = credential.is_some_and(|credential| credential.agent);
        opened.chain(self.agent.iter().filter(|socket| has_agent && socket.exists()).cloned()).collect()
    }

    /// What looks empty: secrets, what rules deny, and the home folder around all that.
    fn hidden_paths(
        &self,
        masked: Vec<PathBuf>,
        roots: &[PathBuf],
        readable: &[PathBuf],
        writable: &[PathBuf],
    ) -> Vec<PathBuf> {
        let is_full = self.level == ConfinementLevel::Full;
        let is_inside = |path: &Path| writable.iter().any(|folder| path.starts_with(folder));
        let mut hidden = self.hidden.clone();
        hidden.extend(masked);
        hidden.retain(|path| path.exists() && !is_granted(path, readable) && !(self.holds_no_secret)(path));
        hidden.retain(|path| is_full || !is_inside(path));
        let is_open = |home: &&PathBuf| {
            roots.iter().chain(readable).any(|folder| home.starts_with(folder)) || is_inside(home)
        };
        hidden.extend(self.home.iter().filter(|home| !is_open(home)).cloned());
        hidden
    }

    /// What can be read although it lies in the home folder.
    fn shown_paths(
        &self,
        folders: &ProjectFolders,
        readable: &[PathBuf],
        granted: &CallPermissions,
    ) -> Vec<PathBuf> {
        let caches = self.private.caches.iter().chain(&self.private.fetched);
        let shown = self.shown.iter().chain(readable).chain(caches);
        // What can't be written is seen all the same.
        shown.chain(folders.all().filter(|_| granted.read_only)).cloned().collect()
    }

    /// The settings of git that hold a login, each with a copy without it, which commands see instead.
    fn replaced(&self, git_folders: &[PathBuf], granted: &[PathBuf]) -> Vec<(PathBuf, PathBuf)> {
        let files: BTreeSet<PathBuf> =
            git_folders.iter().flat_map(|git| in_git(git, &["config", "config.worktree"])).collect();
        let copied = files.into_iter().filter(|path| !is_granted(path, granted)).filter_map(|path| {
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
            storage: Some(&self.private.folder),
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

/// The folders that a call works in.
struct ProjectFolders {
    /// The project, and the folders that were added to it.
    roots: Vec<PathBuf>,
    /// Where git keeps what belongs to them, if that is elsewhere.
    git_elsewhere: Vec<PathBuf>,
}

impl ProjectFolders {
    fn of(context: &ToolContext) -> ProjectFolders {
        let roots: Vec<PathBuf> = std::iter::once(&context.root).chain(&context.added).cloned().collect();
        let git_elsewhere =
            roots.iter().filter_map(|folder| GitElsewhere::of(folder)).map(|git| git.common).collect();
        ProjectFolders { roots, git_elsewhere }
    }

    fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.roots.iter().chain(&self.git_elsewhere)
    }

    /// What a call can write without anybody's yes. `own` is a folder that it has for itself.
    fn writable(&self, own: &Path, granted: &CallPermissions) -> Vec<PathBuf> {
        let project = self.all().filter(|_| !granted.read_only).cloned();
        std::iter::once(own.to_owned()).chain(project).collect()
    }

    /// Every folder in which git keeps settings of the project.
    fn git_folders(&self, masks: &PathMasks) -> Vec<PathBuf> {
        let own = self.roots.iter().map(|folder| git_folder(folder));
        own.chain(self.git_elsewhere.iter().chain(&masks.repositories).cloned()).collect()
    }
}

/// What a call may read although it is hidden: what a person allowed, and the files of its credential.
fn granted_reads(granted: &CallPermissions, credential: Option<&ProgramCredential>) -> Vec<PathBuf> {
    let files = credential.into_iter().flat_map(|credential| &credential.files);
    granted.reads.iter().chain(files.filter(|path| path.exists())).cloned().collect()
}

/// Whether a person's yes was about this path, something in it, or something around it.
fn is_granted(path: &Path, granted: &[PathBuf]) -> bool {
    granted.iter().any(|granted| granted.starts_with(path) || path.starts_with(granted))
}

/// What is opened so that a path can be written: the path, or the folder that it would be made in. Never the home folder,
/// nor anything that that is in, nor all of `/tmp`.
pub fn writable_root_for(path: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let there = if path.exists() { path } else { path.parent().filter(|folder| folder.is_dir())? };
    let is_everybodys = there == Path::new("/tmp") || there.parent().is_none();
    let is_too_much = is_everybodys || home.is_some_and(|home| home.starts_with(there));
    (!is_too_much).then(|| there.to_owned())
}
