//! Programs that are known to write files, and which.

use super::{CommandAnalyzer, ShellRunContext};
use crate::shell::options::parse_likely_options;
use crate::shell::{ShellWord, TargetAccess};

/// Which of its operands a program writes.
enum WrittenOperands {
    All(TargetAccess),
    /// All but the first, which says how.
    AllButFirst(TargetAccess),
    /// The last is written; with `true`, the others are gone afterwards.
    Last {
        moves: bool,
    },
}

struct WriterProgram {
    names: &'static str,
    options: &'static str,
    which: WrittenOperands,
}

const COPY_OPTIONS: &str = "-a -b -d -f -i -l -L -n -p -P -r -R -s -u -v -x -H -Z -t: -T -S: -D -c -C -m: -o: \
                       -g: --archive --backup? --force --interactive --link --no-clobber --preserve? \
                       --recursive --symbolic --update? --verbose --target-directory: \
                       --no-target-directory --parents --reflink? --sparse: --suffix: --relative \
                       --dereference --no-dereference --mode: --owner: --group: --strip --no-preserve: \
                       --one-file-system";

const WRITER_PROGRAMS: &[WriterProgram] = &[
    WriterProgram {
        names: "rm unlink shred",
        options: "-d -f -i -I -r -R -v -u -z -n: --force --recursive --verbose --dir --interactive? \
                  --one-file-system --preserve-root? --no-preserve-root",
        which: WrittenOperands::All(TargetAccess::Delete),
    },
    WriterProgram {
        names: "rmdir",
        options: "-p -v --parents --verbose --ignore-fail-on-non-empty",
        which: WrittenOperands::All(TargetAccess::Delete),
    },
    WriterProgram {
        names: "mkdir mkfifo mknod",
        options: "-p -v -m: -Z --parents --verbose --mode:",
        which: WrittenOperands::All(TargetAccess::Create),
    },
    WriterProgram {
        names: "touch",
        options: "-a -c -f -h -m -d: -r: -t: --no-create --date: --reference: --time: --no-dereference",
        which: WrittenOperands::All(TargetAccess::Create),
    },
    WriterProgram {
        names: "tee",
        options: "-a -i -p --append --ignore-interrupts --output-error?",
        which: WrittenOperands::All(TargetAccess::Write),
    },
    WriterProgram {
        names: "truncate",
        options: "-c -o -r: -s: --no-create --io-blocks --reference: --size:",
        which: WrittenOperands::All(TargetAccess::Write),
    },
    WriterProgram {
        names: "chmod chown chgrp",
        options: "-c -f -v -h -H -L -P -R --changes --silent --quiet --verbose --recursive \
                  --no-dereference --from: --reference: --preserve-root --no-preserve-root",
        which: WrittenOperands::AllButFirst(TargetAccess::ChangeRights),
    },
    WriterProgram { names: "mv", options: COPY_OPTIONS, which: WrittenOperands::Last { moves: true } },
    WriterProgram {
        names: "cp ln install link",
        options: COPY_OPTIONS,
        which: WrittenOperands::Last { moves: false },
    },
];

/// Notes the files that a program is known to write.
pub(super) fn collect_writes(
    judge: &mut CommandAnalyzer<'_>,
    program: &str,
    words: &[ShellWord],
    context: &ShellRunContext,
) {
    let name = program.rsplit('/').next().unwrap_or(program);
    match name {
        "dd" => dd(judge, words),
        "curl" => {
            let keeps_name = words.iter().filter_map(ShellWord::known).any(|word| {
                word.starts_with("--remote-name")
                    || word.starts_with('-') && !word.starts_with("--") && word.contains('O')
            });
            if keeps_name {
                downloads(judge, words);
            }
            output(judge, words, &["-o", "--output"]);
        }
        "wget" => {
            downloads(judge, words);
            output(judge, words, &["-O", "--output-document"]);
        }
        "patch" => patched(judge, context),
        "git" if words.iter().any(|word| word.could_be("apply") || word.could_be("am")) => {
            patched(judge, context);
        }
        // The names are made by it.
        "split" | "csplit" | "ed" | "red" => judge.touches(ShellWord::UnknownMany, TargetAccess::Write),
        "sort" => output(judge, words, &["-o", "--output"]),
        _ => {
            let is_named = |writer: &&WriterProgram| writer.names.split(' ').any(|own| own == name);
            if let Some(writer) = WRITER_PROGRAMS.iter().find(is_named) {
                written_operands(judge, writer, name, words);
            }
        }
    }
}

