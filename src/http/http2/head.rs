//! A request's head over HTTP/2, whose form h2 has checked: its limits, and the host where every handler looks for it.

use axum::http::uri::PathAndQuery;
use axum::http::{HeaderValue, Request, Uri, header};

use crate::http::framing::{FramingError, HeadLimits};

/// Whether a head keeps the limits that it would have over HTTP/1.1, where each line has four bytes beside its name and value.
///
/// # Errors
/// Too many lines or bytes, or two lengths.
pub(in crate::http) fn check_head<B>(request: &Request<B>, limits: HeadLimits) -> Result<(), FramingError> {
    let (headers, uri) = (request.headers(), request.uri());
    if headers.len() > limits.lines {
        return Err(FramingError::TooManyHeaders(limits.lines));
    }
    let path = uri.path_and_query().map_or("", PathAndQuery::as_str).len();
    let authority = uri.authority().map_or(0, |authority| authority.as_str().len());
    let lines = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    if path + authority + lines.sum::<usize>() > limits.bytes {
        return Err(FramingError::HeadTooLarge(limits.bytes));
    }
    if headers.get_all(header::CONTENT_LENGTH).iter().nth(1).is_some() {
        return Err(FramingError::ContentLength);
    }
    Ok(())
}

/// The request as it would be over HTTP/1.1: its authority is its `Host`. One that has both, and they differ, stays as it is, and
/// is refused for it.
pub(in crate::http) fn with_host<B>(mut request: Request<B>) -> Request<B> {
    let Some(authority) = request.uri().authority() else { return request };
    let Ok(host) = HeaderValue::from_str(authority.as_str()) else { return request };
    if *request.headers_mut().entry(header::HOST).or_insert_with(|| host.clone()) != host {
        return request;
    }
    if let Some(path) = request.uri().path_and_query() {
        *request.uri_mut() = Uri::from(path.clone());
    }
    request
}

#[cfg(test)]
mod tests {
    use axum::http::request::Builder;

    use super::*;

    fn head(lines: &[(&str, &str)]) -> Request<()> {
        let add = |request: Builder, (name, value): &(&str, &str)| request.header(*name, *value);
        let request = Request::builder().uri("https://a.example/v1/models?x=1");
        lines.iter().fold(request, add).body(()).unwrap()
    }

    #[test]
    fn a_head_has_so_many_lines_and_bytes_and_one_length() {
        let limits = HeadLimits { bytes: 100, lines: 3 };
        let check = |lines: &[(&str, &str)], expected| {
            assert_eq!(check_head(&head(lines), limits).err(), expected, "{lines:?}");
        };
        check(&[("a", "b"), ("a", "c"), ("a", "d")], None);
        check(&[("a", "b"); 4], Some(FramingError::TooManyHeaders(3)));
        // Fourteen of the path and nine of the authority are there already.
        check(&[("a", &"x".repeat(72))], None);
        check(&[("a", &"x".repeat(73))], Some(FramingError::HeadTooLarge(100)));
        check(&[("content-length", "1"), ("content-length", "1")], Some(FramingError::ContentLength));
    }

    #[test]
    fn the_authority_is_the_host_unless_there_is_another() {
        let plain = with_host(head(&[]));
        assert_eq!(
            (plain.uri().to_string(), &plain.headers()["host"]),
            ("/v1/models?x=1".into(), &HeaderValue::from_static("a.example"))
        );
        let other = with_host(head(&[("host", "b.example")]));
        assert!(other.uri().authority().is_some() && other.headers()["host"] == "b.example");
    }
}
