//! Tasks about a text that are no harder for what the text says: translating it, putting its spelling right, summing it up, writing
//! it in another form, telling its language or mood, looking something up in it. What is estimated is the instruction, however hard
//! the text may read.

use super::light_task_words::{
    AT_HAND, BEFORE_NOUNS, FORMAL, INSTRUCTIONS, LightAnswer, MORE, NAMED, NAMED_ANSWERS, NAMES_OF_TEXTS,
    POLITE, PROGRAMS, VERBS_AND_NOUNS,
};
use super::looked_up::{is_count, is_looked_up, is_of_oneself};
use super::phrase_list::FoundPhrase;
use super::scale::as_number;
use super::stated_length::stated_length;

/// An instruction is in the first or the last so many bytes of a message.
const INSTRUCTION_MAX: usize = 200;
/// The text that it is about has at least so many bytes more,
const TEXT_MIN: usize = 24;
/// and is at least so many times as long as an instruction that only names the task somewhere.
const NAMED_TEXT_MIN: usize = 5;
/// Bytes to a token, as a rule of thumb.
const BYTES_PER_TOKEN: f64 = 3.5;
/// Tokens of a summary, and of a label or a word of receipt.
const SUMMARY: f64 = 160.0;
const LABEL: f64 = 12.0;

/// What stands before the question or behind it where a program put it beside its text.
const QUESTION_LABELS: [&str; 9] =
    ["question:", "user question:", "q:", "query:", "user query:", "frage:", "pregunta:", "问题：", "質問："];
const ANSWER_LABELS: [&str; 10] = [
    "answer:",
    "helpful answer:",
    "your answer:",
    "response:",
    "a:",
    "assistant:",
    "antwort:",
    "respuesta:",
    "答案：",
    "回答：",
];

/// A light task: its instruction, and the usual length of its answer, as the logarithm of tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LightTask<'t> {
    pub instruction: &'t str,
    pub answer: f64,
}

