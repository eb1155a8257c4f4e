//! Who decides before something is done: the rules, and where those ask, a person.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use helve_permissions::{
    AgentRights, ConfinementLevel, LayeredRules, PermissionVerdict, ProjectContext, Rule, RuleLayer, effects,
};
use helve_protocol::{
    ApprovalAnswer, ApprovalId, ApprovalRequested, ApprovalResolved, CallId, CallPermissions, ErrorRaised,
    PermissionMode, SessionState, ToolAction,
};
use helve_tools::{AccessTest, DeniedPaths, FileAccess, HiddenPathTest, PathTest};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::recorder::{Recorder, SessionError};
use crate::replay::ReplayTape;
use crate::scope;

/// What happens to a call, and whom the model can ask.
#[derive(Clone)]
pub struct PermissionGate {
    judge: DecisionSource,
    person: Option<Arc<QuestionWaiters>>,
}

#[derive(Clone)]
enum DecisionSource {
    Rules(Arc<RuleGate>),
    /// It was decided when the session was recorded.
    Tape(Arc<ReplayTape>),
}

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

struct RuleGate {
    /// Set once, before anything is judged.
    by: OnceLock<(Arc<dyn Rulebook>, JudgeContext)>,
    who: Approver,
    /// What the book last said.
    read: Mutex<RuleSet>,
}

/// Who answers what the rules ask.
enum Approver {
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
struct ApprovalWaiters(Mutex<HashMap<ApprovalId, oneshot::Sender<ApprovalAnswer>>>);

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

/// What the model asked, by the calls that asked it.
#[derive(Debug, Default)]
struct QuestionWaiters(Mutex<HashMap<CallId, oneshot::Sender<String>>>);

impl QuestionWaiters {
    fn open(&self) -> MutexGuard<'_, HashMap<CallId, oneshot::Sender<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a call is about.
pub(crate) struct PermissionQuestion<'a> {
    pub(crate) call: CallId,
    pub(crate) tool: &'a str,
    pub(crate) intent: String,
    pub(crate) actions: Vec<ToolAction>,
    /// The same, and what they amount to where a path leads elsewhere.
    pub(crate) real_actions: &'a [ToolAction],
    pub(crate) weight: ApprovalWeight,
    pub(crate) root: &'a Path,
    pub(crate) added: &'a [PathBuf],
}

/// Whether a general yes is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApprovalWeight {
    Ordinary,
    /// The same call over and over: only a person can tell whether that has sense.
    DoomLoop,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallDecision {
    /// With what it may do beyond what any call may.
    Allowed(CallPermissions),
    Refused(String),
    Interrupted,
    /// It could not be done anyway, for the reason that the model is told.
    Impossible(String),
}

/// What the rules say of a call.
pub(crate) enum CallJudgement {
    Settled(CallDecision),
    /// A person has to say.
    NeedsApproval(PendingApproval),
}

/// What a person is asked.
pub(crate) struct PendingApproval {
    effects: Vec<String>,
    reason: String,
    rules: Vec<Rule>,
    needs: CallPermissions,
}

impl PendingApproval {
    pub(crate) fn needs(&self) -> &CallPermissions {
        &self.needs
    }
}

const REPEATED_CALL_REASON: &str = "it is the same call as twice before";

impl PermissionGate {
    /// What the rules ask is allowed.
    pub fn open() -> PermissionGate {
        PermissionGate::of(Approver::AlwaysYes)
    }

    /// What the rules ask is refused, for there is nobody to ask.
    pub fn answering_no() -> PermissionGate {
        PermissionGate::of(Approver::Nobody)
    }

    /// A person is asked.
    pub fn asking_person() -> PermissionGate {
        PermissionGate::of(Approver::Person(ApprovalWaiters::default())).with_person()
    }

    /// Somebody is asked who answers at once.
    pub fn asking_callback(ask: ApprovalCallback) -> PermissionGate {
        PermissionGate::of(Approver::Callback(ask))
    }

    fn of(who: Approver) -> PermissionGate {
        let ruled = RuleGate { by: OnceLock::new(), who, read: Mutex::default() };
        PermissionGate { judge: DecisionSource::Rules(Arc::new(ruled)), person: None }
    }

    /// Decides by these rules, on these grounds. Without, there are no rules, and commands are not confined.
    #[must_use]
    pub fn with_rules(self, book: Arc<dyn Rulebook>, grounds: JudgeContext) -> PermissionGate {
        if let DecisionSource::Rules(ruled) = &self.judge {
            let _ = ruled.by.set((book, grounds));
        }
        self
    }

