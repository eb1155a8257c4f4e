//! Edits and patches of real commits, where they are at hand.

use std::collections::BTreeMap;
use std::path::Path;

use helve_testkit::skip;
use helve_tools::editing::{PatchTarget, PatchedFile, TextReplacement, apply_patch, parse_patch, replace};
use helve_workspace::TextFile;
use serde::Deserialize;
use serde::de::DeserializeOwned;

#[derive(Deserialize)]
struct Case {
    id: String,
    path: String,
    before: String,
    after: String,
    edits: Vec<TextReplacement>,
    unified_patch: String,
    apply_patch: String,
}

#[derive(Deserialize)]
struct Variant {
    id: String,
    kind: String,
    before: String,
    after: String,
    edits: Vec<TextReplacement>,
    expect: Expect,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Expect {
    After,
    Refuse,
    AfterOrRefuse,
}

#[derive(Deserialize)]
struct Scenario {
    id: String,
    input: BTreeMap<String, String>,
    expected: BTreeMap<String, String>,
    patch: String,
}

fn read<T: DeserializeOwned>(test: &str, name: &str) -> Vec<T> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/edits").join(name);
    let Ok(lines) = std::fs::read_to_string(&file) else {
        skip(test, "the recorded edits are not at hand");
        return Vec::new();
    };
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The bytes of a file after its edits, or why it stays as it is.
fn edited(before: &str, edits: &[TextReplacement]) -> Result<Vec<u8>, String> {
    let file = TextFile::read(before.as_bytes()).unwrap();
    let replaced = replace(&file.text, edits).map_err(|refused| refused.to_string())?;
    Ok(file.with(replaced.text).to_bytes())
}

fn look(files: &BTreeMap<String, String>, path: &str) -> PatchTarget {
    match files.get(path) {
        Some(text) => PatchTarget::Text(text.clone()),
        None if files.keys().any(|file| file.starts_with(&format!("{path}/"))) => PatchTarget::Folder,
        None => PatchTarget::Missing,
    }
}

fn patched(files: &BTreeMap<String, String>, patch: &str) -> Result<BTreeMap<String, String>, String> {
    let patch = parse_patch(patch).map_err(|error| error.to_string())?;
    let results = apply_patch(&patch, |path| look(files, path)).map_err(|error| error.to_string())?;
    let mut files = files.clone();
    for PatchedFile { path, text, .. } in results {
        match text {
            Some(text) => files.insert(path, text),
            None => files.remove(&path),
        };
    }
    Ok(files)
}

/// Tells the figures, and fails with what went wrong.
fn report(what: &str, total: usize, wrong: &[String]) {
    eprintln!("{what}: {} of {total} as expected", total - wrong.len());
    assert!(wrong.is_empty(), "{what}: {}", wrong.join("\n"));
}

#[test]
fn search_and_replace_gives_the_commit() {
    let cases: Vec<Case> = read("search_and_replace_gives_the_commit", "cases.jsonl");
    let wrong = |case: &Case| match edited(&case.before, &case.edits) {
        Ok(bytes) if bytes == case.after.as_bytes() => None,
        Ok(_) => Some(format!("{}: another text", case.id)),
        Err(refused) => Some(format!("{}: {refused}", case.id)),
    };
    report("search and replace", cases.len(), &cases.iter().filter_map(wrong).collect::<Vec<_>>());
}

fn check_patches(what: &str, patch: fn(&Case) -> &str) {
    let cases: Vec<Case> = read(what, "cases.jsonl");
    let wrong = |case: &Case| {
        let before = BTreeMap::from([(case.path.clone(), case.before.clone())]);
        match patched(&before, patch(case)) {
            Ok(files) if files == BTreeMap::from([(case.path.clone(), case.after.clone())]) => None,
            Ok(_) => Some(format!("{}: other files", case.id)),
            Err(error) => Some(format!("{}: {error}", case.id)),
        }
    };
    report(what, cases.len(), &cases.iter().filter_map(wrong).collect::<Vec<_>>());
}

#[test]
fn patches_in_the_envelope_give_the_commit() {
    check_patches("patches in the envelope", |case| &case.apply_patch);
}

#[test]
fn unified_patches_give_the_commit() {
    check_patches("unified patches", |case| &case.unified_patch);
}

#[test]
fn patches_of_crlf_files_give_the_commit_with_crlf() {
    let cases: Vec<Case> = read("patches_of_crlf_files", "cases.jsonl");
    let crlf = |text: &str| text.replace('\n', "\r\n");
    let wrong = |case: &Case| {
        let [before, after] =
            [&case.before, &case.after].map(|text| BTreeMap::from([(case.path.clone(), crlf(text))]));
        let of_crlf = crlf(&case.unified_patch);
        let patches = [&case.apply_patch, &case.unified_patch, &of_crlf];
        let all_right = patches.iter().all(|patch| patched(&before, patch).as_ref() == Ok(&after));
        (!all_right).then(|| case.id.clone())
    };
    report("patches of CRLF files", cases.len(), &cases.iter().filter_map(wrong).collect::<Vec<_>>());
}

#[test]
fn variants_do_what_is_expected() {
    let variants: Vec<Variant> = read("variants_do_what_is_expected", "variants.jsonl");
    let mut wrong = Vec::new();
    let mut applied: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for variant in &variants {
        let edited = edited(&variant.before, &variant.edits);
        let is_after = edited.as_deref() == Ok(variant.after.as_bytes());
        let is_right = match variant.expect {
            Expect::After => is_after,
            Expect::Refuse => edited.is_err(),
            Expect::AfterOrRefuse => is_after || edited.is_err(),
        };
        if !is_right {
            wrong.push(format!("{}: {:?}", variant.id, edited.map(|_| "applied")));
        }
        let (made, total) = applied.entry(&variant.kind).or_default();
        *made += usize::from(is_after && variant.expect != Expect::Refuse);
        *total += 1;
    }
    for (kind, (made, total)) in applied {
        eprintln!("{kind}: {made} of {total} applied");
    }
    report("variants", variants.len(), &wrong);
}

#[test]
fn scenarios_end_as_expected() {
    let scenarios: Vec<Scenario> = read("scenarios_end_as_expected", "apply_patch_scenarios.jsonl");
    let wrong = |scenario: &Scenario| {
        let outcome = patched(&scenario.input, &scenario.patch);
        let files = outcome.as_ref().unwrap_or(&scenario.input);
        (*files != scenario.expected).then(|| format!("{}: {outcome:?}", scenario.id))
    };
    report("scenarios", scenarios.len(), &scenarios.iter().filter_map(wrong).collect::<Vec<_>>());
}

/// The tools themselves, on real files.
mod with_tools {
    use serde_json::json;

