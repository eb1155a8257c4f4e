//! Finding things: the same as `rg`, and the same as looking at every file by hand.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use helve_protocol::ToolOutput;
use helve_testkit::{NoBlobs, sample_id, skip};
use helve_tools::{GlobTool, GrepTool, ListTool, Tool, ToolContext, ToolFailure};
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

fn context(root: &Path) -> ToolContext {
    ToolContext::alone(root.to_owned(), sample_id(1), Arc::new(NoBlobs))
}

fn run_in(context: &ToolContext, tool: &dyn Tool, input: Value) -> Result<ToolOutput, ToolFailure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(tool.run(input, context))
}

fn found(root: &Path, tool: &dyn Tool, input: Value) -> String {
    run_in(&context(root), tool, input).unwrap_or_else(|failure| panic!("{}", failure.0)).text
}

fn refused(root: &Path, tool: &dyn Tool, input: Value) -> String {
    run_in(&context(root), tool, input).unwrap_err().0
}

fn put(root: &Path, path: &str, content: impl AsRef<[u8]>) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn utf16(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(to_bytes).collect()
}

/// A project with everything that makes searching hard.
fn project() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    ordinary_files(root);
    ignored_files(root);
    odd_files(root);
    links(root);
    folder
}

fn ordinary_files(root: &Path) {
    for number in 0..240 {
        let ending = ["rs", "py", "c", "md", "toml", "ts"][number % 6];
        let text = format!(
            "// file {number}\nfn needle_{number}() {{\n    let answer = {};\n}}\n\nstruct Thing;\nimpl Thing {{\n    \
             fn find(&self) {{}}\n}}\n// TODO: naïve café\n",
            number * 7
        );
        put(root, &format!("src/m{}/f{number}.{ending}", number % 9), text);
    }
    // The order of paths is not the order of their letters.
    put(root, "src/m1.rs", "needle between\n");
    put(root, "src/m1-x/y.rs", "needle beside\n");
    put(root, "a b/with space.rs", "needle in a space\n");
    put(root, "Makefile", "all:\n\techo needle\n");
}

fn ignored_files(root: &Path) {
    put(root, ".git/HEAD", "needle\n");
    put(root, ".git/info/exclude", "excluded.txt\n");
    put(root, ".gitignore", "target/\n*.log\n!keep.log\n/only_root.txt\ndoc/**/gen\n# needle\n\\#odd\n");
    put(root, "sub/.gitignore", "*.tmp\n!important.tmp\nlocal/*\n!local/kept.rs\n");
    put(root, "sub/.ignore", "unwanted\n!fine.log\n");
    put(root, "sub/.rgignore", "*.rgno\n");
    let files = [
        "target/debug/a.rs",
        "a.log",
        "keep.log",
        "only_root.txt",
        "sub/only_root.txt",
        "doc/gen",
        "doc/x/gen/a.rs",
        "doc/x/y.rs",
        "#odd",
        "excluded.txt",
        "sub/a.tmp",
        "sub/important.tmp",
        "sub/local/gone.rs",
        "sub/local/kept.rs",
        "sub/unwanted/a.rs",
        "sub/fine.log",
        "sub/other.log",
        "sub/a.rgno",
        ".hidden/a.rs",
        ".env",
        "sub/.secret.rs",
        "vendor/lib/a.log",
        "vendor/lib/b.rs",
    ];
    for file in files {
        put(root, file, format!("needle in {file}\n"));
    }
    put(root, "vendor/lib/.git/HEAD", "needle\n");
    put(root, "vendor/lib/.gitignore", "b.*\n");
}

