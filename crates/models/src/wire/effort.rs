//! How much to think, in the words and numbers that each model takes.

use helve_protocol::Effort;

/// In tokens, for wires that want a number.
pub(crate) fn budget(effort: Effort) -> u64 {
    match effort {
        Effort::Off => 0,
        Effort::Minimal => 1_024,
        Effort::Low => 4_096,
        Effort::Medium => 10_240,
        Effort::High => 24_576,
        Effort::Max => 32_768,
    }
}

/// The words of OpenAI's kind, and what they mean.
const WORDS: [(&str, Effort); 6] = [
    ("none", Effort::Off),
    ("minimal", Effort::Minimal),
    ("low", Effort::Low),
    ("medium", Effort::Medium),
    ("high", Effort::High),
    ("xhigh", Effort::Max),
];

/// Which of the words a model takes, by the beginning of its name; the first that fits counts.
const SCALES: [(&str, &[&str]); 8] = [
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
pub(crate) fn word(model: &str, effort: Effort) -> &'static str {
    let name = model.rsplit('/').next().unwrap_or(model);
    let scale = SCALES.iter().find(|(begin, _)| name.starts_with(begin)).map_or(&[][..], |(_, scale)| scale);
    let distance = |of: Effort| (of as i8 - effort as i8).abs();
    let taken = WORDS.iter().filter(|(word, _)| scale.contains(word));
    taken.min_by_key(|(_, of)| distance(*of)).map_or("medium", |(word, _)| word)
}

/// How many tokens an older model of Gemini's may think: each kind has its bounds.
pub(crate) fn gemini_budget(model: &str, effort: Effort) -> u64 {
    let budget = budget(effort);
    if model.contains("pro") {
        budget.max(128)
    } else if model.contains("flash-lite") && effort != Effort::Off {
        budget.clamp(512, 24_576)
    } else {
        budget.min(24_576)
    }
}

/// The level of a newer one.
pub(crate) fn gemini_level(model: &str, effort: Effort) -> &'static str {
    match effort {
        Effort::Off | Effort::Minimal | Effort::Low => "LOW",
        // The first of them had two levels only.
        Effort::Medium if model.starts_with("gemini-3-pro") => "HIGH",
        Effort::Medium => "MEDIUM",
        Effort::High | Effort::Max => "HIGH",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_model_gets_a_word_that_it_takes() {
        for (model, effort, expected) in [
            ("o3", Effort::Off, "low"),
            ("o4-mini", Effort::Max, "high"),
            ("openai/gpt-oss-120b", Effort::Minimal, "low"),
            ("gpt-5", Effort::Off, "minimal"),
            ("gpt-5-mini", Effort::Max, "high"),
            ("gpt-5.1", Effort::Minimal, "none"),
            ("gpt-5.5", Effort::Max, "xhigh"),
            ("gpt-5.5", Effort::Off, "none"),
            ("qwen3", Effort::Max, "high"),
        ] {
            assert_eq!(word(model, effort), expected, "{model}");
        }
    }

    #[test]
    fn budgets_stay_within_what_each_model_takes() {
        for (model, effort, expected) in [
            ("gemini-2.5-pro", Effort::Off, 128),
            ("gemini-2.5-pro", Effort::Max, 32_768),
            ("gemini-2.5-flash", Effort::Off, 0),
            ("gemini-2.5-flash", Effort::Max, 24_576),
            ("gemini-2.5-flash-lite", Effort::Minimal, 1_024),
        ] {
            assert_eq!(gemini_budget(model, effort), expected, "{model}");
        }
    }
}
