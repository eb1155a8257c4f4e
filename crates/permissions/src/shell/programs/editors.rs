//! Programs with a few options that run something.

use crate::shell::Word;
use crate::shell::builtins::Judged;

/// Editors and pagers.
pub(super) fn judge(name: &str, words: &[Word]) -> Judged {
    let refused = |word: &Word| {
        let Some(text) = word.known() else { return !word.is_no_option() };
        match name {
            "less" | "more" => {
                text.starts_with('+') && text.contains(['!', '|', 's', 'v'])
                    || text.starts_with("-k")
                    || text.starts_with("--lesskey")
            }
            "man" => {
                text.starts_with("-P")
                    || text.starts_with("-H")
                    || text.starts_with("-C")
                    || text.starts_with("--pager")
                    || text.starts_with("--html")
                    || text.starts_with("--conf")
            }
            "emacs" => text.starts_with('-') && text != "-nw" && text != "-Q",
            _ => {
                let is_place = text.trim_start_matches('+').bytes().all(|byte| byte.is_ascii_digit());
                let runs =
                    ["-c", "-s", "-S", "-u", "-U", "-i", "--cmd", "-e", "-E", "-l", "-W", "--startuptime"];
                text.starts_with('+') && !is_place || runs.iter().any(|option| text.starts_with(option))
            }
        }
    };
    if name == "ex" || words.iter().take_while(|word| word.known() != Some("--")).any(refused) {
        return Err("it may run what is not read here".to_owned());
    }
    Ok(false)
}

/// Programs that hand work to another one if an option says so. GNU allows to write only the beginning of a long option.
pub(super) fn helpers(name: &str, words: &[Word]) -> Judged {
    let options: &[&str] = match name {
        "sort" => &["--compress-prog"],
        "split" => &["--filter"],
        "zip" => &["-TT", "--unzip-command"],
        "cpio" => &["--rsh-command"],
        "make" | "gmake" => &["--eval", "-E"],
        "wget" => &["--use-askpass"],
        "rg" => &["--pre", "--hostname-bin"],
        "bat" | "batcat" => &["--pager"],
        _ => &["--options", "--filter"],
    };
    for word in words {
        let Some(text) = word.known() else { continue };
        let written = text.split('=').next().unwrap_or_default();
        let is_option = |option: &&&str| {
            written.len() > 3 && option.starts_with(written)
                || written.starts_with(**option) && **option != "--pre"
                || written == **option
        };
        if text != "--" && written.starts_with('-') && options.iter().any(|option| is_option(&option)) {
            return Err(format!("its option {written} runs a program"));
        }
    }
    Ok(false)
}
