//! Programs that only run another one, a row each.

use super::{joined, known};
use crate::shell::analyzer::{CommandAnalyzer, ProgramAnalysis, ShellRunContext};
use crate::shell::options::parse_leading_options;
use crate::shell::{RunManner, ShellDialect, ShellWord, TargetAccess};

/// How a program runs another.
struct RunnerProgram {
    names: &'static str,
    /// See [`crate::shell::options`].
    options: &'static str,
    /// How many words stand before the command.
    operands: usize,
    form: RunnerForm,
    manner: RunnerManner,
}

enum RunnerForm {
    /// The words are the command. Without one, nothing runs.
    Command,
    /// The same, but without a command it starts a shell.
    CommandOrShell,
}

enum RunnerManner {
    Plain,
    OtherUser,
    Elsewhere,
    Later,
}

const fn plain(names: &'static str, options: &'static str, operands: usize) -> RunnerProgram {
    RunnerProgram { names, options, operands, form: RunnerForm::Command, manner: RunnerManner::Plain }
}

const RUNNERS: &[RunnerProgram] = &[
    plain("nohup", "", 0),
    plain("nice gnice", "-n: --adjustment: -#", 0),
    plain("ionice", "-c: -n: -t --class: --classdata: --ignore", 0),
    plain(
        "timeout gtimeout",
        "-k: -s: -v -f -p --foreground --kill-after: --preserve-status --signal: --verbose",
        1,
    ),
    plain("stdbuf gstdbuf", "-i: -o: -e: --input: --output: --error:", 0),
    plain("setsid", "-c -f -w --ctty --fork --wait", 0),
    plain(
        "time gtime",
        "-a -p -q -v -o: -f: --append --portability --quiet --verbose --output: --format:",
        0,
    ),
    plain(
        "chrt",
        "-b -d -f -i -o -r -R -v -T: -P: -D: --batch --deadline --fifo --idle --other --rr \
         --reset-on-fork --verbose",
        1,
    ),
    plain("taskset", "-a -c --all-tasks --cpu-list", 1),
    plain("linux32 linux64 i386 x86_64", "-v -R -3 -B -F -I -L -S -T -X -Z --addr-no-randomize --verbose", 0),
    plain(
        "numactl",
        "-i: -N: -m: -C: -l -b --interleave: --cpunodebind: --membind: --physcpubind: --localalloc",
        0,
    ),
    plain("prlimit", "-n: -c: -v: -s: -t: -u: --nofile: --core: --as: --stack: --cpu: --nproc:", 0),
    plain("cpulimit", "-l: -m -z -i -f --limit: --foreground", 0),
    plain("caffeinate", "-d -i -m -s -u -t:", 0),
    plain(
        "strace",
        "-f -c -C -t -r -T -y -v -q -x -i -k -n -z -Z -e: -o: -s: -P: -S: -u: -E: -I: -O: -X: -a: -b: \
         -U:",
        0,
    ),
    plain("ltrace", "-f -c -C -i -r -S -t -T -a: -e: -l: -n: -o: -s: -x:", 0),
    plain("catchsegv", "", 0),
    plain("unbuffer", "-p", 0),
    plain("fakeroot", "-u -b: -i: -s: --unknown-is-real", 0),
    plain("dbus-run-session", "--config-file: --dbus-daemon:", 0),
    plain("chronic", "-e -v", 0),
    plain("systemd-inhibit", "--what: --who: --why: --mode:", 0),
    RunnerProgram { form: RunnerForm::CommandOrShell, ..plain("ssh-agent", "-c -s -d -D -a: -E: -t:", 0) },
    RunnerProgram {
        manner: RunnerManner::Elsewhere,
        form: RunnerForm::CommandOrShell,
        ..plain("chroot", "--userspec: --groups: --skip-chdir", 1)
    },
    RunnerProgram {
        manner: RunnerManner::Elsewhere,
        form: RunnerForm::CommandOrShell,
        ..plain(
            "unshare",
            "-m? -u? -i? -n? -p? -U? -C? -T? -f -r -c -R: -w: -S: -G: --mount? --uts? --ipc? --net? \
             --pid? --user? --cgroup? --time? --fork --map-root-user --map-current-user --map-auto \
             --kill-child? --mount-proc? --root: --wd: --setuid: --setgid: --propagation:",
            0,
        )
    },
    RunnerProgram {
        manner: RunnerManner::Elsewhere,
        form: RunnerForm::CommandOrShell,
        ..plain(
            "nsenter",
            "-a -t: -m? -u? -i? -n? -p? -U? -C? -T? -r? -w? -F -Z -S: -G: --all --target: --mount? \
             --uts? --ipc? --net? --pid? --user? --cgroup? --time? --root? --wd? --no-fork --setuid: \
             --setgid: --preserve-credentials",
            0,
        )
    },
    RunnerProgram {
        manner: RunnerManner::OtherUser,
        form: RunnerForm::CommandOrShell,
        ..plain("doas", "-n -s -L -a: -C: -u:", 0)
    },
    RunnerProgram {
        manner: RunnerManner::OtherUser,
        form: RunnerForm::CommandOrShell,
        ..plain("pkexec", "--user: --disable-internal-agent --keep-cwd", 0)
    },
    RunnerProgram { manner: RunnerManner::OtherUser, ..plain("gosu su-exec", "", 1) },
    RunnerProgram {
        manner: RunnerManner::OtherUser,
        ..plain(
            "setpriv",
            "--reuid: --regid: --ruid: --euid: --rgid: --egid: --clear-groups --keep-groups \
             --init-groups --groups: --no-new-privs --nnp --inh-caps: --ambient-caps: --bounding-set: \
             --securebits: --pdeathsig: --reset-env",
            0,
        )
    },
    RunnerProgram {
        manner: RunnerManner::Later,
        ..plain(
            "systemd-run",
            "-p: -u: -d -P -t -q -G -r -E: --property: --unit: --user --system --scope --wait --pty \
             --pipe --quiet --collect --uid: --gid: --nice: --working-directory: --same-dir --setenv: \
             --slice: --description: --remain-after-exit --no-block --no-ask-password --on-active: \
             --on-boot: --on-startup: --on-unit-active: --on-unit-inactive: --on-calendar: \
             --timer-property: --service-type:",
            0,
        )
    },
];

