//! Programs that are known to write files, and which.

use super::judge::{Context, Judge};
use super::options::likely;
use super::{Access, Word};

/// Which of its operands a program writes.
enum Which {
    All(Access),
    /// All but the first, which says how.
    AllButFirst(Access),
    /// The last is written; with `true`, the others are gone afterwards.
    Last {
        moves: bool,
    },
}

struct Writer {
    names: &'static str,
    options: &'static str,
    which: Which,
}

const COPYING: &str = "-a -b -d -f -i -l -L -n -p -P -r -R -s -u -v -x -H -Z -t: -T -S: -D -c -C -m: -o: \
                       -g: --archive --backup? --force --interactive --link --no-clobber --preserve? \
                       --recursive --symbolic --update? --verbose --target-directory: \
                       --no-target-directory --parents --reflink? --sparse: --suffix: --relative \
                       --dereference --no-dereference --mode: --owner: --group: --strip --no-preserve: \
                       --one-file-system";

const WRITERS: &[Writer] = &[
    Writer {
        names: "rm unlink shred",
        options: "-d -f -i -I -r -R -v -u -z -n: --force --recursive --verbose --dir --interactive? \
                  --one-file-system --preserve-root? --no-preserve-root",
        which: Which::All(Access::Delete),
    },
    Writer {
        names: "rmdir",
        options: "-p -v --parents --verbose --ignore-fail-on-non-empty",
        which: Which::All(Access::Delete),
    },
    Writer {
        names: "mkdir mkfifo mknod",
        options: "-p -v -m: -Z --parents --verbose --mode:",
        which: Which::All(Access::Create),
    },
    Writer {
        names: "touch",
        options: "-a -c -f -h -m -d: -r: -t: --no-create --date: --reference: --time: --no-dereference",
        which: Which::All(Access::Create),
    },
    Writer {
        names: "tee",
        options: "-a -i -p --append --ignore-interrupts --output-error?",
        which: Which::All(Access::Write),
    },
    Writer {
        names: "truncate",
        options: "-c -o -r: -s: --no-create --io-blocks --reference: --size:",
        which: Which::All(Access::Write),
    },
    Writer {
        names: "chmod chown chgrp",
        options: "-c -f -v -h -H -L -P -R --changes --silent --quiet --verbose --recursive \
                  --no-dereference --from: --reference: --preserve-root --no-preserve-root",
        which: Which::AllButFirst(Access::Change),
    },
    Writer { names: "mv", options: COPYING, which: Which::Last { moves: true } },
    Writer { names: "cp ln install link", options: COPYING, which: Which::Last { moves: false } },
];

pub(super) fn judge(judge: &mut Judge<'_>, program: &str, words: &[Word], context: &Context) {
    let name = program.rsplit('/').next().unwrap_or(program);
    match name {
        "dd" => return dd(judge, words),
        "curl" => {
            let keeps_name = words.iter().filter_map(Word::known).any(|word| {
                word.starts_with("--remote-name")
                    || word.starts_with('-') && !word.starts_with("--") && word.contains('O')
            });
            if keeps_name {
                downloads(judge, words);
            }
            return output(judge, words, &["-o", "--output"]);
        }
        "wget" => {
            downloads(judge, words);
            return output(judge, words, &["-O", "--output-document"]);
        }
        "patch" => return patched(judge, context),
        "git" if words.iter().any(|word| word.could_be("apply") || word.could_be("am")) => {
            return patched(judge, context);
        }
        // The names are made by it.
        "split" | "csplit" | "ed" | "red" => return judge.touches(Word::Any, Access::Write),
        "sort" => return output(judge, words, &["-o", "--output"]),
        _ => {}
    }
    let Some(writer) = WRITERS.iter().find(|writer| writer.names.split(' ').any(|own| own == name)) else {
        return;
    };
    let Ok(taken) = likely(writer.options, words) else {
        // Which of the words are files is not certain: any could be.
        words
            .iter()
            .filter(|word| word.known().is_none_or(|word| !word.starts_with('-')))
            .for_each(|word| judge.touches(word.clone(), Access::Write));
        return judge.touches(Word::Any, Access::Write);
    };
    let target = taken.values(&["-t", "--target-directory"]).next_back().cloned();
    let mut operands = taken.operands.clone();
    match &writer.which {
        Which::All(access) => {
            let access =
                if taken.has(&["-a", "--append"]) && name == "tee" { Access::Append } else { *access };
            operands.into_iter().for_each(|path| judge.touches(path, access));
        }
        Which::AllButFirst(access) => {
            let skipped = usize::from(!taken.has(&["--reference"]));
            operands.into_iter().skip(skipped).for_each(|path| judge.touches(path, *access));
        }
        Which::Last { moves } => {
            let Some(target) = target.or_else(|| operands.pop()) else { return };
            for source in operands {
                judge.touches(inside(&target, &source), Access::Write);
                if *moves {
                    judge.touches(source, Access::Delete);
                }
            }
            judge.touches(target, Access::Write);
        }
    }
}

/// What a file is called if the target is a folder.
fn inside(folder: &Word, source: &Word) -> Word {
    match (folder, source) {
        (Word::Known(folder), Word::Known(source)) => {
            let name = source.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            Word::Known(format!("{}/{name}", folder.trim_end_matches('/')))
        }
        _ => Word::One,
    }
}

fn dd(judge: &mut Judge<'_>, words: &[Word]) {
    for word in words {
        match word.known() {
            Some(text) => {
                if let Some(path) = text.strip_prefix("of=") {
                    judge.touches(Word::Known(path.to_owned()), Access::Write);
                }
            }
            None => judge.touches(Word::One, Access::Write),
        }
    }
}

/// Programs that write to a file with the last name of an address.
fn downloads(judge: &mut Judge<'_>, words: &[Word]) {
    for word in words.iter().filter(|word| word.known().is_none_or(|word| !word.starts_with('-'))) {
        let name = word.known().and_then(|address| address.split(['?', '#']).next()?.rsplit('/').next());
        judge.touches(name.map_or(Word::One, |name| Word::Known(name.to_owned())), Access::Write);
    }
}

/// The files that a patch writes, if it stands in the text.
fn patched(judge: &mut Judge<'_>, context: &Context) {
    for line in context.input.iter().flat_map(|input| input.lines()) {
        if let Some(path) = line.strip_prefix("+++ ").or_else(|| line.strip_prefix("rename to ")) {
            let path = path.split('\t').next().unwrap_or_default().trim();
            judge.touches(Word::Known(path.to_owned()), Access::Write);
        }
    }
}

/// Programs that write to a file if an option says so.
fn output(judge: &mut Judge<'_>, words: &[Word], names: &[&str]) {
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
            judge.touches(Word::Known(path.to_owned()), Access::Write);
        } else if is_cluster || is_begin || names.contains(&text) {
            judge.touches(words.get(at + 1).cloned().unwrap_or(Word::One), Access::Write);
        }
    }
}
