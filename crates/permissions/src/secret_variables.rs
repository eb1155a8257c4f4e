//! Variables of the environment that hold what is nobody's business.

/// Parts of names that say so, wherever they stand.
const SECRET_NAME_PARTS: [&str; 23] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "PASSCODE",
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
    "MNEMONIC",
];

/// Words in names that say so, unless the last word says that it is only about one: `KEY_PATH`.
const SECRET_WORDS: &str = "KEY KEYS PASS PW PWD PAT DSN CRED CREDS AUTH OAUTH AUTHORIZATION BEARER JWT SAS SK PSK OTP TOTP HOTP MFA PEM PFX \
                            SESSION HMAC SALT PEPPER NETRC DOCKERCONFIGJSON DOCKERCFG CONNSTR SSHKEY SECRETKEY PRIVATEKEY ACCESSKEY \
                            AUTHKEY MASTERKEY SIGNINGKEY LICENSEKEY DEPLOYKEY";

/// How words end that say so: `BINDPW`, `PGPASS`.
const SECRET_WORD_ENDS: [&str; 3] = ["PW", "PWD", "PASS"];
const HARMLESS_WORDS: [&str; 4] = ["BYPASS", "COMPASS", "ASKPASS", "OLDPWD"];

/// Last words of names by which a variable tells something about a secret, and not the secret itself.
const DESCRIBING_WORDS: &str = "PATH FILE DIR FOLDER NAME TYPE SIZE COUNT LENGTH LEN BITS MODE METHOD HOST PORT USER USERNAME ENABLED \
                                DISABLED TIMEOUT TTL SOCK SOCKET ALGORITHM ALGO PROVIDER HELPER BACKEND REPEAT URL URI ENDPOINT \
                                ID MANAGER ADDRESS DESKTOP CLASS BUS";

/// Names that look like those and hold none, and those of lists of paths, without which nothing works.
const HARMLESS_VARIABLES: &str = "SSH_AUTH_SOCK OLDPWD PWD XAUTHORITY INIT_CWD COLORFGBG LS_COLORS GPG_TTY PATH HOME USER LOGNAME SHELL \
                                  TERM LANG TMPDIR MANPATH INFOPATH LD_LIBRARY_PATH PYTHONPATH GOPATH NODE_PATH CDPATH CLASSPATH \
                                  PKG_CONFIG_PATH XDG_DATA_DIRS XDG_CONFIG_DIRS DESKTOP_SESSION KONSOLE_DBUS_SESSION GDMSESSION \
                                  SSH_ASKPASS GIT_ASKPASS SUDO_ASKPASS LESSKEY";

/// How keys begin that vendors give, and how many letters, digits, `_` and `-` follow at least.
const KEY_SHAPES: &[(&str, usize)] = &[
    ("sk-", 17),
    ("csk-", 20),
    ("sk_live_", 8),
    ("sk_test_", 8),
    ("rk_live_", 8),
    ("rk_test_", 8),
    ("pk_live_", 8),
    ("whsec_", 16),
    ("ghp_", 16),
    ("gho_", 16),
    ("ghu_", 16),
    ("ghs_", 16),
    ("ghr_", 16),
    ("github_pat_", 9),
    ("glpat-", 10),
    ("glptt-", 10),
    ("gldt-", 10),
    ("glrt-", 10),
    ("glcbt-", 10),
    ("gloas-", 10),
    ("glsoat-", 10),
    ("glsa_", 20),
    ("glc_", 20),
    ("xoxb-", 11),
    ("xoxp-", 11),
    ("xoxa-", 11),
    ("xoxe-", 11),
    ("xoxr-", 11),
    ("xoxs-", 11),
    ("xoxc-", 11),
    ("xoxd-", 11),
    ("xapp-", 11),
    ("AKIA", 12),
    ("ASIA", 12),
    ("LTAI", 12),
    ("AKID", 16),
    ("AIza", 26),
    ("GOCSPX-", 16),
    ("npm_", 30),
    ("pypi-", 15),
    ("rubygems_", 20),
    ("hf_", 17),
    ("api_org_", 20),
    ("gsk_", 16),
    ("xai-", 16),
    ("pplx-", 16),
    ("tvly-", 16),
    ("r8_", 20),
    ("nvapi-", 20),
    ("jina_", 20),
    ("tgp_v1_", 20),
    ("fw_", 20),
    ("dop_v1_", 13),
    ("doo_v1_", 13),
    ("dor_v1_", 13),
    ("shpat_", 14),
    ("shpca_", 14),
    ("shppa_", 14),
    ("shpss_", 14),
    ("sq0atp-", 14),
    ("sq0csp-", 14),
    ("lin_api_", 8),
    ("lin_oauth_", 8),
    ("secret_", 30),
    ("ntn_", 30),
    ("dckr_pat_", 12),
    ("dckr_oat_", 12),
    ("ATATT3", 16),
    ("ATCTT3", 16),
    ("ATBB", 20),
    ("sntrys_", 16),
    ("sntryu_", 16),
    ("figd_", 16),
    ("sb_secret_", 10),
    ("sbp_", 20),
    ("AGE-SECRET-KEY-1", 8),
    ("NRAK-", 16),
    ("PMAK-", 16),
    ("CFPAT-", 16),
    ("nfp_", 20),
    ("vcp_", 20),
    ("tskey-", 12),
    ("xkeysib-", 20),
    ("xsmtpsib-", 20),
    ("pscale_tkn_", 12),
    ("pscale_pw_", 12),
    ("pscale_oauth_", 12),
    ("phx_", 20),
    ("sgp_", 20),
    ("pul-", 30),
    ("dapi", 32),
    ("ops_eyJ", 20),
    ("AKCp", 40),
    ("cmVmdGtu", 30),
    ("fm2_", 30),
    ("fo1_", 30),
    ("key-", 32),
    ("re_", 24),
    ("eyJ", 37),
    ("A3-", 24),
];

