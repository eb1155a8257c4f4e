//! Where the blocks of a Markdown text begin, told line by line. Nothing is ever taken back, so what is before the block that
//! is open can't change any more. What a block means is read later, from its own lines alone.

/// What kind of block a line begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
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

impl Kind {
    /// Stands close to its like, if the source does so.
    fn is_tight(self) -> bool {
        matches!(self, Kind::Paragraph | Kind::Item(_))
    }
}

/// What a line is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told<'a> {
    /// A block begins, after a blank row or close to the one before.
    Begins(Kind, Gap),
    GoesOn,
    /// Nothing is open any more.
    Blank,
    CodeBegins {
        language: String,
        gap: Gap,
    },
    Code(&'a str),
    CodeEnds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gap {
    None,
    Row,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fence {
    mark: u8,
    length: usize,
    indent: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Item {
    mark: u8,
    number: Option<u64>,
    /// Lines that are indented so far belong to it.
    content: usize,
    fence: Option<Fence>,
    /// The last line was text, which the next one may go on with.
    is_text: bool,
    was_blank: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Open {
    #[default]
    Nothing,
    Plain(Kind),
    Item(Item),
    Code(Fence),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Splitter {
    open: Open,
    /// The last block: its kind if it can stand close to the next, and the last item if it was one.
    before: Option<Before>,
    was_blank: bool,
}

#[derive(Clone, Copy, Debug)]
struct Before {
    is_tight: bool,
    item: Option<(u8, Option<u64>)>,
}

impl Splitter {
    /// What the next line is, which comes without its end.
    pub(crate) fn line<'a>(&mut self, line: &'a str) -> Told<'a> {
        if let Open::Code(fence) = self.open {
            if fence.is_closed_by(line) {
                self.open = Open::Nothing;
                return Told::CodeEnds;
            }
            return Told::Code(without_indent(line, fence.indent));
        }
        if line.trim().is_empty() {
            return self.blank();
        }
        if self.goes_on(line) {
            return Told::GoesOn;
        }
        self.begin(line)
    }

    /// The next line begins a block, whatever it is.
    pub(crate) fn tear(&mut self) {
        if !matches!(self.open, Open::Code(_)) {
            self.open = Open::Nothing;
        }
    }

    fn blank(&mut self) -> Told<'static> {
        self.was_blank = true;
        if let Open::Item(item) = &mut self.open {
            item.was_blank = true;
            return Told::GoesOn;
        }
        self.open = Open::Nothing;
        Told::Blank
    }

    fn goes_on(&mut self, line: &str) -> bool {
        let start = start_of(line);
        let goes_on = match &mut self.open {
            Open::Nothing | Open::Code(_) => false,
            Open::Item(item) => item.takes(line, &start),
            Open::Plain(Kind::Paragraph) => {
                if is_underline(line) {
                    self.open = Open::Nothing;
                    self.before = Some(Before { is_tight: false, item: None });
                    return true;
                }
                // Only a list that begins with one may interrupt a paragraph.
                matches!(start, Start::Paragraph | Start::Indented)
                    || matches!(start, Start::Item(item) if item.number.is_some_and(|number| number != 1))
            }
            Open::Plain(Kind::Quote) => matches!(start, Start::Quote | Start::Paragraph),
            Open::Plain(Kind::Html) => true,
            Open::Plain(Kind::Indented) => start == Start::Indented,
            Open::Plain(_) => false,
        };
        if goes_on {
            self.was_blank = false;
        }
        goes_on
    }

    fn begin<'a>(&mut self, line: &str) -> Told<'a> {
        let start = start_of(line);
        let kind = match start {
            Start::Paragraph => Kind::Paragraph,
            Start::Heading => Kind::Heading,
            Start::Rule => Kind::Rule,
            Start::Quote => Kind::Quote,
            Start::Html => Kind::Html,
            Start::Indented => Kind::Indented,
            Start::Item(item) => Kind::Item(self.number_after(&item)),
            Start::Fence(fence) => {
                let gap = self.gap(None);
                self.before = Some(Before { is_tight: false, item: None });
                self.open = Open::Code(fence);
                return Told::CodeBegins { language: fence.language(line), gap };
            }
        };
        let gap = self.gap(Some(kind));
        self.open = match start {
            Start::Heading | Start::Rule => Open::Nothing,
            Start::Item(item) => Open::Item(item),
            _ => Open::Plain(kind),
        };
        let item = if let (Start::Item(item), Kind::Item(number)) = (start, kind) {
            Some((item.mark, number))
        } else {
            None
        };
        self.before = Some(Before { is_tight: kind.is_tight(), item });
        Told::Begins(kind, gap)
    }

    fn gap(&mut self, kind: Option<Kind>) -> Gap {
        let was_blank = std::mem::take(&mut self.was_blank);
        match self.before {
            None => Gap::None,
            Some(before) if before.is_tight && kind.is_some_and(Kind::is_tight) && !was_blank => Gap::None,
            Some(_) => Gap::Row,
        }
    }

    /// Items count on from the first of their list, whatever they say.
    fn number_after(&self, item: &Item) -> Option<u64> {
        let said = item.number?;
        match self.before.and_then(|before| before.item) {
            Some((mark, Some(number))) if mark == item.mark => Some(number.saturating_add(1)),
            _ => Some(said),
        }
    }
}

impl Item {
    /// Whether a line that is not blank belongs to this item.
    fn takes(&mut self, line: &str, start: &Start) -> bool {
        let indent = indent_of(line);
        if indent < self.content {
            let is_lazy =
                self.is_text && !self.was_blank && matches!(start, Start::Paragraph | Start::Indented);
            return is_lazy;
        }
        self.was_blank = false;
        let inner = without_indent(line, self.content);
        match self.fence {
            Some(fence) if fence.is_closed_by(inner) => self.fence = None,
            Some(_) => {}
            None => {
                let inner = start_of(inner.trim_start_matches(' '));
                self.fence = if let Start::Fence(fence) = inner { Some(fence) } else { None };
                self.is_text = matches!(inner, Start::Paragraph | Start::Item(_) | Start::Quote);
            }
        }
        true
    }
}

/// How a line could begin a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Paragraph,
    Heading,
    Rule,
    Quote,
    Html,
    Indented,
    Item(Item),
    Fence(Fence),
}

fn start_of(line: &str) -> Start {
    let indent = indent_of(line);
    let text = line.trim_start_matches([' ', '\t']);
    if indent >= 4 {
        return Start::Indented;
    }
    if let Some(fence) = fence(text, indent) {
        return Start::Fence(fence);
    }
    if is_rule(text) {
        return Start::Rule;
    }
    if let Some(item) = item(text, indent) {
        return Start::Item(item);
    }
    match text.as_bytes().first() {
        Some(b'#') if is_heading(text) => Start::Heading,
        Some(b'>') => Start::Quote,
        Some(b'<')
            if text.as_bytes().get(1).is_some_and(|c| c.is_ascii_alphabetic() || b"/!?".contains(c)) =>
        {
            Start::Html
        }
        _ => Start::Paragraph,
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

fn fence(text: &str, indent: usize) -> Option<Fence> {
    let mark = *text.as_bytes().first().filter(|mark| b"`~".contains(mark))?;
    let length = text.bytes().take_while(|byte| *byte == mark).count();
    let info = text.get(length..)?;
    (length >= 3 && !(mark == b'`' && info.contains('`'))).then_some(Fence { mark, length, indent })
}

impl Fence {
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

fn item(text: &str, indent: usize) -> Option<Item> {
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
    let fence = if let Start::Fence(fence) = inner { Some(fence) } else { None };
    let is_text = matches!(inner, Start::Paragraph | Start::Quote) && !rest.trim().is_empty();
    let content = indent + digits + 1 + padding;
    Some(Item { mark, number, content, fence, is_text, was_blank: false })
}
