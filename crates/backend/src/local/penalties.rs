//! Reads what makes single tokens less likely, or more, from the members of a request.

use std::ops::RangeInclusive;
use std::sync::Arc;

use serde_json::Value;

use crate::Failure;
use stint_engine::{BIASES_MAX, TokenPenalties};
use stint_types::chat::Request;

/// `OpenAI`'s own limits.
const PENALTIES: RangeInclusive<f64> = -2.0..=2.0;
const BIASES: RangeInclusive<f64> = -100.0..=100.0;
const LOGIT_BIAS: &str = "logit_bias";
/// Beyond these an answer is noise.
const REPETITIONS: RangeInclusive<f64> = 0.1..=10.0;

/// Penalties and biases for a model with so many tokens; a member that is not there changes nothing.
pub(super) fn read(request: &Request, vocab: u32) -> Result<TokenPenalties, Failure> {
    Ok(TokenPenalties {
        presence: number(request, "presence_penalty", &PENALTIES)?.unwrap_or(0.0),
        frequency: number(request, "frequency_penalty", &PENALTIES)?.unwrap_or(0.0),
        repetition: number(request, "repetition_penalty", &REPETITIONS)?.unwrap_or(1.0),
        biases: biases(request, vocab)?,
    })
}

/// Only tokens that are at least so likely as this times the likeliest.
pub(super) fn min_p(request: &Request) -> Result<f32, Failure> {
    Ok(number(request, "min_p", &(0.0..=1.0))?.unwrap_or(0.0))
}

fn member<'r>(request: &'r Request, name: &str) -> Option<&'r Value> {
    let value = request.extra.get(name).or_else(|| request.unknown_members.get(name))?;
    (!value.is_null()).then_some(value)
}

fn number(
    request: &Request,
    name: &'static str,
    range: &RangeInclusive<f64>,
) -> Result<Option<f32>, Failure> {
    let Some(value) = member(request, name) else { return Ok(None) };
    let number = within(value, range);
    let why = || format!("`{name}` must be a number from {} to {}", range.start(), range.end());
    number.map(Some).ok_or_else(|| Failure::invalid_member(name, why()))
}

#[expect(clippy::cast_possible_truncation, reason = "logits are of f32")]
fn within(value: &Value, range: &RangeInclusive<f64>) -> Option<f32> {
    value.as_f64().filter(|number| range.contains(number)).map(|number| number as f32)
}

fn biases(request: &Request, vocab: u32) -> Result<Arc<[(u32, f32)]>, Failure> {
    let Some(value) = member(request, LOGIT_BIAS) else { return Ok([].into()) };
    let why = || {
        let (least, most, last) = (BIASES.start(), BIASES.end(), vocab.saturating_sub(1));
        let message = format!(
            "`{LOGIT_BIAS}` must be an object of {BIASES_MAX} token ids at most, from 0 to {last}, each with a number from {least} to \
             {most}"
        );
        Failure::invalid_member(LOGIT_BIAS, message)
    };
    let bias = |(id, bias): (&String, &Value)| {
        let id = id.parse().ok().filter(|id| *id < vocab)?;
        Some((id, within(bias, &BIASES)?))
    };
    let stated = value.as_object().filter(|biases| biases.len() <= BIASES_MAX).ok_or_else(why)?;
    let biases: Option<Vec<_>> = stated.iter().map(bias).collect();
    Ok(biases.ok_or_else(why)?.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fault;
    use serde_json::json;

    const VOCAB: u32 = 2000;

    fn request(members: Value) -> Request {
        let Value::Object(extra) = members else { unreachable!("an object") };
        Request { extra, ..Request::new("m", Vec::new()) }
    }

    #[test]
    fn penalties_are_read_from_the_members_that_name_them() {
        let members = json!({ "presence_penalty": 1, "frequency_penalty": -0.5, "repetition_penalty": 1.25,
            "logit_bias": { "7": -100, "12": 2.5 }, "min_p": 0.25 });
        let request = request(members);
        let expected = TokenPenalties {
            presence: 1.0,
            frequency: -0.5,
            repetition: 1.25,
            biases: [(12, 2.5), (7, -100.0)].into(),
        };
        let mut penalties = read(&request, VOCAB).unwrap();
        let mut biases = penalties.biases.to_vec();
        biases.sort_by_key(|(id, _)| std::cmp::Reverse(*id));
        penalties.biases = biases.into();
        assert_eq!((penalties, min_p(&request).unwrap()), (expected, 0.25));
    }

    #[test]
    fn what_is_not_there_changes_nothing() {
        let nothing = json!({ "presence_penalty": null, "logit_bias": {}, "user": "x" });
        assert_eq!(read(&request(nothing), VOCAB).unwrap(), TokenPenalties::default());
    }

    #[test]
    fn what_cannot_be_read_is_refused_by_its_name() {
        let many: serde_json::Map<_, _> = (0..1025).map(|id: u32| (id.to_string(), json!(1))).collect();
        for (members, name) in [
            (json!({ "presence_penalty": 3 }), "presence_penalty"),
            (json!({ "frequency_penalty": "much" }), "frequency_penalty"),
            (json!({ "repetition_penalty": 0 }), "repetition_penalty"),
            (json!({ "logit_bias": { "seven": 1 } }), "logit_bias"),
            (json!({ "logit_bias": { "7": 101 } }), "logit_bias"),
            (json!({ "logit_bias": [7] }), "logit_bias"),
            (json!({ "logit_bias": { "2000": 1 } }), "logit_bias"),
            (json!({ "logit_bias": many }), "logit_bias"),
        ] {
            let failure = read(&request(members), VOCAB).unwrap_err();
            assert!(failure.to_string().contains(name), "{failure}");
            assert_eq!((failure.fault, failure.member), (Fault::Caller, Some(name)));
        }
    }
}
