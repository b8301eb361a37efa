//! Whether a request is arithmetic, as the card of the embedded model (`models/README.md`) lists it.
//!
//! It prefers to accept: a calculation in unknown words is let through, since a wrong answer does less harm than a wrong
//! refusal. It keeps away talk, code and long texts, to which that model can only answer with a number, and arithmetic that
//! the model never saw: division, powers, decimals, percentages, equations, signs written as words.

use stint_types::chat::Request;

use super::text::QuestionText;

/// The longest question that fits the model, whose context is 512 bytes.
const BYTES_MAX: usize = 400;

/// In a text of more words, a calculation is only part of what is asked.
const WORDS_MAX: usize = 24;

/// The words of calculations and of the card's word problems. Names and things vary: see [`looks_arithmetic`].
const WORDS: &str = "a add added all altogether an and answer apples are away be bigger book books bought box boxes bus buy buys \
    by calculate can cards carries chairs coins compute count day days difference digit does each eggs equal \
    equals evaluate every expression find following for from gave get gets give gives got greater greatest had \
    has have he how i in is it its just larger largest left less many me minus more much multiplied multiply \
    number numbers of off on one ones only or pages pens people per please plus product read reads remain result \
    row rows s saves sell sells she simplify single smaller smallest solve spends stamps subtract sum take tell \
    than that the there they times to total value was we week weeks what what's whats which with work x you";

/// Words that stand for signs. The model never saw a question that has them alone.
const OPERATOR_WORDS: &str = "add added difference divide divided minus multiplied multiply plus product subtract subtracted sum times";

/// Words that ask for another operation, or for the result in another form.
const BEYOND: &str =
    "binary cubed double half halve hex hexadecimal modulo percent power root squared triple twice words";

/// The model never saw a number with more digits.
const DIGITS_MAX: usize = 4;

/// True if the last thing that the caller says looks like arithmetic.
pub fn is_arithmetic(request: &Request) -> bool {
    let text = QuestionText::of(request);
    text.bytes <= BYTES_MAX && looks_arithmetic(&text.excerpt)
}

/// True for a calculation in few words, for numbers and signs alone, and for two or more numbers among words of which less
/// than a third are unknown.
fn looks_arithmetic(text: &str) -> bool {
    let seen = ArithmeticCounts::of(text);
    if seen.unsupported > 0 || (seen.operator_words > 0 && seen.operations == 0) {
        return false;
    }
    let is_calculation = seen.operations > 0 && seen.words <= WORDS_MAX;
    let is_bare = seen.words == 0 && seen.operations + seen.dashes > 0;
    let is_told = seen.numbers > 1 && 3 * seen.strange < seen.words;
    is_calculation || is_bare || is_told
}

/// What was counted in a text.
#[derive(Debug, Default)]
struct ArithmeticCounts {
    numbers: usize,
    /// Signs of a calculation between two numbers.
    operations: usize,
    words: usize,
    /// Words that are not in `WORDS`.
    strange: usize,
    /// Words that stand for signs.
    operator_words: usize,
    /// Dashes between two numbers.
    dashes: usize,
    /// Signs, words and numbers of arithmetic that the card does not list.
    unsupported: usize,
}

/// What came before the current run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PreviousRun {
    Other,
    Number,
    /// A sign after a number.
    Sign,
    /// A dash after a number.
    Dash,
    /// A dash after anything else: a number right after it is negative.
    Minus,
    /// A sign after a number that makes it part of arithmetic that the card does not list.
    UnsupportedSign,
    /// A full stop or comma right after a number.
    Point,
}