    use super::*;
    use crate::world::World;

    #[test]
    fn edit_gives_the_commit() {
        let cases: Vec<Case> = read("edit_gives_the_commit", "cases.jsonl");
        let wrong = |case: &Case| {
            let world = World::new();
            world.put(&case.path, &case.before);
            let outcome = world.edits(&case.path, json_of(&case.edits));
            let is_right = world.all() == BTreeMap::from([(case.path.clone(), case.after.clone())]);
            (outcome.is_err() || !is_right).then(|| format!("{}: {outcome:?}", case.id))
        };
        report("edit", cases.len(), &cases.iter().filter_map(wrong).collect::<Vec<_>>());
    }

    #[test]
    fn apply_patch_gives_the_commit() {
        let cases: Vec<Case> = read("apply_patch_gives_the_commit", "cases.jsonl");
        let mut wrong = Vec::new();
        for case in &cases {
            for patch in [&case.apply_patch, &case.unified_patch] {
                let world = World::new();
                world.put(&case.path, &case.before);
                let outcome = world.patch(patch);
                if outcome.is_err() || world.text(&case.path) != case.after {
                    wrong.push(format!("{}: {outcome:?}", case.id));
                }
            }
        }
        report("apply_patch", cases.len(), &wrong);
    }

    #[test]
    fn variants_edit_or_leave_the_file() {
        let variants: Vec<Variant> = read("variants_edit_or_leave_the_file", "variants.jsonl");
        let wrong = |variant: &Variant| {
            let world = World::new();
            world.put("file", &variant.before);
            let outcome = world.edits("file", json_of(&variant.edits));
            let (is_after, is_before) =
                (world.text("file") == variant.after, world.text("file") == variant.before);
            let is_right = match variant.expect {
                Expect::After => outcome.is_ok() && is_after,
                Expect::Refuse => outcome.is_err() && is_before,
                Expect::AfterOrRefuse => is_after || (outcome.is_err() && is_before),
            };
            (!is_right).then(|| format!("{}: {outcome:?}", variant.id))
        };
        report("variants with edit", variants.len(), &variants.iter().filter_map(wrong).collect::<Vec<_>>());
    }

    #[test]
    fn scenarios_end_as_expected_on_disk() {
        let scenarios: Vec<Scenario> = read("scenarios_on_disk", "apply_patch_scenarios.jsonl");
        let wrong = |scenario: &Scenario| {
            let world = World::with(helve_tools::SessionFiles::for_person());
            for (path, content) in &scenario.input {
                world.put(path, content);
            }
            let outcome = world.patch(&scenario.patch);
            (world.all() != scenario.expected).then(|| format!("{}: {outcome:?}", scenario.id))
        };
        report("scenarios on disk", scenarios.len(), &scenarios.iter().filter_map(wrong).collect::<Vec<_>>());
    }

    fn json_of(edits: &[TextReplacement]) -> serde_json::Value {
        edits.iter().map(|edit| json!({ "old": edit.old, "new": edit.new, "all": edit.all })).collect()
    }
}
