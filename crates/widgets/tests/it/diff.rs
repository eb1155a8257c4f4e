//! Diffs as they are drawn.

use helve_widgets::{Theme, diff_lines, width};
use proptest::prelude::*;
use ratatui::style::Style;

use crate::shot::{plain, text};

const DIFF: &str = "\
diff --git a/src/main.rs b/src/main.rs
index 83db48f..bf2a1c3 100644
--- a/src/main.rs
+++ b/src/main.rs
@@ -98,6 +98,7 @@ fn main() {
 fn main() {
-    let limit = compute(10, \"some text\");
-    println!(\"{limit}\");
+    let limit = compute(20, \"some text\");
+    println!(\"limit: {limit}\");
     if limit > 3 {
+        warn(\"a line that is much too long for a window of forty columns\");
         return;
     }
@@ -200,2 +201,1 @@
-gone
 stays
diff --git a/old.txt b/old.txt
deleted file mode 100644
--- a/old.txt
+++ /dev/null
@@ -1,1 +0,0 @@
--- not a heading
\\ No newline at end of file
--- /dev/null
+++ b/new/日本.txt
@@ -0,0 +1,1 @@
+new
--- a/before.rs
+++ b/after.rs
";

fn drawn(columns: usize, most: usize) -> String {
    text(&diff_lines(DIFF, columns, most, &plain()))
}

#[test]
fn at_80_columns() {
    insta::assert_snapshot!(drawn(80, 24));
}

#[test]
fn at_40_columns_with_10_rows() {
    insta::assert_snapshot!(drawn(40, 10));
}

#[test]
fn at_10_columns_with_3_rows() {
    insta::assert_snapshot!(drawn(10, 3));
}

#[test]
fn changed_words_stand_out() {
    let theme = Theme::default();
    let lines = diff_lines(DIFF, 80, 100, &theme);
    let of = |style: Style| -> Vec<String> {
        let spans = lines.iter().flat_map(|line| &line.spans).filter(|span| span.style == style);
        spans.map(|span| span.content.to_string()).collect()
    };
    assert_eq!(of(theme.removed.patch(theme.removed_part)), ["10"]);
    assert_eq!(of(theme.added.patch(theme.added_part)), ["20", "limit: "]);
}

#[test]
fn what_is_left_out_is_counted() {
    let long: String = (0..5_000).map(|n| format!("+line {n}\n")).collect();
    let diff = format!("--- a/x\n+++ b/x\n@@ -0,0 +1,5000 @@\n{long}");
    let lines = diff_lines(&diff, 40, 5, &plain());
    assert_eq!(text(&lines), "x +5000 -0\n   1 + line 0\n   2 + line 1\n   3 + line 2\n… 4,997 more lines\n");
    assert_eq!(diff_lines(&diff, 40, 0, &plain()).len(), 0);
    assert_eq!(text(&diff_lines(&diff, 40, 1, &plain())), "… 5,002 more lines\n");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_drawn_within_bounds(
        lines in prop::collection::vec(prop_oneof![
            Just("--- a/x".to_owned()), Just("+++ b/y".to_owned()), "@@ -[0-9]{1,12},[0-9]{0,2} \\+[0-9],[0-9]{1,2} @@", "[-+ ].{0,20}", ".{0,20}",
        ], 0..30),
        columns in 1usize..60,
        most in 0usize..20,
    ) {
        let drawn = diff_lines(&lines.join("\n"), columns, most, &plain());
        prop_assert!(drawn.len() <= most);
        prop_assert!(drawn.iter().all(|line| width::line_width(line) <= columns));
    }
}
