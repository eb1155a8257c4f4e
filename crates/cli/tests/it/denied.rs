//! Paths that rules deny stay denied whatever program a command uses to reach them.
//!
//! Every way is first tried by a plain shell, without Helve, and counts only if it works there: so each one is a real way on
//! this machine, and one whose program is not installed is left out. Then it is run as a command of the model, and must
//! fail. Where the command as such is refused, the same text is run as a script, so that the sandbox has to hold by itself.
//!
//! One way is known and not listed: a program or a script that reads what git has stored by itself. What is committed is in
//! `.git`, and no mask reaches into its objects.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::home::{Home, Ran};

const RULES: [&str; 4] =
    ["read(./secret.txt)", "read(./private/**)", "read(./deep/down/pass.txt)", "write(./keep/**)"];
/// What stands in each file that must not be read.
const TEXT: &str = "open-sesame";
/// So many ways of each kind have to be tried, on any machine that has the usual programs.
const MIN_WAYS: usize = 60;
/// A command that looks for whatever an earlier one may have left.
const LATER: &str =
    "cat secret.txt private/a private/sub/b deep/down/pass.txt; grep -rs open-sesam[e] . /tmp";

/// Ways to read `secret.txt`, something in `private`, or `deep/down/pass.txt`.
const READS: &[&str] = &[
    // Names.
    "cat secret.txt",
    "cat s*",
    "cat sec?et.t[x]t",
    "cat ./x/../secret.txt",
    "cat \"$PWD/secret.txt\"",
    "f=secret.txt; cat $f",
    "cat 's'ecret\".t\"xt",
    "cat $'\\x73ecret.txt'",
    "cat {secret,nothing}.txt",
    "cat $(printf 'frperg.gkg' | tr a-z n-za-m)",
    "cat `ls | grep secr`",
    "cat private/*",
    "cat ./*/*/pass.txt",
    "shopt -s globstar; cat **/pass.txt",
    "cd private && cat a",
    "cd deep/down; cat pass.txt",
    "cat ../project/secret.txt",
    "cat /proc/self/cwd/secret.txt",
    "cat /proc/$$/cwd/private/a",
    "cat /proc/self/root/$PWD/secret.txt",
    "exec 9<.; cat /proc/self/fd/9/secret.txt",
    // Links, copies and moved folders.
    "ln -s secret.txt l; cat l",
    "ln -s . d; cat d/secret.txt",
    "ln secret.txt h; cat h",
    "cp secret.txt c; cat c",
    "cp -r private c; cat c/a",
    "cp -a . \"$(mktemp -d)/all\" && cat /tmp/*/all/secret.txt",
    "cp -l secret.txt c; cat c",
    "install secret.txt c; cat c",
    "mv secret.txt m; cat m",
    "mv private p2; cat p2/a",
    "mv deep d2; cat d2/down/pass.txt",
    "mkdir n; mv deep n; cat n/deep/down/pass.txt",
    "mv deep d2; mkdir -p deep/down; echo no > deep/down/pass.txt; cat d2/down/pass.txt",
    "cat twin",
    "cat twin-of-private",
    // What the shell itself does.
    "echo \"$(<secret.txt)\"",
    "read -r x < secret.txt; echo $x",
    "mapfile -t x < secret.txt; echo ${x[0]}",
    "exec 5<secret.txt; cat <&5",
    "cat < s*t.txt",
    ". ./secret.txt 2>&1; true",
    "bash secret.txt 2>&1; true",
    "set -- *.txt; for f; do cat \"$f\"; done",
    "eval 'ca''t sec''ret.txt'",
    "sh -c 'cat secret.txt'",
    "cat secret.txt & wait",
    "coproc cat secret.txt; cat <&${COPROC[0]}",
    "cat <(cat secret.txt)",
    "compgen -W \"$(<secret.txt)\"",
    "trap 'cat secret.txt' EXIT",
    "printf 'cat secret.txt\\n' > s.sh; sh s.sh",
    "printf '#!/bin/sh\\ncat private/a\\n' > s; chmod +x s; ./s",
    "sh <<< 'cat secret.txt'",
    "nohup cat secret.txt < /dev/null 2>/dev/null; cat nohup.out 2>/dev/null",
    "setsid -w cat secret.txt",
    "flock . cat secret.txt",
    "script -qc 'cat secret.txt' /dev/null",
    // Programs that print, compare and convert.
    "head -n 9 secret.txt",
    "tail -c 99 secret.txt",
    "tac secret.txt",
    "rev secret.txt",
    "cut -c1- secret.txt",
    "join -v 1 secret.txt /dev/null",
    "sort secret.txt",
    "ptx secret.txt",
    "sort -um private/a private/sub/b",
    "gzip -f secret.txt; zcat secret.txt.gz",
    "printf 'all:\\n\\t@cat secret.txt\\n' > Makefile; make -s all",
    "tr a a < secret.txt",
    "tee < secret.txt",
    "split -b 4 secret.txt part-; cat part-*",
    "csplit -s secret.txt 1; cat xx*",
    "strings secret.txt",
    "less secret.txt",
    "iconv -f utf-8 -t utf-16le secret.txt | iconv -f utf-16le",
    "od -An -c secret.txt",
    "od -An -tx1 -w99 secret.txt",
    "xxd secret.txt",
    "base64 secret.txt",
    "openssl base64 -in secret.txt",
    "dd if=secret.txt status=none",
    "diff secret.txt /dev/null",
    "diff -ruN private /nothing 2>/dev/null; diff -ruN private deep",
    "diff -N --line-format=%L nothing secret.txt",
    "grep '' secret.txt",
    "grep -r open .",
    "grep -f secret.txt secret.txt",
    "find . -name 'secret*' -exec cat {} \\;",
    "find . -name pass.txt -execdir cat {} +",
    "find private -type f -print0 | xargs -0 cat",
    "echo secret.txt | xargs cat",
    "ls private/* | xargs -n1 cat",
    "sed '' secret.txt",
    "sed 'R secret.txt' <<< x",
    "sed -n 'w c' secret.txt; cat c",
    "awk 1 secret.txt",
    "awk 'BEGIN { while ((getline x < \"secret.txt\") > 0) print x }'",
    "awk 'BEGIN { system(\"cat private/a\") }'",
    "ed -s secret.txt <<< ,p",
    "vim -es -c '%print' -c 'q!' secret.txt",
    "jq -R . secret.txt",
    // Archives.
    "tar c secret.txt | tar xO",
    "tar cf t.tar private; tar xOf t.tar",
    "tar c . --exclude=.git | tar xO",
    "ar rc t.a secret.txt; ar p t.a",
    "zip -qr z.zip private secret.txt; unzip -p z.zip",
    "gzip -c secret.txt | gunzip",
    "zstd -qc secret.txt | zstd -dc",
    "find private | cpio -o 2>/dev/null | cpio -i --to-stdout 2>/dev/null",
    "rsync -a private/ c/; cat c/a",
    "curl -s file://$PWD/secret.txt",
    // Languages.
    "python3 -c \"print(open('secret.txt').read())\"",
    "python3 -c \"import os; print(os.read(os.open('private/a', 0), 99))\"",
    "python3 -c \"import mmap; f = open('secret.txt'); print(mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)[:])\"",
    "python3 -c \"import shutil; shutil.copytree('private', 'c'); print(open('c/a').read())\"",
    "python3 -c \"import glob; print([open(f).read() for f in glob.glob('**/pass.txt', recursive=True)])\"",
    "python3 -c \"import os; os.rename('deep', 'd2'); print(open('d2/down/pass.txt').read())\"",
    "python3 -c \"import os; os.link('secret.txt', 'h'); print(open('h').read())\"",
    "python3 -c \"import os; f = os.open('deep', 0); print(os.read(os.open('down/pass.txt', 0, dir_fd=f), 99))\"",
    "python3 -c \"import ctypes, os; os.mkdir('e'); ctypes.CDLL(None).renameat2(-100, b'private', -100, b'e', 2); print(open('e/a').read())\"",
    "python3 -c \"import subprocess; print(subprocess.check_output('cat secret.txt', shell=True))\"",
    "python3 -m zipfile -c z.zip secret.txt; python3 -m zipfile -e z.zip o; cat o/*",
    "python3 secret.txt 2>&1; true",
    "perl -pe1 secret.txt",
    "perl -e 'open F, \"private/a\"; print <F>'",
    "perl -e 'rename \"secret.txt\", \"m\"; exec \"cat\", \"m\"'",
    "node -e \"console.log(require('fs').readFileSync('secret.txt', 'utf8'))\"",
    "node -p \"require('fs').cpSync('private', 'c', {recursive: true}); require('fs').readFileSync('c/a', 'utf8')\"",
    "printf '#include \"secret.txt\"\\n' > i.c; gcc -E i.c",
    "gcc -E -x c secret.txt",
    "printf '.incbin \"secret.txt\"\\n' | as -o o.o - && strings -a o.o",
    "ld -r -b binary -o o.o secret.txt && strings -a o.o",
    "objcopy -I binary -O elf64-x86-64 secret.txt o.o && strings -a o.o",
    "printf '$(info $(file <secret.txt))\\nx:\\n\\t@true\\n' > Makefile; make -s",
    "sqlite3 :memory: \"select readfile('secret.txt')\"",
    // Namespaces, mounts and other processes.
    "unshare -Urm sh -c 'umount secret.txt 2>/dev/null; umount -l private 2>/dev/null; cat secret.txt private/a'",
    "unshare -Urm sh -c 'mkdir b && mount --bind . b && cat b/secret.txt'",
    "unshare -Urm sh -c 'mkdir b && mount --rbind . b && umount -l b/secret.txt 2>/dev/null; cat b/secret.txt'",
    "unshare -Urm sh -c 'mkdir u w b && mount -t overlay -o lowerdir=.,upperdir=u,workdir=w overlay b; cat b/secret.txt'",
    "unshare -Ur cat secret.txt",
    "for p in /proc/[0-9]*; do cat $p/cwd/secret.txt $p/root$PWD/secret.txt; done 2>/dev/null",
    // Git, as far as it reads files and not its own store.
    "git diff --no-index /dev/null secret.txt",
    "git grep --no-index open",
    "git config -f private/login.ini --list",
    "git config -f private/login.ini login.password",
    "git mailinfo m p < secret.txt >/dev/null; cat m p",
    "git hash-object -w secret.txt | xargs git cat-file -p",
    "git interpret-trailers secret.txt",
];

