//! Builtins and programs that run others, in random scripts.

use super::generate::Generator;

impl Generator<'_> {
    /// Single quotes around anything.
    fn as_text(&mut self) -> String {
        let script = self.inner_script();
        if self.random.one_in(3) && !script.contains(['"', '\\', '$', '`', '!']) {
            return format!("\"{script}\"");
        }
        format!("'{}'", script.replace('\'', "'\\''"))
    }

    pub(super) fn builtin(&mut self) -> String {
        let text = self.as_text();
        match self.random.below(24) {
            0 => format!("eval {text}"),
            1 => format!("eval {} {}", self.word(), self.word()),
            2 => format!("trap {text} EXIT"),
            3 => format!("trap -- {text} 0"),
            4 => format!("command {}", self.plain_command()),
            5 => format!("command -p {}", self.plain_command()),
            6 => format!("builtin eval {text}"),
            7 => format!("(exec {})", self.plain_command()),
            8 => format!("(exec -a name {})", self.plain_command()),
            9 => format!("source /dev/stdin <<< {text}"),
            10 => format!(
                "{} x={}",
                self.random.pick(&["declare", "export", "typeset", "readonly", "local"]),
                self.word()
            ),
            11 => format!(
                "declare {} arr={}",
                self.random.pick(&["-a", "-A", "-i", "-n", "-x"]),
                self.random.pick(&["'($(aa d))'", "(1 2)", "x", "'q[$(aa e)]'", "($(aa))"])
            ),
            12 => {
                format!("printf {} {} y", self.variable_option(), self.variable_name())
            }
            13 => format!(
                "read {} <<< {}",
                self.random.pick(&["x", "-r x", "'arr[$(aa r)]'", "$x"]),
                self.word()
            ),
            14 => format!("unset {}", self.random.pick(&["x", "'arr[$(aa u)]'", "$x", "arr[0]"])),
            15 => format!("let {}", self.random.pick(&["n=1", "'n=arr[$(aa l)]'", "x", "\"n=$n+1\""])),
            16 => format!("test {} {}", self.variable_option(), self.variable_name()),
            17 => format!(
                "[ {} ]",
                self.random.pick(&[
                    "-v x",
                    "-v 'arr[$(aa t)]'",
                    "$x",
                    "\"$x\" = y",
                    "\"$x\" \"$y\"",
                    "$x -eq 1",
                    "\"$x-v\" 'arr[$(aa t)]'",
                    "-v $y 'arr[$(aa t)]'",
                    "-v arr['$(aa t)']"
                ])
            ),
            18 => format!("printf {} z", self.word()),
            19 => format!("set -- {}", self.word()),
            20 => {
                format!("mapfile {} arr <<< {}", self.random.pick(&["", "-t", "-C 'aa m' -c 1"]), self.word())
            }
            21 => self
                .random
                .pick(&[
                    "alias cc=aa",
                    "shopt -s expand_aliases",
                    "set -k",
                    "set +B",
                    "shopt -s extglob",
                    "set -f",
                    "set -e",
                    "PS4='$(aa p)'",
                    "set -x",
                    "enable -n echo",
                    "hash -p /x aa",
                    "IFS=a",
                    "shopt -s nullglob",
                ])
                .to_owned(),
            22 => format!("jobs -x {}", self.plain_command()),
            _ => format!("wait -p {} -n", self.random.pick(&["x", "'arr[$(aa w)]'"])),
        }
    }

    /// `-v`, in one way or another, or something else.
    fn variable_option(&mut self) -> String {
        let ways =
            ["-v", "-v", "$x", "\"$x\"", "\"$x-v\"", "$y -v", "-v $y", "-$x", "-?", "\"${y:--v}\"", "-n"];
        self.random.pick(&ways).to_owned()
    }

    /// The name of a variable, perhaps with a subscript that is code.
    fn variable_name(&mut self) -> String {
        let ways =
            ["x", "'arr[$(aa p)]'", "\"$x\"", "$x", "arr['$(aa q)']", "\"arr[$x]\"", "arr[n]", "\"a$y\""];
        self.random.pick(&ways).to_owned()
    }

    pub(super) fn runner(&mut self) -> String {
        let text = self.as_text();
        let command = self.plain_command();
        match self.random.below(24) {
            0 => format!("bash -c {text}"),
            1 => format!("sh -c {text}"),
            2 => format!("bash -e -c -u {text} name arg"),
            3 => format!("env {command}"),
            4 => format!("env -i A=b {command}"),
            5 => format!("env -u A -- {command}"),
            6 => format!("timeout 5 {command}"),
            7 => format!("timeout -s KILL --foreground 5 {command}"),
            8 => format!("nice -n 1 {command}"),
            9 => format!("nohup {command}"),
            10 => format!("echo p q | xargs {command}"),
            11 => format!("echo p q | xargs -n 1 {command}"),
            12 => format!("echo p | xargs -I{{}} {command} {{}}"),
            13 => format!("echo 'aa s' | xargs -I% sh -c {text}"),
            14 => format!("find . -maxdepth 0 -exec {command} {{}} \\;"),
            15 => format!("find . -maxdepth 0 -exec {command} {{}} +"),
            16 => format!("setsid -w {command}"),
            17 => format!("stdbuf -o0 {command}"),
            18 => format!("env -S 'aa b' {}", self.word()),
            19 => format!("bash <<< {text}"),
            20 => format!("echo {} | bash", self.word()),
            21 => format!("timeout {} {command}", self.random.pick(&["$n", "\"5\"", "-v 5", "{5,aa}"])),
            22 => format!("env {} {command}", self.random.pick(&["$x", "\"A=$x\"", "x='q[$(aa e)]'", "-"])),
            _ => format!(
                "bash -c {} {command}",
                self.random.pick(&["'\"$@\"' _", "'$0 $1'", "'((x))'", "'echo $((n))'"])
            ),
        }
    }
}
