//! What a decision is made by.

use helve_protocol::PermissionMode;

use crate::pattern::ProjectContext;
use crate::rules::LayeredRules;

/// How well commands are confined here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CommandIsolation {
    None,
    /// Files and sockets.
    Partial,
    /// A world of their own.
    Full,
}

/// What a decision is made by.
#[derive(Clone, Copy, Debug)]
pub struct PermissionPolicy<'a> {
    pub rules: &'a LayeredRules,
    pub places: &'a ProjectContext,
    pub mode: PermissionMode,
    pub level: CommandIsolation,
}

impl PermissionPolicy<'_> {
    /// Whether commands run unasked as long as they are confined. Where less confines them, more is asked.
    pub(crate) fn trusts_confinement(&self) -> bool {
        match self.mode {
            PermissionMode::Auto => self.level > CommandIsolation::None,
            PermissionMode::AcceptEdits => self.level == CommandIsolation::Full,
            _ => false,
        }
    }

    /// Whether file tools write in the project unasked.
    pub(crate) fn trusts_file_tools(&self) -> bool {
        matches!(self.mode, PermissionMode::AcceptEdits | PermissionMode::Auto)
    }
}
