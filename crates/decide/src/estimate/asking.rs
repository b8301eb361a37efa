//! What the user says among what clients add: agents put notes of their own into the user's messages, in elements of their own.

use stint_types::chat::{ContentPart, Message, Role};

/// The elements in which agents put what no user said.
const ASIDES: [&str; 6] = [
    "<system-reminder>",
    "<environment_details>",
    "<environment_context>",
    "<user_instructions>",
    "<user_info>",
    "<local-command-stdout>",
];

/// The place of the last message in which the user says something, or of the last of the user's.
pub(super) fn last_asked(messages: &[Message]) -> Option<usize> {
    let of_user = |message: &&Message| message.role == Role::User;
    let says = |message: &Message| {
        message.content.is_empty() || said(message).next().is_some() || message.media().next().is_some()
    };
    let place = |is_it: &dyn Fn(&Message) -> bool| {
        messages.iter().rposition(|message| of_user(&message) && is_it(message))
    };
    place(&says).or_else(|| place(&|_| true))
}

/// The texts of a message but for what a client adds.
pub(super) fn said(message: &Message) -> impl Iterator<Item = &str> {
    texts(message).filter(|text| !is_aside(text))
}

/// All texts of a message.
pub(super) fn texts(message: &Message) -> impl Iterator<Item = &str> {
    message.content.iter().filter_map(|part| match part {
        ContentPart::Text(text) => Some(text.as_str()),
        ContentPart::Other(_) | ContentPart::AdditionStart { .. } | ContentPart::CacheBreakpoint(_) => None,
    })
}

/// Whether all of a text is such elements. What stands behind one, or between two, is the user's.
fn is_aside(text: &str) -> bool {
    let mut rest = text.trim();
    let has_any = !rest.is_empty();
    while let Some(behind) = behind_element(rest) {
        rest = behind.trim_start();
    }
    has_any && rest.is_empty()
}

/// What stands behind the element that a text begins with.
fn behind_element(text: &str) -> Option<&str> {
    let element = ASIDES.iter().find(|element| text.starts_with(**element))?;
    let end = format!("</{}", &element[1..]);
    text.split_once(&end).map(|(_, behind)| behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_adds_is_not_what_the_user_says() {
        let note = "<system-reminder>\nThe list is empty.\n</system-reminder>\n";
        let both = Message {
            content: vec![ContentPart::Text(note.to_owned()), ContentPart::Text("yes".to_owned())],
            ..Message::text(Role::User, "")
        };
        assert_eq!(said(&both).collect::<Vec<_>>(), ["yes"]);
        let messages = [both, Message::text(Role::Tool, "done"), Message::text(Role::User, note)];
        assert_eq!(last_asked(&messages), Some(0));
        assert_eq!(last_asked(&messages[1..]), Some(1), "there is nothing else");
        let goes_on = "<system-reminder> is an element. What is it for?";
        assert_eq!(said(&Message::text(Role::User, goes_on)).collect::<Vec<_>>(), [goes_on]);
        let between = format!("{note}Why does it fail?\n{note}");
        assert_eq!(said(&Message::text(Role::User, &*between)).collect::<Vec<_>>(), [between.as_str()]);
        assert_eq!(said(&Message::text(Role::User, [note, note].concat())).count(), 0);
    }
}
