//! One rule: a tool, what it is about, and what shall happen.

use std::fmt;
use std::path::PathBuf;

use helve_protocol::PermissionVerdict;

use crate::known_programs::other_forms;
use crate::pattern::{PatternReach, ProjectContext, RulePattern, RuleSubject, WildcardScope, glob_matches};
use crate::tool_aliases;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Our name, or a pattern of names.
    tool: String,
    pattern: Option<RulePattern>,
    pub verdict: PermissionVerdict,
}

/// Why a text is no rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleParseError(pub String);

impl fmt::Display for RuleParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is no rule. Write a tool, such as web_fetch, or a tool and a pattern: shell(npm test:*)",
            self.0
        )
    }
}

impl std::error::Error for RuleParseError {}

/// All tools that write files. A rule about one is a rule about all, as what matters is the file.
const FILE_WRITING_TOOLS: [&str; 4] = ["write", "edit", "apply_patch", "notebook_edit"];

fn is_about_paths(tool: &str) -> bool {
    FILE_WRITING_TOOLS.contains(&tool) || matches!(tool, "read" | "list" | "glob" | "grep")
}

impl Rule {
    /// A rule as our settings have it. The tool may have the name that others gave it.
    pub fn new(tool: &str, pattern: Option<&str>, verdict: PermissionVerdict) -> Rule {
        let tool = tool_aliases::our_tool_name(tool).to_owned();
        Rule { tool, pattern: pattern.map(|pattern| RulePattern(pattern.to_owned())), verdict }
    }

    /// A rule in the compact form: `Bash(npm run test:*)`, `Read(./secrets/**)`, `mcp__server__*`, `WebFetch(domain:x)`. Paths
    /// are meant as they are there: `//x` from the root of all, `/x` from the project, `~/x` from the home folder.
    pub fn parse(text: &str, verdict: PermissionVerdict) -> Result<Rule, RuleParseError> {
        let bad = || RuleParseError(format!("{text:?}"));
        let text_of_tool =
            |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-*?.".contains(c));
        let trimmed = text.trim();
        let (tool, spec) = match trimmed.split_once('(') {
            None => (trimmed, None),
            Some((tool, rest)) => (tool.trim_end(), Some(rest.strip_suffix(')').ok_or_else(bad)?)),
        };
        if !text_of_tool(tool) {
            return Err(bad());
        }
        let tool = tool_aliases::our_tool_name(tool);
        let is_about_paths = is_about_paths(tool);
        let spec = spec.map(str::trim);
        // Nobody means everything by nothing.
        if spec == Some("") {
            return Err(bad());
        }
        let pattern = spec.filter(|spec| *spec != "*");
        let pattern = pattern.map(|spec| match spec.strip_prefix('/').filter(|_| is_about_paths) {
            Some(rest) if rest.starts_with('/') => rest.to_owned(),
            Some(rest) => format!("./{rest}"),
            None => spec.to_owned(),
        });
        Ok(Rule::new(tool, pattern.as_deref(), verdict))
    }

    /// Our name of the tool, or a pattern of names.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// As our settings have it.
    pub fn pattern(&self) -> Option<&str> {
        self.pattern.as_ref().map(|pattern| pattern.0.as_str())
    }

    /// Whether the rule is about this.
    pub fn covers(&self, tool: &str, subject: &RuleSubject, places: &ProjectContext) -> bool {
        let reach = if self.verdict == PermissionVerdict::Allow {
            PatternReach::Project
        } else {
            PatternReach::Everywhere
        };
        let is_general = !self.pattern.as_ref().is_some_and(RulePattern::is_specific);
        if self.verdict == PermissionVerdict::Allow && matches!(subject, RuleSubject::Secret(_)) && is_general
        {
            return false;
        }
        if self.verdict == PermissionVerdict::Allow
            && matches!(subject, RuleSubject::Hidden(_))
            && !self.names_place_at_home(places)
        {
            return false;
        }
        let covers = |subject: &RuleSubject| {
            self.pattern.as_ref().is_none_or(|pattern| pattern.matches(subject, places, reach))
        };
        // Nobody gets around a rule that forbids by another name of the same program, or by options before its verb.
        let others = match subject {
            RuleSubject::Command(words) if self.verdict != PermissionVerdict::Allow => other_forms(words),
            _ => Vec::new(),
        };
        self.is_about(tool)
            && (covers(subject) || others.into_iter().map(RuleSubject::Command).any(|other| covers(&other)))
    }

