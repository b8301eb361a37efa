//! Reads the vectors of an answer in OpenAI's form, which most have taken over. Vectors of which some cannot be right are refused:
//! nobody would notice them in an index.

use serde::Deserialize;
use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::{EmbeddedText, EmbeddingResult, Failure, Fault};
use stint_types::units::Tokens;

/// The largest answer that is read where it came, within about a millisecond.
const READ_AT_ONCE: usize = 128 << 10;

/// What an answer has of what is looked at.
#[derive(Debug, Deserialize)]
struct EmbeddingAnswer {
    #[serde(default)]
    data: Vec<EmbeddedText>,
    #[serde(default)]
    usage: Value,
    #[serde(default)]
    error: Value,
}

/// What stands beside the vectors.
#[derive(Debug, Default, Deserialize)]
struct AnswerMembers {
    #[serde(default)]
    usage: Value,
    #[serde(default)]
    error: Value,
}

impl AnswerMembers {
    /// What it counted. Servers that do not count say 0.
    fn read(&self) -> Option<Tokens> {
        let count = |name: &&str| self.usage.get(name)?.as_u64().filter(|&count| count > 0);
        ["prompt_tokens", "total_tokens"].iter().find_map(count).map(Tokens)
    }
}

/// The vectors of so many texts, in the order of their texts. A large answer is read beside the runtime.
pub(super) async fn read(answer: Vec<u8>, wanted: usize) -> Result<EmbeddingResult, Failure> {
    if answer.len() <= READ_AT_ONCE {
        return parse(&answer, wanted);
    }
    let reading = spawn_blocking(move || parse(&answer, wanted)).await;
    reading.unwrap_or_else(|_| Err(broken("vectors that cannot be read")))
}

fn parse(answer: &[u8], wanted: usize) -> Result<EmbeddingResult, Failure> {
    match answer.trim_ascii_start() {
        [] => return Err(broken("nothing").unsent()),
        [b'<', ..] => return Err(broken("a page of HTML").unsent()),
        _ => {}
    }
    match serde_json::from_slice::<EmbeddingAnswer>(answer) {
        Ok(EmbeddingAnswer { data, usage, error }) => ordered(data, wanted, &AnswerMembers { usage, error }),
        Err(error) if error.is_data() => {
            let members = serde_json::from_slice::<AnswerMembers>(answer).unwrap_or_default();
            ordered(Vec::new(), wanted.max(1), &members)
        }
        Err(_) => Err(broken("no JSON")),
    }
}

/// The vectors in the order of their texts. A failure has what the upstream counted; an error instead of vectors says that no model
/// was asked.
fn ordered(
    data: Vec<EmbeddedText>,
    wanted: usize,
    others: &AnswerMembers,
) -> Result<EmbeddingResult, Failure> {
    if data.is_empty() && wanted > 0 && !others.error.is_null() && others.read().is_none() {
        return Err(broken("an error").unsent());
    }
    let checked = checked(data, wanted).map_err(|failure| failure.with_read(others.read()))?;
    Ok(EmbeddingResult { data: checked, prompt: others.read() })
}

fn checked(mut data: Vec<EmbeddedText>, wanted: usize) -> Result<Vec<EmbeddedText>, Failure> {
    if data.len() != wanted {
        return Err(broken("other than one vector for each text"));
    }
    let mut lengths = data.iter().map(|item| item.embedding.length());
    let first = lengths.next().unwrap_or_default();
    if wanted > 0 && (first.is_none() || lengths.any(|length| length != first)) {
        return Err(broken("vectors that are empty, of several lengths, or no numbers"));
    }
    put_in_order(&mut data)
        .then_some(())
        .ok_or_else(|| broken("vectors of which it is not known whose they are"))?;
    Ok(data)
}

fn broken(what: &str) -> Failure {
    Failure::new(Fault::Backend, format!("the upstream sent {what}"))
}

