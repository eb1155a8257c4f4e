//! Variables of the environment that hold what is nobody's business.

/// Parts of names that say so.
const SECRET_NAME_PARTS: [&str; 21] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "API_KEY",
    "APIKEY",
    "ACCESS_KEY",
    "PRIVATE_KEY",
    "AUTH_KEY",
    "ENCRYPTION_KEY",
    "SIGNING_KEY",
    "MASTER_KEY",
    "DATABASE_URL",
    "REDIS_URL",
    "MONGO_URL",
    "MONGODB_URI",
    "CONNECTION_STRING",
    "WEBHOOK",
    "COOKIE",
];

/// Ends of names that say so.
const SECRET_NAME_SUFFIXES: [&str; 9] =
    ["_KEY", "_PAT", "_DSN", "_PASS", "_PWD", "_CREDS", "_AUTH", "_JWT", "_SAS"];

/// Names that look like those and hold none.
const HARMLESS_VARIABLES: [&str; 8] =
    ["SSH_AUTH_SOCK", "OLDPWD", "PWD", "XAUTHORITY", "INIT_CWD", "COLORFGBG", "LS_COLORS", "GPG_TTY"];

/// How keys begin that vendors give, and how long they are at least.
const SECRET_VALUE_PREFIXES: [(&str, usize); 32] = [
    ("sk-", 20),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("pk_live_", 16),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("xoxa-", 16),
    ("xapp-", 16),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("ya29.", 20),
    ("npm_", 20),
    ("pypi-", 20),
    ("hf_", 20),
    ("gsk_", 20),
    ("xai-", 20),
    ("eyJ", 40),
    ("SG.", 30),
    ("dop_v1_", 20),
    ("shpat_", 20),
    ("lin_api_", 16),
    ("-----BEGIN", 20),
    ("age-secret-key-", 20),
];

/// Whether a variable holds a secret, by its name or by what it holds.
pub fn is_secret_variable(name: &str, value: &str) -> bool {
    let upper = name.to_uppercase();
    if HARMLESS_VARIABLES.contains(&upper.as_str()) || value.is_empty() {
        return false;
    }
    let by_name = SECRET_NAME_PARTS.iter().any(|sign| upper.contains(sign))
        || SECRET_NAME_SUFFIXES.iter().any(|end| upper.ends_with(end));
    by_name || matches!(upper.as_str(), "PAT" | "DSN") || holds_secret(value)
}

/// Whether a text is a key, or an address with a password in it.
fn holds_secret(value: &str) -> bool {
    let value = value.trim().trim_matches(['"', '\'']);
    let value = value.strip_prefix("Bearer ").or_else(|| value.strip_prefix("bearer ")).unwrap_or(value);
    let has_shape = |(start, length): &(&str, usize)| {
        value.len() >= *length
            && value.starts_with(start)
            && (value.starts_with('-') || !value.contains([' ', '/', ':']))
    };
    let has_password = value.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        authority.rsplit_once('@').is_some_and(|(login, _)| login.contains(':') && !login.ends_with(':'))
    });
    SECRET_VALUE_PREFIXES.iter().any(has_shape) || has_password
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_name_and_by_value() {
        for (name, value) in [
            ("DB_PASSWORD", "x"),
            ("DATABASE_URL", "x"),
            ("GH_PAT", "x"),
            ("OPENAI_KEY", "x"),
            ("SENTRY_DSN", "x"),
            ("WORK", "sk-proj-abcdefghijklmnopqrstuv"),
            ("ANYTHING", "ghp_0123456789012345678901234567"),
            ("CACHE", "redis://user:pass@host:1/0"),
            ("MIRROR", "https://me:token@host/simple"),
            ("X", "AKIAIOSFODNN7EXAMPLE"),
            ("my_secret", "x"),
            ("CERT", "-----BEGIN PRIVATE KEY-----"),
        ] {
            assert!(is_secret_variable(name, value), "{name}={value}");
        }
        for (name, value) in [
            ("PATH", "/usr/bin"),
            ("HOME", "/home/me"),
            ("SSH_AUTH_SOCK", "/run/x"),
            ("LANG", "C"),
            ("KEYBOARD", "us"),
            ("PROXY", "http://proxy:3128"),
            ("EDITOR", "vi"),
            ("API_KEY", ""),
            ("NODE_OPTIONS", "--max-old-space-size=1"),
            ("SKETCH", "sk-short"),
        ] {
            assert!(!is_secret_variable(name, value), "{name}={value}");
        }
    }
}