/// What stands in a text only where a secret does.
const SECRET_MARKS: [&str; 9] = [
    "-----begin",
    "hooks.slack.com/services/",
    "discord.com/api/webhooks/",
    "discordapp.com/api/webhooks/",
    ".webhook.office.com/",
    ".atlasv1.",
    "ya29.",
    "sig=",
    "putty-user-key-file",
];
/// The same, with dots in them: how they begin, and how many letters, digits and dots follow.
const DOTTED_SHAPES: [(&str, usize); 6] =
    [("SG.", 27), ("hvs.", 16), ("hvb.", 16), ("hvr.", 16), ("dp.pt.", 16), ("dp.st.", 16)];

/// Whether a variable holds a secret, by its name or by what it holds.
pub fn is_secret_variable(name: &str, value: &str) -> bool {
    let upper = name.to_uppercase();
    let is_harmless = HARMLESS_VARIABLES.split_whitespace().any(|own| own == upper);
    !is_harmless && !value.trim().is_empty() && (is_secret_word(name) || holds_secret(value))
}

/// Whether a name is that of a secret: of a variable, or of a part of what one holds.
fn is_secret_word(name: &str) -> bool {
    let upper = name.to_uppercase();
    if SECRET_NAME_PARTS.iter().any(|part| upper.contains(part)) {
        return true;
    }
    let words = words_of(name);
    let has = |list: &str, word: &String| list.split_whitespace().any(|own| own == word);
    let is_webhook = words.iter().any(|word| word == "HOOK") && words.iter().any(|word| word == "URL");
    if is_webhook || words.iter().any(|word| word == "DSN") {
        return true;
    }
    if words.last().is_some_and(|last| has(DESCRIBING_WORDS, last)) {
        return false;
    }
    words.iter().any(|word| {
        let ends = SECRET_WORD_ENDS.iter().any(|end| word.ends_with(end));
        has(SECRET_WORDS, word) || ends && !HARMLESS_WORDS.contains(&word.as_str())
    })
}

/// The words of a name in capital letters, without the numbers at their ends: `ADMIN`, `PASS` of `admin_pass1` and `adminPass`.
fn words_of(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut word, mut was_small) = (String::new(), false);
    for letter in name.chars() {
        if !letter.is_alphanumeric() || was_small && letter.is_uppercase() {
            words.push(std::mem::take(&mut word));
        }
        if letter.is_alphanumeric() {
            word.extend(letter.to_uppercase());
        }
        was_small = letter.is_lowercase();
    }
    words.push(word);
    let plain = words.iter().map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned());
    plain.filter(|word| !word.is_empty()).collect()
}

/// Whether there is a key in a text, a password, or an address with a login in it.
fn holds_secret(value: &str) -> bool {
    let lower = value.to_lowercase();
    SECRET_MARKS.iter().any(|mark| lower.contains(mark))
        || holds_key(value)
        || holds_login(value)
        || holds_path_token(value)
        || holds_named_secret(value)
        || holds_authorization(value)
        || is_random(value.trim().trim_matches(['"', '\'']))
}

