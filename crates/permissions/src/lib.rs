//! What may be done.
//!
//! - [`decide`] is the whole of it: what a call would do, the rules, the mode and how well commands are confined here make a
//!   [`Decision`], with its reason. It is pure: it looks at nothing but what it is given.
//! - [`shell`] reads a command line as the shell would and says which programs it would run and which files it would
//!   write.
//! - [`Rules`] are those of all layers, each with the place that it comes from; [`Rule`] also reads the form of other agents.
//! - [`Rights`] are those of an agent. A child never has more than its parent.
//! - [`names`] is the one table of what tools are called elsewhere.

pub mod credentials;
mod decide;
mod effects;
mod judge;
pub mod names;
mod pattern;
mod programs;
mod rights;
mod rule;
mod rules;
mod secrets;
pub mod shell;
mod variables;

pub use decide::{Decision, Level, Policy, decide};
pub use effects::effects;
pub use judge::plain;
pub use pattern::{Places, Subject, matches_name};
pub use rights::Rights;
pub use rule::{BadRule, Rule, Verdict};
pub use rules::{Judgement, Layer, Proof, Rules};
pub use secrets::{GUARDED, GUARDED_IN_GIT, Guarded, SECRETS_AT_HOME, guarded, is_secret, is_secret_name};
pub use variables::is_secret_variable;
