//! A request's body, within its limits of size and time.

use std::error::Error;
use std::io;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::http::{Extensions, HeaderMap, HeaderValue, Request, header};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use serde_json::Map;
use tokio::time::{Instant, timeout_at};

use stint_types::units::RequestId;

use super::Settings;
use super::body_limiter::{SharedBodyPermit, ValueRoom};
use super::error::ApiError;
use super::fields::Fields;
use super::framing::FramingError;
use super::{body_limiter, strict};

/// The largest body that is taken apart where it was read, within about a millisecond.
const PARSED_AT_ONCE: usize = 128 << 10;
/// The least bytes of a body that must come in a second, on average.
const RATE_MIN: usize = 1 << 10;
/// What it may lag behind that.
const RATE_GRACE: Duration = Duration::from_secs(10);

/// Reads a JSON body whole.
///
/// # Errors
/// 415, and as [`collect`].
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
        return Ok(Fields::from_body(Map::new()));
    }
    let body = read(&parts.headers, body, settings).await?;
    let room = ValueRoom::of(&parts.extensions);
    let read = move |body: &[u8]| strict::object_within(body, strict::VALUES_MAX, &room);
    let parsed = parse(&parts.extensions, &body, read).await??;
    Ok(Fields::from_body(parsed))
}

/// What is made of a body. A large one is taken apart beside the runtime, whose threads have others to serve, and in its account's
/// turn.
///
/// # Errors
/// 500 where that panics.
pub(super) async fn parse<T: Send + 'static>(
    extensions: &Extensions,
    body: &Bytes,
    work: impl FnOnce(&[u8]) -> T + Send + 'static,
) -> Result<T, ApiError> {
    if body.len() <= PARSED_AT_ONCE {
        return Ok(work(body));
    }
    let turn = match extensions.get::<SharedBodyPermit>() {
        Some(permit) => Some(permit.begin_parsing().await),
        None => None,
    };
    let body = body.clone();
    let parsing = tokio::task::spawn_blocking(move || {
        let parsed = work(&body);
        drop(turn);
        parsed
    });
    parsing.await.map_err(|error| ApiError::internal(RequestId::new(), &error.to_string()))
}

/// Reads a body whole, whatever it is.
///
/// # Errors
/// 413 before more than the limit is read, 408 where it pauses, drips or takes too long, 503 where there is no room for it, 400
/// where it breaks off.
pub(super) async fn collect(headers: &HeaderMap, body: Body, settings: &Settings) -> Result<Bytes, ApiError> {
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if declared.is_some_and(|length: u64| length > settings.body_max as u64) {
        return Err(ApiError::body_too_large(settings.body_max));
    }
    collect_within(body, settings.body_max, settings.body_timeout, settings.body_total).await
}

async fn collect_within(
    mut body: Body,
    most: usize,
    pause: Duration,
    total: Duration,
) -> Result<Bytes, ApiError> {
    let began = Instant::now();
    let until = began + total;
    let mut read = BytesMut::new();
    loop {
        let paused = Instant::now() + pause;
        let dripped = began + RATE_GRACE + Duration::from_secs((read.len() / RATE_MIN) as u64);
        let frame = timeout_at(paused.min(until).min(dripped), body.frame()).await;
        let Some(frame) = frame.map_err(|_| ApiError::body_timeout())? else { return Ok(read.freeze()) };
        let frame = frame.map_err(|error| {
            let known = body_limiter::refusal(&error).or_else(|| misframed(&error));
            known.unwrap_or_else(|| ApiError::invalid(None, "the body broke off"))
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if read.len() + data.len() > most {
            return Err(ApiError::body_too_large(most));
        }
        read.extend_from_slice(&data);
    }
}

/// 400 with the reason where the body's chunks are not formed as they should be.
fn misframed(error: &axum::Error) -> Option<ApiError> {
    let mut causes = std::iter::successors(Some(error as &dyn Error), |&cause| cause.source());
    let found = causes.find_map(|cause| {
        let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        inner.and_then(|inner| inner.downcast_ref::<FramingError>().copied())
    });
    found.map(ApiError::from)
}

fn check_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let is_packed = |coding: &HeaderValue| !coding.as_bytes().eq_ignore_ascii_case(b"identity");
    if headers.get_all(header::CONTENT_ENCODING).iter().any(is_packed) {
        return Err(ApiError::packed());
    }
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Err(ApiError::not_json()) };
    let text = value.to_str().unwrap_or_default().to_ascii_lowercase();
    let mut parts = text.split(';').map(str::trim);
    let json = parts.next().is_some_and(|kind| kind == "application/json" || kind.ends_with("+json"));
    let utf8 =
        parts.all(|part| part.strip_prefix("charset=").is_none_or(|name| name.trim_matches('"') == "utf-8"));
    if json && utf8 { Ok(()) } else { Err(ApiError::not_json()) }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    /// What comes of a body of so many bytes every so many seconds, and after how many seconds.
    async fn drips(bytes: usize, every: u64, pieces: usize) -> (Result<usize, String>, u64) {
        let body = Body::from_stream(stream::unfold(0, move |sent| async move {
            tokio::time::sleep(Duration::from_secs(every)).await;
            (sent < pieces).then(|| (Ok::<_, io::Error>(Bytes::from(vec![b' '; bytes])), sent + 1))
        }));
        let began = Instant::now();
        let read = collect_within(body, 1 << 20, Duration::from_secs(15), Duration::from_secs(600)).await;
        (read.map(|read| read.len()).map_err(|error| error.to_json().to_string()), began.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_only_drips_is_given_up_and_one_that_comes_slowly_is_taken() {
        let (read, seconds) = drips(1, 4, 100).await;
        assert!(read.unwrap_err().contains("body_timeout") && seconds == 10, "{seconds}");
        assert_eq!(drips(8 << 10, 7, 10).await, (Ok(80 << 10), 77));
    }
}
