//! Programs that reach other machines.

use super::{joined, known, maybe_option};
use crate::shell::analyzer::{CommandAnalyzer, ProgramAnalysis, ShellRunContext};
use crate::shell::options::{parse_leading_options, parse_options};
use crate::shell::{RunManner, ShellDialect, ShellWord};

const SSH_OPTIONS: &str = "-4 -6 -A -a -C -f -G -g -K -k -M -N -n -q -s -T -t -V -v -X -x -Y -y -B: -b: -c: -D: \
                   -E: -e: -F: -I: -i: -J: -L: -l: -m: -O: -o: -P: -p: -Q: -R: -S: -W: -w:";

pub(super) fn ssh(
    judge: &mut CommandAnalyzer<'_>,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let taken = parse_leading_options(SSH_OPTIONS, words)?;
    settings(taken.values(&["-o"]))?;
    let Some((host, rest)) = taken.operands.split_first() else { return Ok(false) };
    if !host.is_no_option() || matches!(host, ShellWord::Pattern(_)) {
        return Err("its host can't be known".to_owned());
    }
    // Options may go on after the host.
    let after = parse_leading_options(SSH_OPTIONS, rest)?;
    settings(after.values(&["-o"]))?;
    if taken.has(&["-F", "-I"]) || after.has(&["-F", "-I"]) {
        return Err("its settings are in a file that is not read".to_owned());
    }
    let inner = context.via("ssh", RunManner::Elsewhere(host.known().map(str::to_owned)));
    let script = match (after.operands.is_empty(), &context.input) {
        (false, _) => joined(&after.operands)?,
        (true, Some(input)) => input.clone(),
        (true, None) => return Ok(false),
    };
    judge.script(&script, &ShellRunContext { input: None, ..inner.in_dialect(ShellDialect::Posix) });
    Ok(true)
}

/// Settings of ssh that run something here.
fn settings<'w>(values: impl Iterator<Item = &'w ShellWord>) -> Result<(), String> {
    for value in values {
        let text = known(value)?.to_ascii_lowercase();
        let name = text.split(['=', ' ', '\t']).next().unwrap_or_default();
        if name.contains("command")
            || matches!(
                name,
                "include" | "pkcs11provider" | "securitykeyprovider" | "xauthlocation" | "match"
            )
        {
            return Err(format!("its setting {name} runs something"));
        }
    }
    Ok(())
}

/// `scp` and `sftp`: `-S` names the program to connect with, `-D` one to connect to.
pub(super) fn copy(
    judge: &mut CommandAnalyzer<'_>,
    name: &str,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let options = "-1 -2 -3 -4 -6 -A -a -B -C -f -N -O -p -q -R -r -T -v -b: -c: -F: -i: -J: -l: -o: -P: \
                   -s: -X: -S: -D:";
    let taken = parse_options(options, words)?;
    settings(taken.values(&["-o"]))?;
    if taken.has(&["-F", "-b", "-D"]) {
        return Err("what it does is in a file that is not read".to_owned());
    }
    for program in taken.values(&["-S"]) {
        judge.run(vec![program.clone(), ShellWord::UnknownMany], &context.via(name, RunManner::Plain));
    }
    Ok(false)
}

/// Options of rsync that take a program, or letters that take a value, are all that matters.
pub(super) fn rsync(
    judge: &mut CommandAnalyzer<'_>,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let Some(text) = maybe_option(word)? else { continue };
        let script = match text.split_once('=') {
            Some(("--rsh", script)) => script.to_owned(),
            Some(("--rsync-path" | "--early-input" | "--config" | "--dparam", _)) => {
                return Err("it runs what is not read".to_owned());
            }
            _ if text == "--rsh" => known(rest.next().unwrap_or(&ShellWord::UnknownOne))?.to_owned(),
            _ if text.starts_with("--rsync-path") || text == "--daemon" => {
                return Err("it runs what is not read".to_owned());
            }
            _ if text.starts_with("--") => continue,
            _ => match text.strip_prefix('-').and_then(|letters| letters.split_once('e')) {
                Some((before, _)) if before.contains(['f', 'T', 'B', 'M', '@']) => continue,
                Some((_, "")) => known(rest.next().unwrap_or(&ShellWord::UnknownOne))?.to_owned(),
                Some((_, script)) => script.to_owned(),
                None => continue,
            },
        };
        connects(judge, &script, context)?;
    }
    Ok(false)
}

/// The command that rsync connects with. It gets a host and more, which are not in the text.
fn connects(judge: &mut CommandAnalyzer<'_>, script: &str, context: &ShellRunContext) -> Result<(), String> {
    // It splits the text itself: only what has no quotes is certain.
    if script.contains(['"', '\'', '\\']) {
        return Err("the command that it connects with is not understood".to_owned());
    }
    let mut command: Vec<ShellWord> =
        script.split_ascii_whitespace().map(|word| ShellWord::Known(word.to_owned())).collect();
    let inner = context.via("rsync", RunManner::Plain);
    match command.split_first() {
        Some((ShellWord::Known(program), options)) if program == "ssh" => {
            let taken = parse_leading_options(SSH_OPTIONS, options)?;
            settings(taken.values(&["-o"]))?;
            if taken.has(&["-F", "-I"]) || !taken.operands.is_empty() {
                return Err("the command that it connects with is not understood".to_owned());
            }
            command.push(ShellWord::UnknownMany);
            judge.push(command, Vec::new(), &inner);
        }
        _ => {
            command.push(ShellWord::UnknownMany);
            judge.run(command, &inner);
        }
    }
    Ok(())
}