impl<'t> LightTask<'t> {
    /// The task of a message of these texts: its instruction begins the message or its last line, or names the task in one of the
    /// two.
    pub(super) fn of(message: &[&'t str]) -> Option<LightTask<'t>> {
        let (first, last) = (message.first()?.trim(), last_line(message.last()?));
        let bytes: usize = message.iter().map(|part| part.trim().len()).sum();
        if bytes < TEXT_MIN {
            return None;
        }
        let at_end = || if last == first { None } else { instruction_at_start(last) };
        let found = instruction_at_start(first).or_else(at_end);
        let found = found.or_else(|| instruction_that_names(first, last, bytes));
        let found = found.or_else(|| {
            let asks = |line: &&str| is_looked_up(message, bytes, line);
            let line = Some(last).filter(asks).or_else(|| opening_question(first, last).filter(asks))?;
            Some((line, LightAnswer::Label))
        });
        let (instruction, answer) = found.filter(|(found, _)| found.len() + TEXT_MIN <= bytes)?;
        Some(LightTask::new(instruction, answer, bytes - instruction.len()))
    }

    /// The task that a system prompt sets for each message, where it begins with one, or with who is to do it: of a message of so many
    /// bytes.
    pub(super) fn of_system(prompt: &'t str, bytes: usize) -> Option<LightTask<'t>> {
        let prompt = prompt.trim();
        if prompt.len() > 2 * INSTRUCTION_MAX {
            return None;
        }
        let behind = || instruction_at_start(behind_role(prompt)?);
        let (instruction, answer) = instruction_at_start(prompt).or_else(behind)?;
        Some(LightTask::new(instruction, answer, bytes))
    }

    /// The label that a part of the system prompt wants of each message, as a title: of a message of so many bytes.
    pub(super) fn label_of_system(prompt: &'t str, bytes: usize) -> Option<LightTask<'t>> {
        let is_asked = |line: &&str| line.contains("title") || line.contains("tags");
        let line = opening(prompt).filter(|line| is_asked(line) && !is_of_helper(line))?;
        let (line, answer) = task_named_in(line, usize::MAX)?;
        (answer == LightAnswer::Label).then(|| LightTask::new(line, answer, bytes))
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

/// Whether instructions say who somebody is, and whom they help, rather than what is to be written.
fn is_of_helper(line: &str) -> bool {
    let lower = line.to_lowercase();
    lower.starts_with("you") && [" help ", " helps "].iter().any(|word| lower.contains(word))
}

/// The last line of a text, without the labels by which programs set a question apart from its text.
fn last_line(text: &str) -> &str {
    let is_label = |line: &&str| ANSWER_LABELS.iter().any(|label| line.eq_ignore_ascii_case(label));
    let mut lines = text.trim().rsplit('\n').map(str::trim);
    let line = lines.find(|line| !(line.is_empty() || is_label(line))).unwrap_or_default();
    let labelled = QUESTION_LABELS.iter().find_map(|label| {
        let (start, rest) = line.split_at_checked(label.len())?;
        start.eq_ignore_ascii_case(label).then_some(rest)
    });
    labelled.unwrap_or(line).trim()
}

/// The question that opens a message, where only a text stands behind it: its last line is too long for a task. What is to be counted
/// there may be a sum.
fn opening_question<'t>(first: &'t str, last: &str) -> Option<&'t str> {
    let line = opening(first).filter(|line| line.ends_with(['?', '？']) && !is_count(line))?;
    (last.len() > INSTRUCTION_MAX && !is_of_oneself(line)).then_some(line)
}

/// What stands behind a first sentence that tells a model who it is: "You are a translator."
fn behind_role(prompt: &str) -> Option<&str> {
    const ROLES: [&str; 4] = ["You are ", "You're ", "Act as ", "Du bist "];
    let role = ROLES.iter().find_map(|begins| prompt.strip_prefix(begins))?;
    let end =
        [". ", ".\n", "\n"].iter().filter_map(|sign| role.find(sign).map(|at| at + sign.len())).min()?;
    Some(role[end..].trim_start())
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
    let is_light = !asks_more(&lower) && !is_of_programs(&lower) && !is_proved(verb);
    is_light.then_some((instruction, *answer))
}

/// The instruction that names a task somewhere: it opens a message, or is the last line of one that asked for nothing harder before.
fn instruction_that_names<'t>(first: &'t str, last: &'t str, bytes: usize) -> Option<(&'t str, LightAnswer)> {
    let opening = opening(first);
    let named = opening.and_then(|line| task_named_in(line, bytes));
    let begins_with_more = || {
        let asked = opening.unwrap_or_default().to_lowercase();
        MORE.iter().any(|word| asked.starts_with(word))
    };
    named.or_else(|| task_named_in(last, bytes).filter(|_| !is_added(last) && !begins_with_more()))
}

/// The first line of a text that is no heading; of a long one its first sentence, or what stands before its colon.
fn opening(text: &str) -> Option<&str> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))?;
    if line.len() <= INSTRUCTION_MAX {
        return Some(line);
    }
    let head = &line[..line.floor_char_boundary(INSTRUCTION_MAX)];
    let ends = [":", "：", "。", ". ", "? ", "! "];
    let end = ends.iter().filter_map(|sign| head.find(sign).map(|at| at + sign.len())).min()?;
    Some(head[..end].trim_end())
}

/// The task that a line names, where the text beside it is much longer. What has a title and more is no label.
fn task_named_in(line: &str, bytes: usize) -> Option<(&str, LightAnswer)> {
    let text = bytes.saturating_sub(line.len());
    if line.len() > INSTRUCTION_MAX || text < NAMED_TEXT_MIN * line.len() {
        return None;
    }
    let lower = line.to_lowercase();
    let answer = NAMED_ANSWERS[NAMED.find(&lower, |found| is_to_be_done(&lower, found))?.group];
    let is_alone = answer != LightAnswer::Label || !lower.contains(" and ");
    (is_alone && !asks_more(&lower) && !is_of_programs(&lower)).then_some((line, answer))
}

/// Whether what was found in a line names a task, and no text that is at hand.
fn is_to_be_done(line: &str, found: &FoundPhrase<'_>) -> bool {
    let name = &line[found.before.len()..line.len() - found.after.len()];
    !NAMES_OF_TEXTS.contains(&name) || !AT_HAND.iter().any(|words| found.before.ends_with(words))
}

