//! What is wrong with the settings, said so that a person can put it right.

use std::fmt;

use serde::Serialize;

use crate::escaping::escape_and_shorten;
use crate::origin::{ConfigLayer, ConfigLocation, SettingOrigin};

/// More problems than this at once help nobody.
const MAX_LISTED_PROBLEMS: usize = 200;

/// One mistake, with the place to mend it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigProblem {
    /// Whose source it is in.
    pub layer: ConfigLayer,
    /// Where it is.
    pub place: ConfigLocation,
    /// The dotted key, where there is one.
    pub key: Option<String>,
    /// What is wrong, safe to show in a terminal.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl ConfigProblem {
    pub(crate) fn new(origin: SettingOrigin, message: impl AsRef<str>) -> ConfigProblem {
        let SettingOrigin { layer, place } = origin;
        ConfigProblem { layer, place, key: None, message: escape_and_shorten(message.as_ref()), hint: None }
    }

    pub(crate) fn about(mut self, key: &impl ToString) -> ConfigProblem {
        self.key = Some(escape_and_shorten(&key.to_string()));
        self
    }

    pub(crate) fn hint(mut self, hint: impl AsRef<str>) -> ConfigProblem {
        self.hint = Some(escape_and_shorten(hint.as_ref()));
        self
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  {hint}"),
            None => Ok(()),
        }
    }
}

/// Every mistake in all sources, sorted by layer and position. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblems {
    list: Vec<ConfigProblem>,
    /// How many were left out.
    more: usize,
}

impl ConfigProblems {
    pub(crate) fn new(mut list: Vec<ConfigProblem>) -> ConfigProblems {
        list.sort_by(|a, b| (a.layer, &a.place).cmp(&(b.layer, &b.place)));
        let more = list.len().saturating_sub(MAX_LISTED_PROBLEMS);
        list.truncate(MAX_LISTED_PROBLEMS);
        ConfigProblems { list, more }
    }

    /// The problems, from the weakest layer on; very many are cut.
    pub fn list(&self) -> &[ConfigProblem] {
        &self.list
    }

    /// How many problems there are, those beyond the listed ones too.
    pub fn count(&self) -> usize {
        self.list.len() + self.more
    }
}

/// One problem per paragraph.
impl fmt::Display for ConfigProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.list.iter().enumerate() {
            let gap = if index == 0 { "" } else { "\n\n" };
            write!(f, "{gap}{problem}")?;
        }
        if self.more > 0 {
            write!(f, "\n\nand {} more", self.more)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigProblems {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_problems_is_cut_and_counted() {
        let one = ConfigProblem::new(SettingOrigin::BUILT_IN, "wrong");
        let problems = ConfigProblems::new(vec![one; MAX_LISTED_PROBLEMS + 7]);
        assert_eq!((problems.list().len(), problems.count()), (MAX_LISTED_PROBLEMS, MAX_LISTED_PROBLEMS + 7));
        assert!(problems.to_string().ends_with("\n\nand 7 more"));
    }
}
