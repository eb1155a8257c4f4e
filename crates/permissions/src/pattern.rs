//! What a rule's pattern means, by what the tool is about: a command, a path, an address, a text.

use std::path::{Component, Path, PathBuf};

/// What a call is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleSubject {
    /// One simple command: its words, none for those that can't be known.
    Command(Vec<Option<String>>),
    /// A file, absolute and without `..`.
    Path(PathBuf),
    /// A file that may hold secrets: a rule allows it only if it means just such files.
    Secret(PathBuf),
    /// A file of the home folder that commands don't see: a rule allows it only if it names that folder or a place in it.
    Hidden(PathBuf),
    Address(String),
    /// A query, or whatever else a tool is about.
    Text(String),
}

/// The folders that patterns of paths begin from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectContext {
    /// The project.
    pub root: PathBuf,
    /// Folders besides it in which files may be changed.
    pub added: Vec<PathBuf>,
    pub home: Option<PathBuf>,
    /// What of the home folder commands see: toolchains, caches, and what the user wants them to see.
    pub shown: Vec<PathBuf>,
    /// Where this program has its own settings.
    pub own: Vec<PathBuf>,
    /// The programs for which this user has credentials here.
    pub credentials: Vec<&'static str>,
    /// Whether git, in the folder where commands run, works on another repository than the project's.
    pub is_nested: bool,
    /// Folders that git takes for its own whatever they are called, or would after the call, among those that a call writes in.
    pub git_folders: Vec<PathBuf>,
}

impl ProjectContext {
    /// A project, and nothing besides.
    pub fn of(root: impl Into<PathBuf>) -> ProjectContext {
        ProjectContext {
            root: root.into(),
            added: Vec::new(),
            home: None,
            shown: Vec::new(),
            own: Vec::new(),
            credentials: Vec::new(),
            is_nested: false,
            git_folders: Vec::new(),
        }
    }

    /// The folders that are worked on.
    pub fn inside(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.root).chain(&self.added).map(PathBuf::as_path)
    }

    pub fn is_inside(&self, path: &Path) -> bool {
        self.inside().any(|folder| path.starts_with(folder))
    }
}

/// How far a name without a folder reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatternReach {
    /// What is allowed is so in the project only.
    Project,
    Everywhere,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RulePattern(pub(crate) String);

impl RulePattern {
    /// Whether it names what it means, and not just everything in a folder.
    pub(crate) fn is_specific(&self) -> bool {
        let name = self.0.rsplit('/').next().unwrap_or_default();
        name.chars().filter(|letter| !matches!(letter, '*' | '?')).count() >= 2
    }

    pub(crate) fn matches(
        &self,
        subject: &RuleSubject,
        places: &ProjectContext,
        reach: PatternReach,
    ) -> bool {
        match subject {
            RuleSubject::Command(words) => command(&self.0, words),
            RuleSubject::Path(path) | RuleSubject::Secret(path) | RuleSubject::Hidden(path) => {
                self.path(path, places, reach)
            }
            RuleSubject::Address(address) => self.address(address),
            RuleSubject::Text(text) => glob_matches(&self.0, text, WildcardScope::Anything),
        }
    }

    fn path(&self, path: &Path, places: &ProjectContext, reach: PatternReach) -> bool {
        let pattern = self.0.strip_prefix("./").unwrap_or(&self.0);
        let (base, pattern) = match pattern.strip_prefix("~/") {
            Some(rest) => match &places.home {
                Some(home) => (home.as_path(), rest),
                None => return false,
            },
            None if pattern.starts_with('/') => (Path::new("/"), pattern),
            None => (places.root.as_path(), pattern),
        };
        let pattern = pattern.trim_start_matches('/').trim_end_matches('/');
        // A name alone is meant wherever it is; a rule about a folder is one about all that is in it.
        let is_name = !self.0.contains('/') && pattern != "**";
        let Some(names) = names_below(path, base) else {
            return is_name && reach == PatternReach::Everywhere && name_matches(pattern, path);
        };
        if pattern.is_empty() || pattern == "**" {
            return true;
        }
        (1..=names.len()).any(|count| {
            let folder = names.get(..count).unwrap_or_default();
            match is_name {
                true => folder.last().is_some_and(|name| glob_matches(pattern, name, WildcardScope::InName)),
                false => glob_matches(pattern, &folder.join("/"), WildcardScope::InName),
            }
        })
    }

    /// The part of a pattern of paths before its first star; none if it means a name wherever that is.
    pub(crate) fn fixed_part(&self, places: &ProjectContext) -> Option<PathBuf> {
        if !self.0.contains('/') {
            return None;
        }
        let pattern = self.0.strip_prefix("./").unwrap_or(&self.0);
        let (base, pattern) = match pattern.strip_prefix("~/") {
            Some(rest) => (places.home.clone()?, rest),
            None if pattern.starts_with('/') => (PathBuf::from("/"), pattern),
            None => (places.root.clone(), pattern),
        };
        let names = pattern.split('/').filter(|name| !name.is_empty());
        let fixed = names.take_while(|name| !name.contains(['*', '?']));
        Some(fixed.fold(base, |path, name| path.join(name)))
    }