fn odd_files(root: &Path) {
    put(root, "odd/empty.rs", "");
    put(root, "odd/no_end.rs", "first\nneedle at the end");
    put(root, "odd/crlf.rs", "one\r\nneedle\r\nthree\r\n");
    put(root, "odd/bom.rs", "\u{feff}needle after a mark\n");
    put(root, "odd/little.txt", utf16("über\nneedle 16\n", u16::to_le_bytes));
    put(root, "odd/big.txt", utf16("über\nneedle 16\n", u16::to_be_bytes));
    put(root, "odd/latin.txt", b"caf\xe9 needle\n\xff\xfe needle\n");
    put(root, "odd/binary.bin", b"needle\n\0\x01needle\n");
    put(
        root,
        "odd/late.bin",
        [b"needle first\n".as_slice(), &b"x\n".repeat(100_000), b"\0\nneedle\n"].concat(),
    );
    put(root, "odd/long.js", format!("{}needle{}\n", "é=1;".repeat(4_000), "y=2;".repeat(9_000)));
    put(root, "odd/several.txt", "start\nneedle\nneedle\nend\n\nstart needle end start\nend\n");
}

#[cfg(unix)]
fn links(root: &Path) {
    use std::os::unix::fs::symlink;
    symlink("src/m1.rs", root.join("link.rs")).unwrap();
    symlink("sub", root.join("link_dir")).unwrap();
    symlink("nowhere", root.join("dangling.rs")).unwrap();
    symlink("..", root.join("sub/circle")).unwrap();
}

#[cfg(not(unix))]
fn links(_: &Path) {}

