//! What the user says among what clients add: agents put notes of their own, and files, into the user's messages, in elements of
//! their own.

use std::borrow::Cow;
use std::iter;
use std::ops::Range;

use stint_types::chat::{ContentPart, Message, Role};

use super::follow_up::stands_alone;

/// What an element holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ElementKind {
    /// What no user said.
    Note,
    /// What the user may ask about.
    Material,
    /// What the user says, where a client wrote the whole message.
    Question,
}

/// The elements in which agents and editors put such things.
const ELEMENTS: [(&str, ElementKind); 19] = [
    ("system-reminder", ElementKind::Note),
    ("system_reminder", ElementKind::Note),
    ("environment_details", ElementKind::Note),
    ("environment_context", ElementKind::Note),
    ("environment_info", ElementKind::Note),
    ("workspace_info", ElementKind::Note),
    ("user_instructions", ElementKind::Note),
    ("user_info", ElementKind::Note),
    ("additional_data", ElementKind::Note),
    ("local-command-stdout", ElementKind::Note),
    ("local-command-stderr", ElementKind::Note),
    ("context", ElementKind::Material),
    ("attachments", ElementKind::Material),
    ("attachment", ElementKind::Material),
    ("attached_files", ElementKind::Material),
    ("file", ElementKind::Material),
    ("file_content", ElementKind::Material),
    ("user_query", ElementKind::Question),
    ("userRequest", ElementKind::Question),
];
/// How a sentence begins that has somebody work on what stands beside it, and what may stand before that.
const WORKS: &[&str] = &[
    "solve",
    "prove",
    "derive",
    "calculate",
    "compute",
    "think",
    "why",
    "fix",
    "debug",
    "implement",
    "refactor",
    "rewrite",
    "optimize",
    "optimise",
    "improve",
    "review",
    "check",
    "verify",
    "complete",
    "finish",
    "update",
    "change",
    "add",
    "löse",
    "beweise",
    "behebe",
    "résous",
    "corrige",
    "resuelve",
    "demuestra",
    "реши",
    "докажи",
];
const BEFORE_WORKS: [&str; 16] = [
    "please",
    "kindly",
    "now",
    "just",
    "carefully",
    "can",
    "could",
    "would",
    "you",
    "help",
    "me",
    "i",
    "want",
    "need",
    "to",
    "then",
];
/// So many answers are worked out, one may be looked up.
const MANY: [&str; 5] = ["all", "every", "each", "these", "both"];
/// Attributes of an element have no more bytes.
const ATTRIBUTES_MAX: usize = 512;
/// What Cursor writes before all else for each picture.
const PICTURE_MARK: &str = "[Image]";
/// How Codex begins the rules of a project, and how it ends them.
const RULES: [&str; 2] = ["# AGENTS.md instructions", "</INSTRUCTIONS>"];

/// An element in a text.
#[derive(Debug)]
struct ClientElement {
    kind: ElementKind,
    /// Where it stands, with its tags.
    range: Range<usize>,
}

/// The place of the last message in which the user says something, or of the last of the user's.
pub(super) fn last_asked(messages: &[Message]) -> Option<usize> {
    let of_user = |message: &&Message| message.role == Role::User;
    let says = |message: &Message| {
        message.content.is_empty()
            || texts(message).any(is_plain)
            || !said(message).is_empty()
            || message.media().next().is_some()
    };
    let place = |is_it: &dyn Fn(&Message) -> bool| {
        messages.iter().rposition(|message| of_user(&message) && is_it(message))
    };
    place(&says).or_else(|| place(&|_| true))
}

/// The texts of a message but for what a client adds.
pub(super) fn said(message: &Message) -> Vec<&str> {
    if texts(message).all(is_plain) {
        return texts(message).collect();
    }
    let questions = marked_questions(message);
    if !questions.is_empty() {
        return questions;
    }
    texts(message).flat_map(|text| outside(text, &elements(text), ElementKind::Note)).map(unwrapped).collect()
}

