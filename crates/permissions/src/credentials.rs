//! Who the user is to others: keys, tokens and the programs that may have them.
//!
//! That the network may be used says nothing about keys. Credentials are asked for by the name of the program that gets
//! them, `credentials(git)`, and go with one plain command only: it is run without a shell, so that nothing else in the
//! call, and no script of the project's, finds them.

/// The name of the rules about credentials: `credentials(npm)`.
pub(crate) const CREDENTIALS_RULE: &str = "credentials";

/// What one program needs to say who the user is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramCredentials {
    pub program: &'static str,
    /// What is handed over, in words.
    pub what: &'static str,
    /// Files and folders below the home folder.
    pub files: &'static [&'static str],
    /// Variables of the environment. A star stands for whatever name a registry has.
    pub variables: &'static [&'static str],
    /// Whether it also gets the user's SSH agent.
    pub agent: bool,
    /// Programs that it needs for its work. It can start no others.
    pub helpers: &'static [&'static str],
    /// With which words it runs nothing of the project's.
    shape: SafeInvocations,
}

/// Which commands of a program run nothing that the project wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SafeInvocations {
    /// All of them.
    Any,
    /// These verbs.
    Verbs(&'static [&'static str]),
    /// These verbs always, those others only with one of these options.
    WithOptions {
        verbs: &'static [&'static str],
        others: &'static [&'static str],
        options: &'static [&'static str],
    },
}

