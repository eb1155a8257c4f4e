//! Builtins that run commands, set variables, or change how the rest is read.

use super::{CommandAnalyzer, ProgramAnalysis, ShellRunContext};
use crate::shell::options::{parse_leading_options, parse_options};
use crate::shell::taint::ValueFlow;
use crate::shell::{RunManner, ShellWord};

/// Options of `set -o` that do not change how a text is read.
pub(super) const HARMLESS_SET_OPTIONS: [&str; 20] = [
    "allexport",
    "errexit",
    "errtrace",
    "functrace",
    "hashall",
    "noclobber",
    "noexec",
    "noglob",
    "nolog",
    "notify",
    "nounset",
    "onecmd",
    "physical",
    "pipefail",
    "privileged",
    "verbose",
    "xtrace",
    "monitor",
    "ignoreeof",
    "vi",
];

/// What a builtin does; `None` if it is none, or one that does nothing of the kind.
pub(super) fn analyze_builtin(
    judge: &mut CommandAnalyzer<'_>,
    program: &str,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> Option<ProgramAnalysis> {
    Some(match program {
        "eval" => eval(judge, words, context),
        "source" | "." => source(judge, words, context),
        "exec" => exec(judge, words, context),
        "command" => command(judge, words, context),
        "builtin" => {
            judge.run(words.to_vec(), &context.via(program, RunManner::Plain));
            Ok(true)
        }
        "trap" => trap(judge, words, context),
        "jobs" if words.iter().any(|word| word.could_be("-x")) => Err("it runs a command".to_owned()),
        "alias" => alias(words),
        "shopt" => shopt(words),
        "set" => set(words),
        "enable" => parse_leading_options("-a -n -p -s", words).map(|_| false),
        "hash" => parse_leading_options("-r -l -d -t", words).map(|_| false),
        "history" => parse_leading_options("-c -d: -r -n -#", words).map(|_| false),
        "bind" | "complete" | "compopt" | "fc" => Err("what it runs is not read".to_owned()),
        "compgen" => {
            parse_leading_options("-a -b -c -d -e -f -g -j -k -s -u -v -A: -P: -S: -X:", words).map(|_| false)
        }
        "cd" | "pushd" => cd(judge, words),
        "declare" | "typeset" | "local" | "export" | "readonly" => declare(judge, program, words, context),
        "read" => read(judge, words, context),
        "mapfile" | "readarray" => mapfile(judge, words, context),
        "getopts" if matches!(words.first(), Some(ShellWord::UnknownMany | ShellWord::Pattern(_))) => {
            Err("the variable that it sets can't be known".to_owned())
        }
        "getopts" => names(judge, words.get(1..2).unwrap_or_default(), context),
        "printf" => printf(judge, words, context),
        "unset" => unset(judge, words, context),
        "let" => calculate(judge, words, context),
        "wait" => wait(judge, words, context),
        "test" | "[" => test(judge, words, context),
        _ => return None,
    })
}

fn eval(judge: &mut CommandAnalyzer<'_>, words: &[ShellWord], context: &ShellRunContext) -> ProgramAnalysis {
    let words = match words.split_first() {
        Some((ShellWord::Known(first), rest)) if first == "--" => rest,
        _ => words,
    };
    let texts: Option<Vec<&str>> = words.iter().map(ShellWord::known).collect();
    let script = texts.ok_or("what it runs can't be known")?.join(" ");
    judge.script(&script, &context.via("eval", RunManner::Plain));
    Ok(true)
}

fn source(
    judge: &mut CommandAnalyzer<'_>,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let taken = parse_leading_options("", words)?;
    match taken.operands.first() {
        Some(ShellWord::Known(path)) if path == "/dev/stdin" || path == "/dev/fd/0" => {
            let script = context.input.clone().ok_or("what it runs is not in the command")?;
            judge.script(&script, &context.via("source", RunManner::Plain));
            Ok(true)
        }
        Some(ShellWord::Known(path)) if path.starts_with("/dev/") || path.starts_with("/proc/") => {
            Err("what it runs is not in the command".to_owned())
        }
        Some(path @ (ShellWord::Known(_) | ShellWord::Home(_))) => {
            judge.scripts.push((path.clone(), context.span()));
            Ok(false)
        }
        Some(_) => Err("the file that it runs can't be known".to_owned()),
        None => Ok(false),
    }
}

fn exec(judge: &mut CommandAnalyzer<'_>, words: &[ShellWord], context: &ShellRunContext) -> ProgramAnalysis {
    let taken = parse_leading_options("-c -l -a:", words)?;
    judge.run(taken.operands, &context.via("exec", RunManner::Plain));
    Ok(true)
}

fn command(
    judge: &mut CommandAnalyzer<'_>,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let taken = parse_leading_options("-p -v -V", words)?;
    if !taken.has(&["-v", "-V"]) {
        judge.run(taken.operands, &context.via("command", RunManner::Plain));
    }
    Ok(true)
}

fn trap(judge: &mut CommandAnalyzer<'_>, words: &[ShellWord], context: &ShellRunContext) -> ProgramAnalysis {
    let taken = parse_leading_options("-l -p -P", words)?;
    let (Some((action, signals)), false) = (taken.operands.split_first(), taken.has(&["-l", "-p", "-P"]))
    else {
        return Ok(false);
    };
    if signals.is_empty() {
        return Ok(false);
    }
    match action.known() {
        Some("-" | "") => Ok(false),
        Some(script) => {
            judge.script(script, &context.via("trap", RunManner::Plain));
            Ok(true)
        }
        None => Err("what it runs can't be known".to_owned()),
    }
}

fn alias(words: &[ShellWord]) -> ProgramAnalysis {
    let only_tells = words.iter().all(|word| word.known().is_some_and(|word| !word.contains('=')));
    if only_tells { Ok(false) } else { Err("it gives commands another meaning".to_owned()) }
}

fn shopt(words: &[ShellWord]) -> ProgramAnalysis {
    let taken = parse_leading_options("-s -u -p -q -o", words)?;
    let changes_reading = |word: &ShellWord| match word.known() {
        Some(name) if taken.has(&["-o"]) => !HARMLESS_SET_OPTIONS.contains(&name),
        Some("expand_aliases" | "extglob" | "extquote" | "interactive_comments") | None => true,
        Some(name) => name.starts_with("compat") || name.ends_with("_expand_once"),
    };
    if taken.has(&["-s", "-u"]) && taken.operands.iter().any(changes_reading) {
        return Err("it changes how the rest is read".to_owned());
    }
    Ok(false)
}

fn set(words: &[ShellWord]) -> ProgramAnalysis {
    let refused = || Err("it changes how the rest is read".to_owned());
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let Some(text) = word.known() else { return refused() };
        let letters = match text.strip_prefix(['-', '+']) {
            None | Some("") => return Ok(false),
            Some("-") if text == "--" => return Ok(false),
            Some(letters) => letters,
        };
        if !letters.bytes().all(|letter| b"abefhmnotuvxCEPT".contains(&letter)) {
            return refused();
        }
        for _ in letters.bytes().filter(|letter| *letter == b'o') {
            let option = rest.next().map(ShellWord::known);
            if !matches!(option, None | Some(Some(_)))
                || option.flatten().is_some_and(|name| !HARMLESS_SET_OPTIONS.contains(&name))
            {
                return refused();
            }
        }
    }
    Ok(false)
}