/// What `rg` says, or nothing where it is not installed.
fn rg(root: &Path, args: &[&str]) -> Option<String> {
    // In mapped memory it looks for binary data in fewer places.
    let always = ["--no-config", "--color=never", "--sort=path", "--no-messages", "--no-mmap"];
    // A list of the user's that all projects ignore would be read from there.
    let command = Command::new("rg").args(always).args(args).current_dir(root).env("HOME", root).output();
    command.ok().map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn has_rg(test: &str) -> bool {
    let is_there = Command::new("rg").arg("--version").output().is_ok();
    if !is_there {
        skip(test, "ripgrep is not installed");
    }
    is_there
}

/// Lines without what the two say about binary files, and without the ends that CRLF leaves.
fn lines(text: &str) -> Vec<&str> {
    let is_about_binary = |line: &str| line.contains("binary file") || line.starts_with("[binary from");
    text.lines().map(|line| line.trim_end_matches('\r')).filter(|line| !is_about_binary(line)).collect()
}

/// Whether a line of ours is the line of `rg`, or a part of it that says what was cut.
fn is_line(ours: &str, theirs: &str) -> bool {
    if ours == theirs {
        return true;
    }
    let Some((number, part)) = ours.split_once(':') else { return false };
    let part = part.split_once("bytes cut] ").map_or(part, |(_, part)| part);
    let part = part.rsplit_once(" [").map_or(part, |(part, _)| part);
    ours.contains("bytes cut]")
        && theirs.starts_with(number)
        && theirs.contains(part)
        && part.contains("needle")
}

#[track_caller]
fn assert_same(ours: &str, theirs: &str, what: &Value) {
    let (ours, theirs) = (lines(ours), lines(theirs));
    let is_same =
        ours.len() == theirs.len() && ours.iter().zip(&theirs).all(|(one, other)| is_line(one, other));
    assert!(is_same, "{what}\n--- ours\n{}\n--- rg\n{}", ours.join("\n"), theirs.join("\n"));
    assert!(!theirs.is_empty(), "{what} finds nothing, which shows nothing");
}

#[test]
fn grep_finds_what_rg_finds() {
    if !has_rg("grep_finds_what_rg_finds") {
        return;
    }
    let folder = project();
    let root = folder.path();
    let table: &[(Value, &[&str])] = &[
        (json!({ "pattern": "needle in" }), &["needle in"]),
        (json!({ "pattern": "needle$" }), &["needle$"]),
        (json!({ "pattern": r"needle_\d*7\b" }), &[r"needle_\d*7\b"]),
        (
            json!({ "pattern": "NAÏVE CAFÉ", "ignore_case": true, "type": "py" }),
            &["NAÏVE CAFÉ", "-i", "-tpy"],
        ),
        (json!({ "pattern": r"caf. needle|\bneedle (16|first)" }), &[r"caf. needle|\bneedle (16|first)"]),
        (json!({ "pattern": "über" }), &["über"]),
        (json!({ "pattern": "needle", "path": "odd" }), &["needle", "odd"]),
        (json!({ "pattern": "needle", "path": "./sub/" }), &["needle", "sub"]),
        (json!({ "pattern": "needle", "path": "target" }), &["needle", "target"]),
        (json!({ "pattern": "needle", "path": "link_dir" }), &["needle", "link_dir"]),
        (json!({ "pattern": "needle", "path": "link.rs" }), &["needle", "link.rs"]),
        (json!({ "pattern": "needle", "path": "a.log" }), &["needle", "a.log"]),
        (
            json!({ "pattern": "needle", "path": "odd/crlf.rs", "context": 1 }),
            &["needle", "odd/crlf.rs", "-C1"],
        ),
        (json!({ "pattern": "needle", "path": "odd/late.bin" }), &["needle", "odd/late.bin"]),
        (json!({ "pattern": "needle", "glob": "sub/**" }), &["needle", "-gsub/**"]),
        (json!({ "pattern": "needle", "glob": "*.log" }), &["needle", "-g*.log"]),
        (json!({ "pattern": "needle_", "glob": "!*.{rs,py,md,c}" }), &["needle_", "-g!*.{rs,py,md,c}"]),
        (json!({ "pattern": "needle", "glob": "**/.*" }), &["needle", "-g**/.*"]),
        (json!({ "pattern": "needle_2", "type": "rust", "context": 2 }), &["needle_2", "-trust", "-C2"]),
        (json!({ "pattern": "needle_2", "type": "c", "before": 1 }), &["needle_2", "-tc", "-B1"]),
        (json!({ "pattern": "file 1|find", "type": "ts", "after": 3 }), &["file 1|find", "-tts", "-A3"]),
        (json!({ "pattern": "find", "type": "c", "context": 4, "after": 0 }), &["find", "-tc", "-B4"]),
        (json!({ "pattern": r"start\s+needle", "multiline": true }), &[r"start\s+needle", "-U"]),
        (
            json!({ "pattern": r"(?s)start.*?end", "multiline": true, "path": "odd" }),
            &["(?s)start.*?end", "-U", "odd"],
        ),
        (
            json!({ "pattern": r"Thing;\nimpl", "multiline": true, "type": "md", "context": 1 }),
            &[r"Thing;\nimpl", "-U", "-tmd", "-C1"],
        ),
        (json!({ "pattern": "", "path": "odd/several.txt" }), &["", "odd/several.txt"]),
    ];
    for (input, args) in table {
        let mut input = input.clone();
        input["limit"] = json!(2_000);
        let say = |mode: &[&str]| rg(root, &[mode, &["-H"], args].concat()).unwrap();
        assert_same(&found(root, &GrepTool::default(), input.clone()), &say(&["--heading", "-n"]), &input);
        input["mode"] = json!("files");
        assert_same(&found(root, &GrepTool::default(), input.clone()), &say(&["-l"]), &input);
        input["mode"] = json!("count");
        assert_same(&found(root, &GrepTool::default(), input.clone()), &say(&["-c"]), &input);
    }
}

#[test]
fn glob_finds_what_rg_finds() {
    if !has_rg("glob_finds_what_rg_finds") {
        return;
    }
    let folder = project();
    let root = folder.path();
    let table = [
        ("*.rs", ""),
        ("*.log", ""),
        ("**/*.tmp", ""),
        ("src/**/f1*.{py,md}", ""),
        ("/*", ""),
        ("sub/**", ""),
        ("!*.rs", ""),
        (".*", ""),
        ("**/.*/**", ""),
        ("m1*/**", "src"),
        ("*.rs", "sub"),
        ("[ab]*/*.rs", ""),
        ("f?.c", "src"),
        ("link*", ""),
        ("*.RS", ""),
        ("*.rs", "link_dir"),
        ("#odd", ""),
        ("with space.rs", ""),
    ];
    let sorted = |text: String| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    for (pattern, path) in table {
        let ours = found(root, &GlobTool::default(), json!({ "pattern": pattern, "path": path }));
        let ours =
            sorted(ours.lines().filter(|line| !line.starts_with("[No file")).collect::<Vec<_>>().join("\n"));
        let theirs = sorted(rg(&root.join(path), &["--files", "-g", pattern]).unwrap());
        let theirs = theirs.iter().map(|file| Path::new(path).join(file).display().to_string()).collect();
        assert_eq!(ours, theirs, "{pattern} in {path:?}");
    }
    let all = sorted(found(root, &GlobTool::default(), json!({ "pattern": "**/*" })));
    assert_eq!(
        all,
        sorted(rg(root, &["--files"]).unwrap()),
        "a pattern that names nothing keeps the ignore rules"
    );
}

#[test]
fn the_most_recently_changed_come_first_and_the_rest_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..620_u64 {
        let path = folder.path().join(format!("{number}.txt"));
        let age = Duration::from_secs(1_000_000 + number * 7_919 % 620);
        fs::File::create(path).unwrap().set_modified(SystemTime::UNIX_EPOCH + age).unwrap();
    }
    let text = found(folder.path(), &GlobTool::default(), json!({ "pattern": "*.txt" }));
    let (files, note) = text.trim_end().rsplit_once('\n').unwrap();
    assert!(note.starts_with("[120 of 620 files"), "{note}");
    let ages = files.lines().map(|file| {
        let number: u64 = file.strip_suffix(".txt").unwrap().parse().unwrap();
        number * 7_919 % 620
    });
    assert!(ages.eq((120..620).rev()));
}

