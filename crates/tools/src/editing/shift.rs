//! The same lines at another depth.

/// What turns the indentation that somebody wrote into the one that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum IndentShift {
    None,
    /// This stands before every line.
    Deeper(String),
    /// This is missing before every line.
    Shallower(String),
    /// So many spaces are a tab.
    ToTabs(usize),
    /// A tab is so many spaces.
    ToSpaces(usize),
}

/// What lines are indented with.
pub(super) const INDENT_CHARS: [char; 2] = [' ', '\t'];
const MAX_TAB_WIDTH: usize = 8;

impl IndentShift {
    /// The one shift that turns all written lines into the real ones, which differ in indentation alone.
    pub(super) fn between(written: &[&str], real: &[&str]) -> Option<IndentShift> {
        let pairs = written.iter().zip(real).filter(|(line, _)| !line.trim().is_empty());
        let pairs: Vec<(&str, &str)> = pairs.map(|(written, real)| (indent(written), indent(real))).collect();
        let fits = |shift: &IndentShift| {
            pairs
                .iter()
                .all(|(written, real)| shift.indentation(written).is_some_and(|shifted| shifted == *real))
        };
        pairs.iter().flat_map(|(written, real)| IndentShift::candidates(written, real)).find(fits)
    }

    /// What could explain a single line.
    fn candidates(written: &str, real: &str) -> Vec<IndentShift> {
        let is_all = |text: &str, letter: u8| !text.is_empty() && text.bytes().all(|byte| byte == letter);
        let unit = |spaces: &str, tabs: &str| {
            let unit = spaces.len().checked_div(tabs.len())?;
            (unit <= MAX_TAB_WIDTH && unit * tabs.len() == spaces.len()).then_some(unit)
        };
        if written == real {
            return vec![IndentShift::None];
        }
        let mut shifts = Vec::new();
        shifts.extend(real.strip_suffix(written).map(|more| IndentShift::Deeper(more.to_owned())));
        shifts.extend(written.strip_suffix(real).map(|less| IndentShift::Shallower(less.to_owned())));
        if is_all(written, b' ') && is_all(real, b'\t') {
            shifts.extend(unit(written, real).map(IndentShift::ToTabs));
        }
        if is_all(written, b'\t') && is_all(real, b' ') {
            shifts.extend(unit(real, written).map(IndentShift::ToSpaces));
        }
        shifts
    }

    /// A line at its place; nothing if the shift says nothing about such a line.
    pub(super) fn line(&self, line: &str) -> Option<String> {
        if line.trim().is_empty() {
            return Some(line.to_owned());
        }
        let indent = indent(line);
        Some(self.indentation(indent)? + line.strip_prefix(indent)?)
    }

    fn indentation(&self, indent: &str) -> Option<String> {
        let is_all = |letter: u8| indent.bytes().all(|byte| byte == letter);
        match self {
            IndentShift::None => Some(indent.to_owned()),
            IndentShift::Deeper(more) => Some(format!("{more}{indent}")),
            IndentShift::Shallower(less) => indent.strip_prefix(less.as_str()).map(str::to_owned),
            IndentShift::ToTabs(unit) => {
                (is_all(b' ') && indent.len().is_multiple_of(*unit)).then(|| "\t".repeat(indent.len() / unit))
            }
            IndentShift::ToSpaces(unit) => is_all(b'\t').then(|| " ".repeat(indent.len() * unit)),
        }
    }
}

fn indent(line: &str) -> &str {
    let rest = line.trim_start_matches(INDENT_CHARS);
    line.strip_suffix(rest).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shift_is_uniform() {
        let between = |written: &[&str], real: &[&str]| IndentShift::between(written, real);
        assert_eq!(
            between(&["a", "", " b"], &["  a", "", "   b"]),
            Some(IndentShift::Deeper("  ".to_owned()))
        );
        assert_eq!(between(&["    a", "  b"], &["  a", "b"]), Some(IndentShift::Shallower("  ".to_owned())));
        assert_eq!(
            between(&["a", "    b", "        c"], &["a", "\tb", "\t\tc"]),
            Some(IndentShift::ToTabs(4))
        );
        assert_eq!(between(&["\ta", "\t\tb"], &["  a", "    b"]), Some(IndentShift::ToSpaces(2)));
        assert_eq!(
            between(&["\ta", "\t\tb"], &["\t\ta", "\t\t\tb"]),
            Some(IndentShift::Deeper("\t".to_owned()))
        );
        assert_eq!(between(&["a", "b"], &[" a", "  b"]), None);
        assert_eq!(between(&["a", "  b"], &["a", "\tb"]), Some(IndentShift::ToTabs(2)));
        assert_eq!(between(&["  a", "   b"], &["\ta", "\tb"]), None);
    }

    #[test]
    fn what_a_shift_does_not_cover_is_not_shifted() {
        assert_eq!(IndentShift::Shallower("    ".to_owned()).line("  x"), None);
        assert_eq!(IndentShift::ToTabs(4).line("   x"), None);
        assert_eq!(IndentShift::ToTabs(4).line("        x y"), Some("\t\tx y".to_owned()));
        assert_eq!(IndentShift::Deeper("\t".to_owned()).line(""), Some(String::new()));
    }
}
