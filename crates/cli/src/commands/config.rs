//! `helve config`

use std::io::Write;
use std::path::Path;

use helve_config::{Config, Entry, Trust};
use serde_json::{Value, json};

use crate::args;
use crate::failure::{Exit, Failure};
use crate::places::ADMINISTRATOR_FILE;
use crate::screen::{DIM, HEADING, Screen, WARN};
use crate::setup::Setup;
use crate::text::{self, one_line, pad};

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
        writeln!(screen, "{WARN}{}{WARN:#}", one_line(&notice.to_string()))?;
    }
    if matches!(config.trust(), Trust::Untrusted | Trust::Changed) {
        writeln!(screen, "{DIM}`helve trust` shows what this project asks for.{DIM:#}")?;
    }
    Ok(Exit::Fine)
}

fn table(entries: &[&Entry], secrets: Secrets, screen: &mut Screen) -> Result<(), Failure> {
    let keys = entries.iter().map(|entry| entry.key.len()).max().unwrap_or(0);
    let values: Vec<String> = entries.iter().map(|entry| value_text(entry, secrets)).collect();
    let width = values.iter().map(String::len).filter(|length| *length <= 40).max().unwrap_or(0);
    for (entry, value) in entries.iter().zip(values) {
        let key = pad(&one_line(&entry.key), keys);
        let origin = one_line(&entry.origin.to_string());
        let also = match entry.overridden.len() {
            0 => String::new(),
            _ => format!(
                " (also {})",
                entry.overridden.iter().map(|o| one_line(&o.to_string())).collect::<Vec<_>>().join(", ")
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
        Some(value) if is_hidden(entry, value, secrets) => "(hidden)".to_owned(),
        Some(value) => one_line(&value.to_string()),
    }
}

/// Addresses may hold a password or a key as well.
fn is_hidden(entry: &Entry, value: &Value, secrets: Secrets) -> bool {
    let is_empty =
        value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(|map| map.is_empty());
    let tells_secret = value.as_str().is_some_and(|text| text.contains("://") && text.contains(['@', '?']));
    secrets == Secrets::Hidden && !is_empty && (entry.secret || tells_secret)
}

fn entry_json(entry: &Entry, secrets: Secrets) -> Value {
    let mut entry = entry.clone();
    if entry.value.as_ref().is_some_and(|value| is_hidden(&entry, value, secrets)) {
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
        writeln!(screen, "{}  {}{note}", pad(layer, 13), text::path(path))?;
    }
    Ok(Exit::Fine)
}
