//! Any text at all is read in bounded time, and nothing panics.

use helve_permissions::shell::{analyze, analyze_posix};
use proptest::prelude::*;

const PIECES: [&str; 44] = [
    "a",
    " ",
    "\n",
    ";",
    "&",
    "|",
    "<",
    ">",
    "(",
    ")",
    "{",
    "}",
    "'",
    "\"",
    "\\",
    "$",
    "`",
    "#",
    "!",
    "=",
    "[",
    "]",
    "[[ ",
    " ]]",
    "((",
    "))",
    "${",
    "$(",
    "$((",
    "<<E\n",
    "E\n",
    "if ",
    "then ",
    "fi",
    "do ",
    "done",
    "case a in a) ",
    "esac",
    "for i in a;",
    "{1..9}",
    "eval ",
    "bash -c ",
    "xargs ",
    "é",
];

proptest! {
    #[test]
    fn any_text_is_read(text in ".{0,200}") {
        analyze(&text);
        analyze_posix(&text);
    }

    #[test]
    fn any_pieces_are_read(pieces in proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..60)) {
        let text = pieces.concat();
        let reading = analyze(&text);
        let others = analyze_posix(&text);
        for span in reading.commands.iter().map(|command| &command.span).chain(reading.unknown.iter().map(|unknown| &unknown.span)) {
            prop_assert!(text.get(span.clone()).is_some(), "{span:?}");
        }
        // What every shell reads in the same way, bash reads so too.
        prop_assert!(!others.unknown.is_empty() || reading.unknown.is_empty());
    }
}

/// A test that hangs fails by the runner's limit; here it is enough that each of these comes to an end.
#[test]
fn texts_that_are_made_to_be_slow_come_to_an_end() {
    let long = |piece: &str| piece.repeat(30_000 / piece.len());
    let nests = [
        "(",
        "((",
        "{ ",
        "$(",
        "`",
        "\\`",
        "${x:-",
        "$((",
        "{a,",
        "{",
        "{a,b}",
        "{1..9}",
        "{1..1}",
        "[[ ",
        "if ",
        "while ",
        "case a in a) ",
        "f() ",
        "f() { ",
        "coproc ",
        "! ",
        "time ",
        "\"$(",
        "\"${x:-",
        "<<E ",
        "<<E\n",
        "a[",
        "a=(",
        "((a) ",
        "((a #'\n) b);",
        "eval ",
        "eval '",
        "bash -c '",
        "env ",
        "xargs ",
        "find . -exec ",
        "sudo ",
        "<(",
        "$[",
        "x=$x ",
        "((x)) ;",
        "y=x;",
        "*",
        "**a",
        "\\\n",
        "#\n",
        "$'\\x61'",
        "a|",
        "a&&",
        "a;",
        "'",
        "\"",
        "\\",
        "{a,b{c,d",
        "x{1..99}{1..99}",
    ];
    for nest in nests {
        analyze(&long(nest));
        analyze_posix(&long(nest));
        analyze(&format!("{}{}", long(nest), long(")")));
        analyze(&format!("{}{}", long(nest), long("}")));
    }
    let chain: String = (0..3000).map(|at| format!("v{}=v{at}; ((v{at}));", at + 1)).collect();
    analyze(&chain);
    for start in ["printf ", "[ -v ", "make ", "git -c alias.x='!a' "] {
        analyze(&(start.to_owned() + &long("$x ")));
        analyze(&(start.to_owned() + &long("\"a[$x\" ")));
        analyze(&(start.to_owned() + &long("z* ")));
    }
}

#[test]
fn what_is_too_much_is_not_known() {
    for text in [
        "(".repeat(10_000),
        "$(".repeat(10_000),
        "echo {a,b}".to_owned() + &"{a,b}".repeat(40),
        "a".repeat(2 << 20),
        "echo \0".to_owned(),
    ] {
        assert!(!analyze(&text).unknown.is_empty(), "{}", text.get(..40).unwrap_or_default());
    }
}