    /// The part of a pattern of paths before its first star; none if it means a name wherever that is.
    pub fn fixed_part(&self, places: &ProjectContext) -> Option<PathBuf> {
        self.pattern.as_ref()?.fixed_part(places)
    }

    /// Whether it names the home folder or a place there, and not just everything.
    fn names_place_at_home(&self, places: &ProjectContext) -> bool {
        let fixed = self.fixed_part(places).zip(places.home.as_deref());
        fixed.is_some_and(|(fixed, home)| fixed.starts_with(home))
    }

    pub(crate) fn is_about(&self, tool: &str) -> bool {
        let both_write =
            FILE_WRITING_TOOLS.contains(&self.tool.as_str()) && FILE_WRITING_TOOLS.contains(&tool);
        // What must not be read must not be written either: whoever edits a file sees it.
        let is_shut = self.verdict == PermissionVerdict::Deny
            && self.tool == "read"
            && FILE_WRITING_TOOLS.contains(&tool);
        both_write || is_shut || glob_matches(&self.tool, tool, WildcardScope::Anything)
    }
}

/// The compact form, with our names.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pattern {
            None => f.write_str(&self.tool),
            // As it is read again: one slash alone would mean the project.
            Some(RulePattern(pattern)) if pattern.starts_with('/') && is_about_paths(&self.tool) => {
                write!(f, "{}(/{pattern})", self.tool)
            }
            Some(RulePattern(pattern)) => write!(f, "{}({pattern})", self.tool),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn places() -> ProjectContext {
        ProjectContext { home: Some("/home/me".into()), ..ProjectContext::of("/work/project") }
    }

    fn rule(text: &str) -> Rule {
        Rule::parse(text, PermissionVerdict::Deny).unwrap()
    }

    fn path(path: &str) -> RuleSubject {
        RuleSubject::Path(path.into())
    }

    #[test]
    fn rules_of_others_are_understood() {
        let command = |words: &[&str]| {
            RuleSubject::Command(words.iter().map(|word| Some((*word).to_owned())).collect())
        };
        assert!(rule("Bash(npm run test:*)").covers("shell", &command(&["npm", "run", "test"]), &places()));
        assert!(rule("Bash").covers("shell", &command(&["x"]), &places()));
        assert!(rule("Read(./secrets/**)").covers("read", &path("/work/project/secrets/a"), &places()));
        assert!(rule("Read(//etc/**)").covers("read", &path("/etc/passwd"), &places()));
        assert!(rule("Edit(/src/**)").covers("write", &path("/work/project/src/a"), &places()));
        assert!(!rule("Edit(/src/**)").covers("write", &path("/src/a"), &places()));
        assert!(rule("Read(~/.ssh/**)").covers("edit", &path("/home/me/.ssh/id"), &places()));
        assert!(!Rule::parse("Read(~/.ssh/**)", PermissionVerdict::Allow).unwrap().covers(
            "edit",
            &path("/home/me/.ssh/id"),
            &places()
        ));
        assert!(rule("mcp__github__*").covers(
            "mcp__github__search",
            &RuleSubject::Text(String::new()),
            &places()
        ));
        let all_rust = |verdict| Rule::parse("Read(*.rs)", verdict).unwrap();
        assert!(all_rust(PermissionVerdict::Allow).covers("read", &path("/work/project/a.rs"), &places()));
        assert!(!all_rust(PermissionVerdict::Allow).covers("read", &path("/etc/a.rs"), &places()));
        assert!(all_rust(PermissionVerdict::Deny).covers("read", &path("/etc/a.rs"), &places()));
        assert!(rule("*").covers("anything", &path("/"), &places()));
        assert_eq!(rule("Bash(npm run test:*)").to_string(), "shell(npm run test:*)");
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for text in ["", "Bash(", "Bash(a", "(a)", "Ba sh(a)", "rm -rf", "shell()", "shell( )", "read()"] {
            assert!(Rule::parse(text, PermissionVerdict::Allow).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_rule_or_refused(text in "\\PC{0,40}") {
            if let Ok(rule) = Rule::parse(&text, PermissionVerdict::Ask) {
                let _ = rule.covers("shell", &RuleSubject::Text(text.clone()), &places());
            }
        }
    }
}
