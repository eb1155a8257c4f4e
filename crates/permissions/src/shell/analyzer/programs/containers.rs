//! Commands inside containers.

use crate::shell::analyzer::{CommandAnalyzer, ProgramAnalysis, ShellRunContext};
use crate::shell::options::parse_leading_options;
use crate::shell::{RunManner, ShellWord};

const DOCKER_GLOBAL_OPTIONS: &str = "-D -c: -H: -l: -v --config: --context: --debug --host: --log-level: --tls \
                      --tlscacert: --tlscert: --tlskey: --tlsverify";
const DOCKER_EXEC_OPTIONS: &str = "-d -e: -i -t -u: -w: --detach --detach-keys: --env: --env-file: --interactive \
                    --privileged --tty --user: --workdir:";
const DOCKER_RUN_OPTIONS: &str = "-a: -c: -d -e: -h: -i -l: -m: -p: -P -q -t -u: -v: -w: --add-host: --attach: \
                   --cap-add: --cap-drop: --cpus: --detach --device: --dns: --entrypoint: --env: \
                   --env-file: --expose: --gpus: --group-add: --hostname: --init --interactive --ip: \
                   --ipc: --label: --link: --log-driver: --log-opt: --mac-address: --memory: --mount: \
                   --name: --net: --network: --network-alias: --no-healthcheck --pid: --platform: \
                   --privileged --publish: --publish-all --pull: --quiet --read-only --restart: --rm \
                   --runtime: --security-opt: --shm-size: --stop-signal: --sysctl: --tmpfs: --tty \
                   --ulimit: --user: --userns: --uts: --volume: --volumes-from: --workdir: \
                   --cpuset-cpus: --memory-swap: --pids-limit:";

pub(super) fn docker(
    judge: &mut CommandAnalyzer<'_>,
    name: &str,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let taken = parse_leading_options(DOCKER_GLOBAL_OPTIONS, words)?;
    let mut rest = taken.operands.as_slice();
    if rest.first().and_then(ShellWord::known) == Some("container") {
        rest = rest.get(1..).unwrap_or_default();
    }
    let Some((action, rest)) = rest.split_first() else { return Ok(false) };
    let options = match action.known() {
        Some("exec") => DOCKER_EXEC_OPTIONS,
        Some("run" | "create") => DOCKER_RUN_OPTIONS,
        Some("compose") => return compose(judge, name, rest, context),
        Some(_) => return Ok(false),
        None => return Err("what it does can't be known".to_owned()),
    };
    let taken = parse_leading_options(options, rest)?;
    let entry = taken.values(&["--entrypoint"]).next_back().cloned();
    inside(judge, name, entry, &taken.operands, context)
}

/// A container or image, and the command in it.
fn inside(
    judge: &mut CommandAnalyzer<'_>,
    name: &str,
    entry: Option<ShellWord>,
    operands: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let Some((place, command)) = operands.split_first() else { return Ok(false) };
    if !place.is_no_option() && command.is_empty() {
        return Ok(false);
    }
    if !place.is_no_option() || matches!(place, ShellWord::Pattern(_)) {
        return Err("the command that it runs can't be known".to_owned());
    }
    let place = place.known().map(str::to_owned);
    let command: Vec<ShellWord> = entry.into_iter().chain(command.iter().cloned()).collect();
    judge.run(command, &context.via(name, RunManner::Elsewhere(place)));
    // The container itself is more than its command: what it may reach stands in the options.
    Ok(false)
}

fn compose(
    judge: &mut CommandAnalyzer<'_>,
    name: &str,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let taken = parse_leading_options(
        "-f: -p: --file: --project-name: --profile: --env-file: --project-directory: --ansi: \
         --compatibility",
        words,
    )?;
    let Some((action, rest)) = taken.operands.split_first() else { return Ok(false) };
    let options = match action.known() {
        Some("exec") => {
            "-d -e: -T -u: -w: -i -t --detach --env: --index: --no-TTY --privileged --user: --workdir: \
             --interactive --tty"
        }
        Some("run") => {
            "-d -e: -i -l: -p: -P -q -T -u: -v: -w: --build --detach --entrypoint: --env: --name: \
             --no-deps --no-TTY --publish: --rm --service-ports --user: --volume: --workdir:"
        }
        Some(_) => return Ok(false),
        None => return Err("what it does can't be known".to_owned()),
    };
    let taken = parse_leading_options(options, rest)?;
    let entry = taken.values(&["--entrypoint"]).next_back().cloned();
    inside(judge, name, entry, &taken.operands, context)
}

/// Only what stands after `--` is a command.
pub(super) fn kubectl(
    judge: &mut CommandAnalyzer<'_>,
    name: &str,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let runs =
        words.iter().any(|word| word.could_be("exec") || word.could_be("run") || word.could_be("debug"));
    if !runs {
        return Ok(false);
    }
    let Some(at) = words.iter().position(|word| word.known() == Some("--")) else {
        return Err("the command that it runs can't be known".to_owned());
    };
    judge.run(
        words.get(at + 1..).unwrap_or_default().to_vec(),
        &context.via(name, RunManner::Elsewhere(None)),
    );
    Ok(false)
}
