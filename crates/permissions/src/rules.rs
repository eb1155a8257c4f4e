//! Rules over the layers. In one layer the first rule that covers something decides. Over the layers any deny is final; else
//! the strongest layer that says anything decides; else nobody has.

use std::fmt;
use std::path::Path;

use helve_protocol::PermissionVerdict;

use crate::pattern::{ProjectContext, RuleSubject};
use crate::rule::Rule;

/// Where a rule comes from, the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuleLayer {
    Administrator,
    Session,
    Project,
    User,
    BuiltIn,
}

/// Why something was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleOrigin {
    pub layer: RuleLayer,
    /// The rule, in its compact form.
    pub rule: String,
    /// The file and the line, or the flag, or whatever a person can look up.
    pub place: String,
}

impl fmt::Display for RuleOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.rule, self.place)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleJudgement {
    pub verdict: PermissionVerdict,
    pub proof: RuleOrigin,
}

/// All rules, in the order in which they were given.
#[derive(Clone, Debug, Default)]
pub struct LayeredRules(Vec<(RuleLayer, String, Rule)>);

impl LayeredRules {
    pub fn add(&mut self, layer: RuleLayer, place: impl Into<String>, rule: Rule) {
        self.0.push((layer, place.into(), rule));
    }

    /// Adds all rules of others.
    pub fn extend(&mut self, others: &LayeredRules) {
        self.0.extend(others.0.iter().cloned());
    }

    /// What the rules say of something; none if none of them is about it.
    pub fn judge(&self, tool: &str, subject: &RuleSubject, places: &ProjectContext) -> Option<RuleJudgement> {
        let mut verdicts: Vec<(RuleLayer, RuleJudgement)> = Vec::new();
        for (layer, place, rule) in &self.0 {
            let is_decided = verdicts.iter().any(|(decided, _)| decided == layer);
            if !is_decided && rule.covers(tool, subject, places) {
                let proof = RuleOrigin { layer: *layer, rule: rule.to_string(), place: place.clone() };
                verdicts.push((*layer, RuleJudgement { verdict: rule.verdict, proof }));
            }
        }
        verdicts.sort_by_key(|(layer, _)| *layer);
        let deny = verdicts.iter().position(|(_, judgement)| judgement.verdict == PermissionVerdict::Deny);
        verdicts.into_iter().nth(deny.unwrap_or(0)).map(|(_, judgement)| judgement)
    }
}

impl LayeredRules {
    /// Whether a path is denied to whoever would read it, or write it, in any layer.
    pub fn denies(&self, tool: &str, path: &Path, places: &ProjectContext) -> bool {
        let subject = RuleSubject::Path(path.to_owned());
        self.judge(tool, &subject, places)
            .is_some_and(|judgement| judgement.verdict == PermissionVerdict::Deny)
    }

    /// The rules that deny some paths to a tool, though not all. The sandbox enforces them on commands.
    pub fn denied_paths(&self, tool: &str) -> impl Iterator<Item = &Rule> {
        let rules = self.0.iter().map(|(_, _, rule)| rule);
        rules.filter(move |rule| {
            rule.verdict == PermissionVerdict::Deny && rule.pattern().is_some() && rule.is_about(tool)
        })
    }

    /// Whether something below a folder, or the folder itself, may be denied to a tool: by what stands before the first
    /// star of a pattern.
    pub(crate) fn may_deny_below(&self, tool: &str, folder: &Path, places: &ProjectContext) -> bool {
        self.denied_paths(tool).any(|rule| {
            let Some(base) = rule.fixed_part(places) else { return true };
            base.starts_with(folder) || folder.starts_with(&base)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LAYERS: [RuleLayer; 5] = [
        RuleLayer::Administrator,
        RuleLayer::Session,
        RuleLayer::Project,
        RuleLayer::User,
        RuleLayer::BuiltIn,
    ];
    const VERDICTS: [PermissionVerdict; 3] =
        [PermissionVerdict::Allow, PermissionVerdict::Ask, PermissionVerdict::Deny];

    fn places() -> ProjectContext {
        ProjectContext::of("/p")
    }

    fn judge(rules: &[(RuleLayer, &str, PermissionVerdict)]) -> Option<RuleJudgement> {
        let mut all = LayeredRules::default();
        for (number, (layer, text, verdict)) in rules.iter().enumerate() {
            all.add(*layer, format!("line {number}"), Rule::parse(text, *verdict).unwrap());
        }
        all.judge("read", &RuleSubject::Path("/p/a".into()), &places())
    }

    #[test]
    fn in_one_layer_the_first_decides() {
        let judgement = judge(&[
            (RuleLayer::User, "write", PermissionVerdict::Deny),
            (RuleLayer::User, "read(a)", PermissionVerdict::Ask),
            (RuleLayer::User, "read", PermissionVerdict::Allow),
        ]);
        let judgement = judgement.unwrap();
        assert_eq!((judgement.verdict, judgement.proof.place.as_str()), (PermissionVerdict::Ask, "line 1"));
        assert_eq!(judge(&[(RuleLayer::User, "read(b)", PermissionVerdict::Deny)]), None);
    }

    /// Every combination of what the five layers may say.
    #[test]
    fn a_deny_is_final_else_the_strongest_decides() {
        let choices = [
            None,
            Some(PermissionVerdict::Allow),
            Some(PermissionVerdict::Ask),
            Some(PermissionVerdict::Deny),
        ];
        for number in 0..4_usize.pow(5) {
            let says: Vec<Option<PermissionVerdict>> =
                (0..5).map(|layer| choices[number / 4_usize.pow(layer) % 4]).collect();
            let rules: Vec<(RuleLayer, &str, PermissionVerdict)> = LAYERS
                .iter()
                .zip(&says)
                .filter_map(|(layer, verdict)| Some((*layer, "read", (*verdict)?)))
                .collect();
            let expected = match says.contains(&Some(PermissionVerdict::Deny)) {
                true => Some(PermissionVerdict::Deny),
                false => says.iter().flatten().next().copied(),
            };
            assert_eq!(judge(&rules).map(|judgement| judgement.verdict), expected, "{says:?}");
        }
    }

    proptest! {
        #[test]
        fn the_order_of_layers_in_the_list_does_not_matter(
            mut rules in prop::collection::vec((prop::sample::select(&LAYERS[..]), prop::sample::select(&VERDICTS[..])), 0..5),
        ) {
            rules.sort_by_key(|(layer, _)| *layer);
            rules.dedup_by_key(|(layer, _)| *layer);
            let list = |rules: &[(RuleLayer, PermissionVerdict)]| {
                let rules: Vec<(RuleLayer, &str, PermissionVerdict)> = rules.iter().map(|(layer, verdict)| (*layer, "*", *verdict)).collect();
                judge(&rules).map(|judgement| judgement.verdict)
            };
            let forward = list(&rules);
            rules.reverse();
            prop_assert_eq!(forward, list(&rules));
        }
    }
}
