//! What the interface may ask of the machine.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use helve_exec::ConfinementLevel;
use helve_journal::Journal;
use helve_protocol::{FilePart, ModelName};
use helve_tui::{MachineAccess, UserCommandResult};
use helve_workspace::{GitStatus, GitStatusRequest, WorkspaceRoot, can_read_ignore_files};
use rustix::process::{Pid, Signal, kill_process_group};

use super::run::instruction::read_attachment;
use super::session_lookup::{changes, session_preview, sessions};
use super::session_opening::{PendingSessionHandle, SessionOpening};
use super::user_command::run_user_command;
use crate::programs::{ProgramFinder, first_word};
use crate::sandbox_policy;
use crate::sandbox_policy::program_finder;
use crate::setup::CliSetup;
use crate::user_models::{UserModels, block_on};
use crate::wiring::git_program;

/// So many files are offered.
const MAX_OFFERED_FILES: usize = 200_000;
/// What a command of the user's puts out beyond this is not shown.
const MAX_SUBPROCESS_OUTPUT_BYTES: u64 = 1 << 20;
/// A command that takes longer is ended.
const SUBPROCESS_TIMEOUT: Duration = Duration::from_secs(600);

pub(super) fn machine_for(
    setup: &CliSetup,
    models: &Arc<UserModels>,
    opening: &SessionOpening,
) -> MachineAccess {
    let root = setup.root.clone();
    let (at_files, at_branch, at_sessions) = (root.clone(), root.clone(), root.clone());
    let programs = program_finder(setup);
    let (for_branch, for_shell, for_edit) = (programs.clone(), programs.clone(), programs);
    let (at_shell, at_own) = (setup.cwd.clone(), setup.cwd.clone());
    let own = Arc::new(move |words: &[&str]| run_helve(words, &at_own));
    let (own_doctor, own_rules) = (own.clone(), own.clone());
    let (models, listed, door) = (models.clone(), models.clone(), opening.door.clone());
    let (session, journal) = (opening.session, Arc::new(setup.journal()));
    let blobs = journal.clone();
    let is_confined = setup.config().map_or(true, |config| config.settings.permissions.confine);
    let (all, looked_into, changed) = (setup.journal(), setup.journal(), setup.journal());
    let known: Mutex<HashMap<ModelName, Option<u64>>> = Mutex::default();
    MachineAccess {
        now: Arc::new(Instant::now),
        files: Arc::new(move || files(&at_files)),
        branch: Arc::new(move || branch(&at_branch, &for_branch)),
        sandbox: Arc::new(move || sandbox(is_confined).to_owned()),
        models: Arc::new(move || block_on(super::models_list::choices(&listed)).unwrap_or_default()),
        sessions: Arc::new(move || sessions(&all, session, &at_sessions)),
        glimpse: Arc::new(move |session| session_preview(&looked_into, session)),
        changes: Arc::new(move || changes(&changed, session)),
        shell: Arc::new(move |command, stop, tell| {
            run_user_command(command, &at_shell, &for_shell, stop, tell)
        }),
        remember: Arc::new(move |fact| remember(fact, &*own)),
        edit: Arc::new(move |text| edit(text, &for_edit)),
        attach: Arc::new(move |path| attach(path, &door)),
        look_back: Arc::new(move |before, bytes| {
            journal.look_back(session, before, bytes).map_err(|error| error.to_string())
        }),
        payload: Arc::new(move |blob| blobs.blob(session, blob).map_err(|error| error.to_string())),
        doctor: Arc::new(move || own_doctor(&["doctor"]).output),
        permissions: Arc::new(move || {
            let (mode, rules) =
                (own_rules(&["config", "show", "permissions"]), own_rules(&["config", "show", "permission"]));
            format!("{}\n{}", mode.output.trim_end(), rules.output)
        }),
        context: Arc::new(move |name| {
            let mut known = known.lock().ok()?;
            let find = || models.find(name.as_str()).ok().and_then(|target| target.facts.context);
            *known.entry(name.clone()).or_insert_with(find)
        }),
    }
}

fn sandbox(is_wanted: bool) -> &'static str {
    match sandbox_policy::probe_sandbox_if(is_wanted, None).level {
        ConfinementLevel::None => "not confined",
        ConfinementLevel::Landlock => "confined (landlock)",
        ConfinementLevel::Full => "confined",
    }
}

pub(super) fn is_dumb() -> bool {
    std::env::var("TERM").is_ok_and(|term| term == "dumb")
}

/// The files of a project that Git does not ignore.
fn files(root: &Path) -> Vec<String> {
    if !root.ancestors().all(can_read_ignore_files) {
        return Vec::new();
    }
    let is_folder = |entry: &ignore::DirEntry| entry.file_type().is_some_and(|kind| kind.is_dir());
    let walk = ignore::WalkBuilder::new(root)
        .hidden(false)
        .filter_entry(move |entry| {
            entry.file_name() != ".git" && (!is_folder(entry) || can_read_ignore_files(entry.path()))
        })
        .build();
    let files = walk.flatten().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let relative = |entry: ignore::DirEntry| Some(entry.path().strip_prefix(root).ok()?.to_str()?.to_owned());
    let mut files: Vec<String> = files.filter_map(relative).take(MAX_OFFERED_FILES).collect();
    files.sort_unstable();
    files
}

