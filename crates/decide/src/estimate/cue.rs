//! Words that tell what a question is about, and how it is put.

use super::spelling::Spelling;

/// What a word hints at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cue {
    /// Something is multiplied, in words.
    Rate,
    /// Two things are compared.
    Compare,
    /// An amount is asked for.
    Amount,
    /// Mathematics without numbers.
    Proof,
    /// Something is to be found in a text.
    Extract,
    /// A program.
    Code,
    /// A word of programs that is one of English too.
    SharedCode,
    /// A language that programs are written in, or a tool for them.
    Language,
    /// The same, where it is a word of English too.
    Tool,
    /// Something that is made of a program's text.
    Programming,
    /// Something is to be made, or mended.
    Make,
}

impl Cue {
    /// How many there are.
    pub(super) const COUNT: usize = Cue::Make as usize + 1;
}

/// How a question is put, for the shipped prior.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuestionStyle {
    /// What is asked for is what does not hold.
    Negation,
    /// Something is worked out.
    Calculation,
    /// Something is named.
    Question,
    /// Something is weighed or explained.
    Judgement,
    /// Something is given or supposed.
    Condition,
    /// Something is multiplied.
    Rate,
    /// It points to what stands elsewhere.
    Reference,
    /// It is about statements that hold or not.
    Statement,
}

impl QuestionStyle {
    /// How many there are.
    pub(super) const COUNT: usize = QuestionStyle::Statement as usize + 1;
}

/// Words by what they hint at.
pub(super) const CUES: &[(Cue, &[&str])] = &[
    (
        Cue::Rate,
        &[
            "per", "each", "every", "times", "rows", "boxes", "packs", "bags", "day", "days", "week",
            "weeks", "hour", "hours",
        ],
    ),
    (Cue::Compare, &["larger", "bigger", "greater", "smaller", "less", "largest", "smallest", "compare"]),
    (
        Cue::Amount,
        &[
            "many",
            "much",
            "amount",
            "calculate",
            "compute",
            "sum",
            "solve",
            "viele",
            "viel",
            "berechne",
            "combien",
            "calcule",
            "cuantos",
            "quanti",
        ],
    ),
    (
        Cue::Proof,
        &[
            "prove",
            "proof",
            "theorem",
            "lemma",
            "integral",
            "derivative",
            "equation",
            "equations",
            "polynomial",
            "probability",
            "modulo",
            "divisible",
            "integers",
            "congruent",
            "eigenvalue",
            "eigenvalues",
            "perpendicular",
            "beweise",
        ],
    ),
    (Cue::Extract, &["extract", "summarize", "summarise", "summary", "quote"]),
    (
        Cue::Code,
        &[
            "fn",
            "def",
            "impl",
            "struct",
            "const",
            "async",
            "println",
            "printf",
            "nullptr",
            "elif",
            "enum",
            "func",
            "nums",
            "subarray",
            "subarrays",
            "substring",
        ],
    ),
    (Cue::SharedCode, &["return", "await", "lambda", "void", "import"]),
    (
        Cue::Language,
        &[
            "python",
            "javascript",
            "typescript",
            "java",
            "kotlin",
            "golang",
            "sql",
            "postgresql",
            "postgres",
            "mysql",
            "sqlite",
            "html",
            "css",
            "bash",
            "regex",
            "numpy",
            "dockerfile",
            "leetcode",
            "rustc",
            "haskell",
            "php",
        ],
    ),
    (Cue::Tool, &["react", "pandas"]),
    (
        Cue::Programming,
        &[
            "dataframe",
            "dataframes",
            "function",
            "code",
            "program",
            "script",
            "algorithm",
            "query",
            "component",
            "endpoint",
            "bug",
            "compile",
            "linked",
            "recursion",
            "variable",
        ],
    ),
    (
        Cue::Make,
        &["write", "implement", "create", "refactor", "debug", "fix", "review", "rewrite", "optimize", "why"],
    ),
];

/// Words by the style that they belong to.
pub(super) const STYLES: &[(QuestionStyle, &[&str])] = &[
    (
        QuestionStyle::Negation,
        &["not", "except", "least", "false", "incorrect", "never", "cannot", "without"],
    ),
    (
        QuestionStyle::Calculation,
        &["calculate", "compute", "determine", "find", "evaluate", "solve", "many", "much", "estimate"],
    ),
    (QuestionStyle::Question, &["what", "which", "who", "when", "where", "whose"]),
    (
        QuestionStyle::Judgement,
        &["why", "how", "explain", "describe", "best", "likely", "most", "should", "according"],
    ),
    (QuestionStyle::Condition, &["if", "suppose", "assume", "assuming", "let", "given", "consider"]),
    (QuestionStyle::Rate, &["per", "each", "every", "times", "percent", "half", "twice", "rate"]),
    (QuestionStyle::Reference, &["following", "above", "below", "refers", "passage", "argument"]),
    (QuestionStyle::Statement, &["statement", "statements", "true"]),
];

/// What a word in any case hints at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct WordHints {
    /// What the question is about.
    pub cue: Option<Cue>,
    /// How it is put.
    pub style: Option<QuestionStyle>,
}

impl WordHints {
    const NONE: WordHints = WordHints { cue: None, style: None };

    /// The hints of a word, which may have an underscore in it.
    #[inline]
    pub(super) fn of(word: &Spelling, underscored: bool) -> WordHints {
        if underscored && word.bytes > 3 {
            return WordHints { cue: Some(Cue::Code), style: None };
        }
        TABLE.get(word.head)
    }
}