#[test]
fn what_does_not_fit_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    for file in ["a", "b", "c"] {
        put(folder.path(), file, "x\ny\nx\nz\nz\nz\nx\n");
    }
    let show = |input: Value| found(folder.path(), &GrepTool::default(), input);
    let text = show(json!({ "pattern": "x", "limit": 4, "context": 1 }));
    assert_eq!(
        text,
        "a\n1:x\n2-y\n3:x\n4-z\n--\n6-z\n7:x\n\nb\n1:x\n2-y\n[The first 4 of 9 matching lines in 3 files are shown. Narrow the \
         search, or use mode files or count.]"
    );
    assert_eq!(show(json!({ "pattern": "x", "limit": 9 })).lines().count(), 14);
    let text = show(json!({ "pattern": "x", "limit": 2, "mode": "count" }));
    assert_eq!(text, "a:3\nb:3\n[The first 2 of 3 files are shown. Narrow the search.]");
    assert_eq!(show(json!({ "pattern": "q" })), "[No match in 3 files.]");
    assert_eq!(show(json!({ "pattern": "q", "glob": "*.rs" })), "[No file in the project matches.]");
    put(folder.path(), "d", "x and more of it than can be shown in one result\n".repeat(3_000));
    let text = show(json!({ "pattern": "x", "limit": 2_000 }));
    assert!(text.len() < 50_000 && text.contains("of 3009 matching lines in 4 files"), "{}", text.len());
}

