//! Programs whose ways are known: those that only look, and those that go to the network.

/// Programs that only look at what their arguments name, whatever their options.
const READ_ONLY_PROGRAMS: [&str; 61] = [
    "[",
    "basename",
    "cat",
    "cd",
    "cksum",
    "cmp",
    "column",
    "comm",
    "cut",
    "date",
    "df",
    "diff",
    "dirname",
    "du",
    "echo",
    "egrep",
    "expr",
    "false",
    "fgrep",
    "file",
    "fold",
    "free",
    "getconf",
    "grep",
    "groups",
    "head",
    "hexdump",
    "hostname",
    "id",
    "join",
    "jq",
    "less",
    "ls",
    "lscpu",
    "md5sum",
    "more",
    "nl",
    "nproc",
    "od",
    "paste",
    "pgrep",
    "printf",
    "ps",
    "pwd",
    "readlink",
    "realpath",
    "rev",
    "seq",
    "sha256sum",
    "sleep",
    "stat",
    "strings",
    "tac",
    "tail",
    "test",
    "tr",
    "tree",
    "true",
    "uname",
    "wc",
    "which",
];

/// Programs that only look if these words, and no others, come first.
const READ_ONLY_COMMANDS: [(&str, &[&str]); 31] = [
    ("git", &["status"]),
    ("git", &["log"]),
    ("git", &["diff"]),
    ("git", &["show"]),
    ("git", &["blame"]),
    ("git", &["describe"]),
    ("git", &["rev-parse"]),
    ("git", &["rev-list"]),
    ("git", &["ls-files"]),
    ("git", &["ls-tree"]),
    ("git", &["cat-file"]),
    ("git", &["shortlog"]),
    ("git", &["grep"]),
    ("git", &["merge-base"]),
    ("git", &["stash", "list"]),
    ("git", &["stash", "show"]),
    ("git", &["config", "--get"]),
    ("git", &["--version"]),
    ("rg", &[]),
    ("fd", &[]),
    ("find", &[]),
    ("sort", &[]),
    ("command", &["-v"]),
    ("type", &[]),
    ("cargo", &["--version"]),
    ("rustc", &["--version"]),
    ("node", &["--version"]),
    ("npm", &["--version"]),
    ("npm", &["ls"]),
    ("python3", &["--version"]),
    ("go", &["version"]),
];

/// Programs that only look if these are all their words.
const EXACT_READ_ONLY_COMMANDS: [(&str, &[&str]); 7] = [
    ("git", &["remote", "-v"]),
    ("git", &["worktree", "list"]),
    ("git", &["branch", "--show-current"]),
    ("git", &["branch", "-a"]),
    ("git", &["branch", "--list"]),
    ("git", &["tag", "--list"]),
    ("git", &["branch"]),
];

/// Options with which a program that looks does more.
const NOT_READ_ONLY_OPTIONS: [(&str, &[&str]); 10] = [
    ("date", &["-s", "--set"]),
    ("hostname", &["-F", "-b", "--file"]),
    ("sort", &["-o", "--output", "--compress-program"]),
    (
        "git",
        &[
            "--output",
            "--ext-diff",
            "--open-files-in-pager",
            "-O",
            "--textconv",
            "-c",
            "--config-env",
            "--exec-path",
        ],
    ),
    ("rg", &["--pre", "--hostname-bin"]),
    ("tree", &["-o"]),
    ("less", &["-o", "-O", "--log-file", "--LOG-FILE"]),
    ("file", &["-C", "--compile"]),
    ("jq", &["-L", "--library-path"]),
    ("fd", &["-x", "-X", "--exec", "--exec-batch"]),
];

/// How far a program reaches beyond the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProgramReach {
    /// It goes to the network.
    Network,
    /// It acts on other machines in the user's name. That the network may be used is not enough.
    AsUser,
    /// It can't do its work confined: it speaks with a service of this machine, or changes it.
    Unconfined,
}

