//! Commands that do their worst: each ends as it should, and nothing of it is left.

use std::fs;

use serde_json::json;

use crate::shell::House;

/// The most memory that this process has ever had, in KiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_gigabyte_of_output_takes_little_memory() {
    let house = House::new();
    for (command, told) in [
        ("head -c 1G /dev/zero", "[exit code 0]"),
        ("yes | head -c 1G", "y\ny\ny\n[the line above 536870909 times more]\n[exit code 0]"),
    ] {
        let before = peak();
        assert_eq!(house.shell(json!({ "command": command, "timeout": 110 })).await.text, told);
        let grown = (peak() - before) >> 10;
        assert!(grown < 64, "{command}: {grown} MiB");
    }
    let before = peak();
    let output = house.shell(json!({ "command": "seq 1 4000000", "timeout": 110 })).await;
    assert!(output.text.ends_with("\n4000000\n[exit code 0]") && output.text.chars().count() < 30_500);
    let whole = house.context.blobs.get(output.whole.unwrap()).unwrap();
    assert!(whole.len() < (16 << 20) + 100 && whole.len() > 16_000_000, "{}", whole.len());
    assert!(String::from_utf8(whole).unwrap().contains(" bytes were not kept]\n"));
    let grown = (peak() - before) >> 10;
    assert!(grown < 100, "{grown} MiB");
    assert_eq!(house.processes(), 0);
}

#[tokio::test]
async fn a_fork_bomb_is_ended() {
    let house = House::with(|commands| commands.processes = 100);
    // It doubles twenty times a second: a faster one can outrun whoever counts on a machine that is busy with other tests.
    let told = house.run("bomb() { sleep 0.05; bomb | bomb & }; bomb; sleep 60").await;
    assert!(told.ends_with("[ended, because it had too many processes at once]"), "{told}");
    assert_eq!(house.processes(), 0);
    assert_eq!(house.run("echo on").await, "on\n[exit code 0]");
}

#[tokio::test]
async fn bytes_that_are_no_text_do_no_harm() {
    let house = House::new();
    assert_eq!(house.run("printf 'a\\0b\\0\\n'").await, "a\u{2400}b\u{2400}\n[exit code 0]");
    assert_eq!(house.run("printf 'a\\377\\376b \\303'").await, "a\u{fffd}\u{fffd}b \u{fffd}\n[exit code 0]");
    assert!(house.run("head -c 3000000 /dev/urandom").await.ends_with("[exit code 0]"));
}

#[tokio::test]
async fn who_reads_gets_nothing_and_ends() {
    let house = House::new();
    assert_eq!(house.run("cat; echo over").await, "over\n[exit code 0]");
    assert_eq!(house.run("read x || echo none").await, "none\n[exit code 0]");
    assert!(
        house.run("python3 -c 'input()'").await.ends_with("EOFError: EOF when reading a line\n[exit code 1]")
    );
    assert_eq!(house.on_terminal("cat; echo over").await, "over\n[exit code 0]");
    let asked = house.run("read -s -p 'Password: ' word < /dev/tty").await;
    assert!(asked.contains("/dev/tty: No such device") && asked.ends_with("[exit code 1]"), "{asked}");
}

#[tokio::test]
async fn what_does_not_want_to_end_is_ended() {
    let house = House::new();
    let stubborn = "trap '' TERM INT HUP; echo ready; while :; do sleep 1000; done";
    for terminal in [false, true] {
        let input = json!({ "command": stubborn, "timeout": 1, "terminal": terminal });
        let told = house.shell(input).await.text;
        assert!(
            told.starts_with("ready\n[stopped after 1 s, with everything that it had started; "),
            "{told}"
        );
        assert_eq!(house.processes(), 0);
    }
}

#[tokio::test]
async fn what_is_left_behind_ends_with_the_command() {
    let house = House::new();
    let note = "left running by it ended too; `background` keeps a command running]";
    let told = house.run("sleep 1000 & echo started").await;
    assert_eq!(told, format!("started\n[exit code 0]\n[1 process {note}"));
    let daemon = "(setsid sh -c 'trap \"\" TERM HUP; sleep 1000; sleep 1000' </dev/null >/dev/null 2>&1 &); echo started";
    let told = house.run(daemon).await;
    assert!(told.starts_with("started\n[exit code 0]\n[") && told.ends_with(note), "{told}");
    assert_eq!(house.processes(), 0);
}

#[tokio::test]
async fn a_command_that_closes_its_output_is_waited_for() {
    let house = House::new();
    let told = house.run("echo last; exec >&- 2>&-; sleep 0.3; touch done; exit 6").await;
    assert_eq!(told, "last\n[exit code 6]");
    assert!(house.root().join("done").exists());
    let told = house.on_terminal("echo last; exec <&- >&- 2>&-; sleep 0.3; touch again; exit 6").await;
    assert_eq!(told, "last\n[exit code 6]");
    assert!(house.root().join("again").exists());
}

#[tokio::test]
async fn programs_that_take_the_screen_end_with_their_time() {
    let house = House::new();
    fs::write(house.root().join("text"), "line\n".repeat(500)).unwrap();
    for program in ["less text", "vi text", "python3 -c 'import getpass; getpass.getpass()'"] {
        let input = json!({ "command": program, "timeout": 4, "terminal": true });
        house.shell(input).await;
        assert_eq!(house.processes(), 0, "{program}");
    }
}
