//! What can be said only when everything has been read.

use super::CommandAnalyzer;
use crate::shell::{CommandAnalysis, ShellWord, TargetAccess, UnknownConstruct};

/// More reasons than a person reads are left out.
const MAX_REPORTED_UNKNOWNS: usize = 20;

pub(super) fn finish_analysis(mut judge: CommandAnalyzer<'_>) -> CommandAnalysis {
    for span in judge.taint.dangerous() {
        let reason = "the shell calculates with a value that can't be known and could be code".to_owned();
        judge.reading.unknown.push(UnknownConstruct { reason, span });
    }
    declared_arrays(&mut judge);
    written_programs(&mut judge);
    written_settings(&mut judge);
    if judge.taint.is_assigned("HOME") {
        forget_home(&mut judge.reading);
    }
    let mut reading = judge.reading;
    for command in &mut reading.commands {
        let is_function = command.program().is_some_and(|program| judge.functions.contains(program));
        command.only_runs_others &= !is_function;
    }
    let mut seen = Vec::new();
    reading.unknown.retain(|unknown| {
        let is_new = !seen.contains(unknown) && seen.len() < MAX_REPORTED_UNKNOWNS;
        if is_new {
            seen.push(unknown.clone());
        }
        is_new
    });
    reading
}

/// What `declare` gives to an array is expanded once more if it looks like one.
fn declared_arrays(judge: &mut CommandAnalyzer<'_>) {
    for (name, span) in &judge.declared {
        if judge.arrays.contains(name) {
            let reason = format!("the array {name} is set from a text that could be code");
            judge.reading.unknown.push(UnknownConstruct { reason, span: span.clone() });
        }
    }
}

/// A file that the command itself writes and runs holds code that nobody has read.
fn written_programs(judge: &mut CommandAnalyzer<'_>) {
    let reading = &judge.reading;
    let named = reading.commands.iter().filter_map(|command| Some((command.argv.first()?, &command.span)));
    let scripts = judge.scripts.iter().chain(&judge.implied).map(|(script, span)| (script, span));
    let mut unknown = Vec::new();
    for (program, span) in named.chain(scripts) {
        let (ShellWord::Known(path) | ShellWord::Home(path)) = program else { continue };
        let is_path = path.contains('/') || judge.scripts.iter().any(|(script, _)| script == program);
        let is_written = reading.writes.iter().any(|target| {
            let has_content = matches!(target.access, TargetAccess::Write | TargetAccess::Append);
            has_content && same_name(&target.path, path, is_path)
        });
        if is_written {
            unknown.push(UnknownConstruct {
                reason: format!("{path} is run and may be written by the same command"),
                span: span.clone(),
            });
        }
    }
    judge.reading.unknown.extend(unknown);
}

/// Git runs what its settings and hooks say: those that the command itself writes nobody has read.
fn written_settings(judge: &mut CommandAnalyzer<'_>) {
    let reading = &judge.reading;
    let is_gits = |word: &ShellWord| match word {
        ShellWord::Known(path)
        | ShellWord::Pattern(path)
        | ShellWord::Home(path)
        | ShellWord::Prefix(path) => path.split('/').any(|name| {
            matches!(name, ".git" | ".gitconfig") || name == "git" && path.contains(".config/git")
        }),
        ShellWord::UnknownOne | ShellWord::UnknownMany => false,
    };
    let has_content = |access| matches!(access, TargetAccess::Write | TargetAccess::Append);
    let mut written =
        reading.writes.iter().filter(|target| has_content(target.access)).map(|target| &target.path);
    let is_within = reading.folders.iter().any(is_gits);
    if !written.any(|path| is_within || is_gits(path)) {
        return;
    }
    let is_git = |program: &str| program.rsplit('/').next() == Some("git");
    let git = reading.commands.iter().find(|command| command.program().is_some_and(is_git));
    if let Some(span) = git.map(|command| command.span.clone()) {
        let reason = "git is run and its settings or hooks may be written by the same command".to_owned();
        judge.reading.unknown.push(UnknownConstruct { reason, span });
    }
}

/// Whether both could be the same file. Only a path can be one whose name is not known.
fn same_name(written: &ShellWord, run: &str, is_path: bool) -> bool {
    let name = |path: &str| path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
    match written {
        ShellWord::Known(path) | ShellWord::Home(path) => name(path) == name(run),
        ShellWord::Pattern(_) | ShellWord::Prefix(_) | ShellWord::UnknownOne | ShellWord::UnknownMany => {
            is_path
        }
    }
}

fn forget_home(reading: &mut CommandAnalysis) {
    for command in
        reading.commands.iter().filter(|command| matches!(command.argv.first(), Some(ShellWord::Home(_))))
    {
        let reason = "the name of the program can't be known".to_owned();
        reading.unknown.push(UnknownConstruct { reason, span: command.span.clone() });
    }
    let words = reading.commands.iter_mut().flat_map(|command| &mut command.argv);
    let paths = reading.writes.iter_mut().chain(&mut reading.reads).map(|target| &mut target.path);
    for word in words.chain(paths).chain(&mut reading.folders) {
        if matches!(word, ShellWord::Home(_)) {
            *word = ShellWord::UnknownOne;
        }
    }
}
