//! Programs that run other programs, each followed into what it runs.
//!
//! Most are a row of the table in [`runners`]; those with a language of their own have a file. A program that is not here
//! runs what it runs: it is named, and a rule can be about its name.

mod awk;
mod containers;
mod editors;
mod find;
mod git;
mod make;
mod remote;
mod runners;
mod sed;
mod shells;
mod tar;
mod users;
mod xargs;

use super::{CommandAnalyzer, ProgramAnalysis, ShellRunContext};
use crate::shell::{RunManner, ShellWord};

/// Folders whose programs are the system's own.
const SYSTEM_PROGRAM_FOLDERS: [&str; 5] = ["/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/"];

pub(super) fn analyze_program(
    judge: &mut CommandAnalyzer<'_>,
    program: &str,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let name = program.rsplit('/').next().unwrap_or(program);
    let is_own = !program.contains('/')
        || SYSTEM_PROGRAM_FOLDERS.iter().any(|folder| program.strip_prefix(folder) == Some(name));
    let judged = by_name(judge, name, words, context)?;
    Ok(judged && is_own)
}

fn by_name(
    judge: &mut CommandAnalyzer<'_>,
    name: &str,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    match name {
        "sh" | "bash" | "rbash" | "dash" | "ash" | "ksh" | "mksh" | "zsh" | "fish" | "csh" | "tcsh" => {
            shells::shell(judge, name, words, context)
        }
        "env" => shells::env(judge, words, context),
        "busybox" | "toybox" => {
            if words.first().is_some_and(|word| !word.is_no_option()) {
                return Err("its applet can't be known".to_owned());
            }
            judge.run(words.to_vec(), &context.via(name, RunManner::Plain));
            Ok(true)
        }
        "xargs" => xargs::xargs(judge, words, context),
        "parallel" => xargs::parallel(judge, words, context),
        "find" | "gfind" => find::find(judge, words, context),
        "fd" | "fdfind" => find::fd(judge, words, context),
        "ssh" => remote::ssh(judge, words, context),
        "scp" | "sftp" => remote::copy(judge, name, words, context),
        "rsync" => remote::rsync(judge, words, context),
        "sudo" => users::sudo(judge, words, context),
        "su" | "runuser" => users::su(judge, name, words, context),
        "crontab" => users::crontab(words),
        "at" | "batch" => users::at(judge, name, words, context),
        "flock" => users::flock(judge, words, context),
        "script" => users::script(judge, words, context),
        "docker" | "podman" | "nerdctl" => containers::docker(judge, name, words, context),
        "kubectl" | "oc" => containers::kubectl(judge, name, words, context),
        "git" => git::git(judge, words, context),
        _ if name.starts_with("git-") => {
            let action = ShellWord::Known(name.trim_start_matches("git-").to_owned());
            let words: Vec<ShellWord> = std::iter::once(action).chain(words.iter().cloned()).collect();
            git::git(judge, &words, context)
        }
        "make" | "gmake" => make::make(judge, words, context),
        "tar" | "gtar" | "bsdtar" => tar::tar(judge, words, context),
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => awk::awk(judge, words, context),
        "sed" | "gsed" => sed::sed(judge, words, context),
        "vim" | "vi" | "nvim" | "view" | "ex" | "vimdiff" | "less" | "more" | "man" | "emacs" => {
            editors::analyze_editor(name, words)
        }
        "ed" | "red" => editors::ed(words, context),
        "gdb" | "lldb" | "run-parts" => Err("it may run what is not read here".to_owned()),
        _ if name.starts_with("ld-linux") || name.starts_with("ld.so") || name.starts_with("ld-musl") => {
            Err("it loads another program".to_owned())
        }
        _ => editors::helpers(name, words)
            .unwrap_or_else(|| runners::analyze_runner(judge, name, words, context)),
    }
}

/// The script that words make when a shell gets them joined by spaces.
fn joined(words: &[ShellWord]) -> Result<String, String> {
    let texts: Option<Vec<&str>> = words.iter().map(ShellWord::known).collect();
    texts.map(|texts| texts.join(" ")).ok_or_else(|| "what it runs can't be known".to_owned())
}

/// The text of a word that may be an option. None if it can't be one; an error if nobody can tell.
fn maybe_option(word: &ShellWord) -> Result<Option<&str>, String> {
    match word {
        ShellWord::Known(text) => Ok(Some(text)),
        word if word.is_no_option() => Ok(None),
        _ => Err("one of its arguments can't be known and could be an option".to_owned()),
    }
}

/// Whether a file is the standard input.
fn is_input(path: &str) -> bool {
    matches!(path, "-" | "/dev/stdin") || path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/")
}

fn known(word: &ShellWord) -> Result<&str, String> {
    word.known().ok_or_else(|| "what it runs can't be known".to_owned())
}
