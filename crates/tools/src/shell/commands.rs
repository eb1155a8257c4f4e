//! How the commands of the shell tool are run: with which program, where, and how the next one knows where the last one
//! went.
//!
//! Each command is a shell of its own, so the folder that it ends in must be told to the next. The shell writes it into a
//! file, twice over: a function `cd` does so at once, and a trap does so at the end. One alone is not enough. A trap is lost
//! when the command sets another, goes on as another program (`exec`), or is killed; the function knows nothing of `pushd`,
//! or when the command has a `cd` of its own. A subshell has another process id than `$$` and no trap, so its folder is never
//! taken for the command's.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use helve_exec::{
    CommandExitStatus, CommandInput, CommandLimits, CommandOutcome, CommandOutputChunk, CommandSpec,
    WindowSize, start,
};
use tokio::time::timeout;

use crate::shell::bounded_output::HeadTailBuffer;
use crate::shell::clean_output::OutputCleaner;
use crate::shell::end_text;
use crate::shell::git_credentials::{CheckedRepository, REDIRECTING_GIT_VARIABLES, check_repository};
use crate::shell::sandbox_policy::{ProgramCredential, SandboxPolicy};
use crate::shell::scratch::ScratchFolder;
use crate::shell::survey::ProjectSurvey;
use crate::{ToolContext, ToolFailure};

/// A line of its own would shift the numbers in the messages of the shell. Its arguments: the command, the folder of its
/// sheet, the startup script or nothing.
const SHELL_FRAME_SCRIPT: &str = concat!(
    // One stream, so that what is said stands in the order in which it was said.
    r#"exec 2>&1; __helve_command=$1 __helve_sheet=$2 __helve_startup=$3; shift 3; "#,
    r#"__helve_here() { { read -r __helve_pid __helve_rest </proc/self/stat && [ "$__helve_pid" = "$$" ] "#,
    r#"&& pwd -P >|"$__helve_sheet/folder"; } 2>/dev/null || :; }; "#,
    // There, `command` means programs only, unless it is told otherwise.
    r#"cd() { [ -z "${ZSH_VERSION-}" ] || setopt local_options posix_builtins; command cd "$@" && __helve_here; }; "#,
    // Wherever that goes, the command begins where the last one ended.
    r#"__helve_at=$PWD; [ -z "$__helve_startup" ] || { . "$__helve_startup" >/dev/null 2>&1 </dev/null; command cd "$__helve_at"; }; "#,
    r#"trap '{ pwd -P >|"$__helve_sheet/folder"; } 2>/dev/null || :' EXIT; "#,
    r#"eval "$__helve_command""#,
);

/// Sources the startup script, and notes the code if that comes back.
const STARTUP_TRIAL_SCRIPT: &str = r#"__helve_sheet=$2; . "$1"; printf %s "$?" >|"$__helve_sheet/code""#;
const STARTUP_TRIAL_TIMEOUT: Duration = Duration::from_secs(60);
/// What is kept of what the startup script prints.
const MAX_STARTUP_OUTPUT_BYTES: usize = 2 << 10;
/// A folder's path is no longer.
const MAX_FOLDER_PATH_BYTES: u64 = 64 << 10;

/// No file that anybody means is larger.
const MAX_COMMAND_FILE_BYTES: u64 = 64 << 30;

const COMMAND_TERMINAL_SIZE: WindowSize = WindowSize { rows: 40, columns: 120 };

/// How commands are run.
#[derive(Clone, Debug)]
pub struct CommandSettings {
    /// The program that keeps a command: Helve itself.
    pub keeper: PathBuf,
    /// The shell: one that understands what `sh` does.
    pub program: OsString,
    /// A script that each shell reads first, as an absolute path.
    pub startup: Option<PathBuf>,
    /// The whole environment of the commands.
    pub env: Vec<(OsString, OsString)>,
    /// The variables in it that confined commands don't get, because they hold secrets.
    pub withheld: Vec<OsString>,
    /// How many processes one command may have at once.
    pub processes: u32,
    /// How much memory for data each process may have.
    pub memory: Option<u64>,
    /// Where small files can be for as long as a command runs.
    pub temporary: PathBuf,
    /// What confines the commands.
    pub fence: Option<SandboxPolicy>,
    /// Programs that leave the sandbox, or get credentials.
    pub outside: OutsidePrograms,
}