#[test]
fn globs_may_begin_with_a_dot_or_the_root() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("project");
    let added = folder.path().join("added");
    for (place, file) in [(&root, "src/a.rs"), (&root, "top.rs"), (&root, "doc/a.md"), (&added, "lib/b.rs")] {
        put(place, file, "needle\n");
    }
    let glob = |pattern: &str, path: Option<&str>| {
        let input = match path {
            Some(path) => json!({ "pattern": pattern, "path": path }),
            None => json!({ "pattern": pattern }),
        };
        found(&root, &GlobTool::default(), input).lines().map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let grep = |glob: &str| {
        let input = json!({ "pattern": "needle", "glob": glob, "mode": "files" });
        found(&root, &GrepTool::default(), input).lines().map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let set = |files: &[&str]| files.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
    let whole = |place: &Path, glob: &str| place.join(glob).display().to_string();
    let elsewhere = set(&[&whole(&added, "lib/b.rs")]);
    for (pattern, wanted) in [
        ("./src/*.rs".to_owned(), set(&["src/a.rs"])),
        ("./*.rs".to_owned(), set(&["src/a.rs", "top.rs"])),
        ("././**".to_owned(), set(&["src/a.rs", "top.rs", "doc/a.md"])),
        (whole(&root, "src/*.rs"), set(&["src/a.rs"])),
        (whole(&root, "**/*.rs"), set(&["src/a.rs", "top.rs"])),
        (whole(&root, "doc/a.md"), set(&["doc/a.md"])),
        ("/src/**".to_owned(), set(&["src/a.rs"])),
        (whole(&added, "**/*.rs"), elsewhere.clone()),
        ("../added/lib/*.rs".to_owned(), elsewhere),
    ] {
        assert_eq!(grep(&pattern), wanted, "{pattern}");
        // Here, what begins with a slash is a path.
        if !pattern.starts_with("/src") {
            assert_eq!(glob(&pattern, None), wanted, "{pattern}");
        }
    }
    assert_eq!(grep("!./src/**"), set(&["top.rs", "doc/a.md"]));
    assert_eq!(grep(&format!("!{}", whole(&root, "src/**"))), set(&["top.rs", "doc/a.md"]));
    assert_eq!(glob("./a.*", Some("src")), set(&["src/a.rs"]));
    assert_eq!(glob(&whole(&root, "src/*.rs"), Some("src")), set(&["src/a.rs"]));
}

#[test]
fn why_nothing_was_found_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    put(root, "src/a.rs", "needle\n");
    put(root, "out/made/b.js", "needle\n");
    put(root, ".ignore", "out/\n");
    let glob = |pattern: &str| found(root, &GlobTool::default(), json!({ "pattern": pattern }));
    let grep = |glob: &str| found(root, &GrepTool::default(), json!({ "pattern": "needle", "glob": glob }));
    for told in [&glob as &dyn Fn(&str) -> String, &grep] {
        assert_eq!(told("scr/**/*.rs"), "[No file matches: there is no folder scr.]");
        assert_eq!(told("./src/*.py"), "[No file in the project matches.]");
        assert_eq!(
            told("main"),
            "[No file in the project has this name. For a part of a name, write *main*.]"
        );
        let hidden =
            "[No file matches but hidden or ignored ones, such as out/made/b.js. Give their folder as path.]";
        assert_eq!(told("*.js"), hidden);
    }
    let given = json!({ "pattern": "*.js", "path": "out/made" });
    assert_eq!(found(root, &GlobTool::default(), given).trim_end(), "out/made/b.js");
    let typed = found(root, &GrepTool::default(), json!({ "pattern": "x", "type": "py" }));
    assert!(typed.starts_with("[No file in the project is of the type py"), "{typed}");
    let empty = tempfile::tempdir().unwrap();
    let nothing = found(empty.path(), &GrepTool::default(), json!({ "pattern": "x" }));
    assert!(nothing.starts_with("[No file was searched: there is none in the project"), "{nothing}");
}

