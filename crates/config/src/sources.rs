//! What settings are read from.

use std::path::PathBuf;

use crate::trust_store::TrustStore;

/// Everything that settings are read from. Files need not exist.
#[derive(Clone, Debug)]
pub struct ConfigSources<'a> {
    /// The administrator's file, where the system has a place for it.
    pub administrator: Option<PathBuf>,
    /// The user's own file.
    pub user: PathBuf,
    /// The files of the project, if there is one.
    pub project: Option<ProjectConfigFiles>,
    /// All variables; those that set nothing are left alone.
    pub environment: Vec<(String, String)>,
    /// In the order of the command line: the later one wins.
    pub flags: Vec<ConfigFlag>,
    /// Which projects the user trusts.
    pub trust: &'a TrustStore,
}

/// A project, and the settings files in it.
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
    /// The value as text, which is read as the setting needs it.
    pub value: String,
    /// What the user typed: `--model`, `--set limits.max_steps`.
    pub shown_as: String,
}
