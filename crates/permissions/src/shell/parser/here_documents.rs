//! The texts of here-documents, which stand after the line that asks for them.

use std::cell::OnceCell;
use std::rc::Rc;

use super::{ParseResult, ShellParser};
use crate::shell::tree::{RawWord, ShellWordPart};

/// A here-document whose text has yet to come.
pub(super) struct PendingHereDocument {
    pub(super) delimiter: String,
    pub(super) is_quoted: bool,
    pub(super) strips_tabs: bool,
    /// Where it was asked for.
    pub(super) begin: usize,
    pub(super) body: Rc<OnceCell<RawWord>>,
}

impl ShellParser<'_> {
    /// At the beginning of a line: takes the texts that the line before asked for.
    pub(super) fn here_documents(&mut self) -> ParseResult<()> {
        let pending = std::mem::take(&mut self.pending);
        let line = pending.first().map_or("", |first| self.slice(first.begin, self.at.saturating_sub(1)));
        if line.replace("\\\n", "").contains('\n') {
            self.doubt("a line break stands between a here-document and its text");
        }
        pending.iter().try_for_each(|pending| self.body(pending))
    }

    fn body(&mut self, pending: &PendingHereDocument) -> ParseResult<()> {
        let start = self.at;
        let mut text = String::new();
        loop {
            if self.at >= self.text.len() {
                return Err(self.mistake("the here-document has no end"));
            }
            let line = self.here_line(pending.is_quoted)?;
            let line = if pending.strips_tabs { line.trim_start_matches('\t') } else { &line };
            match line.strip_prefix(pending.delimiter.as_str()) {
                Some("" | "\n") => break,
                // Inside a substitution, bash ends it here if the rest has what ends the substitution.
                Some(rest) if self.substitutions > 0 && rest.contains(')') => {
                    self.doubt("the line that ends the here-document has more in it");
                }
                _ => {}
            }
            text.push_str(line);
        }
        let parts = if pending.is_quoted {
            vec![ShellWordPart::Quoted(text)]
        } else {
            self.inner(&text, |parser| parser.here_parts())?
        };
        // It is set once: every here-document is pending once.
        let _ = pending.body.set(RawWord { parts, span: start..self.at });
        Ok(())
    }

    /// The next line with its end. Where the text is expanded, continued lines are one.
    fn here_line(&mut self, is_quoted: bool) -> ParseResult<String> {
        let mut line = String::new();
        while let Some(next) = self.take()? {
            if next == '\\' && !is_quoted {
                match self.take()? {
                    Some('\n') => continue,
                    after => line.extend(std::iter::once(next).chain(after)),
                }
                continue;
            }
            line.push(next);
            if next == '\n' {
                break;
            }
        }
        Ok(line)
    }

    /// The text of a here-document that is expanded, or of anything else that is expanded as if between double quotes.
    pub(super) fn here_parts(&mut self) -> ParseResult<Vec<ShellWordPart>> {
        let mut parts = Vec::new();
        while let Some(byte) = self.raw() {
            self.quoted_byte(byte, &mut parts)?;
        }
        Ok(parts)
    }

    /// At the end of everything: no here-document may be left without its text.
    pub(super) fn end_of_text(&mut self) -> ParseResult<()> {
        if self.pending.is_empty() { Ok(()) } else { Err(self.mistake("the here-document has no text")) }
    }
}
