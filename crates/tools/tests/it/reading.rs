//! What `read` shows.

use std::os::unix::fs::symlink;

use helve_workspace::{TextEncoding, TextFile};
use proptest::prelude::*;
use serde_json::json;

use crate::world::World;

#[test]
fn lines_are_numbered_and_parts_can_be_asked_for() {
    let world = World::new();
    world.put("f", "one\ntwo\nthree\n");
    assert_eq!(world.read("f").unwrap(), "     1\tone\n     2\ttwo\n     3\tthree\n");
    let part = world.look(json!({ "path": "f", "offset": 2, "limit": 1 })).unwrap().text;
    assert_eq!(part, "     2\ttwo\n[1 of 3 lines follow: read on with offset 3]\n");
    assert_eq!(world.look(json!({ "path": "f", "offset": 9 })).unwrap().text, "[The file has only 3 lines.]");
    world.put("one", "1\n");
    assert_eq!(
        world.look(json!({ "path": "one", "offset": 2 })).unwrap().text,
        "[The file has only 1 line.]"
    );
    world.put("empty", "");
    assert_eq!(world.read("empty").unwrap(), "[The file is empty.]");
}

#[test]
fn what_is_long_is_cut_with_a_note() {
    let world = World::new();
    world.put("wide", "x".repeat(5_000) + "\nshort\n");
    let shown = world.read("wide").unwrap();
    assert!(shown.contains("x [cut: 3000 letters more]\n     2\tshort\n"), "{shown}");
    world.put("long", "line of some length\n".repeat(10_000));
    let shown = world.read("long").unwrap();
    assert!(shown.len() < 50_000 && shown.contains("of 10000 lines follow: read on with offset"));
}

#[test]
fn every_encoding_is_shown_as_text() {
    let world = World::new();
    let file = |encoding| TextFile { text: "é\r\nb\r\n".to_owned(), encoding }.to_bytes();
    world.put("utf16", file(TextEncoding::Utf16Le));
    let shown = world.read("utf16").unwrap();
    let note = "[The file is UTF-16, little-endian, has CRLF line endings.]\n";
    assert_eq!(shown, format!("     1\té\n     2\tb\n{note}"));
    world.put("bom", file(TextEncoding::Utf8WithBom));
    assert!(world.read("bom").unwrap().starts_with("     1\té\n     2\tb\n[The file begins with"));
    world.put("latin", b"caf\xe9\n");
    assert!(world.read("latin").unwrap().contains("caf\u{fffd}"));
    world.put("no-end", "a");
    assert!(world.read("no-end").unwrap().contains("no newline at its end"));
    world.put("binary", b"\x7fELF\0\0");
    assert!(world.read("binary").unwrap_err().contains("not a text file"));
}

#[test]
fn documents_are_returned_as_such() {
    let world = World::new();
    world.put("some/paper", b"%PDF-1.7\n");
    let output = world.look(json!({ "path": "some/paper" })).unwrap();
    let [file] = output.files.as_slice() else { panic!("{output:?}") };
    assert_eq!((file.media_type.as_str(), file.name.as_str()), ("application/pdf", "paper"));
    assert_eq!(world.context.blobs.get(file.content).unwrap(), b"%PDF-1.7\n");
    world.put("large.pdf", [b"%PDF-".as_slice(), &vec![0; 20 << 20]].concat());
    assert!(world.read("large.pdf").unwrap_err().contains("smaller copy"));
}

#[test]
fn notebooks_are_shown_as_cells_and_on_request_as_they_are() {
    let world = World::new();
    world.put("n.ipynb", r#"{"cells": [{"cell_type": "code", "source": ["x = 1\n", "y"], "outputs": []}]}"#);
    let shown = world.read("n.ipynb").unwrap();
    assert!(shown.starts_with("     1\t[cell 1: code]\n     2\tx = 1\n     3\ty\n"), "{shown}");
    assert!(
        world.write("n.ipynb", "{}").unwrap_err().contains("Only a part"),
        "cells are not the whole file"
    );
    let raw = world.look(json!({ "path": "n.ipynb", "offset": 1 })).unwrap().text;
    assert!(raw.contains("\"cell_type\""), "{raw}");
    world.write("n.ipynb", "{}").unwrap();
    world.put("broken.ipynb", "{");
    assert!(world.read("broken.ipynb").unwrap().starts_with("     1\t{\n"));
}

#[test]
fn a_missing_file_is_told_with_what_is_there() {
    let world = World::new();
    world.put("src/Main.rs", "");
    world.put("src/other.txt", "");
    let missing = world.read("src/main.rs").unwrap_err();
    assert!(
        missing.starts_with("There is no file src/main.rs. There is ") && missing.contains("src/Main.rs")
    );
    assert!(!missing.contains("other.txt"), "{missing}");
    assert!(world.read("scr/Main.rs").unwrap_err().contains("src"), "a folder may be the wrong one");
    assert!(world.read("src/zzz").unwrap_err().contains("to see what is there"));
    assert!(world.read("src/Main.rs/x").unwrap_err().contains("There is no file"));
}

#[test]
fn folders_are_listed_and_files_outside_can_be_read() {
    let world = World::new();
    world.put("b/c", "");
    world.put("a", "");
    assert_eq!(world.read(".").unwrap(), "a\nb/");
    let outside = world.outside("note");
    std::fs::write(&outside, "hello\n").unwrap();
    assert_eq!(world.read(outside.to_str().unwrap()).unwrap(), "     1\thello\n");
    symlink(&outside, world.path("link")).unwrap();
    assert_eq!(world.read("link").unwrap(), "     1\thello\n");
    symlink("nowhere", world.path("dangling")).unwrap();
    assert!(world.read("dangling").unwrap_err().contains("There is no file"));
}

proptest! {
    #[test]
    fn any_bytes_are_shown_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60), offset: Option<u32>, limit: Option<u32>) {
        let world = World::new();
        world.put("f.ipynb", &bytes);
        let _ = world.look(json!({ "path": "f.ipynb", "offset": offset, "limit": limit }));
    }
}
