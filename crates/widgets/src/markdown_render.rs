//! One block of Markdown as lines.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::highlight::Highlighter;
use crate::markdown_table::MarkdownTable;
use crate::theme::Theme;
use crate::width::line_width;
use crate::wrap::wrap_with_prefix;

const CODE_INDENT: &str = "  ";

/// The lines of a block. A list goes on with `number`, if it is ordered.
pub(crate) fn render_block(
    source: &str,
    number: Option<u64>,
    width: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut renderer = MarkdownRenderer::new(width, theme, number);
    for event in Parser::new_ext(source, options) {
        renderer.event(event);
    }
    renderer.end_line();
    if renderer.lines.is_empty() {
        // Definitions of links, for example: nothing that was said is hidden.
        source.lines().for_each(|line| renderer.place(&Line::styled(line.to_owned(), theme.muted)));
    }
    renderer.lines
}

/// A line of code: indented, and wrapped if it must be.
pub(crate) fn code_line(
    spans: Vec<Span<'static>>,
    width: usize,
    mut first: Line<'static>,
    mut rest: Line<'static>,
) -> Vec<Line<'static>> {
    first.push_span(CODE_INDENT);
    rest.push_span(CODE_INDENT);
    wrap_with_prefix(&Line::from(spans), width, &first, &rest)
}

/// What text stands in: its prefix in the first row, and in all others.
struct BlockContainer {
    first: Span<'static>,
    rest: Span<'static>,
    has_content: bool,
    is_item: bool,
}

struct MarkdownLink {
    address: String,
    text: String,
}

struct MarkdownRenderer<'a> {
    width: usize,
    theme: &'a Theme,
    lines: Vec<Line<'static>>,
    spans: Vec<Span<'static>>,
    styles: Vec<Style>,
    containers: Vec<BlockContainer>,
    lists: Vec<Option<u64>>,
    /// The number of the first item of the outermost list.
    number: Option<u64>,
    has_content: bool,
    links: Vec<MarkdownLink>,
    code: Option<CodeBlockText>,
    table: Option<MarkdownTable>,
}

/// Code that comes in pieces.
struct CodeBlockText {
    highlighter: Highlighter,
    text: String,
}

