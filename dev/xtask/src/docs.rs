//! `cargo xtask docs`: the reference pages, which the program itself prints.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{build_helve, output_of, root};

const PAGES: [&str; 5] = ["commands", "environment", "events", "keys", "settings"];

pub(crate) fn make() -> Result<(), String> {
    for (path, text) in pages()? {
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("wrote {}", shown(&path));
    }
    Ok(())
}

pub(crate) fn check() -> Result<(), String> {
    let differs = |(path, text): &(PathBuf, String)| fs::read_to_string(path).ok().as_ref() != Some(text);
    let stale: Vec<String> = pages()?.into_iter().filter(differs).map(|(path, _)| shown(&path)).collect();
    if stale.is_empty() {
        println!("the reference pages are up to date");
        return Ok(());
    }
    Err(format!("out of date: {}\nRun `cargo xtask docs`.", stale.join(", ")))
}

fn pages() -> Result<Vec<(PathBuf, String)>, String> {
    let helve = build_helve("dev")?;
    let page = |name: &str| {
        let text = output_of(Command::new(&helve).args(["reference", name]))?;
        Ok((root().join("docs/reference").join(name).with_extension("md"), text))
    };
    PAGES.into_iter().map(page).collect()
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}