/// Ways to read what git has stored of a denied file. Each is a question, and nobody is there to answer it.
const GIT_READS: &[&str] = &[
    "git show HEAD:secret.txt",
    "git show",
    "git -C . show HEAD:private/a",
    "git --no-pager show HEAD:./secret.txt",
    "g=git; $g show HEAD:secret.txt",
    "command git show HEAD:secret.txt",
    "env git show HEAD:secret.txt",
    "/usr/bin/git show HEAD:secret.txt",
    "sh -c 'git show HEAD:secret.txt'",
    "echo HEAD:secret.txt | xargs git show",
    "git cat-file -p HEAD:secret.txt",
    "git cat-file blob HEAD:private/a",
    "echo HEAD:secret.txt | git cat-file --batch",
    "git diff HEAD~ HEAD",
    "git diff 4b825dc642cb6eb9a060e54bf8d69288fbee4904 HEAD",
    "git diff-tree -p --root HEAD",
    "rm -f secret.txt; git diff",
    "git diff-index -p HEAD~",
    "git log -p",
    "git log -u -1",
    "git log --patch-with-stat",
    "git log --binary",
    "git log -L1,1:secret.txt",
    "git log -c -1",
    "git log --dd",
    "git log --dd -1 -- secret.txt",
    "git log --cc -p",
    "git log --diff-merges=first-parent --patch",
    "git log --raw --patc",
    "git log -1 --unif=9",
    "git log --patch-with-r",
    "git log --remerge-diff -p",
    "git log --output-indicator-new=+ -p",
    "git log -1 --word-diff=porcelain",
    "git log -1 --color-words",
    "git reflog --dd",
    "git reflog show -p",
    "git reflog -p",
    "git reflog show -u",
    "git format-patch --stdout --root HEAD",
    "git blame secret.txt",
    "git annotate secret.txt",
    "git grep open HEAD",
    "git grep --cached open",
    "git archive HEAD | tar xO",
    "git archive HEAD secret.txt -o a.tar; tar xOf a.tar",
    "git checkout-index --temp secret.txt | cut -f1 | xargs cat",
    "git checkout-index -a --prefix=c/; cat c/secret.txt",
    "git worktree add -q -f w HEAD; cat w/secret.txt",
    "git restore --source=HEAD secret.txt; cat secret.txt",
    "mkdir c; git --work-tree=c checkout -f; cat c/secret.txt",
    "mkdir c; git --work-tree=c reset --hard; cat c/secret.txt",
    "mkdir c; git --work-tree=c restore .; cat c/secret.txt",
    "git clone -q . c; cat c/secret.txt",
    "git clone -q --bare . c; git -C c show HEAD:secret.txt",
    "git init -q c; git -C c fetch -q .. HEAD; git -C c show FETCH_HEAD:secret.txt",
    "git init -q c; cd c; git pull -q .. main; cat secret.txt",
    "git rm -q --cached secret.txt; git status -v",
    "git rm -q --cached secret.txt; git commit --dry-run -v",
    "git rm -q --cached secret.txt; git commit --dry-run -qv",
    "git rm -q --cached secret.txt; GIT_EDITOR=cat git commit -v",
    "git tag t HEAD:secret.txt; git for-each-ref refs/tags/t --format='%(raw)'",
    "git tag t HEAD:secret.txt; git tag -l --format='%(raw)'",
    "git notes add -C HEAD:secret.txt; git notes show",
    "git notes add -C HEAD:secret.txt; git log -1",
    "git config --blob HEAD:private/login.ini --list",
    "git config --blob=HEAD:private/login.ini login.password",
    "git update-ref refs/x HEAD:secret.txt; git for-each-ref refs/x --format='%(raw)'",
    "git merge-file -p --object-id HEAD:secret.txt HEAD:a.txt HEAD:a.txt",
    "git merge-tree HEAD~ HEAD~ HEAD",
    "git bundle create -q b HEAD; git clone -q b c; cat c/secret.txt",
    "git fast-export HEAD",
    "git unpack-file HEAD:secret.txt | xargs cat",
    "git submodule --quiet foreach true; git -c protocol.file.allow=always submodule --quiet add -f \"$PWD\" c; cat c/secret.txt",
    "git -c alias.x='show HEAD:secret.txt' x",
    "git -c alias.x='!git show HEAD:secret.txt' x",
    "git -c core.fsmonitor='git show HEAD:secret.txt >&2; false' status",
    "git difftool -y -x cat HEAD~ HEAD",
    "git --namespace status show HEAD:secret.txt",
    "git --attr-source HEAD show HEAD:secret.txt",
    "git rm -q --cached secret.txt; git -c commit.verbose=true commit --dry-run",
    "git rm -q --cached secret.txt; git status -sbv",
    "git rm -q --cached secret.txt; git commit --dry-run --verb",
    "git log --oneline --check -p",
    "git config list --blob=HEAD:private/login.ini",
    "git tag t HEAD:secret.txt; git for-each-ref --f='%(raw)'",
    "git tag t HEAD:secret.txt; git for-each-ref --format '%(raw:size) %(raw)'",
    "git -p show HEAD:secret.txt",
    "git --git-dir=.git show HEAD:secret.txt",
    "GIT_DIR=.git git show HEAD:secret.txt",
    "cd deep; git show HEAD:secret.txt",
    "git ls-files -s secret.txt | cut -d' ' -f2 | xargs git cat-file -p",
    "git rev-parse HEAD:secret.txt | git cat-file --batch",
    "rm -f secret.txt; printf 'y\\n' | git add -p",
    "rm -f secret.txt; printf 'n\\n' | git commit -p",
    "$(echo git) show HEAD:secret.txt",
    "git \"$(echo show)\" HEAD:secret.txt",
    "exec git show HEAD:secret.txt",
    "time git show HEAD:secret.txt",
    "find . -maxdepth 0 -exec git show HEAD:secret.txt \\;",
];

