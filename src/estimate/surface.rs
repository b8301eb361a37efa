//! What the shipped prior counts in a question, whatever it is about: lengths, signs, cue words, and the shape of
//! its options. These carry it where words are strange.

use crate::catalog::SURFACE_FEATURES;

use super::cue::QuestionStyle;
use super::lexeme::WordLexeme;
use super::text::TextAnalysis;

/// The surface features of a text; the first is always 1.
pub(super) fn of(reading: &TextAnalysis<'_>) -> [f64; SURFACE_FEATURES] {
    let counts = &reading.tally.surface;
    let options = OptionShape::of(&reading.options);
    let seen = reading.text.trim_end();
    let ends = |sign: char| flag(seen.lines().next_back().is_some_and(|line| line.ends_with(sign)));
    let asks = |sign: char| flag(reading.question.trim_end().ends_with(sign));
    let numeric = options.numeric;
    let long = log(reading.question.len());
    let numbers = log(counts.numbers);
    [
        1.0,
        long,
        flag(counts.numbers > 0 && numeric > 0.5),
        log(counts.words),
        share(counts.letters, counts.words),
        numbers,
        log(counts.digits),
        share(counts.capitals, counts.letters),
        log(counts.signs[QUESTION]),
        log(counts.signs[COMMA]),
        log(counts.signs[STOP]),
        log(counts.signs[FORMULA]),
        log(counts.signs[OPERATOR]),
        log(counts.signs[BRACKET]),
        log(counts.signs[QUOTE]),
        log(counts.signs[COLON]),
        log(counts.signs[PERCENT]),
        log(counts.signs[FOREIGN]),
        flag(counts.signs[FORMULA] > 0),
        flag(reading.question.contains("__")),
        log(reading.lines),
        flag(counts.styles[QuestionStyle::Negation as usize] > 0),
        log(counts.styles[QuestionStyle::Calculation as usize]),
        log(counts.styles[QuestionStyle::Question as usize]),
        log(counts.styles[QuestionStyle::Judgement as usize]),
        log(counts.styles[QuestionStyle::Condition as usize]),
        log(counts.styles[QuestionStyle::Rate as usize]),
        log(counts.styles[QuestionStyle::Reference as usize]),
        flag(counts.styles[QuestionStyle::Statement as usize] > 0),
        asks('?'),
        asks('.'),
        asks(':'),
        ends('.'),
        options.count,
        flag(options.count >= 10.0),
        flag(options.count > 0.0 && options.count <= 4.0),
        options.mean,
        log(counts.words) * numeric,
        options.longest,
        options.spread,
        options.digits,
        numeric,
        numeric * numbers,
        options.formulas,
        options.commas,
        options.capitals,
        options.sentences,
        options.collective,
    ]
}

const QUESTION: usize = 0;
const COMMA: usize = 1;
const STOP: usize = 2;
const FORMULA: usize = 3;
const OPERATOR: usize = 4;
const BRACKET: usize = 5;
const QUOTE: usize = 6;
const COLON: usize = 7;
const PERCENT: usize = 8;
const FOREIGN: usize = 9;
const OTHER: usize = 10;

/// What one pass over the lexemes counts.
#[derive(Debug, Default)]
pub(super) struct SurfaceCounts {
    words: usize,
    letters: usize,
    capitals: usize,
    numbers: usize,
    digits: usize,
    signs: [usize; OTHER + 1],
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
        self.signs[kind(sign)] += 1;
    }
}

fn kind(sign: char) -> usize {
    match sign {
        '?' => QUESTION,
        ',' => COMMA,
        '.' => STOP,
        '\\' | '$' => FORMULA,
        '+' | '*' | '/' | '=' | '^' | '<' | '>' | '-' => OPERATOR,
        '(' | ')' | '[' | ']' | '{' | '}' => BRACKET,
        '"' | '\'' | '“' | '”' | '’' => QUOTE,
        ':' | ';' => COLON,
        '%' => PERCENT,
        sign if !sign.is_ascii() => FOREIGN,
        _ => OTHER,
    }
}

/// The shape of the options; all zero where there are none.
#[derive(Default)]
struct OptionShape {
    count: f64,
    mean: f64,
    longest: f64,
    spread: f64,
    digits: f64,
    numeric: f64,
    formulas: f64,
    commas: f64,
    capitals: f64,
    sentences: f64,
    collective: f64,
}

impl OptionShape {
    fn of(options: &[&str]) -> OptionShape {
        if options.is_empty() {
            return OptionShape::default();
        }
        let mut sums = OptionShape { count: count(options.len()), ..OptionShape::default() };
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
        let mut classes = [false; 4];
        for byte in option.bytes() {
            match byte {
                b'0'..=b'9' => classes[0] = true,
                b'a'..=b'z' | b'A'..=b'Z' => classes[1] = true,
                b'\\' | b'$' => classes[2] = true,
                b',' => classes[3] = true,
                _ => {}
            }
        }
        let [digits, letters, formula, comma] = classes;
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

/// ln(1 + count).
fn log(counted: usize) -> f64 {
    count(counted).ln_1p()
}

fn share(part: usize, of: usize) -> f64 {
    count(part) / count(of.max(1))
}

#[expect(clippy::cast_precision_loss, reason = "counts within 16 KB of text")]
fn count(counted: usize) -> f64 {
    counted as f64
}

fn flag(set: bool) -> f64 {
    if set { 1.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::text::QuestionText;

    fn check(text: &str, feature: usize, expected: f64) {
        let found = of(&TextAnalysis::of(&QuestionText::question(text)))[feature];
        assert!((found - expected).abs() < 1e-12, "feature {feature} of {text:?} is {found}");
    }

    #[test]
    fn options_are_told_from_the_question() {
        let question = "Which is not even?\nA) 2\nB) 4\nC) 7, or none";
        check(question, 33, 3.0);
        check(question, 21, 1.0);
        check(question, 29, 1.0);
        check(question, 41, 2.0 / 3.0);
        check("Which is even?", 33, 0.0);
    }

    #[test]
    fn an_empty_text_has_only_its_bias() {
        let features = of(&TextAnalysis::of(&QuestionText::question("")));
        assert!((features.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }
}