    /// Whatever is allowed: a person is there whom the model can ask.
    #[must_use]
    pub fn with_person(self) -> PermissionGate {
        PermissionGate { person: Some(Arc::default()), ..self }
    }

    pub fn has_person(&self) -> bool {
        self.person.is_some()
    }

    /// Where the answer to what a call asks will come; none if nobody is there.
    pub(crate) fn question(&self, call: CallId) -> Option<oneshot::Receiver<String>> {
        let (sender, receiver) = oneshot::channel();
        self.person.as_ref()?.open().insert(call, sender);
        Some(receiver)
    }

    pub(crate) fn withdraw(&self, call: CallId) {
        self.person.iter().for_each(|questions| drop(questions.open().remove(&call)));
    }

    /// Answers what a call asked, or tells it that nobody will.
    pub(crate) fn reply(&self, call: CallId, text: Option<String>) -> Result<(), &'static str> {
        let waiting = self.person.as_ref().and_then(|questions| questions.open().remove(&call));
        let waiting = waiting.ok_or("nobody waits for this answer (any more)")?;
        match text {
            Some(text) => waiting.send(text).map_err(|_| "the question was withdrawn"),
            None => Ok(()),
        }
    }

    pub(crate) fn recorded(tape: Arc<ReplayTape>) -> PermissionGate {
        PermissionGate { judge: DecisionSource::Tape(tape), person: None }
    }

