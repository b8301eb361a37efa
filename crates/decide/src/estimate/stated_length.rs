//! The length that a message states for its answer: "in 600 words", "a 3000-word essay", "two paragraphs", "800字".

/// Such statements stand in the first or the last so many bytes.
const LOOKED_AT: usize = 300;
/// Tokens to one of each, as rules of thumb.
const UNITS: [(&str, f64); 9] = [
    ("word", 1.35),
    ("wörter", 1.8),
    ("mots", 1.5),
    ("palabras", 1.5),
    ("sentence", 25.0),
    ("paragraph", 110.0),
    ("page", 600.0),
    ("字", 0.9),
    ("文字", 0.9),
];
const NUMBERS: [(&str, f64); 6] =
    [("one", 1.0), ("two", 2.0), ("three", 3.0), ("four", 4.0), ("five", 5.0), ("six", 6.0)];
/// What stands before a length that an answer shall have, or else it is asked for with one of [`WRITES`].
const BEFORE: [&str; 19] = [
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
];
const WRITES: [&str; 16] = [
    "write", "draft", "compose", "generate", "create", "produce", "give me", "make", "schreib", "verfass",
    "rédige", "écri", "redacta", "escrib", "escreva", "scrivi",
];
/// Whose text it is, where it is none that shall be written.
const OWNERS: [&str; 10] =
    ["my", "this", "our", "your", "his", "her", "their", "attached", "following", "existing"];
/// What is stated counts within these bounds.
const TOKENS: (f64, f64) = (4.0, 20_000.0);

/// The logarithm of the tokens that a message states for its answer.
pub(super) fn stated_length(message: &str) -> Option<f64> {
    let head = &message[..message.floor_char_boundary(LOOKED_AT)];
    let tail =
        &message[message.ceil_char_boundary(message.len().saturating_sub(LOOKED_AT)).max(head.len())..];
    let found = [tail, head].into_iter().find_map(in_part)?;
    Some(found.clamp(TOKENS.0, TOKENS.1).ln())
}

/// The last one of a part of the message. A unit stands behind a blank, a hyphen or the number itself, so few places are looked at.
fn in_part(part: &str) -> Option<f64> {
    let bytes = part.as_bytes();
    let may_begin =
        |at: usize| matches!(bytes[at - 1], b' ' | b'-' | 0xa0 | b'0'..=b'9') && part.is_char_boundary(at);
    (1..bytes.len()).rev().filter(|at| may_begin(*at)).find_map(|at| {
        let (unit, tokens) = UNITS.iter().find(|(unit, _)| part[at..].starts_with(unit))?;
        let (count, before) = count_before(&part[..at])?;
        (!unit.is_ascii() || is_wanted(before)).then_some(count * tokens)
    })
}

/// Whether a length is wanted by what stands before its number: "I have a 300-page report" is about another text.
fn is_wanted(before: &str) -> bool {
    let lower = before.to_lowercase();
    let last = lower.split_whitespace().next_back().unwrap_or_default();
    let is_alone = last.is_empty() || last.ends_with(['.', '!', '?', ':', ',', ';', '(', '~']);
    !OWNERS.contains(&last)
        && (is_alone || BEFORE.contains(&last) || WRITES.iter().any(|word| lower.contains(word)))
}

/// The number that stands right before a unit, behind a blank or a hyphen, and what stands before it.
fn count_before(text: &str) -> Option<(f64, &str)> {
    let text = text.trim_end_matches([' ', '-', '\u{a0}']);
    let begins = text.rfind(|letter: char| !letter.is_alphanumeric() && letter != ',').map_or(0, |at| at + 1);
    let word = text.get(begins..).unwrap_or_default();
    let digits: String = word.chars().filter(|letter| *letter != ',').collect();
    let number = digits.trim_start_matches(|letter: char| !letter.is_ascii_digit()).parse::<u32>().ok();
    let spelled =
        || NUMBERS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, count)| *count);
    let count = number.filter(|count| *count > 0).map(f64::from).or_else(spelled)?;
    Some((count, &text[..begins]))
}

#[cfg(test)]
mod tests {
    use super::stated_length;

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
        ];
        for (message, tokens) in cases {
            let found = stated_length(message).unwrap_or_default().exp();
            assert!((found - tokens).abs() < 1.0, "{message}: {found}");
        }
        for message in [
            "What is the word for cat?",
            "Sort words by length.",
            "",
            "Fix line 12 of page.tsx",
            "in other words, 5",
            "I have a 300-page report. Which chapter covers oceans?",
            "Grade my 2,000-word essay.",
            "The book has 900 pages. Who wrote it?",
        ] {
            assert_eq!(stated_length(message), None, "{message}");
        }
    }
}
