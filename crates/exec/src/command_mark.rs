//! A variable that tells the processes of one command from all others, for when nobody is left who knows their tree.

use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher, RandomState};

const COMMAND_MARK_VARIABLE: &str = "HELVE_COMMAND";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommandMark(u64);

impl CommandMark {
    /// One that nobody else has.
    pub(crate) fn new() -> CommandMark {
        CommandMark(RandomState::new().build_hasher().finish())
    }

    pub(crate) fn variable(self) -> (OsString, OsString) {
        (COMMAND_MARK_VARIABLE.into(), format!("{:016x}", self.0).into())
    }

    /// Whether an environment, as the system shows it, has it.
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "environments of others are seen on Linux only")
    )]
    pub(crate) fn is_in(self, environment: &[u8]) -> bool {
        let whole = format!("{COMMAND_MARK_VARIABLE}={:016x}", self.0);
        environment.split(|byte| *byte == 0).any(|variable| variable == whole.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_in_its_own_environment_only() {
        let (one, other) = (CommandMark::new(), CommandMark::new());
        assert_ne!(one, other);
        let value = one.variable().1.into_string().unwrap();
        let environment = format!("PATH=/bin\0HELVE_COMMAND={value}\0X=");
        assert!(one.is_in(environment.as_bytes()) && !other.is_in(environment.as_bytes()));
        assert!(!one.is_in(format!("X=HELVE_COMMAND={value}").as_bytes()));
    }
}
