//! What commands see of the user's home folder, with the real program and real files: toolchains and the project, and nothing
//! that is the user's own business.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::home::{Home, Ran};

/// Where people and programs keep what nobody else may read.
const STORES: &[&str] = &[
    ".ssh/id_ed25519",
    ".ssh/config",
    ".gnupg/private-keys-v1.d/key",
    ".aws/credentials",
    ".aws/sso/cache/token.json",
    ".azure/msal_token_cache.json",
    ".config/gcloud/credentials.db",
    ".config/gcloud/application_default_credentials.json",
    ".kube/config",
    ".docker/config.json",
    ".terraform.d/credentials.tfrc.json",
    ".terraformrc",
    ".vault-token",
    ".netrc",
    ".npmrc",
    ".yarnrc.yml",
    ".yarnrc",
    ".pypirc",
    ".gem/credentials",
    ".cargo/credentials.toml",
    ".cargo/credentials",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".gradle/init.gradle",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".nuget/NuGet/NuGet.Config",
    ".config/NuGet/NuGet.Config",
    ".conan2/credentials.json",
    ".condarc",
    ".conda/aau_token",
    ".git-credentials",
    ".config/git/credentials",
    ".gitconfig",
    ".config/gh/hosts.yml",
    ".config/hub",
    ".config/glab-cli/config.yml",
    ".config/rclone/rclone.conf",
    ".config/op/config",
    ".config/sops/age/keys.txt",
    ".password-store/mail.gpg",
    ".local/share/keyrings/login.keyring",
    ".local/share/kwalletd/kdewallet.kwl",
    ".mozilla/firefox/x.default/logins.json",
    ".config/google-chrome/Default/Login Data",
    ".config/chromium/Default/Cookies",
    ".config/BraveSoftware/Brave-Browser/Default/Cookies",
    ".thunderbird/x.default/logins.json",
    ".bash_history",
    ".zsh_history",
    ".local/share/fish/fish_history",
    ".python_history",
    ".psql_history",
    ".mysql_history",
    ".node_repl_history",
    ".rediscli_history",
    ".sqlite_history",
    ".viminfo",
    ".lesshst",
    ".wget-hsts",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".boto",
    ".s3cfg",
    ".fly/config.yml",
    ".config/heroku/credentials",
    ".config/netlify/config.json",
    ".vercel/auth.json",
    ".claude/.credentials.json",
    ".claude.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".config/github-copilot/hosts.json",
    ".local/share/opencode/auth.json",
    ".ollama/id_ed25519",
    ".config/Signal/config.json",
    ".cache/keyring/secret",
    ".cache/mozilla/firefox/page",
    ".pip/pip.conf",
    ".config/pip/pip.conf",
    ".bashrc",
    ".profile",
    ".config/systemd/user/x.service",
    "Documents/tax.pdf",
    "other-project/.env",
];

/// The same inside what is shown of toolchains. They are there, and look empty.
const TOOLCHAIN_STORES: &[&str] = &[
    ".local/share/uv/credentials/credentials.toml",
    ".rye/credentials",
    ".opam/plugins/opam-publish/me.token",
    ".opam/opam-token",
    ".nimble/github_api_token",
    ".luarocks/upload_config.lua",
    ".julia/servers/example.org/auth.toml",
    ".julia/logs/repl_history.jl",
    ".dotnet/corefx/cryptography/x509stores/my/key.pfx",
    ".npm-global/etc/npmrc",
    ".config/yarn/global/.npmrc",
    ".local/share/gem/credentials",
    ".nvm/.npmrc",
    ".pyenv/secrets.toml",
    ".asdf/plugins/auth.json",
    ".local/share/mise/tokens.json",
    ".pixi/credentials.json",
    ".virtualenvs/work/pip.conf",
    "miniconda3/.condarc",
    ".local/bin/.env",
    ".config/mise/config.toml",
    ".cargo/config.toml",
];

/// A home folder that is not in `/tmp`, which is covered as a whole.
struct Person {
    machine: Home,
    folder: tempfile::TempDir,
}

