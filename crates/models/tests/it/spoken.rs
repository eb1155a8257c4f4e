//! Calls that models print as text.

use helve_models::ToolSpec;
use helve_models::text_calls::{TextCall, TextWithCalls, find_calls};
use proptest::prelude::*;
use serde_json::{Value, json};

fn tools() -> Vec<ToolSpec> {
    let tool = |name: &str, schema: Value| ToolSpec { name: name.into(), description: String::new(), schema };
    vec![
        tool(
            "read",
            json!({
                "type": "object",
                "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
                "required": ["path"],
                "additionalProperties": false
            }),
        ),
        tool(
            "list",
            json!({"type": "object", "properties": {"all": {"type": "boolean"}}, "additionalProperties": false}),
        ),
        tool(
            "write",
            json!({
                "type": "object",
                "properties": {"path": {"type": "string"}, "content": {"type": "string"}, "tags": {"type": "array"}},
                "required": ["path", "content"],
                "additionalProperties": false
            }),
        ),
    ]
}

fn read(path: &str) -> (&'static str, Value) {
    ("read", json!({"path": path}))
}

#[track_caller]
fn assert_spoken(text: &str, before: &str, expected: &[(&str, Value)]) {
    let calls_of = |(name, input): &(&str, Value)| TextCall { name: (*name).into(), input: input.clone() };
    let spoken = TextWithCalls { before: before.into(), calls: expected.iter().map(calls_of).collect() };
    assert_eq!(find_calls(text, &tools()), Some(spoken), "{text}");
}

#[test]
fn json_has_many_envelopes() {
    for call in [
        r#"{"name": "read", "arguments": {"path": "a"}}"#,
        r#"{"name": "read", "parameters": {"path": "a"}}"#,
        r#"{"name": "read", "input": {"path": "a"}}"#,
        r#"{"tool": "read", "args": {"path": "a"}}"#,
        r#"{"tool_name": "read", "tool_input": {"path": "a"}}"#,
        r#"{"function": "read", "arguments": {"path": "a"}}"#,
        r#"{"function": {"name": "read", "arguments": {"path": "a"}}}"#,
        r#"{"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{\"path\": \"a\"}"}}"#,
        r#"{"name": "read", "arguments": "{\"path\": \"a\"}"}"#,
        r#"[{"name": "read", "arguments": {"path": "a"}}]"#,
        r#"{"tool_calls": [{"name": "read", "arguments": {"path": "a"}}]}"#,
        "{'name': 'read', 'arguments': {'path': 'a',},}",
        "{\n  \"name\": \"read\",\n  \"arguments\": {\n    \"path\": \"a\"\n  }\n}",
    ] {
        for text in [
            call.to_owned(),
            format!("\n {call} \n"),
            format!("```json\n{call}\n```"),
            format!("```\n{call}\n```\n"),
            format!("```tool_call\n{call}\n```"),
            format!("~~~json\n{call}\n~~~"),
            format!("```json\n{call}"),
            format!("<tool_call>\n{call}\n</tool_call>"),
            format!("<tool_call>{call}</tool_call>"),
            format!("<tool_call>\n{call}"),
            format!("<|python_tag|>{call}<|eom_id|>"),
            format!("[TOOL_CALLS] {call}"),
        ] {
            assert_spoken(&text, "", &[read("a")]);
        }
    }
}

