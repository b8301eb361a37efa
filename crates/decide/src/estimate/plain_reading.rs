//! The reading of a text once more, plainly: character by character, word by word, without tables, batches or tricks. The
//! shipped weights go by what is read, so the quick way must find the same, to the last bit.

use std::collections::BTreeMap;

use stint_types::units::{SeededRng, mix64};

use super::calculation::CalculationCounts;
use super::cue::{CUES, Cue, STYLES};
use super::lexeme::is_unspaced;
use super::lexeme_counts::LexemeCounts;
use super::sign_kind::SignKind;
use super::text::{QuestionText, TextAnalysis};

/// Words, numbers and signs of a text.
fn lexemes(text: &str) -> Vec<&str> {
    let inside = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '_');
    let (mut rest, mut found) = (text.trim_start(), Vec::new());
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '0'..='9' => rest.find(|c: char| !c.is_ascii_digit()),
            first if is_unspaced(first) => Some(first.len_utf8()),
            first if first.is_alphabetic() => rest.find(|c| !inside(c) || is_unspaced(c)),
            first => Some(first.len_utf8()),
        };
        let (lexeme, after) = rest.split_at(end.unwrap_or(rest.len()));
        found.push(lexeme);
        rest = after.trim_start();
    }
    found
}

/// What is counted of them, by name.
#[derive(Debug, Default, PartialEq, Eq)]
struct PlainCounts {
    counts: BTreeMap<String, usize>,
    operand: Option<usize>,
    factor: Option<usize>,
    last: char,
}

impl PlainCounts {
    fn of(text: &str) -> BTreeMap<String, usize> {
        let mut plain = PlainCounts::default();
        for lexeme in lexemes(text) {
            let first = lexeme.chars().next().unwrap();
            match first {
                '0'..='9' => plain.number(lexeme),
                _ if first.is_alphabetic() => plain.word(lexeme, first),
                sign => plain.sign(sign),
            }
        }
        plain.counts.retain(|_, count| *count > 0);
        plain.counts
    }

    fn add(&mut self, name: &str, count: usize) {
        *self.counts.entry(name.to_owned()).or_default() += count;
    }

    fn word(&mut self, word: &str, first: char) {
        self.add("words", 1);
        self.add("letters", word.len());
        self.add("capitals", usize::from(first.is_ascii_uppercase()));
        self.add("unspaced", usize::from(first as u32 > 0x7ff && word.chars().count() == 1));
        let lower = word.to_ascii_lowercase();
        let is_name = word.contains('_') && word.len() > 3;
        let cue = CUES.iter().find(|(_, words)| words.contains(&&*lower)).map(|(cue, _)| *cue);
        if let Some(cue) = if is_name { Some(Cue::Code) } else { cue } {
            self.add(&format!("{cue:?}"), 1);
        }
        let style = STYLES.iter().find(|(_, words)| words.contains(&&*lower)).map(|(style, _)| *style);
        if let Some(style) = style.filter(|_| !is_name) {
            self.add(&format!("style {style:?}"), 1);
        }
        (self.operand, self.factor) = (None, None);
        if word.len() == 1 { self.operand_ends() } else { self.last = ' ' }
    }

    fn operand_ends(&mut self) {
        self.add("operations", usize::from(self.last == '+'));
        self.last = '1';
    }

    fn number(&mut self, number: &str) {
        let digits = number.replace('0', "").len().max(1);
        self.add("numbers", 1);
        self.add("digits", number.len());
        let left = self.factor.take().unwrap_or(0);
        self.add("steps", left * digits);
        self.operand = Some(digits);
        self.operand_ends();
    }

    fn sign(&mut self, sign: char) {
        self.last = match sign {
            _ if "+*/×÷=^-−<>".contains(sign) && self.last == '1' => '+',
            _ if "()[]$\\^-".contains(sign) => self.last,
            _ => ' ',
        };
        self.add(&format!("sign {:?}", kind(sign)), 1);
        if sign.is_ascii() {
            self.add(&format!("ascii {sign:?}"), 1);
        }
        if sign == ')' {
            return;
        }
        if let Some(left) = self.operand.take() {
            if "*×·".contains(sign) {
                self.add("products", 1);
                self.factor = Some(left);
            } else if "+-−/÷^".contains(sign) {
                self.add("operators", 1);
                self.add("steps", 1);
            }
        }
    }
}

