//! What speaks for and against a call, point by point.

use std::path::{Component, Path, PathBuf};

use helve_protocol::{Action, Mode, Needs};

use crate::decide::{Contained, Level, Policy};
use crate::pattern::{Subject, host};
use crate::programs::{
    cleans, credentials, goes_out, is_local, is_of_the_shell, only_looks, reaches_out, runs_outside,
    writes_settings_of_git,
};
use crate::rule::{Rule, Verdict};
use crate::rules::{Judgement, Proof};
use crate::secrets::{is_guarded, is_secret};
use crate::shell::{self, Access, Manner, Reading, Simple, Target, Word};

/// More folders that a command goes to are not followed.
const MAX_FOLDERS: usize = 20;

/// A rule about this name is one about the network as such.
const NETWORK: &str = "network";

/// Something about a call that speaks for or against it.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) verdict: Verdict,
    pub(crate) reason: String,
    pub(crate) proof: Option<Proof>,
    pub(crate) contained: Contained,
    /// It changes nothing.
    pub(crate) is_look: bool,
    pub(crate) is_grave: bool,
    /// The smallest general rule that would have allowed it.
    pub(crate) suggestion: Option<Rule>,
}

impl Point {
    fn new(verdict: Verdict, reason: impl Into<String>) -> Point {
        Point {
            verdict,
            reason: reason.into(),
            proof: None,
            contained: Contained::No,
            is_look: false,
            is_grave: false,
            suggestion: None,
        }
    }

    fn of(judgement: Judgement, what: &str) -> Point {
        let Judgement { verdict, proof } = judgement;
        let said = match verdict {
            Verdict::Allow => "is allowed",
            Verdict::Ask => "is to be asked",
            Verdict::Deny => "is denied",
        };
        let reason = format!("{what} {said} by {proof}");
        Point { proof: Some(proof), ..Point::new(verdict, reason) }
    }

    fn allow(reason: impl Into<String>) -> Point {
        Point::new(Verdict::Allow, reason)
    }

    fn ask(reason: impl Into<String>) -> Point {
        Point::new(Verdict::Ask, reason)
    }

    fn look(self) -> Point {
        Point { is_look: true, ..self }
    }

    fn grave(self) -> Point {
        Point { is_grave: true, ..self }
    }

    fn contained(self, contained: Contained) -> Point {
        Point { contained, ..self }
    }

    fn unless(self, rule: Rule) -> Point {
        Point { suggestion: Some(rule), ..self }
    }
}

/// What was found about a call.
pub(crate) struct Judged {
    pub(crate) points: Vec<Point>,
    pub(crate) needs: Needs,
    pub(crate) deletes: Vec<PathBuf>,
    /// By which it says who the user is.
    pub(crate) credentials: Vec<PathBuf>,
    /// It runs one program, and nothing that could do anything else with those.
    pub(crate) is_single: bool,
}

pub(crate) struct Judge<'a> {
    tool: &'a str,
    policy: Policy<'a>,
    judged: Judged,
}

