//! `ask_user`

use helve_protocol::{ToolAction, ToolClass, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::Path;

use crate::host::UserQuestion;
use crate::{ToolContext, ToolFailure, ToolOutcome, TypedTool};

/// Asks the person a question.
#[derive(Clone, Copy, Debug, Default)]
pub struct AskUserTool;

const MAX_ANSWER_OPTIONS: usize = 9;
const MAX_QUESTION_CHARS: usize = 4_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AskUserInput {
    question: String,
    /// Up to 9 short answers to choose from; the user may give another.
    #[serde(default)]
    options: Vec<String>,
}

impl TypedTool for AskUserTool {
    const NAME: &'static str = "ask_user";
    const DESCRIPTION: &'static str = include_str!("ask_user.md");
    const CLASS: ToolClass = ToolClass::Interactive;
    type Input = AskUserInput;

    fn intent(&self, input: &AskUserInput) -> String {
        format!("ask: {}", input.question)
    }

    fn actions(&self, _: &AskUserInput, _: &Path) -> Vec<ToolAction> {
        Vec::new()
    }

    async fn run(&self, input: AskUserInput, context: &ToolContext) -> ToolOutcome {
        let question = checked(input)?;
        match context.host.ask(context.call, question).await {
            Some(answer) => {
                let text = format!("The user answered: {answer}");
                Ok(ToolOutput { text, ..ToolOutput::default() })
            }
            None => Err(ToolFailure::new(
                "Nobody is there to answer. Decide yourself, choose what can be undone, and say in the end what you assumed.",
            )),
        }
    }
}

fn checked(input: AskUserInput) -> Result<UserQuestion, ToolFailure> {
    let AskUserInput { question, options } = input;
    let is_one_line = |option: &String| !option.trim().is_empty() && !option.contains('\n');
    if question.trim().is_empty() {
        return Err(ToolFailure::new("The question is empty."));
    }
    if options.len() > MAX_ANSWER_OPTIONS || !options.iter().all(is_one_line) {
        return Err(ToolFailure(format!("Give at most {MAX_ANSWER_OPTIONS} options, each one short line.")));
    }
    if question.chars().count() + options.iter().map(|option| option.chars().count()).sum::<usize>()
        > MAX_QUESTION_CHARS
    {
        return Err(ToolFailure(format!(
            "The question is too long: at most {MAX_QUESTION_CHARS} characters."
        )));
    }
    let options = options.into_iter().map(|option| option.trim().to_owned()).collect();
    Ok(UserQuestion { text: question.trim().to_owned(), options })
}