/// Ways to change something in `keep`, or `keep` itself.
const CHANGES: &[&str] = &[
    "echo x > keep/a",
    "echo x >> keep/a",
    "echo x > keep/new",
    "cd keep && echo x > a",
    "f=keep/a; echo x > $f",
    "echo x > k*p/a",
    "echo x > ./x/../keep/a",
    "echo x > \"$PWD/keep/a\"",
    "echo x > /proc/self/cwd/keep/a",
    "echo x > /proc/self/root/$PWD/keep/a",
    "exec 9<keep; echo x > /proc/self/fd/9/a",
    "exec 7<>keep/a; echo x >&7",
    "ln -s keep l; echo x > l/a",
    "ln -s keep/a l; echo x > l",
    "ln keep/a h; echo x > h",
    "echo x > twin-of-keep",
    "rm keep/a",
    "rm -r keep",
    "rm -rf k*",
    "rmdir keep/empty",
    "mkdir keep/new",
    "touch keep/a",
    "touch -d 2001-01-01 keep",
    "chmod -R a+x keep",
    "chmod 700 keep",
    "chown 12345 keep/a",
    "chgrp -R 12345 keep",
    "truncate -s 0 keep/a",
    "fallocate -l 99 keep/a",
    "shred -u keep/a",
    "mv keep k2",
    "mv keep/a keep/c",
    "mv keep/a .",
    "mv a.txt keep/a",
    "mv -T -f deep keep/empty",
    "mv keep k2; mkdir keep; echo x > k2/a",
    "mv ../project ../project2 && mv ../project2/keep ../project2/k2; mv ../project2 ../project",
    "cp a.txt keep/a",
    "cp --remove-destination a.txt keep/a",
    "cp -r deep keep/",
    "install -m 600 a.txt keep/a",
    "ln -sf ../a.txt keep/a",
    "ln a.txt keep/new",
    "link a.txt keep/new",
    "mkfifo keep/new",
    "mktemp -d keep/XXXXXX",
    "tee keep/a <<< x",
    "dd if=a.txt of=keep/a status=none",
    "dd if=/dev/zero of=keep/a bs=1 count=1 conv=notrunc status=none",
    "sed -i s/./x/ keep/a",
    "sed -n 'w keep/a' a.txt",
    "perl -pi -e 's/./x/' keep/a",
    "perl -e 'unlink \"keep/a\"'",
    "perl -e 'open F, \">keep/new\"'",
    "perl -e 'utime 1, 1, \"keep/a\"'",
    "perl -MFile::Path -e 'File::Path::rmtree(\"keep\")'",
    "awk 'BEGIN { print \"x\" > \"keep/a\" }'",
    "sort -o keep/a a.txt /dev/null",
    "uniq a.txt keep/a",
    "split -b 1 a.txt keep/p",
    "ed -s keep/a <<< $'1d\\nw'",
    "vim -es -c '%d' -c 'wq' keep/a",
    "patch -s keep/a <<< $'1c1\\n< kept\\n---\\n> x'",
    "printf -- '--- a/keep/a\\n+++ b/keep/a\\n@@ -1 +1 @@\\n-kept\\n+x\\n' | patch -s -p1",
    "printf -- '--- a/keep/a\\n+++ b/keep/a\\n@@ -1 +1 @@\\n-kept\\n+x\\n' | git apply",
    "find keep -delete",
    "find keep -type f -exec rm {} +",
    "find keep -name a -execdir sh -c 'echo x > a' \\;",
    "find . -path '*eep/a' -fprint keep/new",
    "ls keep/a | xargs -I{} cp a.txt {}",
    "tar c a.txt | tar x -C keep",
    "mkdir -p o/keep; echo x > o/keep/a; tar c -C o keep | tar x",
    "mkdir -p o/keep; echo x > o/keep/a; tar c -C o keep | tar x --recursive-unlink",
    "mkdir -p o/keep; echo x > o/keep/a; cp -rT o .",
    "tar c --remove-files keep >/dev/null",
    "zip -qrm z keep",
    "zip -q z a.txt; unzip -q -o z -d keep",
    "gzip keep/a",
    "zstd -q --rm keep/a",
    "ar rc keep/new a.txt",
    "rsync -a deep/ keep/",
    "echo a.txt | cpio -p keep 2>/dev/null",
    "curl -s -o keep/a file://$PWD/a.txt",
    "openssl rand -out keep/a 9",
    "xxd a.txt keep/a",
    "shuf -o keep/a a.txt /dev/null || shuf -o keep/a a.txt",
    "nohup sh -c 'echo x > keep/a' > /dev/null 2>&1",
    "setsid -w sh -c 'rm keep/a'",
    "script -qc true keep/new",
    "flock keep/new true",
    "split --filter='cat > keep/a' a.txt",
    "trap 'rm keep/a' EXIT",
    "printf 'rm -r keep\\n' > s.sh; sh s.sh",
    "eval 'r''m keep/a'",
    "python3 -c \"open('keep/a', 'r+').write('x')\"",
    "python3 -c \"import os; os.replace('a.txt', 'keep/a')\"",
    "python3 -c \"import os; os.rename('keep', 'k2')\"",
    "python3 -c \"import os; os.utime('keep/a', (1, 1))\"",
    "python3 -c \"import os; os.chmod('keep/sub', 0o700)\"",
    "python3 -c \"import os; os.truncate('keep/a', 1)\"",
    "python3 -c \"import shutil; shutil.rmtree('keep')\"",
    "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('keep/new')\"",
    "python3 -c \"import os; os.setxattr('keep/a', 'user.x', b'x')\"",
    "python3 -c \"import os; f = os.open('keep', 0); os.unlink('a', dir_fd=f)\"",
    "python3 -c \"import mmap; f = open('keep/a', 'r+'); m = mmap.mmap(f.fileno(), 0); m[0] = 120; m.flush()\"",
    "python3 -c \"import ctypes, os; os.mkdir('e'); ctypes.CDLL(None).renameat2(-100, b'keep', -100, b'e', 2)\"",
    "python3 -c \"import ctypes; ctypes.CDLL(None).renameat2(-100, b'keep/a', -100, b'a.txt', 2)\"",
    "python3 -m zipfile -c keep/new a.txt",
    "python3 -m py_compile keep/m.py",
    "node -e \"require('fs').writeFileSync('keep/a', 'x')\"",
    "node -e \"require('fs').rmSync('keep', {recursive: true})\"",
    "echo 'int x;' > x.c; gcc -c -o keep/new x.c",
    "echo 'int x;' | gcc -E -MMD -MF keep/new -x c - >/dev/null",
    "objcopy -I binary -O binary a.txt keep/a",
    "printf 'keep/a: a.txt\\n\\tcp a.txt $@\\n' > Makefile; touch a.txt; make -sB",
    "printf '$(file >keep/a,x)\\nx:\\n\\t@true\\n' > Makefile; make -s",
    "sqlite3 keep/new 'create table t (x)'",
    "sqlite3 :memory: \"select writefile('keep/a', 'x')\"",
    "git rm -rqf keep",
    "git mv keep k2",
    "git init -q keep/new",
    "git clone -q --no-checkout . keep/new",
    "git checkout -q HEAD~ -- keep",
    "git checkout -q HEAD~",
    "git reset -q --hard HEAD~",
    "git restore --source=HEAD~ keep",
    "git read-tree -u --reset HEAD~",
    "git checkout-index -f --prefix=keep/ a.txt",
    "git worktree add -q -f keep/new",
    "git archive -o keep/new HEAD",
    "git diff --output=keep/new HEAD~",
    "git format-patch -q -o keep HEAD~",
    "git clean -fdxq keep",
    "git --work-tree=keep checkout -f -- a.txt",
    "git stash -q -u",
    "git revert --no-edit HEAD",
    "git config -f keep/new x.y z",
    "unshare -Urm sh -c 'mount -o remount,rw keep 2>/dev/null; umount -l keep 2>/dev/null; echo x > keep/a'",
    "unshare -Urm sh -c 'mkdir b && mount --bind keep b && mount -o remount,bind,rw b 2>/dev/null; echo x > b/a'",
    "unshare -Urm sh -c 'mkdir b && mount --bind . b && echo x > b/keep/a'",
    "unshare -Ur sh -c 'echo x > keep/a'",
    "for p in /proc/[0-9]*; do echo x > $p/cwd/keep/a; done 2>/dev/null",
];

