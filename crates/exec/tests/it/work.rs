//! Ordinary work, confined: what developers' commands do every day goes on as if nothing were there.

use std::fs;
use std::os::unix::fs::MetadataExt;

use helve_testkit::skip;

use crate::escape::{Ground, User, users};

/// Runs a script in the full confinement of a ground's workspace, as this user.
fn work(user: User, caches: &[&str], script: &str) -> Option<(Ground, String)> {
    let ground = Ground::reachable(user)?;
    let mut all = ground.settings("full");
    all.retain(|setting| !setting.starts_with("scratch") && !setting.starts_with("file_size"));
    all.push("scratch=100000000".to_owned());
    for cache in caches {
        fs::create_dir_all(ground.path("home").join(cache)).unwrap();
        all.push(format!("writable={}", ground.path("home").join(cache).display()));
    }
    if !ground.levels().contains(&"full") {
        return None;
    }
    let outcome = ground.run(&all, &["sh", "-ec", script]);
    assert_eq!(outcome.code, Some(0), "{user:?}: {script}: {}", outcome.said);
    Some((ground, outcome.said))
}

/// Whether a program is there that can be used by everybody.
fn has(program: &str) -> bool {
    let is_there = ["/usr/local/bin", "/usr/bin", "/bin"]
        .iter()
        .any(|at| fs::metadata(format!("{at}/{program}")).is_ok());
    if !is_there {
        skip("work", &format!("{program} is not installed"));
    }
    is_there
}

#[test]
fn files_are_the_users_own() {
    for user in users() {
        let script = "echo text > file; mkdir folder; mv file folder; ln -s folder/file link; cat link; rm link; id -u; whoami; id -un";
        let Some((ground, said)) = work(user, &[], script) else { continue };
        let id = fs::metadata(ground.path("work")).unwrap().uid();
        let file = fs::metadata(ground.path("work/folder/file")).unwrap();
        assert_eq!(
            (file.uid(), fs::read(ground.path("work/folder/file")).unwrap()),
            (id, b"text\n".to_vec())
        );
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[..2], ["text", &id.to_string()]);
        assert_eq!(lines[2], lines[3]);
    }
}

#[test]
fn temporary_files_can_be_made_and_are_gone_afterwards() {
    for user in users() {
        let script = "name=$(mktemp); echo x > $name; echo $name; seq 300000 | sort -R -S 1M | sort -n -S 1M | tail -1; touch /var/tmp/x /dev/shm/x";
        let Some((_ground, said)) = work(user, &[], script) else { continue };
        let (name, rest) = said.split_once('\n').unwrap();
        assert_eq!(rest, "300000\n");
        assert!(fs::metadata(name).is_err(), "{name}");
    }
}

#[test]
fn processes_are_seen_and_only_ones_own() {
    let script = "sleep 9 & until grep -q sleep /proc/$!/comm; do :; done; ps -e -o comm=; kill $!";
    let Some((_ground, said)) = work(User::Oneself, &[], script) else { return };
    let mut names: Vec<&str> = said.lines().collect();
    names.sort_unstable();
    assert_eq!(names, ["helve", "ps", "sh", "sleep"]);
}

#[test]
fn git_works() {
    if !has("git") {
        return;
    }
    let script = "mkdir repo; cd repo; git init -q .; echo a > a; git add a; \
                  git -c user.name=n -c user.email=e@x commit -qm one; git status --short; git log --format=%s";
    for user in users() {
        let Some((_ground, said)) = work(user, &[], script) else { continue };
        assert_eq!(said, "one\n");
    }
}

#[test]
fn compilers_work() {
    if !has("make") || !has("cc") {
        return;
    }
    let script = "printf 'int main(){return 0;}' > a.c; printf 'a: a.c\\n\\tcc -o a a.c\\n' > Makefile; make -s; ./a; echo built";
    for user in users() {
        let Some((_ground, said)) = work(user, &[], script) else { continue };
        assert_eq!(said, "built\n");
    }
}

#[test]
fn scripts_work() {
    for (program, script, expected) in [
        (
            "python3",
            "/usr/bin/python3 -c 'import multiprocessing, tempfile; tempfile.TemporaryFile(); print(multiprocessing.Lock() and 6*7)'",
            "42\n",
        ),
        ("node", "node -e 'console.log(6*7)'", "42\n"),
    ] {
        if !has(program) {
            continue;
        }
        for user in users() {
            let Some((_ground, said)) = work(user, &[], script) else { continue };
            assert_eq!(said, expected, "{program}");
        }
    }
}

/// The one that builds Helve. Its folders are root's, so only the user who runs the tests can use it.
#[test]
fn cargo_builds_offline_with_its_cache() {
    let Some(cargo) = option_env!("CARGO") else {
        return skip("cargo_builds_offline_with_its_cache", "cargo did not build this");
    };
    let bin = std::path::Path::new(cargo).parent().unwrap().display();
    let script = format!(
        "export PATH={bin}:$PATH CARGO_HOME=$HOME/.cargo; mkdir -p x/src; cd x; printf '[package]\\nname=\"x\"\\nedition=\"2024\"\\n[workspace]\\n' > Cargo.toml; \
         echo 'fn main() {{ println!(\"built\") }}' > src/main.rs; cargo run -q --offline; touch $CARGO_HOME/mark"
    );
    let Some((_ground, said)) = work(User::Oneself, &[".cargo"], &script) else { return };
    assert_eq!(said, "built\n");
}