impl ArithmeticCounts {
    fn of(text: &str) -> ArithmeticCounts {
        let (mut seen, mut last) = (ArithmeticCounts::default(), PreviousRun::Other);
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let (taken, kind) = match first {
                _ if first.is_ascii_digit() => (run(rest, |c| c.is_ascii_digit()), RunKind::Number),
                _ if first.is_alphabetic() => (run(rest, |c| c.is_alphabetic() || c == '\''), RunKind::Word),
                _ => (first.len_utf8(), RunKind::Sign(first)),
            };
            let (word, after) = rest.split_at(taken);
            last = seen.step(word, kind, last);
            rest = after;
        }
        seen
    }

    fn step(&mut self, text: &str, kind: RunKind, last: PreviousRun) -> PreviousRun {
        match (kind, last) {
            (RunKind::Number, _) => {
                self.numbers += 1;
                self.operations += usize::from(last == PreviousRun::Sign);
                self.dashes += usize::from(last == PreviousRun::Dash);
                self.unsupported += usize::from(
                    matches!(last, PreviousRun::UnsupportedSign | PreviousRun::Point | PreviousRun::Minus)
                        || text.len() > DIGITS_MAX,
                );
                PreviousRun::Number
            }
            (RunKind::Word, _) => {
                self.words += 1;
                self.strange += usize::from(!is_in(WORDS, text));
                self.operator_words += usize::from(is_in(OPERATOR_WORDS, text));
                self.unsupported += usize::from(is_in(BEYOND, text));
                if text.eq_ignore_ascii_case("x") && last == PreviousRun::Number {
                    PreviousRun::UnsupportedSign
                } else {
                    PreviousRun::Other
                }
            }
            (RunKind::Sign('+' | '*'), PreviousRun::Number) => PreviousRun::Sign,
            (RunKind::Sign('×' | '·' | '/' | '÷' | '^' | '=' | ':'), PreviousRun::Number)
            | (RunKind::Sign('*'), PreviousRun::Sign) => PreviousRun::UnsupportedSign,
            (RunKind::Sign('%'), PreviousRun::Number) => {
                self.unsupported += 1;
                PreviousRun::Other
            }
            // Dates and ranges are written with these.
            (RunKind::Sign('-' | '−'), PreviousRun::Number) => PreviousRun::Dash,
            (RunKind::Sign('-' | '−'), _) => PreviousRun::Minus,
            (RunKind::Sign(' '), PreviousRun::Minus) => PreviousRun::Other,
            (RunKind::Sign('.' | ','), PreviousRun::Number) => PreviousRun::Point,
            (RunKind::Sign(' '), PreviousRun::Point) => PreviousRun::Other,
            (RunKind::Sign(' ' | '(' | ')'), _) => last,
            (RunKind::Sign(_), _) => PreviousRun::Other,
        }
    }
}

/// What a run of characters is.
#[derive(Debug, Clone, Copy)]
enum RunKind {
    Number,
    Word,
    Sign(char),
}

/// How many bytes the run at the beginning of a text has.
fn run(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is_part(c)).unwrap_or(text.len())
}

