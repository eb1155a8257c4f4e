//! Every environment variable that Helve itself listens to, in one table.

/// An environment variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnvironmentVariable {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub meaning: &'static str,
    /// The setting that it stands for, if it is one.
    pub setting: Option<&'static str>,
}

/// Every variable that Helve itself listens to.
pub const ENVIRONMENT_VARIABLES: &[EnvironmentVariable] = &[
    EnvironmentVariable {
        name: "HELVE_EFFORT",
        meaning: "How much the model thinks: off, minimal, low, medium, high or max.",
        setting: Some("effort"),
    },
    EnvironmentVariable {
        name: "HELVE_HOME",
        meaning: "The folder for settings, sessions and caches, instead of the platform's own.",
        setting: None,
    },
    EnvironmentVariable {
        name: "HELVE_LOG",
        meaning: "What is written to the log: error, warn, info or debug.",
        setting: Some("log.level"),
    },
    EnvironmentVariable {
        name: "HELVE_MAX_COST",
        meaning: "How many dollars may be spent, such as 2.50.",
        setting: Some("limits.max_cost"),
    },
    EnvironmentVariable {
        name: "HELVE_MAX_STEPS",
        meaning: "How many model requests one turn may take.",
        setting: Some("limits.max_steps"),
    },
    EnvironmentVariable {
        name: "HELVE_MAX_TIME",
        meaning: "How long a turn may take, such as 30m.",
        setting: Some("limits.max_time"),
    },
    EnvironmentVariable {
        name: "HELVE_MODEL",
        meaning: "The model that does the work, as provider/model or an alias.",
        setting: Some("model"),
    },
    EnvironmentVariable {
        name: "HELVE_PERMISSION_MODE",
        meaning: "What happens to an action that no rule decides: plan, ask, accept-edits, auto or bypass.",
        setting: Some("permissions.mode"),
    },
    EnvironmentVariable { name: "NO_COLOR", meaning: "If not empty, output is not coloured.", setting: None },
    EnvironmentVariable {
        name: "CLICOLOR_FORCE",
        meaning: "If not empty and not 0, output is coloured even if it does not go to a terminal.",
        setting: None,
    },
];

/// The page about environment variables, in Markdown.
pub fn environment_reference() -> String {
    let mut page = String::from(
        "# Environment variables\n\n\
         A variable that stands for a setting is stronger than the settings files and weaker than the\n\
         command line. An empty variable counts as not set.\n\n\
         | variable | setting | meaning |\n|---|---|---|\n",
    );
    for EnvironmentVariable { name, meaning, setting } in ENVIRONMENT_VARIABLES {
        let setting = setting.map(|key| format!("`{key}`")).unwrap_or_default();
        page.push_str(&format!("| `{name}` | {setting} | {meaning} |\n"));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting_key::SettingKey;
    use crate::shape::settings_shape;
    use std::collections::BTreeSet;

    #[test]
    fn the_table_and_the_settings_agree_both_ways() {
        let listed = ENVIRONMENT_VARIABLES
            .iter()
            .filter_map(|variable| Some((variable.name.to_owned(), variable.setting?.to_owned())));
        let mut declared = BTreeSet::new();
        settings_shape().walk(&SettingKey::root(), &mut |key, shape| {
            declared.extend(shape.facts.env.clone().map(|name| (name, key.to_string())));
        });
        assert_eq!(listed.collect::<BTreeSet<_>>(), declared);
        assert_eq!(declared.len(), 7);
    }

    #[test]
    fn every_variable_is_on_the_page_once() {
        let page = environment_reference();
        for variable in ENVIRONMENT_VARIABLES {
            assert_eq!(page.matches(&format!("`{}`", variable.name)).count(), 1, "{}", variable.name);
        }
    }
}
