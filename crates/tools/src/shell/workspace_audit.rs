//! Looks at what commands and jobs leave behind, and puts aside what they may not make: before each command, after it, when a job
//! ends, and at the end of the session.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::shell::forbidden_paths::{ForbiddenPathGuard, ForbiddenPaths, put_away};
use crate::shell::git_folders::{GitElsewhere, git_folders_in, with_real_git_paths};
use crate::shell::repository_ledger::{ChangeAuthor, RepositoryLedger};
use crate::shell::repository_safety::RepositoryJudge;
use crate::shell::sandbox_policy::SandboxPolicy;
use crate::shell::survey::{ProjectSurvey, SurveyNews};
use crate::{DeniedPaths, ToolContext};

/// What git goes on with when it is told to: steps of it may run commands.
const UNFINISHED_GIT_FOLDERS: [&str; 3] = ["rebase-merge", "rebase-apply", "sequencer"];

/// What commands and jobs of a session must leave as it is.
#[derive(Debug, Default)]
pub(crate) struct WorkspaceAudit {
    pub(crate) survey: ProjectSurvey,
    forbidden: ForbiddenPaths,
    repositories: RepositoryLedger,
    /// Folders that were something else before they became repositories.
    converted: Mutex<HashSet<PathBuf>>,
    /// What jobs were allowed to write, by their numbers here.
    job_grants: Mutex<BTreeMap<u64, Vec<PathBuf>>>,
    /// Whether a job may have done something since the last look.
    has_jobs: AtomicBool,
    last_scope: Mutex<Option<AuditScope>>,
}

/// Where is looked, and by which rules.
#[derive(Clone)]
struct AuditScope {
    fence: SandboxPolicy,
    roots: Vec<PathBuf>,
    denied: DeniedPaths,
    granted: Vec<PathBuf>,
}

impl std::fmt::Debug for AuditScope {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("AuditScope").field("roots", &self.roots).finish_non_exhaustive()
    }
}

impl AuditScope {
    fn new(fence: &SandboxPolicy, context: &ToolContext) -> AuditScope {
        let roots: Vec<PathBuf> = std::iter::once(&context.root).chain(&context.added).cloned().collect();
        let granted = with_real_git_paths(&context.granted.writes, &roots);
        AuditScope { fence: fence.clone(), roots, denied: context.denied.clone(), granted }
    }
}

/// Whether a job runs now, besides the command that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobActivity {
    None,
    Running,
}

/// A job that is watched. It is over when this is taken back.
#[derive(Debug)]
pub(crate) struct WatchedJob(u64);

impl WorkspaceAudit {
    /// Before a command: what came since the last one is the user's, unless a job can have made it.
    pub(crate) fn before(
        &self,
        fence: &SandboxPolicy,
        context: &ToolContext,
        jobs: JobActivity,
    ) -> Vec<PathBuf> {
        let scope = AuditScope { granted: Vec::new(), ..AuditScope::new(fence, context) };
        let news = self.survey.before(&scope.roots, &fence.measure(&scope.denied));
        let had_jobs = self.had_jobs(jobs);
        let aside = match had_jobs {
            true => self.put_aside(news, &scope, jobs),
            false => self.accept(&scope),
        };
        *lock(&self.last_scope) = Some(scope);
        aside
    }

