//! What may be done.
//!
//! [`shell`] reads a command line as the shell would and says which programs it would run and which files it would
//! write. It is pure: it looks at nothing but the text.

pub mod shell;
