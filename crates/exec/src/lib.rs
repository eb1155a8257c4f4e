//! Custody of commands: whatever Helve runs can be stopped at once, and nothing of it outlives Helve.
//!
//! [`start`] runs an [`Order`] under a keeper: the same program, started anew with [`KEEPER_ARG`], which does nothing but
//! watch over one command ([`keeper_main`]). The keeper adopts whatever the command leaves behind, and holds one end of
//! a socket. When the socket closes, because Helve asks for it or because Helve is dead, or when the command is over,
//! the keeper ends every process that came of the command, and tells how it went ([`Ended`]). [`Running`] is
//! Helve's end: output as it comes, input as it is written, the end when it has come.
//!
//! A command has pipes, or a terminal for itself ([`Order::terminal`]): then it leads a session of its own below the keeper, and
//! Helve holds the other side of the terminal. Custody is the same.
//!
//! A command can be confined ([`Order::confinement`]): it reads everything but secrets, writes its workspace and caches,
//! and speaks with nobody, or with the network only. [`probe()`] finds how well that can be done here ([`Level`]), and what
//! would make it better. Commands without the network can share one in which nobody else is ([`start_beside`]). An order is carried out at the level that it names or not at all.
//!
//! A program that Helve starts for itself, such as git in a project that nobody trusts, is jailed ([`jailed`]): it can start no
//! other program, speak with nobody, and write only what it is given.
//!
//! What can't be had: processes of another user (`sudo`) can't be ended by us, and are counted as survivors. If the
//! keeper itself is killed, Helve ends the sessions of the keeper and of the command, and all that carry the command's mark in
//! their environment; only a daemon that made a session of its own and threw its environment away gets away then. If keeper and Helve are killed together, nobody is left to end anything. Outside Linux nobody adopts orphans, and
//! custody is that of the process group.

mod confinement;
mod error;
mod handing;
mod input;
mod jail;
mod keeper;
mod mark;
mod network;
mod order;
mod probe;
mod real;
mod removal;
mod report;
mod running;
#[cfg_attr(target_os = "linux", path = "sandbox/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "sandbox/none.rs")]
mod sandbox;
mod terminal;
#[cfg_attr(target_os = "linux", path = "tree/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "tree/group.rs")]
mod tree;

pub use confinement::{Confinement, Layers, Level, Network, Part};
pub use error::{ExecError, InputError};
pub use jail::{JAIL_FAILED, jailed};
pub use keeper::{KEEPER_ARG, keeper_main};
pub use network::LocalNetwork;
pub use order::{Input, Limits, Order, WindowSize};
pub use probe::{Probe, Shortfall, probe};
pub use removal::remove_tree;
pub use report::{Cause, Ended, Status};
pub use running::{Output, Running, start, start_beside};
