//! What a decision is made by.

use helve_protocol::{ConfinementLevel, PermissionMode};

use crate::pattern::ProjectContext;
use crate::rules::LayeredRules;

/// What a decision is made by.
#[derive(Clone, Copy, Debug)]
pub struct PermissionPolicy<'a> {
    pub rules: &'a LayeredRules,
    pub places: &'a ProjectContext,
    pub mode: PermissionMode,
    pub level: ConfinementLevel,
}

impl PermissionPolicy<'_> {
    /// Whether commands run unasked as long as they are confined. Where less confines them, more is asked.
    pub(crate) fn trusts_confinement(&self) -> bool {
        match self.mode {
            PermissionMode::Auto => self.level > ConfinementLevel::None,
            PermissionMode::AcceptEdits => self.level == ConfinementLevel::Full,
            _ => false,
        }
    }

    /// Whether file tools write in the project unasked.
    pub(crate) fn trusts_file_tools(&self) -> bool {
        matches!(self.mode, PermissionMode::AcceptEdits | PermissionMode::Auto)
    }
}