/// A program that says who the user is by SSH, whatever it is told.
const fn by_ssh(program: &'static str, helpers: &'static [&'static str]) -> ProgramCredentials {
    let what = "your SSH keys and agent";
    ProgramCredentials {
        program,
        what,
        files: &[".ssh"],
        variables: &[],
        agent: true,
        helpers,
        shape: SafeInvocations::Any,
    }
}

/// One row for each program.
pub const PROGRAM_CREDENTIALS: [ProgramCredentials; 16] = [
    ProgramCredentials {
        program: "git",
        what: "your SSH keys and agent, and the passwords that git has stored",
        files: &[".ssh", ".git-credentials", ".config/git/credentials", ".netrc"],
        variables: &[],
        agent: true,
        // No shell: it gets passwords from this program, which asks the user's stores without one.
        helpers: &["ssh"],
        shape: SafeInvocations::Verbs(&["fetch", "push", "ls-remote", "clone", "submodule"]),
    },
    ProgramCredentials {
        program: "gh",
        what: "your GitHub token",
        files: &[".config/gh", ".netrc"],
        variables: &["GH_TOKEN", "GITHUB_TOKEN", "GH_HOST", "GH_ENTERPRISE_TOKEN"],
        agent: false,
        helpers: &["git"],
        shape: SafeInvocations::Any,
    },
    ProgramCredentials {
        program: "glab",
        what: "your GitLab token",
        files: &[".config/glab-cli", ".netrc"],
        variables: &["GITLAB_TOKEN"],
        agent: false,
        helpers: &["git"],
        shape: SafeInvocations::Any,
    },
    ProgramCredentials {
        program: "npm",
        what: "your npm tokens (~/.npmrc, NPM_TOKEN), for the registries that ~/.npmrc and the project's .npmrc name",
        files: &[".npmrc"],
        variables: &["NPM_TOKEN", "NODE_AUTH_TOKEN", "NPM_AUTH_TOKEN"],
        agent: false,
        helpers: &[],
        shape: SafeInvocations::WithOptions {
            verbs: &[
                "view",
                "info",
                "show",
                "whoami",
                "ping",
                "outdated",
                "audit",
                "dist-tag",
                "owner",
                "unpublish",
            ],
            others: &["install", "i", "ci", "add", "update", "publish", "pack"],
            options: &["--ignore-scripts"],
        },
    },
    ProgramCredentials {
        program: "pip",
        what: "your package index passwords (~/.netrc, ~/.config/pip, ~/.pip)",
        files: &[".netrc", ".config/pip", ".pip"],
        variables: &["PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"],
        agent: false,
        helpers: &[],
        shape: SafeInvocations::WithOptions {
            verbs: &["index"],
            others: &["download", "install", "wheel"],
            options: &["--only-binary=:all:"],
        },
    },
    ProgramCredentials {
        program: "cargo",
        what: "your registry tokens (~/.cargo/credentials.toml), for the registries that your and the project's settings of cargo name",
        files: &[".cargo/credentials.toml", ".cargo/credentials"],
        variables: &["CARGO_REGISTRY_TOKEN", "CARGO_REGISTRIES_*_TOKEN"],
        agent: false,
        helpers: &["rustc"],
        shape: SafeInvocations::WithOptions {
            verbs: &["fetch", "search", "owner", "yank"],
            others: &["publish"],
            options: &["--no-verify"],
        },
    },
    by_ssh("ssh", &[]),
    by_ssh("scp", &["ssh"]),
    by_ssh("sftp", &["ssh"]),
    by_ssh("rsync", &["ssh"]),
    ProgramCredentials {
        program: "twine",
        what: "your PyPI token (~/.pypirc)",
        files: &[".pypirc"],
        variables: &["TWINE_USERNAME", "TWINE_PASSWORD"],
        agent: false,
        helpers: &[],
        shape: SafeInvocations::Any,
    },
    ProgramCredentials {
        program: "aws",
        what: "your AWS keys",
        files: &[".aws"],
        variables: &[
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "AWS_PROFILE",
            "AWS_REGION",
        ],
        agent: false,
        helpers: &[],
        shape: SafeInvocations::Any,
    },
    ProgramCredentials {
        program: "gcloud",
        what: "your Google Cloud login",
        files: &[".config/gcloud"],
        variables: &["GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CONFIG"],
        agent: false,
        helpers: &[],
        shape: SafeInvocations::Any,
    },
    ProgramCredentials {
        program: "az",
        what: "your Azure login",
        files: &[".azure"],
        variables: &[],
        agent: false,
        helpers: &[],
        shape: SafeInvocations::Any,
    },
    ProgramCredentials {
        program: "kubectl",
        what: "your Kubernetes logins",
        files: &[".kube"],
        variables: &["KUBECONFIG"],
        agent: false,
        helpers: &[],
        shape: SafeInvocations::Any,
    },
    ProgramCredentials {
        program: "helm",
        what: "your Kubernetes logins",
        files: &[".kube", ".config/helm"],
        variables: &["KUBECONFIG"],
        agent: false,
        helpers: &[],
        shape: SafeInvocations::Any,
    },
];

/// Whether a variable is meant by one of the names of a row, of which some have a star.
pub fn matches_variable_name(variable: &str, names: &[&str]) -> bool {
    names.iter().any(|name| match name.split_once('*') {
        Some((start, end)) => {
            variable.len() > start.len() + end.len() && variable.starts_with(start) && variable.ends_with(end)
        }
        None => *name == variable,
    })
}

/// What the program of this name needs, if it is known.
pub fn credentials_for(program: &str) -> Option<&'static ProgramCredentials> {
    let program = if program == "pip3" { "pip" } else { program };
    PROGRAM_CREDENTIALS.iter().find(|row| row.program == program)
}

/// Options that change nothing of what runs and of where credentials go, for programs whose options are too many, and can be
/// cut short in too many ways, to name the others.
const CREDENTIAL_SAFE_OPTIONS: [(&str, &str); 3] = [
    (
        "npm",
        "--ignore-scripts --save -S --save-dev -D --save-exact -E --save-optional -O --save-peer --save-prod -P --no-save \
         --omit --include --production --prefer-offline --prefer-online --legacy-peer-deps --strict-peer-deps --force -f \
         --no-audit --audit --no-fund --no-progress --loglevel --verbose --silent -s --quiet -q -d -dd --json --long -l \
         --parseable -p --tag --access --otp --dry-run --workspaces -ws --workspace -w --include-workspace-root \
         --package-lock-only --no-package-lock --install-strategy --depth --all -a --audit-level --registry --engine-strict \
         --no-bin-links --foreground-scripts --provenance",
    ),
    (
        "pip",
        "--only-binary -r --requirement -c --constraint -d --dest --destination-directory -w --wheel-dir -t --target --no-deps \
         --upgrade -U --upgrade-strategy --user --pre --python-version --platform --implementation --abi --index-url -i \
         --extra-index-url --no-index --find-links -f --no-cache-dir --quiet -q -qq --verbose -v -vv --no-input \
         --require-hashes --force-reinstall --ignore-installed -I --prefer-binary --break-system-packages --dry-run \
         --progress-bar --no-compile --no-color --no-warn-script-location --disable-pip-version-check --timeout --retries \
         --versions --json",
    ),
    (
        "cargo",
        "--locked --frozen --offline --target --verbose -v -vv --quiet -q --color --registry --limit --no-verify \
         --allow-dirty --dry-run -n --package -p --workspace --exclude --features -F --all-features --no-default-features \
         --jobs -j --keep-going --add -a --remove -r --list -l --version --vers --undo",
    ),
];

