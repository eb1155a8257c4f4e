//! `make`, which runs what its file says. That is not read, but nothing else may get into it unseen.

use super::{known, maybe_option};
use crate::shell::ShellWord;
use crate::shell::analyzer::{CommandAnalyzer, ProgramAnalysis, ShellRunContext};

/// The files that it looks for.
const DEFAULT_MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];
/// Letters of options that take a value.
const MAKE_LETTERS_WITH_VALUE: &str = "CIjloOW";
/// Variables that say how it runs what it runs.
const MAKE_CONTROL_VARIABLES: [&str; 6] =
    ["SHELL", ".SHELLFLAGS", "MAKE", "MAKEFILES", "MAKEFLAGS", "GNUMAKEFLAGS"];

pub(super) fn make(
    judge: &mut CommandAnalyzer<'_>,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let mut rest = words.iter();
    let mut has_file = false;
    while let Some(word) = rest.next() {
        let Some(text) = maybe_option(word)? else { continue };
        let Some(attached) = option(text)? else { continue };
        let file = attached.map(|file| ShellWord::Known(file.to_owned())).or_else(|| rest.next().cloned());
        let file = file.ok_or("its file is not named")?;
        let name = known(&file)?;
        if name == "-" || name.starts_with("/dev/") || name.starts_with("/proc/") {
            return Err("it runs what it reads from its input".to_owned());
        }
        judge.scripts.push((file, context.span()));
        has_file = true;
    }
    if !has_file {
        judge
            .implied
            .extend(DEFAULT_MAKEFILES.map(|file| (ShellWord::Known(file.to_owned()), context.span())));
    }
    Ok(false)
}

/// For an option that names a file: the name, where it is attached.
fn option(text: &str) -> Result<Option<Option<&str>>, String> {
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    let is_begin_of = |option: &str| name.len() > 2 && option.starts_with(name);
    let letters = text.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    let flags =
        letters.and_then(|letters| letters.split(|letter| MAKE_LETTERS_WITH_VALUE.contains(letter)).next());
    let flags = flags.unwrap_or_default();
    if is_begin_of("--eval") || flags.contains('E') {
        return Err(format!("its option {name} runs a program"));
    }
    if is_begin_of("--file") || is_begin_of("--makefile") {
        return Ok(Some(value));
    }
    if flags.contains('f') {
        let attached = letters.and_then(|letters| letters.split_once('f')).map(|(_, file)| file);
        return Ok(Some(attached.filter(|file| !file.is_empty())));
    }
    let decides = |name: &str| {
        name.ends_with('!') || MAKE_CONTROL_VARIABLES.contains(&name.trim_end_matches([':', '+', '?']))
    };
    if text.contains('$') || value.is_some() && decides(name.trim_end()) {
        return Err(format!("its variable {name} may run something"));
    }
    Ok(None)
}