/// Finds a program by its name.
pub type ProgramLookup = Arc<dyn Fn(&str) -> Option<PathBuf> + Send + Sync>;

/// Programs outside of all that a project can write, which could have put another one by the same name on the `PATH`.
#[derive(Clone)]
pub struct OutsidePrograms {
    /// Finds one by its name.
    pub find: ProgramLookup,
    /// The `PATH` without the places that a project can write.
    pub path: OsString,
}

impl Default for OutsidePrograms {
    /// None at all.
    fn default() -> OutsidePrograms {
        OutsidePrograms { find: Arc::new(|_| None), path: OsString::new() }
    }
}

impl std::fmt::Debug for OutsidePrograms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OutsidePrograms").field("path", &self.path).finish_non_exhaustive()
    }
}

/// What a command is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandConnection {
    Pipes,
    Terminal,
}

impl CommandSettings {
    pub(crate) fn order(
        &self,
        command: &str,
        at: &Path,
        sheet: &ShellNotesFolder,
        startup: Option<&Path>,
    ) -> CommandSpec {
        let startup = startup.unwrap_or(Path::new("")).as_os_str();
        self.shell(
            &[SHELL_FRAME_SCRIPT.as_ref(), &self.program, command.as_ref(), sheet.path().as_ref(), startup],
            at,
        )
    }

    /// The order, confined as this machine can, and as the call was allowed.
    pub(crate) fn confined(
        &self,
        mut order: CommandSpec,
        sheet: &ShellNotesFolder,
        scratch: &Path,
        survey: &ProjectSurvey,
        context: &ToolContext,
    ) -> CommandSpec {
        let fence = self.fence.as_ref();
        order.confinement = fence.and_then(|fence| fence.around(context, scratch, sheet.path(), survey));
        if let (Some(confinement), Some(fence)) = (&order.confinement, fence) {
            let folder = if confinement.temporary.is_some() { Path::new("/tmp") } else { scratch };
            let credential = fence.credential(context);
            let is_given = |name: &OsStr| {
                credential
                    .is_some_and(|credential| credential.variables.iter().any(|own| name == own.as_str()))
            };
            order.env.retain(|(name, _)| is_given(name) || !self.withheld.contains(name));
            let settings = credential.map(|given| given.settings.as_slice()).unwrap_or_default();
            // Of two that say the same, only one may be there. Some programs read their variables in small and in capital letters.
            let is_in = |all: &[(OsString, OsString)], name: &OsStr| {
                all.iter().any(|(own, _)| own.eq_ignore_ascii_case(name))
            };
            let own = [("TMPDIR".into(), folder.into())];
            let own = own.into_iter().chain(fence.environment(context.granted.network));
            let mut own: Vec<(OsString, OsString)> =
                own.filter(|(name, _)| !is_given(name) && !is_in(settings, name)).collect();
            own.extend_from_slice(settings);
            let has_agent = credential.is_some_and(|credential| credential.agent);
            order.env.retain(|(name, _)| (has_agent || name != "SSH_AUTH_SOCK") && !is_in(&own, name));
            order.env.extend(own);
        }
        order
    }

