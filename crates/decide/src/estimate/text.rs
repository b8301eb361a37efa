//! The text that is looked at, and what it is taken apart into.

use std::borrow::Cow;

use stint_types::catalog::TaskClass;
use stint_types::chat::{Message, Request, Role};

use super::asking::{last_asked, question_texts, said, texts, without_material};
use super::follow_up::{agrees, is_follow_up, is_small_talk, opens};
use super::light_task::LightTask;
use super::standing_task::StandingTask;
use super::standing_task_words::StandingKind;
use super::stated_length::{stated_length, stated_word};
use super::swar;
use super::tally::TextTally;
use super::whole_work::WholeWork;

/// How much of a text's beginning, and of its end, is looked at: questions stand at one of the two.
const END_BYTES: usize = 8 * 1024;

/// What a request asks: its last user message, without its middle where it is long. Before one that only goes on from an earlier
/// message stands that one; of a light task about a text only the instruction is looked at.
#[derive(Debug)]
pub(super) struct QuestionText<'t> {
    /// What is looked at.
    pub excerpt: Cow<'t, str>,
    /// Bytes of the whole message.
    pub bytes: usize,
    /// Bytes of the messages before it, and of the files in it that ask for nothing.
    pub context: usize,
    /// How long its answer gets, where that is plain: the logarithm of tokens.
    pub answer: Option<f64>,
    /// The whole work that is asked for.
    pub work: Option<WholeWork>,
    /// What kind of work it is, where the instructions tell.
    pub class: Option<TaskClass>,
}

/// So many messages are looked back at for one that asks something.
const LOOKED_BACK_AT: usize = 8;
/// Instructions of more bytes are an agent's or an application's, and no task.
const INSTRUCTIONS_MAX: usize = 2 * 1024;

/// A text taken apart, once for all estimates.
#[derive(Debug)]
pub(super) struct TextAnalysis<'t> {
    /// All of it.
    pub text: &'t str,
    /// Bytes of the whole message.
    pub bytes: usize,
    /// Bytes of the messages before it.
    pub context: usize,
    /// What was counted in it.
    pub tally: TextTally,
    /// What stands before the first of its options: all, where it has none.
    pub question: &'t str,
    /// How many lines of that have ended.
    pub lines: usize,
    /// Lines that open like one of several options: `A)`, `b.`, `(C)`, `D:`, without that opening.
    pub options: Vec<&'t str>,
}

