//! What is to be run, and how it is told to the keeper.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::confinement::Confinement;
use crate::spec_encoding::{SpecReader, put_bytes, put_count, put_number};

/// More than any command needs: the system's own limit on arguments and environment is a few megabytes.
pub(crate) const MAX_COMMAND_SPEC_BYTES: usize = 64 << 20;

/// A keeper understands only orders of its own version: the program may have been replaced while Helve runs.
const COMMAND_SPEC_VERSION: u32 = 6;

/// A command to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandSpec {
    /// A path, relative to `cwd`, or a name that is looked for on the `PATH` of `env`.
    pub program: OsString,
    pub args: Vec<OsString>,
    pub cwd: PathBuf,
    /// The whole environment: nothing is inherited.
    pub env: Vec<(OsString, OsString)>,
    pub input: CommandInput,
    /// A terminal of this size, which the command has for itself. Without it, its output goes through pipes, and it has no
    /// terminal at all.
    pub terminal: Option<WindowSize>,
    pub limits: CommandLimits,
    /// What it may reach; without, whatever Helve reaches.
    pub confinement: Option<Confinement>,
    /// The program that calls [`keeper_main`](crate::supervisor_main): Helve itself. On Linux, `/proc/self/exe` names it even
    /// after an update has replaced the file.
    pub keeper: PathBuf,
}

/// What a command can read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CommandInput {
    /// Nothing: its input is at its end. A terminal has no end; there it is told so whenever it is silent.
    #[default]
    Nothing,
    Text(Vec<u8>),
    /// What is written while it runs: [`Running::write`](crate::RunningCommand::write).
    Open,
}

/// The size of a terminal, in letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSize {
    pub rows: u16,
    pub columns: u16,
}

/// What a command may use. What is not given is as Helve has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandLimits {
    /// How many processes may live at once. They are counted several times a second, so a fast fork bomb gets beyond
    /// it for a moment before all of it is ended.
    pub processes: Option<u32>,
    /// How large a file any of the processes may write, in bytes.
    pub file_size: Option<u64>,
    /// How much time of a processor each of the processes may use; in whole seconds, at least one.
    pub cpu: Option<Duration>,
    /// How much memory for data each of the processes may have, in bytes.
    pub memory: Option<u64>,
}

impl WindowSize {
    fn to_number(self) -> u64 {
        u64::from(self.rows) << 16 | u64::from(self.columns)
    }

    fn from_number(number: u64) -> Option<WindowSize> {
        let rows = u16::try_from(number >> 16).ok()?;
        let columns = u16::try_from(number & 0xffff).ok()?;
        Some(WindowSize { rows, columns })
    }
}

impl CommandSpec {
    /// What is sent to the keeper: a version, a length, and the fields one after the other.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let limits = self.limits;
        put_number(&mut body, limits.processes.map(u64::from));
        put_number(&mut body, limits.file_size);
        put_number(&mut body, limits.cpu.map(|cpu| cpu.as_secs().max(1)));
        put_number(&mut body, limits.memory);
        put_bytes(&mut body, self.program.as_bytes());
        put_bytes(&mut body, self.cwd.as_os_str().as_bytes());
        put_bytes(&mut body, self.keeper.as_os_str().as_bytes());
        put_count(&mut body, self.args.len());
        self.args.iter().for_each(|arg| put_bytes(&mut body, arg.as_bytes()));
        put_count(&mut body, self.env.len());
        for (name, value) in &self.env {
            put_bytes(&mut body, name.as_bytes());
            put_bytes(&mut body, value.as_bytes());
        }
        match &self.input {
            CommandInput::Nothing => put_count(&mut body, 0),
            CommandInput::Text(text) => {
                put_count(&mut body, 1);
                put_bytes(&mut body, text);
            }
            CommandInput::Open => put_count(&mut body, 2),
        }
        put_number(&mut body, self.terminal.map(WindowSize::to_number));
        put_count(&mut body, usize::from(self.confinement.is_some()));
        if let Some(confinement) = &self.confinement {
            confinement.put(&mut body);
        }