/// Sorts the items by their indexes; whether each has one of its own. Where none has one, their order is all there is; some, as Google,
/// leave out that of the first, which is zero.
fn put_in_order(items: &mut [EmbeddedText]) -> bool {
    let has_none = items.iter().all(|item| item.index.is_none());
    for (at, item) in (0..).zip(items.iter_mut()) {
        item.index.get_or_insert(if has_none { at } else { 0 });
    }
    items.sort_by_key(|item| item.index);
    (0..).zip(items).all(|(at, item)| item.index == Some(at))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The vectors that are read of `data`, in their order.
    fn vectors(data: &Value, wanted: usize) -> Option<Vec<Value>> {
        let answer = json!({"data": data, "usage": {"prompt_tokens": 3}}).to_string();
        let read = parse(answer.as_bytes(), wanted);
        assert!(read.as_ref().map_or_else(|it| !it.unsent, |it| it.prompt == Some(Tokens(3))), "{data}");
        let told = read.ok()?.data.into_iter().zip(0..).map(|(item, at)| {
            assert_eq!(item.index, Some(at));
            json!(item)["embedding"].take()
        });
        Some(told.collect())
    }

    fn item(index: u64, embedding: &Value) -> Value {
        json!({"index": index, "embedding": embedding})
    }

    #[test]
    fn vectors_are_told_in_the_order_of_their_texts() {
        let (a, b) = (json!([0.5, 1.5]), json!([2, -1]));
        assert_eq!(vectors(&json!([item(1, &b), item(0, &a)]), 2), Some(vec![a.clone(), b.clone()]));
        let unnumbered = json!([{"embedding": a}, {"embedding": b}]);
        assert_eq!(vectors(&unnumbered, 2), Some(vec![a.clone(), b.clone()]));
        let first_unnumbered = json!([{"embedding": b}, item(1, &a)]);
        assert_eq!(vectors(&first_unnumbered, 2), Some(vec![b, a]));
        assert_eq!(vectors(&json!([item(0, &json!("AAAAPw=="))]), 1), Some(vec![json!("AAAAPw==")]));
    }

    #[test]
    fn an_answer_without_vectors_is_told_as_what_it_is() {
        for (answer, expected) in [
            ("{", "no JSON"),
            ("[]", "other than one vector"),
            ("{}", "other than one vector"),
            (r#"{"data": "none"}"#, "other than one vector"),
            (r#"{"data": [[0.5]]}"#, "other than one vector"),
        ] {
            let failure = parse(answer.as_bytes(), 1).unwrap_err();
            assert!(failure.to_string().contains(expected), "{answer}: {failure}");
        }
    }

    #[test]
    fn a_failure_has_what_was_counted_and_an_answer_that_is_none_was_not_sent() {
        let counted = r#"{"data": [{"index": 0, "embedding": [0.5]}], "usage": {"prompt_tokens": 4}}"#;
        for (answer, read, unsent) in [
            (counted, Some(4), false),
            (r#"{"data": "none", "usage": {"total_tokens": 5}}"#, Some(5), false),
            (r#"{"error": {"message": "x"}, "usage": {"prompt_tokens": 6}}"#, Some(6), false),
            (r#"{"error": {"message": "x"}}"#, None, true),
            ("<html>gateway</html>", None, true),
            ("", None, true),
            ("{}", None, false),
            (r#"{"data": [{"#, None, false),
        ] {
            let failure = parse(answer.as_bytes(), 2).unwrap_err();
            let found = failure.read.map(std::num::NonZero::get);
            assert_eq!((found, failure.unsent), (read, unsent), "{answer}");
        }
    }

    #[tokio::test]
    async fn a_large_answer_is_the_same() {
        let vector: Vec<f64> = (0..20_000).map(|at| f64::from(at) / 7.0).collect();
        let answer = json!({"data": [item(0, &json!(vector))]}).to_string();
        assert!(answer.len() > READ_AT_ONCE);
        assert_eq!(read(answer.clone().into_bytes(), 1).await, parse(answer.as_bytes(), 1));
    }

    #[test]
    fn vectors_that_cannot_be_right_are_refused() {
        let good = json!([0.5, 1]);
        for embedding in [json!([]), json!(["a", "b"]), json!([null, 1]), json!([1]), json!(""), json!(null)]
        {
            assert_eq!(vectors(&json!([item(0, &good), item(1, &embedding)]), 2), None, "{embedding}");
            assert_eq!(vectors(&json!([item(0, &embedding), item(1, &good)]), 2), None, "{embedding}");
        }
        for indexes in [[0, 0], [1, 2], [7, 0]] {
            assert_eq!(vectors(&json!(indexes.map(|index| item(index, &good))), 2), None, "{indexes:?}");
        }
        assert_eq!(vectors(&json!([item(0, &good), {"embedding": good}]), 2), None);
        assert_eq!(vectors(&json!([item(0, &good)]), 2), None);
        assert_eq!(vectors(&json!([good]), 1), None);
    }
}
