//! The lexemes of a text: words, numbers and signs.

use super::cue::WordHints;
use super::spelling::Spelling;
use super::swar;

/// Who looks at the lexemes of a text, each as it is read: a lexeme that is handed on as one of several kinds would lie
/// in memory in between.
pub(super) trait LexemeVisitor<'t> {
    /// Letters, with digits, apostrophes and underscores between them.
    fn word(&mut self, _: &WordLexeme<'t>) {}
    /// Digits.
    fn number(&mut self, _: &NumberLexeme<'t>) {}
    /// Anything else but a space.
    fn sign(&mut self, _: char) {}
}

/// A word, with what is known of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct WordLexeme<'t> {
    /// As it stands there.
    pub bytes: &'t [u8],
    /// The hash of its small letters.
    pub hash: u64,
    /// What it hints at.
    pub hints: WordHints,
}

/// A number.
#[derive(Debug, Clone, Copy)]
pub(super) struct NumberLexeme<'t> {
    /// Its digits.
    pub digits: &'t [u8],
    /// Their hash.
    pub hash: u64,
}

/// The lexemes of a text, in order. What is ASCII, nearly everything in most texts, is told apart by its bytes.
#[derive(Debug)]
pub(super) struct Lexer<'t> {
    text: &'t str,
    at: usize,
    /// Whether there is an underscore anywhere: most texts have none, and their words need not be searched.
    underscored: bool,
}

/// What a byte may open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ByteClass {
    Word,
    Blank,
    Sign,
    Number,
    /// Anything beyond ASCII.
    Other,
}

/// By byte.
static BYTE_CLASSES: [ByteClass; 256] = {
    let mut opens = [ByteClass::Sign; 256];
    let mut byte = 0;
    while byte < 256 {
        opens[byte] = match byte {
            0x80.. => ByteClass::Other,
            0x09 | 0x0a | 0x0c | 0x0d | 0x20 => ByteClass::Blank,
            0x30..=0x39 => ByteClass::Number,
            0x41..=0x5a | 0x61..=0x7a => ByteClass::Word,
            _ => ByteClass::Sign,
        };
        byte += 1;
    }
    opens
};

impl<'t> Lexer<'t> {
    pub(super) fn of(text: &'t str) -> Lexer<'t> {
        // All bytes are looked at, many at once: to stop at the first would take longer.
        let underscored = text.bytes().fold(false, |any, byte| any | (byte == b'_'));
        Lexer { text, at: 0, underscored }
    }

    /// Shows the next lexeme, or passes a blank; false at the end of the text.
    #[inline(always)]
    pub(super) fn visit_next(&mut self, look: &mut impl LexemeVisitor<'t>) -> bool {
        let Some(&first) = self.text.as_bytes().get(self.at) else { return false };
        match BYTE_CLASSES[usize::from(first)] {
            ByteClass::Word => {
                look.word(&self.word());
                // A blank follows most words.
                if self.text.as_bytes().get(self.at) == Some(&b' ') {
                    self.at += 1;
                }
            }
            ByteClass::Blank => self.at += 1,
            ByteClass::Sign => {
                self.at += 1;
                look.sign(char::from(first));
            }
            ByteClass::Number => look.number(&self.number()),
            ByteClass::Other => self.non_ascii(look),
        }
        true
    }

    #[inline(always)]
    fn word(&mut self) -> WordLexeme<'t> {
        let bytes = self.text.as_bytes();
        let spelling = Spelling::run(bytes, self.at, swar::word);
        if bytes.get(self.at + spelling.bytes).is_some_and(|byte| !byte.is_ascii()) {
            return self.non_ascii_word();
        }
        self.finish_word(&spelling)
    }

