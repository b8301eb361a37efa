//! Signed parts of a thought, on their way to the caller and back, as members of `reasoning_details`.
//!
//! The shape is that of an encrypted detail, which clients keep as it is. Its data says which model it came from, so
//! that no other is ever given it, and holds what the provider sent byte for byte.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::chat::Signed;

#[derive(Debug, Serialize, Deserialize)]
struct Data {
    model: Arc<str>,
    block: Box<str>,
}

/// The member that carries a signed part.
pub(super) fn write(signed: Signed) -> Value {
    let Signed { model, block } = signed;
    let data = json!(Data { model, block }).to_string();
    json!({ "type": "reasoning.encrypted", "format": "stint", "data": data })
}

/// The signed parts among the details of a message. Others' details are not ours to pass on, and are left out.
pub(super) fn read(details: &[Value]) -> Vec<Signed> {
    details.iter().filter(|detail| detail["format"] == "stint").filter_map(one).collect()
}

fn one(detail: &Value) -> Option<Signed> {
    let Data { model, block } = serde_json::from_str(detail["data"].as_str()?).ok()?;
    Some(Signed { model, block })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signed_part_comes_back_byte_for_byte() {
        let block = r#"{"type":"thinking","thinking":"1 \"and\" 1\u00e9", "signature":"EqQB=="}"#;
        let signed = Signed { model: "sonnet".into(), block: block.into() };
        let carried = write(signed.clone());
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
