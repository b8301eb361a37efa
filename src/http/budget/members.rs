//! Reads single members of the `budget` object, each with its own unit and bounds.

use std::time::Duration;

use serde_json::Value;

use crate::http::error::ApiError;
use crate::http::fields::Fields;
use stint_types::units::{Count, Money, Tokens};

/// Turns of an episode; an episode without any could not begin.
pub(super) fn turns(fields: &mut Fields) -> Result<Option<Count>, ApiError> {
    at_least_one(fields, "turns").map(|turns| turns.map(Count))
}

pub(super) fn solution(fields: &mut Fields) -> Result<Option<Tokens>, ApiError> {
    at_least_one(fields, "solution_tokens").map(|tokens| tokens.map(Tokens))
}

pub(super) fn deadline(fields: &mut Fields) -> Result<Option<Duration>, ApiError> {
    at_least_one(fields, "deadline_ms").map(|ms| ms.map(Duration::from_millis))
}

fn at_least_one(fields: &mut Fields, key: &str) -> Result<Option<u64>, ApiError> {
    match fields.integer(key)? {
        Some(0) => Err(ApiError::invalid(Some(&fields.full_name(key)), "must be at least 1")),
        number => Ok(number),
    }
}

/// Money of an episode; an episode without any could not begin.
pub(super) fn money(fields: &mut Fields) -> Result<Option<Money>, ApiError> {
    match cost(fields)? {
        Some(Money::ZERO) => {
            let why = "must be more than 0: a run without money takes no step; leave it out for no limit";
            Err(ApiError::invalid(Some(&fields.full_name("cost_usd")), why))
        }
        money => Ok(money),
    }
}

/// Decimal text, which is exact; a JSON number counts as the shortest decimal that reads back as the same float.
pub(in crate::http) fn cost(fields: &mut Fields) -> Result<Option<Money>, ApiError> {
    let name = fields.full_name("cost_usd");
    let text = match fields.take("cost_usd") {
        None => return Ok(None),
        Some(Value::String(text)) => text,
        Some(Value::Number(number)) => match number.as_f64() {
            // JSON prints small floats with an exponent, Rust never does.
            Some(float) if number.is_f64() => float.to_string(),
            _ => number.to_string(),
        },
        Some(_) => return Err(ApiError::invalid(Some(&name), "must be dollars as text, like \"0.02\"")),
    };
    text.parse().map(Some).map_err(|error| ApiError::invalid(Some(&name), format!("is {error}")))
}
