use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::home::Home;

const BODY: &str = concat!(
    r#"data: {"choices":[{"index":0,"delta":{"content":"Hi ","tool_calls":[{"index":0,"id":"c1","#,
    r#""function":{"name":"read","arguments":"{\"path\":1}"}}]},"finish_reason":"tool_calls"}],"#,
    r#""usage":{"prompt_tokens":7,"completion_tokens":2}}"#,
    "\n\ndata: [DONE]\n\n",
);

#[test]
fn a_recorded_response_is_told_as_json() {
    let home = Home::new();
    home.write("project/body.sse", BODY);
    let expected = json!({
        "text": "Hi ",
        "thinking": "",
        "tool_calls": [{"id": "c1", "name": "read", "arguments": {"path": 1}}],
        "usage": {"input": 7, "output": 2, "cache_read": 0, "cache_write": 0},
        "stop": "tool_use",
        "error": null,
    });
    for words in [vec![], vec!["--chunk", "1"], vec!["--chunk", "7"]] {
        let ran = home.run(&[&["models", "decode", "--wire", "chat", "body.sse"], words.as_slice()].concat());
        let told: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!((ran.code, told), (0, expected.clone()), "{words:?}");
    }
}

#[test]
fn a_response_that_is_no_answer_tells_its_error() {
    let home = Home::new();
    home.write("project/cut.sse", &BODY[..40]);
    home.write(
        "project/refused.json",
        r#"{"error":{"message":"invalid x-api-key","type":"authentication_error"}}"#,
    );
    for (file, expected) in
        [("cut.sse", "ended before the answer did"), ("refused.json", "invalid x-api-key")]
    {
        let ran = home.run(&["models", "decode", "--wire", "messages", file]);
        let told: Value = serde_json::from_str(&ran.out).unwrap();
        assert!(told["error"].as_str().unwrap().contains(expected), "{told}");
    }
    assert_eq!(home.run(&["models", "decode", "--wire", "chat", "nowhere"]).code, 1);
    assert_eq!(home.run(&["models", "decode", "--wire", "smoke", "cut.sse"]).code, 2);
}

#[test]
fn a_response_may_come_from_a_pipe() {
    let home = Home::new();
    let mut command = home.helve(&["models", "decode", "--wire", "chat", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(BODY.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"Hi \""));
}
