//! What `cargo xtask` and the architecture tests know about the source code of this workspace.

pub mod source;
