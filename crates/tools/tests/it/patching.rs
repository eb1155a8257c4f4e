//! Patches: both forms, every refusal, and there and back again.

use helve_tools::editing::{MatchRung, PatchProblem, PatchTarget, PatchedFile, apply_patch, parse_patch};
use proptest::prelude::*;
use similar::TextDiff;

use crate::world::World;

fn apply(files: &[(&str, &str)], patch: &str) -> Result<Vec<PatchedFile>, PatchProblem> {
    let find = |path: &str| {
        let found = files.iter().find(|(name, _)| *name == path);
        found.map_or(PatchTarget::Missing, |(_, text)| PatchTarget::Text((*text).to_owned()))
    };
    let patch = parse_patch(patch).map_err(|error| error.problem)?;
    apply_patch(&patch, find).map_err(|error| error.problem)
}

/// What becomes of the file `f`.
fn patched(text: &str, patch: &str) -> Result<String, PatchProblem> {
    Ok(apply(&[("f", text)], patch)?.remove(0).text.unwrap())
}

fn enveloped(text: &str, body: &str) -> Result<String, PatchProblem> {
    patched(text, &format!("*** Begin Patch\n*** Update File: f\n{body}*** End Patch\n"))
}

fn unified(text: &str, body: &str) -> Result<String, PatchProblem> {
    patched(text, &format!("--- a/f\n+++ b/f\n{body}"))
}

#[test]
fn the_place_is_found_by_its_lines() {
    assert_eq!(enveloped("a\nb\nc\n", " a\n-b\n+B\n").unwrap(), "a\nB\nc\n");
    assert_eq!(enveloped("a\nx\nb\nx\n", "@@ b\n-x\n+y\n").unwrap(), "a\nx\nb\ny\n");
    assert_eq!(enveloped("a\nx\nb\nx\n", "@@ b\n b\n-x\n+y\n").unwrap(), "a\nx\nb\ny\n");
    assert_eq!(enveloped("a\nx\nb\nx\n", "@@\n-x\n+y\n*** End of File\n").unwrap(), "a\nx\nb\ny\n");
    assert_eq!(enveloped("a\nb\n", "@@ a\n+x\n").unwrap(), "a\nx\nb\n");
    assert_eq!(
        enveloped("class A\n  x\nclass B\n  f\n  x\n", "@@ class B\n@@ f\n-  x\n+  y\n").unwrap(),
        "class A\n  x\nclass B\n  f\n  y\n"
    );
    assert_eq!(enveloped("a\nx\nb\nx\n", "@@ -4,1 +4,1 @@\n-x\n+y\n").unwrap(), "a\nx\nb\ny\n");
    assert_eq!(enveloped("a\nb\nc\nd\n", "@@\n-d\n+D\n@@\n-a\n+A\n").unwrap(), "A\nb\nc\nD\n");
}

#[test]
fn what_is_not_touched_keeps_its_bytes() {
    assert_eq!(enveloped("a \r\nb\nc", " a\n-b\n+B\n c\n").unwrap(), "a \r\nB\nc");
    assert_eq!(enveloped("a\nb", "@@\n+c\n").unwrap(), "a\nb\nc\n");
    assert_eq!(enveloped("  one\n  two\n", "@@\n one\n-two\n+new\n").unwrap(), "  one\n  new\n");
    assert_eq!(enveloped("“a”\nb\n", "@@\n \"a\"\n-b\n+c\n").unwrap(), "“a”\nc\n");
    assert_eq!(enveloped("a\nb\n", "@@\n a\n-b\n+c\n\n").unwrap(), "a\nc\n");
}

#[test]
fn letters_that_the_file_does_not_have_do_not_come_into_it() {
    assert_eq!(enveloped("x = 'a'\n", "@@\n-x = ‘a’\n+x = ‘b’\n").unwrap(), "x = 'b'\n");
    assert_eq!(
        enveloped("  word = 'a'\n", "@@\n word = ‘a’\n+y = ‘b’\n").unwrap(),
        "  word = 'a'\n  y = 'b'\n"
    );
    assert_eq!(enveloped("x = ‘a’\n", "@@\n x = ‘a’\n+y = ‘b’\n").unwrap(), "x = ‘a’\ny = ‘b’\n");
}

#[test]
fn it_is_told_how_tolerant_a_match_was() {
    let rung = |text: &str, body: &str| {
        let patch = format!("*** Begin Patch\n*** Update File: f\n{body}*** End Patch\n");
        apply(&[("f", text)], &patch).unwrap().remove(0).rung
    };
    assert_eq!(rung("a\nb\n", "@@\n-a\n+c\n"), MatchRung::Exact);
    assert_eq!(rung("a  \nb\n", "@@\n a\n-b\n+c\n"), MatchRung::TrailingSpace);
    assert_eq!(rung("“a”\nb\n", "@@\n \"a\"\n-b\n+c\n"), MatchRung::Unicode);
    assert_eq!(rung("“a”\n  bcd\n", "@@\n-\"a\"\n@@\n-bcd\n+c\n"), MatchRung::Indentation);
}

