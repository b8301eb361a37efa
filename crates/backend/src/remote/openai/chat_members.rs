//! What a provider of chat completions says besides what every API has a word for.

use serde_json::Value;

use crate::Piece;
use crate::remote::uncounted::uncounted;
use stint_types::chat::{AnswerApi, AnswerNote, ProviderMembers};

use super::chunk::OpenAiDelta;
use super::members_visitor::ForeignMembers;
use super::rare_value::RareValue;

/// What one stream has said of it so far.
#[derive(Debug)]
pub(super) struct ChatMembers {
    kept: ProviderMembers,
    /// How many bytes of each part.
    bytes: [usize; 2],
    /// The last usage.
    usage: RareValue,
}

impl Default for ChatMembers {
    fn default() -> ChatMembers {
        let kept = ProviderMembers::new(AnswerApi::Chat);
        ChatMembers { kept, bytes: [0, 0], usage: RareValue::default() }
    }
}

impl ChatMembers {
    /// Of the whole answer.
    pub(super) fn keep_of_answer(&mut self, unknown: ForeignMembers<'_>) {
        unknown.keep_in(&mut self.kept.answer, &mut self.bytes[0]);
    }

    /// Of the choice.
    pub(super) fn keep_of_choice(&mut self, unknown: ForeignMembers<'_>) {
        unknown.keep_in(&mut self.kept.choice, &mut self.bytes[1]);
    }

    /// Of the choice's message.
    pub(super) fn keep_of_message(&mut self, delta: &mut OpenAiDelta<'_>) {
        let members = delta.take_members();
        self.kept.message.extend(members.map(|(name, value)| (name.to_owned(), value)));
    }

    /// What was counted; the last one wins.
    pub(super) fn keep_usage(&mut self, usage: RareValue) {
        if !usage.is_null() {
            self.usage = usage;
        }
    }

    /// All of it, if there is any.
    pub(super) fn take(&mut self) -> Option<ProviderMembers> {
        let mut kept = std::mem::take(self);
        if let Value::Object(usage) = kept.usage.take() {
            kept.kept.usage = uncounted(usage);
        }
        (!kept.kept.is_empty()).then_some(kept.kept)
    }
}

/// The pictures and the sound in a piece of a message.
pub(super) fn made_media(delta: &mut OpenAiDelta<'_>) -> impl Iterator<Item = Piece> + use<> {
    let images = match delta.images.take() {
        Value::Array(images) => images,
        _ => Vec::new(),
    };
    let images = images.into_iter().filter(Value::is_object).map(AnswerNote::Image);
    let audio = Some(delta.audio.take()).filter(Value::is_object).map(AnswerNote::Audio);
    images.chain(audio).map(Piece::Note)
}
