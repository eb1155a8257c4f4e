//! Commands in the background.

use serde_json::json;

use crate::shell::House;

#[tokio::test]
async fn a_job_is_started_looked_at_and_ended() {
    let house = House::new();
    assert_eq!(house.look(json!({})).await.unwrap(), "[no jobs]");
    let first =
        house.begin("echo ready; while [ ! -e go ]; do sleep 0.02; done; echo gone; sleep 1000", false).await;
    assert_eq!(first, "ready\n[job 1: running]");
    assert_eq!(house.look(json!({ "job": 1 })).await.unwrap(), "[job 1: running]", "nothing is told twice");
    std::fs::write(house.root().join("go"), "").unwrap();
    assert_eq!(house.look(json!({ "job": 1, "wait": 60 })).await.unwrap(), "gone\n[job 1: running]");
    assert!(house.look(json!({})).await.unwrap().starts_with("[job 1: running] echo ready; while"));
    assert_eq!(house.kill(1).await.unwrap(), "[job 1: ended by signal 15 (asked to end)]");
    assert_eq!(house.processes(), 0);
    assert_eq!(
        house.kill(1).await.unwrap(),
        "[job 1: ended by signal 15 (asked to end)]",
        "once more does nothing"
    );
}

#[tokio::test]
async fn a_job_that_ends_at_once_is_told_at_once() {
    let house = House::new();
    assert_eq!(house.begin("echo no; exit 7", false).await, "no\n[job 1: exit code 7]");
    assert_eq!(house.begin("exit 0", true).await, "[job 2: exit code 0]");
    assert_eq!(house.look(json!({ "job": 2, "wait": 60 })).await.unwrap(), "[job 2: exit code 0]");
    let unknown = house.look(json!({ "job": 9 })).await.unwrap_err();
    assert_eq!(unknown, "There is no job 9. There are: 1, 2.");
}

#[tokio::test]
async fn a_job_is_typed_to_through_a_pipe() {
    let house = House::new();
    house.begin("read name; echo \"hello $name\"; cat; echo over", false).await;
    let told = house.type_in(json!({ "job": 1, "text": "you", "enter": true })).await.unwrap();
    assert_eq!(told, "hello you\n[job 1: running]");
    let told = house.type_in(json!({ "job": 1, "key": "ctrl-c" })).await.unwrap_err();
    assert!(told.contains("has no terminal"), "{told}");
    let told = house.type_in(json!({ "job": 1, "text": "more", "end": true })).await.unwrap();
    assert_eq!(told, "moreover\n[job 1: exit code 0]");
    let told = house.type_in(json!({ "job": 1, "text": "x" })).await.unwrap_err();
    assert!(told.contains("takes no input"), "{told}");
}

#[tokio::test]
async fn a_job_on_a_terminal_has_keys() {
    let house = House::new();
    house.begin("trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.05; done", true).await;
    let mut told = house.type_in(json!({ "job": 1, "key": "ctrl-c" })).await.unwrap();
    while !told.contains("exit code") {
        told = house.look(json!({ "job": 1, "wait": 60 })).await.unwrap();
    }
    assert!(told.ends_with("[job 1: exit code 5]"), "{told}");
    assert_eq!(house.processes(), 0);
}

/// Types, and looks until something is said.
async fn until_said(house: &House, input: serde_json::Value, said: &str) {
    let job = input["job"].clone();
    let mut told = house.type_in(input).await.unwrap();
    for _ in 0..60 {
        if told.contains(said) {
            return;
        }
        told.push_str(&house.look(json!({ "job": job, "wait": 1 })).await.unwrap());
    }
    panic!("{said:?} is not in {told:?}");
}

