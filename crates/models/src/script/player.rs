//! Which step answers a request.

use std::fmt;

use super::request::ScriptRequest;
use super::step::{ModelScript, ScriptStep, StepCondition};

/// Plays a script, request by request.
#[derive(Clone, Debug)]
pub struct ScriptPlayer {
    script: ModelScript,
    /// Which steps are used up. Those that repeat never are.
    played: Vec<bool>,
    begun: bool,
}

impl ScriptPlayer {
    /// Plays a script from its beginning.
    pub fn new(script: ModelScript) -> ScriptPlayer {
        let played = vec![false; script.steps.len()];
        ScriptPlayer { script, played, begun: false }
    }

    /// The first step that is left and answers this request. It is used up, unless it repeats.
    pub fn next(&mut self, asked: &ScriptRequest) -> Result<&ScriptStep, NoMatchingStep> {
        let index = self.find(asked)?;
        if let Some(played) = self.played.get_mut(index) {
            *played = true;
        }
        self.script.steps.get(index).ok_or_else(|| self.no_step(asked))
    }

    /// The step that would be next.
    pub fn peek(&mut self, asked: &ScriptRequest) -> Result<&ScriptStep, NoMatchingStep> {
        let index = self.find(asked)?;
        self.script.steps.get(index).ok_or_else(|| self.no_step(asked))
    }

    fn find(&mut self, asked: &ScriptRequest) -> Result<usize, NoMatchingStep> {
        if !self.begun {
            self.begun = true;
            self.resume(asked.answers);
        }
        let left = self.script.steps.iter().zip(&self.played).map(|(step, played)| step.repeat || !played);
        let mut found = left.zip(&self.script.steps);
        found.position(|(left, step)| left && step.when.holds(asked)).ok_or_else(|| self.no_step(asked))
    }

    /// The session goes on after some answers: the steps that gave them were played, and so was what stands before them.
    fn resume(&mut self, answers: usize) {
        let mut given = 0;
        for (step, played) in self.script.steps.iter().zip(&mut self.played) {
            if given == answers {
                return;
            }
            *played = true;
            given += usize::from(step.gives_answer() && !step.repeat);
        }
    }

    fn no_step(&self, asked: &ScriptRequest) -> NoMatchingStep {
        let left =
            self.script.steps.iter().zip(&self.played).filter(|(step, played)| step.repeat || !**played);
        NoMatchingStep {
            asked: start_of(&asked.user),
            results: asked.results.iter().take(3).map(|result| start_of(&result.text)).collect(),
            model: start_of(&asked.model),
            left: left.count(),
        }
    }
}

impl StepCondition {
    fn holds(&self, asked: &ScriptRequest) -> bool {
        let is_in =
            |part: &Option<String>, whole: &str| part.as_ref().is_none_or(|part| whole.contains(part));
        let wants_result = self.result.is_some() || self.tool.is_some();
        // Both must hold for the same result.
        let mut of_tool =
            asked.results.iter().filter(|result| self.tool.is_none() || result.tool == self.tool);
        is_in(&self.asked, &asked.user)
            && is_in(&self.model, &asked.model)
            && (!wants_result || of_tool.any(|result| is_in(&self.result, &result.text)))
    }
}

/// The script does not know what to answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoMatchingStep {
    asked: String,
    results: Vec<String>,
    model: String,
    left: usize,
}

impl std::error::Error for NoMatchingStep {}

impl fmt::Display for NoMatchingStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the script has no step for this request: the user asked {:?}", self.asked)?;
        if !self.results.is_empty() {
            write!(f, ", the newest results are {:?}", self.results)?;
        }
        write!(f, ", the model is {:?}; ", self.model)?;
        match self.left {
            0 => write!(f, "all its steps are played"),
            1 => write!(f, "the one step that is left is for another `when`"),
            left => write!(f, "the {left} steps that are left are for another `when`"),
        }
    }
}

/// Enough of a text to know it by.
fn start_of(text: &str) -> String {
    const SHOWN: usize = 120;
    let mut start: String = text.chars().take(SHOWN).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    start
}
