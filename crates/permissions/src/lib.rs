//! What may be done.
//!
//! - [`decide`] is the whole of it: what a call would do, the rules, the mode and how well commands are confined here make a
//!   [`PolicyDecision`], with its reason. It is pure: it looks at nothing but what it is given.
//! - [`shell`] reads a command line as the shell would and says which programs it would run and which files it would
//!   write.
//! - [`LayeredRules`] are those of all layers, each with the place that it comes from; [`Rule`] also reads the form of other agents.
//! - [`AgentRights`] are those of an agent. A child never has more than its parent.
//! - [`tool_aliases`] is the one table of what tools are called elsewhere.

mod action_judge;
pub mod credentials;
mod decide;
mod decision_point;
mod effects;
mod known_programs;
mod normalize;
mod pattern;
mod policy;
mod rights;
mod rule;
mod rules;
mod secret_variables;
mod secrets;
pub mod shell;
pub mod tool_aliases;

pub use helve_protocol::{ConfinementLevel, PermissionVerdict};

pub use decide::{PolicyDecision, decide};
pub use effects::effects;
pub use normalize::normalize_path;
pub use pattern::{ProjectContext, RuleSubject, matches_name};
pub use policy::PermissionPolicy;
pub use rights::AgentRights;
pub use rule::{Rule, RuleParseError};
pub use rules::{LayeredRules, RuleJudgement, RuleLayer, RuleOrigin};
pub use secret_variables::is_secret_variable;
pub use secrets::{
    GUARDED_FOLDER, GUARDED_GIT_ENTRIES, GuardReason, SECRET_HOME_PATHS, guard_reason, is_secret,
    is_secret_name,
};
