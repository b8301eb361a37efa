//! The lexemes of a text: words, numbers and signs.

use super::cue::Hints;
use super::eight;
use super::spelling::Spelling;

/// A piece of text.
#[derive(Debug, Clone, Copy)]
pub(super) enum Lexeme<'t> {
    /// Letters, with digits, apostrophes and underscores between them.
    Word(Word<'t>),
    /// Digits.
    Number(Number<'t>),
    /// Anything else but a space.
    Sign(char),
}

/// A word, with what is known of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word<'t> {
    /// As it stands there.
    pub bytes: &'t [u8],
    /// The hash of its small letters.
    pub hash: u64,
    /// What it hints at.
    pub hints: Hints,
    /// Whether there is an underscore in it.
    pub underscored: bool,
}

/// A number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number<'t> {
    /// Its digits.
    pub digits: &'t [u8],
    /// Their hash.
    pub hash: u64,
}

/// The lexemes of a text, in order. What is ASCII, nearly everything in most texts, is told apart by its bytes.
#[derive(Debug)]
pub(super) struct Lexemes<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexemes<'t> {
    pub(super) fn of(text: &'t str) -> Lexemes<'t> {
        Lexemes { text, at: 0 }
    }

    #[inline]
    fn word(&mut self) -> Word<'t> {
        let bytes = self.text.as_bytes();
        let spelling = Spelling::run(bytes, self.at, eight::word);
        if bytes.get(self.at + spelling.bytes).is_some_and(|byte| !byte.is_ascii()) {
            return self.foreign_word();
        }
        self.spelt(&spelling)
    }

    #[inline]
    fn spelt(&mut self, spelling: &Spelling) -> Word<'t> {
        let hints = Hints::of(spelling);
        let bytes = self.take(spelling.bytes);
        Word { bytes, hash: spelling.hash(), hints, underscored: spelling.underscored }
    }

    /// A word with letters beyond ASCII.
    #[cold]
    fn foreign_word(&mut self) -> Word<'t> {
        let rest = &self.text[self.at..];
        let ends = |c: char| !c.is_alphanumeric() && !matches!(c, '\'' | '_');
        let spelling = Spelling::of(&rest.as_bytes()[..rest.find(ends).unwrap_or(rest.len())]);
        self.spelt(&spelling)
    }

    #[inline]
    fn number(&mut self) -> Number<'t> {
        let spelling = Spelling::run(self.text.as_bytes(), self.at, eight::digits);
        Number { digits: self.take(spelling.bytes), hash: spelling.hash() }
    }

    /// What begins beyond ASCII, unless it is blank.
    #[cold]
    fn other(&mut self) -> Option<Lexeme<'t>> {
        let rest = &self.text[self.at..];
        let first = rest.chars().next()?;
        if first.is_alphabetic() {
            return Some(Lexeme::Word(self.foreign_word()));
        }
        if first.is_whitespace() {
            self.at += rest.len() - rest.trim_start().len();
            return None;
        }
        self.at += first.len_utf8();
        Some(Lexeme::Sign(first))
    }

    fn take(&mut self, count: usize) -> &'t [u8] {
        let taken = &self.text.as_bytes()[self.at..self.at + count];
        self.at += count;
        taken
    }
}

impl<'t> Iterator for Lexemes<'t> {
    type Item = Lexeme<'t>;

