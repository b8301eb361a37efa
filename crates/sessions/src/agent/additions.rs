//! What the gateway added to the prompts of an episode, such as the tracker's blocks, and where.
//!
//! A provider's cache holds for a prompt that begins like the one before, and newer models accept their own thoughts only
//! behind the same words that they were thought behind. So what was added once is put back at its place in every later
//! request. A place is known by the hash of the conversation up to there: where a caller edits its own history, the hashes
//! of all that follows are different ones, and what was added there goes with it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use stint_types::chat::{ContentPart, Message, Role};

use super::{HashChain, HistoryHash};

/// What is counted for each addition beside its text, in bytes: what it takes to keep it.
const OVERHEAD: usize = 64;

/// One text that was added behind the last message of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addition {
    /// The conversation that the prompt was.
    pub before: HistoryHash,
    /// The same with the reply to it; nothing where the reply did not come to its end.
    pub after: Option<HistoryHash>,
    /// What was added. Nothing is said where nothing was added for this reply, though something was for others.
    pub words: AddedWords,
}

/// What is added at one place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddedWords {
    /// The text; it may be empty.
    pub text: Arc<str>,
    /// The tools that may not be called from there on, being used up.
    pub withheld: Arc<[Arc<str>]>,
}

/// All additions of an episode, the earliest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Additions(Arc<Vec<Addition>>);

/// An addition at its place in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedAddition {
    /// The index of the message that it goes behind.
    pub message: usize,
    /// What is added.
    pub words: AddedWords,
}

/// An addition as a store keeps it, in a line of JSON: hashes in hexadecimal digits.
#[derive(Debug, Serialize, Deserialize)]
struct AdditionLine<'t> {
    before: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<String>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    text: Cow<'t, str>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    withheld: Vec<Cow<'t, str>>,
}

impl Additions {
    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many bytes they are counted for.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|addition| addition.words.bytes()).sum()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether something was added to this very conversation before.
    pub fn is_known(&self, before: &HistoryHash) -> bool {
        self.0.iter().any(|addition| addition.before == *before)
    }

    /// Adds some, but for those that it has.
    pub fn extend(&mut self, more: &[Addition]) {
        let new: Vec<Addition> = more.iter().filter(|addition| !self.0.contains(addition)).cloned().collect();
        if !new.is_empty() {
            Arc::make_mut(&mut self.0).extend(new);
        }
    }

    /// Leaves one out.
    pub fn remove(&mut self, one: &Addition) {
        if self.0.contains(one) {
            Arc::make_mut(&mut self.0).retain(|addition| addition != one);
        }
    }

    /// One by one, the earliest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Addition> {
        self.0.iter()
    }

    /// Those that belong to a conversation, in its order. A reply that the caller shortened keeps what was added last before
    /// it.
    pub fn placed(&self, chain: &HashChain) -> Vec<PlacedAddition> {
        if self.is_empty() {
            return Vec::new();
        }
        let by_reply: HashMap<_, _> =
            self.0.iter().filter_map(|addition| Some((addition.after?, &addition.words))).collect();
        // What was added before a reply that broke off stands for any reply that nobody knows.
        let mut by_place: HashMap<_, _> =
            self.0.iter().map(|addition| (addition.before, &addition.words)).collect();
        let broken_off = self.0.iter().filter(|addition| addition.after.is_none());
        by_place.extend(broken_off.map(|addition| (addition.before, &addition.words)));
        let mut is_withheld = false;
        let placed = chain.replies().iter().filter_map(|reply| {
            let words = by_reply.get(&reply.after).or_else(|| by_place.get(&reply.before))?;
            // Where tools were withheld, an addition of nothing gives them back.
            let is_change = is_withheld || !words.is_empty();
            is_withheld = !words.withheld.is_empty();
            let message = reply.asked.filter(|_| is_change)?;
            Some(PlacedAddition { message, words: AddedWords::clone(words) })
        });
        placed.collect()
    }

    /// The same as a store's column has them: a line for each.
    pub fn to_lines(&self) -> String {
        self.0.iter().map(Addition::to_line).collect()
    }

    /// Reads a store's column. Lines that cannot be read are left out: such an addition is lost, and nothing else.
    pub fn from_lines(lines: &str) -> Additions {
        let mut all: Vec<Addition> = Vec::new();
        for addition in lines.lines().filter_map(Addition::from_line) {
            if !all.contains(&addition) {
                all.push(addition);
            }
        }
        Additions(Arc::new(all))
    }
}

impl From<Vec<Addition>> for Additions {
    fn from(additions: Vec<Addition>) -> Additions {
        Additions(Arc::new(additions))
    }
}

impl AddedWords {
    /// True if nothing is added.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.withheld.is_empty()
    }

    /// How many bytes they are counted for.
    pub fn bytes(&self) -> usize {
        let withheld = self.withheld.iter().map(|tool| tool.len());
        self.text.len() + withheld.sum::<usize>() + OVERHEAD
    }
}

impl Addition {
    fn to_line(&self) -> String {
        let line = AdditionLine {
            before: self.before.to_string(),
            after: self.after.map(|after| after.to_string()),
            text: (&*self.words.text).into(),
            withheld: self.words.withheld.iter().map(|tool| Cow::Borrowed(&**tool)).collect(),
        };
        // Texts and digits can always be written.
        serde_json::to_string(&line).map(|line| line + "\n").unwrap_or_default()
    }

