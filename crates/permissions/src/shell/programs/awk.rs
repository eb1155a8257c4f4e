//! `awk`: a program is read just far enough to see that it starts nothing and writes nowhere.

use super::known;
use crate::shell::Word;
use crate::shell::builtins::Judged;
use crate::shell::judge::{Context, Judge};
use crate::shell::options::leading;

pub(super) fn awk(judge: &mut Judge<'_>, words: &[Word], context: &Context) -> Judged {
    let taken = leading(
        "-F: -v: -f: -e: -b -c -n -r -s -S -O -P -t -V --field-separator: --assign: --file: --source: --posix --sandbox --version --re-interval",
        words,
    )?;
    for file in taken.values(&["-f", "--file"]) {
        known(file)?;
        judge.scripts.push((file.clone(), context.span()));
    }
    let mut programs: Vec<&Word> = taken.values(&["-e", "--source"]).collect();
    if programs.is_empty() && !taken.has(&["-f", "--file"]) {
        programs.extend(taken.operands.first());
    }
    for program in programs {
        if !is_plain(known(program)?) {
            return Err("its program may run or write something".to_owned());
        }
    }
    Ok(false)
}

/// Whether a program of awk has no `system`, no pipe, no `getline`, and no output to files.
fn is_plain(program: &str) -> bool {
    let Some(code) = code_of(program) else { return false };
    let has_word = |wanted: &str| {
        code.split(|char: char| !char.is_ascii_alphanumeric() && char != '_').any(|word| word == wanted)
    };
    if has_word("system") || has_word("getline") || code.contains('@') {
        return false;
    }
    let code = code.replace("||", "  ").replace(">=", "  ");
    code.split(['{', '}', ';', '\n']).all(|statement| match statement.find("print") {
        Some(at) => !statement.get(at..).unwrap_or_default().contains(['|', '>']),
        None => !statement.contains('|'),
    })
}

/// The program without its strings, regular expressions and comments. `None` if it can't be told where they end.
fn code_of(program: &str) -> Option<String> {
    let mut code = String::new();
    let mut rest = program.chars();
    while let Some(next) = rest.next() {
        match next {
            '"' => {
                skip_to(&mut rest, '"')?;
                code.push_str("0 ");
            }
            '/' if begins_regex(&code) => {
                skip_to(&mut rest, '/')?;
                code.push_str("0 ");
            }
            '#' => {
                let after = rest.as_str();
                let end = after.find('\n').unwrap_or(after.len());
                rest = after.get(end..).unwrap_or_default().chars();
            }
            '\\' => return None,
            next => code.push(next),
        }
    }
    Some(code)
}

fn skip_to(rest: &mut std::str::Chars<'_>, end: char) -> Option<()> {
    loop {
        match rest.next()? {
            '\n' => return None,
            '\\' => {
                rest.next()?;
            }
            // A bracket may hold the end without ending it.
            '[' if end == '/' => return None,
            next if next == end => return Some(()),
            _ => {}
        }
    }
}

/// A slash is a division only after something that has a value.
fn begins_regex(code: &str) -> bool {
    let before = code.trim_end().chars().next_back();
    !before.is_some_and(|before| before.is_ascii_alphanumeric() || matches!(before, '_' | ')' | ']' | '$'))
}

#[cfg(test)]
mod tests {
    use super::is_plain;

    #[test]
    fn plain_programs_are_told_from_others() {
        let plain = [
            "{print $1}",
            "NR==2",
            "/foo|bar/ {print \" -> \" $2}",
            "$3 > 5 {print $1, $2}",
            "BEGIN{FS=\"|\"} {s+=$1} END{print s/2}",
        ];
        for program in plain {
            assert!(is_plain(program), "{program}");
        }
        let others = [
            "BEGIN{system(\"rm a\")}",
            "{print | \"sh\"}",
            "{print > \"file\"}",
            "{\"date\" | getline x}",
            "@load \"x\"",
            "{print \"a;b\" > \"x\"}",
            "{ printf \"%s\", $1 | \"sh\" }",
            "/a",
            "BEGIN { x = \"sys\" \"tem\"; @x(\"ls\") }",
        ];
        for program in others {
            assert!(!is_plain(program), "{program}");
        }
    }
}
