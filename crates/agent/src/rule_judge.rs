//! Decides by the rules, and where those ask, by a person.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use helve_permissions::{
    AgentRights, ConfinementLevel, LayeredRules, PermissionVerdict, PolicyDecision, ProjectContext, Rule,
    RuleLayer, effects,
};
use helve_protocol::{
    ApprovalAnswer, ApprovalId, ApprovalRequested, ApprovalResolved, CallId, ErrorRaised, PermissionMode,
    ToolAction,
};
use helve_tools::{AccessTest, DeniedPaths, FileAccess, HiddenPathTest, PathTest};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::boxed_future::BoxFuture;
use crate::judge::{
    ApprovalWeight, CallDecision, CallJudge, CallJudgement, JudgedSession, PendingApproval,
    PermissionQuestion,
};
use crate::linked_files::LinkedFiles;
use crate::recorder::{Recorder, SessionError};
use crate::scope;
use crate::spec::SessionSpec;

const REPEATED_CALL_REASON: &str = "it is the same call as twice before";

/// The rules that hold besides those of the session.
pub trait Rulebook: Send + Sync {
    /// Reads them anew: they may have changed.
    fn read(&self) -> Result<RuleSet, String>;
    /// Keeps rules that allow something in this project from now on.
    fn keep(&self, rules: &[Rule]) -> Result<(), String>;
}

/// What a rulebook says.
#[derive(Clone, Debug)]
pub struct RuleSet {
    pub rules: LayeredRules,
    /// No mode may be looser.
    pub loosest: PermissionMode,
    /// More files than this are never deleted unasked.
    pub max_deletes: usize,
}

impl Default for RuleSet {
    fn default() -> RuleSet {
        RuleSet { rules: LayeredRules::default(), loosest: PermissionMode::Bypass, max_deletes: 100 }
    }
}

/// Where calls are judged.
#[derive(Clone, Debug)]
pub struct JudgeContext {
    pub places: ProjectContext,
    /// How well commands are confined.
    pub level: ConfinementLevel,
}

/// Decides by the rules of the settings, those of the session, and whoever answers what they ask.
pub(crate) struct RuleJudge {
    /// Without it there are no rules, and commands are not confined.
    settings: Option<(Arc<dyn Rulebook>, JudgeContext)>,
    approver: Approver,
    /// What the rulebook last said.
    read: Mutex<RuleSet>,
    linked: Arc<LinkedFiles>,
}

/// Who answers what the rules ask.
pub(crate) enum Approver {
    /// The user said yes to everything beforehand.
    AlwaysYes,
    /// There is nobody to ask, so it is refused.
    Nobody,
    Person(ApprovalWaiters),
    /// Somebody who answers at once.
    Callback(ApprovalCallback),
}

/// Asks somebody, and comes back with the answer.
pub type ApprovalCallback = Arc<dyn Fn(&ApprovalRequested) -> ApprovalAnswer + Send + Sync>;

/// Questions that wait for their answers.
#[derive(Debug, Default)]
pub(crate) struct ApprovalWaiters(Mutex<HashMap<ApprovalId, oneshot::Sender<ApprovalAnswer>>>);

impl ApprovalWaiters {
    fn ask(&self, approval: ApprovalId) -> oneshot::Receiver<ApprovalAnswer> {
        let (sender, receiver) = oneshot::channel();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(approval, sender);
        receiver
    }

    fn take(&self, approval: ApprovalId) -> Option<oneshot::Sender<ApprovalAnswer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&approval)
    }
}

impl RuleJudge {
    pub(crate) fn new(approver: Approver, settings: Option<(Arc<dyn Rulebook>, JudgeContext)>) -> RuleJudge {
        RuleJudge { settings, approver, read: Mutex::default(), linked: Arc::default() }
    }

