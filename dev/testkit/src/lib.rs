//! What tests share. Nothing here is part of the program.

mod blobs;
mod samples;
mod secure;
mod server;
mod skip;
pub mod strict;
mod window;

pub use blobs::NoBlobs;
pub use samples::{Session, every_kind, id};
pub use secure::{Protocol, Proxy, SecureRequest, SecureServer};
pub use server::{Fault, Gate, Recorded, Server};
pub use skip::skip;
pub use window::Window;
