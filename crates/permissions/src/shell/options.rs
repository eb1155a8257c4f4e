//! Options of programs, read by a short description of them.
//!
//! A description is a list of words: `-v` and `--verbose` are flags, `-k:` and `--kill-after:` take a value, `-i?` and
//! `--eof?` take one only if it is attached, `-#` stands for numbers like `-5`. What is not described is an error.

use super::ShellWord;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct ParsedOptions {
    /// Options in their order, with their values.
    pub(super) options: Vec<(String, Option<ShellWord>)>,
    /// The words that are no options.
    pub(super) operands: Vec<ShellWord>,
}

impl ParsedOptions {
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.options.iter().any(|(name, _)| names.contains(&name.as_str()))
    }

    /// The values of an option, under any of its names.
    pub(super) fn values<'a>(&'a self, names: &'a [&str]) -> impl DoubleEndedIterator<Item = &'a ShellWord> {
        let named = self.options.iter().filter(|(name, _)| names.contains(&name.as_str()));
        named.filter_map(|(_, value)| value.as_ref())
    }
}

/// The options before the first operand; everything from there on is an operand.
pub(super) fn parse_leading_options(described: &str, words: &[ShellWord]) -> Result<ParsedOptions, String> {
    OptionReader { described, taken: ParsedOptions::default() }.read(words, OptionSearch::StopAtOperand)
}

/// The options wherever they stand.
pub(super) fn parse_options(described: &str, words: &[ShellWord]) -> Result<ParsedOptions, String> {
    OptionReader { described, taken: ParsedOptions::default() }.read(words, OptionSearch::Whole)
}

/// The same, but words that can't be known are taken for operands: for what matters only if they are.
pub(super) fn parse_likely_options(described: &str, words: &[ShellWord]) -> Result<ParsedOptions, String> {
    OptionReader { described, taken: ParsedOptions::default() }.read(words, OptionSearch::WholeLenient)
}

/// How far options are looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OptionSearch {
    StopAtOperand,
    Whole,
    WholeLenient,
}

struct OptionReader<'a> {
    described: &'a str,
    taken: ParsedOptions,
}

enum OptionArity {
    Flag,
    Value,
    Optional,
}

impl OptionReader<'_> {
    fn read(mut self, words: &[ShellWord], reach: OptionSearch) -> Result<ParsedOptions, String> {
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let text = match word {
                ShellWord::Known(text) if text.starts_with('-') && text.len() > 1 => text,
                ShellWord::Prefix(text) if text.starts_with("--") && text.contains('=') => {
                    self.long_begin(text)?;
                    continue;
                }
                word if word.known() == Some("-")
                    || word.is_no_option()
                    || reach == OptionSearch::WholeLenient =>
                {
                    self.taken.operands.push(word.clone());
                    if reach == OptionSearch::StopAtOperand {
                        break;
                    }
                    continue;
                }
                _ => return Err("one of its arguments can't be known and could be an option".to_owned()),
            };
            if text == "--" {
                break;
            }
            if text.starts_with("--") { self.long(text, &mut rest)? } else { self.short(text, &mut rest)? }
        }
        self.taken.operands.extend(rest.cloned());
        Ok(self.taken)
    }

    fn kind(&self, option: &str) -> Option<OptionArity> {
        self.described.split_whitespace().find_map(|described| {
            let after = described.strip_prefix(option)?;
            match after {
                "" => Some(OptionArity::Flag),
                ":" => Some(OptionArity::Value),
                "?" => Some(OptionArity::Optional),
                _ => None,
            }
        })
    }

    fn long<'w>(&mut self, text: &str, rest: &mut impl Iterator<Item = &'w ShellWord>) -> Result<(), String> {
        let (name, attached) = match text.split_once('=') {
            Some((name, value)) => (name, Some(ShellWord::Known(value.to_owned()))),
            None => (text, None),
        };
        let value = match (self.kind(name), attached) {
            (Some(OptionArity::Flag), None) => None,
            (Some(OptionArity::Optional), attached) => attached,
            (Some(OptionArity::Value), Some(value)) => Some(value),
            (Some(OptionArity::Value), None) => Some(next_value(name, rest)?),
            _ => return Err(not_known(name)),
        };
        self.taken.options.push((name.to_owned(), value));
        Ok(())
    }

    /// `--name=` and a value of which only the beginning is known.
    fn long_begin(&mut self, text: &str) -> Result<(), String> {
        let name = text.split('=').next().unwrap_or_default();
        match self.kind(name) {
            Some(OptionArity::Value | OptionArity::Optional) => {
                self.taken.options.push((name.to_owned(), Some(ShellWord::UnknownOne)))
            }
            _ => return Err(not_known(name)),
        }
        Ok(())
    }

    fn short<'w>(
        &mut self,
        text: &str,
        rest: &mut impl Iterator<Item = &'w ShellWord>,
    ) -> Result<(), String> {
        let letters = text.get(1..).unwrap_or_default();
        if letters.bytes().all(|byte| byte.is_ascii_digit()) && self.kind("-#").is_some() {
            self.taken.options.push(("-#".to_owned(), Some(ShellWord::Known(letters.to_owned()))));
            return Ok(());
        }
        for (at, letter) in letters.char_indices() {
            let name = format!("-{letter}");
            let after = letters.get(at + letter.len_utf8()..).unwrap_or_default();
            let attached = (!after.is_empty()).then(|| ShellWord::Known(after.to_owned()));
            let value = match self.kind(&name) {
                None => return Err(not_known(&name)),
                Some(OptionArity::Flag) => {
                    self.taken.options.push((name, None));
                    continue;
                }
                Some(OptionArity::Optional) => attached,
                Some(OptionArity::Value) => match attached {
                    Some(value) => Some(value),
                    None => Some(next_value(&name, rest)?),
                },
            };
            self.taken.options.push((name, value));
            break;
        }
        Ok(())
    }
}

fn next_value<'w>(name: &str, rest: &mut impl Iterator<Item = &'w ShellWord>) -> Result<ShellWord, String> {
    match rest.next() {
        None => Err(format!("its option {name} has no value")),
        Some(ShellWord::UnknownMany | ShellWord::Pattern(_)) => {
            Err(format!("the value of its option {name} can't be known"))
        }
        Some(value) => Ok(value.clone()),
    }
}

fn not_known(name: &str) -> String {
    format!("its option {name} is not known")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<ShellWord> {
        text.split_whitespace().map(|word| ShellWord::Known(word.to_owned())).collect()
    }

    #[test]
    fn options_end_where_the_command_begins() {
        let taken =
            parse_leading_options("-k: -v --signal: -i?", &words("-vk 5 --signal=KILL -ix 3 rm -rf a"))
                .unwrap();
        assert_eq!(taken.operands, words("3 rm -rf a"));
        assert_eq!(taken.values(&["-k"]).collect::<Vec<_>>(), words("5").iter().collect::<Vec<_>>());
        assert!(taken.has(&["-v"]) && taken.has(&["--signal"]));
    }

    #[test]
    fn what_is_not_described_is_refused() {
        assert!(parse_leading_options("-k: --signal:", &words("--sig=KILL 3 rm")).is_err());
        assert!(parse_leading_options("-k:", &words("-x 3 rm")).is_err());
        assert!(parse_leading_options("-k:", &words("-k")).is_err());
        assert!(parse_leading_options("-k:", &[ShellWord::UnknownOne]).is_err());
    }

    #[test]
    fn options_can_stand_anywhere() {
        let taken = parse_options("-r -t:", &words("a -r b -t c -- -x")).unwrap();
        assert_eq!(taken.operands, words("a b -x"));
    }
}
