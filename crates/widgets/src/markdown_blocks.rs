//! Where the blocks of a Markdown text begin, told line by line. Nothing is ever taken back, so what is before the block that
//! is open can't change any more. What a block means is read later, from its own lines alone.

/// What kind of block a line begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkdownBlockKind {
    Paragraph,
    Heading,
    Rule,
    Quote,
    Html,
    /// Code by indentation.
    Indented,
    /// One item of a list, with the number that it is shown with.
    Item(Option<u64>),
}

impl MarkdownBlockKind {
    /// Stands close to its like, if the source does so.
    fn is_tight(self) -> bool {
        matches!(self, MarkdownBlockKind::Paragraph | MarkdownBlockKind::Item(_))
    }
}

/// What a line is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MarkdownLine<'a> {
    /// A block begins, after a blank row or close to the one before.
    BlockStart(MarkdownBlockKind, BlockGap),
    Continuation,
    /// Nothing is open any more.
    Blank,
    CodeStart {
        language: String,
        gap: BlockGap,
    },
    CodeLine(&'a str),
    CodeEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockGap {
    None,
    BlankRow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MarkdownFence {
    mark: u8,
    length: usize,
    indent: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MarkdownListItem {
    mark: u8,
    number: Option<u64>,
    /// Lines that are indented so far belong to it.
    content: usize,
    fence: Option<MarkdownFence>,
    /// The last line was text, which the next one may go on with.
    is_text: bool,
    was_blank: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum OpenMarkdownBlock {
    #[default]
    Nothing,
    Plain(MarkdownBlockKind),
    Item(MarkdownListItem),
    Code(MarkdownFence),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct BlockSplitter {
    open: OpenMarkdownBlock,
    /// The last block: its kind if it can stand close to the next, and the last item if it was one.
    before: Option<PreviousBlock>,
    was_blank: bool,
}

#[derive(Clone, Copy, Debug)]
struct PreviousBlock {
    is_tight: bool,
    item: Option<(u8, Option<u64>)>,
}

impl BlockSplitter {
    /// What the next line is, which comes without its end.
    pub(crate) fn line<'a>(&mut self, line: &'a str) -> MarkdownLine<'a> {
        if let OpenMarkdownBlock::Code(fence) = self.open {
            if fence.is_closed_by(line) {
                self.open = OpenMarkdownBlock::Nothing;
                return MarkdownLine::CodeEnd;
            }
            return MarkdownLine::CodeLine(without_indent(line, fence.indent));
        }
        if line.trim().is_empty() {
            return self.blank();
        }
        if self.goes_on(line) {
            return MarkdownLine::Continuation;
        }
        self.begin(line)
    }

    /// The next line begins a block, whatever it is.
    pub(crate) fn force_new_block(&mut self) {
        if !matches!(self.open, OpenMarkdownBlock::Code(_)) {
            self.open = OpenMarkdownBlock::Nothing;
        }
    }

    fn blank(&mut self) -> MarkdownLine<'static> {
        self.was_blank = true;
        if let OpenMarkdownBlock::Item(item) = &mut self.open {
            item.was_blank = true;
            return MarkdownLine::Continuation;
        }
        self.open = OpenMarkdownBlock::Nothing;
        MarkdownLine::Blank
    }

    fn goes_on(&mut self, line: &str) -> bool {
        let start = start_of(line);
        let goes_on = match &mut self.open {
            OpenMarkdownBlock::Nothing | OpenMarkdownBlock::Code(_) => false,
            OpenMarkdownBlock::Item(item) => item.takes(line, &start),
            OpenMarkdownBlock::Plain(MarkdownBlockKind::Paragraph) => {
                if is_underline(line) {
                    self.open = OpenMarkdownBlock::Nothing;
                    self.before = Some(PreviousBlock { is_tight: false, item: None });
                    return true;
                }
                // Only a list that begins with one may interrupt a paragraph.
                matches!(start, BlockStartKind::Paragraph | BlockStartKind::Indented)
                    || matches!(start, BlockStartKind::Item(item) if item.number.is_some_and(|number| number != 1))
            }
            OpenMarkdownBlock::Plain(MarkdownBlockKind::Quote) => {
                matches!(start, BlockStartKind::Quote | BlockStartKind::Paragraph)
            }
            OpenMarkdownBlock::Plain(MarkdownBlockKind::Html) => true,
            OpenMarkdownBlock::Plain(MarkdownBlockKind::Indented) => start == BlockStartKind::Indented,
            OpenMarkdownBlock::Plain(_) => false,
        };
        if goes_on {
            self.was_blank = false;
        }
        goes_on
    }

    fn begin<'a>(&mut self, line: &str) -> MarkdownLine<'a> {
        let start = start_of(line);
        let kind = match start {
            BlockStartKind::Paragraph => MarkdownBlockKind::Paragraph,
            BlockStartKind::Heading => MarkdownBlockKind::Heading,
            BlockStartKind::Rule => MarkdownBlockKind::Rule,
            BlockStartKind::Quote => MarkdownBlockKind::Quote,
            BlockStartKind::Html => MarkdownBlockKind::Html,
            BlockStartKind::Indented => MarkdownBlockKind::Indented,
            BlockStartKind::Item(item) => MarkdownBlockKind::Item(self.number_after(&item)),
            BlockStartKind::Fence(fence) => {
                let gap = self.gap(None);
                self.before = Some(PreviousBlock { is_tight: false, item: None });
                self.open = OpenMarkdownBlock::Code(fence);
                return MarkdownLine::CodeStart { language: fence.language(line), gap };
            }
        };
        let gap = self.gap(Some(kind));
        self.open = match start {
            BlockStartKind::Heading | BlockStartKind::Rule => OpenMarkdownBlock::Nothing,
            BlockStartKind::Item(item) => OpenMarkdownBlock::Item(item),
            _ => OpenMarkdownBlock::Plain(kind),
        };
        let item = if let (BlockStartKind::Item(item), MarkdownBlockKind::Item(number)) = (start, kind) {
            Some((item.mark, number))
        } else {
            None
        };
        self.before = Some(PreviousBlock { is_tight: kind.is_tight(), item });
        MarkdownLine::BlockStart(kind, gap)
    }

    fn gap(&mut self, kind: Option<MarkdownBlockKind>) -> BlockGap {
        let was_blank = std::mem::take(&mut self.was_blank);
        match self.before {
            None => BlockGap::None,
            Some(before)
                if before.is_tight && kind.is_some_and(MarkdownBlockKind::is_tight) && !was_blank =>
            {
                BlockGap::None
            }
            Some(_) => BlockGap::BlankRow,
        }
    }

    /// Items count on from the first of their list, whatever they say.
    fn number_after(&self, item: &MarkdownListItem) -> Option<u64> {
        let said = item.number?;
        match self.before.and_then(|before| before.item) {
            Some((mark, Some(number))) if mark == item.mark => Some(number.saturating_add(1)),
            _ => Some(said),
        }
    }
}

impl MarkdownListItem {
    /// Whether a line that is not blank belongs to this item.
    fn takes(&mut self, line: &str, start: &BlockStartKind) -> bool {
        let indent = indent_of(line);
        if indent < self.content {
            let is_lazy = self.is_text
                && !self.was_blank
                && matches!(start, BlockStartKind::Paragraph | BlockStartKind::Indented);
            return is_lazy;
        }
        self.was_blank = false;
        let inner = without_indent(line, self.content);
        match self.fence {
            Some(fence) if fence.is_closed_by(inner) => self.fence = None,
            Some(_) => {}
            None => {
                let inner = start_of(inner.trim_start_matches(' '));
                self.fence = if let BlockStartKind::Fence(fence) = inner { Some(fence) } else { None };
                self.is_text = matches!(
                    inner,
                    BlockStartKind::Paragraph | BlockStartKind::Item(_) | BlockStartKind::Quote
                );
            }
        }
        true
    }
}

/// How a line could begin a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockStartKind {
    Paragraph,
    Heading,
    Rule,
    Quote,
    Html,
    Indented,
    Item(MarkdownListItem),
    Fence(MarkdownFence),
}

fn start_of(line: &str) -> BlockStartKind {
    let indent = indent_of(line);
    let text = line.trim_start_matches([' ', '\t']);
    if indent >= 4 {
        return BlockStartKind::Indented;
    }
    if let Some(fence) = fence(text, indent) {
        return BlockStartKind::Fence(fence);
    }
    if is_rule(text) {
        return BlockStartKind::Rule;
    }
    if let Some(item) = item(text, indent) {
        return BlockStartKind::Item(item);
    }
    match text.as_bytes().first() {
        Some(b'#') if is_heading(text) => BlockStartKind::Heading,
        Some(b'>') => BlockStartKind::Quote,
        Some(b'<')
            if text.as_bytes().get(1).is_some_and(|c| c.is_ascii_alphabetic() || b"/!?".contains(c)) =>
        {
            BlockStartKind::Html
        }
        _ => BlockStartKind::Paragraph,
    }
}

fn indent_of(line: &str) -> usize {
    let mut columns = 0;
    for byte in line.bytes() {
        match byte {
            b' ' => columns += 1,
            b'\t' => columns += 4 - columns % 4,
            _ => break,
        }
    }
    columns
}

/// The line without so many spaces at its beginning, as far as it has them.
fn without_indent(line: &str, most: usize) -> &str {
    let spaces = line.bytes().take(most).take_while(|byte| *byte == b' ').count();
    line.get(spaces..).unwrap_or(line)
}

fn is_heading(text: &str) -> bool {
    let rest = text.trim_start_matches('#');
    text.len() - rest.len() <= 6 && (rest.is_empty() || rest.starts_with([' ', '\t']))
}

fn is_rule(text: &str) -> bool {
    let mut marks = text.bytes().filter(|byte| !b" \t".contains(byte));
    let Some(mark) = marks.next().filter(|mark| b"-_*".contains(mark)) else { return false };
    let mut count = 1;
    marks.all(|byte| {
        count += 1;
        byte == mark
    }) && count >= 3
}

/// What makes a heading of the paragraph above it.
fn is_underline(line: &str) -> bool {
    let text = line.trim();
    indent_of(line) < 4
        && !text.is_empty()
        && (text.bytes().all(|b| b == b'=') || text.bytes().all(|b| b == b'-'))
}

fn fence(text: &str, indent: usize) -> Option<MarkdownFence> {
    let mark = *text.as_bytes().first().filter(|mark| b"`~".contains(mark))?;
    let length = text.bytes().take_while(|byte| *byte == mark).count();
    let info = text.get(length..)?;
    (length >= 3 && !(mark == b'`' && info.contains('`'))).then_some(MarkdownFence { mark, length, indent })
}

impl MarkdownFence {
    fn is_closed_by(&self, line: &str) -> bool {
        let text = line.trim();
        indent_of(line) < 4 && text.len() >= self.length && text.bytes().all(|byte| byte == self.mark)
    }

    fn language(&self, line: &str) -> String {
        let info = line.trim().trim_start_matches(char::from(self.mark)).trim_start();
        // As in `rust,ignore`, `{.python}` or `js {1,2}`.
        let info = info.trim_start_matches(['{', '.']);
        info.split([' ', ',', '{', '}', ':']).next().unwrap_or_default().to_owned()
    }
}

fn item(text: &str, indent: usize) -> Option<MarkdownListItem> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let mark = *text.as_bytes().get(digits)?;
    let is_mark = if digits == 0 { b"-*+".contains(&mark) } else { digits <= 9 && b".)".contains(&mark) };
    let rest = text.get(digits + 1..).filter(|_| is_mark)?;
    if !rest.is_empty() && !rest.starts_with([' ', '\t']) {
        return None;
    }
    let spaces = indent_of(rest);
    // An item that begins with code by indentation has its content one space behind the mark; an empty one too.
    let padding = if (1..=4).contains(&spaces) && !rest.trim().is_empty() { spaces } else { 1 };
    let number = text.get(..digits).and_then(|digits| digits.parse().ok());
    let inner = start_of(rest.trim_start());
    let fence = if let BlockStartKind::Fence(fence) = inner { Some(fence) } else { None };
    let is_text =
        matches!(inner, BlockStartKind::Paragraph | BlockStartKind::Quote) && !rest.trim().is_empty();
    let content = indent + digits + 1 + padding;
    Some(MarkdownListItem { mark, number, content, fence, is_text, was_blank: false })
}