/// Whether a last line adds to what was asked for before, as in "Then give me a summary of this."
fn is_added(line: &str) -> bool {
    const ADDS: [&str; 12] = [
        "then",
        "finally",
        "lastly",
        "when",
        "after",
        "once",
        "at the end",
        "also",
        "and ",
        "include",
        "end with",
        "return",
    ];
    let lower = line.trim().to_lowercase();
    let is_item = lower.starts_with(|letter: char| "-*•".contains(letter) || letter.is_ascii_digit());
    is_item || ADDS.iter().any(|words| lower.starts_with(words))
}

fn asks_more(instruction: &str) -> bool {
    let does = |word: &str| instruction.match_indices(word).any(|(at, _)| !is_noun(&instruction[..at], word));
    MORE.iter().any(|word| does(word))
}

/// As in "the sentiment of this review".
fn is_noun(before: &str, word: &str) -> bool {
    let last = before.split_whitespace().next_back().unwrap_or_default();
    VERBS_AND_NOUNS.contains(&word) && before.ends_with(' ') && BEFORE_NOUNS.contains(&last)
}

/// As in "Convert this to Go" and "Translate this proof to Lean".
fn is_of_programs(instruction: &str) -> bool {
    let turns = instruction.contains("convert") || instruction.contains("translat");
    let mut words = instruction.split(|letter: char| !letter.is_alphanumeric());
    words.any(|word| PROGRAMS.contains(&word) || turns && FORMAL.contains(&word))
}