const TWINS: [(&str, &str); 3] =
    [("secret.txt", "twin"), ("private/a", "twin-of-private"), ("keep/sub/b", "twin-of-keep")];

/// How well the machine can confine commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limits {
    Full,
    NoNamespaces,
    Unconfined,
}

/// A project with files that rules deny, all of them committed. Each way has a copy of it.
struct Template(tempfile::TempDir);

impl Template {
    fn new() -> Template {
        let template = Template(tempfile::tempdir().unwrap());
        template.write("a.txt", "plain\n");
        template.write("x/y", "");
        template.write("keep/a", "before\n");
        template.write("keep/sub/b", "kept\n");
        template.write("keep/m.py", "x = 1\n");
        template.git(&["init", "-q", "--template=", "-b", "main"]);
        template.git(&["config", "user.name", "a"]);
        template.git(&["config", "user.email", "a@example.org"]);
        template.git(&["add", "-A"]);
        template.git(&["commit", "-qm", "first"]);
        for name in ["secret.txt", "private/a", "private/sub/b", "deep/down/pass.txt"] {
            template.write(name, &format!("{TEXT}\n"));
        }
        template.write("private/login.ini", &format!("[login]\n\tpassword = {TEXT}\n"));
        template.write("keep/a", "kept\n");
        template.git(&["add", "-A"]);
        template.git(&["commit", "-qm", "second"]);
        template.write("keep/unknown", "git does not know it\n");
        fs::create_dir(template.0.path().join("keep/empty")).unwrap();
        // Names that somebody gave to the same files before.
        for (file, name) in TWINS {
            fs::hard_link(template.0.path().join(file), template.0.path().join(name)).unwrap();
        }
        template
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn git(&self, words: &[&str]) {
        let mut command = Command::new("git");
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", "/nowhere").args(words);
        let output = command.current_dir(self.0.path()).output().unwrap();
        assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn copy(&self) -> Home {
        let home = Home::new();
        fs::remove_dir_all(home.project()).unwrap();
        let copied = Command::new("cp").arg("-a").arg(self.0.path()).arg(home.project()).status().unwrap();
        assert!(copied.success());
        home
    }
}

/// What a plain shell says.
fn bare(home: &Home, way: &str) -> String {
    let mut command = Command::new("bash");
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", home.path()).env("TERM", "dumb");
    // Where other tests and programs have their files, nothing is left.
    let scratch = home.path().join("tmp");
    fs::create_dir_all(&scratch).unwrap();
    command.env("TMPDIR", &scratch).current_dir(home.project()).stdin(Stdio::null());
    let script = way.replace("/tmp/", &format!("{}/", scratch.display()));
    let output = command.args(["-c", &script]).output().unwrap();
    [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat()
}

/// What the model is told of a command, and whether it was run.
fn told(home: &Home, limits: Limits, flags: &[&str], command: &str) -> (String, bool) {
    let input = json!({ "command": command, "timeout": 20 }).to_string();
    let rules = RULES.iter().flat_map(|rule| ["--deny", rule]);
    let mut words = vec!["tool", "shell", &input, "--permission-mode", "auto"];
    words.extend(rules.chain(flags.iter().copied()));
    if limits == Limits::Unconfined {
        words.extend(["--set", "permissions.confine=false"]);
    }
    let inner = home.helve(&words);
    let mut command = Command::new(inner.get_program());
    if limits == Limits::NoNamespaces {
        command = Command::new("unshare");
        let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
        command.args(["-Ur", "sh", "-c", script, "sh"]).arg(inner.get_program());
    }
    command.args(inner.get_args()).env_clear().current_dir(home.project()).stdin(Stdio::null());
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let Ran { out, err, .. } = home.run_command(command);
    let said: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{input}: {out}{err}"));
    let text = said["output"].as_str().unwrap_or_else(|| panic!("{said}")).to_owned();
    let has_run = ["[exit code ", "[ended ", "[stopped "].iter().any(|end| text.contains(end));
    (text, has_run)
}

/// Whether the secret can be made out, also in the forms that programs give it.
fn tells(text: &str) -> bool {
    let dense: String = text.chars().filter(|letter| !letter.is_whitespace()).collect();
    let backwards: String = TEXT.chars().rev().collect();
    let hex: String = TEXT.bytes().map(|byte| format!("{byte:02x}")).collect();
    [TEXT, &backwards, &hex, "b3Blbi1zZXNhbW"].iter().any(|form| dense.contains(form))
}

/// All of a folder: what each file is, whose, since when, and what is in it.
fn picture(folder: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        let Ok(facts) = path.symlink_metadata() else { continue };
        if facts.is_dir() {
            open.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        }
        let content = if facts.is_file() { fs::read(&path).unwrap_or_default() } else { Vec::new() };
        let time = (facts.mtime(), facts.mtime_nsec());
        let attribute = rustix::fs::lgetxattr(&path, "user.x", &mut [0; 9][..]).is_ok();
        let seen =
            format!("{:o} {} {} {time:?} {attribute} {content:?}", facts.mode(), facts.uid(), facts.gid());
        all.insert(path.display().to_string(), seen);
    }
    all
}

/// Does something with each of many, on a few threads, and gives what went wrong.
fn with_each<T: Sync>(all: &[T], check: impl Fn(&T) -> Option<String> + Sync) -> Vec<String> {
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    wrong.lock().unwrap().extend(check(one));
                }
            });
        }
    });
    wrong.into_inner().unwrap()
}

