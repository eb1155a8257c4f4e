//! What settings are read from.

use std::path::PathBuf;

use crate::trust_store::TrustStore;

/// Where to look. Files need not exist.
#[derive(Clone, Debug)]
pub struct ConfigSources<'a> {
    pub administrator: Option<PathBuf>,
    pub user: PathBuf,
    pub project: Option<ProjectConfigFiles>,
    /// All variables; those that set nothing are left alone.
    pub environment: Vec<(String, String)>,
    /// In the order of the command line: the later one wins.
    pub flags: Vec<ConfigFlag>,
    pub trust: &'a TrustStore,
}

#[derive(Clone, Debug)]
pub struct ProjectConfigFiles {
    /// The canonical path that trust is given to.
    pub root: PathBuf,
    /// The file that the project brings along.
    pub config: PathBuf,
    /// The user's own file in this project.
    pub local: PathBuf,
}

/// A setting given on the command line.
#[derive(Clone, Debug)]
pub struct ConfigFlag {
    /// Dotted, as in a file.
    pub key: String,
    pub value: String,
    /// What the user typed: `--model`, `--set limits.max_steps`.
    pub shown_as: String,
}
