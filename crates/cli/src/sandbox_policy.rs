//! What the model's commands are confined to on this machine.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use helve_exec::{ConfinementLevel, SandboxProbe, probe};
use helve_permissions::{GUARDED_FOLDER, GUARDED_GIT_ENTRIES, SECRET_HOME_PATHS, is_secret_name};
use helve_tools::{ProjectStorage, SandboxPolicy};

use crate::credentials;
use crate::programs::ProgramFinder;
use crate::redacted::{
    NPM_SETTINGS_FILE, copied_settings, holds_login, holds_no_secret, holds_secrets, indexes_without_login,
    without_login,
};
use crate::setup::{CliSetup, home};
use crate::user_folders::project_name;

/// What tools keep below the home folder for building, and write while they work. Commands read what the user has there,
/// and change it for their project only: what lies there is run or linked elsewhere later.
const CACHE_FOLDERS: [&str; 14] = [
    ".cache/pip",
    ".cache/uv",
    ".cache/yarn",
    ".cache/go-build",
    ".cache/ccache",
    ".cache/sccache",
    ".ccache",
    ".npm/_cacache",
    ".npm/_logs",
    // Gradle does not start if it can't write all of these.
    ".gradle/.tmp",
    ".gradle/daemon",
    ".gradle/native",
    ".gradle/notifications",
    ".gradle/workers",
];

/// What they write only when they fetch something, or make an environment for a project.
const FETCH_FOLDERS: [&str; 29] = [
    ".cargo/registry",
    ".cargo/git",
    ".cache/pypoetry",
    ".local/share/virtualenvs",
    ".local/share/hatch",
    ".local/share/uv/tools",
    ".local/share/uv/python",
    ".cache/pre-commit",
    ".cache/pnpm",
    ".cache/node",
    ".cache/node-gyp",
    ".cache/deno",
    ".npm/_npx",
    ".local/share/pnpm/store",
    ".yarn/berry/cache",
    ".bun/install/cache",
    "go/pkg/mod",
    ".m2/repository",
    ".m2/wrapper",
    ".gradle/caches",
    ".gradle/wrapper",
    ".cache/coursier",
    ".nuget/packages",
    // Browsers and models that tests use, which are large and don't come with the packages.
    ".cache/ms-playwright",
    ".cache/puppeteer",
    ".cache/Cypress",
    ".cache/selenium",
    ".cache/huggingface/hub",
    ".cache/torch",
];

/// The same, of those people only who have it: to some tools, that a folder is there means that everything else is there too.
const FETCH_FOLDERS_IF_PRESENT: [&str; 12] = [
    ".cabal/packages",
    ".cabal/store",
    ".local/state/cabal",
    ".conan2/p",
    ".hex/packages",
    ".ivy2/cache",
    ".sbt/boot",
    ".julia",
    ".konan",
    ".nimble/pkgs2",
    ".pub-cache/hosted",
    ".bundle/cache",
];

/// Folders that are each project's own, whatever the user has there: tools that are in no list find a place.
const PROJECT_OWN_FOLDERS: [&str; 1] = [".cache"];

/// Where nothing can be laid over the home folder, tools are told to keep their caches elsewhere.
const CACHE_VARIABLES: [(&str, &str); 9] = [
    ("XDG_CACHE_HOME", ""),
    ("PIP_CACHE_DIR", "pip"),
    ("UV_CACHE_DIR", "uv"),
    ("YARN_CACHE_FOLDER", "yarn"),
    ("GOCACHE", "go-build"),
    ("CCACHE_DIR", "ccache"),
    ("SCCACHE_DIR", "sccache"),
    ("npm_config_cache", "npm"),
    ("DENO_DIR", "deno"),
];
const FETCH_VARIABLES: [(&str, &str); 6] = [
    ("CARGO_HOME", "cargo"),
    ("GOMODCACHE", "go-mod"),
    ("GRADLE_USER_HOME", "gradle"),
    ("NUGET_PACKAGES", "nuget"),
    ("UV_TOOL_DIR", "uv-tools"),
    ("WORKON_HOME", "virtualenvs"),
];

