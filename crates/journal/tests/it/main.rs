//! The journal as others see it: real files, real processes, real faults.

mod catalogue;
mod child;
mod contract;
mod durability;
mod faults;
mod format;
mod kill;
mod ownership;
mod support;
