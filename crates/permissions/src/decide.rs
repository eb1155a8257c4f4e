//! What happens to a call: the rules, the mode, and how well commands are confined here make one decision, with its reason.
//!
//! | what | happens |
//! |---|---|
//! | a rule denies it, in any layer | refused |
//! | plan mode, and it is more than looking | refused |
//! | bypass mode | run, unless the administrator denies it |
//! | settings, hooks and rules that decide what may be done (`.git/hooks`, `.helve` …) are written | asked, whatever a rule allows |
//! | rules allow all of it, or it only looks inside the project | run |
//! | accept-edits or auto: a file tool writes in the project | run |
//! | accept-edits or auto: a command, confined, understood, with nothing but the project to write, without the network | run |
//! | anything else: not understood, network, places outside, secrets, deletes of everything, another user, no confinement | asked |

use std::path::{Component, Path, PathBuf};

use helve_protocol::Mode;

use crate::pattern::{Places, Subject};
use crate::programs::{goes_out, only_looks};
use crate::rule::{Rule, Verdict};
use crate::rules::{Judgement, Layer, Proof, Rules};
use crate::shell::{self, Access, Manner, Reading, Simple, Target, Word};

/// What a call would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Read(PathBuf),
    Write(PathBuf),
    /// A command, in a folder.
    Run {
        command: String,
        folder: PathBuf,
    },
    Fetch(String),
    /// Anything else, in words.
    Other(String),
}

/// How well commands are confined here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    None,
    /// Files and sockets.
    Partly,
    /// A world of their own.
    Fully,
}

/// What a decision is made by.
#[derive(Clone, Copy, Debug)]
pub struct Policy<'a> {
    pub rules: &'a Rules,
    pub places: &'a Places,
    pub mode: Mode,
    pub level: Level,
    /// The user let commands of this session use the network.
    pub network: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub verdict: Verdict,
    /// In words for a person: what of it, and why.
    pub reason: String,
    /// The rule that decided it, if one did.
    pub proof: Option<Proof>,
    /// The smallest general rule that would have allowed it, if there is one.
    pub suggestion: Option<Rule>,
    /// Whether it wants the network, so that it can't run without.
    pub wants_network: bool,
}

/// Something about a call that speaks for or against it.
#[derive(Clone, Debug)]
struct Point {
    verdict: Verdict,
    reason: String,
    proof: Option<Proof>,
    /// Whether confinement is enough to let it pass.
    is_containable: bool,
}

impl Point {
    fn of(judgement: Judgement, what: &str) -> Point {
        let Judgement { verdict, proof } = judgement;
        let said = match verdict {
            Verdict::Allow => "is allowed",
            Verdict::Ask => "is to be asked",
            Verdict::Deny => "is denied",
        };
        Point {
            verdict,
            reason: format!("{what} {said} by {proof}"),
            proof: Some(proof),
            is_containable: false,
        }
    }

    fn allow(reason: impl Into<String>) -> Point {
        Point { verdict: Verdict::Allow, reason: reason.into(), proof: None, is_containable: false }
    }

    fn ask(reason: impl Into<String>) -> Point {
        Point { verdict: Verdict::Ask, reason: reason.into(), proof: None, is_containable: false }
    }

    /// A person is asked, unless it is confined and the mode lets that pass.
    fn ask_unless_confined(reason: impl Into<String>) -> Point {
        Point { is_containable: true, ..Point::ask(reason) }
    }
}

/// Files that decide what may be done, below the project: whoever writes them could allow himself anything.
const GUARDED: [&str; 4] = [".git/config", ".git/hooks", ".helve", ".git/modules"];
/// Names of files with secrets, wherever they are.
const SECRET_NAMES: [&str; 14] = [
    ".env",
    ".env.*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "id_rsa*",
    "id_ed25519*",
    "id_ecdsa*",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    "credentials.json",
];
/// Folders with secrets, below the home folder.
const SECRET_FOLDERS: [&str; 9] = [
    ".ssh",
    ".aws",
    ".gnupg",
    ".kube",
    ".docker",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".password-store",
];
/// Looks like a secret and is none.
const NO_SECRETS: [&str; 4] = [".env.example", ".env.sample", ".env.template", "*.pub"];