impl<'a> Judge<'a> {
    pub(crate) fn new(tool: &'a str, policy: Policy<'a>) -> Judge<'a> {
        let judged = Judged {
            points: Vec::new(),
            needs: Needs::default(),
            deletes: Vec::new(),
            credentials: Vec::new(),
            is_single: true,
        };
        Judge { tool, policy, judged }
    }

    pub(crate) fn done(self) -> Judged {
        self.judged
    }

    fn push(&mut self, point: Point) {
        self.judged.points.push(point);
    }

    /// A call that does nothing to judge.
    pub(crate) fn harmless(&mut self) {
        let what = format!("using {}", self.tool);
        let point = self.rules(self.tool, &Subject::Text(String::new()), &what);
        self.push(point.unwrap_or_else(|| Point::allow("it touches nothing")).look());
    }

    pub(crate) fn action(&mut self, action: &Action) {
        match action {
            Action::Read(path) => {
                let point = self.read(self.tool, path);
                self.push(point);
            }
            Action::Search(query) => {
                let what = format!("looking for {query:?}");
                let point = self.rules(self.tool, &Subject::Text(query.clone()), &what);
                self.push(point.unwrap_or_else(|| Point::allow("it only reads, in the project")).look());
            }
            Action::Write(path) => {
                let point = self.write(self.tool, path, Contained::ByTool);
                self.push(point);
            }
            Action::Delete(path) => {
                let point = self.delete(self.tool, path, Contained::ByTool);
                self.push(point);
            }
            Action::Fetch(address) => {
                self.judged.needs.network = true;
                let point = self.fetch(address);
                self.push(point);
            }
            Action::Other { what, is_confined } => {
                let point = self.other(what, *is_confined);
                self.push(point);
            }
            Action::Run { command, folder, network } => {
                if *network {
                    self.judged.needs.network = true;
                    let point = self.network(command);
                    self.push(point);
                }
                self.run(&shell::read(command), folder);
            }
        }
    }

    fn rules(&self, tool: &str, subject: &Subject, what: &str) -> Option<Point> {
        let judgement = self.policy.rules.judge(tool, subject, self.policy.places)?;
        Some(Point::of(judgement, what))
    }

    fn read(&mut self, tool: &str, path: &Path) -> Point {
        let places = self.policy.places;
        let is_secret = is_secret(path, places);
        if is_secret {
            self.judged.needs.reads.push(path.to_owned());
        }
        let what = format!("reading {}", path.display());
        if let Some(point) = self.rules(tool, &subject(path, is_secret), &what) {
            return point.look();
        }
        let point = match (is_secret, places.is_inside(path)) {
            (true, _) => Point::ask(format!("{} may hold secrets", path.display())),
            (false, true) => return Point::allow("it only reads, in the project").look(),
            (false, false) => Point::ask(format!("{} is outside the project", path.display())),
        };
        // One file, not its folder: who knows what else is there.
        match self.shown(path) {
            Some(pattern) => point.unless(Rule::new(tool, Some(&pattern), Verdict::Allow)).look(),
            None => point.look(),
        }
    }

    fn write(&mut self, tool: &str, path: &Path, contained: Contained) -> Point {
        let places = self.policy.places;
        let is_inside = places.is_inside(path) || self.is_scratch(path, contained);
        let is_guarded = is_guarded(path, places);
        let what = format!("writing {}", path.display());
        let is_secret = is_secret(path, places);
        let point = self.rules(tool, &subject(path, is_secret), &what);
        let is_denied = point.as_ref().is_some_and(|point| point.verdict == Verdict::Deny);
        // Whoever allows a file in a folder of the commands' own means that one, which everybody sees.
        let is_allowed = point.as_ref().is_some_and(|point| point.verdict == Verdict::Allow);
        if !is_inside || is_guarded || is_allowed && !places.is_inside(path) {
            self.judged.needs.writes.push(path.to_owned());
        }
        if !is_denied && is_guarded {
            return Point::ask(format!("{} decides what may be done", path.display()));
        }
        if let Some(point) = point {
            return point;
        }
        if is_secret {
            self.judged.needs.reads.push(path.to_owned());
        }
        let point = match (is_secret, is_inside) {
            (true, _) => Point::ask(format!("{} may hold secrets", path.display())),
            (false, true) => Point::ask(format!("no rule allows {what}")).contained(contained),
            // A command may need a place of its own elsewhere; a file tool that goes there was led there.
            (false, false) if contained == Contained::ByTool => {
                Point::ask(format!("{} is outside the project", path.display())).grave()
            }
            (false, false) => Point::ask(format!("{} is outside the project", path.display())),
        };
        let pattern = if is_secret || !is_inside { self.shown(path) } else { self.around(path) };
        match pattern {
            Some(pattern) => point.unless(Rule::new(tool, Some(&pattern), Verdict::Allow)),
            None => point,
        }
    }

    /// Deleting is writing. What can't be meant, or can't be brought back, is asked whatever a rule says.
    fn delete(&mut self, tool: &str, path: &Path, contained: Contained) -> Point {
        let places = self.policy.places;
        let point = self.write(tool, path, contained);
        if point.verdict == Verdict::Deny {
            return point;
        }
        let is_inside = places.is_inside(path);
        if is_inside {
            self.judged.deletes.push(path.to_owned());
        }
        match self.is_everything(path) {
            true => Point::ask(format!("it would delete {}", path.display())).grave(),
            false if !is_inside && !self.is_scratch(path, contained) => {
                Point::ask(format!("it would delete {}, outside the project", path.display())).grave()
            }
            false => point,
        }
    }

    fn fetch(&self, address: &str) -> Point {
        let what = format!("fetching {address}");
        let point =
            self.rules(self.tool, &Subject::Address(address.to_owned()), &what).unwrap_or_else(|| {
                let pattern = host(address).map(|host| format!("domain:{host}"));
                let why = format!("no rule allows {what}");
                Point::ask(why).unless(Rule::new(self.tool, pattern.as_deref(), Verdict::Allow))
            });
        point.look()
    }

    fn other(&self, what: &str, is_confined: bool) -> Point {
        let shown = format!("{} {what}", self.tool);
        let contained = if is_confined { Contained::ByConfinement } else { Contained::No };
        self.rules(self.tool, &Subject::Text(what.to_owned()), &shown).unwrap_or_else(|| {
            let rule = Rule::new(self.tool, None, Verdict::Allow);
            Point::ask(format!("no rule allows {shown}")).contained(contained).unless(rule)
        })
    }

    fn run(&mut self, reading: &Reading, folder: &Path) {
        let has_variables = reading.commands.iter().any(|simple| !simple.assignments.is_empty());
        self.judged.is_single &= reading.commands.len() == 1 && !has_variables && reading.unknown.is_empty();
        for unknown in &reading.unknown {
            self.push(Point::ask(format!("it can't be known what it runs: {}", unknown.reason)));
        }
        for simple in &reading.commands {
            self.simple(simple, reading, folder);
        }
        for target in reading.writes.iter().chain(&reading.reads) {
            self.target(target, reading, folder);
        }
        if reading.commands.is_empty() && self.judged.points.is_empty() {
            self.push(Point::allow("it runs nothing").look());
        }
    }

    fn words(&self, simple: &Simple) -> Vec<Option<String>> {
        let word = |word: &Word| match word {
            Word::Known(text) | Word::Pattern(text) => Some(text.clone()),
            Word::Home(rest) => {
                let home = self.policy.places.home.as_ref()?;
                Some(format!("{}{rest}", home.display()))
            }
            Word::Begins(_) | Word::One | Word::Any => None,
        };
        simple.argv.iter().map(word).collect()
    }

    fn simple(&mut self, simple: &Simple, reading: &Reading, folder: &Path) {
        for (name, _) in simple.assignments.iter().filter(|(name, _)| changes_programs(name)) {
            let why = format!("{name} decides which programs run");
            let is_everyday = EVERYDAY.contains(&name.as_str());
            let contained = if is_everyday { Contained::ByConfinement } else { Contained::No };
            self.push(Point::ask(why).contained(contained));
        }
        for via in &simple.via {
            let program = &via.program;
            let why = match &via.manner {
                Manner::Plain => continue,
                Manner::OtherUser => format!("{program} gives the rights of another user"),
                Manner::Elsewhere(_) => format!("{program} runs it elsewhere"),
                Manner::Later => format!("{program} runs it later"),
            };
            self.judged.needs.unconfined = true;
            self.push(Point::ask(why));
        }
        let words = self.words(simple);
        if !words.is_empty() {
            self.program(simple, &words, reading, folder);
        }
    }

    fn program(&mut self, simple: &Simple, words: &[Option<String>], reading: &Reading, folder: &Path) {
        let what = format!("`{}`", shown(words));
        // Commands that are a world of their own have a loopback of their own, and nothing else.
        let is_out = goes_out(words) && !(self.policy.level == Level::Fully && is_local(words));
        self.judged.needs.network |= is_out;
        self.judged.needs.unconfined |= runs_outside(words);
        if let Some(home) = &self.policy.places.home {
            self.judged.credentials.extend(credentials(words).iter().map(|secret| home.join(secret)));
        }
        if writes_settings_of_git(words) {
            let config = self.policy.places.root.join(".git/config");
            let point = self.write("write", &config, Contained::ByConfinement);
            self.push(point);
        }
        if cleans(words) {
            self.push(Point::ask(format!("{what} deletes files that git does not know")).grave());
        }
        let suggestion = suggestion(self.tool, words);
        let unless = |point: Point| match &suggestion {
            Some(rule) => point.unless(rule.clone()),
            None => point,
        };
        let by_rule = self.rules(self.tool, &Subject::Command(words.to_vec()), &what);
        let point = match (by_rule, reaches_out(words)) {
            (Some(point), _) => point,
            (None, _) if simple.only_runs_others => return,
            (None, Some(why)) => unless(Point::ask(format!("{what} {why}"))),
            (None, None) if is_out => match self.network(&what) {
                // That the network may be used is not yet that the program may be run.
                point if point.verdict == Verdict::Allow => {
                    unless(Point::ask(point.reason).contained(Contained::ByConfinement))
                }
                point if !self.policy.trusts_confinement() => unless(point),
                point => point,
            },
            (None, None) if only_looks(words) => {
                self.look_at(words, reading, folder);
                if self.policy.mode != Mode::Ask || is_of_the_shell(words) {
                    return;
                }
                let why = format!("{what} is allowed by no rule");
                unless(Point::ask(why).look())
            }
            (None, None) => {
                let why = format!("{what} is allowed by no rule");
                unless(Point::ask(why).contained(Contained::ByConfinement))
            }
        };
        self.push(point);
    }

    fn network(&self, what: &str) -> Point {
        self.rules(NETWORK, &Subject::Text(String::new()), &format!("the network, for {what},"))
            .unwrap_or_else(|| {
                let rule = Rule::new(NETWORK, None, Verdict::Allow);
                Point::ask(format!("{what} goes to the network")).unless(rule)
            })
    }

    /// What a program that only looks may look at.
    fn look_at(&mut self, words: &[Option<String>], reading: &Reading, folder: &Path) {
        self.push(Point::allow("it only looks").look());
        // What an option is given counts too.
        let arguments = words.iter().skip(1).flatten().filter_map(|word| match word.strip_prefix('-') {
            None => Some(word.as_str()),
            Some(option) => match option.split_once('=') {
                Some((_, value)) => Some(value),
                None => option.find('/').and_then(|at| option.get(at..)),
            },
        });
        for argument in arguments {
            // Where commands are a world of their own, secrets look empty to them.
            if self.policy.level < Level::Fully && may_mean_secrets(argument) {
                self.push(Point::ask(format!("{argument} may mean files with secrets")).look());
            }
            for path in self.places_of(argument, reading, folder) {
                if self.is_scratch(&path, Contained::ByConfinement) {
                    continue;
                }
                let point = self.read("read", &path);
                if point.verdict != Verdict::Allow {
                    self.push(point);
                }
            }
        }
    }

    fn target(&mut self, target: &Target, reading: &Reading, folder: &Path) {
        let text = match (&target.path, &self.policy.places.home) {
            (Word::Known(text), _) => text.clone(),
            // What is only read is judged by how it is written; what is written could be a file that decides.
            (Word::Pattern(text), _) if target.access == Access::Read || !may_be_hidden(text) => text.clone(),
            (Word::Home(rest), Some(home)) => format!("{}{rest}", home.display()),
            _ => return self.push(Point::ask("it can't be known which file it writes")),
        };
        if target.access == Access::Network {
            self.judged.needs.network = true;
            let point = self.network(&text);
            return self.push(point);
        }
        for path in self.places_of(&text, reading, folder) {
            let point = match target.access {
                Access::Read => self.read("read", &path),
                Access::Delete => self.delete("write", &path, Contained::ByConfinement),
                _ => self.write("write", &path, Contained::ByConfinement),
            };
            self.push(point);
        }
    }

    /// The places that a path may mean: from the folder, or from one that the command goes to.
    fn places_of(&self, text: &str, reading: &Reading, folder: &Path) -> Vec<PathBuf> {
        // Who goes to so many places could be anywhere.
        if reading.folders.len() > MAX_FOLDERS {
            return vec![PathBuf::from("/").join(text)];
        }
        let gone_to = reading.folders.iter().map(|word| match word {
            Word::Known(to) => plain(&folder.join(to).join(text)),
            // Wherever that is, it is not known to be in the project.
            _ => PathBuf::from("/").join(text),
        });
        let mut places: Vec<PathBuf> = [plain(&folder.join(text))].into_iter().chain(gone_to).collect();
        places.dedup();
        places
    }

    /// The project itself, or something that it is in.
    fn is_everything(&self, path: &Path) -> bool {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let is_all = matches!(name.as_str(), "*" | ".*" | ".git");
        let mut inside = self.policy.places.inside();
        inside.any(|root| root.starts_with(path) || is_all && path.parent() == Some(root))
    }

    /// Where only the command itself and its like write, as they are confined.
    fn is_scratch(&self, path: &Path, contained: Contained) -> bool {
        let is_own = contained == Contained::ByConfinement && self.policy.level == Level::Fully;
        is_own && ["/tmp", "/var/tmp", "/dev/shm"].iter().any(|scratch| path.starts_with(scratch))
    }

    /// The path as a pattern: from the project, if it is there. None if the path itself looks like one.
    fn shown(&self, path: &Path) -> Option<String> {
        let inside = path.strip_prefix(&self.policy.places.root).ok();
        let shown = inside.map_or_else(|| path.to_owned(), |inside| Path::new(".").join(inside));
        Some(shown.display().to_string()).filter(|shown| !shown.contains(['*', '?', '[', '(', ')']))
    }

    /// All that is in the folder of a file of the project; of one at its top, or elsewhere, only the file.
    fn around(&self, path: &Path) -> Option<String> {
        let root = &self.policy.places.root;
        match path.parent().filter(|folder| folder != root && folder.starts_with(root)) {
            Some(folder) => self.shown(folder).map(|folder| format!("{folder}/**")),
            None => self.shown(path),
        }
    }
}

