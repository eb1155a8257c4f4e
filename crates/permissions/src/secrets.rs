//! Files that are not like others: those with secrets, and those that decide what may be done.

use std::path::Path;

use crate::pattern::{ProjectContext, WildcardScope, glob_matches};

/// The folder of the project's settings: whoever writes there could allow himself anything.
pub const GUARDED_FOLDER: &str = ".helve";

/// What decides what git does, in a `.git` and in the modules and work trees below it.
pub const GUARDED_GIT_ENTRIES: &[&str] = &["config", "hooks", "commondir", "config.worktree", "info"];

/// Names of files with secrets, wherever they are.
const SECRET_FILE_PATTERNS: [&str; 43] = [
    ".env",
    ".env.*",
    ".env-*",
    ".env_*",
    "*.env",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.ppk",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ovpn",
    "*.tfvars",
    "*.tfstate",
    "id_rsa*",
    "id_dsa*",
    "id_ed25519*",
    "id_ecdsa*",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".htpasswd",
    ".my.cnf",
    ".s3cfg",
    ".boto",
    ".vault-token",
    ".vault_pass*",
    ".dockercfg",
    ".dockerconfigjson",
    ".git-credentials",
    "kubeconfig",
    "*.agekey",
    ".mylogin.cnf",
    ".terraformrc",
    ".databrickscfg",
    ".sentryclirc",
    "pgpass.conf",
    ".pgpass.conf",
    ".snowsql",
];

/// Words in the names of files with data that say that those are secrets: `secrets.yml`, `prod-credentials.json`.
const SECRET_FILE_WORDS: [&str; 9] = [
    "secret",
    "secrets",
    "credential",
    "credentials",
    "creds",
    "password",
    "passwords",
    "serviceaccount",
    "adminsdk",
];
/// What files with data end with, and not those with code: `secrets.py` is a program.
const DATA_FILE_SUFFIXES: [&str; 13] =
    ["yml", "yaml", "json", "toml", "ini", "cfg", "conf", "properties", "xml", "txt", "csv", "env", "enc"];
/// Names of such files that have no such word in them.
const SECRET_DATA_FILES: [&str; 2] = ["auth.json", "local.settings.json"];

/// What editors and other programs add to the name of a file when they keep a copy of it.
const BACKUP_SUFFIXES: [&str; 7] = ["~", ".bak", ".backup", ".orig", ".old", ".save", ".rej"];

/// Looks like a secret and is none.
const NOT_SECRET_PATTERNS: [&str; 1] = ["*.pub"];
/// Words in the names of files that only show how one with secrets looks: `.env.example`.
const EXAMPLE_FILE_WORDS: [&str; 10] =
    ["example", "examples", "sample", "template", "tmpl", "tpl", "dist", "schema", "default", "defaults"];
/// Keys are real, whatever their files are called.
const KEY_FILE_SUFFIXES: [&str; 8] = ["pem", "key", "p12", "pfx", "ppk", "jks", "keystore", "kdbx"];

/// What holds secrets below the home folder.
pub const SECRET_HOME_PATHS: [&str; 65] = [
    ".ssh",
    ".aws",
    ".gnupg",
    ".kube",
    ".docker",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".config/op",
    ".password-store",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".s3cfg",
    ".boto",
    ".vault-token",
    ".terraformrc",
    ".terraform.d/credentials.tfrc.json",
    ".config/glab-cli",
    ".config/hub",
    ".config/sops",
    ".config/age",
    ".config/rclone",
    ".config/restic",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".config/rbw",
    ".doppler",
    ".fly",
    ".config/netlify",
    ".netlify",
    ".local/share/com.vercel.cli",
    ".config/com.vercel.cli",
    ".supabase",
    ".local/share/heroku",
    ".railway",
    ".config/doctl",
    ".config/hcloud",
    ".oci",
    ".aliyun",
    ".config/scw",
    ".pulumi/credentials.json",
    ".config/stripe",
    ".config/ngrok",
    ".ngrok2",
    ".config/containers/auth.json",
    ".cache/huggingface/token",
    ".huggingface/token",
    ".kaggle",
    ".databrickscfg",
    ".sentryclirc",
    ".snowsql",
    ".codex/auth.json",
    ".claude/.credentials.json",
    ".claude.json",
    ".gemini/oauth_creds.json",
    ".config/github-copilot",
    ".local/share/opencode/auth.json",
    ".config/anthropic",
    ".config/openai",
    ".subversion/auth",
];