impl Person {
    fn new() -> Person {
        let folder =
            tempfile::Builder::new().prefix(".home-").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let person = Person { machine: Home::new(), folder };
        person.write("work/project/.git/HEAD", "ref: refs/heads/main\n");
        person
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    /// What a command says that a model runs in the project.
    fn shell(&self, limits: Limits, script: &str) -> String {
        self.shell_in("project", limits, script)
    }

    fn shell_in(&self, project: &str, limits: Limits, script: &str) -> String {
        let project = format!("work/{project}");
        self.write(&format!("{project}/.git/HEAD"), "ref: refs/heads/main\n");
        self.write(&format!("{project}/script.sh"), script);
        let input = json!({ "command": "sh ./script.sh 2>&1; true" }).to_string();
        let inner = self.machine.helve(&["tool", "shell", &input, "--yes"]);
        let mut command = match limits {
            Limits::Full => Command::new(inner.get_program()),
            Limits::NoNamespaces => {
                let mut outer = Command::new("unshare");
                let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
                outer.args(["-Ur", "sh", "-c", script, "sh"]).arg(inner.get_program());
                outer
            }
        };
        command.args(inner.get_args()).env_clear();
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let path = format!("{}:/usr/bin:/bin", self.path("tools/bin").display());
        command.env("HOME", self.path("")).env("PATH", path).current_dir(self.path(&project));
        command.stdin(Stdio::null());
        let Ran { out, err, .. } = self.machine.run_command(command);
        let said: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
        said["output"].as_str().unwrap_or_else(|| panic!("{said}")).to_owned()
    }
}

/// What the machine lets Helve do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limits {
    Full,
    NoNamespaces,
}

/// How well commands can be confined here, with and without namespaces.
fn levels() -> Vec<Limits> {
    let person = Person::new();
    let is_confined = |limits: Limits| {
        let can_unshare =
            || Command::new("unshare").args(["-Ur", "true"]).status().is_ok_and(|it| it.success());
        let is_possible = limits == Limits::Full || can_unshare();
        let said = is_possible.then(|| person.shell(limits, "grep Seccomp: /proc/self/status"));
        let is_so = said.is_some_and(|said| said.contains("Seccomp:\t2"));
        if !is_so {
            helve_testkit::skip("hidden_home", &format!("commands can't be confined here: {limits:?}"));
        }
        is_so
    };
    [Limits::Full, Limits::NoNamespaces].into_iter().filter(|limits| is_confined(*limits)).collect()
}

#[test]
fn no_store_of_secrets_is_read() {
    for limits in levels() {
        let person = Person::new();
        for store in STORES {
            person.write(store, &format!("password = SECRET in {store}\n"));
        }
        let list = STORES.iter().map(|store| format!("\"$HOME/{store}\"")).collect::<Vec<_>>().join(" ");
        let script = format!("for f in {list}; do cat \"$f\" && echo \"READ $f\"; done; echo over");
        // Anybody can read them where nothing is hidden.
        let bare = Command::new("sh").arg("-c").arg(&script).env("HOME", person.path("")).output().unwrap();
        let read = String::from_utf8_lossy(&bare.stdout).matches("SECRET").count();
        assert_eq!(read, STORES.len());
        let said = person.shell(limits, &script);
        assert!(said.contains("over"), "{limits:?}: {said}");
        let read: Vec<&str> =
            said.lines().filter(|line| line.contains("SECRET") || line.starts_with("READ")).collect();
        assert!(read.is_empty(), "{limits:?}: {read:?}");
    }
}

#[test]
fn no_login_inside_a_toolchain_is_read() {
    for limits in levels() {
        let person = Person::new();
        person.write(".rustup/toolchains/stable/lib/std", "a part of Rust");
        person.write("miniconda3/conda-meta/google-auth-2.38.0.json", "a package of conda");
        for store in TOOLCHAIN_STORES {
            person.write(store, &format!("password = SECRET in {store}\n"));
        }
        let list =
            TOOLCHAIN_STORES.iter().map(|store| format!("\"$HOME/{store}\"")).collect::<Vec<_>>().join(" ");
        let look = "cat ~/.rustup/toolchains/stable/lib/std ~/miniconda3/conda-meta/*";
        let said = person.shell(limits, &format!("for f in {list}; do cat \"$f\"; done; {look}"));
        assert!(!said.contains("SECRET"), "{limits:?}: {said}");
        assert!(said.contains("a part of Rust") && said.contains("a package of conda"), "{limits:?}: {said}");
    }
}