/// Notes those operands of a program that its row of the table says are written.
fn written_operands(
    judge: &mut CommandAnalyzer<'_>,
    writer: &WriterProgram,
    name: &str,
    words: &[ShellWord],
) {
    let Ok(taken) = parse_likely_options(writer.options, words) else {
        // Which of the words are files is not certain: any could be.
        words
            .iter()
            .filter(|word| word.known().is_none_or(|word| !word.starts_with('-')))
            .for_each(|word| judge.touches(word.clone(), TargetAccess::Write));
        return judge.touches(ShellWord::UnknownMany, TargetAccess::Write);
    };
    let target = taken.values(&["-t", "--target-directory"]).next_back().cloned();
    let mut operands = taken.operands.clone();
    match &writer.which {
        WrittenOperands::All(access) => {
            let access =
                if taken.has(&["-a", "--append"]) && name == "tee" { TargetAccess::Append } else { *access };
            operands.into_iter().for_each(|path| judge.touches(path, access));
        }
        WrittenOperands::AllButFirst(access) => {
            let skipped = usize::from(!taken.has(&["--reference"]));
            operands.into_iter().skip(skipped).for_each(|path| judge.touches(path, *access));
        }
        WrittenOperands::Last { moves } => {
            let Some(target) = target.or_else(|| operands.pop()) else { return };
            for source in operands {
                judge.touches(inside(&target, &source), TargetAccess::Write);
                if *moves {
                    judge.touches(source, TargetAccess::Delete);
                }
            }
            judge.touches(target, TargetAccess::Write);
        }
    }
}

/// What a file is called if the target is a folder.
fn inside(folder: &ShellWord, source: &ShellWord) -> ShellWord {
    match (folder, source) {
        (ShellWord::Known(folder), ShellWord::Known(source)) => {
            let name = source.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            ShellWord::Known(format!("{}/{name}", folder.trim_end_matches('/')))
        }
        _ => ShellWord::UnknownOne,
    }
}

fn dd(judge: &mut CommandAnalyzer<'_>, words: &[ShellWord]) {
    for word in words {
        match word.known() {
            Some(text) => {
                if let Some(path) = text.strip_prefix("of=") {
                    judge.touches(ShellWord::Known(path.to_owned()), TargetAccess::Write);
                }
            }
            None => judge.touches(ShellWord::UnknownOne, TargetAccess::Write),
        }
    }
}

/// Programs that write to a file with the last name of an address.
fn downloads(judge: &mut CommandAnalyzer<'_>, words: &[ShellWord]) {
    for word in words.iter().filter(|word| word.known().is_none_or(|word| !word.starts_with('-'))) {
        let name = word.known().and_then(|address| address.split(['?', '#']).next()?.rsplit('/').next());
        judge.touches(
            name.map_or(ShellWord::UnknownOne, |name| ShellWord::Known(name.to_owned())),
            TargetAccess::Write,
        );
    }
}

/// The files that a patch writes, if it stands in the text.
fn patched(judge: &mut CommandAnalyzer<'_>, context: &ShellRunContext) {
    for line in context.input.iter().flat_map(|input| input.lines()) {
        if let Some(path) = line.strip_prefix("+++ ").or_else(|| line.strip_prefix("rename to ")) {
            let path = path.split('\t').next().unwrap_or_default().trim();
            judge.touches(ShellWord::Known(path.to_owned()), TargetAccess::Write);
        }
    }
}

/// Programs that write to a file if an option says so.
fn output(judge: &mut CommandAnalyzer<'_>, words: &[ShellWord], names: &[&str]) {
    for (at, word) in words.iter().enumerate() {
        let Some(text) = word.known() else { continue };
        let is_cluster = text.starts_with('-')
            && !text.starts_with("--")
            && names.iter().any(|name| text.ends_with(name.trim_start_matches('-')));
        let (begin, value) = text.split_once('=').map_or((text, None), |(begin, value)| (begin, Some(value)));
        // A long option may be cut short.
        let is_begin = begin.len() > 2 && names.iter().any(|name| name.starts_with(begin));
        let attached = names
            .iter()
            .find_map(|name| text.strip_prefix(name).map(|rest| rest.trim_start_matches('=')))
            .or(value.filter(|_| is_begin));
        if let Some(path) = attached.filter(|path| !path.is_empty()) {
            judge.touches(ShellWord::Known(path.to_owned()), TargetAccess::Write);
        } else if is_cluster || is_begin || names.contains(&text) {
            judge.touches(words.get(at + 1).cloned().unwrap_or(ShellWord::UnknownOne), TargetAccess::Write);
        }
    }
}
