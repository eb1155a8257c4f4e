//! Random changes of given commands.

use super::random::Random;

/// What makes a difference to the shell.
const PIECES: [&str; 58] = [
    "'",
    "\"",
    "\\",
    "$",
    "`",
    "(",
    ")",
    "{",
    "}",
    ";",
    "&",
    "|",
    "<",
    ">",
    "\n",
    " ",
    "#",
    "!",
    "=",
    ",",
    "*",
    "[",
    "]",
    "((",
    "))",
    "$(",
    "$((",
    "${",
    "<(",
    "[[ ",
    " ]]",
    " && ",
    " || ",
    ";;",
    "<<E\n",
    "\nE\n",
    "<<<",
    "\\\n",
    "if ",
    " then ",
    " fi",
    "do ",
    " done",
    "case x in x) ",
    " esac",
    "for i in a b; do ",
    "{ ",
    "; }",
    "$'",
    "a=",
    "f() ",
    "eval ",
    "command ",
    "time ",
    "coproc ",
    "bash -c ",
    "xargs ",
    "env ",
];

pub(crate) fn mutated(random: &mut Random, commands: &[&str]) -> String {
    let mut chars: Vec<char> = random.pick(commands).chars().collect();
    for _ in 0..=random.below(4) {
        let at = random.below(chars.len() + 1);
        let end = (at + random.below(4)).min(chars.len());
        match random.below(5) {
            0 => drop(chars.drain(at..end)),
            1 => {
                let copy: Vec<char> = chars[at..end].to_vec();
                chars.splice(at..at, copy);
            }
            2 => {
                let other: Vec<char> = random.pick(commands).chars().collect();
                let from = random.below(other.len());
                let to = (from + random.below(20)).min(other.len());
                chars.splice(at..at, other[from..to].iter().copied());
            }
            _ => drop(chars.splice(at..at, random.pick(&PIECES).chars())),
        }
        chars.truncate(2000);
    }
    chars.into_iter().collect()
}

/// Whether a changed command may be run at all: it reaches no path outside its folder, starts nothing by a path, and
/// neither goes on by itself nor calls itself.
pub(crate) fn is_harmless(script: &str) -> bool {
    let odd = [
        "/", "~", "..", "BASH", "kill", "while", "until", "for((", "function", "()", "OLDPWD", "exec",
        "ulimit", "SHELL", "sleep", "_",
    ];
    let script = script.replace("/dev/null", "").replace("\\\n", "").replace([' ', '\t'], "");
    !odd.iter().any(|odd| script.contains(odd))
}
