//! Kinds of signs, for the shipped prior.

use super::lexeme_counts::LexemeCounts;

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
}

impl SignKind {
    /// How many signs of this kind there are.
    pub(super) fn count(self, counts: &LexemeCounts) -> usize {
        let beyond_ascii = match self {
            SignKind::Quote => counts.foreign_quotes,
            SignKind::Foreign => counts.foreign,
            _ => 0,
        };
        counts.signs(self.ascii()) + beyond_ascii
    }

    /// Those of ASCII.
    fn ascii(self) -> &'static [u8] {
        match self {
            SignKind::Question => b"?",
            SignKind::Comma => b",",
            SignKind::Stop => b".",
            SignKind::Formula => b"\\$",
            SignKind::Operator => b"+*/=^<>-",
            SignKind::Bracket => b"()[]{}",
            SignKind::Quote => b"\"'",
            SignKind::Colon => b":;",
            SignKind::Percent => b"%",
            SignKind::Foreign => b"",
        }
    }
}
