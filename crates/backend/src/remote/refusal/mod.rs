//! Interprets an upstream's refusal: whose fault it is, and which part of it the caller may read.
//!
//! An upstream's own text may quote the prompt, so it goes only to the caller whose fault it is. The log has
//! codes alone. Where the operator asked for it (`log_messages`), it has the text too, if the refusal is about the operator's
//! side (the address, the model's name, the key, the upstream itself): see [`UpstreamError::log_reason`].

mod classify;
mod connect_error;
mod rate_excess;
mod upstream_error;

use std::time::Duration;

use memchr::memmem;
use reqwest::StatusCode;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use serde_json::{Map, Value};

use crate::{Failure, Fault, UPSTREAM_RATE_LIMITED, UpstreamReason};
use stint_types::units::Timestamp;

use super::rate_limits;
use super::secret::Secret;
use super::transport_error::{TransportError, TransportErrorKind};

use upstream_error::UpstreamError;

/// So many characters of a secret's beginning show something of it.
const SECRET_PREFIX_MIN: usize = 4;

/// A stream that ended before it was complete.
pub(super) fn truncated() -> Failure {
    Failure::new(Fault::Backend, "the upstream's stream broke off: upstream_truncated")
}

/// No answer came. The class of the error is reported, never the address.
pub(super) fn of_transport(error: &TransportError) -> Failure {
    let class = match error.kind {
        TransportErrorKind::Broken => return broken(),
        _ if connect_error::is_out_of_files(error) => {
            let message = "the gateway has as many files open as it may, so the upstream could not be connected to: raise \
                           the limit on open files (ulimit -n)";
            return Failure::new(Fault::Gateway, message).unsent();
        }
        TransportErrorKind::ConnectTimeout => {
            return Failure::new(Fault::Timeout, "the upstream could not be connected to in time").unsent();
        }
        TransportErrorKind::UnknownName => "its name is unknown",
        TransportErrorKind::Connect => connect_error::class(error),
    };
    Failure::new(Fault::Backend, format!("the upstream could not be connected to: {class}")).unsent()
}

/// A connection broke.
pub(super) fn broken() -> Failure {
    Failure::new(Fault::Backend, "the connection to the upstream broke")
}

/// What an answer has, or a count of what it cost.
const ANSWER_MEMBERS: [&str; 7] =
    ["choices", "output", "content", "candidates", "data", "usage", "usageMetadata"];

/// An answer came that is not a success.
pub(super) fn of_status(status: u16, headers: &HeaderMap, body: &[u8], retry_after_max: Duration) -> Failure {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let error = UpstreamError::read(&body);
    let reason = error.log_reason(Some(status));
    let failure = error.into_failure(status, &format!("the upstream answered {status}")).with_reason(reason);
    let retry_after = match failure.fault {
        Fault::Overload | Fault::Backend => {
            rate_limits::retry_after(headers, Timestamp::now(), retry_after_max)
                .or_else(|| rate_limits::retry_delay(&body, retry_after_max))
        }
        _ => None,
    };
    let unsent = failure.unsent || !is_timeout(status);
    let is_pause = status == 429 && failure.fault == Fault::Overload && retry_after.is_some();
    let code = if is_pause { Some(UPSTREAM_RATE_LIMITED) } else { failure.code };
    Failure { retry_after, unsent, code, ..failure }
}

/// Providers bill answers, not errors; where a time-out cut one short, a model may have been at work.
fn is_timeout(status: u16) -> bool {
    matches!(status, 408 | 504 | 524)
}

/// A success came whose body is an error: there is no answer, and providers bill answers. Nothing where it is none, or where it
/// has more in it than the error: choices, or counts of what it cost.
pub(super) fn of_success(body: &[u8]) -> Option<Failure> {
    memmem::find(body, b"\"error\"")?;
    let body: Value = serde_json::from_slice(body).ok()?;
    let object = body.get(0).unwrap_or(&body);
    let has = |member: &str| object.get(member).is_some_and(|value| !value.is_null());
    let said = &object["error"];
    let is_none = *said == false || *said == "" || said.as_object().is_some_and(Map::is_empty);
    let is_error = has("error") && !is_none && !ANSWER_MEMBERS.into_iter().any(has);
    is_error.then(|| {
        let failure = of_error(object, "the upstream answered with an error");
        let status = UpstreamError::read(object).status.unwrap_or(500);
        if is_timeout(status) { failure } else { failure.unsent() }
    })
}

/// An error event came inside a stream; a model may have been at work by then. After a time-out nobody knows how long.
pub(super) fn of_event(error: &Value) -> Failure {
    let said = UpstreamError::read(error);
    let status = said.status.or(said.typical_status()).unwrap_or(500);
    let failure = of_error(error, "the upstream's stream ended in an error");
    Failure { unsent: false, reported: !is_timeout(status), ..failure }
}