/// Programs that reach out, with all their words or only with these verbs.
const REACHING_PROGRAMS: [(&str, &str, ProgramReach); 29] = [
    ("curl wget ftp nc ncat telnet ping dig nslookup host npx", "", ProgramReach::Network),
    ("ssh scp sftp rsync gh glab aws gcloud az kubectl helm twine", "", ProgramReach::AsUser),
    ("docker podman nerdctl systemctl apt apt-get brew dnf yum pacman crontab", "", ProgramReach::Unconfined),
    ("git", "clone fetch pull ls-remote submodule", ProgramReach::Network),
    ("git", "push", ProgramReach::AsUser),
    ("npm", "install i ci add update audit outdated view exec create init", ProgramReach::Network),
    ("npm", "publish unpublish login adduser deprecate owner", ProgramReach::AsUser),
    ("pnpm", "install i add update dlx", ProgramReach::Network),
    ("pnpm", "publish", ProgramReach::AsUser),
    ("yarn", "install add upgrade dlx", ProgramReach::Network),
    ("yarn", "publish", ProgramReach::AsUser),
    ("bun", "install add update", ProgramReach::Network),
    ("bun", "publish", ProgramReach::AsUser),
    ("pip pip3", "install download index", ProgramReach::Network),
    ("uv", "sync add pip lock tool", ProgramReach::Network),
    ("uv", "publish", ProgramReach::AsUser),
    ("poetry", "install add update", ProgramReach::Network),
    ("poetry", "publish", ProgramReach::AsUser),
    ("cargo", "fetch update install search add", ProgramReach::Network),
    ("cargo", "publish yank login owner", ProgramReach::AsUser),
    ("go", "get install mod", ProgramReach::Network),
    ("gem", "install update", ProgramReach::Network),
    ("gem", "push", ProgramReach::AsUser),
    ("bundle", "install update", ProgramReach::Network),
    ("mvn", "deploy", ProgramReach::AsUser),
    ("terraform", "init get", ProgramReach::Network),
    ("terraform", "apply destroy import", ProgramReach::AsUser),
    ("pulumi", "up destroy", ProgramReach::AsUser),
    ("vercel netlify flyctl fly heroku firebase wrangler", "", ProgramReach::AsUser),
];

fn name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Whether a command only looks: at what its arguments name, and at nothing else.
pub(crate) fn is_read_only(words: &[Option<String>]) -> bool {
    // A path could name anything.
    let Some(program) = words.first().and_then(Option::as_deref).filter(|program| !program.contains('/'))
    else {
        return false;
    };
    // Whatever they are given, they only say it.
    if matches!(program, "echo" | "true" | "false" | "pwd") {
        return true;
    }
    let Some(arguments) = words.get(1..).unwrap_or_default().iter().cloned().collect::<Option<Vec<String>>>()
    else {
        return false;
    };
    let starts =
        |first: &[&str]| first.iter().zip(&arguments).filter(|(a, b)| *a == b).count() == first.len();
    let is_exactly = |all: &[&str]| all.len() == arguments.len() && starts(all);
    let is_known = READ_ONLY_PROGRAMS.contains(&program)
        || READ_ONLY_COMMANDS.iter().any(|(name, first)| *name == program && starts(first))
        || EXACT_READ_ONLY_COMMANDS.iter().any(|(name, all)| *name == program && is_exactly(all));
    // With a word of their own they set what they else tell.
    let sets =
        matches!(program, "date" | "hostname") && arguments.iter().any(|word| !word.starts_with(['-', '+']));
    let is_known = is_known && !sets;
    let forbidden =
        NOT_READ_ONLY_OPTIONS.iter().filter(|(name, _)| *name == program).flat_map(|(_, options)| *options);
    let does_more = |option: &str| {
        arguments.iter().any(|argument| {
            let is_long = option.starts_with("--");
            let cut = argument.split('=').next().unwrap_or_default();
            // Long options may be cut short, short ones stand together.
            match is_long {
                true => cut.len() > 2 && option.starts_with(cut),
                false => {
                    argument.starts_with('-')
                        && !argument.starts_with("--")
                        && argument.contains(option.trim_start_matches('-'))
                }
            }
        })
    };
    is_known && !forbidden.into_iter().any(|option| does_more(option))
}