/// What stands in the elements for the user's words. They count where a client wrote the whole message: nothing stands outside of
/// elements, and only notes behind these. Elsewhere somebody quotes them, and they are like any text.
fn marked_questions(message: &Message) -> Vec<&str> {
    let mut questions = Vec::new();
    for text in texts(message) {
        let mut rest = without_picture_marks(text);
        while !rest.is_empty() {
            let Some((name, inside, behind)) = first_element(rest) else { return Vec::new() };
            match kind_of(name) {
                Some(ElementKind::Question) => questions.push(inside.trim()),
                kind if questions.is_empty() || kind == Some(ElementKind::Note) => {}
                _ => return Vec::new(),
            }
            rest = behind.trim_start();
        }
    }
    questions.retain(|question| !question.is_empty());
    questions
}

fn without_picture_marks(text: &str) -> &str {
    let mut rest = text.trim_start();
    while let Some(behind) = rest.strip_prefix(PICTURE_MARK) {
        rest = behind.trim_start();
    }
    rest
}

/// The element of any name that a text begins with: its name, what is inside of it, and what stands behind it.
fn first_element(text: &str) -> Option<(&str, &str, &str)> {
    let rest = text.strip_prefix('<')?;
    let ends_name = |letter: char| !(letter.is_alphanumeric() || matches!(letter, '_' | '-'));
    let (name, rest) = rest.split_at(rest.find(ends_name).filter(|length| *length > 0)?);
    let (inside, behind) = rest[tag_end(rest)?..].split_once(&format!("</{name}>"))?;
    Some((name, inside, behind))
}

fn kind_of(name: &str) -> Option<ElementKind> {
    ELEMENTS.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
}

/// What a message asks: see [`without_material`].
pub(super) fn question_texts(message: &Message) -> Vec<&str> {
    let said = said(message);
    match without_material(&said) {
        Cow::Borrowed(_) => said,
        Cow::Owned(asked) => asked,
    }
}

/// The bytes of that.
pub(super) fn question_bytes(message: &Message) -> usize {
    if texts(message).all(is_plain) {
        return texts(message).map(str::len).sum();
    }
    question_texts(message).iter().map(|text| text.len()).sum()
}

/// True of a text in which no client put anything, as most are.
fn is_plain(text: &str) -> bool {
    !text.contains('<') && !begins_with_rules(text)
}

/// What is asked: what is [`said`] outside of files and their like, where that stands alone and works on none of them.
pub(super) fn without_material<'s, 't>(said: &'s [&'t str]) -> Cow<'s, [&'t str]> {
    if said.iter().all(|text| !text.contains('<')) {
        return said.into();
    }
    let without = |text: &'t str| outside(text, &elements(text), ElementKind::Material);
    let asked: Vec<&'t str> = said.iter().copied().flat_map(without).collect();
    let bytes = |texts: &[&str]| texts.iter().map(|text| text.len()).sum::<usize>();
    let has_material = bytes(&asked) < bytes(said);
    let is_apart =
        || asked.iter().any(|text| stands_alone(text)) && !asked.iter().any(|text| works_on_material(text));
    if has_material && is_apart() { asked.into() } else { said.into() }
}

/// Whether a sentence has somebody work on what stands beside it: "Solve all the exercises."
fn works_on_material(text: &str) -> bool {
    text.to_lowercase().split(['.', '!', '?', ':', ';', '\n']).any(|sentence| {
        let words = sentence.split(|letter: char| !letter.is_alphanumeric());
        let mut words = words.filter(|word| !word.is_empty()).skip_while(|word| BEFORE_WORKS.contains(word));
        let first = words.next().unwrap_or_default();
        WORKS.contains(&first) || first == "answer" && words.next().is_some_and(|next| MANY.contains(&next))
    })
}

/// All texts of a message.
pub(super) fn texts(message: &Message) -> impl Iterator<Item = &str> {
    message.content.iter().filter_map(|part| match part {
        ContentPart::Text(text) => Some(text.as_str()),
        ContentPart::Other(_) | ContentPart::AdditionStart { .. } | ContentPart::CacheBreakpoint(_) => None,
    })
}

