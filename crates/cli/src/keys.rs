//! What programs need to say who the user is on this machine, and which variables are not for commands.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use helve_config::Settings;
use helve_permissions::credentials::{Credentials, TABLE};
use helve_permissions::is_secret_variable;
use helve_tools::Credential;

use crate::programs::Programs;

/// The first line of a script is not longer.
const MAX_FIRST_LINE: u64 = 256;
/// Folders where git has its parts, from the folder that its own is in.
const PARTS_OF_GIT: [&str; 2] = ["lib/git-core", "libexec/git-core"];

/// The programs for which this user has credentials.
pub(crate) fn there(home: Option<&Path>) -> Vec<&'static str> {
    let has = |row: &&Credentials| {
        let has_file = |name: &&str| home.is_some_and(|home| holds_something(&home.join(name)));
        let has_variable = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let has_agent = row.agent && std::env::var_os("SSH_AUTH_SOCK").is_some();
        has_agent || row.files.iter().any(has_file) || row.variables.iter().any(has_variable)
    };
    TABLE.iter().filter(has).map(|row| row.program).collect()
}

fn holds_something(path: &Path) -> bool {
    match fs::metadata(path) {
        Ok(facts) if facts.is_dir() => fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some()),
        Ok(facts) => facts.len() > 0,
        Err(_) => false,
    }
}

/// What each program is given, for those that are found outside the project.
pub(crate) fn credentials(home: &Path, programs: &Programs) -> Vec<Credential> {
    TABLE.iter().filter_map(|row| credential(row, home, programs)).collect()
}

fn credential(row: &Credentials, home: &Path, known: &Programs) -> Option<Credential> {
    let path = known.find(row.program)?;
    let mut programs = with_interpreter(&path, known);
    for helper in row.helpers.iter().filter_map(|name| known.find(name)) {
        programs.extend(with_interpreter(&helper, known));
    }
    if row.program == "git" || row.helpers.contains(&"git") {
        let prefix = |program: &PathBuf| program.parent().and_then(Path::parent).map(Path::to_owned);
        let prefixes: Vec<PathBuf> = programs.iter().filter_map(prefix).collect();
        programs.extend(prefixes.iter().flat_map(|prefix| PARTS_OF_GIT.iter().map(|part| prefix.join(part))));
    }
    programs.extend(loaders());
    programs.retain(|program| program.exists());
    Some(Credential {
        program: row.program.to_owned(),
        files: row.files.iter().map(|name| home.join(name)).collect(),
        variables: row.variables.iter().map(|name| (*name).to_owned()).collect(),
        agent: row.agent,
        programs,
        settings: settings(row.program, home),
        path,
    })
}

/// A program as it is found and as it really is, and what runs it if it is a script.
fn with_interpreter(program: &Path, known: &Programs) -> Vec<PathBuf> {
    let mut programs = vec![program.to_owned()];
    programs.extend(program.canonicalize().ok());
    let first = File::open(program).ok().and_then(|file| {
        let mut line = Vec::new();
        BufReader::new(file.take(MAX_FIRST_LINE)).read_until(b'\n', &mut line).ok()?;
        String::from_utf8(line).ok()
    });
    if let Some(line) = first.as_deref().and_then(|line| line.strip_prefix("#!")) {
        let mut words = line.split_whitespace();
        let interpreter = words.next().map(PathBuf::from);
        let by_name = words.find(|word| !word.starts_with('-')).and_then(|name| known.find(name));
        let named = interpreter.iter().any(|path| path.ends_with("env")).then_some(by_name).flatten();
        for path in interpreter.into_iter().chain(named) {
            programs.extend(path.canonicalize().ok());
            programs.push(path);
        }
    }
    programs
}

/// What loads programs: without it, none starts.
fn loaders() -> Vec<PathBuf> {
    let folders = ["/lib64", "/lib", "/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu"];
    let entries = folders.iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    let is_loader = |entry: &fs::DirEntry| entry.file_name().as_encoded_bytes().starts_with(b"ld-");
    let loaders = entries.filter(is_loader).map(|entry| entry.path());
    loaders.flat_map(|path| [path.canonicalize().ok(), Some(path)]).flatten().collect()
}

/// What the environment says instead of the settings of the project.
fn settings(program: &str, home: &Path) -> Vec<(OsString, OsString)> {
    let plain = |pairs: &[(&str, &str)]| -> Vec<(OsString, OsString)> {
        pairs.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect()
    };
    match program {
        "git" => {
            let mut pairs = vec![
                ("core.hooksPath", "/dev/null".to_owned()),
                ("core.fsmonitor", "false".to_owned()),
                ("core.pager", "cat".to_owned()),
                ("protocol.ext.allow", "never".to_owned()),
                ("submodule.recurse", "false".to_owned()),
                ("fetch.recurseSubmodules", "false".to_owned()),
                ("push.recurseSubmodules", "no".to_owned()),
                ("gc.auto", "0".to_owned()),
                ("maintenance.auto", "false".to_owned()),
                // All others are forgotten; then the one that is a file.
                ("credential.helper", String::new()),
            ];
            if home.join(".git-credentials").exists() || home.join(".config/git/credentials").exists() {
                pairs.push(("credential.helper", "store".to_owned()));
            }
            let mut all = plain(&[
                ("GIT_SSH_COMMAND", "ssh"),
                ("GIT_TERMINAL_PROMPT", "0"),
                ("GIT_ASKPASS", "false"),
                ("GIT_PAGER", "cat"),
            ]);
            all.push(("GIT_CONFIG_COUNT".into(), pairs.len().to_string().into()));
            for (number, (name, value)) in pairs.into_iter().enumerate() {
                all.push((format!("GIT_CONFIG_KEY_{number}").into(), name.into()));
                all.push((format!("GIT_CONFIG_VALUE_{number}").into(), value.into()));
            }
            all
        }
        "npm" => plain(&[("npm_config_ignore_scripts", "true"), ("npm_config_update_notifier", "false")]),
        "pip" => plain(&[("PIP_ONLY_BINARY", ":all:"), ("PIP_DISABLE_PIP_VERSION_CHECK", "1")]),
        "cargo" => plain(&[("RUSTC_WRAPPER", ""), ("RUSTC_WORKSPACE_WRAPPER", "")]),
        _ => Vec::new(),
    }
}

/// The names of the variables by which models are paid: of all vendors, and of the user's own providers.
fn of_models(settings: &Settings) -> impl Iterator<Item = &str> {
    let vendors = helve_models::VENDORS.iter().flat_map(|vendor| vendor.keys).map(|(key, _)| *key);
    vendors.chain(settings.providers.values().filter_map(|provider| provider.key_env.as_deref()))
}

/// Whether a variable is that of a model's key, which no command gets.
pub(crate) fn is_of_model(name: &OsStr, settings: &Settings) -> bool {
    of_models(settings).any(|key| name == key) && !is_passed(name, settings)
}

/// The variables that confined commands don't get, because they hold secrets, by their names or by what they hold.
pub(crate) fn withheld(settings: &Settings) -> Vec<OsString> {
    let is_secret = |(name, value): &(OsString, OsString)| {
        let is_secret = is_secret_variable(&name.to_string_lossy(), &value.to_string_lossy());
        (is_secret || is_of_model(name, settings)) && !is_passed(name, settings)
    };
    std::env::vars_os().filter(is_secret).map(|(name, _)| name).collect()
}

fn is_passed(name: &OsStr, settings: &Settings) -> bool {
    settings.shell.env.iter().any(|passed| name == passed.as_str())
}