pub(super) fn analyze_runner(
    judge: &mut CommandAnalyzer<'_>,
    name: &str,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    match name {
        "watch" => return watch(judge, words, context),
        "entr" => return entr(judge, words, context),
        "setarch" => return setarch(judge, words, context),
        _ => {}
    }
    let Some(runner) = RUNNERS.iter().find(|runner| runner.names.split(' ').any(|own| own == name)) else {
        return Ok(false);
    };
    let taken = parse_leading_options(runner.options, words)?;
    let is_file = |word: &ShellWord| word.known().is_some_and(|word| !word.starts_with(['|', '!']));
    if name == "strace" && !taken.values(&["-o"]).all(is_file) {
        return Err("its output may go to a program".to_owned());
    }
    if taken.has(&["--dbus-daemon", "--config-file"]) {
        return Err("an option of it names another program".to_owned());
    }
    if matches!(name, "time" | "gtime" | "strace" | "ltrace") {
        taken.values(&["-o", "--output"]).for_each(|file| judge.touches(file.clone(), TargetAccess::Write));
    }
    let (before, command) = taken.operands.split_at(runner.operands.min(taken.operands.len()));
    // A word that can't be known could be an option, or several words, and the command would begin elsewhere.
    if before
        .iter()
        .any(|word| word.known().is_none() && !word.is_no_option() || matches!(word, ShellWord::Pattern(_)))
    {
        return Err("the command that it runs can't be known".to_owned());
    }
    // Some versions can do without a number or a time there.
    let wants_number = matches!(name, "timeout" | "gtimeout" | "chrt" | "taskset");
    let is_number = |word: &ShellWord| {
        word.known().is_some_and(|word| word.starts_with(|char: char| char.is_ascii_digit() || char == '.'))
    };
    if wants_number && !before.iter().all(is_number) {
        return Err("the command that it runs can't be known".to_owned());
    }
    let manner = match runner.manner {
        RunnerManner::Plain => RunManner::Plain,
        RunnerManner::OtherUser => RunManner::OtherUser,
        RunnerManner::Elsewhere => {
            RunManner::Elsewhere(before.first().and_then(ShellWord::known).map(str::to_owned))
        }
        RunnerManner::Later => RunManner::Later,
    };
    let context = context.via(name, manner);
    match (&runner.form, command) {
        (RunnerForm::CommandOrShell, []) => Err("it starts a shell".to_owned()),
        (RunnerForm::Command | RunnerForm::CommandOrShell, command) => {
            judge.run(command.to_vec(), &context);
            Ok(true)
        }
    }
}

fn watch(judge: &mut CommandAnalyzer<'_>, words: &[ShellWord], context: &ShellRunContext) -> ProgramAnalysis {
    let options = "-b -c -C -d? -e -f -g -n: -p -q: -r -t -w -x --beep --color --no-color --differences? \
                   --errexit --follow --chgexit --interval: --precise --equexit: --no-rerun --no-title \
                   --no-wrap --exec";
    let taken = parse_leading_options(options, words)?;
    let context = context.via("watch", RunManner::Plain);
    if taken.has(&["-x", "--exec"]) {
        judge.run(taken.operands, &context);
    } else {
        judge.script(&joined(&taken.operands)?, &context.in_dialect(ShellDialect::Posix));
    }
    Ok(true)
}

/// The architecture may be left out: only one that is known is certain to be one. Options stand before and after it.
fn setarch(
    judge: &mut CommandAnalyzer<'_>,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let options = "-v -R -3 -B -F -I -L -S -T -X -Z --addr-no-randomize --verbose";
    let taken = parse_leading_options(options, words)?;
    let known = ["linux32", "linux64", "i386", "i686", "x86_64", "aarch64"];
    match taken.operands.split_first() {
        Some((ShellWord::Known(arch), rest)) if known.contains(&arch.as_str()) => {
            judge.run(
                parse_leading_options(options, rest)?.operands,
                &context.via("setarch", RunManner::Plain),
            );
            Ok(true)
        }
        _ => Err("the command that it runs can't be known".to_owned()),
    }
}

/// `entr` puts the name of a file where `/_` stands.
fn entr(judge: &mut CommandAnalyzer<'_>, words: &[ShellWord], context: &ShellRunContext) -> ProgramAnalysis {
    let taken = parse_leading_options("-a -c -d -n -p -r -s -x -z", words)?;
    let context = context.via("entr", RunManner::Plain);
    if taken.has(&["-s"]) {
        let script = taken.operands.first().map(known).transpose()?.unwrap_or_default();
        judge.script(script, &context.in_dialect(ShellDialect::Posix));
        return Ok(true);
    }
    let place = |word: ShellWord| if word.could_be("/_") { ShellWord::UnknownOne } else { word };
    judge.run(taken.operands.into_iter().map(place).collect(), &context);
    Ok(true)
}
