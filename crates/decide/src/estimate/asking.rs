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
    /// All that the user says.
    Question,
}

/// The elements in which agents and editors put such things.
const ELEMENTS: [(&str, ElementKind); 18] = [
    ("system-reminder", ElementKind::Note),
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
/// How Codex begins the rules of a project, and how it ends them.
const RULES: [&str; 2] = ["# AGENTS.md instructions", "</INSTRUCTIONS>"];

/// An element in a text.
#[derive(Debug)]
struct ClientElement<'t> {
    kind: ElementKind,
    /// Where it stands, with its tags.
    range: Range<usize>,
    inside: &'t str,
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
    let mut pieces: Vec<&str> = Vec::new();
    let mut questions: Vec<&str> = Vec::new();
    for text in texts(message) {
        let elements = elements(text);
        pieces.extend(outside(text, &elements, ElementKind::Note).into_iter().map(unwrapped));
        let asks = |element: &ClientElement<'_>| element.kind == ElementKind::Question;
        questions.extend(elements.into_iter().filter(asks).map(|element| element.inside.trim()));
    }
    questions.retain(|question| !question.is_empty());
    if questions.is_empty() { pieces } else { questions }
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
fn outside<'t>(text: &'t str, elements: &[ClientElement<'t>], kind: ElementKind) -> Vec<&'t str> {
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
fn elements(text: &str) -> Vec<ClientElement<'_>> {
    let mut found: Vec<ClientElement<'_>> = rules(text).into_iter().collect();
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
                found.push(ClientElement { kind, range: at..from, inside: &text[start..start + length] });
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
    // No attribute goes on behind the next tag, so that no byte is looked at twice.
    let mut attributes = rest.bytes().take(ATTRIBUTES_MAX).take_while(|byte| *byte != b'<');
    let tag = attributes.position(|byte| byte == b'>')?;
    Some((place, at + 1 + tag + 1))
}

fn begins_with_rules(text: &str) -> bool {
    text.trim_start().starts_with(RULES[0])
}

/// The rules of a project that a text begins with.
fn rules(text: &str) -> Option<ClientElement<'_>> {
    let [_, ends] = RULES;
    let at = begins_with_rules(text).then(|| text.find(ends)).flatten()?;
    Some(ClientElement { kind: ElementKind::Note, range: 0..at + ends.len(), inside: &text[..at] })
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
        check(said, &format!("{rule}\n<user_query>\nhi\n</user_query>"), &["hi"]);
        let details = "<environment_details>\n# Time\n12:00\n</environment_details>";
        check(said, &format!("<task>\nhi\n</task>\n\n{details}"), &["hi"]);
        let with_data = format!("<task>Sort.</task>\n<data>{rule}</data>");
        check(said, &with_data, &[&with_data]);
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