#[test]
fn only_what_is_shown_is_listed() {
    for limits in levels() {
        let person = Person::new();
        person.write(".cargo/bin/tool", "#!/bin/sh\necho a tool of cargo\n");
        person.write("notes.txt", "mine");
        person.write("tools/bin/mine", "#!/bin/sh\necho a tool on the path\n");
        person.write("tools/private", "mine");
        let script = "chmod +x $HOME/tools/bin/mine; ls -A $HOME; echo; ls -A $HOME/tools; echo; sh $HOME/.cargo/bin/tool; sh $HOME/tools/bin/mine; echo new > new; echo x > $HOME/written";
        let said = person.shell(limits, script);
        assert!(
            said.contains("a tool of cargo") && said.contains("a tool on the path"),
            "{limits:?}: {said}"
        );
        // Without namespaces, names are seen, and nothing else.
        if limits == Limits::Full {
            assert!(!said.contains("notes.txt") && !said.contains("private"), "{said}");
            let listed: Vec<&str> = said.split("\n\n").next().unwrap().lines().collect();
            let seen = |name: &&str| !["chmod", "[", "script"].iter().any(|word| name.starts_with(word));
            let listed: Vec<&str> = listed.into_iter().filter(seen).collect();
            // Caches that tools would make are there, and are the project's own.
            let expected = [
                ".bun", ".cache", ".cargo", ".gradle", ".local", ".m2", ".npm", ".nuget", ".yarn", "go",
                "tools", "work",
            ];
            assert_eq!(listed, expected);
        }
        assert_eq!(fs::read_to_string(person.path("work/project/new")).unwrap(), "new\n");
        assert!(!person.path("written").exists());
    }
}

/// Settings of tools are seen only without what is in them of others' business.
#[test]
fn settings_with_secrets_are_not_shown() {
    for limits in levels() {
        for (name, text) in [
            (".condarc", "channels:\n  - https://conda.example/t/tk-123-SECRET-456/main\n"),
            (".config/mise/config.toml", "[env]\nSTRIPE = \"sk_live_SECRET0123456789\"\n"),
            (".cargo/config.toml", "[env]\nMY_KEY = \"SECRET\"\n"),
            (".cargo/config.toml", "[http]\nproxy = \"user:SECRET@proxy\"\n"),
        ] {
            let person = Person::new();
            person.write(name, text);
            let said = person.shell(limits, &format!("cat ~/{name}"));
            assert!(!said.contains("SECRET"), "{limits:?} {name}: {said}");
            person.write(".editorconfig", "indent_style = space\n");
            assert!(person.shell(limits, "cat ~/.editorconfig").contains("space"), "{limits:?}");
        }
    }
}

/// A cache that is not there yet can be made, also where the folder around it is shown.
#[test]
fn caches_are_made_inside_what_is_shown() {
    for limits in levels().into_iter().filter(|limits| *limits == Limits::Full) {
        let person = Person::new();
        person.write("go/pkg/sumdb/x", "there");
        person.write(".local/share/pnpm/global/x", "there");
        let script = "cat ~/go/pkg/sumdb/x ~/.local/share/pnpm/global/x; mkdir -p ~/go/pkg/mod/m ~/.local/share/pnpm/store/v3 && echo made";
        let said = person.shell(limits, script);
        assert!(said.matches("there").count() == 2 && said.contains("made"), "{said}");
        assert!(!person.path("go/pkg/mod").exists());
    }
}

/// Settings that are links into a folder of settings, as some people have them.
#[test]
fn links_to_what_is_shown_lead_there() {
    for limits in levels() {
        let person = Person::new();
        person.write("dotfiles/gitconfig", "[user]\n\tname = A Name\n");
        person.write("dotfiles/secret", "SECRET");
        symlink("dotfiles/gitconfig", person.path(".gitconfig")).unwrap();
        let said = person.shell(limits, "cat ~/.gitconfig; cat ~/dotfiles/secret");
        assert!(said.contains("A Name") && !said.contains("SECRET"), "{limits:?}: {said}");
    }
}

/// Git needs a name to commit; a token that stands in the same file is nobody's business.
#[test]
fn git_keeps_its_settings_and_not_its_tokens() {
    if !Path::new("/usr/bin/git").exists() {
        return helve_testkit::skip("git_keeps_its_settings_and_not_its_tokens", "git is not installed");
    }
    for limits in levels() {
        let person = Person::new();
        let settings = "[user]\n\tname = A Name\n\temail = a@example.org\n[init]\n\tdefaultBranch = trunk\n\
            [http \"https://example.org\"]\n\textraHeader = Authorization: SECRET\n\
            [sendemail]\n\tsmtpServer = mail.example.org\n\tsmtpPass = SECRET\n[imap]\n\tpass = SECRET\n[github]\n\toauth = SECRET\n\
            [gitlab]\n\tpat = SECRET\n\
            [url \"https://x:SECRET@example.org/\"]\n\tinsteadOf = https://example.org/\n";
        person.write(".gitconfig", settings);
        let script = "cat ~/.gitconfig; git config --global --list; mkdir r; cd r; git init -q; git commit -q --allow-empty -m first; git log --format='%an %ae'; git branch --show-current";
        let said = person.shell(limits, script);
        assert!(said.contains("A Name a@example.org") && said.contains("\ntrunk"), "{limits:?}: {said}");
        assert!(!said.contains("SECRET"), "{limits:?}: {said}");
    }
}

