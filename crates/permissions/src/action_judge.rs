//! What speaks for and against a call, point by point.

use std::path::{Path, PathBuf};

use helve_protocol::{CallPermissions, ConfinementLevel, PermissionMode, PermissionVerdict, ToolAction};

use crate::credentials::{CREDENTIALS_RULE, ProgramCredentials, credentials_for};
use crate::decision_point::{ContainmentKind, DecisionPoint};
use crate::known_programs::{
    GitSettingsWrite, acts_as_user, cannot_be_confined, deletes_untracked_files, describe_reach, is_local,
    is_read_only, is_shell_builtin, named_paths, only_wraps, prints_from_git, reads_what_it_names,
    uses_network, writes_settings_of_git,
};
use crate::normalize::normalize_path;
use crate::pattern::{RuleSubject, host};
use crate::policy::PermissionPolicy;
use crate::rule::Rule;
use crate::secrets::{GuardReason, guard_reason, is_hidden, is_public, is_secret};
use crate::shell::{self, CommandAnalysis, CommandTarget, RunManner, ShellWord, SimpleCommand, TargetAccess};

/// More folders that a command goes to are not followed.
const MAX_FOLLOWED_FOLDERS: usize = 20;

/// A longer path is shown by its beginning, and no rule is suggested for it.
const MAX_SHOWN_PATH_BYTES: usize = 300;

/// A rule about this name is one about the network as such.
const NETWORK_RULE: &str = "network";

/// What was found about a call.
pub(crate) struct ActionFindings {
    pub(crate) points: Vec<DecisionPoint>,
    pub(crate) needs: CallPermissions,
    pub(crate) deletes: Vec<PathBuf>,
    /// The words of a call that is one plain command, which could be run without a shell.
    pub(crate) plain: Option<Vec<String>>,
}

/// A program that a command runs, with its words.
#[derive(Clone, Copy)]
struct ProgramRun<'a> {
    simple: &'a SimpleCommand,
    words: &'a [Option<String>],
    reading: &'a CommandAnalysis,
    folder: &'a Path,
    /// How it is shown to a person.
    what: &'a str,
    /// It uses a network that others are in, too.
    is_out: bool,
    /// It changes nothing.
    is_look: bool,
}

/// Collects what speaks for and against a call, action by action.
pub(crate) struct ActionJudge<'a> {
    tool: &'a str,
    policy: PermissionPolicy<'a>,
    judged: ActionFindings,
}

