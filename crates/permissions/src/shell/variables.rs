//! Variables that the shell itself does something with.

/// Assigning them makes a shell run code from somewhere, or read the rest in another way.
pub(super) fn why_dangerous(name: &str) -> Option<&'static str> {
    Some(match name {
        "BASH_ENV" | "ENV" => "names a file that shells run",
        "PROMPT_COMMAND" | "PS0" | "PS1" | "PS2" | "PS4" => "is run by shells",
        "BASHOPTS" | "SHELLOPTS" | "POSIXLY_CORRECT" | "BASH_COMPAT" => "makes shells read differently",
        "BASH_ALIASES" | "BASH_CMDS" => "gives commands another meaning",
        _ if name.starts_with("BASH_FUNC_") => "gives commands another meaning",
        _ => return None,
    })
}

/// Assigned values are calculated.
pub(super) fn is_number(name: &str) -> bool {
    matches!(
        name,
        "RANDOM"
            | "SRANDOM"
            | "SECONDS"
            | "LINENO"
            | "HISTCMD"
            | "EPOCHSECONDS"
            | "OPTIND"
            | "BASHPID"
            | "UID"
            | "EUID"
            | "PPID"
    )
}

/// The shell sets them to a text that comes from somewhere.
pub(super) fn holds_text(name: &str) -> bool {
    let numeric = ["BASH_SUBSHELL", "BASH_VERSINFO", "BASH_LINENO"];
    let text = [
        "_",
        "REPLY",
        "OPTARG",
        "MAPFILE",
        "PWD",
        "OLDPWD",
        "DIRSTACK",
        "FUNCNAME",
        "BASH",
        "COPROC",
        "READLINE_LINE",
    ];
    text.contains(&name) || name.starts_with("BASH_") && !numeric.contains(&name)
}
