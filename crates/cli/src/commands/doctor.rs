//! `helve doctor`

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use helve_config::Trust;
use helve_exec::{Level, Probe};
use helve_journal::{FileJournal, Finding};
use helve_protocol::SessionId;
use rustix::fs::Access;
use serde::Serialize;

use crate::args;
use crate::confine;
use crate::failure::{Exit, Failure};
use crate::logs;
use crate::models::{Models, block_on};
use crate::places::ADMINISTRATOR_FILE;
use crate::programs::Programs;
use crate::screen::{BAD, DIM, GOOD, Progress, Screen, WARN};
use crate::setup::Setup;
use crate::text::{self, bytes, count, one_line, pad, thousands};
use crate::wiring::git_program;

/// Less than this is told: a session grows while it is used.
const LITTLE_SPACE: u64 = 100 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Good,
    /// Worth knowing, and no reason to do anything.
    Note,
    Bad,
}

/// One line of what the doctor says.
#[derive(Debug, Serialize)]
struct Check {
    about: &'static str,
    verdict: Verdict,
    says: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Check {
    fn new(about: &'static str, verdict: Verdict, says: impl Into<String>) -> Check {
        Check { about, verdict, says: says.into(), hint: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> Check {
        self.hint = Some(hint.into());
        self
    }
}

pub(crate) fn run(options: &args::Doctor, setup: &Setup, screen: &mut Screen) -> Result<Exit, Failure> {
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
    let is_bad = checks.iter().any(|check| check.verdict == Verdict::Bad);
    if options.json {
        writeln!(screen, "{}", serde_json::to_string_pretty(&checks)?)?;
    } else {
        checks.iter().try_for_each(|check| print(check, screen))?;
    }
    Ok(if is_bad { Exit::Error } else { Exit::Fine })
}

fn print(check: &Check, screen: &mut Screen) -> Result<(), Failure> {
    let (style, mark) = match check.verdict {
        Verdict::Good => (GOOD, "✓"),
        Verdict::Note => (WARN, "·"),
        Verdict::Bad => (BAD, "✗"),
    };
    writeln!(screen, "{style}{mark}{style:#} {} {}", pad(check.about, 13), one_line(&check.says))?;
    if let Some(hint) = &check.hint {
        writeln!(screen, "{}{DIM}{}{DIM:#}", " ".repeat(16), one_line(hint))?;
    }
    Ok(())
}

fn program() -> Check {
    let version = env!("CARGO_PKG_VERSION");
    Check::new(
        "helve",
        Verdict::Good,
        format!("{version} on {} {}", std::env::consts::OS, std::env::consts::ARCH),
    )
}

fn settings(setup: &Setup) -> Check {
    if let Err(Failure::Told { why, hint, .. }) = setup.trust_store() {
        return Check::new("settings", Verdict::Bad, why).hint(hint);
    }
    match setup.problems() {
        None => Check::new(
            "settings",
            Verdict::Good,
            format!("fine; yours are in {}", text::path(&setup.places.user_settings())),
        ),
        Some(problems) => {
            let first = problems.list().first().map(ToString::to_string).unwrap_or_default();
            let first = first.lines().next().unwrap_or_default().to_owned();
            Check::new(
                "settings",
                Verdict::Bad,
                format!("{}; the first: {first}", count(problems.count(), "mistake", "mistakes")),
            )
            .hint("`helve config show` lists them all.")
        }
    }
}

/// A variable of ours with a name that we do not know is probably mistyped.
fn variables() -> Option<Check> {
    let known = |name: &str| helve_config::VARIABLES.iter().any(|variable| variable.name == name);
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut unknown: Vec<String> = names.filter(|name| name.starts_with("HELVE_") && !known(name)).collect();
    unknown.sort();
    let says = format!("{} means nothing to Helve", unknown.join(", "));
    let hint = "`helve reference environment` lists those that do.";
    (!unknown.is_empty()).then(|| Check::new("environment", Verdict::Note, says).hint(hint))
}

fn administrator() -> Check {
    if Path::new(ADMINISTRATOR_FILE).exists() {
        Check::new(
            "administrator",
            Verdict::Note,
            format!("{ADMINISTRATOR_FILE} sets rules that you can't loosen"),
        )
    } else {
        Check::new("administrator", Verdict::Good, format!("no rules ({ADMINISTRATOR_FILE} is not there)"))
    }
}

fn project(setup: &Setup) -> Check {
    let root = text::path(&setup.root);
    let Ok(config) = setup.config() else { return Check::new("project", Verdict::Note, root.to_string()) };
    let asks = count(config.restricted().len(), "setting that needs", "settings that need");
    match config.trust() {
        Trust::NothingToTrust => Check::new("project", Verdict::Good, root.to_string()),
        Trust::Trusted => Check::new("project", Verdict::Good, format!("{root}, trusted")),
        Trust::Untrusted => {
            Check::new("project", Verdict::Note, format!("{root} has {asks} your trust; ignored"))
                .hint("`helve trust` shows them.")
        }
        Trust::Changed => {
            Check::new("project", Verdict::Note, format!("{root} has {asks} your trust and changed; ignored"))
                .hint("`helve trust` shows them.")
        }
    }
}

fn data_folder(folder: &Path) -> Check {
    let shown = text::path(folder);
    let elsewhere = "Give yourself access to it, or set HELVE_HOME to a folder of yours.";
    let existing = folder.ancestors().find(|path| path.exists()).unwrap_or(folder);
    let bad = |why: &str| Check::new("data", Verdict::Bad, format!("{shown} {why}")).hint(elsewhere);
    if !existing.is_dir() {
        return bad(&format!("can't be a folder: {} is a file", text::path(existing)));
    }
    if rustix::fs::access(existing, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        return bad("can't be written to");
    }
    let others_may_write = |folder: &Path| folder.metadata().is_ok_and(|folder| folder.mode() & 0o002 != 0);
    if folder.is_dir() && others_may_write(folder) {
        let why = format!("{shown} can be written to by everybody on this machine");
        return Check::new("data", Verdict::Bad, why).hint("Take that right away: chmod o-w.");
    }
    let free = rustix::fs::statvfs(existing).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    match free {
        Ok(free) if free < LITTLE_SPACE => {
            Check::new("data", Verdict::Bad, format!("{shown}: only {} free", bytes(free)))
                .hint("Free some space: what can't be stored is not done.")
        }
        Ok(free) => Check::new("data", Verdict::Good, format!("{shown}, {} free", bytes(free))),
        Err(error) => Check::new("data", Verdict::Note, format!("{shown}: {error}")),
    }
}

fn catalogue(journal: &FileJournal) -> Check {
    let is_new = !journal.catalogue_path().exists();
    match journal.check_catalogue() {
        Ok(()) => Check::new("catalogue", Verdict::Good, "fine"),
        Err(_) if is_new => {
            Check::new("catalogue", Verdict::Good, "not needed yet; it is made from the sessions")
        }
        Err(why) => Check::new("catalogue", Verdict::Note, why).hint("It is made anew when it is needed."),
    }
}

fn sessions(journal: &FileJournal) -> Vec<Check> {
    let sessions = match journal.sessions() {
        Ok(sessions) => sessions,
        Err(error) => {
            return vec![Check::new("sessions", Verdict::Bad, error.to_string()).hint(error.hint())];
        }
    };
    let mut progress = Progress::new();
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
    let bad = checks.iter().filter(|check| check.verdict == Verdict::Bad).count();
    let total = count(sessions.len(), "session", "sessions");
    let summary = match bad {
        0 if sessions.is_empty() => Check::new("sessions", Verdict::Good, "none yet"),
        0 => Check::new("sessions", Verdict::Good, format!("{total}, every event and payload checked")),
        _ => Check::new("sessions", Verdict::Bad, format!("{total}, {}", count(bad, "problem", "problems"))),
    };
    checks.insert(0, summary);
    checks
}

fn finding_of(session: SessionId, finding: &Finding) -> Check {
    let says = |what: String| format!("{session}: {what}");
    match finding {
        Finding::Damaged(damage) => Check::new("", Verdict::Bad, says(damage.to_string()))
            .hint("`helve doctor --repair` keeps what can be read and sets the damaged file aside."),
        Finding::ParentDamaged(damage) => Check::new(
            "",
            Verdict::Bad,
            says(format!(
                "its own events are fine, but some of those it was forked from can't be read: {damage}"
            )),
        )
        .hint("`helve sessions show` shows the rest; going on needs its parent."),
        Finding::Torn { bytes } => {
            Check::new("", Verdict::Note, says(format!("{bytes} bytes of a line that was never finished")))
        }
        Finding::UnknownEvents { count: number } => Check::new(
            "",
            Verdict::Note,
            says(format!(
                "{} of another version of Helve, kept but not shown",
                count(usize::try_from(*number).unwrap_or(usize::MAX), "event", "events")
            )),
        ),
        Finding::Unreadable(helve_journal::Error::NotFound(_)) => {
            Check::new("", Verdict::Bad, says("a folder without a log".to_owned()))
                .hint("Nothing is in it: `helve sessions delete ID` removes it.")
        }
        Finding::Blob(error) | Finding::Unreadable(error) => {
            Check::new("", Verdict::Bad, says(error.to_string())).hint(error.hint())
        }
    }
}

/// Mends what can be mended, and tells what was done.
fn repair(journal: &FileJournal) -> Vec<Check> {
    let mut checks = Vec::new();
    match journal.sweep() {
        Ok(0) => {}
        Ok(swept) => checks.push(Check::new(
            "repair",
            Verdict::Good,
            format!("removed what {} left", count(swept, "killed process", "killed processes")),
        )),
        Err(error) => checks.push(Check::new("repair", Verdict::Bad, error.to_string()).hint(error.hint())),
    }
    for session in journal.sessions().unwrap_or_default() {
        match journal.repair(session) {
            Ok(Some(repair)) => checks.push(Check::new(
                "repair",
                Verdict::Good,
                format!(
                    "{session}: {} are out of the session now; the file as it was is {}",
                    bytes(repair.lost_bytes),
                    repair.kept_as.display()
                ),
            )),
            Ok(None) | Err(helve_journal::Error::NotFound(_)) => {}
            Err(helve_journal::Error::InUse { .. }) => {
                let says = format!("{session}: left alone, it is open in another process");
                checks.push(Check::new("repair", Verdict::Note, says));
            }
            Err(error) => checks
                .push(Check::new("repair", Verdict::Bad, format!("{session}: {error}")).hint(error.hint())),
        }
    }
    match journal.rebuild_catalogue() {
        Ok(listed) => checks.push(Check::new(
            "repair",
            Verdict::Good,
            format!("catalogue made anew from {}", count(listed, "session", "sessions")),
        )),
        Err(error) => checks.push(Check::new("repair", Verdict::Bad, error.to_string()).hint(error.hint())),
    }
    checks
}

/// Which model would be asked. Nothing is sent to it: that costs something.
fn model(setup: &Setup) -> Check {
    let found = Models::new(setup).and_then(|models| {
        let main = block_on(async { models.main().await })??;
        models.check_names(&main)?;
        Ok(main)
    });
    match found {
        Ok(target) => Check::new("model", Verdict::Good, target.name.to_string())
            .hint("`helve models probe` tries it out."),
        Err(Failure::Told { what, why, hint, exit: Exit::Error | Exit::Usage }) => {
            Check::new("model", Verdict::Bad, format!("{what}: {why}")).hint(hint)
        }
        // The settings have been told already.
        Err(Failure::Settings(_)) => Check::new("model", Verdict::Note, "the settings can't be read"),
        Err(Failure::Told { why, hint, .. }) => Check::new("model", Verdict::Note, why).hint(hint),
        Err(Failure::ClosedPipe) => Check::new("model", Verdict::Note, "none"),
    }
}

/// How well the model's commands are confined here, and what would make that better.
fn confinement(setup: &Setup) -> Check {
    if setup.config().is_ok_and(|config| !config.settings.permissions.confine) {
        let says = "off, by the setting permissions.confine; commands are asked about";
        return Check::new("confinement", Verdict::Note, says);
    }
    let Probe { level, why, .. } = confine::found(setup);
    let says = match level {
        Level::Full => "full: commands write only in the project, see no secrets and have no network unasked",
        Level::Landlock => {
            "partly, by Landlock: commands write only in the project and have no network unasked"
        }
        Level::None => "none: every command that is not allowed by a rule is asked about",
    };
    let reasons: Vec<String> = why.iter().map(ToString::to_string).collect();
    let says = match reasons.is_empty() {
        true => says.to_owned(),
        false => format!("{says} ({})", reasons.join("; ")),
    };
    let verdict = if level == Level::Full { Verdict::Good } else { Verdict::Note };
    let check = Check::new("confinement", verdict, says);
    match why.first() {
        Some(shortfall) => check.hint(shortfall.remedy()),
        None => check,
    }
}

/// Which variables of the environment the model's commands don't get.
fn withheld(setup: &Setup) -> Check {
    let names = setup.config().map(|config| crate::keys::withheld(&config.settings)).unwrap_or_default();
    let names: Vec<String> = names.iter().map(|name| one_line(&name.to_string_lossy())).collect();
    if names.is_empty() {
        return Check::new("withheld", Verdict::Good, "none of this environment looks like a secret");
    }
    let says = format!("not given to confined commands: {}", names.join(", "));
    Check::new("withheld", Verdict::Good, says).hint("The setting shell.env passes those that you name.")
}

fn git(setup: &Setup) -> Check {
    let version = git_program(&Programs::new(setup)).and_then(|git| git.version());
    match version {
        Some(version) => Check::new("git", Verdict::Good, version),
        None => Check::new("git", Verdict::Note, "not found")
            .hint("Helve works without it; some things are better with it."),
    }
}

fn logs(setup: &Setup) -> Check {
    let folder = setup.places.logs();
    let says = format!(
        "{} (safe to share) and {} (yours) in {}",
        logs::PUBLIC,
        logs::RESTRICTED,
        text::path(&folder)
    );
    // The command that runs now has said something already, unless only errors are wanted.
    let existing = folder.ancestors().find(|path| path.exists()).unwrap_or(&folder);
    if existing.is_dir() && rustix::fs::access(existing, Access::WRITE_OK).is_ok() {
        return Check::new("logs", Verdict::Good, says);
    }
    Check::new(
        "logs",
        Verdict::Note,
        format!("nothing is written: {} can't be written to", text::path(&folder)),
    )
}

fn telemetry() -> Check {
    Check::new("telemetry", Verdict::Good, "none: nothing leaves this machine unasked")
}