#[test]
fn a_hunk_that_could_mean_two_places_is_refused() {
    let error = enveloped("x\na\nx\n", "@@\n-x\n+y\n").unwrap_err();
    let PatchProblem::Ambiguous { places, .. } = &error else { panic!("{error}") };
    assert_eq!(places.iter().map(|near| near.line).collect::<Vec<_>>(), [1, 3]);
    assert!(matches!(unified("x\na\nx\n", "@@ -2 +2 @@\n-x\n+y\n"), Err(PatchProblem::Ambiguous { .. })));
    assert!(matches!(enveloped("x\n", "@@\n-x\n+y\n@@\n-x\n+z\n"), Err(PatchProblem::NoMatch { .. })));
}

#[test]
fn a_hunk_that_fits_nowhere_is_refused_with_the_nearest_lines() {
    let patch = parse_patch(
        "*** Begin Patch\n*** Update File: f\n@@\n let a = 1;\n-let b = 2;\n+let b = 3;\n*** End Patch",
    )
    .unwrap();
    let text = "fn f() {\nlet a = 1;\nlet b = 4;\n}\n";
    let error = apply_patch(&patch, |_| PatchTarget::Text(text.to_owned())).unwrap_err();
    assert_eq!(error.line, 3);
    assert!(error.to_string().contains("     3\tlet b = 4;"), "{error}");
    let error = enveloped("a\nb\n", "@@ zebra\n-b\n+c\n").unwrap_err();
    assert!(matches!(error, PatchProblem::NoAnchor { .. }), "{error}");
    assert!(matches!(
        enveloped("f() {\n}\n", "@@\n-        }\n+        };\n"),
        Err(PatchProblem::NoMatch { .. })
    ));
}

#[test]
fn errors_name_the_line_and_what_was_expected() {
    let error = |patch: &str| parse_patch(patch).unwrap_err();
    assert_eq!(error("hello").problem, PatchProblem::UnknownForm);
    assert_eq!(error("*** Begin Patch\n*** End Patch").problem, PatchProblem::Empty);
    assert_eq!(error("*** Begin Patch\n*** Add File: x\n+cut").problem, PatchProblem::NoEnd);
    let unknown = error("*** Begin Patch\n*** Frobnicate File: x\n*** End Patch");
    assert_eq!(
        (unknown.line, unknown.problem),
        (2, PatchProblem::UnknownHeader("*** Frobnicate File: x".to_owned()))
    );
    let bare = error("*** Begin Patch\n*** Update File: x\n@@\n a\nb\n*** End Patch");
    assert_eq!((bare.line, bare.problem), (5, PatchProblem::NotInHunk("b".to_owned())));
    let bare = error("*** Begin Patch\n*** Add File: x\nb\n*** End Patch");
    assert_eq!((bare.line, bare.problem), (3, PatchProblem::NotAdded("b".to_owned())));
    assert_eq!(
        error("*** Begin Patch\n*** Update File: x\n*** End Patch").problem,
        PatchProblem::NoHunks("x".to_owned())
    );
    assert_eq!(error("*** Begin Patch\n*** Delete File:\n*** End Patch").problem, PatchProblem::NoPath);
    assert!(matches!(
        error("--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n").problem,
        PatchProblem::TwoNames { .. }
    ));
    assert_eq!(error("--- a/x\n+++ b/x\n@@ -5,3 +5,4 @@\n+b\n").problem, PatchProblem::NoOldLines);
    let junk = error("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\nforgot the space\n-b\n+c\n");
    assert_eq!((junk.line, junk.problem), (5, PatchProblem::NotInHunk("forgot the space".to_owned())));
}

#[test]
fn fences_and_here_documents_are_left_aside() {
    let patch = "*** Begin Patch\n*** Add File: f\n+x\n*** End Patch";
    for (before, after) in [("```diff\n", "\n```\n"), ("apply_patch <<'EOF'\n", "\nEOF\n"), ("\n\n", "\n\n")]
    {
        assert_eq!(patched("", &format!("{before}{patch}{after}")).unwrap(), "x\n");
    }
    for command in
        ["cd sub && apply_patch <<'EOF'", "bash -lc x; cd sub; apply_patch <<EOF", "(cd sub&&apply_patch <<E"]
    {
        let refused = patched("", &format!("{command}\n{patch}\nEOF\n"));
        assert_eq!(refused, Err(PatchProblem::OtherFolder), "{command}");
    }
    assert_eq!(
        patched("a\n", "Here it is:\n```diff\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n```\n").unwrap(),
        "b\n"
    );
}

