//! The length that a message states for its answer: "in 600 words", "a 3000-word essay", "two paragraphs", "800字", "50 names",
//! "only the number".

use std::borrow::Cow;
use std::ops::RangeInclusive;

use super::number_words::{count_before, number};
use super::phrase_list::{FoundPhrase, PhraseList};

/// Such statements stand in the first or the last so many bytes.
const LOOKED_AT: usize = 300;
/// Tokens to one of each, as rules of thumb.
const UNITS: &[(&[&str], f64)] = &[
    (&["word", "words", "wort"], 1.35),
    (&["wörter", "wörtern"], 1.8),
    (&["mot", "mots", "palabra", "palabras", "palavra", "palavras", "parole"], 1.5),
    (&["слов", "слова", "словах"], 2.0),
    (&["sentence", "sentences", "satz", "sätze", "sätzen", "phrase", "phrases"], 25.0),
    (&["frase", "frases", "frasi", "предложении", "предложениях", "предложений"], 25.0),
    (&["paragraph", "paragraphs", "absatz", "absätze", "absätzen", "paragraphe", "paragraphes"], 110.0),
    (&["párrafo", "párrafos"], 110.0),
    (&["page", "pages", "seite", "seiten", "página", "páginas"], 600.0),
];
/// "En deux mots" and the like mean "briefly": of words in other languages a length is at least so many.
const IDIOMS: [&str; 7] = ["wort", "wört", "mot", "palabra", "palavra", "parole", "слов"];
const IDIOM_WORDS: f64 = 3.0;
/// What follows no blank, and has none behind it: tokens to a letter.
const LETTERS: [&str; 9] =
    ["字", "文字", "자로", "자 이내", "자 내외", "자 정도", "자 이상", "자 이하", "자 분량"];
const PER_LETTER: f64 = 0.9;
/// What stands before a length that an answer shall have, or else it is asked for with one of [`WRITES`].
const BEFORE: &[&str] = &[
    "in",
    "within",
    "under",
    "about",
    "around",
    "approximately",
    "roughly",
    "exactly",
    "least",
    "most",
    "maximum",
    "max",
    "over",
    "than",
    "to",
    "en",
    "environ",
    "etwa",
    "circa",
    "auf",
    "maximal",
    "höchstens",
    "mindestens",
    "ungefähr",
    "em",
    "на",
    "в",
    "до",
    "около",
];
const WRITES: &[&str] = &[
    "write",
    "draft",
    "compose",
    "generate",
    "create",
    "produce",
    "give me",
    "make",
    "schreib",
    "verfass",
    "rédige",
    "écri",
    "redacta",
    "escrib",
    "escreva",
    "scrivi",
    "напиш",
];
/// Whose text it is, where it is none that shall be written.
const OWNERS: [&str; 10] =
    ["my", "this", "our", "your", "his", "her", "their", "attached", "following", "existing"];
/// How a sentence begins that asks for many of a kind,
const POLITE: &[&str] =
    &["please", "can", "could", "would", "you", "kindly", "now", "i", "want", "need", "to"];
