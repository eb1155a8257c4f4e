//! A tool's arguments as a model wrote them. Models slip, and most slips leave no doubt about what was meant: those are
//! repaired, and it is told. Where there is doubt, the model is asked again: a wrong command is worse than a lost turn.

use std::fmt;

use serde_json::{Map, Number, Value};

/// No tool takes more than this.
const MAX_ARGUMENTS_BYTES: usize = 8 << 20;
/// Less than the 127 levels that `serde_json` reads: the value must stay readable when it stands inside of an event.
const MAX_ARGUMENTS_DEPTH: usize = 100;
/// How often an object may have been wrapped in a string.
const MAX_STRING_ENCODINGS: usize = 2;
/// How much is shown on each side of a mistake.
const EXCERPT_CHARS: usize = 40;
/// No closing tag is longer.
const MAX_TAG_BYTES: usize = 48;
const CODE_FENCE: &str = "```";
/// Text that holds one of these may be a piece of the arguments, so it is not taken for prose.
const STRUCTURAL_CHARS: [char; 5] = ['{', '}', '[', ']', '"'];

/// What a model gave to a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolArguments {
    /// Always an object.
    pub value: Value,
    /// What had to be done to read it, if it was not written as it should be.
    pub repaired: Option<ArgumentRepair>,
}

/// What was done to arguments before they could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentRepair {
    /// A code fence around the arguments was removed.
    Fences,
    /// Text around the arguments was removed.
    Prose,
    /// Tags around the arguments were removed.
    Tags,
    /// The object was read out of a string.
    Encoded,
    /// `null` was read as no arguments.
    Null,
    /// A repetition of the same object was dropped.
    Repeated,
    /// A bracket too many at the end was dropped.
    StrayCloser,
    /// A missing bracket was added.
    MissingCloser,
    /// A comma before a bracket was dropped.
    TrailingComma,
    /// Comments were dropped.
    Comment,
    /// Control characters in a string were kept although they are not escaped.
    ControlCharacter,
    /// `True`, `False` or `None` was read as Python means it.
    PythonLiteral,
    /// Single quotes were read as double quotes.
    SingleQuotes,
    /// A key without quotes was read.
    BareKey,
    /// Two or more of the others, each once.
    Several(Vec<ArgumentRepair>),
}

impl ArgumentRepair {
    /// Whether this is what was done, or a part of it.
    pub fn includes(&self, other: &ArgumentRepair) -> bool {
        match self {
            ArgumentRepair::Several(repairs) => repairs.contains(other),
            one => one == other,
        }
    }
}

impl fmt::Display for ArgumentRepair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ArgumentRepair::Fences => "removed the code fence around the arguments",
            ArgumentRepair::Prose => "removed the text around the arguments",
            ArgumentRepair::Tags => "removed the tags around the arguments",
            ArgumentRepair::Encoded => "read the object out of a string",
            ArgumentRepair::Null => "read null as no arguments",
            ArgumentRepair::Repeated => "dropped a repetition of the same object",
            ArgumentRepair::StrayCloser => "dropped a bracket too many at the end",
            ArgumentRepair::MissingCloser => "added a missing bracket",
            ArgumentRepair::TrailingComma => "dropped a comma before a bracket",
            ArgumentRepair::Comment => "dropped comments",
            ArgumentRepair::ControlCharacter => "kept unescaped control characters in a string",
            ArgumentRepair::PythonLiteral => "read True, False or None as Python",
            ArgumentRepair::SingleQuotes => "read single quotes as double quotes",
            ArgumentRepair::BareKey => "read a key without quotes",
            ArgumentRepair::Several(repairs) => {
                let told: Vec<String> = repairs.iter().map(ArgumentRepair::to_string).collect();
                return f.write_str(&told.join("; "));
            }
        })
    }
}

/// Why arguments can't be read, in words for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "The arguments can't be read: {fault} (line {line}, column {column}).\nHere: {excerpt}\nSend the call again with valid JSON."
)]
pub struct ArgumentsError {
    /// What is wrong with them.
    pub fault: ArgumentsFault,
    /// The line of the fault, from 1. In an object that was wrapped in a string, line and column are those of the unwrapped
    /// text.
    pub line: usize,
    /// The column of the fault, from 1, in characters.
    pub column: usize,
    excerpt: String,
}