/// Groups are classified by a proof, reviews by a word: then the words are named, or the text follows. The language that a machine
/// accepts is none of people. And who shall be brief (fasse dich kurz) sums nothing up.
fn is_proved(verb: &str) -> bool {
    let names_labels =
        [":", " as ", " into ", " sentiment", "：", " or "].iter().any(|words| verb.contains(words));
    let is_formal = ["accepted", "generated", "recogni"].iter().any(|words| verb.contains(words));
    verb.starts_with("classify") && !names_labels
        || verb.contains("language is") && is_formal
        || verb.starts_with("fasse dich")
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
    fn a_task_may_be_named_anywhere_in_the_first_or_the_last_line_about_a_long_text() {
        let text = PROBLEM.repeat(12);
        for first in [
            "Here's a paper, give me a summary:",
            "I need a summary of this paper.",
            "Convert this table to JSON:",
            "次の文章を要約してください：",
            "请把下面的文章翻译成英文：",
            "Fais un résumé de ce texte :",
            "Haz un resumen de este texto:",
            "Schreibe eine Zusammenfassung des folgenden Textes:",
            "Кратко перескажи текст:",
            "다음 글을 영어로 번역해 줘:",
            "İngilizceye çevir:",
        ] {
            for message in [format!("{first}\n{text}"), format!("{text}\n\n{first}")] {
                let found = LightTask::of(&[message.as_str()]).map(|task| task.instruction);
                assert_eq!(found, Some(first), "{message}");
            }
        }
        let found = |message: &str| LightTask::of(&[message]).map(|task| task.answer.exp());
        let title = "Generate a concise, 3-5 word title with an emoji summarizing the chat history.";
        let length = found(&format!("### Task:\n{title}\n### Guidelines:\n{text}"));
        assert!(length.is_some_and(|tokens| tokens < 20.0), "{length:?}");
        assert!(found(&format!("Here is a paper, give me a summary: {text}")).is_some());
        for none in [
            format!("{text}\nFinally, give me a summary of this."),
            format!("Prove the theorem below.\n{text}\nThus ends the summary of this paper."),
            format!("Give me a summary of this theorem and prove it.\n{text}"),
            "Write a summary of this year's work and send it to Ben, who knows what to do with it."
                .to_owned(),
        ] {
            assert_eq!(found(&none), None, "{none}");
        }
    }

    #[test]
    fn what_is_worked_out_of_a_summary_is_no_light_task() {
        let found = |line: &str| LightTask::of(&[&format!("{line}\n{}", PROBLEM.repeat(20))]).is_some();
        for hard in [
            "请根据以下摘要评估这项研究的创新性和方法上的缺陷：",
            "请根据以下摘要提出三个新的研究方向：",
            "我的翻译程序报错了，怎么修复？",
            "对给出的文本进行分类：论文摘要",
            "Bewerte die folgende Zusammenfassung eines Falls und stelle eine Differentialdiagnose:",
            "Welche Fehler hat die folgende Zusammenfassung?",
            "A partir del siguiente resumen diseña un experimento y estima cuánto dura:",
        ] {
            assert!(!found(hard), "{hard}");
        }
        for light in [
            "请给下面的文章写一个摘要。",
            "把以下翻译成英文：",
            "把以下摘要翻译成英文：",
            "Schreibe eine Zusammenfassung:",
            "Haz un resumen:",
        ] {
            assert!(found(light), "{light}");
        }
    }

    #[test]
    fn word_problems_and_riddles_are_not_looked_up() {
        let none = |text: &str, question: &str| {
            assert_eq!(LightTask::of(&[&format!("{}\n{question}", text.repeat(40))]), None, "{question}");
        };
        let loaves = "On Monday she bakes 120 loaves and sells 3/4 of them, each to a guest. ";
        none(loaves, "How many loaves did the third shelter receive in total after all weeks?");
        none("The Norwegian lives next to the blue house. ", "Who owns the fish?");
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
    fn a_question_is_looked_up_before_its_text_and_between_labels_too() {
        let text = PROBLEM.repeat(20);
        let found = |message: &str| LightTask::of(&[message]).map(|task| task.instruction.to_owned());
        let question = "Who led the shift in section 3?";
        for message in [
            format!("{question}\n\n{text}"),
            format!("Answer from the context.\n\nContext:\n{text}\n\nQuestion: {question}\nAnswer:"),
            format!("{text}\n\nQ: {question}\n\nHelpful Answer:\n"),
        ] {
            assert_eq!(found(&message).as_deref(), Some(question), "{message}");
        }
        assert!(found(&format!("{text}\nWer leitete die Schicht?")).is_some());
        for message in [
            format!("How many primes are there in it?\n{text}"),
            format!("Where should I put the cache?\n{text}"),
            format!("When do I have to leave my job? {text}"),
            format!("Who calls this?\n```\n{text}\n```"),
            format!("{text}\nWo ist der Fehler?"),
            format!("{text}\nWhen you have read it, write me a plan for the launch."),
            format!("{text}\nQui trovi i dati: scrivi un piano per il lancio."),
            format!("{text}\nQuestion: Prove it.\nAnswer:"),
        ] {
            assert_eq!(found(&message), None, "{message}");
        }
    }

    #[test]
    fn a_review_is_a_text_and_to_review_is_more() {
        let found = |line: &str| LightTask::of(&[&format!("{line} {PROBLEM}")]).is_some();
        assert!(found("Classify the sentiment of this review as positive, negative or neutral:"));
        assert!(found("Translate the following analysis to German:"));
        assert!(found("Shorten this email:") && found("Make this sound more professional:"));
        assert!(!found("Translate and review this:") && !found("Summarize and analyze this:"));
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
            format!("Classify each series as absolutely convergent or divergent: {PROBLEM}"),
            format!("Convert the following NFA to a minimal DFA: {PROBLEM}"),
            format!("Convert the following grammar to Chomsky normal form: {PROBLEM}"),
            format!("Translate this to Lean 4: {PROBLEM}"),
            format!("Convert the following to ARM64 assembly: {PROBLEM}"),
            format!("Translate the following into first-order logic: {PROBLEM}"),
            format!("What language is accepted by this machine: {PROBLEM}"),
        ];
        for message in &none {
            assert_eq!(LightTask::of(&[message.as_str()]), None, "{message}");
        }
        assert_eq!(LightTask::of_system("You translate, summarize and write programs.", 100), None);
        assert!(LightTask::of_system("Translate everything the user writes to French.", 100).is_some());
        let role = "You are a careful translator. Translate everything the user writes to French.";
        assert!(LightTask::of_system(role, 100).is_some());
        assert_eq!(LightTask::of_system("You are an engineer. Review and translate programs.", 100), None);
    }
}
