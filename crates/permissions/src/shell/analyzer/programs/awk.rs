//! `awk`: a program is read just far enough to see that it starts nothing and writes nowhere.

use super::known;
use crate::shell::ShellWord;
use crate::shell::analyzer::{CommandAnalyzer, ProgramAnalysis, ShellRunContext};
use crate::shell::options::parse_leading_options;

pub(super) fn awk(
    judge: &mut CommandAnalyzer<'_>,
    words: &[ShellWord],
    context: &ShellRunContext,
) -> ProgramAnalysis {
    let taken = parse_leading_options(
        "-F: -v: -f: -e: -b -c -n -r -s -S -O -P -t -V --field-separator: --assign: --file: --source: \
         --posix --sandbox --version --re-interval",
        words,
    )?;
    for file in taken.values(&["-f", "--file"]) {
        if super::is_input(known(file)?) {
            let program = context.input.as_deref().ok_or("its program is not in the command")?;
            if !is_plain(program) {
                return Err("its program may run or write something".to_owned());
            }
            continue;
        }
        judge.scripts.push((file.clone(), context.span()));
    }
    let mut programs: Vec<&ShellWord> = taken.values(&["-e", "--source"]).collect();
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
    // Where a regular expression begins can be hard to tell, so these are looked for in strings too.
    if program.contains("system") || program.contains("getline") {
        return false;
    }
    let Some(code) = code_of(program) else { return false };
    if code.contains('@') {
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
            '/' if begins_regex(&code, rest.as_str())? => {
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
            '[' if end == '/' => skip_brackets(rest)?,
            next if next == end => return Some(()),
            _ => {}
        }
    }
}

/// Whether a slash between brackets ends the expression depends on the awk: there must be none.
fn skip_brackets(rest: &mut std::str::Chars<'_>) -> Option<()> {
    let inside = rest.as_str();
    let inside = inside.strip_prefix('^').unwrap_or(inside);
    let inside = inside.strip_prefix(']').unwrap_or(inside);
    let (held, after) = inside.split_once(']')?;
    if held.contains(['/', '\\', '[', '\n']) {
        return None;
    }
    *rest = after.chars();
    Some(())
}

/// A slash is a division only after something that has a value. `None` if that can't be told.
fn begins_regex(code: &str, after: &str) -> Option<bool> {
    let before = code.trim_end();
    let word =
        before.rsplit(|char: char| !char.is_ascii_alphanumeric() && char != '_').next().unwrap_or_default();
    if matches!(word, "print" | "printf" | "return" | "in" | "else" | "do" | "exit" | "delete" | "case") {
        return None;
    }
    match before.chars().next_back() {
        Some(_) if before.ends_with("++") || before.ends_with("--") => None,
        // After a condition it is an expression, which can hold a quote that begins no string.
        Some(')') if after.contains('"') => None,
        Some(last) => Some(!(last.is_ascii_alphanumeric() || matches!(last, '_' | ')' | ']'))),
        None => Some(true),
    }
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
            "/^[0-9]+[^a-z]$/ {print (a+b)/2}",
        ];
        for program in plain {
            assert!(is_plain(program), "{program}");
        }
        let others = [
            "BEGIN{system(\"rm a\")}",
            "/[/]/ {print}",
            "{ x++ / system(\"rm a\") / 1 }",
            "{ print x++ / 2 | \"sh\"; y = 1 / 1 }",
            "{ print /\"/ | \"sh\" } #\"",
            "{ if (x) /\"/; print 1 | \"sh\" }",
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
