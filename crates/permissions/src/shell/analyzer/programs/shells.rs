//! Shells, and `env`.

use super::known;
use crate::shell::analyzer::builtins::HARMLESS_SET_OPTIONS;
use crate::shell::analyzer::{CommandAnalyzer, ProgramAnalysis, ShellRunContext};
use crate::shell::options::parse_leading_options;
use crate::shell::taint::ValueFlow;
use crate::shell::{RunManner, ShellDialect, ShellWord};

/// How many words of `env` can be options.
const MAX_ENV_OPTIONS: usize = 64;

/// What a shell was asked to do.
#[derive(Default)]
struct ShellInvocation {
    runs_text: bool,
    reads_input: bool,
}

pub(super) fn shell(
    judge: &mut CommandAnalyzer<'_>,
    name: &str,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let (asked, operands) = options(name, words)?;
    let inner = context.via(name, RunManner::Plain);
    if asked.runs_text {
        let script = operands.first().ok_or("there is nothing for it to run")?;
        run_text(judge, name, known(script)?, &inner)?;
        return Ok(true);
    }
    match operands.first() {
        Some(ShellWord::Known(path))
            if !asked.reads_input && !path.starts_with("/dev/") && !path.starts_with("/proc/") =>
        {
            judge.scripts.push((ShellWord::Known(path.clone()), context.span()));
            Ok(false)
        }
        Some(path @ ShellWord::Home(_)) if !asked.reads_input => {
            judge.scripts.push((path.clone(), context.span()));
            Ok(false)
        }
        Some(_) if !asked.reads_input => Err("the file that it runs can't be known".to_owned()),
        _ => {
            let input = context.input.clone().ok_or("it runs what it reads from its input")?;
            run_text(judge, name, &input, &ShellRunContext { input: None, ..inner })?;
            Ok(true)
        }
    }
}

/// The options of a shell. They go on after `-c`: the text is the first word that is none.
fn options(name: &str, words: &[ShellWord]) -> Result<(ShellInvocation, Vec<ShellWord>), String> {
    let is_foreign = !matches!(name, "sh" | "bash" | "rbash" | "dash" | "ash");
    let mut asked = ShellInvocation::default();
    let mut rest = words.iter();
    loop {
        let left = rest.as_slice();
        let Some(word) = rest.next() else { return Ok((asked, Vec::new())) };
        let text = match word {
            ShellWord::Known(text) => text.as_str(),
            word if word.is_no_option() => return Ok((asked, left.to_vec())),
            _ => return Err("one of its arguments can't be known".to_owned()),
        };
        match text {
            "--" | "-" => return Ok((asked, rest.as_slice().to_vec())),
            "--login" | "--norc" | "--noprofile" | "--noediting" | "--verbose" | "--restricted" => {}
            _ if text.starts_with("--") => return Err(format!("its option {text} is not known")),
            _ if !text.starts_with(['-', '+']) => return Ok((asked, left.to_vec())),
            // Others have other letters: only what all of them have is certain.
            _ if is_foreign && !matches!(text, "-c" | "-lc") => {
                return Err(format!("its option {text} is not known"));
            }
            _ => letters(text, &mut asked, &mut rest)?,
        }
    }
}

fn letters<'w>(
    text: &str,
    asked: &mut ShellInvocation,
    rest: &mut impl Iterator<Item = &'w ShellWord>,
) -> Result<(), String> {
    for letter in text.chars().skip(1) {
        match letter {
            'c' => asked.runs_text = true,
            's' => asked.reads_input = true,
            'o' => {
                let option = rest.next().and_then(ShellWord::known).unwrap_or_default();
                if !HARMLESS_SET_OPTIONS.contains(&option) {
                    return Err(format!("its option {option} is not known"));
                }
            }
            _ if "leuxvfnabhmprCET".contains(letter) => {}
            _ => return Err(format!("its option -{letter} is not known")),
        }
    }
    Ok(())
}

fn run_text(
    judge: &mut CommandAnalyzer<'_>,
    name: &str,
    script: &str,
    context: &ShellRunContext,
) -> Result<(), String> {
    let dialect = match name {
        "bash" | "rbash" => ShellDialect::Bash,
        "sh" | "dash" | "ash" => ShellDialect::Posix,
        _ if is_tame(script) => ShellDialect::Posix,
        _ => return Err("the language of this shell is not read".to_owned()),
    };
    judge.script(script, &context.in_dialect(dialect));
    Ok(())
}

