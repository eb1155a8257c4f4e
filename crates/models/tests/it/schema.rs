//! Inputs and the schemas of their tools.

use helve_models::schema::{check, coerce};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A tool with a bit of everything.
fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1, "maxLength": 8},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100},
            "ratio": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            "all": {"type": "boolean"},
            "mode": {"enum": ["fast", "slow"]},
            "version": {"const": 1},
            "lines": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
            "maybe": {"type": ["integer", "null"]},
            "old": {"type": "string", "nullable": true},
            "tree": {"$ref": "#/$defs/tree"},
            "option": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
            "either": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
            "extra": {"type": "object", "additionalProperties": {"type": "integer"}},
            "both": {"allOf": [{"type": "integer", "minimum": 2}, {"maximum": 4}]},
            "action": {"anyOf": [
                {"type": "object", "properties": {"kind": {"const": "read"}, "path": {"type": "string"}, "count": {"type": "integer"}}, "required": ["kind", "path"]},
                {"type": "object", "properties": {"kind": {"const": "list"}, "depth": {"type": "integer"}}, "required": ["kind", "depth"]}
            ]},
            "never": false,
            "any": true,
        },
        "required": ["path"],
        "additionalProperties": false,
        "$defs": {
            "tree": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "below": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
                "required": ["name"]
            }
        }
    })
}

fn with_path(mut input: Value) -> Value {
    input.as_object_mut().unwrap().entry("path").or_insert(json!("a"));
    input
}

#[test]
fn inputs_that_fit() {
    for input in [
        json!({}),
        json!({"path": "12345678", "limit": 1, "ratio": 0.5, "all": false, "mode": "slow", "version": 1.0}),
        json!({"limit": 100.0}),
        json!({"lines": [1, 2, 3]}),
        json!({"maybe": null, "old": null}),
        json!({"maybe": 3, "old": "x"}),
        json!({"tree": {"name": "a", "below": [{"name": "b", "below": []}], "else": 1}}),
        json!({"option": null, "either": "x", "extra": {"a": 1}, "both": 3}),
        json!({"action": {"kind": "list", "depth": 1}}),
        json!({"any": [{}]}),
    ] {
        assert_eq!(check(&schema(), &with_path(input.clone())), Ok(()), "{input}");
    }
}

#[test]
fn misfits_are_told_with_their_place() {
    for (input, told) in [
        (json!({"limit": "ten"}), "`/limit`: expected an integer, got \"ten\""),
        (json!({"limit": 1.5}), "`/limit`: expected an integer, got 1.5"),
        (json!({"limit": 0}), "`/limit`: expected at least 1, got 0"),
        (json!({"limit": 101}), "`/limit`: expected at most 100, got 101"),
        (json!({"ratio": 0}), "`/ratio`: expected more than 0, got 0"),
        (json!({"ratio": 1.0}), "`/ratio`: expected less than 1, got 1.0"),
        (json!({"path": ""}), "`/path`: expected at least 1 characters, got 0"),
        (json!({"path": "123456789"}), "`/path`: expected at most 8 characters, got 9"),
        (json!({"path": ["a"]}), "`/path`: expected a string, got a list of 1"),
        (json!({"all": "yes"}), "`/all`: expected true or false, got \"yes\""),
        (json!({"mode": "medium"}), "`/mode`: expected \"fast\" or \"slow\", got \"medium\""),
        (json!({"version": 2}), "`/version`: expected 1, got 2"),
        (json!({"lines": []}), "`/lines`: expected at least 1 items, got 0"),
        (json!({"lines": [1, 2, 3, 4]}), "`/lines`: expected at most 3 items, got 4"),
        (json!({"lines": [1, "2"]}), "`/lines/1`: expected an integer, got \"2\""),
        (json!({"lines": 1}), "`/lines`: expected a list, got 1"),
        (json!({"maybe": {}}), "`/maybe`: expected an integer or null, got an object"),
        (json!({"old": 1}), "`/old`: expected a string, got 1"),
        (json!({"tree": {"name": "a", "below": [{}]}}), "`/tree/below/0/name`: is required, but missing"),
        (json!({"option": [1, null]}), "`/option/1`: expected an integer, got null"),
        (json!({"option": "x"}), "`/option`: fits none of the allowed forms (a list or null): \"x\""),
        (
            json!({"either": []}),
            "`/either`: fits none of the allowed forms (an integer or a string): a list of 0",
        ),
        (json!({"extra": {"a/b~c": "1"}}), "`/extra/a~1b~0c`: expected an integer, got \"1\""),
        (json!({"both": 1}), "`/both`: expected at least 2, got 1"),
        (json!({"both": 5}), "`/both`: expected at most 4, got 5"),
        (
            json!({"action": {"kind": "list", "depth": "x"}}),
            "`/action/depth`: expected an integer, got \"x\"",
        ),
        (json!({"never": 1}), "`/never`: nothing is allowed here"),
        (json!({"pth": "a"}), "`/pth`: there is no such property; did you mean `path`?"),
        (
            json!({"zzzzzz": 1}),
            "`/zzzzzz`: there is no such property; there are `path`, `limit`, `ratio`, `all`, `mode`, `version`, `lines`, `maybe`, …",
        ),
        (
            json!({"limit": "0123456789012345678901234567890123456789x"}),
            "`/limit`: expected an integer, got \"0123456789012345678901234567890123456789…\"",
        ),
    ] {
        let misfits = check(&schema(), &with_path(input.clone())).unwrap_err();
        let all: Vec<String> = misfits.iter().map(ToString::to_string).collect();
        assert_eq!(all, [told], "{input}");
    }
    assert_eq!(check(&schema(), &json!({})).unwrap_err()[0].to_string(), "`/path`: is required, but missing");
    assert_eq!(
        check(&schema(), &json!([])).unwrap_err()[0].to_string(),
        "the input: expected an object, got a list of 0"
    );
}

