//! `git`, which runs programs that its settings and some options name.

use super::maybe_option;
use crate::shell::analyzer::{CommandAnalyzer, ProgramAnalysis, ShellRunContext};
use crate::shell::options::parse_leading_options;
use crate::shell::{RunManner, ShellDialect, ShellWord, TargetAccess};

const GIT_GLOBAL_OPTIONS: &str = "-C: -c: -p -P -h -v --paginate --no-pager --no-replace-objects --no-lazy-fetch \
                      --no-optional-locks --no-advice --bare --git-dir: --work-tree: --namespace: \
                      --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs \
                      --version --help --html-path --man-path --info-path";

/// Settings that run nothing: whole names, and sections that end in a dot.
const HARMLESS_GIT_SETTINGS: [&str; 40] = [
    "user.name",
    "user.email",
    "user.signingkey",
    "color.",
    "advice.",
    "core.quotepath",
    "core.autocrlf",
    "core.safecrlf",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.longpaths",
    "core.abbrev",
    "core.bare",
    "core.symlinks",
    "core.precomposeunicode",
    "core.whitespace",
    "core.commentchar",
    "commit.gpgsign",
    "tag.gpgsign",
    "commit.verbose",
    "init.defaultbranch",
    "safe.directory",
    "http.",
    "https.",
    "gc.auto",
    "pull.rebase",
    "pull.ff",
    "push.default",
    "push.autosetupremote",
    "push.followtags",
    "merge.conflictstyle",
    "merge.ff",
    "rebase.autosquash",
    "rebase.autostash",
    "fetch.prune",
    "log.",
    "column.",
    "status.",
    "protocol.version",
];

/// Settings whose value is a command for a shell.
const GIT_COMMAND_SETTINGS: [&str; 6] =
    ["core.pager", "core.editor", "core.sshcommand", "sequence.editor", "core.askpass", "diff.external"];

/// What git does by itself, or by nothing but its settings and hooks.
const KNOWN_GIT_COMMANDS: &str = "add am annotate apply archive bisect blame branch bundle cat-file check-attr check-ignore check-mailmap \
                     check-ref-format checkout checkout-index cherry cherry-pick clean commit commit-graph commit-tree \
                     count-objects describe diff diff-files diff-index diff-tree fast-export fast-import fmt-merge-msg \
                     for-each-ref format-patch fsck gc get-tar-commit-id grep hash-object help index-pack init \
                     interpret-trailers log ls-files ls-remote ls-tree mailinfo mailsplit maintenance merge merge-base \
                     merge-file merge-tree mktag mktree multi-pack-index mv name-rev notes pack-objects pack-redundant \
                     pack-refs patch-id prune prune-packed pull push range-diff read-tree rebase reflog remote repack \
                     replace request-pull rerere reset restore rev-list rev-parse revert rm send-pack shortlog show \
                     show-branch show-index show-ref sparse-checkout stage stash status stripspace switch symbolic-ref tag \
                     unpack-file unpack-objects update-index update-ref update-server-info var verify-commit verify-pack \
                     verify-tag version whatchanged worktree write-tree";

pub(super) fn git(
    judge: &mut CommandAnalyzer<'_>,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let taken = parse_leading_options(GIT_GLOBAL_OPTIONS, words)?;
    judge.reading.folders.extend(taken.values(&["-C"]).cloned());
    for setting in taken.values(&["-c"]) {
        let (name, value) = setting
            .known()
            .map(|text| text.split_once('=').unwrap_or((text, "true")))
            .ok_or("a setting of it can't be known")?;
        settle(judge, name, value, context)?;
    }
    let Some((action, rest)) = taken.operands.split_first() else { return Ok(false) };
    let action = action.known().ok_or("what it does can't be known")?;
    // A name that was given above, and read there.
    let is_named = |setting: &ShellWord| {
        let name =
            setting.known().and_then(|text| text.split_once('=')).map(|(name, _)| name.to_ascii_lowercase());
        name.is_some_and(|name| name == format!("alias.{action}"))
    };
    if taken.values(&["-c"]).any(is_named) {
        return Ok(false);
    }
    by_action(judge, action, rest, context)
}

/// A setting that is given for one run or for good.
fn settle(
    judge: &mut CommandAnalyzer<'_>,
    name: &str,
    value: &str,
    context: &ShellRunContext,
) -> Result<(), String> {
    let name = name.to_ascii_lowercase();
    let inner = context.via("git", RunManner::Plain).in_dialect(ShellDialect::Posix);
    let is_harmless = |own: &&str| *own == name || own.ends_with('.') && name.starts_with(*own);
    if let Some(command) = value.strip_prefix('!').filter(|_| name.starts_with("alias.")) {
        judge.script(&with_arguments(command), &inner);
        return Ok(());
    }
    if GIT_COMMAND_SETTINGS.contains(&name.as_str()) || name.starts_with("pager.") {
        if !matches!(value, "" | "true" | "false") {
            judge.script(&with_arguments(value), &inner);
        }
        return Ok(());
    }
    if HARMLESS_GIT_SETTINGS.iter().any(is_harmless) {
        return Ok(());
    }
    Err(format!("its setting {name} could run something"))
}

/// Git hands its own words to the shell that runs a command for it.
fn with_arguments(command: &str) -> String {
    format!("{command} \"$@\"")
}

