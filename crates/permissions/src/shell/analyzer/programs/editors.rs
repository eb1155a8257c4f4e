//! Programs with a few options that run something.

use crate::shell::ShellWord;
use crate::shell::analyzer::{ProgramAnalysis, ShellRunContext};

/// Editors and pagers.
pub(super) fn analyze_editor(name: &str, words: &[ShellWord]) -> ProgramAnalysis {
    let runs = |word: &ShellWord| match word.known() {
        Some(text) => may_run(name, text),
        None => !word.is_no_option(),
    };
    if name == "ex" || words.iter().take_while(|word| word.known() != Some("--")).any(runs) {
        return Err("it may run what is not read here".to_owned());
    }
    Ok(false)
}

/// The line editor: what follows an exclamation mark runs, in its input and as the name of a file.
pub(super) fn ed(words: &[ShellWord], context: &ShellRunContext) -> ProgramAnalysis {
    let is_plain = |text: &str| !text.contains('!');
    let are_plain = words.iter().all(|word| word.known().is_some_and(is_plain));
    if are_plain && context.input.as_deref().is_some_and(is_plain) {
        return Ok(false);
    }
    Err("it may run what it reads from its input".to_owned())
}

fn may_run(name: &str, text: &str) -> bool {
    let begins = |options: &[&str]| options.iter().any(|option| text.starts_with(option));
    match name {
        // What follows a plus is typed into it.
        "less" | "more" => {
            text.starts_with('+') && text.contains(['!', '|', '#', 's', 'v']) || begins(&["-k", "--lesskey"])
        }
        "man" => begins(&["-P", "-H", "-C", "--pa", "--ht", "--co"]),
        "emacs" => text.starts_with('-') && text != "-nw" && text != "-Q",
        _ => {
            let is_place = text.trim_start_matches('+').bytes().all(|byte| byte.is_ascii_digit());
            let options =
                ["-c", "-s", "-S", "-u", "-U", "-i", "--cmd", "-e", "-E", "-l", "-W", "--startuptime"];
            text.starts_with('+') && !is_place || begins(&options)
        }
    }
}

/// Options by which a program hands work to another one.
const HELPER_OPTIONS: &[(&str, &[&str])] = &[
    ("sort", &["--compress-program"]),
    ("split", &["--filter"]),
    ("zip", &["-TT", "--unzip-command"]),
    ("cpio", &["--rsh-command"]),
    ("wget", &["--use-askpass", "--execute", "-e", "--config"]),
    ("apt", &["--option", "-o", "--config-file", "-c"]),
    ("apt-get", &["--option", "-o", "--config-file", "-c"]),
    ("cargo", &["--config"]),
    ("cc", &["-wrapper", "-specs", "-fplugin"]),
    ("gcc", &["-wrapper", "-specs", "-fplugin"]),
    ("g++", &["-wrapper", "-specs", "-fplugin"]),
    ("go", &["-exec", "--exec", "-toolexec", "--toolexec", "-vettool", "--vettool"]),
    ("nc", &["-e", "-c"]),
    ("ncat", &["-e", "-c", "--exec", "--sh-exec", "--lua-exec"]),
    ("tcpdump", &["-z"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("bat", &["--pager"]),
    ("batcat", &["--pager"]),
    ("ctags", &["--options", "--filter"]),
];

/// `None` if it is no such program. Many programs take the beginning of a long option for the whole.
pub(super) fn helpers(name: &str, words: &[ShellWord]) -> Option<ProgramAnalysis> {
    let (_, options) = HELPER_OPTIONS.iter().find(|(own, _)| *own == name)?;
    let options_end = |text: &&str| *text != "--";
    for text in words.iter().filter_map(ShellWord::known).take_while(options_end) {
        let written = text.split('=').next().unwrap_or_default();
        let is_begin = |option: &&str| written.len() > 2 && option.starts_with(written);
        let is_short = |option: &&str| !option.starts_with("--") && written.starts_with(*option);
        if options.iter().any(|option| is_begin(option) || is_short(option)) {
            return Some(Err(format!("its option {written} runs a program")));
        }
    }
    Some(Ok(false))
}
