//! Who is asking.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, header};

use crate::tenant::{Keys, Tenant};

use crate::units::Timestamp;

use super::error::Problem;

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Where callers put their keys.
pub(super) const HEADERS: [HeaderName; 2] = [header::AUTHORIZATION, API_KEY];

/// The longest key that is looked at.
const KEY_MAX: usize = 512;

/// The tenant whose key the request carries, as a bearer token or as `x-api-key`. An unknown key and a missing
/// one are answered alike.
///
/// # Errors
/// 401 where there is no such key, or two that differ.
pub(super) fn tenant(keys: &Keys, headers: &HeaderMap) -> Result<Arc<Tenant>, Problem> {
    keys.find(presented(headers)?, Timestamp::now()).ok_or_else(refused)
}

/// Says the same whether there is no key or a bad one.
pub(super) fn refused() -> Problem {
    // LiteLLM tells a bad key from a bad request by OpenAI's first four words alone.
    Problem::unauthorized(
        "Incorrect API key provided, or none: send a valid one as `Authorization: Bearer …`",
    )
}

/// The key that a request carries, if any.
///
/// # Errors
/// 401 where what it carries cannot be one, or there are two that differ.
pub(super) fn presented(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let mut found = Vec::new();
    for value in headers.get_all(header::AUTHORIZATION) {
        let text = value.to_str().map_err(|_| refused())?;
        let (scheme, key) = text.split_once(' ').unwrap_or((text, ""));
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(refused());
        }
        found.push(key.trim());
    }
    for value in headers.get_all(API_KEY) {
        found.push(value.to_str().map_err(|_| refused())?.trim());
    }
    found.dedup();
    match found[..] {
        [] => Ok(None),
        [key] if key.len() <= KEY_MAX => Ok(Some(key)),
        _ => Err(refused()),
    }
}
