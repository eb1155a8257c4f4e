//! What the sessions of a process share.

use std::sync::Arc;

use helve_journal::Journal;
use helve_models::{ModelPurpose, ModelTarget};
use helve_protocol::{Clock, IdSource, ModelName};
use helve_tools::Tool;

use crate::family_workspaces::WorkspaceRegistry;
use crate::gate::PermissionGate;
use crate::hooks::{NoHooks, SessionHooks};
use crate::spec::SessionSpec;

/// What every session of a process is given. A copy is as good as the original.
#[derive(Clone)]
pub struct Services {
    pub journal: Arc<dyn Journal>,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn IdSource>,
    pub models: Arc<dyn ModelSource>,
    pub tools: Arc<dyn ToolFactory>,
    pub gate: PermissionGate,
    /// The workspaces that are watched.
    pub workspaces: Arc<WorkspaceRegistry>,
    pub hooks: Arc<dyn SessionHooks>,
    /// The version of the program.
    pub version: String,
}

/// Finds models. What can't be found is said in words for the person who asked for it.
pub trait ModelSource: Send + Sync {
    /// The model that a name means.
    fn by_name(&self, name: &ModelName) -> Result<ModelTarget, String>;

    /// The model for work beside the conversation: summaries, titles. `main` is the one that answers the user.
    fn by_purpose(&self, purpose: ModelPurpose, main: &ModelTarget) -> Result<ModelTarget, String> {
        let _ = purpose;
        Ok(main.clone())
    }
}

/// Makes the tools of a session. Each session gets its own: they hold what only that session knows, such as which files it has
/// read and in which folder its shell is.
pub trait ToolFactory: Send + Sync {
    fn make_tools(&self, spec: &SessionSpec) -> Vec<Arc<dyn Tool>>;
}

impl<F: Fn(&SessionSpec) -> Vec<Arc<dyn Tool>> + Send + Sync> ToolFactory for F {
    fn make_tools(&self, spec: &SessionSpec) -> Vec<Arc<dyn Tool>> {
        self(spec)
    }
}

impl Services {
    /// Hooks for a process that has none.
    pub fn no_hooks() -> Arc<dyn SessionHooks> {
        Arc::new(NoHooks)
    }
}