#[test]
fn what_the_user_wants_shown_is_shown_and_a_project_has_no_say() {
    for limits in levels() {
        let person = Person::new();
        person.write("data/table", "a table");
        person.write("other/table", "SECRET");
        person.machine.write("home/config.toml", "[permissions]\nshow = [\"~/data\"]\n");
        person.write("work/project/.helve/config.toml", "[permissions]\nshow = [\"~/other\"]\n");
        let said = person.shell(limits, "cat ~/data/table ~/other/table");
        assert!(said.contains("a table") && !said.contains("SECRET"), "{limits:?}: {said}");
    }
}

/// Caches that are run, linked or unpacked later, by whoever uses them.
const POISONED: [&str; 7] = [
    ".cache/uv/wheel",
    ".cache/pip/wheels/w.whl",
    ".cache/go-build/ab/x-a",
    ".cargo/registry/src/crate/lib.rs",
    ".npm/_cacache/content-v2/x",
    "go/pkg/mod/m/x.go",
    ".m2/repository/x.jar",
];

#[test]
fn a_poisoned_cache_harms_its_own_project_only() {
    for limits in levels() {
        let person = Person::new();
        POISONED.iter().for_each(|name| person.write(name, "good\n"));
        let list = POISONED.join(" ");
        let poison = format!("cd; for f in {list}; do cat $f; echo POISON > $f; echo POISON > $f.new; done");
        let said = person.shell(limits, &poison);
        assert_eq!(said.matches("good").count(), POISONED.len(), "{limits:?}: {said}");
        for name in POISONED {
            assert_eq!(fs::read_to_string(person.path(name)).unwrap(), "good\n", "{limits:?} {name}");
            assert!(!person.path(&format!("{name}.new")).exists(), "{limits:?} {name}");
        }
        let look = format!("cd; for f in {list}; do cat $f $f.new; done");
        let said = person.shell_in("other", limits, &look);
        assert!(
            said.matches("good").count() == POISONED.len() && !said.contains("POISON"),
            "{limits:?}: {said}"
        );
        if limits == Limits::Full {
            // It is the cache of this project from now on, in other sessions too.
            let said = person.shell(limits, &format!("{{ {look}; }} | sort | uniq -c"));
            assert!(
                said.contains(&format!("{} POISON", 2 * POISONED.len())) && !said.contains("good"),
                "{said}"
            );
        }
    }
}

#[test]
fn without_a_layer_tools_have_caches_of_the_projects_own() {
    for limits in levels().into_iter().filter(|limits| *limits == Limits::NoNamespaces) {
        let person = Person::new();
        let say = "cat $PIP_CACHE_DIR/left $XDG_CACHE_HOME/left";
        let said = person.shell(limits, &format!("mkdir -p $PIP_CACHE_DIR && echo pip > $PIP_CACHE_DIR/left; echo xdg > $XDG_CACHE_HOME/left; {say}"));
        assert!(said.contains("pip\nxdg"), "{said}");
        assert!(person.shell(limits, say).contains("pip\nxdg"), "the next command finds it");
        assert!(!person.shell_in("other", limits, say).contains("xdg"), "another project does not");
    }
}

/// A file that was moved to `/tmp` may be the only copy.
#[test]
fn what_is_moved_to_tmp_outlives_the_session() {
    for limits in levels() {
        let person = Person::new();
        person.write("work/project/localdata", "the only copy");
        person.shell(limits, "mv localdata ${TMPDIR:-/tmp}/backup");
        assert!(!person.path("work/project/localdata").exists());
        assert!(person.shell(limits, "cat ${TMPDIR:-/tmp}/backup").contains("the only copy"), "{limits:?}");
        assert!(
            !person.shell_in("other", limits, "cat ${TMPDIR:-/tmp}/backup").contains("the only copy"),
            "{limits:?}"
        );
    }
}