        let mut bytes = COMMAND_SPEC_VERSION.to_le_bytes().to_vec();
        put_bytes(&mut bytes, &body);
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    pub(crate) fn read(from: &mut impl Read) -> io::Result<CommandSpec> {
        let mut version = [0; 4];
        from.read_exact(&mut version)?;
        let mut length = [0; 8];
        from.read_exact(&mut length)?;
        let length = u64::from_le_bytes(length);
        if u32::from_le_bytes(version) != COMMAND_SPEC_VERSION || length > MAX_COMMAND_SPEC_BYTES as u64 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut body = Vec::new();
        from.take(length).read_to_end(&mut body)?;
        CommandSpec::decode(SpecReader::new(&body)).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Reads the fields, which must be all that is there.
    fn decode(mut from: SpecReader<'_>) -> Option<CommandSpec> {
        let processes = match from.number()? {
            Some(processes) => Some(u32::try_from(processes).ok()?),
            None => None,
        };
        let (file_size, cpu, memory) = (from.number()?, from.number()?, from.number()?);
        let limits = CommandLimits { processes, file_size, cpu: cpu.map(Duration::from_secs), memory };
        let program = from.text()?;
        let cwd = from.text()?.into();
        let keeper = from.text()?.into();
        // Collected one by one: a count that lies ends at the end of the bytes, and reserves nothing.
        let args = (0..from.count()?).map(|_| from.text()).collect::<Option<_>>()?;
        let env = (0..from.count()?).map(|_| Some((from.text()?, from.text()?))).collect::<Option<_>>()?;
        let input = match from.count()? {
            0 => CommandInput::Nothing,
            1 => CommandInput::Text(from.bytes()?.to_vec()),
            2 => CommandInput::Open,
            _ => return None,
        };
        let terminal = match from.number()? {
            Some(number) => Some(WindowSize::from_number(number)?),
            None => None,
        };
        let confinement = if from.flag()? { Some(Confinement::read(&mut from)?) } else { None };
        let spec = CommandSpec { program, args, cwd, env, input, terminal, limits, confinement, keeper };
        from.is_at_end().then_some(spec)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    use super::*;
    use crate::confinement::tests::confinement;

    fn text() -> impl Strategy<Value = OsString> {
        vec(any::<u8>(), 0..20).prop_map(OsString::from_vec)
    }

    prop_compose! {
        fn order()(
            program in text(), cwd in text(), keeper in text(),
            args in vec(text(), 0..5), env in vec((text(), text()), 0..5),
            input in prop_oneof![Just(CommandInput::Nothing), vec(any::<u8>(), 0..50).prop_map(CommandInput::Text), Just(CommandInput::Open)],
            terminal in option::of(any::<(u16, u16)>()),
            limits in (any::<Option<u32>>(), any::<Option<u64>>(), option::of(1..u64::MAX), any::<Option<u64>>()),
            confinement in option::of(confinement()),
        ) -> CommandSpec {
            let (processes, file_size, cpu, memory) = limits;
            let limits = CommandLimits { processes, file_size, cpu: cpu.map(Duration::from_secs), memory };
            let terminal = terminal.map(|(rows, columns)| WindowSize { rows, columns });
            CommandSpec { program, args, cwd: cwd.into(), env, input, terminal, limits, confinement, keeper: keeper.into() }
        }
    }

    proptest! {
        #[test]
        fn an_order_arrives_as_it_was_sent(order in order()) {
            prop_assert_eq!(CommandSpec::read(&mut order.to_bytes().as_slice()).unwrap(), order);
        }

        #[test]
        fn a_torn_order_is_none(order in order(), cut in any::<prop::sample::Index>()) {
            let bytes = order.to_bytes();
            let cut = cut.index(bytes.len());
            prop_assert!(CommandSpec::read(&mut &bytes[..cut]).is_err());
        }

        #[test]
        fn garbage_never_panics(order in order(), at in any::<prop::sample::Index>(), byte: u8, noise in vec(any::<u8>(), 0..200)) {
            let mut bytes = order.to_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = CommandSpec::read(&mut bytes.as_slice());
            let _ = CommandSpec::decode(SpecReader::new(&noise));
        }
    }

    #[test]
    fn an_order_of_another_version_is_none() {
        let mut bytes = vec![0; 100];
        bytes[0] = 1;
        assert!(CommandSpec::read(&mut bytes.as_slice()).is_err());
    }
}