/// `main`, or `main*` if something is not committed. Nothing of the project is run for it.
fn branch(root: &Path, programs: &ProgramFinder) -> Option<String> {
    let root = WorkspaceRoot::named(root).ok()?;
    let user_ignores = ignore::gitignore::gitconfig_excludes_path();
    let question = GitStatusRequest {
        root: &root,
        git: git_program(programs),
        user_ignores: user_ignores.as_deref(),
        max_files: MAX_OFFERED_FILES,
    };
    let GitStatus { branch, is_dirty } = question.answer()?;
    let mark = if is_dirty == Some(true) { "*" } else { "" };
    Some(format!("{branch}{mark}"))
}

/// This program again.
fn run_helve(words: &[&str], cwd: &Path) -> UserCommandResult {
    let Ok(program) = sandbox_policy::own_program() else {
        return UserCommandResult {
            output: "helve can't find itself; start it by its path".to_owned(),
            is_well: false,
        };
    };
    let mut process = Command::new(program);
    process.args(words).current_dir(cwd).env("NO_COLOR", "1");
    bounded(process)
}

/// What a process puts out, for as long as it may take.
fn bounded(mut process: Command) -> UserCommandResult {
    process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut child = match process.spawn() {
        Ok(child) => child,
        Err(error) => {
            return UserCommandResult { output: format!("it can't be run: {error}"), is_well: false };
        }
    };
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let (over, is_over) = std::sync::mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        if let (Err(std::sync::mpsc::RecvTimeoutError::Timeout), Some(pid)) =
            (is_over.recv_timeout(SUBPROCESS_TIMEOUT), pid)
        {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    });
    let mut output = Vec::new();
    if let Some(mut pipe) = child.stdout.take() {
        let _ = pipe.by_ref().take(MAX_SUBPROCESS_OUTPUT_BYTES).read_to_end(&mut output);
        let _ = std::io::copy(&mut pipe, &mut std::io::sink());
    }
    let status = child.wait();
    drop(over);
    let _ = watch.join();
    let mut output = String::from_utf8_lossy(&output).into_owned();
    let is_well = status.as_ref().is_ok_and(std::process::ExitStatus::success);
    if let (false, Ok(status)) = (is_well, &status) {
        output.push_str(&format!("\n[{status}]"));
    }
    UserCommandResult { output, is_well }
}

fn remember(fact: &str, own: &dyn Fn(&[&str]) -> UserCommandResult) -> Result<String, String> {
    let input = serde_json::json!({ "text": fact, "scope": "project" }).to_string();
    let ran = own(&["tool", "remember", &input, "--yes"]);
    let told: serde_json::Value =
        serde_json::from_str(ran.output.lines().next().unwrap_or_default()).unwrap_or_default();
    let text = told
        .get("output")
        .and_then(|output| output.as_str())
        .unwrap_or("it could not be remembered")
        .to_owned();
    if ran.is_well { Ok(text) } else { Err(text) }
}

/// Lets the user write in their editor: the one that their environment names, never one that lies in the project.
fn edit(text: &str, programs: &ProgramFinder) -> Result<String, String> {
    let named = ["VISUAL", "EDITOR"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    let editor = named.unwrap_or_else(|| "vi".to_owned());
    let failed = |error: std::io::Error| format!("{editor} can't be used: {error}; set EDITOR to another");
    if let Some(word) = first_word(&editor) {
        let is_found = match word.contains('/') {
            true => word.starts_with('~') || programs.is_outside(Path::new(word)),
            false => programs.find(word).is_some(),
        };
        if !is_found {
            return Err(format!("{word} is not found outside the project; set EDITOR to another"));
        }
    }
    let mut file = tempfile::Builder::new().prefix("helve-").suffix(".md").tempfile().map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    // People put options behind the name.
    let mut process = Command::new(programs.shell());
    process.arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(file.path()).env("PATH", programs.path());
    match process.status().map_err(failed)? {
        status if status.success() => std::fs::read_to_string(file.path()).map_err(failed),
        status => Err(format!("{editor} ended with {status}; nothing was changed")),
    }
}

fn attach(path: &Path, door: &PendingSessionHandle) -> Result<FilePart, String> {
    let handle = block_on(door.handle()).ok().flatten().ok_or("the session could not be opened")?;
    let path: PathBuf = path.to_owned();
    let file = read_attachment(&path, &path).map_err(|failure| failure.to_string())?;
    let content = handle.keep(&file.content).map_err(|error| error.to_string())?;
    Ok(FilePart { name: file.name, media_type: file.media_type.to_owned(), content })
}
