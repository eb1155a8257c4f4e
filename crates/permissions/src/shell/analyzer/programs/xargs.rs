//! Programs that make commands out of their input.

use crate::shell::analyzer::{CommandAnalyzer, ProgramAnalysis, ShellRunContext};
use crate::shell::options::parse_leading_options;
use crate::shell::{RunManner, ShellWord, TargetAccess};

pub(super) fn xargs(
    judge: &mut CommandAnalyzer<'_>,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let options = "-0 -a: -d: -E: -e? -I: -i? -J: -L: -l? -n: -o -P: -p -r -R: -s: -t -x --null \
                   --arg-file: --delimiter: --eof? --replace? --max-lines? --max-args: --open-tty \
                   --max-procs: --interactive --no-run-if-empty --max-chars: --verbose --exit \
                   --process-slot-var:";
    let taken = parse_leading_options(options, words)?;
    for file in taken.values(&["-a", "--arg-file"]) {
        judge.touches(file.clone(), TargetAccess::Read);
    }
    let replaces = taken.has(&["-I", "-i", "--replace", "-J"]);
    let mut places: Vec<String> = Vec::new();
    for value in taken.values(&["-I", "-i", "--replace", "-J"]) {
        places.push(value.known().ok_or("what it replaces can't be known")?.to_owned());
    }
    places.push("{}".to_owned());
    let mut command = taken.operands;
    if command.is_empty() {
        return Ok(false);
    }
    if replaces {
        command = replaced(command, &places, ShellWord::UnknownMany);
    } else {
        command.push(ShellWord::UnknownMany);
    }
    judge.run(command, &ShellRunContext { input: None, ..context.via("xargs", RunManner::Plain) });
    Ok(true)
}

/// Words with one of the marks in them become something that can't be known.
pub(super) fn replaced(words: Vec<ShellWord>, marks: &[String], by: ShellWord) -> Vec<ShellWord> {
    let has_mark = |word: &ShellWord| match word {
        ShellWord::Known(text) | ShellWord::Pattern(text) | ShellWord::Home(text) => {
            marks.iter().any(|mark| text.contains(mark.as_str()))
        }
        ShellWord::Prefix(_) => true,
        ShellWord::UnknownOne | ShellWord::UnknownMany => false,
    };
    words.into_iter().map(|word| if has_mark(&word) { by.clone() } else { word }).collect()
}

/// GNU parallel puts its words together to a script. Only plain words make one that is certain.
pub(super) fn parallel(
    judge: &mut CommandAnalyzer<'_>,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let options = "-j: -P: -k -0 -n: -N: -L: -I: -a: -v -t -u -X -m --jobs: --keep-order --null \
                   --max-args: --bar --eta --progress --halt: --will-cite --ungroup --line-buffer --lb \
                   --tag --timeout: --retries: --delay: --dry-run --joblog: --no-notice --arg-file:";
    let taken = parse_leading_options(options, words)?;
    for file in taken.values(&["--joblog"]) {
        judge.touches(file.clone(), TargetAccess::Write);
    }
    let is_separator = |word: &ShellWord| word.known().is_some_and(|word| word.starts_with(":::"));
    let command: Vec<ShellWord> =
        taken.operands.iter().take_while(|word| !is_separator(word)).cloned().collect();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./,:@%+-={}".contains(&byte);
    let are_plain = command.iter().all(|word| word.known().is_some_and(|word| word.bytes().all(is_plain)));
    let program = command.first().and_then(ShellWord::known).unwrap_or("=");
    if !are_plain || program.contains(['{', '=']) || taken.has(&["-I"]) {
        return Err("the command that it runs can't be known".to_owned());
    }
    let mut command = replaced(command, &["{".to_owned()], ShellWord::UnknownMany);
    command.push(ShellWord::UnknownMany);
    judge.run(command, &ShellRunContext { input: None, ..context.via("parallel", RunManner::Plain) });
    Ok(true)
}