/// The same command in the other ways in which it can be written: without the folder of its program, without the options
/// before its verb, as a program of its own (`git-push`), by what lies behind the verb (`git send-pack`), and with a verb
/// that is cut short (`npm pub`).
pub(crate) fn other_forms(words: &[Option<String>]) -> Vec<Vec<Option<String>>> {
    let Some(Some(program)) = words.first() else { return Vec::new() };
    let bare = name(program);
    let rest = || words.iter().skip(1).cloned();
    let joined = |first: &[&str], rest: &mut dyn Iterator<Item = Option<String>>| {
        first.iter().map(|word| Some((*word).to_owned())).chain(rest).collect::<Vec<_>>()
    };
    let mut forms = vec![joined(&[bare], &mut rest())];
    if let Some(verb) = bare.strip_prefix("git-") {
        forms.push(joined(&["git", behind(verb)], &mut rest()));
    }
    if let Some(at) = verb(words).and_then(|verb| words.iter().position(|word| word.as_ref() == Some(verb))) {
        let after = || words.iter().skip(at + 1).cloned();
        let verb = words.get(at).and_then(Option::as_deref).unwrap_or_default();
        forms.push(joined(&[bare, verb], &mut after()));
        if bare == "git" {
            forms.push(joined(&[bare, behind(verb)], &mut after()));
        }
        for whole in whole_verbs(bare, verb) {
            forms.push(joined(&[bare, whole], &mut after()));
        }
    }
    forms
}

/// The command of git's that does the same, for those that lie behind others.
fn behind(verb: &str) -> &str {
    match verb {
        "send-pack" | "http-push" => "push",
        "fetch-pack" | "http-fetch" | "remote-https" | "remote-http" => "fetch",
        "checkout-index" | "read-tree" => "checkout",
        "update-ref" => "branch",
        "commit-tree" => "commit",
        verb => verb,
    }
}

/// What npm makes of a verb that is cut short or has another name.
fn whole_verbs(program: &str, verb: &str) -> Vec<&'static str> {
    if !matches!(program, "npm" | "pnpm" | "yarn") {
        return Vec::new();
    }
    const WHOLE: [&str; 22] = [
        "install",
        "ci",
        "add",
        "update",
        "audit",
        "outdated",
        "view",
        "exec",
        "create",
        "init",
        "publish",
        "unpublish",
        "login",
        "adduser",
        "deprecate",
        "owner",
        "token",
        "access",
        "run-script",
        "test",
        "start",
        "uninstall",
    ];
    let other = match verb {
        "i" | "in" | "ins" | "isntall" => Some("install"),
        "x" => Some("exec"),
        "t" | "tst" => Some("test"),
        "run" | "rum" | "urn" => Some("run-script"),
        "clean-install" | "ic" | "install-clean" => Some("ci"),
        _ => None,
    };
    let cut =
        WHOLE.iter().copied().filter(|whole| verb.len() > 1 && whole.starts_with(verb) && *whole != verb);
    other.into_iter().chain(cut).collect()
}

/// Whether a program that runs another one does nothing else by itself: it names no file, and no second program.
pub(crate) fn only_wraps(words: &[Option<String>]) -> bool {
    const PLAIN: [&str; 27] = [
        "command", "builtin", "exec", "eval", "env", "nice", "ionice", "timeout", "stdbuf", "time", "setsid",
        "nohup", "chrt", "taskset", "xargs", "sh", "bash", "dash", "find", "fd", "sudo", "doas", "trap",
        "source", ".", "chronic", "unbuffer",
    ];
    let Some(program) = words.first().and_then(Option::as_deref) else { return false };
    let program = name(program);
    let writes = |word: &String| word.starts_with("-o") || word.starts_with("--o") || word.starts_with("-a");
    PLAIN.contains(&program) && !(program == "time" && words.iter().skip(1).flatten().any(writes))
}