/// What holds secrets of the system.
const SECRET_SYSTEM_PATHS: [&str; 9] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/wireguard",
    "/etc/NetworkManager/system-connections",
];

/// Folders of the system that everybody reads, and that every confined program sees.
const PUBLIC_SYSTEM_FOLDERS: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/etc"];

/// Whether a file may hold secrets, by its name and its place.
pub fn is_secret(path: &Path, places: &ProjectContext) -> bool {
    let home = places.home.as_deref();
    let is_at_home =
        home.is_some_and(|home| SECRET_HOME_PATHS.iter().any(|secret| path.starts_with(home.join(secret))));
    // Keys, sessions, and what was remembered. A project that lies in there is none the less one.
    let is_own = places.own.iter().any(|own| path.starts_with(own) && !places.root.starts_with(own));
    let is_by_name = path.file_name().is_some_and(|name| is_secret_name(&name.to_string_lossy()));
    is_at_home
        || is_own
        || is_by_name
        || SECRET_SYSTEM_PATHS.iter().any(|secret| path.starts_with(secret))
        || path.iter().any(|name| is_secret_folder(&name.to_string_lossy()))
}

/// Whether a path is one of the home folder that commands don't see, or that folder itself.
pub(crate) fn is_hidden(path: &Path, places: &ProjectContext) -> bool {
    let is_at_home = places.home.as_deref().is_some_and(|home| path.starts_with(home));
    is_at_home && !places.is_inside(path) && !places.shown.iter().any(|shown| path.starts_with(shown))
}

/// Whether a path belongs to the system, and holds no secret and nothing about people.
pub(crate) fn is_public(path: &Path, places: &ProjectContext) -> bool {
    const ABOUT_PEOPLE: [&str; 4] = ["/etc/passwd", "/etc/passwd-", "/etc/group", "/etc/group-"];
    PUBLIC_SYSTEM_FOLDERS.iter().any(|folder| path.starts_with(folder))
        && !ABOUT_PEOPLE.iter().any(|own| path == Path::new(own))
        && !is_secret(path, places)
        && !is_hidden(path, places)
}

/// Whether a file by this name may hold secrets, wherever it is. A copy that an editor keeps holds what the file does.
pub fn is_secret_name(name: &str) -> bool {
    is_secret_file_name(name) || original_of_copy(name).is_some_and(is_secret_name)
}

/// The name of the file of which a program keeps a copy by this name: `.env` of `.env~`, `..env.swp`, `#.env#` and `.env.bak`.
fn original_of_copy(name: &str) -> Option<&str> {
    let is_swap = |suffix: &str| suffix.len() == 3 && suffix.starts_with("sw");
    let swap = || Some(name.strip_prefix('.')?.rsplit_once('.').filter(|(_, suffix)| is_swap(suffix))?.0);
    let autosave = || name.strip_prefix('#')?.strip_suffix('#');
    let backup = || BACKUP_SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix));
    swap().or_else(autosave).or_else(backup).filter(|original| !original.is_empty())
}

fn is_secret_file_name(name: &str) -> bool {
    let any =
        |patterns: &[&str]| patterns.iter().any(|pattern| glob_matches(pattern, name, WildcardScope::InName));
    (any(&SECRET_FILE_PATTERNS) || is_secret_data(name)) && !any(&NOT_SECRET_PATTERNS) && !is_example(name)
}

/// Whether all that is in a folder by this name may be secret.
fn is_secret_folder(name: &str) -> bool {
    let matches = |pattern: &str| glob_matches(pattern, name, WildcardScope::InName);
    SECRET_FILE_PATTERNS.iter().any(|pattern| matches(pattern))
        && !NOT_SECRET_PATTERNS.iter().any(|pattern| matches(pattern))
        && !is_example(name)
}