fn kind(sign: char) -> Option<SignKind> {
    let kinds = [
        ("?", SignKind::Question),
        (",", SignKind::Comma),
        (".", SignKind::Stop),
        ("\\$", SignKind::Formula),
        ("+*/=^<>-", SignKind::Operator),
        ("()[]{}", SignKind::Bracket),
        ("\"'“”’", SignKind::Quote),
        (":;", SignKind::Colon),
        ("%", SignKind::Percent),
    ];
    let known = kinds.iter().find(|(signs, _)| signs.contains(sign)).map(|(_, kind)| *kind);
    known.or((!sign.is_ascii()).then_some(SignKind::Foreign))
}

/// The same, of the quick way.
fn quick(counts: &LexemeCounts, calculation: &CalculationCounts) -> BTreeMap<String, usize> {
    let mut all: BTreeMap<String, usize> = [
        ("words", counts.words()),
        ("letters", counts.letters),
        ("capitals", counts.capitals),
        ("unspaced", counts.unspaced),
        ("numbers", counts.numbers),
        ("digits", counts.digits),
        ("operators", calculation.operators),
        ("products", calculation.products),
        ("steps", calculation.steps),
        ("operations", calculation.operations),
    ]
    .map(|(name, count)| (name.to_owned(), count))
    .into();
    all.extend(CUES.iter().map(|(cue, _)| (format!("{cue:?}"), counts.cue(*cue))));
    all.extend(STYLES.iter().map(|(style, _)| (format!("style {style:?}"), counts.style(*style))));
    let signs: Vec<char> = (0..=127_u8).map(char::from).chain(['“', '…']).collect();
    for kind in signs.iter().filter_map(|&sign| kind(sign)) {
        all.insert(format!("sign {:?}", Some(kind)), kind.count(counts));
    }
    let others = signs.iter().filter(|sign| sign.is_ascii() && kind(**sign).is_none());
    all.insert("sign None".into(), others.map(|&sign| counts.signs(&[sign as u8])).sum());
    for sign in signs.iter().filter(|sign| sign.is_ascii()) {
        all.insert(format!("ascii {sign:?}"), counts.signs(&[*sign as u8]));
    }
    all.retain(|_, count| *count > 0);
    all
}

fn check(text: &str) {
    let question = QuestionText::question(text);
    let analysis = TextAnalysis::of(&question);
    let tally = &analysis.tally;
    assert_eq!(quick(&tally.counts, &tally.calculation), PlainCounts::of(analysis.text), "{text:?}");
    assert_eq!(analysis.lines, analysis.question.matches('\n').count(), "{text:?}");
}

/// What random texts are made of, for every test that reads one twice.
pub(super) const PIECES: [&str; 68] = [
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
    ")",
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
    "\\frac{a}{b}",
    "$",
    "^",
    "A) ",
    "\nB) 3",
    "how many ",
    "python ",
    "def f(x):",
    "```",
    "证明",
    "多少",
    " per ",
    " each ",
    "not ",
    "7*8",
    "34 - 5",
    "+",
    "=",
    "{",
    "}",
    ";",
    "\"",
    ":",
    "%",
    "?",
    ".",
    ", ",
    "\t",
    "\r\n",
    "true",
    " suppose ",
    "x",
    "y ",
    "write a function",
    "eigenvalues",
    "٣",
    "é'x_",
    "x日",
    "Ünï",
    "“so”",
    " compute 204*70",
    "more_than_thirty_two_letters_in_one_word",
    "·3−",
];

#[test]
fn a_text_is_read_as_plainly_as_by_hand_whatever_is_in_it() {
    let mut dice = SeededRng::new(11);
    let mut text = |count: u64| -> String {
        (0..count).map(|_| PIECES[usize::try_from(dice.next_u64() % 68).unwrap()]).collect()
    };
    (0..40).for_each(|count| (0..4).for_each(|_| check(&text(count))));
    check(&text(3_000));
    check(&text(30_000));
    for text in [
        "",
        "\n",
        " ",
        "日本",
        &"x".repeat(100_000),
        &"证明。".repeat(20_000),
        include_str!("text.rs"),
        include_str!("prior.md"),
    ] {
        check(text);
    }
}

#[test]
fn the_hash_of_a_sign_is_that_of_its_number() {
    let mut hashes = Vec::new();
    TextAnalysis::with(&QuestionText::question("§?"), |lexeme| hashes.push(lexeme));
    assert_eq!(hashes, ['§', '?'].map(|sign| mix64(u64::from(sign))));
}
