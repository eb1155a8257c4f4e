//! `tar`, which can run programs for each file, for each checkpoint, and to compress.

use super::known;
use crate::shell::analyzer::{CommandAnalyzer, ProgramAnalysis, ShellRunContext};
use crate::shell::options::parse_options;
use crate::shell::{RunManner, ShellDialect, ShellWord, TargetAccess};

const TAR_OPTIONS: &str = "-A -c -d -r -t -u -x -a -B -G -h -i -j -J -k -l -m -M -n -o -O -p -P -R -s -S -U \
                       -v -w -W -z -Z -b: -C: -f: -g: -H: -I: -K: -L: -N: -T: -V: -X: --create --extract \
                       --get --list --append --update --diff --compare --delete --verbose --gzip \
                       --gunzip --bzip2 --xz --zstd --lzma --lzip --file: --directory: --exclude: \
                       --exclude-vcs --exclude-from: --files-from: --strip-components: --transform: \
                       --no-same-owner --same-owner --no-same-permissions --preserve-permissions \
                       --keep-old-files --overwrite --touch --to-stdout --wildcards --no-wildcards \
                       --anchored --no-recursion --recursion --dereference --auto-compress --null \
                       --totals --sparse --owner: --group: --mode: --mtime: --sort: --format: \
                       --checkpoint? --absolute-names --one-file-system --newer: --numeric-owner \
                       --use-compress-program: --to-command: --checkpoint-action: --skip-old-files \
                       --unlink-first --remove-files --verify --no-xattrs --xattrs --acls --selinux \
                       --zstd --warning: --full-time --show-transformed-names --exclude-caches --version \
                       --help";

pub(super) fn tar(
    judge: &mut CommandAnalyzer<'_>,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let taken = parse_options(TAR_OPTIONS, &with_dash(words)?)?;
    let inner = context.via("tar", RunManner::Plain).in_dialect(ShellDialect::Posix);
    for script in taken.values(&["--to-command"]) {
        judge.script(known(script)?, &inner);
    }
    for program in taken.values(&["-I", "--use-compress-program"]) {
        judge.script(known(program)?, &inner);
    }
    for action in taken.values(&["--checkpoint-action"]) {
        match known(action)?.split_once('=') {
            Some(("exec", script)) => judge.script(script, &inner),
            _ if matches!(known(action)?, "echo" | "dot" | "bell" | "totals") => {}
            _ => return Err("what it does at a checkpoint is not understood".to_owned()),
        }
    }
    if taken.has(&["--transform"]) {
        judge.touches(ShellWord::UnknownOne, TargetAccess::Write);
    }
    if taken.has(&["-x", "--extract", "--get"]) && !taken.has(&["-O", "--to-stdout"]) {
        let folder = taken.values(&["-C", "--directory"]).next_back().cloned();
        judge.touches(folder.unwrap_or_else(|| ShellWord::Known(".".to_owned())), TargetAccess::Create);
    }
    if taken.has(&["-c", "--create", "-r", "--append", "-u", "--update"]) {
        let archives: Vec<ShellWord> =
            taken.values(&["-f", "--file"]).filter(|file| file.known() != Some("-")).cloned().collect();
        archives.into_iter().for_each(|archive| judge.touches(archive, TargetAccess::Write));
    }
    Ok(false)
}

/// The old way to write options: `tar xzf file`. Their values follow in the order of the letters.
fn with_dash(words: &[ShellWord]) -> Result<Vec<ShellWord>, String> {
    let Some((ShellWord::Known(first), rest)) = words.split_first() else { return Ok(words.to_vec()) };
    if first.starts_with('-') {
        return Ok(words.to_vec());
    }
    let mut rest = rest.iter();
    let mut written = Vec::new();
    for letter in first.chars() {
        written.push(ShellWord::Known(format!("-{letter}")));
        if "bCfgHIKLNTVXF".contains(letter) {
            written.push(rest.next().ok_or("its options have no values")?.clone());
        }
    }
    written.extend(rest.cloned());
    Ok(written)
}
