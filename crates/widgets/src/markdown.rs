//! Markdown as it comes: what is finished is told once, the rest is drawn anew each time.

use ratatui::text::Line;

use crate::highlight::Highlighter;
use crate::markdown_blocks::{BlockGap, BlockSplitter, MarkdownBlockKind, MarkdownLine};
use crate::markdown_render::{code_line, render_block};
use crate::theme::Theme;

/// A longer line is taken as several, so that no line is drawn anew for ever.
const MAX_MARKDOWN_LINE_BYTES: usize = 16 << 10;
/// A longer block is taken as several.
const MAX_MARKDOWN_BLOCK_BYTES: usize = 32 << 10;

/// A text that grows at its end.
#[derive(Clone, Debug, Default)]
pub struct MarkdownStream {
    reader: MarkdownReader,
    /// A line whose end has not come yet.
    partial: String,
    /// Finished, not taken yet.
    ready: Vec<MarkdownPiece>,
    painter: MarkdownPainter,
}

/// What is drawn as a whole.
#[derive(Clone, Debug)]
enum MarkdownPiece {
    Block(MarkdownBlock),
    CodeStart(String, BlockGap),
    CodeLine(String),
}

#[derive(Clone, Debug)]
struct MarkdownBlock {
    kind: MarkdownBlockKind,
    gap: BlockGap,
    source: String,
}

impl MarkdownStream {
    pub fn push(&mut self, text: &str) {
        for part in text.split_inclusive('\n') {
            self.partial.push_str(part);
            self.cut_partial();
            if part.ends_with('\n') {
                let line = std::mem::take(&mut self.partial);
                self.reader.line(without_end(&line), &mut self.ready);
            }
        }
    }

    /// The text is over: all of it is finished.
    pub fn finish(&mut self) {
        let line = std::mem::take(&mut self.partial);
        self.reader.end(&line, &mut self.ready);
        self.reader = MarkdownReader::default();
    }

    /// What can never change any more, and was not taken before.
    pub fn take_finished(&mut self, width: usize, theme: &Theme) -> Vec<Line<'static>> {
        let ready = std::mem::take(&mut self.ready);
        self.painter.paint(&ready, width, theme)
    }

    /// All that was not taken, as it would look if the text were over.
    pub fn pending(&self, width: usize, theme: &Theme) -> Vec<Line<'static>> {
        let mut painter = self.painter.clone();
        let mut lines = painter.paint(&self.ready, width, theme);
        let mut rest = Vec::new();
        self.reader.clone().end(&self.partial, &mut rest);
        lines.extend(painter.paint(&rest, width, theme));
        lines
    }

    /// A whole text.
    pub fn render(text: &str, width: usize, theme: &Theme) -> Vec<Line<'static>> {
        let mut markdown = MarkdownStream::default();
        markdown.push(text);
        markdown.finish();
        markdown.take_finished(width, theme)
    }

    fn cut_partial(&mut self) {
        while self.partial.len() > MAX_MARKDOWN_LINE_BYTES {
            let rest = self.partial.split_off(self.partial.floor_char_boundary(MAX_MARKDOWN_LINE_BYTES));
            let line = std::mem::replace(&mut self.partial, rest);
            self.reader.line(without_end(&line), &mut self.ready);
        }
    }
}

fn without_end(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

/// Puts lines together to blocks.
#[derive(Clone, Debug, Default)]
struct MarkdownReader {
    splitter: BlockSplitter,
    open: Option<MarkdownBlock>,
}

impl MarkdownReader {
    fn line(&mut self, line: &str, ready: &mut Vec<MarkdownPiece>) {
        if self.open.as_ref().is_some_and(|block| block.source.len() > MAX_MARKDOWN_BLOCK_BYTES) {
            self.splitter.force_new_block();
        }
        match self.splitter.line(line) {
            MarkdownLine::Continuation => {
                if let Some(block) = &mut self.open {
                    block.source.push_str(line);
                    block.source.push('\n');
                }
            }
            MarkdownLine::Blank => self.close(ready),
            MarkdownLine::BlockStart(kind, gap) => {
                self.close(ready);
                self.open = Some(MarkdownBlock { kind, gap, source: format!("{line}\n") });
                if matches!(kind, MarkdownBlockKind::Heading | MarkdownBlockKind::Rule) {
                    self.close(ready);
                }
            }
            MarkdownLine::CodeStart { language, gap } => {
                self.close(ready);
                ready.push(MarkdownPiece::CodeStart(language, gap));
            }
            MarkdownLine::CodeLine(line) => ready.push(MarkdownPiece::CodeLine(line.to_owned())),
            MarkdownLine::CodeEnd => {}
        }
    }

    /// The last line, if something stands in it, and the end.
    fn end(&mut self, line: &str, ready: &mut Vec<MarkdownPiece>) {
        if !line.is_empty() {
            self.line(without_end(line), ready);
        }
        self.close(ready);
    }

    fn close(&mut self, ready: &mut Vec<MarkdownPiece>) {
        ready.extend(self.open.take().map(MarkdownPiece::Block));
    }
}

/// Draws pieces in their order. Code is read on from line to line.
#[derive(Clone, Debug, Default)]
struct MarkdownPainter {
    highlighter: Highlighter,
    /// A blank row is due before the first line of the code.
    gap: Option<BlockGap>,
}

impl MarkdownPainter {
    fn paint(&mut self, pieces: &[MarkdownPiece], width: usize, theme: &Theme) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for piece in pieces {
            match piece {
                MarkdownPiece::Block(block) => {
                    lines.extend(row(block.gap));
                    let number = if let MarkdownBlockKind::Item(number) = block.kind { number } else { None };
                    lines.extend(render_block(&block.source, number, width, theme));
                }
                MarkdownPiece::CodeStart(language, gap) => {
                    self.highlighter = Highlighter::for_language(language);
                    self.gap = Some(*gap);
                }
                MarkdownPiece::CodeLine(line) => {
                    lines.extend(self.gap.take().and_then(row));
                    let spans = self.highlighter.line(line, theme);
                    lines.extend(code_line(spans, width, Line::default(), Line::default()));
                }
            }
        }
        lines
    }
}

fn row(gap: BlockGap) -> Option<Line<'static>> {
    (gap == BlockGap::BlankRow).then(Line::default)
}
