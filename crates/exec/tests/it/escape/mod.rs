//! Attacks against confinement, and the same ones without it: an attack that would fail anyway proves nothing.

mod ground;
mod suite;

pub(crate) use ground::{Ground, User, users};