/// Those that a plain shell can go on this machine.
fn working<'a>(ways: &[&'a str], works: impl Fn(&str) -> bool + Sync) -> Vec<&'a str> {
    let found = Mutex::new(Vec::new());
    with_each(ways, |way| {
        if works(way) {
            found.lock().unwrap().push(*way);
        }
        None
    });
    found.into_inner().unwrap()
}

fn working_reads(template: &Template, ways: &[&'static str]) -> Vec<&'static str> {
    working(ways, |way| tells(&bare(&template.copy(), way)))
}

fn working_changes(template: &Template) -> Vec<&'static str> {
    working(CHANGES, |way| {
        let home = template.copy();
        let before = picture(&home.project().join("keep"));
        bare(&home, way);
        picture(&home.project().join("keep")) != before
    })
}

/// Whether commands can be fully confined on this machine; if not, the test has nothing to say.
fn is_confined() -> bool {
    let is_full = Home::new().run(&["doctor"]).out.contains("full: commands write only");
    if !is_full {
        helve_testkit::skip("denied", "commands can't be fully confined here");
    }
    is_full
}

/// Runs a way as a command of the model; if that is refused, as a script, of which nobody knows what it does.
fn run_fully(home: &Home, way: &str) -> (String, bool) {
    let (text, has_run) = told(home, Limits::Full, &["--yes"], way);
    if has_run {
        return (text, true);
    }
    home.write("project/way.sh", way);
    let (more, has_run) = told(home, Limits::Full, &["--yes"], "bash ./way.sh");
    (text + &more, has_run)
}

#[test]
fn no_program_reads_what_is_denied() {
    if !is_confined() {
        return;
    }
    let template = Template::new();
    let ways = working_reads(&template, READS);
    let ran = AtomicUsize::new(0);
    let wrong = with_each(&ways, |way| {
        let home = template.copy();
        let before = picture(&home.project());
        let (text, has_run) = run_fully(&home, way);
        ran.fetch_add(usize::from(has_run), Ordering::Relaxed);
        if tells(&text) {
            return Some(format!("{way}: {text}"));
        }
        // Who left nothing behind has left nothing for later either.
        if picture(&home.project()) == before && !way.contains("tmp") {
            return None;
        }
        home.write("project/later.sh", LATER);
        let (later, has_run) = told(&home, Limits::Full, &["--yes"], "bash ./later.sh");
        (!has_run || tells(&later)).then(|| format!("after {way}: {later}"))
    });
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), ways.len(), wrong.join("\n"));
    let ran = ran.into_inner();
    println!("{ran} of {} ways ran", ways.len());
    assert!(ran >= MIN_WAYS, "{ran}");
}