    #[inline]
    fn next(&mut self) -> Option<Lexeme<'t>> {
        loop {
            let first = *self.text.as_bytes().get(self.at)?;
            match first {
                b' ' | b'\t' | b'\n' | b'\x0c' | b'\r' => self.at += 1,
                b'a'..=b'z' | b'A'..=b'Z' => return Some(Lexeme::Word(self.word())),
                b'0'..=b'9' => return Some(Lexeme::Number(self.number())),
                first if first.is_ascii() => {
                    self.at += 1;
                    return Some(Lexeme::Sign(char::from(first)));
                }
                _ => {
                    if let Some(lexeme) = self.other() {
                        return Some(lexeme);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lexemes of a text, words between `<` and `>`, numbers between `[` and `]`.
    fn check(text: &str, expected: &str) {
        let utf8 = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let shown = |lexeme| match lexeme {
            Lexeme::Word(word) => format!("<{}>", utf8(word.bytes)),
            Lexeme::Number(number) => format!("[{}]", utf8(number.digits)),
            Lexeme::Sign(sign) => sign.to_string(),
        };
        assert_eq!(Lexemes::of(text).map(shown).collect::<String>(), expected);
    }

    #[test]
    fn words_numbers_and_signs_are_told_apart() {
        check("What's 34*(5 - x1)?", "<What's>[34]*([5]-<x1>)?");
        check("élan\u{a0}né, \u{2003}\u{b}\t naïve_ness²", "<élan><né>,<naïve_ness²>");
        check("_a 'b' 7th … 日本 ٣", "_<a>'<b'>[7]<th>…<日本>٣");
        check("supercalifragilistic12345678", "<supercalifragilistic12345678>");
        check(" \r\n", "");
    }

    /// The same, slowly: character by character, each word lowered and hashed alone.
    fn slowly(text: &str) -> Vec<(String, u64)> {
        let inside = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '_');
        let mut rest = text;
        let mut found = Vec::new();
        while let Some(first) = rest.trim_start().chars().next() {
            rest = rest.trim_start();
            let end = match first {
                '0'..='9' => rest.find(|c: char| !c.is_ascii_digit()),
                first if first.is_alphabetic() => rest.find(|c| !inside(c)),
                first => Some(first.len_utf8()),
            };
            let (lexeme, after) = rest.split_at(end.unwrap_or(rest.len()));
            let spelt = first.is_alphabetic() || first.is_ascii_digit();
            found.push((lexeme.to_owned(), if spelt { hash(lexeme) } else { 0 }));
            rest = after;
        }
        found
    }

    fn hash(word: &str) -> u64 {
        let lower = word.to_ascii_lowercase().into_bytes();
        let lower = &lower[..lower.len().min(32)];
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for chunk in lower.chunks(8) {
            let mut eight = [0; 8];
            eight[..chunk.len()].copy_from_slice(chunk);
            state = (state ^ u64::from_le_bytes(eight)).wrapping_mul(0xff51_afd7_ed55_8ccd);
            state ^= state >> 32;
        }
        crate::units::mixed(state ^ u64::try_from(lower.len()).unwrap())
    }

    fn quickly(text: &str) -> Vec<(String, u64)> {
        let utf8 = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let told = |lexeme| match lexeme {
            Lexeme::Word(word) => {
                let underscored = word.bytes.contains(&b'_');
                assert_eq!(word.underscored, underscored, "{text:?}");
                (utf8(word.bytes), word.hash)
            }
            Lexeme::Number(number) => (utf8(number.digits), number.hash),
            Lexeme::Sign(sign) => (sign.to_string(), 0),
        };
        Lexemes::of(text).map(told).collect()
    }

    #[test]
    fn eight_bytes_at_once_are_read_as_one_character_after_another() {
        let pieces = [
            "What",
            "don't",
            " ",
            "\n",
            "\u{a0}",
            "é",
            "日本",
            "12",
            "123456789",
            "supercalifragilistic",
            "a_b",
            "_",
            "'",
            "(",
            "×",
            "…",
            "ß",
            "²",
            "X",
            "eightlet",
            "😀",
            "\0",
            "\u{7f}",
            "sixteen_letters_",
            "more_than_thirty_two_letters_in_one_word",
        ];
        let mut dice = crate::units::Dice::new(7);
        for _ in 0..5_000 {
            let count = dice.bits() % 24;
            let piece = |_| pieces[usize::try_from(dice.bits() % 25).unwrap()];
            let text: String = (0..count).map(piece).collect();
            assert_eq!(quickly(&text), slowly(&text), "{text:?}");
        }
        for text in [include_str!("text.rs"), include_str!("../../README.md"), include_str!("prior.md")] {
            assert_eq!(quickly(text), slowly(text));
        }
    }
}