/// As root, a setuid file in the workspace would be a way for anybody to become root.
#[test]
fn no_file_is_left_that_runs_as_another() {
    for user in users() {
        let Some(ground) = Ground::reachable(user) else { continue };
        for level in ground.levels() {
            let script = "cp /bin/true a; chmod 4755 a; chmod u+s a; chmod g+s a; install -m 6755 a b; \
                mkdir -m 2755 folder; mkdir folder2; chmod 2755 folder2; \
                mkdir src; cp a src/; tar cf t.tar --mode=6755 src; tar xpf t.tar; cp -p b c; \
                command -v setcap >/dev/null && setcap cap_net_raw+ep a; \
                python3 - <<'E'\nimport os, ctypes\n\
for call in (lambda: os.chmod('a', 0o4755), lambda: os.open('e', os.O_CREAT | os.O_WRONLY, 0o4755), lambda: os.mkdir('f', 0o6755),\n\
             lambda: os.setxattr('a', 'security.capability', bytes.fromhex('0100000200200000000000000000000000000000')),\n\
             lambda: os.fchmod(os.open('a', os.O_RDONLY), 0o2755), lambda: os.mknod('g', 0o106755)):\n\
    try: call()\n\
    except OSError: pass\nE\n true";
            let script = script.replace("\\n", "\n");
            let outcome = ground.run(&ground.settings(level), &["sh", "-c", &script]);
            assert_eq!(outcome.code, Some(0), "{user:?} {level}: {}", outcome.said);
            let entries: Vec<_> = fs::read_dir(ground.path("work")).unwrap().flatten().collect();
            assert!(entries.iter().any(|entry| entry.file_name() == "a"), "{}", outcome.said);
            for path in entries.iter().map(fs::DirEntry::path).chain([ground.path("work/src/a")]) {
                let mode = fs::metadata(&path).unwrap().mode();
                assert_eq!(mode & 0o6000, 0, "{user:?} {level} {}", path.display());
                let capability = std::process::Command::new("getfattr")
                    .arg("-n")
                    .arg("security.capability")
                    .arg(&path)
                    .output();
                assert!(!capability.is_ok_and(|it| it.status.success()), "{}", path.display());
            }
            for name in ["a", "b", "c", "t.tar", "e", "g"] {
                let _ = fs::remove_file(ground.path("work").join(name));
            }
            for name in ["src", "folder", "folder2", "f"] {
                let _ = fs::remove_dir_all(ground.path("work").join(name));
            }
        }
    }
}

#[test]
fn servers_on_loopback_work_without_network() {
    if !has("python3") {
        return;
    }
    let script = "echo hello > page; /usr/bin/python3 -m http.server 8123 --bind 127.0.0.1 >/dev/null 2>&1 & \
                  for i in $(seq 100); do /usr/bin/python3 -c 'import urllib.request as r; print(r.urlopen(\"http://127.0.0.1:8123/page\").read().decode(), end=\"\")' 2>/dev/null && break; sleep 0.1; done; kill $!";
    for user in users() {
        let Some((_ground, said)) = work(user, &[], script) else { continue };
        assert_eq!(said, "hello\n");
    }
}

#[test]
fn with_network_servers_are_reached_and_other_sockets_are_not() {
    for user in users() {
        let Some(ground) = Ground::reachable(user) else { continue };
        for level in ground.levels() {
            let settings = [ground.settings(level), vec!["network=on".to_owned()]].concat();
            let code = |attack| ground.attack(&settings, attack).code;
            assert_eq!((code("tcp"), code("udp")), (Some(0), Some(0)), "{user:?} {level}");
            assert_eq!((code("socket"), code("socket-abstract")), (Some(1), Some(1)), "{user:?} {level}");
            assert_eq!((code("write"), code("signal")), (Some(1), Some(1)), "{user:?} {level}");
        }
    }
}

#[test]
fn a_folder_can_be_the_temporary_one() {
    let Some(ground) = Ground::reachable(User::Oneself) else { return };
    if !ground.levels().contains(&"full") {
        return;
    }
    let temporary = ground.path("home");
    let setting = format!("temporary={}", temporary.display());
    let settings = [vec![setting], ground.settings("full")].concat();
    assert_eq!(ground.run(&settings, &["sh", "-c", "echo left > /tmp/note"]).code, Some(0));
    assert_eq!(ground.run(&settings, &["cat", "/tmp/note"]).said, "left\n");
    assert_eq!(fs::read_to_string(temporary.join("note")).unwrap(), "left\n");
}

/// Nothing of the file itself is seen, nor can it be reached by moving the one that is seen away.
#[test]
fn a_file_that_is_replaced_looks_like_another_one() {
    for user in users() {
        let Some(ground) = Ground::reachable(user).filter(|ground| ground.levels().contains(&"full")) else {
            continue;
        };
        ground.make("work/.git/config", "token");
        ground.make("outside/config", "harmless");
        ground.give("work");
        let mut settings = ground.settings("full");
        for (at, by) in [("work/.git/config", "outside/config"), ("work/.git/absent", "outside/config")] {
            settings.push(format!("replaced={}:{}", ground.path(at).display(), ground.path(by).display()));
        }
        settings.push(format!("protected={}", ground.path("work/.git/config").display()));
        let script = "cat .git/config; echo; echo x > .git/config; rm .git/config; mv .git/config was; mv .git away; \
            ln .git/config other; ls -A .git; cat .git/config; echo x > .git/new && cat .git/new";
        let said = ground.run(&settings, &["sh", "-c", script]).said;
        assert!(said.starts_with("harmless\n") && !said.contains("token"), "{user:?}: {said}");
        assert!(said.contains("harmlessx\n") && !said.contains("absent"), "{user:?}: {said}");
        assert_eq!(fs::read_to_string(ground.path("work/.git/config")).unwrap(), "token");
        assert_eq!(fs::read_to_string(ground.path("outside/config")).unwrap(), "harmless");
        assert!(!ground.path("work/.git/absent").exists());
    }
}
