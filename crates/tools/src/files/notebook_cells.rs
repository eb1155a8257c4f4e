//! Changing the cells of a notebook, with every other byte left as it is.
//!
//! The text is never parsed and printed again: what changes is cut out and put in. Only the white space of what is new is
//! chosen, after that of the file.

use std::fmt;
use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use thiserror::Error;

/// What a new cell can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CellKind {
    Code,
    Markdown,
}

impl CellKind {
    fn name(self) -> &'static str {
        match self {
            CellKind::Code => "code",
            CellKind::Markdown => "markdown",
        }
    }
}

/// Why a notebook can't be changed so.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum NotebookError {
    #[error("It is no notebook: {0}. Use edit.")]
    NoNotebook(String),
    #[error("It is of nbformat {0}, and only 4 is known. Use edit.")]
    OtherFormat(u64),
    #[error("There is no cell {0}: {1}.")]
    NoCell(usize, String),
    #[error("Give the source of the cell.")]
    NoSource,
}

/// The text of a notebook, and where its cells are in it.
pub(crate) struct Notebook<'a> {
    text: &'a str,
    /// The list of cells, with its brackets.
    list: Range<usize>,
    cells: Vec<Range<usize>>,
    has_ids: bool,
    layout: NotebookLayout,
}

#[derive(Deserialize)]
struct NotebookHead<'a> {
    nbformat: u64,
    #[serde(default)]
    nbformat_minor: u64,
    #[serde(borrow)]
    cells: &'a RawValue,
}

