//! Loads what the user wants: files, environment and flags, in layers, as one typed value.
//!
//! [`Settings`] is the only list of settings there is. The JSON schema derived from it drives the rest: how
//! files are checked, which key was probably meant, which variable sets what, how layers merge, what a
//! project may decide without being trusted, and the reference pages.
//!
//! The way of a value: [`ConfigSources`] are read (`read`), each text is parsed as far as it can be (`syntax`),
//! checked against the shape of the settings (`check`), and laid over the weaker layers (`merge`), minus what
//! an untrusted project may not decide (`project_trust`). The outcome is a [`LoadedConfig`], or every [`ConfigProblem`] at
//! once.
//!
//! Nothing here reads the environment, the home folder or the clock, and nothing prints.
//!
//! A flag counts more than a file, and every value knows where it comes from:
//!
//! ```
//! use helve_config::{ConfigFlag, ConfigLayer, ConfigSources, TrustStore, load};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let user = folder.path().join("config.toml");
//! std::fs::write(&user, "[limits]\nmax_steps = 20\n")?;
//!
//! let flag = ConfigFlag {
//!     key: "limits.max_steps".to_owned(),
//!     value: "5".to_owned(),
//!     shown_as: "--max-steps".to_owned(),
//! };
//! let config = load(&ConfigSources {
//!     administrator: None,
//!     user,
//!     project: None,
//!     environment: Vec::new(),
//!     flags: vec![flag],
//!     trust: &TrustStore::empty(),
//! })?;
//! assert_eq!(config.settings.limits.max_steps, 5);
//! let origin = config.origin("limits.max_steps").expect("every setting has an origin");
//! assert_eq!(origin.layer, ConfigLayer::Flags);
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs)]

mod bounded_file;
mod check;
mod config;
mod dollars;
mod environment;
mod escaping;
mod key_store;
mod merge;
mod nearest;
mod origin;
mod problem;
mod project_rules;
mod project_trust;
mod read;
mod reference;
mod setting_key;
mod settings;
mod settings_text;
mod shape;
mod source_values;
mod sources;
mod syntax;
mod time_span;
mod trust_store;
mod user_file;

pub use config::{ConfigEntry, LoadedConfig, load};
pub use dollars::Dollars;
pub use environment::{ENVIRONMENT_VARIABLES, EnvironmentVariable, environment_reference};
pub use key_store::{KeyStore, KeyStoreError};
pub use merge::{ConfigNotice, NoticeReason};
pub use nearest::nearest;
pub use origin::{ConfigLayer, ConfigLocation, ConfigPosition, SettingOrigin};
pub use problem::{ConfigProblem, ConfigProblems};
pub use project_rules::add_rules;
pub use project_trust::{ProjectTrust, RestrictedSetting};
pub use reference::{EXAMPLE_SETTINGS, settings_reference};
pub use settings::{
    ColorSetting, FeatureSettings, InterfaceSettings, LimitSettings, LogLevel, LogSettings,
    ModelFactSettings, ModelSettings, OneOrMoreStrings, PermissionRule, PermissionSettings, ProviderSettings,
    RetrySetting, Settings, ShellSettings, TimeoutSettings, ToolSettings, UiSettings, WebSettings,
};
pub use shape::schema;
pub use sources::{ConfigFlag, ConfigSources, ProjectConfigFiles};
pub use time_span::{TimeSpan, TimeSpanError};
pub use trust_store::{TrustStore, TrustStoreError};