/// Variables by which users have a tool keep its files elsewhere in their home folder, and what of those it writes.
const RELOCATION_VARIABLES: [(&str, &[&str]); 13] = [
    ("CARGO_HOME", &["registry", "git"]),
    ("GOPATH", &["pkg/mod"]),
    ("GOMODCACHE", &[""]),
    ("GOCACHE", &[""]),
    ("PIP_CACHE_DIR", &[""]),
    ("UV_CACHE_DIR", &[""]),
    ("YARN_CACHE_FOLDER", &[""]),
    ("CCACHE_DIR", &[""]),
    ("SCCACHE_DIR", &[""]),
    ("npm_config_cache", &["_cacache", "_logs", "_npx"]),
    ("GRADLE_USER_HOME", &["caches", "wrapper", ".tmp", "daemon", "native", "notifications", "workers"]),
    ("NUGET_PACKAGES", &[""]),
    ("WORKON_HOME", &[""]),
];

/// Folders of the system that are no caches, whatever a variable says.
const SYSTEM_FOLDERS: [&str; 8] = [
    "/usr/local",
    "/usr/bin",
    "/usr/lib",
    "/usr/share",
    "/usr/sbin",
    "/usr/local/bin",
    "/usr/local/lib",
    "/var/lib",
];

/// The same for toolchains, which are only read.
const TOOLCHAIN_VARIABLES: [&str; 18] = [
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "RUSTUP_HOME",
    "PYENV_ROOT",
    "PIPX_HOME",
    "NVM_DIR",
    "FNM_DIR",
    "VOLTA_HOME",
    "NODENV_ROOT",
    "GOROOT",
    "JAVA_HOME",
    "SDKMAN_DIR",
    "ANDROID_HOME",
    "DOTNET_ROOT",
    "RBENV_ROOT",
    "ASDF_DATA_DIR",
    "MISE_DATA_DIR",
    "OPAMROOT",
];

/// What commands may read of the home folder, which is hidden otherwise: programs, and what they need to build something.
/// Each is as narrow as it can be, because next to it the same tool often keeps a login: `.cargo/credentials.toml`,
/// `.m2/settings.xml`, `.gradle/gradle.properties`, `.composer/auth.json`, `.gem/credentials`.
const TOOLCHAIN_PATHS: &[&str] = &[
    // Programs that belong to no tool in particular, and what Python's packages put beside them.
    ".local/bin",
    ".local/lib",
    "bin",
    // Rust.
    ".cargo/bin",
    ".cargo/env",
    ".rustup",
    // Python.
    ".pyenv",
    ".local/share/uv",
    ".local/share/pipx",
    ".local/pipx",
    ".local/share/virtualenvs",
    ".local/share/hatch",
    ".virtualenvs",
    ".rye",
    ".pixi",
    ".conda/envs",
    ".conda/pkgs",
    "miniconda3",
    "anaconda3",
    "miniforge3",
    "mambaforge",
    // JavaScript.
    ".nvm",
    ".fnm",
    ".local/share/fnm",
    ".volta",
    ".n",
    "n",
    ".nodenv",
    ".bun/bin",
    ".bun/install/global",
    ".deno/bin",
    ".local/share/pnpm",
    ".npm-global",
    ".npm-packages",
    ".yarn/bin",
    ".yarn/berry",
    ".config/yarn/global",
    ".node-gyp",
    // Go.
    "go/bin",
    "go/pkg",
    "sdk",
    ".goenv",
    ".gvm",
    // Java and its relatives.
    ".sdkman",
    ".jenv",
    ".jdks",
    ".m2/repository",
    ".m2/wrapper",
    ".gradle/caches",
    ".gradle/wrapper",
    ".gradle/jdks",
    ".gradle/native",
    ".ivy2/cache",
    ".ivy2/local",
    ".sbt/boot",
    ".sbt/launchers",
    ".local/share/coursier",
    ".konan",
    "Android/Sdk",
    // .NET and Dart.
    ".dotnet",
    ".nuget/packages",
    ".pub-cache/bin",
    ".pub-cache/hosted",
    ".pub-cache/global_packages",
    "flutter",
    // Ruby and PHP.
    ".rbenv",
    ".rvm",
    ".gem/ruby",
    ".local/share/gem",
    ".bundle/cache",
    ".config/composer/vendor",
    ".composer/vendor",
    ".composer/cache",
    // Haskell, OCaml, Erlang, Julia, R, Lua, Perl, Nim, Zig, C and C++.
    ".ghcup",
    ".stack/programs",
    ".stack/snapshots",
    ".stack/pantry",
    ".cabal/bin",
    ".cabal/packages",
    ".cabal/store",
    ".local/state/cabal",
    ".opam",
    ".mix",
    ".hex/packages",
    ".kiex",
    ".juliaup",
    ".julia",
    "R",
    ".luarocks",
    "perl5",
    ".nimble",
    ".choosenim",
    ".zvm",
    ".conan2/p",
    ".elan",
    ".swiftly",
    ".local/share/swiftly",
    // Several languages at once.
    ".asdf",
    ".local/share/mise",
    ".local/share/rtx",
    ".proto",
    ".nix-profile",
    ".local/state/nix/profiles",
    ".nix-defexpr",
    ".linuxbrew",
    // Fonts and terminals, for what draws.
    ".local/share/fonts",
    ".fonts",
    ".config/fontconfig",
    ".terminfo",
    // What git is to do; looked into below.
    ".config/git/ignore",
    ".config/git/attributes",
    ".gitignore",
    ".gitignore_global",
    ".gitattributes",
];

