//! Random scripts of every construct that there is. Every loop ends, and only programs of the arena are named.

use super::random::Random;

pub(crate) struct Generator<'r> {
    pub(crate) random: &'r mut Random,
    /// Leaves out most of what only bash understands.
    is_plain: bool,
    pub(super) depth: usize,
    /// Here-documents whose text comes after the next line break.
    pub(super) pending: Vec<String>,
}

const PROGRAMS: [&str; 5] = ["aa", "bb", "cc", "dd", "xx"];

impl<'r> Generator<'r> {
    pub(crate) fn new(random: &'r mut Random) -> Generator<'r> {
        let depth = random.below(6);
        Generator { random, is_plain: false, depth, pending: Vec::new() }
    }

    /// For shells of every kind.
    pub(crate) fn plain(random: &'r mut Random) -> Generator<'r> {
        Generator { is_plain: true, ..Generator::new(random) }
    }

    /// A number below a limit; where bash's own is left out, mostly not one of those that stand for it.
    pub(super) fn choose(&mut self, limit: usize, bash_only: &[usize]) -> usize {
        loop {
            let choice = self.random.below(limit);
            if !self.is_plain || !bash_only.contains(&choice) || self.random.one_in(30) {
                return choice;
            }
        }
    }

    pub(crate) fn script(&mut self) -> String {
        let mut script = String::new();
        for _ in 0..=self.random.below(2) {
            script += &self.and_or();
            script += &self.separator();
        }
        script + &self.line_break()
    }

    /// A list inside something, so that no here-document is left open.
    pub(super) fn list(&mut self) -> String {
        let outer = std::mem::take(&mut self.pending);
        let mut list = self.and_or();
        if self.random.one_in(3) {
            list += &self.separator();
            list += &self.and_or();
        }
        let end = if self.pending.is_empty() {
            self.random.pick(&["; ", "\n", " ;\n"]).to_owned()
        } else {
            self.line_break()
        };
        self.pending = outer;
        list + &end
    }

    fn separator(&mut self) -> String {
        match self.random.below(4) {
            0 if self.pending.is_empty() => "; ".to_owned(),
            1 if self.pending.is_empty() => " & ".to_owned(),
            2 => " # aa comment\n".to_owned() + &self.bodies(),
            _ => self.line_break(),
        }
    }

    pub(super) fn line_break(&mut self) -> String {
        "\n".to_owned() + &self.bodies()
    }

    fn bodies(&mut self) -> String {
        std::mem::take(&mut self.pending).concat()
    }

    fn and_or(&mut self) -> String {
        let mut text = self.pipeline();
        if self.random.one_in(4) {
            let operator = self.random.pick(&[" && ", "||", " &&\\\n ", " |", "|& "]);
            let next = if operator.contains("||") || operator.contains('&') && !operator.contains('|') {
                self.pipeline()
            } else {
                self.command()
            };
            text = text + operator + &next;
        }
        text
    }

    fn pipeline(&mut self) -> String {
        let prefix =
            if self.random.one_in(12) { self.random.pick(&["! ", "time ", "time -p ", "! ! "]) } else { "" };
        prefix.to_owned() + &self.command()
    }

    fn command(&mut self) -> String {
        if self.depth > 4 {
            return self.simple();
        }
        self.depth += 1;
        let command = match self.choose(26, &[9, 10, 11, 15, 16, 17]) {
            0 => format!("{{ {}}}", self.list()),
            1 => format!("({})", self.list()),
            2 => format!("( {})", self.list()),
            3 => format!("if {}then {}fi", self.list(), self.list()),
            4 => format!(
                "if {}then {}elif {}then {}else {}fi",
                self.list(),
                self.list(),
                self.list(),
                self.list(),
                self.list()
            ),
            5 => format!("for {} in {} {}; do {}done", self.name(), self.word(), self.word(), self.list()),
            6 => format!("while {}do {}break; done", self.list(), self.list()),
            7 => format!("until {}do {}break\ndone", self.list(), self.list()),
            8 => self.case(),
            9 => self.condition(),
            10 => format!("(( {} ))", self.arithmetic()),
            11 => {
                // Loops within each other must not share their counter.
                let (counter, limit) = (format!("i{}", self.depth), self.random.below(3));
                format!("for (({counter}=0; {counter}<{limit}; {counter}++)); do {}done", self.list())
            }
            12 => self.function(),
            13 => self.builtin(),
            14 => self.runner(),
            15 => format!("coproc {}", self.simple()),
            16 => format!("select {} in a b; do {}break; done < /dev/null", self.name(), self.list()),
            17 => format!("(({}) ; {})", self.simple(), self.simple()),
            18 => self.assignment(),
            _ => self.simple(),
        };
        self.depth -= 1;
        let redirect = if self.random.one_in(8) { self.redirect() } else { String::new() };
        command + &redirect
    }

    fn case(&mut self) -> String {
        let open = self.random.pick(&["", "("]);
        let end = self.random.pick(&[";;", ";&", ";;&", ""]);
        format!("case {} in {open}{}|q*) {}{end}\nesac", self.word(), self.quoted("b"), self.list())
    }

    fn condition(&mut self) -> String {
        match self.random.below(6) {
            0 => format!("[[ {} == {} ]]", self.word(), self.random.pick(&["@(a|b)", "a*", "!(x)", "$y"])),
            1 => format!("[[ {} =~ ^(a|b c)$ ]]", self.word()),
            2 => format!("[[ -n {} && ( {} < {} ) ]]", self.word(), self.word(), self.word()),
            3 => format!(
                "[[ {} -eq {} ]]",
                self.random.pick(&["1", "$x", "n", "'x'", "$(vv)"]),
                self.random.pick(&["1", "y"])
            ),
            4 => format!("[[ -v {} ]]", self.random.pick(&["x", "arr[0]", "$x", "'q[$(aa v)]'"])),
            _ => format!("[[ ! {} || -f {} ]]", self.word(), self.word()),
        }
    }

    fn function(&mut self) -> String {
        let name = self.random.pick(&["ff", "gg", "wc"]);
        let head = self
            .random
            .pick(&["NAME()", "NAME ( )", "function NAME", "function NAME()"])
            .replace("NAME", name);
        let body = match self.random.below(3) {
            0 => format!("( {})", self.list()),
            _ => format!("{{ {}}}", self.list()),
        };
        let call = self.random.pick(&["", "; NAME dd", "\nNAME $x"]).replace("NAME", name);
        // A function that calls itself would not end.
        if body.contains(name) || !self.pending.is_empty() {
            self.simple()
        } else {
            format!("{head} {body}{call}")
        }
    }

    pub(super) fn simple(&mut self) -> String {
        let mut text = String::new();
        if self.random.one_in(6) {
            text += &self.assignment();
            text.push(' ');
        }
        if self.random.one_in(12) {
            text += &self.redirect();
            text.push(' ');
        }
        text += &self.program();
        for _ in 0..self.random.below(4) {
            text += self.random.pick(&[" ", "  ", "\t", " \\\n "]);
            text += &self.word();
        }
        if self.random.one_in(6) {
            text += &self.redirect();
        }
        text
    }

    pub(super) fn program(&mut self) -> String {
        let name = self.random.pick(&PROGRAMS);
        match self.choose(60, &[1, 3, 4]) {
            0 => "$x".to_owned(),
            1 => format!("{{{name},z}}"),
            2 => "$(bb)".to_owned(),
            3 => "a{a,b}".to_owned(),
            4 => "{,aa}".to_owned(),
            _ => self.quoted(name),
        }
    }
}

/// What other generators need of this one.
impl Generator<'_> {
    pub(super) fn inner_script(&mut self) -> String {
        let outer = std::mem::take(&mut self.pending);
        self.depth += 2;
        let script = self.and_or() + &self.line_break();
        self.depth -= 2;
        self.pending = outer;
        script.trim_end_matches('\n').to_owned()
    }

    pub(super) fn plain_command(&mut self) -> String {
        let program = self.program();
        let word = self.word();
        format!("{program} {word}")
    }
}