const GIVES: &[&str] = &[
    "give",
    "generate",
    "list",
    "write",
    "create",
    "suggest",
    "name",
    "produce",
    "provide",
    "make",
    "brainstorm",
    "come",
    "draft",
    "compose",
];
const BETWEEN: &[&str] = &[
    "me",
    "us",
    "a",
    "an",
    "the",
    "list",
    "of",
    "up",
    "with",
    "out",
    "exactly",
    "about",
    "around",
    "at",
    "least",
    "top",
    "some",
    "unique",
    "different",
];
/// and the tokens to one of each. Of fewer each may be long.
const ITEMS: &[(&str, f64)] = &[
    ("names", 5.0),
    ("keywords", 4.0),
    ("synonyms", 3.0),
    ("hashtags", 5.0),
    ("slogans", 10.0),
    ("titles", 12.0),
    ("headlines", 12.0),
    ("ideas", 25.0),
    ("questions", 25.0),
    ("facts", 25.0),
    ("captions", 25.0),
    ("puns", 25.0),
    ("tips", 30.0),
    ("quotes", 30.0),
    ("tweets", 40.0),
    ("rows", 40.0),
    ("records", 40.0),
    ("entries", 40.0),
    ("jokes", 40.0),
    ("examples", 40.0),
    ("reasons", 40.0),
    ("prompts", 40.0),
    ("riddles", 50.0),
];
const ITEMS_MIN: f64 = 10.0;
/// Of more items an answer has these,
const ITEMS_MAX: f64 = 500.0;
/// and such a number is a year.
const YEARS: RangeInclusive<f64> = 1900.0..=2100.0;
/// An answer of one word that is asked for, so many bytes behind a verb that asks for it,
static ONE_WORD: PhraseList = PhraseList::of(&[&[
    "only the number",
    "just the number",
    "only a number",
    "just a number",
    "only the final number",
    "only the letter",
    "just the letter",
    "only one letter",
    "only one word",
    "just one word",
    "a single word",
    "a single letter",
    "a single number",
    "yes or no",
    "only the label",
    "just the label",
    "the label only",
    "only the category",
    "the category only",
    "only the name",
    "the name only",
    "the number only",
    "the letter only",
]]);
const REPLIES: [&str; 5] = ["reply", "respond", "answer", "output", "give"];
const BEHIND_MAX: usize = 24;
/// and what is said anywhere where more is wanted, or where it is a program's answer,
const NOT_ONE_WORD: &[&str] = &[
    "explain",
    "why",
    "reason",
    "justif",
    "step by step",
    "show",
    "function",
    "program",
    "script",
    "code",
    "input",
    "last line",
    "final line",
    "at the end",
];
/// or in the same sentence, where there are many such answers, or more than one thing is asked for.
const NOT_ALONE: [&str; 12] = [
    "each",
    "every",
    "list",
    "statements",
    "questions",
    "your work",
    "and give",
    "and name",
    "and quote",
    "and cite",
    "and say",
    "and tell",
];
/// or in the same sentence of instructions, where it holds of some answers only.
const CONDITIONS: [&str; 6] = ["if ", "when ", "unless ", "until ", "asked ", "first"];
/// Right before it one of these says that it is not wanted.
const NEGATIONS: [&str; 7] = ["not ", "n't ", "n’t ", "never ", "avoid ", "instead of", "rather than"];
/// What is stated counts within these bounds.
const TOKENS: (f64, f64) = (4.0, 20_000.0);

/// The logarithm of the tokens that a message states for its answer.
pub(super) fn stated_length(message: &str) -> Option<f64> {
    let found = in_ends(message, |parts| {
        one_word(parts, is_only_answer).or_else(|| find_in(parts, items)).or_else(|| find_in(parts, in_part))
    })?;
    Some(found.clamp(TOKENS.0, TOKENS.1).ln())
}

/// The same of an application's instructions, where they want a word or a number of each answer. Other lengths in them may be those of
/// some answers only.
pub(super) fn stated_word(instructions: &str) -> Option<f64> {
    in_ends(instructions, |parts| one_word(parts, is_every_answer)).map(f64::ln)
}

/// Looks at the end of a message and at what of its beginning is not part of that, in small letters.
pub(super) fn in_ends<T>(message: &str, look: impl FnOnce(&[Cow<'_, str>]) -> T) -> T {
    let head = &message[..message.floor_char_boundary(LOOKED_AT)];
    let tail =
        &message[message.ceil_char_boundary(message.len().saturating_sub(LOOKED_AT)).max(head.len())..];
    let [mut end, mut begin] = [[0; LOOKED_AT]; 2];
    look(&[in_small_letters(tail, &mut end), in_small_letters(head, &mut begin)])
}

/// A part in small letters: in room that is given where it is ASCII, since every request is looked through.
fn in_small_letters<'r>(part: &str, room: &'r mut [u8; LOOKED_AT]) -> Cow<'r, str> {
    match room.get_mut(..part.len()).filter(|_| part.is_ascii()) {
        Some(room) => {
            room.copy_from_slice(part.as_bytes());
            room.make_ascii_lowercase();
            String::from_utf8_lossy(room)
        }
        None => part.to_lowercase().into(),
    }
}

