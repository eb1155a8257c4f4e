//! Search and replace: each rung, each refusal, and everything else unchanged.

use helve_tools::editing::{EditProblem, EditedText, MatchRung, MismatchHint, TextReplacement, replace};
use helve_workspace::{TextEncoding, TextFile};
use proptest::prelude::*;

fn edit(old: &str, new: &str) -> TextReplacement {
    TextReplacement { old: old.to_owned(), new: new.to_owned(), all: false }
}

fn made(text: &str, old: &str, new: &str) -> (MatchRung, String) {
    let EditedText { text, applied } =
        replace(text, &[edit(old, new)]).unwrap_or_else(|refused| panic!("{refused}"));
    (applied[0].rung, text)
}

fn refused(text: &str, old: &str, new: &str) -> EditProblem {
    replace(text, &[edit(old, new)]).unwrap_err().reason
}

#[track_caller]
fn is_not_found(text: &str, old: &str, new: &str) {
    assert!(matches!(refused(text, old, new), EditProblem::NotFound { .. }));
}

fn to(rung: MatchRung, text: &str) -> (MatchRung, String) {
    (rung, text.to_owned())
}

#[test]
fn exact_text_is_replaced_exactly() {
    assert_eq!(made("a b c", "b", "x\ny"), to(MatchRung::Exact, "a x\ny c"));
    assert_eq!(made("a\nb\n", "a\n", ""), to(MatchRung::Exact, "b\n"));
    assert_eq!(made("a\nb\n", "\nb", "\r\nb"), to(MatchRung::Exact, "a\r\nb\n"));
}

#[test]
fn new_lines_end_as_those_around_them() {
    assert_eq!(made("a\r\nb\r\n", "b", "b\nc"), to(MatchRung::Exact, "a\r\nb\r\nc\r\n"));
    assert_eq!(made("a\r\nb", "b", "b\nc"), to(MatchRung::Exact, "a\r\nb\r\nc"));
    assert_eq!(
        made("a\r\nb\r\nc\n", "a\nb\n", "a\nx\nb\n"),
        to(MatchRung::LineEndings, "a\r\nx\r\nb\r\nc\n")
    );
    assert_eq!(made("a\r\nb\nc\r\n", "a\nb\nc", "a\nB\nc"), to(MatchRung::LineEndings, "a\r\nB\nc\r\n"));
    assert_eq!(made("a\nb\n", "a\r\nb\r\n", "a\r\nc\r\n"), to(MatchRung::LineEndings, "a\nc\n"));
}

#[test]
fn a_line_break_is_never_torn() {
    assert_eq!(made("a\r\nb\r\n", "\nb", "x\nb"), to(MatchRung::LineEndings, "ax\r\nb\r\n"));
}

#[test]
fn typographic_letters_are_found_and_kept() {
    assert_eq!(made("x = “a” — b;", "\"a\" - b", "\"a\" - c"), to(MatchRung::Unicode, "x = “a” — c;"));
    assert_eq!(
        made("un\u{a0}deux\ntrois\n", "un deux\ntrois", "un deux\nquatre"),
        to(MatchRung::Unicode, "un\u{a0}deux\nquatre\n")
    );
}

#[test]
fn space_at_the_end_of_lines_is_found_and_kept() {
    assert_eq!(made("a  \nb\nc\n", "a\nb\n", "a\nB\n"), to(MatchRung::TrailingSpace, "a  \nB\nc\n"));
    assert_eq!(made("a\nb\nc\n", "a   \nb\n", "a\nB\n"), to(MatchRung::TrailingSpace, "a\nB\nc\n"));
    assert_eq!(made("a\nb", "a\nb\n", "a\nc\n"), to(MatchRung::TrailingSpace, "a\nc"));
}

#[test]
fn space_within_lines_is_never_ignored() {
    is_not_found("foo,bar\n", "foo, ", "foo, x");
    is_not_found("if (a  b) {}\n", "if (a b) {}", "x");
}