#[test]
fn more_than_one_branch_of_one_is_told() {
    let schema = json!({"oneOf": [{"type": "integer"}, {"type": "number"}]});
    assert_eq!(check(&schema, &json!(1.5)), Ok(()));
    assert!(check(&schema, &json!(1)).unwrap_err()[0].why.contains("more than one"));
}

#[test]
fn what_is_not_known_is_ignored() {
    for schema in [
        json!(null),
        json!("object"),
        json!({"pattern": "^$", "format": "uri", "type": 5, "required": "a", "properties": [], "enum": 1}),
        json!({"$ref": "#/nowhere", "anyOf": {}}),
        json!({"$ref": "https://example.com/schema"}),
        json!({"additionalProperties": false, "patternProperties": {".*": {}}}),
    ] {
        let input = json!({"a": "1"});
        assert_eq!(check(&schema, &input), Ok(()), "{schema}");
        assert_eq!(coerce(&schema, input.clone()).value, input, "{schema}");
    }
}

/// A schema may come from a stranger.
#[test]
fn schemas_that_never_end_are_left_in_time() {
    let deep = (0..90).fold(json!(1), |inner, _| json!([inner]));
    for schema in [
        json!({"$ref": "#"}),
        json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}),
        json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}], "items": {"$ref": "#"}}),
        json!({"oneOf": [{"$ref": "#"}, {"type": "null"}, {"$ref": "#"}], "items": {"$ref": "#"}}),
    ] {
        for input in [json!(1), json!("1"), deep.clone()] {
            // What can't be looked through can't be said to fit.
            assert!(check(&schema, &input).is_err(), "{schema}");
            assert_eq!(coerce(&schema, input.clone()).value, input, "{schema}");
        }
    }
}

#[test]
fn misfits_and_changes_are_bounded() {
    let schema = json!({"items": {"type": "integer"}});
    let input: Value = vec!["x"; 1000].into();
    assert_eq!(check(&schema, &input).unwrap_err().len(), 16);
    let coerced = coerce(&schema, vec!["1"; 1000].into());
    assert_eq!(coerced.value, Value::from(vec![1; 1000]));
    assert_eq!(coerced.changes.len(), 64);
}

