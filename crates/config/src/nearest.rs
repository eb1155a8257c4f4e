//! Which of the valid words was probably meant.

/// No valid word comes near this length.
const MAX_WORD_CHARS: usize = 64;

/// The closest of `choices`, if it is close enough to be worth a question. Case and the two kinds of dashes
/// don't count.
pub fn nearest<'a>(word: &str, choices: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A key can be as long as a file, and nothing that long is a slip of the finger.
    let length = fold(word).take(MAX_WORD_CHARS + 1).count();
    if length > MAX_WORD_CHARS {
        return None;
    }
    let far = (length / 3).max(1);
    choices
        .into_iter()
        .map(|choice| (distance(word, choice), choice))
        .filter(|(distance, _)| *distance <= far)
        .min()
        .map(|(_, choice)| choice)
}

/// Whether two words differ in case and dashes only.
pub(crate) fn is_same_word(a: &str, b: &str) -> bool {
    fold(a).eq(fold(b))
}

/// How many letters must be added, dropped, changed or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    strsim::osa_distance(&fold(a).collect::<String>(), &fold(b).collect::<String>())
}

fn fold(word: &str) -> impl Iterator<Item = char> {
    word.chars().flat_map(char::to_lowercase).map(|letter| if letter == '-' { '_' } else { letter })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_kind_of_slip_costs_one() {
        for (a, b, cost) in [
            ("", "", 0),
            ("", "abc", 3),
            ("model", "model", 0),
            ("modl", "model", 1),
            ("modell", "model", 1),
            ("midel", "model", 1),
            ("mdoel", "model", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(a, b), cost, "{a} {b}");
        }
    }

    #[test]
    fn only_close_words_are_suggested() {
        let keys = ["max_steps", "max_cost", "max_time"];
        assert_eq!(nearest("max-stpes", keys), Some("max_steps"));
        assert_eq!(nearest("MAX_COST", keys), Some("max_cost"));
        assert_eq!(nearest("colour", keys), None);
        assert_eq!(nearest("", keys), None);
    }

    proptest! {
        #[test]
        fn a_suggestion_is_one_of_the_choices(word: String, choices in prop::collection::vec(".{0,12}", 0..6)) {
            let choices: Vec<&str> = choices.iter().map(String::as_str).collect();
            if let Some(found) = nearest(&word, choices.iter().copied()) {
                prop_assert!(choices.contains(&found));
            }
        }

        #[test]
        fn distance_is_symmetric(a in ".{0,8}", b in ".{0,8}") {
            prop_assert_eq!(distance(&a, &b), distance(&b, &a));
        }
    }
}