#[test]
fn indentation_is_shifted() {
    let text = "class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        return 2\n";
    let (old, new) = ("def g(self):\n    return 2\n", "def g(self):\n    if x:\n        return 3\n");
    let after = text.replace("        return 2\n", "        if x:\n            return 3\n");
    assert_eq!(made(text, old, new), to(MatchRung::Indentation, &after));
    let tabs = text.replace("    ", "\t");
    let (old, new) = ("    def g(self):\n        return 2\n", "    def g(self):\n        return 3\n");
    assert_eq!(made(&tabs, old, new), to(MatchRung::Indentation, &tabs.replace("return 2", "return 3")));
}

#[test]
fn indentation_that_is_not_shifted_alike_is_refused() {
    is_not_found("if a:\n    one()\n    two()\n", "  if a:\n    one()\n      two()\n", "pass\n");
    is_not_found("alpha()\nbeta()\n", "    alpha()\n    beta()\n", "    alpha()\n  gamma()\n");
}

#[test]
fn the_same_lines_at_two_depths_are_ambiguous() {
    let refusal = refused("if a:\n    work()\nif b:\n        work()\n", "  work()\n", "  rest()\n");
    let EditProblem::Ambiguous(places) = refusal else { panic!("{refusal:?}") };
    assert_eq!(places.iter().map(|near| near.line).collect::<Vec<_>>(), [2, 4]);
}

const FUNCTION: &str = "fn total(prices: &[u64]) -> u64 {\n    // The sum of all the prices.\n    let sum = prices.iter().sum();\n    sum\n}\n";

#[test]
fn a_slip_in_a_line_that_is_kept_is_left_as_it_is() {
    let old = FUNCTION.replace("all the prices", "all prices");
    let new = old.replace("    sum\n", "    sum + 1\n");
    assert_eq!(
        made(FUNCTION, &old, &new),
        to(MatchRung::Anchors, &FUNCTION.replace("    sum\n", "    sum + 1\n"))
    );
}

#[test]
fn a_slip_in_a_line_that_changes_is_refused() {
    let old = FUNCTION.replace("let sum", "let sums");
    is_not_found(FUNCTION, &old, &old.replace("let sums", "let total"));
    is_not_found(FUNCTION, &FUNCTION.replace("-> u64", "-> u32"), "fn nothing() {}\n");
    let other = FUNCTION.replace("// The sum of all the prices.", "// What everything costs together.");
    is_not_found(FUNCTION, &other, &other.replace("    sum\n", "    sum + 1\n"));
}

#[test]
fn a_line_that_means_something_else_is_no_slip() {
    let stale = |there: &str, written: &str| {
        let text = |line: &str| format!("fn start() {{\n    {line}\n    go();\n}}\n");
        let old = text(written);
        is_not_found(&text(there), &old, &old.replace("go();", "run();"));
    };
    stale("if !ready { return; }", "if ready { return; }");
    stale("while count < most {}", "while count > most {}");
    stale("let most = 100;", "let most = 10;");
    stale("let version = \"1.2.4\";", "let version = \"1.2.3\";");
    stale("let total = count(items);", "let total = count(item);");
    stale("// See issue 12.", "// See issue 13.");
}

#[test]
fn a_slip_does_not_come_into_the_file() {
    let old = FUNCTION.replace("all the prices", "all prices");
    let comment = "    // The sum of all prices.\n";
    is_not_found(FUNCTION, &old, &old.replace("    sum\n", &format!("{comment}    sum\n")));
}

#[test]
fn what_differs_in_line_endings_alone_is_ambiguous() {
    assert!(matches!(refused("x\r\nx\n", "x\n", "y\n"), EditProblem::Ambiguous(_)));
    assert_eq!(made("x\r\nx", "x\n", "y\n"), to(MatchRung::LineEndings, "y\r\nx"));
}

#[test]
fn the_mark_that_a_file_begins_with_is_no_part_of_its_text() {
    assert_eq!(made("a\nb\n", "\u{feff}a\n", "\u{feff}c\n"), to(MatchRung::Exact, "c\nb\n"));
    assert_eq!(made("a\nb\n", "\u{feff}a\n", "c\n"), to(MatchRung::Exact, "c\nb\n"));
}

#[test]
fn two_places_that_a_slip_could_mean_are_refused() {
    let text = format!("{FUNCTION}\n{}", FUNCTION.replace("all the", "all of the"));
    let old = FUNCTION.replace("all the prices", "all prices");
    is_not_found(&text, &old, &old.replace("    sum\n", "    sum + 1\n"));
}

