//! Answers to a session's questions, written as one line: the same letters mean the same wherever somebody is asked.

use crate::{ApprovalAnswer, ApprovalRequested, QuestionAsked};

impl ApprovalRequested {
    /// What a line answers to this request: `y`, `a` (for this session), `p` (for this project), `n`, or what to do instead.
    /// `a` and `p` mean something only where there is a rule to keep.
    pub fn answer_from_line(&self, line: &str) -> ApprovalAnswer {
        let has_rules = !self.rules.is_empty();
        match line.trim() {
            "y" | "yes" => ApprovalAnswer::Once,
            "a" | "always" if has_rules => ApprovalAnswer::Session,
            "p" | "project" if has_rules => ApprovalAnswer::Project,
            "" | "n" | "no" => ApprovalAnswer::Reject { message: None },
            other => ApprovalAnswer::Reject { message: Some(other.to_owned()) },
        }
    }
}

impl QuestionAsked {
    /// What a line answers to this question: the option with that number, or the words themselves. Nothing if it is empty.
    pub fn answer_from_line(&self, line: &str) -> Option<String> {
        let line = line.trim();
        let number = line.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let chosen = number.and_then(|number| self.options.get(number)).map_or(line, String::as_str);
        (!chosen.is_empty()).then(|| chosen.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(rules: &[&str]) -> ApprovalRequested {
        ApprovalRequested {
            approval: uuid::Uuid::nil().into(),
            call: uuid::Uuid::nil().into(),
            effects: Vec::new(),
            reason: String::new(),
            diff: None,
            rules: rules.iter().map(|rule| (*rule).to_owned()).collect(),
        }
    }

    #[test]
    fn letters_and_words_answer_a_request() {
        let reject = |message: Option<&str>| ApprovalAnswer::Reject { message: message.map(str::to_owned) };
        let asked = request(&["shell(make *)"]);
        assert_eq!(asked.answer_from_line(" y\n"), ApprovalAnswer::Once);
        assert_eq!(asked.answer_from_line("a"), ApprovalAnswer::Session);
        assert_eq!(asked.answer_from_line("project"), ApprovalAnswer::Project);
        assert_eq!(asked.answer_from_line(""), reject(None));
        assert_eq!(asked.answer_from_line("use make"), reject(Some("use make")));
        assert_eq!(request(&[]).answer_from_line("a"), reject(Some("a")), "there is no rule to keep");
    }

    #[test]
    fn numbers_and_words_answer_a_question() {
        let options = vec!["red".to_owned(), "blue".to_owned()];
        let asked = QuestionAsked { call: uuid::Uuid::nil().into(), text: "which?".to_owned(), options };
        let answers = ["2", "0", "3", " green ", ""].map(|line| asked.answer_from_line(line));
        assert_eq!(
            answers,
            [Some("blue"), Some("0"), Some("3"), Some("green"), None].map(|it| it.map(str::to_owned))
        );
    }
}