/// What is wrong with arguments that can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentsFault {
    /// More text than any tool takes.
    #[error("they are larger than {} MB", MAX_ARGUMENTS_BYTES >> 20)]
    TooLarge,
    /// Lists and objects nested too deep.
    #[error("they are nested more than {MAX_ARGUMENTS_DEPTH} levels deep")]
    TooDeep,
    /// Some other JSON value, named here.
    #[error("a JSON object is expected, not {0}")]
    NotAnObject(&'static str),
    /// The text may be only the beginning of what was meant.
    #[error("they end {0}, so a part of them may be missing")]
    CutOff(&'static str),
    /// Something else had to stand there, named here.
    #[error("expected {0}")]
    Expected(&'static str),
    /// A key with two values.
    #[error("the key `{0}` stands there twice with different values")]
    DuplicateKey(String),
    /// An escape in a string that JSON does not have.
    #[error("this escape does not exist in JSON; write `\\\\` for a backslash")]
    Escape,
    /// Something like a number that JSON does not have.
    #[error("this is no JSON number")]
    Number,
    /// Two objects of which nobody knows which is meant.
    #[error("a second, different object follows; a call has one object")]
    SecondObject,
    /// A comment that may be a part of the object.
    #[error("JSON has no comments, and this one has quotes in it")]
    Comment,
    /// Text after the object that may belong to it.
    #[error("something follows after the end of the object")]
    TrailingText,
}

/// Reads a call's arguments, however they are written, if there is no doubt about what is meant.
pub fn parse_arguments(text: &str) -> Result<ToolArguments, ArgumentsError> {
    if text.len() > MAX_ARGUMENTS_BYTES {
        return Err(unreadable(text, ParseStop { at: 0, fault: ArgumentsFault::TooLarge }));
    }
    // Some servers send nothing at all for a tool that takes nothing.
    if text.trim().is_empty() {
        return Ok(ToolArguments { value: Value::Object(Map::new()), repaired: None });
    }
    let mut repairs = Vec::new();
    let value = unwrapped(text, MAX_STRING_ENCODINGS, &mut repairs)?;
    let repaired = if repairs.len() > 1 { Some(ArgumentRepair::Several(repairs)) } else { repairs.pop() };
    Ok(ToolArguments { value, repaired })
}

/// The value that the whole text is, if it is written as it should be. Python's words are let through.
pub(crate) fn plain(text: &str) -> Option<Value> {
    let mut repairs = Vec::new();
    let mut reader = LenientJsonReader::new(text, &mut repairs)?;
    let value = reader.value().ok()?;
    reader.blank().ok()?;
    let is_whole = reader.peek().is_none();
    (is_whole && repairs.iter().all(|repair| *repair == ArgumentRepair::PythonLiteral)).then_some(value)
}

/// The objects and lists that stand one after the other in the text, if there is nothing else.
pub(crate) fn values(text: &str) -> Option<Vec<Value>> {
    let mut repairs = Vec::new();
    let mut reader = LenientJsonReader::new(text, &mut repairs)?;
    let mut values = Vec::new();
    loop {
        reader.blank().ok()?;
        match reader.peek() {
            None => return Some(values),
            Some(b'{' | b'[') => values.push(reader.value().ok()?),
            Some(_) => return None,
        }
    }
}

fn unwrapped(
    text: &str,
    encodings: usize,
    repairs: &mut Vec<ArgumentRepair>,
) -> Result<Value, ArgumentsError> {
    let mut reader = LenientJsonReader { text, at: 0, open: Vec::new(), repairs };
    let start = text.trim_start();
    if start.trim_end() == "null" {
        reader.note(ArgumentRepair::Null);
        return Ok(Value::Object(Map::new()));
    }
    if !start.starts_with('"') {
        return reader.object_in_text().map_err(|stop| unreadable(text, stop));
    }
    let inner = reader.only_string().map_err(|stop| unreadable(text, stop))?;
    if encodings == 0 || inner.trim().is_empty() {
        return Err(unreadable(text, ParseStop { at: 0, fault: ArgumentsFault::NotAnObject("a string") }));
    }
    reader.note(ArgumentRepair::Encoded);
    unwrapped(&inner, encodings - 1, repairs)
}

fn unreadable(text: &str, stop: ParseStop) -> ArgumentsError {
    let (before, after) = text.split_at_checked(stop.at).unwrap_or((text, ""));
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    ArgumentsError {
        line: before.matches('\n').count() + 1,
        column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
        excerpt: excerpt(before, after),
        fault: stop.fault,
    }
}

fn excerpt(before: &str, after: &str) -> String {
    let from = before.char_indices().rev().nth(EXCERPT_CHARS - 1).map_or(0, |(at, _)| at);
    let to = after.char_indices().nth(EXCERPT_CHARS).map_or(after.len(), |(at, _)| at);
    let shown = |text: Option<&str>| -> String {
        text.unwrap_or_default()
            .chars()
            .map(|letter| if letter.is_control() { ' ' } else { letter })
            .collect()
    };
    let dots = |is_cut: bool| if is_cut { "…" } else { "" };
    format!(
        "{}{} <<HERE>> {}{}",
        dots(from > 0),
        shown(before.get(from..)),
        shown(after.get(..to)),
        dots(to < after.len())
    )
}

/// Where reading stopped, and why.
struct ParseStop {
    at: usize,
    fault: ArgumentsFault,
}

/// Reads JSON with the usual slips in one pass, and notes the slips.
struct LenientJsonReader<'t> {
    text: &'t str,
    at: usize,
    /// The brackets that are open.
    open: Vec<u8>,
    repairs: &'t mut Vec<ArgumentRepair>,
}

impl<'t> LenientJsonReader<'t> {
    /// None if the text is too large.
    fn new(text: &'t str, repairs: &'t mut Vec<ArgumentRepair>) -> Option<LenientJsonReader<'t>> {
        let reader = LenientJsonReader { text, at: 0, open: Vec::new(), repairs };
        (text.len() <= MAX_ARGUMENTS_BYTES).then_some(reader)
    }

    fn note(&mut self, repair: ArgumentRepair) {
        if !self.repairs.contains(&repair) {
            self.repairs.push(repair);
        }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    /// Takes as many ASCII characters as belong together.
    fn run(&mut self, belongs: impl Fn(u8) -> bool) -> &'t str {
        let rest = self.rest();
        let length = rest.bytes().position(|byte| !belongs(byte)).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    fn stop<T>(&self, fault: ArgumentsFault) -> Result<T, ParseStop> {
        Err(ParseStop { at: self.at, fault })
    }

    fn expected<T>(&self, what: &'static str) -> Result<T, ParseStop> {
        match self.peek() {
            Some(_) => self.stop(ArgumentsFault::Expected(what)),
            None => self.stop(ArgumentsFault::CutOff("too early")),
        }
    }

    // What may stand around the object.

    fn object_in_text(&mut self) -> Result<Value, ParseStop> {
        self.at = self.text.find(STRUCTURAL_CHARS).unwrap_or(self.text.len());
        if self.peek() != Some(b'{') {
            self.at = self.text.len() - self.text.trim_start().len();
            return self.stop(ArgumentsFault::NotAnObject(kind_of(self.rest())));
        }
        self.note_lead(self.text.get(..self.at).unwrap_or_default());
        let object = self.object()?;
        self.check_rest(&object)?;
        Ok(object)
    }

    fn note_lead(&mut self, lead: &str) {
        let mut lead = lead.trim();
        if let Some((before, info)) = lead.rsplit_once(CODE_FENCE)
            && !info.contains(char::is_whitespace)
        {
            self.note(ArgumentRepair::Fences);
            lead = before.trim();
        }
        if lead.ends_with('>')
            && let Some((before, _)) = lead.rsplit_once('<')
        {
            self.note(ArgumentRepair::Tags);
            lead = before.trim();
        }
        if !lead.is_empty() {
            self.note(ArgumentRepair::Prose);
        }
    }

    fn check_rest(&mut self, object: &Value) -> Result<(), ParseStop> {
        let end = self.at;
        loop {
            self.blank()?;
            let rest = self.rest();
            if rest.is_empty() {
                return Ok(());
            } else if rest.starts_with(CODE_FENCE) {
                self.note(ArgumentRepair::Fences);
                self.at += CODE_FENCE.len();
            } else if let Some(length) = end_tag(rest) {
                self.note(ArgumentRepair::Tags);
                self.at += length;
            } else if self.take(b'}') {
                self.note(ArgumentRepair::StrayCloser);
            } else if rest.starts_with('{') {
                self.same_again(object)?;
            } else {
                return self.prose_since(end);
            }
        }
    }

    fn same_again(&mut self, object: &Value) -> Result<(), ParseStop> {
        let start = self.at;
        if self.object()? != *object {
            return Err(ParseStop { at: start, fault: ArgumentsFault::SecondObject });
        }
        self.note(ArgumentRepair::Repeated);
        Ok(())
    }

    /// Prose has lines of its own and no brackets or quotes. Otherwise it may be what follows after a quote that should
    /// have been escaped, as in `{"command": "echo "} "hi"}`.
    fn prose_since(&mut self, end: usize) -> Result<(), ParseStop> {
        let is_on_new_line = self.text.get(end..self.at).is_some_and(|between| between.contains('\n'));
        if !is_on_new_line || self.rest().contains(STRUCTURAL_CHARS) {
            return self.stop(ArgumentsFault::TrailingText);
        }
        self.note(ArgumentRepair::Prose);
        Ok(())
    }

    /// The string that the text is.
    fn only_string(&mut self) -> Result<String, ParseStop> {
        let start = self.text.len() - self.text.trim_start().len();
        self.at = start;
        let inner = self.string()?;
        self.blank()?;
        match self.peek() {
            None => Ok(inner),
            Some(_) => Err(ParseStop { at: start, fault: ArgumentsFault::Expected("`{`") }),
        }
    }

    // What JSON is made of.

    fn value(&mut self) -> Result<Value, ParseStop> {
        self.blank()?;
        match self.peek() {
            Some(b'{') => self.object(),
            Some(b'[') => self.list(),
            Some(b'"' | b'\'') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(byte) if byte.is_ascii_alphabetic() => self.word(),
            _ => self.expected("a value"),
        }
    }

    fn object(&mut self) -> Result<Value, ParseStop> {
        self.enter(b'{')?;
        let mut members = Map::new();
        let mut goes_on = !self.closes(b'}')?;
        while goes_on {
            self.blank()?;
            let start = self.at;
            let key = self.key()?;
            self.colon()?;
            let value = self.value()?;
            goes_on = self.goes_on(b'}', &value)?;
            if members.get(&key).is_some_and(|other| *other != value) {
                let key = key.chars().take(EXCERPT_CHARS).collect();
                return Err(ParseStop { at: start, fault: ArgumentsFault::DuplicateKey(key) });
            }
            members.insert(key, value);
        }
        self.open.pop();
        Ok(Value::Object(members))
    }

    fn list(&mut self) -> Result<Value, ParseStop> {
        self.enter(b'[')?;
        let mut items = Vec::new();
        let mut goes_on = !self.closes(b']')?;
        while goes_on {
            let item = self.value()?;
            goes_on = self.goes_on(b']', &item)?;
            items.push(item);
        }
        self.open.pop();
        Ok(Value::Array(items))
    }

    fn enter(&mut self, bracket: u8) -> Result<(), ParseStop> {
        if self.open.len() == MAX_ARGUMENTS_DEPTH {
            return self.stop(ArgumentsFault::TooDeep);
        }
        self.open.push(bracket);
        self.at += 1;
        Ok(())
    }

    fn closes(&mut self, closer: u8) -> Result<bool, ParseStop> {
        self.blank()?;
        Ok(self.take(closer))
    }

    /// Whether another member follows after `last`, or else the end of what holds it, which is taken.
    ///
    /// At the end of the text nothing is ever completed. `{"command": "make clean"` looks whole, but the stream may have
    /// been cut just before `, "dry_run": true}`; nothing in the text tells the two apart, and asking again costs one turn.
    fn goes_on(&mut self, closer: u8, last: &Value) -> Result<bool, ParseStop> {
        if self.closes(closer)? {
            return Ok(false);
        }
        if self.take(b',') {
            let is_trailing = self.closes(closer)?;
            if is_trailing {
                self.note(ArgumentRepair::TrailingComma);
            }
            return Ok(!is_trailing);
        }
        if self.can_only_end_here(closer, last) {
            self.note(ArgumentRepair::MissingCloser);
            return Ok(false);
        }
        self.expected(if closer == b'}' { "`,` or `}`" } else { "`,` or `]`" })
    }

    /// Whether `closer` was forgotten, and can be put in at this place alone. It was forgotten, and not cut off, if the model
    /// went on to close what is around: with the other bracket, a fence or a tag. Other places are possible only if
    /// the last thing inside has the same brackets and two members or more: `{"a": {"b": 1, "c": 2}` may lack its
    /// bracket after `1` as well.
    fn can_only_end_here(&self, closer: u8, last: &Value) -> bool {
        let around = self.open.iter().rev().nth(1);
        let is_closed_around = match self.peek() {
            Some(b'}') => around == Some(&b'{'),
            Some(b']') => around == Some(&b'['),
            _ => self.rest().starts_with(CODE_FENCE) || end_tag(self.rest()).is_some(),
        };
        let same_inside = match last {
            Value::Object(members) if closer == b'}' => members.len(),
            Value::Array(items) if closer == b']' => items.len(),
            _ => 0,
        };
        is_closed_around && same_inside < 2
    }

    fn key(&mut self) -> Result<String, ParseStop> {
        if matches!(self.peek(), Some(b'"' | b'\'')) {
            return self.string();
        }
        let start = self.at;
        let name = self.run(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'-'));
        if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit() || first == '-') {
            self.at = start;
            return self.expected("a key in double quotes");
        }
        self.note(ArgumentRepair::BareKey);
        Ok(name.to_owned())
    }

    fn colon(&mut self) -> Result<(), ParseStop> {
        self.blank()?;
        if self.take(b':') { Ok(()) } else { self.expected("`:`") }
    }

    fn number(&mut self) -> Result<Value, ParseStop> {
        let start = self.at;
        let digits =
            self.run(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E'));
        if self.peek().is_none() && !self.open.is_empty() {
            return self.stop(ArgumentsFault::CutOff("inside of a number"));
        }
        serde_json::from_str::<Number>(digits)
            .map(Value::Number)
            .map_err(|_| ParseStop { at: start, fault: ArgumentsFault::Number })
    }

    fn word(&mut self) -> Result<Value, ParseStop> {
        let start = self.at;
        let word = self.run(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if matches!(word, "True" | "False" | "None") {
            self.note(ArgumentRepair::PythonLiteral);
        }
        match word {
            "true" | "True" => Ok(Value::Bool(true)),
            "false" | "False" => Ok(Value::Bool(false)),
            "null" | "None" => Ok(Value::Null),
            _ if self.peek().is_none() => self.stop(ArgumentsFault::CutOff("inside of a word")),
            _ => Err(ParseStop { at: start, fault: ArgumentsFault::Expected("a value") }),
        }
    }

    /// A string in the quotes that it begins with.
    fn string(&mut self) -> Result<String, ParseStop> {
        let quote = self.peek().unwrap_or(b'"');
        if quote == b'\'' {
            self.note(ArgumentRepair::SingleQuotes);
        }
        self.at += 1;
        let mut string = String::new();
        loop {
            string.push_str(self.run(|byte| byte != quote && byte != b'\\' && byte >= b' '));
            match self.peek() {
                None => return self.stop(ArgumentsFault::CutOff("inside of a string")),
                Some(b'\\') => string.push(self.escape(quote)?),
                Some(byte) => {
                    self.at += 1;
                    if byte == quote {
                        return Ok(string);
                    }
                    self.note(ArgumentRepair::ControlCharacter);
                    string.push(char::from(byte));
                }
            }
        }
    }

    fn escape(&mut self, quote: u8) -> Result<char, ParseStop> {
        let start = self.at;
        self.at += 1;
        let Some(byte) = self.peek() else {
            return self.stop(ArgumentsFault::CutOff("inside of a string"));
        };
        self.at += 1;
        match byte {
            b'"' | b'\\' | b'/' => Ok(char::from(byte)),
            b'\'' if quote == b'\'' => Ok('\''),
            b'b' => Ok('\u{8}'),
            b'f' => Ok('\u{c}'),
            b'n' => Ok('\n'),
            b'r' => Ok('\r'),
            b't' => Ok('\t'),
            b'u' => self.unicode(start),
            _ => Err(ParseStop { at: start, fault: ArgumentsFault::Escape }),
        }
    }

    /// The character whose number follows, in one piece or in the two halves of a surrogate pair.
    fn unicode(&mut self, start: usize) -> Result<char, ParseStop> {
        let first = self.four_digits(start)?;
        let mut units = vec![first];
        if (0xd800..0xdc00).contains(&first) && self.rest().starts_with("\\u") {
            self.at += 2;
            units.push(self.four_digits(start)?);
        }
        let mut decoded = char::decode_utf16(units);
        match (decoded.next(), decoded.next()) {
            (Some(Ok(letter)), None) => Ok(letter),
            _ => Err(ParseStop { at: start, fault: ArgumentsFault::Escape }),
        }
    }

    fn four_digits(&mut self, start: usize) -> Result<u16, ParseStop> {
        if self.rest().len() < 4 {
            return self.stop(ArgumentsFault::CutOff("inside of a string"));
        }
        let digits =
            self.rest().get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let number = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
        self.at += 4;
        number.ok_or(ParseStop { at: start, fault: ArgumentsFault::Escape })
    }

    /// Skips white space and comments.
    fn blank(&mut self) -> Result<(), ParseStop> {
        loop {
            self.run(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
            let comment = self.comment()?;
            if comment.is_empty() {
                return Ok(());
            }
            // It may be no comment, but the rest of a string in which a quote should have been escaped.
            if comment.contains('"') {
                return self.stop(ArgumentsFault::Comment);
            }
            self.note(ArgumentRepair::Comment);
            self.at += comment.len();
        }
    }

    /// The comment that begins here, or an empty text.
    fn comment(&self) -> Result<&'t str, ParseStop> {
        let rest = self.rest();
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(inside) = rest.strip_prefix("/*") {
            let Some(end) = inside.find("*/") else {
                return self.stop(ArgumentsFault::CutOff("inside of a comment"));
            };
            end + 4
        } else {
            0
        };
        Ok(rest.get(..length).unwrap_or_default())
    }
}

/// The length of a tag that ends something, such as `</tool_call>` or `<|eot_id|>`, if the text begins with one.
fn end_tag(text: &str) -> Option<usize> {
    if !["</", "<|", "<｜"].iter().any(|start| text.starts_with(start)) {
        return None;
    }
    let length = text.bytes().take(MAX_TAG_BYTES).position(|byte| byte == b'>')? + 1;
    let is_name = |letter: char| letter.is_alphanumeric() || "/|｜_▁-".contains(letter);
    text.get(1..length - 1)?.chars().all(is_name).then_some(length)
}

fn kind_of(text: &str) -> &'static str {
    match text.bytes().next() {
        Some(b'[') => "a list",
        Some(b'-' | b'0'..=b'9') => "a number",
        _ if matches!(text.trim_end(), "true" | "false") => "a truth value",
        _ => "text",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn plain_values_are_read_and_nothing_else() {
        for (text, value) in [
            (" 10 ", Some(json!(10))),
            ("1.50", Some(json!(1.5))),
            ("true", Some(json!(true))),
            ("True", Some(json!(true))),
            ("[1, \"a\"]", Some(json!([1, "a"]))),
            ("[1,]", None),
            ("10 apples", None),
            ("{'a': 1}", None),
            ("{\"a\": 1, \"a\": 2}", None),
            ("1 2", None),
            ("", None),
        ] {
            assert_eq!(plain(text), value, "{text:?}");
        }
    }

    #[test]
    fn values_stand_one_after_the_other() {
        for (text, read) in [
            ("{} [1]\n{\"a\": 1,}", Some(vec![json!({}), json!([1]), json!({"a": 1})])),
            ("  ", Some(vec![])),
            ("{}, {}", None),
            ("{} 1", None),
            ("{\"a\": 1", None),
        ] {
            assert_eq!(values(text), read, "{text:?}");
        }
    }

    #[test]
    fn tags_that_end_something_are_known() {
        for (text, length) in [
            ("</tool_call>", Some(12)),
            ("<|eot_id|> x", Some(10)),
            ("<｜tool▁call▁end｜>", Some("<｜tool▁call▁end｜>".len())),
            ("</ a>", None),
            ("<b>", None),
            ("</abc", None),
            ("<", None),
        ] {
            assert_eq!(end_tag(text), length, "{text:?}");
        }
    }
}
