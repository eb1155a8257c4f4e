//! What happens to a call: the rules, the mode, and how well commands are confined here make one decision, with its reason.
//!
//! | what | happens |
//! |---|---|
//! | a rule denies it, in any layer | refused |
//! | plan mode, and it is more than looking | refused |
//! | Helve's own settings are written | asked, in every mode |
//! | bypass mode | run, unless the administrator denies it |
//! | settings, hooks and rules that decide what may be done (`.git`, `.helve`, dotfiles, the system …) are written | asked, whatever a rule allows, and `--yes` is no answer |
//! | it leaves the sandbox, and no rule says so | asked, and `--yes` is no answer; one plain command only |
//! | credentials are wanted | asked by their name, and given to one plain command only |
//! | something outside the project is deleted, or the project, or very many files of it | asked, whatever a rule allows |
//! | rules allow all of it, or it only looks inside the project (in ask mode, programs that look are asked too) | run |
//! | accept-edits or auto: a file tool writes in the project | run |
//! | accept-edits or auto: a command, confined, understood, with nothing but the project to write, without the network | run |
//! | anything else: not understood, network, places outside, secrets, another user, another machine, no confinement | asked |

use std::path::PathBuf;

use helve_protocol::{CallPermissions, PermissionMode, PermissionVerdict, ToolAction};

use crate::action_judge::{ActionFindings, ActionJudge};
use crate::decision_point::{ContainmentKind, DecisionPoint};
use crate::policy::PermissionPolicy;
use crate::rule::Rule;
use crate::rules::{RuleLayer, RuleOrigin};

/// What happens to a call, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyDecision {
    pub verdict: PermissionVerdict,
    /// In words for a person: what of it, and why.
    pub reason: String,
    /// All that speaks for asking or refusing it, one by one.
    pub reasons: Vec<String>,
    /// The rule that decided it, if one did.
    pub proof: Option<RuleOrigin>,
    /// The smallest general rules that would have allowed it together; none if no rule could.
    pub suggestions: Vec<Rule>,
    /// Only a person at that moment can say yes: a general yes is not meant for this.
    pub is_grave: bool,
    /// What it has once it may run.
    pub needs: CallPermissions,
    /// What it deletes in the project, as far as it is known.
    pub deletes: Vec<PathBuf>,
    /// The words of a call that is one plain command: only such a one can leave the sandbox.
    pub plain: Option<Vec<String>>,
}

/// Decides about a call of a tool, by all that it would do.
pub fn decide(tool: &str, actions: &[ToolAction], policy: PermissionPolicy<'_>) -> PolicyDecision {
    let mut judge = ActionJudge::new(tool, policy);
    actions.iter().for_each(|action| judge.action(action));
    if actions.is_empty() {
        judge.harmless();
    }
    combine_points(judge.done(), policy)
}

/// Puts the points together, by the table above.
fn combine_points(judged: ActionFindings, policy: PermissionPolicy<'_>) -> PolicyDecision {
    let ActionFindings { points, needs, deletes, plain } = judged;
    let mode = policy.mode;
    let decision = |verdict: PermissionVerdict, point: Option<&DecisionPoint>, reason: &str| PolicyDecision {
        verdict,
        reason: reason.to_owned(),
        reasons: all_reasons(&points),
        proof: point.and_then(|point| point.proof.clone()),
        suggestions: Vec::new(),
        is_grave: false,
        needs: needs.clone(),
        deletes: deletes.clone(),
        plain: plain.clone(),
    };
    let is_of_administrator = |point: &&DecisionPoint| {
        point.proof.as_ref().is_some_and(|proof| proof.layer == RuleLayer::Administrator)
    };
    let mut denied = points.iter().filter(|point| point.verdict == PermissionVerdict::Deny);
    if let Some(point) = denied.find(|point| mode != PermissionMode::Bypass || is_of_administrator(point)) {
        return decision(PermissionVerdict::Deny, Some(point), &point.reason);
    }
    if mode == PermissionMode::Plan && points.iter().any(|point| !point.is_look) {
        return decision(PermissionVerdict::Deny, None, "in plan mode nothing is changed");
    }
    if let Some(point) = points.iter().find(|point| point.is_own) {
        // What decides about everything is nobody's but the user's, in every mode.
        return PolicyDecision {
            is_grave: true,
            ..decision(PermissionVerdict::Ask, Some(point), &point.reason)
        };
    }
    if mode == PermissionMode::Bypass {
        let free = decision(PermissionVerdict::Allow, None, "everything is allowed (bypass)");
        return PolicyDecision {
            needs: CallPermissions { network: true, unconfined: true, ..free.needs.clone() },
            ..free
        };
    }
    let passes = |point: &&DecisionPoint| match point.contained {
        _ if point.verdict == PermissionVerdict::Allow => true,
        ContainmentKind::ByTool => policy.trusts_file_tools(),
        ContainmentKind::ByConfinement => policy.trusts_confinement() && !needs.unconfined,
        ContainmentKind::No => false,
    };
    let asking: Vec<&DecisionPoint> = points.iter().filter(|point| !passes(point)).collect();
    let asking: Vec<&DecisionPoint> =
        asking.iter().copied().filter(|point| !asking.iter().any(|other| other.says_more(point))).collect();
    let Some(worst) = asking.iter().max_by_key(|point| (point.is_grave, point.contained)).copied() else {
        let contained = points.iter().find(|point| point.verdict != PermissionVerdict::Allow);
        let how = contained.map(|point| match point.contained {
            ContainmentKind::ByTool => "it writes in the project",
            _ => "it is confined to the project",
        });
        let first = points.first();
        let how = how.unwrap_or_else(|| first.map_or("it does nothing", |point| &point.reason));
        return decision(PermissionVerdict::Allow, first, how);
    };
    PolicyDecision {
        suggestions: suggestions(&asking),
        is_grave: asking.iter().any(|point| point.is_grave),
        ..decision(PermissionVerdict::Ask, Some(worst), &reasons(worst, &asking))
    }
}

/// What is said of each point that is not free, once.
fn all_reasons(points: &[DecisionPoint]) -> Vec<String> {
    let mut reasons: Vec<String> = Vec::new();
    for point in points.iter().filter(|point| point.verdict != PermissionVerdict::Allow) {
        if !reasons.contains(&point.reason) {
            reasons.push(point.reason.clone());
        }
    }
    reasons
}

/// More would fill the screen, and nobody would read it.
const MAX_SHOWN_REASONS: usize = 4;

/// Why it is asked, the worst first.
fn reasons(worst: &DecisionPoint, asking: &[&DecisionPoint]) -> String {
    let mut reasons = vec![worst.reason.as_str()];
    for point in asking {
        if !reasons.contains(&point.reason.as_str()) && point.contained == worst.contained {
            reasons.push(&point.reason);
        }
    }
    let more = reasons.len().saturating_sub(MAX_SHOWN_REASONS);
    reasons.truncate(MAX_SHOWN_REASONS);
    let text = reasons.join("; ");
    if more == 0 { text } else { format!("{text}; and {more} more") }
}

/// The rules that would have answered each question, if there is one for each.
fn suggestions(asking: &[&DecisionPoint]) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for point in asking {
        match &point.suggestion {
            None => return Vec::new(),
            Some(rule) if !rules.contains(rule) => rules.push(rule.clone()),
            Some(_) => {}
        }
    }
    rules
}
