//! What programs need to say who the user is on this machine, and which variables are not for commands.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use helve_config::Settings;
use helve_permissions::credentials::{PROGRAM_CREDENTIALS, ProgramCredentials, matches_variable_name};
use helve_permissions::is_secret_variable;
use helve_tools::{ObstacleFinder, ProgramCredential};

use crate::git_passwords;
use crate::programs::{ProgramFinder, is_program};
use crate::redacted::{holds_login, read_settings};
use crate::registries;

/// The first line of a script is not longer.
const MAX_SHEBANG_BYTES: u64 = 256;
/// Folders where git has its parts, from the folder that its own is in.
const GIT_CORE_FOLDERS: [&str; 2] = ["lib/git-core", "libexec/git-core"];

/// The programs for which this user has credentials.
pub(crate) fn programs_with_credentials(home: Option<&Path>, root: &Path) -> Vec<&'static str> {
    let has = |row: &&ProgramCredentials| {
        let has_file = |name: &&str| home.is_some_and(|home| holds_something(&home.join(name)));
        let has_agent = row.agent && std::env::var_os("SSH_AUTH_SOCK").is_some();
        let moved = moved_files(row.program);
        let is_git = row.program == "git";
        has_agent
            || is_git && (home.is_some_and(asks_a_service) || has_login(root))
            || row.files.iter().any(has_file)
            || moved.iter().any(|file| holds_something(file))
            || !variables(row, home).is_empty()
    };
    PROGRAM_CREDENTIALS.iter().filter(has).map(|row| row.program).collect()
}

/// The variables of this environment by which a program knows the user.
fn variables(row: &ProgramCredentials, home: Option<&Path>) -> Vec<String> {
    // The user's own settings of npm may name others.
    let settings = home.filter(|_| row.program == "npm").map(|home| home.join(".npmrc"));
    let named = settings.map(|path| registries::variables_in(&path)).unwrap_or_default();
    let is_own = |name: &str| {
        let is_setting = row.program == "npm"
            && name.to_ascii_lowercase().starts_with("npm_config_")
            && name.contains("_auth");
        matches_variable_name(name, row.variables) || named.iter().any(|own| own == name) || is_setting
    };
    let all = std::env::vars_os().filter(|(_, value)| !value.is_empty());
    all.filter_map(|(name, _)| name.into_string().ok()).filter(|name| is_own(name)).collect()
}

/// Where a program has its credentials if the user has moved them.
fn moved_files(program: &str) -> Vec<PathBuf> {
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from).filter(|_| program == "cargo");
    let names = ["credentials.toml", "credentials"];
    cargo.iter().flat_map(|folder| names.map(|name| folder.join(name))).collect()
}

/// All credentials that the user has outside the home folder, which is hidden.
pub(crate) fn all_moved_files() -> Vec<PathBuf> {
    PROGRAM_CREDENTIALS.iter().flat_map(|row| moved_files(row.program)).collect()
}

fn holds_something(path: &Path) -> bool {
    match fs::metadata(path) {
        Ok(facts) if facts.is_dir() => fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some()),
        Ok(facts) => facts.len() > 0,
        Err(_) => false,
    }
}

/// What each program is given, for those that are found outside the project.
pub(crate) fn credentials(home: &Path, programs: &ProgramFinder) -> Vec<ProgramCredential> {
    PROGRAM_CREDENTIALS.iter().filter_map(|row| credential(row, home, programs)).collect()
}

fn credential(row: &ProgramCredentials, home: &Path, known: &ProgramFinder) -> Option<ProgramCredential> {
    let path = behind_shim(known.find(row.program)?);
    let mut files: Vec<PathBuf> = row.files.iter().map(|name| home.join(name)).collect();
    files.extend(moved_files(row.program));
    let mut programs = with_interpreter(&path, known);
    let store = if row.program == "git" { PasswordStore::of(home, known) } else { PasswordStore::None };
    let asked = git_passwords::own_path().filter(|_| !matches!(store, PasswordStore::None));
    for helper in
        row.helpers.iter().filter_map(|name| known.find(name)).chain(store.program()).chain(asked.clone())
    {
        programs.extend(with_interpreter(&helper, known));
    }
    if row.program == "git" || row.helpers.contains(&"git") {
        let prefix = |program: &PathBuf| program.parent().and_then(Path::parent).map(Path::to_owned);
        let prefixes: Vec<PathBuf> = programs.iter().filter_map(prefix).collect();
        programs
            .extend(prefixes.iter().flat_map(|prefix| GIT_CORE_FOLDERS.iter().map(|part| prefix.join(part))));
    }
    if row.program == "cargo" {
        programs.extend(toolchains(home));
        // Settings that hold a token are hidden otherwise.
        files.extend([".cargo/config.toml", ".cargo/config"].map(|name| home.join(name)));
    }
    if let PasswordStore::Program { name, .. } = store {
        files.push(home.join(".config").join(name));
    }
    files.extend(asked.clone());
    programs.extend(loaders());
    programs.retain(|program| program.exists());
    let mut variables = variables(row, Some(home));
    let mut settings = settings(row.program, home, known);
    if row.program == "git" {
        settings.extend(askpass(asked.as_deref(), &path, &store, home));
    }
    if row.program == "pip" {
        // A file of requirements could send what a variable in capital letters holds anywhere; pip knows its own in small ones, too.
        let in_small = |name: String| {
            let small = format!("PIP_{}", name.strip_prefix("PIP_")?.to_lowercase());
            Some((small.into(), std::env::var_os(&name)?))
        };
        settings.extend(variables.drain(..).filter_map(in_small));
    }
    Some(ProgramCredential {
        program: row.program.to_owned(),
        files,
        variables,
        agent: row.agent,
        programs,
        settings,
        path,
        single_process: row.is_single_process(),
        obstacle: obstacle(row.program),
    })
}

