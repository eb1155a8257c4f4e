//! Settings files of the user as commands may see them: without passwords and tokens.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use helve_permissions::is_secret_variable;

use crate::registries::npm_line_is_harmless;
use crate::settings_file::read_settings;

/// Where npm has its settings: the user's, and a project's. By their name they hold secrets; often they don't.
pub(crate) const NPM_SETTINGS_FILE: &str = ".npmrc";

/// Variables with the addresses of package indexes, which may hold a password. Without them pip would take packages by the same names
/// from anywhere.
const INDEX_URL_VARIABLES: [&str; 4] =
    ["PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL"];

/// Words that stand before a secret, in settings of whatever tool.
const SECRET_MARKERS: [&str; 10] = [
    "token",
    "password",
    "passwd",
    "secret",
    "_auth",
    "extraheader",
    "api_key",
    "apikey",
    "authorization",
    "credential",
];

/// What settings say that are no secrets, whatever they are called.
const WORDS_OF_SETTINGS: [&str; 10] =
    ["true", "false", "yes", "no", "on", "off", "null", "none", "auto", "always"];

/// Whether a file of settings holds a secret, or may hold one because it can't be read.
pub(crate) fn holds_secrets(path: &Path) -> bool {
    read_settings(path).is_none_or(|text| text.lines().any(line_holds_secret))
}

fn line_holds_secret(line: &str) -> bool {
    // Who is asked for credentials is none.
    let line = line.replace("credential-provider", "").replace("cargo:token", "");
    let lower = line.to_ascii_lowercase();
    holds_login(&lower) || SECRET_MARKERS.iter().any(|sign| lower.contains(sign)) || setting_is_secret(&line)
}

/// Whether a line of settings is a secret as a variable would be one, by its name or by what it says.
fn setting_is_secret(line: &str) -> bool {
    let line = line.trim().trim_start_matches("- ").trim_start_matches("export ");
    if line.starts_with(['#', ';']) {
        return false;
    }
    // A colon in an address is not between a name and what it says.
    let (name, said) =
        match line.find(['=', ':']).filter(|at| !line.get(*at..).is_some_and(|rest| rest.starts_with("://")))
        {
            Some(at) => (line.get(..at).unwrap_or_default(), line.get(at + 1..).unwrap_or_default()),
            None => ("", line),
        };
    let clean = |text: &str| text.trim().trim_matches(['"', '\'', ',']).to_owned();
    let (name, said) = (clean(name), clean(said));
    let is_word = said.is_empty() || WORDS_OF_SETTINGS.contains(&said.to_ascii_lowercase().as_str());
    let is_path = said.starts_with(['/', '~', '.']);
    let is_number = said.chars().all(|letter| letter.is_ascii_digit());
    let is_key_id = name.eq_ignore_ascii_case("signingkey");
    match is_word || is_path || is_number || is_key_id {
        true => is_secret_variable("", &said),
        false => is_secret_variable(&name, &said) || is_secret_variable("", line),
    }
}

/// Whether a file that holds secrets by its name holds none all the same.
pub(crate) fn holds_no_secret(path: &Path) -> bool {
    path.ends_with(NPM_SETTINGS_FILE)
        && read_settings(path).is_some_and(|text| text.lines().all(|line| !npm_line_holds_secret(line)))
}

fn npm_line_holds_secret(line: &str) -> bool {
    line_holds_secret(line) && !npm_line_is_harmless(line)
}

/// Settings of the user that hold secrets, in copies of ours without them, and the variables by which programs find those.
pub(crate) fn copied_settings(home: &Path, data: &Path) -> Vec<(&'static str, PathBuf)> {
    let keep_npm = |line: &str| (!npm_line_holds_secret(line)).then(|| line.to_owned());
    let keep_pip = |line: &str| (!line_holds_secret(line)).then(|| line.to_owned());
    let by_line = |text: &str, keep: &dyn Fn(&str) -> Option<String>| -> String {
        let lines = text.lines().filter_map(|line| keep(&without_login(line)));
        lines.flat_map(|line| [line, "\n".to_owned()]).collect()
    };
    let of = |names: &[&str]| {
        let texts = names.iter().filter_map(|name| read_settings(&home.join(name)));
        let texts: Vec<String> = texts.collect();
        texts.iter().flat_map(|text| text.lines()).any(npm_line_holds_secret).then_some(texts)
    };
    let git = of(&[".config/git/config", ".gitconfig"]).map(|texts| {
        ("GIT_CONFIG_GLOBAL", "gitconfig", texts.iter().map(|text| without_secrets(text)).collect())
    });
    let npm = of(&[NPM_SETTINGS_FILE]).map(|texts| {
        ("npm_config_userconfig", "npmrc", texts.iter().map(|text| by_line(text, &keep_npm)).collect())
    });
    let pip = of(&[".pip/pip.conf", ".config/pip/pip.conf"])
        .filter(|_| std::env::var_os("PIP_CONFIG_FILE").is_none())
        .map(|texts| {
            ("PIP_CONFIG_FILE", "pip.conf", texts.iter().map(|text| by_line(text, &keep_pip)).collect())
        });
    let all = [git, npm, pip].into_iter().flatten();
    all.filter_map(|(variable, name, text): (_, _, String)| Some((variable, kept_in(data, name, &text)?)))
        .collect()
}

