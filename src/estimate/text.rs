//! The text that is looked at, and the lexemes in it.

use crate::chat::{Message, Part, Request, Role};

/// How much of a text's beginning, and of its end, is looked at: questions stand at one of the two.
const END_BYTES: usize = 8 * 1024;

/// The last user message, without its middle where it is long.
#[derive(Debug)]
pub(super) struct Text {
    /// What is looked at.
    pub seen: String,
    /// Bytes of the whole message.
    pub bytes: usize,
    /// Bytes of the messages before it.
    pub context: usize,
}

/// A piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lexeme<'a> {
    /// Letters, with apostrophes and underscores between them.
    Word(&'a str),
    /// Digits.
    Number(&'a str),
    /// Anything else but a space.
    Sign(char),
}

impl Text {
    /// The text of a request.
    pub(super) fn of(request: &Request) -> Text {
        let asked = request.messages.iter().rposition(|message| message.role == Role::User);
        let asked = asked.unwrap_or(request.messages.len().saturating_sub(1));
        let context = request.messages.iter().take(asked).flat_map(parts).map(str::len).sum();
        let asked: Vec<&str> = request.messages.get(asked).into_iter().flat_map(parts).collect();
        Text::from_parts(&asked, context)
    }

    /// The text of a question alone.
    pub(super) fn question(question: &str) -> Text {
        Text::from_parts(&[question], 0)
    }

    fn from_parts(parts: &[&str], context: usize) -> Text {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        let mut seen = String::with_capacity(bytes.min(2 * END_BYTES + 1));
        if bytes <= 2 * END_BYTES {
            parts.iter().for_each(|part| seen.push_str(part));
        } else {
            parts.iter().for_each(|part| seen.push_str(head(part, END_BYTES.saturating_sub(seen.len()))));
            seen.push('\n');
            let mut wanted = END_BYTES;
            let mut ends: Vec<&str> = Vec::new();
            for part in parts.iter().rev() {
                ends.push(tail(part, wanted));
                wanted = wanted.saturating_sub(part.len());
            }
            ends.iter().rev().for_each(|end| seen.push_str(end));
        }
        Text { seen, bytes, context }
    }

    /// The lexemes of what is looked at, in order.
    pub(super) fn lexemes(&self) -> Lexemes<'_> {
        Lexemes { rest: &self.seen }
    }
}

fn parts(message: &Message) -> impl Iterator<Item = &str> {
    message.content.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        Part::Other(_) => None,
    })
}

fn head(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

fn tail(text: &str, bytes: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes))..]
}

/// Splits a text into lexemes.
pub(super) struct Lexemes<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Lexemes<'a> {
    type Item = Lexeme<'a>;

    fn next(&mut self) -> Option<Lexeme<'a>> {
        self.rest = self.rest.trim_start();
        let first = self.rest.chars().next()?;
        if first.is_ascii_digit() {
            return Some(Lexeme::Number(self.take_while(|c| c.is_ascii_digit())));
        }
        if first.is_alphabetic() {
            return Some(Lexeme::Word(self.take_while(|c| c.is_alphanumeric() || matches!(c, '\'' | '_'))));
        }
        self.rest = &self.rest[first.len_utf8()..];
        Some(Lexeme::Sign(first))
    }
}

impl<'a> Lexemes<'a> {
    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !belongs(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_looked_at_from_both_ends() {
        let middle = "é".repeat(40_000);
        let text = Text::from_parts(&["begin ", &middle, " end"], 0);
        assert!(text.seen.starts_with("begin é") && text.seen.ends_with("é end"));
        assert!(text.seen.len() <= 2 * END_BYTES + 1);
        assert_eq!(text.bytes, 80_010);
    }

    #[test]
    fn words_numbers_and_signs_are_told_apart() {
        let text = Text::question("What's 34*(5 - x1)?");
        use Lexeme::{Number, Sign, Word};
        let expected = [
            Word("What's"),
            Number("34"),
            Sign('*'),
            Sign('('),
            Number("5"),
            Sign('-'),
            Word("x1"),
            Sign(')'),
            Sign('?'),
        ];
        assert_eq!(text.lexemes().collect::<Vec<_>>(), expected);
    }
}