    /// Answers a question. An answer that comes too late, or twice, changes nothing, and says so.
    pub(crate) fn answer(&self, approval: ApprovalId, answer: ApprovalAnswer) -> Result<(), &'static str> {
        let waiting = match &self.judge {
            DecisionSource::Rules(ruled) => match &ruled.who {
                Approver::Person(approvals) => approvals.take(approval),
                Approver::AlwaysYes | Approver::Nobody | Approver::Callback(_) => None,
            },
            DecisionSource::Tape(_) => None,
        };
        let waiting = waiting.ok_or("nobody waits for this answer (any more)")?;
        // Whoever asked may have been interrupted meanwhile.
        waiting.send(answer).map_err(|_| "the question was withdrawn")
    }

    /// Reads the rules anew. Those that can't be read leave the last ones in force.
    pub(crate) fn refresh(&self, record: &Recorder) -> Result<(), SessionError> {
        let DecisionSource::Rules(ruled) = &self.judge else { return Ok(()) };
        match ruled.by.get().map(|(book, _)| book.read()) {
            None => Ok(()),
            Some(Ok(book)) => {
                *ruled.read() = book;
                Ok(())
            }
            Some(Err(why)) => record.tell(ErrorRaised {
                what: "the settings can't be read".to_owned(),
                why,
                hint: "The rules stay as they were. `helve config show` says what is wrong.".to_owned(),
                is_about_keys: false,
            }),
        }
    }

    /// The loosest mode that the administrator allows.
    pub(crate) fn loosest(&self) -> PermissionMode {
        match &self.judge {
            DecisionSource::Rules(ruled) => ruled.read().loosest,
            DecisionSource::Tape(_) => PermissionMode::Bypass,
        }
    }

    /// Which files are shown only to whoever asks for them by name.
    pub(crate) fn hides(&self, record: &Recorder, root: &Path, added: &[PathBuf]) -> HiddenPathTest {
        let DecisionSource::Rules(ruled) = &self.judge else { return Arc::new(|_| false) };
        let rights = record.state(|state| ruled.rights(state, root, added));
        Arc::new(move |path: &Path| {
            rights.decide("read", &[ToolAction::Read(path.to_owned())]).verdict != PermissionVerdict::Allow
        })
    }

    /// Which paths are denied to commands, whatever they run.
    pub(crate) fn denied(&self, record: &Recorder, root: &Path, added: &[PathBuf]) -> DeniedPaths {
        let DecisionSource::Rules(ruled) = &self.judge else { return DeniedPaths::default() };
        let rights = record.state(|state| ruled.rights(state, root, added));
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

    /// What a call may do with what it finds: what was judged before, and what needs no asking. A path may lead elsewhere by
    /// the time it is opened.
    pub(crate) fn allows(
        &self,
        record: &Recorder,
        tool: &str,
        judged: Vec<ToolAction>,
        (root, added): (&Path, &[PathBuf]),
    ) -> AccessTest {
        let DecisionSource::Rules(ruled) = &self.judge else { return Arc::new(|_, _| true) };
        let rights = record.state(|state| ruled.rights(state, root, added));
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
            is_judged || rights.decide(&tool, &[action]).verdict == PermissionVerdict::Allow
        })
    }

    /// What the rules say of a call.
    pub(crate) fn judge(&self, question: &PermissionQuestion<'_>, record: &Recorder) -> CallJudgement {
        let ruled = match &self.judge {
            DecisionSource::Tape(tape) => return CallJudgement::Settled(tape.decision(question.call)),
            DecisionSource::Rules(ruled) => ruled,
        };
        let rights = record.state(|state| ruled.rights(state, question.root, question.added));
        let is_nested = scope::is_in_nested_repository(question.real_actions, question.root);
        let rights = rights.with_nested_repository(is_nested);
        let mut decision = rights.decide(question.tool, question.real_actions);
        let is_free = rights.mode() == PermissionMode::Bypass;
        let most = ruled.read().max_deletes;
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
        match (decision.verdict, &ruled.who) {
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
                    lines.extend(scope::widen_access(&mut needs, ruled.home(), question.root));
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

    /// Asks a person.
    pub(crate) async fn ask(
        &self,
        call: CallId,
        opened: PendingApproval,
        diff: Option<String>,
        record: &Recorder,
        stop: &CancellationToken,
    ) -> Result<CallDecision, SessionError> {
        let DecisionSource::Rules(ruled) = &self.judge else { return Ok(CallDecision::Interrupted) };
        let approval: ApprovalId = record.draw();
        let PendingApproval { effects, reason, rules, needs } = opened;
        let written = rules.iter().map(ToString::to_string).collect();
        let request = ApprovalRequested { approval, call, effects, reason, diff, rules: written };
        let Some(answer) = ruled.who.answer(request, record, stop).await? else {
            return Ok(CallDecision::Interrupted);
        };
        record.tell(ApprovalResolved { approval, answer: answer.clone() })?;
        if answer == ApprovalAnswer::Project && !rules.is_empty() {
            ruled.keep(&rules, record)?;
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
                record.tell(request.clone())?;
                Ok(Some(ask(&request)))
            }
            Approver::Person(approvals) => {
                let answer = approvals.ask(approval);
                record.tell(request)?;
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

impl RuleGate {
    fn read(&self) -> MutexGuard<'_, RuleSet> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the session may do: by all rules, and by what a person allowed in it.
    fn rights(&self, state: &SessionState, root: &Path, added: &[PathBuf]) -> AgentRights {
        let RuleSet { mut rules, loosest, .. } = self.read().clone();
        for text in &state.allowed {
            if let Ok(rule) = Rule::parse(text, PermissionVerdict::Allow) {
                rules.add(RuleLayer::Session, "allowed in this session", rule);
            }
        }
        let (places, level) = match self.by.get() {
            Some((_, JudgeContext { places, level })) => (places.clone(), *level),
            None => (
                ProjectContext { added: added.to_owned(), ..ProjectContext::of(root) },
                ConfinementLevel::None,
            ),
        };
        AgentRights::new(rules, state.mode.min(loosest), places, level)
    }

    fn home(&self) -> Option<&Path> {
        self.by.get().and_then(|(_, grounds)| grounds.places.home.as_deref())
    }

    fn keep(&self, rules: &[Rule], record: &Recorder) -> Result<(), SessionError> {
        let kept = self.by.get().map_or_else(
            || Err("this session has no place for rules".to_owned()),
            |(book, _)| {
                book.keep(rules)?;
                *self.read() = book.read()?;
                Ok(())
            },
        );
        match kept {
            Ok(()) => Ok(()),
            Err(why) => record.tell(ErrorRaised {
                what: "the rule could not be kept for the project".to_owned(),
                why,
                hint: "It holds for this session.".to_owned(),
                is_about_keys: false,
            }),
        }
    }
}

/// Why something is refused that a person could have allowed, and how that can be said beforehand.
fn unasked(decision: &helve_permissions::PolicyDecision) -> String {
    let rules: Vec<String> = decision.suggestions.iter().map(|rule| format!("--allow '{rule}'")).collect();
    let how = match rules.is_empty() {
        true => String::new(),
        false => format!(" (the user can allow it with {})", rules.join(" ")),
    };
    format!("{}, and nobody is there to be asked{how}", decision.reason)
}