/// Where tools keep a login inside what is shown of them.
const TOOLCHAIN_CREDENTIALS: &[&str] = &[
    ".local/share/uv/credentials",
    ".rye/credentials",
    ".opam/plugins/opam-publish",
    ".nimble/github_api_token",
    ".luarocks/upload_config.lua",
    ".julia/servers",
    ".julia/logs",
    ".dotnet/corefx",
    ".npm-global/etc/npmrc",
    ".npm-packages/etc/npmrc",
    ".config/yarn/global/.npmrc",
    ".config/yarn/global/.yarnrc",
    ".config/yarn/global/.yarnrc.yml",
    ".local/share/gem/credentials",
    ".local/share/pnpm/auth.ini",
    ".local/share/pnpm/.npmrc",
    ".bun/install/global/.npmrc",
];

/// Names of files in which tools keep a login, without their suffix; how such names end; and which suffixes they have. Certificates
/// that everybody has, and code, are no logins.
const CREDENTIAL_FILE_STEMS: [&str; 16] = [
    "credential",
    "credentials",
    "token",
    "tokens",
    "auth",
    "secret",
    "secrets",
    "password",
    "passwords",
    "netrc",
    "npmrc",
    "pypirc",
    "apikey",
    "api_key",
    "api-key",
    "creds",
];
const CREDENTIAL_STEM_ENDS: [&str; 9] = [
    "_token",
    "-token",
    "_tokens",
    "_credentials",
    "-credentials",
    "_history",
    "_auth",
    "_secrets",
    "_api_key",
];
const CREDENTIAL_FILE_SUFFIXES: [&str; 14] = [
    "json",
    "toml",
    "yml",
    "yaml",
    "ini",
    "cfg",
    "conf",
    "txt",
    "xml",
    "properties",
    "token",
    "lua",
    "jl",
    "db",
];
const CREDENTIAL_KEY_SUFFIXES: [&str; 4] = [".pfx", ".p12", ".jks", ".keystore"];
/// Settings in folders of tools that may hold a login.
const NESTED_SETTINGS_FILES: [&str; 14] = [
    ".condarc",
    "condarc",
    "pip.conf",
    ".yarnrc",
    ".yarnrc.yml",
    ".gemrc",
    "gemrc",
    "nuget.config",
    "gradle.properties",
    "settings.xml",
    "config.toml",
    "config.yml",
    "config.yaml",
    "config.json",
];