    fn read(&self) -> MutexGuard<'_, RuleSet> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a session may do: by all rules, by what a person allowed in it, and never more than the session that started it.
    fn rights(&self, session: &JudgedSession<'_>) -> AgentRights {
        let JudgedSession { record, spec } = session;
        let RuleSet { mut rules, loosest, .. } = self.read().clone();
        let (allowed, mode) = record.state(|state| (state.allowed.clone(), state.mode));
        for rule in allowed.iter().filter_map(|text| Rule::parse(text, PermissionVerdict::Allow).ok()) {
            rules.add(RuleLayer::Session, "allowed in this session", rule);
        }
        rules.extend(&spec.rules);
        let mode = mode.min(loosest);
        match &spec.parent {
            Some(parent) => {
                let parent = JudgedSession { record: &parent.record, spec: &parent.spec };
                self.rights(&parent).child(rules, mode)
            }
            None => {
                let (places, level) = self.places_of(session);
                AgentRights::new(rules, mode, places, level)
            }
        }
    }

    fn places_of(&self, session: &JudgedSession<'_>) -> (ProjectContext, ConfinementLevel) {
        match &self.settings {
            Some((_, JudgeContext { places, level })) => (places.clone(), *level),
            None => {
                let SessionSpec { root, added, .. } = session.spec;
                let places = ProjectContext { added: added.clone(), ..ProjectContext::of(root) };
                (places, ConfinementLevel::None)
            }
        }
    }

    fn level(&self) -> ConfinementLevel {
        self.settings.as_ref().map_or(ConfinementLevel::None, |(_, context)| context.level)
    }

    fn home(&self) -> Option<&Path> {
        self.settings.as_ref().and_then(|(_, context)| context.places.home.as_deref())
    }

    /// Keeps rules for the project, or says that they hold for the session only.
    fn save_rules(&self, rules: &[Rule], record: &Recorder) -> Result<(), SessionError> {
        let saved = match &self.settings {
            None => Err("this session has no place for rules".to_owned()),
            Some((book, _)) => book.keep(rules).and_then(|()| book.read()).map(|read| *self.read() = read),
        };
        match saved {
            Ok(()) => Ok(()),
            Err(why) => record.emit(ErrorRaised {
                what: "the rule could not be kept for the project".to_owned(),
                why,
                hint: "It holds for this session.".to_owned(),
                is_about_keys: false,
            }),
        }
    }

    async fn ask_person(
        &self,
        call: CallId,
        pending: PendingApproval,
        diff: Option<String>,
        record: &Recorder,
        stop: &CancellationToken,
    ) -> Result<CallDecision, SessionError> {
        let approval: ApprovalId = record.draw();
        let PendingApproval { effects, reason, rules, needs } = pending;
        let written = rules.iter().map(ToString::to_string).collect();
        let request = ApprovalRequested { approval, call, effects, reason, diff, rules: written };
        let Some(answer) = self.approver.answer(request, record, stop).await? else {
            return Ok(CallDecision::Interrupted);
        };
        record.emit(ApprovalResolved { approval, answer: answer.clone() })?;
        if answer == ApprovalAnswer::Project && !rules.is_empty() {
            self.save_rules(&rules, record)?;
        }
        Ok(match answer {
            ApprovalAnswer::Once | ApprovalAnswer::Session | ApprovalAnswer::Project => {
                CallDecision::Allowed(needs)
            }
            ApprovalAnswer::Reject { message } => {
                CallDecision::Refused(message.unwrap_or_else(|| "the user does not want this".to_owned()))
            }
        })
    }
}