#[test]
fn unified_diffs_count_badly_and_are_understood() {
    assert_eq!(unified("a\nb\nc\n", "@@ -1,9 +1,9 @@\n a\n-b\n+B\n c\n").unwrap(), "a\nB\nc\n");
    assert_eq!(unified("a\nb\n\nc\n", "@@ -1,1 +1,1 @@\n a\n-b\n+B\n\n c\n").unwrap(), "a\nB\n\nc\n");
    assert_eq!(unified("a\nb\nc\n", "@@ ... @@\n a\n-b\n+B\n").unwrap(), "a\nB\nc\n");
    assert_eq!(unified("0\n0\na\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+B\n").unwrap(), "0\n0\na\nB\n");
    assert_eq!(unified("-- a\nb\n", "@@ -1,2 +1,2 @@\n--- a\n+++ b\n b\n").unwrap(), "++ b\nb\n");
    assert_eq!(unified("a\n", "@@ -1 +1 @@\n-a\n+b\n-- \n2.39.0\n\n").unwrap(), "b\n");
}

#[test]
fn unified_diffs_say_where_a_file_ends_without_a_break() {
    let none = "\\ No newline at end of file\n";
    assert_eq!(unified("a\nb", &format!("@@ -1,2 +1,2 @@\n a\n-b\n{none}+c\n{none}")).unwrap(), "a\nc");
    assert_eq!(unified("a\nb", &format!("@@ -1,2 +1,2 @@\n a\n-b\n{none}+b\n")).unwrap(), "a\nb\n");
    assert_eq!(unified("a\nb\n", &format!("@@ -1,2 +1,2 @@\n a\n-b\n+b\n{none}")).unwrap(), "a\nb");
}

#[test]
fn git_says_what_happens_to_files() {
    let git = "diff --git a/old b/new\nsimilarity index 90%\nrename from old\nrename to new\n--- a/old\n+++ b/new\n@@ -1 +1 @@\n-a\n+b\n\
               diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\
               diff --git a/empty b/empty\nnew file mode 100644\nindex 000..e69\n\
               --- /dev/null\n+++ b/made\n@@ -0,0 +1,2 @@\n+1\n+2\n";
    let results = apply(&[("old", "a\n"), ("gone", "x\n")], git).unwrap();
    let told: Vec<_> = results
        .iter()
        .map(|file| (file.path.as_str(), file.text.as_deref(), file.moved_from.as_deref()))
        .collect();
    let expected = [
        ("old", None, None),
        ("new", Some("b\n"), Some("old")),
        ("gone", None, None),
        ("empty", Some(""), None),
        ("made", Some("1\n2\n"), None),
    ];
    assert_eq!(told, expected);
    let changed = apply(&[("old", "a\n"), ("gone", "x\nmine\n")], git);
    assert_eq!(changed, Err(PatchProblem::NotAllDeleted("gone".to_owned())));
}

#[test]
fn operations_build_on_each_other() {
    let patch = "*** Begin Patch\n*** Add File: n\n+1\n*** Update File: ./n\n@@\n-1\n+2\n*** Move to: m\n*** End Patch\n";
    assert!(matches!(apply(&[], patch), Err(PatchProblem::UnknownHeader(_))));
    let patch = "*** Begin Patch\n*** Add File: n\n+1\n*** Update File: ./n\n*** Move to: m\n@@\n-1\n+2\n*** Delete File: f\n*** End Patch\n";
    let results = apply(&[("f", "x")], patch).unwrap();
    let told: Vec<_> = results
        .iter()
        .map(|file| (file.path.as_str(), file.text.as_deref(), file.moved_from.as_deref(), file.was_there))
        .collect();
    assert_eq!(told, [("m", Some("2\n"), None, false), ("f", None, None, true)]);
    let twice = "*** Begin Patch\n*** Delete File: f\n*** Delete File: f\n*** End Patch\n";
    assert_eq!(apply(&[("f", "x")], twice), Err(PatchProblem::Missing("f".to_owned())));
}

#[test]
fn what_is_no_text_is_not_edited() {
    let patch = parse_patch("*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n*** End Patch").unwrap();
    let error = apply_patch(&patch, |_| PatchTarget::NotText("it is an image".to_owned())).unwrap_err();
    assert_eq!(error.to_string(), "line 2 of the patch: f can't be edited: it is an image");
}

/// A text of lines that repeat often, with any endings.
fn text() -> impl Strategy<Value = String> {
    r"(([ab“ -]{0,2}|\+\+ x|@@)(\n|\r\n)){0,14}[ab]?"
}

fn unified_diff(before: &str, after: &str, radius: usize) -> String {
    // Only a line feed ends a line here; a lone carriage return is a letter like others.
    let [old, new] = [before, after].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
    TextDiff::configure()
        .newline_terminated(true)
        .diff_slices(&old, &new)
        .unified_diff()
        .context_radius(radius)
        .header("a/f", "b/f")
        .to_string()
}