    fn from_line(line: &str) -> Option<Addition> {
        let line: AdditionLine<'_> = serde_json::from_str(line).ok()?;
        let after = match &line.after {
            Some(after) => Some(HistoryHash::from_hex(after)?),
            None => None,
        };
        let withheld = line.withheld.iter().map(|tool| Arc::from(&**tool)).collect();
        let words = AddedWords { text: (&*line.text).into(), withheld };
        Some(Addition { before: HistoryHash::from_hex(&line.before)?, after, words })
    }
}

/// Puts additions back at their places.
pub fn put_back(added: &[PlacedAddition], messages: &mut [Message]) {
    for PlacedAddition { message, words } in added {
        if let Some(message) = messages.get_mut(*message) {
            append(words, message);
        }
    }
}

/// Adds something behind the last message. The operator's instructions are left alone: some providers have them all at the
/// front.
pub(super) fn append_last(words: &AddedWords, messages: &mut [Message]) {
    if let Some(last) = messages.iter_mut().rfind(|message| message.role != Role::System) {
        append(words, last);
    }
}

/// Puts a text behind a message's own. Results of tools keep their place and their number, which is what providers check;
/// no message is added, and nothing before is touched.
fn append(AddedWords { text, withheld }: &AddedWords, message: &mut Message) {
    if matches!(message.content.last(), Some(ContentPart::Text(text)) if text.is_empty()) {
        message.content.pop();
    }
    let is_behind =
        matches!(message.content.last(), Some(ContentPart::Text(_) | ContentPart::CacheBreakpoint(_)));
    message.content.push(ContentPart::AdditionStart { withheld: Arc::clone(withheld) });
    if !text.is_empty() {
        let text = if is_behind { format!("\n\n{text}") } else { text.to_string() };
        message.content.push(ContentPart::Text(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(role: Role, text: &str) -> Message {
        Message::text(role, text)
    }

    fn conversation() -> Vec<Message> {
        let texts = [(Role::User, "Who?"), (Role::Assistant, "Nobody."), (Role::User, "Who else?")];
        texts.map(|(role, text)| said(role, text)).to_vec()
    }

    fn addition(messages: &[Message], reply: Option<&str>, text: &str) -> Addition {
        let chain = HashChain::read(messages);
        let after = reply.map(|reply| chain.clone().hash_after(&said(Role::Assistant, reply)));
        let withheld = if text.is_empty() { Arc::default() } else { ["search".into()].into() };
        Addition { before: chain.hash(), after, words: AddedWords { text: text.into(), withheld } }
    }

    fn placed(additions: &[Addition], messages: &[Message]) -> Vec<(usize, String)> {
        let additions = Additions::from(additions.to_vec());
        let lines = Additions::from_lines(&additions.to_lines());
        assert_eq!(lines, additions, "a store loses nothing");
        let placed = additions.placed(&HashChain::read(messages));
        placed.into_iter().map(|placed| (placed.message, placed.words.text.to_string())).collect()
    }

    #[test]
    fn an_addition_is_put_back_before_its_reply_and_nowhere_else() {
        let all = conversation();
        let one = addition(&all[..1], Some("Nobody."), "9 left\n\"now\"");
        assert_eq!(placed(std::slice::from_ref(&one), &all), [(0, "9 left\n\"now\"".to_owned())]);
        let mut edited = all.clone();
        edited[0] = said(Role::User, "Who, then?");
        assert_eq!(placed(&[one], &edited), [], "it goes with the words that it stood behind");
    }

    #[test]
    fn of_two_replies_to_the_same_words_each_has_its_own() {
        let all = conversation();
        let two =
            [addition(&all[..1], Some("Nobody."), "9 left"), addition(&all[..1], Some("Ulysses."), "8 left")];
        assert_eq!(placed(&two, &all), [(0, "9 left".to_owned())]);
        let none = [two[1].clone(), addition(&all[..1], Some("Nobody."), "")];
        assert_eq!(placed(&none, &all), [], "nothing was added for this one");
    }

    #[test]
    fn tools_that_were_given_back_are_given_back_in_every_later_request() {
        let mut all = conversation();
        all.extend([said(Role::Assistant, "Ulysses."), said(Role::User, "Sure?")]);
        let back = Addition { words: AddedWords::default(), ..addition(&all[..3], Some("Ulysses."), "") };
        let withheld = addition(&all[..1], Some("Nobody."), "0 left");
        assert_eq!(placed(&[withheld, back], &all), [(0, "0 left".to_owned()), (2, String::new())]);
    }

    #[test]
    fn a_reply_that_was_broken_off_keeps_what_was_added_before_it() {
        let all = conversation();
        let broken = addition(&all[..1], None, "9 left");
        assert_eq!(placed(&[broken], &all), [(0, "9 left".to_owned())]);
    }

    #[test]
    fn a_text_goes_behind_the_message_s_own() {
        let mut messages = conversation();
        let words = AddedWords { text: "9 left".into(), ..AddedWords::default() };
        put_back(&[PlacedAddition { message: 0, words }], &mut messages);
        assert_eq!(messages[0].plain_text(), "Who?\n\n9 left");
        assert_eq!(HashChain::read(&messages).replies(), HashChain::read(&conversation()).replies());
    }
}
