//! Short messages that ask for nothing by themselves: "continue", "why?", "and the other one?". What they ask for stands in an
//! earlier message, so that is what is estimated.

use super::common_words::{is_common, is_opening, is_referring};

/// No message of more bytes or words is one.
const BYTES_MAX: usize = 160;
const WORDS_MAX: usize = 12;
/// So few words are one whatever they say, where something was asked before: "in French", "your reasons?".
const FRAGMENT_WORDS: usize = 3;
/// So few letters of a script without blanks, and so few that refer to something.
const FRAGMENT_LETTERS: usize = 4;
const REFERRING_LETTERS: usize = 20;
/// What refers to what was said before in scripts without blanks.
const REFERRING_UNSPACED: [&str; 11] =
    ["继续", "接着", "再", "不对", "错", "上面", "刚才", "是的", "続", "もう一度", "違"];
/// What points at something in them: at the clause before it, where that is longer than so many letters.
const POINTING_UNSPACED: [&str; 5] = ["这", "那", "它", "それ", "これ"];
const CLAUSE_LETTERS: usize = 5;
/// What asks why in them refers to what was said with no more than a few letters beside it.
const WHY_UNSPACED: [&str; 3] = ["为什么", "為什麼", "なぜ"];
/// What refers to something before where it is one of the first two words that are none of [`PASSED`],
const POINTING: [&str; 14] = [
    "it", "its", "those", "them", "another", "other", "not", "more", "further", "your", "sure", "shorter",
    "longer", "simpler",
];
/// and what does so wherever it stands, as `this` does but with one of [`TIMES`].
const BACK: [&str; 7] = ["again", "above", "previous", "earlier", "instead", "else", "same"];
const TIMES: [&str; 10] =
    ["time", "morning", "evening", "week", "weekend", "month", "year", "summer", "winter", "century"];
const PASSED: [&str; 26] = [
    "please", "kindly", "just", "can", "could", "would", "will", "you", "i", "is", "are", "was", "were",
    "do", "does", "did", "has", "have", "should", "a", "an", "the", "me", "us", "of", "to",
];
/// What three words say that want something said before.
const BOUND: [&str; 17] = [
    "the", "your", "my", "to", "in", "into", "for", "with", "as", "by", "on", "from", "of", "about", "not",
    "why", "else",
];
/// What begins a message that goes on.
const JOINING: [&str; 7] = ["and", "but", "und", "aber", "et", "mais", "pero"];
/// What has numbers within an answer.
const PARTS: [&str; 7] = ["step", "part", "case", "lemma", "claim", "theorem", "section"];
/// What was given before, unless one of [`OF_WHAT`] stands behind it: "the proof fails", but "the proof of the theorem".
const GIVEN: [&str; 3] = ["answer", "solution", "proof"];
const OF_WHAT: [&str; 3] = ["to", "of", "that"];
/// Behind these `that` begins a clause.
const BEFORE_CLAUSES: [&str; 17] = [
    "prove", "show", "suppose", "given", "assume", "such", "so", "say", "says", "know", "note", "find",
    "think", "believe", "hope", "verify", "check",
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
        return goes_on_unspaced(message, unspaced);
    }
    let lower = message.to_lowercase();
    let words = words(&lower);
    if words.len() > WORDS_MAX || is_small_talk(message) || has_subject(message, &words) {
        return false;
    }
    let is_fragment = words.len() <= FRAGMENT_WORDS && !words.iter().any(|word| has_digit(word));
    is_fragment || is_choice(message) || refers(&words)
}

/// As in "2" and "b)", which choose from what was offered.
fn is_choice(message: &str) -> bool {
    message.trim_end_matches(['.', ')']).len() == 1
}

/// Whether a message asks for something where nothing stands before it: what it refers to is nothing that was said.
pub(super) fn opens(message: &str) -> bool {
    if message.trim().len() > BYTES_MAX {
        return true;
    }
    let lower = message.to_lowercase();
    let (words, letters) = (words(&lower), message.chars().filter(|letter| is_unspaced(*letter)).count());
    let names_subject = || words.len() > FRAGMENT_WORDS && words.iter().any(|word| is_subject(word));
    !is_small_talk(message) && (letters > FRAGMENT_LETTERS || names_subject())
}

/// Whether a message asks for something, or says something, that nothing beside it has to tell.
pub(super) fn stands_alone(message: &str) -> bool {
    let names_subject = || words(&message.to_lowercase()).iter().any(|word| is_subject(word));
    message.trim().len() > BYTES_MAX || !is_follow_up(message) && names_subject()
}