#[test]
fn a_mistake_is_told_with_what_to_do() {
    let folder = project();
    let refused = |tool: &dyn Tool, input: Value| refused(folder.path(), tool, input);
    assert!(refused(&GrepTool::default(), json!({ "pattern": "main(" })).contains(r"write it as main\("));
    assert!(refused(&GrepTool::default(), json!({ "pattern": "x", "type": "tsx" })).contains("the type ts"));
    assert!(
        refused(&GrepTool::default(), json!({ "pattern": "x", "glob": "a[" })).contains("The glob is wrong")
    );
    assert!(refused(&GlobTool::default(), json!({ "pattern": "{a" })).contains("The glob is wrong"));
    for tool in [&GrepTool::default() as &dyn Tool, &GlobTool::default(), &ListTool::default()] {
        let mut input = json!({ "path": "src/none" });
        if tool.name() != "list" {
            input["pattern"] = json!("x");
        }
        assert!(refused(tool, input).starts_with("There is no src/none."));
    }
    assert!(refused(&ListTool::default(), json!({ "path": "Makefile" })).contains("Use `read`"));
}

#[test]
fn what_the_user_ignores_everywhere_is_ignored_in_repositories() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    put(root, "mine", "*.swp\n");
    put(root, "p/a.swp", "x\n");
    put(root, "p/b.txt", "x\n");
    let tool = GrepTool { user_ignores: Some(root.join("mine")) };
    let files = || found(&root.join("p"), &tool, json!({ "pattern": "x", "mode": "files" }));
    assert_eq!(files(), "a.swp\nb.txt\n");
    fs::create_dir(root.join("p/.git")).unwrap();
    assert_eq!(files(), "b.txt\n");
}

#[cfg(unix)]
#[test]
fn a_search_stops_in_the_middle_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    // A terabyte of nothing, which takes no room and a long time.
    if fs::File::create(folder.path().join("huge")).unwrap().set_len(1 << 40).is_err() {
        skip("a_search_stops_in_the_middle_of_a_file", "the disk has no sparse files of that size");
        return;
    }
    if !Path::new("/proc/self/io").exists() {
        return skip("a_search_stops_in_the_middle_of_a_file", "nobody tells how much was read");
    }
    let context = context(folder.path());
    let stop = context.stop.clone();
    let before = bytes_read();
    let stopper = std::thread::spawn(move || {
        // In the middle: some of it is read, and much is left.
        while bytes_read() < before + (1 << 24) {
            std::thread::yield_now();
        }
        stop.cancel();
    });
    let failure =
        run_in(&context, &GrepTool::default(), json!({ "pattern": "x", "path": "huge" })).unwrap_err();
    assert_eq!(failure.0, "The search was stopped.");
    stopper.join().unwrap();
    let read = bytes_read() - before;
    assert!(read < 1 << 36, "{read} bytes were read");
}

/// How many bytes this process has read so far.
fn bytes_read() -> u64 {
    let told = fs::read_to_string("/proc/self/io").unwrap();
    told.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

#[test]
fn a_tree_shows_what_is_there_and_names_what_is_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for file in
        ["src/lib.rs", "src/deep/er/x.rs", "b.txt", ".github/ci.yml", ".git/HEAD", "target/x/y", "src/a.log"]
    {
        put(root, file, "");
    }
    put(root, ".gitignore", "target\n*.log\n");
    #[cfg(unix)]
    std::os::unix::fs::symlink("b.txt", root.join("c")).unwrap();
    let link = if cfg!(unix) { "c -> b.txt\n" } else { "" };
    let ignored = "[Ignored: src/a.log, target/]";
    assert_eq!(
        found(root, &ListTool::default(), json!({})),
        format!(
            ".github/\n  ci.yml\n.gitignore\nb.txt\n{link}src/\n  deep/\n    er/\n      x.rs\n  lib.rs\n{ignored}"
        )
    );
    assert_eq!(
        found(root, &ListTool::default(), json!({ "depth": 2 })),
        format!(".github/\n  ci.yml\n.gitignore\nb.txt\n{link}src/\n  deep/ [1 file]\n  lib.rs\n{ignored}")
    );
    assert_eq!(found(root, &ListTool::default(), json!({ "path": "src/deep" })), "er/\n  x.rs\n");
    fs::create_dir(root.join("empty")).unwrap();
    assert!(
        found(root, &ListTool::default(), json!({ "path": "empty" })).starts_with("[Nothing is in there")
    );
}

