//! `helve trust`

use std::io::Write;

use helve_config::{LoadedConfig, ProjectTrust, RestrictedSetting, TrustStore};

use crate::args;
use crate::console::{self, BAD, ConsoleOutput, DIM, GOOD, HEADING};
use crate::failure::{CliFailure, ProgramExit};
use crate::setup::CliSetup;
use crate::text::{self, count, one_line, pad, text_for_review};

pub(crate) fn run(
    options: &args::TrustArgs,
    setup: &CliSetup,
    screen: &mut ConsoleOutput,
) -> Result<ProgramExit, CliFailure> {
    let mut store = setup.trust_store()?;
    let root = text::path(&setup.root);
    if options.list {
        return list(&store, screen);
    }
    if options.forget {
        if store.digest_of(&setup.root).is_none() {
            writeln!(screen, "{root} was not trusted.")?;
            return Ok(ProgramExit::Success);
        }
        let forgotten = store.forget(&setup.root);
        forgotten.map_err(|error| CliFailure::trust(format!("{root} is still trusted"), &error))?;
        writeln!(screen, "{root} is not trusted any more.")?;
        return Ok(ProgramExit::Success);
    }
    let config = setup.config()?;
    match config.trust() {
        ProjectTrust::NothingToTrust => writeln!(screen, "{root} asks for nothing that needs your trust.")?,
        ProjectTrust::Trusted => writeln!(screen, "{GOOD}✓{GOOD:#} {root} is trusted already.")?,
        ProjectTrust::Changed | ProjectTrust::Untrusted => {
            describe(&root, config);
            if !options.yes {
                confirm(&root, config.restricted().len())?;
            }
            give(setup)?;
            writeln!(
                screen,
                "{GOOD}✓{GOOD:#} {root} is trusted, until its settings ask for something else."
            )?;
        }
    }
    Ok(ProgramExit::Success)
}

/// Trusts what the project asks for now.
pub(super) fn give(setup: &CliSetup) -> Result<(), CliFailure> {
    let trusted = setup.trust_store()?.trust(&setup.root, setup.config()?.digest());
    trusted.map_err(|error| CliFailure::trust(format!("{} is not trusted", text::path(&setup.root)), &error))
}

/// What the project asks for, in lines: what it is about, and one for each thing, grave ones first.
pub(super) fn asked_for(setup: &CliSetup) -> Result<Vec<String>, CliFailure> {
    let config = setup.config()?;
    let heading = heading(&text::path(&setup.root), config);
    let items = sorted(config).into_iter().map(|item| {
        let (value, origin) = (text_for_review(&item.value.to_string()), one_line(&item.origin.to_string()));
        format!("  {}  {value}  ({origin})", one_line(&item.key))
    });
    Ok(std::iter::once(heading).chain(items).collect())
}

fn sorted(config: &LoadedConfig) -> Vec<&RestrictedSetting> {
    let mut items: Vec<&RestrictedSetting> = config.restricted().iter().collect();
    items.sort_by_key(|item| !is_grave(item));
    items
}

fn heading(root: &str, config: &LoadedConfig) -> String {
    let changed =
        if config.trust() == ProjectTrust::Changed { "It has changed since you trusted it. " } else { "" };
    let things = count(config.restricted().len(), "thing", "things");
    format!("{changed}The settings of {root} ask for {things}:")
}

fn list(store: &TrustStore, screen: &mut ConsoleOutput) -> Result<ProgramExit, CliFailure> {
    let mut roots = store.roots().peekable();
    if roots.peek().is_none() {
        writeln!(screen, "You trust no project yet.")?;
    }
    for root in roots {
        writeln!(screen, "{}", text::path(root))?;
    }
    Ok(ProgramExit::Success)
}

/// Tells what the project asks for where the question is asked, what runs or loosens something first.
fn describe(root: &str, config: &LoadedConfig) {
    let items = sorted(config);
    console::print_to_stderr(&format!("{}\n", heading(root, config)));
    let width = items.iter().map(|item| item.key.len()).max().unwrap_or(0);
    for item in items {
        let key = pad(&one_line(&item.key), width);
        let value = text_for_review(&item.value.to_string());
        let origin = one_line(&item.origin.to_string());
        let style = if is_grave(item) { BAD } else { HEADING };
        console::print_to_stderr(&format!("  {style}{key}{style:#}  {value}  {DIM}{origin}{DIM:#}"));
    }
    console::print_to_stderr("");
}

/// Whether it runs something, sends something somewhere, or loosens what is asked.
fn is_grave(item: &RestrictedSetting) -> bool {
    ["shell", "providers", "permission"].iter().any(|section| item.key.starts_with(section))
}

fn confirm(root: &str, things: usize) -> Result<(), CliFailure> {
    let question = format!(
        "Let {root} do {}?",
        if things == 1 { "this".to_owned() } else { format!("these {things} things") }
    );
    match console::ask(&question) {
        Some(true) => Ok(()),
        Some(false) => Err(CliFailure::new(
            "nothing was trusted",
            "the answer was not yes",
            "Read the settings, and ask whoever wrote them.",
        )),
        None => Err(CliFailure::usage(
            "nothing was trusted",
            "there is nobody to ask",
            "Add --yes if you have read the list.",
        )),
    }
}
