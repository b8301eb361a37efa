//! Repairs what is no text in an event: bytes that are no UTF-8, and halves of characters. Some servers cut their answer through a
//! character, and one of them is no reason to lose the rest. Only an event that its reader could not read is looked at.

use std::borrow::Cow;

/// The length of an escape such as `\ud83d`.
const UNICODE_ESCAPE: usize = 6;

/// Repairs the events of one stream.
#[derive(Debug, Default)]
pub(super) struct EventRepair {
    /// The first half of a character, with which a text ended, as its escape. The text that goes on may begin with the second.
    open: Option<String>,
}

/// Half of a character beyond U+FFFF, as JSON escapes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CharacterHalf {
    First,
    Second,
}

impl EventRepair {
    /// The event with all of it text: halves are joined, and what is lost is U+FFFD. Nothing if all of it was text, and something
    /// else is wrong with it.
    pub(super) fn repaired(&mut self, event: &[u8]) -> Option<Vec<u8>> {
        let text = String::from_utf8_lossy(event);
        let mut is_changed = matches!(text, Cow::Owned(_));
        let mut repaired = String::with_capacity(text.len());
        let mut rest = &*text;
        while let Some(at) = rest.find('\\') {
            let (before, escapes) = rest.split_at(at);
            let (escape, after) = split_escape(escapes);
            repaired.push_str(before);
            is_changed |= self.push_escape(escape, after, &mut repaired);
            rest = after;
        }
        repaired.push_str(rest);
        is_changed.then(|| repaired.into_bytes())
    }

    /// Writes an escape; true if it was changed.
    fn push_escape(&mut self, escape: &str, after: &str, repaired: &mut String) -> bool {
        let half = CharacterHalf::at_start(escape).filter(|_| escape.len() == UNICODE_ESCAPE);
        let begins_text = repaired.ends_with('"') && !repaired.ends_with("\\\"");
        match half {
            None => repaired.push_str(escape),
            Some(CharacterHalf::First) if after.starts_with('"') => self.open = Some(escape.to_owned()),
            Some(CharacterHalf::Second) if begins_text && self.open.is_some() => {
                repaired.extend(self.open.take().as_deref().into_iter().chain([escape]));
            }
            Some(_) => repaired.push(char::REPLACEMENT_CHARACTER),
        }
        half.is_some()
    }
}

impl CharacterHalf {
    /// The half whose escape a text begins with.
    fn at_start(text: &str) -> Option<CharacterHalf> {
        let digits = text.strip_prefix("\\u")?.get(..UNICODE_ESCAPE - 2)?;
        match u16::from_str_radix(digits, 16) {
            Ok(0xd800..=0xdbff) => Some(CharacterHalf::First),
            Ok(0xdc00..=0xdfff) => Some(CharacterHalf::Second),
            _ => None,
        }
    }
}

/// Splits what begins with an escape behind it, or behind the two that are one character.
fn split_escape(text: &str) -> (&str, &str) {
    let half_at = |place: usize| text.get(place..).and_then(CharacterHalf::at_start);
    let length = match (half_at(0), half_at(UNICODE_ESCAPE)) {
        (Some(CharacterHalf::First), Some(CharacterHalf::Second)) => 2 * UNICODE_ESCAPE,
        (Some(_), _) => UNICODE_ESCAPE,
        (None, _) => text.chars().take(2).map(char::len_utf8).sum(),
    };
    text.split_at_checked(length).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(events: &[&[u8]], expected: &[Option<&str>]) {
        let mut repair = EventRepair::default();
        let repaired: Vec<_> = events
            .iter()
            .map(|event| repair.repaired(event).map(|bytes| String::from_utf8(bytes).unwrap()))
            .collect();
        assert_eq!(repaired.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_is_text_is_left_alone() {
        for text in [r#"{"a":"b\\ud83d\"\n\ud83d\ude00é"}"#, r#"["\"#, "{", r"\u", r"\ud8"] {
            check(&[text.as_bytes()], &[None]);
        }
    }

    #[test]
    fn halves_of_a_character_are_joined_across_two_events() {
        check(&[br#"["h\ud83d"]"#, br#"["\ude00x"]"#], &[Some(r#"["h"]"#), Some(r#"["\ud83d\ude00x"]"#)]);
        check(&[br#"["h\uD83D","\uDE00"]"#], &[Some(r#"["h","\uD83D\uDE00"]"#)]);
    }

    #[test]
    fn what_is_lost_of_a_character_shows() {
        check(&[br#"["\ude00 \ud83dx \"\ude00"]"#], &[Some("[\"\u{fffd} \u{fffd}x \\\"\u{fffd}\"]")]);
        check(&[br#"["\ud83d\ud83d\ude00"]"#], &[Some("[\"\u{fffd}\\ud83d\\ude00\"]")]);
        check(&[b"[\"a\xffb\"]"], &[Some("[\"a\u{fffd}b\"]")]);
    }
}
