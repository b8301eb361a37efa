//! Bounds the tokens of an episode's next prompt by what a provider counted for an earlier one.
//!
//! Without a model's tokenizer a prompt is only known to have at most as many tokens as bytes, which is four times too many
//! for most texts. If the episode continues a prompt that was counted, only the new part is bounded by its bytes.

use sha2::{Digest, Sha256};

use stint_prompt::token_bound::{self, PromptFrame};
use stint_types::catalog::ImageTokens;
use stint_types::chat::{ContentPart, Message, Request, Role, Tool};
use stint_types::units::{Count, Tokens};

use super::{allowed_tools, arguments};

/// A prompt that was counted. It does not reveal the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedPrompt {
    /// How many tokens it has according to its provider.
    pub tokens: Tokens,
    /// How many messages it had, but for the operator's instructions: some write the time into them.
    messages: Count,
    /// Who read it, and these messages.
    messages_hash: [u8; 16],
    /// The instructions, the declared tools, and everything else beside the messages.
    frame_hash: [u8; 16],
}

impl CountedPrompt {
    /// What was counted of a request as it was sent, with all that the gateway added. `reader` is who may have read it: another
    /// word, another tokenizer.
    ///
    /// Some leave out what they had cached. So nothing is taken from a count that is less than the text can have, or than what
    /// was counted `before` of its beginning; that goes on holding.
    pub fn of(
        sent: &Request,
        reader: &str,
        tokens: Tokens,
        before: Option<CountedPrompt>,
    ) -> Option<CountedPrompt> {
        let before = before.filter(|before| before.counted_prefix(sent, reader).is_some());
        if tokens
            < token_bound::min_prompt_tokens(sent).max(before.map_or(Tokens::ZERO, |before| before.tokens))
        {
            return before;
        }
        Some(CountedPrompt {
            tokens,
            messages: Count(
                u64::try_from(sent.messages.iter().filter(is_conversational).count()).unwrap_or(u64::MAX),
            ),
            messages_hash: hash_messages(&sent.messages, reader),
            frame_hash: hash_frame(sent, &sent.tools, !allowed_tools::is_none(sent)),
        })
    }

    /// An upper bound of the prompt of a request that is to be sent, where it goes on from what was counted. `images` says what
    /// the model is billed for one.
    pub fn upper_bound(&self, sent: &Request, reader: &str, images: &ImageTokens) -> Option<Tokens> {
        let before = self.counted_prefix(sent, reader)?;
        // If none may be called now, they were read then.
        let all = || self.frame_hash == hash_frame(sent, &sent.tools, true);
        let same = || self.frame_hash == hash_frame(sent, &sent.tools, !allowed_tools::is_none(sent));
        let frame = if all() || same() { PromptFrame::Counted } else { PromptFrame::Changed };
        Some(token_bound::extended_prompt_tokens(self.tokens, before, sent, frame, images))
    }

    /// The messages that were counted, where a request begins with them.
    fn counted_prefix<'r>(&self, request: &'r Request, reader: &str) -> Option<&'r [Message]> {
        let before = first(&request.messages, usize::try_from(self.messages.0).ok()?)?;
        (hash_messages(before, reader) == self.messages_hash).then_some(before)
    }

    /// As a store keeps it.
    pub fn to_bytes(self) -> [u8; 48] {
        let mut bytes = [0; 48];
        bytes[..8].copy_from_slice(&self.tokens.0.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.messages.0.to_be_bytes());
        bytes[16..32].copy_from_slice(&self.messages_hash);
        bytes[32..].copy_from_slice(&self.frame_hash);
        bytes
    }

    /// The same, read; nothing if it is not one.
    pub fn from_bytes(bytes: &[u8]) -> Option<CountedPrompt> {
        let (tokens, rest) = bytes.split_first_chunk::<8>()?;
        let (messages, rest) = rest.split_first_chunk::<8>()?;
        let (said, frame) = rest.split_first_chunk::<16>()?;
        Some(CountedPrompt {
            tokens: Tokens(u64::from_be_bytes(*tokens)),
            messages: Count(u64::from_be_bytes(*messages)),
            messages_hash: *said,
            frame_hash: frame.try_into().ok()?,
        })
    }
}

/// Everything with its length, so that nothing can be taken for something else.
struct PromptHasher(Sha256);

impl PromptHasher {
    fn add(&mut self, what: &str, text: &str) {
        self.0.update(what);
        self.0.update(text.len().to_be_bytes());
        self.0.update(text);
    }

    fn add_each(&mut self, what: &str, texts: impl IntoIterator<Item = impl AsRef<str>>) {
        texts.into_iter().for_each(|text| self.add(what, text.as_ref()));
    }

    fn message(&mut self, message: &Message) {
        self.add("role", message.role.as_str());
        for part in &message.content {
            match part {
                ContentPart::Text(text) => self.add("text", text),
                ContentPart::Other(value) => arguments::hash(value, &mut self.0),
                ContentPart::AdditionStart { .. } | ContentPart::CacheBreakpoint(_) => {}
            }
        }
        self.add_each("thought", &message.thought);
        self.add_each("signed", message.signed.iter().map(|signed| &signed.block));
        for call in &message.tool_calls {
            self.add_each("call", [&call.id, &call.name, &call.arguments]);
        }
        self.add_each("answers", &message.tool_call_id);
        self.add_each("name", &message.name);
        self.add_each(
            "passed",
            message.unknown_members.iter().map(|(name, value)| format!("{name}={value}")),
        );
    }

    fn end(self) -> [u8; 16] {
        let mut end = [0; 16];
        end.copy_from_slice(&self.0.finalize()[..16]);
        end
    }
}

fn is_conversational(message: &&Message) -> bool {
    message.role != Role::System
}

/// So many messages and the instructions among them; nothing if there are not so many.
fn first(messages: &[Message], count: usize) -> Option<&[Message]> {
    let mut said = (0..messages.len()).filter(|at| is_conversational(&&messages[*at]));
    match count {
        0 => Some(&[]),
        _ => said.nth(count - 1).map(|last| &messages[..=last]),
    }
}

fn hash_messages(messages: &[Message], reader: &str) -> [u8; 16] {
    let mut hash = PromptHasher(Sha256::new());
    hash.add("reader", reader);
    messages.iter().filter(is_conversational).for_each(|message| hash.message(message));
    hash.end()
}

fn hash_frame(request: &Request, tools: &[Tool], are_told: bool) -> [u8; 16] {
    let mut hash = PromptHasher(Sha256::new());
    let system = request.messages.iter().filter(|message| message.role == Role::System);
    system.for_each(|message| hash.message(message));
    hash.add("tools", if are_told { "told" } else { "withheld" });
    for tool in tools {
        arguments::hash(&tool.declaration, &mut hash.0);
        tool.anthropic_members.iter().for_each(|members| arguments::hash(members, &mut hash.0));
    }
    hash.add("format", "");
    request.response_format.iter().for_each(|format| arguments::hash(format, &mut hash.0));
    hash.add("extra", "");
    let mut extra: Vec<_> = request.extra.iter().chain(&request.unknown_members).collect();
    extra.sort_by_key(|(name, _)| *name);
    for (name, value) in extra {
        hash.add("name", name);
        arguments::hash(value, &mut hash.0);
    }
    hash.end()
}
