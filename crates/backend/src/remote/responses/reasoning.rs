//! Encrypted reasoning, and its position in its turn.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use stint_types::chat::{Message, SignedThought, ThoughtSigner};

use super::letter_places::LetterPlaces;

/// A reasoning item as it came, and what of its turn came before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reasoning {
    /// True if the turn's text came before it.
    pub(super) after_text: bool,
    /// How many characters of that text came before it, where more of it may have come behind it. Not all that callers carry
    /// says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) after_letters: Option<usize>,
    /// How many of the turn's calls came before it.
    pub(super) after_calls: usize,
    /// The item, with nothing added or left out.
    pub(super) item: Map<String, Value>,
}

impl Reasoning {
    /// For the way to the caller and back.
    pub(super) fn signed(&self, signer: &ThoughtSigner) -> Option<SignedThought> {
        let block = serde_json::to_string(self).ok()?;
        Some(SignedThought { signer: signer.clone(), block: block.into() })
    }

    /// The byte of its turn's text that it stood before, where that is known and no call stood there.
    pub(super) fn place(&self, letters: &LetterPlaces) -> Option<usize> {
        self.after_letters.filter(|_| self.after_calls == 0).map(|before| letters.byte(before))
    }

    /// This model's reasoning in a turn. What came back changed into something else is left out.
    pub(super) fn all(message: &Message, signer: &ThoughtSigner) -> Vec<Reasoning> {
        let read =
            message.signed_by(signer).filter_map(|block| serde_json::from_str::<Reasoning>(block).ok());
        read.filter(|reasoning| reasoning.item.get("type").is_some_and(|kind| kind == "reasoning")).collect()
    }
}