/// Whether a key that some vendor gives stands anywhere in a text.
fn holds_key(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let has_shape = |start: &str, length: usize, is_part: fn(char) -> bool| {
        // What people write in capital letters only is found in small ones too.
        let text = if start.starts_with("AGE-") {
            (lower.as_str(), start.to_ascii_lowercase())
        } else {
            (value, start.to_owned())
        };
        text.0.match_indices(text.1.as_str()).any(|(at, found)| {
            let is_alone = !text
                .0
                .get(..at)
                .unwrap_or_default()
                .ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
            let rest = text.0.get(at + found.len()..).unwrap_or_default();
            is_alone && rest.chars().take_while(|c| is_part(*c)).count() >= length
        })
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let is_dotted = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    KEY_SHAPES.iter().any(|(start, length)| has_shape(start, *length, is_plain))
        || DOTTED_SHAPES.iter().any(|(start, length)| has_shape(start, *length, is_dotted))
        || holds_bot_token(value)
}

/// Whether there is the token of a bot of Telegram's: `123456789:AA…`.
fn holds_bot_token(value: &str) -> bool {
    value.match_indices(":AA").any(|(at, _)| {
        let (before, after) = value.split_at(at);
        let digits = before.chars().rev().take_while(char::is_ascii_digit).count();
        let is_part = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        digits >= 8 && after.chars().skip(1).take_while(is_part).count() >= 30
    })
}

/// Whether an address has a login in it: `scheme://user:password@host`, `https://token@host`, `user:password@host`.
fn holds_login(value: &str) -> bool {
    let is_end = |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | ',' | ';');
    let in_address = value.match_indices("://").any(|(at, _)| {
        let scheme = value.get(..at).unwrap_or_default().to_ascii_lowercase();
        let rest = value.get(at + 3..).unwrap_or_default();
        let authority = rest.split(is_end).next().unwrap_or_default();
        authority.rsplit_once('@').is_some_and(|(login, _)| {
            let has_password = login.split_once(':').is_some_and(|(_, password)| !password.is_empty());
            // A name alone opens nothing, but in the addresses of the web it often is a token.
            has_password || !login.is_empty() && (scheme.ends_with("http") || scheme.ends_with("https"))
        })
    });
    let without_scheme = |word: &str| {
        word.rsplit_once('@').is_some_and(|(login, host)| {
            let host = host.split(['/', ':']).next().unwrap_or_default();
            let is_host = !host.is_empty() && !host.starts_with("sha") && host.chars().all(is_host_letter);
            let is_login = login
                .split_once(':')
                .is_some_and(|(name, password)| !name.is_empty() && !password.is_empty());
            is_host && is_login && !login.contains(['/', '@'])
        })
    };
    in_address || value.split(is_end).any(without_scheme)
}

/// Whether an address has a token as a folder, as channels of conda have it: `https://host/t/TOKEN/channel`.
fn holds_path_token(value: &str) -> bool {
    value.contains("://")
        && value.match_indices("/t/").any(|(at, found)| {
            let rest = value.get(at + found.len()..).unwrap_or_default();
            rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-' || *c == '_').count() >= 8
        })
}

fn is_host_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-')
}

/// Whether a text names a secret and says it: `?password=x`, `;Pwd=x`, `"private_key": "x"`.
fn holds_named_secret(value: &str) -> bool {
    let is_between = |c: char| c.is_whitespace() || matches!(c, '?' | '&' | ';' | ',' | '{' | '}');
    let is_said = |piece: &str| {
        let (name, said) = match piece.split_once('=') {
            Some(pair) => pair,
            // A colon stands in paths and addresses too: only a name in quotes is one.
            None => match piece.split_once("\":") {
                Some(pair) => pair,
                None => return false,
            },
        };
        let name = name.trim_matches(|c: char| !c.is_alphanumeric());
        let is_told = !said.trim().trim_matches(['"', '\'']).is_empty();
        is_told && is_secret_word(name)
    };
    // After a colon in JSON there is often a space.
    let packed = value.replace("\": ", "\":");
    packed.split(is_between).any(is_said)
}

/// Whether there is what a program says to a server to be let in: `Bearer x`, `Basic x`, `token x`.
fn holds_authorization(value: &str) -> bool {
    let words: Vec<&str> =
        value.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ':' | '=')).collect();
    words.windows(2).any(|pair| {
        let [scheme, said] = pair else { return false };
        let is_scheme = ["bearer", "basic", "token", "digest", "apikey", "splunk"]
            .contains(&scheme.to_ascii_lowercase().as_str());
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-._~+/".contains(c);
        let has = |test: fn(&char) -> bool| said.chars().any(|c| test(&c));
        let is_word = said.chars().skip(1).all(|c| c.is_ascii_lowercase());
        is_scheme
            && said.len() >= 6
            && said.chars().all(is_part)
            && !is_word
            && has(char::is_ascii_alphanumeric)
    })
}