/// The program with its verb, if it has one, and whatever follows.
fn suggestion(tool: &str, words: &[Option<String>]) -> Option<Rule> {
    let is_verb = |word: &str| {
        !word.starts_with('-')
            && word.chars().all(|letter| letter.is_alphanumeric() || "-_:".contains(letter))
    };
    let program = words.first()?.as_deref().filter(|program| !program.contains([' ', '*', '?', '(', ')']))?;
    // Where options come first, the verb is not known, and the program alone would be too much.
    let is_verbed = ["git", "npm", "pnpm", "yarn", "cargo", "docker", "podman", "kubectl", "go", "pip", "gh"];
    let is_option = |word: &Option<String>| word.as_ref().is_none_or(|word| word.starts_with(['-', '+']));
    if is_verbed.contains(&program) && words.get(1).is_some_and(is_option) {
        return None;
    }
    let verb = words.get(1).and_then(Option::as_deref).filter(|word| is_verb(word));
    let start = verb.map_or_else(|| program.to_owned(), |verb| format!("{program} {verb}"));
    Some(Rule::new(tool, Some(&format!("{start}:*")), Verdict::Allow))
}

fn subject(path: &Path, is_secret: bool) -> Subject {
    if is_secret { Subject::Secret(path.to_owned()) } else { Subject::Path(path.to_owned()) }
}