fn is_in(words: &str, word: &str) -> bool {
    let lower = word.to_lowercase();
    words.split(' ').any(|known| known == lower)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_types::chat::{Message, Role};

    fn check(text: &str, expected: bool) {
        let messages = vec![Message::text(Role::System, "Be brief."), Message::text(Role::User, text)];
        assert_eq!(is_arithmetic(&Request::new("auto", messages)), expected, "{text}");
    }

    #[test]
    fn talk_code_and_long_texts_are_no_arithmetic() {
        for text in [
            "hi",
            "Who are you?",
            "What is the capital of France?",
            "Which day comes after Monday?",
            "What happened on 2024-05-03?",
            "Write a haiku about autumn",
            "Translate to German: I have 2 dogs and 3 cats at home",
            "你好",
            "",
            "def add(a, b):\n    return a + b",
        ] {
            check(text, false);
        }
        check(&"What is 1+1? ".repeat(40), false);
    }

    #[test]
    fn arithmetic_that_the_model_never_saw_is_none_of_its_own() {
        for text in [
            "100/8",
            "What is 10 / 4?",
            "2^10",
            "2**10",
            "3.5+2",
            "15% of 200",
            "What is 7 times 8?",
            "What is the sum of 3 and 4?",
            "How much is 5 plus 6?",
            "Solve x+3=7",
            "12 34",
            "123456 + 654321",
            "1,000+1",
            "What is half of 10 and 4?",
            "half of 10 + 3",
            "7 x 8",
            "7 × 8",
            "-3+5",
            "12*(-3)",
            "12+34*2 in words",
            "(1+2)*3 in hex",
        ] {
            check(text, false);
        }
    }

    #[test]
    fn a_calculation_is_let_through_however_it_is_put() {
        for text in [
            "2+2",
            "17*24+3=",
            "What is (34+15)*27-18*(9+4)?",
            "Hey, can you quickly tell me what 12 + 34 comes to, thanks!",
            "12-5",
            "2+2.",
            "What is 17+4, please? I have 5 minutes.",
            "Was ist 3*4?",
            "Alice picks 12 pears and gives 5 away. How many are left?",
        ] {
            check(text, true);
        }
    }

    /// Draws, the same every time.
    struct Draw(u64);

    impl Draw {
        fn below(&mut self, most: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % most
        }

        fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
            words[usize::try_from(self.below(words.len() as u64)).unwrap()]
        }

        /// An expression of the card's: terms, products and brackets.
        fn expression(&mut self, gap: &str) -> String {
            let term = |draw: &mut Draw| match draw.below(6) {
                0 => format!("({}{gap}+{gap}{})", draw.below(99), draw.below(99)),
                1 | 2 => format!("{}{gap}*{gap}{}", draw.below(99), draw.below(9)),
                _ => draw.below(999).to_string(),
            };
            let mut text = term(self);
            for _ in 0..=self.below(6) {
                text += &format!("{gap}{}{gap}{}", self.of(&["+", "-"]), term(self));
            }
            text
        }

        /// What the embedded model was trained on (`models/train/problems.py`).
        fn problem(&mut self) -> String {
            let gap = self.of(&["", " "]);
            let mut form = match self.below(20) {
                0..=11 => self.of(&ASKED).to_owned(),
                12..=14 => self.of(&COMPARED).to_owned(),
                _ => self.of(&STORIES).to_owned(),
            };
            let (name, thing) =
                (self.of(&["Anna", "Ben", "Carla", "Paul"]), self.of(&["apples", "eggs", "stamps"]));
            form = form.replace('N', name).replace('T', thing);
            while form.contains("{}") {
                form = form.replacen("{}", &self.expression(gap), 1);
            }
            while form.contains('#') {
                form = form.replacen('#', &self.below(99).to_string(), 1);
            }
            form
        }
    }

    const ASKED: [&str; 11] = [
        "What is {}?",
        "{}=?",
        "Calculate {}.",
        "How much is {}?",
        "{}",
        "Compute {}.",
        "What's {}?",
        "Evaluate {}.",
        "Solve {}.",
        "{} = ?",
        "Please calculate {}.",
    ];
    const COMPARED: [&str; 6] = [
        "Which is larger, {} or {}?",
        "Which is bigger, {} or {}?",
        "Which is greater, {} or {}?",
        "What is larger: {} or {}?",
        "Which is smaller, {} or {}?",
        "What is smaller: {} or {}?",
    ];
    const STORIES: [&str; 6] = [
        "N has # T, buys # more and gives # away. How many are left?",
        "N buys # boxes of # T and # single T. How many T is that?",
        "A book has # pages. N reads # pages a day for # days. How many pages are left?",
        "N saves # coins a week for # weeks and spends #. How many coins are left?",
        "A bus carries # people. # get off and # get on. How many people are on the bus?",
        "There are # rows of # red chairs and # rows of # blue ones. How many chairs is that?",
    ];

    #[test]
    fn every_form_of_the_card_is_arithmetic() {
        let mut draw = Draw(1);
        for _ in 0..2_000 {
            check(&draw.problem(), true);
        }
    }
}
