//! `helve trust`

use std::io::Write;

use helve_config::{Config, Trust};

use crate::args;
use crate::failure::{Exit, Failure};
use crate::screen::{self, DIM, GOOD, HEADING, Screen};
use crate::setup::Setup;
use crate::text::{count, pad, printable};

pub(crate) fn run(options: &args::Trust, setup: &Setup, screen: &mut Screen) -> Result<Exit, Failure> {
    let mut store = setup.trust_store()?;
    let root = setup.root.display();
    if options.list {
        for root in store.roots() {
            writeln!(screen, "{}", root.display())?;
        }
        return Ok(Exit::Fine);
    }
    if options.forget {
        let forgotten = store.forget(&setup.root);
        forgotten.map_err(|error| Failure::trust(format!("{root} is still trusted"), &error))?;
        writeln!(screen, "{root} is not trusted any more.")?;
        return Ok(Exit::Fine);
    }
    let config = setup.config()?;
    match config.trust() {
        Trust::NothingToTrust => writeln!(screen, "{root} asks for nothing that needs your trust.")?,
        Trust::Trusted => writeln!(screen, "{GOOD}✓{GOOD:#} {root} is trusted already.")?,
        Trust::Changed | Trust::Untrusted => {
            list(config, screen)?;
            screen.flush()?;
            if !options.yes {
                confirm()?;
            }
            let trusted = store.trust(&setup.root, config.digest());
            trusted.map_err(|error| Failure::trust(format!("{root} is not trusted"), &error))?;
            writeln!(
                screen,
                "{GOOD}✓{GOOD:#} {root} is trusted, until its settings ask for something else."
            )?;
        }
    }
    Ok(Exit::Fine)
}

fn list(config: &Config, screen: &mut Screen) -> Result<(), Failure> {
    let items = config.restricted();
    let changed = if config.trust() == Trust::Changed { "It has changed since you trusted it. " } else { "" };
    writeln!(
        screen,
        "{changed}This project's settings ask for {}:\n",
        count(items.len(), "thing", "things")
    )?;
    let width = items.iter().map(|item| item.key.len()).max().unwrap_or(0);
    for item in items {
        let key = pad(&printable(&item.key), width);
        let value = printable(&item.value.to_string());
        writeln!(
            screen,
            "  {HEADING}{key}{HEADING:#}  {value}  {DIM}{}{DIM:#}",
            printable(&item.origin.to_string())
        )?;
    }
    writeln!(screen)?;
    Ok(())
}

fn confirm() -> Result<(), Failure> {
    match screen::ask("Let it do that?") {
        Some(true) => Ok(()),
        Some(false) => Err(Failure::new(
            "nothing was trusted",
            "you said no",
            "Read the settings, and ask whoever wrote them.",
        )),
        None => Err(Failure::usage(
            "nothing was trusted",
            "there is nobody to ask",
            "Add --yes if you have read the list.",
        )),
    }
}