/// Settings that tools need, and that may hold a password or a token: shown only if they hold none.
const TOOL_SETTINGS_FILES: &[&str] = &[
    ".gitconfig",
    ".config/git/config",
    ".cargo/config",
    ".cargo/config.toml",
    ".config/pip/pip.conf",
    ".pip/pip.conf",
    ".config/uv/uv.toml",
    ".config/go/env",
    ".config/ccache/ccache.conf",
    ".condarc",
    ".bunfig.toml",
    ".config/mise/config.toml",
    ".tool-versions",
    ".editorconfig",
    ".clang-format",
    ".rustfmt.toml",
    ".config/rustfmt/rustfmt.toml",
];

/// Finds how well commands can be confined here, unless the user wants none of it.
pub(crate) fn probe_sandbox(setup: &CliSetup) -> SandboxProbe {
    let is_wanted = setup.config().map_or(true, |config| config.settings.permissions.confine);
    probe_sandbox_if(is_wanted, Some(&setup.places.private().join("probe")))
}

pub(crate) fn probe_sandbox_if(is_wanted: bool, private: Option<&Path>) -> SandboxProbe {
    match own_program() {
        Ok(keeper) if is_wanted => probe(&keeper, private),
        _ => SandboxProbe::NONE,
    }
}

/// This program, also after an update has replaced its file: it is started anew to keep commands.
pub(crate) fn own_program() -> io::Result<PathBuf> {
    let own = Path::new("/proc/self/exe");
    if cfg!(target_os = "linux") && own.exists() { Ok(own.to_owned()) } else { std::env::current_exe() }
}

pub(crate) fn sandbox_policy_for(setup: &CliSetup, found: &SandboxProbe) -> Option<SandboxPolicy> {
    let level = found.level;
    if level == ConfinementLevel::None {
        return None;
    }
    let home = home();
    let below = |names: &[&str]| -> Vec<PathBuf> {
        home.iter().flat_map(|home| names.iter().map(|name| home.join(name))).collect()
    };
    let agent = std::env::var_os("SSH_AUTH_SOCK").map(PathBuf::from);
    let programs = program_finder(setup);
    let copies: Vec<(&str, PathBuf)> =
        home.iter().flat_map(|home| copied_settings(home, setup.places.data())).collect();
    let wanted = setup.config().map(|config| config.settings.permissions.show.clone()).unwrap_or_default();
    let is_in_project = |path: &PathBuf| {
        let added = setup.added.iter().map(|root| root.folder());
        std::iter::once(setup.root.as_path()).chain(added).any(|folder| path.starts_with(folder))
    };
    // What is in the project is written there.
    let moved = home.iter().flat_map(|home| moved_caches(home).into_iter().chain(caches_elsewhere(home)));
    let moved = moved.filter(|path| !is_in_project(path));
    let toolchains: Vec<PathBuf> = home.iter().flat_map(|home| readable_paths(home)).collect();
    Some(SandboxPolicy {
        level,
        private: ProjectStorage {
            folder: setup.places.private().join(project_name(&setup.root)),
            has_layers: found.has_layers,
            caches: below(&CACHE_FOLDERS)
                .into_iter()
                .filter(|cache| is_no_link(cache) && !is_old_style(cache))
                .collect(),
            fetched: below(&FETCH_FOLDERS)
                .into_iter()
                .chain(below(&FETCH_FOLDERS_IF_PRESENT).into_iter().filter(|cache| cache.is_dir()))
                .chain(moved)
                .filter(|cache| is_no_link(cache))
                .collect(),
            own: below(&PROJECT_OWN_FOLDERS).into_iter().filter(|folder| is_no_link(folder)).collect(),
            cache_variables: &CACHE_VARIABLES,
            fetch_variables: &FETCH_VARIABLES,
        },
        hidden: below(&SECRET_HOME_PATHS)
            .into_iter()
            .chain(setup.places.own())
            .chain(credentials::all_moved_files())
            .chain(below(TOOLCHAIN_CREDENTIALS))
            .chain(toolchains.iter().flat_map(|folder| logins_in(folder)))
            .collect(),
        shown: toolchains
            .iter()
            .flat_map(|folder| beside_caches(folder, &home.as_deref().map(caches_below).unwrap_or_default()))
            .chain(home.iter().flat_map(|home| wanted.iter().map(|path| in_full(path, home))))
            .chain(copies.iter().map(|(_, path)| path.clone()))
            .collect(),
        variables: copies
            .into_iter()
            .map(|(name, path)| (name.into(), path.into()))
            .chain(indexes_without_login())
            .collect(),
        protected: vec![PathBuf::from(GUARDED_FOLDER)],
        protected_in_git: GUARDED_GIT_ENTRIES,
        is_secret: is_secret_name,
        holds_no_secret,
        without_logins: |settings| holds_login(settings).then(|| without_login(settings)),
        home: home.clone(),
        credentials: home.iter().flat_map(|home| credentials::credentials(home, &programs)).collect(),
        agent,
    })
}

