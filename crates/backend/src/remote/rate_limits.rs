//! Parses rate limits from an upstream's headers, and what Google says in the body instead: how long to wait, and whether anything is
//! left.

use std::time::Duration;

use reqwest::header::HeaderMap;
use serde_json::Value;

use stint_types::units::Timestamp;

/// `retry-after-ms`, or `Retry-After` in seconds or as a date; what lies in the past is now.
pub(super) fn retry_after(headers: &HeaderMap, now: Timestamp, most: Duration) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let date = |text: &str| {
        let moment = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
        Some(Duration::from_millis(u64::try_from(moment.as_millisecond() - now.0).unwrap_or(0)))
    };
    let wait = text("retry-after-ms")
        .and_then(|text| seconds(text, 0.001))
        .or_else(|| text("retry-after").and_then(|text| seconds(text, 1.0).or_else(|| date(text))))?;
    Some(wait.min(most))
}

/// Google's `RetryInfo` among the details of an error, as `"retryDelay": "45.8s"`: it sends no header for that.
pub(super) fn retry_delay(error: &Value, most: Duration) -> Option<Duration> {
    let error = error.get(0).unwrap_or(error);
    let mut details = error.pointer("/error/details")?.as_array()?.iter();
    let delay = details.find_map(|detail| detail.get("retryDelay")?.as_str()?.strip_suffix('s'))?;
    seconds(delay, 1.0).map(|wait| wait.min(most))
}

/// So many seconds, or parts of them; what is less than none is none.
fn seconds(text: &str, scale: f64) -> Option<Duration> {
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite())?;
    Some(Duration::try_from_secs_f64((value * scale).max(0.0)).unwrap_or(Duration::MAX))
}

/// What is left of a rate limit, as OpenAI, Anthropic and those that follow them say it with every answer.
const REMAINING: [&str; 7] = [
    "x-ratelimit-remaining-requests",
    "x-ratelimit-remaining-tokens",
    "anthropic-ratelimit-requests-remaining",
    "anthropic-ratelimit-tokens-remaining",
    "anthropic-ratelimit-input-tokens-remaining",
    "anthropic-ratelimit-output-tokens-remaining",
    "ratelimit-remaining",
];

/// True if nothing is left of a rate limit: the next request is likely to be refused.
pub(super) fn is_rate_limit_exhausted(headers: &HeaderMap) -> bool {
    let known = headers.iter().filter(|(name, _)| REMAINING.contains(&name.as_str()));
    let mut left = known.filter_map(|(_, value)| value.to_str().ok()?.trim().parse::<f64>().ok());
    left.any(|left| left <= 0.0)
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    const MOST: Duration = Duration::from_secs(60);

    fn check_wait(name: &'static str, value: &str, expected: Option<u64>) {
        // Sun, 06 Nov 1994 08:49:37 GMT
        let now = Timestamp(784_111_777_000);
        let headers = HeaderMap::from_iter([(name.parse().unwrap(), HeaderValue::from_str(value).unwrap())]);
        assert_eq!(retry_after(&headers, now, MOST), expected.map(Duration::from_millis), "{name}: {value}");
    }

    #[test]
    fn a_rate_limit_with_nothing_left_is_told_from_one_with_something() {
        let check = |lines: &[(&'static str, &'static str)], spent| {
            let lines = lines.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            assert_eq!(is_rate_limit_exhausted(&HeaderMap::from_iter(lines)), spent);
        };
        check(&[], false);
        check(&[("x-ratelimit-remaining-requests", "59"), ("x-ratelimit-remaining-tokens", "0")], true);
        check(&[("x-ratelimit-remaining-requests", "59"), ("x-ratelimit-remaining-tokens", "149984")], false);
        check(&[("anthropic-ratelimit-requests-remaining", "0")], true);
        check(&[("ratelimit-remaining", "soon")], false);
    }

    #[test]
    fn how_long_google_has_one_wait_is_read_from_the_body() {
        let check = |delay: &str, expected: Option<u64>| {
            let details = serde_json::json!([
                {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []},
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
            ]);
            let error = serde_json::json!({"error": {"code": 429, "details": details}});
            let expected = expected.map(Duration::from_millis);
            assert_eq!(retry_delay(&error, MOST), expected, "{delay}");
            assert_eq!(retry_delay(&serde_json::json!([error]), MOST), expected, "{delay}");
        };
        check("34s", Some(34_000));
        check("0.250s", Some(250));
        check("3600s", Some(60_000));
        check("soon", None);
        check("-1s", Some(0));
        assert_eq!(retry_delay(&serde_json::json!({"error": "no"}), MOST), None);
    }

    #[test]
    fn retry_after_is_read_in_every_form_and_clamped() {
        check_wait("retry-after", "2", Some(2_000));
        check_wait("retry-after", "0.5", Some(500));
        check_wait("retry-after-ms", "1500", Some(1_500));
        check_wait("retry-after", "1000000000", Some(60_000));
        check_wait("retry-after", "-5", Some(0));
        check_wait("retry-after", "Sun, 06 Nov 1994 08:49:57 GMT", Some(20_000));
        check_wait("retry-after", "Sun, 06 Nov 1994 08:49:07 GMT", Some(0));
        check_wait("retry-after", "soon", None);
        check_wait("retry-after", "NaN", None);
    }
}
