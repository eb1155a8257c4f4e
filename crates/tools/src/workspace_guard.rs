//! The ground that a call stands on: the workspace, in which everything that the call changes is kept before and known after.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use helve_protocol::ToolClass;
use helve_workspace::{PendingWrite, ResolvedPath, Workspace, WorkspaceEffects, WorkspaceError};

use crate::ToolFailure;

/// What a tool may change in the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeScope {
    Nothing,
    /// Only what it tells the [`WorkspaceGuard`] of.
    Named,
    /// Whatever it likes, so that the whole workspace is looked through before and after.
    Anything,
}

impl ChangeScope {
    pub const fn of(class: ToolClass) -> ChangeScope {
        match class {
            ToolClass::Changes => ChangeScope::Anything,
            ToolClass::Reads | ToolClass::Subagent | ToolClass::Interactive => ChangeScope::Nothing,
        }
    }
}

/// A workspace that calls share.
pub type SharedWorkspace = Arc<Mutex<Workspace>>;

/// The ground of one call. Without a workspace nothing is kept and nothing known.
#[derive(Clone, Debug, Default)]
pub struct WorkspaceGuard {
    /// The project, and the folders that were added to it.
    workspaces: Vec<SharedWorkspace>,
    /// What was done, with the number of the workspace.
    effects: Arc<Mutex<Vec<(usize, WorkspaceEffects)>>>,
    start: Arc<ChangeStart>,
}

/// Whether the call began to change files, or was called off before: whoever comes first decides.
#[derive(Debug, Default)]
struct ChangeStart(AtomicU8);

const CHANGES_BEGUN: u8 = 1;
const CHANGES_CALLED_OFF: u8 = 2;

impl ChangeStart {
    /// Makes it this, unless it is the other already. Says whether it is this.
    fn settle(&self, wanted: u8) -> bool {
        match self.0.compare_exchange(0, wanted, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => true,
            Err(found) => found == wanted,
        }
    }
}

impl WorkspaceGuard {
    pub fn new(workspaces: Vec<SharedWorkspace>) -> WorkspaceGuard {
        WorkspaceGuard { workspaces, ..WorkspaceGuard::default() }
    }

    /// Lets nothing be changed from now on. False if that comes too late: then the call ends in a moment, and its end tells
    /// what it did.
    pub fn call_off(&self) -> bool {
        self.start.settle(CHANGES_CALLED_OFF)
    }

    /// What the call did to the files that it named, with the number of the workspace.
    pub fn effects(&self) -> Vec<(usize, WorkspaceEffects)> {
        std::mem::take(&mut lock(&self.effects))
    }

    /// Makes a change to these places. What is there now is kept first, or the change is not made.
    pub(crate) fn change<T>(
        &self,
        places: &[&ResolvedPath],
        change: impl FnOnce() -> Result<T, ToolFailure>,
    ) -> Result<T, ToolFailure> {
        let mut workspaces: Vec<MutexGuard<'_, Workspace>> =
            self.workspaces.iter().map(|shared| lock(shared)).collect();
        let mut writings: Vec<(usize, PendingWrite)> = Vec::new();
        for place in places {
            let of =
                workspaces.iter().rposition(|workspace| place.path().starts_with(workspace.root().folder()));
            let of = of.unwrap_or_default();
            let Some(workspace) = workspaces.get_mut(of) else { continue };
            writings.push((of, workspace.about_to_write_at(place).map_err(not_kept)?));
        }
        // Before the first file is touched, what it was is on the disk.
        workspaces.iter().try_for_each(|workspace| workspace.sync_kept()).map_err(not_kept)?;
        if !self.start.settle(CHANGES_BEGUN) {
            return Err(ToolFailure::new("It was stopped. Nothing was changed."));
        }
        let changed = change();
        // Also after a failure: it may have come too late to put everything back.
        for (of, writing) in writings {
            match workspaces.get_mut(of).map(|workspace| workspace.note_written(writing)) {
                Some(Ok(done)) => lock(&self.effects).push((of, done)),
                Some(Err(error)) => tracing::warn!(name: "workspace.unknown_change", %error),
                None => {}
            }
        }
        changed
    }
}

fn not_kept(error: WorkspaceError) -> ToolFailure {
    ToolFailure(format!("Nothing was changed: what is there now can't be kept. {error}. {}", error.hint()))
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
