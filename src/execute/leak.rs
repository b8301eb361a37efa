//! Detects answers in which a cut thought continues.
//!
//! It counts the words that `ThinkDial` (arXiv 2508.18773) takes for reflection in an answer. They count only at the
//! start of a sentence, since an answer may well contain them elsewhere.

/// What reflection begins with.
const WORDS: [&str; 5] = ["Wait", "Let me think", "Actually", "Alternatively", "However"];

/// The longest of the words, and the mark or blank behind it.
const HELD_MAX: usize = 14;

/// Counts what looks like a thought, in a text that comes in pieces.
#[derive(Debug, Clone, Default)]
pub(super) struct LeakCounter {
    count: u32,
    /// The beginning of a sentence, until it is long enough to tell.
    beginning: String,
    inside: bool,
}

impl LeakCounter {
    /// More of the answer.
    pub(super) fn push(&mut self, text: &str) {
        for character in text.chars() {
            if matches!(character, '.' | '!' | '?' | '\n') {
                self.classify();
                self.inside = false;
            } else if !self.inside && (!self.beginning.is_empty() || !character.is_whitespace()) {
                self.beginning.push(character);
                if self.beginning.len() >= HELD_MAX {
                    self.classify();
                }
            }
        }
    }

    /// How many sentences began like a thought.
    pub(super) fn count(&self) -> u32 {
        let mut all = self.clone();
        all.classify();
        all.count
    }

    fn classify(&mut self) {
        let beginning = std::mem::take(&mut self.beginning);
        let is_word = |word: &&str| {
            let rest = beginning.strip_prefix(*word);
            rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
        };
        self.count += u32::from(WORDS.iter().any(is_word));
        self.inside = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, count: u32) {
        let mut whole = LeakCounter::default();
        whole.push(text);
        let mut pieces = LeakCounter::default();
        text.chars().for_each(|character| pieces.push(character.encode_utf8(&mut [0; 4])));
        assert_eq!((whole.count(), pieces.count()), (count, count), "{text}");
    }

    #[test]
    fn a_sentence_that_begins_like_a_thought_is_counted() {
        check("51", 0);
        check("Wait, that is wrong. Let me think again.\nActually 51", 3);
        check("  Wait", 1);
        check("However, 51.", 1);
    }

    #[test]
    fn the_same_words_inside_a_sentence_are_not() {
        check("I do not actually know; wait for it. Waiting helps. Howevermuch.", 0);
    }
}