fn cd(judge: &mut CommandAnalyzer<'_>, words: &[ShellWord]) -> ProgramAnalysis {
    let folder = words.iter().find(|word| word.is_no_option() || word.known().is_none());
    judge.reading.folders.push(folder.cloned().unwrap_or_else(|| ShellWord::Home(String::new())));
    Ok(false)
}

fn declare(
    judge: &mut CommandAnalyzer<'_>,
    program: &str,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let is_option = |word: &&ShellWord| word.known().is_some_and(|word| word.starts_with(['-', '+']));
    let options: String = words.iter().filter(is_option).filter_map(ShellWord::known).collect();
    if options.contains(['c', 'l', 'u']) {
        return Err("it changes what is assigned".to_owned());
    }
    if options.contains('n') && program != "export" {
        return Err("it gives a variable another name".to_owned());
    }
    let is_array = options.contains(['a', 'A']);
    for word in words.iter().filter(|word| !is_option(word)) {
        let (name, flow) = match word {
            ShellWord::Known(text) => {
                let (name, value) = text.split_once('=').unwrap_or((text, ""));
                if value.starts_with('(') && value.contains(['$', '`']) {
                    return Err("it sets an array from a text that could be code".to_owned());
                }
                (name, ValueFlow::value(value))
            }
            ShellWord::Prefix(text) if text.contains('=') && !is_array => {
                let (name, value) = text.split_once('=').unwrap_or((text, ""));
                judge.declared.push((name.to_owned(), context.span()));
                (name, if value.is_empty() { context.sources.clone() } else { ValueFlow::Anywhere })
            }
            // An array in the grammar, which has been judged as such.
            ShellWord::UnknownMany if context.sources == ValueFlow::nothing() && !options.contains('i') => {
                continue;
            }
            _ => return Err("the variable that it sets can't be known".to_owned()),
        };
        let name = name.strip_suffix('+').unwrap_or(name);
        set_variable(judge, name, flow, context)?;
        if is_array {
            judge.arrays.insert(name.to_owned());
        }
        if options.contains('i') {
            judge.taint.number(name.split('[').next().unwrap_or(name), context.span());
        }
    }
    Ok(false)
}

