//! Code in colours. The grammars are loaded when the first line of code is drawn.

use std::sync::LazyLock;

use ratatui::style::Style;
use ratatui::text::Span;
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

use crate::styled_spans::push_styled;
use crate::theme::Theme;

/// Longer lines are left plain: they are data, and grammars take long for them.
const MAX_HIGHLIGHTED_LINE_BYTES: usize = 2_000;
/// What comes after so much of one block is left plain.
const MAX_HIGHLIGHTED_BYTES: usize = 256 << 10;

static GRAMMARS: LazyLock<SyntaxSet> = LazyLock::new(two_face::syntax::extra_newlines);

/// What a piece of code is, by the beginning of its scope. The first that fits counts.
static SCOPE_ROLES: LazyLock<Vec<(Scope, SyntaxRole)>> = LazyLock::new(|| {
    let of = |(name, role): &(&str, SyntaxRole)| Some((Scope::new(name).ok()?, *role));
    SCOPE_NAMES.iter().filter_map(of).collect()
});

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SyntaxRole {
    Plain,
    Keyword,
    StringLiteral,
    Comment,
    Number,
    Function,
    Type,
    Heading,
    Added,
    Removed,
}

const SCOPE_NAMES: [(&str, SyntaxRole); 26] = [
    ("comment", SyntaxRole::Comment),
    ("punctuation.definition.comment", SyntaxRole::Comment),
    ("constant.character.escape", SyntaxRole::Number),
    ("string", SyntaxRole::StringLiteral),
    ("constant", SyntaxRole::Number),
    ("keyword.operator.word", SyntaxRole::Keyword),
    ("keyword.operator", SyntaxRole::Plain),
    ("keyword", SyntaxRole::Keyword),
    ("storage.type.numeric", SyntaxRole::Number),
    ("storage", SyntaxRole::Keyword),
    ("entity.name.function", SyntaxRole::Function),
    ("entity.name.macro", SyntaxRole::Function),
    ("support.function", SyntaxRole::Function),
    ("support.macro", SyntaxRole::Function),
    ("variable.function", SyntaxRole::Function),
    ("variable.language", SyntaxRole::Keyword),
    ("entity.name.tag", SyntaxRole::Keyword),
    ("entity.other.attribute-name", SyntaxRole::Function),
    ("entity.name.section", SyntaxRole::Heading),
    ("entity.name", SyntaxRole::Type),
    ("support.type", SyntaxRole::Type),
    ("support.class", SyntaxRole::Type),
    ("markup.heading", SyntaxRole::Heading),
    ("markup.inserted", SyntaxRole::Added),
    ("markup.deleted", SyntaxRole::Removed),
    ("meta.diff.range", SyntaxRole::Type),
];

/// Names that people write and grammars don't know.
const LANGUAGE_ALIASES: [(&str, &str); 10] = [
    ("console", "bash"),
    ("shell-session", "bash"),
    ("terminal", "bash"),
    ("golang", "go"),
    ("csharp", "cs"),
    ("jsonc", "json"),
    ("json5", "json"),
    ("ps1", "powershell"),
    ("tf", "terraform"),
    ("node", "js"),
];

/// Reads one block of code line by line.
#[derive(Clone, Debug, Default)]
pub struct Highlighter {
    state: Option<(ParseState, ScopeStack)>,
    bytes: usize,
}

impl Highlighter {
    /// For a language as it is named behind a fence. What is unknown stays plain.
    pub fn for_language(name: &str) -> Highlighter {
        let name = name.to_lowercase();
        if matches!(&*name, "" | "text" | "txt" | "plain" | "plaintext" | "output") {
            return Highlighter::default();
        }
        let other = LANGUAGE_ALIASES.iter().find(|(other, _)| *other == name);
        Highlighter::of(GRAMMARS.find_syntax_by_token(other.map_or(&*name, |(_, known)| known)))
    }

    /// For a file, by its name.
    pub fn for_file(path: &str) -> Highlighter {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        let ending = name.rsplit('.').next().unwrap_or(name);
        let by_name = GRAMMARS.find_syntax_by_extension(name);
        Highlighter::of(by_name.or_else(|| GRAMMARS.find_syntax_by_extension(ending)))
    }

    fn of(grammar: Option<&SyntaxReference>) -> Highlighter {
        let state = grammar.map(|grammar| (ParseState::new(grammar), ScopeStack::new()));
        Highlighter { state, bytes: 0 }
    }

