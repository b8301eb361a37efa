//! Limits and times as they are written in a shell.

use std::str::FromStr;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::units::Timestamp;

/// A limit: `money=20/month`, `requests=60/minute`, `concurrency=8`, and with a scope `thinking=20000/hour,each=user`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::app) struct Limit(pub(super) Value);

/// A text that is no limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("write it like money=20/month, requests=60/minute, concurrency=8 or money=5/day,model=NAME")]
pub(in crate::app) struct NotALimit;

/// A moment, or how long it is until then: `2027-01-31T12:00:00Z`, `30d`, `12h`; or `never`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::app) struct Until(pub(super) Option<Timestamp>);

/// A text that is neither a moment nor a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write a moment like 2027-01-31T12:00:00Z, or how long until then, like 30d or 12h, or never")]
pub(in crate::app) struct NotAnEnd;

/// What the words mean is the admin API's matter; here they are only taken apart.
impl FromStr for Limit {
    type Err = NotALimit;

    fn from_str(text: &str) -> Result<Limit, NotALimit> {
        let mut words = Map::new();
        for (place, part) in text.split(',').enumerate() {
            let (word, value) = part.split_once('=').ok_or(NotALimit)?;
            let (word, value) = (word.trim(), value.trim());
            if word.is_empty() || value.is_empty() {
                return Err(NotALimit);
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
        Ok(Limit(Value::Object(words)))
    }
}

impl FromStr for Until {
    type Err = NotAnEnd;

    fn from_str(text: &str) -> Result<Until, NotAnEnd> {
        if text == "never" {
            return Ok(Until(None));
        }
        if let Ok(moment) = text.parse() {
            return Ok(Until(Some(moment)));
        }
        let span: jiff::Span = text.parse().map_err(|_| NotAnEnd)?;
        let days = jiff::SpanRelativeTo::days_are_24_hours();
        let time = span.to_duration(days).ok().and_then(|time| Duration::try_from(time).ok());
        time.map(|time| Until(Some(Timestamp::now() + time))).ok_or(NotAnEnd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Value) {
        assert_eq!(text.parse(), Ok(Limit(expected)), "{text}");
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
            assert_eq!(text.parse::<Limit>(), Err(NotALimit), "{text}");
        }
    }

    #[test]
    fn an_end_is_a_moment_or_a_time_from_now() {
        assert_eq!("1970-01-01T00:00:01Z".parse(), Ok(Until(Some(Timestamp(1_000)))));
        assert_eq!("never".parse(), Ok(Until(None)));
        let Until(day) = "1d".parse().unwrap();
        let day = day.unwrap();
        assert!((day.0 - Timestamp::now().0 - 24 * 3_600_000).abs() < 10_000);
        assert_eq!("soon".parse::<Until>(), Err(NotAnEnd));
        assert_eq!("-1d".parse::<Until>(), Err(NotAnEnd));
    }
}