fn by_action(
    judge: &mut CommandAnalyzer<'_>,
    action: &str,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    if words
        .iter()
        .any(|word| word.known().is_some_and(|word| word.starts_with("ext::") || word.starts_with("fd::")))
    {
        return Err("its address runs a command".to_owned());
    }
    match action {
        "rebase" => run_each(judge, values(words, &["-x", "--exec"])?, context),
        "difftool" => {
            let scripts = values(words, &["-x", "--extcmd"])?;
            run_each(judge, scripts.iter().map(|script| with_arguments(script)).collect(), context)
        }
        "clone" | "fetch" | "pull" | "ls-remote" | "fetch-pack" => {
            refuse(words, &["--upload-pack", "--exec", "-u", "-c", "--config", "--template"])
        }
        "push" | "send-pack" => refuse(words, &["--receive-pack", "--exec"]),
        "archive" => refuse(words, &["--exec", "--remote"]),
        "grep" => refuse(words, &["-O", "--open-files-in-pager"]),
        "init" => refuse(words, &["--template"]),
        "diff" | "log" | "show" => refuse_known(words, &["--ext-diff"]),
        "mv" => {
            let operands = words.iter().filter(|word| word.is_no_option());
            operands.for_each(|path| judge.touches(path.clone(), TargetAccess::Write));
            Ok(false)
        }
        "bisect" => bisect(judge, words, context),
        "submodule" => submodule(judge, words, context),
        "config" => config(judge, words, context),
        action if KNOWN_GIT_COMMANDS.split_whitespace().any(|known| known == action) => Ok(false),
        // A part of git that runs others, or another name that the settings give to something.
        _ => Err(format!("what `git {action}` runs is not read")),
    }
}

/// Options that name a program, also by a beginning of their name.
fn refuse(words: &[ShellWord], options: &[&str]) -> ProgramAnalysis {
    for word in words {
        match word {
            ShellWord::Known(text) if text == "--" => break,
            ShellWord::Known(text) if text.starts_with("--") => {
                let name = text.split('=').next().unwrap_or_default();
                if name.len() > 2 && options.iter().any(|option| option.starts_with(name)) {
                    return Err(format!("its option {name} runs a program"));
                }
            }
            ShellWord::Known(text) if text.starts_with('-') => {
                let letters = options
                    .iter()
                    .filter(|option| !option.starts_with("--"))
                    .filter_map(|option| option.chars().nth(1));
                if letters.into_iter().any(|letter| text.contains(letter)) {
                    return Err(format!("its option {text} may run a program"));
                }
            }
            word if word.is_no_option() => {}
            _ => return Err("one of its arguments can't be known and could be an option".to_owned()),
        }
    }
    Ok(false)
}

/// The same, for actions where words that can't be known are common and the option only allows what the settings say.
fn refuse_known(words: &[ShellWord], options: &[&str]) -> ProgramAnalysis {
    let known: Vec<ShellWord> = words.iter().filter(|word| word.known().is_some()).cloned().collect();
    refuse(&known, options)
}

fn run_each(
    judge: &mut CommandAnalyzer<'_>,
    scripts: Vec<String>,
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let inner = context.via("git", RunManner::Plain).in_dialect(ShellDialect::Posix);
    scripts.iter().for_each(|script| judge.script(script, &inner));
    Ok(false)
}

/// The values of these options.
fn values(words: &[ShellWord], options: &[&str]) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let Some(text) = maybe_option(word)? else { continue };
        if text == "--" {
            break;
        }
        match text.split_once('=') {
            Some((name, value)) if options.contains(&name) => found.push(value.to_owned()),
            _ if options.contains(&text) => {
                let value = rest.next().and_then(ShellWord::known).ok_or("what it runs can't be known")?;
                found.push(value.to_owned());
            }
            _ => {
                refuse(std::slice::from_ref(word), options)?;
            }
        }
    }
    Ok(found)
}

fn bisect(
    judge: &mut CommandAnalyzer<'_>,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    match words.split_first() {
        Some((ShellWord::Known(action), command)) if action == "run" => {
            judge.run(command.to_vec(), &context.via("git", RunManner::Plain));
            Ok(false)
        }
        Some((ShellWord::Known(_), _)) | None => Ok(false),
        Some(_) => Err("what it does can't be known".to_owned()),
    }
}

/// `submodule foreach` runs its words: a script if there is one word, else a command.
fn submodule(
    judge: &mut CommandAnalyzer<'_>,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let taken = parse_leading_options("-q --quiet", words)?;
    match taken.operands.split_first() {
        Some((ShellWord::Known(action), rest)) if action == "foreach" => {
            let command = parse_leading_options("-q --quiet --recursive", rest)?.operands;
            let inner = context.via("git", RunManner::Plain);
            match command.as_slice() {
                [script] => judge.script(super::known(script)?, &inner.in_dialect(ShellDialect::Posix)),
                command => judge.run(command.to_vec(), &inner),
            }
            Ok(false)
        }
        Some((ShellWord::Known(_), _)) | None => Ok(false),
        Some(_) => Err("what it does can't be known".to_owned()),
    }
}

/// `git config name value`; whatever else it is asked, the names among its words decide.
fn config(
    judge: &mut CommandAnalyzer<'_>,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let only_looks = words.iter().any(|word| {
        let looks = [
            "--get",
            "--get-all",
            "--get-regexp",
            "-l",
            "--list",
            "list",
            "get",
            "--unset",
            "unset",
            "--show-origin",
        ];
        word.known().is_some_and(|word| looks.contains(&word))
    });
    let texts: Option<Vec<&str>> = words.iter().map(ShellWord::known).collect();
    let Some(texts) = texts else {
        return if only_looks {
            Ok(false)
        } else {
            Err("the setting that it changes can't be known".to_owned())
        };
    };
    let plain: Vec<&str> =
        texts.into_iter().filter(|text| !text.starts_with('-') && *text != "set").collect();
    match plain.as_slice() {
        _ if only_looks => {}
        [name, value] => settle(judge, name, value, context)?,
        [_] | [] => {}
        _ => return Err("the setting that it changes can't be known".to_owned()),
    }
    Ok(false)
}
