//! Where the settings come from.

use std::path::PathBuf;

use helve_config::{ConfigFlag, ConfigSources, LoadedConfig, TrustStore};
use helve_protocol::PermissionMode;

use crate::user_folders::ADMINISTRATOR_FILE;

/// Where the settings come from, so that they can be read again.
#[derive(Clone, Debug)]
pub(crate) struct SettingsOrigins {
    pub(crate) user: PathBuf,
    pub(crate) trust: PathBuf,
    pub(crate) project: helve_config::ProjectConfigFiles,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) flags: Vec<ConfigFlag>,
}

impl SettingsOrigins {
    pub(crate) fn load(&self, trust: &TrustStore) -> Result<LoadedConfig, helve_config::ConfigProblems> {
        self.load_with(trust, self.flags.clone())
    }

    fn load_with(
        &self,
        trust: &TrustStore,
        flags: Vec<ConfigFlag>,
    ) -> Result<LoadedConfig, helve_config::ConfigProblems> {
        helve_config::load(&ConfigSources {
            administrator: Some(PathBuf::from(ADMINISTRATOR_FILE)),
            user: self.user.clone(),
            project: Some(self.project.clone()),
            environment: self.environment.clone(),
            flags,
            trust,
        })
    }

    /// The loosest mode that the administrator leaves: what becomes of the loosest there is.
    pub(crate) fn loosest(&self, trust: &TrustStore) -> Result<PermissionMode, helve_config::ConfigProblems> {
        let (key, value) = ("permissions.mode".to_owned(), "bypass".to_owned());
        let flag = ConfigFlag { key, value, shown_as: "--permission-mode".to_owned() };
        Ok(self.load_with(trust, vec![flag])?.settings.permissions.mode)
    }
}
