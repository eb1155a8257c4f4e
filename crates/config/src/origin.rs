//! Where a value comes from.

use std::fmt;
use std::path::{Path, PathBuf};

use helve_protocol::one_line;
use serde::{Serialize, Serializer};

/// Who sets a value, from the weakest to the strongest. What the administrator sets can't be loosened by
/// anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConfigLayer {
    /// The defaults of the program.
    BuiltIn,
    /// The user's own file.
    User,
    /// The file that a project brings along.
    Project,
    /// The user's own file in a project.
    Local,
    /// Environment variables.
    Environment,
    /// The command line.
    Flags,
    /// The administrator's file.
    Administrator,
}

impl fmt::Display for ConfigLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ConfigLayer::BuiltIn => "built-in",
            ConfigLayer::User => "user",
            ConfigLayer::Project => "project",
            ConfigLayer::Local => "local",
            ConfigLayer::Environment => "environment",
            ConfigLayer::Flags => "flags",
            ConfigLayer::Administrator => "administrator",
        })
    }
}

/// A place in a file. Columns count characters, as editors do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ConfigPosition {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
}

/// A spot that a person can go to and change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConfigLocation {
    /// Nowhere: it is a default of the program.
    BuiltIn,
    /// A settings file, or a place in it.
    File {
        /// The path of the file.
        #[serde(serialize_with = "as_text")]
        path: PathBuf,
        /// `None` when the whole file is meant.
        at: Option<ConfigPosition>,
    },
    /// The name of an environment variable.
    Variable(String),
    /// A flag as the user typed it.
    Flag(String),
}

/// A path need not be Unicode; showing it must work all the same.
fn as_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

impl fmt::Display for ConfigLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigLocation::BuiltIn => f.write_str("built-in"),
            // Whoever made the folder chose its name.
            ConfigLocation::File { path, at } => {
                f.write_str(&one_line(&path.display().to_string()))?;
                at.map_or(Ok(()), |at| write!(f, ":{}:{}", at.line, at.column))
            }
            ConfigLocation::Variable(name) | ConfigLocation::Flag(name) => f.write_str(&one_line(name)),
        }
    }
}

/// Who set a value, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SettingOrigin {
    /// Who set it.
    pub layer: ConfigLayer,
    /// Where it is set.
    pub place: ConfigLocation,
}

impl SettingOrigin {
    /// A default of the program.
    pub const BUILT_IN: SettingOrigin =
        SettingOrigin { layer: ConfigLayer::BuiltIn, place: ConfigLocation::BuiltIn };
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place.fmt(f)
    }
}
