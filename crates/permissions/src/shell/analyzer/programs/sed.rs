//! `sed`: its scripts can run commands (`e`) and write files (`w`).

use super::known;
use crate::shell::analyzer::{CommandAnalyzer, ProgramAnalysis, ShellRunContext};
use crate::shell::options::parse_options;
use crate::shell::{ShellWord, TargetAccess};

pub(super) fn sed(
    judge: &mut CommandAnalyzer<'_>,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let options = "-n -e: -f: -E -r -i? -l: -s -u -z -b --quiet --silent --expression: --file: \
                   --regexp-extended --in-place? --line-length: --posix --separate --sandbox \
                   --unbuffered --null-data --debug --follow-symlinks --help --version";
    let taken = parse_options(options, words)?;
    for file in taken.values(&["-f", "--file"]) {
        if super::is_input(known(file)?) {
            let script = context.input.as_deref().ok_or("its script is not in the command")?;
            SedScript { rest: script.as_bytes() }.check().ok_or("its script may run or write something")?;
            continue;
        }
        judge.scripts.push((file.clone(), context.span()));
    }
    let mut scripts: Vec<&ShellWord> = taken.values(&["-e", "--expression"]).collect();
    let mut files = taken.operands.as_slice();
    if scripts.is_empty()
        && !taken.has(&["-f", "--file"])
        && let Some((script, rest)) = files.split_first()
    {
        scripts.push(script);
        files = rest;
        // Where `-i` wants a suffix, an empty one stands before the script.
        if script.known() == Some("") && taken.has(&["-i"]) {
            scripts.extend(rest.first());
        }
    }
    let text = scripts.into_iter().map(known).collect::<Result<Vec<_>, _>>()?.join("\n");
    SedScript { rest: text.as_bytes() }.check().ok_or("its script may run or write something")?;
    if taken.has(&["-i", "--in-place"]) {
        files.iter().for_each(|file| judge.touches(file.clone(), TargetAccess::Write));
    }
    Ok(false)
}

struct SedScript<'a> {
    rest: &'a [u8],
}

impl SedScript<'_> {
    /// `Some` if every command is known and only edits.
    fn check(mut self) -> Option<()> {
        loop {
            self.skip(b" \t\n;}");
            if self.rest.is_empty() {
                return Some(());
            }
            self.addresses()?;
            self.command()?;
        }
    }

    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn skip(&mut self, bytes: &[u8]) {
        while self.rest.first().is_some_and(|byte| bytes.contains(byte)) {
            self.next();
        }
    }

    fn skip_one(&mut self, byte: u8) {
        if self.rest.first() == Some(&byte) {
            self.next();
        }
    }

    fn addresses(&mut self) -> Option<()> {
        loop {
            self.skip(b" \t0123456789$,+~!");
            match self.rest.first() {
                Some(b'/') => {
                    self.next();
                    self.past_delimiter(b'/')?;
                }
                Some(b'\\') => {
                    self.next();
                    let delimiter = self.next()?;
                    self.past_delimiter(delimiter)?;
                }
                _ => return Some(()),
            }
            self.skip(b"IM");
        }
    }

    /// Up to the next delimiter that is neither escaped nor between brackets.
    fn past_delimiter(&mut self, delimiter: u8) -> Option<()> {
        loop {
            match self.next()? {
                b'\n' => return None,
                b'\\' => {
                    self.next()?;
                }
                b'[' => self.past_brackets(delimiter)?,
                byte if byte == delimiter => return Some(()),
                _ => {}
            }
        }
    }

    /// `[…]`, with classes like `[:space:]` in it. Not every sed agrees on delimiters and escapes there: there must be none.
    fn past_brackets(&mut self, delimiter: u8) -> Option<()> {
        self.skip_one(b'^');
        self.skip_one(b']');
        loop {
            match self.next()? {
                b']' => return Some(()),
                b'[' => {
                    let rest = self.rest.strip_prefix(b":")?;
                    let length = rest.iter().position(|byte| !byte.is_ascii_alphabetic())?;
                    self.rest = rest.get(length..)?.strip_prefix(b":]")?;
                }
                b'\\' | b'\n' => return None,
                byte if byte == delimiter => return None,
                _ => {}
            }
        }
    }

    fn command(&mut self) -> Option<()> {
        match self.next() {
            // A script that ends after an address is a mistake, and sed says so.
            None => Some(()),
            Some(b'{') => Some(()),
            Some(
                b'p' | b'P' | b'd' | b'D' | b'g' | b'G' | b'h' | b'H' | b'n' | b'N' | b'x' | b'=' | b'z'
                | b'l' | b'q' | b'Q' | b'F',
            ) => {
                self.skip(b" \t0123456789");
                self.end()
            }
            Some(b':' | b'b' | b't' | b'T') => {
                self.skip(b" \t");
                while self.rest.first().is_some_and(u8::is_ascii_alphanumeric) {
                    self.next();
                }
                self.skip(b" \t");
                matches!(self.rest.first(), None | Some(b'\n' | b';')).then_some(())
            }
            Some(b'#' | b'a' | b'i' | b'c' | b'r' | b'R') => self.line(),
            Some(b's') => {
                let delimiter = self.next()?;
                self.past_delimiter(delimiter)?;
                self.replacement(delimiter)?;
                self.skip(b"gpiIMm0123456789 \t");
                self.end()
            }
            Some(b'y') => {
                let delimiter = self.next()?;
                self.replacement(delimiter)?;
                self.replacement(delimiter)?;
                self.end()
            }
            Some(_) => None,
        }
    }

    fn replacement(&mut self, delimiter: u8) -> Option<()> {
        loop {
            match self.next()? {
                b'\\' => {
                    self.next()?;
                }
                byte if byte == delimiter => return Some(()),
                _ => {}
            }
        }
    }

    /// The rest of a line belongs to the command, and so does the next if the line is continued.
    fn line(&mut self) -> Option<()> {
        loop {
            match self.next() {
                None | Some(b'\n') => return Some(()),
                Some(b'\\') => {
                    self.next();
                }
                // For some commands a brace or semicolon ends them, for others not: what follows is not certain.
                Some(b';' | b'}') => return None,
                Some(_) => {}
            }
        }
    }

    fn end(&mut self) -> Option<()> {
        self.skip(b" \t");
        matches!(self.rest.first(), None | Some(b'\n' | b';' | b'}' | b'#')).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::SedScript;

    fn is_plain(script: &str) -> bool {
        SedScript { rest: script.as_bytes() }.check().is_some()
    }

    #[test]
    fn scripts_that_only_edit_are_told_from_others() {
        let plain = [
            "1,10p",
            "+10p",
            "$d",
            "s/a/b/g",
            "/foo/,/bar/d",
            "s|a/b|c|;s/x/y/p",
            "/^#/!s/a\\/b/[&]/2",
            "s/[^]]*//",
            "2{p;q}",
            "/^Version: /p",
            "1i\\\nhello e",
            ":a;N;$!ba;s/\\n/ /g",
            "s/[[:space:]]*$//;/^[^#]/d",
        ];
        for script in plain {
            assert!(is_plain(script), "{script}");
        }
        let others = [
            "1e rm a",
            "s/a/b/e",
            "s/a/b/w out",
            "w out",
            "s/x/rm a/ge",
            "e",
            "s/a/b",
            "W x",
            "1!e ls",
            "/a/{e rm b\n}",
            "b;e rm",
            "ba}s/x/;e rm/",
            "s/[/]/;e rm/",
            ":a;e rm",
        ];
        for script in others {
            assert!(!is_plain(script), "{script}");
        }
    }
}
