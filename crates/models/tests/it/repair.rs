//! Arguments as models write them.

use helve_models::repair::{ArgumentRepair, ArgumentsFault, parse_arguments};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Values such as tools take, keys in any order.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        prop::num::f64::NORMAL.prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        "[a-z{}\\[\\]\"',:/* \\\\\n\t`<>]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((".{0,6}", inner), 0..5).prop_map(object),
        ]
    })
}

fn object(members: Vec<(String, Value)>) -> Value {
    Value::Object(members.into_iter().collect::<Map<String, Value>>())
}

fn any_object() -> impl Strategy<Value = Value> {
    prop::collection::vec((".{0,6}", any_value()), 0..5).prop_map(object)
}

/// Texts that are nearly JSON.
fn nearly_json() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(","),
        Just(":"),
        Just(" "),
        Just("\n"),
        Just("\""),
        Just("'"),
        Just("\\"),
        Just("\"a\""),
        Just("\"b\": 1"),
        Just("\"a\": \"x\""),
        Just("c"),
        Just("1"),
        Just("-0.5e3"),
        Just("true"),
        Just("None"),
        Just("//"),
        Just("/*"),
        Just("*/"),
        Just("```"),
        Just("```json\n"),
        Just("</tool_call>"),
        Just("<|x|>"),
        Just("\\u00e9"),
        Just("\\ud83d"),
        Just("é"),
        Just("\u{0}"),
        Just("{\"a\": 1}"),
        Just("null"),
        Just("Sure: "),
    ];
    prop::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat())
}

