//! Markdown as it comes: what is finished is told once, the rest is drawn anew each time.

use ratatui::text::Line;

use crate::blocks::{Gap, Kind, Splitter, Told};
use crate::highlight::Highlighter;
use crate::render::{code_line, render_block};
use crate::theme::Theme;

/// A longer line is taken as several, so that no line is drawn anew for ever.
const LONGEST_LINE: usize = 16 << 10;
/// A longer block is taken as several.
const LONGEST_BLOCK: usize = 32 << 10;

/// A text that grows at its end.
#[derive(Clone, Debug, Default)]
pub struct Markdown {
    reader: Reader,
    /// A line whose end has not come yet.
    partial: String,
    /// Finished, not taken yet.
    ready: Vec<Piece>,
    painter: Painter,
}

/// What is drawn as a whole.
#[derive(Clone, Debug)]
enum Piece {
    Block(Block),
    CodeBegins(String, Gap),
    CodeLine(String),
}

#[derive(Clone, Debug)]
struct Block {
    kind: Kind,
    gap: Gap,
    source: String,
}

impl Markdown {
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
        self.reader = Reader::default();
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
        let mut markdown = Markdown::default();
        markdown.push(text);
        markdown.finish();
        markdown.take_finished(width, theme)
    }

    fn cut_partial(&mut self) {
        while self.partial.len() > LONGEST_LINE {
            let rest = self.partial.split_off(self.partial.floor_char_boundary(LONGEST_LINE));
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
struct Reader {
    splitter: Splitter,
    open: Option<Block>,
}

impl Reader {
    fn line(&mut self, line: &str, ready: &mut Vec<Piece>) {
        if self.open.as_ref().is_some_and(|block| block.source.len() > LONGEST_BLOCK) {
            self.splitter.tear();
        }
        match self.splitter.line(line) {
            Told::GoesOn => {
                if let Some(block) = &mut self.open {
                    block.source.push_str(line);
                    block.source.push('\n');
                }
            }
            Told::Blank => self.close(ready),
            Told::Begins(kind, gap) => {
                self.close(ready);
                self.open = Some(Block { kind, gap, source: format!("{line}\n") });
                if matches!(kind, Kind::Heading | Kind::Rule) {
                    self.close(ready);
                }
            }
            Told::CodeBegins { language, gap } => {
                self.close(ready);
                ready.push(Piece::CodeBegins(language, gap));
            }
            Told::Code(line) => ready.push(Piece::CodeLine(line.to_owned())),
            Told::CodeEnds => {}
        }
    }

    /// The last line, if something stands in it, and the end.
    fn end(&mut self, line: &str, ready: &mut Vec<Piece>) {
        if !line.is_empty() {
            self.line(without_end(line), ready);
        }
        self.close(ready);
    }

    fn close(&mut self, ready: &mut Vec<Piece>) {
        ready.extend(self.open.take().map(Piece::Block));
    }
}

/// Draws pieces in their order. Code is read on from line to line.
#[derive(Clone, Debug, Default)]
struct Painter {
    highlighter: Highlighter,
    /// A blank row is due before the first line of the code.
    gap: Option<Gap>,
}

impl Painter {
    fn paint(&mut self, pieces: &[Piece], width: usize, theme: &Theme) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Block(block) => {
                    lines.extend(row(block.gap));
                    let number = if let Kind::Item(number) = block.kind { number } else { None };
                    lines.extend(render_block(&block.source, number, width, theme));
                }
                Piece::CodeBegins(language, gap) => {
                    self.highlighter = Highlighter::for_language(language);
                    self.gap = Some(*gap);
                }
                Piece::CodeLine(line) => {
                    lines.extend(self.gap.take().and_then(row));
                    let spans = self.highlighter.line(line, theme);
                    lines.extend(code_line(spans, width, Line::default(), Line::default()));
                }
            }
        }
        lines
    }
}

fn row(gap: Gap) -> Option<Line<'static>> {
    (gap == Gap::Row).then(Line::default)
}
