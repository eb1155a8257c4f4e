//! `helve config`

use std::io::Write;
use std::path::Path;

use helve_config::{Config, Entry};
use serde_json::{Value, json};

use crate::args;
use crate::failure::{Exit, Failure};
use crate::places::ADMINISTRATOR_FILE;
use crate::screen::{DIM, HEADING, Screen, WARN};
use crate::setup::Setup;
use crate::text::{pad, printable};

pub(crate) fn run(command: args::Config, setup: &Setup, screen: &mut Screen) -> Result<Exit, Failure> {
    match command {
        args::Config::Show { key, json, secrets } => {
            show(setup.config()?, key.as_deref(), Secrets::shown_if(secrets), json, screen)
        }
        args::Config::Schema => {
            writeln!(screen, "{:#}", helve_config::schema())?;
            Ok(Exit::Fine)
        }
        args::Config::Path { json } => path(setup, json, screen),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Secrets {
    Shown,
    Hidden,
}

impl Secrets {
    fn shown_if(wanted: bool) -> Secrets {
        if wanted { Secrets::Shown } else { Secrets::Hidden }
    }
}

fn show(
    config: &Config,
    key: Option<&str>,
    secrets: Secrets,
    json: bool,
    screen: &mut Screen,
) -> Result<Exit, Failure> {
    let is_wanted = |entry: &&Entry| {
        key.is_none_or(|key| {
            let below = entry.key.strip_prefix(key);
            below.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    };
    let entries: Vec<&Entry> = config.entries().iter().filter(is_wanted).collect();
    if let (Some(key), true) = (key, entries.is_empty()) {
        let why = "no setting has that name, and none stands below it";
        return Err(Failure::usage(
            format!("there is no setting {key:?}"),
            why,
            "`helve config show` lists all of them.",
        ));
    }
    if json {
        let shown: Vec<Value> = entries.iter().map(|entry| entry_json(entry, secrets)).collect();
        let notices: Vec<String> = config.notices().iter().map(ToString::to_string).collect();
        writeln!(screen, "{:#}", json!({"settings": shown, "notices": notices, "trust": config.trust()}))?;
        return Ok(Exit::Fine);
    }
    table(&entries, secrets, screen)?;
    for notice in config.notices() {
        writeln!(screen, "{WARN}{}{WARN:#}", printable(&notice.to_string()))?;
    }
    Ok(Exit::Fine)
}

fn table(entries: &[&Entry], secrets: Secrets, screen: &mut Screen) -> Result<(), Failure> {
    let keys = entries.iter().map(|entry| entry.key.len()).max().unwrap_or(0);
    let values: Vec<String> = entries.iter().map(|entry| value_text(entry, secrets)).collect();
    let width = values.iter().map(String::len).filter(|length| *length <= 40).max().unwrap_or(0);
    for (entry, value) in entries.iter().zip(values) {
        let key = pad(&printable(&entry.key), keys);
        let origin = printable(&entry.origin.to_string());
        let also = match entry.overridden.len() {
            0 => String::new(),
            _ => format!(
                " (also {})",
                entry.overridden.iter().map(|o| printable(&o.to_string())).collect::<Vec<_>>().join(", ")
            ),
        };
        let value = pad(&value, width);
        let is_default = entry.origin == helve_config::Origin::BUILT_IN;
        if is_default {
            writeln!(screen, "{DIM}{key}  {value}  {origin}{also}{DIM:#}")?;
        } else {
            writeln!(screen, "{HEADING}{key}{HEADING:#}  {value}  {origin}{DIM}{also}{DIM:#}")?;
        }
    }
    Ok(())
}

fn value_text(entry: &Entry, secrets: Secrets) -> String {
    match &entry.value {
        None => "-".to_owned(),
        Some(_) if entry.secret && secrets == Secrets::Hidden => "(hidden)".to_owned(),
        Some(value) => printable(&value.to_string()),
    }
}

fn entry_json(entry: &Entry, secrets: Secrets) -> Value {
    let mut entry = entry.clone();
    if entry.secret && secrets == Secrets::Hidden && entry.value.is_some() {
        entry.value = Some(json!("(hidden)"));
    }
    json!(entry)
}

fn path(setup: &Setup, json: bool, screen: &mut Screen) -> Result<Exit, Failure> {
    let project = setup.project_files();
    let user = setup.places.user_settings();
    let files = [
        ("user", user.as_path()),
        ("project", &project.config),
        ("local", &project.local),
        ("administrator", Path::new(ADMINISTRATOR_FILE)),
    ];
    if json {
        let rows = files.map(|(layer, path)| json!({"layer": layer, "path": path.display().to_string(), "exists": path.exists()}));
        writeln!(screen, "{:#}", json!(rows))?;
        return Ok(Exit::Fine);
    }
    for (layer, path) in files {
        let note = if path.exists() { String::new() } else { format!("  {DIM}(not there){DIM:#}") };
        writeln!(screen, "{}  {}{note}", pad(layer, 13), path.display())?;
    }
    Ok(Exit::Fine)
}
