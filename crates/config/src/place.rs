//! Where a value comes from.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use crate::problem::escaped;

/// Who sets a value, from the weakest to the strongest. What the administrator sets can't be loosened by
/// anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
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

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Layer::BuiltIn => "built-in",
            Layer::User => "user",
            Layer::Project => "project",
            Layer::Local => "local",
            Layer::Environment => "environment",
            Layer::Flags => "flags",
            Layer::Administrator => "administrator",
        })
    }
}

/// Line and column, both from 1. Columns count characters, as editors do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

/// A spot that a person can go to and change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    BuiltIn,
    File {
        #[serde(serialize_with = "as_text")]
        path: PathBuf,
        /// `None` when the whole file is meant.
        at: Option<Position>,
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

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::BuiltIn => f.write_str("built-in"),
            // Whoever made the folder chose its name.
            Place::File { path, at } => {
                f.write_str(&escaped(&path.display().to_string()))?;
                at.map_or(Ok(()), |at| write!(f, ":{}:{}", at.line, at.column))
            }
            Place::Variable(name) | Place::Flag(name) => f.write_str(&escaped(name)),
        }
    }
}

/// Who set a value, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Origin {
    pub layer: Layer,
    pub place: Place,
}

impl Origin {
    pub const BUILT_IN: Origin = Origin { layer: Layer::BuiltIn, place: Place::BuiltIn };
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place.fmt(f)
    }
}
