//! Questions that are looked up in a long text, and those that need a thought about it.

use super::follow_up::is_small_talk;
use super::light_task_words::MORE;

/// A question has at most so many bytes.
const QUESTION_MAX: usize = 200;
/// A text in which something is looked up has at least so many bytes, or else it is the question itself.
const LOOKED_UP_MIN: usize = 1_500;
/// How questions begin that are looked up,
const LOOKED_UP: [&str; 22] = [
    "who ",
    "when ",
    "where ",
    "what time ",
    "which day ",
    "on which ",
    "how many ",
    "how much ",
    "wer ",
    "wann ",
    "wo ",
    "qui ",
    "quand ",
    "où ",
    "¿quién ",
    "¿cuándo ",
    "¿dónde ",
    "кто ",
    "когда ",
    "где ",
    "谁",
    "誰",
];
/// and what they ask for that is found by thinking.
const THOUGHT_OUT: [&str; 28] = [
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
    "should",
    "would",
    "could",
    "terminat",
    "fehler",
    "falsch",
    "sollte",
    "erreur",
    "error",
    "ошибк",
    "错",
    "間違",
    "应该",
];
/// What amounts are asked for that are worked out.
const COUNTED: [&str; 9] =
    ["total", "altogether", "combined", " left", "remain", " each", " per ", "twice", " need"];
/// What riddles say, where who lives where is found by thinking. They have no more bytes than this.
const RIDDLES: [&str; 6] =
    ["riddle", "puzzle", "lives next to", "to the left of", "to the right of", "exactly one of"];
const RIDDLE_MAX: usize = 4_000;

/// Whether a line beside a long text asks for something that stands in it, or for nothing. Programs are no such texts.
pub(super) fn is_looked_up(message: &[&str], bytes: usize, line: &str) -> bool {
    if bytes < LOOKED_UP_MIN || line.len() > QUESTION_MAX {
        return false;
    }
    let lower = line.trim().to_lowercase();
    let asks = LOOKED_UP.iter().any(|begins| lower.starts_with(begins)) && !is_joined(&lower);
    let counts = is_count(&lower) && COUNTED.iter().any(|word| lower.contains(word));
    let thinks = counts || THOUGHT_OUT.iter().chain(MORE).any(|word| lower.contains(word));
    let is_told = || !is_riddle(message, bytes) && !message.iter().any(|part| part.contains("```"));
    !thinks && (asks && is_told() || is_small_talk(line) && !lower.contains('?'))
}

/// As in "When you have read it, write a plan", "Quand tu l'as lu, …" and Italian "Qui trovi …", which ask nothing of the text.
fn is_joined(lower: &str) -> bool {
    const JOINING: [&str; 6] = ["when ", "where ", "quand ", "qui ", "où ", "когда "];
    const ASKING: [&str; 10] = ["is", "are", "was", "were", "do", "does", "did", "has", "had", "will"];
    let rest = JOINING.iter().find_map(|begins| lower.strip_prefix(begins));
    let next = rest.map(|rest| rest.split_whitespace().next().unwrap_or_default());
    !lower.contains('?') && next.is_some_and(|next| !ASKING.contains(&next))
}

/// True if a line asks how much of something there is.
pub(super) fn is_count(line: &str) -> bool {
    line.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("how"))
}

fn is_riddle(message: &[&str], bytes: usize) -> bool {
    bytes <= RIDDLE_MAX && message.iter().any(|part| RIDDLES.iter().any(|words| part.contains(words)))
}

/// As in "When do I have to pay this?": what follows tells about the person who asks, and does not say it.
pub(super) fn is_of_oneself(line: &str) -> bool {
    const OWN: [&str; 8] = ["i", "we", "my", "our", "ich", "wir", "je", "nous"];
    let lower = line.to_lowercase();
    lower.split(|letter: char| !letter.is_alphanumeric()).any(|word| OWN.contains(&word))
}