fn obstacle(program: &str) -> Option<ObstacleFinder> {
    match program {
        "npm" => Some(registries::obstacle_for_npm),
        "cargo" => Some(registries::obstacle_for_cargo),
        _ => None,
    }
}

/// The program that a shim of pyenv, rbenv or nodenv would run: shims are scripts that need many others.
fn behind_shim(program: PathBuf) -> PathBuf {
    let real = || {
        let (folder, name) = (program.parent()?, program.file_name()?);
        let root = folder.parent().filter(|_| folder.ends_with("shims"))?;
        let of_tool = |variable: &str| std::env::var(variable).ok();
        let chosen = ["PYENV_VERSION", "RBENV_VERSION", "NODENV_VERSION"].into_iter().find_map(of_tool);
        let chosen = chosen.or_else(|| fs::read_to_string(root.join("version")).ok())?;
        let mut versions = chosen.split([':', '\n']).map(str::trim);
        let is_name =
            |version: &&str| !version.is_empty() && !version.contains('/') && !version.starts_with('.');
        let program = |version| root.join("versions").join(version).join("bin").join(name);
        versions.by_ref().filter(is_name).map(program).find(|program| is_program(program))
    };
    real().unwrap_or(program)
}

/// What rustup runs in place of itself.
fn toolchains(home: &Path) -> Vec<PathBuf> {
    let rustup = std::env::var_os("RUSTUP_HOME").map_or_else(|| home.join(".rustup"), PathBuf::from);
    let all = fs::read_dir(rustup.join("toolchains")).into_iter().flatten().flatten();
    all.flat_map(|toolchain| ["cargo", "rustc"].map(|name| toolchain.path().join("bin").join(name))).collect()
}

/// Programs of hosting services that can tell git a password, and their folders of settings.
const HOSTING_PROGRAMS: [(&str, &str); 2] = [("gh", "gh"), ("glab", "glab-cli")];

/// Whether the user's settings of git ask such a program.
fn asks_a_service(home: &Path) -> bool {
    HOSTING_PROGRAMS.iter().any(|(program, _)| asks(home, program))
}

fn asks(home: &Path, program: &str) -> bool {
    let texts = [".gitconfig", ".config/git/config"].map(|name| read_settings(&home.join(name)));
    texts.iter().flatten().any(|text| text.contains(&format!("{program} auth git-credential")))
}

/// Whether a project's settings of git hold a password, in the address of a remote.
fn has_login(root: &Path) -> bool {
    read_settings(&root.join(".git/config")).is_some_and(|text| holds_login(&text))
}

/// Where git has the user's passwords, of those that it can be given.
enum PasswordStore {
    None,
    File,
    /// The program of a hosting service, by the name of its folder of settings.
    Program {
        path: PathBuf,
        name: &'static str,
    },
}

impl PasswordStore {
    fn of(home: &Path, known: &ProgramFinder) -> PasswordStore {
        let service = HOSTING_PROGRAMS.iter().filter(|(program, _)| asks(home, program));
        let service = { service }.find_map(|(program, name)| Some((known.find(program)?, *name)));
        if let Some((path, name)) = service {
            return PasswordStore::Program { path, name };
        }
        match [".git-credentials", ".config/git/credentials"].iter().any(|name| home.join(name).exists()) {
            true => PasswordStore::File,
            false => PasswordStore::None,
        }
    }

    fn program(&self) -> Option<PathBuf> {
        match self {
            PasswordStore::Program { path, .. } => Some(path.clone()),
            _ => None,
        }
    }

    /// The commands that are asked for a password, one after the other.
    fn commands(&self, git: &Path, home: &Path) -> Vec<Vec<OsString>> {
        let files = [".git-credentials", ".config/git/credentials"];
        let file = files.iter().any(|name| home.join(name).exists());
        let file = file.then(|| vec![git.into(), "credential-store".into()]);
        let program = self.program().map(|path| vec![path.into(), "auth".into(), "git-credential".into()]);
        file.into_iter().chain(program).collect()
    }
}

/// Whom git asks for a password: this program, which asks the stores without a shell. Git would ask them through one, and with a
/// shell at hand much of what a project could say to git would run.
fn askpass(own: Option<&Path>, git: &Path, store: &PasswordStore, home: &Path) -> Vec<(OsString, OsString)> {
    match own {
        Some(own) => vec![
            ("GIT_ASKPASS".into(), own.into()),
            (git_passwords::STORES_VARIABLE.into(), git_passwords::as_variable(&store.commands(git, home))),
        ],
        None => vec![("GIT_ASKPASS".into(), "false".into())],
    }
}

