//! Random words, and what stands beside them.

use super::generate::Generator;

const NAMES: [&str; 4] = ["x", "y", "n", "arr"];

impl Generator<'_> {
    /// The same text, written in another way.
    pub(super) fn quoted(&mut self, text: &str) -> String {
        let (first, rest) = text.split_at(1);
        match self.choose(12, &[7, 8]) {
            0 => format!("'{text}'"),
            1 => format!("\"{text}\""),
            2 => format!("\\{text}"),
            3 => format!("'{first}'{rest}"),
            4 => format!("{first}\"{rest}\""),
            5 => format!("{first}''{rest}"),
            6 => format!("{first}\\\n{rest}"),
            7 => format!("$'\\x{:02x}'{rest}", text.as_bytes()[0]),
            8 => format!("$'\\{:03o}{rest}'", text.as_bytes()[0]),
            9 => format!("\"{first}\\\n{rest}\""),
            _ => text.to_owned(),
        }
    }

    pub(super) fn name(&mut self) -> &'static str {
        self.random.pick(&NAMES)
    }

    pub(super) fn word(&mut self) -> String {
        if self.depth > 5 {
            return self.random.pick(&["w", "'w w'", "$x", "\"$y\""]).to_owned();
        }
        self.depth += 1;
        let word = match self.choose(30, &[4, 10, 11, 15, 19, 20]) {
            0 => format!("$({})", self.substituted()),
            1 => format!("\"$({})\"", self.substituted()),
            2 => format!("`{}`", self.backticked()),
            3 => format!("\"a`{}`\"", self.backticked().replace('"', "'")),
            4 => format!("<({})", self.substituted()),
            5 => format!("{}$({})b", self.random.pick(&["a", "'a'", "${x}"]), self.substituted()),
            6 => self.parameter(),
            7 => format!("\"{}\"", self.parameter().replace('\'', "")),
            8 => format!("$(({}))", self.arithmetic()),
            9 => format!("\"a $(( {} ))\"", self.arithmetic()),
            10 => format!("{{{},{}}}", self.word(), self.word()),
            11 => self
                .random
                .pick(&[
                    "{1..3}",
                    "{a..c}",
                    "{03..1}",
                    "x{a,b{c,d}}y",
                    "{a,b",
                    "{}",
                    "{a}",
                    "{a},b}",
                    "{a,}",
                    "{a..{b,c}}",
                    "{1..9..4}",
                    "}{a,b}",
                    "{'a',\"b\"}",
                    "{a,b}{c,d}",
                    "\\{a,b}",
                    "{a\\,b,c}",
                    "{,}",
                    "${x}{a,b}",
                    "{{a,b},c}",
                    "{a,b}}",
                    "{{a,b}",
                ])
                .to_owned(),
            12 => self
                .random
                .pick(&["*", "a*", "?", "[ab]", "~", "~/a", "a~", "x=~/b", "~nobody", "[", "]"])
                .to_owned(),
            13 => format!("${}", self.name()),
            14 => format!("\"${{{}}}\"", self.name()),
            15 => self
                .random
                .pick(&[
                    "$@",
                    "\"$@\"",
                    "$*",
                    "\"$*\"",
                    "$#",
                    "$?",
                    "$$",
                    "$",
                    "\"$\"",
                    "$1",
                    "a$",
                    "\"${arr[@]}\"",
                    "${#x}",
                    "${!x}",
                    "$'a\\'b'",
                    "$\"t\"",
                ])
                .to_owned(),
            16 => format!("\"a\\\"{}\\$(aa no)\\`b\"", self.name()),
            17 => "'$(aa no)'".to_owned(),
            18 => "a#b".to_owned(),
            19 => format!("$[{}]", self.arithmetic().replace(['[', ']'], "")),
            20 => format!(">({})", self.substituted()),
            _ => {
                let text = self
                    .random
                    .pick(&["w", "-x", "--o=p", "é", "if", "done", "}", "!", "=", "a=b", "-v", "{", "in"]);
                if text.is_ascii() && self.random.one_in(3) { self.quoted(text) } else { text.to_owned() }
            }
        };
        self.depth -= 1;
        word
    }

    pub(super) fn substituted(&mut self) -> String {
        let list = self.list();
        if self.random.one_in(3) { list } else { list.trim_end_matches([';', ' ']).to_owned() }
    }

    /// A script for backticks, with their own escapes.
    pub(super) fn backticked(&mut self) -> String {
        let outer = std::mem::take(&mut self.pending);
        let script = self.simple() + &self.line_break();
        self.pending = outer;
        let mut escaped = String::new();
        for char in script.chars() {
            if matches!(char, '`' | '\\') || char == '$' && self.random.one_in(2) {
                escaped.push('\\');
            }
            escaped.push(char);
        }
        escaped
    }

    pub(super) fn parameter(&mut self) -> String {
        let name = self.name();
        match self.random.below(14) {
            0 => format!("${{{name}:-{}}}", self.word()),
            1 => format!("${{{name}:=w}}"),
            2 => format!("${{{name}+{}}}", self.word()),
            3 => format!("${{{name}#{}}}", self.random.pick(&["a*", "'}'", "\\}", "$(aa)", "\"}\""])),
            4 => format!("${{{name}//a/$({})}}", self.substituted()),
            5 => {
                format!("${{{name}:{}:1}}", self.random.pick(&["1", "n", "$n", "$(aa; echo 1)", " -1", "x"]))
            }
            6 => format!(
                "${{{name}[{}]}}",
                self.random.pick(&["0", "n", "$n", "$(aa)", "x", "@", "'q'", "$x"])
            ),
            7 => format!("${{#{name}}}"),
            8 => format!("${{{name}@{}}}", self.random.pick(&["Q", "P", "U", "E"])),
            9 => format!("${{!{name}}}"),
            10 => format!("${{{name}^^}}"),
            11 => format!("${{{name}:-`{}`}}", self.backticked()),
            12 => format!("${{{name}-\"$({})\"}}", self.substituted()),
            _ => format!("${{{name}}}"),
        }
    }

    pub(super) fn arithmetic(&mut self) -> String {
        match self.random.below(12) {
            0 => "1+2".to_owned(),
            1 => "n + 1".to_owned(),
            2 => "$n*2".to_owned(),
            3 => format!("$({})", self.substituted()),
            4 => "x".to_owned(),
            5 => "arr[n]".to_owned(),
            6 => "arr[$(aa)]".to_owned(),
            7 => "n = 3, n++".to_owned(),
            8 => "(1 + (2)) * 3".to_owned(),
            9 => "`aa`".to_owned(),
            10 => "${y:-2}".to_owned(),
            _ => "16#ff & 7".to_owned(),
        }
    }

    pub(super) fn assignment(&mut self) -> String {
        let name = self.name();
        match self.choose(14, &[2, 3, 4, 5]) {
            0 => format!("{name}=$({})", self.substituted()),
            1 => format!("{name}='q[$(aa hidden)]'"),
            2 => format!("{name}+=1"),
            3 => format!("arr=({} {})", self.word(), self.word()),
            4 => format!("arr[{}]={}", self.random.pick(&["0", "n", "$(aa)", "1 + 1", "$x"]), self.word()),
            5 => format!("arr=([1]=a [{}]=b)", self.random.pick(&["2", "$(aa)", "x"])),
            6 => format!("{name}="),
            7 => format!("{name}=aa"),
            8 => format!("{name}={}", self.name()),
            9 => format!("{name}=$((1+1))"),
            10 => format!("{name}=@"),
            11 => self.random.pick(&["IFS=a", "x=-v", "x=v", "x=-", "y='$(aa hidden)'"]).to_owned(),
            _ => format!("{name}={}", self.word()),
        }
    }

    pub(super) fn redirect(&mut self) -> String {
        match self.choose(14, &[3, 6, 8]) {
            0 => " > f1".to_owned(),
            1 => format!(" 2>{}", self.random.pick(&["&1", "f2", "/dev/null", "\"f 3\""])),
            2 => " >> f1".to_owned(),
            3 => " &> f1".to_owned(),
            4 => " >| f2".to_owned(),
            5 => " < /dev/null".to_owned(),
            6 => format!(" <<< {}", self.word()),
            7 => " 3<> f1".to_owned(),
            8 => " {fd}> f3".to_owned(),
            9 => format!(" > f$({})", self.substituted()),
            10 => " >&2".to_owned(),
            _ => self.here_document(),
        }
    }

    pub(super) fn here_document(&mut self) -> String {
        let (written, strips) = match self.random.below(6) {
            0 => ("<<EOT", false),
            1 => ("<<-EOT", true),
            2 => ("<< 'EOT'", false),
            3 => ("<<\\EOT", false),
            4 => ("<<E\"O\"T", false),
            _ => ("<<EOT", false),
        };
        let tab = if strips { "\t" } else { "" };
        let outer = std::mem::take(&mut self.pending);
        let inside = match self.random.below(6) {
            0 => format!("$({})", self.substituted()),
            1 => format!("`{}`", self.backticked()),
            2 => "\\$(aa no) \\`aa no\\`".to_owned(),
            3 => format!("${{x:-$({})}}", self.substituted()),
            4 => "continued \\\nEOT not the end".to_owned(),
            _ => "aa no' \" $x".to_owned(),
        };
        self.pending = outer;
        self.pending.push(format!("{tab}{inside}\n{tab}EOT\n"));
        format!(" {written}")
    }
}
