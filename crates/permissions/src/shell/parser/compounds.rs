//! Groups, conditions, loops, functions.

use super::arithmetic::NOT_ARITHMETIC;
use super::{ParseResult, ShellParser};
use crate::shell::tree::{CompoundNode, LoopVariable, RawWord, ShellNode};

impl ShellParser<'_> {
    pub(super) fn command(&mut self) -> ParseResult<ShellNode> {
        self.skip_blanks();
        let compound = match self.compound()? {
            Some(compound) => compound,
            None => match self.reserved() {
                Some("function") => return self.function_keyword(),
                Some("coproc") => return self.coproc(),
                None | Some("in" | "time" | "]]") => return self.call(),
                Some(_) => return Err(self.unexpected()),
            },
        };
        self.with_redirects(compound).map(ShellNode::Compound)
    }

    /// A compound command, if one begins here.
    fn compound(&mut self) -> ParseResult<Option<CompoundNode>> {
        if self.peek() == Some(b'(') {
            return self.parentheses().map(Some);
        }
        let Some(word) = self.reserved() else { return Ok(None) };
        match word {
            "{" => self.braces(),
            "if" => self.if_command(),
            "while" | "until" => self.loop_command(word),
            "for" | "select" => self.for_command(word),
            "case" => self.case_command(),
            "[[" => self.condition(),
            _ => return Ok(None),
        }
        .map(Some)
    }

    fn with_redirects(&mut self, mut compound: CompoundNode) -> ParseResult<CompoundNode> {
        loop {
            self.skip_blanks();
            match self.redirect()? {
                Some(redirect) => compound.redirects.push(redirect),
                None => return Ok(compound),
            }
        }
    }

    fn parentheses(&mut self) -> ParseResult<CompoundNode> {
        if self.is_arithmetic() {
            self.expect("((")?;
            self.bash_only("`((`");
            let calculation = self.calculation("))")?;
            return Ok(CompoundNode { calculations: vec![calculation], ..CompoundNode::default() });
        }
        if self.is_next("((") {
            self.doubt(NOT_ARITHMETIC);
        }
        self.expect("(")?;
        let body = self.list()?;
        self.expect(")")?;
        Ok(CompoundNode { body, ..CompoundNode::default() })
    }

    fn braces(&mut self) -> ParseResult<CompoundNode> {
        self.expect("{")?;
        let body = self.list()?;
        self.expect_word("}")?;
        Ok(CompoundNode { body, ..CompoundNode::default() })
    }

    fn if_command(&mut self) -> ParseResult<CompoundNode> {
        self.expect("if")?;
        let mut body = self.list()?;
        self.expect_word("then")?;
        body.extend(self.list()?);
        loop {
            match self.reserved() {
                Some("elif") => {
                    self.expect("elif")?;
                    body.extend(self.list()?);
                    self.expect_word("then")?;
                    body.extend(self.list()?);
                }
                Some("else") => {
                    self.expect("else")?;
                    body.extend(self.list()?);
                    self.expect_word("fi")?;
                    break;
                }
                _ => {
                    self.expect_word("fi")?;
                    break;
                }
            }
        }
        Ok(CompoundNode { body, ..CompoundNode::default() })
    }

    fn loop_command(&mut self, word: &str) -> ParseResult<CompoundNode> {
        self.expect(word)?;
        let mut body = self.list()?;
        self.expect_word("do")?;
        body.extend(self.list()?);
        self.expect_word("done")?;
        Ok(CompoundNode { body, ..CompoundNode::default() })
    }

    fn for_command(&mut self, word: &str) -> ParseResult<CompoundNode> {
        self.expect(word)?;
        self.skip_blanks();
        if word == "select" {
            self.bash_only("`select`");
        }
        if word == "for" && self.is_next("((") {
            return self.counting_loop();
        }
        let Some(name) = self.name()? else { return Err(self.unexpected()) };
        let words = self.loop_words()?;
        let body = self.loop_body()?;
        let variable = Some(LoopVariable { name, words, is_select: word == "select" });
        Ok(CompoundNode { body, variable, ..CompoundNode::default() })
    }

    /// What stands between the variable and the body: `in words;`, `;` or nothing.
    fn loop_words(&mut self) -> ParseResult<Option<Vec<RawWord>>> {
        self.skip_blanks();
        if self.eat(";") {
            return Ok(None);
        }
        self.skip_lines()?;
        if self.reserved() != Some("in") {
            return Ok(None);
        }
        self.expect("in")?;
        let mut words = Vec::new();
        loop {
            self.skip_blanks();
            match self.peek() {
                Some(b';' | b'\n') => break,
                _ => words.push(self.word()?),
            }
        }
        if self.peek() == Some(b';') {
            self.at += 1;
        }
        Ok(Some(words))
    }

    /// `do … done`, or `{ … }` as bash allows.
    fn loop_body(&mut self) -> ParseResult<Vec<ShellNode>> {
        self.skip_lines()?;
        if self.reserved() == Some("{") {
            self.bash_only("loops with braces");
            return Ok(self.braces()?.body);
        }
        self.expect_word("do")?;
        let body = self.list()?;
        self.expect_word("done")?;
        Ok(body)
    }

    fn counting_loop(&mut self) -> ParseResult<CompoundNode> {
        self.bash_only("`for ((`");
        self.expect("((")?;
        let calculations = vec![self.calculation(";")?, self.calculation(";")?, self.calculation("))")?];
        self.skip_blanks();
        if self.peek() == Some(b';') {
            self.at += 1;
        }
        let body = self.loop_body()?;
        Ok(CompoundNode { body, calculations, ..CompoundNode::default() })
    }

    fn case_command(&mut self) -> ParseResult<CompoundNode> {
        self.expect("case")?;
        self.skip_blanks();
        let mut compound = CompoundNode { words: vec![self.word()?], ..CompoundNode::default() };
        self.expect_word("in")?;
        loop {
            self.skip_lines()?;
            if self.reserved() == Some("esac") {
                self.expect("esac")?;
                return Ok(compound);
            }
            self.case_patterns(&mut compound.words)?;
            self.list_into(&mut compound.body)?;
            if self.eat(";;&") || self.eat(";&") {
                self.bash_only("`;&`");
            } else if !self.eat(";;") {
                self.expect_word("esac")?;
                return Ok(compound);
            }
        }
    }

    fn case_patterns(&mut self, words: &mut Vec<RawWord>) -> ParseResult<()> {
        if self.eat("(") {
            self.skip_blanks();
        }
        loop {
            words.push(self.word()?);
            self.skip_blanks();
            if self.is_next("||") || !self.eat("|") {
                return self.expect(")");
            }
            self.skip_blanks();
        }
    }

    fn function_keyword(&mut self) -> ParseResult<ShellNode> {
        self.bash_only("`function`");
        self.expect("function")?;
        self.skip_blanks();
        let name = self.word()?;
        self.skip_blanks();
        if self.eat("(") {
            self.skip_blanks();
            self.expect(")")?;
        }
        self.function_body(&name)
    }

    /// The body of a function: a compound command with its redirections.
    pub(super) fn function_body(&mut self, name: &RawWord) -> ParseResult<ShellNode> {
        let Some(name) = name.literal() else {
            return Err(self.mistake("the function's name can't be known"));
        };
        self.skip_lines()?;
        let Some(body) = self.compound()? else { return Err(self.unexpected()) };
        let body = self.with_redirects(body)?;
        Ok(ShellNode::Function { name, body: Box::new(ShellNode::Compound(body)) })
    }

    /// `coproc command`, or `coproc NAME` and a compound command.
    fn coproc(&mut self) -> ParseResult<ShellNode> {
        self.bash_only("`coproc`");
        self.expect("coproc")?;
        self.skip_blanks();
        if let Some(compound) = self.compound()? {
            return self.with_redirects(compound).map(ShellNode::Compound);
        }
        let start = self.at;
        if self.name()?.is_some() {
            self.skip_blanks();
            if (self.peek() != Some(b'(') || !self.is_next("()"))
                && let Some(compound) = self.compound()?
            {
                return self.with_redirects(compound).map(ShellNode::Compound);
            }
        }
        self.at = start;
        self.nested(ShellParser::command)
    }

    /// A plain name.
    pub(super) fn name(&mut self) -> ParseResult<Option<String>> {
        let mut name = String::new();
        while let Some(byte) = self.peek() {
            let fits = if name.is_empty() { super::is_name_start(byte) } else { super::is_name(byte) };
            if !fits {
                break;
            }
            name.extend(self.take()?);
        }
        Ok((!name.is_empty()).then_some(name))
    }
}