impl CallJudge for RuleJudge {
    fn judge(&self, question: &PermissionQuestion<'_>, session: &JudgedSession<'_>) -> CallJudgement {
        let root = &session.spec.root;
        let rights = self.rights(session);
        let is_nested = scope::is_in_nested_repository(question.real_actions, root);
        let rights = rights
            .with_nested_repository(is_nested)
            .with_git_folders(scope::git_folders_around(question.real_actions));
        let actions = self.linked.with_other_names(question.real_actions, &rights);
        let mut decision = rights.decide(question.tool, &actions);
        let is_free = rights.mode() == PermissionMode::Bypass;
        let most = self.read().max_deletes;
        if decision.verdict != PermissionVerdict::Deny
            && !is_free
            && scope::is_more_than(&decision.deletes, most)
        {
            decision.verdict = PermissionVerdict::Ask;
            decision.is_grave = true;
            decision.suggestions.clear();
            decision.reason = format!("it would delete more than {most} files");
        }
        let is_same_again = question.weight == ApprovalWeight::DoomLoop;
        let refused = |why: String| CallJudgement::Settled(CallDecision::Refused(why));
        match (decision.verdict, &self.approver) {
            (PermissionVerdict::Deny, _) => refused(decision.reason),
            (PermissionVerdict::Allow, _) if !is_same_again => {
                CallJudgement::Settled(CallDecision::Allowed(decision.needs))
            }
            (PermissionVerdict::Ask, Approver::AlwaysYes) if !is_same_again && !decision.is_grave => {
                CallJudgement::Settled(CallDecision::Allowed(decision.needs))
            }
            (_, Approver::Person(_) | Approver::Callback(_)) => {
                let reason = if is_same_again { REPEATED_CALL_REASON.to_owned() } else { decision.reason };
                let rules = if is_same_again { Vec::new() } else { decision.suggestions };
                let mut needs = decision.needs;
                let mut lines: Vec<String> =
                    std::iter::once(question.intent.clone()).chain(effects(&question.actions)).collect();
                lines.extend(
                    needs.credentials.iter().map(|program| format!("gives {program} your credentials")),
                );
                if question.actions.iter().any(|action| matches!(action, ToolAction::Run { .. })) {
                    let (plain, places) = (decision.plain.as_ref(), (self.home(), root.as_path()));
                    lines.extend(scope::widen_access(&mut needs, plain, self.level(), places));
                }
                CallJudgement::NeedsApproval(PendingApproval { effects: lines, reason, rules, needs })
            }
            _ if is_same_again => refused(format!(
                "{REPEATED_CALL_REASON}, with the same result, and nobody is there to be asked. Try another way."
            )),
            (_, Approver::AlwaysYes) => {
                let rule = decision.suggestions.first().map(|rule| format!(", the rule `{rule}`"));
                let or = rule.unwrap_or_default();
                refused(format!("{}: that takes a person to say yes{or} or the mode bypass", decision.reason))
            }
            (_, Approver::Nobody) => refused(unasked(&decision)),
        }
    }