impl<'a> ActionJudge<'a> {
    pub(crate) fn new(tool: &'a str, policy: PermissionPolicy<'a>) -> ActionJudge<'a> {
        let judged = ActionFindings {
            points: Vec::new(),
            needs: CallPermissions::default(),
            deletes: Vec::new(),
            plain: None,
        };
        let needs = &judged.needs;
        let needs = CallPermissions { read_only: policy.mode == PermissionMode::Plan, ..needs.clone() };
        ActionJudge { tool, policy, judged: ActionFindings { needs, ..judged } }
    }

    pub(crate) fn done(self) -> ActionFindings {
        self.judged
    }

    fn push(&mut self, point: DecisionPoint) {
        self.judged.points.push(point);
    }

    /// A call that does nothing to judge.
    pub(crate) fn harmless(&mut self) {
        let what = format!("using {}", self.tool);
        let point = self.rules(self.tool, &RuleSubject::Text(String::new()), &what);
        self.push(point.unwrap_or_else(|| DecisionPoint::allow("it touches nothing")).look());
    }

    pub(crate) fn action(&mut self, action: &ToolAction) {
        match action {
            ToolAction::Read(path) => {
                let point = self.read(self.tool, path, ContainmentKind::ByTool);
                self.push(point);
            }
            ToolAction::Search(query) => {
                let what = format!("looking for {query:?}");
                let point = self.rules(self.tool, &RuleSubject::Text(query.clone()), &what);
                self.push(
                    point.unwrap_or_else(|| DecisionPoint::allow("it only reads, in the project")).look(),
                );
            }
            ToolAction::Write(path) => {
                let point = self.write(self.tool, path, ContainmentKind::ByTool);
                self.push(point);
            }
            ToolAction::Delete(path) => {
                let point = self.delete(self.tool, path, ContainmentKind::ByTool);
                self.push(point);
            }
            ToolAction::Fetch(address) => {
                self.judged.needs.network = true;
                let point = self.fetch(address);
                self.push(point);
            }
            ToolAction::Other { what, is_confined } => {
                let point = self.other(what, *is_confined);
                self.push(point);
            }
            ToolAction::Run { command, folder, network, credentials } => {
                if *network {
                    self.judged.needs.network = true;
                    let point = self.network(command);
                    self.push(point);
                }
                let reading = shell::analyze(command);
                self.run(command, &reading, folder);
                self.credentials(command, &reading, folder, *credentials);
            }
        }
    }

    fn rules(&self, tool: &str, subject: &RuleSubject, what: &str) -> Option<DecisionPoint> {
        let judgement = self.policy.rules.judge(tool, subject, self.policy.places)?;
        Some(DecisionPoint::of(judgement, what))
    }

    fn read(&mut self, tool: &str, path: &Path, contained: ContainmentKind) -> DecisionPoint {
        let places = self.policy.places;
        let home = places.home.as_deref();
        let is_secret = is_secret(path, places);
        let is_by_tool = contained == ContainmentKind::ByTool;
        // What lies above the home folder leads a tool into it, and a command nowhere.
        let is_above_home =
            is_by_tool && !places.is_inside(path) && home.is_some_and(|home| home.starts_with(path));
        let is_hidden = is_hidden(path, places) || is_above_home;
        // A yes to a file at home opens it to the command; never all of the home folder.
        if is_secret || is_hidden && home.is_some_and(|home| path.starts_with(home) && path != home) {
            self.judged.needs.reads.push(path.to_owned());
        }
        let what = format!("reading {}", brief(path));
        let subject = if is_hidden && !is_secret {
            RuleSubject::Hidden(path.to_owned())
        } else {
            subject(path, is_secret)
        };
        if let Some(point) = self.rules(tool, &subject, &what) {
            return point.look();
        }
        let is_inside = places.is_inside(path);
        let point = match () {
            // Who says yes to everything beforehand means the work, not the keys.
            () if is_secret && !is_inside => {
                DecisionPoint::ask(format!("{} may hold secrets", brief(path))).grave()
            }
            () if is_secret => DecisionPoint::ask(format!("{} may hold secrets", brief(path))),
            () if is_inside => return DecisionPoint::allow("it only reads, in the project").look(),
            () if is_hidden => {
                DecisionPoint::ask(format!("{} is in your home folder, outside the project", brief(path)))
                    .grave()
            }
            () => {
                let point = DecisionPoint::ask(format!("{} is outside the project", brief(path)));
                // Every program sees those in the sandbox.
                if !is_by_tool && is_public(path, places) { point.contained(contained) } else { point }
            }
        };
        // One file, not its folder: who knows what else is there.
        match self.shown(path) {
            Some(pattern) => {
                point.with_suggestion(Rule::new(tool, Some(&pattern), PermissionVerdict::Allow)).look()
            }
            None => point.look(),
        }
    }

    fn write(&mut self, tool: &str, path: &Path, contained: ContainmentKind) -> DecisionPoint {
        let places = self.policy.places;
        let is_inside = places.is_inside(path) || self.is_scratch(path, contained);
        // Nobody edits what git keeps by hand: for a file tool all of it is guarded.
        let in_git = contained == ContainmentKind::ByTool && path.iter().any(|name| name == ".git");
        let guarded = guard_reason(path, places).or(in_git.then_some(GuardReason::Git));
        let guarded = guarded.filter(|_| !self.is_scratch(path, contained));
        let what = format!("writing {}", brief(path));
        let is_secret = is_secret(path, places);
        let point = self.rules(tool, &subject(path, is_secret), &what);
        let is_denied = point.as_ref().is_some_and(|point| point.verdict == PermissionVerdict::Deny);
        // Whoever allows a file in a folder of the commands' own means that one, which everybody sees.
        let is_allowed = point.as_ref().is_some_and(|point| point.verdict == PermissionVerdict::Allow);
        if !is_inside || guarded.is_some() || is_allowed && !places.is_inside(path) {
            self.judged.needs.writes.push(path.to_owned());
        }
        if let (false, Some(guarded)) = (is_denied, guarded) {
            let point = DecisionPoint::ask(format!("{} {}", path.display(), guarded.why())).grave();
            return DecisionPoint { is_own: guarded == GuardReason::Own, ..point };
        }
        if let Some(point) = point {
            return point;
        }
        if is_secret {
            self.judged.needs.reads.push(path.to_owned());
        }
        let point = match (is_secret, is_inside) {
            (true, false) => DecisionPoint::ask(format!("{} may hold secrets", brief(path))).grave(),
            (true, true) => DecisionPoint::ask(format!("{} may hold secrets", brief(path))),
            (false, true) => DecisionPoint::ask(format!("no rule allows {what}")).contained(contained),
            (false, false) => DecisionPoint::ask(format!("{} is outside the project", brief(path))),
        };
        let pattern = if is_secret || !is_inside { self.shown(path) } else { self.around(path) };
        match pattern {
            Some(pattern) => point.with_suggestion(Rule::new(tool, Some(&pattern), PermissionVerdict::Allow)),
            None => point,
        }
    }

    /// Deleting is writing. What can't be meant, or can't be brought back, is asked whatever a rule says.
    fn delete(&mut self, tool: &str, path: &Path, contained: ContainmentKind) -> DecisionPoint {
        let places = self.policy.places;
        let point = self.write(tool, path, contained);
        if point.verdict == PermissionVerdict::Deny {
            return point;
        }
        let is_inside = places.is_inside(path);
        if is_inside {
            self.judged.deletes.push(path.to_owned());
        }
        match self.is_everything(path) {
            true => DecisionPoint::ask(format!("it would delete {}", path.display())).grave(),
            false if !is_inside && !self.is_scratch(path, contained) => {
                DecisionPoint::ask(format!("it would delete {}, outside the project", path.display())).grave()
            }
            false => point,
        }
    }

    fn fetch(&self, address: &str) -> DecisionPoint {
        let what = format!("fetching {address}");
        let point =
            self.rules(self.tool, &RuleSubject::Address(address.to_owned()), &what).unwrap_or_else(|| {
                let pattern = host(address).map(|host| format!("domain:{host}"));
                let why = format!("no rule allows {what}");
                DecisionPoint::ask(why).with_suggestion(Rule::new(
                    self.tool,
                    pattern.as_deref(),
                    PermissionVerdict::Allow,
                ))
            });
        point.look()
    }

    fn other(&self, what: &str, is_confined: bool) -> DecisionPoint {
        let shown = format!("{} {what}", self.tool);
        let contained = if is_confined { ContainmentKind::ByConfinement } else { ContainmentKind::No };
        self.rules(self.tool, &RuleSubject::Text(what.to_owned()), &shown).unwrap_or_else(|| {
            let rule = Rule::new(self.tool, None, PermissionVerdict::Allow);
            DecisionPoint::ask(format!("no rule allows {shown}")).contained(contained).with_suggestion(rule)
        })
    }

    fn run(&mut self, command: &str, reading: &CommandAnalysis, folder: &Path) {
        for unknown in &reading.unknown {
            self.push(DecisionPoint::ask(format!("it can't be known what it runs: {}", unknown.reason)));
        }
        for simple in &reading.commands {
            self.simple(simple, reading, folder);
        }
        for target in reading.writes.iter().chain(&reading.reads) {
            self.target(target, reading, folder);
        }
        let mut at = folder.to_owned();
        for target in &reading.folders {
            self.goes_to(target, &at);
            at = self.next_folder(target, &at, folder);
        }
        let plain = plain_words(command, reading).filter(|_| is_one_program(reading));
        let is_sandboxed =
            self.policy.level > ConfinementLevel::None && self.policy.mode != PermissionMode::Bypass;
        if self.judged.needs.unconfined && is_sandboxed {
            // Nothing else leaves with it, not even a shell. What can't work confined then fails, and is run by itself.
            if plain.is_none() {
                self.judged.needs.unconfined = false;
                self.push(DecisionPoint::ask(UNCONFINED_ALONE_REASON));
            }
            self.judged.needs.alone.clone_from(&plain);
        }
        self.judged.plain = plain.filter(|_| is_sandboxed);
        if reading.commands.is_empty() && self.judged.points.is_empty() {
            self.push(DecisionPoint::allow("it runs nothing").look());
        }
    }

    /// Where a command is after it went somewhere. Where less confines it, one that went nowhere must not be taken for one that did:
    /// each is looked at from the first folder.
    fn next_folder(&self, to: &ShellWord, at: &Path, first: &Path) -> PathBuf {
        match to {
            ShellWord::Known(to) if self.policy.level == ConfinementLevel::Full && to != "-" => {
                normalize_path(&at.join(to))
            }
            _ => first.to_owned(),
        }
    }

    /// A folder that a command goes to is looked at from there.
    fn goes_to(&mut self, to: &ShellWord, folder: &Path) {
        let path = match (to, &self.policy.places.home) {
            (ShellWord::Known(to) | ShellWord::Pattern(to), _) => normalize_path(&folder.join(to)),
            (ShellWord::Home(rest), Some(home)) => {
                normalize_path(Path::new(&format!("{}{rest}", home.display())))
            }
            _ if self.policy.level < ConfinementLevel::Full => {
                return self.push(DecisionPoint::ask("it can't be known which folder it goes to").look());
            }
            _ => return,
        };
        if !self.is_scratch(&path, ContainmentKind::ByConfinement) {
            let point = self.read("read", &path, ContainmentKind::ByConfinement);
            if point.verdict != PermissionVerdict::Allow {
                self.push(point);
            }
        }
    }

    /// Whether the call gets credentials, and whose. They go with one plain command that runs nothing of the project's.
    fn credentials(&mut self, command: &str, reading: &CommandAnalysis, folder: &Path, is_wanted: bool) {
        // Where nothing confines commands, they have them anyway.
        if self.policy.level == ConfinementLevel::None
            || self.policy.mode == PermissionMode::Bypass
            || self.judged.needs.unconfined
        {
            return;
        }
        let known = |simple: &SimpleCommand| credentials_for(simple.program()?.rsplit('/').next()?);
        let Some((row, simple)) = reading.commands.iter().find_map(|simple| Some((known(simple)?, simple)))
        else {
            if is_wanted {
                self.push(DecisionPoint::ask("it is not known which credentials it needs, so it gets none"));
            }
            return;
        };
        if !self.policy.places.credentials.contains(&row.program) {
            return;
        }
        let by_rule = self.rules(
            CREDENTIALS_RULE,
            &RuleSubject::Text(row.program.to_owned()),
            &format!("giving {} to `{}`", row.what, row.program),
        );
        let is_allowed = by_rule.as_ref().is_some_and(|point| point.verdict == PermissionVerdict::Allow);
        let is_needed = is_wanted || acts_as_user(&self.words(simple));
        if !is_needed && !is_allowed {
            return;
        }
        match self.alone(command, reading, folder, row) {
            Ok(words) => {
                let rule = Rule::new(CREDENTIALS_RULE, Some(row.program), PermissionVerdict::Allow);
                let what = format!("`{}` gets {}", row.program, row.what);
                let point = by_rule.unwrap_or_else(|| DecisionPoint::ask(what).grave().with_suggestion(rule));
                if point.verdict != PermissionVerdict::Deny {
                    self.contain_submodules(&words);
                    self.judged.needs.alone = Some(words);
                    self.judged.needs.credentials = Some(row.program.to_owned());
                }
                self.push(point.look());
            }
            // A rule for all of them is none for this: it runs without.
            Err(_) if !is_needed => {}
            Err(why) => {
                let reason =
                    format!("it would need {}, which {} can't have here: {why}", row.what, row.program);
                self.push(DecisionPoint::new(PermissionVerdict::Deny, reason));
            }
        }
    }

    /// What `git submodule` writes into the settings comes from `.gitmodules`, and runs nothing. That is sure where it is run
    /// without a shell and without hooks, as everything is that has credentials.
    fn contain_submodules(&mut self, words: &[String]) {
        let is_plain = matches!(words, [_, verb, what, ..] if verb == "submodule" && matches!(what.as_str(), "init" | "update"));
        if !is_plain {
            return;
        }
        let named: Vec<Option<String>> = words.iter().cloned().map(Some).collect();
        let reason = changes_settings(&format!("`{}`", shown(&named)));
        for point in self.judged.points.iter_mut().filter(|point| point.reason == reason) {
            point.contained = ContainmentKind::ByConfinement;
            // Each module has settings of its own, where git notes where its files are.
            self.judged.needs.writes.push(self.policy.places.root.join(".git/modules"));
        }
    }

    /// The words of a call that is one plain command, found where the system has its programs.
    fn alone(
        &self,
        command: &str,
        reading: &CommandAnalysis,
        folder: &Path,
        row: &ProgramCredentials,
    ) -> Result<Vec<String>, String> {
        if reading.commands.iter().any(|simple| simple.program().is_some_and(|program| program.contains('/')))
        {
            return Err("a program that is named by its path could be anybody's".to_owned());
        }
        let words = plain_words(command, reading).filter(|_| reading.commands.len() == 1);
        let words = words.ok_or(CREDENTIALS_ALONE_REASON)?;
        let (_, arguments) = words.split_first().ok_or(CREDENTIALS_ALONE_REASON)?;
        if !reading.folders.is_empty() || self.policy.places.is_nested {
            return Err("it works on another repository than the project's".to_owned());
        }
        // Settings in folders where commands write whatever they like decide where credentials go.
        if !folder.starts_with(&self.policy.places.root) {
            return Err("it works in another folder than the project's; go back there first".to_owned());
        }
        row.refusal(arguments).map_or(Ok(words.clone()), Err)
    }

    fn words(&self, simple: &SimpleCommand) -> Vec<Option<String>> {
        let word = |word: &ShellWord| match word {
            ShellWord::Known(text) | ShellWord::Pattern(text) => Some(text.clone()),
            ShellWord::Home(rest) => {
                let home = self.policy.places.home.as_ref()?;
                Some(format!("{}{rest}", home.display()))
            }
            ShellWord::Prefix(_) | ShellWord::UnknownOne | ShellWord::UnknownMany => None,
        };
        simple.argv.iter().map(word).collect()
    }

    fn simple(&mut self, simple: &SimpleCommand, reading: &CommandAnalysis, folder: &Path) {
        for (name, _) in &simple.assignments {
            match variable_effect(name) {
                VariableEffect::Harmless => {}
                VariableEffect::MayInfluence => {
                    let why = format!("{name} may decide what programs do");
                    // By itself it sets what nobody reads; before a program, that may obey it.
                    if !simple.argv.is_empty() {
                        self.push(DecisionPoint::ask(why).contained(ContainmentKind::ByConfinement));
                    }
                }
                VariableEffect::ChoosesPrograms => {
                    self.push(DecisionPoint::ask(format!("{name} decides which programs run")))
                }
            }
        }
        for via in &simple.via {
            let program = &via.program;
            let why = match &via.manner {
                RunManner::Plain => continue,
                RunManner::OtherUser => format!("{program} gives the rights of another user"),
                RunManner::Elsewhere(_) => format!("{program} runs it elsewhere"),
                RunManner::Later => format!("{program} runs it later"),
            };
            self.judged.needs.unconfined = true;
            let point = self.leaving(DecisionPoint::ask(why));
            self.push(point);
        }
        let words = self.words(simple);
        if !words.is_empty() {
            self.program(simple, &words, reading, folder);
        }
    }

    /// What is said about leaving the sandbox. Who says yes to everything beforehand means what the sandbox holds.
    fn leaving(&self, point: DecisionPoint) -> DecisionPoint {
        match self.policy.level {
            ConfinementLevel::None => point,
            ConfinementLevel::Landlock | ConfinementLevel::Full => point.grave(),
        }
    }

    /// Judges one program with its words.
    fn program(
        &mut self,
        simple: &SimpleCommand,
        words: &[Option<String>],
        reading: &CommandAnalysis,
        folder: &Path,
    ) {
        let what = format!("`{}`", shown(words));
        // Commands that are a world of their own have a loopback of their own, and nothing else.
        let is_out = uses_network(words) && !(self.policy.level == ConfinementLevel::Full && is_local(words));
        self.judged.needs.network |= is_out;
        self.judged.needs.unconfined |= cannot_be_confined(words);
        self.effects_of_git(words, &what);
        let is_look = self.is_look(words, reading, folder);
        self.denied_paths(words, is_look, &what);
        let by_rule = self.rules(self.tool, &RuleSubject::Command(words.to_vec()), &what);
        if by_rule.as_ref().is_some_and(|point| point.verdict == PermissionVerdict::Allow) {
            self.named_secrets(simple, words, reading, folder);
        }
        let point = match by_rule {
            Some(point) => Some(self.limit_allow_rule(point, words, is_look, reading, folder)),
            None => self.without_rule(&ProgramRun {
                simple,
                words,
                reading,
                folder,
                what: &what,
                is_out,
                is_look,
            }),
        };
        self.judged.points.extend(point);
    }

    /// What git does to a repository that no file tells of beforehand.
    fn effects_of_git(&mut self, words: &[Option<String>], what: &str) {
        if let Some(how) = writes_settings_of_git(words) {
            let config = self.policy.places.root.join(".git/config");
            let point = self.write("write", &config, ContainmentKind::ByConfinement);
            let is_denied = point.verdict == PermissionVerdict::Deny;
            self.push(match how {
                GitSettingsWrite::Implicit if !is_denied => DecisionPoint::ask(changes_settings(what)),
                _ => point,
            });
        }
        if deletes_untracked_files(words) {
            self.push(DecisionPoint::ask(format!("{what} deletes files that git does not know")).grave());
        }
    }

    /// What speaks against a program that no rule is about; none if nothing does beside what it looks at.
    fn without_rule(&mut self, run: &ProgramRun<'_>) -> Option<DecisionPoint> {
        let ProgramRun { simple, words, reading, folder, what, is_out, is_look } = *run;
        if simple.only_runs_others {
            let more = DecisionPoint::ask(format!("{what} may do more than run another program"));
            return (!only_wraps(words)).then(|| more.contained(ContainmentKind::ByConfinement));
        }
        let no_rule = || DecisionPoint::ask(format!("{what} is allowed by no rule"));
        let point = match describe_reach(words) {
            Some(why) => {
                let point = DecisionPoint::ask(format!("{what} {why}"));
                if cannot_be_confined(words) { self.leaving(point) } else { point }
            }
            None if is_out => match self.network(what) {
                // That the network may be used is not yet that the program may be run.
                point if point.verdict == PermissionVerdict::Allow => {
                    DecisionPoint::ask(point.reason).contained(ContainmentKind::ByConfinement)
                }
                // Confinement is enough for the program itself, so the rule to suggest is the one about the network.
                point if self.policy.trusts_confinement() => return Some(point),
                point => point,
            },
            None if is_look => {
                self.look_at(words, reading, folder);
                self.look_at_what_it_could_be(simple, reading, folder);
                if self.policy.mode != PermissionMode::Ask || is_shell_builtin(words) {
                    return None;
                }
                no_rule().look()
            }
            None => {
                self.look_at_what_it_could_be(simple, reading, folder);
                no_rule().contained(ContainmentKind::ByConfinement)
            }
        };
        Some(match suggestion(self.tool, words) {
            Some(rule) => point.with_suggestion(rule),
            None => point,
        })
    }

    /// Whether a command only looks. Git does so only in the project's own repository: elsewhere, settings that nobody has
    /// seen decide what it runs.
    fn is_look(&self, words: &[Option<String>], reading: &CommandAnalysis, folder: &Path) -> bool {
        let is_git = words.first().and_then(Option::as_deref) == Some("git");
        let places = self.policy.places;
        let is_elsewhere = places.is_nested || !reading.folders.is_empty() || !places.is_inside(folder);
        is_read_only(words) && !(is_git && is_elsewhere)
    }

    /// Where the sandbox can't keep a command from what a rule denies, a person has to.
    fn denied_paths(&mut self, words: &[Option<String>], is_look: bool, what: &str) {
        let rules = self.policy.rules;
        if rules.denied_paths("read").next().is_some() && prints_from_git(words) {
            self.push(
                DecisionPoint::ask(format!("{what} may show what a rule denies, as git has kept it"))
                    .look()
                    .grave(),
            );
        }
        let (reads, writes) = (rules.denied_paths("read").next(), rules.denied_paths("write").next());
        let Some(rule) = reads.or(writes).filter(|_| !self.is_masked()) else { return };
        let places = self.policy.places;
        let is_clear = |word: &String| {
            let path = normalize_path(&places.root.join(word));
            !word.contains(['*', '?', '[', '{']) && !rules.may_deny_below("read", &path, places)
        };
        let is_shell = is_shell_builtin(words) && words.iter().all(Option::is_some);
        let named: Option<Vec<&String>> = words.iter().map(Option::as_ref).collect();
        let operands = named.filter(|_| is_look && reads_what_it_names(words));
        let operands: Vec<&String> =
            operands.into_iter().flatten().skip(1).filter(|word| !word.starts_with('-')).collect();
        if is_shell || !operands.is_empty() && operands.into_iter().all(is_clear) {
            return;
        }
        let reason = format!("{what} could reach what {rule} denies, and it can't be kept from it here");
        // A yes beforehand does not take back what somebody denied.
        self.push(DecisionPoint::ask(reason).look().grave());
    }

    /// Whether commands can't reach what a rule denies, however they go about it.
    fn is_masked(&self) -> bool {
        self.policy.level == ConfinementLevel::Full && !self.judged.needs.unconfined
    }

    /// What a rule that allows a program allows of this: not a program of the same name elsewhere, not options that make it
    /// run or obey something else, and without a sandbox only what the rule says word for word, or what only looks.
    fn limit_allow_rule(
        &self,
        point: DecisionPoint,
        words: &[Option<String>],
        is_look: bool,
        reading: &CommandAnalysis,
        folder: &Path,
    ) -> DecisionPoint {
        if point.verdict != PermissionVerdict::Allow {
            return point;
        }
        let rule = point.proof.as_ref().map(|proof| proof.rule.clone()).unwrap_or_default();
        let what = shown(words);
        let program = words.first().and_then(Option::as_deref).unwrap_or_default();
        let is_relative = program.contains('/') && !program.starts_with('/');
        if is_relative && (!reading.folders.is_empty() || folder != self.policy.places.root) {
            return DecisionPoint::ask(format!("{rule} is about another `{program}`"))
                .contained(ContainmentKind::ByConfinement);
        }
        let is_new = |word: &&String| !rule.contains(word.as_str()) && may_run_other_code(program, word);
        if let Some(option) = words.iter().skip(1).flatten().find(is_new) {
            let why = format!("`{option}` may make {program} run something that {rule} does not name");
            return DecisionPoint::ask(why).contained(ContainmentKind::ByConfinement);
        }
        let is_exact = rule.ends_with(&format!("({what})")) || rule == self.tool;
        if self.policy.level == ConfinementLevel::None && !is_look && !is_exact {
            return DecisionPoint::ask(format!(
                "nothing confines `{what}`, and {rule} does not say all of it"
            ))
            .with_suggestion(Rule::new(self.tool, Some(&what), PermissionVerdict::Allow));
        }
        point
    }

    /// A rule for a program is none for the secrets that it is told to read, nor for the home folder.
    fn named_secrets(
        &mut self,
        simple: &SimpleCommand,
        words: &[Option<String>],
        reading: &CommandAnalysis,
        folder: &Path,
    ) {
        let home = self.policy.places.home.clone();
        let could_be = simple.could_be.iter().filter_map(|word| match (word, &home) {
            (ShellWord::Known(text), _) => Some(text.clone()),
            (ShellWord::Home(rest), Some(home)) => Some(format!("{}{rest}", home.display())),
            _ => None,
        });
        let named = named_paths(words).into_iter().chain(could_be);
        for text in named.collect::<Vec<_>>() {
            for path in self.places_of(&text, reading, folder) {
                if is_secret(&path, self.policy.places) || is_hidden(&path, self.policy.places) {
                    let point = self.read("read", &path, ContainmentKind::ByConfinement);
                    self.push(point);
                }
            }
        }
    }

    /// What a looking program's words could mean that can't be known for certain.
    fn look_at_what_it_could_be(&mut self, simple: &SimpleCommand, reading: &CommandAnalysis, folder: &Path) {
        let texts = simple.could_be.iter().filter_map(|word| match (word, &self.policy.places.home) {
            (ShellWord::Known(text) | ShellWord::Pattern(text), _) => Some(text.clone()),
            (ShellWord::Home(rest), Some(home)) => Some(format!("{}{rest}", home.display())),
            _ => None,
        });
        for text in texts.collect::<Vec<_>>() {
            self.look_at_one(&text, reading, folder);
        }
    }

    fn network(&self, what: &str) -> DecisionPoint {
        self.rules(NETWORK_RULE, &RuleSubject::Text(String::new()), &format!("the network, for {what},"))
            .unwrap_or_else(|| {
                let rule = Rule::new(NETWORK_RULE, None, PermissionVerdict::Allow);
                DecisionPoint::ask(format!("{what} goes to the network")).with_suggestion(rule)
            })
    }

    /// What a program that only looks may look at.
    fn look_at(&mut self, words: &[Option<String>], reading: &CommandAnalysis, folder: &Path) {
        self.push(DecisionPoint::allow("it only looks").look());
        // Where it goes has been looked at.
        if words.first().and_then(Option::as_deref) == Some("cd") {
            return;
        }
        for argument in named_paths(words) {
            self.look_at_one(&argument, reading, folder);
        }
    }

    fn look_at_one(&mut self, argument: &str, reading: &CommandAnalysis, folder: &Path) {
        // Where commands are a world of their own, secrets look empty to them.
        if self.policy.level < ConfinementLevel::Full && may_mean_secrets(argument) {
            self.push(DecisionPoint::ask(format!("{argument} may mean files with secrets")).look());
        }
        for path in self.places_of(argument, reading, folder) {
            if self.is_scratch(&path, ContainmentKind::ByConfinement) {
                continue;
            }
            let point = self.read("read", &path, ContainmentKind::ByConfinement);
            if point.verdict != PermissionVerdict::Allow {
                self.push(point);
            }
        }
    }

    fn target(&mut self, target: &CommandTarget, reading: &CommandAnalysis, folder: &Path) {
        let text = match (&target.path, &self.policy.places.home) {
            (ShellWord::Known(text), _) => text.clone(),
            // What is only read is judged by how it is written; what is written could be a file that decides.
            (ShellWord::Pattern(text), _) if target.access == TargetAccess::Read || !may_be_hidden(text) => {
                text.clone()
            }
            (ShellWord::Home(rest), Some(home)) => format!("{}{rest}", home.display()),
            _ => return self.push(DecisionPoint::ask("it can't be known which file it writes")),
        };
        if target.access == TargetAccess::Network {
            self.judged.needs.network = true;
            let point = self.network(&text);
            return self.push(point);
        }
        let tool = if target.access == TargetAccess::Read { "read" } else { "write" };
        let rule = self.policy.rules.denied_paths(tool).next();
        if let (ShellWord::Pattern(pattern), Some(rule), false) = (&target.path, rule, self.is_masked()) {
            let reason = format!("{pattern} may mean what {rule} denies, and it can't be kept from it here");
            self.push(DecisionPoint::ask(reason).look());
        }
        for path in self.places_of(&text, reading, folder) {
            let point = match target.access {
                TargetAccess::Read => self.read("read", &path, ContainmentKind::ByConfinement),
                TargetAccess::Delete => self.delete("write", &path, ContainmentKind::ByConfinement),
                _ => self.write("write", &path, ContainmentKind::ByConfinement),
            };
            self.push(point);
        }
    }

    /// The places that a path may mean: from the folder, or from one that the command goes to.
    fn places_of(&self, text: &str, reading: &CommandAnalysis, folder: &Path) -> Vec<PathBuf> {
        // Who goes to so many places could be anywhere.
        if reading.folders.len() > MAX_FOLLOWED_FOLDERS {
            return vec![PathBuf::from("/").join(text)];
        }
        let mut at = folder.to_owned();
        let gone_to = reading.folders.iter().map(|word| match word {
            ShellWord::Known(to) => {
                let place = normalize_path(&at.join(to).join(text));
                at = self.next_folder(word, &at, folder);
                place
            }
            // Wherever that is, it is not known to be in the project.
            _ => PathBuf::from("/").join(text),
        });
        let mut places: Vec<PathBuf> =
            [normalize_path(&folder.join(text))].into_iter().chain(gone_to).collect();
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
    fn is_scratch(&self, path: &Path, contained: ContainmentKind) -> bool {
        let is_own =
            contained == ContainmentKind::ByConfinement && self.policy.level == ConfinementLevel::Full;
        // A project can be in a folder that the commands have for themselves otherwise.
        is_own
            && !self.policy.places.is_inside(path)
            && ["/tmp", "/var/tmp", "/dev/shm"].iter().any(|scratch| path.starts_with(scratch))
    }

    /// The path as a pattern: from the project, if it is there. None if the path itself looks like one.
    fn shown(&self, path: &Path) -> Option<String> {
        let inside = path.strip_prefix(&self.policy.places.root).ok();
        let shown = inside.map_or_else(|| path.to_owned(), |inside| Path::new(".").join(inside));
        let shown = Some(shown.display().to_string()).filter(|shown| shown.len() <= MAX_SHOWN_PATH_BYTES);
        shown.filter(|shown| !shown.contains(['*', '?', '[', '(', ')', '\n', '\r']))
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

/// What to say of a way out of the sandbox that is not alone.
const UNCONFINED_ALONE_REASON: &str = "one of its programs needs to leave the sandbox, and must be run on its own for that, by its name and without \
                                       variables, pipes or redirections; here it stays confined";

fn changes_settings(what: &str) -> String {
    format!("{what} changes the settings of the repository")
}

/// Why a call gets no credentials.
const CREDENTIALS_ALONE_REASON: &str =
    "they go with one plain command only; run it on its own, without variables, pipes or redirections";
/// Signs by which a command is more than words.
const SHELL_SYNTAX_CHARS: [char; 14] =
    ['>', '<', '|', '&', ';', '`', '$', '(', ')', '{', '}', '\n', '*', '?'];

/// The words of a call that is one plain command by the name of its program, so that it can be run without a shell.
fn plain_words(command: &str, reading: &CommandAnalysis) -> Option<Vec<String>> {
    /// What only a shell can do.
    const OF_SHELLS: [&str; 11] =
        ["command", "exec", "eval", "builtin", "time", ".", "source", "trap", "alias", "cd", "coproc"];
    let mut outermost = reading.commands.iter().filter(|simple| simple.via.is_empty());
    let simple = outermost.next().filter(|simple| simple.assignments.is_empty())?;
    let is_plain = outermost.next().is_none() && reading.unknown.is_empty() && is_without_syntax(command);
    let words: Vec<String> =
        simple.argv.iter().map(|word| word.known().map(str::to_owned)).collect::<Option<_>>()?;
    let program = words.first()?;
    (is_plain && !program.contains('/') && !OF_SHELLS.contains(&program.as_str())).then_some(words)
}

/// Whether a text is words and nothing else. In quotes, signs are part of a word.
fn is_without_syntax(command: &str) -> bool {
    let mut signs = command.chars();
    let mut quote = None;
    while let Some(sign) = signs.next() {
        match (quote, sign) {
            (Some(open), sign) if sign == open => quote = None,
            (Some('\''), _) => {}
            (Some(_), '$' | '`' | '\\') => return false,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(sign),
            (None, '\\') if signs.next().is_none_or(|next| next == '\n') => return false,
            (None, '\\') => {}
            (None, sign) if SHELL_SYNTAX_CHARS.contains(&sign) => return false,
            (None, _) => {}
        }
    }
    quote.is_none()
}

/// Whether a call runs one program, maybe through others that only wrap it.
fn is_one_program(reading: &CommandAnalysis) -> bool {
    let own =
        reading.commands.iter().filter(|simple| !simple.only_runs_others && !simple.argv.is_empty()).count();
    let outermost = reading.commands.iter().filter(|simple| simple.via.is_empty()).count();
    let has_variables = reading.commands.iter().any(|simple| !simple.assignments.is_empty());
    own == 1 && outermost == 1 && !has_variables && reading.unknown.is_empty()
}

/// Programs of which the next word does not say what they do: what they run is in a file, in a text or in an image, or what they
/// do with a key depends on all words. A version behind the name makes no difference: `python3.12`, `php8.2`.
const RUN_ANYTHING_PROGRAMS: &str = "python pypy ipython bpython jupyter node nodejs nodemon deno bun bunx tsx ts-node ruby irb jruby perl php hhvm \
                            lua luajit R Rscript julia octave tclsh wish expect pwsh powershell bash sh zsh dash ash ksh mksh pdksh \
                            yash csh tcsh fish rc es elvish nu xonsh busybox toybox java jshell groovy kotlin scala clojure clj dotnet mono \
                            csi guile racket scheme sbcl clisp ghci runghc runhaskell stack ocaml elixir iex erl escript swift crystal nim \
                            raku gdb lldb env xargs parallel ssh awk gawk mawk nawk sed gsed ed vi vim nvim emacs find fd eval source . \
                            docker podman nerdctl kubectl helm aws gcloud az gh glab npx pnpx uvx pipx sudo doas su runuser timeout nice nohup \
                            setsid stdbuf time watch entr strace ltrace script unshare chroot nsenter systemd-run flatpak snap \
                            curl wget rsync scp sftp nc ncat socat psql mysql mariadb sqlite sqlite3 mongosh mongo redis-cli duckdb \
                            systemctl crontab at terraform tofu pulumi ansible ansible-playbook nix nix-shell osascript \
                            gpg gpg2 age openssl pass vault op bw secret-tool keyring security ssh-add ssh-keygen";

/// Programs that run another one behind a verb, in an environment of their own.
const RUNNER_VERBS: [&str; 10] =
    ["run", "run-script", "exec", "x", "dlx", "shell", "develop", "env", "which", "tool"];

/// Whether a program runs whatever it is told, by its name without folder and version.
fn runs_anything(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program);
    let bare = name.trim_end_matches(|sign: char| sign.is_ascii_digit() || matches!(sign, '.' | '-' | '_'));
    let is_listed = |name: &str| RUN_ANYTHING_PROGRAMS.split_whitespace().any(|own| own == name);
    is_listed(name) || is_listed(bare) || ["python", "pypy"].iter().any(|start| name.starts_with(start))
}

/// A rule for these very words, if they can be written as one.
fn exact_rule(tool: &str, words: &[Option<String>]) -> Option<Rule> {
    let all: Vec<&str> = words.iter().map(Option::as_deref).collect::<Option<_>>()?;
    let is_plain = |word: &&str| {
        !word.is_empty()
            && word.chars().all(|letter| letter.is_alphanumeric() || "%+,-./:=@_^~#".contains(letter))
    };
    all.iter().all(is_plain).then(|| Rule::new(tool, Some(&all.join(" ")), PermissionVerdict::Allow))
}

/// The smallest rule that would have allowed this command: its program with its verb and whatever follows, if the verb says what
/// it does; else these very words.
fn suggestion(tool: &str, words: &[Option<String>]) -> Option<Rule> {
    let is_verb = |word: &str| {
        !word.starts_with('-')
            && word.chars().all(|letter| letter.is_alphanumeric() || "-_:".contains(letter))
    };
    let program = words.first()?.as_deref().filter(|program| !program.contains([' ', '*', '?', '(', ')']))?;
    // What is done elsewhere in the user's name is meant as it stands.
    if runs_anything(program) || acts_as_user(words) {
        return exact_rule(tool, words);
    }
    // Where options come first, the verb is not known, and the program alone would be too much.
    let is_verbed = ["git", "npm", "pnpm", "yarn", "cargo", "go", "pip"];
    let is_option = |word: &Option<String>| word.as_ref().is_none_or(|word| word.starts_with(['-', '+']));
    if is_verbed.contains(&program) && words.get(1).is_some_and(is_option) {
        return None;
    }
    let verb = words.get(1).and_then(Option::as_deref).filter(|word| is_verb(word));
    // `npm run` runs whatever follows.
    let third = words.get(2).and_then(Option::as_deref).filter(|word| is_verb(word));
    // `uv run python x.py` runs what `python x.py` does.
    if verb.is_some_and(|verb| RUNNER_VERBS.contains(&verb))
        && words.iter().skip(2).flatten().any(|word| runs_anything(word))
    {
        return exact_rule(tool, words);
    }
    let start = match (verb, third) {
        (Some(verb @ ("run" | "run-script" | "exec" | "x" | "dlx")), Some(third)) => {
            format!("{program} {verb} {third}")
        }
        (Some("run" | "run-script" | "exec" | "x" | "dlx"), None) if words.len() > 2 => return None,
        (Some(verb), _) => format!("{program} {verb}"),
        (None, _) => program.to_owned(),
    };
    Some(Rule::new(tool, Some(&format!("{start}:*")), PermissionVerdict::Allow))
}

/// Whether an argument may make a program run, load or obey something that its name does not say.
fn may_run_other_code(program: &str, word: &str) -> bool {
    const PARTS: [&str; 26] = [
        "exec",
        "command",
        "cmd",
        "shell",
        "program",
        "hook",
        "plugin",
        "wrapper",
        "editor",
        "pager",
        "helper",
        "rsh",
        "preload",
        "interpreter",
        "config",
        "askpass",
        "loader",
        "require",
        "import",
        "toolexec",
        "init-file",
        "rcfile",
        "filter",
        "viewer",
        "options",
        "agent",
    ];
    // Short options of compilers by which they find their parts elsewhere.
    let is_compiler = matches!(program, "cc" | "gcc" | "g++" | "c++" | "clang" | "clang++" | "ld" | "rustc");
    if is_compiler
        && (word.starts_with("-B")
            || word.starts_with("-specs")
            || word.starts_with("-f") && word.contains("plugin"))
    {
        return true;
    }
    // `make CC=./x`, `cmake -DCMAKE_C_COMPILER=./x`.
    let is_make = matches!(program, "make" | "gmake" | "cmake" | "ninja" | "meson");
    if is_make
        && (word.contains('=') && !word.starts_with("-j")
            || word.starts_with("--eval")
            || word.starts_with("-f"))
    {
        return true;
    }
    let name = word.split('=').next().unwrap_or_default().to_lowercase();
    name.starts_with("--") && PARTS.iter().any(|part| name.contains(part))
}

/// A path in one line, which may be a text that was taken for one.
fn brief(path: &Path) -> String {
    let text = path.display().to_string().replace(['\n', '\r'], "⏎");
    match text.char_indices().nth(MAX_SHOWN_PATH_BYTES / 2) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

fn subject(path: &Path, is_secret: bool) -> RuleSubject {
    if is_secret { RuleSubject::Secret(path.to_owned()) } else { RuleSubject::Path(path.to_owned()) }
}

/// What a variable means for the programs that see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VariableEffect {
    /// It is known to change nothing but words and sizes.
    Harmless,
    /// Some program may obey it: what that runs is as confined as the rest.
    MayInfluence,
    /// It decides which programs run, or where they are found.
    ChoosesPrograms,
}

/// The list of those that programs obey never ends, so it is those that nobody obeys that are listed.
fn variable_effect(name: &str) -> VariableEffect {
    const HARMLESS: &str = "LANG LANGUAGE TZ TERM COLUMNS LINES CI DEBUG VERBOSE V NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE PORT \
                            HOST NODE_ENV RAILS_ENV RACK_ENV APP_ENV FLASK_ENV FLASK_DEBUG RUST_BACKTRACE RUST_LOG RUST_TEST_THREADS \
                            CARGO_TARGET_DIR CARGO_TERM_COLOR CARGO_INCREMENTAL CARGO_NET_OFFLINE GOOS GOARCH CGO_ENABLED GOMAXPROCS \
                            PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONUTF8 PYTHONIOENCODING OMP_NUM_THREADS \
                            DEBIAN_FRONTEND INSTA_UPDATE UPDATE_SNAPSHOTS PROPTEST_CASES TMPDIR SOURCE_DATE_EPOCH CMAKE_BUILD_TYPE \
                            REPLY OPTARG OPTIND PWD";
    const DECIDES: &str = "PATH IFS HOME SHELL ENV BASH_ENV ZDOTDIR PROMPT_COMMAND CDPATH SUDO_EDITOR BROWSER SSH_ASKPASS SUDO_ASKPASS \
                           LESSOPEN LESSCLOSE RSYNC_RSH TAR_OPTIONS MAKEFILES GNUMAKEFLAGS RUSTC RUSTDOC CARGO CARGO_HOME RUSTUP_HOME \
                           GCONV_PATH RIPGREP_CONFIG_PATH PYTHONHOME PYTHONSTARTUP VIMINIT EXINIT JAVA_HOME M2_HOME KUBECONFIG \
                           AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE DOCKER_HOST DOCKER_CONFIG";
    const STARTS: [&str; 6] = ["LD_", "DYLD_", "GIT_", "BASH_FUNC_", "XDG_CONFIG_", "npm_config_"];
    const ENDS: [&str; 5] = ["_PRELOAD", "_WRAPPER", "_RUNNER", "_LINKER", "_RUSTC"];
    const EVERYDAY: [&str; 5] =
        ["GIT_PAGER", "GIT_EDITOR", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"];
    let is_in = |list: &str| list.split_whitespace().any(|own| own == name);
    let decides = is_in(DECIDES)
        || STARTS.iter().any(|start| name.starts_with(start))
        || ENDS.iter().any(|end| name.ends_with(end));
    let is_own = name.chars().all(|letter| letter.is_lowercase() || letter.is_ascii_digit() || letter == '_');
    match name {
        _ if is_in(HARMLESS) || name.starts_with("LC_") => VariableEffect::Harmless,
        _ if decides && !EVERYDAY.contains(&name) => VariableEffect::ChoosesPrograms,
        // Small letters are those of the command itself.
        _ if is_own && !name.contains("proxy") => VariableEffect::Harmless,
        _ => VariableEffect::MayInfluence,
    }
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