/// Whether a message that goes on wants what was asked for before, rather than something about it.
pub(super) fn agrees(message: &str) -> bool {
    const AGREED: [&str; 17] = [
        "yes",
        "yep",
        "ok",
        "okay",
        "sure",
        "continue",
        "proceed",
        "start",
        "next",
        "ja",
        "weiter",
        "oui",
        "sí",
        "si",
        "sim",
        "да",
        "продолжай",
    ];
    const AGREED_UNSPACED: [&str; 5] = ["继续", "好的", "是的", "続", "はい"];
    const ASKING: [&str; 8] =
        ["why", "how", "what", "explain", "summarize", "summarise", "warum", "pourquoi"];
    let lower = message.to_lowercase();
    let words = words(&lower);
    let agrees = match words[..] {
        ["go", "ahead" | "on" | "for", ..] | ["do", "it" | "that" | "so", ..] => true,
        ["please", next, ..] => matches!(next, "do" | "go") || AGREED.contains(&next),
        ["go" | "please"] => true,
        [first, ..] => AGREED.contains(&first),
        [] => false,
    };
    agrees && !words.iter().any(|word| ASKING.contains(word))
        || AGREED_UNSPACED.iter().any(|word| message.contains(word))
}

/// Whether a message greets, thanks or takes leave, and says no more.
pub(super) fn is_small_talk(message: &str) -> bool {
    let lower = message.to_lowercase();
    let words = words(&lower);
    let greets = words.iter().any(|word| SMALL_TALK.contains(word));
    words.len() <= SMALL_TALK_WORDS && (greets || RECEIPTS.contains(&words.join(" ").as_str()))
}

/// Whether a message in a script without blanks, with so many of its letters, only goes on.
fn goes_on_unspaced(message: &str, letters: usize) -> bool {
    let says = |known: &[&str]| known.iter().any(|word| message.contains(word));
    let asks_why = |why: &&str| message.contains(*why) && letters <= why.chars().count() + FRAGMENT_LETTERS;
    let refers = letters <= REFERRING_LETTERS && (says(&REFERRING_UNSPACED) || points_unspaced(message));
    let goes_on = letters <= FRAGMENT_LETTERS || refers || WHY_UNSPACED.iter().any(asks_why);
    goes_on && !says(&SMALL_TALK_UNSPACED)
}

/// Whether a script without blanks points at what was said before: at no clause before it, nor at what is shown behind it.
fn points_unspaced(message: &str) -> bool {
    let Some(at) = POINTING_UNSPACED.iter().filter_map(|word| message.find(*word)).min() else {
        return false;
    };
    let (before, behind) = message.split_at(at);
    let clause = before.rsplit_once(['，', '。', '？', ',', '\n']).map_or("", |(clause, _)| clause);
    let shown = behind.split_once([':', '：', '\n']).map_or("", |(_, shown)| shown.trim());
    clause.chars().count() <= CLAUSE_LETTERS && shown.is_empty()
}

/// Whether a message asks for something by itself, and says what about: "Why is the sky blue?", "Fix this: …".
fn has_subject(message: &str, words: &[&str]) -> bool {
    let says = |known: &[&str]| words.iter().any(|word| known.contains(word));
    let asks = words.first().is_some_and(|first| is_opening(first));
    if !asks || !words.iter().any(|word| is_subject(word)) || says(&BACK) || names_part(words) {
        return false;
    }
    let shows = message.split_once([':', '\n']).is_some_and(|(_, shown)| !shown.trim().is_empty());
    let mut first = words.iter().filter(|word| !PASSED.contains(word)).take(2);
    let points = points_with_this(words)
        || points_with_that(words)
        || names_answer(words)
        || first.any(|word| POINTING.contains(word));
    let is_bound = words.len() < FRAGMENT_WORDS || words.len() == FRAGMENT_WORDS && says(&BOUND);
    shows || !(points || is_bound)
}

/// Whether any of the words refer to what was said before.
fn refers(words: &[&str]) -> bool {
    words.iter().any(|word| is_referring(word))
        || points_with_that(words)
        || words.first().is_some_and(|first| JOINING.contains(first))
        || matches!(words, ["what" | "how", "about", ..])
        || names_part(words)
}

/// As in "step 2" and "case b", but not in "in case a dog bites".
fn names_part(words: &[&str]) -> bool {
    let is_letter = |word: &str| word.len() == 1 && word != "a" && word != "i";
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    words.windows(2).any(|pair| match pair {
        [what, number] => PARTS.contains(what) && (is_letter(number) || is_number(number)),
        _ => false,
    })
}

/// As in "Why is the answer negative?", but not in "What is the answer to life?".
fn names_answer(words: &[&str]) -> bool {
    let is_of_what = |at: usize| words.get(at).is_some_and(|next| OF_WHAT.contains(next));
    words.windows(2).enumerate().any(|(at, pair)| match pair {
        ["the" | "your", what] => GIVEN.contains(what) && !is_of_what(at + 2),
        _ => false,
    })
}

