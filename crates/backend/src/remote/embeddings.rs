//! Reads the vectors of an answer in OpenAI's form, which most have taken over. Vectors of which some cannot be right are refused:
//! nobody would notice them in an index.

use serde_json::{Value, json};

use crate::{EmbeddingResult, Failure, Fault};
use stint_types::units::Tokens;

/// The vectors of so many texts, in the order of their texts.
pub(super) fn parse(mut answer: Value, wanted: usize) -> Result<EmbeddingResult, Failure> {
    let broken = |what: &str| Failure::new(Fault::Backend, format!("the upstream sent {what}"));
    let data = match answer.get_mut("data").map(Value::take).unwrap_or_default() {
        Value::Array(data) if data.len() == wanted => data,
        _ => return Err(broken("other than one vector for each text")),
    };
    let mut lengths = data.iter().map(vector_length);
    let first = lengths.next().unwrap_or_default();
    if wanted > 0 && (first.is_none() || lengths.any(|length| length != first)) {
        return Err(broken("vectors that are empty, of several lengths, or no numbers"));
    }
    let data = in_order(data).ok_or_else(|| broken("vectors of which it is not known whose they are"))?;
    let told =
        ["/usage/prompt_tokens", "/usage/total_tokens"].iter().find_map(|at| answer.pointer(at)?.as_u64());
    Ok(EmbeddingResult { data, prompt: told.map(Tokens) })
}

/// How many numbers a vector has, or how many characters of base64; nothing where it is none.
fn vector_length(item: &Value) -> Option<usize> {
    let length = match item.get("embedding")? {
        Value::Array(numbers) if numbers.iter().all(Value::is_number) => numbers.len(),
        Value::String(base64) => base64.len(),
        _ => 0,
    };
    (length > 0).then_some(length)
}

/// The items by their indexes, if each has one of its own. Where none has one, their order is all there is; some, as Google, leave
/// out that of the first, which is zero.
fn in_order(mut items: Vec<Value>) -> Option<Vec<Value>> {
    let has_none = items.iter().all(|item| item["index"].is_null());
    for (at, item) in items.iter_mut().enumerate().filter(|(_, item)| item["index"].is_null()) {
        item.as_object_mut()?.insert("index".to_owned(), json!(if has_none { at } else { 0 }));
    }
    items.sort_by_key(|item| item["index"].as_u64());
    let is_whole = (0..).zip(&items).all(|(at, item)| item["index"].as_u64() == Some(at));
    is_whole.then_some(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors that are read of `data`, in their order.
    fn read(data: &Value, wanted: usize) -> Option<Vec<Value>> {
        let read = parse(json!({"data": data, "usage": {"prompt_tokens": 3}}), wanted);
        assert!(read.as_ref().map_or_else(|it| !it.unsent, |it| it.prompt == Some(Tokens(3))), "{data}");
        let vectors = read.ok()?.data.into_iter().zip(0..).map(|(mut item, at)| {
            assert_eq!(item["index"], json!(at));
            item["embedding"].take()
        });
        Some(vectors.collect())
    }

    fn item(index: u64, embedding: &Value) -> Value {
        json!({"index": index, "embedding": embedding})
    }

    #[test]
    fn vectors_are_told_in_the_order_of_their_texts() {
        let (a, b) = (json!([0.5, 1]), json!([1, -0.5]));
        assert_eq!(read(&json!([item(1, &b), item(0, &a)]), 2), Some(vec![a.clone(), b.clone()]));
        let unnumbered = json!([{"embedding": a}, {"embedding": b}]);
        assert_eq!(read(&unnumbered, 2), Some(vec![a.clone(), b.clone()]));
        let first_unnumbered = json!([{"embedding": b}, item(1, &a)]);
        assert_eq!(read(&first_unnumbered, 2), Some(vec![b, a]));
        assert_eq!(read(&json!([item(0, &json!("AAAAPw=="))]), 1), Some(vec![json!("AAAAPw==")]));
    }

    #[test]
    fn vectors_that_cannot_be_right_are_refused() {
        let good = json!([0.5, 1]);
        for embedding in [json!([]), json!(["a", "b"]), json!([null, 1]), json!([1]), json!(""), json!(null)]
        {
            assert_eq!(read(&json!([item(0, &good), item(1, &embedding)]), 2), None, "{embedding}");
            assert_eq!(read(&json!([item(0, &embedding), item(1, &good)]), 2), None, "{embedding}");
        }
        for indexes in [[0, 0], [1, 2], [7, 0]] {
            assert_eq!(read(&json!(indexes.map(|index| item(index, &good))), 2), None, "{indexes:?}");
        }
        assert_eq!(read(&json!([item(0, &good), {"embedding": good}]), 2), None);
        assert_eq!(read(&json!([item(0, &good)]), 2), None);
        assert_eq!(read(&json!([good]), 1), None);
    }
}
