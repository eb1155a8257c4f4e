//! `helve doctor`

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use helve_config::{ProjectTrust, Settings};
use helve_exec::{ConfinementLevel, SandboxProbe};
use helve_journal::{FileJournal, JournalFinding};
use helve_protocol::SessionId;
use rustix::fs::Access;
use serde::Serialize;

use crate::args;
use crate::console::{BAD, ConsoleOutput, DIM, GOOD, ProgressLine, WARN};
use crate::failure::{CliFailure, ProgramExit};
use crate::logs;
use crate::sandbox_policy;
use crate::sandbox_policy::program_finder;
use crate::setup::CliSetup;
use crate::text::{self, bytes, count, one_line, pad, thousands};
use crate::user_folders::ADMINISTRATOR_FILE;
use crate::user_models::{UserModels, block_on};
use crate::wiring::git_program;

/// Less than this is told: a session grows while it is used.
const LOW_DISK_SPACE_BYTES: u64 = 100 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum DoctorVerdict {
    Good,
    /// Worth knowing, and no reason to do anything.
    Note,
    Bad,
}

/// One line of what the doctor says.
#[derive(Debug, Serialize)]
struct DoctorCheck {
    about: &'static str,
    verdict: DoctorVerdict,
    says: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl DoctorCheck {
    fn new(about: &'static str, verdict: DoctorVerdict, says: impl Into<String>) -> DoctorCheck {
        DoctorCheck { about, verdict, says: says.into(), hint: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> DoctorCheck {
        self.hint = Some(hint.into());
        self
    }
}

pub(crate) fn run(
    options: &args::DoctorArgs,
    setup: &CliSetup,
    screen: &mut ConsoleOutput,
) -> Result<ProgramExit, CliFailure> {
    let journal = setup.journal();
    let mut checks = vec![program(), settings(setup)];
    checks.extend(variables());
    checks.extend([administrator(), project(setup)]);
    if options.repair {
        checks.extend(repair(&journal));
    }
    checks.extend([data_folder(setup.places.data()), catalogue(&journal)]);
    checks.extend(sessions(&journal));
    checks.extend([model(setup), git(setup), confinement(setup), withheld(setup), logs(setup), telemetry()]);
    let is_bad = checks.iter().any(|check| check.verdict == DoctorVerdict::Bad);
    if options.json {
        writeln!(screen, "{}", serde_json::to_string_pretty(&checks)?)?;
    } else {
        checks.iter().try_for_each(|check| print(check, screen))?;
    }
    Ok(if is_bad { ProgramExit::Error } else { ProgramExit::Success })
}

fn print(check: &DoctorCheck, screen: &mut ConsoleOutput) -> Result<(), CliFailure> {
    let (style, mark) = match check.verdict {
        DoctorVerdict::Good => (GOOD, "✓"),
        DoctorVerdict::Note => (WARN, "·"),
        DoctorVerdict::Bad => (BAD, "✗"),
    };
    writeln!(screen, "{style}{mark}{style:#} {} {}", pad(check.about, 13), one_line(&check.says))?;
    if let Some(hint) = &check.hint {
        writeln!(screen, "{}{DIM}{}{DIM:#}", " ".repeat(16), one_line(hint))?;
    }
    Ok(())
}

fn program() -> DoctorCheck {
    let version = env!("CARGO_PKG_VERSION");
    DoctorCheck::new(
        "helve",
        DoctorVerdict::Good,
        format!("{version} on {} {}", std::env::consts::OS, std::env::consts::ARCH),
    )
}

fn settings(setup: &CliSetup) -> DoctorCheck {
    if let Err(CliFailure::Explained { why, hint, .. }) = setup.trust_store() {
        return DoctorCheck::new("settings", DoctorVerdict::Bad, why).hint(hint);
    }
    match setup.problems() {
        None => DoctorCheck::new(
            "settings",
            DoctorVerdict::Good,
            format!("fine; yours are in {}", text::path(&setup.places.user_settings())),
        ),
        Some(problems) => {
            let first = problems.list().first().map(ToString::to_string).unwrap_or_default();
            let first = first.lines().next().unwrap_or_default().to_owned();
            DoctorCheck::new(
                "settings",
                DoctorVerdict::Bad,
                format!("{}; the first: {first}", count(problems.count(), "mistake", "mistakes")),
            )
            .hint("`helve config show` lists them all.")
        }
    }
}

/// A variable of ours with a name that we do not know is probably mistyped.
fn variables() -> Option<DoctorCheck> {
    let known = |name: &str| helve_config::ENVIRONMENT_VARIABLES.iter().any(|variable| variable.name == name);
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut unknown: Vec<String> = names.filter(|name| name.starts_with("HELVE_") && !known(name)).collect();
    unknown.sort();
    let says = format!("{} means nothing to Helve", unknown.join(", "));
    let hint = "`helve reference environment` lists those that do.";
    (!unknown.is_empty()).then(|| DoctorCheck::new("environment", DoctorVerdict::Note, says).hint(hint))
}

fn administrator() -> DoctorCheck {
    if Path::new(ADMINISTRATOR_FILE).exists() {
        DoctorCheck::new(
            "administrator",
            DoctorVerdict::Note,
            format!("{ADMINISTRATOR_FILE} sets rules that you can't loosen"),
        )
    } else {
        DoctorCheck::new(
            "administrator",
            DoctorVerdict::Good,
            format!("no rules ({ADMINISTRATOR_FILE} is not there)"),
        )
    }
}

fn project(setup: &CliSetup) -> DoctorCheck {
    let root = text::path(&setup.root);
    let Ok(config) = setup.config() else {
        return DoctorCheck::new("project", DoctorVerdict::Note, root.to_string());
    };
    let asks = count(config.restricted().len(), "setting that needs", "settings that need");
    match config.trust() {
        ProjectTrust::NothingToTrust => DoctorCheck::new("project", DoctorVerdict::Good, root.to_string()),
        ProjectTrust::Trusted => DoctorCheck::new("project", DoctorVerdict::Good, format!("{root}, trusted")),
        ProjectTrust::Untrusted => {
            DoctorCheck::new("project", DoctorVerdict::Note, format!("{root} has {asks} your trust; ignored"))
                .hint("`helve trust` shows them.")
        }
        ProjectTrust::Changed => DoctorCheck::new(
            "project",
            DoctorVerdict::Note,
            format!("{root} has {asks} your trust and changed; ignored"),
        )
        .hint("`helve trust` shows them."),
    }
}

fn data_folder(folder: &Path) -> DoctorCheck {
    let shown = text::path(folder);
    let elsewhere = "Give yourself access to it, or set HELVE_HOME to a folder of yours.";
    let existing = folder.ancestors().find(|path| path.exists()).unwrap_or(folder);
    let bad =
        |why: &str| DoctorCheck::new("data", DoctorVerdict::Bad, format!("{shown} {why}")).hint(elsewhere);
    if !existing.is_dir() {
        return bad(&format!("can't be a folder: {} is a file", text::path(existing)));
    }
    if rustix::fs::access(existing, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        return bad("can't be written to");
    }
    let others_may_write = |folder: &Path| folder.metadata().is_ok_and(|folder| folder.mode() & 0o002 != 0);
    if folder.is_dir() && others_may_write(folder) {
        let why = format!("{shown} can be written to by everybody on this machine");
        return DoctorCheck::new("data", DoctorVerdict::Bad, why).hint("Take that right away: chmod o-w.");
    }
    let free = rustix::fs::statvfs(existing).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    match free {
        Ok(free) if free < LOW_DISK_SPACE_BYTES => {
            DoctorCheck::new("data", DoctorVerdict::Bad, format!("{shown}: only {} free", bytes(free)))
                .hint("Free some space: what can't be stored is not done.")
        }
        Ok(free) => DoctorCheck::new("data", DoctorVerdict::Good, format!("{shown}, {} free", bytes(free))),
        Err(error) => DoctorCheck::new("data", DoctorVerdict::Note, format!("{shown}: {error}")),
    }
}

fn catalogue(journal: &FileJournal) -> DoctorCheck {
    let is_new = !journal.catalogue_path().exists();
    match journal.check_catalogue() {
        Ok(()) => DoctorCheck::new("catalogue", DoctorVerdict::Good, "fine"),
        Err(_) if is_new => {
            DoctorCheck::new("catalogue", DoctorVerdict::Good, "not needed yet; it is made from the sessions")
        }
        Err(why) => {
            DoctorCheck::new("catalogue", DoctorVerdict::Note, why).hint("It is made anew when it is needed.")
        }
    }
}

fn sessions(journal: &FileJournal) -> Vec<DoctorCheck> {
    let sessions = match journal.sessions() {
        Ok(sessions) => sessions,
        Err(error) => {
            return vec![
                DoctorCheck::new("sessions", DoctorVerdict::Bad, error.to_string()).hint(error.hint()),
            ];
        }
    };
    let mut progress = ProgressLine::new();
    let mut checks = Vec::new();
    for (done, session) in sessions.iter().enumerate() {
        progress.tell(&format!(
            "checking session {} of {}",
            thousands(done as u64 + 1),
            thousands(sessions.len() as u64)
        ));
        checks.extend(journal.examine(*session).iter().map(|finding| finding_of(*session, finding)));
    }
    drop(progress);
    let bad = checks.iter().filter(|check| check.verdict == DoctorVerdict::Bad).count();
    let total = count(sessions.len(), "session", "sessions");
    let summary = match bad {
        0 if sessions.is_empty() => DoctorCheck::new("sessions", DoctorVerdict::Good, "none yet"),
        0 => DoctorCheck::new(
            "sessions",
            DoctorVerdict::Good,
            format!("{total}, every event and payload checked"),
        ),
        _ => DoctorCheck::new(
            "sessions",
            DoctorVerdict::Bad,
            format!("{total}, {}", count(bad, "problem", "problems")),
        ),
    };
    checks.insert(0, summary);
    checks
}

fn finding_of(session: SessionId, finding: &JournalFinding) -> DoctorCheck {
    let says = |what: String| format!("{session}: {what}");
    match finding {
        JournalFinding::Damaged(damage) => DoctorCheck::new("", DoctorVerdict::Bad, says(damage.to_string()))
            .hint("`helve doctor --repair` keeps what can be read and sets the damaged file aside."),
        JournalFinding::ParentDamaged(damage) => DoctorCheck::new(
            "",
            DoctorVerdict::Bad,
            says(format!(
                "its own events are fine, but some of those it was forked from can't be read: {damage}"
            )),
        )
        .hint("`helve sessions show` shows the rest; going on needs its parent."),
        JournalFinding::Torn { bytes } => DoctorCheck::new(
            "",
            DoctorVerdict::Note,
            says(format!("{bytes} bytes of a line that was never finished")),
        ),
        JournalFinding::UnknownEvents { count: number } => DoctorCheck::new(
            "",
            DoctorVerdict::Note,
            says(format!(
                "{} of another version of Helve, kept but not shown",
                count(usize::try_from(*number).unwrap_or(usize::MAX), "event", "events")
            )),
        ),
        JournalFinding::Unreadable(helve_journal::JournalError::NotFound(_)) => {
            DoctorCheck::new("", DoctorVerdict::Bad, says("a folder without a log".to_owned()))
                .hint("Nothing is in it: `helve sessions delete ID` removes it.")
        }
        JournalFinding::Blob(error) | JournalFinding::Unreadable(error) => {
            DoctorCheck::new("", DoctorVerdict::Bad, says(error.to_string())).hint(error.hint())
        }
    }
}

/// Mends what can be mended, and tells what was done.
fn repair(journal: &FileJournal) -> Vec<DoctorCheck> {
    let mut checks = Vec::new();
    match journal.sweep() {
        Ok(0) => {}
        Ok(swept) => checks.push(DoctorCheck::new(
            "repair",
            DoctorVerdict::Good,
            format!("removed what {} left", count(swept, "killed process", "killed processes")),
        )),
        Err(error) => {
            checks.push(DoctorCheck::new("repair", DoctorVerdict::Bad, error.to_string()).hint(error.hint()))
        }
    }
    for session in journal.sessions().unwrap_or_default() {
        match journal.repair(session) {
            Ok(Some(repair)) => checks.push(DoctorCheck::new(
                "repair",
                DoctorVerdict::Good,
                format!(
                    "{session}: {} are out of the session now; the file as it was is {}",
                    bytes(repair.lost_bytes),
                    repair.kept_as.display()
                ),
            )),
            Ok(None) | Err(helve_journal::JournalError::NotFound(_)) => {}
            Err(helve_journal::JournalError::InUse { .. }) => {
                let says = format!("{session}: left alone, it is open in another process");
                checks.push(DoctorCheck::new("repair", DoctorVerdict::Note, says));
            }
            Err(error) => checks.push(
                DoctorCheck::new("repair", DoctorVerdict::Bad, format!("{session}: {error}"))
                    .hint(error.hint()),
            ),
        }
    }
    match journal.rebuild_catalogue() {
        Ok(listed) => checks.push(DoctorCheck::new(
            "repair",
            DoctorVerdict::Good,
            format!("catalogue made anew from {}", count(listed, "session", "sessions")),
        )),
        Err(error) => {
            checks.push(DoctorCheck::new("repair", DoctorVerdict::Bad, error.to_string()).hint(error.hint()))
        }
    }
    checks
}

/// Which model would be asked. Nothing is sent to it: that costs something.
fn model(setup: &CliSetup) -> DoctorCheck {
    let found = UserModels::new(setup).and_then(|models| {
        let main = block_on(async { models.main().await })??;
        models.check_names(&main)?;
        Ok(main)
    });
    match found {
        Ok(target) => DoctorCheck::new("model", DoctorVerdict::Good, target.name.to_string())
            .hint("`helve models probe` tries it out."),
        Err(CliFailure::Explained { what, why, hint, exit: ProgramExit::Error | ProgramExit::Usage }) => {
            DoctorCheck::new("model", DoctorVerdict::Bad, format!("{what}: {why}")).hint(hint)
        }
        // The settings have been told already.
        Err(CliFailure::Settings(_)) => {
            DoctorCheck::new("model", DoctorVerdict::Note, "the settings can't be read")
        }
        Err(CliFailure::Explained { why, hint, .. }) => {
            DoctorCheck::new("model", DoctorVerdict::Note, why).hint(hint)
        }
        Err(CliFailure::ClosedPipe) => DoctorCheck::new("model", DoctorVerdict::Note, "none"),
    }
}

/// How well the model's commands are confined here, and what would make that better.
fn confinement(setup: &CliSetup) -> DoctorCheck {
    if setup.config().is_ok_and(|config| !config.settings.permissions.confine) {
        let says = "off, by the setting permissions.confine; commands are asked about";
        return DoctorCheck::new("confinement", DoctorVerdict::Note, says);
    }
    let SandboxProbe { level, why, .. } = sandbox_policy::probe_sandbox(setup);
    let says = match level {
        ConfinementLevel::Full => {
            "full: commands write only in the project, see no secrets and have no network unasked"
        }
        ConfinementLevel::Landlock => {
            "partly, by Landlock: commands write only in the project and have no network unasked"
        }
        ConfinementLevel::None => "none: every command that is not allowed by a rule is asked about",
    };
    let reasons: Vec<String> = why.iter().map(ToString::to_string).collect();
    let says = match reasons.is_empty() {
        true => says.to_owned(),
        false => format!("{says} ({})", reasons.join("; ")),
    };
    let verdict = if level == ConfinementLevel::Full { DoctorVerdict::Good } else { DoctorVerdict::Note };
    let check = DoctorCheck::new("confinement", verdict, says);
    match why.first() {
        Some(shortfall) => check.hint(shortfall.remedy()),
        None => check,
    }
}

/// Which variables of the environment the model's commands don't get.
fn withheld(setup: &CliSetup) -> DoctorCheck {
    // Settings that can't be read name no more variables, but the rest is withheld all the same.
    let (settings, is_known) = match setup.config() {
        Ok(config) => (config.settings.clone(), true),
        Err(_) => (Settings::default(), false),
    };
    let names = crate::credentials::withheld_variables(&settings);
    let names: Vec<String> = names.iter().map(|name| one_line(&name.to_string_lossy())).collect();
    let says = match names.is_empty() {
        true => "none of this environment looks like a secret".to_owned(),
        false => format!("not given to confined commands: {}", names.join(", ")),
    };
    if !is_known {
        return DoctorCheck::new("withheld", DoctorVerdict::Note, says).hint(
            "The settings can't be read, so this leaves out what they say: key_env of providers, and shell.env.",
        );
    }
    let check = DoctorCheck::new("withheld", DoctorVerdict::Good, says);
    match names.is_empty() {
        true => check,
        false => check.hint("The setting shell.env passes those that you name."),
    }
}

fn git(setup: &CliSetup) -> DoctorCheck {
    let version = git_program(&program_finder(setup)).and_then(|git| git.version());
    match version {
        Some(version) => DoctorCheck::new("git", DoctorVerdict::Good, version),
        None => DoctorCheck::new("git", DoctorVerdict::Note, "not found")
            .hint("Helve works without it; some things are better with it."),
    }
}

fn logs(setup: &CliSetup) -> DoctorCheck {
    let folder = setup.places.logs();
    let says = format!(
        "{} (safe to share) and {} (yours) in {}",
        logs::PUBLIC_LOG_FILE,
        logs::RESTRICTED_LOG_FILE,
        text::path(&folder)
    );
    // The command that runs now has said something already, unless only errors are wanted.
    let existing = folder.ancestors().find(|path| path.exists()).unwrap_or(&folder);
    if existing.is_dir() && rustix::fs::access(existing, Access::WRITE_OK).is_ok() {
        return DoctorCheck::new("logs", DoctorVerdict::Good, says);
    }
    DoctorCheck::new(
        "logs",
        DoctorVerdict::Note,
        format!("nothing is written: {} can't be written to", text::path(&folder)),
    )
}

fn telemetry() -> DoctorCheck {
    DoctorCheck::new("telemetry", DoctorVerdict::Good, "none: nothing leaves this machine unasked")
}
