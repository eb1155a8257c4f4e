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
const READ_ONLY_COMMANDS: [(&str, &[&str]); 30] = [
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
        || EXACT_READ_ONLY_COMMANDS.iter().any(|(name, all)| *name == program && is_exactly(all))
        || program == "git"
            && arguments.first().is_some_and(|verb| verb == "config")
            && reads_git_config(words);
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

/// The words of a command that may name files. Others are texts for some programs: what they print, and what they look for.
pub(crate) fn named_paths(words: &[Option<String>]) -> Vec<String> {
    let program = words.first().and_then(Option::as_deref).unwrap_or_default();
    let arguments: Vec<&String> = words.iter().skip(1).flatten().collect();
    // What an option is given counts too.
    let value = |word: &str| match word.strip_prefix('-') {
        None => Some(word.to_owned()),
        Some(option) => match option.split_once('=') {
            Some((_, value)) => Some(value.to_owned()),
            None => option.find('/').and_then(|at| option.get(at..)).map(str::to_owned),
        },
    };
    let is_git_grep = program == "git" && arguments.first().is_some_and(|verb| *verb == "grep");
    match program {
        "echo" | "printf" | "expr" | "tr" | "seq" | "sleep" | "basename" | "dirname" | "true" | "false" => {
            Vec::new()
        }
        "grep" | "egrep" | "fgrep" | "rg" => without_patterns(&arguments),
        "git" if is_git_grep => without_patterns(arguments.get(1..).unwrap_or_default()),
        "git" => {
            // These take the word behind them for a text; `--format` and its like only what they are given at once.
            const TEXTS: [&str; 7] =
                ["--grep", "--author", "--committer", "--message", "--date", "--since", "--until"];
            let is_of = |verbs: &[&str]| arguments.first().is_some_and(|verb| verbs.contains(&verb.as_str()));
            let (searches, notes) =
                (is_of(&["log", "diff", "show"]), is_of(&["commit", "tag", "merge", "stash"]));
            let takes_text = |option: &str| {
                TEXTS.contains(&option)
                    || searches && matches!(option, "-S" | "-G")
                    || notes && matches!(option, "-m" | "-am")
            };
            let is_text = |at: usize, word: &str| {
                let before = at.checked_sub(1).and_then(|at| arguments.get(at));
                let name = word.split('=').next().unwrap_or_default();
                let has_text = TEXTS.contains(&name) || matches!(name, "--format" | "--pretty");
                has_text
                    || searches && (word.starts_with("-S") || word.starts_with("-G"))
                    || before.is_some_and(|before| takes_text(before))
            };
            let files = arguments.iter().enumerate().filter(|(at, word)| !is_text(*at, word));
            files.filter_map(|(_, word)| value(word)).collect()
        }
        "find" => {
            let tests = [
                "-name",
                "-iname",
                "-path",
                "-ipath",
                "-wholename",
                "-iwholename",
                "-regex",
                "-iregex",
                "-type",
            ];
            let is_pattern = |at: usize| {
                at.checked_sub(1)
                    .and_then(|at| arguments.get(at))
                    .is_some_and(|before| tests.contains(&before.as_str()))
            };
            let files = arguments.iter().enumerate().filter(|(at, _)| !is_pattern(*at));
            files.filter_map(|(_, word)| value(word)).collect()
        }
        _ => arguments.iter().filter_map(|word| value(word)).collect(),
    }
}

/// What programs that search for a text take for files: all but the text, which comes first or stands behind its option.
fn without_patterns(arguments: &[&String]) -> Vec<String> {
    const OF_FILES: [&str; 2] = ["--file", "--ignore-file"];
    const WITH_NUMBER: [&str; 4] = ["-A", "-B", "-C", "-m"];
    const WITH_PATTERN: [&str; 4] = ["-g", "--glob", "--regexp", "-e"];
    let mut files = Vec::new();
    let is_cluster =
        |word: &str, letter: char| word.starts_with('-') && !word.starts_with("--") && word.contains(letter);
    // Where an option has the text, or there is none, every other word is a file.
    let has_text = arguments.iter().any(|word| {
        is_cluster(word, 'e')
            || is_cluster(word, 'f')
            || word.starts_with("--reg")
            || word.starts_with("--file")
    });
    let mut is_text_gone = has_text;
    let mut words = arguments.iter().map(|word| word.as_str());
    let mut only_operands = false;
    while let Some(word) = words.next() {
        if only_operands || !word.starts_with('-') || word == "-" {
            match is_text_gone {
                true => files.push(word.to_owned()),
                false => is_text_gone = true,
            }
            continue;
        }
        if word == "--" {
            only_operands = true;
        } else if let Some((name, value)) = word.split_once('=') {
            files.extend(OF_FILES.contains(&name).then(|| value.to_owned()));
        } else if WITH_NUMBER.contains(&word)
            || WITH_PATTERN.contains(&word)
            || is_cluster(word, 'e') && word.ends_with('e') && !word.contains('f')
        {
            words.next();
        } else if OF_FILES.contains(&word) || is_cluster(word, 'f') && word.ends_with('f') {
            files.extend(words.next().map(str::to_owned));
        } else if let Some((_, value)) = word.split_once('f').filter(|_| is_cluster(word, 'f')) {
            files.push(value.to_owned());
        }
    }
    files
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

/// Whether a command that usually goes to the network is told not to: by an option, or because the repository that it names is a
/// folder. One that goes there all the same finds no network.
fn is_offline(words: &[Option<String>]) -> bool {
    const OPTIONS: [(&str, &[&str]); 6] = [
        ("npm pnpm yarn bun", &["--offline"]),
        ("pip pip3", &["--no-index"]),
        ("uv", &["--offline", "--no-index"]),
        ("cargo", &["--offline", "--frozen"]),
        ("bundle gem", &["--local"]),
        ("go", &["-mod=vendor"]),
    ];
    let Some(words) = words.iter().cloned().collect::<Option<Vec<String>>>() else { return false };
    let Some((program, arguments)) = words.split_first() else { return false };
    let program = name(program);
    if program == "git" {
        let is_folder = |word: &&String| word.starts_with(['.', '/', '~']) || word.starts_with("file://");
        let mut others = arguments.iter().filter(|word| !word.starts_with('-')).skip(1);
        let is_elsewhere = |word: &String| word.contains(':') && !word.starts_with("file://");
        return others.clone().any(|word| is_folder(&word)) && !others.any(is_elsewhere);
    }
    let of_program = OPTIONS.iter().filter(|(names, _)| names.split(' ').any(|own| own == program));
    { of_program }.any(|(_, options)| arguments.iter().any(|word| options.contains(&word.as_str())))
}

/// Whether a command goes to the network by its nature.
pub(crate) fn uses_network(words: &[Option<String>]) -> bool {
    if is_offline(words) {
        return false;
    }
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

/// Settings for one command that make git say nothing more.
const QUIET_GIT_SETTINGS: [&str; 8] =
    ["user.", "color.", "advice.", "safe.", "init.", "gc.", "core.quotepath", "commit.gpgsign"];

/// Options of `git log` that show no content of files. Git has many that do, and takes every one of them in a shortened form too, so it
/// is the others that are listed.
const QUIET_LOG_OPTIONS: &str = "--abbrev --abbrev-commit --after --all --all-match --ancestry-path --author --author-date-order --before \
     --boundary --branches --children --clear-decorations --color --committer --compact-summary --cumulative --date --date-order \
     --decorate --decorate-refs --decorate-refs-exclude --diff-filter --dirstat --exclude --extended-regexp --find-copies \
     --find-renames --first-parent --fixed-strings --follow --format --full-history --glob --graph --grep --invert-grep --left-right \
     --log-size --max-age --max-count --max-parents --merges --min-age --min-parents --name-only --name-status --no-abbrev \
     --no-abbrev-commit --no-color --no-decorate --no-ext-diff --no-merges --no-pager --no-patch --no-renames --no-textconv --no-walk \
     --numstat --oneline --parents --perl-regexp --pretty --quiet --raw --reflog --regexp-ignore-case --relative-date --remotes \
     --reverse --shortstat --show-pulls --simplify-by-decoration --since --skip --source --sparse --stat --summary --tags --topo-order \
     --until --walk-reflogs";
const QUIET_LOG_LETTERS: &str = "iEFPzsqg0123456789";

/// Whether a word after `git log` makes it show no content of files.
fn is_quiet_log_word(word: &Option<String>) -> bool {
    let Some(word) = word else { return false };
    match word.strip_prefix('-') {
        None | Some("" | "-") => true,
        Some(long) if long.starts_with('-') => {
            let name = word.split('=').next().unwrap_or_default();
            QUIET_LOG_OPTIONS.split_whitespace().any(|quiet| quiet == name)
        }
        Some(short) => {
            let number = short.strip_prefix('n').unwrap_or(short);
            let is_number = number.chars().all(|letter| letter.is_ascii_digit());
            is_number || short.chars().all(|letter| QUIET_LOG_LETTERS.contains(letter))
        }
    }
}

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
                let mut after_verb = words.iter().skip(before_verb.len() + 1);
                !after_verb.all(is_quiet_log_word)
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

/// Whether `git config` only tells what is set: by a word that says so, or by the name of one setting and nothing else.
fn reads_git_config(words: &[Option<String>]) -> bool {
    const LOOKS: [&str; 9] = [
        "--get",
        "--get-all",
        "--get-regexp",
        "--get-urlmatch",
        "--get-color",
        "--get-colorbool",
        "--list",
        "-l",
        "--name-only",
    ];
    const SHOWS: [&str; 13] = [
        "--show-origin",
        "--show-scope",
        "--local",
        "--global",
        "--system",
        "--worktree",
        "--bool",
        "--int",
        "--path",
        "--null",
        "-z",
        "--includes",
        "--no-includes",
    ];
    let Some(words) = words.iter().cloned().collect::<Option<Vec<String>>>() else { return false };
    let Some(at) = words.iter().position(|word| word == "config") else { return false };
    let (before, rest) = (words.get(1..at).unwrap_or_default(), words.get(at + 1..).unwrap_or_default());
    let (options, others): (Vec<&String>, Vec<&String>) = rest.iter().partition(|word| word.starts_with('-'));
    let is_known = |option: &&String| {
        let option = option.as_str();
        LOOKS.contains(&option)
            || SHOWS.contains(&option)
            || option.starts_with("--type=")
            || option.starts_with("--default=")
    };
    let looks = options.iter().any(|option| LOOKS.contains(&option.as_str()));
    let is_told = match others.as_slice() {
        [verb, ..] if matches!(verb.as_str(), "get" | "list") => true,
        [verb, ..]
            if matches!(verb.as_str(), "set" | "unset" | "rename-section" | "remove-section" | "edit") =>
        {
            false
        }
        _ if looks => true,
        [name] => name.contains('.'),
        _ => false,
    };
    is_told && before.is_empty() && options.iter().all(is_known)
}

/// Whether a command of git's writes its settings, and how.
pub(crate) fn writes_settings_of_git(words: &[Option<String>]) -> Option<GitSettingsWrite> {
    if words.first().and_then(Option::as_deref).map(name) != Some("git") {
        return None;
    }
    let has = |wanted: &[&str]| words.iter().flatten().any(|word| wanted.contains(&word.as_str()));
    let as_it_works = match verb(words).map(String::as_str) {
        Some("config") => return (!reads_git_config(words)).then_some(GitSettingsWrite::Explicit),
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
    fn settings_of_git_that_are_only_told() {
        for text in [
            "git config user.name",
            "git config --get user.name",
            "git config -l",
            "git config --list --show-origin",
            "git config get user.name",
            "git config list",
            "git config --global user.email",
        ] {
            assert!(is_read_only(&words(text)), "{text}");
            assert_eq!(writes_settings_of_git(&words(text)), None, "{text}");
        }
        for text in [
            "git config user.name me",
            "git config --unset user.name",
            "git config --add user.name me",
            "git config set user.name me",
            "git config --edit",
            "git config -e",
            "git config --replace-all a.b c",
            "git config --unset-all a.b",
            "git config --rename-section a b",
            "git config",
            "git config -f x a.b c",
            "git config --get-all a.b --add",
        ] {
            assert!(!is_read_only(&words(text)), "{text}");
            assert_eq!(writes_settings_of_git(&words(text)), Some(GitSettingsWrite::Explicit), "{text}");
        }
    }

    #[test]
    fn texts_are_no_files() {
        let named = |text: &str| named_paths(&words(text));
        for text in [
            "grep -rn id_rsa",
            "echo .env",
            "printf x.pem",
            "grep -e .env -A 3",
            "find -name .env",
            "git log --grep=.env",
        ] {
            assert!(
                !named(text)
                    .iter()
                    .any(|word| word.contains("env") || word.contains("rsa") || word.contains("pem")),
                "{text}"
            );
        }
        assert_eq!(named("grep -rn id_rsa ."), ["."]);
        assert_eq!(named("grep -A 3 x .env"), [".env"]);
        assert_eq!(named("grep -e x .env"), [".env"]);
        assert_eq!(named("grep -rf .env a"), [".env", "a"]);
        assert_eq!(named("grep -f.env a"), [".env", "a"]);
        assert_eq!(named("grep --file=.env a"), [".env", "a"]);
        assert_eq!(named("grep --regexp=x .env"), [".env"]);
        assert_eq!(named("rg -- -x .env"), [".env"]);
        assert!(named("grep -fe .env").contains(&".env".to_owned()));
        for text in
            ["git log -m .env", "git log --pretty .env", "git blame -S .env", "git show --format .env"]
        {
            assert!(named(text).contains(&".env".to_owned()), "{text}");
        }
        assert_eq!(named("git log -S id_rsa --author=id_rsa src"), ["log", "src"]);
        assert_eq!(named("cat .env"), [".env"]);
        assert_eq!(named("find .env -name x"), [".env"]);
        assert_eq!(named("git diff --no-index a .env"), ["diff", "a", ".env"]);
    }

    #[test]
    fn what_goes_out() {
        for text in [
            "curl x",
            "git push",
            "git -C x fetch",
            "npm ci",
            "/usr/bin/wget x",
            "cargo publish",
            "git clone https://example.com/x ./dir",
            "git clone me@host:x .",
            "git clone x",
            "git fetch origin",
            "npm install --prefer-offline",
        ] {
            assert!(uses_network(&words(text)), "{text}");
        }
        for text in [
            "git commit",
            "npm test",
            "cargo build",
            "pip list",
            "npm install --offline",
            "npm ci --offline",
            "pip install --no-index --find-links wheels x",
            "cargo update --offline",
            "git clone . ../copy",
            "git clone file:///srv/x y",
            "git fetch ../other main",
            "git pull --ff-only ../other",
        ] {
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
