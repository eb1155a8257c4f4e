//! Brace expansion: `{a,b}` and `{1..3}`, done as bash does it.

use super::budget::AnalysisBudget;

/// How deep braces may be nested.
const MAX_BRACE_DEPTH: usize = 24;

/// A piece of a word for which quotes have been decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordAtom<'a> {
    Plain(char),
    Quoted(&'a str),
    /// An expansion that makes one word.
    SingleWord,
    /// An expansion that makes any number of words.
    ManyWords,
}

/// The words that a word becomes; `Err` says why that can't be known.
pub(super) fn expand<'a>(
    word: &[WordAtom<'a>],
    budget: &AnalysisBudget,
) -> Result<Vec<Vec<WordAtom<'a>>>, &'static str> {
    BraceExpander { budget, depth: 0 }.expand(word)
}

struct BraceExpander<'b> {
    budget: &'b AnalysisBudget,
    depth: usize,
}

type ExpandedAtoms<'a> = Vec<Vec<WordAtom<'a>>>;

impl BraceExpander<'_> {
    fn expand<'a>(&mut self, mut rest: &[WordAtom<'a>]) -> Result<ExpandedAtoms<'a>, &'static str> {
        if self.depth >= MAX_BRACE_DEPTH {
            return Err("its braces are nested too deep");
        }
        self.depth += 1;
        let mut words: ExpandedAtoms<'a> = vec![Vec::new()];
        while let Some((open, close)) = self.group(rest)? {
            let before = rest.get(..open).unwrap_or_default();
            let between = rest.get(open + 1..close).unwrap_or_default();
            let alternatives = match self.alternatives(between)? {
                Some(alternatives) => alternatives,
                None => vec![rest.get(open..=close).unwrap_or_default().to_vec()],
            };
            words = self.cross(&words, before, &alternatives)?;
            rest = rest.get(close + 1..).unwrap_or_default();
        }
        self.depth -= 1;
        self.cross(&words, rest, &[Vec::new()])
    }

    /// Each word so far, followed by a text and each of the alternatives.
    fn cross<'a>(
        &self,
        words: &[Vec<WordAtom<'a>>],
        text: &[WordAtom<'a>],
        ends: &[Vec<WordAtom<'a>>],
    ) -> Result<ExpandedAtoms<'a>, &'static str> {
        let mut crossed = Vec::new();
        for word in words {
            for end in ends {
                if !self.budget.words(usize::from(ends.len() > 1))
                    || !self.budget.steps(word.len() + text.len() + end.len())
                {
                    return Err("its braces make too many words");
                }
                crossed.push([word.as_slice(), text, end].concat());
            }
        }
        Ok(crossed)
    }

    /// The first braces that mean something.
    fn group(&self, atoms: &[WordAtom<'_>]) -> Result<Option<(usize, usize)>, &'static str> {
        for (open, atom) in atoms.iter().enumerate() {
            let is_empty_pair = open == 0 && atoms.get(1) == Some(&WordAtom::Plain('}'));
            if *atom == WordAtom::Plain('{')
                && !is_empty_pair
                && let Some(close) = self.close(atoms, open)?
            {
                return Ok(Some((open, close)));
            }
        }
        Ok(None)
    }

    /// The brace that closes the one at `open`: the first at its level after a comma or two dots.
    fn close(&self, atoms: &[WordAtom<'_>], open: usize) -> Result<Option<usize>, &'static str> {
        let mut level = 0_usize;
        let mut is_list = false;
        for (at, atom) in atoms.iter().enumerate().skip(open + 1) {
            if !self.budget.steps(1) {
                return Err("its braces are too tangled");
            }
            let next = |ahead: usize| atoms.get(at + ahead);
            match atom {
                WordAtom::Plain('{') => level += 1,
                WordAtom::Plain('}') if level > 0 => level -= 1,
                WordAtom::Plain('}') if is_list => return Ok(Some(at)),
                WordAtom::Plain(',') if level == 0 => is_list = true,
                WordAtom::Plain('.') if level == 0 && next(1) == Some(&WordAtom::Plain('.')) => {
                    is_list |= next(2) != Some(&WordAtom::Plain('}'));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// What stands between braces: a list, a sequence, or nothing of the kind.
    fn alternatives<'a>(
        &mut self,
        between: &[WordAtom<'a>],
    ) -> Result<Option<ExpandedAtoms<'a>>, &'static str> {
        if !between.contains(&WordAtom::Plain(',')) {
            return sequence(between);
        }
        let mut alternatives = Vec::new();
        for piece in pieces(between) {
            alternatives.extend(self.expand(piece)?);
        }
        Ok(Some(alternatives))
    }
}

/// Cut at the commas that are in no inner braces.
fn pieces<'s, 'a>(between: &'s [WordAtom<'a>]) -> Vec<&'s [WordAtom<'a>]> {
    let mut level = 0_usize;
    between
        .split(|atom| {
            match atom {
                WordAtom::Plain('{') => level += 1,
                WordAtom::Plain('}') => level = level.saturating_sub(1),
                _ => {}
            }
            level == 0 && *atom == WordAtom::Plain(',')
        })
        .collect()
}

/// `1..5`, `a..e`, `1..9..2`.
fn sequence<'a>(between: &[WordAtom<'a>]) -> Result<Option<ExpandedAtoms<'a>>, &'static str> {
    let mut text = String::new();
    for atom in between {
        match atom {
            WordAtom::Plain(char) => text.push(*char),
            WordAtom::Quoted(piece) => text.push_str(piece),
            WordAtom::SingleWord | WordAtom::ManyWords => return Ok(None),
        }
    }
    let is_quoted = between.iter().any(|atom| matches!(atom, WordAtom::Quoted(_)));
    let terms: Vec<&str> = text.split("..").collect();
    let (from, to, step) = match terms.as_slice() {
        [from, to] => (*from, *to, "1"),
        [from, to, step] => (*from, *to, *step),
        _ => return Ok(None),
    };
    let is_number = |text: &str| {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_letter = |text: &str| text.len() == 1 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    let fits = is_number(step) && (is_number(from) && is_number(to) || is_letter(from) && is_letter(to));
    if !fits {
        return Ok(None);
    }
    if is_quoted {
        return Err("its braces hold a quoted sequence");
    }
    let words = if is_letter(from) { letters(from, to, step) } else { numbers(from, to, step) };
    let words = words.ok_or("its braces make too many words")?;
    Ok(Some(words.iter().map(|word| word.chars().map(WordAtom::Plain).collect()).collect()))
}

fn numbers(from: &str, to: &str, step: &str) -> Option<Vec<String>> {
    let is_padded = |text: &&str| {
        let digits = text.trim_start_matches(['-', '+']);
        digits.len() > 1 && digits.starts_with('0')
    };
    let width = if [from, to].iter().any(is_padded) { from.len().max(to.len()) } else { 0 };
    let values = steps(from.parse().ok()?, to.parse().ok()?, step.parse().ok()?)?;
    Some(values.into_iter().map(|value| format!("{value:0width$}")).collect())
}

/// Letters of one case: between the cases there are other characters, some of which mean something.
fn letters(from: &str, to: &str, step: &str) -> Option<Vec<String>> {
    let code = |text: &str| text.bytes().next();
    let (from, to) = (code(from)?, code(to)?);
    if from.is_ascii_lowercase() != to.is_ascii_lowercase() {
        return None;
    }
    let values = steps(from.into(), to.into(), step.parse().ok()?)?;
    values
        .into_iter()
        .map(|value| u8::try_from(value).ok().map(|code| char::from(code).to_string()))
        .collect()
}

fn steps(from: i64, to: i64, step: i64) -> Option<Vec<i64>> {
    let step = i64::try_from(step.unsigned_abs().max(1)).ok()?;
    let count = to.checked_sub(from)?.checked_abs()? / step;
    let count = usize::try_from(count).ok().filter(|count| *count < 10_000)?;
    let direction = if from <= to { step } else { -step };
    let mut values = Vec::with_capacity(count + 1);
    let mut value = from;
    for _ in 0..=count {
        values.push(value);
        value = value.checked_add(direction)?;
    }
    Some(values)
}