impl<'a> Notebook<'a> {
    pub(crate) fn read(text: &'a str) -> Result<Notebook<'a>, NotebookError> {
        let broken = |error: serde_json::Error| NotebookError::NoNotebook(error.to_string());
        let head: NotebookHead<'a> = serde_json::from_str(text).map_err(broken)?;
        if head.nbformat != 4 {
            return Err(NotebookError::OtherFormat(head.nbformat));
        }
        let cells: Vec<&RawValue> = serde_json::from_str(head.cells.get()).map_err(broken)?;
        let cells: Vec<Range<usize>> = cells.iter().map(|cell| place(text, cell.get())).collect();
        for cell in &cells {
            serde_json::from_str::<CellEntries>(text.get(cell.clone()).unwrap_or_default())
                .map_err(broken)?;
        }
        Ok(Notebook {
            text,
            list: place(text, head.cells.get()),
            cells,
            has_ids: head.nbformat_minor >= 5,
            layout: NotebookLayout::of(text),
        })
    }

    /// A cell by its number, counted from 1.
    fn cell(&self, number: usize) -> Result<Range<usize>, NotebookError> {
        let cell = number.checked_sub(1).and_then(|at| self.cells.get(at));
        cell.cloned().ok_or_else(|| NotebookError::NoCell(number, self.there()))
    }

    fn there(&self) -> String {
        match self.cells.len() {
            0 => "the notebook has no cells; insert one after 0".to_owned(),
            1 => "there is only cell 1".to_owned(),
            last => format!("there are cells 1 to {last}"),
        }
    }

    fn entries(&self, cell: &Range<usize>) -> CellEntries {
        // It was read once already.
        serde_json::from_str(self.text.get(cell.clone()).unwrap_or_default()).unwrap_or_default()
    }

    fn with(&self, place: Range<usize>, new: &str) -> String {
        let before = self.text.get(..place.start).unwrap_or_default();
        let after = self.text.get(place.end..).unwrap_or_default();
        [before, new, after].concat()
    }

    pub(crate) fn replace(
        &self,
        number: usize,
        kind: Option<CellKind>,
        source: &str,
    ) -> Result<String, NotebookError> {
        let place = self.cell(number)?;
        let CellEntries(mut entries) = self.entries(&place);
        let is_list = !entries.iter().any(|(key, value)| key == "source" && value.starts_with('"'));
        let kind = kind.map_or_else(|| kind_in(&entries), |kind| kind.name().to_owned());
        fit(&mut entries, &kind, self.layout.source(source, is_list));
        Ok(self.with(place, &self.layout.object(&entries)))
    }

    pub(crate) fn insert(&self, after: usize, kind: CellKind, source: &str) -> Result<String, NotebookError> {
        let mut entries: Vec<(String, String)> = Vec::new();
        if self.has_ids {
            entries.push(("id".to_owned(), quoted(&self.new_id(after, source))));
        }
        entries.push(("metadata".to_owned(), "{}".to_owned()));
        fit(&mut entries, kind.name(), self.layout.source(source, true));
        let (new, gap) = (self.layout.object(&entries), &self.layout.cell);
        if self.cells.is_empty() && after == 0 {
            let end = &self.layout.list_end;
            return Ok(self.with(self.list.clone(), &format!("[{gap}{new}{end}]")));
        }
        let gap = if gap.is_empty() { self.layout.space } else { gap };
        if after == 0 {
            let first = self.cell(1)?.start;
            return Ok(self.with(first..first, &format!("{new},{gap}")));
        }
        let end = self.cell(after)?.end;
        Ok(self.with(end..end, &format!(",{gap}{new}")))
    }

    pub(crate) fn delete(&self, number: usize) -> Result<String, NotebookError> {
        let cell = self.cell(number)?;
        let before = number.checked_sub(2).and_then(|at| self.cells.get(at));
        Ok(match (before, self.cells.get(number)) {
            (_, Some(next)) => self.with(cell.start..next.start, ""),
            (Some(before), None) => self.with(before.end..cell.end, ""),
            (None, None) => self.with(self.list.clone(), "[]"),
        })
    }

    /// An id that no cell has. It comes of what is there, so that the same change gives the same file.
    fn new_id(&self, after: usize, source: &str) -> String {
        (0_u64..)
            .map(|attempt| {
                let hash = blake3::hash(format!("{attempt} {after} {source}").as_bytes());
                hash.to_hex().chars().take(8).collect::<String>()
            })
            .find(|id| !self.text.contains(&quoted(id)))
            .unwrap_or_default()
    }
}

/// Where a piece of a text is in it.
fn place(text: &str, piece: &str) -> Range<usize> {
    let start = piece.as_ptr().addr().saturating_sub(text.as_ptr().addr());
    start..start + piece.len()
}

fn kind_in(entries: &[(String, String)]) -> String {
    let kind = entries.iter().find(|(key, _)| key == "cell_type");
    kind.and_then(|(_, raw)| serde_json::from_str(raw).ok()).unwrap_or_default()
}

/// Gives a cell its kind and its source. What code has and text has not comes or goes, and outputs are cleared.
fn fit(entries: &mut Vec<(String, String)>, kind: &str, source: String) {
    let is_code = kind == CellKind::Code.name();
    let is_odd = |key: &str| match key {
        "outputs" | "execution_count" => !is_code,
        "attachments" => is_code,
        _ => false,
    };
    entries.retain(|(key, _)| !is_odd(key));
    put(entries, "cell_type", quoted(kind), 0);
    if is_code {
        put(entries, "execution_count", "null".to_owned(), 1);
        let last = entries.iter().position(|(key, _)| key == "source").unwrap_or(entries.len());
        put(entries, "outputs", "[]".to_owned(), last);
    }
    let end = entries.len();
    put(entries, "source", source, end);
}

/// Sets the value of a key where it stands, or at a place if it is new.
fn put(entries: &mut Vec<(String, String)>, key: &str, value: String, at: usize) {
    match entries.iter_mut().find(|(there, _)| there == key) {
        Some((_, old)) => *old = value,
        None => entries.insert(at.min(entries.len()), (key.to_owned(), value)),
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The keys of an object in their order, with their values as they stand there.
#[derive(Default)]
struct CellEntries(Vec<(String, String)>);

impl<'de> Deserialize<'de> for CellEntries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CellEntries, D::Error> {
        deserializer.deserialize_map(CellEntriesVisitor)
    }
}

struct CellEntriesVisitor;

impl<'de> Visitor<'de> for CellEntriesVisitor {
    type Value = CellEntries;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a cell")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<CellEntries, M::Error> {
        let mut entries = Vec::new();
        while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
            entries.push((key, value.get().to_owned()));
        }
        Ok(CellEntries(entries))
    }
}

/// The white space between things, as it is in the first lines of the file.
struct NotebookLayout {
    /// Before a cell, and before the end of the list of cells.
    cell: String,
    list_end: String,
    /// Before a key of a cell, and before the end of a list in it.
    key: String,
    /// Before a line of a source.
    line: String,
    /// After a colon, and after a comma where no line breaks are.
    space: &'static str,
}

impl NotebookLayout {
    fn of(text: &str) -> NotebookLayout {
        let inside = text.trim_start().strip_prefix('{').unwrap_or_default();
        let first = inside.split('"').next().unwrap_or_default();
        // A line break and the indentation of one level; neither in a file of one line.
        let (line_break, indent) =
            first.rfind('\n').and_then(|at| first.split_at_checked(at + 1)).unwrap_or_default();
        let level = |depth| [line_break, &indent.repeat(depth)].concat();
        let after_colon = inside.split_once("\":").map_or("", |(_, rest)| rest);
        NotebookLayout {
            list_end: level(1),
            cell: level(2),
            key: level(3),
            line: level(4),
            space: if after_colon.starts_with(' ') { " " } else { "" },
        }
    }

