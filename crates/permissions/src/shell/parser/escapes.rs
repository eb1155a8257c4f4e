//! The escapes of `$'…'`.

/// The text that they stand for. `None` if it depends on the locale, is no text, or would be cut off.
pub(super) fn undo(written: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(written.len());
    let mut rest = written.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let (escape, after) = rest.split_first()?;
        rest = after;
        bytes.push(match escape {
            b'a' => 7,
            b'b' => 8,
            b'e' | b'E' => 27,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 11,
            b'\\' | b'\'' | b'"' | b'?' => *escape,
            b'0'..=b'7' => {
                let digits = rest.iter().take(2).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
                let octal = number(&[&[*escape], rest.get(..digits)?].concat(), 8)?;
                rest = rest.get(digits..)?;
                u8::try_from(octal & 0xff).ok()?
            }
            b'x' => {
                let digits = rest.iter().take(2).take_while(|byte| byte.is_ascii_hexdigit()).count();
                let code = number(rest.get(..digits)?, 16)?;
                rest = rest.get(digits..)?;
                u8::try_from(code).ok()?
            }
            b'u' | b'U' => {
                let most = if *escape == b'u' { 4 } else { 8 };
                let digits = rest.iter().take(most).take_while(|byte| byte.is_ascii_hexdigit()).count();
                let code = number(rest.get(..digits)?, 16)?;
                rest = rest.get(digits..)?;
                u8::try_from(code).ok().filter(u8::is_ascii)?
            }
            _ => return None,
        });
    }
    // A zero byte would end the text early, and 1 and 127 are the shell's own marks.
    let is_plain = !bytes.iter().any(|byte| matches!(byte, 0 | 1 | 127));
    String::from_utf8(bytes).ok().filter(|_| is_plain)
}

fn number(digits: &[u8], radix: u32) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::undo;

    #[test]
    fn escapes_are_undone() {
        assert_eq!(undo(r"\x72m").as_deref(), Some("rm"));
        assert_eq!(undo(r"\162\155").as_deref(), Some("rm"));
        assert_eq!(undo(r"\u0072m\n\'").as_deref(), Some("rm\n'"));
        assert_eq!(undo(r"\xc3\xa9").as_deref(), Some("é"));
        assert_eq!(undo(r"a\0b"), None);
        assert_eq!(undo(r"\xff"), None);
        assert_eq!(undo(r"\x{72}"), None);
        assert_eq!(undo(r"\cA"), None);
        assert_eq!(undo("\\"), None);
    }
}
