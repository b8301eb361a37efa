//! What a provider counted of a prompt, by which the next prompt of the run is bounded.
//!
//! Without a model's tokenizer a prompt is known to have at most as many tokens as it has bytes, which is four times too many
//! for most texts. Where the run goes on from a prompt that was counted, only what is new is taken by its bytes.

use sha2::{Digest, Sha256};

use crate::chat::{Message, Part, Request, Role, Tool};
use crate::prompt::bound::{self, Frame};
use crate::units::{Count, Tokens};

use super::{arguments, choice};

/// A prompt that was counted. It tells nothing of what was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// How many tokens its provider said that it has.
    pub tokens: Tokens,
    /// How many messages it had, but for the operator's instructions: some write the time into them.
    messages: Count,
    /// Who read it, and these messages.
    said: [u8; 16],
    /// The instructions, the tools that were told of, and all else beside the messages.
    frame: [u8; 16],
}

impl Reading {
    /// What was counted of a request as it was sent. What the gateway put behind its last message was read, and is gone at the
    /// next turn. `reader` is who may have read it: another word, another tokenizer.
    ///
    /// Some leave out what they had cached. So nothing is taken from a count that is less than the text can have, or than what
    /// was counted `before` of its beginning; that goes on holding.
    pub fn of(sent: &Request, reader: &str, tokens: Tokens, before: Option<Reading>) -> Option<Reading> {
        let before = before.filter(|before| before.beginning(sent, reader).is_some());
        if tokens < bound::least(sent).max(before.map_or(Tokens::ZERO, |before| before.tokens)) {
            return before;
        }
        Some(Reading {
            tokens,
            messages: Count(u64::try_from(sent.messages.iter().filter(is_said).count()).unwrap_or(u64::MAX)),
            said: said(&sent.messages, reader),
            frame: frame(sent, &sent.tools, !choice::is_none(sent)),
        })
    }

    /// An upper bound of the prompt of a request that is to be sent, where it goes on from what was counted. `asked` is the same
    /// as its caller wrote it.
    pub fn bound(&self, asked: &Request, sent: &Request, reader: &str) -> Option<Tokens> {
        let before = self.beginning(asked, reader)?;
        // Tools that are withheld now were read then.
        let all = || self.frame == frame(sent, &asked.tools, true);
        let same = || self.frame == frame(sent, &sent.tools, !choice::is_none(sent));
        let frame = if all() || same() { Frame::Counted } else { Frame::New };
        Some(bound::grown(self.tokens, before, sent, frame))
    }

    /// The messages that were counted, where a request begins with them.
    fn beginning<'r>(&self, request: &'r Request, reader: &str) -> Option<&'r [Message]> {
        let before = first(&request.messages, usize::try_from(self.messages.0).ok()?)?;
        (said(before, reader) == self.said).then_some(before)
    }

    /// As a store keeps it.
    pub fn to_bytes(self) -> [u8; 48] {
        let mut bytes = [0; 48];
        bytes[..8].copy_from_slice(&self.tokens.0.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.messages.0.to_be_bytes());
        bytes[16..32].copy_from_slice(&self.said);
        bytes[32..].copy_from_slice(&self.frame);
        bytes
    }

    /// The same, read; nothing where it is not one.
    pub fn from_bytes(bytes: &[u8]) -> Option<Reading> {
        let (tokens, rest) = bytes.split_first_chunk::<8>()?;
        let (messages, rest) = rest.split_first_chunk::<8>()?;
        let (said, frame) = rest.split_first_chunk::<16>()?;
        Some(Reading {
            tokens: Tokens(u64::from_be_bytes(*tokens)),
            messages: Count(u64::from_be_bytes(*messages)),
            said: *said,
            frame: frame.try_into().ok()?,
        })
    }
}

/// Everything with its length, so that nothing can be taken for something else.
struct Hash(Sha256);

impl Hash {
    fn add(&mut self, what: &str, text: &str) {
        self.0.update(what);
        self.0.update(text.len().to_be_bytes());
        self.0.update(text);
    }

    fn add_each(&mut self, what: &str, texts: impl IntoIterator<Item = impl AsRef<str>>) {
        texts.into_iter().for_each(|text| self.add(what, text.as_ref()));
    }

    fn message(&mut self, message: &Message) {
        self.add("role", message.role.word());
        for part in &message.content {
            match part {
                Part::Text(text) => self.add("text", text),
                Part::Other(value) => arguments::hash(value, &mut self.0),
                Part::Mark(_) => {}
                // What follows is not there at the next turn.
                Part::Seam => break,
            }
        }
        self.add_each("thought", &message.thought);
        self.add_each("signed", message.signed.iter().map(|signed| &signed.block));
        for call in &message.tool_calls {
            self.add_each("call", [&call.id, &call.name, &call.arguments]);
        }
        self.add_each("answers", &message.tool_call_id);
        self.add_each("name", &message.name);
    }

    fn end(self) -> [u8; 16] {
        let mut end = [0; 16];
        end.copy_from_slice(&self.0.finalize()[..16]);
        end
    }
}

fn is_said(message: &&Message) -> bool {
    message.role != Role::System
}

/// So many messages and the instructions among them; nothing where there are not so many.
fn first(messages: &[Message], count: usize) -> Option<&[Message]> {
    let mut said = (0..messages.len()).filter(|at| is_said(&&messages[*at]));
    match count {
        0 => Some(&[]),
        _ => said.nth(count - 1).map(|last| &messages[..=last]),
    }
}

fn said(messages: &[Message], reader: &str) -> [u8; 16] {
    let mut hash = Hash(Sha256::new());
    hash.add("reader", reader);
    messages.iter().filter(is_said).for_each(|message| hash.message(message));
    hash.end()
}

fn frame(request: &Request, tools: &[Tool], are_told: bool) -> [u8; 16] {
    let mut hash = Hash(Sha256::new());
    let system = request.messages.iter().filter(|message| message.role == Role::System);
    system.for_each(|message| hash.message(message));
    hash.add("tools", if are_told { "told" } else { "withheld" });
    tools.iter().for_each(|tool| arguments::hash(&tool.declaration, &mut hash.0));
    hash.add("format", "");
    request.response_format.iter().for_each(|format| arguments::hash(format, &mut hash.0));
    hash.add("extra", "");
    let mut extra: Vec<_> = request.extra.iter().chain(&request.passed).collect();
    extra.sort_by_key(|(name, _)| *name);
    for (name, value) in extra {
        hash.add("name", name);
        arguments::hash(value, &mut hash.0);
    }
    hash.end()
}
