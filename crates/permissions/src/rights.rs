//! What an agent may do.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use helve_protocol::{ConfinementLevel, PermissionMode, ToolAction};

use crate::decide::{PolicyDecision, decide};
use crate::pattern::ProjectContext;
use crate::policy::PermissionPolicy;
use crate::rule::Rule;
use crate::rules::LayeredRules;
use crate::secrets::{guard_reason, is_secret};

/// The rights of an agent: its own, and those of all that it works for. A child is made by its parent and can only add what
/// narrows them, so it never has more.
#[derive(Clone, Debug)]
pub struct AgentRights {
    first: (Arc<LayeredRules>, PermissionMode),
    /// Of those that work for it, the nearest first.
    others: Vec<(Arc<LayeredRules>, PermissionMode)>,
    places: Arc<ProjectContext>,
    level: ConfinementLevel,
}

impl AgentRights {
    pub fn new(
        rules: LayeredRules,
        mode: PermissionMode,
        places: ProjectContext,
        level: ConfinementLevel,
    ) -> AgentRights {
        AgentRights { first: (Arc::new(rules), mode), others: Vec::new(), places: Arc::new(places), level }
    }

    /// The rights of an agent that works for this one.
    #[must_use]
    pub fn child(&self, rules: LayeredRules, mode: PermissionMode) -> AgentRights {
        let mut child = self.clone();
        child.others.push((Arc::new(rules), mode));
        child
    }

    /// The same where git works, or does not work, on another repository than the project's.
    #[must_use]
    pub fn with_nested_repository(self, is_nested: bool) -> AgentRights {
        let places = ProjectContext { is_nested, ..ProjectContext::clone(&self.places) };
        AgentRights { places: Arc::new(places), ..self }
    }

    /// The same for a call that writes in these folders of git's.
    #[must_use]
    pub fn with_git_folders(self, git_folders: Vec<PathBuf>) -> AgentRights {
        let places = ProjectContext { git_folders, ..ProjectContext::clone(&self.places) };
        AgentRights { places: Arc::new(places), ..self }
    }

    pub fn places(&self) -> &ProjectContext {
        &self.places
    }

    /// The rules of all that have a say which deny some paths to a tool.
    pub fn denied_paths<'a>(&'a self, tool: &'a str) -> impl Iterator<Item = &'a Rule> {
        let all = std::iter::once(&self.first).chain(&self.others);
        all.flat_map(move |(rules, _)| rules.denied_paths(tool))
    }

    /// The folders from which rules deny something to a tool, as far as they name one.
    pub fn denied_bases(&self, tool: &str) -> Vec<PathBuf> {
        self.denied_paths(tool).filter_map(|rule| rule.fixed_part(&self.places)).collect()
    }

    /// Whether a file is not like others: nobody reads it, or writes it, without being asked.
    pub fn is_special(&self, path: &Path) -> bool {
        is_secret(path, &self.places)
            || guard_reason(path, &self.places).is_some()
            || ["read", "write"].iter().any(|tool| self.denies(tool, path))
    }

    /// Whether any of them denies a path.
    pub fn denies(&self, tool: &str, path: &Path) -> bool {
        let mut all = std::iter::once(&self.first).chain(&self.others);
        all.any(|(rules, _)| rules.denies(tool, path, &self.places))
    }

    /// The strictest mode of all that have a say.
    pub fn mode(&self) -> PermissionMode {
        self.others.iter().map(|(_, mode)| *mode).fold(self.first.1, PermissionMode::min)
    }

    /// The strictest of all that have a say.
    pub fn decide(&self, tool: &str, actions: &[ToolAction]) -> PolicyDecision {
        let AgentRights { first, others, places, level } = self;
        let decide = |(rules, mode): &(Arc<LayeredRules>, PermissionMode)| {
            decide(tool, actions, PermissionPolicy { rules, places, mode: *mode, level: *level })
        };
        // Of equals the first: it is the one nearest to the user.
        others.iter().map(decide).fold(decide(first), |strictest, next| {
            if next.verdict > strictest.verdict { next } else { strictest }
        })
    }
}
