//! A project decides nothing that matters until the user trusts it.

use std::path::Path;

use helve_config::{ConfigLayer, ProjectTrust, TrustStore, TrustStoreError};
use helve_protocol::PermissionVerdict;

use crate::setup::{Setup, entry};

/// Things that need trust: the file's text, and the key under which they show up.
const RESTRICTED: &[(&str, &str)] = &[
    ("model = 'a/b'", "model"),
    ("models.fast = 'a/b'", "models.fast"),
    ("models.aliases.x = 'a/b'", "models.aliases.x"),
    ("[providers.p]\nwire = 'chat'", "providers.p.wire"),
    ("limits.max_steps = 51", "limits.max_steps"),
    ("permissions.mode = 'accept-edits'", "permissions.mode"),
    ("[[permission]]\ntool = '*'\naction = 'allow'", "permission[0]"),
    ("shell.startup = 'evil.sh'", "shell.startup"),
    ("shell.program = './evil'", "shell.program"),
    ("[providers.p]\nbase_url = 'http://x'", "providers.p.base_url"),
    ("log.level = 'debug'", "log.level"),
];

#[test]
fn each_restricted_thing_waits_for_trust_and_for_new_trust_after_a_change() {
    for layer in [ConfigLayer::Project, ConfigLayer::Local] {
        for (content, key) in RESTRICTED {
            let setup = Setup::new().file(layer, content);
            let is_set = || setup.config().origin(key).is_some_and(|origin| origin.layer == layer);
            assert!(!is_set(), "{key} counts without trust");
            assert_eq!(setup.config().trust(), ProjectTrust::Untrusted);
            assert_eq!(setup.config().restricted()[0].key, *key);
            assert_eq!(setup.notices().len(), setup.config().restricted().len());
            assert!(setup.notices()[0].ends_with("is ignored: this project is not trusted"));

            setup.trust();
            assert!(is_set(), "{key} does not count although trusted");
            assert_eq!(setup.config().trust(), ProjectTrust::Trusted);
            assert!(setup.notices().is_empty());

            setup.write(layer, format!("{content}\n[catalogue.'a/b']\ncontext = 1"));
            assert!(!is_set(), "{key} counts although the project changed");
            assert_eq!(setup.config().trust(), ProjectTrust::Changed);
            assert!(setup.notices()[0].ends_with("has changed since it was trusted"));

            setup.store().forget(&setup.root()).unwrap();
            assert_eq!(setup.config().trust(), ProjectTrust::Untrusted);
        }
    }
}

#[test]
fn a_project_may_do_what_is_harmless_and_what_is_stricter() {
    let setup = Setup::new().file(ConfigLayer::User, "limits.max_time = '1h'").file(
        ConfigLayer::Project,
        "ui.color = 'never'\nfeatures.parallel_tools = false\npermissions.mode = 'plan'\n\
         limits = { max_steps = 10, max_cost = 1, max_time = '1h' }\n\
         permission = [{ tool = 'a', action = 'deny' }, { tool = 'b', action = 'ask' }]",
    );
    let config = setup.config();
    assert_eq!(config.trust(), ProjectTrust::NothingToTrust);
    assert!(config.notices().is_empty() && config.restricted().is_empty());
    for key in [
        "ui.color",
        "features.parallel_tools",
        "permissions.mode",
        "limits.max_steps",
        "limits.max_cost",
        "limits.max_time",
        "permission[0]",
        "permission[1]",
    ] {
        assert_eq!(entry(&config, key).origin.layer, ConfigLayer::Project, "{key}");
    }
}

#[test]
fn stricter_is_measured_against_the_layers_below() {
    let setup = Setup::new()
        .file(ConfigLayer::User, "limits.max_steps = 20")
        .file(ConfigLayer::Project, "limits.max_steps = 10")
        .file(ConfigLayer::Local, "limits.max_steps = 15");
    let config = setup.config();
    assert_eq!(config.settings.limits.max_steps, 10);
    assert_eq!(config.restricted().len(), 1);
    assert_eq!(setup.notices(), ["local.toml:1:8: limits.max_steps is ignored: this project is not trusted"]);
}