/// The same for git, for each verb: a short option means another thing with another verb. Whatever is cut short is refused.
const GIT_SAFE_OPTIONS: [(&str, &str); 5] = [
    (
        "fetch",
        "--all --append -a --atomic --depth --deepen --shallow-since --shallow-exclude --unshallow --update-shallow --dry-run \
         --force -f --keep -k --multiple -m --prune -p --prune-tags -P --tags -t --no-tags -n --refmap --jobs -j --quiet -q \
         --verbose -v -vv --progress --no-progress --porcelain --filter --no-recurse-submodules --no-auto-gc \
         --no-auto-maintenance --no-write-fetch-head --no-show-forced-updates --ipv4 -4 --ipv6 -6",
    ),
    (
        "push",
        "--all --branches --mirror --tags --follow-tags --no-follow-tags --atomic --dry-run -n --porcelain --delete -d --prune \
         --force -f --force-with-lease --force-if-includes --set-upstream -u --verify --no-verify --quiet -q --verbose -v -vv \
         --progress --no-progress --thin --no-thin --no-signed --push-option -o --no-recurse-submodules --ipv4 -4 --ipv6 -6",
    ),
    (
        "ls-remote",
        "--heads --branches -h -b --tags -t --refs --quiet -q --exit-code --symref --sort --get-url",
    ),
    (
        "clone",
        "--depth --branch -b --single-branch --no-single-branch --tags --no-tags --bare --mirror --no-checkout -n --quiet -q \
         --verbose -v --progress --no-progress --shallow-since --shallow-exclude --filter --sparse --jobs -j --origin -o \
         --ipv4 -4 --ipv6 -6",
    ),
    (
        "submodule",
        "--init --recursive --no-fetch -N --remote --force -f --checkout --depth --jobs -j --quiet -q --progress \
         --recommend-shallow --no-recommend-shallow --single-branch --no-single-branch --filter --cached",
    ),
];
/// Options of git's own, before the verb.
const GIT_SAFE_LEADING_OPTIONS: [&str; 2] = ["--no-pager", "-P"];
/// What `git submodule` can do without running anything: not `foreach`, which runs whatever it is told.
const GIT_SAFE_SUBMODULE_VERBS: [&str; 4] = ["init", "update", "status", "sync"];

/// Short options of the programs that speak SSH by which they run or load something else, or obey other settings.
const REDIRECTING_SSH_LETTERS: [(&str, &str); 4] =
    [("ssh", "FIESOm"), ("scp", "FSoD"), ("sftp", "FSoDbRs"), ("rsync", "eM")];
/// Settings of ssh that can be given by `-o` and run or load nothing.
const SAFE_SSH_SETTINGS: [&str; 12] = [
    "batchmode",
    "compression",
    "connectionattempts",
    "connecttimeout",
    "identitiesonly",
    "loglevel",
    "port",
    "preferredauthentications",
    "serveralivecountmax",
    "serveraliveinterval",
    "stricthostkeychecking",
    "user",
];

/// Options by which a program takes its settings, or another program, from somewhere else.
const REDIRECTING_OPTION_PARTS: [&str; 22] = [
    "config",
    "conf",
    "exec",
    "command",
    "shell",
    "script",
    "program",
    "helper",
    "plugin",
    "rsh",
    "pack",
    "template",
    "options",
    "prefix",
    "pager",
    "editor",
    "viewer",
    "recurse",
    "from-file",
    "proxy",
    "python",
    "wrapper",
];

