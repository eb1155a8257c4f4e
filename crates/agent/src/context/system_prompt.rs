//! What every conversation begins with.

/// The parts of the system prompt, in their order.
const SYSTEM_PROMPT_PARTS: [&str; 4] = [
    include_str!("prompt/role.md"),
    include_str!("prompt/work.md"),
    include_str!("prompt/workplace.md"),
    include_str!("prompt/answers.md"),
];

/// Who the model is, how it works, where, and how it answers. The same for every session of a build: what changes goes into notes.
pub(super) fn system_prompt() -> String {
    SYSTEM_PROMPT_PARTS.map(str::trim_end).join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_SYSTEM_PROMPT_BYTES: usize = 5 << 10;

    #[test]
    fn the_system_prompt_is_small_and_its_parts_keep_their_order() {
        let prompt = system_prompt();
        assert!(prompt.len() <= MAX_SYSTEM_PROMPT_BYTES, "{} bytes", prompt.len());
        let titles: Vec<&str> = prompt.lines().filter(|line| line.starts_with("# ")).collect();
        assert_eq!(titles, ["# How to work", "# Your workplace", "# How to answer"]);
        assert!(prompt.starts_with("You are Helve"));
    }
}
