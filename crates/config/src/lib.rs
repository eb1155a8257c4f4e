//! What the user wants: files, environment and flags, in layers, as one typed value.
//!
//! [`Settings`] is the only list of settings there is. The JSON schema derived from it drives the rest: how
//! files are checked, which key was probably meant, which variable sets what, how layers merge, what a
//! project may decide without being trusted, and the reference pages.
//!
//! The way of a value: [`Sources`] are read (`read`), each text is parsed as far as it can be (`syntax`),
//! checked against the shape of the settings (`check`), and laid over the weaker layers (`merge`), minus what
//! an untrusted project may not decide (`restricted`). The outcome is a [`Config`], or every [`Problem`] at
//! once.
//!
//! Nothing here reads the environment, the home folder or the clock, and nothing prints.

mod added;
mod check;
mod config;
mod dollars;
mod environment;
mod found;
mod key;
mod keys;
mod merge;
mod nearest;
mod own_file;
mod place;
mod problem;
mod read;
mod reference;
mod restricted;
mod settings;
mod shape;
mod span;
mod syntax;
mod text;
mod trust;

pub use added::add_rules;
pub use config::{Config, Entry, Flag, ProjectFiles, Sources, load};
pub use dollars::Dollars;
pub use environment::{VARIABLES, Variable, environment_reference};
pub use keys::{KeyError, KeyStore};
pub use merge::{Notice, Reason};
pub use nearest::nearest;
pub use place::{Layer, Origin, Place, Position};
pub use problem::{Problem, Problems};
pub use reference::{EXAMPLE, reference};
pub use restricted::{Restricted, Trust};
pub use settings::{
    Action, Auth, Color, Features, Hook, HookEvent, Hooks, Interface, Limits, Log, LogLevel, McpServer,
    ModelFacts, Models, OneOrMore, PermissionRule, Permissions, Provider, Retry, Settings, Shell, StatusItem,
    Timeouts, Tools, Ui, Web, Wire,
};
pub use shape::schema;
pub use span::{Span, SpanError};
pub use trust::{TrustError, TrustStore};