/// What a text says outside of its elements of a kind: all, where it has none.
fn outside<'t>(text: &'t str, elements: &[ClientElement], kind: ElementKind) -> Vec<&'t str> {
    let cut: Vec<&Range<usize>> =
        elements.iter().filter(|element| element.kind == kind).map(|element| &element.range).collect();
    if cut.is_empty() {
        return vec![text];
    }
    let starts = iter::once(0).chain(cut.iter().map(|range| range.end));
    let ends = cut.iter().map(|range| range.start).chain([text.len()]);
    let pieces = starts.zip(ends).map(|(from, to)| text[from..to].trim_start());
    let mut pieces: Vec<&str> = pieces.filter(|piece| !piece.is_empty()).collect();
    if let Some(last) = pieces.last_mut() {
        *last = last.trim_end();
    }
    pieces
}

/// What is inside of `<task>`, where that is all. People write tasks beside other elements that belong to them.
fn unwrapped(text: &str) -> &str {
    let inside = text.trim().strip_prefix("<task>").and_then(|rest| rest.strip_suffix("</task>"));
    inside.map_or(text, str::trim)
}

/// The elements of a text that stand in no other, in order.
fn elements(text: &str) -> Vec<ClientElement> {
    let mut found: Vec<ClientElement> = rules(text).into_iter().collect();
    let mut from = found.last().map_or(0, |rules| rules.range.end);
    // What has no end is looked for once.
    let mut is_unclosed = [false; ELEMENTS.len()];
    while let Some(at) = text[from..].find('<').map(|at| from + at) {
        from = at + 1;
        let Some((place, start)) = opened_at(text, at).filter(|(place, _)| !is_unclosed[*place]) else {
            continue;
        };
        let (name, kind) = ELEMENTS[place];
        let end = format!("</{name}>");
        match text[start..].find(&end) {
            Some(length) => {
                from = start + length + end.len();
                found.push(ClientElement { kind, range: at..from });
            }
            None => is_unclosed[place] = true,
        }
    }
    found
}

/// Which element opens at a `<`, and where what is inside of it begins. Elements begin a line, or stand behind a tag.
fn opened_at(text: &str, at: usize) -> Option<(usize, usize)> {
    let rest = &text[at + 1..];
    let first = rest.bytes().next()?;
    let opens = |(name, _): &(&str, ElementKind)| {
        name.as_bytes().first() == Some(&first)
            && rest.strip_prefix(*name).is_some_and(|rest| rest.starts_with(['>', ' ', '\n']))
    };
    let place = ELEMENTS.iter().position(opens)?;
    let before = text[..at].trim_end_matches([' ', '\t']);
    if !before.is_empty() && !before.ends_with(['\n', '>']) {
        return None;
    }
    Some((place, at + 1 + tag_end(rest)?))
}

/// Where a tag of which this is the rest has ended.
fn tag_end(rest: &str) -> Option<usize> {
    // No attribute goes on behind the next tag, so that no byte is looked at twice.
    let mut attributes = rest.bytes().take(ATTRIBUTES_MAX).take_while(|byte| *byte != b'<');
    attributes.position(|byte| byte == b'>').map(|at| at + 1)
}

fn begins_with_rules(text: &str) -> bool {
    text.trim_start().starts_with(RULES[0])
}