#[test]
fn what_git_has_of_it_is_not_shown_unasked() {
    if !is_confined() {
        return;
    }
    let template = Template::new();
    let ways = working_reads(&template, GIT_READS);
    let wrong = with_each(&ways, |way| {
        let (text, _) = told(&template.copy(), Limits::Full, &[], way);
        tells(&text).then(|| format!("{way}: {text}"))
    });
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), ways.len(), wrong.join("\n"));
    assert!(ways.len() >= MIN_WAYS, "{}", ways.len());
}

#[test]
fn no_program_changes_what_is_denied() {
    if !is_confined() {
        return;
    }
    let template = Template::new();
    let ways = working_changes(&template);
    let ran = AtomicUsize::new(0);
    let wrong = with_each(&ways, |way| {
        let home = template.copy();
        let before = picture(&home.project().join("keep"));
        let (text, has_run) = run_fully(&home, way);
        ran.fetch_add(usize::from(has_run), Ordering::Relaxed);
        (picture(&home.project().join("keep")) != before).then(|| format!("{way}: {text}"))
    });
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), ways.len(), wrong.join("\n"));
    let ran = ran.into_inner();
    println!("{ran} of {} ways ran", ways.len());
    assert!(ran >= MIN_WAYS, "{ran}");
}

/// Where no mask can be laid, nothing runs that could reach what is denied. A name that the user gave to a denied file before
/// is another file there: that is seen only by looking.
#[test]
fn where_nothing_can_be_masked_it_is_not_run() {
    let can_unshare = Command::new("unshare").args(["-Ur", "true"]).status().is_ok_and(|it| it.success());
    let weak = [Limits::NoNamespaces, Limits::Unconfined];
    for limits in weak.into_iter().filter(|limits| can_unshare || *limits == Limits::Unconfined) {
        let ways = [READS, GIT_READS, CHANGES].concat();
        let ways: Vec<&str> = ways.into_iter().filter(|way| !way.contains("twin")).collect();
        let template = Template::new();
        // Nothing is run, so many can have one project.
        let chunks: Vec<&[&str]> = ways.chunks(40).collect();
        let wrong = with_each(&chunks, |ways| {
            let home = template.copy();
            let before = picture(&home.project());
            for way in *ways {
                let (text, has_run) = told(&home, limits, &[], way);
                if has_run || tells(&text) || picture(&home.project()) != before {
                    return Some(format!("{way}: {text}"));
                }
            }
            None
        });
        assert!(wrong.is_empty(), "{limits:?}: {} of {}:\n{}", wrong.len(), ways.len(), wrong.join("\n"));
    }
}