#[test]
fn a_large_tree_is_told_from_above() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..300 {
        put(folder.path(), &format!("many/{number:03}"), "");
        put(folder.path(), &format!("some/{}/{number}", number % 50), "");
    }
    let text = found(folder.path(), &ListTool::default(), json!({}));
    assert!(text.lines().count() <= 402, "{text}");
    assert!(text.contains("many/\n  000\n") && text.contains("  199\n  [100 more]\nsome/\n"), "{text}");
    assert!(text.contains("  9/ [6 files]\n"), "the last of the folders does not fit: {text}");
    assert!(
        found(folder.path(), &ListTool::default(), json!({ "depth": 1 }))
            .contains("many/ [300 files]\nsome/ [300 files]\n")
    );
}

/// One file of a random tree: its folders and name, and its lines.
type RandomFile = (Vec<&'static str>, &'static str, Vec<String>);

fn random_tree() -> impl Strategy<Value = (Vec<RandomFile>, Vec<(usize, Vec<&'static str>)>)> {
    let folder = prop::sample::select(vec!["a", "b", "c.x", ".h"]);
    let name = prop::sample::select(vec!["a", "b", "one.x", "two.y", ".dot.x", "three.y"]);
    let file = (prop::collection::vec(folder, 0..3), name, prop::collection::vec("[abé ]{0,6}", 0..5));
    let rule = prop::sample::select(vec!["a", "b/", "*.x", "*.y", "!one.x", "!a", "three.*", "!two.y"]);
    let rules = (0_usize..8, prop::collection::vec(rule, 1..4));
    (prop::collection::vec(file, 1..20), prop::collection::vec(rules, 0..3))
}

/// Whether a rule of an ignore file is about a name: the few forms that the trees above have.
fn is_about(rule: &str, name: &str, is_folder: bool) -> bool {
    let rule = rule.trim_start_matches('!');
    match (rule.strip_suffix('/'), rule.strip_prefix('*'), rule.strip_suffix('*')) {
        (Some(folder), ..) => is_folder && folder == name,
        (_, Some(end), _) => name.ends_with(end),
        (.., Some(start)) => name.starts_with(start),
        _ => rule == name,
    }
}

/// The nearest ignore file with a rule about an entry decides, and in it the last such rule.
fn is_left_out(root: &Path, path: &Path, is_folder: bool) -> bool {
    let name = path.file_name().unwrap().to_str().unwrap();
    let decided = path.ancestors().skip(1).take_while(|folder| folder.starts_with(root)).find_map(|folder| {
        let rules = fs::read_to_string(folder.join(".ignore")).unwrap_or_default();
        rules.lines().rev().find(|rule| is_about(rule, name, is_folder)).map(|rule| !rule.starts_with('!'))
    });
    // A rule that lets something in does so though it is hidden.
    decided.unwrap_or(name.starts_with('.'))
}

/// All files that are looked at, by hand.
fn walked(root: &Path, folder: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        match path.is_dir() {
            is_folder if is_left_out(root, &path, is_folder) => {}
            true => walked(root, &path, files),
            false => files.push(path),
        }
    }
}

