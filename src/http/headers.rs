//! The headers of every answer: request id, cost, episode and the tightest limit.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use stint_ledger::LimitStatus;
use stint_types::units::{EpisodeId, Money, RequestId, Timestamp, Unit};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const EPISODE_ID: HeaderName = HeaderName::from_static("x-episode-id");
const TIGHTEST_NAME: HeaderName = HeaderName::from_static("x-ratelimit-name");
/// Tells the official SDKs not to try again.
pub(super) const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
/// Of an answer that went out before.
pub(super) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// Where Anthropic's SDK looks for the id of a request.
pub(super) const ANTHROPIC_ID: HeaderName = HeaderName::from_static("request-id");
/// What it cost.
pub(super) const COST: HeaderName = HeaderName::from_static("x-cost-usd");
const RESERVED: HeaderName = HeaderName::from_static("x-reserved-usd");

/// The names of a limit's headers: its most, what is left of it, and in how long it begins anew.
struct LimitHeaders {
    max: &'static str,
    left: &'static str,
    reset: &'static str,
}

// The names end with what is counted, as OpenAI's do: clients take those of requests for their pace, and would take dollars for requests.
const MONEY: LimitHeaders = LimitHeaders {
    max: "x-ratelimit-limit-usd",
    left: "x-ratelimit-remaining-usd",
    reset: "x-ratelimit-reset-usd",
};
const THINKING: LimitHeaders = LimitHeaders {
    max: "x-ratelimit-limit-thinking-tokens",
    left: "x-ratelimit-remaining-thinking-tokens",
    reset: "x-ratelimit-reset-thinking-tokens",
};
const REQUESTS: LimitHeaders = LimitHeaders {
    max: "x-ratelimit-limit-requests",
    left: "x-ratelimit-remaining-requests",
    reset: "x-ratelimit-reset-requests",
};
const TOOL_CALLS: LimitHeaders = LimitHeaders {
    max: "x-ratelimit-limit-tool-calls",
    left: "x-ratelimit-remaining-tool-calls",
    reset: "x-ratelimit-reset-tool-calls",
};
const CONCURRENCY: LimitHeaders = LimitHeaders {
    max: "x-ratelimit-limit-concurrency",
    left: "x-ratelimit-remaining-concurrency",
    reset: "x-ratelimit-reset-concurrency",
};

/// Every header of an answer that only we, or our dialects, have.
pub(super) const OWN_HEADERS: [HeaderName; 23] = [
    REQUEST_ID,
    ANTHROPIC_ID,
    EPISODE_ID,
    TIGHTEST_NAME,
    HeaderName::from_static(MONEY.max),
    HeaderName::from_static(MONEY.left),
    HeaderName::from_static(MONEY.reset),
    HeaderName::from_static(THINKING.max),
    HeaderName::from_static(THINKING.left),
    HeaderName::from_static(THINKING.reset),
    HeaderName::from_static(REQUESTS.max),
    HeaderName::from_static(REQUESTS.left),
    HeaderName::from_static(REQUESTS.reset),
    HeaderName::from_static(TOOL_CALLS.max),
    HeaderName::from_static(TOOL_CALLS.left),
    HeaderName::from_static(TOOL_CALLS.reset),
    HeaderName::from_static(CONCURRENCY.max),
    HeaderName::from_static(CONCURRENCY.left),
    HeaderName::from_static(CONCURRENCY.reset),
    COST,
    RESERVED,
    SHOULD_RETRY,
    REPLAYED,
];

fn put(headers: &mut HeaderMap, name: HeaderName, value: String) {
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(name, value);
    }
}

/// Those that are text, as text.
pub(super) fn text_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |(name, value): (&HeaderName, &HeaderValue)| {
        Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
    };
    headers.iter().filter_map(text).collect()
}

/// The episode that the request is a step of.
pub(super) fn set_episode(headers: &mut HeaderMap, id: &EpisodeId) {
    put(headers, EPISODE_ID, id.as_str().to_owned());
}

