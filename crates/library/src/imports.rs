//! `@path` in an instruction file: read that file too.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag};

/// So many imports of one file are followed.
const MAX_IMPORTS_PER_FILE: usize = 100;
const MAX_IMPORT_CHARS: usize = 500;

/// The paths that a Markdown text imports, in their order. A path stands after an `@` at the start of a word and has a `/` or a `.` in
/// it, so that names of people are none. Code and HTML import nothing.
pub fn find_imports(text: &str) -> Vec<String> {
    if !text.contains('@') {
        return Vec::new();
    }
    let excluded = excluded_ranges(text);
    let mut imports = Vec::new();
    for (at, _) in text.match_indices('@') {
        let is_word_start =
            text.get(..at).and_then(|before| before.chars().next_back()).is_none_or(char::is_whitespace);
        if !is_word_start || excluded.iter().any(|range| range.contains(&at)) {
            continue;
        }
        let rest = text.get(at + 1..).unwrap_or_default();
        let word = rest.split(char::is_whitespace).next().unwrap_or_default();
        let path = word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '"', '\'', '*', '_']);
        let is_path = path.contains(['/', '.']) && path.chars().any(char::is_alphanumeric);
        if is_path && path.chars().count() <= MAX_IMPORT_CHARS && !path.contains('\0') {
            imports.push(path.to_owned());
        }
        if imports.len() == MAX_IMPORTS_PER_FILE {
            break;
        }
    }
    imports
}

/// Where code and HTML stand.
fn excluded_ranges(text: &str) -> Vec<Range<usize>> {
    let events = Parser::new_ext(text, Options::empty()).into_offset_iter();
    let excluded = events.filter_map(|(event, range)| match event {
        Event::Code(_)
        | Event::Html(_)
        | Event::InlineHtml(_)
        | Event::Start(Tag::CodeBlock(_) | Tag::HtmlBlock) => Some(range),
        _ => None,
    });
    excluded.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn imports_are_words_outside_of_code() {
        let cases: [(&str, &[&str]); 12] = [
            ("@docs/style.md", &["docs/style.md"]),
            ("See @README.md and @~/own.md.", &["README.md", "~/own.md"]),
            ("(mail a@b.com, ask @ann)", &[]),
            ("`@a/b.md` and ``x ` @c/d.md``", &[]),
            ("```\n@a/b.md\n```\n@c.md", &["c.md"]),
            ("~~~sh\n@a/b.md\n", &[]),
            ("text\n\n    @indented/code.md\n", &[]),
            ("<!-- @a/b.md -->\n\n@c.md", &["c.md"]),
            ("- @a/my_file_name.md\n- *@b.md*", &["a/my_file_name.md"]),
            ("@", &[]),
            ("@... @../up.md", &["../up.md"]),
            ("é@a.md\t@ü/é.md", &["ü/é.md"]),
        ];
        for (text, wanted) in cases {
            assert_eq!(find_imports(text), wanted, "{text:?}");
        }
        assert_eq!(find_imports(&"@a/b ".repeat(1_000)).len(), MAX_IMPORTS_PER_FILE);
    }

    proptest! {
        #[test]
        fn any_text_is_read_and_each_import_stands_in_it(text in "[@a./~` \n<!>*é-]{0,60}") {
            for import in find_imports(&text) {
                let word = format!("@{import}");
                prop_assert!(text.contains(&word));
                prop_assert!(!import.contains(char::is_whitespace));
            }
        }

        #[test]
        fn a_fence_hides_what_is_in_it(body in "[@a./ \n]{0,40}") {
            let fenced = format!("```\n{body}\n```\n");
            prop_assert!(find_imports(&fenced).is_empty(), "{fenced:?}");
        }
    }
}
