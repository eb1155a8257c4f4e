//! Files that are not like others: those with secrets, and those that decide what may be done.

use std::path::Path;

use crate::pattern::{Places, Star, glob};

/// The folder of the project's settings: whoever writes there could allow himself anything.
pub const GUARDED: &str = ".helve";

/// What decides what git does, in a `.git` and in the modules and work trees below it.
pub const GUARDED_IN_GIT: &[&str] = &["config", "hooks", "commondir", "config.worktree"];

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

/// Whether a file decides what may be done.
pub(crate) fn is_guarded(path: &Path, places: &Places) -> bool {
    let is_below = |folder: &Path| {
        let Ok(inside) = path.strip_prefix(folder) else { return false };
        let mut names = inside.iter();
        // Where `.git` is a file, it leads to a folder with all of them.
        let is_in_git = names.any(|name| name == ".git")
            && (names.as_path().as_os_str().is_empty()
                || names.any(|name| GUARDED_IN_GIT.iter().any(|guarded| name == *guarded)));
        is_in_git || inside.iter().any(|name| name == GUARDED)
    };
    places.inside().any(is_below) || places.own.iter().any(|own| path.starts_with(own))
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
            ..Places::of("/p")
        };
        let is_guarded = |path: &str| is_guarded(Path::new(path), &places);
        for path in [
            "/p/.git/hooks/pre-commit",
            "/p/sub/.git/hooks/x",
            "/p/.git",
            "/p/.git/commondir",
            "/p/.git/modules/a/b/config",
            "/p/.git/worktrees/w/commondir",
            "/lib/.helve/config.toml",
            "/home/me/.config/helve/config.toml",
        ] {
            assert!(is_guarded(path), "{path}");
        }
        for path in [
            "/p/.git/index",
            "/p/.git/modules/a/index",
            "/p/config",
            "/p/.gitignore",
            "/p/src/.helver",
            "/home/me/.config/other",
        ] {
            assert!(!is_guarded(path), "{path}");
        }
    }
}
