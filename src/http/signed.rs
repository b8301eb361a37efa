//! Signed parts of a thought, on their way to the caller and back, as members of `reasoning_details`.
//!
//! The shape is that of an encrypted detail, which clients keep as it is. Its data says which model it came from, and which
//! of several organisations' it was, so that no other is ever given it, and holds what the provider sent byte for byte.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::chat::{Maker, Origin, Signed};

#[derive(Debug, Serialize, Deserialize)]
struct Data {
    model: Arc<str>,
    /// Eight hexadecimal digits.
    origin: String,
    block: Box<str>,
}

/// The member that carries a signed part.
pub(super) fn write(signed: &Signed) -> Value {
    json!({ "type": "reasoning.encrypted", "format": "stint", "data": sealed(signed) })
}

/// A signed part as one text, for the places where a provider's own signature would stand.
pub(super) fn sealed(signed: &Signed) -> String {
    let Signed { maker: Maker { model, origin: Origin(number) }, block } = signed;
    json!(Data { model: model.clone(), origin: format!("{number:08x}"), block: block.clone() }).to_string()
}

/// What was sealed, if that is what it is.
pub(super) fn unsealed(text: &str) -> Option<Signed> {
    let Data { model, origin, block } = serde_json::from_str(text).ok()?;
    let origin = Origin(u32::from_str_radix(&origin, 16).ok()?);
    Some(Signed { maker: Maker { model, origin }, block })
}

/// The signed parts among the details of a message. Others' details are not ours to pass on, and are left out.
pub(super) fn read(details: &[Value]) -> Vec<Signed> {
    details.iter().filter(|detail| detail["format"] == "stint").filter_map(one).collect()
}

fn one(detail: &Value) -> Option<Signed> {
    unsealed(detail["data"].as_str()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signed_part_comes_back_byte_for_byte() {
        let block = r#"{"type":"thinking","thinking":"1 \"and\" 1\u00e9", "signature":"EqQB=="}"#;
        let maker = Maker { model: "sonnet".into(), origin: Origin(0x00ab_cdef) };
        let signed = Signed { maker, block: block.into() };
        let carried = write(&signed);
        assert_eq!(carried["type"], "reasoning.encrypted");
        assert_eq!(read(&[carried]), [signed]);
    }

    #[test]
    fn what_others_put_there_is_left_out() {
        let of_others = json!({"type": "reasoning.text", "text": "hm", "signature": "x"});
        let broken = json!({"type": "reasoning.encrypted", "format": "stint", "data": "{"});
        assert_eq!(read(&[of_others, broken, json!(7)]), []);
    }
}