    fn ask<'a>(
        &'a self,
        call: CallId,
        pending: PendingApproval,
        diff: Option<String>,
        record: &'a Recorder,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<CallDecision, SessionError>> {
        Box::pin(self.ask_person(call, pending, diff, record, stop))
    }

    fn answer(&self, approval: ApprovalId, answer: ApprovalAnswer) -> Result<(), &'static str> {
        let waiting = match &self.approver {
            Approver::Person(approvals) => approvals.take(approval),
            Approver::AlwaysYes | Approver::Nobody | Approver::Callback(_) => None,
        };
        let waiting = waiting.ok_or("nobody waits for this answer (any more)")?;
        // Whoever asked may have been interrupted meanwhile.
        waiting.send(answer).map_err(|_| "the question was withdrawn")
    }

    fn refresh(&self, record: &Recorder) -> Result<(), SessionError> {
        let Some((book, _)) = &self.settings else { return Ok(()) };
        match book.read() {
            Ok(read) => {
                *self.read() = read;
                Ok(())
            }
            Err(why) => record.emit(ErrorRaised {
                what: "the settings can't be read".to_owned(),
                why,
                hint: "The rules stay as they were. `helve config show` says what is wrong.".to_owned(),
                is_about_keys: false,
            }),
        }
    }

    fn loosest_mode(&self) -> PermissionMode {
        self.read().loosest
    }

    fn hidden_path_test(&self, session: &JudgedSession<'_>) -> HiddenPathTest {
        let (linked, rights) = (self.linked.clone(), self.rights(session));
        Arc::new(move |path: &Path| {
            let reads = linked.with_other_names(&[ToolAction::Read(path.to_owned())], &rights);
            rights.decide("read", &reads).verdict != PermissionVerdict::Allow
        })
    }

    fn denied_paths(&self, session: &JudgedSession<'_>) -> DeniedPaths {
        let root = &session.spec.root;
        let rights = self.rights(session);
        let places = rights.places();
        let denying = |tool: &str| -> Vec<Rule> { rights.denied_paths(tool).cloned().collect() };
        let (reads, writes) = (denying("read"), denying("write"));
        let key = reads.iter().chain(&writes).map(|rule| format!("{rule}\n")).collect();
        let bases = reads.iter().filter_map(|rule| rule.fixed_part(places));
        let is_elsewhere =
            |base: &PathBuf| base.parent().is_some() && !places.is_inside(base) && !root.starts_with(base);
        let elsewhere = bases.filter(is_elsewhere).collect();
        let test = |tool: &'static str, is_needed: bool| -> Option<PathTest> {
            let rights = rights.clone();
            is_needed.then(|| Arc::new(move |path: &Path| rights.denies(tool, path)) as PathTest)
        };
        DeniedPaths {
            reads: test("read", !reads.is_empty()),
            writes: test("write", !writes.is_empty()),
            elsewhere,
            key,
        }
    }

    fn access_test(&self, tool: &str, judged: Vec<ToolAction>, session: &JudgedSession<'_>) -> AccessTest {
        let (linked, rights) = (self.linked.clone(), self.rights(session));
        let tool = tool.to_owned();
        Arc::new(move |access, path| {
            let (action, is_judged) = match access {
                FileAccess::Read => {
                    let read = ToolAction::Read(path.to_owned());
                    let is_judged = judged.contains(&read);
                    (read, is_judged)
                }
                FileAccess::Write => {
                    let write = ToolAction::Write(path.to_owned());
                    let is_judged =
                        judged.contains(&write) || judged.contains(&ToolAction::Delete(path.to_owned()));
                    (write, is_judged)
                }
            };
            let is_free = || {
                let around = scope::git_folders_around(std::slice::from_ref(&action));
                let rights = rights.clone().with_git_folders(around);
                let actions = linked.with_other_names(std::slice::from_ref(&action), &rights);
                rights.decide(&tool, &actions).verdict == PermissionVerdict::Allow
            };
            is_judged || is_free()
        })
    }
}

impl Approver {
    /// What is answered; none if the question is withdrawn.
    async fn answer(
        &self,
        request: ApprovalRequested,
        record: &Recorder,
        stop: &CancellationToken,
    ) -> Result<Option<ApprovalAnswer>, SessionError> {
        let approval = request.approval;
        match self {
            Approver::AlwaysYes | Approver::Nobody => Ok(None),
            Approver::Callback(ask) => {
                record.emit(request.clone())?;
                Ok(Some(ask(&request)))
            }
            Approver::Person(approvals) => {
                let answer = approvals.ask(approval);
                record.emit(request)?;
                Ok(tokio::select! {
                    biased;
                    () = stop.cancelled() => {
                        approvals.take(approval);
                        None
                    }
                    answer = answer => Some(answer.unwrap_or(ApprovalAnswer::Reject { message: None })),
                })
            }
        }
    }
}

/// Why something is refused that a person could have allowed, and how that can be said beforehand.
fn unasked(decision: &PolicyDecision) -> String {
    let rules: Vec<String> = decision.suggestions.iter().map(|rule| format!("--allow '{rule}'")).collect();
    let how = match rules.is_empty() {
        true => String::new(),
        false => format!(" (the user can allow it with {})", rules.join(" ")),
    };
    format!("{}, and nobody is there to be asked{how}", decision.reason)
}