/// The request's id.
pub(super) fn set_request_id(headers: &mut HeaderMap, id: RequestId) {
    put(headers, REQUEST_ID, id.to_string());
}

/// The id that is there.
pub(super) fn request_id_of(headers: &HeaderMap) -> Option<&HeaderValue> {
    headers.get(REQUEST_ID)
}

/// True if an id is there already.
pub(super) fn has_request_id(headers: &HeaderMap) -> bool {
    headers.contains_key(REQUEST_ID)
}

/// What it cost.
pub(super) fn set_cost(headers: &mut HeaderMap, cost: Money) {
    put(headers, COST, cost.to_string());
}

/// What was set aside for it, while the cost is not known yet.
pub(super) fn set_reserved(headers: &mut HeaderMap, reserved: Money) {
    put(headers, RESERVED, reserved.to_string());
}

/// The limit of which the smallest share is left.
pub(super) fn set_tightest_limit(headers: &mut HeaderMap, statement: &[LimitStatus], now: Timestamp) {
    let share = |line: &LimitStatus| line.left.share_of(line.max);
    let Some(line) = statement.iter().min_by(|a, b| share(a).total_cmp(&share(b))) else { return };
    put(headers, TIGHTEST_NAME, line.limit.to_string());
    let names = match line.max.unit() {
        Unit::Money => MONEY,
        Unit::Thinking => THINKING,
        Unit::Requests => REQUESTS,
        Unit::ToolCalls => TOOL_CALLS,
        Unit::Concurrency => CONCURRENCY,
    };
    put(headers, HeaderName::from_static(names.max), line.max.number());
    put(headers, HeaderName::from_static(names.left), line.left.number());
    if let Some(reset) = line.resets_at {
        let seconds = reset.as_seconds().saturating_sub(now.as_seconds()).max(0);
        put(headers, HeaderName::from_static(names.reset), format!("{seconds}s"));
    }
}

#[cfg(test)]
mod tests {
    use stint_types::units::{Amount, Count, Limit, Tokens, Window};

    use super::*;

    fn status(max: Amount, left: Amount, resets_at: Option<i64>) -> LimitStatus {
        let none = Amount::new(max.unit(), 0);
        let limit = Limit::of_key(max.unit(), Window::Day);
        LimitStatus { limit, max, spent: none, reserved: none, left, resets_at: resets_at.map(Timestamp) }
    }

    /// What the headers say with the clock at ten seconds.
    fn told(statement: &[LimitStatus]) -> Vec<(String, String)> {
        let mut headers = HeaderMap::new();
        set_tightest_limit(&mut headers, statement, Timestamp(10_000));
        let mut told = text_headers(&headers);
        told.retain(|(name, _)| name != "x-ratelimit-name");
        told.sort();
        told
    }

    #[test]
    fn the_headers_of_a_limit_end_with_what_it_counts() {
        let requests = |left| status(Amount::Requests(Count(9)), Amount::Requests(Count(left)), Some(72_500));
        let expected = |unit: &str, values: &[(&str, &str)]| -> Vec<(String, String)> {
            values
                .iter()
                .map(|(what, value)| (format!("x-ratelimit-{what}-{unit}"), (*value).into()))
                .collect()
        };
        let last = expected("requests", &[("limit", "9"), ("remaining", "0"), ("reset", "62s")]);
        assert_eq!(told(&[requests(3), requests(0), requests(9)]), last);
        let at_once = status(Amount::Concurrency(Count(4)), Amount::Concurrency(Count(1)), None);
        assert_eq!(told(&[at_once]), expected("concurrency", &[("limit", "4"), ("remaining", "1")]));
        let over = status(Amount::Thinking(Tokens(8)), Amount::Thinking(Tokens(2)), Some(1_000));
        let over_expected = [("limit", "8"), ("remaining", "2"), ("reset", "0s")];
        assert_eq!(told(&[over]), expected("thinking-tokens", &over_expected));
        assert!(told(&[]).is_empty());
    }
}