/// Decides about a call of a tool.
pub fn decide(tool: &str, action: &Action, policy: Policy<'_>) -> Decision {
    let judge = Judge { tool, policy };
    let (points, wants_network) = match action {
        Action::Read(path) => (vec![judge.read(path)], false),
        Action::Write(path) => (vec![judge.write(path)], false),
        Action::Fetch(address) => (vec![judge.fetch(address)], true),
        Action::Other(text) => (vec![judge.other(text)], false),
        Action::Run { command, folder } => judge.run(&shell::read(command), folder),
    };
    let is_look = matches!(action, Action::Read(_));
    judge.settle(points, wants_network, is_look, action)
}

struct Judge<'a> {
    tool: &'a str,
    policy: Policy<'a>,
}

impl Judge<'_> {
    fn rules(&self, tool: &str, subject: &Subject, what: &str) -> Option<Point> {
        let judgement = self.policy.rules.judge(tool, subject, self.policy.places)?;
        Some(Point::of(judgement, what))
    }

    fn read(&self, path: &Path) -> Point {
        let what = format!("reading {}", path.display());
        if let Some(point) = self.rules(self.tool, &Subject::Path(path.to_owned()), &what) {
            return point;
        }
        match (self.is_secret(path), path.starts_with(&self.policy.places.root)) {
            (true, _) => Point::ask(format!("{} may hold secrets", path.display())),
            (false, true) => Point::allow("it only reads, in the project"),
            (false, false) => Point::ask(format!("{} is outside the project", path.display())),
        }
    }

    fn write(&self, path: &Path) -> Point {
        let what = format!("writing {}", path.display());
        let point = self.rules(writer(self.tool), &Subject::Path(path.to_owned()), &what);
        let is_denied = point.as_ref().is_some_and(|point| point.verdict == Verdict::Deny);
        if !is_denied && self.is_guarded(path) {
            return Point::ask(format!("{} decides what may be done", path.display()));
        }
        if let Some(point) = point {
            return point;
        }
        match (self.is_secret(path), path.starts_with(&self.policy.places.root)) {
            (true, _) => Point::ask(format!("{} may hold secrets", path.display())),
            (false, true) => Point::ask_unless_confined(what),
            (false, false) => Point::ask(format!("{} is outside the project", path.display())),
        }
    }

    fn fetch(&self, address: &str) -> Point {
        let what = format!("fetching {address}");
        self.rules(self.tool, &Subject::Address(address.to_owned()), &what)
            .unwrap_or_else(|| Point::ask(what))
    }

    fn other(&self, text: &str) -> Point {
        let what = format!("{} {text}", self.tool);
        self.rules(self.tool, &Subject::Text(text.to_owned()), &what).unwrap_or_else(|| Point::ask(what))
    }

    fn run(&self, reading: &Reading, folder: &Path) -> (Vec<Point>, bool) {
        let mut points: Vec<Point> = reading
            .unknown
            .iter()
            .map(|unknown| Point::ask(format!("it can't be known what it runs: {}", unknown.reason)))
            .collect();
        let mut wants_network = false;
        for simple in &reading.commands {
            let words = self.words(simple);
            wants_network |= goes_out(&words);
            points.extend(self.simple(simple, &words, reading, folder));
        }
        let targets = reading.writes.iter().chain(&reading.reads);
        for target in targets {
            wants_network |= target.access == Access::Network;
            points.push(self.target(target, reading, folder));
        }
        if points.is_empty() {
            points.push(Point::allow("it runs nothing"));
        }
        (points, wants_network)
    }

    fn words(&self, simple: &Simple) -> Vec<Option<String>> {
        let word = |word: &Word| match word {
            Word::Known(text) | Word::Pattern(text) => Some(text.clone()),
            Word::Home(rest) => {
                let home = self.policy.places.home.as_ref()?;
                Some(format!("{}{rest}", home.display()))
            }
            Word::One | Word::Any => None,
        };
        simple.argv.iter().map(word).collect()
    }

    fn simple(
        &self,
        simple: &Simple,
        words: &[Option<String>],
        reading: &Reading,
        folder: &Path,
    ) -> Vec<Point> {
        let mut points = Vec::new();
        for (name, _) in &simple.assignments {
            if changes_programs(name) {
                points.push(Point::ask(format!("{name} decides which programs run")));
            }
        }
        for via in &simple.via {
            match &via.manner {
                Manner::Plain => {}
                Manner::OtherUser => {
                    points.push(Point::ask(format!("{} gives the rights of another user", via.program)))
                }
                Manner::Elsewhere(_) => points.push(Point::ask(format!("{} runs it elsewhere", via.program))),
                Manner::Later => points.push(Point::ask(format!("{} runs it later", via.program))),
            }
        }
        if words.is_empty() {
            return points;
        }
        let what = shown(words);
        match self.rules(self.tool, &Subject::Command(words.to_vec()), &format!("`{what}`")) {
            Some(point) => points.push(point),
            None if simple.only_runs_others => {}
            None if goes_out(words) && !self.policy.network => {
                points.push(Point::ask(format!("`{what}` goes to the network")))
            }
            None if only_looks(words) => points.extend(self.looked_at(words, reading, folder)),
            None => points.push(Point::ask_unless_confined(format!("`{what}` is not allowed by a rule"))),
        }
        points
    }

    /// What a program that only looks may look at.
    fn looked_at(&self, words: &[Option<String>], reading: &Reading, folder: &Path) -> Vec<Point> {
        let mut points = vec![Point::allow("it only looks")];
        let arguments = words.iter().skip(1).flatten().filter(|word| !word.starts_with('-'));
        for argument in arguments {
            for path in self.places_of(argument, reading, folder) {
                let point = Judge { tool: "read", ..*self }.read(&path);
                if point.verdict != Verdict::Allow {
                    points.push(point);
                }
            }
        }
        points
    }

    fn target(&self, target: &Target, reading: &Reading, folder: &Path) -> Point {
        let text = match (&target.path, &self.policy.places.home) {
            (Word::Known(text) | Word::Pattern(text), _) => text.clone(),
            (Word::Home(rest), Some(home)) => format!("{}{rest}", home.display()),
            _ => return Point::ask("it can't be known which file it writes"),
        };
        if target.access == Access::Network {
            return Point::ask(format!("{text} goes to the network"));
        }
        let mut worst: Option<Point> = None;
        for path in self.places_of(&text, reading, folder) {
            let point = match target.access {
                Access::Read => Judge { tool: "read", ..*self }.read(&path),
                Access::Delete if self.is_everything(&path) => {
                    Point::ask(format!("it would delete {}", path.display()))
                }
                _ => self.write(&path),
            };
            if worst.as_ref().is_none_or(|worst| {
                (worst.verdict, !worst.is_containable) < (point.verdict, !point.is_containable)
            }) {
                worst = Some(point);
            }
        }
        worst.unwrap_or_else(|| Point::ask("it can't be known which file it writes"))
    }

    /// The places that a path may mean: from the folder, or from one that the command goes to.
    fn places_of(&self, text: &str, reading: &Reading, folder: &Path) -> Vec<PathBuf> {
        let plain = |folder: &Path| plain(&folder.join(text));
        let gone_to = reading.folders.iter().map(|word| match word {
            Word::Known(to) => plain(&folder.join(to)),
            // Wherever that is, it is not known to be in the project.
            _ => PathBuf::from("/").join(text),
        });
        [plain(folder)].into_iter().chain(gone_to).collect()
    }

    /// The project itself, or something that it is in.
    fn is_everything(&self, path: &Path) -> bool {
        let root = &self.policy.places.root;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let is_glob_of_all =
            matches!(name.as_str(), "*" | ".*" | ".git") && path.parent() == Some(root.as_path());
        root.starts_with(path) || is_glob_of_all
    }

    fn is_guarded(&self, path: &Path) -> bool {
        let Ok(inside) = path.strip_prefix(&self.policy.places.root) else { return false };
        GUARDED.iter().any(|guarded| inside.starts_with(guarded))
    }

    fn is_secret(&self, path: &Path) -> bool {
        let any = |names: &[&str]| {
            names.iter().any(|name| {
                let rule = Rule::new("read", Some(name), Verdict::Ask);
                rule.covers("read", &Subject::Path(path.to_owned()), self.policy.places)
            })
        };
        let in_folder = self
            .policy
            .places
            .home
            .as_ref()
            .is_some_and(|home| SECRET_FOLDERS.iter().any(|folder| path.starts_with(home.join(folder))));
        in_folder || (any(&SECRET_NAMES) && !any(&NO_SECRETS))
    }

    /// Puts the points together, by the table above.
    fn settle(&self, points: Vec<Point>, wants_network: bool, is_look: bool, action: &Action) -> Decision {
        let decision = |point: &Point, verdict: Verdict, reason: String| Decision {
            verdict,
            reason,
            proof: point.proof.clone(),
            suggestion: None,
            wants_network,
        };
        let Policy { mode, level, network, .. } = self.policy;
        let of_administrator =
            |point: &&Point| point.proof.as_ref().is_some_and(|proof| proof.layer == Layer::Administrator);
        let denied = points.iter().find(|point| point.verdict == Verdict::Deny);
        if let Some(point) = denied.filter(|point| mode != Mode::Bypass || of_administrator(point)) {
            return decision(point, Verdict::Deny, point.reason.clone());
        }
        let first = points.first().cloned().unwrap_or_else(|| Point::allow("it does nothing"));
        let worst: Vec<&Point> = points.iter().filter(|point| point.verdict != Verdict::Allow).collect();
        if mode == Mode::Bypass {
            return decision(&first, Verdict::Allow, "everything is allowed (bypass)".to_owned());
        }
        if mode == Mode::Plan
            && !(is_look || worst.is_empty() && points.iter().all(|point| point.proof.is_none()))
        {
            return decision(&first, Verdict::Deny, "in plan mode nothing is changed".to_owned());
        }
        if worst.is_empty() {
            return decision(&first, Verdict::Allow, first.reason.clone());
        }
        let is_free = matches!(mode, Mode::AcceptEdits | Mode::Auto);
        let is_confined = matches!(action, Action::Write(_)) || level > Level::None;
        if is_free
            && is_confined
            && (!wants_network || network)
            && worst.iter().all(|point| point.is_containable)
        {
            let how = if matches!(action, Action::Write(_)) {
                "it writes in the project"
            } else {
                "it is confined to the project"
            };
            return decision(&first, Verdict::Allow, how.to_owned());
        }
        let strongest = worst.iter().find(|point| !point.is_containable).or(worst.first());
        let point = strongest.map_or(&first, |point| *point);
        Decision {
            suggestion: self.suggestion(action),
            ..decision(point, Verdict::Ask, point.reason.clone())
        }
    }

    /// The smallest general rule that covers an action: a command with its first words, a folder, a host.
    fn suggestion(&self, action: &Action) -> Option<Rule> {
        let pattern = match action {
            Action::Read(path) | Action::Write(path) => {
                let inside = path.strip_prefix(&self.policy.places.root).ok();
                let shown = inside.map_or_else(|| path.clone(), |inside| Path::new(".").join(inside));
                Some(shown.to_string_lossy().into_owned())
            }
            Action::Fetch(address) => Some(format!("domain:{}", crate::pattern::host(address)?)),
            Action::Other(_) => None,
            Action::Run { command, .. } => {
                let reading = shell::read(command);
                let own: Vec<&Simple> =
                    reading.commands.iter().filter(|simple| !simple.only_runs_others).collect();
                // One rule for one command: more would cover more than was seen.
                let [simple] = own.as_slice() else { return None };
                if !reading.unknown.is_empty() {
                    return None;
                }
                let words: Vec<String> = self.words(simple).into_iter().map_while(|word| word).collect();
                let has_verb = words.get(1).is_some_and(|verb| {
                    verb.chars().all(|c| c.is_alphanumeric() || "-_:".contains(c)) && !verb.starts_with('-')
                });
                let start = words.get(..if has_verb { 2 } else { 1 })?.join(" ");
                Some(format!("{start}:*"))
            }
        };
        Some(Rule::new(self.tool, pattern.as_deref(), Verdict::Allow))
    }
}

/// Files that a command writes are judged as those that a tool writes.
fn writer(tool: &str) -> &str {
    if tool == "shell" { "write" } else { tool }
}

/// Variables that decide which programs run, or with what.
fn changes_programs(name: &str) -> bool {
    const NAMES: [&str; 12] = [
        "PATH",
        "IFS",
        "BASH_ENV",
        "ENV",
        "SHELL",
        "PAGER",
        "EDITOR",
        "VISUAL",
        "PROMPT_COMMAND",
        "PYTHONPATH",
        "NODE_OPTIONS",
        "PERL5OPT",
    ];
    const STARTS: [&str; 4] = ["LD_", "DYLD_", "GIT_", "BASH_FUNC_"];
    NAMES.contains(&name) || STARTS.iter().any(|start| name.starts_with(start)) || name.ends_with("_PRELOAD")
}

fn shown(words: &[Option<String>]) -> String {
    let text: Vec<&str> = words.iter().map(|word| word.as_deref().unwrap_or("…")).collect();
    let text = text.join(" ");
    match text.char_indices().nth(120) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

/// The path without `.` and `..`, as far as that can be said without looking.
fn plain(path: &Path) -> PathBuf {
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
