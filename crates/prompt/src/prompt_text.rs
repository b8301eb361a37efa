//! Tells of what kinds of text a prompt is made, from which follows about how many tokens it has. A long text is judged by
//! parts of it, so that a prompt of a megabyte takes no longer than one of some pages.

use stint_types::catalog::{PromptText, WritingKind};
use stint_types::chat::{ContentPart, Message, Request};

use crate::media_bound;

/// What a template usually puts around one message, around the conversation, and around the declaration of a tool, in tokens.
pub(crate) const MESSAGE: f64 = 4.0;
pub(crate) const CONVERSATION: f64 = 3.0;
pub(crate) const TOOL: f64 = 8.0;
/// How many bytes of a text are read: so many at its beginning, its middle and its end.
const PART: usize = 1 << 10;
/// Text with more of such signs among its characters is a program: prose has about one in fifty.
const SIGNS_MIN: f64 = 0.06;

/// What the text of a request is made of, with what stands around it.
pub fn of_request(request: &Request) -> PromptText {
    let mut text = PromptText { fixed: CONVERSATION, ..PromptText::default() };
    if let Some(ids) = &request.prompt_ids {
        text.fixed += count(ids.len());
        return text;
    }
    request.messages.iter().for_each(|message| add_message(&mut text, message));
    for tool in &request.tools {
        text.fixed += TOOL;
        add(&mut text, &tool.declaration.to_string());
        tool.anthropic_members.iter().for_each(|members| add(&mut text, &members.to_string()));
    }
    request.response_format.iter().for_each(|format| add(&mut text, &format.to_string()));
    text
}

fn add_message(text: &mut PromptText, message: &Message) {
    text.fixed += MESSAGE;
    for part in &message.content {
        match part {
            ContentPart::Text(said) => add(text, said),
            ContentPart::Other(value) => text.fixed += media_bound::usual(value),
            ContentPart::AdditionStart { .. } | ContentPart::CacheBreakpoint(_) => {}
        }
    }
    for call in &message.tool_calls {
        text.fixed += MESSAGE;
        add(text, &call.name);
        add(text, &call.arguments);
    }
    message.thought.iter().for_each(|thought| add(text, thought));
}

/// Adds a text: its unspaced part by itself, the rest as a program or as prose.
fn add(text: &mut PromptText, said: &str) {
    let mut counts = WritingCounts::default();
    parts(said).into_iter().for_each(|part| counts.add(part));
    if counts.read == 0 {
        return;
    }
    let whole = count(said.len());
    let share = count(counts.unspaced) / count(counts.read);
    let is_program = count(counts.signs) > SIGNS_MIN * count(counts.letters);
    let spaced = if is_program { WritingKind::Program } else { WritingKind::Prose };
    text.bytes[WritingKind::Unspaced.index()] += whole * share;
    text.bytes[spaced.index()] += whole * (1.0 - share);
}

/// What was counted in the parts of a text.
#[derive(Debug, Default)]
struct WritingCounts {
    /// Bytes of all.
    read: usize,
    /// Bytes of scripts without blanks between words.
    unspaced: usize,
    /// Characters of others.
    letters: usize,
    /// Those of them that are common in programs.
    signs: usize,
}

impl WritingCounts {
    /// Nearly all texts are ASCII, in which there is only to be told what is a sign.
    fn add(&mut self, part: &str) {
        self.read += part.len();
        self.signs += part.bytes().map(|byte| usize::from(SIGNS[usize::from(byte)])).sum::<usize>();
        if part.is_ascii() {
            self.letters += part.len();
            return;
        }
        for letter in part.chars() {
            if is_unspaced(letter) {
                self.unspaced += letter.len_utf8();
            } else {
                self.letters += 1;
            }
        }
    }
}

/// A short text whole; of a long one its beginning, its middle and its end.
fn parts(text: &str) -> [&str; 3] {
    if text.len() <= 3 * PART {
        return [text, "", ""];
    }
    let middle = text.floor_char_boundary(text.len() / 2);
    [
        &text[..text.floor_char_boundary(PART)],
        &text[middle..text.floor_char_boundary(middle + PART)],
        &text[text.ceil_char_boundary(text.len() - PART)..],
    ]
}

#[expect(clippy::cast_precision_loss, reason = "bytes of a prompt, for an estimate")]
fn count(bytes: usize) -> f64 {
    bytes as f64
}

/// By byte, 1 for the signs of programs.
static SIGNS: [u8; 256] = {
    let (signs, mut table, mut at) = (b"{}()[]<>=;_\\/\"|", [0; 256], 0);
    while at < signs.len() {
        table[signs[at] as usize] = 1;
        at += 1;
    }
    table
};

/// Thai, Lao, Burmese and Khmer, and from the CJK radicals to the compatibility ideographs and full-width forms, Korean aside.
fn is_unspaced(letter: char) -> bool {
    matches!(letter,
        '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}' | '\u{2E80}'..='\u{9FFF}'
        | '\u{F900}'..='\u{FAFF}' | '\u{FF00}'..='\u{FF9F}' | '\u{20000}'..='\u{3FFFF}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_types::chat::Role;

    fn check(said: &str, expected: WritingKind) {
        let text = of_request(&Request::new("m", vec![Message::text(Role::User, said)]));
        let most = WritingKind::ALL
            .into_iter()
            .max_by(|one, other| text.bytes[one.index()].total_cmp(&text.bytes[other.index()]));
        assert_eq!(most, Some(expected), "{said:?}: {text:?}");
        let length = count(said.len());
        assert!((text.length() - length).abs() < 1e-6 * length, "every byte is counted once: {text:?}");
    }

    #[test]
    fn prose_programs_and_unspaced_scripts_are_told_apart() {
        check("What is the capital of France? I would like to visit it (in spring).", WritingKind::Prose);
        check("Die Würde des Menschen ist unantastbar.", WritingKind::Prose);
        check("fn main() { let x = foo(bar[3], \"a\"); println!(\"{x}\"); }", WritingKind::Program);
        check(r#"{"city": "Rome", "days": [1, 2, 3]}"#, WritingKind::Program);
        check("人工智能正在改变世界", WritingKind::Unspaced);
        check("これは日本語の文章です。", WritingKind::Unspaced);
        check("ปัญญาประดิษฐ์กำลังเปลี่ยนโลก", WritingKind::Unspaced);
    }

    #[test]
    fn a_long_text_is_judged_by_parts_of_it() {
        check(&"人工智能正在改变世界".repeat(10_000), WritingKind::Unspaced);
        check(&"The quick brown fox jumps over the lazy dog. ".repeat(10_000), WritingKind::Prose);
    }

    #[test]
    fn signs_letters_and_bytes_are_counted_in_any_script() {
        let counted = |text: &str| {
            let mut counts = WritingCounts::default();
            counts.add(text);
            [counts.read, counts.unspaced, counts.letters, counts.signs]
        };
        assert_eq!(counted("f(x) = {[<a>]}; b_c \\ / \" |"), [27, 0, 27, 15]);
        assert_eq!(counted("Grüße 人工(智)"), [19, 9, 8, 2]);
        assert_eq!(counted(""), [0; 4]);
    }

    #[test]
    fn what_is_no_text_is_counted_by_itself() {
        let text = of_request(&Request::new("m", vec![Message::text(Role::User, "")]));
        assert_eq!(text, PromptText { fixed: MESSAGE + CONVERSATION, ..PromptText::default() });
    }
}