#[tokio::test]
async fn interactive_programs_can_be_used() {
    let house = House::new();
    let program = |name: &str| format!("command -v {name} >/dev/null || exit 77; exec {name}");
    house.begin(&format!("{} -q -i", program("python3")), true).await;
    until_said(&house, json!({ "job": 1, "text": "print(6 * 7)", "enter": true }), "42").await;
    until_said(&house, json!({ "job": 1, "key": "ctrl-d" }), "[job 1: exit code 0]").await;

    std::fs::write(house.root().join("text"), "line\n".repeat(500)).unwrap();
    house.begin(&format!("{} text", program("less")), true).await;
    until_said(&house, json!({ "job": 2, "text": "q" }), "[job 2: exit code").await;

    house.begin(&format!("{} written", program("vi")), true).await;
    until_said(&house, json!({ "job": 3, "text": "ihello" }), "[job 3:").await;
    until_said(&house, json!({ "job": 3, "key": "escape" }), "[job 3:").await;
    until_said(&house, json!({ "job": 3, "text": ":wq", "enter": true }), "[job 3: exit code").await;
    let written = std::fs::read_to_string(house.root().join("written")).unwrap_or_default();
    assert!(
        written == "hello\n" || house.look(json!({})).await.unwrap().contains("[job 3: exit code 77"),
        "{written:?}"
    );
    assert_eq!(house.processes(), 0);
}

#[tokio::test]
async fn what_is_lost_of_a_talkative_job_is_said() {
    let house = House::new();
    house.begin("while [ ! -e go ]; do sleep 0.02; done; seq 1 1000000", false).await;
    std::fs::write(house.root().join("go"), "").unwrap();
    while !house.look(json!({})).await.unwrap().contains("exit code 0") {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let told = house.look(json!({ "job": 1 })).await.unwrap();
    assert!(told.starts_with('[') && told.contains("bytes were not kept]\n"), "{}", &told[..100]);
    assert!(told.ends_with("\n1000000\n[job 1: exit code 0]") && told.chars().count() < 31_000);
}

#[tokio::test]
async fn there_are_so_many_jobs_and_all_end_with_the_session() {
    let house = House::new();
    for _ in 0..16 {
        house
            .begin("trap '' TERM HUP; (setsid sleep 1000 &); echo ready; sleep 1000; sleep 1000", false)
            .await;
    }
    house.until_processes(|count| count >= 48).await;
    let input = json!({ "command": "sleep 1000", "background": true });
    let shell = house.call(house.shell_tool(), input).await;
    assert!(shell.unwrap_err().starts_with("16 jobs run already."));
    house.kill(1).await.unwrap();
    house.begin("sleep 1000", false).await;
    let house = house.end_session();
    house.until_gone().await;
}

#[test]
fn jobs_end_with_their_runtime() {
    let house = House::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(house.begin("trap '' TERM; echo ready; sleep 1000; sleep 1000", true));
    runtime.block_on(house.until_processes(|count| count >= 2));
    drop(runtime);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(house.until_processes(|count| count == 0));
}

#[tokio::test]
async fn a_command_that_nobody_wants_to_wait_for_goes_on_as_a_job() {
    let house = House::new();
    let background = house.context.background.clone();
    let command =
        house.run("cd sub; echo ready > mark; echo said; while [ ! -e go ]; do sleep 0.02; done; echo gone");
    let told = async {
        while !house.root().join("sub/mark").exists() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        // What it has said may still be under way.
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        background.notify_waiters();
    };
    let (text, ()) = tokio::join!(command, told);
    assert_eq!(text, "said\n[the user let it go on in the background: job 1]");
    assert_eq!(house.run("basename $PWD").await, "project\n[exit code 0]", "nobody follows where it went");
    std::fs::write(house.root().join("sub/go"), "").unwrap();
    let end = house.look(json!({ "job": 1, "wait": 60 })).await.unwrap();
    assert!(end.starts_with("gone\n[job 1: "), "{end}");
    // Nothing runs: nobody hears it, and the next command is not sent away.
    background.notify_waiters();
    assert_eq!(house.run("echo here").await, "here\n[exit code 0]");
}