/// Whether a file by this name holds data, and its name says that those are secret.
fn is_secret_data(name: &str) -> bool {
    let lower = name.to_lowercase();
    let is_data = match lower.trim_start_matches('.').rsplit_once('.') {
        Some((_, suffix)) => DATA_FILE_SUFFIXES.contains(&suffix),
        // `.secrets` is a file; `secrets` is often a folder with code.
        None => lower.starts_with('.'),
    };
    let joined =
        lower.replace("service-account", "serviceaccount").replace("service_account", "serviceaccount");
    let mut words = joined.split(['.', '-', '_', ' ']);
    SECRET_DATA_FILES.contains(&lower.as_str())
        || is_data && words.any(|word| SECRET_FILE_WORDS.contains(&word))
}

fn is_example(name: &str) -> bool {
    let lower = name.to_lowercase();
    let is_key = lower.rsplit_once('.').is_some_and(|(_, suffix)| KEY_FILE_SUFFIXES.contains(&suffix));
    !is_key && lower.split(['.', '-', '_']).any(|word| EXAMPLE_FILE_WORDS.contains(&word))
}

/// Folders of the system that decide what programs do, for whoever may write there.
const GUARDED_SYSTEM_FOLDERS: [&str; 13] = [
    "/etc",
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/boot",
    "/opt",
    "/var/spool",
    "/var/lib",
    "/dev",
    "/proc",
    "/sys",
];

/// What git writes in its folder while it works, and nothing runs.
const GIT_DATA_ENTRIES: [&str; 11] = [
    "index",
    "objects",
    "refs",
    "logs",
    "HEAD",
    "FETCH_HEAD",
    "ORIG_HEAD",
    "COMMIT_EDITMSG",
    "MERGE_HEAD",
    "MERGE_MSG",
    "packed-refs",
];

/// Why a file is guarded: it decides what may be done, or what runs later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardReason {
    /// The settings of this program, which decide about everything.
    Own,
    /// The settings and hooks of a repository.
    Git,
    /// The project's settings of this program.
    Project,
    /// What the user's other programs read or run: `~/.bashrc`, `~/.config`.
    Dotfile,
    /// What belongs to the system.
    System,
}

impl GuardReason {
    pub(crate) fn why(self) -> &'static str {
        match self {
            GuardReason::Own => "is one of Helve's own settings",
            GuardReason::Git => "decides what git runs",
            GuardReason::Project => "decides what Helve may do in this project",
            GuardReason::Dotfile => "belongs to your settings, which other programs obey",
            GuardReason::System => "belongs to the system",
        }
    }
}

/// Why a file is guarded, if it is.
pub fn guard_reason(path: &Path, places: &ProjectContext) -> Option<GuardReason> {
    let inside = places
        .inside()
        .filter_map(|folder| path.strip_prefix(folder).ok())
        .min_by_key(|rest| rest.iter().count());
    if places.own.iter().any(|own| path.starts_with(own)) {
        return Some(GuardReason::Own);
    }
    if inside.unwrap_or(path).iter().any(|name| name == GUARDED_FOLDER) {
        return Some(GuardReason::Project);
    }
    let is_in_git_folder = places.git_folders.iter().any(|folder| path.starts_with(folder));
    if is_guarded_in_git(path) || is_in_git_folder {
        return Some(GuardReason::Git);
    }
    if inside.is_some() {
        return None;
    }
    // Whoever writes all of the home folder writes those too.
    if places.home.as_deref().is_some_and(|home| home.starts_with(path)) {
        return Some(GuardReason::Dotfile);
    }
    let at_home = places.home.as_deref().and_then(|home| path.strip_prefix(home).ok());
    if at_home
        .and_then(|rest| rest.iter().next())
        .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
    {
        return Some(GuardReason::Dotfile);
    }
    GUARDED_SYSTEM_FOLDERS.iter().any(|folder| path.starts_with(folder)).then_some(GuardReason::System)
}