#[test]
fn ambiguity_is_refused_with_the_places() {
    let refusal = refused("a = 1\nb = 2\na = 1\n", "a = 1", "a = 2");
    let words = refusal.to_string();
    let EditProblem::Ambiguous(places) = refusal else { panic!("{refusal:?}") };
    assert_eq!(places.iter().map(|near| near.line).collect::<Vec<_>>(), [1, 3]);
    assert!(words.ends_with("     1\ta = 1\n     3\ta = 1"), "{words}");
    assert!(matches!(refused("aaa", "aa", "b"), EditProblem::Ambiguous(_)));
}

#[test]
fn what_is_not_there_is_refused_with_what_is() {
    let EditProblem::NotFound { nearest, hint } = refused(FUNCTION, "let sum = prices.len();", "x") else {
        panic!()
    };
    assert!(nearest.iter().any(|near| near.line == 3 && near.text == "    let sum = prices.iter().sum();"));
    assert_eq!(hint, None);
    let EditProblem::NotFound { hint, .. } = refused("b = 2;\n", "a = 1;", "b = 2;") else { panic!() };
    assert_eq!(hint, Some(MismatchHint::AlreadyThere(1)));
    let EditProblem::NotFound { hint, .. } = refused("a\nb\n", "     1\ta\n     2\tb", "c") else { panic!() };
    assert_eq!(hint, Some(MismatchHint::LineNumbers));
}

#[test]
fn edits_that_say_nothing_are_refused() {
    assert_eq!(refused("a", "", "b"), EditProblem::EmptyOld);
    assert_eq!(refused("a", "a", "a"), EditProblem::Same);
    assert_eq!(refused("a\nb\n", "a  \nb\n", "a\nb\n"), EditProblem::NoEffect);
    is_not_found("\n\n\n", "   \n", "x\n");
    is_not_found("f() {\n}\n", "        }\n", "        };\n");
}

#[test]
fn edits_come_one_after_another_and_all_or_nothing() {
    let two = [edit("a", "b!"), edit("b!", "c")];
    assert_eq!(replace("a\n", &two).unwrap().text, "c\n");
    let refused = replace("a\n", &[edit("a", "b"), edit("x", "y")]).unwrap_err();
    assert_eq!(refused.edit, 2);
    assert!(refused.to_string().starts_with("edit 2: the old text is not in the file."));
}

#[test]
fn all_means_every_place() {
    let all = |text: &str, old: &str, new: &str| {
        replace(text, &[TextReplacement { all: true, ..edit(old, new) }])
            .map(|replaced| (replaced.text, replaced.applied[0].clone()))
    };
    let (text, applied) = all("a\r\nb\r\na\nb\n", "a\nb\n", "a\nc\n").unwrap();
    assert_eq!((text.as_str(), applied.places, applied.lines), ("a\r\nc\r\na\nc\n", 2, vec![1, 3]));
    assert_eq!(all("aaa", "a", "b").unwrap().0, "bbb");
    assert_eq!(all("a\r\nb\r\n", "\r\n", "\n").unwrap().0, "a\nb\n");
    assert!(all("a", "x", "b").is_err());
}

/// How much is compared for it is counted in `editing/replace.rs`.
#[test]
fn ten_megabytes_are_no_trouble() {
    let text: String = (0..200_000_u32)
        .map(|n| format!("    let value_{} = {{ compute({n}) }}\n    }}\n", n % 50))
        .collect();
    assert!(text.len() > 8 << 20);
    let old = "    }\n".to_owned() + &"    let value_7 = { compute(8) }\n    }\n".repeat(200);
    let one_line = "x = 1; ".repeat(1_500_000);
    is_not_found(&text, &old, "x");
    is_not_found(&text, "    let value_3 = { computes(77777) }\n", "x");
    is_not_found(&"}\n".repeat(500_000), &("}\n".repeat(5_000) + "end x"), "x");
    is_not_found(&one_line, "x = 2; y", "x");
    let seen = made(&text, "compute(177777) }", "x }");
    assert_eq!(seen.0, MatchRung::Exact);
}