/// The whole change as one hunk of the envelope, with all lines of the file.
fn envelope(before: &str, after: &str) -> String {
    let [old, new] = [before, after].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
    let diff = TextDiff::from_slices(&old, &new);
    let lines: String =
        diff.iter_all_changes().map(|change| format!("{}{}", change.tag(), change.value())).collect();
    format!("*** Begin Patch\n*** Update File: f\n@@\n{lines}*** End Patch\n")
}

proptest! {
    #[test]
    fn a_unified_diff_leads_from_before_to_after(before in text(), after in text(), radius in 1..4_usize) {
        prop_assume!(before != after && !before.is_empty());
        let patch = unified_diff(&before, &after, radius);
        prop_assert_eq!(patched(&before, &patch), Ok(after), "{}", patch);
    }

    #[test]
    fn an_envelope_leads_from_before_to_after(before in "([ab“ -]{0,2}\n){1,14}", after in "([ab“ -]{0,2}\n){0,14}") {
        prop_assume!(before != after);
        let patch = envelope(&before, &after);
        prop_assert_eq!(patched(&before, &patch), Ok(after), "{}", patch);
    }

    #[test]
    fn an_envelope_keeps_other_bytes(before in "([ab]{0,2}(\n|\r\n)){1,14}[ab]{0,2}", at in 0..14_usize) {
        let mut lines: Vec<&str> = before.split_inclusive('\n').collect();
        let at = at % lines.len();
        let contents: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
        let body: String = contents.iter().enumerate().map(|(line, content)| {
            if line == at { format!("-{content}\n+NEW\n") } else { format!(" {content}\n") }
        }).collect();
        let ending = &lines[at][contents[at].len()..];
        let after = enveloped(&before, &format!("@@\n{body}")).unwrap();
        lines[at] = "NEW";
        let with = |ending: &str| lines.iter().enumerate().map(|(line, text)| if line == at { format!("{text}{ending}") } else { (*text).to_owned() }).collect::<String>();
        prop_assert!([ending, "\n", "\r\n"].iter().any(|ending| after == with(ending)), "{:?}", after);
    }

    #[test]
    fn the_parser_never_panics(patch in r"(\*\*\* (Begin Patch|End Patch|Add File: f|Update File: f|Delete File: f|Move to: g|End of File)?|@@( -?[0-9]{0,2},?[0-9]? \+1 @@)?|--- (a/f|/dev/null)|\+\+\+ b/f|diff --git a/f b/f|[ +\-\\]?[ab]{0,2}|(\r?\n)){0,40}") {
        if let Ok(patch) = parse_patch(&patch) {
            let _ = apply_patch(&patch, |_| PatchTarget::Text("a\nb\r\nab".to_owned()));
        }
    }

    #[test]
    fn any_text_is_understood_or_refused(patch in any::<String>()) {
        let _ = parse_patch(&patch);
        let _ = parse_patch(&format!("*** Begin Patch\n*** Update File: f\n{patch}\n*** End Patch"));
        let _ = parse_patch(&format!("--- a/f\n+++ b/f\n@@ -1 +1 @@\n{patch}"));
    }
}

#[test]
fn names_in_quotes_are_read_as_git_writes_them() {
    let world = World::with(helve_tools::SessionFiles::for_person());
    world.put("é\t.txt", "a\n");
    world.put("old", "b\n");
    let patch = concat!(
        "diff --git \"a/\\303\\251\\t.txt\" \"b/\\303\\251\\t.txt\"\n--- \"a/\\303\\251\\t.txt\"\n+++ \"b/\\303\\251\\t.txt\"\n",
        "@@ -1 +1 @@\n-a\n+A\n",
        "diff --git a/old \"b/n\\303\\251w\"\nsimilarity index 100%\nrename from old\nrename to \"n\\303\\251w\"\n",
        "diff --git \"a/\\\"x\\\"\" \"b/\\\"x\\\"\"\nnew file mode 100755\n--- /dev/null\n+++ \"b/\\\"x\\\"\"\n@@ -0,0 +1 @@\n+x\n",
    );
    let told = world.patch(patch).unwrap().text;
    assert!(told.contains("chmod"), "{told}");
    let all: Vec<(String, String)> = world.all().into_iter().collect();
    let wanted = [("\"x\"", "x\n"), ("néw", "b\n"), ("é\t.txt", "A\n")];
    assert_eq!(all, wanted.map(|(name, text)| (name.to_owned(), text.to_owned())));
}

#[test]
fn a_link_is_not_made_as_a_file() {
    let world = World::new();
    let patch = "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n";
    assert!(world.patch(patch).unwrap_err().contains("ln -s"));
    assert_eq!(world.all().len(), 0);
}
