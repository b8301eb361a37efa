//! The calculations that are written out in a text: what stands between its numbers, and how many steps that takes.

/// Signs of calculation, counted while a text is read.
#[derive(Debug, Default)]
pub(super) struct CalculationCounts {
    /// Sums, differences, quotients and powers after a number.
    pub operators: usize,
    /// Products after a number.
    pub products: usize,
    /// The digits that are worked through.
    pub steps: usize,
    /// Numbers, or letters in their place, with a sign of calculation between them.
    pub operations: usize,
    /// Digits of the last number, where an operand has just ended; else 0.
    operand: usize,
    /// The digits left of a product whose right side is still to come; else 0.
    factor: usize,
    last: LastLexeme,
}

/// What stood last, as far as an operation may go on from it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum LastLexeme {
    #[default]
    Other,
    Number,
    /// A sign of calculation after a number.
    Sign,
}

impl CalculationCounts {
    /// A word: a single letter may stand in a number's place.
    #[inline(always)]
    pub(super) fn word(&mut self, word: &[u8]) {
        let is_letter = (word.len() == 1) & word[0].is_ascii_alphabetic();
        self.operations += usize::from(is_letter & (self.last == LastLexeme::Sign));
        self.last = if is_letter { LastLexeme::Number } else { LastLexeme::Other };
        self.operand = 0;
        self.factor = 0;
    }

    /// Zeros take no step of their own: 204 is two digits of work.
    #[inline(always)]
    pub(super) fn number(&mut self, number: &[u8]) {
        let digits = number.iter().filter(|&&digit| digit != b'0').count().max(1);
        self.steps += self.factor * digits;
        self.factor = 0;
        self.operand = digits;
        self.operations += usize::from(self.last == LastLexeme::Sign);
        self.last = LastLexeme::Number;
    }

    /// Most signs stand where no calculation is.
    #[inline(always)]
    pub(super) fn sign(&mut self, sign: char) {
        if self.operand != 0 || self.last != LastLexeme::Other {
            self.sign_after_operand(sign);
        }
    }

    fn sign_after_operand(&mut self, sign: char) {
        self.last = match (sign, self.last) {
            ('+' | '*' | '/' | '×' | '÷' | '=' | '^' | '-' | '−' | '<' | '>', LastLexeme::Number) => {
                LastLexeme::Sign
            }
            ('(' | ')' | '[' | ']' | '$' | '\\' | '^' | '-', last) => last,
            _ => LastLexeme::Other,
        };
        match (sign, self.operand) {
            (')', _) => return, // the bracket is an operand, as long as its last number
            (_, 0) => {}
            ('*' | '×' | '·', left) => {
                self.products += 1;
                self.factor = left;
            }
            ('+' | '-' | '−' | '/' | '÷' | '^', _) => {
                self.operators += 1;
                self.steps += 1;
            }
            _ => {}
        }
        self.operand = 0;
    }
}