impl<'a> MarkdownRenderer<'a> {
    fn new(width: usize, theme: &'a Theme, number: Option<u64>) -> MarkdownRenderer<'a> {
        MarkdownRenderer {
            width,
            theme,
            lines: Vec::new(),
            spans: Vec::new(),
            styles: vec![theme.text],
            containers: Vec::new(),
            lists: Vec::new(),
            number,
            has_content: false,
            links: Vec::new(),
            code: None,
            table: None,
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(text) => self.styled(&text, self.theme.code),
            Event::Html(text) => self.html(&text),
            Event::InlineHtml(text) if text.starts_with("<br") => self.line_break(),
            Event::InlineHtml(text) => self.styled(&text, self.theme.muted),
            Event::SoftBreak | Event::HardBreak => self.line_break(),
            Event::Rule => {
                let rule =
                    "─".repeat(self.width.saturating_sub(line_width(&self.prefix(PrefixRow::Rest))).max(1));
                self.place(&Line::styled(rule, self.theme.border));
            }
            Event::TaskListMarker(is_done) => {
                let (mark, style) =
                    if is_done { ("[x] ", self.theme.success) } else { ("[ ] ", self.theme.muted) };
                self.styled(mark, style);
            }
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.text(&text)
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.begin_block(),
            Tag::Heading { .. } => {
                self.begin_block();
                self.styles.push(self.theme.heading);
            }
            Tag::BlockQuote(_) => {
                self.begin_block();
                let bar = Span::styled("│ ", self.theme.border);
                self.containers.push(BlockContainer {
                    first: bar.clone(),
                    rest: bar,
                    has_content: false,
                    is_item: false,
                });
                self.styles.push(self.theme.quote);
            }
            Tag::CodeBlock(kind) => self.begin_code(&kind),
            Tag::List(number) => {
                self.end_line();
                let number = if self.lists.is_empty() { self.number.or(number) } else { number };
                self.lists.push(number);
            }
            Tag::Item => self.begin_item(),
            Tag::Table(alignments) => {
                self.begin_block();
                self.table = Some(MarkdownTable::new(alignments));
            }
            Tag::TableHead | Tag::TableRow => self.table.iter_mut().for_each(MarkdownTable::begin_row),
            Tag::Emphasis => self.push_style(self.theme.emphasis),
            Tag::Strong => self.push_style(self.theme.strong),
            Tag::Strikethrough => {
                self.push_style(self.theme.struck);
                self.mark_struck();
            }
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.push_style(self.theme.link);
                self.links.push(MarkdownLink { address: dest_url.into_string(), text: String::new() });
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.end_line(),
            TagEnd::Heading(_) => {
                self.end_line();
                self.styles.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.end_line();
                self.containers.pop();
                self.styles.pop();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::Item => self.end_item(),
            TagEnd::TableCell => {
                let cell = Line::from(std::mem::take(&mut self.spans));
                self.table.iter_mut().for_each(|table| table.add(cell.clone()));
            }
            TagEnd::Table => self.end_table(),
            TagEnd::Emphasis | TagEnd::Strong => {
                self.styles.pop();
            }
            TagEnd::Strikethrough => {
                self.mark_struck();
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => {}
        }
    }

    /// Where nothing can be struck out, it is said: the text would mean the contrary.
    fn mark_struck(&mut self) {
        if self.theme.struck == Style::new() {
            self.text("~~");
        }
    }

    fn push_style(&mut self, style: Style) {
        self.styles.push(self.style().patch(style));
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn text(&mut self, text: &str) {
        if let Some(code) = &mut self.code {
            code.text.push_str(text);
            return;
        }
        self.styled(text, self.style());
    }

    fn styled(&mut self, text: &str, style: Style) {
        self.links.iter_mut().for_each(|link| link.text.push_str(text));
        self.spans.push(Span::styled(text.to_owned(), style));
    }

    fn html(&mut self, text: &str) {
        for line in text.lines() {
            self.end_line();
            self.styled(line, self.theme.muted);
        }
        self.end_line();
    }

    fn line_break(&mut self) {
        if self.table.is_some() {
            self.spans.push(Span::raw(" "));
        } else {
            self.end_line();
        }
    }

    /// A blank row before all but the first thing in a container.
    fn begin_block(&mut self) {
        self.end_line();
        let has_content = self.containers.last().map_or(self.has_content, |container| container.has_content);
        if has_content {
            let prefix = self.prefix(PrefixRow::Rest);
            self.lines.push(prefix);
        }
    }

    fn begin_item(&mut self) {
        self.end_line();
        let marker = match self.lists.last_mut() {
            Some(Some(number)) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            _ => "• ".to_owned(),
        };
        let rest = Span::raw(" ".repeat(marker.chars().count()));
        let first = Span::styled(marker, self.theme.accent);
        self.containers.push(BlockContainer { first, rest, has_content: false, is_item: true });
    }

    /// An item without text shows its marker.
    fn end_item(&mut self) {
        self.end_line();
        if self.containers.last().is_some_and(|item| !item.has_content) {
            self.place(&Line::default());
        }
        self.containers.pop();
    }

    fn begin_code(&mut self, kind: &CodeBlockKind<'_>) {
        self.end_line();
        if !self.containers.last().is_some_and(|container| container.is_item) {
            self.begin_block();
        }
        let info = if let CodeBlockKind::Fenced(info) = kind { info.as_ref() } else { "" };
        let language = info.split([' ', ',', '{']).next().unwrap_or_default();
        self.code =
            Some(CodeBlockText { highlighter: Highlighter::for_language(language), text: String::new() });
    }

    fn end_code(&mut self) {
        let Some(mut code) = self.code.take() else { return };
        for line in code.text.lines() {
            let spans = code.highlighter.line(line, self.theme);
            let rows =
                code_line(spans, self.width, self.prefix(PrefixRow::First), self.prefix(PrefixRow::Rest));
            self.lines.extend(rows);
            self.note_content();
        }
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else { return };
        let room = self.width.saturating_sub(line_width(&self.prefix(PrefixRow::Rest))).max(1);
        for line in table.lines(room, self.theme) {
            self.place(&line);
        }
    }

    /// The address is shown if the text says something else.
    fn end_link(&mut self) {
        self.styles.pop();
        let Some(link) = self.links.pop() else { return };
        let is_said = link.address == link.text
            || link.address.strip_prefix("mailto:") == Some(&link.text)
            || link.address.is_empty();
        if !is_said {
            self.styled(&format!(" ({})", link.address), self.theme.muted);
        }
    }

    fn end_line(&mut self) {
        if self.spans.is_empty() {
            return;
        }
        let line = Line::from(std::mem::take(&mut self.spans));
        self.place(&line);
    }

    /// Puts the line into its containers.
    fn place(&mut self, line: &Line<'static>) {
        let rows =
            wrap_with_prefix(line, self.width, &self.prefix(PrefixRow::First), &self.prefix(PrefixRow::Rest));
        self.lines.extend(rows);
        self.note_content();
    }

    fn note_content(&mut self) {
        self.has_content = true;
        self.containers.iter_mut().for_each(|container| container.has_content = true);
    }

    fn prefix(&self, row: PrefixRow) -> Line<'static> {
        let of = |container: &BlockContainer| {
            let is_first = row == PrefixRow::First && !container.has_content;
            if is_first { container.first.clone() } else { container.rest.clone() }
        };
        Line::from_iter(self.containers.iter().map(of))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PrefixRow {
    First,
    Rest,
}