    #[inline(always)]
    fn finish_word(&mut self, spelling: &Spelling) -> WordLexeme<'t> {
        let bytes = self.take(spelling.bytes);
        let hints = WordHints::of(spelling, self.underscored && spelling.has_underscore(bytes));
        WordLexeme { bytes, hash: spelling.hash(), hints }
    }

    /// A word with letters beyond ASCII. Where no blanks are written between words, each character is one: pairs of
    /// neighbours then are most of what a dictionary would find.
    #[cold]
    fn non_ascii_word(&mut self) -> WordLexeme<'t> {
        let rest = &self.text[self.at..];
        if let Some(first) = rest.chars().next().filter(|&first| is_unspaced(first)) {
            return self.finish_word(&Spelling::of(&rest.as_bytes()[..first.len_utf8()]));
        }
        let ends = |c: char| is_unspaced(c) || !c.is_alphanumeric() && !matches!(c, '\'' | '_');
        let spelling = Spelling::of(&rest.as_bytes()[..rest.find(ends).unwrap_or(rest.len())]);
        self.finish_word(&spelling)
    }

    #[inline(always)]
    fn number(&mut self) -> NumberLexeme<'t> {
        let spelling = Spelling::run(self.text.as_bytes(), self.at, swar::digits);
        NumberLexeme { digits: self.take(spelling.bytes), hash: spelling.hash() }
    }

    /// What begins beyond ASCII, or a blank.
    #[cold]
    fn non_ascii(&mut self, look: &mut impl LexemeVisitor<'t>) {
        let rest = &self.text[self.at..];
        let Some(first) = rest.chars().next() else { return };
        if first.is_alphabetic() {
            look.word(&self.non_ascii_word());
        } else if first.is_whitespace() {
            self.at += rest.len() - rest.trim_start().len();
        } else {
            self.at += first.len_utf8();
            look.sign(first);
        }
    }

    fn take(&mut self, count: usize) -> &'t [u8] {
        let taken = &self.text.as_bytes()[self.at..self.at + count];
        self.at += count;
        taken
    }
}

/// Letters of scripts that write no blanks between words: Thai to Khmer, kana, Han.
pub(super) fn is_unspaced(letter: char) -> bool {
    matches!(letter, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
        && letter.is_alphabetic()
}

#[cfg(test)]
mod tests {
    use super::super::plain_reading::PIECES;
    use super::*;

    /// The lexemes of a text, words between `<` and `>`, numbers between `[` and `]`.
    #[derive(Default)]
    struct ShownLexemes(String);

    impl<'t> LexemeVisitor<'t> for ShownLexemes {
        fn word(&mut self, word: &WordLexeme<'t>) {
            self.0 += &format!("<{}>", utf8(word.bytes));
        }

        fn number(&mut self, number: &NumberLexeme<'t>) {
            self.0 += &format!("[{}]", utf8(number.digits));
        }

        fn sign(&mut self, sign: char) {
            self.0.push(sign);
        }
    }

    fn utf8(bytes: &[u8]) -> String {
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    fn all<'t, L: LexemeVisitor<'t> + Default>(text: &'t str) -> L {
        let (mut lexemes, mut look) = (Lexer::of(text), L::default());
        while lexemes.visit_next(&mut look) {}
        look
    }

    fn check(text: &str, expected: &str) {
        assert_eq!(all::<ShownLexemes>(text).0, expected);
    }

    #[test]
    fn words_numbers_and_signs_are_told_apart() {
        check("What's 34*(5 - x1)?", "<What's>[34]*([5]-<x1>)?");
        check("élan\u{a0}né, \u{2003}\u{b}\t naïve_ness²", "<élan><né>,<naïve_ness²>");
        check("_a 'b' 7th … 日本x ٣", "_<a>'<b'>[7]<th>…<日><本><x>٣");
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
                first if is_unspaced(first) => Some(first.len_utf8()),
                first if first.is_alphabetic() => rest.find(|c| !inside(c) || is_unspaced(c)),
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
        stint_types::units::mix64(state ^ u64::try_from(lower.len()).unwrap())
    }

    /// Each lexeme with its hash.
    #[derive(Default)]
    struct Hashed(Vec<(String, u64)>);

    impl<'t> LexemeVisitor<'t> for Hashed {
        fn word(&mut self, word: &WordLexeme<'t>) {
            self.0.push((utf8(word.bytes), word.hash));
        }

        fn number(&mut self, number: &NumberLexeme<'t>) {
            self.0.push((utf8(number.digits), number.hash));
        }

        fn sign(&mut self, sign: char) {
            self.0.push((sign.to_string(), 0));
        }
    }

    fn quickly(text: &str) -> Vec<(String, u64)> {
        all::<Hashed>(text).0
    }

    #[test]
    fn eight_bytes_at_once_are_read_as_one_character_after_another() {
        let mut dice = stint_types::units::SeededRng::new(7);
        for _ in 0..5_000 {
            let count = dice.next_u64() % 24;
            let piece = |_| PIECES[usize::try_from(dice.next_u64() % PIECES.len() as u64).unwrap()];
            let text: String = (0..count).map(piece).collect();
            assert_eq!(quickly(&text), slowly(&text), "{text:?}");
        }
        for text in
            [include_str!("text.rs"), include_str!("../../../../docs/deciding.md"), include_str!("prior.md")]
        {
            assert_eq!(quickly(text), slowly(text));
        }
    }
}
