//! The shape of a question's options: how many, how long, and what they are made of.

use super::scale::{as_number, flag, log};

/// The shape of the options; all zero where there are none.
#[derive(Debug, Default)]
pub(super) struct OptionShape {
    pub(super) count: f64,
    pub(super) mean: f64,
    pub(super) longest: f64,
    pub(super) spread: f64,
    pub(super) digits: f64,
    pub(super) numeric: f64,
    pub(super) formulas: f64,
    pub(super) commas: f64,
    pub(super) capitals: f64,
    pub(super) sentences: f64,
    pub(super) collective: f64,
}

const DIGIT: u8 = 1;
const LETTER: u8 = 2;
const FORMULA: u8 = 4;
const COMMA: u8 = 8;

/// Kinds of bytes that tell what an option is made of: looked up, for what comes next in an option is hard to guess.
static KINDS: [u8; 256] = {
    let mut kinds = [0; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        kinds[byte as usize] = match byte {
            b'0'..=b'9' => DIGIT,
            b'a'..=b'z' | b'A'..=b'Z' => LETTER,
            b'\\' | b'$' => FORMULA,
            b',' => COMMA,
            _ => 0,
        };
        byte += 1;
    }
    kinds
};

impl OptionShape {
    /// The shape of these options.
    pub(super) fn of(options: &[&str]) -> OptionShape {
        if options.is_empty() {
            return OptionShape::default();
        }
        let mut sums = OptionShape { count: as_number(options.len()), ..OptionShape::default() };
        let mut square = 0.0;
        for option in options {
            let length = log(option.len());
            sums.mean += length;
            square += length * length;
            sums.longest = sums.longest.max(length);
            sums.add(option.trim());
        }
        let each = 1.0 / sums.count;
        for sum in [&mut sums.mean, &mut sums.digits, &mut sums.numeric, &mut sums.formulas] {
            *sum *= each;
        }
        for sum in [&mut sums.commas, &mut sums.capitals, &mut sums.sentences] {
            *sum *= each;
        }
        sums.spread = (square * each - sums.mean * sums.mean).max(0.0).sqrt();
        sums
    }

    fn add(&mut self, option: &str) {
        let kinds = option.bytes().fold(0, |kinds, byte| kinds | KINDS[usize::from(byte)]);
        let [digits, letters, formula, comma] = [DIGIT, LETTER, FORMULA, COMMA].map(|kind| kinds & kind != 0);
        self.digits += flag(digits);
        self.numeric += flag(digits && (!letters || option.len() <= 8));
        self.formulas += flag(formula);
        self.commas += flag(comma);
        self.capitals += flag(option.starts_with(|c: char| c.is_ascii_uppercase()));
        self.sentences += flag(option.ends_with('.'));
        let opens = option.get(..4).unwrap_or_default();
        if opens.eq_ignore_ascii_case("none")
            || opens.eq_ignore_ascii_case("all ")
            || opens.eq_ignore_ascii_case("both")
        {
            self.collective = 1.0;
        }
    }
}
