//! Rounds the estimates on a page: most digits of chances, seconds and values say nothing.

use serde_json::Value;

/// A page whose fractions have six digits that count. Money is text, tokens are whole numbers: both stay as they are.
pub(super) fn rounded(page: Value) -> Value {
    match page {
        Value::Number(number) if number.is_f64() => {
            number.as_f64().map_or(Value::Null, |it| six_digits(it).into())
        }
        Value::Array(values) => values.into_iter().map(rounded).collect(),
        Value::Object(members) => members.into_iter().map(|(name, value)| (name, rounded(value))).collect(),
        other => other,
    }
}

fn six_digits(number: f64) -> f64 {
    format!("{number:.5e}").parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn six_digits_are_told_and_whole_numbers_and_texts_are_left_alone() {
        let page = json!({ "offers": [
            { "success": 0.937_712_345_678_901_2, "value_usd": -0.000_012_345_678_9, "seconds": 0.1 },
            { "tokens": 12_345_678, "cost_usd": "0.123456789", "propensity": 1.0, "effort": null },
        ]});
        let told = json!({ "offers": [
            { "success": 0.937_712, "value_usd": -0.000_012_345_7, "seconds": 0.1 },
            { "tokens": 12_345_678, "cost_usd": "0.123456789", "propensity": 1.0, "effort": null },
        ]});
        assert_eq!(rounded(page).to_string(), told.to_string());
    }
}