    fn object(&self, entries: &[(String, String)]) -> String {
        let NotebookLayout { cell, key, space, .. } = self;
        let entries: Vec<String> =
            entries.iter().map(|(name, value)| format!("{}:{space}{value}", quoted(name))).collect();
        format!("{{{key}{}{cell}}}", entries.join(&self.comma(key)))
    }

    /// The text of a cell, as a list of its lines or as one string.
    fn source(&self, text: &str, is_list: bool) -> String {
        let text = text.strip_suffix('\n').unwrap_or(text);
        if !is_list {
            return quoted(text);
        }
        let lines: Vec<String> = text.split_inclusive('\n').map(quoted).collect();
        if lines.is_empty() {
            return "[]".to_owned();
        }
        format!("[{}{}{}]", self.line, lines.join(&self.comma(&self.line)), self.key)
    }

    fn comma(&self, gap: &str) -> String {
        let gap = if gap.is_empty() { self.space } else { gap };
        format!(",{gap}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Serialize;
    use serde_json::json;
    use serde_json::ser::{PrettyFormatter, Serializer};

    use super::*;

    fn sample() -> Value {
        json!({
            "cells": [
                {"cell_type": "markdown", "id": "one", "metadata": {"a": [1, {}]}, "source": ["# Title\n", "é"]},
                {"cell_type": "code", "execution_count": null, "id": "two", "metadata": {}, "outputs": [], "source": ["x = 1"]},
                {"cell_type": "raw", "id": "three", "metadata": {}, "source": "as it is"},
            ],
            "metadata": {"kernelspec": {"name": "python3"}}, "nbformat": 4, "nbformat_minor": 5,
        })
    }

    fn printed(value: &Value, indent: &str) -> String {
        let mut bytes = Vec::new();
        let mut to = Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(indent.as_bytes()));
        value.serialize(&mut to).unwrap();
        String::from_utf8(bytes).unwrap() + "\n"
    }

    /// As editors write them: indented in several ways, with other line breaks, in one line.
    fn forms(value: &Value) -> Vec<String> {
        let mut forms: Vec<String> = [" ", "  ", "    ", "\t"].map(|indent| printed(value, indent)).to_vec();
        forms.push(printed(value, " ").replace('\n', "\r\n"));
        forms.push(value.to_string());
        forms.push(printed(value, "").replace(",\n", ", ").replace('\n', ""));
        forms
    }

    #[test]
    fn what_is_replaced_by_itself_stays_to_the_byte() {
        for text in forms(&sample()) {
            let notebook = Notebook::read(&text).unwrap();
            assert_eq!(notebook.replace(1, None, "# Title\né").unwrap(), text);
            assert_eq!(notebook.replace(2, Some(CellKind::Code), "x = 1\n").unwrap(), text);
            assert_eq!(notebook.replace(3, None, "as it is").unwrap(), text, "one string stays one");
        }
    }

    #[test]
    fn what_was_inserted_can_be_deleted_again_to_the_byte() {
        for text in forms(&sample()) {
            let notebook = Notebook::read(&text).unwrap();
            for after in 0..=3 {
                let more = notebook.insert(after, CellKind::Markdown, "new\ntext").unwrap();
                let less = Notebook::read(&more).unwrap().delete(after + 1).unwrap();
                assert_eq!(less, text, "{more}");
            }
        }
    }

    #[test]
    fn new_cells_are_printed_as_the_others() {
        for (text, empty) in
            forms(&sample()).iter().zip(forms(&json!({"cells": [], "nbformat": 4, "metadata": {}})))
        {
            let more = Notebook::read(text).unwrap().insert(2, CellKind::Code, "a\nb").unwrap();
            let value: Value = serde_json::from_str(&more).unwrap();
            assert_eq!(forms(&value).iter().filter(|form| **form == more).count(), 1, "{more}");
            let cell = &value["cells"][2];
            assert_eq!(cell["source"], json!(["a\n", "b"]));
            assert_eq!((&cell["outputs"], &cell["execution_count"]), (&json!([]), &Value::Null));
            assert_eq!(cell["id"].as_str().unwrap().len(), 8);
            let one = Notebook::read(&empty).unwrap().insert(0, CellKind::Markdown, "").unwrap();
            let value: Value = serde_json::from_str(&one).unwrap();
            assert!(forms(&value).contains(&one), "{one}");
            assert_eq!(value["cells"][0], json!({"cell_type": "markdown", "metadata": {}, "source": []}));
            assert_eq!(Notebook::read(&one).unwrap().delete(1).unwrap(), empty);
        }
    }

    #[test]
    fn kinds_change_with_what_belongs_to_them() {
        let text = printed(
            &json!({"cells": [{"cell_type": "code", "execution_count": 3, "metadata": {"k": 1.10}, "outputs": [{"text": "1"}], "source": "1"}],
                    "nbformat": 4}),
            " ",
        );
        let markdown = Notebook::read(&text).unwrap().replace(1, Some(CellKind::Markdown), "t").unwrap();
        let cell = |text: &str| serde_json::from_str::<Value>(text).unwrap()["cells"][0].to_string();
        assert_eq!(cell(&markdown), r#"{"cell_type":"markdown","metadata":{"k":1.1},"source":"t"}"#);
        let code = Notebook::read(&markdown).unwrap().replace(1, Some(CellKind::Code), "1").unwrap();
        assert_eq!(
            cell(&code),
            r#"{"cell_type":"code","execution_count":null,"metadata":{"k":1.1},"outputs":[],"source":"1"}"#
        );
    }

    #[test]
    fn numbers_and_escapes_of_others_are_not_touched() {
        let text = r#"{"nbformat":4,"cells":[{"source":"a\u00e9","x":1.10e2},{"cell_type":"code","metadata":{"y":1.50,"z":"\u00e9"},"source":[]}]}"#;
        let after = Notebook::read(text).unwrap().replace(2, None, "b").unwrap();
        let expected = text.replace(r#""code","#, r#""code","execution_count":null,"#);
        assert_eq!(after, expected.replace(r#""source":[]"#, r#""outputs":[],"source":["b"]"#));
    }

    #[test]
    fn ids_are_new_and_always_the_same() {
        let text = printed(&sample(), " ");
        let first = Notebook::read(&text).unwrap().insert(0, CellKind::Code, "x").unwrap();
        assert_eq!(first, Notebook::read(&text).unwrap().insert(0, CellKind::Code, "x").unwrap());
        let second = Notebook::read(&first).unwrap().insert(0, CellKind::Code, "x").unwrap();
        let value: Value = serde_json::from_str(&second).unwrap();
        assert_ne!(value["cells"][0]["id"], value["cells"][1]["id"]);
    }

    #[test]
    fn what_is_wrong_is_told() {
        let wrong =
            |text: &str, cell| Notebook::read(text).and_then(|notebook| notebook.delete(cell)).unwrap_err();
        assert_eq!(wrong(r#"{"nbformat": 3, "cells": []}"#, 1), NotebookError::OtherFormat(3));
        assert!(matches!(wrong("[]", 1), NotebookError::NoNotebook(_)));
        assert!(matches!(wrong(r#"{"nbformat": 4, "cells": [1]}"#, 1), NotebookError::NoNotebook(_)));
        assert!(matches!(wrong(r#"{"nbformat": 4}"#, 1), NotebookError::NoNotebook(_)));
        let text = printed(&sample(), " ");
        assert_eq!(wrong(&text, 4).to_string(), "There is no cell 4: there are cells 1 to 3.");
        assert!(matches!(wrong(&text, 0), NotebookError::NoCell(0, _)));
        assert!(Notebook::read(&text).unwrap().insert(4, CellKind::Code, "").is_err());
    }

    proptest! {
        #[test]
        fn any_change_gives_the_notebook_that_was_meant(source in "[a\\n\\r\\t\"\\\\é]{0,12}", cell in 0..5_usize, form in 0..7_usize) {
            let text = &forms(&sample())[form];
            let notebook = Notebook::read(text).unwrap();
            let lines = |value: &Value| value.as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect::<String>();
            let told = source.strip_suffix('\n').unwrap_or(&source);
            if let Ok(more) = notebook.insert(cell, CellKind::Code, &source) {
                let value: Value = serde_json::from_str(&more).unwrap();
                prop_assert_eq!(lines(&value["cells"][cell]["source"]), told);
            }
            if let Ok(other) = notebook.replace(cell, Some(CellKind::Code), &source) {
                let value: Value = serde_json::from_str(&other).unwrap();
                prop_assert_eq!(value["cells"].as_array().unwrap().len(), 3);
            }
        }

        #[test]
        fn any_text_is_a_notebook_or_none(text in "[{}\\[\\]\":,a-c4 \n]{0,40}") {
            let _ = Notebook::read(&text);
            let odd = format!("{{\"nbformat\":4,\"cells\":[{text}]}}");
            if let Ok(notebook) = Notebook::read(&odd) {
                let _ = (notebook.replace(1, None, "x"), notebook.insert(0, CellKind::Code, "x"), notebook.delete(1));
            }
        }
    }
}