impl<'t> QuestionText<'t> {
    /// The text of a request.
    pub(super) fn of(request: &'t Request) -> QuestionText<'t> {
        let messages = &request.messages;
        let asked = last_asked(messages).unwrap_or(messages.len().saturating_sub(1));
        let context =
            |before: usize| messages.iter().take(before).flat_map(texts).map(str::len).sum::<usize>();
        let given = messages.get(asked).map(said).unwrap_or_default();
        let own = without_material(&given);
        if let Some(task) = standing_task(request, asked, &given) {
            return QuestionText::of_standing(&task, &given, context(asked));
        }
        if let [own] = own[..]
            && let Some(first) = asked_before(request, asked, own)
        {
            let before = &messages[first];
            let task = light_task(request, &said(before));
            let question = task.map_or_else(|| question_texts(before), |task| vec![task.instruction]);
            let both: Vec<&str> = question.into_iter().chain(["\n", own]).collect();
            let text = QuestionText::from_parts(&both, context(first));
            return match task {
                Some(task) => QuestionText { answer: Some(task.answer), ..text },
                None => {
                    let text = text.with_statements(|| None);
                    QuestionText { work: text.work.filter(|_| agrees(own)), ..text }
                }
            };
        }
        let material = length(&given).saturating_sub(length(&own));
        let text = QuestionText::from_parts(&own, context(asked) + material);
        match light_task(request, &given) {
            Some(task) => QuestionText {
                excerpt: Cow::Borrowed(task.instruction),
                bytes: task.instruction.len(),
                context: text.context + text.bytes.saturating_sub(task.instruction.len()),
                answer: Some(task.answer),
                ..text
            },
            None => text.with_statements(|| word_of_instructions(request)),
        }
    }

    /// The text of a message to which the instructions' task is done.
    fn of_standing(task: &StandingTask<'t>, given: &[&'t str], context: usize) -> QuestionText<'t> {
        let answer = Some(task.answer);
        match task.kind {
            StandingKind::Extract | StandingKind::Classify => QuestionText {
                answer,
                class: Some(TaskClass::Extraction),
                ..QuestionText::from_parts(&[task.instruction], context + length(given))
            },
            StandingKind::Query | StandingKind::Review => {
                let both: Vec<&str> =
                    [task.instruction, "\n"].into_iter().chain(given.iter().copied()).collect();
                let class = Some(TaskClass::Code);
                QuestionText { answer, class, ..QuestionText::from_parts(&both, context) }
            }
        }
    }

    /// The same with what it says of its answer, or else the instructions do.
    fn with_statements(self, instructions: impl FnOnce() -> Option<f64>) -> QuestionText<'t> {
        let stated = stated_length(&self.excerpt).or_else(instructions);
        QuestionText { answer: stated, work: WholeWork::of(&self.excerpt, stated), ..self }
    }

    /// The text of a question alone.
    pub(super) fn question(question: &'t str) -> QuestionText<'t> {
        QuestionText::from_parts(&[question], 0)
    }

    fn from_parts(parts: &[&'t str], context: usize) -> QuestionText<'t> {
        let bytes = length(parts);
        if let ([part], true) = (parts, bytes <= 2 * END_BYTES) {
            return QuestionText::with(Cow::Borrowed(part), bytes, context);
        }
        let mut seen = String::with_capacity(bytes.min(2 * END_BYTES + 1));
        if bytes <= 2 * END_BYTES {
            parts.iter().for_each(|part| seen.push_str(part));
        } else {
            parts.iter().for_each(|part| seen.push_str(head(part, END_BYTES.saturating_sub(seen.len()))));
            seen.push('\n');
            let mut wanted = END_BYTES;
            let mut ends: Vec<&str> = Vec::new();
            for part in parts.iter().rev() {
                ends.push(tail(part, wanted));
                wanted = wanted.saturating_sub(part.len());
            }
            ends.iter().rev().for_each(|end| seen.push_str(end));
        }
        QuestionText::with(Cow::Owned(seen), bytes, context)
    }

    fn with(excerpt: Cow<'t, str>, bytes: usize, context: usize) -> QuestionText<'t> {
        QuestionText { excerpt, bytes, context, answer: None, work: None, class: None }
    }
}

impl<'t> TextAnalysis<'t> {
    /// Takes a text apart.
    pub(super) fn of(text: &'t QuestionText<'_>) -> TextAnalysis<'t> {
        TextAnalysis::with(text, |_| ())
    }

    /// Takes a text apart, and calls with the hash of every lexeme.
    pub(super) fn with(text: &'t QuestionText<'_>, lexeme: impl FnMut(u64)) -> TextAnalysis<'t> {
        let seen: &str = &text.excerpt;
        let tally = TextTally::of(seen, lexeme);
        let mut options = Vec::new();
        let mut asked = seen;
        let (mut from, mut lines) = (0, 0);
        for_each_line(seen, |line| {
            if let Some(option) = option(line, options.len()) {
                if options.is_empty() {
                    asked = &seen[..from];
                }
                options.push(option);
            }
            from += line.len() + 1;
            lines += usize::from(options.is_empty() && from <= seen.len());
        });
        TextAnalysis {
            text: seen,
            bytes: text.bytes,
            context: text.context,
            tally,
            question: asked,
            lines,
            options,
        }
    }
}

/// The place of the message that one goes on from: the last one before it that asks for something by itself. Else the first that asks
/// for something about what stands elsewhere, as in "Migrate this repo", else the instructions, where they may be a task.
fn asked_before(request: &Request, asked: usize, own: &str) -> Option<usize> {
    if asked == 0 || !is_follow_up(own) {
        return None;
    }
    let asks = |message: &Message| match question_texts(message)[..] {
        [] => false,
        [text] => !text.trim().is_empty() && !is_follow_up(text) && !is_small_talk(text),
        _ => true,
    };
    let before = &request.messages[..asked];
    let from_users = before.iter().enumerate().rev().filter(|(_, message)| message.role == Role::User);
    let asking = from_users.take(LOOKED_BACK_AT).find(|(_, message)| asks(message));
    let is_opened = |message: &Message| match question_texts(message)[..] {
        [] => false,
        [text] => opens(text),
        _ => true,
    };
    let begins = |message: &Message| message.role == Role::User && is_opened(message);
    asking.map(|(at, _)| at).or_else(|| before.iter().position(begins)).or_else(|| {
        let instructions = before.iter().rposition(|message| message.role == Role::System)?;
        let bytes: usize = texts(&before[instructions]).map(str::len).sum();
        (request.tools.is_empty() && bytes <= INSTRUCTIONS_MAX).then_some(instructions)
    })
}

/// The light task that a message or the instructions set.
fn light_task<'t>(request: &'t Request, own: &[&'t str]) -> Option<LightTask<'t>> {
    let messages = &request.messages;
    let system = || {
        let mut instructions =
            messages.iter().take_while(|message| message.role == Role::System).flat_map(texts);
        match (own, instructions.next(), instructions.next()) {
            ([message], Some(prompt), None) => LightTask::of_system(prompt, message.len()),
            _ => None,
        }
    };
    let label = || {
        let instructions = messages.iter().take_while(|message| message.role == Role::System);
        instructions.flat_map(texts).find_map(|prompt| LightTask::label_of_system(prompt, length(own)))
    };
    // Who has tools is to do more than to name something.
    LightTask::of(own).or_else(system).or_else(|| label().filter(|_| request.tools.is_empty()))
}

/// The task that the instructions set for every message, where the last one sets none itself.
fn standing_task<'t>(request: &'t Request, asked: usize, own: &[&'t str]) -> Option<StandingTask<'t>> {
    let is_users = request.messages.get(asked).is_some_and(|message| message.role == Role::User);
    if !is_users || !request.tools.is_empty() {
        return None;
    }
    let instructions = request.messages.iter().take_while(|message| message.role == Role::System);
    let mut prompts = instructions.flat_map(texts);
    let (Some(prompt), None) = (prompts.next(), prompts.next()) else { return None };
    let task = StandingTask::of(prompt, own)?;
    let is_own = LightTask::of(own).is_some() || matches!(own, [message] if is_small_talk(message));
    (!is_own).then_some(task)
}

/// The length of an answer of one word, where an application's instructions want no more.
fn word_of_instructions(request: &Request) -> Option<f64> {
    if !request.tools.is_empty() {
        return None;
    }
    let instructions = request.messages.iter().take_while(|message| message.role == Role::System);
    let mut prompts = instructions.flat_map(texts);
    match (prompts.next(), prompts.next()) {
        (Some(prompt), None) if prompt.len() <= INSTRUCTIONS_MAX => stated_word(prompt),
        _ => None,
    }
}

/// Shows each line of a text, the last one too where it is empty.
#[inline(always)]
fn for_each_line<'t>(text: &'t str, mut look: impl FnMut(&'t str)) {
    let (bytes, mut from) = (text.as_bytes(), 0);
    for at in (0..bytes.len()).step_by(8) {
        let mut ends = swar::newlines(swar::load(bytes, at));
        while ends != 0 {
            let end = at + ends.trailing_zeros() as usize / 8;
            look(&text[from..end]);
            from = end + 1;
            ends &= ends - 1;
        }
    }
    look(&text[from..]);
}

/// What an option says, where the line opens like the one after `before` others.
fn option(line: &str, before: usize) -> Option<&str> {
    let line = line.trim_ascii_start();
    let line = line.strip_prefix('(').unwrap_or(line);
    let [letter, sign, rest @ ..] = line.as_bytes() else { return None };
    let expected = b"ABCDEFGHIJ".get(before)?;
    // `a.close()` is no option.
    let ends = rest.first().is_none_or(u8::is_ascii_whitespace);
    let opens =
        letter.eq_ignore_ascii_case(expected) && (*sign == b')' || matches!(sign, b'.' | b':') && ends);
    opens.then(|| line[2..].trim_ascii())
}

fn length(parts: &[&str]) -> usize {
    parts.iter().map(|part| part.len()).sum()
}

fn head(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

fn tail(text: &str, bytes: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes))..]
}

#[cfg(test)]
mod tests {
    use stint_types::chat::Tool;

    use super::*;

    #[test]
    fn a_long_message_is_looked_at_from_both_ends() {
        let middle = "é".repeat(40_000);
        let text = QuestionText::from_parts(&["begin ", &middle, " end"], 0);
        assert!(text.excerpt.starts_with("begin é") && text.excerpt.ends_with("é end"));
        assert!(text.excerpt.len() <= 2 * END_BYTES + 1);
        assert_eq!(text.bytes, 80_010);
    }

    fn chat(messages: &[(Role, &str)]) -> Request {
        Request::new("auto", messages.iter().map(|(role, text)| Message::text(*role, *text)).collect())
    }

    #[test]
    fn a_message_that_goes_on_from_another_is_looked_at_with_it() {
        let task = "Find all functions f: R -> R with f(x f(y)) = f(xy) + x.";
        let request = chat(&[
            (Role::User, task),
            (Role::Assistant, "Shall I give the full proof?"),
            (Role::User, "yes"),
            (Role::Assistant, "f is linear."),
            (Role::User, "Are you sure?"),
        ]);
        assert_eq!(QuestionText::of(&request).excerpt, format!("{task}\nAre you sure?"));
        let request = chat(&[(Role::System, task), (Role::User, "Solve it.")]);
        assert_eq!(QuestionText::of(&request).excerpt, format!("{task}\nSolve it."));
        let request =
            chat(&[(Role::User, task), (Role::Assistant, "…"), (Role::User, "Thanks, that's all.")]);
        assert_eq!(QuestionText::of(&request).excerpt, "Thanks, that's all.");
        let request = chat(&[
            (Role::User, task),
            (Role::Assistant, "Shall I?"),
            (Role::User, "thanks"),
            (Role::Assistant, "So shall I?"),
            (Role::User, "yes, do it"),
        ]);
        assert_eq!(QuestionText::of(&request).excerpt, format!("{task}\nyes, do it"));
        let long = format!("Translate to German:\n{}", task.repeat(500));
        let request = chat(&[(Role::User, &long), (Role::Assistant, "…"), (Role::User, "continue")]);
        let text = QuestionText::of(&request);
        assert_eq!(text.excerpt, "Translate to German:\ncontinue");
        assert!(text.answer.is_some_and(|answer| answer > 8.0));
        let request = chat(&[(Role::User, "continue")]);
        assert_eq!(QuestionText::of(&request).excerpt, "continue");
        let task = "Refactor the scheduler to be lock-free and prove its correctness.";
        let request = chat(&[
            (Role::System, "You are an engineer."),
            (Role::User, "hi"),
            (Role::User, task),
            (Role::Assistant, "Shall I?"),
            (Role::User, "yes"),
        ]);
        assert_eq!(QuestionText::of(&request).excerpt, format!("{task}\nyes"));
    }

    #[test]
    fn instructions_that_want_one_word_tell_how_long_an_answer_gets() {
        let answer = |instructions: &str| {
            let request = chat(&[
                (Role::System, instructions),
                (Role::User, "How do I change the address of my invoice?"),
            ]);
            QuestionText::of(&request).answer.map(f64::exp)
        };
        let label = answer("Decide which team should handle the message. Output the name only.");
        assert!(label.is_some_and(|tokens| (tokens - 4.0).abs() < 1e-9), "{label:?}");
        assert!(answer("Is the message angry? Answer yes or no.").is_some());
        assert_eq!(answer("You are a support agent. Write 300 words where a story is wanted."), None);
        for of_some in [
            "You help with invoices. If somebody asks for a total, reply with only the number.",
            "You help with invoices. Never answer with just one word.",
            "You help with invoices. Output only the name and the address of who is meant.",
        ] {
            assert_eq!(answer(of_some), None, "{of_some}");
        }
    }

    #[test]
    fn a_message_that_instructions_tell_what_to_do_with_is_no_talk() {
        let seen = |instructions: &str, message: &str| {
            let request = chat(&[(Role::System, instructions), (Role::User, message)]);
            let text = QuestionText::of(&request);
            (text.class, text.answer.map(f64::exp), text.excerpt.into_owned())
        };
        let extract = "Extract the name and the date from the user's text as JSON.";
        let (class, answer, excerpt) = seen(extract, "Jane moved in on 3 May 2021, with 2 cats.");
        assert_eq!((class, excerpt.as_str()), (Some(TaskClass::Extraction), extract));
        assert!(answer.is_some_and(|tokens| (39.0..100.0).contains(&tokens)), "{answer:?}");
        let query = "Given a question, write a SQL query that answers it.";
        let (class, _, excerpt) = seen(query, "Who bought the most?");
        assert_eq!((class, excerpt), (Some(TaskClass::Code), format!("{query}\nWho bought the most?")));
        assert_eq!(seen("You are helpful.", "Who bought the most?").0, None);
        assert_eq!(seen(query, "thanks!").0, None);
        assert_eq!(seen(query, "Translate to French: Where have all the flowers gone?").0, None);
    }

    #[test]
    fn a_whole_work_stays_one_where_a_message_agrees_to_it() {
        let work = |last: &str| {
            let before = [(Role::User, "Implement Raft in Go with tests."), (Role::Assistant, "Shall I?")];
            let messages: Vec<_> = before.into_iter().chain([(Role::User, last)]).collect();
            QuestionText::of(&chat(&messages)).work
        };
        assert_eq!(work("yes, do it"), Some(WholeWork::System));
        assert_eq!(work("why?"), None);
    }

    #[test]
    fn a_title_is_a_light_task_in_whichever_part_of_the_instructions_it_is_asked_for() {
        let title =
            "Generate a concise, sentence-case title (3-7 words) that captures the topic of this session.";
        let request = chat(&[
            (Role::System, "You are a coding agent."),
            (Role::System, title),
            (Role::User, "Find the race in the scheduler, where tests hang once in 500 runs."),
        ]);
        let text = QuestionText::of(&request);
        assert_eq!(text.excerpt, title);
        assert!(text.answer.is_some_and(|answer| answer < 3.0));
        let task = "Find the race in the scheduler, where tests hang once in 500 runs.";
        let help = "You help writers who look for a title for their books.";
        let request = chat(&[(Role::System, "Be kind."), (Role::System, help), (Role::User, task)]);
        assert_eq!(QuestionText::of(&request).excerpt, task);
    }

    #[test]
    fn instructions_of_an_agent_are_no_task() {
        let task = "Find all functions f: R -> R with f(x f(y)) = f(xy) + x.";
        let of_agent = task.repeat(INSTRUCTIONS_MAX / task.len() + 1);
        let long = chat(&[(Role::System, &of_agent), (Role::User, "commit this")]);
        assert_eq!(QuestionText::of(&long).excerpt, "commit this");
        let mut with_tools = chat(&[(Role::System, task), (Role::User, "commit this")]);
        assert_eq!(QuestionText::of(&with_tools).excerpt, format!("{task}\ncommit this"));
        with_tools.tools.push(Tool::new("bash", serde_json::Value::Null));
        assert_eq!(QuestionText::of(&with_tools).excerpt, "commit this");
    }

    #[test]
    fn what_is_asked_about_is_context() {
        let file = format!("<file>\n{}\n</file>", "x = 1\n".repeat(100));
        let request = chat(&[(Role::User, &format!("{file}\nWhich cities are meant?"))]);
        let text = QuestionText::of(&request);
        assert_eq!(text.excerpt, "Which cities are meant?");
        assert!(text.context >= file.len());
        let request = chat(&[(Role::User, &format!("Translate the file below to French.\n{file}"))]);
        let text = QuestionText::of(&request);
        assert_eq!(text.excerpt, "Translate the file below to French.");
        assert!(text.answer.is_some_and(|answer| answer > 4.0), "as long as the file");
    }

    #[test]
    fn of_a_light_task_the_instruction_is_looked_at() {
        let text = "Let n > 1 be an integer. Prove that there are infinitely many primes.";
        let request =
            chat(&[(Role::System, "Translate all that the user writes to French."), (Role::User, text)]);
        let seen = QuestionText::of(&request);
        assert_eq!(seen.excerpt, "Translate all that the user writes to French.");
        assert!(seen.answer.is_some_and(|answer| answer > 2.0));
        assert_eq!(QuestionText::of(&chat(&[(Role::User, text)])).answer, None);
    }

    #[test]
    fn options_are_the_lines_that_open_with_a_letter() {
        let text = QuestionText::question("Which gas?\n(A) helium\n b. neon\nC: \nDo not guess.");
        let reading = TextAnalysis::of(&text);
        assert_eq!(reading.options, ["helium", "neon", ""]);
        assert_eq!(reading.question, "Which gas?\n");
    }
}