    /// The order for a program that is run without a shell, because it is given what nobody else shall have: credentials, or a
    /// way out of the sandbox. It is found where no project can write.
    pub(crate) fn alone(
        &self,
        words: &[String],
        at: &Path,
        scratch: &Path,
        context: &ToolContext,
    ) -> Result<CommandSpec, ToolFailure> {
        let (name, arguments) =
            words.split_first().ok_or_else(|| ToolFailure("There is no command.".to_owned()))?;
        let missing = |what: &str| {
            ToolFailure(format!(
                "The command was not run: {name} was not found outside the project, so it can't {what}."
            ))
        };
        let mut order = self.shell(&[], at);
        set_variable(&mut order.env, "PATH", &self.outside.path);
        if context.granted.credentials.is_none() {
            let program = (self.outside.find)(name).ok_or_else(|| missing("leave the sandbox"))?;
            // What commands have as `/tmp` is not there outside.
            let cwd = if at.is_dir() { at.to_owned() } else { context.root.clone() };
            let args = arguments.iter().map(OsString::from).collect();
            order.env.retain(|(name, _)| !self.withheld.contains(name));
            return Ok(CommandSpec { program: program.into(), args, cwd, ..order });
        }
        let fence = self.fence.as_ref();
        let credential =
            fence.and_then(|fence| fence.credential(context)).ok_or_else(|| missing("have credentials"))?;
        let home = fence.and_then(|fence| fence.home.as_deref());
        let found = Obstacles { at, scratch, root: &context.root }.check(words, credential, home);
        let ceiling = found.map_err(|obstacle| {
            let program = &credential.program;
            ToolFailure(format!(
                "The command was not run: {obstacle}, which could make {program} hand the user's credentials on. The user can run \
                 it, or change that."
            ))
        })?;
        if let Some(ceiling) = ceiling {
            order.env.retain(|(name, _)| !REDIRECTING_GIT_VARIABLES.iter().any(|own| name == own));
            set_variable(&mut order.env, "GIT_CEILING_DIRECTORIES", ceiling.as_os_str());
        }
        let args = in_parts(words).iter().skip(1).map(OsString::from).collect();
        Ok(CommandSpec { program: credential.path.clone().into(), args, ..order })
    }

    fn shell(&self, args: &[&OsStr], at: &Path) -> CommandSpec {
        CommandSpec {
            program: self.program.clone(),
            args: std::iter::once("-c".as_ref()).chain(args.iter().copied()).map(OsStr::to_owned).collect(),
            cwd: at.to_owned(),
            env: self.env.clone(),
            input: CommandInput::Nothing,
            terminal: None,
            limits: CommandLimits {
                processes: Some(self.processes),
                memory: self.memory,
                file_size: Some(MAX_COMMAND_FILE_BYTES),
                ..CommandLimits::default()
            },
            confinement: None,
            keeper: self.keeper.clone(),
        }
    }

    /// Runs the startup script by itself, once, to see whether it can be read by every shell, and what it prints.
    pub(crate) async fn try_startup(
        &self,
        at: &Path,
        scratch: &Path,
        survey: &ProjectSurvey,
        context: &ToolContext,
    ) -> Result<StartupResult, ToolFailure> {
        let Some(script) = &self.startup else { return Ok(StartupResult::default()) };
        let sheet = ShellNotesFolder::new(&self.temporary)?;
        let args =
            [OsStr::new(STARTUP_TRIAL_SCRIPT), &self.program, script.as_os_str(), sheet.path().as_os_str()];
        let order = self.confined(self.shell(&args, at), &sheet, scratch, survey, context);
        let mut running = start(order).await.map_err(|error| end_text::not_run(&error))?;
        let (mut cleaner, mut kept) = (
            OutputCleaner::default(),
            HeadTailBuffer::new(MAX_STARTUP_OUTPUT_BYTES, MAX_STARTUP_OUTPUT_BYTES),
        );
        let in_time = timeout(STARTUP_TRIAL_TIMEOUT, async {
            while let Some(CommandOutputChunk::Stdout(piece) | CommandOutputChunk::Stderr(piece)) =
                running.next().await
            {
                cleaner.push(&piece, |text| kept.take(text));
            }
        });
        if in_time.await.is_err() {
            running.stop();
        }
        let ended = running.wait().await;
        cleaner.flush(|text| kept.take(text));
        let (fits, how) = judge(sheet.code().as_deref(), ended);
        let said = end_text::lines(kept.into_text());
        let name = script.display();
        let note = match (said.is_empty(), how) {
            (true, None) => None,
            (false, None) => Some(format!("[the startup script {name} says:]\n{said}")),
            (_, Some(how)) => Some(format!("{said}[the startup script {name} {how}]\n")),
        };
        Ok(StartupResult { script: fits.then(|| script.clone()), note })
    }
}