/// Whether every shell there is reads a script in the same way: plain words, and `;`, `&&`, `||`, `|` between commands.
fn is_tame(script: &str) -> bool {
    let is_tame = |byte: u8| byte.is_ascii_alphanumeric() || b" _./,:@%+-;&|".contains(&byte);
    let odd = [
        "repeat",
        "noglob",
        "nocorrect",
        "foreach",
        "switch",
        "begin",
        "and",
        "or",
        "not",
        "-",
        "if",
        "end",
        "function",
        "alias",
    ];
    script.bytes().all(is_tame)
        && !script.split([' ', ';', '&', '|']).any(|word| odd.contains(&word) || word.starts_with('%'))
}

pub(super) fn env(
    judge: &mut CommandAnalyzer<'_>,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let options = "-i -0 -u: -C: -S: -v --ignore-environment --null --unset: --chdir: --split-string: \
                   --debug --block-signal? --default-signal? --ignore-signal? --list-signal-handling";
    // `-S` ends the options: what it holds and what follows it are the command.
    let split_at = split_end(options, words);
    let (before, after) = words.split_at(split_at.unwrap_or(words.len()));
    let taken = parse_leading_options(options, before)?;
    if split_at.is_none() && taken.has(&["-S", "--split-string"]) {
        return Err("it has too many options".to_owned());
    }
    judge.reading.folders.extend(taken.values(&["-C", "--chdir"]).cloned());
    let mut operands = Vec::new();
    for text in taken.values(&["-S", "--split-string"]) {
        operands.extend(split(known(text)?)?);
    }
    operands.extend(taken.operands);
    operands.extend_from_slice(after);
    if operands.first().and_then(ShellWord::known) == Some("-") {
        operands.remove(0);
    }
    run_with_variables(judge, operands, &context.via("env", RunManner::Plain))?;
    Ok(true)
}

/// How many words of `env` the first `-S` ends, its text included. Nobody writes many options before it.
fn split_end(options: &str, words: &[ShellWord]) -> Option<usize> {
    for end in 1..=words.len().min(MAX_ENV_OPTIONS) {
        match parse_leading_options(options, words.get(..end)?) {
            Ok(taken) if taken.has(&["-S", "--split-string"]) => return Some(end),
            Ok(taken) if !taken.operands.is_empty() => return None,
            // An option may still lack its value.
            Ok(_) | Err(_) => {}
        }
    }
    None
}

/// `NAME=value …` and a command.
pub(super) fn run_with_variables(
    judge: &mut CommandAnalyzer<'_>,
    words: Vec<ShellWord>,
    context: &ShellRunContext,
) -> Result<(), String> {
    let mut assignments = Vec::new();
    let mut rest = words.into_iter().peekable();
    while let Some(word) = rest.peek() {
        let (name, value) = match word {
            ShellWord::Known(text) => match text.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => break,
            },
            ShellWord::Prefix(text) if text.contains('=') => {
                (text.split('=').next().unwrap_or_default().to_owned(), None)
            }
            _ => return Err("the command that it runs can't be known".to_owned()),
        };
        let flow = value.as_deref().map_or(ValueFlow::Anywhere, ValueFlow::value);
        judge.note_assignment(&name, flow, context);
        assignments.push((name, value));
        rest.next();
    }
    let argv: Vec<ShellWord> = rest.collect();
    if !argv.is_empty() {
        judge.run_with(argv, assignments, context);
    }
    Ok(())
}

/// `env -S` has quotes and escapes of its own: only what has none is understood.
fn split(text: &str) -> Result<Vec<ShellWord>, String> {
    if text.contains(['"', '\'', '\\', '$', '#']) {
        return Err("the text of -S is not understood".to_owned());
    }
    let words: Vec<ShellWord> =
        text.split_ascii_whitespace().map(|word| ShellWord::Known(word.to_owned())).collect();
    match words.first().and_then(ShellWord::known) {
        Some(first) if first.starts_with('-') => Err("the text of -S has options".to_owned()),
        _ => Ok(words),
    }
}