#[test]
fn calls_of_every_family_are_understood() {
    for (text, before, expected) in [
        (
            "I'll look.\n```json\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n```\n",
            "I'll look.",
            vec![read("a")],
        ),
        (
            "I'll look.\n\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"list\", \"arguments\": {}}\n</tool_call>",
            "I'll look.",
            vec![read("a"), ("list", json!({}))],
        ),
        (
            "<tool_call>{\"name\": \"list\", \"arguments\": {}}</tool_call><tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}",
            "",
            vec![("list", json!({})), read("a")],
        ),
        (
            "```json\n{\"name\": \"list\", \"arguments\": {}}\n```\n\n```json\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n```",
            "",
            vec![("list", json!({})), read("a")],
        ),
        (
            "{\"name\": \"list\", \"arguments\": {}}\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}",
            "",
            vec![("list", json!({})), read("a")],
        ),
        // The outer bracket is forgotten, but the end is marked.
        (
            "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\", \"limit\": 3}\n</tool_call>",
            "",
            vec![("read", json!({"path": "a", "limit": 3}))],
        ),
        ("```json\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}\n```", "", vec![read("a")]),
        // Qwen's coders.
        ("<function=read>{\"path\": \"a\"}</function>", "", vec![read("a")]),
        ("<function=list></function>", "", vec![("list", json!({}))]),
        (
            "Now:\n<tool_call>\n<function=read>\n<parameter=path>\na\n</parameter>\n<parameter=limit>\n10\n</parameter>\n</function>\n</tool_call>",
            "Now:",
            vec![("read", json!({"path": "a", "limit": 10}))],
        ),
        (
            "<function=write>\n<parameter=path>10</parameter>\n<parameter=content>\n  {\n<b> \"x\"\n\n</parameter>\n<parameter=tags>[\"a\"]</parameter>\n</function>",
            "",
            vec![("write", json!({"path": "10", "content": "  {\n<b> \"x\"\n", "tags": ["a"]}))],
        ),
        (
            "<tool_call><function=list>\n</function>\n<function=read><parameter=path>a</parameter></tool_call>",
            "",
            vec![("list", json!({})), read("a")],
        ),
        // Mistral's.
        (
            "Right.[TOOL_CALLS] [{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}, {\"name\": \"list\", \"arguments\": {}}]</s>",
            "Right.",
            vec![read("a"), ("list", json!({}))],
        ),
        (
            "[TOOL_CALLS]read[ARGS]{\"path\": \"[ARGS]\"}[TOOL_CALLS]list[ARGS]{}",
            "",
            vec![read("[ARGS]"), ("list", json!({}))],
        ),
        (
            "[TOOL_CALLS][{\"name\": \"read\", \"arguments\": {\"path\": \"[ARGS]\"}}]",
            "",
            vec![read("[ARGS]")],
        ),
        // Llama's.
        (
            "<|python_tag|>{\"name\": \"read\", \"parameters\": {\"path\": \"a\", \"limit\": \"3\"}}<|eot_id|>",
            "",
            vec![("read", json!({"path": "a", "limit": 3}))],
        ),
        // DeepSeek's, old and new.
        (
            "Fine.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read\n```json\n{\"path\": \"a\"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>list\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
            "Fine.",
            vec![read("a"), ("list", json!({}))],
        ),
        (
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read<｜tool▁sep｜>{\"path\": \"a\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            "",
            vec![read("a")],
        ),
        // What comes before is text, whatever it is.
        (
            "For example:\n```json\n{\"name\": \"list\", \"arguments\": {}}\n```\nbut I'd rather\n```json\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n```",
            "For example:\n```json\n{\"name\": \"list\", \"arguments\": {}}\n```\nbut I'd rather",
            vec![read("a")],
        ),
        (
            "```sh\nls\n```\n<tool_call>{\"name\": \"list\", \"arguments\": {}}</tool_call>",
            "```sh\nls\n```",
            vec![("list", json!({}))],
        ),
        (
            "<think>Hm: <tool_call>?</think>\n<tool_call>{\"name\": \"list\", \"arguments\": null}</tool_call>",
            "<think>Hm: <tool_call>?</think>",
            vec![("list", json!({}))],
        ),
    ] {
        assert_spoken(text, before, &expected);
    }
}

#[test]
fn what_is_not_meant_as_a_call_is_text() {
    let call = r#"{"name": "read", "arguments": {"path": "a"}}"#;
    for text in [
        String::new(),
        "Hello.".into(),
        // Something follows.
        format!("For example:\n```json\n{call}\n```\nwould read it."),
        format!("<tool_call>{call}</tool_call>\nThat was it."),
        format!("<tool_call>{call}</tool_call>\n```sh\nls\n```"),
        format!("`<tool_call>{call}</tool_call>`"),
        format!("[TOOL_CALLS] {call} is how."),
        format!("<|python_tag|>{call} is how."),
        "[TOOL_CALLS]list[ARGS]{}\nis how.".into(),
        "<｜tool▁call▁begin｜>list<｜tool▁sep｜>{}\nis how.".into(),
        "<function=list>Nothing:\n{}</function>".into(),
        "<function=list>{}\nis how.</function>".into(),
        format!("{call}\nis how."),
        // It is only quoted.
        format!("It looks like this: {call}"),
        format!("It looks like this: <tool_call>{call}</tool_call>"),
        format!("Run it:\n{call}"),
        format!("> <tool_call>{call}</tool_call>"),
        format!("```python\n{call}\n```"),
        format!("```xml\n<tool_call>{call}</tool_call>\n```"),
        format!("```xml\n<tool_call>{call}</tool_call>"),
        format!("```markdown\n\n```json\n{call}\n```\n\n```"),
        format!("````\n```json\n{call}\n```\n````"),
        format!("````markdown\n```\n<tool_call>{call}</tool_call>"),
        format!("```python\n[TOOL_CALLS] {call}\n```"),
        format!("<think>\nMaybe\n<tool_call>{call}</tool_call>"),
        // One of them is not right, so none is.
        format!("<tool_call>{call}</tool_call><tool_call>{{\"name\": \"drop\", \"arguments\": {{}}}}</tool_call>"),
        format!("```json\n{{\"version\": 1}}\n```\n```json\n{call}\n```"),
        format!("[{call}, 1]"),
        format!("{call} {{}}"),
        // Not what was offered, or it does not fit.
        r#"{"name": "Read", "arguments": {"path": "a"}}"#.into(),
        r#"{"name": "read", "arguments": {"invalid_param": "value"}}"#.into(),
        r#"{"name": "read", "arguments": {"path": 1}}"#.into(),
        r#"{"name": "read", "arguments": ["a"]}"#.into(),
        r#"{"name": "read", "arguments": "a"}"#.into(),
        r#"{"name": "read", "arguments": {"path": "a"}, "description": "x"}"#.into(),
        r#"{"name": "read", "arguments": {"path": "a"}, "input": {"path": "b"}}"#.into(),
        r#"{"name": "read", "path": "a"}"#.into(),
        r#"{"name": "list"}"#.into(),
        r#"{"name": 1, "arguments": {}}"#.into(),
        "[]".into(),
        "{}".into(),
        "<tool_call></tool_call>".into(),
        "<tool_call>list</tool_call>".into(),
        // It may be cut off.
        r#"{"name": "read", "arguments": {"path": "a"}"#.into(),
        r#"<tool_call>{"name": "read", "arguments": {"path": "a"}"#.into(),
        r#"<tool_call>{"name": "read", "arguments": {"path": "a</tool_call>"#.into(),
        "<function=read><parameter=path>a</parameter>".into(),
        "<function=read><parameter=path>a</function>".into(),
        "<tool_call><function=read><parameter=path>a</parameter></function>".into(),
        "<｜tool▁call▁begin｜>read<｜tool▁sep｜>{\"path\": \"a\"".into(),
        // A mark inside of a value ends it too early: then nothing is sure.
        "<function=write><parameter=path>a</parameter><parameter=content>x</parameter>y</parameter></function>".into(),
        "<function=write><parameter=path>a</parameter><parameter=path>b</parameter><parameter=content></parameter></function>".into(),
        r#"<tool_call>{"name": "write", "arguments": {"path": "a", "content": "</tool_call>"}}</tool_call>"#.into(),
    ] {
        assert_eq!(find_calls(&text, &tools()), None, "{text}");
    }
    assert_eq!(find_calls(call, &[]), None);
}

#[test]
fn calls_are_bounded() {
    let call = "<tool_call>{\"name\": \"list\", \"arguments\": {}}</tool_call>\n";
    assert_eq!(find_calls(&call.repeat(64), &tools()).unwrap().calls.len(), 64);
    assert_eq!(find_calls(&call.repeat(65), &tools()), None);
}

/// Anything worse than linear would take minutes here.
#[test]
fn much_of_the_same_is_read_in_one_pass() {
    for piece in [
        "<tool_call>",
        "</tool_call>",
        "<tool_call>x</tool_call>y\n",
        "<function=",
        "<function=a>x</function>y",
        "[TOOL_CALLS]",
        "[TOOL_CALLS]x\n",
        "<|python_tag|>",
        "<｜tool▁call▁begin｜>",
        "<｜tool▁call▁begin｜>x<｜tool▁call▁end｜>y",
        "<｜tool▁call▁begin｜>x<｜tool▁call▁end｜>```",
        "```",
        "```\n",
        "```json\n{\n```\nx\n",
        "`",
        "``\n",
        "~~~ ",
        "</s>",
        "</s>x",
        " ",
        "\n",
        "{",
        "[",
        "<",
        "{\n",
        " \n{}x",
        "<think>",
    ] {
        let much = piece.repeat((1 << 20) / piece.len());
        for text in [much.clone(), format!("{}{much}", " ".repeat(1 << 20)), format!("x {much}")] {
            assert_eq!(find_calls(&text, &tools()), None);
        }
    }
}

fn nearly_calls() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}",
        "{\"name\": \"list\", \"arguments\": {}}",
        "{\"name\": \"list\"",
        "```json\n",
        "\n```\n",
        "```",
        "````\n",
        "<tool_call>",
        "</tool_call>",
        "<function=read>",
        "<parameter=path>",
        "</parameter>",
        "</function>",
        "[TOOL_CALLS]",
        "[ARGS]",
        "<|python_tag|>",
        "<｜tool▁call▁begin｜>",
        "<｜tool▁sep｜>",
        "<｜tool▁call▁end｜>",
        "read",
        "list",
        "{}",
        "function",
        "\n",
        " ",
        "é",
        "prose",
        "{",
        "}",
        "[",
        "]",
        "</s>",
        "<think>",
        "</think>",
    ]);
    prop::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_text_is_borne(text in any::<String>(), nearly in nearly_calls()) {
        for text in [text, nearly] {
            if let Some(spoken) = find_calls(&text, &tools()) {
                prop_assert!(text.trim_start().starts_with(&spoken.before));
                prop_assert!(!spoken.calls.is_empty());
            }
            // Prose after whatever it is makes it text.
            prop_assert_eq!(find_calls(&format!("{text}\n\nThat is how."), &tools()), None);
        }
    }

    #[test]
    fn what_is_written_is_read(path in "[^\u{0}]{0,20}", content in any::<String>(), before in "[a-z .\n]{0,20}") {
        let input = json!({"path": path, "content": content});
        let call = json!({"name": "write", "arguments": input});
        for text in [format!("{before}\n```json\n{call}\n```"), format!("{before}\n<tool_call>\n{call}\n</tool_call>")] {
            let spoken = find_calls(&text, &tools()).unwrap();
            prop_assert_eq!(&spoken.before, before.trim());
            prop_assert_eq!(&spoken.calls, &[TextCall { name: "write".into(), input: input.clone() }]);
        }
    }

    /// A cut call is no other call.
    #[test]
    fn what_is_cut_off_is_no_call(content in "[a-z\"{}<>/\n ]{0,20}", cut in any::<prop::sample::Index>(), form in 0..3_usize) {
        let input = json!({"path": "a", "content": content});
        let call = json!({"name": "write", "arguments": input});
        let text = match form {
            0 => format!("<tool_call>\n{call}\n</tool_call>"),
            1 => format!("```json\n{call}\n```"),
            _ => format!("<function=write><parameter=path>a</parameter><parameter=content>{content}</parameter></function>"),
        };
        if let Some(spoken) = text.get(..cut.index(text.len())).and_then(|cut| find_calls(cut, &tools())) {
            prop_assert_eq!(&spoken.calls[0].input, &input);
        }
    }
}
