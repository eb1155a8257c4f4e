//! How much to think, in the words and numbers that each model takes.

use helve_protocol::ReasoningEffort;

/// In tokens, for wires that want a number.
pub(crate) fn budget(effort: ReasoningEffort) -> u64 {
    match effort {
        ReasoningEffort::Off => 0,
        ReasoningEffort::Minimal => 1_024,
        ReasoningEffort::Low => 4_096,
        ReasoningEffort::Medium => 10_240,
        ReasoningEffort::High => 24_576,
        ReasoningEffort::Max => 32_768,
    }
}

/// The words of OpenAI's kind, and what they mean.
const EFFORT_WORDS: [(&str, ReasoningEffort); 6] = [
    ("none", ReasoningEffort::Off),
    ("minimal", ReasoningEffort::Minimal),
    ("low", ReasoningEffort::Low),
    ("medium", ReasoningEffort::Medium),
    ("high", ReasoningEffort::High),
    ("xhigh", ReasoningEffort::Max),
];

/// Which of the words a model takes, by the beginning of its name; the first that fits counts.
const EFFORT_SCALES: [(&str, &[&str]); 8] = [
    ("o1", &["low", "medium", "high"]),
    ("o3", &["low", "medium", "high"]),
    ("o4", &["low", "medium", "high"]),
    ("gpt-oss", &["low", "medium", "high"]),
    ("gpt-5.1", &["none", "low", "medium", "high"]),
    ("gpt-5.", &["none", "low", "medium", "high", "xhigh"]),
    ("gpt-5", &["minimal", "low", "medium", "high"]),
    ("", &["none", "minimal", "low", "medium", "high"]),
];

/// The word that comes nearest to an effort among those that a model takes.
pub(crate) fn word(model: &str, effort: ReasoningEffort) -> &'static str {
    let name = model.rsplit('/').next().unwrap_or(model);
    let scale =
        EFFORT_SCALES.iter().find(|(begin, _)| name.starts_with(begin)).map_or(&[][..], |(_, scale)| scale);
    let distance = |of: ReasoningEffort| (of as i8 - effort as i8).abs();
    let taken = EFFORT_WORDS.iter().filter(|(word, _)| scale.contains(word));
    taken.min_by_key(|(_, of)| distance(*of)).map_or("medium", |(word, _)| word)
}

/// How many tokens an older model of Gemini's may think: each kind has its bounds.
pub(crate) fn gemini_budget(model: &str, effort: ReasoningEffort) -> u64 {
    let budget = budget(effort);
    if model.contains("pro") {
        budget.max(128)
    } else if model.contains("flash-lite") && effort != ReasoningEffort::Off {
        budget.clamp(512, 24_576)
    } else {
        budget.min(24_576)
    }
}

/// The level of a newer one.
pub(crate) fn gemini_level(model: &str, effort: ReasoningEffort) -> &'static str {
    match effort {
        ReasoningEffort::Off | ReasoningEffort::Minimal | ReasoningEffort::Low => "LOW",
        // The first of them had two levels only.
        ReasoningEffort::Medium if model.starts_with("gemini-3-pro") => "HIGH",
        ReasoningEffort::Medium => "MEDIUM",
        ReasoningEffort::High | ReasoningEffort::Max => "HIGH",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_model_gets_a_word_that_it_takes() {
        for (model, effort, expected) in [
            ("o3", ReasoningEffort::Off, "low"),
            ("o4-mini", ReasoningEffort::Max, "high"),
            ("openai/gpt-oss-120b", ReasoningEffort::Minimal, "low"),
            ("gpt-5", ReasoningEffort::Off, "minimal"),
            ("gpt-5-mini", ReasoningEffort::Max, "high"),
            ("gpt-5.1", ReasoningEffort::Minimal, "none"),
            ("gpt-5.5", ReasoningEffort::Max, "xhigh"),
            ("gpt-5.5", ReasoningEffort::Off, "none"),
            ("qwen3", ReasoningEffort::Max, "high"),
        ] {
            assert_eq!(word(model, effort), expected, "{model}");
        }
    }

    #[test]
    fn budgets_stay_within_what_each_model_takes() {
        for (model, effort, expected) in [
            ("gemini-2.5-pro", ReasoningEffort::Off, 128),
            ("gemini-2.5-pro", ReasoningEffort::Max, 32_768),
            ("gemini-2.5-flash", ReasoningEffort::Off, 0),
            ("gemini-2.5-flash", ReasoningEffort::Max, 24_576),
            ("gemini-2.5-flash-lite", ReasoningEffort::Minimal, 1_024),
        ] {
            assert_eq!(gemini_budget(model, effort), expected, "{model}");
        }
    }
}