/// An event that said nothing to its reader, and is an error in the form of some server that has no member `error`:
/// `{"object": "error", …}` (older ones of vLLM), `{"detail": …}` (`FastAPI`), `{"errors": […]}`, `{"code": …, "message": …}`. What has
/// something of an answer is none.
pub(super) fn of_unread_event(data: &[u8]) -> Option<Failure> {
    const NAMES: [&[u8]; 3] = [b"\"error", b"\"detail\"", b"\"message\""];
    if NAMES.iter().all(|name| memmem::find(data, name).is_none()) {
        return None;
    }
    let body: Value = serde_json::from_slice(data).ok()?;
    let object = body.get(0).unwrap_or(&body);
    let has = |member: &str| !object[member].is_null();
    if ANSWER_MEMBERS.into_iter().any(has) {
        return None;
    }
    let list = object["errors"].as_array().and_then(|errors| errors.first());
    let names_error = object["object"] == "error" || object["type"] == "error";
    let is_message = object["message"].is_string() && (has("code") || has("status"));
    let is_error = names_error || is_message || ["error", "detail", "errors"].into_iter().any(has);
    is_error.then(|| of_event(list.unwrap_or(object)))
}

/// An error that came under no status of its own.
fn of_error(error: &Value, message: &str) -> Failure {
    let said = UpstreamError::read(error);
    let known = said.status.or(said.typical_status());
    let (status, reason) = (known.unwrap_or(500), said.log_reason(known));
    said.into_failure(status, &format!("{message} {status}")).with_reason(reason)
}

/// A success that is not the stream which was asked for.
pub(super) fn require_stream(headers: &HeaderMap) -> Result<(), Failure> {
    if is_stream(headers) || !headers.contains_key(CONTENT_TYPE) {
        return Ok(());
    }
    Err(Failure::new(Fault::Backend, "the upstream answered with something other than a stream"))
}

/// Whether a success says that it is a stream.
pub(super) fn is_stream(headers: &HeaderMap) -> bool {
    is_content_type(headers, b"text/event-stream")
}

/// Whether a success says that it is one JSON value.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    is_content_type(headers, b"application/json")
}

fn is_content_type(headers: &HeaderMap, expected: &[u8]) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(|kind| kind.as_bytes().trim_ascii_start());
    kind.and_then(|kind| kind.get(..expected.len())).is_some_and(|start| start.eq_ignore_ascii_case(expected))
}

/// A success that is no answer of an API: an empty one, or a page for people, as proxies and portals send it. No model was asked.
pub(super) fn require_api_answer(status: StatusCode, headers: &HeaderMap) -> Result<(), Failure> {
    let is_empty = matches!(status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT);
    if is_empty || is_content_type(headers, b"text/html") {
        let what = if is_empty { "nothing" } else { "a page of HTML" };
        return Err(Failure::new(Fault::Backend, format!("the upstream answered with {what}")).unsent());
    }
    Ok(())
}

/// A success that is packed. Nobody asked for that, and what is in it may be any size.
pub(super) fn require_uncompressed(headers: &HeaderMap) -> Result<(), Failure> {
    let packed = headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"));
    if packed {
        return Err(Failure::new(Fault::Backend, "the upstream compressed its answer without being asked"));
    }
    Ok(())
}

/// The failure as it may be logged: without the secret, should an upstream have repeated it, and without the upstream's
/// message, unless that is to be logged.
pub(super) fn for_log(failure: Failure, secret: Option<&Secret>, logs_messages: bool) -> Failure {
    let secret = secret.map(Secret::expose).unwrap_or_default();
    let strip = |text: String| {
        if secret.is_empty() { text } else { without_partial_secret(text.replace(secret, "…"), secret) }
    };
    let reason = failure.reason.map(|reason| UpstreamReason {
        message: reason.message.filter(|_| logs_messages).map(strip),
        codes: strip(reason.codes),
    });
    let upstream_message = failure.upstream_message.map(|said| strip(said.into_string()).into_boxed_str());
    Failure { upstream_message, reason: None, ..failure }
        .with_reason(reason.filter(|reason| *reason != UpstreamReason::default()))
}