    /// The next line, without its end.
    pub fn line(&mut self, line: &str, theme: &Theme) -> Vec<Span<'static>> {
        self.bytes = self.bytes.saturating_add(line.len());
        let is_read = line.len() <= MAX_HIGHLIGHTED_LINE_BYTES && self.bytes <= MAX_HIGHLIGHTED_BYTES;
        let spans = if is_read { self.spans(line, theme) } else { None };
        spans.unwrap_or_else(|| vec![Span::styled(line.to_owned(), theme.text)])
    }

    fn spans(&mut self, line: &str, theme: &Theme) -> Option<Vec<Span<'static>>> {
        let (state, scopes) = self.state.as_mut()?;
        let ended = format!("{line}\n");
        let changes = state.parse_line(&ended, &GRAMMARS).ok()?;
        let mut spans = Vec::new();
        let mut at = 0;
        for (place, change) in changes {
            push_styled(
                &mut spans,
                line.get(at..place.min(line.len())).unwrap_or_default(),
                style(scopes, theme),
            );
            at = place;
            scopes.apply(&change).ok()?;
        }
        push_styled(&mut spans, line.get(at..).unwrap_or_default(), style(scopes, theme));
        spans.retain(|span| !span.content.is_empty());
        Some(spans)
    }
}

/// The innermost scope that means something decides.
fn style(scopes: &ScopeStack, theme: &Theme) -> Style {
    let role = |scope: &Scope| {
        SCOPE_ROLES.iter().find(|(prefix, _)| prefix.is_prefix_of(*scope)).map(|(_, role)| *role)
    };
    match scopes.as_slice().iter().rev().find_map(role).unwrap_or(SyntaxRole::Plain) {
        SyntaxRole::Plain => theme.text,
        SyntaxRole::Keyword => theme.keyword,
        SyntaxRole::StringLiteral => theme.string,
        SyntaxRole::Comment => theme.comment,
        SyntaxRole::Number => theme.number,
        SyntaxRole::Function => theme.function,
        SyntaxRole::Type => theme.type_name,
        SyntaxRole::Heading => theme.heading,
        SyntaxRole::Added => theme.added,
        SyntaxRole::Removed => theme.removed,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::theme::{Background, ColorDepth};

    fn theme() -> Theme {
        Theme::new(ColorDepth::Ansi16, Background::Dark)
    }

    fn styles(mut highlighter: Highlighter, line: &str) -> Vec<(String, Style)> {
        let spans = highlighter.line(line, &theme());
        spans.into_iter().map(|span| (span.content.into_owned(), span.style)).collect()
    }

    #[test]
    fn code_is_told_apart() {
        let theme = theme();
        let spans = styles(Highlighter::for_language("rust"), "let x = \"a\"; // why");
        let of = |text: &str| spans.iter().find(|(content, _)| content.contains(text)).unwrap().1;
        assert_eq!([of("let"), of("\"a"), of("why")], [theme.keyword, theme.string, theme.comment]);
    }

    #[test]
    fn languages_are_found_by_the_names_people_use() {
        for name in
            ["rs", "Rust", "python", "py", "js", "typescript", "tsx", "bash", "sh", "console", "go", "golang"]
        {
            assert!(Highlighter::for_language(name).state.is_some(), "{name}");
        }
        for name in
            ["c", "c++", "cpp", "java", "yaml", "toml", "json", "html", "css", "sql", "dockerfile", "diff"]
        {
            assert!(Highlighter::for_language(name).state.is_some(), "{name}");
        }
        for path in ["src/main.rs", "Makefile", "a/Dockerfile", "x.tar.py", "package.json", "Cargo.toml"] {
            assert!(Highlighter::for_file(path).state.is_some(), "{path}");
        }
        assert!(Highlighter::for_language("no such thing").state.is_none());
    }

    #[test]
    fn a_comment_goes_on_over_lines() {
        let mut highlighter = Highlighter::for_language("c");
        highlighter.line("/* begins", &theme());
        assert_eq!(highlighter.line("goes on", &theme()), [Span::styled("goes on", theme().comment)]);
    }

    #[test]
    fn what_is_too_much_is_left_plain() {
        let long = "let ".repeat(MAX_HIGHLIGHTED_LINE_BYTES);
        assert_eq!(styles(Highlighter::for_language("rust"), &long), [(long, Style::new())]);
        let mut highlighter = Highlighter::for_language("rust");
        highlighter.bytes = MAX_HIGHLIGHTED_BYTES;
        assert_eq!(highlighter.line("let x", &theme()), [Span::raw("let x")]);
    }

    proptest! {
        #[test]
        fn no_character_is_lost(lines in prop::collection::vec("[ -~日é\t]{0,40}", 0..6), language in 0usize..4) {
            let name = ["rust", "python", "markdown", "html"][language];
            let mut highlighter = Highlighter::for_language(name);
            for line in lines {
                let spans = highlighter.line(&line, &theme());
                prop_assert_eq!(spans.iter().map(|span| &*span.content).collect::<String>(), line);
            }
        }
    }
}
