//! Redirections.

use std::cell::OnceCell;
use std::rc::Rc;

use super::here_documents::PendingHereDocument;
use super::{ParseResult, ShellParser, is_name, is_name_start};
use crate::shell::tree::{RawWord, ShellRedirect, ShellRedirectKind};

/// The operators, longest first.
const REDIRECT_OPERATORS: [&str; 12] =
    ["&>>", "<<<", "<<-", "&>", "<<", "<>", "<&", ">>", ">|", ">&", "<", ">"];

impl ShellParser<'_> {
    /// A redirection, if one begins here.
    pub(super) fn redirect(&mut self) -> ParseResult<Option<ShellRedirect>> {
        let start = self.at;
        let descriptor = self.descriptor()?;
        if self.is_process_substitution() {
            self.at = start;
            return Ok(None);
        }
        let Some(operator) = REDIRECT_OPERATORS.into_iter().find(|operator| self.eat(operator)) else {
            self.at = start;
            return Ok(None);
        };
        if matches!(operator, "&>" | "&>>" | "<<<") {
            self.bash_only(&format!("`{operator}`"));
        }
        let is_input = match descriptor {
            None => operator.starts_with('<'),
            Some(ref number) => number == "0",
        };
        let variable = descriptor.filter(|name| name.bytes().next().is_some_and(is_name_start));
        self.skip_blanks();
        let kind = match operator {
            "<<" | "<<-" => ShellRedirectKind::HereDocument(self.here_document(operator == "<<-")?),
            "<<<" => ShellRedirectKind::HereString(self.word()?),
            "<" => ShellRedirectKind::Read(self.word()?),
            "<>" => ShellRedirectKind::ReadWrite(self.word()?),
            "<&" | ">&" => ShellRedirectKind::Duplicate(self.word()?),
            ">>" | "&>>" => ShellRedirectKind::Append(self.word()?),
            _ => ShellRedirectKind::Write(self.word()?),
        };
        Ok(Some(ShellRedirect { is_input, variable, kind }))
    }

    /// The number or the `{name}` right before an operator; otherwise nothing is taken.
    fn descriptor(&mut self) -> ParseResult<Option<String>> {
        let start = self.at;
        let mut descriptor = String::new();
        if self.eat("{") {
            while self.peek().is_some_and(|byte| is_name(byte) || matches!(byte, b'[' | b']')) {
                descriptor.extend(self.take()?);
            }
            let is_name = descriptor.bytes().next().is_some_and(is_name_start);
            if is_name && self.eat("}") && matches!(self.peek(), Some(b'<' | b'>')) {
                self.bash_only("`{name}>`");
                return Ok(Some(descriptor));
            }
        } else {
            while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                descriptor.extend(self.take()?);
            }
            if !descriptor.is_empty() && matches!(self.peek(), Some(b'<' | b'>')) {
                if descriptor.len() > 1 {
                    self.bash_only("large descriptors");
                }
                return Ok(Some(descriptor));
            }
        }
        self.at = start;
        Ok(None)
    }

    fn here_document(&mut self, strips_tabs: bool) -> ParseResult<Rc<OnceCell<RawWord>>> {
        let begin = self.at;
        let (delimiter, is_quoted) = self.delimiter()?;
        let body = Rc::new(OnceCell::new());
        self.pending.push(PendingHereDocument {
            delimiter,
            is_quoted,
            strips_tabs,
            begin,
            body: Rc::clone(&body),
        });
        Ok(body)
    }

    /// The word after `<<`: its quotes are undone, but nothing is expanded.
    fn delimiter(&mut self) -> ParseResult<(String, bool)> {
        let word = self.word()?;
        let written = self.slice(word.span.start, word.span.end);
        let is_odd = written.contains(['$', '`', '\n']) || self.is_process_substitution();
        match word.literal() {
            Some(text) if !is_odd => Ok((text, written.contains(['\'', '"', '\\']))),
            _ => Err(self.mistake("the end of the here-document can't be known")),
        }
    }

    pub(super) fn is_process_substitution(&mut self) -> bool {
        self.is_next("<(") || self.is_next(">(")
    }
}