fn find_in(parts: &[Cow<'_, str>], length: fn(&str) -> Option<f64>) -> Option<f64> {
    parts.iter().find_map(|part| length(part))
}

/// The shortest length, where only a word or a number is asked for.
fn one_word(parts: &[Cow<'_, str>], is_meant: fn(&FoundPhrase<'_>) -> bool) -> Option<f64> {
    let is_asked = |part: &Cow<'_, str>| ONE_WORD.find(part, is_meant).is_some();
    let wants_more = |part: &Cow<'_, str>| NOT_ONE_WORD.iter().any(|word| part.contains(word));
    (parts.iter().any(is_asked) && !parts.iter().any(wants_more)).then_some(TOKENS.0)
}

/// Whether a word or a number is all that its sentence asks for.
fn is_only_answer(found: &FoundPhrase<'_>) -> bool {
    let asked = found.before.ceil_char_boundary(found.before.len().saturating_sub(BEHIND_MAX));
    let goes_on = found.after.starts_with(" of") || found.after.starts_with(char::is_alphanumeric);
    let has_more = found.after.strip_prefix(" and ").is_some_and(|more| !more.starts_with("no"));
    let [before, behind] = sentence(found);
    let is_alone = || !NOT_ALONE.iter().any(|word| before.contains(word) || behind.contains(word));
    let close = &before[before.len().saturating_sub(found.before.len() - asked)..];
    let is_wanted = || !NEGATIONS.iter().any(|word| close.contains(word));
    let is_asked = REPLIES.iter().any(|verb| found.before[asked..].contains(verb));
    !goes_on && !has_more && is_asked && is_alone() && is_wanted()
}

/// Whether it is so of each answer that instructions want.
fn is_every_answer(found: &FoundPhrase<'_>) -> bool {
    let sentence = sentence(found);
    is_only_answer(found) && !CONDITIONS.iter().any(|word| sentence.iter().any(|part| part.contains(word)))
}

/// What stands before what was found in its sentence, and behind it.
fn sentence<'t>(found: &FoundPhrase<'t>) -> [&'t str; 2] {
    const ENDS: [char; 4] = ['.', '!', '?', '\n'];
    let before = found.before.rsplit(ENDS).next().unwrap_or_default();
    [before, found.after.split(ENDS).next().unwrap_or_default()]
}

/// The length of many of a kind, as in "Give me 50 names."
fn items(part: &str) -> Option<f64> {
    part.split(['.', '!', '?', '\n', ':']).find_map(items_of_sentence)
}

fn items_of_sentence(sentence: &str) -> Option<f64> {
    let words =
        sentence.split_whitespace().map(|word| word.trim_matches(|letter: char| !letter.is_alphanumeric()));
    let mut words = words.skip_while(|word| POLITE.contains(word));
    words.next().filter(|verb| GIVES.contains(verb))?;
    let mut words = words.skip_while(|word| BETWEEN.contains(word));
    let count = number(words.next()?).filter(|count| *count >= ITEMS_MIN && !YEARS.contains(count))?;
    let one = words.take(3).find_map(|word| ITEMS.iter().find(|(name, _)| *name == word))?.1;
    Some(count.min(ITEMS_MAX) * one)
}

/// The last length of a part of the message. A unit stands behind a blank, a hyphen or the number itself, so few places are looked at.
fn in_part(part: &str) -> Option<f64> {
    let bytes = part.as_bytes();
    let may_begin = |at: usize| {
        let is_apart = matches!(bytes[at - 1], b' ' | b'-' | 0xa0 | b'0'..=b'9');
        part.is_char_boundary(at) && (is_apart || part[at..].starts_with('字'))
    };
    (1..bytes.len()).rev().filter(|at| may_begin(*at)).find_map(|at| {
        let (tokens, is_unspaced) = unit(&part[at..])?;
        let (count, before) = count_before(&part[..at])?;
        let is_idiom = count < IDIOM_WORDS && IDIOMS.iter().any(|word| part[at..].starts_with(word));
        (!is_idiom && (is_unspaced || is_wanted(before))).then_some(count * tokens)
    })
}

/// The tokens to one of the unit that a text begins with, and whether it is one of a script without blanks.
fn unit(text: &str) -> Option<(f64, bool)> {
    if !may_be_unit(text.as_bytes()) {
        return None;
    }
    if LETTERS.iter().any(|letters| text.starts_with(letters)) {
        return Some((PER_LETTER, true));
    }
    let end = text.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(text.len());
    let word = &text[..end];
    UNITS.iter().find(|(names, _)| names.contains(&word)).map(|(_, tokens)| (*tokens, false))
}

/// Most words are none by their first two letters.
fn may_be_unit(text: &[u8]) -> bool {
    matches!(
        text,
        [b'w', b'o' | 0xc3, ..]
            | [b'm', b'o', ..]
            | [b'p', b'a' | b'h' | 0xc3, ..]
            | [b's', b'a' | b'e' | 0xc3, ..]
            | [b'f', b'r', ..]
            | [b'a', b'b', ..]
            | [0x80..=0xff, ..]
    )
}

