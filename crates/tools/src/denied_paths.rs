//! Which paths the rules deny to commands.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Which paths rules deny.
#[derive(Clone, Default)]
pub struct DeniedPaths {
    /// Those that commands must not read.
    pub reads: Option<PathTest>,
    /// Those that they must not write.
    pub writes: Option<PathTest>,
    /// Folders outside the project where something may be denied.
    pub elsewhere: Vec<PathBuf>,
    /// Changes with the rules.
    pub key: String,
}

/// Says whether something holds for a path.
pub type PathTest = Arc<dyn Fn(&Path) -> bool + Send + Sync>;