/// Whether a path is a `.git`, or something in one that decides: everything but the data.
fn is_guarded_in_git(path: &Path) -> bool {
    let mut names = path.iter();
    if !names.any(|name| name == ".git") {
        return false;
    }
    // Modules and work trees have a git folder of their own.
    for name in names {
        let name = name.to_string_lossy();
        match name.as_ref() {
            "modules" | "worktrees" => continue,
            name if GIT_DATA_ENTRIES.contains(&name.trim_end_matches(".lock")) => return false,
            name if GUARDED_GIT_ENTRIES.contains(&name) => return true,
            // The name of a module, or something else.
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_name_and_by_place() {
        let places = ProjectContext { home: Some("/home/me".into()), ..ProjectContext::of("/p") };
        let is_secret = |path: &str| is_secret(Path::new(path), &places);
        for path in ["/p/.env", "/p/a/.env.local", "/p/server.key", "/home/me/.ssh/config", "/x/id_rsa"] {
            assert!(is_secret(path), "{path}");
        }
        for path in ["/p/.env.example", "/p/key.rs", "/home/me/.sshrc", "/p/id_rsa.pub", "/p/.envrc"] {
            assert!(!is_secret(path), "{path}");
        }
        let names = "prod.env secrets.yml config/secrets.yaml Secrets.json prod-secrets.toml secrets.prod.yml .secrets .secrets.toml \
                     secret.json credentials.yml db-credentials.ini app.tfvars terraform.tfstate release.keystore \
                     google-service-account.json serviceAccount.json .env-prod .htpasswd kubeconfig auth.json example.pem passwords.txt";
        for name in names.split_whitespace() {
            assert!(is_secret(&format!("/p/{name}")), "{name}");
        }
        let names = "secrets.rs secrets.py test_credentials.go prod.env.example example.env .env.sample secrets.example.yml \
                     src/secrets/mod.rs credentials/main.go .env.template environment.yml config.json env.ts secretary.json .secrets.baseline keys.txt password.html";
        for name in names.split_whitespace() {
            assert!(!is_secret(&format!("/p/{name}")), "{name}");
        }
    }

    #[test]
    fn copies_that_programs_keep_of_secrets_are_secrets() {
        for name in [
            ".env~",
            "..env.swp",
            "#.env#",
            ".env.bak",
            ".server.key.swo",
            "server.key~",
            "secrets.yml.orig",
            "credentials.json.bak~",
            ".netrc.old",
            "auth.json.save",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in
            ["main.rs~", ".main.rs.swp", "#notes#", "~", "##", ".bak", "id_rsa.pub", "server.pub~", "swp"]
        {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn what_decides_is_guarded_wherever_files_may_be_changed() {
        let places = ProjectContext {
            added: vec!["/lib".into()],
            own: vec!["/home/me/.config/helve".into()],
            home: Some("/home/me".into()),
            ..ProjectContext::of("/p")
        };
        let is_guarded = |path: &str| guard_reason(Path::new(path), &places).is_some();
        for path in [
            "/p/.git/hooks/pre-commit",
            "/p/sub/.git/hooks/x",
            "/p/.git",
            "/p/.git/commondir",
            "/p/.git/modules/a/b/config",
            "/p/.git/worktrees/w/commondir",
            "/lib/.helve/config.toml",
            "/home/me/.config/helve/config.toml",
            "/home/me/.bashrc",
            "/home/me/.config/other",
            "/elsewhere/.git/hooks/x",
            "/p/vendor/x/.git/config",
            "/p/.git/info/attributes",
            "/p/.git/rebase-merge/git-rebase-todo",
            "/etc/cron.d/x",
        ] {
            assert!(is_guarded(path), "{path}");
        }
        let places = ProjectContext { git_folders: vec!["/p/fix.git".into()], ..places.clone() };
        for (path, is_guarded) in
            [("/p/fix.git/hooks/x", true), ("/p/fix.git/HEAD", true), ("/p/fix.git2/x", false)]
        {
            assert_eq!(guard_reason(Path::new(path), &places).is_some(), is_guarded, "{path}");
        }
        for path in [
            "/p/.git/index",
            "/p/.git/modules/a/index",
            "/p/config",
            "/p/.gitignore",
            "/p/src/.helver",
            "/home/me/notes",
            "/srv/x",
        ] {
            assert!(!is_guarded(path), "{path}");
        }
    }
}
