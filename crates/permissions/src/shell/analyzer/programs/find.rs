//! `find` and `fd`.

use super::maybe_option;
use super::xargs::replaced;
use crate::shell::analyzer::{CommandAnalyzer, ProgramAnalysis, ShellRunContext};
use crate::shell::{RunManner, ShellWord, TargetAccess};

/// Tests and actions without an argument.
const FIND_FLAGS: &str = "-true -false -depth -d -daystart -follow -help -mount -noleaf -nouser -nogroup \
                     -nowarn -warn -prune -quit -print -print0 -ls -empty -executable -readable \
                     -writable -xdev -ignore_readdir_race -noignore_readdir_race -and -or -not -a -o \
                     -version --version --help";
/// Those with one.
const FIND_TESTS_WITH_VALUE: &str = "-name -iname -path -ipath -wholename -iwholename -lname -ilname -regex -iregex \
                        -regextype -type -xtype -size -perm -user -group -uid -gid -newer -anewer \
                        -cnewer -mtime -atime -ctime -mmin -amin -cmin -used -links -inum -samefile \
                        -fstype -maxdepth -mindepth -context -printf -D";

pub(super) fn find(
    judge: &mut CommandAnalyzer<'_>,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let mut rest = words.iter().peekable();
    let mut roots = Vec::new();
    while let Some(word) = rest.next() {
        let text = match word {
            ShellWord::Known(text) => text.as_str(),
            word if could_act(word) => {
                return Err("one of its arguments can't be known and could be an action".to_owned());
            }
            word => {
                roots.push(word.clone());
                continue;
            }
        };
        match text {
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let command = exec_words(&mut rest)?;
                judge.run(command, &context.via("find", RunManner::Plain));
            }
            "-delete" => {
                let places =
                    if roots.is_empty() { vec![ShellWord::Known(".".to_owned())] } else { roots.clone() };
                places.into_iter().for_each(|root| judge.touches(root, TargetAccess::Delete));
            }
            "-fprint" | "-fprint0" | "-fls" => {
                judge.touches(argument(text, rest.next())?, TargetAccess::Write)
            }
            "-fprintf" => {
                judge.touches(argument(text, rest.next())?, TargetAccess::Write);
                argument(text, rest.next())?;
            }
            "(" | ")" | "!" | "," | "-H" | "-L" | "-P" => {}
            _ if text.starts_with("-newer") && text.len() == 8 || listed(FIND_TESTS_WITH_VALUE, text) => {
                argument(text, rest.next())?;
            }
            _ if listed(FIND_FLAGS, text) || text.starts_with("-O") => {}
            _ if text.starts_with('-') => return Err(format!("its argument {text} is not known")),
            _ => roots.push(word.clone()),
        }
    }
    Ok(false)
}

fn listed(list: &str, text: &str) -> bool {
    list.split_whitespace().any(|own| own == text)
}

/// Whether a word that is not known for sure could be an action that runs or deletes.
fn could_act(word: &ShellWord) -> bool {
    let actions = [
        "-exec",
        "-execdir",
        "-ok",
        "-okdir",
        "-delete",
        "-fprint",
        "-fprint0",
        "-fls",
        "-fprintf",
        "-files0-from",
    ];
    !word.is_no_option() && actions.iter().any(|action| word.could_be(action))
}

/// The argument of a test. It may be one word that can't be known.
fn argument(test: &str, word: Option<&ShellWord>) -> Result<ShellWord, String> {
    match word {
        Some(ShellWord::UnknownMany) => Err(format!("the argument of {test} can't be known")),
        // If it becomes several words, those after the first are taken for tests themselves.
        Some(word @ ShellWord::Pattern(_)) if could_act(word) => {
            Err(format!("the argument of {test} can't be known"))
        }
        Some(word) => Ok(word.clone()),
        None => Err(format!("{test} has no argument")),
    }
}

/// The command after `-exec`, up to `;` or `{} +`.
fn exec_words<'w>(rest: &mut impl Iterator<Item = &'w ShellWord>) -> Result<Vec<ShellWord>, String> {
    let mut command: Vec<ShellWord> = Vec::new();
    for word in rest.by_ref() {
        match word {
            ShellWord::Known(text) if text == ";" => {
                return Ok(replaced(command, &["{}".to_owned()], ShellWord::UnknownOne));
            }
            ShellWord::Known(text)
                if text == "+" && command.last().and_then(ShellWord::known) == Some("{}") =>
            {
                return Ok(replaced(command, &["{}".to_owned()], ShellWord::UnknownMany));
            }
            ShellWord::Known(_) | ShellWord::Home(_) | ShellWord::Prefix(_) | ShellWord::UnknownOne => {
                command.push(word.clone())
            }
            ShellWord::Pattern(_) | ShellWord::UnknownMany => {
                return Err("the command that it runs can't be known".to_owned());
            }
        }
    }
    Err("the command that it runs has no end".to_owned())
}

/// Options of `fd` that take the next word.
const FD_OPTIONS_WITH_VALUE: &str = "-d --max-depth --min-depth --exact-depth -E --exclude -t --type -e --extension \
                         -S --size -o --owner -c --color -j --threads --changed-within --changed-before \
                         --max-results --base-directory --search-path --path-separator --ignore-file \
                         --format --and --batch-size --max-buffer-time --strip-cwd-prefix --hyperlink";

pub(super) fn fd(
    judge: &mut CommandAnalyzer<'_>,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let Some(text) = maybe_option(word)? else { continue };
        if text == "--" {
            return Ok(false);
        }
        if listed(FD_OPTIONS_WITH_VALUE, text) {
            argument(text, rest.next())?;
        } else if text == "--exec" || text == "--exec-batch" || text == "-x" || text == "-X" {
            return fd_exec(judge, rest.cloned().collect(), context);
        } else if text.starts_with("--exec") || is_hidden_exec(text) {
            return Err("the command that it runs can't be known".to_owned());
        }
    }
    Ok(false)
}

/// `-x` among other letters, unless one before it takes the rest as its value.
fn is_hidden_exec(text: &str) -> bool {
    let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.starts_with('-')) else {
        return false;
    };
    letters
        .chars()
        .take_while(|letter| !"dEteSocj".contains(*letter))
        .any(|letter| matches!(letter, 'x' | 'X'))
}

/// Everything after `-x` is the command, up to a `;`. The name of the file is added if no place for it is given.
fn fd_exec(
    judge: &mut CommandAnalyzer<'_>,
    words: Vec<ShellWord>,
    context: &ShellRunContext,
) -> ProgramAnalysis {
    if words.iter().any(|word| word.could_be(";")) {
        return Err("the command that it runs can't be known".to_owned());
    }
    let mut command = replaced(words, &["{".to_owned()], ShellWord::UnknownMany);
    command.push(ShellWord::UnknownMany);
    judge.run(command, &context.via("fd", RunManner::Plain));
    Ok(false)
}
