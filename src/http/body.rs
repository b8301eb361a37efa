//! A request's body, within its limits of size and time.

use axum::body::{Body, HttpBody};
use axum::http::{HeaderMap, Request, header};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};

use super::Settings;
use super::error::ApiError;
use super::fields::Fields;
use super::strict;

/// Reads a JSON body whole.
///
/// # Errors
/// 415, 413 before more than the limit is read, 408 where it pauses or takes too long, 400 where it breaks off.
pub(super) async fn read(headers: &HeaderMap, body: Body, settings: &Settings) -> Result<Bytes, ApiError> {
    check_type(headers)?;
    collect(headers, body, settings).await
}

/// The members of a JSON object; none where there is no body at all.
///
/// # Errors
/// As [`read`], and 400 where it is no object or has a key twice.
pub(super) async fn fields(request: Request<Body>, settings: &Settings) -> Result<Fields, ApiError> {
    let (parts, body) = request.into_parts();
    let nothing = HttpBody::is_end_stream(&body);
    if nothing {
        return Ok(Fields::from_body(serde_json::Map::new()));
    }
    Ok(Fields::from_body(strict::object(&read(&parts.headers, body, settings).await?)?))
}

/// Reads a body whole, whatever it is.
///
/// # Errors
/// 413 before more than the limit is read, 408 where it pauses or takes too long, 400 where it breaks off.
pub(super) async fn collect(headers: &HeaderMap, body: Body, settings: &Settings) -> Result<Bytes, ApiError> {
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if declared.is_some_and(|length: u64| length > settings.body_max as u64) {
        return Err(ApiError::body_too_large(settings.body_max));
    }
    let until = Instant::now() + settings.body_total;
    let mut body = body;
    let mut read = BytesMut::new();
    loop {
        let paused = Instant::now() + settings.body_timeout;
        let frame = timeout_at(paused.min(until), body.frame()).await;
        let Some(frame) = frame.map_err(|_| ApiError::body_timeout())? else { return Ok(read.freeze()) };
        let frame = frame.map_err(|_| ApiError::invalid(None, "the body broke off"))?;
        let Ok(data) = frame.into_data() else { continue };
        if read.len() + data.len() > settings.body_max {
            return Err(ApiError::body_too_large(settings.body_max));
        }
        read.extend_from_slice(&data);
    }
}

fn check_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Err(ApiError::not_json()) };
    let text = value.to_str().unwrap_or_default().to_ascii_lowercase();
    let mut parts = text.split(';').map(str::trim);
    let json = parts.next().is_some_and(|kind| kind == "application/json" || kind.ends_with("+json"));
    let utf8 =
        parts.all(|part| part.strip_prefix("charset=").is_none_or(|name| name.trim_matches('"') == "utf-8"));
    if json && utf8 { Ok(()) } else { Err(ApiError::not_json()) }
}