/// Whether a program that only looks reads the files that it names, and no folders with all that is in them.
pub(crate) fn reads_what_it_names(words: &[Option<String>]) -> bool {
    const READERS: [&str; 22] = [
        "cat",
        "cksum",
        "cmp",
        "comm",
        "cut",
        "file",
        "fold",
        "head",
        "hexdump",
        "jq",
        "md5sum",
        "nl",
        "od",
        "paste",
        "rev",
        "sha256sum",
        "sort",
        "stat",
        "strings",
        "tac",
        "tail",
        "wc",
    ];
    let Some(program) = words.first().and_then(Option::as_deref) else { return false };
    let operands = words.iter().skip(1).flatten().filter(|word| !word.starts_with('-')).count();
    let is_deep = |word: &String| word.starts_with('-') && (word.contains(['r', 'R', 'd', 'f']));
    let greps = matches!(program, "grep" | "egrep" | "fgrep") && operands > 1;
    READERS.contains(&program) || greps && !words.iter().skip(1).flatten().any(is_deep)
}

/// Whether a command that only looks is one of the shell's own: no program runs.
pub(crate) fn is_shell_builtin(words: &[Option<String>]) -> bool {
    const OWN: [&str; 10] = ["[", "cd", "command", "echo", "false", "printf", "pwd", "test", "true", "type"];
    words.first().and_then(Option::as_deref).is_some_and(|program| OWN.contains(&program))
}

/// The first word that is neither an option nor the value of one that may stand before it.
fn verb(words: &[Option<String>]) -> Option<&String> {
    const WITH_VALUE: [&str; 10] = [
        "-C",
        "-c",
        "--git-dir",
        "--work-tree",
        "--namespace",
        "--config-env",
        "--attr-source",
        "--super-prefix",
        "--prefix",
        "--manifest-path",
    ];
    let mut words = words.iter().skip(1).flatten();
    while let Some(word) = words.next() {
        if WITH_VALUE.contains(&word.as_str()) {
            words.next();
        } else if !word.starts_with('-') {
            return Some(word);
        }
    }
    None
}

/// Whether a command goes to the network by its nature.
pub(crate) fn uses_network(words: &[Option<String>]) -> bool {
    in_all_forms(words, |words| {
        let verb = verb(words);
        reaching(words).any(|(verbs, _)| {
            verbs.is_empty() || verb.is_some_and(|verb| verbs.split(' ').any(|known| known == verb))
        })
    })
}

fn in_all_forms(words: &[Option<String>], is_so: impl Fn(&[Option<String>]) -> bool) -> bool {
    is_so(words) || other_forms(words).iter().any(|form| is_so(form))
}

/// The verbs with which this program reaches out, and how far.
fn reaching(words: &[Option<String>]) -> impl Iterator<Item = (&'static str, ProgramReach)> {
    let program = words.first().and_then(Option::as_deref).map(name);
    let rows = REACHING_PROGRAMS.iter().filter(move |(names, ..)| {
        program.is_some_and(|program| names.split(' ').any(|known| known == program))
    });
    rows.map(|(_, verbs, reach)| (*verbs, *reach))
}

/// Whether a program that speaks with servers names only those of this machine.
pub(crate) fn is_local(words: &[Option<String>]) -> bool {
    const SPEAKERS: [&str; 7] = ["curl", "wget", "nc", "ncat", "telnet", "ping", "ftp"];
    let is_speaker = words.first().and_then(Option::as_deref).is_some_and(|p| SPEAKERS.contains(&name(p)));
    let host = |word: &String| {
        let rest = word.split_once("://").map_or(word.as_str(), |(_, rest)| rest);
        let host = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        match host.strip_prefix('[') {
            Some(address) => address.split(']').next().unwrap_or(address).to_owned(),
            None => host.split(':').next().unwrap_or(host).to_owned(),
        }
    };
    let is_own =
        |host: &str| host == "localhost" || host == "::1" || host == "0.0.0.0" || host.starts_with("127.");
    let mut arguments = words.iter().skip(1).flatten();
    let names_own = words.iter().skip(1).flatten().any(|word| is_own(&host(word)));
    is_speaker && names_own && arguments.all(|word| !word.contains("://") || is_own(&host(word)))
}

/// Why a command is more than one that uses the network, if it is. The verb counts wherever it stands: options before it may
/// have values.
pub(crate) fn describe_reach(words: &[Option<String>]) -> Option<&'static str> {
    let forms = || std::iter::once(words.to_vec()).chain(other_forms(words));
    if forms().any(|form| reaching(&form).any(|(_, reach)| reach == ProgramReach::Unconfined)) {
        return Some("works outside the sandbox");
    }
    acts_as_user(words).then_some("acts in your name elsewhere")
}