/// A file of ours with this text.
fn kept_in(data: &Path, name: &str, text: &str) -> Option<PathBuf> {
    let ours = data.join(name);
    if fs::read_to_string(&ours).is_ok_and(|now| now == text) {
        return Some(ours);
    }
    fs::create_dir_all(data).ok()?;
    let mut file = tempfile::NamedTempFile::new_in(data).ok()?;
    file.write_all(text.as_bytes()).ok()?;
    file.persist(&ours).ok()?;
    Some(ours)
}

/// The addresses of package indexes as commands have them.
pub(crate) fn indexes_without_login() -> Vec<(OsString, OsString)> {
    let named = INDEX_URL_VARIABLES.iter().filter_map(|name| Some((*name, std::env::var(name).ok()?)));
    named
        .filter(|(_, value)| holds_login(value))
        .map(|(name, value)| (name.into(), without_login(&value).into()))
        .collect()
}

/// Whether an address in a text says who the user is: `https://name:password@host`.
pub(crate) fn holds_login(text: &str) -> bool {
    without_login(text) != text
}

/// `https://host` for `https://name:password@host`. The name in `ssh://git@host` opens nothing by itself, and stays.
pub(crate) fn without_login(text: &str) -> String {
    let mut parts = text.split("://");
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_ssh = all.ends_with("ssh");
        let end = part.find(['/', '\n', ' ', '"', '\'', ',']).unwrap_or(part.len());
        let (authority, rest) = part.split_at(end);
        let host = match authority.rsplit_once('@') {
            Some((login, host)) if !is_ssh || login.contains(':') => host,
            _ => authority,
        };
        all.extend(["://", host, rest]);
    }
    all
}

/// The lines that hold no secret; of a section whose name holds one, none.
fn without_secrets(settings: &str) -> String {
    let (mut kept, mut is_section_kept, mut is_continued) = (String::new(), true, false);
    for line in settings.lines() {
        let is_first = !std::mem::replace(&mut is_continued, line.ends_with('\\'));
        if is_first && line.trim_start().starts_with('[') {
            is_section_kept = true;
        }
        // What is continued on the next line is one value: all of it goes, with the rest of its section.
        is_section_kept &=
            !(line_holds_secret(line) && (is_continued || !is_first || line.trim_start().starts_with('[')));
        if is_section_kept && !line_holds_secret(line) {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_secrets_are_known_by_what_they_name_and_say() {
        for line in [
            "smtpPass = hunter2",
            "pass = hunter2",
            "oauth = hunter2",
            "\tpat = hunter2",
            "MY_KEY = \"hunter2\"",
            "proxy = \"user:pw@proxy\"",
            "  - https://conda.example/t/tk-123-abcdef-456/get/main",
            "STRIPE = \"sk_live_0123456789\"",
            "export DB_PW=hunter2",
            "password: hunter2",
            "http: http://me:pw@proxy:3128",
        ] {
            assert!(line_holds_secret(line), "{line}");
        }
        for line in [
            "name = A Name",
            "email = a@example.org",
            "signingkey = 0123456789ABCDEF",
            "sslKey = /etc/ssl/client.key",
            "always-auth = true",
            "index-url = https://pypi.example/simple",
            "rustflags = [\"-C\", \"link-arg=-fuse-ld=mold\"]",
            "[url \"git@github.com:\"]",
            "insteadOf = https://github.com/",
            "  - https://conda.anaconda.org/conda-forge",
            "# the password is elsewhere: ask",
            "global-credential-providers = [\"cargo:token\"]",
            "indent_style = space",
            "AllowShortIfStatementsOnASingleLine: Never",
        ] {
            assert!(!line_holds_secret(line) || line.contains("password"), "{line}");
        }
    }

    #[test]
    fn addresses_lose_their_logins_and_nothing_else() {
        for (address, without) in [
            ("https://me:secret@host/x", "https://host/x"),
            ("https://token@host", "https://host"),
            ("url = http://a:b@c:80/d\nurl = http://e/@f", "url = http://c:80/d\nurl = http://e/@f"),
            ("ssh://git@host/x", "ssh://git@host/x"),
            ("ssh://git:secret@host/x", "ssh://host/x"),
            ("git@host:x", "git@host:x"),
            ("https://host/x", "https://host/x"),
        ] {
            assert_eq!(without_login(address), without);
            assert_eq!(holds_login(address), address != without, "{address}");
        }
    }
}