#[test]
fn gentle_fixes_leave_no_doubt() {
    for (input, fixed, told) in [
        (json!({"limit": "10"}), json!({"limit": 10}), "`/limit`: read \"10\" as 10"),
        (json!({"limit": " -10 "}), json!({"limit": -10}), "`/limit`: read \" -10 \" as -10"),
        (json!({"limit": 10.0}), json!({"limit": 10}), "`/limit`: read 10.0 as 10"),
        (json!({"ratio": "0.5"}), json!({"ratio": 0.5}), "`/ratio`: read \"0.5\" as 0.5"),
        (json!({"all": "true"}), json!({"all": true}), "`/all`: read \"true\" as true"),
        (json!({"all": "False"}), json!({"all": false}), "`/all`: read \"False\" as false"),
        (json!({"version": "1"}), json!({"version": 1}), "`/version`: read \"1\" as 1"),
        (json!({"maybe": "null"}), json!({"maybe": null}), "`/maybe`: read \"null\" as null"),
        (json!({"lines": "[1, 2]"}), json!({"lines": [1, 2]}), "`/lines`: read \"[1, 2]\" as a list of 2"),
        (json!({"lines": [1, "2"]}), json!({"lines": [1, 2]}), "`/lines/1`: read \"2\" as 2"),
        (json!({"option": ["1"]}), json!({"option": [1]}), "`/option/0`: read \"1\" as 1"),
        (json!({"extra": {"a": "1"}}), json!({"extra": {"a": 1}}), "`/extra/a`: read \"1\" as 1"),
        (
            json!({"tree": "{\"name\": \"a\"}"}),
            json!({"tree": {"name": "a"}}),
            "`/tree`: read \"{\\\"name\\\": \\\"a\\\"}\" as an object",
        ),
        (json!({"limit": null}), json!({}), "`/limit`: left out, as it is null"),
    ] {
        let coerced = coerce(&schema(), with_path(input.clone()));
        assert_eq!(coerced.value, with_path(fixed), "{input}");
        let all: Vec<String> = coerced.changes.iter().map(ToString::to_string).collect();
        assert_eq!(all, [told], "{input}");
    }
    let nested = coerce(&schema(), json!({"lines": "[\"1\"]"}));
    assert_eq!((nested.value, nested.changes.len()), (json!({"lines": [1]}), 2));
    let whole = coerce(&schema(), json!("{\"path\": \"a\"}"));
    assert_eq!(whole.value, json!({"path": "a"}));
}

#[test]
fn what_is_in_doubt_stays() {
    for input in [
        json!({"path": "10"}),
        json!({"path": 10}),
        json!({"path": null}),
        json!({"limit": "ten"}),
        json!({"limit": "10 lines"}),
        json!({"limit": "1.5"}),
        json!({"limit": 1.5}),
        json!({"limit": ""}),
        json!({"limit": true}),
        json!({"ratio": 1.0}),
        json!({"all": "yes"}),
        json!({"all": 1}),
        json!({"all": "1"}),
        json!({"lines": 1}),
        json!({"lines": "1"}),
        json!({"lines": "1, 2"}),
        json!({"tree": "{\"name\": \"a\", \"name\": \"b\"}"}),
        json!({"either": "1"}),
        json!({"old": "null"}),
        json!({"old": null}),
        json!({"any": "1"}),
        json!({"unknown": null}),
        json!({"action": {"kind": "list", "depth": "1"}}),
        json!({"action": {"kind": "list", "count": "1"}}),
    ] {
        let coerced = coerce(&schema(), input.clone());
        assert_eq!((coerced.value, coerced.changes), (input, vec![]));
    }
}

/// Schemas of any kind, sensible or not.
fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(true)),
        Just(json!({"$ref": "#"})),
        Just(json!({"$ref": "#/properties/a"})),
        Just(json!({"enum": [1, "a", null]})),
        prop::sample::select(vec!["null", "boolean", "integer", "number", "string", "array", "object"])
            .prop_map(|name| json!({"type": name})),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let several = prop::collection::vec(inner.clone(), 0..3);
        prop_oneof![
            inner.clone().prop_map(|items| json!({"items": items})),
            (inner.clone(), inner).prop_map(|(a, others)| json!({"properties": {"a": a}, "required": ["a"], "additionalProperties": others})),
            several.clone().prop_map(|branches| json!({"anyOf": branches})),
            several.clone().prop_map(|branches| json!({"oneOf": branches})),
            several.prop_map(|branches| json!({"allOf": branches})),
        ]
    })
}

fn any_input() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!(1)),
        Just(json!(1.0)),
        Just(json!(1.5)),
        Just(json!("1")),
        Just(json!("a")),
        Just(json!("true")),
        Just(json!("[1]")),
        Just(json!("{\"a\": 1}")),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({"a": a, "b": b})),
            inner.prop_map(|b| json!({"b": b})),
        ]
    })
}

proptest! {
    #[test]
    fn any_schema_and_input_are_borne(schema in any_schema(), input in any_input()) {
        if let Err(misfits) = check(&schema, &input) {
            prop_assert!((1..=16).contains(&misfits.len()));
        }
        let coerced = coerce(&schema, input.clone());
        // It is told if and only if something was done, and once is enough.
        prop_assert_eq!(coerced.changes.is_empty(), coerced.value == input);
        prop_assert_eq!(coerce(&schema, coerced.value.clone()).changes, vec![]);
    }
}