/// Whether a command acts on other machines as the user.
pub(crate) fn acts_as_user(words: &[Option<String>]) -> bool {
    in_all_forms(words, |words| {
        let has = |verbs: &str| {
            words.iter().skip(1).flatten().any(|word| verbs.split(' ').any(|verb| verb == word))
        };
        reaching(words)
            .any(|(verbs, reach)| reach == ProgramReach::AsUser && (verbs.is_empty() || has(verbs)))
    })
}

/// Whether a command can't do its work confined.
pub(crate) fn cannot_be_confined(words: &[Option<String>]) -> bool {
    reaching(words).any(|(_, reach)| reach == ProgramReach::Unconfined)
}

/// Commands of git that say nothing of what is in files, whatever their options.
const QUIET_GIT_COMMANDS: &str = "branch fetch shortlog rev-parse ls-files ls-tree rev-list push remote init describe merge-base gc help version \
                                  count-objects symbolic-ref var check-ignore check-attr ls-remote name-rev show-ref prune rm mv";

/// Commands of git that do with some options: a patch (`status -v`, `add -p`), an object by its name (`config --blob`), or a
/// format (`tag --format=%(raw)`). The letters of those options, and how the long ones begin.
const MOSTLY_QUIET_GIT_COMMANDS: [(&str, &str, &[&str]); 7] = [
    ("status", "v", &["--v"]),
    ("add", "pie", &["--p", "--int", "--e"]),
    ("commit", "pv", &["--p", "--int", "--v"]),
    ("config", "", &["--bl"]),
    ("for-each-ref", "", &["--f"]),
    ("fsck", "", &["--l"]),
    ("tag", "", &["--f"]),
];

/// Options of `git log` by which it shows patches: their letters, and how the long ones begin.
const GIT_LOG_PATCH_OPTIONS: (&str, &[&str]) = (
    "puLcWGSmU",
    &["--pa", "--un", "--cc", "--di", "--fu", "--ex", "--te", "--wo", "--co", "--re", "--pi", "--bi", "--ch"],
);

/// Settings for one command that make git say nothing more.
const QUIET_GIT_SETTINGS: [&str; 8] =
    ["user.", "color.", "advice.", "safe.", "init.", "gc.", "core.quotepath", "commit.gpgsign"];

/// What of a command comes out of git's store of files, where no mask reaches: whether it may print or bring back files as
/// they were committed.
pub(crate) fn prints_from_git(words: &[Option<String>]) -> bool {
    let is_git = |words: &[Option<String>]| words.first().and_then(Option::as_deref).map(name) == Some("git");
    in_all_forms(words, |words| {
        if !is_git(words) {
            return false;
        }
        let before_verb = words.split(|word| word.as_ref() == verb(words)).next().unwrap_or_default();
        if before_verb.windows(2).any(is_telling_setting) {
            return true;
        }
        match verb(words).map(String::as_str) {
            Some("log" | "reflog") => {
                let (letters, starts) = GIT_LOG_PATCH_OPTIONS;
                may_have_option(words, letters, starts)
            }
            Some(verb) => match MOSTLY_QUIET_GIT_COMMANDS.iter().find(|(mostly, ..)| *mostly == verb) {
                Some((_, letters, starts)) => may_have_option(words, letters, starts),
                None => !QUIET_GIT_COMMANDS.split_whitespace().any(|quiet| quiet == verb),
            },
            None => words.iter().any(Option::is_none),
        }
    })
}

/// Whether two words before git's verb are a setting that may make it say more.
fn is_telling_setting(pair: &[Option<String>]) -> bool {
    match pair {
        [Some(option), value] if option == "-c" => value.as_ref().is_none_or(|value| {
            let value = value.to_lowercase();
            !QUIET_GIT_SETTINGS.iter().any(|quiet| value.starts_with(quiet))
        }),
        [Some(option), _] => option.starts_with("--config-env"),
        _ => false,
    }
}

