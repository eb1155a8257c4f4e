//! Custody of commands: whatever Helve runs can be stopped at once, and nothing of it outlives Helve.
//!
//! [`start`] runs an [`CommandSpec`] under a keeper: the same program, started anew with [`SUPERVISOR_ARG`], which does nothing but
//! watch over one command ([`keeper_main`]). The keeper adopts whatever the command leaves behind, and holds one end of
//! a socket. When the socket closes, because Helve asks for it or because Helve is dead, or when the command is over,
//! the keeper ends every process that came of the command, and tells how it went ([`CommandOutcome`]). [`RunningCommand`] is
//! Helve's end: output as it comes, input as it is written, the end when it has come.
//!
//! A command has pipes, or a terminal for itself ([`CommandSpec::terminal`]): then it leads a session of its own below the keeper, and
//! Helve holds the other side of the terminal. Custody is the same.
//!
//! A command can be confined ([`CommandSpec::confinement`]): it reads everything but secrets, writes its workspace and caches,
//! and speaks with nobody, or with the network only. [`probe()`] finds how well that can be done here ([`ConfinementLevel`]), and what
//! would make it better. Commands without the network can share one in which nobody else is ([`start_beside`]). An order is carried out at the level that it names or not at all.
//!
//! A program that Helve starts for itself, such as git in a project that nobody trusts, is jailed ([`jailed`]): it can start no
//! other program, speak with nobody, and write only what it is given.
//!
//! What can't be had: processes of another user (`sudo`) can't be ended by us, and are counted as survivors. If the
//! keeper itself is killed, Helve ends the sessions of the keeper and of the command, and all that carry the command's mark in
//! their environment; only a daemon that made a session of its own and threw its environment away gets away then. If keeper and Helve are killed together, nobody is left to end anything. Outside Linux nobody adopts orphans, and
//! custody is that of the process group.

mod command_mark;
mod command_spec;
mod confinement;
mod error;
mod fd_passing;
mod helper_process;
mod input;
mod jail;
mod network;
mod probe;
mod real_paths;
mod removal;
mod report;
mod resource_limits;
mod running_command;
#[cfg_attr(target_os = "linux", path = "sandbox/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "sandbox/none.rs")]
mod sandbox;
mod spec_encoding;
mod supervisor;
mod terminal;
#[cfg_attr(target_os = "linux", path = "tree/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "tree/group.rs")]
mod tree;

pub use helve_protocol::ConfinementLevel;

pub use command_spec::{CommandInput, CommandLimits, CommandSpec, WindowSize};
pub use confinement::{Confinement, ConfinementPart, NetworkAccess, PrivateLayers};
pub use error::{CommandInputError, ExecError};
pub use helper_process::supervisor_main;
pub use jail::{JAIL_FAILED, jail_arguments};
pub use network::LocalNetwork;
pub use probe::{ConfinementShortfall, SandboxProbe, probe};
pub use removal::remove_tree;
pub use report::{CommandEndCause, CommandExitStatus, CommandOutcome};
pub use running_command::{CommandOutputChunk, CommandStopper, RunningCommand, start, start_sharing_network};
pub use supervisor::SUPERVISOR_ARG;