#[test]
fn only_the_rules_that_allow_are_ignored() {
    let setup = Setup::new().file(
        ConfigLayer::Project,
        "permission = [\n\
         { tool = 'a', action = 'deny' },\n\
         { tool = 'b', action = 'allow' },\n\
         { tool = 'c', action = 'ask' },\n]",
    );
    let tools: Vec<_> = setup.config().settings.permission.into_iter().map(|rule| rule.tool).collect();
    assert_eq!(tools, ["a", "c"]);
    assert_eq!(setup.notices(), ["project.toml:3:1: permission[1] is ignored: this project is not trusted"]);
}

#[test]
fn a_rule_that_vanishes_before_a_trusted_one_is_a_change() {
    let deny = "[[permission]]\ntool = 'shell'\npattern = 'rm *'\naction = 'deny'\n";
    let allow = "[[permission]]\ntool = 'shell'\naction = 'allow'\n";
    let setup = Setup::new().file(ConfigLayer::Project, format!("{deny}{allow}"));
    setup.trust();
    assert_eq!(setup.config().settings.permission.len(), 2);
    setup.write(ConfigLayer::Project, allow);
    assert_eq!(setup.config().trust(), ProjectTrust::Changed);
    assert!(setup.config().settings.permission.is_empty());
}

#[test]
fn trust_is_about_what_is_said_not_how_it_is_written() {
    let setup = Setup::new()
        .file(ConfigLayer::Project, "model = 'a/b'\nproviders.m = { wire = 'chat', base_url = 'x' }");
    setup.trust();
    setup.write(
        ConfigLayer::Project,
        "# moved\nui.color = 'never'\n[providers.m]\nbase_url =  'x'\nwire = \"chat\"\n",
    );
    setup.write(ConfigLayer::Local, "model = 'a/b'");
    assert_eq!(setup.config().trust(), ProjectTrust::Changed, "moved to the other file");
    setup.write(ConfigLayer::Local, "");
    setup.write(
        ConfigLayer::Project,
        "# moved\nui.color = 'never'\nmodel = \"a/b\"\n[providers.m]\nbase_url =  'x'\nwire = \"chat\"\n",
    );
    assert_eq!(setup.config().trust(), ProjectTrust::Trusted);
}

#[test]
fn trust_does_not_depend_on_the_users_own_settings() {
    let setup = Setup::new().file(ConfigLayer::Project, "limits.max_steps = 60\nmodel = 'a/b'");
    setup.trust();
    setup.write(ConfigLayer::User, "limits.max_steps = 100");
    assert_eq!(setup.config().trust(), ProjectTrust::Trusted);
}

#[test]
fn trust_of_one_project_is_not_trust_of_another() {
    let setup = Setup::new().file(ConfigLayer::Project, "model = 'a/b'");
    let digest = setup.config().digest().to_owned();
    setup.store().trust(Path::new("/somewhere/else"), &digest).unwrap();
    assert_eq!(setup.config().trust(), ProjectTrust::Untrusted);
}

fn store_in(folder: &Path) -> TrustStore {
    TrustStore::read(folder.join("deep/er/trust.toml")).unwrap()
}

#[test]
fn the_store_keeps_other_entries() {
    let folder = tempfile::tempdir().unwrap();
    // Two stores read before either saves, as two processes would.
    let (mut one, mut two) = (store_in(folder.path()), store_in(folder.path()));
    one.trust(Path::new("/a \"quoted\"\n\u{7f}"), "1").unwrap();
    two.trust(Path::new("/b"), "2").unwrap();
    one.trust(Path::new("/c"), "3").unwrap();
    two.forget(Path::new("/c")).unwrap();
    let store = store_in(folder.path());
    assert_eq!(store.roots().collect::<Vec<_>>(), [Path::new("/a \"quoted\"\n\u{7f}"), Path::new("/b")]);
    assert_eq!(store.digest_of(Path::new("/b")), Some("2"));
    assert_eq!(store.digest_of(Path::new("/c")), None);
}

#[cfg(unix)]
#[test]
fn only_the_user_may_read_the_store_and_nothing_is_left_beside_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("deep/er")).unwrap();
    std::fs::write(folder.path().join("deep/er/trust.toml.new"), "left by a killed process").unwrap();
    store_in(folder.path()).trust(Path::new("/a"), "1").unwrap();
    let file = folder.path().join("deep/er/trust.toml");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!folder.path().join("deep/er/trust.toml.new").exists());
    assert_eq!(std::fs::read_to_string(file).unwrap(), "[[trusted]]\nroot = \"/a\"\ndigest = \"1\"\n");
}

