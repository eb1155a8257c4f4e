//! Markup whose tags have no more attributes than anybody gives them. Whoever reads a tag compares each of its attributes with all
//! before it, so that a tag with a hundred thousand of them would take minutes.

const MAX_TAG_ATTRIBUTES: usize = 200;

/// The markup, without what comes after so many attributes of a tag.
pub(crate) fn limit_attributes(html: &str) -> String {
    let mut kept = String::with_capacity(html.len());
    let mut rest = html;
    while let Some((before, tag)) = rest.find('<').and_then(|at| rest.split_at_checked(at)) {
        let (shown, after) = if tag.starts_with("<!--") { comment(tag) } else { thin(tag) };
        kept.extend([before, shown]);
        rest = after;
    }
    kept.push_str(rest);
    kept
}

/// A comment at the beginning of a text, and what follows.
fn comment(text: &str) -> (&str, &str) {
    let ends = text.match_indices("--").filter_map(|(at, _)| {
        let after = text.get(at + 2..)?;
        after.strip_prefix('>').or_else(|| after.strip_prefix("!>"))
    });
    let after = ends.into_iter().next().unwrap_or_default();
    split(text, text.len() - after.len(), text.len() - after.len())
}

/// Where one is in a tag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TagPosition {
    Name,
    /// Between two attributes.
    Gap,
    /// After `=`.
    Equals,
    Value,
    /// In a value that ends with this letter.
    Quoted(u8),
}

/// What is shown of the tag at the beginning of a text, and what follows.
fn thin(text: &str) -> (&str, &str) {
    let letters = text.bytes().enumerate().skip(1);
    let (mut at, mut attributes) = (TagPosition::Name, 0);
    for (index, letter) in letters {
        let is_gap = letter.is_ascii_whitespace();
        at = match (at, letter) {
            // Only a letter or a slash makes it a tag.
            _ if index == 1 && !letter.is_ascii_alphabetic() && letter != b'/' => return split(text, 1, 1),
            (TagPosition::Quoted(end), _) if letter == end => TagPosition::Gap,
            (TagPosition::Quoted(_), _) => at,
            (_, b'>') => return split(text, index, index),
            (TagPosition::Equals, b'"' | b'\'') => TagPosition::Quoted(letter),
            (TagPosition::Equals, _) if is_gap => TagPosition::Equals,
            (TagPosition::Equals, _) => TagPosition::Value,
            (_, _) if is_gap => TagPosition::Gap,
            (TagPosition::Value, _) => TagPosition::Value,
            (TagPosition::Name | TagPosition::Gap, b'/') => TagPosition::Gap,
            (TagPosition::Name | TagPosition::Gap, _) => {
                attributes += usize::from(at == TagPosition::Gap);
                if letter == b'=' { TagPosition::Equals } else { TagPosition::Name }
            }
        };
        if attributes > MAX_TAG_ATTRIBUTES {
            // Whatever quotes there may be: text that only looks like a tag must not swallow the real one after it.
            let end = text.bytes().skip(index).position(|letter| matches!(letter, b'<' | b'>'));
            return split(text, index, end.map_or(text.len(), |end| index + end));
        }
    }
    (text, "")
}

/// The text up to one place, and from another on.
fn split(text: &str, shown: usize, after: usize) -> (&str, &str) {
    (text.get(..shown).unwrap_or(text), text.get(after..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn attributes(count: usize) -> String {
        (0..count).map(|number| format!(" a{number}='>' b{number} = \"<\" c{number}=/x/y")).collect()
    }

    #[test]
    fn usual_markup_stays() {
        let long = "word ".repeat(10_000);
        for html in [
            "",
            "a < b && c <d",
            "<p>x</p>",
            "<!-- <a b='--> <p>",
            "<",
            "</",
            &format!("<p title='{long}' class={}>{long}</p>", long.replace(' ', "/")),
            &format!("x <{long}"),
            &format!("<div{}>x", attributes(50)),
            &format!("<!-- <a {long} --!>{long}"),
        ] {
            let kept = limit_attributes(html);
            let is_cut = html.starts_with("x <");
            assert_eq!(kept == html, !is_cut, "{html}");
        }
    }

    #[test]
    fn what_is_too_much_goes() {
        for (tag, shown) in [
            (format!("<p{}>x", attributes(300)), "x"),
            (format!("<p {}>x", "a=''".repeat(300)), "x"),
            (format!("<p{}>x", "/a".repeat(300)), "x"),
            (format!("<p{}<b>x", " =a =b".repeat(300)), "<b>x"),
            (format!("<p x=a{}<b>x", " é".repeat(300)), "<b>x"),
        ] {
            let kept = limit_attributes(&tag);
            assert!(kept.len() < tag.len() && kept.ends_with(shown), "{kept}");
            assert!(
                limit_attributes(&format!("{kept} <p{}>", " a".repeat(300))).len() < kept.len() + 500,
                "{kept}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_stays_but_for_the_rest_of_tags(html in "(<|>|/|=|'|\"| |a|é|!|-){0,80}") {
            prop_assert_eq!(limit_attributes(&html), html);
        }
    }
}
