//! What one pass over a text counts for the shipped prior: words, signs by their kind, cue words by their style.

use super::cue::QuestionStyle;
use super::lexeme::WordLexeme;

/// Kinds of signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignKind {
    Question,
    Comma,
    Stop,
    Formula,
    Operator,
    Bracket,
    Quote,
    Colon,
    Percent,
    Foreign,
    Other,
}

/// What one pass over the lexemes counts.
#[derive(Debug, Default)]
pub(super) struct SurfaceCounts {
    pub(super) words: usize,
    pub(super) letters: usize,
    pub(super) capitals: usize,
    pub(super) numbers: usize,
    pub(super) digits: usize,
    signs: [usize; SignKind::Other as usize + 1],
    styles: [usize; QuestionStyle::COUNT],
}

impl SurfaceCounts {
    #[inline]
    pub(super) fn word(&mut self, word: &WordLexeme<'_>) {
        self.words += 1;
        self.letters += word.bytes.len();
        self.capitals += usize::from(word.bytes[0].is_ascii_uppercase());
        if let Some(style) = word.hints.style {
            self.styles[style as usize] += 1;
        }
    }

    #[inline]
    pub(super) fn number(&mut self, digits: &[u8]) {
        self.numbers += 1;
        self.digits += digits.len();
    }

    #[inline]
    pub(super) fn sign(&mut self, sign: char) {
        self.signs[SignKind::of(sign) as usize] += 1;
    }

    /// How many signs of this kind there are.
    pub(super) fn signs(&self, kind: SignKind) -> usize {
        self.signs[kind as usize]
    }

    /// How many words of this style there are.
    pub(super) fn style(&self, style: QuestionStyle) -> usize {
        self.styles[style as usize]
    }
}

impl SignKind {
    fn of(sign: char) -> SignKind {
        match sign {
            '?' => SignKind::Question,
            ',' => SignKind::Comma,
            '.' => SignKind::Stop,
            '\\' | '$' => SignKind::Formula,
            '+' | '*' | '/' | '=' | '^' | '<' | '>' | '-' => SignKind::Operator,
            '(' | ')' | '[' | ']' | '{' | '}' => SignKind::Bracket,
            '"' | '\'' | '“' | '”' | '’' => SignKind::Quote,
            ':' | ';' => SignKind::Colon,
            '%' => SignKind::Percent,
            sign if !sign.is_ascii() => SignKind::Foreign,
            _ => SignKind::Other,
        }
    }
}