/// What a rule denies and what is not there yet can't be covered: whoever makes it finds it put aside.
#[test]
fn what_is_made_where_a_rule_denies_it_does_not_stay() {
    if !is_confined() {
        return;
    }
    let rules = [
        "write(./later/**)",
        "read(./both/**)",
        "write(./both/**)",
        "write(./x/*.lock)",
        "write(./.git/refs/**)",
    ];
    let ways = [
        ("mkdir -p later/a && echo x > later/a/b", "later"),
        ("mkdir both && echo x > both/b", "both"),
        ("mkdir n && echo x > n/b && mv n both", "both"),
        ("ln -s x later", "later"),
        ("echo x > x/a.lock", "x/a.lock"),
        ("echo x > a && ln a x/a.lock", "x/a.lock"),
        ("mv x x2; mkdir x; echo x > x/a.lock", "x/a.lock"),
        ("cp .git/refs/heads/main .git/refs/heads/other", ".git/refs/heads/other"),
    ];
    let template = Template::new();
    let wrong = with_each(&ways, |(way, made)| {
        let plain = template.copy();
        bare(&plain, way);
        assert!(plain.project().join(made).symlink_metadata().is_ok(), "{way} makes nothing");
        let home = template.copy();
        home.write("project/way.sh", way);
        let input = json!({ "command": "bash ./way.sh" }).to_string();
        let mut words = vec!["tool", "shell", &input, "--permission-mode", "auto", "--yes"];
        words.extend(rules.iter().flat_map(|rule| ["--deny", rule]));
        let Ran { out, err, .. } = home.run(&words);
        let is_there = home.project().join(made).symlink_metadata().is_ok();
        (is_there || !out.contains("[exit code ")).then(|| format!("{way}: {out}{err}"))
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
