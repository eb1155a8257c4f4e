//! `helve config`

use std::io::Write;
use std::path::Path;

use helve_config::{ConfigEntry, LoadedConfig, ProjectTrust};
use serde_json::{Value, json};

use crate::args;
use crate::console::{ConsoleOutput, DIM, HEADING, WARN};
use crate::failure::{CliFailure, ProgramExit};
use crate::setup::CliSetup;
use crate::text::{self, one_line, pad};
use crate::user_folders::ADMINISTRATOR_FILE;

pub(crate) fn run(
    command: args::ConfigCommand,
    setup: &CliSetup,
    screen: &mut ConsoleOutput,
) -> Result<ProgramExit, CliFailure> {
    match command {
        args::ConfigCommand::Show { key, json, secrets } => {
            show(setup.config()?, key.as_deref(), SecretDisplay::shown_if(secrets), json, screen)
        }
        args::ConfigCommand::Schema => {
            writeln!(screen, "{:#}", helve_config::schema())?;
            Ok(ProgramExit::Success)
        }
        args::ConfigCommand::Path { json } => path(setup, json, screen),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum SecretDisplay {
    Shown,
    Hidden,
}

impl SecretDisplay {
    fn shown_if(wanted: bool) -> SecretDisplay {
        if wanted { SecretDisplay::Shown } else { SecretDisplay::Hidden }
    }
}

fn show(
    config: &LoadedConfig,
    key: Option<&str>,
    secrets: SecretDisplay,
    json: bool,
    screen: &mut ConsoleOutput,
) -> Result<ProgramExit, CliFailure> {
    let is_wanted = |entry: &&ConfigEntry| {
        key.is_none_or(|key| {
            let below = entry.key.strip_prefix(key);
            below.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    };
    let entries: Vec<&ConfigEntry> = config.entries().iter().filter(is_wanted).collect();
    if let (Some(key), true) = (key, entries.is_empty()) {
        let why = "no setting has that name, and none stands below it";
        return Err(CliFailure::usage(
            format!("there is no setting {key:?}"),
            why,
            "`helve config show` lists all of them.",
        ));
    }
    if json {
        let shown: Vec<Value> = entries.iter().map(|entry| entry_json(entry, secrets)).collect();
        let notices: Vec<String> = config.notices().iter().map(ToString::to_string).collect();
        writeln!(screen, "{:#}", json!({"settings": shown, "notices": notices, "trust": config.trust()}))?;
        return Ok(ProgramExit::Success);
    }
    table(&entries, secrets, screen)?;
    for notice in config.notices() {
        writeln!(screen, "{WARN}{}{WARN:#}", one_line(&notice.to_string()))?;
    }
    if matches!(config.trust(), ProjectTrust::Untrusted | ProjectTrust::Changed) {
        writeln!(screen, "{DIM}`helve trust` shows what this project asks for.{DIM:#}")?;
    }
    Ok(ProgramExit::Success)
}

fn table(
    entries: &[&ConfigEntry],
    secrets: SecretDisplay,
    screen: &mut ConsoleOutput,
) -> Result<(), CliFailure> {
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
        let is_default = entry.origin == helve_config::SettingOrigin::BUILT_IN;
        if is_default {
            writeln!(screen, "{DIM}{key}  {value}  {origin}{also}{DIM:#}")?;
        } else {
            writeln!(screen, "{HEADING}{key}{HEADING:#}  {value}  {origin}{DIM}{also}{DIM:#}")?;
        }
    }
    Ok(())
}

fn value_text(entry: &ConfigEntry, secrets: SecretDisplay) -> String {
    match &entry.value {
        None => "-".to_owned(),
        Some(value) if is_hidden(entry, value, secrets) => "(hidden)".to_owned(),
        Some(value) => one_line(&value.to_string()),
    }
}

/// Addresses may hold a password or a key as well.
fn is_hidden(entry: &ConfigEntry, value: &Value, secrets: SecretDisplay) -> bool {
    let is_empty =
        value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(|map| map.is_empty());
    let tells_secret = value.as_str().is_some_and(|text| text.contains("://") && text.contains(['@', '?']));
    secrets == SecretDisplay::Hidden && !is_empty && (entry.secret || tells_secret)
}

fn entry_json(entry: &ConfigEntry, secrets: SecretDisplay) -> Value {
    let mut entry = entry.clone();
    if entry.value.as_ref().is_some_and(|value| is_hidden(&entry, value, secrets)) {
        entry.value = Some(json!("(hidden)"));
    }
    json!(entry)
}

fn path(setup: &CliSetup, json: bool, screen: &mut ConsoleOutput) -> Result<ProgramExit, CliFailure> {
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
        return Ok(ProgramExit::Success);
    }
    for (layer, path) in files {
        let note = if path.exists() { String::new() } else { format!("  {DIM}(not there){DIM:#}") };
        writeln!(screen, "{}  {}{note}", pad(layer, 13), text::path(path))?;
    }
    Ok(ProgramExit::Success)
}
