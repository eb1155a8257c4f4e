//! What the user wants: files, environment and flags, in layers, as one typed value.
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

mod check;
mod config;
mod dollars;
mod environment;
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
mod syntax;
mod time_span;
mod trust_store;
mod user_file;

pub use config::{ConfigEntry, ConfigFlag, ConfigSources, LoadedConfig, ProjectConfigFiles, load};
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
pub use time_span::{TimeSpan, TimeSpanError};
pub use trust_store::{TrustStore, TrustStoreError};
