//! `helve replay`: recorded sessions run again, offline.

use std::io::Write;
use std::sync::Arc;

use helve_agent::{MismatchKind, ReplayBuild, ReplayMismatch, ReplayReport, replay_session};
use helve_exec::SandboxProbe;
use helve_journal::Journal;
use helve_models::RequestDifference;
use helve_protocol::SessionId;

use crate::args::ReplayArgs;
use crate::console::{BAD, ConsoleOutput, DIM, GOOD, WARN};
use crate::failure::{CliFailure, ProgramExit};
use crate::setup::CliSetup;
use crate::text::{count, fit, one_line};
use crate::user_models::block_on;
use crate::wiring::{BuiltInTools, session_failure};

/// So many differences are listed; the first is shown.
const MAX_LISTED_DIFFERENCES: usize = 20;
/// So much of a value is shown, around the place where it differs.
const DIFFERENCE_EXCERPT_CHARS: usize = 60;

pub(crate) fn run(
    options: &ReplayArgs,
    setup: &CliSetup,
    screen: &mut ConsoleOutput,
) -> Result<ProgramExit, CliFailure> {
    let journal = setup.journal();
    let ids: Vec<SessionId> = if options.all {
        let all =
            journal.list().map_err(|error| CliFailure::journal("the sessions can't be listed", &error))?;
        all.iter().map(|summary| summary.session).collect()
    } else {
        options.ids.iter().map(|id| super::sessions::find(&journal, id)).collect::<Result<_, _>>()?
    };
    // None of them runs: what they gave is in the record.
    let settings = helve_config::Settings::default();
    let tools = BuiltInTools::with_settings(setup, &settings, &SandboxProbe::NONE)?;
    let journal: Arc<dyn Journal> = Arc::new(journal);
    let mut exit = ProgramExit::Success;
    for id in ids {
        let report = block_on(replay_session(journal.clone(), id, ReplayBuild::current(tools.make())))?;
        let report = report.map_err(|error| session_failure(&error))?;
        // What can't be compared is not proven.
        if !report.differences.is_empty() || report.unkept > 0 {
            exit = ProgramExit::Error;
        }
        tell(id, &report, screen)?;
    }
    Ok(exit)
}

fn tell(id: SessionId, report: &ReplayReport, screen: &mut ConsoleOutput) -> Result<(), CliFailure> {
    let requests = count(report.requests, "request", "requests");
    let turns = count(report.turns, "turn", "turns");
    match report.differences.first() {
        None if report.unkept > 0 => {
            writeln!(
                screen,
                "{WARN}?{WARN:#} {id}: {requests} in {turns} are the same, the others are not known"
            )?;
        }
        None => writeln!(screen, "{GOOD}✓{GOOD:#} {id}: {requests} in {turns}, the same to the byte")?,
        Some(first) => {
            let differ = count(report.differences.len(), "difference", "differences");
            writeln!(screen, "{BAD}✗{BAD:#} {id}: {requests} in {turns}, {differ}")?;
            show(first, screen)?;
            list(report, screen)?;
        }
    }
    if report.unkept > 0 {
        let unkept = count(report.unkept, "request was", "requests were");
        writeln!(screen, "  {WARN}{unkept} not kept, so nothing is known of them{WARN:#}")?;
    }
    let this = env!("CARGO_PKG_VERSION");
    let others: Vec<&str> =
        report.versions.iter().map(String::as_str).filter(|version| *version != this).collect();
    if !others.is_empty() {
        let others = one_line(&others.join(", "));
        writeln!(screen, "  {DIM}recorded by version {others}; this is {this}{DIM:#}")?;
    }
    Ok(())
}

/// The first difference, with what was there and what is there now.
fn show(mismatch: &ReplayMismatch, screen: &mut ConsoleOutput) -> Result<(), CliFailure> {
    let ReplayMismatch { turn, step, what } = mismatch;
    writeln!(screen, "  turn {turn}, step {step}: {}", describe_mismatch(what))?;
    if let MismatchKind::Request(RequestDifference { old, new, .. }) = what {
        let (old, new) = around(old.as_deref(), new.as_deref());
        writeln!(screen, "  {BAD}- {old}{BAD:#}\n  {GOOD}+ {new}{GOOD:#}")?;
    }
    Ok(())
}

/// The others, each field once.
fn list(report: &ReplayReport, screen: &mut ConsoleOutput) -> Result<(), CliFailure> {
    let mut told: Vec<String> =
        report.differences.first().map(|first| describe_mismatch(&first.what)).into_iter().collect();
    let mut more = 0;
    for ReplayMismatch { turn, step, what } in report.differences.iter().skip(1) {
        let what = describe_mismatch(what);
        if told.contains(&what) {
            continue;
        }
        if told.len() > MAX_LISTED_DIFFERENCES {
            more += 1;
            continue;
        }
        writeln!(screen, "  turn {turn}, step {step}: {what}")?;
        told.push(what);
    }
    if more > 0 {
        writeln!(screen, "  and {more} more")?;
    }
    Ok(())
}

fn describe_mismatch(what: &MismatchKind) -> String {
    match what {
        MismatchKind::Request(difference) if difference.path.is_empty() => {
            "the request has another form".to_owned()
        }
        MismatchKind::Request(difference) => format!("the request differs at {}", one_line(&difference.path)),
        MismatchKind::Requests { recorded, now } => format!("{recorded} requests were made, now it is {now}"),
        MismatchKind::Outcome { recorded, now } => format!("the outcome was {recorded:?}, now it is {now:?}"),
    }
}

/// Both values from a little before the place where they part.
fn around(old: Option<&str>, new: Option<&str>) -> (String, String) {
    let (Some(a), Some(b)) = (old, new) else {
        let show = |value: Option<&str>| {
            value.map_or("(nothing)".to_owned(), |value| fit(&one_line(value), DIFFERENCE_EXCERPT_CHARS))
        };
        return (show(old), show(new));
    };
    let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    let skipped = same.saturating_sub(DIFFERENCE_EXCERPT_CHARS / 3);
    let show = |text: &str| {
        let dots = if skipped > 0 { "…" } else { "" };
        let rest: String = text.chars().skip(skipped).take(DIFFERENCE_EXCERPT_CHARS * 2).collect();
        format!("{dots}{}", fit(&one_line(&rest), DIFFERENCE_EXCERPT_CHARS))
    };
    (show(a), show(b))
}

#[cfg(test)]
mod tests {
    use super::around;

    #[test]
    fn a_difference_is_shown_where_it_is() {
        let long = "x".repeat(500);
        let (old, new) = around(Some(&format!("{long}a{long}")), Some(&format!("{long}b{long}")));
        assert!(old.contains('a') && new.contains('b') && old.chars().count() <= 62, "{old}");
        assert_eq!(around(None, Some("new")), ("(nothing)".to_owned(), "new".to_owned()));
    }
}