/// Whether a text is nothing but letters and digits that nobody would choose.
fn is_random(value: &str) -> bool {
    let has = |test: fn(&char) -> bool| value.chars().filter(test).count();
    let (small, large, digits) =
        (has(char::is_ascii_lowercase), has(char::is_ascii_uppercase), has(char::is_ascii_digit));
    let is_mixed = small >= 4 && large >= 4 && digits >= 1;
    // The secret keys of AWS have slashes, but no path has so many letters and is so mixed.
    let is_amazons =
        value.len() == 40 && value.chars().all(|c| c.is_ascii_alphanumeric() || "/+=".contains(c));
    let is_plain = value.chars().all(|c| c.is_ascii_alphanumeric() || "+=_-".contains(c));
    is_mixed
        && !value.starts_with(['/', '.', '~'])
        && (is_amazons || is_plain && value.len() >= 32 && digits >= 4)
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

    #[test]
    fn names_are_read_word_by_word() {
        for name in "BW_SESSION OP_SESSION_my KEY PASS AUTH DB_PW LDAP_BINDPW ADMIN_PASS1 OPENAI_KEY_2 OPENAI_KEYS SLACK_HOOK_URL \
                     SSH_KEY_B64 GOOGLE_CREDS_JSON STRIPE_SK KEY_OPENAI stripe_key_live dbPass openaiKey PGPASS MYSQL_PWD WIFI_PSK \
                     NPM_AUTH DEPLOY_SSHKEY KEY2 TOKEN1 DB_PASS_PROD GITHUB_PAT_CI FIREBASE_CRED VPN_OTP"
            .split_whitespace()
        {
            assert!(is_secret_variable(name, "x"), "{name}");
        }
        for name in "XDG_SESSION_ID XDG_SESSION_TYPE DESKTOP_SESSION SESSION_MANAGER DBUS_SESSION_BUS_ADDRESS TERM_SESSION_ID KEYMAP \
                     SSH_ASKPASS GIT_ASKPASS SSL_BYPASS OLDPWD KEY_PATH AUTH_MODE PYTHONHASHSEED MONKEY TURKEY PASSENGER_APP \
                     COMPASS_HOME AUTHOR GIT_AUTHOR_NAME KEYTIMEOUT HOSTNAME SHLVL COLORTERM JAVA_HOME VIRTUAL_ENV PATTERN"
            .split_whitespace()
        {
            assert!(!is_secret_variable(name, "x"), "{name}");
        }
    }

    #[test]
    fn secrets_are_found_anywhere_in_a_value() {
        let key = "0123456789abcdefABCDEF0123456789abcd";
        for value in [
            &format!("https://ghp_{key}@github.com/x"),
            &format!("token ghp_{key}"),
            &format!("user:ghp_{key}"),
            &format!("a,b;sk-ant-{key},c"),
            &format!("{{\"key\":\"AIza{key}\"}}"),
            "{\"type\": \"service_account\", \"private_key\": \"-----BEGIN PRIVATE KEY-----\\nMII\"}",
            "{ \"client_secret\": \"hunter2\" }",
            "AGE-SECRET-KEY-1QQQQQQQQQQQQQ",
            "age-secret-key-1qqqqqqqqqqqqq",
            "postgres://host/db?user=u&password=pw",
            "Server=x;User Id=u;Pwd=hunter2",
            "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=abc==",
            "Endpoint=sb://x/;SharedAccessKeyName=n;SharedAccessKey=abc",
            "Bearer abc.def-123",
            "Authorization: Bearer abcDEF12",
            "Basic dXNlcjpwYXNz",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            &format!("dckr_pat_{key}"),
            &format!("ATATT3x{key}"),
            &format!("sntrys_{key}"),
            &format!("pplx-{key}"),
            &format!("tvly-{key}"),
            &format!("r8_{key}"),
            &format!("figd_{key}"),
            &format!("sb_secret_{key}"),
            &format!("hvs.{key}"),
            "123456789:AAabcdefghijklmnopqrstuvwxyz0123456",
            "https://hooks.slack.com/services/T0/B0/x",
            "https://0123abcd@sentry.io/1",
            "me:hunter2@proxy:3128",
            "-u me --password=hunter2",
            "x=1 api-key=abc",
        ] {
            assert!(is_secret_variable("X", value), "{value}");
        }
        for value in [
            "ssh://git@github.com/x",
            "git@github.com:me/x.git",
            "unix:path=/run/user/1000/bus,guid=0123",
            "python:3.12@sha256:0123456789abcdef",
            "0123456789abcdef0123456789abcdef01234567",
            "550e8400-e29b-41d4-a716-446655440000",
            "/nix/store/0123456789abcdfghijklmnpqrsvwxyz-gcc-13.2.0",
            "/opt/task-runner/Sk-Something-Long-Name-1234/bin",
            "-C target-cpu=native -C link-arg=-fuse-ld=mold",
            "Basic authentication",
            "the bearer of this",
            "https://host/path?x=1&y=2",
            "npm_config_registry",
            "xterm-256color",
            "en_US.UTF-8",
            "me@example.com",
            "localhost:8080",
            "*.rs=32:*.key=01",
            "MyVeryLongModuleNameWithSomeVersion2Release",
        ] {
            assert!(!is_secret_variable("X", value), "{value}");
        }
    }
}
