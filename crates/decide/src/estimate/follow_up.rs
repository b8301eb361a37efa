//! Short messages that ask for nothing by themselves: "continue", "why?", "and the other one?". What they ask for stands in an
//! earlier message, so that is what is estimated.

/// No message of more bytes or words is one.
const BYTES_MAX: usize = 160;
const WORDS_MAX: usize = 12;
/// So few words are one whatever they say, where something was asked before: "in French", "your reasons?".
const FRAGMENT_WORDS: usize = 3;
/// So few letters of a script without blanks, and so few that refer to something.
const FRAGMENT_LETTERS: usize = 4;
const REFERRING_LETTERS: usize = 20;
/// Words that refer to what was said before, or have it go on.
const REFERRING: [&str; 74] = [
    "it",
    "its",
    "this",
    "these",
    "those",
    "them",
    "above",
    "previous",
    "earlier",
    "same",
    "again",
    "another",
    "other",
    "instead",
    "continue",
    "continues",
    "proceed",
    "resume",
    "further",
    "more",
    "yes",
    "yeah",
    "yep",
    "no",
    "nope",
    "ok",
    "okay",
    "sure",
    "why",
    "wrong",
    "incorrect",
    "right",
    "correct",
    "shorter",
    "longer",
    "simpler",
    "now",
    "also",
    "elaborate",
    "solution",
    "answer",
    "proof",
    "steps",
    "weiter",
    "ja",
    "nein",
    "warum",
    "falsch",
    "nochmal",
    "nochmals",
    "noch",
    "andere",
    "dasselbe",
    "dies",
    "stimmt",
    "sicher",
    "continuez",
    "oui",
    "non",
    "pourquoi",
    "encore",
    "cela",
    "autre",
    "sigue",
    "continúa",
    "sí",
    "otra",
    "otro",
    "eso",
    "esto",
    "mismo",
    "sicuro",
    "perché",
    "ancora",
];
/// The same of scripts without blanks.
const REFERRING_UNSPACED: [&str; 18] = [
    "继续",
    "接着",
    "为什么",
    "这",
    "那",
    "它",
    "再",
    "不对",
    "错",
    "上面",
    "刚才",
    "是的",
    "続",
    "なぜ",
    "それ",
    "これ",
    "もう一度",
    "違",
];
/// What greets, thanks or takes leave asks for nothing, nor for anything of before.
const SMALL_TALK: [&str; 38] = [
    "thanks",
    "thank",
    "thx",
    "ty",
    "cheers",
    "bye",
    "goodbye",
    "hi",
    "hello",
    "hey",
    "yo",
    "morning",
    "evening",
    "night",
    "lol",
    "haha",
    "danke",
    "hallo",
    "tschüss",
    "moin",
    "merci",
    "bonjour",
    "salut",
    "gracias",
    "hola",
    "adiós",
    "obrigado",
    "obrigada",
    "oi",
    "olá",
    "grazie",
    "ciao",
    "cool",
    "great",
    "nice",
    "perfect",
    "awesome",
    "wonderful",
];
const SMALL_TALK_UNSPACED: [&str; 9] =
    ["谢谢", "感谢", "多谢", "你好", "您好", "再见", "ありがとう", "こんにちは", "おはよう"];
/// Messages that say no more than that something was read.
const RECEIPTS: [&str; 12] = [
    "got it",
    "sounds good",
    "makes sense",
    "understood",
    "i see",
    "noted",
    "will do",
    "all good",
    "fine",
    "good",
    "no thanks",
    "verstanden",
];
/// Small talk is as short as this.
const SMALL_TALK_WORDS: usize = 6;

/// Whether a message only goes on from what was asked before it.
pub(super) fn is_follow_up(message: &str) -> bool {
    let message = message.trim();
    if message.is_empty() || message.len() > BYTES_MAX {
        return false;
    }
    let unspaced = message.chars().filter(|letter| is_unspaced(*letter)).count();
    if unspaced > 0 {
        let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
        let is_short =
            unspaced <= FRAGMENT_LETTERS || unspaced <= REFERRING_LETTERS && says(&REFERRING_UNSPACED);
        return is_short && !says(&SMALL_TALK_UNSPACED);
    }
    let lower = message.to_lowercase();
    let words = words(&lower);
    let says = |known: &[&str]| words.iter().any(|word| known.contains(word));
    if words.len() > WORDS_MAX || is_small_talk(message) {
        return false;
    }
    let has_number = words.iter().any(|word| word.bytes().any(|byte| byte.is_ascii_digit()));
    // Further on it begins a clause.
    let points = words.iter().take(FRAGMENT_WORDS).any(|word| *word == "that");
    words.len() <= FRAGMENT_WORDS && !has_number || points || says(&REFERRING)
}

/// Whether a message greets, thanks or takes leave, and says no more.
pub(super) fn is_small_talk(message: &str) -> bool {
    let lower = message.to_lowercase();
    let words = words(&lower);
    let greets = words.iter().any(|word| SMALL_TALK.contains(word));
    words.len() <= SMALL_TALK_WORDS && (greets || RECEIPTS.contains(&words.join(" ").as_str()))
}

fn words(lower: &str) -> Vec<&str> {
    lower.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
}

/// Letters of Chinese and Japanese.
fn is_unspaced(letter: char) -> bool {
    matches!(letter, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}')
}

#[cfg(test)]
mod tests {
    use super::is_follow_up;

    #[test]
    fn what_goes_on_from_before_is_told_from_what_stands_alone() {
        let on = [
            "continue",
            "ok, continue",
            "Yes.",
            "why?",
            "Are you sure?",
            "try again, that's wrong",
            "that's not what I asked for",
            "and the other one?",
            "Solve it.",
            "Please solve it.",
            "weiter",
            "继续",
            "为什么？",
            "Now do the same in Python, please.",
            "Can you explain this in more detail?",
            "go on",
        ];
        for message in on {
            assert!(is_follow_up(message), "{message}");
        }
        let alone = [
            "",
            "hi",
            "thanks!",
            "thanks, that's all",
            "谢谢",
            "Got it.",
            "Sounds good!",
            "What is the capital of France?",
            "What is 2+2?",
            "12 * 7",
            "Write a function that reverses a string",
            "Great, thanks for your help!",
            "Prove that for every prime p > 3 the number p^2 - 1 is divisible by 24, and say where this fails for p = 3.",
        ];
        for message in alone {
            assert!(!is_follow_up(message), "{message}");
        }
    }
}