    fn address(&self, address: &str) -> bool {
        match self.0.strip_prefix("domain:") {
            Some(domain) => host(address)
                .is_some_and(|host| glob_matches(&domain.to_lowercase(), &host, WildcardScope::Anything)),
            None => glob_matches(&self.0, address, WildcardScope::Anything),
        }
    }
}

/// Whether a name of a file is one that a pattern means.
pub fn matches_name(pattern: &str, name: &str) -> bool {
    glob_matches(pattern, name, WildcardScope::InName)
}

fn name_matches(pattern: &str, path: &Path) -> bool {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    });
    names.into_iter().any(|name| glob_matches(pattern, &name, WildcardScope::InName))
}

/// The names that lead from a folder to a path below it.
fn names_below(path: &Path, base: &Path) -> Option<Vec<String>> {
    let rest = path.strip_prefix(base).ok()?;
    Some(rest.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect())
}

/// The host of an address, in small letters, without user and port.
pub(crate) fn host(address: &str) -> Option<String> {
    let (_, rest) = address.split_once("://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(address) => address.split(']').next()?,
        None => host.split(':').next()?,
    };
    Some(host.trim_end_matches('.').to_lowercase())
}

/// Whether a pattern covers a command. A word that can't be known is covered by a star only. `*` stands for anything,
/// ` *` and `:*` at the end for more words or none.
fn command(pattern: &str, words: &[Option<String>]) -> bool {
    let text = written(words);
    let open = pattern.strip_suffix(":*").or_else(|| pattern.strip_suffix(" *"));
    match open {
        Some(start) => {
            glob_matches(start, &text, WildcardScope::Anything)
                || glob_matches(&format!("{start} *"), &text, WildcardScope::Anything)
        }
        None => glob_matches(pattern, &text, WildcardScope::Anything),
    }
}

/// A word that can't be known, in a text that patterns are held against: no pattern has it, so only a star covers it.
const UNKNOWN_WORD_MARK: char = '\u{0}';