fn searched(root: &Path, pattern: &str) -> String {
    let pattern = regex::Regex::new(pattern).unwrap();
    let mut files = Vec::new();
    walked(root, root, &mut files);
    let hits = files.iter().filter_map(|path| {
        let text = fs::read_to_string(path).unwrap();
        let lines = (1..).zip(text.lines()).filter(|(_, line)| pattern.is_match(line));
        let lines: String = lines.map(|(number, line)| format!("{number}:{line}\n")).collect();
        let path = path.strip_prefix(root).unwrap().display();
        (!lines.is_empty()).then(|| format!("{path}\n{lines}"))
    });
    hits.collect::<Vec<_>>().join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn grep_and_glob_find_what_a_look_at_every_file_finds(
        (files, rules) in random_tree(),
        pattern in "(\\^)?[abé.]([abé .]|[ab]\\+|\\[ab\\]|a\\*|\\(a\\|b\\)){0,3}(\\$)?",
    ) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for (folders, name, lines) in &files {
            let folder = folders.iter().fold(root.to_owned(), |path, name| path.join(name));
            // What is a file in one place may be a folder in another.
            if fs::create_dir_all(&folder).is_ok() {
                let _ = fs::write(folder.join(name), lines.join("\n"));
            }
        }
        for (at, rules) in &rules {
            let folders = files.get(*at).map(|(folders, ..)| folders.as_slice()).unwrap_or_default();
            let folder = folders.iter().fold(root.to_owned(), |path, name| path.join(name));
            let _ = fs::write(folder.join(".ignore"), rules.join("\n"));
        }
        let ours = found(root, &GrepTool::default(), json!({ "pattern": pattern }));
        let ours = ours.split("[No ").next().unwrap();
        prop_assert_eq!(ours, searched(root, &pattern), "{}", pattern);

        let mut all = Vec::new();
        walked(root, root, &mut all);
        let all: BTreeSet<String> =
            all.iter().map(|path| path.strip_prefix(root).unwrap().display().to_string()).collect();
        let ours = found(root, &GlobTool::default(), json!({ "pattern": "**/*" }));
        let ours: BTreeSet<String> = ours.lines().filter(|line| !line.starts_with('[')).map(str::to_owned).collect();
        prop_assert_eq!(ours, all);
    }

    #[test]
    fn no_input_breaks_a_search(pattern in ".{0,20}", glob in ".{0,12}", is_multiline in any::<bool>()) {
        let folder = tempfile::tempdir().unwrap();
        put(folder.path(), "a/b.rs", "some text\n");
        let context = context(folder.path());
        let input = json!({ "pattern": pattern, "glob": glob, "multiline": is_multiline });
        let told = run_in(&context, &GrepTool::default(), input).map_or_else(|failure| failure.0, |output| output.text);
        prop_assert!(!told.is_empty());
        let input = json!({ "pattern": glob });
        let told = run_in(&context, &GlobTool::default(), input).map_or_else(|failure| failure.0, |output| output.text);
        prop_assert!(!told.is_empty());
    }
}

/// As for git and `rg`, not the root of the machine.
#[test]
fn a_glob_with_a_slash_before_it_is_of_the_top_of_the_project() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("deep")).unwrap();
    for name in ["a.rs", "deep/a.rs"] {
        fs::write(folder.path().join(name), "").unwrap();
    }
    let found = found(folder.path(), &GlobTool::default(), json!({ "pattern": "/a.rs" }));
    assert!(found.starts_with("a.rs") && !found.contains("deep"), "{found}");
}

/// A pipe would be waited for until the time is over, a device never ends.
#[test]
fn rules_that_are_no_file_hold_nothing_up() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    put(&root, "a/f.txt", "word\n");
    put(&root, "b/g.txt", "word\n");
    put(&root, "c/h.txt", "word\n");
    let pipe = |name: &str| {
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
        rustix::fs::mknodat(rustix::fs::CWD, root.join(name), kind, mode, 0).unwrap();
    };
    pipe("a/.gitignore");
    std::os::unix::fs::symlink("/dev/zero", root.join("b/.ignore")).unwrap();
    let text = found(&root, &GrepTool::default(), json!({ "pattern": "word" }));
    assert!(text.contains("c/h.txt") && !text.contains("f.txt") && !text.contains("g.txt"), "{text}");
    assert!(text.contains("2 places were not looked at"), "{text}");
    pipe(".ignore");
    let error = refused(&root, &GlobTool::default(), json!({ "pattern": "*.txt" }));
    assert!(error.contains(".ignore is no ordinary file"), "{error}");
}