/// A program as it is found and as it really is, and what runs it if it is a script.
fn with_interpreter(program: &Path, known: &ProgramFinder) -> Vec<PathBuf> {
    let mut programs = vec![program.to_owned()];
    programs.extend(program.canonicalize().ok());
    let first = File::open(program).ok().and_then(|file| {
        let mut line = Vec::new();
        BufReader::new(file.take(MAX_SHEBANG_BYTES)).read_until(b'\n', &mut line).ok()?;
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
fn settings(program: &str, home: &Path, known: &ProgramFinder) -> Vec<(OsString, OsString)> {
    let plain = |pairs: &[(&str, &str)]| -> Vec<(OsString, OsString)> {
        pairs.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect()
    };
    match program {
        "git" => {
            let pairs = [
                ("core.hooksPath", "/dev/null"),
                ("core.fsmonitor", "false"),
                ("core.pager", "cat"),
                ("submodule.recurse", "false"),
                ("fetch.recurseSubmodules", "false"),
                ("push.recurseSubmodules", "no"),
                ("gc.auto", "0"),
                ("maintenance.auto", "false"),
                // All are forgotten: they would be asked through a shell.
                ("credential.helper", ""),
            ];
            // A path with signs of a shell would be run by one, which is not there.
            let is_plain = |path: &PathBuf| {
                path.to_str().is_some_and(|path| {
                    path.chars().all(|sign| sign.is_alphanumeric() || "/._-".contains(sign))
                })
            };
            let ssh = known.find("ssh").filter(is_plain).unwrap_or_else(|| PathBuf::from("ssh"));
            let mut all = plain(&[
                ("GIT_TERMINAL_PROMPT", "0"),
                ("GIT_PAGER", "cat"),
                // Whatever the settings say: other machines, no folders and no programs.
                ("GIT_ALLOW_PROTOCOL", "https:http:ssh:git"),
            ]);
            all.push(("GIT_SSH_COMMAND".into(), ssh.into()));
            all.push(("GIT_CONFIG_COUNT".into(), pairs.len().to_string().into()));
            for (number, (name, value)) in pairs.into_iter().enumerate() {
                all.push((format!("GIT_CONFIG_KEY_{number}").into(), name.into()));
                all.push((format!("GIT_CONFIG_VALUE_{number}").into(), value.into()));
            }
            all
        }
        "npm" => {
            let mut all =
                plain(&[("npm_config_ignore_scripts", "true"), ("npm_config_update_notifier", "false")]);
            all.push(("npm_config_userconfig".into(), home.join(".npmrc").into()));
            all
        }
        "pip" => {
            let always =
                [("PIP_ONLY_BINARY", ":all:"), ("PIP_DISABLE_PIP_VERSION_CHECK", "1"), ("PIP_NO_INPUT", "1")];
            let own = [".config/pip/pip.conf", ".pip/pip.conf"].map(|name| home.join(name));
            let own =
                own.into_iter().find(|path| path.exists() && std::env::var_os("PIP_CONFIG_FILE").is_none());
            let own = own.map(|path| ("PIP_CONFIG_FILE".into(), path.into()));
            plain(&always).into_iter().chain(own).collect()
        }
        "cargo" => {
            // Flags can make the compiler load anything.
            let flags =
                [("RUSTC_WRAPPER", ""), ("RUSTC_WORKSPACE_WRAPPER", ""), ("CARGO_ENCODED_RUSTFLAGS", "")];
            let compiler = known.find("rustc").map(|path| ("RUSTC".into(), path.into()));
            plain(&flags).into_iter().chain(compiler).collect()
        }
        _ => Vec::new(),
    }
}

/// The names of the variables by which models are paid: of all vendors, and of the user's own providers.
fn of_models(settings: &Settings) -> impl Iterator<Item = &str> {
    let vendors = helve_models::VENDORS.iter().flat_map(|vendor| vendor.keys).map(|(key, _)| *key);
    vendors.chain(settings.providers.values().filter_map(|provider| provider.key_env.as_deref()))
}

/// Whether a variable is that of a model's key, which no command gets.
pub(crate) fn is_model_key_variable(name: &OsStr, settings: &Settings) -> bool {
    of_models(settings).any(|key| name == key) && !is_passed(name, settings)
}

/// The variables that confined commands don't get, because they hold secrets, by their names or by what they hold.
pub(crate) fn withheld_variables(settings: &Settings) -> Vec<OsString> {
    let is_secret = |(name, value): &(OsString, OsString)| {
        let is_secret = is_secret_variable(&name.to_string_lossy(), &value.to_string_lossy());
        (is_secret || is_model_key_variable(name, settings)) && !is_passed(name, settings)
    };
    std::env::vars_os().filter(is_secret).map(|(name, _)| name).collect()
}

fn is_passed(name: &OsStr, settings: &Settings) -> bool {
    settings.shell.env.iter().any(|passed| name == passed.as_str())
}
