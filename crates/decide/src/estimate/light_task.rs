//! Tasks about a text that are no harder for what the text says: translating it, putting its spelling right, summing it up, writing
//! it in another form, telling its language or mood, looking something up in it. What is estimated is the instruction, however hard
//! the text may read.

use super::follow_up::is_small_talk;
use super::scale::as_number;
use super::stated_length::stated_length;

/// An instruction is in the first or the last so many bytes of a message.
const INSTRUCTION_MAX: usize = 200;
/// The text that it is about has at least so many bytes more.
const TEXT_MIN: usize = 24;
/// Bytes to a token, as a rule of thumb.
const BYTES_PER_TOKEN: f64 = 3.5;
/// Tokens of a summary, and of a label or a word of receipt.
const SUMMARY: f64 = 160.0;
const LABEL: f64 = 12.0;

/// A text in which something is looked up has at least so many bytes, or else it is the question itself.
const LOOKED_UP_MIN: usize = 1_500;
/// How questions begin that are looked up,
const LOOKED_UP: [&str; 8] =
    ["who ", "when ", "where ", "what time ", "which day ", "on which ", "how many ", "how much "];
/// and what they ask for that is found by thinking.
const THOUGHT_OUT: [&str; 15] = [
    "ways",
    "different",
    "distinct",
    "possible",
    "integers",
    "pairs",
    "minimum",
    "bug",
    "crash",
    "leak",
    "wrong",
    "fail",
    "deadlock",
    "mistake",
    "problem",
];

/// What may stand before the verb.
const POLITE: [&str; 14] = [
    "please",
    "kindly",
    "just",
    "now",
    "can you",
    "could you",
    "would you",
    "i need you to",
    "i want you to",
    "bitte",
    "kannst du",
    "peux-tu",
    "por favor",
    "请",
];
/// Names of languages and of forms of programs that are words, or parts of words, of other things.
const PROGRAMS: [&str; 14] = [
    "go",
    "c",
    "php",
    "zig",
    "ruby",
    "scala",
    "perl",
    "lua",
    "julia",
    "dart",
    "iterative",
    "recursive",
    "function",
    "algorithm",
];
/// What an instruction to do more than that says.
const MORE: [&str; 24] = [
    "prove",
    "solve",
    "implement",
    "derive",
    "explain",
    "analy",
    "debug",
    "design",
    "compute",
    "calculate",
    "compare",
    "review",
    "optimi",
    "beweis",
    "python",
    "rust",
    "java",
    "c++",
    "typescript",
    "golang",
    "haskell",
    "kotlin",
    "swift",
    "sql",
];

/// How long the answer gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LightAnswer {
    /// As long as the text.
    Text,
    Summary,
    Label,
}

/// How instructions begin, and how long their answers get.
const INSTRUCTIONS: [(&str, LightAnswer); 44] = [
    ("translate", LightAnswer::Text),
    ("übersetze", LightAnswer::Text),
    ("übersetz ", LightAnswer::Text),
    ("traduis", LightAnswer::Text),
    ("traduisez", LightAnswer::Text),
    ("traduce", LightAnswer::Text),
    ("traduci", LightAnswer::Text),
    ("traduza", LightAnswer::Text),
    ("翻译", LightAnswer::Text),
    ("翻訳", LightAnswer::Text),
    ("fix the typo", LightAnswer::Text),
    ("fix typo", LightAnswer::Text),
    ("fix the spelling", LightAnswer::Text),
    ("fix spelling", LightAnswer::Text),
    ("fix the grammar", LightAnswer::Text),
    ("fix grammar", LightAnswer::Text),
    ("correct the spelling", LightAnswer::Text),
    ("correct the grammar", LightAnswer::Text),
    ("correct the typo", LightAnswer::Text),
    ("proofread", LightAnswer::Text),
    ("korrigiere", LightAnswer::Text),
    ("convert this latex", LightAnswer::Text),
    ("convert this to", LightAnswer::Text),
    ("convert the following", LightAnswer::Text),
    ("reformat", LightAnswer::Text),
    ("summarize", LightAnswer::Summary),
    ("summarise", LightAnswer::Summary),
    ("sum up", LightAnswer::Summary),
    ("tl;dr", LightAnswer::Summary),
    ("tldr", LightAnswer::Summary),
    ("fasse ", LightAnswer::Summary),
    ("résume", LightAnswer::Summary),
    ("resume el", LightAnswer::Summary),
    ("总结", LightAnswer::Summary),
    ("要約", LightAnswer::Summary),
    ("say ok", LightAnswer::Label),
    ("say \"ok", LightAnswer::Label),
    ("reply ok", LightAnswer::Label),
    ("reply with ok", LightAnswer::Label),
    ("answer ok", LightAnswer::Label),
    ("classify", LightAnswer::Label),
    ("what language is", LightAnswer::Label),
    ("which language is", LightAnswer::Label),
    ("return the language", LightAnswer::Label),
];

