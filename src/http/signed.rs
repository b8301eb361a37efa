//! Signed parts of a thought, on their way to the caller and back, as members of `reasoning_details`.
//!
//! The shape is that of an encrypted detail, which clients keep as it is. `OpenRouter`'s own client drops details of a format that it
//! does not list, so theirs is `unknown`. Its data says which model it came from, and which
//! of several organisations' it was, so that no other is ever given it, and holds what the provider sent byte for byte.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use stint_types::chat::{SignedThought, SigningDomain, ThoughtSigner, ToolCallExtra};

#[derive(Debug, Serialize, Deserialize)]
struct SealedSignature {
    model: Arc<str>,
    /// Eight hexadecimal digits.
    origin: String,
    block: Box<str>,
}

/// The member of a call's `extra_content` that says who added the others.
const EXTRA_SIGNER: &str = "stint";

#[derive(Debug, Serialize, Deserialize)]
struct ExtraSigner {
    model: Arc<str>,
    /// Eight hexadecimal digits.
    origin: String,
}

/// What is added to a call, and to which of its answer, if that is what was signed.
pub(super) fn call_extra(SignedThought { signer, block }: &SignedThought) -> Option<(u32, Value)> {
    let ToolCallExtra { index, mut extra_content, .. } = ToolCallExtra::read(block)?;
    let origin = format!("{:08x}", signer.domain.0);
    extra_content.insert(EXTRA_SIGNER.to_owned(), json!(ExtraSigner { model: signer.model.clone(), origin }));
    Some((index, extra_content.into()))
}

/// The signed part that came back as the `extra_content` of a call; `index` is its place. What others put there is left out.
pub(super) fn read_call_extra(tool_call_id: &str, index: usize, extra: &Value) -> Option<SignedThought> {
    let mut extra_content = extra.as_object()?.clone();
    let ExtraSigner { model, origin } = serde_json::from_value(extra_content.remove(EXTRA_SIGNER)?).ok()?;
    let domain = SigningDomain(u32::from_str_radix(&origin, 16).ok()?);
    let index = u32::try_from(index).ok()?;
    let extra = ToolCallExtra { tool_call_id: tool_call_id.to_owned(), index, extra_content };
    extra.signed(ThoughtSigner { model, domain })
}

/// The member that carries a signed part.
pub(super) fn reasoning_detail(signed: &SignedThought) -> Value {
    json!({ "type": "reasoning.encrypted", "format": "unknown", "data": seal(signed) })
}

/// The member that carries some of a thought's text.
pub(super) fn text_detail(text: &str) -> Value {
    json!({ "type": "reasoning.text", "format": "unknown", "text": text })
}

/// The thought's text among the details of a message; nothing if there is none.
pub(super) fn details_text(details: &[Value]) -> Option<String> {
    let texts = details.iter().filter(|detail| detail["type"] == "reasoning.text");
    let text: String = texts.filter_map(|detail| detail["text"].as_str()).collect();
    (!text.is_empty()).then_some(text)
}

/// A signed part as one text, for the places where a provider's own signature would stand.
pub(super) fn seal(signed: &SignedThought) -> String {
    let SignedThought { signer: ThoughtSigner { model, domain: SigningDomain(number) }, block } = signed;
    json!(SealedSignature { model: model.clone(), origin: format!("{number:08x}"), block: block.clone() })
        .to_string()
}

/// What was sealed, if that is what it is.
pub(super) fn unseal(text: &str) -> Option<SignedThought> {
    let SealedSignature { model, origin, block } = serde_json::from_str(text).ok()?;
    let origin = SigningDomain(u32::from_str_radix(&origin, 16).ok()?);
    Some(SignedThought { signer: ThoughtSigner { model, domain: origin }, block })
}

/// The signed parts among the details of a message. Others' details are not ours to pass on, and are left out.
pub(super) fn read_details(details: &[Value]) -> Vec<SignedThought> {
    details.iter().filter_map(read_detail).collect()
}

fn read_detail(detail: &Value) -> Option<SignedThought> {
    unseal(detail["data"].as_str()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signed_part_comes_back_byte_for_byte() {
        let block = r#"{"type":"thinking","thinking":"1 \"and\" 1\u00e9", "signature":"EqQB=="}"#;
        let signer = ThoughtSigner { model: "sonnet".into(), domain: SigningDomain(0x00ab_cdef) };
        let signed = SignedThought { signer, block: block.into() };
        let carried = reasoning_detail(&signed);
        assert_eq!(carried["type"], "reasoning.encrypted");
        assert_eq!(read_details(&[carried]), [signed]);
    }

    #[test]
    fn what_a_provider_added_to_a_call_comes_back_as_it_was() {
        let block =
            r#"{"tool_call_id":"call_1","index":1,"extra_content":{"google":{"thought_signature":"c2ln"}}}"#;
        let signer = ThoughtSigner { model: "gemini".into(), domain: SigningDomain(0x00ab_cdef) };
        let signed = SignedThought { signer, block: block.into() };
        let (index, extra) = call_extra(&signed).unwrap();
        assert_eq!((index, &extra["google"]["thought_signature"]), (1, &json!("c2ln")));
        assert_eq!(read_call_extra("call_1", 1, &extra), Some(signed));
        let of_others = json!({ "google": { "thought_signature": "c2ln" } });
        assert_eq!(read_call_extra("call_1", 1, &of_others), None);
        assert_eq!(read_call_extra("call_1", 1, &json!("text")), None);
    }

    #[test]
    fn what_others_put_there_is_left_out() {
        let of_others = json!({"type": "reasoning.text", "text": "hm", "signature": "x"});
        let broken = json!({"type": "reasoning.encrypted", "format": "unknown", "data": "{"});
        assert_eq!(read_details(&[of_others, broken, json!(7)]), []);
    }

    #[test]
    fn a_thoughts_text_comes_back_among_the_details() {
        let encrypted = json!({"type": "reasoning.encrypted", "format": "unknown", "data": "{"});
        let details = [text_detail("first "), encrypted.clone(), text_detail("second")];
        assert_eq!(details_text(&details).as_deref(), Some("first second"));
        assert_eq!(details_text(&[encrypted]), None);
    }
}