/// Notes a variable that a builtin sets. Its name can be an element of an array, whose subscript is calculated.
fn set_variable(
    judge: &mut CommandAnalyzer<'_>,
    name: &str,
    value: ValueFlow,
    context: &ShellRunContext,
) -> Result<(), String> {
    let (name, subscript) = name.split_once('[').unwrap_or((name, ""));
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Err("the variable that it sets can't be known".to_owned());
    }
    if !subscript.is_empty() {
        judge.taint.calculate(ValueFlow::text(subscript), context.span());
    }
    judge.note_assignment(name, value, context);
    Ok(())
}

/// Words that are names of variables, which get a value from somewhere.
fn names(judge: &mut CommandAnalyzer<'_>, words: &[ShellWord], context: &ShellRunContext) -> ProgramAnalysis {
    for word in words {
        let name = word.known().ok_or("the variable that it sets can't be known")?;
        set_variable(judge, name, ValueFlow::Anywhere, context)?;
        if let Some(command) = judge.reading.commands.last_mut() {
            command.assignments.push((name.to_owned(), None));
        }
    }
    Ok(false)
}

fn read(judge: &mut CommandAnalyzer<'_>, words: &[ShellWord], context: &ShellRunContext) -> ProgramAnalysis {
    let taken = parse_leading_options("-a: -d: -e -i: -n: -N: -p: -r -s -t: -u: -E", words)?;
    let array: Vec<ShellWord> = taken.values(&["-a"]).cloned().collect();
    judge.arrays.extend(array.iter().filter_map(ShellWord::known).map(str::to_owned));
    names(judge, &[array, taken.operands].concat(), context)
}

fn mapfile(
    judge: &mut CommandAnalyzer<'_>,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let taken = parse_leading_options("-d: -n: -O: -s: -t -u: -c:", words)?;
    judge.arrays.extend(taken.operands.iter().filter_map(ShellWord::known).map(str::to_owned));
    names(judge, &taken.operands, context)
}