/// Lines that are all different, so that each is a place of its own.
fn file() -> impl Strategy<Value = Vec<String>> {
    let words = prop::collection::vec("[ \t]{0,3}[a-zé“—\u{a0}😀]{0,6} ?", 1..12);
    words.prop_map(|lines| lines.into_iter().enumerate().map(|(n, line)| format!("{line}#{n}#")).collect())
}

fn endings() -> impl Strategy<Value = Vec<&'static str>> {
    let ending = prop_oneof![Just("\n"), Just("\r\n")];
    prop_oneof![Just(vec!["\n"; 12]), Just(vec!["\r\n"; 12]), prop::collection::vec(ending, 12)]
}

fn encodings() -> impl Strategy<Value = TextEncoding> {
    prop_oneof![
        Just(TextEncoding::Utf8),
        Just(TextEncoding::Utf8WithBom),
        Just(TextEncoding::Utf16Le),
        Just(TextEncoding::Utf16Be)
    ]
}

proptest! {
    #[test]
    fn everything_else_is_unchanged(
        lines in file(), endings in endings(), encoding in encodings(), has_last_break: bool,
        from in 0..12_usize, count in 1..4_usize, new in "[a-z]{1,4}(\n[a-z]{0,4}){0,2}",
    ) {
        let from = from % lines.len();
        let to = (from + count).min(lines.len());
        let ends = |at: usize| if at + 1 == lines.len() && !has_last_break { "" } else { endings[at] };
        let part = |from: usize, to: usize| (from..to).flat_map(|at| [lines[at].as_str(), ends(at)]).collect::<String>();
        let file = TextFile { text: part(0, lines.len()), encoding };
        let read = TextFile::read(&file.to_bytes()).unwrap();
        let replaced = replace(&read.text, &[edit(&lines[from..to].join("\n"), &new)]).unwrap();
        let bytes = read.with(replaced.text).to_bytes();
        let after = TextFile::read(&bytes).unwrap();
        let (head, tail) = (part(0, from), ends(to - 1).to_owned() + &part(to, lines.len()));
        prop_assert_eq!(after.encoding, encoding);
        prop_assert!(after.text.starts_with(&head) && after.text.ends_with(&tail));
        let middle = &after.text[head.len()..after.text.len() - tail.len()];
        prop_assert_eq!(middle.replace("\r\n", "\n"), new);
        let all = |ending: &str| (0..lines.len()).all(|at| ends(at) == ending || ends(at).is_empty());
        if lines.len() > 1 && all("\r\n") {
            prop_assert!(!middle.replace("\r\n", "").contains('\n'));
        }
        if all("\n") {
            prop_assert!(!middle.contains('\r'));
        }
    }

    /// Whatever rung is used, lines that the edit is not about keep their bytes.
    #[test]
    fn tolerance_changes_nothing_else(
        lines in file(), at in 0..12_usize, endings in endings(), slip in 0..4_usize,
    ) {
        let at = at % lines.len();
        let text: String = lines.iter().zip(&endings).flat_map(|(line, ending)| [line.as_str(), ending]).collect();
        let around = at.saturating_sub(1)..(at + 2).min(lines.len());
        let wrong = |line: &String| match slip {
            0 => format!("{line}  "),
            1 => format!("  {line}"),
            2 => line.replace(['“', '—'], "-").replace('\u{a0}', " "),
            _ => line.clone(),
        };
        let old: Vec<String> = lines[around.clone()].iter().map(wrong).collect();
        let mut new = old.clone();
        new[at - around.start] = "NEW".to_owned();
        if slip == 1 {
            new[at - around.start].insert_str(0, "  ");
        }
        if let Ok(replaced) = replace(&text, &[edit(&old.join("\n"), &new.join("\n"))]) {
            let mut expected = lines.clone();
            expected[at] = "NEW".to_owned();
            let expected: String = expected.iter().zip(&endings).flat_map(|(line, ending)| [line.as_str(), ending]).collect();
            prop_assert_eq!(replaced.text, expected);
        }
    }

    #[test]
    fn nothing_panics(text in "([ab \t“]|\r|\n|\r\n){0,30}", old in "([ab \t\"]|\r|\n|\r\n){0,8}", new in "([ab ]|\n){0,4}", all: bool) {
        let _ = replace(&text, &[TextReplacement { old, new, all }]);
    }
}
