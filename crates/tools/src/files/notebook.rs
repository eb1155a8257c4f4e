//! Notebooks as their cells.

use serde_json::Value;

use crate::files::report::counted_lines;

/// What is shown of the outputs of a cell.
const MAX_CELL_OUTPUT_LINES: usize = 40;

/// The cells of a notebook as text; nothing if it is none.
pub(crate) fn cells(json: &str) -> Option<String> {
    let notebook: Value = serde_json::from_str(json).ok()?;
    let cells = notebook.get("cells")?.as_array()?;
    Some(cells.iter().enumerate().map(|(at, cell)| shown(at + 1, cell)).collect())
}

fn shown(number: usize, cell: &Value) -> String {
    let kind = cell.get("cell_type").and_then(Value::as_str).unwrap_or("unknown");
    let source = cell.get("source").map(joined).unwrap_or_default();
    let mut text = format!("[cell {number}: {kind}]\n{}\n", source.trim_end_matches('\n'));
    let outputs = cell.get("outputs").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for output in outputs.iter().map(output).filter(|output| !output.is_empty()) {
        let lines: Vec<&str> = output.lines().collect();
        text.push_str("[output]\n");
        lines.iter().take(MAX_CELL_OUTPUT_LINES).for_each(|line| text.extend([line, "\n"]));
        if let left @ 1.. = lines.len().saturating_sub(MAX_CELL_OUTPUT_LINES) {
            text.push_str(&format!("[{} more]\n", counted_lines(left)));
        }
    }
    text
}

/// What a cell printed, gave or failed with, as text.
fn output(output: &Value) -> String {
    if let Some(text) = output.get("text") {
        return joined(text);
    }
    if let Some(error) = output.get("ename").and_then(Value::as_str) {
        let value = output.get("evalue").and_then(Value::as_str).unwrap_or_default();
        return format!("{error}: {value}");
    }
    let Some(data) = output.get("data").and_then(Value::as_object) else { return String::new() };
    match data.get("text/plain") {
        Some(text) => joined(text),
        None => data.keys().map(|kind| format!("[{kind}]\n")).collect(),
    }
}

/// Notebooks keep a text as one string or as a list of lines.
fn joined(text: &Value) -> String {
    match text {
        Value::String(text) => text.clone(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn cells_are_shown_with_what_they_gave() {
        let notebook = json!({"cells": [
            {"cell_type": "markdown", "source": "# Title"},
            {"cell_type": "code", "source": ["x = 1\n", "x"], "outputs": [
                {"output_type": "stream", "text": ["hello\n"]},
                {"output_type": "execute_result", "data": {"text/plain": "1", "text/html": "<b>1</b>"}},
                {"output_type": "display_data", "data": {"image/png": "AAAA"}},
                {"output_type": "error", "ename": "ValueError", "evalue": "no"},
                {"output_type": "stream", "text": "many\n".repeat(50)},
            ]},
        ]});
        let shown = cells(&notebook.to_string()).unwrap();
        let begin = "[cell 1: markdown]\n# Title\n[cell 2: code]\nx = 1\nx\n[output]\nhello\n[output]\n1\n[output]\n\
                     [image/png]\n[output]\nValueError: no\n[output]\nmany\n";
        assert!(shown.starts_with(begin), "{shown}");
        assert!(shown.ends_with("many\n[10 lines more]\n"), "{shown}");
        assert_eq!(cells("{}"), None);
        assert_eq!(cells("no json"), None);
    }

    proptest! {
        #[test]
        fn any_json_is_taken(kind in "[a-z]{0,3}", text in "[a\n]{0,4}", number: i32) {
            let odd = json!({"cells": [number, kind, {"source": {"a": text}, "outputs": [number, {"data": number}, {"text": number}]}]});
            prop_assert!(cells(&odd.to_string()).is_some());
            let _ = cells(&text);
        }
    }
}