/// Those that people set every day: what they let run is as confined as the rest.
const EVERYDAY: [&str; 13] = [
    "PYTHONPATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "RUSTFLAGS",
    "MAKEFLAGS",
    "PERL5LIB",
    "RUBYOPT",
    "PAGER",
    "MANPAGER",
    "GIT_PAGER",
    "GIT_EDITOR",
    "EDITOR",
    "VISUAL",
];

/// Variables that decide which programs run, or with what.
fn changes_programs(name: &str) -> bool {
    const NAMES: &str = "PATH IFS HOME SHELL ENV BASH_ENV ZDOTDIR PROMPT_COMMAND PAGER MANPAGER EDITOR VISUAL \
                         SUDO_EDITOR BROWSER SSH_ASKPASS SUDO_ASKPASS LESSOPEN LESSCLOSE RSYNC_RSH TAR_OPTIONS \
                         MAKEFLAGS MAKEFILES GNUMAKEFLAGS RUSTC RUSTFLAGS CARGO_HOME GCONV_PATH RIPGREP_CONFIG_PATH PYTHONPATH \
                         PYTHONHOME PYTHONSTARTUP NODE_OPTIONS NODE_PATH PERL5OPT PERL5LIB RUBYOPT VIMINIT EXINIT";
    const STARTS: [&str; 6] = ["LD_", "DYLD_", "GIT_", "BASH_FUNC_", "XDG_CONFIG_", "npm_config_"];
    const ENDS: [&str; 5] = ["_PRELOAD", "_WRAPPER", "_RUNNER", "_LINKER", "_RUSTC"];
    NAMES.split_whitespace().any(|own| own == name)
        || STARTS.iter().any(|start| name.starts_with(start))
        || ENDS.iter().any(|end| name.ends_with(end))
}

fn shown(words: &[Option<String>]) -> String {
    let text: Vec<&str> = words.iter().map(|word| word.as_deref().unwrap_or("…")).collect();
    let text = text.join(" ");
    match text.char_indices().nth(120) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

/// Whether a pattern of files could mean one that begins with a dot, which a star alone does not.
fn may_be_hidden(pattern: &str) -> bool {
    let is_pattern = |name: &str| name.contains(['*', '?', '[', '(', '{']);
    pattern.split('/').any(|name| {
        is_pattern(name) && !name.starts_with(|c: char| c.is_alphanumeric() || c == '*' || c == '?')
    })
}

/// Whether a pattern of files could mean one that holds secrets.
fn may_mean_secrets(pattern: &str) -> bool {
    let name = pattern.rsplit('/').next().unwrap_or(pattern);
    let is_pattern = name.contains(['*', '?', '[', '(', '{']);
    is_pattern
        && (may_be_hidden(name)
            || [".pem", ".key", ".p12", ".pfx", ".json", "*"].iter().any(|end| name.ends_with(end)))
}

/// The path without `.` and `..`, as far as that can be said without looking.
pub fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}
