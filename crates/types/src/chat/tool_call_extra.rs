//! What a provider adds to a tool call and wants back with it, as Google does in OpenAI's dialect (`extra_content`).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{SignedThought, ThoughtSigner};

/// What every one begins with as JSON text. It tells them from other signed parts.
const BEGINNING: &str = "{\"tool_call_id\":";

/// The most bytes of one as JSON text. Signatures of a thought have some thousand.
const BYTES_MAX: usize = 256 << 10;

/// The `extra_content` of a call. It has the signature of the thought that led to the call, so it travels as a signed part of
/// that, and goes back to its maker only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCallExtra {
    /// The call's id, as the caller knows it.
    pub tool_call_id: String,
    /// Which call of its answer.
    pub index: u32,
    /// What was added, as it was.
    pub extra_content: Map<String, Value>,
}

impl ToolCallExtra {
    /// As the signed part that it travels as; nothing if it is larger than any signature.
    pub fn signed(&self, signer: ThoughtSigner) -> Option<SignedThought> {
        let block = serde_json::to_string(self).ok().filter(|block| block.len() <= BYTES_MAX)?;
        Some(SignedThought { signer, block: block.into() })
    }

    /// What travelled so, if this part is one.
    pub fn read(block: &str) -> Option<ToolCallExtra> {
        serde_json::from_str(block.starts_with(BEGINNING).then_some(block)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::SigningDomain;

    fn signed(signature: &str) -> Option<SignedThought> {
        let google = serde_json::json!({ "google": { "thought_signature": signature } });
        let Value::Object(extra_content) = google else { return None };
        let extra = ToolCallExtra { tool_call_id: "call_1".to_owned(), index: 1, extra_content };
        let signed = extra.signed(ThoughtSigner { model: "g".into(), domain: SigningDomain(7) })?;
        assert_eq!(ToolCallExtra::read(&signed.block), Some(extra));
        Some(signed)
    }

    #[test]
    fn what_a_provider_added_to_a_call_is_told_from_other_signed_parts_and_has_a_bound() {
        assert!(signed("c2ln").is_some());
        assert_eq!(signed(&"x".repeat(BYTES_MAX)), None);
        assert_eq!(ToolCallExtra::read(r#"{"type":"thinking","signature":"x"}"#), None);
    }
}