fn set_variable(env: &mut Vec<(OsString, OsString)>, name: &str, value: &OsStr) {
    env.retain(|(own, _)| own != name);
    env.push((name.into(), value.to_owned()));
}

/// Where a program looks for settings when it is given credentials.
struct Obstacles<'a> {
    at: &'a Path,
    /// What it has as `/tmp`.
    scratch: &'a Path,
    root: &'a Path,
}

impl Obstacles<'_> {
    /// Looks for whatever could make a program hand credentials on, and says it. For git, gives the folder above which it must
    /// not look for a repository.
    fn check(
        &self,
        words: &[String],
        credential: &ProgramCredential,
        home: Option<&Path>,
    ) -> Result<Option<PathBuf>, String> {
        let place = |path: &Path| path.canonicalize().map_err(|_| format!("{} is not there", path.display()));
        let root = place(self.root)?;
        // A folder of the same name may be another one for commands.
        let at = place(self.at).ok().filter(|at| at.starts_with(&root));
        let at = at.ok_or_else(|| format!("{} is outside the project", self.at.display()))?;
        if let Some(planted) = self.planted_above(&root) {
            return Err(format!("a command has made {}", planted.display()));
        }
        if let Some(obstacle) = credential.obstacle.zip(home).and_then(|(find, home)| find(&at, &root, home))
        {
            return Err(obstacle);
        }
        if credential.program != "git" {
            return Ok(None);
        }
        match check_repository(words, &at, &root) {
            CheckedRepository::Fine { ceiling } => Ok(Some(ceiling)),
            CheckedRepository::Refused(obstacle) => Err(obstacle),
        }
    }

    /// Settings that a command has put into its own `/tmp`, above a project that lies in the real one.
    fn planted_above(&self, root: &Path) -> Option<PathBuf> {
        const SETTINGS: [&str; 6] = [".git", "HEAD", ".npmrc", "package.json", "node_modules", ".cargo"];
        let above = root.ancestors().skip(1).filter_map(|folder| folder.strip_prefix("/tmp").ok());
        let planted = above.flat_map(|inside| SETTINGS.map(|name| inside.join(name)));
        let mut planted = planted.filter(|inside| self.scratch.join(inside).symlink_metadata().is_ok());
        planted.next().map(|inside| Path::new("/tmp").join(inside))
    }
}

/// Git's own words for `git submodule`, which is a script for a shell otherwise. Nothing that it fetches is gone into.
fn in_parts(words: &[String]) -> Vec<String> {
    match words {
        [git, submodule, rest @ ..] if git == "git" && submodule == "submodule" => {
            [&[git.clone(), "submodule--helper".to_owned()], rest].concat()
        }
        [git, fetch, rest @ ..] if git == "git" && fetch == "fetch" => {
            [&[git.clone(), fetch.clone(), "--no-recurse-submodules".to_owned()], rest].concat()
        }
        words => words.to_vec(),
    }
}

/// Whether the script can be read by a shell that shall go on after it, and what is wrong with it.
fn judge(code: Option<&str>, ended: CommandOutcome) -> (bool, Option<String>) {
    match (code, ended.status) {
        (Some("0"), _) => (true, None),
        (Some(code), _) => (true, Some(format!("failed with exit code {code}; commands run all the same"))),
        (None, CommandExitStatus::Exited(code)) if ended.cause == helve_exec::CommandEndCause::Completed => {
            (false, Some(format!("ended its shell with exit code {code}, so commands run without it")))
        }
        (None, _) => (false, Some("did not come to its end, so commands run without it".to_owned())),
    }
}

/// What became of the startup script.
#[derive(Debug, Default)]
pub(crate) struct StartupResult {
    /// Read by every shell.
    pub(crate) script: Option<PathBuf>,
    /// What is told about it, once.
    pub(crate) note: Option<String>,
}