/// Whether a length is wanted by what stands before its number: "I have a 300-page report" is about another text.
fn is_wanted(before: &str) -> bool {
    let last = before.split_whitespace().next_back().unwrap_or_default();
    let is_alone = last.is_empty() || last.ends_with(['.', '!', '?', ':', ',', ';', '(', '~']);
    !OWNERS.contains(&last)
        && (is_alone || BEFORE.contains(&last) || WRITES.iter().any(|word| before.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::{LETTERS, UNITS, may_be_unit, stated_length};

    #[test]
    fn every_unit_is_looked_up() {
        let units = UNITS.iter().flat_map(|(names, _)| names.iter()).chain(&LETTERS);
        units.for_each(|unit| assert!(may_be_unit(unit.as_bytes()), "{unit}"));
    }

    #[test]
    fn stated_lengths_are_read() {
        let cases = [
            ("Write a 600-word story about a lighthouse.", 810.0),
            ("Write a 3,000 word essay on trade.", 4050.0),
            ("What is entropy? Answer in one sentence.", 25.0),
            ("Explain it in two paragraphs.", 220.0),
            ("写一篇800字的文章", 720.0),
            ("Why did Rome fall? 500 words.", 675.0),
            ("Please give me two paragraphs on tea.", 220.0),
            ("Summarize it in no more than 40 words", 54.0),
            ("Schreibe einen Aufsatz über den Rhein in 500 Wörtern.", 900.0),
            ("Erkläre Entropie in zwei Sätzen.", 50.0),
            ("Explique l'entropie en une phrase.", 25.0),
            ("Explica la entropía en una frase.", 25.0),
            ("Напиши эссе на 500 слов о Рейне.", 1000.0),
            ("라인강에 대해 500자로 써줘.", 450.0),
            ("写一篇约两千字的文章", 1800.0),
            ("写一篇1万字的小说", 9000.0),
            ("十五字以内回答", 13.5),
            ("（500字以内）", 450.0),
            ("Write five hundred words on tea.", 675.0),
            ("Write twenty-five words on tea.", 33.75),
            ("Describe tea in ten words.", 13.5),
            ("Write 20 tweets about tea.", 800.0),
            ("Please give me a list of 50 startup names.", 250.0),
            ("Generate 100 rows of fake customer data as CSV.", 4000.0),
            ("Reply with only the number. What is 12*12?", 4.0),
            ("Which team should handle this? Output the name only: my invoice is wrong", 4.0),
            ("Reply with just the letter.\nWhich is a fruit? A) car B) apple", 4.0),
            ("Answer yes or no. Is water wet?", 4.0),
            ("Ten boys have 3 apples each. How many? Reply with only the number.", 4.0),
            ("Suggest 3000 keywords for a shop.", 2000.0),
        ];
        for (message, tokens) in cases {
            let found = stated_length(message).unwrap_or_default().exp();
            assert!((found - tokens).abs() < 1.0, "{message}: {found}");
        }
    }

    #[test]
    fn other_counts_and_idioms_state_no_length() {
        for message in [
            "What is the word for cat?",
            "Sort words by length.",
            "",
            "Fix line 12 of page.tsx",
            "in other words, 5",
            "I have a 300-page report. Which chapter covers oceans?",
            "Grade my 2,000-word essay.",
            "The book has 900 pages. Who wrote it?",
            "Write a story about two mothers.",
            "Write SQL that generates 100 rows.",
            "Give me 3 ideas.",
            "什么是四字成语？",
            "下一个十字路口在哪里？",
            "Mein Text hat 500 Wörter. Korrigiere ihn.",
            "Answer yes or no and explain why.",
            "Output only the name and the price.",
            "Is it worth it? Please don't answer just yes or no.",
            "Suggest 2025 Halloween costume ideas.",
            "Объясни в двух словах, что такое энтропия.",
            "Explique l'entropie en deux mots.",
            "Explica la entropía en dos palabras.",
            "Spiega l'entropia in due parole.",
            "Answer yes or no for each of the following 20 statements:",
            "If there is a mistake, answer yes or no and give the line number.",
            "Let me see your work, then output only the number on the last line.",
            "Write a function whose answer is yes or no.",
            "How many ways are there if only the number of stickers matters?",
        ] {
            assert_eq!(stated_length(message), None, "{message}");
        }
    }
}
