//! Parses limits and expiry times as arguments of `stint keys`.

use std::str::FromStr;
use std::time::Duration;

use serde_json::{Map, Value, json};

use stint_types::units::Timestamp;

/// A limit: `money=20/month`, `requests=60/minute`, `concurrency=8`, and with a scope `thinking=20000/hour,each=user`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::app) struct LimitArg(pub(super) Value);

/// A text that is no limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("write it like money=20/month, requests=60/minute, concurrency=8 or money=5/day,model=NAME")]
pub(in crate::app) struct ParseLimitError;

/// A moment, or how long it is until then: `2027-01-31T12:00:00Z`, `30d`, `12h`; or `never`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::app) struct ExpiryArg(pub(super) Option<Timestamp>);

/// A text that is neither a moment nor a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write a moment like 2027-01-31T12:00:00Z, or how long until then, like 30d or 12h, or never")]
pub(in crate::app) struct ParseExpiryError;

/// What the words mean is the admin API's matter; here they are only taken apart.
impl FromStr for LimitArg {
    type Err = ParseLimitError;

    fn from_str(text: &str) -> Result<LimitArg, ParseLimitError> {
        let mut words = Map::new();
        for (place, part) in text.split(',').enumerate() {
            let (word, value) = part.split_once('=').ok_or(ParseLimitError)?;
            let (word, value) = (word.trim(), value.trim());
            if word.is_empty() || value.is_empty() {
                return Err(ParseLimitError);
            }
            let (value, per) = match place {
                0 => value.split_once('/').map_or((value, None), |(value, per)| (value, Some(per))),
                _ => (value, None),
            };
            // Money is never a number: a float is not exact.
            let number = (word != "money" && place == 0).then(|| value.parse::<u64>().ok()).flatten();
            words.insert(word.to_owned(), number.map_or_else(|| json!(value), |number| json!(number)));
            if let Some(per) = per {
                words.insert("per".to_owned(), json!(per));
            }
        }
        Ok(LimitArg(Value::Object(words)))
    }
}

impl FromStr for ExpiryArg {
    type Err = ParseExpiryError;

    fn from_str(text: &str) -> Result<ExpiryArg, ParseExpiryError> {
        if text == "never" {
            return Ok(ExpiryArg(None));
        }
        if let Ok(moment) = text.parse() {
            return Ok(ExpiryArg(Some(moment)));
        }
        let span: jiff::Span = text.parse().map_err(|_| ParseExpiryError)?;
        let days = jiff::SpanRelativeTo::days_are_24_hours();
        let time = span.to_duration(days).ok().and_then(|time| Duration::try_from(time).ok());
        time.map(|time| ExpiryArg(Some(Timestamp::now() + time))).ok_or(ParseExpiryError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Value) {
        assert_eq!(text.parse(), Ok(LimitArg(expected)), "{text}");
    }

    #[test]
    fn limits_are_the_configurations_words() {
        check("money=20/month", json!({ "money": "20", "per": "month" }));
        check("requests=60/minute", json!({ "requests": 60, "per": "minute" }));
        check("concurrency=8", json!({ "concurrency": 8 }));
        check(
            "money=5/day,model=acme/m,each=user",
            json!({
                "money": "5", "per": "day", "model": "acme/m", "each": "user",
            }),
        );
        for text in ["", "money", "money=", "=20", "money=20/month,"] {
            assert_eq!(text.parse::<LimitArg>(), Err(ParseLimitError), "{text}");
        }
    }

    #[test]
    fn an_end_is_a_moment_or_a_time_from_now() {
        assert_eq!("1970-01-01T00:00:01Z".parse(), Ok(ExpiryArg(Some(Timestamp(1_000)))));
        assert_eq!("never".parse(), Ok(ExpiryArg(None)));
        let ExpiryArg(day) = "1d".parse().unwrap();
        let day = day.unwrap();
        assert!((day.0 - Timestamp::now().0 - 24 * 3_600_000).abs() < 10_000);
        assert_eq!("soon".parse::<ExpiryArg>(), Err(ParseExpiryError));
        assert_eq!("-1d".parse::<ExpiryArg>(), Err(ParseExpiryError));
    }
}
