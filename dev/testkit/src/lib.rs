//! What tests share. Nothing here is part of the program.

mod blobs;
mod samples;
mod secure;
mod server;
mod skip;
pub mod strict;
mod window;

pub use blobs::NoBlobs;
pub use samples::{SampleSession, sample_event_bodies, sample_id};
pub use secure::{HttpProtocol, SecureRequest, SecureServer, TestProxy};
pub use server::{EventGate, InjectedFault, ReceivedRequest, ScriptedServer};
pub use skip::skip;
pub use window::TerminalWindow;