/// All that commands see of the home folder: what they can read, what the user wants them to see, and caches.
pub(crate) fn shown_of_home(setup: &CliSetup) -> Vec<PathBuf> {
    let Some(home) = home() else { return Vec::new() };
    let wanted = setup.config().map(|config| config.settings.permissions.show.clone()).unwrap_or_default();
    let wanted = wanted.iter().map(|path| in_full(path, &home));
    readable_paths(&home).into_iter().chain(wanted).chain(caches_below(&home)).collect()
}

/// What commands can read of the home folder: what is there of the toolchains, and the programs on the `PATH`.
fn readable_paths(home: &Path) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut shown: Vec<PathBuf> = TOOLCHAIN_PATHS.iter().map(|name| home.join(name)).collect();
    shown.extend(std::env::split_paths(&path).filter(|folder| is_program_folder(folder, home)));
    shown.extend(TOOL_SETTINGS_FILES.iter().map(|name| home.join(name)).filter(|path| !holds_secrets(path)));
    shown.extend(TOOLCHAIN_VARIABLES.iter().filter_map(|name| moved_to(name, home)));
    shown.extend(
        moved_to("CARGO_HOME", home)
            .map(|folder| folder.join("config.toml"))
            .filter(|path| !holds_secrets(path)),
    );
    shown.retain(|path| path.exists() && !leads_to_secrets(path, home));
    // For as long as it holds no secret, which is looked at before each command.
    shown.push(home.join(NPM_SETTINGS_FILE));
    shown
}

/// The files with logins in a folder of a tool, and in the folders in it. What lies deeper belongs to packages.
fn logins_in(toolchain: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let inside: Vec<fs::DirEntry> = entries(toolchain).collect();
    let deeper = inside.iter().filter(|entry| is_folder(entry)).flat_map(|folder| entries(&folder.path()));
    let all: Vec<PathBuf> = deeper
        .chain(entries(toolchain))
        .filter(|entry| !is_folder(entry))
        .map(|entry| entry.path())
        .collect();
    all.into_iter().filter(|path| is_login(path)).collect()
}

fn is_login(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let plain = name.trim_start_matches('.');
    let (stem, suffix) = plain.rsplit_once('.').unwrap_or((plain, ""));
    let is_data = suffix.is_empty() || CREDENTIAL_FILE_SUFFIXES.contains(&suffix);
    let is_named = CREDENTIAL_FILE_STEMS.contains(&stem)
        || CREDENTIAL_STEM_ENDS.iter().any(|end| stem.ends_with(end))
        || suffix == "token";
    // A program is no login, whatever it is called.
    let is_program = || fs::metadata(path).is_ok_and(|facts| facts.permissions().mode() & 0o111 != 0);
    let is_store = is_data && is_named && !is_program();
    is_store
        || CREDENTIAL_KEY_SUFFIXES.iter().any(|end| name.ends_with(end))
        || name == ".env"
        || name.starts_with("id_rsa")
        || name.starts_with("id_ed25519")
        || NESTED_SETTINGS_FILES.contains(&name.as_str()) && holds_secrets(path)
}

/// A folder that is shown, or all that is in it: a cache that is not there yet could not be made inside what is shown as a whole.
fn beside_caches(shown: &Path, caches: &[PathBuf]) -> Vec<PathBuf> {
    let is_missing = |cache: &&PathBuf| cache.starts_with(shown) && *cache != shown && !cache.exists();
    if !shown.is_dir() || caches.iter().find(is_missing).is_none() {
        return vec![shown.to_owned()];
    }
    let inside = fs::read_dir(shown).into_iter().flatten().flatten().map(|entry| entry.path());
    inside.flat_map(|path| beside_caches(&path, caches)).collect()
}

