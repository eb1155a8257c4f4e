//! `notebook_edit` on real files.

use helve_tools::SessionFiles;
use serde_json::{Value, json};

use crate::world::World;

/// As Jupyter writes it.
const NOTEBOOK: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "a1",
   "metadata": {},
   "source": [
    "# Title"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 7,
   "id": "b2",
   "metadata": {
    "tags": [
     "keep"
    ]
   },
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": [
      "1\n"
     ]
    }
   ],
   "source": [
    "x = 1\n",
    "print(x)"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 8,
   "id": "c3",
   "metadata": {},
   "outputs": [],
   "source": []
  }
 ],
 "metadata": {
  "é": 1.50
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;

fn world() -> World {
    let world = World::new();
    world.put("n.ipynb", NOTEBOOK);
    world.read("n.ipynb").unwrap();
    world
}

fn replace(cell: u32, source: &str) -> Value {
    json!({ "path": "n.ipynb", "cell": cell, "action": "replace", "source": source })
}

#[test]
fn a_replaced_cell_loses_its_outputs_and_nothing_else_changes() {
    let world = world();
    let output = world.cell(replace(2, "x = 2\nprint(x)")).unwrap();
    assert_eq!(output.text, "n.ipynb: cell 2 was replaced.");
    let start = NOTEBOOK.find("   \"outputs\": [\n    {").unwrap();
    let end = NOTEBOOK.find("   \"source\": [\n    \"x = 1").unwrap();
    let mut expected = NOTEBOOK.to_owned();
    expected.replace_range(start..end, "   \"outputs\": [],\n");
    let expected =
        expected.replace("\"execution_count\": 7", "\"execution_count\": null").replace("x = 1", "x = 2");
    assert_eq!(world.text("n.ipynb"), expected);
    assert!(output.display.unwrap().starts_with("n.ipynb: +"));
}

#[test]
fn cells_are_inserted_and_deleted_by_the_numbers_that_read_shows() {
    let world = world();
    let insert =
        json!({ "path": "n.ipynb", "cell": 1, "action": "insert", "kind": "markdown", "source": "new" });
    assert!(world.cell(insert).unwrap().text.contains("the new cell is cell 2"));
    let shown = world.read("n.ipynb").unwrap();
    assert!(shown.contains("[cell 2: markdown]\n     4\tnew\n     5\t[cell 3: code]"), "{shown}");
    world.cell(json!({ "path": "n.ipynb", "cell": 2, "action": "delete" })).unwrap();
    assert_eq!(world.text("n.ipynb"), NOTEBOOK);
}

#[test]
fn what_is_wrong_is_told_and_nothing_changes() {
    let world = world();
    let wrong = world.cell(replace(9, "x")).unwrap_err();
    assert_eq!(wrong, "n.ipynb was not changed. There is no cell 9: there are cells 1 to 3.");
    let no_source = json!({ "path": "n.ipynb", "cell": 1, "action": "insert" });
    assert!(world.cell(no_source).unwrap_err().contains("Give the source"));
    let other_kind =
        json!({ "path": "n.ipynb", "cell": 1, "action": "replace", "kind": "raw", "source": "" });
    assert!(world.cell(other_kind).unwrap_err().contains("markdown"));
    assert_eq!(world.text("n.ipynb"), NOTEBOOK);
    world.put("unread.ipynb", NOTEBOOK);
    let unread = json!({ "path": "unread.ipynb", "cell": 1, "action": "delete" });
    assert!(world.cell(unread).unwrap_err().contains("Read it first"));
    let missing = json!({ "path": "missing.ipynb", "cell": 1, "action": "delete" });
    assert!(world.cell(missing).unwrap_err().contains("There is no file"));
    world.put("none.ipynb", "{}");
    world.read("none.ipynb").unwrap();
    let none = json!({ "path": "none.ipynb", "cell": 1, "action": "delete" });
    assert!(world.cell(none).unwrap_err().contains("It is no notebook"));
    let outside = json!({ "path": "../n.ipynb", "cell": 1, "action": "delete" });
    assert!(world.cell(outside).unwrap_err().contains("not in the project"));
}

#[test]
fn what_others_did_meanwhile_is_kept_or_told() {
    let world = world();
    let theirs = NOTEBOOK.replace("# Title", "# Their title");
    world.put("n.ipynb", &theirs);
    let output = world.cell(replace(3, "y")).unwrap();
    assert!(
        output.text.contains("Those changes are kept") && output.text.contains("Their title"),
        "{}",
        output.text
    );
    let text = world.text("n.ipynb");
    assert!(text.contains("# Their title") && text.contains("\"y\""), "{text}");
    world.read("n.ipynb").unwrap();
    world.put("n.ipynb", text.replace("\"y\"", "\"theirs\""));
    assert!(world.cell(replace(3, "ours")).unwrap_err().contains("in the same places"));
    assert!(world.text("n.ipynb").contains("theirs"));
}

/// Somebody puts a cell before the one that is meant: the number still means what was read.
#[test]
fn numbers_mean_the_cells_that_were_seen() {
    let world = world();
    let new = "{\n   \"cell_type\": \"markdown\",\n   \"id\": \"z9\",\n   \"metadata\": {},\n   \"source\": []\n  },\n  ";
    let at = NOTEBOOK.find("{\n   \"cell_type\": \"markdown\"").unwrap();
    let mut theirs = NOTEBOOK.to_owned();
    theirs.insert_str(at, new);
    world.put("n.ipynb", &theirs);
    world.cell(replace(3, "third")).unwrap();
    let value: Value = serde_json::from_str(&world.text("n.ipynb")).unwrap();
    assert_eq!(value["cells"][3]["source"], json!(["third"]));
    assert_eq!(value["cells"][3]["id"], "c3");
}

#[test]
fn a_person_need_not_read_and_encodings_survive() {
    let world = World::with(SessionFiles::for_person());
    world.put("n.ipynb", format!("\u{feff}{}", NOTEBOOK.replace('\n', "\r\n")));
    world.cell(replace(3, "a\nb")).unwrap();
    let text = world.text("n.ipynb");
    assert!(text.starts_with("\u{feff}{\r\n") && text.ends_with("}\r\n"));
    assert!(!text.replace("\r\n", "").contains('\n'), "every line ends as the others do");
}
