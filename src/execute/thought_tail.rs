//! Selects how much of a cut thought is sent again.
//!
//! The reserved tokens for reading it are those that the thought was allowed. If nobody counted its tokens, it may have
//! more. Then only its end is sent, where the model had got furthest.

use stint_types::units::Tokens;

/// The longest end of a thought that surely has no more than `room` tokens, from a sensible place on. `most` is what all of
/// it has at most. A token is at least one byte of text, and no token reaches from one word into the next.
pub(super) fn thought_tail(text: &str, room: Tokens, most: Tokens) -> &str {
    let excess = most.saturating_sub(room);
    if excess == Tokens::ZERO {
        return text;
    }
    let start = by_bytes(text, room).min(by_words(text, excess));
    &text[natural_break(text, start)..]
}

/// Where so many bytes are left.
fn by_bytes(text: &str, room: Tokens) -> usize {
    let room = usize::try_from(room.0).unwrap_or(usize::MAX);
    let start = text.len().saturating_sub(room);
    (start..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

/// Where so many words are over.
fn by_words(text: &str, count: Tokens) -> usize {
    let mut after_blank = true;
    let starts = text.char_indices().filter(|(_, character)| {
        let starts = after_blank && !character.is_whitespace();
        after_blank = character.is_whitespace();
        starts
    });
    starts.map(|(at, _)| at).nth(usize::try_from(count.0).unwrap_or(usize::MAX)).unwrap_or(text.len())
}

/// The first paragraph, else line, else sentence, else word that begins here or in the next quarter.
fn natural_break(text: &str, start: usize) -> usize {
    let reach = start + (text.len() - start) / 4;
    let reach = (start..=reach).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(start);
    let (before, near) = (&text[..start], &text[start..reach]);
    let behind = |end: &&str| {
        if before.ends_with(*end) { Some(start) } else { near.find(*end).map(|at| start + at + end.len()) }
    };
    ["\n\n", "\n", ". ", "? ", "! ", "。", " "].iter().find_map(behind).unwrap_or(start)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, room: u64, most: u64, expected: &str) {
        assert_eq!(thought_tail(text, Tokens(room), Tokens(most)), expected);
    }

    #[test]
    fn a_thought_that_fits_is_sent_whole() {
        check("one two", 7, 7, "one two");
        check("one two", 2, 2, "one two");
    }

    #[test]
    fn of_one_that_may_not_the_end_is_sent_from_a_sensible_place_on() {
        check("First. Second. Third is the last of them.", 33, 41, "Third is the last of them.");
        check("first\nsecond\nthe third line of it", 24, 33, "the third line of it");
        check("abcdefghij", 4, 10, "ghij");
        check("grün ist grün", 5, 15, "grün");
        check("anything", 0, 8, "");
    }

    #[test]
    fn of_one_that_was_counted_no_more_words_are_left_out_than_must_be() {
        check("one two three four five", 3, 5, "three four five");
    }

    proptest! {
        #[test]
        fn what_is_sent_fits_whatever_the_text(text in "[a-zäß嗯 .\\n]{0,60}", room in 0..80u64, most in 0..80u64) {
            let quoted = thought_tail(&text, Tokens(room), Tokens(most));
            prop_assert!(text.ends_with(quoted));
            let dropped = text[..text.len() - quoted.len()].split_whitespace().count() as u64;
            let fits = quoted.len() as u64 <= room || most.saturating_sub(dropped) <= room;
            prop_assert!(fits, "{quoted:?}");
        }
    }
}