/// What tools write in folders of the home folder that the user's variables name.
fn moved_caches(home: &Path) -> Vec<PathBuf> {
    let named = RELOCATION_VARIABLES.iter().filter_map(|(name, parts)| Some((moved_to(name, home)?, parts)));
    let all = named.flat_map(|(folder, parts)| parts.iter().map(move |part| inside(&folder, part)));
    all.filter(|cache| !leads_to_secrets(cache, home)).collect()
}

/// The same outside the home folder, as containers have them: only what is there, since nothing can be made in a folder that is
/// read-only.
fn caches_elsewhere(home: &Path) -> Vec<PathBuf> {
    let named = RELOCATION_VARIABLES.iter().filter_map(|(name, parts)| {
        let folder = PathBuf::from(std::env::var_os(name)?).canonicalize().ok()?;
        let is_own =
            folder.components().count() > 2 && !folder.starts_with(home) && !home.starts_with(&folder);
        is_own.then_some((folder, parts))
    });
    let all = named.flat_map(|(folder, parts)| parts.iter().map(move |part| inside(&folder, part)));
    all.filter(|cache| cache.is_dir() && !SYSTEM_FOLDERS.iter().any(|own| cache == Path::new(own))).collect()
}

/// `Path::join` with nothing would end with a slash.
fn inside(folder: &Path, part: &str) -> PathBuf {
    if part.is_empty() { folder.to_owned() } else { folder.join(part) }
}

/// The folder below the home folder that a variable names.
fn moved_to(variable: &str, home: &Path) -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os(variable)?);
    let is_plain = folder.components().all(|part| !matches!(part, Component::ParentDir | Component::CurDir));
    // With links resolved as the home folder's are, which may be reached by another name.
    let folder = folder.canonicalize().unwrap_or(folder);
    (is_plain && is_program_folder(&folder, home)).then_some(folder)
}

/// Whether a folder on the `PATH` is one in the home folder, and not that itself.
fn is_program_folder(folder: &Path, home: &Path) -> bool {
    folder.is_absolute() && folder.starts_with(home) && folder != home
}

/// Whether a path is, or leads to, something that is hidden for a reason of its own, or has such a thing in it.
fn leads_to_secrets(path: &Path, home: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (to, home) = (real(path), real(home));
    let is_all = home.starts_with(&to);
    is_all || SECRET_HOME_PATHS.iter().any(|secret| to.starts_with(real(&home.join(secret))))
}

fn in_full(path: &str, home: &Path) -> PathBuf {
    match path.strip_prefix("~/") {
        Some(below) => home.join(below),
        None if path == "~" => home.to_owned(),
        None => PathBuf::from(path),
    }
}

/// Whether a folder is there or can be made there. A link in the place of a cache could lead anywhere.
fn is_no_link(cache: &Path) -> bool {
    cache.symlink_metadata().map_or(true, |facts| facts.is_dir())
}

/// Whether a folder is one that a tool would take for its cache if it were there, and otherwise has elsewhere.
fn is_old_style(cache: &Path) -> bool {
    cache.ends_with(".ccache") && !cache.is_dir()
}

/// Finds programs where no command of the model's can have put them.
pub(crate) fn program_finder(setup: &CliSetup) -> ProgramFinder {
    ProgramFinder::new(setup, home().map(|home| caches_below(&home)).unwrap_or_default())
}

/// All that commands may write below the home folder.
fn caches_below(home: &Path) -> Vec<PathBuf> {
    let named = CACHE_FOLDERS
        .iter()
        .chain(&FETCH_FOLDERS)
        .chain(&FETCH_FOLDERS_IF_PRESENT)
        .map(|name| home.join(name));
    named.chain(moved_caches(home)).chain(caches_elsewhere(home)).collect()
}

/// How much memory the machine has: more is nobody's.
pub(crate) fn memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