/// Whether one of the words is an option with one of these letters, or a long one that begins like these. A word that can't
/// be known may be any.
fn may_have_option(words: &[Option<String>], letters: &str, starts: &[&str]) -> bool {
    words.iter().any(|word| {
        let Some(word) = word else { return true };
        let short = word.strip_prefix('-').filter(|short| !short.starts_with('-')).unwrap_or_default();
        short.contains(|letter| letters.contains(letter))
            || starts.iter().any(|start| word.starts_with(start))
    })
}

/// How a command of git's writes the settings of the repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GitSettingsWrite {
    /// By itself, as part of what it does: which branch follows which.
    Implicit,
    /// Whatever it is told to.
    Explicit,
}

/// Whether a command of git's writes its settings, and how.
pub(crate) fn writes_settings_of_git(words: &[Option<String>]) -> Option<GitSettingsWrite> {
    if words.first().and_then(Option::as_deref).map(name) != Some("git") {
        return None;
    }
    let has = |wanted: &[&str]| words.iter().flatten().any(|word| wanted.contains(&word.as_str()));
    let as_it_works = match verb(words).map(String::as_str) {
        Some("config") => {
            let looks = has(&["--get", "--get-all", "--get-regexp", "--list", "-l", "get", "list"]);
            return (!looks).then_some(GitSettingsWrite::Explicit);
        }
        Some("remote") => has(&["add", "remove", "rm", "rename", "set-url", "set-branches", "set-head"]),
        Some("branch") => has(&[
            "-m",
            "-M",
            "--move",
            "-u",
            "--set-upstream-to",
            "--track",
            "-t",
            "--unset-upstream",
            "--edit-description",
        ]),
        Some("checkout" | "switch") => has(&["--track", "-t"]),
        Some("push") => has(&["-u", "--set-upstream"]),
        Some("submodule") => has(&["add", "init", "sync", "deinit", "update"]),
        Some("worktree") => has(&["add", "move", "remove", "repair"]),
        Some("init" | "sparse-checkout" | "maintenance") => true,
        _ => false,
    };
    as_it_works.then_some(GitSettingsWrite::Implicit)
}

/// Whether a command of git's deletes files that git does not know.
pub(crate) fn deletes_untracked_files(words: &[Option<String>]) -> bool {
    let is_git = words.first().and_then(Option::as_deref).map(name) == Some("git");
    let is_dry = words.iter().flatten().any(|word| {
        word == "--dry-run" || word.starts_with('-') && !word.starts_with("--") && word.contains('n')
    });
    is_git && verb(words).is_some_and(|verb| verb == "clean") && !is_dry
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Option<String>> {
        text.split(' ').map(|word| Some(word.to_owned())).collect()
    }

    #[test]
    fn what_only_looks() {
        for text in
            ["ls -la", "git status", "git log --oneline -5", "git stash list", "rg -n x src", "sort a"]
        {
            assert!(is_read_only(&words(text)), "{text}");
        }
        for text in [
            "rm a",
            "git commit",
            "git stash",
            "git branch x",
            "sort -o b a",
            "sort --outp=b a",
            "sort -uob a",
            "git diff --output=x",
            "git -c alias.x=y status",
            "./ls",
            "/bin/ls",
            "date -s now",
            "git diff --ext-diff",
            "rg --pre cat x",
        ] {
            assert!(!is_read_only(&words(text)), "{text}");
        }
        assert!(!is_read_only(&[Some("ls".to_owned()), None]));
    }

    #[test]
    fn what_goes_out() {
        for text in ["curl x", "git push", "git -C x fetch", "npm ci", "/usr/bin/wget x", "cargo publish"] {
            assert!(uses_network(&words(text)), "{text}");
        }
        for text in ["git commit", "npm test", "cargo build", "pip list"] {
            assert!(!uses_network(&words(text)), "{text}");
        }
        for text in [
            "curl -s http://127.0.0.1:8099/x",
            "curl localhost:3000",
            "nc 127.0.0.1 80",
            "curl http://[::1]:1/",
        ] {
            assert!(is_local(&words(text)), "{text}");
        }
        for text in [
            "curl http://localhost.evil.com",
            "curl http://a.com http://localhost",
            "curl x",
            "git push localhost",
        ] {
            assert!(!is_local(&words(text)), "{text}");
        }
    }
}
