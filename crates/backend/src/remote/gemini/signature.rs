//! Signatures of thoughts, and the parts that they stand on.

use serde::{Deserialize, Serialize};

use stint_types::chat::{Message, SignedThought, ThoughtSigner};

/// A signature, and where it belongs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GeminiSignature {
    #[serde(flatten)]
    pub(super) on: SignedPart,
    /// As the provider wrote it.
    pub(super) thought_signature: String,
}

/// The part that a signature stands on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum SignedPart {
    /// The call of that number.
    Call(usize),
    /// A part of the answer with this text, which may be none.
    Text(String),
    /// A part of the shown thought with this text.
    Thought(String),
}

impl GeminiSignature {
    /// For the way to the caller and back.
    pub(super) fn signed(&self, signer: &ThoughtSigner) -> Option<SignedThought> {
        let block = serde_json::to_string(self).ok()?;
        Some(SignedThought { signer: signer.clone(), block: block.into() })
    }

    /// What this model signed in a turn. What came back changed into something else is left out.
    pub(super) fn all(message: &Message, signer: &ThoughtSigner) -> Vec<GeminiSignature> {
        message.signed_by(signer).filter_map(|block| serde_json::from_str(block).ok()).collect()
    }
}