/// A light task: its instruction, and the usual length of its answer, as the logarithm of tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LightTask<'t> {
    pub instruction: &'t str,
    pub answer: f64,
}

impl<'t> LightTask<'t> {
    /// The task of a message of these texts: its instruction begins the message or its last line.
    pub(super) fn of(message: &[&'t str]) -> Option<LightTask<'t>> {
        let (first, last) = (message.first()?.trim(), message.last()?.trim().rsplit('\n').next()?);
        let bytes: usize = message.iter().map(|part| part.trim().len()).sum();
        let found = instruction_at_start(first).or_else(|| instruction_at_start(last));
        let found = found.or_else(|| looked_up(bytes, last).then_some((last, LightAnswer::Label)));
        let (instruction, answer) = found.filter(|(found, _)| found.len() + TEXT_MIN <= bytes)?;
        Some(LightTask::new(instruction, answer, bytes - instruction.len()))
    }

    /// The task that a system prompt sets for each message, where it begins with one: of a message of so many bytes.
    pub(super) fn of_system(prompt: &'t str, bytes: usize) -> Option<LightTask<'t>> {
        let prompt = prompt.trim();
        let (instruction, answer) =
            instruction_at_start(prompt).filter(|_| prompt.len() <= 2 * INSTRUCTION_MAX)?;
        Some(LightTask::new(instruction, answer, bytes))
    }

    fn new(instruction: &'t str, answer: LightAnswer, bytes: usize) -> LightTask<'t> {
        let text = (as_number(bytes) / BYTES_PER_TOKEN).max(1.0);
        let tokens = match answer {
            LightAnswer::Text => text,
            LightAnswer::Summary => SUMMARY.min(text),
            LightAnswer::Label => LABEL,
        };
        LightTask { instruction, answer: stated_length(instruction).unwrap_or_else(|| tokens.ln()) }
    }
}

/// Whether the last line of a long text asks for something that stands in it, or for nothing.
fn looked_up(bytes: usize, last: &str) -> bool {
    if bytes < LOOKED_UP_MIN || last.len() > INSTRUCTION_MAX {
        return false;
    }
    let lower = last.trim().to_lowercase();
    let asks = LOOKED_UP.iter().any(|begins| lower.starts_with(begins));
    let thinks = THOUGHT_OUT.iter().chain(&MORE).any(|word| lower.contains(word));
    !thinks && (asks || is_small_talk(last) && !lower.contains('?'))
}

/// The instruction that a text begins with.
fn instruction_at_start(text: &str) -> Option<(&str, LightAnswer)> {
    let head = &text[..text.floor_char_boundary(INSTRUCTION_MAX)];
    let instruction = head.split_inclusive([':', '\n', '。', '：']).next().unwrap_or_default().trim();
    let lower = instruction.to_lowercase();
    let mut verb = lower.trim_start_matches(|letter: char| !letter.is_alphanumeric());
    while let Some(rest) = POLITE.iter().find_map(|word| verb.strip_prefix(word)) {
        verb = rest.trim_start_matches(|letter: char| !letter.is_alphanumeric());
    }
    let (_, answer) = INSTRUCTIONS.iter().find(|(begins, _)| verb.starts_with(begins))?;
    let is_light =
        !MORE.iter().any(|word| lower.contains(word)) && !is_of_programs(&lower) && !is_proved(verb);
    is_light.then_some((instruction, *answer))
}

/// As in "Convert this to Go".
fn is_of_programs(instruction: &str) -> bool {
    let mut words = instruction.split(|letter: char| !letter.is_alphanumeric());
    words.any(|word| PROGRAMS.contains(&word))
}

/// Groups are classified by a proof, reviews by a word: then the words are named, or the text follows. And who shall be brief
/// (fasse dich kurz) sums nothing up.
fn is_proved(verb: &str) -> bool {
    let names_labels =
        [":", " as ", " into ", " sentiment", "：", " or "].iter().any(|words| verb.contains(words));
    verb.starts_with("classify") && !names_labels || verb.starts_with("fasse dich")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROBLEM: &str =
        "Let n > 1 be an integer. Prove that there are infinitely many primes p with this property.";

    #[test]
    fn a_light_task_is_its_instruction() {
        let cases = [
            (format!("Translate to German:\n{PROBLEM}"), "Translate to German:"),
            (
                format!("{PROBLEM}\n\nSummarize the above in one paragraph."),
                "Summarize the above in one paragraph.",
            ),
            (
                format!("Could you please fix the typos only: '{PROBLEM}'"),
                "Could you please fix the typos only:",
            ),
            (
                format!("{PROBLEM}\nPlease just say OK if you have read this."),
                "Please just say OK if you have read this.",
            ),
            (format!("请翻译：{PROBLEM}"), "请翻译："),
        ];
        for (message, instruction) in &cases {
            assert_eq!(
                LightTask::of(&[message.as_str()]).map(|task| task.instruction),
                Some(*instruction),
                "{message}"
            );
        }
        let length = |message: &str| LightTask::of(&[message]).unwrap().answer.exp();
        assert!(length(&cases[0].0) > 20.0 && length(&cases[3].0) < 20.0);
        let stated = length(&format!("Summarize in 1500 words:\n{PROBLEM}"));
        assert!((stated - 2025.0).abs() < 1.0, "{stated}");
        let apart = LightTask::of(&[PROBLEM, "Summarize this."]);
        assert_eq!(apart.map(|task| task.instruction), Some("Summarize this."));
    }

    #[test]
    fn what_stands_in_a_long_text_is_looked_up() {
        let (long, short) = (PROBLEM.repeat(20), PROBLEM.repeat(2));
        let found = |text: &str, question: &str| {
            LightTask::of(&[&format!("{text}\n\n{question}")])
                .is_some_and(|task| task.instruction == question)
        };
        assert!(
            found(&long, "Who led the shift in section 3?") && found(&long, "thanks, that's all for now")
        );
        assert!(!found(&short, "Who led the shift in section 3?"));
        for hard in [
            "How many different ways are there?",
            "Find the root cause.",
            "Hi, why does this crash?",
            "hey, please debug this",
            "Where is the bug?",
        ] {
            assert!(!found(&long, hard), "{hard}");
        }
    }

    #[test]
    fn what_asks_for_more_than_that_is_none() {
        let none = [
            PROBLEM.to_owned(),
            format!("Translate this Python function to Rust:\n{PROBLEM}"),
            format!("Summarize and prove the following:\n{PROBLEM}"),
            "Translate: hello".to_owned(),
            format!("{PROBLEM}\nGive only the final number."),
            format!("Convert this to Go:\n{PROBLEM}"),
            format!("Convert the following recursive function to an iterative one:\n{PROBLEM}"),
            format!("Classify all groups of order 12.\n{PROBLEM}"),
            format!("Fasse dich kurz: {PROBLEM}"),
        ];
        for message in &none {
            assert_eq!(LightTask::of(&[message.as_str()]), None, "{message}");
        }
        assert_eq!(LightTask::of_system("You translate, summarize and write programs.", 100), None);
        assert!(LightTask::of_system("Translate everything the user writes to French.", 100).is_some());
    }
}
