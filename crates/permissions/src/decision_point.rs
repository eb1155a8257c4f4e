//! What speaks for or against a call, one point of it.

use helve_protocol::PermissionVerdict;

use crate::rule::Rule;
use crate::rules::{RuleJudgement, RuleOrigin};

/// What can contain what a point is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ContainmentKind {
    /// The file tools, which write nothing else.
    ByTool,
    /// The confinement of commands.
    ByConfinement,
    No,
}

/// Something about a call that speaks for or against it.
#[derive(Clone, Debug)]
pub(crate) struct DecisionPoint {
    pub(crate) verdict: PermissionVerdict,
    pub(crate) reason: String,
    pub(crate) proof: Option<RuleOrigin>,
    pub(crate) contained: ContainmentKind,
    /// It changes nothing.
    pub(crate) is_look: bool,
    pub(crate) is_grave: bool,
    /// Not even bypass covers it.
    pub(crate) is_own: bool,
    /// The smallest general rule that would have allowed it.
    pub(crate) suggestion: Option<Rule>,
}

impl DecisionPoint {
    pub(crate) fn new(verdict: PermissionVerdict, reason: impl Into<String>) -> DecisionPoint {
        DecisionPoint {
            verdict,
            reason: reason.into(),
            proof: None,
            contained: ContainmentKind::No,
            is_look: false,
            is_grave: false,
            is_own: false,
            suggestion: None,
        }
    }

    pub(crate) fn of(judgement: RuleJudgement, what: &str) -> DecisionPoint {
        let RuleJudgement { verdict, proof } = judgement;
        let said = match verdict {
            PermissionVerdict::Allow => "is allowed",
            PermissionVerdict::Ask => "is to be asked",
            PermissionVerdict::Deny => "is denied",
        };
        let reason = format!("{what} {said} by {proof}");
        DecisionPoint { proof: Some(proof), ..DecisionPoint::new(verdict, reason) }
    }

    pub(crate) fn allow(reason: impl Into<String>) -> DecisionPoint {
        DecisionPoint::new(PermissionVerdict::Allow, reason)
    }

    pub(crate) fn ask(reason: impl Into<String>) -> DecisionPoint {
        DecisionPoint::new(PermissionVerdict::Ask, reason)
    }

    pub(crate) fn look(self) -> DecisionPoint {
        DecisionPoint { is_look: true, ..self }
    }

    pub(crate) fn grave(self) -> DecisionPoint {
        DecisionPoint { is_grave: true, ..self }
    }

    pub(crate) fn contained(self, contained: ContainmentKind) -> DecisionPoint {
        DecisionPoint { contained, ..self }
    }

    /// Whether a yes to this is a yes to the other: to a path, and to what may lie below it. (`cp a b` writes `b`, or `b/a` if that is
    /// a folder.)
    pub(crate) fn says_more(&self, other: &DecisionPoint) -> bool {
        let is_alike = self.is_grave == other.is_grave && self.contained == other.contained && !other.is_own;
        let pattern = |point: &DecisionPoint| {
            point.suggestion.as_ref().and_then(|rule| rule.pattern()).map(str::to_owned)
        };
        let tool = |point: &DecisionPoint| point.suggestion.as_ref().map(|rule| rule.tool().to_owned());
        let is_below = pattern(self)
            .zip(pattern(other))
            .is_some_and(|(own, other)| other.starts_with(&format!("{own}/")));
        is_alike && is_below && tool(self) == tool(other) && tool(self).as_deref() == Some("write")
    }

    pub(crate) fn with_suggestion(self, rule: Rule) -> DecisionPoint {
        DecisionPoint { suggestion: Some(rule), ..self }
    }
}