/// A command in one way only: words that are more than one plain word are quoted, so that nobody passes a space or a sign off
/// as the end of a word.
fn written(words: &[Option<String>]) -> String {
    let word = |word: &Option<String>| match word {
        None => UNKNOWN_WORD_MARK.to_string(),
        Some(word) if is_plain(word) => word.clone(),
        Some(word) => format!("'{}'", word.replace('\'', r"'\''")),
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn is_plain(word: &str) -> bool {
    !word.is_empty()
        && word.chars().all(|letter| letter.is_alphanumeric() || "%+,-./:=@_^~*?[]{}!#".contains(letter))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WildcardScope {
    /// `*` and `?` stand for anything.
    Anything,
    /// They stop at `/`; `**` does not.
    InName,
}

/// Whether a pattern matches all of a text.
pub(crate) fn glob_matches(pattern: &str, text: &str, star: WildcardScope) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    // Row by row: whether the pattern up to here matches the text up to each place.
    let mut row = vec![false; text.len() + 1];
    if let Some(first) = row.first_mut() {
        *first = true;
    }
    let mut at = 0;
    while let Some(sign) = pattern.get(at) {
        let is_double = *sign == '*' && pattern.get(at + 1) == Some(&'*');
        let mut next = vec![false; text.len() + 1];
        match (sign, is_double) {
            ('*', true) => {
                at += 1;
                // `**/` also stands for nothing.
                let skips_slash = pattern.get(at + 1) == Some(&'/');
                let mut is_open = false;
                for (place, next) in next.iter_mut().enumerate() {
                    is_open |= row.get(place) == Some(&true);
                    let is_start = place == 0 || text.get(place - 1) == Some(&'/');
                    *next = is_open && (!skips_slash || is_start);
                }
                if skips_slash {
                    at += 1;
                }
            }
            ('*', false) => {
                let mut is_open = false;
                for (place, next) in next.iter_mut().enumerate() {
                    let crosses =
                        place > 0 && star == WildcardScope::InName && text.get(place - 1) == Some(&'/');
                    is_open = (is_open && !crosses) || row.get(place) == Some(&true);
                    *next = is_open;
                }
            }
            (sign, _) => {
                for (place, letter) in text.iter().enumerate() {
                    let fits = match sign {
                        '?' => {
                            *letter != UNKNOWN_WORD_MARK
                                && (star == WildcardScope::Anything || *letter != '/')
                        }
                        sign => sign == letter && *letter != UNKNOWN_WORD_MARK,
                    };
                    if let (true, Some(next)) =
                        (fits && row.get(place) == Some(&true), next.get_mut(place + 1))
                    {
                        *next = true;
                    }
                }
            }
        }
        row = next;
        at += 1;
    }
    row.last() == Some(&true)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn places() -> ProjectContext {
        ProjectContext { home: Some("/home/me".into()), ..ProjectContext::of("/work/project") }
    }

    fn is_path(pattern: &str, path: &str) -> bool {
        RulePattern(pattern.to_owned()).matches(
            &RuleSubject::Path(path.into()),
            &places(),
            PatternReach::Everywhere,
        )
    }

    fn is_command(pattern: &str, words: &[&str]) -> bool {
        let words = words.iter().map(|word| (*word != "?").then(|| (*word).to_owned())).collect();
        RulePattern(pattern.to_owned()).matches(
            &RuleSubject::Command(words),
            &places(),
            PatternReach::Everywhere,
        )
    }

    #[test]
    fn paths() {
        for (pattern, path, expected) in [
            ("src/**", "/work/project/src/a/b.rs", true),
            ("src/*", "/work/project/src/b.rs", true),
            ("src/*.rs", "/work/project/src/a/b.rs", false),
            ("src", "/work/project/src/a/b.rs", true),
            ("./src", "/work/project/src/a", true),
            ("src", "/work/project/lib/src/a", true),
            ("./src", "/work/project/lib/src/a", false),
            ("*.env", "/work/project/a/x.env", true),
            (".env*", "/elsewhere/.env.local", true),
            ("**/secret/**", "/work/project/a/secret/b", true),
            ("**/secret/**", "/work/project/secret/b", true),
            ("~/.ssh/**", "/home/me/.ssh/id", true),
            ("~/.ssh", "/home/me/.ssh/id", true),
            ("~/.ssh", "/home/you/.ssh/id", false),
            ("/etc/**", "/etc/passwd", true),
            ("/etc", "/etcetera", false),
            ("**", "/work/project/a", true),
            ("**", "/etc/passwd", false),
            ("/**", "/etc/passwd", true),
        ] {
            assert_eq!(is_path(pattern, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn commands() {
        for (pattern, words, expected) in [
            ("npm run test:*", &["npm", "run", "test"][..], true),
            ("npm run test:*", &["npm", "run", "test", "--", "-u"], true),
            ("npm run test:*", &["npm", "run", "tests"], false),
            ("npm run test *", &["npm", "run", "test", "x"], true),
            ("npm *", &["npm", "?"], true),
            ("npm run ?", &["npm", "run", "?"], false),
            ("git status", &["git", "status"], true),
            ("git status", &["git", "status", "-s"], false),
            ("git st*", &["git", "status", "-s"], true),
            ("rm a", &["rm", "a b"], false),
            ("echo a; rm *", &["echo", "a; rm b"], false),
            ("*", &["anything"], true),
            ("ls", &["?"], false),
        ] {
            assert_eq!(is_command(pattern, words), expected, "{pattern} {words:?}");
        }
    }

    #[test]
    fn addresses() {
        let is_address = |pattern: &str, address: &str| {
            RulePattern(pattern.to_owned()).matches(
                &RuleSubject::Address(address.to_owned()),
                &places(),
                PatternReach::Everywhere,
            )
        };
        assert!(is_address("domain:docs.rs", "https://docs.rs/x"));
        assert!(is_address("domain:docs.rs", "https://DOCS.rs.:443/x"));
        assert!(!is_address("domain:docs.rs", "https://docs.rs.evil.com/x"));
        assert!(!is_address("domain:docs.rs", "https://docs.rs@evil.com/x"));
        assert!(!is_address("domain:docs.rs", "https://evil.com/?docs.rs"));
        assert!(!is_address("domain:docs.rs", "https://evil.com\\@docs.rs/"));
        assert!(is_address("domain:*.rs", "http://a.docs.rs"));
        assert!(is_address("https://docs.rs/*", "https://docs.rs/x/y"));
    }

    proptest! {
        #[test]
        fn a_text_matches_itself_and_a_star(text in "[a-z/. ]{0,12}") {
            prop_assert!(glob_matches(&text, &text, WildcardScope::InName));
            prop_assert!(glob_matches("*", &text, WildcardScope::Anything));
            prop_assert!(glob_matches("**", &text, WildcardScope::InName));
            prop_assert_eq!(glob_matches("*", &text, WildcardScope::InName), !text.contains('/'));
        }

        #[test]
        fn no_pattern_is_slow_or_panics(pattern in "[*?a/]{0,60}", text in "[a/]{0,200}") {
            let _ = glob_matches(&pattern, &text, WildcardScope::InName);
            let _ = glob_matches(&pattern, &text, WildcardScope::Anything);
        }
    }
}
