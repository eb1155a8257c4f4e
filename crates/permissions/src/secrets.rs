//! Files that are not like others: those with secrets, and those that decide what may be done.

use std::path::Path;

use crate::pattern::{Places, Star, glob};

/// The folder of the project's settings: whoever writes there could allow himself anything.
pub const GUARDED: &str = ".helve";

/// What decides what git does, in a `.git` and in the modules and work trees below it.
pub const GUARDED_IN_GIT: &[&str] = &["config", "hooks", "commondir", "config.worktree", "info"];

/// Names of files with secrets, wherever they are.
const SECRET_NAMES: [&str; 14] = [
    ".env",
    ".env.*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "id_rsa*",
    "id_ed25519*",
    "id_ecdsa*",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    "credentials.json",
];

/// Looks like a secret and is none.
const NO_SECRETS: [&str; 4] = [".env.example", ".env.sample", ".env.template", "*.pub"];

/// What holds secrets below the home folder.
pub const SECRETS_AT_HOME: [&str; 14] = [
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
];

/// Whether a file may hold secrets, by its name and its place.
pub fn is_secret(path: &Path, places: &Places) -> bool {
    let home = places.home.as_deref();
    let is_at_home =
        home.is_some_and(|home| SECRETS_AT_HOME.iter().any(|secret| path.starts_with(home.join(secret))));
    is_at_home || path.iter().any(|name| is_secret_name(&name.to_string_lossy()))
}

/// Whether a file by this name may hold secrets, wherever it is.
pub fn is_secret_name(name: &str) -> bool {
    let any = |patterns: &[&str]| patterns.iter().any(|pattern| glob(pattern, name, Star::InName));
    any(&SECRET_NAMES) && !any(&NO_SECRETS)
}

/// Folders of the system that decide what programs do, for whoever may write there.
const SYSTEM: [&str; 13] = [
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
const DATA_OF_GIT: [&str; 11] = [
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
pub enum Guarded {
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

impl Guarded {
    pub(crate) fn why(self) -> &'static str {
        match self {
            Guarded::Own => "is one of Helve's own settings",
            Guarded::Git => "decides what git runs",
            Guarded::Project => "decides what Helve may do in this project",
            Guarded::Dotfile => "belongs to your settings, which other programs obey",
            Guarded::System => "belongs to the system",
        }
    }
}

/// Why a file is guarded, if it is.
pub fn guarded(path: &Path, places: &Places) -> Option<Guarded> {
    let inside = places
        .inside()
        .filter_map(|folder| path.strip_prefix(folder).ok())
        .min_by_key(|rest| rest.iter().count());
    if places.own.iter().any(|own| path.starts_with(own)) {
        return Some(Guarded::Own);
    }
    if inside.unwrap_or(path).iter().any(|name| name == GUARDED) {
        return Some(Guarded::Project);
    }
    if is_guarded_in_git(path) {
        return Some(Guarded::Git);
    }
    if inside.is_some() {
        return None;
    }
    // Whoever writes all of the home folder writes those too.
    if places.home.as_deref().is_some_and(|home| home.starts_with(path)) {
        return Some(Guarded::Dotfile);
    }
    let at_home = places.home.as_deref().and_then(|home| path.strip_prefix(home).ok());
    if at_home
        .and_then(|rest| rest.iter().next())
        .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
    {
        return Some(Guarded::Dotfile);
    }
    SYSTEM.iter().any(|folder| path.starts_with(folder)).then_some(Guarded::System)
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
            name if DATA_OF_GIT.contains(&name.trim_end_matches(".lock")) => return false,
            name if GUARDED_IN_GIT.contains(&name) => return true,
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
        let places = Places { home: Some("/home/me".into()), ..Places::of("/p") };
        let is_secret = |path: &str| is_secret(Path::new(path), &places);
        for path in ["/p/.env", "/p/a/.env.local", "/p/server.key", "/home/me/.ssh/config", "/x/id_rsa"] {
            assert!(is_secret(path), "{path}");
        }
        for path in ["/p/.env.example", "/p/key.rs", "/home/me/.sshrc", "/p/id_rsa.pub", "/p/.envrc"] {
            assert!(!is_secret(path), "{path}");
        }
    }

    #[test]
    fn what_decides_is_guarded_wherever_files_may_be_changed() {
        let places = Places {
            added: vec!["/lib".into()],
            own: vec!["/home/me/.config/helve".into()],
            home: Some("/home/me".into()),
            ..Places::of("/p")
        };
        let is_guarded = |path: &str| guarded(Path::new(path), &places).is_some();
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