/// Whether `this` is what was said before, and no time.
fn points_with_this(words: &[&str]) -> bool {
    let is_time = |at: usize| words.get(at + 1).is_some_and(|next| TIMES.contains(next));
    words.iter().enumerate().any(|(at, word)| matches!(*word, "this" | "these") && !is_time(at))
}

/// Whether `that` is what was said before. Further on, and behind what is proved or named, it begins a clause.
fn points_with_that(words: &[&str]) -> bool {
    let passed = words.iter().take_while(|word| PASSED.contains(word)).count();
    let first = words.iter().take(passed + FRAGMENT_WORDS);
    let begins_clause = |before: &str| is_subject(before) || BEFORE_CLAUSES.contains(&before);
    first
        .enumerate()
        .find(|(_, word)| **word == "that")
        .is_some_and(|(at, _)| at == 0 || at + 1 == words.len() || !begins_clause(words[at - 1]))
}

/// Whether a word names what a message is about.
fn is_subject(word: &str) -> bool {
    let is_known = || is_opening(word) || is_referring(word) || is_common(word);
    word.chars().nth(1).is_some() && !has_digit(word) && !is_known()
}

fn has_digit(word: &str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_digit())
}

/// The words of a text in small letters. `\right` in a formula is not "right".
fn words(lower: &str) -> Vec<&str> {
    let words = lower.split(|letter: char| !letter.is_alphanumeric() && letter != '\\');
    words.filter(|word| word.contains(char::is_alphanumeric)).collect()
}

/// Letters of Chinese and Japanese.
fn is_unspaced(letter: char) -> bool {
    matches!(letter, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}')
}

#[cfg(test)]
mod tests {
    use super::{agrees, is_follow_up, opens, stands_alone};

    #[test]
    fn who_agrees_is_told_from_who_asks() {
        for message in ["yes, do it", "go ahead", "Please continue.", "do it", "ok", "please", "好的"] {
            assert!(agrees(message), "{message}");
        }
        for message in ["do you know why?", "please explain", "go deeper", "ok, but why?", "why?", ""] {
            assert!(!agrees(message), "{message}");
        }
    }

    #[test]
    fn what_goes_on_from_before_is_told() {
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
            "and for n = 7?",
            "explain step 2",
            "now in Python",
            "Can you do that in Python?",
            "Could you prove that?",
            "why not use induction?",
            "Which theorem?",
            "Are you sure about the second lemma?",
            "Find the bug in this function",
            "translate the above into French",
            "Give another proof by induction",
            "Wie geht das?",
            "为什么这一步成立？",
            "我不明白，这一步为什么成立？",
            "Why is the answer negative?",
            "Can you write the solution in Python?",
            "Why does the proof fail for primes?",
            "Show the proof for odd n",
            "Give the answer in meters",
            "2",
            "b)",
        ];
        for message in on {
            assert!(is_follow_up(message), "{message}");
        }
    }

    #[test]
    fn what_asks_for_something_by_itself_goes_on_from_nothing() {
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
            "What time is it in Tokyo?",
            "Recommend a film",
            "Write a haiku now.",
            "Prove that 2 is even.",
            "What is Kubernetes?",
            "What causes inflation?",
            "Why is the sky blue?",
            "What is the answer to life?",
            "Give the proof of Wilson's theorem for primes",
            "Explain the proof: let n be even, then n/2 is whole",
            "Who won the championship this year?",
            "What does this emoji mean: :-)",
            "为什么每4年都有一个闰年？",
            "什么是机器学习？它有哪些应用场景？",
            "分类这些词汇：静态，动态，变量",
            r"Evaluate $\left|\frac56 +2i\right|$.",
            "Debug this: for i in range(10) print(i)",
            "Prove that for every prime p > 3 the number p^2 - 1 is divisible by 24, and say where this fails for p = 3.",
        ];
        for message in alone {
            assert!(!is_follow_up(message), "{message}");
        }
    }

    #[test]
    fn a_first_message_may_refer_to_what_is_elsewhere() {
        for message in
            ["Migrate this repo from Flask to FastAPI", "Our tests hang; find out why and fix them."]
        {
            assert!(is_follow_up(message) && opens(message), "{message}");
        }
        assert!(opens("修复这个项目里的死锁"));
        for message in ["hi", "yes", "go on, please do it", "thanks for all of that", ""] {
            assert!(!opens(message), "{message}");
        }
    }

    #[test]
    fn what_names_no_subject_wants_something_beside_it() {
        for message in ["", "Solve this:", "Solve the problem in the file.", "Fix the bug"] {
            assert!(!stands_alone(message), "{message}");
        }
        for message in ["hi", "Which cities does the Rhine flow through?", "莱茵河流经哪些城市？"] {
            assert!(stands_alone(message), "{message}");
        }
    }
}