#[test]
fn slips_without_doubt_are_repaired() {
    use ArgumentRepair::*;
    let path = json!({"path": "a"});
    for (text, value, repair) in [
        // Nothing at all is how some servers say that there are none.
        ("", json!({}), None),
        (" \n\t", json!({}), None),
        ("{}", json!({}), None),
        (" {\"path\" : \"a\"}\r\n", path.clone(), None),
        ("{\"a\": 1, \"a\": 1}", json!({"a": 1}), None),
        (
            "{\"a\": [1, -2.50, 1e3, \"\\u00e9\\ud83d\\ude00\\/\"]}",
            json!({"a": [1, -2.5, 1e3, "é😀/"]}),
            None,
        ),
        ("null", json!({}), Some(Null)),
        // Around it.
        ("```json\n{\"path\": \"a\"}\n```", path.clone(), Some(Fences)),
        ("```\n{\"path\": \"a\"}\n```\n", path.clone(), Some(Fences)),
        ("```json\n{\"path\": \"a\"}", path.clone(), Some(Fences)),
        ("{\"path\": \"a\"}\n```", path.clone(), Some(Fences)),
        ("Here you are: {\"path\": \"a\"}", path.clone(), Some(Prose)),
        ("{\"path\": \"a\"}\n\nThat's the file.", path.clone(), Some(Prose)),
        ("Sure!\n```json\n{\"path\": \"a\"}\n```\nDone.", path.clone(), Some(Several(vec![Fences, Prose]))),
        ("<tool_call>\n{\"path\": \"a\"}\n</tool_call>", path.clone(), Some(Tags)),
        ("{\"path\": \"a\"}</tool_call>", path.clone(), Some(Tags)),
        ("{\"path\": \"a\"}<|eot_id|>", path.clone(), Some(Tags)),
        ("{\"path\": \"a\"}}", path.clone(), Some(StrayCloser)),
        ("{\"path\": \"a\"}\n}}", path.clone(), Some(StrayCloser)),
        ("{\"path\": \"a\"}{\"path\": \"a\"}", path.clone(), Some(Repeated)),
        ("{}\n{}", json!({}), Some(Repeated)),
        ("\"{\\\"path\\\": \\\"a\\\"}\"", path.clone(), Some(Encoded)),
        ("\"\\\"{}\\\"\"", json!({}), Some(Encoded)),
        ("\u{a0}\"{}\"", json!({}), Some(Encoded)),
        ("\"{'path': 'a'}\"", path.clone(), Some(Several(vec![Encoded, SingleQuotes]))),
        // Inside of it.
        ("{\"path\": \"a\",}", path.clone(), Some(TrailingComma)),
        ("{\"a\": [1, 2, ], }", json!({"a": [1, 2]}), Some(TrailingComma)),
        ("{\"a\": \"x\ny\tz\"}", json!({"a": "x\ny\tz"}), Some(ControlCharacter)),
        ("{\"a\": True, \"b\": [False, None]}", json!({"a": true, "b": [false, null]}), Some(PythonLiteral)),
        ("{'path': 'a'}", path.clone(), Some(SingleQuotes)),
        (
            "{'a': \"it's\", 'b': 'it\\'s \"it\"'}",
            json!({"a": "it's", "b": "it's \"it\""}),
            Some(SingleQuotes),
        ),
        ("{path: \"a\"}", path.clone(), Some(BareKey)),
        ("{\n  // where\n  \"path\": /* here */ \"a\" }", path.clone(), Some(Comment)),
        ("{\"path\": \"a\"} // done", path.clone(), Some(Comment)),
        ("{/*/ x */}", json!({}), Some(Comment)),
        ("{path: 'a',}", path.clone(), Some(Several(vec![BareKey, SingleQuotes, TrailingComma]))),
        // What was closed around it was forgotten inside.
        ("{\"a\": [1, 2}", json!({"a": [1, 2]}), Some(MissingCloser)),
        ("{\"a\": [{\"b\": 1, \"c\": 2}}", json!({"a": [{"b": 1, "c": 2}]}), Some(MissingCloser)),
        ("{\"a\": [{\"b\": 1, \"c\": 2]}", json!({"a": [{"b": 1, "c": 2}]}), Some(MissingCloser)),
        ("{\"path\": \"a\"\n```", path.clone(), Some(Several(vec![MissingCloser, Fences]))),
        ("{\"a\": [1\n</tool_call>", json!({"a": [1]}), Some(Several(vec![MissingCloser, Tags]))),
        ("{\"a\": {\"b\": 1}\n```", json!({"a": {"b": 1}}), Some(Several(vec![MissingCloser, Fences]))),
    ] {
        let read = parse_arguments(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!((read.value, read.repaired), (value, repair), "{text:?}");
    }
}

#[test]
fn doubt_is_an_error() {
    use ArgumentsFault::*;
    for (text, fault) in [
        // Something may be missing.
        ("{", CutOff("too early")),
        ("{\"command\": \"rm -rf /tmp/x\"", CutOff("too early")),
        ("{\"command\": \"rm -rf /", CutOff("inside of a string")),
        ("{\"command\": \"a\\", CutOff("inside of a string")),
        ("{\"command\": \"\\u00", CutOff("inside of a string")),
        ("{\"limit\": 10", CutOff("inside of a number")),
        ("{\"all\": tru", CutOff("inside of a word")),
        ("{\"limit\":", CutOff("too early")),
        ("{\"limit", CutOff("inside of a string")),
        ("{limit", CutOff("too early")),
        ("{\"a\": 1,", CutOff("too early")),
        ("{\"a\": [1, 2]", CutOff("too early")),
        ("{\"a\": 1 /* ", CutOff("inside of a comment")),
        ("```json\n{\"a\": \"x\"", CutOff("too early")),
        ("\"{\\\"a\\\": 1", CutOff("inside of a string")),
        ("\"{\\\"a\\\": 1\"", CutOff("inside of a number")),
        // Two readings.
        ("{\"a\": 1, \"a\": 2}", DuplicateKey("a".into())),
        ("{\"a\": {\"b\": 1, \"c\": 2}\n```", Expected("`,` or `}`")),
        ("{\"a\": [[1, 2]}", Expected("`,` or `]`")),
        ("{\"a\": [{\"b\": {\"c\": 1, \"d\": 2}]}", Expected("`,` or `}`")),
        ("{\"a\": [\"x\"}, \"b\": 1}", TrailingText),
        ("{}{\"a\": 1}", SecondObject),
        ("{\"a\": 1}\n{\"a\": 2}", SecondObject),
        ("{\"a\": 1}, {\"a\": 1}", TrailingText),
        ("{\"a\": 1}, \"b\": 2}", TrailingText),
        ("{\"a\": 1} and more", TrailingText),
        ("{\"a\": 1}\nand [more]", TrailingText),
        ("{\"command\": \"echo \"} \"hi\"}", TrailingText),
        ("{\"command\": \"say \" // hi\"\n}", Comment),
        ("{\"a\": \"he said \"hi\" to me\"}", Expected("`,` or `}`")),
        ("{'a': 'it's'}", Expected("`,` or `}`")),
        ("{\"a\": \"\\d+\"}", Escape),
        ("{\"a\": \"\\ud83d\"}", Escape),
        ("{\"a\": \"\\ud83d\\u0041\"}", Escape),
        ("{\"a\": \"\\u+123\"}", Escape),
        // Not JSON, not even nearly.
        ("{\"a\": 01}", Number),
        ("{\"a\": 1.}", Number),
        ("{\"a\": 1e999}", Number),
        ("{\"a\": NaN}", Expected("a value")),
        ("{\"a\": hello}", Expected("a value")),
        ("{\"a\" 1}", Expected("`:`")),
        ("{\"a\": 1 \"b\": 2}", Expected("`,` or `}`")),
        ("{\"a\": [1,,2]}", Expected("a value")),
        ("{,}", Expected("a key in double quotes")),
        ("{1: 2}", Expected("a key in double quotes")),
        ("\"path\": \"a\"}", Expected("`{`")),
        // Something else.
        ("[]", NotAnObject("a list")),
        ("[{\"a\": 1}]", NotAnObject("a list")),
        ("10", NotAnObject("a number")),
        ("true", NotAnObject("a truth value")),
        ("I can't do that.", NotAnObject("text")),
        ("\"path\"", NotAnObject("text")),
        ("\"\"", NotAnObject("a string")),
        ("\"[1]\"", NotAnObject("a list")),
        ("key [1] {\"a\": 1}", NotAnObject("text")),
        ("\"a\": {\"b\": 1}", Expected("`{`")),
    ] {
        let error = parse_arguments(text).map_or_else(|error| error, |read| panic!("{text:?}: {read:?}"));
        assert_eq!(error.fault, fault, "{text:?}");
    }
}

#[test]
fn the_model_is_told_what_is_wrong_and_where() {
    for (text, told) in [
        (
            "{\n  \"path\": \"ä\" \"limit\": 3}",
            "The arguments can't be read: expected `,` or `}` (line 2, column 15).\n\
             Here: {   \"path\": \"ä\"  <<HERE>> \"limit\": 3}\n\
             Send the call again with valid JSON.",
        ),
        (
            "{\"content\": \"0123456789012345678901234567890123456789",
            "The arguments can't be read: they end inside of a string, so a part of them may be missing (line 1, column 54).\n\
             Here: …0123456789012345678901234567890123456789 <<HERE>> \n\
             Send the call again with valid JSON.",
        ),
        (
            "[0123456789012345678901234567890123456789",
            "The arguments can't be read: a JSON object is expected, not a list (line 1, column 1).\n\
             Here:  <<HERE>> [012345678901234567890123456789012345678…\n\
             Send the call again with valid JSON.",
        ),
    ] {
        assert_eq!(parse_arguments(text).unwrap_err().to_string(), told);
    }
}

#[test]
fn people_are_told_what_was_done() {
    let repaired = parse_arguments("```json\n{'a': 1,}\n```").unwrap().repaired.unwrap();
    assert_eq!(
        repaired.to_string(),
        "removed the code fence around the arguments; read single quotes as double quotes; dropped a comma before a bracket"
    );
}

#[test]
fn depth_and_size_are_bounded() {
    let nested = |levels: usize| format!("{}{{}}{}", "{\"a\":".repeat(levels - 1), "}".repeat(levels - 1));
    assert!(parse_arguments(&nested(100)).is_ok());
    assert_eq!(parse_arguments(&nested(101)).unwrap_err().fault, ArgumentsFault::TooDeep);
    let sized = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
    assert!(parse_arguments(&sized(8 << 20)).is_ok());
    assert_eq!(parse_arguments(&sized((8 << 20) + 1)).unwrap_err().fault, ArgumentsFault::TooLarge);
}

/// Anything worse than linear would take minutes here.
#[test]
fn much_of_the_same_is_read_in_one_pass() {
    for piece in [
        "{",
        "}",
        "[",
        "]",
        "\"",
        "'",
        "\\",
        "\\\"",
        "{}",
        "{\"a\":",
        "{\"a\":[",
        "//",
        "/*",
        "/**/",
        "// x\n",
        "```",
        "</a>",
        "<",
        "{\"a\":1}",
        ",",
        "\n",
        "{a:",
        "null",
        "{\"a\":1}\n",
    ] {
        let much = piece.repeat((1 << 20) / piece.len());
        for text in [
            much.clone(),
            format!("{{{much}"),
            format!("{{\"a\": \"{much}"),
            format!("{{\"a\": [1{much}"),
            format!("\"{much}\""),
        ] {
            let _ = parse_arguments(&text);
        }
    }
    let keys: Vec<String> = (0..50_000).map(|number| format!("\"{number}\": {number}")).collect();
    assert_eq!(
        parse_arguments(&format!("{{{}}}", keys.join(","))).unwrap().value.as_object().unwrap().len(),
        50_000
    );
}

const SAMPLES: [&str; 6] = [
    r#"{"command": "rm -rf /tmp/x", "cwd": "/tmp/sandbox", "dry_run": true}"#,
    r#"{"path": "src/é.rs", "content": "fn main() {\n    println!(\"{}\", 1);\n}\n"}"#,
    r#"{"edits": [{"old": "a", "new": "b"}, {"old": "c", "new": ["d", {}]}], "all": false, "limit": 1200}"#,
    "{\n  \"path\": \"a\",\n  \"options\": {\n    \"deep\": {\"x\": -1.5e3, \"y\": null}\n  },\n  \"list\": [\n    1,\n    2\n  ]\n}\n",
    "```json\n{\"path\": \"a\", \"lines\": [1, 2], \"text\": \"```\\n\"}\n```\n",
    r#""{\"path\": \"a\", \"limit\": 10, \"deep\": {\"x\": [\"y\"]}}""#,
];

/// A cut-off text must never pass for a shorter call.
#[test]
fn what_is_cut_off_is_never_read_as_something_else() {
    for sample in SAMPLES {
        let whole = parse_arguments(sample).unwrap().value;
        let cuts = (1..sample.len()).filter_map(|end| sample.get(..end));
        for cut in cuts.filter(|cut| !matches!(cut.trim(), "" | "`" | "``" | "```")) {
            if let Ok(read) = parse_arguments(cut) {
                assert_eq!(read.value, whole, "{cut:?}");
            }
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in any::<String>(), nearly in nearly_json()) {
        for text in [text, nearly] {
            match parse_arguments(&text) {
                Ok(read) => prop_assert!(read.value.is_object()),
                Err(error) => prop_assert!(error.to_string().chars().count() < 400),
            }
        }
    }

    /// What is JSON is read as such, and only that counts as written well.
    #[test]
    fn nothing_is_repaired_but_what_is_no_json(text in nearly_json()) {
        let as_json = serde_json::from_str::<Map<String, Value>>(&text).ok().map(Value::Object);
        match parse_arguments(&text) {
            Ok(read) if read.repaired.is_none() && !text.trim().is_empty() => prop_assert_eq!(Some(read.value), as_json),
            Ok(_) => prop_assert_eq!(as_json, None),
            Err(error) => prop_assert!(as_json.is_none() || matches!(error.fault, ArgumentsFault::DuplicateKey(_))),
        }
    }

    #[test]
    fn objects_are_read_as_they_are(object in any_object()) {
        for text in [object.to_string(), serde_json::to_string_pretty(&object).unwrap()] {
            let read = parse_arguments(&text).unwrap();
            prop_assert_eq!(read.repaired, None);
            // The order of the keys counts too.
            prop_assert_eq!(read.value.to_string(), object.to_string());
        }
    }

    #[test]
    fn what_is_around_an_object_does_not_change_it(object in any_object(), prose in "[a-z ,.'!?]{1,20}") {
        let json = object.to_string();
        for text in [
            format!("```json\n{json}\n```"),
            format!("```\n{json}\n```\n"),
            format!("{prose}\n{json}"),
            format!("{json}\n{prose}"),
            format!("{prose}:\n```json\n{json}\n```\n{prose}"),
            format!("<tool_call>\n{json}\n</tool_call>"),
            format!("{json}}}"),
            format!("{json}{json}"),
            Value::String(json.clone()).to_string(),
        ] {
            let read = parse_arguments(&text).unwrap();
            prop_assert!(read.repaired.is_some() || text.trim() == json, "{}", text);
            prop_assert_eq!(read.value.to_string(), object.to_string());
        }
    }

    #[test]
    fn a_cut_object_is_refused(object in any_object(), cut in any::<prop::sample::Index>()) {
        let text = object.to_string();
        let end = cut.index(text.len());
        if let Some(cut) = text.get(..end).filter(|cut| !cut.is_empty()) {
            prop_assert!(parse_arguments(cut).is_err(), "{}", cut);
        }
    }
}