impl ProgramCredentials {
    /// Whether it does all its work in one process, so that it can be kept from starting any other: whatever it would build or
    /// run of a project is run by another one.
    pub fn is_single_process(&self) -> bool {
        matches!(self.program, "npm" | "pip")
    }

    fn harmless_options(&self) -> Option<&'static str> {
        CREDENTIAL_SAFE_OPTIONS
            .iter()
            .find(|(program, _)| *program == self.program)
            .map(|(_, options)| *options)
    }

    /// Why an option can't be there, where only the harmless ones can.
    fn refused_option(&self, arguments: &[String]) -> Option<String> {
        let harmless = self.harmless_options()?;
        let is_harmless = |name: &str| harmless.split_whitespace().any(|own| own == name);
        let name = |word: &String| word.split('=').next().unwrap_or_default().to_owned();
        // `--@scope:registry` says where the packages of a scope are.
        let is_of_scope = |name: &str| name.starts_with("--@") && name.ends_with(":registry");
        let options = arguments.iter().filter(|word| word.starts_with('-') && *word != "-").map(name);
        let option = { options }.find(|name| !is_harmless(name) && !is_of_scope(name))?;
        Some(format!("with {option} it could run something else, or send them elsewhere"))
    }

    /// Why a package can't be named like that: pip builds what is no wheel, whatever the options say.
    fn refused_package(&self, arguments: &[String]) -> Option<String> {
        let mut previous = "";
        for word in arguments.iter().filter(|_| self.program == "pip") {
            let is_value = previous.starts_with('-') && !previous.contains('=');
            let is_place = word == "." || word.contains(['/', '\\', '@', ':']);
            if !word.starts_with('-') && is_place && !is_value && !word.ends_with(".whl") {
                return Some(format!(
                    "pip would build {word}, which runs code of its own; name packages of an index"
                ));
            }
            previous = word;
        }
        None
    }

    /// Why npm can't publish this: what another `package.json` than the project's says for publishing is obeyed like settings.
    fn refused_publishing(&self, arguments: &[String]) -> Option<String> {
        const WITH_VALUE: [&str; 6] = ["--tag", "--access", "--otp", "--registry", "--loglevel", "--omit"];
        let mut previous = "";
        let mut words = Vec::new();
        for word in arguments.iter().filter(|_| self.program == "npm") {
            if !word.starts_with('-') && !WITH_VALUE.contains(&previous) {
                words.push(word.as_str());
            }
            previous = word;
        }
        let is_elsewhere = |word: &&String| {
            word.starts_with("-w") || word.starts_with("--w") || word.starts_with("--include-w")
        };
        let is_other = words.len() > 1 || arguments.iter().any(|word| is_elsewhere(&word));
        (words.first() == Some(&"publish") && is_other)
            .then(|| "a package is published from its own folder, without naming another one".to_owned())
    }

    /// Why git can't be told this: options are known for each verb, and other repositories are on other machines. (A remote by
    /// name may be a folder all the same: git itself is told to speak with no such thing.)
    fn refused_for_git(&self, arguments: &[String]) -> Option<String> {
        let is_option = |word: &&String| word.starts_with('-') && *word != "-";
        let at = arguments.iter().position(|word| !is_option(&word))?;
        let (leading, rest) = arguments.split_at(at);
        let (verb, rest) = rest.split_first()?;
        let refused =
            |option: &str| Some(format!("with {option} it could run something else, or work elsewhere"));
        if let Some(option) = leading.iter().find(|word| !GIT_SAFE_LEADING_OPTIONS.contains(&word.as_str())) {
            return refused(option);
        }
        let (_, safe) = GIT_SAFE_OPTIONS.iter().find(|(known, _)| known == verb)?;
        let name = |word: &String| word.split('=').next().unwrap_or_default().to_owned();
        let is_safe = |name: &String| safe.split_whitespace().any(|own| own == name);
        if let Some(option) = rest.iter().filter(is_option).map(name).find(|name| !is_safe(name)) {
            return refused(&option);
        }
        let mut others = rest.iter().filter(|word| !is_option(word));
        if verb == "submodule" {
            let what = others.next().map_or("status", String::as_str);
            return (!GIT_SAFE_SUBMODULE_VERBS.contains(&what))
                .then(|| format!("`git submodule {what}` may run what the project wrote"));
        }
        let is_here = |word: &&String| {
            let is_path = word.starts_with(['.', '/', '~']) && verb != "clone";
            is_path || word.contains("::") || word.to_lowercase().starts_with("file:")
        };
        others.find(is_here).map(|place| format!("{place} is no repository on another machine"))
    }

    /// Why a program that speaks SSH can't be told this.
    fn refused_for_ssh(&self, arguments: &[String]) -> Option<String> {
        let (_, letters) = REDIRECTING_SSH_LETTERS.iter().find(|(program, _)| *program == self.program)?;
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            // What follows the host is for the other machine.
            if self.program == "ssh" && !word.starts_with('-') {
                return None;
            }
            let Some(short) = word.strip_prefix('-').filter(|short| !short.starts_with('-')) else {
                continue;
            };
            if let Some(setting) = short.strip_prefix('o').filter(|_| self.program != "rsync") {
                let setting =
                    if setting.is_empty() { words.next().map_or("", String::as_str) } else { setting };
                let name = setting.split(['=', ' ']).next().unwrap_or_default().to_lowercase();
                if SAFE_SSH_SETTINGS.contains(&name.as_str()) {
                    continue;
                }
            }
            if short.contains(|letter| letters.contains(letter))
                || short.starts_with('o') && self.program != "rsync"
            {
                return Some(format!("with {word} it could run something else"));
            }
            // The value of an option is no host.
            if self.program == "ssh" && short.len() == 1 && "BbcDeiJLlpQRWw".contains(short) {
                words.next();
            }
        }
        None
    }

    /// Why these words can't have them; none if they can.
    pub(crate) fn refusal(&self, arguments: &[String]) -> Option<String> {
        let program = self.program;
        let refused = match program {
            "git" => self.refused_for_git(arguments),
            "npm" => self.refused_publishing(arguments),
            _ => self.refused_for_ssh(arguments),
        };
        if refused.is_some() {
            return refused;
        }
        if let Some(why) = self.refused_option(arguments).or_else(|| self.refused_package(arguments)) {
            return Some(why);
        }
        let is_elsewhere = |word: &&String| {
            let name = word.split('=').next().unwrap_or_default().to_lowercase();
            name.starts_with('-') && REDIRECTING_OPTION_PARTS.iter().any(|part| name.contains(part))
        };
        if !matches!(program, "ssh" | "gh")
            && program != "git"
            && self.harmless_options().is_none()
            && let Some(option) = arguments.iter().find(is_elsewhere)
        {
            return Some(format!("with {option} it could run something else"));
        }
        let verb = arguments.iter().find(|word| !word.starts_with('-'))?;
        let wanted = |options: &[&str]| {
            let text = arguments.join(" ").replace("--only-binary :all:", "--only-binary=:all:");
            text.split(' ').any(|word| options.contains(&word))
        };
        match self.shape {
            SafeInvocations::Any => None,
            SafeInvocations::Verbs(verbs) if verbs.contains(&verb.as_str()) => None,
            SafeInvocations::Verbs(_) => Some(match (program, verb.as_str()) {
                ("git", "pull") => "`git pull` also runs what the project sets up for a merge; run `git fetch` with them, then `git merge`".to_owned(),
                _ => format!("`{program} {verb}` may run what the project wrote"),
            }),
            SafeInvocations::WithOptions { verbs, others, options } => {
                let is_free = verbs.contains(&verb.as_str());
                let is_bound = others.contains(&verb.as_str());
                let option = options.first().copied().unwrap_or_default();
                match (is_free, is_bound && wanted(options)) {
                    (true, _) | (_, true) => None,
                    _ if is_bound => Some(format!(
                        "`{program} {verb}` runs what the project or its packages wrote; add {option}, and build without them afterwards"
                    )),
                    _ => Some(format!("`{program} {verb}` may run what the project wrote")),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> Option<String> {
        let mut words = text.split(' ').map(str::to_owned);
        let program = words.next().unwrap();
        credentials_for(&program).unwrap().refusal(&words.collect::<Vec<_>>())
    }

    #[test]
    fn credentials_go_only_where_nothing_of_the_projects_runs() {
        for text in [
            "git fetch",
            "git push origin main",
            "git clone https://example.com/a.git",
            "npm ci --ignore-scripts",
            "npm view left-pad",
            "npm publish --ignore-scripts --tag next --access=public",
            "pip download --only-binary=:all: -r requirements.txt",
            "pip install --only-binary :all: requests",
            "cargo fetch",
            "cargo publish --no-verify",
            "npm install --ignore-scripts --save-dev -w app left-pad@1 @scope/x",
            "pip download --only-binary=:all: --index-url https://example.com/simple/ --python-version 3.11 -d ./wheels a b==1",
            "ssh host uptime",
            "ssh -p 22 -i key -o ConnectTimeout=5 me@host ls -S -F",
            "scp -r -P 22 a host:b",
            "rsync -avz --delete a host:b",
            "aws s3 ls",
            "git --no-pager fetch --prune --depth=1 origin main",
            "git push -u origin HEAD:refs/heads/x --force-with-lease",
            "git clone --depth 1 -b main git@example.com:a/b.git ../elsewhere",
            "git ls-remote --heads origin",
            "git submodule update --init --recursive lib",
        ] {
            assert_eq!(refusal(text), None, "{text}");
        }
        for text in [
            "git pull",
            "git commit -m x",
            "git fetch --upload-pack=./x",
            "git fetch --upl=./x",
            "git fetch --recurse-submodules",
            "git --git-dir=x fetch origin",
            "git --git-dir x fetch origin",
            "git --work-tree=x fetch origin",
            "git -C x fetch",
            "git -c a.b=c fetch",
            "git --exec-path=x fetch",
            "git --bare fetch",
            "git --namespace=x fetch",
            "git fetch .",
            "git fetch ./nested",
            "git fetch ../other main",
            "git fetch /srv/x",
            "git fetch FILE:///srv/x",
            "git fetch ext::x",
            "git push ./nested main",
            "git push --receive-pack=./x origin",
            "git push --rec=./x origin",
            "git push --exec=./x origin",
            "git push --repo=./x",
            "git push --signed origin main",
            "git ls-remote --exec=./x origin",
            "git clone -u ./x https://example.com/a",
            "git clone -c core.fsmonitor=./x https://example.com/a",
            "git clone --template=x https://example.com/a",
            "git clone --recurse-submodules https://example.com/a",
            "git clone --reference x https://example.com/a",
            "git clone file:///srv/x",
            "git submodule foreach ./x",
            "git submodule --quiet foreach ./x",
            "git submodule add https://example.com/a",
            "git submodule update --merge",
            "git submodule summary",
            "ssh -o ProxyCommand=./x host",
            "ssh -oProxyCommand=./x host",
            "ssh -F x host",
            "ssh -p 22 -F x host",
            "ssh -vF x host",
            "ssh -I ./x.so host",
            "scp -S ./x a host:b",
            "scp -o ProxyCommand=./x a host:b",
            "sftp -S ./x host",
            "rsync -e ./x a host:b",
            "rsync -ave ./x a host:b",
            "npm install",
            "npm run build",
            "npm ci --ignore-scripts --script-shell=./x",
            "npm ci --ignore-scripts=false",
            "pip install requests",
            "pip install .",
            "pip install --only-binary=:all: .",
            "pip install --only-binary :all: ./sub",
            "pip install --only-binary=:all: git+https://example.com/x",
            "pip install --only-binary=:all: https://example.com/x.tar.gz",
            "pip install --only-binary=:all: -e x",
            "pip install --only-binary=:all: --no-binary x x",
            "pip install --only-binary=:all: --trusted-host example.com x",
            "npm ci --ignore-scripts --scr ./x",
            "npm publish --ignore-scripts ./other",
            "npm publish --ignore-scripts -w other",
            "npm ci --ignore-scripts --no-ignore-s",
            "npm ci --ignore-scripts -C elsewhere",
            "npm ci --ignore-scripts --userc ./x",
            "cargo fetch --config x=y",
            "cargo fetch -Zunstable-options",
            "cargo fetch -C elsewhere",
            "cargo search --index sparse+http://example.com/ x",
            "cargo build",
            "cargo publish",
            "rsync --rsh=./x a b",
        ] {
            assert!(refusal(text).is_some(), "{text}");
        }
    }
}
