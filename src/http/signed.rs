//! Signed parts of a thought, on their way to the caller and back, as members of `reasoning_details`.
//!
//! The shape is that of an encrypted detail, which clients keep as it is. Its data says which model it came from, and which
//! of several organisations' it was, so that no other is ever given it, and holds what the provider sent byte for byte.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use stint_types::chat::{SignedThought, SigningDomain, ThoughtSigner};

#[derive(Debug, Serialize, Deserialize)]
struct SealedSignature {
    model: Arc<str>,
    /// Eight hexadecimal digits.
    origin: String,
    block: Box<str>,
}

/// The member that carries a signed part.
pub(super) fn reasoning_detail(signed: &SignedThought) -> Value {
    json!({ "type": "reasoning.encrypted", "format": "stint", "data": seal(signed) })
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
    details.iter().filter(|detail| detail["format"] == "stint").filter_map(read_detail).collect()
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
        let maker = ThoughtSigner { model: "sonnet".into(), domain: SigningDomain(0x00ab_cdef) };
        let signed = SignedThought { signer: maker, block: block.into() };
        let carried = reasoning_detail(&signed);
        assert_eq!(carried["type"], "reasoning.encrypted");
        assert_eq!(read_details(&[carried]), [signed]);
    }

    #[test]
    fn what_others_put_there_is_left_out() {
        let of_others = json!({"type": "reasoning.text", "text": "hm", "signature": "x"});
        let broken = json!({"type": "reasoning.encrypted", "format": "stint", "data": "{"});
        assert_eq!(read_details(&[of_others, broken, json!(7)]), []);
    }
}
