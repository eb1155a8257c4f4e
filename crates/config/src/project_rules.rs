//! Rules that a person adds to a project's settings by an answer.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use serde::Serialize;

use crate::PermissionRule;
use crate::user_file::{lock, replace};

#[derive(Serialize)]
struct PermissionRulesDocument<'a> {
    permission: &'a [PermissionRule],
}

/// Adds rules to the end of the user's own file in a project, which the project's repository then does not take in.
pub fn add_rules(file: &Path, rules: &[PermissionRule]) -> io::Result<()> {
    let _held = lock(file)?;
    let mut text = match fs::read_to_string(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        text => text?,
    };
    if !text.is_empty() {
        text.push_str(if text.ends_with('\n') { "\n" } else { "\n\n" });
    }
    text.push_str(
        &toml::to_string(&PermissionRulesDocument { permission: rules }).map_err(io::Error::other)?,
    );
    // A list in brackets can't be added to in this way.
    if toml::from_str::<toml::Table>(&text).is_err() {
        return Err(io::Error::other("its rules are in a form that can't be added to"));
    }
    replace(file, &text)?;
    let ignores = file.with_file_name(".gitignore");
    match OpenOptions::new().create_new(true).write(true).open(ignores) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        file => file?.write_all(b"local.toml\nlocal.toml.lock\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helve_protocol::PermissionVerdict;

    fn rule(pattern: Option<&str>) -> PermissionRule {
        PermissionRule {
            tool: "shell".into(),
            pattern: pattern.map(str::to_owned),
            action: PermissionVerdict::Allow,
        }
    }

    fn rules_of(file: &Path) -> Vec<PermissionRule> {
        let table: toml::Table = fs::read_to_string(file).unwrap().parse().unwrap();
        table["permission"].clone().try_into().unwrap()
    }

    #[test]
    fn rules_are_added_to_whatever_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(".helve/local.toml");
        let odd = rule(Some("a \"b\" \\ \u{7f} ü\n* '"));
        add_rules(&file, &[rule(None)]).unwrap();
        add_rules(&file, &[odd.clone(), rule(Some("npm test:*"))]).unwrap();
        assert_eq!(rules_of(&file), [rule(None), odd, rule(Some("npm test:*"))]);
        assert!(fs::read_to_string(file.with_file_name(".gitignore")).unwrap().contains("local.toml"));

        fs::write(&file, "# mine\n[ui]\ncolor = \"never\"").unwrap();
        add_rules(&file, &[rule(None)]).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("# mine\n[ui]\ncolor = \"never\"\n\n[[permission]]"), "{text}");
        assert_eq!(rules_of(&file), [rule(None)]);
    }

    #[test]
    fn what_cannot_be_added_to_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("local.toml");
        for text in ["permission = [{ tool = \"read\", action = \"allow\" }]\n", "not = \"toml\n"] {
            fs::write(&file, text).unwrap();
            add_rules(&file, &[rule(None)]).unwrap_err();
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
    }

    #[test]
    #[cfg(unix)]
    fn nothing_is_written_through_links() {
        let folder = tempfile::tempdir().unwrap();
        let (file, elsewhere) = (folder.path().join("local.toml"), folder.path().join("elsewhere"));
        std::os::unix::fs::symlink(&elsewhere, folder.path().join(".gitignore")).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
        add_rules(&file, &[rule(None)]).unwrap();
        assert!(!elsewhere.exists());
        std::os::unix::fs::symlink(&elsewhere, folder.path().join("other.toml.lock")).unwrap();
        add_rules(&folder.path().join("other.toml"), &[rule(None)]).unwrap_err();
        assert!(!elsewhere.exists());
    }
}
