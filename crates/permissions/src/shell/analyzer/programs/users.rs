//! Programs that run others as somebody else, at another time, or under watch.

use super::shells::run_with_variables;
use super::{joined, known};
use crate::shell::analyzer::{CommandAnalyzer, ProgramAnalysis, ShellRunContext};
use crate::shell::options::{parse_leading_options, parse_options};
use crate::shell::{RunManner, ShellDialect, ShellWord, TargetAccess};

pub(super) fn sudo(
    judge: &mut CommandAnalyzer<'_>,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let options = "-A -b -B -E -e -H -K -k -l -N -n -P -S -V -v -i -s -u: -g: -p: -C: -D: -h: -R: -r: \
                   -T: -t: -U: -a: --askpass --background --bell --preserve-env? --edit --set-home \
                   --login --remove-timestamp --reset-timestamp --list --non-interactive --no-update \
                   --preserve-groups --stdin --shell --validate --version --user: --group: --prompt: \
                   --close-from: --chdir: --host: --chroot: --role: --type: --command-timeout: \
                   --other-user:";
    let taken = parse_leading_options(options, words)?;
    judge.reading.folders.extend(taken.values(&["-D", "--chdir"]).cloned());
    if taken.has(&["-e", "--edit", "-R", "--chroot"]) {
        return Err("it edits files or runs elsewhere".to_owned());
    }
    let opens_shell = taken.has(&["-i", "-s", "--login", "--shell"]);
    if opens_shell && taken.operands.is_empty() {
        return Err("it starts a shell".to_owned());
    }
    run_with_variables(judge, taken.operands, &context.via("sudo", RunManner::OtherUser))?;
    Ok(true)
}

pub(super) fn su(
    judge: &mut CommandAnalyzer<'_>,
    name: &str,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let options = "-c: -f -g: -G: -l -m -p -P -s: -T -u: -w: --command: --session-command: --fast \
                   --group: --supp-group: --login --preserve-environment --pty --no-pty --shell: --user: \
                   --whitelist-environment:";
    let inner = context.via(name, RunManner::OtherUser);
    let taken = if name == "runuser" {
        parse_leading_options(options, words)?
    } else {
        parse_options(options, words)?
    };
    if taken.has(&["-s", "--shell"]) {
        return Err("it runs another shell".to_owned());
    }
    if name == "runuser" && taken.has(&["-u", "--user"]) {
        judge.run(taken.operands, &inner);
        return Ok(true);
    }
    let script =
        taken.values(&["-c", "--command", "--session-command"]).next_back().ok_or("it starts a shell")?;
    // With several, or with words after the user, it is not certain what the shell gets.
    let users = taken.operands.iter().filter(|word| word.known() != Some("-")).count();
    if taken.options.iter().filter(|(name, _)| name.contains('c')).count() > 1
        || users > 1
        || name == "runuser" && users > 0
    {
        return Err("the command that it runs can't be known".to_owned());
    }
    judge.script(known(script)?, &inner.in_dialect(ShellDialect::Posix));
    Ok(true)
}

pub(super) fn crontab(words: &[ShellWord]) -> ProgramAnalysis {
    let only_looks = words.iter().any(|word| word.known() == Some("-l"));
    if only_looks { Ok(false) } else { Err("it runs later what is not read here".to_owned()) }
}

/// `at` runs later what it reads now.
pub(super) fn at(
    judge: &mut CommandAnalyzer<'_>,
    name: &str,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let only_looks = words.iter().any(|word| matches!(word.known(), Some("-l" | "-d" | "-r" | "-c" | "-V")));
    if only_looks {
        return Ok(false);
    }
    let script = context.input.clone().ok_or("it runs later what is not read here")?;
    judge.script(&script, &context.via(name, RunManner::Later).in_dialect(ShellDialect::Posix));
    Ok(true)
}

pub(super) fn flock(
    judge: &mut CommandAnalyzer<'_>,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let options = "-s -x -e -u -n -w: -E: -o -F -v --shared --exclusive --unlock --nonblock --nb \
                   --timeout: --wait: --conflict-exit-code: --close --no-fork --verbose";
    let taken = parse_leading_options(options, words)?;
    let Some((file, command)) = taken.operands.split_first() else { return Ok(false) };
    if !file.is_no_option() || matches!(file, ShellWord::Pattern(_)) {
        return Err("its file can't be known".to_owned());
    }
    judge.touches(file.clone(), TargetAccess::Create);
    let context = context.via("flock", RunManner::Plain);
    match command {
        [ShellWord::Known(option), script] if option == "-c" || option == "--command" => {
            judge.script(known(script)?, &context.in_dialect(ShellDialect::Posix));
        }
        [first, ..] if !first.is_no_option() => {
            return Err("the command that it runs can't be known".to_owned());
        }
        command => judge.run(command.to_vec(), &context),
    }
    Ok(true)
}

/// `script -c command file` records what a command shows.
pub(super) fn script(
    judge: &mut CommandAnalyzer<'_>,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let options = "-a -c: -e -f -q -t? -E: -I: -O: -B: -T: -m: -o: --append --command: --return --flush \
                   --quiet --echo: --log-in: --log-out: --log-io: --log-timing: --logging-format: \
                   --output-limit: --timing?";
    let taken = parse_options(options, words)?;
    let scripts: Vec<ShellWord> = taken.values(&["-c", "--command"]).cloned().collect();
    let [script] = scripts.as_slice() else { return Err("it starts a shell".to_owned()) };
    let logs = taken.values(&[
        "-I",
        "-O",
        "-B",
        "-T",
        "--log-in",
        "--log-out",
        "--log-io",
        "--log-timing",
        "--timing",
    ]);
    let files: Vec<ShellWord> = logs.cloned().chain(taken.operands.first().cloned()).collect();
    match files.is_empty() {
        true => judge.touches(ShellWord::Known("typescript".to_owned()), TargetAccess::Write),
        false => files.into_iter().for_each(|file| judge.touches(file, TargetAccess::Write)),
    }
    let context = context.via("script", RunManner::Plain).in_dialect(ShellDialect::Posix);
    judge.script(&joined(std::slice::from_ref(script))?, &context);
    Ok(true)
}