/// All words are shorter, so that the beginning of a longer one is none of them.
const HEAD: usize = 16;
/// Many more than words, so that each can have a place that no other has.
const PLACES: usize = 4096;
const KNOWN_MAX: usize = 256;

/// The words by their letters, made when this is compiled.
static TABLE: CueTable = CueTable::build();

/// A table without collisions: one look tells a word, or that it is none of them.
struct CueTable {
    multiplier: u64,
    /// Where the word with that hash stands in `known`; 0 where there is none.
    places: [u8; PLACES],
    /// The first is no word.
    known: [([u64; 2], WordHints); KNOWN_MAX],
}

impl CueTable {
    /// Takes no branch: which words come next is hard to guess.
    #[inline(always)]
    fn get(&self, head: [u64; 2]) -> WordHints {
        let at = self.places[place(head, self.multiplier)];
        let ([low, high], _) = self.known[usize::from(at)];
        let is_it = (low ^ head[0]) | (high ^ head[1]) == 0;
        self.known[usize::from(if is_it { at } else { 0 })].1
    }

    const fn build() -> CueTable {
        let (known, count) = known();
        let multiplier = multiplier(&known, count);
        let mut places = [0; PLACES];
        let mut at = 1;
        while at < count {
            assert!(at < KNOWN_MAX, "there are too many cue words");
            places[place(known[at].0, multiplier)] = at.to_le_bytes()[0];
            at += 1;
        }
        CueTable { multiplier, places, known }
    }
}

const fn place(head: [u64; 2], multiplier: u64) -> usize {
    ((head[0] ^ head[1].rotate_left(29)).wrapping_mul(multiplier) >> 52) as usize
}

/// A multiplier that gives each of the words a place of its own: the first that does of a row of odd numbers.
const fn multiplier(known: &[([u64; 2], WordHints); KNOWN_MAX], count: usize) -> u64 {
    let mut multiplier = 0x9e37_79b9_7f4a_7c15_u64;
    loop {
        let mut taken = [0_u64; PLACES / 64];
        let mut at = 1;
        while at < count {
            let place = place(known[at].0, multiplier);
            if taken[place / 64] >> (place % 64) & 1 == 1 {
                break;
            }
            taken[place / 64] |= 1 << (place % 64);
            at += 1;
        }
        if at == count {
            return multiplier;
        }
        multiplier = multiplier.wrapping_mul(0xd134_2543_de82_ef95);
    }
}

/// The words of both lists from the second entry on, each once, and how many entries there are.
const fn known() -> ([([u64; 2], WordHints); KNOWN_MAX], usize) {
    let (mut known, mut count) = ([([0; 2], WordHints::NONE); KNOWN_MAX], 1);
    let mut kind = 0;
    while kind < CUES.len() {
        let (cue, words) = CUES[kind];
        let mut word = 0;
        while word < words.len() {
            let at = entry(&mut known, &mut count, head(words[word]));
            known[at].1.cue = Some(cue);
            word += 1;
        }
        kind += 1;
    }
    let mut kind = 0;
    while kind < STYLES.len() {
        let (style, words) = STYLES[kind];
        let mut word = 0;
        while word < words.len() {
            let at = entry(&mut known, &mut count, head(words[word]));
            known[at].1.style = Some(style);
            word += 1;
        }
        kind += 1;
    }
    (known, count)
}

/// Where a word stands, or will from now on.
const fn entry(known: &mut [([u64; 2], WordHints); KNOWN_MAX], count: &mut usize, head: [u64; 2]) -> usize {
    let mut at = 1;
    while at < *count {
        if known[at].0[0] == head[0] && known[at].0[1] == head[1] {
            return at;
        }
        at += 1;
    }
    known[at].0 = head;
    *count += 1;
    at
}

/// A word of small letters as a `Spelling` begins.
const fn head(word: &str) -> [u64; 2] {
    let bytes = word.as_bytes();
    assert!(bytes.len() < HEAD, "a cue word is too long");
    let mut head = [0; 2];
    let mut at = 0;
    while at < bytes.len() {
        head[at / 8] |= (bytes[at] as u64) << (8 * (at % 8));
        at += 1;
    }
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints(word: &str) -> WordHints {
        WordHints::of(&Spelling::of(word.as_bytes()), word.contains('_'))
    }

    #[test]
    fn every_word_of_the_lists_is_found_in_any_case_and_no_other() {
        for (cue, words) in CUES {
            words.iter().for_each(|word| assert_eq!(hints(&word.to_uppercase()).cue, Some(*cue), "{word}"));
        }
        for (style, words) in STYLES {
            words.iter().for_each(|word| assert_eq!(hints(word).style, Some(*style), "{word}"));
        }
        let known = |word: &str| {
            CUES.iter().any(|(_, words)| words.contains(&word))
                || STYLES.iter().any(|(_, words)| words.contains(&word))
        };
        let (mut with, mut without) = (0, 0);
        for word in include_str!("../../../../docs/deciding.md").split(|c: char| !c.is_ascii_lowercase()) {
            assert_eq!(hints(word) != WordHints::NONE, known(word), "{word}");
            if known(word) { with += 1 } else { without += 1 }
        }
        assert!(with > 100 && without > 1000);
    }

    #[test]
    fn names_with_underscores_are_of_programs() {
        assert_eq!(hints("a_b_c").cue, Some(Cue::Code));
        assert_eq!(hints("a_very_long_name_of_a_function").cue, Some(Cue::Code));
        assert_eq!(hints("a_b"), WordHints::NONE);
    }
}
