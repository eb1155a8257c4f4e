//! What a pager shows.

use std::borrow::Cow;

use ratatui::text::Line;

/// Where lines come from.
pub trait PagerDocument {
    fn count(&self) -> usize;
    fn line(&self, number: usize) -> Option<Cow<'_, Line<'_>>>;
    /// The text of a line, to search in.
    fn text(&self, number: usize) -> Option<Cow<'_, str>>;
}

impl PagerDocument for Vec<Line<'static>> {
    fn count(&self) -> usize {
        self.len()
    }

    fn line(&self, number: usize) -> Option<Cow<'_, Line<'_>>> {
        self.get(number).map(Cow::Borrowed)
    }

    fn text(&self, number: usize) -> Option<Cow<'_, str>> {
        let spans = &self.get(number)?.spans;
        Some(match &spans[..] {
            [one] => Cow::Borrowed(&*one.content),
            many => many.iter().map(|span| &*span.content).collect::<String>().into(),
        })
    }
}

/// A text without styles.
#[derive(Clone, Debug, Default)]
pub struct PlainText {
    text: String,
    starts: Vec<usize>,
}

impl PlainText {
    pub fn new(text: String) -> PlainText {
        let mut starts = vec![0];
        starts.extend(text.match_indices('\n').map(|(at, _)| at + 1));
        if starts.last() == Some(&text.len()) {
            starts.pop();
        }
        PlainText { text, starts }
    }

    fn get(&self, number: usize) -> Option<&str> {
        let start = *self.starts.get(number)?;
        let end = self.starts.get(number + 1).copied().unwrap_or(self.text.len());
        let line = self.text.get(start..end)?;
        let line = line.strip_suffix('\n').unwrap_or(line);
        Some(line.strip_suffix('\r').unwrap_or(line))
    }
}

impl PagerDocument for PlainText {
    fn count(&self) -> usize {
        self.starts.len()
    }

    fn line(&self, number: usize) -> Option<Cow<'_, Line<'_>>> {
        self.get(number).map(|line| Cow::Owned(Line::raw(line)))
    }

    fn text(&self, number: usize) -> Option<Cow<'_, str>> {
        self.get(number).map(Cow::Borrowed)
    }
}