/// The text without the secret's beginning at its end: words are cut, and the cut may go through it.
fn without_partial_secret(mut text: String, secret: &str) -> String {
    let beginnings = (SECRET_PREFIX_MIN..secret.len()).rev().filter_map(|length| secret.get(..length));
    if let Some(beginning) = beginnings.into_iter().find(|beginning| text.ends_with(beginning)) {
        text.truncate(text.len() - beginning.len());
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    #[test]
    fn only_plain_answers_are_read() {
        let check = |codings: &[&'static str], plain| {
            let mut headers = HeaderMap::new();
            for coding in codings {
                headers.append(CONTENT_ENCODING, HeaderValue::from_static(coding));
            }
            assert_eq!(require_uncompressed(&headers).is_ok(), plain, "{codings:?}");
        };
        check(&[], true);
        check(&["identity"], true);
        check(&["gzip"], false);
        check(&["identity", "br"], false);
        check(&["identity, gzip"], false);
    }

    #[test]
    fn a_secret_shows_in_no_words_whole_or_cut() {
        let told = |words: &str| {
            let reason = UpstreamReason { message: Some(words.into()), codes: "odd".into() };
            Failure::new(Fault::Caller, "no").with_upstream_message(words).with_reason(Some(reason))
        };
        let check = |words: &str, expected: &str| {
            let failure = for_log(told(words), Some(&Secret::new("geheim-123")), true);
            let message = failure.reason.and_then(|reason| reason.message);
            assert_eq!(
                (failure.upstream_message.as_deref(), message.as_deref()),
                (Some(expected), Some(expected))
            );
        };
        check("key geheim-123 is unknown", "key … is unknown");
        check("unknown is geheim-", "unknown is …");
        check("unknown is g", "unknown is g");
    }

    #[test]
    fn an_upstreams_message_is_logged_only_where_that_is_asked_for() {
        let body = br#"{"error": {"message": "no key for 'my diary'", "code": "invalid_api_key"}}"#;
        let logged = |logs_messages| {
            let failure = of_status(401, &HeaderMap::new(), body, Duration::ZERO);
            for_log(failure, None, logs_messages).to_string()
        };
        let ours = "the upstream answered 401: it refuses our key or our account";
        assert_eq!(logged(false), format!("{ours}: invalid_api_key"));
        assert_eq!(logged(true), format!("{ours}: \"no key for 'my diary'\" (invalid_api_key)"));
        let bare = of_status(500, &HeaderMap::new(), br#"{"error": "boom"}"#, Duration::ZERO);
        assert_eq!(for_log(bare, None, false).to_string(), "the upstream answered 500");
    }

    #[test]
    fn an_error_inside_a_stream_that_says_no_status_may_quote_the_prompt() {
        let failure = of_event(&serde_json::json!({"error": {"message": "no diary", "type": "odd_error"}}));
        assert_eq!(failure.to_string(), "the upstream's stream ended in an error 500: odd_error");
        let failure = of_event(&serde_json::json!({"error": {"code": 503, "message": "no room"}}));
        assert!(failure.to_string().ends_with("an error 503: \"no room\""), "{failure}");
    }

    #[test]
    fn a_success_that_is_an_error_costs_nothing_unless_it_is_an_answer_too() {
        let check = |body: &str, expected: Option<Fault>| {
            let failure = of_success(body.as_bytes());
            let told = failure.map(|failure| (failure.fault, failure.unsent));
            assert_eq!(told, expected.map(|fault| (fault, true)), "{body}");
        };
        check(r#"{"error": {"message": "slow down", "code": 429}}"#, Some(Fault::Overload));
        check(r#"[{"error": {"message": "bad", "code": 400}}]"#, Some(Fault::Caller));
        check(r#"{"error": "boom", "choices": null}"#, Some(Fault::Backend));
        check(r#"{"error": null, "data": []}"#, None);
        check(r#"{"error": "boom", "usage": {"prompt_tokens": 10}}"#, None);
        check(r#"{"choices": [{"message": {"content": "\"error\""}}]}"#, None);
        check("no \"error\"", None);
    }

    #[test]
    fn an_event_that_says_nothing_may_be_an_error_in_the_form_of_some_server() {
        let check = |event: &str, expected: Option<Fault>| {
            let failure = of_unread_event(event.as_bytes());
            let told = failure.map(|failure| (failure.fault, failure.unsent));
            assert_eq!(told, expected.map(|fault| (fault, false)), "{event}");
        };
        check(
            r#"{"object":"error","message":"dead","type":"InternalServerError","code":500}"#,
            Some(Fault::Backend),
        );
        check(r#"{"object":"error","message":"slow down","code":429}"#, Some(Fault::Overload));
        check(r#"{"detail":"boom"}"#, Some(Fault::Backend));
        check(r#"{"errors":[{"message":"slow down","code":429}]}"#, Some(Fault::Overload));
        check(r#"{"code":500,"message":"boom"}"#, Some(Fault::Backend));
        check(r#"[{"error":{"code":503}}]"#, Some(Fault::Backend));
        for event in [
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"detail":"a"}"#,
            r#"{"choices":[],"errors":["x"]}"#,
            r#"{"type":"message_start","message":{"id":"m","content":[]}}"#,
            r#"{"type":"response.created","response":{"error":null}}"#,
            r#"{"type":"ping","message":"\"error\""}"#,
            r#"{"error":null,"detail":null,"errors":null}"#,
            "[DONE]",
        ] {
            check(event, None);
        }
    }

    #[test]
    fn an_error_inside_a_stream_may_have_been_billed() {
        let failure = of_event(&serde_json::json!({"error": {"code": 429, "message": "slow down"}}));
        assert_eq!((failure.fault, failure.unsent), (Fault::Overload, false));
        let failure = of_event(&serde_json::json!({"type": "overloaded_error", "message": "Overloaded"}));
        assert_eq!((failure.fault, failure.unsent), (Fault::Overload, false));
        let failure = of_event(&serde_json::json!({"error": {"message": "boom", "type": "server_error"}}));
        assert_eq!((failure.fault, failure.unsent), (Fault::Backend, false));
        assert_eq!(failure.message, "the upstream's stream ended in an error 500");
        assert!(failure.reported);
        let late = of_event(&serde_json::json!({"type": "timeout_error", "message": "too long"}));
        assert!(!late.reported, "a model was at work for as long");
    }
}
