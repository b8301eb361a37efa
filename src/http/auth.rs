//! Finds the tenant of a request by the key in its headers, or by the token of an issuer.

use std::sync::Arc;

use axum::http::header::{self, Entry};
use axum::http::{HeaderMap, HeaderName};

use crate::oidc::{KeyWait, TokenVerifier};
use stint_types::tenant::{KEY_MAX, KeyLookup, Tenant};
use stint_types::units::{Priority, Timestamp};

use super::access_log;
use super::api_state::ApiState;
use super::error::{ApiError, codes};

const PRIORITY: HeaderName = HeaderName::from_static("priority");
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Where callers put their keys.
const HEADERS: [HeaderName; 2] = [header::AUTHORIZATION, API_KEY];

/// The longest token of an issuer that is looked at.
const TOKEN_MAX: usize = 8 << 10;

/// Keeps a request's keys out of whatever prints its headers.
pub(super) fn hide_keys(headers: &mut HeaderMap) {
    for name in HEADERS {
        if let Entry::Occupied(mut found) = headers.entry(name) {
            found.iter_mut().for_each(|value| value.set_sensitive(true));
        }
    }
}

/// The tenant whose key the request carries, as a bearer token or as `x-api-key`; or whose token [`admit_token`] let in.
///
/// # Errors
/// 401 where there is no such key, or two that differ.
pub(super) fn tenant(service: &ApiState, headers: &HeaderMap) -> Result<Arc<Tenant>, ApiError> {
    let (key, now) = (presented_key(headers)?, service.gateway.now());
    let of_token = || service.tokens.as_ref()?.find(key?, now);
    let found = service.keys.find(key, now).or_else(of_token);
    let tenant = found.ok_or_else(|| missing_or_invalid_key(key))?;
    access_log::note(|record| record.set_key(&tenant.account));
    let priority = tenant.priority.lowered(priority(headers));
    Ok(if priority == tenant.priority { tenant } else { Arc::new(Tenant { priority, ..(*tenant).clone() }) })
}

/// Has the token of an issuer checked, where the request carries one and no key of ours.
///
/// # Errors
/// 401, 403 or 503, which say what check failed.
pub(super) async fn admit_token(
    keys: &KeyLookup,
    tokens: Option<&TokenVerifier>,
    headers: &HeaderMap,
    wait: KeyWait,
) -> Result<Option<Arc<Tenant>>, ApiError> {
    let Some(tokens) = tokens else { return Ok(None) };
    let presented = presented_key(headers).ok().flatten();
    let Some(token) = presented.filter(|text| TokenVerifier::is_token(text)) else { return Ok(None) };
    let now = Timestamp::now();
    if keys.find(Some(token), now).is_some() {
        return Ok(None);
    }
    Ok(Some(tokens.admit(token, wait, now).await?))
}

/// The urgency of `Priority` (RFC 9218): 0 is the most, 3 is usual, and whatever is less urgent than that is batch
/// work. What cannot be read says nothing, as the standard wants it.
fn priority(headers: &HeaderMap) -> Priority {
    let stated = headers.get_all(PRIORITY).iter().filter_map(|value| value.to_str().ok());
    let members = stated.flat_map(|text| text.split(','));
    let urgency = members.filter_map(|member| member.trim().strip_prefix("u=")).next_back();
    match urgency.and_then(|urgency| urgency.parse::<u8>().ok()) {
        Some(4..=7) => Priority::Batch,
        _ => Priority::Interactive,
    }
}

/// No key, or one that is not accepted: the errors differ, which helps a caller who forgot the key and reveals nothing.
pub(super) fn missing_or_invalid_key(key: Option<&str>) -> ApiError {
    if key.is_some_and(|key| !key.is_empty()) {
        return invalid_key();
    }
    // OpenAI's own beginning.
    ApiError::unauthorized(
        codes::MISSING_API_KEY,
        "You didn't provide an API key: send it as `Authorization: Bearer …`, or as `x-api-key`",
    )
}

/// Says the same of keys that never were, have expired or were revoked.
pub(super) fn invalid_key() -> ApiError {
    // LiteLLM tells a bad key from a bad request by OpenAI's first four words alone.
    ApiError::unauthorized(
        codes::INVALID_API_KEY,
        "Incorrect API key provided: it is unknown, expired or revoked; send a valid one as `Authorization: Bearer …`",
    )
}

/// The key that a request carries, if any.
///
/// # Errors
/// 401 where what it carries cannot be one, or there are two that differ.
pub(super) fn presented_key(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let mut found = Vec::new();
    for value in headers.get_all(header::AUTHORIZATION) {
        let text = value.to_str().map_err(|_| invalid_key())?;
        let (scheme, key) = text.split_once(' ').unwrap_or((text, ""));
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(invalid_key());
        }
        found.push(key.trim());
    }
    for value in headers.get_all(API_KEY) {
        found.push(value.to_str().map_err(|_| invalid_key())?.trim());
    }
    found.dedup();
    match found[..] {
        [] => Ok(None),
        [key] if key.len() <= KEY_MAX => Ok(Some(key)),
        [token] if token.len() <= TOKEN_MAX && TokenVerifier::is_token(token) => Ok(Some(token)),
        _ => Err(invalid_key()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[&'static str], expected: Priority) {
        let headers = values.iter().map(|value| (PRIORITY, axum::http::HeaderValue::from_static(value)));
        assert_eq!(priority(&headers.collect()), expected, "{values:?}");
    }

    #[test]
    fn what_is_less_urgent_than_usual_is_batch_work() {
        for values in
            [&[][..], &["u=0"], &["u=3, i"], &["i"], &["u=9"], &["soon"], &["u=-1"], &["u=6", "u=2"]]
        {
            check(values, Priority::Interactive);
        }
        for values in [&["u=4"][..], &["i, u=7"], &["u=1, u=5"], &["u=1", "u=6"]] {
            check(values, Priority::Batch);
        }
    }
}
