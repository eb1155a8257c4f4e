//! A temporary folder with the five places that settings come from.

use std::path::PathBuf;

use helve_config::{
    ConfigEntry, ConfigFlag, ConfigLayer, ConfigProblems, ConfigSources, LoadedConfig, ProjectConfigFiles,
    TrustStore, load,
};
use tempfile::TempDir;

pub(crate) struct Setup {
    folder: TempDir,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) flags: Vec<ConfigFlag>,
}

impl Setup {
    pub(crate) fn new() -> Setup {
        Setup { folder: tempfile::tempdir().unwrap(), environment: Vec::new(), flags: Vec::new() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file_of(layer: ConfigLayer) -> &'static str {
        match layer {
            ConfigLayer::User => "user.toml",
            ConfigLayer::Project => "project.toml",
            ConfigLayer::Local => "local.toml",
            ConfigLayer::Administrator => "administrator.toml",
            ConfigLayer::BuiltIn | ConfigLayer::Environment | ConfigLayer::Flags => {
                panic!("{layer} has no file")
            }
        }
    }

    pub(crate) fn file(self, layer: ConfigLayer, content: impl AsRef<[u8]>) -> Setup {
        self.write(layer, content);
        self
    }

    pub(crate) fn write(&self, layer: ConfigLayer, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(Setup::file_of(layer)), content).unwrap();
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Setup {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn flag(mut self, key: &str, value: &str) -> Setup {
        let flag =
            ConfigFlag { key: key.to_owned(), value: value.to_owned(), shown_as: format!("--set {key}") };
        self.flags.push(flag);
        self
    }

    pub(crate) fn store(&self) -> TrustStore {
        TrustStore::read(self.path("trust.toml")).unwrap()
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    pub(crate) fn load(&self) -> Result<LoadedConfig, ConfigProblems> {
        let project = ProjectConfigFiles {
            root: self.root(),
            config: self.path(Setup::file_of(ConfigLayer::Project)),
            local: self.path(Setup::file_of(ConfigLayer::Local)),
        };
        load(&ConfigSources {
            administrator: Some(self.path(Setup::file_of(ConfigLayer::Administrator))),
            user: self.path(Setup::file_of(ConfigLayer::User)),
            project: Some(project),
            environment: self.environment.clone(),
            flags: self.flags.clone(),
            trust: &self.store(),
        })
    }

    /// Trusts whatever the project asks for now.
    pub(crate) fn trust(&self) {
        let config = self.config();
        self.store().trust(&self.root(), config.digest()).unwrap();
    }

    pub(crate) fn config(&self) -> LoadedConfig {
        self.load().unwrap_or_else(|problems| panic!("{}", self.tidy(&problems)))
    }

    /// The problems, without the folder's name.
    pub(crate) fn problems(&self) -> String {
        match self.load() {
            Ok(_) => String::new(),
            Err(problems) => self.tidy(&problems),
        }
    }

    pub(crate) fn notices(&self) -> Vec<String> {
        self.config().notices().iter().map(|notice| self.tidy(notice)).collect()
    }

    pub(crate) fn tidy(&self, shown: &impl ToString) -> String {
        shown.to_string().replace(&format!("{}/", self.folder.path().display()), "")
    }
}

pub(crate) fn entry<'a>(config: &'a LoadedConfig, key: &str) -> &'a ConfigEntry {
    config.entries().iter().find(|entry| entry.key == key).unwrap_or_else(|| panic!("no {key}"))
}