/// The rules of a project that a text begins with.
fn rules(text: &str) -> Option<ClientElement> {
    let [_, ends] = RULES;
    let at = begins_with_rules(text).then(|| text.find(ends)).flatten()?;
    Some(ClientElement { kind: ElementKind::Note, range: 0..at + ends.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTE: &str = "<system-reminder>\nThe list is empty.\n</system-reminder>\n";

    fn check(what: fn(&Message) -> Vec<&str>, text: &str, expected: &[&str]) {
        assert_eq!(what(&Message::text(Role::User, text)), expected, "{text}");
    }

    #[test]
    fn what_a_client_adds_is_not_what_the_user_says() {
        let both = Message {
            content: vec![ContentPart::Text(NOTE.to_owned()), ContentPart::Text("yes".to_owned())],
            ..Message::text(Role::User, "")
        };
        assert_eq!(said(&both), ["yes"]);
        let messages = [both, Message::text(Role::Tool, "done"), Message::text(Role::User, NOTE)];
        assert_eq!(last_asked(&messages), Some(0));
        assert_eq!(last_asked(&messages[1..]), Some(1), "there is nothing else");
        check(said, &format!("{NOTE}{NOTE}"), &[]);
        check(said, &format!("{NOTE}Why does it fail?\n{NOTE}"), &["Why does it fail?"]);
        check(said, &format!("Why?\n{NOTE}It did not.\n"), &["Why?\n", "It did not."]);
        check(
            said,
            "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nUse Rust.\n</INSTRUCTIONS>\nhi",
            &["hi"],
        );
        for whole in ["<system-reminder> is an element. What is it for?", "What are <file> and </file>?", ""]
        {
            check(said, whole, &[whole]);
        }
    }

    #[test]
    fn where_a_client_marks_what_the_user_says_nothing_else_counts() {
        let rule = "Prove all you say.";
        check(said, &format!("<context>\n{rule}\n</context>\n<userRequest>\nhi\n</userRequest>"), &["hi"]);
        check(said, &format!("<rules>\n{rule}\n</rules>\n<user_query>\nhi\n</user_query>"), &["hi"]);
        let seen = "[Image]\n<image_files>\n1. a.png\n</image_files>\n<timestamp>now</timestamp>";
        let behind = "<system_reminder>\nPlan first.\n</system_reminder>";
        check(said, &format!("{seen}\n<user_query>\nhi\n</user_query>\n{behind}"), &["hi"]);
        let details = "<environment_details>\n# Time\n12:00\n</environment_details>";
        check(said, &format!("<task>\nhi\n</task>\n\n{details}"), &["hi"]);
        let with_data = format!("<task>Sort.</task>\n<data>{rule}</data>");
        check(said, &with_data, &[&with_data]);
    }

    #[test]
    fn what_a_quoted_document_marks_as_said_is_not_all_that_is_said() {
        let quoted = "<user_query>\nhi\n</user_query>";
        for text in [
            format!("Prove that there are infinitely many primes.\n\nA page:\n{quoted}"),
            format!("What is its title?\n<file>\nx\n</file>\n{quoted}\n</file>"),
            format!("<question>Why?</question>\n<page>\n</page>\n{quoted}\n<page>\n</page>"),
            format!("{quoted}\nWhy?"),
        ] {
            check(said, &text, &[&text]);
        }
        let both = Message {
            content: ["Prove it.", quoted].map(|text| ContentPart::Text(text.to_owned())).into(),
            ..Message::text(Role::User, "")
        };
        assert_eq!(said(&both), ["Prove it.", quoted]);
    }

    #[test]
    fn of_material_beside_a_question_only_the_question_is_asked() {
        let file = "<file path=\"a.rs\">\nfn main() {}\n</file>";
        check(question_texts, &format!("hi\n{file}\n{file}"), &["hi"]);
        check(question_texts, &format!("{file}\nWhich cities are meant?"), &["Which cities are meant?"]);
        for bound in ["Solve this:", "Fix the bug", ""] {
            let text = format!("{bound}\n{file}");
            check(question_texts, &text, &[&text]);
        }
        for works in ["Solve all the exercises.", "Why does the login page crash on startup?"] {
            let text = format!("{file}\n{works}");
            check(question_texts, &text, &[&text]);
        }
        let thinks = format!("{file}\nThink carefully and solve the problem step by step.");
        check(question_texts, &thinks, &[&thinks]);
        let many = format!("{file}\nWhich exercises are easy? Please answer all exercises.");
        check(question_texts, &many, &[&many]);
        check(
            question_texts,
            &format!("{file}\nWhich cities? Answer briefly."),
            &["Which cities? Answer briefly."],
        );
        check(said, &format!("hi\n{file}"), &[&format!("hi\n{file}")]);
    }

    #[test]
    fn elements_without_an_end_cost_no_more_than_one_look_each() {
        let open = "<file>\n<context>\n".repeat(100_000);
        assert!(elements(&open).is_empty());
        let found = elements("<file \n<file>x</file>");
        assert_eq!(found.first().map(|element| element.range.start), Some(7), "a tag ends before the next");
    }
}