    /// What a confined command must leave as it is: what decides about it, and can't be protected.
    pub(crate) fn guard(
        &self,
        fence: Option<&SandboxPolicy>,
        context: &ToolContext,
    ) -> ForbiddenPathGuard<'_> {
        let paths = fence.map(|fence| fence.unprotected(context, &self.survey)).unwrap_or_default();
        let roots: Vec<PathBuf> = std::iter::once(&context.root).chain(&context.added).cloned().collect();
        self.forbidden.during(paths, &with_real_git_paths(&context.granted.writes, &roots))
    }

    /// After a confined command: what it made and may not make is put aside.
    pub(crate) fn after(
        &self,
        fence: &SandboxPolicy,
        context: &ToolContext,
        jobs: JobActivity,
    ) -> Vec<PathBuf> {
        let scope = AuditScope::new(fence, context);
        let news = self.survey.after(&fence.measure(&scope.denied), jobs == JobActivity::None);
        self.put_aside(news, &scope, jobs)
    }

    /// After a command that was allowed anything.
    pub(crate) fn after_unconfined(&self, fence: &SandboxPolicy, context: &ToolContext) {
        let scope = AuditScope::new(fence, context);
        self.survey.after(&fence.measure(&scope.denied), false);
        self.accept(&scope);
    }

    /// A job begins.
    pub(crate) fn job_begins(&self, fence: &SandboxPolicy, context: &ToolContext) -> WatchedJob {
        let scope = AuditScope::new(fence, context);
        self.has_jobs.store(true, Ordering::Relaxed);
        let mut grants = lock(&self.job_grants);
        let number = grants.last_key_value().map_or(0, |(last, _)| last + 1);
        grants.insert(number, scope.granted.clone());
        WatchedJob(number)
    }

    /// A job is over.
    pub(crate) fn job_ended(&self, job: WatchedJob, jobs: JobActivity) -> Vec<PathBuf> {
        let aside = self.look_at_jobs(jobs);
        lock(&self.job_grants).remove(&job.0);
        aside
    }

    /// Looks at what jobs may have made since the last look.
    pub(crate) fn look_at_jobs(&self, jobs: JobActivity) -> Vec<PathBuf> {
        let scope = lock(&self.last_scope).clone();
        let Some(scope) = scope.filter(|_| self.had_jobs(jobs)) else { return self.forbidden.put_aside() };
        let news = self.survey.after(&scope.fence.measure(&scope.denied), false);
        self.put_aside(news, &scope, jobs)
    }

    /// Whether a job can have done something since the last look.
    fn had_jobs(&self, jobs: JobActivity) -> bool {
        self.has_jobs.fetch_or(jobs == JobActivity::Running, Ordering::Relaxed)
            || jobs == JobActivity::Running
    }

    fn put_aside(&self, news: SurveyNews, scope: &AuditScope, jobs: JobActivity) -> Vec<PathBuf> {
        let mut aside = self.forbidden.put_aside();
        aside.extend(self.put_denied_aside(news.denied_writes, scope));
        let mut converted = lock(&self.converted);
        let was_folder = news.repositories.into_iter().filter(|repository| repository.was_folder);
        converted.extend(was_folder.map(|repository| repository.path));
        let granted: Vec<PathBuf> =
            scope.granted.iter().chain(lock(&self.job_grants).values().flatten()).cloned().collect();
        let author = ChangeAuthor::Commands { granted: &granted };
        let judge = RepositoryJudge { roots: &scope.roots };
        let is_converted = |git: &Path| converted.contains(git);
        aside.extend(self.repositories.inspect(
            &self.all_repositories(&scope.roots),
            is_converted,
            judge,
            author,
        ));
        if jobs == JobActivity::None {
            self.has_jobs.store(false, Ordering::Relaxed);
        }
        aside
    }

    /// What was made although a rule denies that it is written. Of a folder with all that is in it, only that.
    fn put_denied_aside(&self, denied: Vec<PathBuf>, scope: &AuditScope) -> Vec<PathBuf> {
        let is_granted = |path: &PathBuf| scope.granted.iter().any(|granted| path.starts_with(granted));
        let mut outermost: Vec<PathBuf> = Vec::new();
        for path in denied.into_iter().filter(|path| !is_granted(path)) {
            // They come in order, a folder before what is in it.
            if !outermost.last().is_some_and(|last| path.starts_with(last)) {
                outermost.push(path);
            }
        }
        let aside: Vec<PathBuf> = outermost.iter().map(|path| put_away(path)).collect();
        if !aside.is_empty() {
            // A rule may mean the new name as well: it is known from now on.
            self.survey.after(&scope.fence.measure(&scope.denied), false);
        }
        aside
    }

    fn accept(&self, scope: &AuditScope) -> Vec<PathBuf> {
        let aside = self.forbidden.put_aside();
        let judge = RepositoryJudge { roots: &scope.roots };
        self.repositories.inspect(&self.all_repositories(&scope.roots), |_| false, judge, ChangeAuthor::User);
        aside
    }

    /// The repositories in the project, and those elsewhere that it is a part of.
    fn all_repositories(&self, roots: &[PathBuf]) -> Vec<PathBuf> {
        let elsewhere =
            roots.iter().filter_map(|root| GitElsewhere::of(root)).map(|elsewhere| elsewhere.common);
        self.survey.repositories().into_iter().chain(elsewhere).collect()
    }

    /// What git is in the middle of, in all repositories.
    pub(crate) fn unfinished(&self, context: &ToolContext) -> Vec<PathBuf> {
        let roots: Vec<PathBuf> = std::iter::once(&context.root).chain(&context.added).cloned().collect();
        let own = roots.iter().map(|root| root.join(".git"));
        let all: std::collections::BTreeSet<PathBuf> =
            self.all_repositories(&roots).into_iter().chain(own).collect();
        let folders = all.iter().flat_map(|git| git_folders_in(git));
        let named = folders.flat_map(|git| UNFINISHED_GIT_FOLDERS.map(|name| git.join(name)));
        named.filter(|path| path.symlink_metadata().is_ok()).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