#[test]
fn many_savers_at_once_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for saver in 0..8 {
            let folder = folder.path();
            scope.spawn(move || {
                for round in 0..5 {
                    let root = format!("/{saver}/{round}");
                    store_in(folder).trust(Path::new(&root), "d").unwrap();
                }
            });
        }
    });
    assert_eq!(store_in(folder.path()).roots().count(), 40);
}

#[test]
fn a_damaged_store_is_an_error_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trust.toml");
    let mut store = TrustStore::read(&path).unwrap();
    for damage in ["[[trusted]]\nroot = '/a'", "trusted = 3", "[[trusted]", "other = 1"] {
        std::fs::write(&path, damage).unwrap();
        let error = TrustStore::read(&path).unwrap_err();
        assert!(matches!(error, TrustStoreError::Damaged { .. }), "{error}");
        assert!(error.hint().contains("delete it"));
        store.trust(Path::new("/b"), "1").unwrap_err();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), damage);
    }
    std::fs::write(&path, b"\xff").unwrap();
    assert!(matches!(TrustStore::read(&path), Err(TrustStoreError::Damaged { .. })));
    assert!(matches!(TrustStore::read(folder.path()), Err(TrustStoreError::Unreadable { .. })));
}

#[test]
fn a_root_must_be_a_full_path() {
    let folder = tempfile::tempdir().unwrap();
    let error = store_in(folder.path()).trust(Path::new("relative"), "1").unwrap_err();
    assert!(matches!(error, TrustStoreError::Root { .. }));
    assert!(!folder.path().join("deep").exists());
}

#[test]
fn no_project_chooses_the_keys_trusted_or_not() {
    for layer in [ConfigLayer::Project, ConfigLayer::Local] {
        let content = "keys.allow-once = 'n'\ninterface.status = ['model']\nlog.level = 'debug'";
        let setup = Setup::new().file(ConfigLayer::User, "keys.pager = 'f5'").file(layer, content);
        for _ in 0..2 {
            let settings = setup.config().settings;
            let keys: Vec<(&String, &Vec<String>)> =
                settings.keys.iter().map(|(name, keys)| (name, &keys.0)).collect();
            assert_eq!(keys, [(&"pager".to_owned(), &vec!["f5".to_owned()])]);
            assert!(settings.interface.status.len() > 1);
            let refused = setup.notices().into_iter().filter(|notice| notice.ends_with("not in a project"));
            assert_eq!(refused.count(), 2);
            setup.trust();
        }
    }
}

/// Rules that a person adds by an answer are trusted with what was read before, and with nothing that came meanwhile.
#[test]
fn an_added_rule_brings_nothing_else_with_it() {
    use helve_config::{PermissionRule, add_rules};
    let rule = |pattern: &str| PermissionRule {
        tool: "shell".to_owned(),
        pattern: Some(pattern.to_owned()),
        action: PermissionVerdict::Allow,
    };
    let rules = [rule("npm test:*"), PermissionRule { pattern: None, ..rule("") }];
    for before in ["", "model = 'a/b'\n", "[[permission]]\ntool = 'read'\naction = 'deny'\n"] {
        let setup = Setup::new().file(ConfigLayer::Local, before);
        setup.trust();
        let shown = setup.config().digest_with(&rules);
        add_rules(&setup.path("local.toml"), &rules).unwrap();
        setup.store().trust(&setup.root(), &shown).unwrap();
        assert_eq!(setup.config().trust(), ProjectTrust::Trusted, "{before:?}");

        // A job writes the project's file between the question and the answer.
        for (layer, planted) in [
            (ConfigLayer::Project, "[[permission]]\ntool = '*'\naction = 'allow'\n"),
            (ConfigLayer::Project, "[shell]\nstartup = 'x'\n"),
            (ConfigLayer::Local, "model = 'c/d'\n"),
        ] {
            let setup = Setup::new().file(ConfigLayer::Local, before);
            setup.trust();
            let shown = setup.config().digest_with(&rules);
            setup.write(layer, planted);
            add_rules(&setup.path("local.toml"), &rules).unwrap();
            setup.store().trust(&setup.root(), &shown).unwrap();
            assert_ne!(setup.config().trust(), ProjectTrust::Trusted, "{before:?} {planted}");
        }
    }
}