fn printf(
    judge: &mut CommandAnalyzer<'_>,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let unknown = || Err("the variable that it sets can't be known".to_owned());
    // What can be no word at all makes the next one the first.
    let can_vanish = |word: &&ShellWord| {
        **word == ShellWord::UnknownMany || matches!(word, ShellWord::Pattern(_)) && word.is_no_option()
    };
    let skipped = words.iter().take_while(can_vanish).count();
    let (before, words) = words.split_at(skipped);
    if before.contains(&ShellWord::UnknownMany) {
        calculate_sources(judge, context)?;
    }
    match words.first() {
        Some(ShellWord::Known(text)) if text == "-v" => {
            names(judge, words.get(1..2).unwrap_or_default(), context)
        }
        Some(ShellWord::Known(text)) if text.starts_with("-v") => {
            names(judge, &[ShellWord::Known(text.get(2..).unwrap_or_default().to_owned())], context)
        }
        Some(ShellWord::Prefix(text)) if text.starts_with("-v") || text == "-" => unknown(),
        // A subscript looks like a pattern, and stays as it is where no file matches.
        Some(ShellWord::Pattern(_)) => unknown(),
        Some(ShellWord::UnknownOne) => calculate_sources(judge, context),
        _ => Ok(false),
    }
}

fn unset(judge: &mut CommandAnalyzer<'_>, words: &[ShellWord], context: &ShellRunContext) -> ProgramAnalysis {
    calculate(judge, &parse_options("-f -v -n", words)?.operands, context)
}

fn wait(judge: &mut CommandAnalyzer<'_>, words: &[ShellWord], context: &ShellRunContext) -> ProgramAnalysis {
    match words.iter().position(|word| word.known() == Some("-p")) {
        Some(at) => names(judge, words.get(at + 1..at + 2).unwrap_or_default(), context),
        None if words.iter().any(|word| word.known().is_none_or(|word| word.starts_with("-p"))) => {
            calculate_sources(judge, context)
        }
        None => Ok(false),
    }
}

/// Words that the shell calculates with.
fn calculate(
    judge: &mut CommandAnalyzer<'_>,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    for word in words {
        match word.known() {
            Some(text) => judge.taint.calculate(ValueFlow::text(text), context.span()),
            None => judge.taint.calculate(ValueFlow::Anywhere, context.span()),
        }
    }
    Ok(false)
}

/// What is in the words that can't be known may be calculated with.
fn calculate_sources(judge: &mut CommandAnalyzer<'_>, context: &ShellRunContext) -> ProgramAnalysis {
    judge.taint.calculate_split(context.sources.clone(), context.span());
    Ok(false)
}

/// `-v` looks at a variable by its name, whose subscript is calculated. Words that can't be known can be `-v`.
fn test(judge: &mut CommandAnalyzer<'_>, words: &[ShellWord], context: &ShellRunContext) -> ProgramAnalysis {
    let is_look = |word: &ShellWord| matches!(word.known(), Some("-v" | "-R"));
    let is_unknown = |word: &ShellWord| {
        matches!(word, ShellWord::UnknownOne | ShellWord::UnknownMany | ShellWord::Prefix(_))
    };
    let has_look = words.iter().any(is_look);
    let may_look = has_look || words.iter().any(|word| word.could_be("-v") || word.could_be("-R"));
    let has_pair = words.windows(2).any(|pair| pair == [ShellWord::UnknownOne, ShellWord::UnknownOne]);
    let has_subscript = |word: &ShellWord| matches!(word, ShellWord::Prefix(text) if text.contains('['));
    let may_name = has_look && words.iter().any(is_unknown) || may_look && words.iter().any(has_subscript);
    if words.contains(&ShellWord::UnknownMany) || has_pair || may_name {
        calculate_sources(judge, context)?;
    }
    if words.iter().any(|word| matches!(word, ShellWord::Pattern(_)) && word.could_be("-v")) {
        judge.taint.calculate(ValueFlow::Anywhere, context.span());
    }
    for word in words.iter().filter(|_| may_look) {
        // A subscript looks like a pattern. What stands between may be no word at all.
        let (ShellWord::Known(text) | ShellWord::Pattern(text) | ShellWord::Prefix(text)) = word else {
            continue;
        };
        if has_look || text.contains('[') {
            judge.taint.calculate(ValueFlow::text(text), context.span());
        }
    }
    Ok(false)
}
