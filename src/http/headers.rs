//! The headers of every answer: request id, cost, episode and the tightest limit.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use stint_ledger::LimitStatus;
use stint_types::units::{EpisodeId, Money, RequestId};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const EPISODE_ID: HeaderName = HeaderName::from_static("x-episode-id");
// Not `x-ratelimit-…`: clients read those as numbers of requests, and wait at less than one. Here they may be dollars.
const TIGHTEST_NAME: HeaderName = HeaderName::from_static("x-limit-name");
const TIGHTEST_MAX: HeaderName = HeaderName::from_static("x-limit-max");
const TIGHTEST_LEFT: HeaderName = HeaderName::from_static("x-limit-left");
const TIGHTEST_RESETS_AT: HeaderName = HeaderName::from_static("x-limit-resets-at");
/// Tells the official SDKs not to try again.
pub(super) const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
/// Of an answer that went out before.
pub(super) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// Where Anthropic's SDK looks for the id of a request.
pub(super) const ANTHROPIC_ID: HeaderName = HeaderName::from_static("request-id");
/// What it cost.
pub(super) const COST: HeaderName = HeaderName::from_static("x-cost-usd");
const RESERVED: HeaderName = HeaderName::from_static("x-reserved-usd");

/// Every header of an answer that only we, or our dialects, have.
pub(super) const OWN_HEADERS: [HeaderName; 11] = [
    REQUEST_ID,
    ANTHROPIC_ID,
    EPISODE_ID,
    TIGHTEST_NAME,
    TIGHTEST_MAX,
    TIGHTEST_LEFT,
    TIGHTEST_RESETS_AT,
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
pub(super) fn set_tightest_limit(headers: &mut HeaderMap, statement: &[LimitStatus]) {
    let share = |line: &LimitStatus| line.left.share_of(line.max);
    let Some(line) = statement.iter().min_by(|a, b| share(a).total_cmp(&share(b))) else { return };
    put(headers, TIGHTEST_NAME, line.limit.to_string());
    put(headers, TIGHTEST_MAX, line.max.number());
    put(headers, TIGHTEST_LEFT, line.left.number());
    if let Some(reset) = line.resets_at {
        put(headers, TIGHTEST_RESETS_AT, reset.to_string());
    }
}
