//! Programs that make commands out of their input.

use crate::shell::builtins::Judged;
use crate::shell::judge::{Context, Judge};
use crate::shell::options::leading;
use crate::shell::{Access, Manner, Word};

pub(super) fn xargs(judge: &mut Judge<'_>, words: &[Word], context: &Context) -> Judged {
    let options = "-0 -a: -d: -E: -e? -I: -i? -J: -L: -l? -n: -o -P: -p -r -R: -s: -t -x --null \
                   --arg-file: --delimiter: --eof? --replace? --max-lines? --max-args: --open-tty \
                   --max-procs: --interactive --no-run-if-empty --max-chars: --verbose --exit \
                   --process-slot-var:";
    let taken = leading(options, words)?;
    for file in taken.values(&["-a", "--arg-file"]) {
        judge.touches(file.clone(), Access::Read);
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
        command = replaced(command, &places, Word::Any);
    } else {
        command.push(Word::Any);
    }
    judge.run(command, &Context { input: None, ..context.via("xargs", Manner::Plain) });
    Ok(true)
}

/// Words with one of the marks in them become something that can't be known.
pub(super) fn replaced(words: Vec<Word>, marks: &[String], by: Word) -> Vec<Word> {
    let has_mark = |word: &Word| match word {
        Word::Known(text) | Word::Pattern(text) | Word::Home(text) => {
            marks.iter().any(|mark| text.contains(mark.as_str()))
        }
        Word::Begins(_) => true,
        Word::One | Word::Any => false,
    };
    words.into_iter().map(|word| if has_mark(&word) { by.clone() } else { word }).collect()
}

/// GNU parallel puts its words together to a script. Only plain words make one that is certain.
pub(super) fn parallel(judge: &mut Judge<'_>, words: &[Word], context: &Context) -> Judged {
    let options = "-j: -P: -k -0 -n: -N: -L: -I: -a: -v -t -u -X -m --jobs: --keep-order --null \
                   --max-args: --bar --eta --progress --halt: --will-cite --ungroup --line-buffer --lb \
                   --tag --timeout: --retries: --delay: --dry-run --joblog: --no-notice --arg-file:";
    let taken = leading(options, words)?;
    for file in taken.values(&["--joblog"]) {
        judge.touches(file.clone(), Access::Write);
    }
    let is_separator = |word: &Word| word.known().is_some_and(|word| word.starts_with(":::"));
    let command: Vec<Word> = taken.operands.iter().take_while(|word| !is_separator(word)).cloned().collect();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./,:@%+-={}".contains(&byte);
    let are_plain = command.iter().all(|word| word.known().is_some_and(|word| word.bytes().all(is_plain)));
    let program = command.first().and_then(Word::known).unwrap_or("=");
    if !are_plain || program.contains(['{', '=']) || taken.has(&["-I"]) {
        return Err("the command that it runs can't be known".to_owned());
    }
    let mut command = replaced(command, &["{".to_owned()], Word::Any);
    command.push(Word::Any);
    judge.run(command, &Context { input: None, ..context.via("parallel", Manner::Plain) });
    Ok(true)
}