impl CommandConnection {
    pub(crate) fn of(terminal: bool) -> CommandConnection {
        if terminal { CommandConnection::Terminal } else { CommandConnection::Pipes }
    }

    /// The order on a terminal, if that is wanted. Nobody turns the pages of a pager there.
    pub(crate) fn of_order(self, mut order: CommandSpec) -> CommandSpec {
        if self == CommandConnection::Terminal {
            order.terminal = Some(COMMAND_TERMINAL_SIZE);
            let ours = [("TERM", "xterm-256color"), ("PAGER", "cat"), ("GIT_PAGER", "cat")];
            order.env.retain(|(name, _)| !ours.iter().any(|(own, _)| name == own));
            order.env.extend(ours.map(|(name, value)| (name.into(), value.into())));
        }
        order
    }
}

/// A folder where one shell leaves notes for us.
#[derive(Debug)]
pub(crate) struct ShellNotesFolder(ScratchFolder);

impl ShellNotesFolder {
    pub(crate) fn new(temporary: &Path) -> Result<ShellNotesFolder, ToolFailure> {
        ScratchFolder::new(temporary).map(ShellNotesFolder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn code(&self) -> Option<String> {
        fs::read_to_string(self.path().join("code")).ok()
    }

    /// Where the shell was last. A line that is not whole was cut by a kill, and means nothing.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        let mut bytes = read_up_to(&self.path().join("folder"), MAX_FOLDER_PATH_BYTES).ok()?;
        (bytes.pop() == Some(b'\n') && bytes.first() == Some(&b'/')).then(|| OsString::from_vec(bytes).into())
    }
}

/// The beginning of a file. The command could have put anything else in its place.
pub(crate) fn read_up_to(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(fs::File::open(path)?, most), &mut bytes)?;
    Ok(bytes)
}

/// The folder that commands work in: where the last one went.
#[derive(Debug, Default)]
pub(crate) struct WorkingFolder(Mutex<Option<PathBuf>>);

impl WorkingFolder {
    pub(crate) fn set(&self, folder: PathBuf) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(folder);
    }

    /// Where the next one works, if that folder is still there.
    pub(crate) fn now(&self, root: &Path, scratch: Option<&Path>) -> PathBuf {
        let folder = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        folder.clone().filter(|folder| is_there(folder, scratch)).unwrap_or_else(|| root.to_owned())
    }

    /// Where the next one works, and the folder that would have been it but is gone.
    pub(crate) fn get(&self, root: &Path, scratch: &Path) -> (PathBuf, Option<PathBuf>) {
        let mut folder = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match folder.take() {
            Some(there) if is_there(&there, Some(scratch)) => {
                *folder = Some(there.clone());
                (there, None)
            }
            gone => (root.to_owned(), gone),
        }
    }
}

/// Whether a command finds a folder. What it has as `/tmp` lies somewhere else.
fn is_there(folder: &Path, scratch: Option<&Path>) -> bool {
    let own = folder.strip_prefix("/tmp").ok().zip(scratch);
    folder.is_dir() || own.is_some_and(|(inside, scratch)| scratch.join(inside).is_dir())
}

/// Takes note of where a command went, however it ends: also when nobody waits for it any more.
pub(crate) struct FolderFollower<'a> {
    sheet: Option<ShellNotesFolder>,
    folder: &'a WorkingFolder,
}

impl<'a> FolderFollower<'a> {
    pub(crate) fn new(sheet: ShellNotesFolder, folder: &'a WorkingFolder) -> FolderFollower<'a> {
        FolderFollower { sheet: Some(sheet), folder }
    }

    /// Wherever it goes, nobody follows.
    pub(crate) fn leave(mut self) -> Option<ShellNotesFolder> {
        self.sheet.take()
    }
}

impl Drop for FolderFollower<'_> {
    fn drop(&mut self) {
        if let Some(folder) = self.sheet.as_ref().and_then(ShellNotesFolder::folder) {
            self.folder.set(folder);
        }
    }
}
