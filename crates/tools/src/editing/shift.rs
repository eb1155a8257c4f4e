//! The same lines at another depth.

/// What turns the indentation that somebody wrote into the one that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shift {
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
pub(super) const INDENT: [char; 2] = [' ', '\t'];
const WIDEST_TAB: usize = 8;

impl Shift {
    /// The one shift that turns all written lines into the real ones, which differ in indentation alone.
    pub(super) fn between(written: &[&str], real: &[&str]) -> Option<Shift> {
        let pairs = written.iter().zip(real).filter(|(line, _)| !line.trim().is_empty());
        let pairs: Vec<(&str, &str)> = pairs.map(|(written, real)| (indent(written), indent(real))).collect();
        let fits = |shift: &Shift| {
            pairs
                .iter()
                .all(|(written, real)| shift.indentation(written).is_some_and(|shifted| shifted == *real))
        };
        pairs.iter().flat_map(|(written, real)| Shift::candidates(written, real)).find(fits)
    }

    /// What could explain a single line.
    fn candidates(written: &str, real: &str) -> Vec<Shift> {
        let is_all = |text: &str, letter: u8| !text.is_empty() && text.bytes().all(|byte| byte == letter);
        let unit = |spaces: &str, tabs: &str| {
            let unit = spaces.len().checked_div(tabs.len())?;
            (unit <= WIDEST_TAB && unit * tabs.len() == spaces.len()).then_some(unit)
        };
        if written == real {
            return vec![Shift::None];
        }
        let mut shifts = Vec::new();
        shifts.extend(real.strip_suffix(written).map(|more| Shift::Deeper(more.to_owned())));
        shifts.extend(written.strip_suffix(real).map(|less| Shift::Shallower(less.to_owned())));
        if is_all(written, b' ') && is_all(real, b'\t') {
            shifts.extend(unit(written, real).map(Shift::ToTabs));
        }
        if is_all(written, b'\t') && is_all(real, b' ') {
            shifts.extend(unit(real, written).map(Shift::ToSpaces));
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
            Shift::None => Some(indent.to_owned()),
            Shift::Deeper(more) => Some(format!("{more}{indent}")),
            Shift::Shallower(less) => indent.strip_prefix(less.as_str()).map(str::to_owned),
            Shift::ToTabs(unit) => {
                (is_all(b' ') && indent.len().is_multiple_of(*unit)).then(|| "\t".repeat(indent.len() / unit))
            }
            Shift::ToSpaces(unit) => is_all(b'\t').then(|| " ".repeat(indent.len() * unit)),
        }
    }
}

fn indent(line: &str) -> &str {
    let rest = line.trim_start_matches(INDENT);
    line.strip_suffix(rest).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shift_is_uniform() {
        let between = |written: &[&str], real: &[&str]| Shift::between(written, real);
        assert_eq!(between(&["a", "", " b"], &["  a", "", "   b"]), Some(Shift::Deeper("  ".to_owned())));
        assert_eq!(between(&["    a", "  b"], &["  a", "b"]), Some(Shift::Shallower("  ".to_owned())));
        assert_eq!(between(&["a", "    b", "        c"], &["a", "\tb", "\t\tc"]), Some(Shift::ToTabs(4)));
        assert_eq!(between(&["\ta", "\t\tb"], &["  a", "    b"]), Some(Shift::ToSpaces(2)));
        assert_eq!(between(&["\ta", "\t\tb"], &["\t\ta", "\t\t\tb"]), Some(Shift::Deeper("\t".to_owned())));
        assert_eq!(between(&["a", "b"], &[" a", "  b"]), None);
        assert_eq!(between(&["a", "  b"], &["a", "\tb"]), Some(Shift::ToTabs(2)));
        assert_eq!(between(&["  a", "   b"], &["\ta", "\tb"]), None);
    }

    #[test]
    fn what_a_shift_does_not_cover_is_not_shifted() {
        assert_eq!(Shift::Shallower("    ".to_owned()).line("  x"), None);
        assert_eq!(Shift::ToTabs(4).line("   x"), None);
        assert_eq!(Shift::ToTabs(4).line("        x y"), Some("\t\tx y".to_owned()));
        assert_eq!(Shift::Deeper("\t".to_owned()).line(""), Some(String::new()));
    }
}
