//! The frontmatter of a rule file: `paths:`, as a line, a list in brackets, or a list of lines.

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::path::Path;

/// A rule file: what it says, and for which files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFile {
    /// Globs of paths from the root of the project; none if it always holds.
    pub paths: Vec<String>,
    /// The text without the frontmatter.
    pub body: String,
}

/// Splits a rule file. What is not closed, or says nothing of paths, is part of the text or left out; nothing is an error.
pub fn parse_rule_file(text: &str) -> RuleFile {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some((header, body)) = split_header(text) else {
        return RuleFile { paths: Vec::new(), body: text.to_owned() };
    };
    RuleFile { paths: paths_of(header), body: body.to_owned() }
}

fn split_header(text: &str) -> Option<(&str, &str)> {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().filter(|line| line.trim_end() == "---")?;
    let mut at = first.len();
    for line in lines {
        if line.trim_end() == "---" {
            return Some((text.get(first.len()..at)?, text.get(at + line.len()..)?));
        }
        at += line.len();
    }
    None
}

fn paths_of(header: &str) -> Vec<String> {
    let mut lines = header.lines().skip_while(|line| !line.starts_with("paths:"));
    let Some(value) = lines.next().and_then(|line| line.strip_prefix("paths:")).map(str::trim) else {
        return Vec::new();
    };
    let unquoted = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
    let paths: Vec<String> = if value.is_empty() {
        let items = lines.map_while(|line| line.trim().strip_prefix('-'));
        items.map(unquoted).collect()
    } else {
        let inner = value.strip_prefix('[').and_then(|list| list.strip_suffix(']')).unwrap_or(value);
        split_outside_braces(inner).into_iter().map(unquoted).collect()
    };
    paths.into_iter().filter(|path| !path.is_empty()).collect()
}

/// Splits at commas, but not at those in `{ts,tsx}`.
fn split_outside_braces(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let is_comma = |letter: char| {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    };
    text.split(is_comma).collect()
}

/// Globs of paths from the root of a project.
pub(crate) struct PathGlobs(Gitignore);

impl PathGlobs {
    /// Globs that can't be read match nothing.
    pub(crate) fn new(globs: &[String]) -> PathGlobs {
        let mut builder = GitignoreBuilder::new("");
        for glob in globs {
            let _ = builder.add_line(None, glob);
        }
        PathGlobs(builder.build().unwrap_or_else(|_| Gitignore::empty()))
    }

    pub(crate) fn matches(&self, path: &Path) -> bool {
        path.is_relative() && self.0.matched_path_or_any_parents(path, false).is_ignore()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_are_read_in_every_form() {
        let cases: [(&str, &[&str], &str); 8] = [
            ("plain", &[], "plain"),
            ("---\npaths: src/**/*.rs\n---\nbody\n", &["src/**/*.rs"], "body\n"),
            ("---\npaths: [\"a/*\", 'b/*.{ts,tsx}']\n---\n", &["a/*", "b/*.{ts,tsx}"], ""),
            ("---\ntitle: x\npaths:\n  - \"a/*\"\n  - b\nother: y\n---\nbody", &["a/*", "b"], "body"),
            ("\u{feff}---\r\npaths: a, b\r\n---\r\nbody", &["a", "b"], "body"),
            ("---\ntitle: x\n---\nbody", &[], "body"),
            ("---\npaths: a\nnever closed", &[], "---\npaths: a\nnever closed"),
            ("---\npaths: []\n---\nx", &[], "x"),
        ];
        for (text, paths, body) in cases {
            let rule = parse_rule_file(text);
            assert_eq!(
                (rule.paths.as_slice(), rule.body.as_str()),
                (&paths.iter().map(ToString::to_string).collect::<Vec<_>>()[..], body),
                "{text:?}"
            );
        }
    }

    #[test]
    fn globs_match_paths_from_the_root() {
        let globs = |glob: &str| PathGlobs::new(&[glob.to_owned()]);
        assert!(globs("src/**/*.rs").matches(Path::new("src/a/b.rs")));
        assert!(globs("*.{ts,tsx}").matches(Path::new("web/app.tsx")));
        assert!(globs("docs/").matches(Path::new("docs/a.md")));
        assert!(!globs("src/*.rs").matches(Path::new("src/a/b.rs")));
        assert!(!globs("[").matches(Path::new("a")));
        assert!(!globs("*").matches(Path::new("/etc/passwd")));
    }

    proptest! {
        #[test]
        fn any_text_is_split_and_the_body_is_its_end(text in "[-a:p \n\\[\\],\"]{0,60}") {
            let rule = parse_rule_file(&text);
            prop_assert!(text.ends_with(&rule.body));
            prop_assert!(rule.paths.iter().all(|path| !path.is_empty()));
        }

        #[test]
        fn a_list_reads_back(globs in proptest::collection::vec("[a-z*/.]{1,8}", 1..5)) {
            let items: String = globs.iter().map(|glob| format!("  - \"{glob}\"\n")).collect();
            let rule = parse_rule_file(&format!("---\npaths:\n{items}---\nbody"));
            prop_assert_eq!(rule, RuleFile { paths: globs, body: "body".to_owned() });
        }
    }
}
