//! What an upstream's refusal means: whose fault it is, and what of it the caller may read.
//!
//! An upstream's own words may quote the prompt, so they go to the caller whose fault it is, and nowhere else.

use std::error::Error;
use std::io;
use std::time::Duration;

use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use serde_json::Value;

use crate::backend::{Failure, Fault, Retry};
use crate::units::Timestamp;

/// The most characters of an upstream's own words that are kept.
const WORDS_MAX: usize = 500;

/// A stream that ended before it was complete.
pub(super) fn truncated() -> Failure {
    Failure::new(Fault::Backend, "the upstream's stream broke off: upstream_truncated")
}

/// No answer came. The class of the error is told, never the address.
pub(super) fn of_transport(error: &reqwest::Error) -> Failure {
    if !error.is_connect() {
        return Failure::new(Fault::Backend, "the connection to the upstream broke");
    }
    if error.is_timeout() {
        return Failure::new(Fault::Timeout, "the upstream could not be connected to in time").unsent();
    }
    Failure::new(Fault::Backend, format!("the upstream could not be connected to: {}", class(error))).unsent()
}

/// An answer came that is not a success.
pub(super) fn of_status(status: u16, headers: &HeaderMap, body: &[u8], retry_after_max: Duration) -> Failure {
    let error = Said::read(&serde_json::from_slice(body).unwrap_or_default());
    let failure = error.failure(status, &format!("the upstream answered {status}"));
    let retry_after = match failure.fault {
        Fault::Overload | Fault::Backend => retry_after(headers, Timestamp::now(), retry_after_max),
        _ => None,
    };
    // Providers bill answers, not errors; where a time-out cut one short, a model may have been at work.
    let unsent = failure.unsent || !matches!(status, 408 | 504 | 524);
    Failure { retry_after, unsent, ..failure }
}

/// An error event came inside a stream; a model was at work by then.
pub(super) fn of_event(error: &Value) -> Failure {
    let said = Said::read(error);
    let status = said.status.or(said.usual_status()).unwrap_or(500);
    let failure = said.failure(status, &format!("the upstream's stream ended in an error {status}"));
    Failure { unsent: false, ..failure }
}

/// A success that is not the stream which was asked for.
pub(super) fn unless_stream(headers: &HeaderMap) -> Result<(), Failure> {
    let kind = headers.get(CONTENT_TYPE).map(|kind| kind.to_str().unwrap_or("unreadable"));
    match kind {
        None => Ok(()),
        Some(kind) if kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream") => Ok(()),
        Some(_) => {
            Err(Failure::new(Fault::Backend, "the upstream answered with something other than a stream"))
        }
    }
}

/// A success that is packed. Nobody asked for that, and what is in it may be any size.
pub(super) fn unless_plain(headers: &HeaderMap) -> Result<(), Failure> {
    let packed = headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"));
    match packed {
        true => Err(Failure::new(Fault::Backend, "the upstream packed its answer, which nobody asked for")),
        false => Ok(()),
    }
}

/// The failure without the secret, should an upstream have repeated it.
pub(super) fn without_secret(failure: Failure, secret: &str) -> Failure {
    let strip = |text: String| if secret.is_empty() { text } else { text.replace(secret, "…") };
    Failure { told: failure.told.map(strip), ..failure }
}

/// What an upstream says of an error, in any of the common shapes.
struct Said {
    message: Option<String>,
    /// Its `code`, its `type`, and its `status` where that is a word.
    words: String,
    /// Its `code` or `status`, where that is a number.
    status: Option<u16>,
}

impl Said {
    /// `{"error": {"message", "code", "type"}}`, `{"error": "…"}`, `{"message": "…"}` or `{"detail": "…"}`.
    fn read(body: &Value) -> Said {
        let error = body.get("error").unwrap_or(body);
        let text = |member: &str| error.get(member).and_then(Value::as_str);
        let number = |member: &str| error.get(member).and_then(Value::as_u64);
        let message = error.as_str().or(text("message")).or(text("detail")).map(clean);
        let words = ["code", "type", "status"].map(|member| text(member).unwrap_or_default()).join(" ");
        let status = number("code").or(number("status")).and_then(|code| u16::try_from(code).ok());
        Said { message, words, status }
    }

    fn failure(self, status: u16, message: &str) -> Failure {
        let failure = |fault, why: &str| Failure::new(fault, format!("{message}{why}"));
        let refused = |fault, why| failure(fault, why).unsent();
        match status {
            // Some upstreams say 400 to a bad key, and 429 to an empty account.
            400..=499 if self.is_ours() => refused(Fault::Credential, ": it refuses our key or our account"),
            // Some refuse what the caller wrote like that, which must not cost others the model.
            403 if self.is_about_content() => self.refusal(&refused),
            401..=403 => refused(Fault::Credential, ""),
            429 => refused(Fault::Overload, ""),
            529 => failure(Fault::Overload, ""),
            // Google says that of a model that has no room.
            503 if self.words.contains("UNAVAILABLE") => failure(Fault::Overload, ""),
            408 => failure(Fault::Timeout, ""),
            // Something else held it up for a moment, the official SDKs take it.
            409 => refused(Fault::Backend, ""),
            400 | 413 | 422 => self.refusal(&refused),
            300..=499 => refused(Fault::Backend, "").elsewhere(),
            _ => failure(Fault::Backend, ""),
        }
    }

    /// The status that usually comes with what its words say, for errors inside a stream.
    fn usual_status(&self) -> Option<u16> {
        let known = [
            ("overloaded_error", 529),
            ("rate_limit", 429),
            ("insufficient_quota", 429),
            ("invalid_request_error", 400),
            ("invalid_prompt", 400),
            ("context_length_exceeded", 400),
            ("authentication_error", 401),
            ("billing_error", 402),
            ("permission_error", 403),
            ("timeout_error", 504),
        ];
        known.iter().find(|(word, _)| self.words.contains(word)).map(|(_, status)| *status)
    }

    /// Something is wrong with the request.
    fn refusal(self, refused: &impl Fn(Fault, &'static str) -> Failure) -> Failure {
        let (context, model) = (self.is_context(), self.is_about_model());
        match self.message {
            told if context => {
                let failure = refused(Fault::Caller, ": the prompt is too long");
                Failure { told, ..failure.code("context_length_exceeded") }
            }
            _ if model => refused(Fault::Backend, ": it does not know the model").elsewhere(),
            Some(words) => refused(Fault::Caller, ": it refuses the request").told(words),
            // Whose fault it was is not known; that it is refused everywhere is likely.
            None => Failure { retry: Retry::Never, ..refused(Fault::Backend, "") },
        }
    }

    /// True where it is about what the caller wrote.
    fn is_about_content(&self) -> bool {
        let said =
            format!("{} {}", self.words, self.message.as_deref().unwrap_or_default()).to_ascii_lowercase();
        ["moderation", "flagged", "content_filter", "content policy", "content_policy"]
            .iter()
            .any(|word| said.contains(word))
    }

    /// True where it is about our key or our account.
    fn is_ours(&self) -> bool {
        let words =
            ["insufficient_quota", "invalid_api_key", "authentication_error", "permission", "billing"];
        let message = self.message.as_deref().unwrap_or_default().to_ascii_lowercase();
        // Only at the beginning: further on it may be quoted from a request that wants to look like that.
        let beginnings = [
            "your credit balance is too low",
            "incorrect api key",
            "invalid api key",
            "missing api key",
            "no api key",
            "api key ",
        ];
        words.iter().any(|word| self.words.contains(word))
            || beginnings.iter().any(|beginning| message.starts_with(beginning))
    }

    fn is_context(&self) -> bool {
        let words = ["context_length_exceeded", "exceed_context_size_error"];
        let message = self.message.as_deref().unwrap_or_default().to_ascii_lowercase();
        words.iter().any(|word| self.words.contains(word))
            || message.contains("maximum context length")
            || message.contains("prompt is too long")
            || message.contains("exceed context limit")
            || message.contains("exceeds the context window")
            || message.contains("input token count")
    }

    /// True where the operator's model name is unknown there.
    fn is_about_model(&self) -> bool {
        ["model_not_found", "not_found_error", "model_not_available"]
            .iter()
            .any(|word| self.words.contains(word))
    }
}

/// An upstream's words without what could be an address or a credential, and not too many.
fn clean(text: &str) -> String {
    let private = |word: &str| word.contains("://") || word.contains("sk-") || word.contains("Bearer");
    let words: Vec<&str> =
        text.split_whitespace().map(|word| if private(word) { "…" } else { word }).collect();
    words.join(" ").chars().take(WORDS_MAX).collect()
}

/// `retry-after-ms`, or `Retry-After` in seconds or as a date; what lies in the past is now.
fn retry_after(headers: &HeaderMap, now: Timestamp, most: Duration) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let seconds = |text: &str, scale: f64| {
        let value = text.parse::<f64>().ok().filter(|value| value.is_finite())?;
        Some(Duration::try_from_secs_f64((value * scale).max(0.0)).unwrap_or(Duration::MAX))
    };
    let date = |text: &str| {
        let moment = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
        Some(Duration::from_millis(u64::try_from(moment.as_millisecond() - now.0).unwrap_or(0)))
    };
    let wait = text("retry-after-ms")
        .and_then(|text| seconds(text, 0.001))
        .or_else(|| text("retry-after").and_then(|text| seconds(text, 1.0).or_else(|| date(text))))?;
    Some(wait.min(most))
}

fn class(error: &reqwest::Error) -> &'static str {
    if error.is_dns() {
        return "its name is unknown";
    }
    let mut source = error.source();
    while let Some(cause) = source {
        match cause.downcast_ref::<io::Error>().map(io::Error::kind) {
            Some(io::ErrorKind::ConnectionRefused) => return "connection refused",
            Some(io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable) => return "no route",
            Some(io::ErrorKind::InvalidData) => return "its certificate or TLS is not accepted",
            _ => source = cause.source(),
        }
    }
    "connection failed"
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    const MOST: Duration = Duration::from_secs(60);

    fn check(status: u16, body: &str, fault: Fault, message: &str) -> Failure {
        let failure = of_status(status, &HeaderMap::new(), body.as_bytes(), MOST);
        assert_eq!((failure.fault, failure.for_caller()), (fault, message), "{status} {body}");
        failure
    }

    fn check_wait(name: &'static str, value: &str, expected: Option<u64>) {
        // Sun, 06 Nov 1994 08:49:37 GMT
        let now = Timestamp(784_111_777_000);
        let headers = HeaderMap::from_iter([(name.parse().unwrap(), HeaderValue::from_str(value).unwrap())]);
        assert_eq!(retry_after(&headers, now, MOST), expected.map(Duration::from_millis), "{name}: {value}");
    }

    #[test]
    fn a_request_that_is_wrong_is_the_callers_fault_in_the_upstreams_words() {
        let body = r#"{"error":{"message":"'tools' must not be empty","type":"invalid_request_error"}}"#;
        assert!(check(400, body, Fault::Caller, "'tools' must not be empty").unsent);
        check(422, r#"{"detail":"temperature too high"}"#, Fault::Caller, "temperature too high");
        check(403, r#"{"error":"Input flagged: violence"}"#, Fault::Caller, "Input flagged: violence");
    }

    #[test]
    fn a_refusal_without_words_is_not_blamed_on_the_caller() {
        check(400, "<html>no</html>", Fault::Backend, "the upstream answered 400");
        check(404, r#"{"error":{"message":"no such route"}}"#, Fault::Backend, "the upstream answered 404");
        let body = r#"{"error":{"message":"who?","code":"model_not_found"}}"#;
        check(400, body, Fault::Backend, "the upstream answered 400: it does not know the model");
        check(307, "", Fault::Backend, "the upstream answered 307");
    }

    #[test]
    fn a_refused_key_or_an_empty_account_is_ours() {
        check(401, "", Fault::Credential, "the upstream answered 401");
        check(403, r#"{"error":"no"}"#, Fault::Credential, "the upstream answered 403");
        let body = r#"{"error":{"message":"You exceeded your quota","code":"insufficient_quota"}}"#;
        let message = "the upstream answered 429: it refuses our key or our account";
        check(429, body, Fault::Credential, message);
        let body = r#"{"error":"Incorrect API key provided: sk-123. See https://x.ai/keys"}"#;
        check(400, body, Fault::Credential, &message.replace("429", "400"));
        let body = r#"{"error":"API key not valid. Please pass a valid API key."}"#;
        check(400, body, Fault::Credential, &message.replace("429", "400"));
        let quoted = "there is no tool 'incorrect api key'";
        check(400, &format!(r#"{{"error":"{quoted}"}}"#), Fault::Caller, quoted);
    }

    #[test]
    fn an_upstreams_words_are_for_the_caller_and_not_for_the_log() {
        let body = r#"{"error":{"message":"cannot read 'my diary' at https://x.ai/1 with sk-123"}}"#;
        let failure = check(400, body, Fault::Caller, "cannot read 'my diary' at … with …");
        assert_eq!(failure.to_string(), "the upstream answered 400: it refuses the request");
        assert!(!format!("{failure:?}").contains("diary"));
    }

    #[test]
    fn a_prompt_that_is_too_long_has_its_own_code() {
        let body = r#"{"error":{"code":400,"message":"request (90 tokens) exceeds the available context size",
            "type":"exceed_context_size_error","n_prompt_tokens":90,"n_ctx":64}}"#;
        let message = "request (90 tokens) exceeds the available context size";
        assert_eq!(check(400, body, Fault::Caller, message).code, Some("context_length_exceeded"));
    }

    #[test]
    fn no_room_and_a_broken_upstream_are_told_apart() {
        for (status, fault) in
            [(429, Fault::Overload), (529, Fault::Overload), (500, Fault::Backend), (503, Fault::Backend)]
        {
            assert!(check(status, "", fault, &format!("the upstream answered {status}")).unsent, "{status}");
        }
        let timed_out = check(504, "", Fault::Backend, "the upstream answered 504");
        assert!(!timed_out.unsent, "a model may have been at work");
    }

    #[test]
    fn only_plain_answers_are_read() {
        let check = |codings: &[&'static str], plain| {
            let mut headers = HeaderMap::new();
            for coding in codings {
                headers.append(CONTENT_ENCODING, HeaderValue::from_static(coding));
            }
            assert_eq!(unless_plain(&headers).is_ok(), plain, "{codings:?}");
        };
        check(&[], true);
        check(&["identity"], true);
        check(&["gzip"], false);
        check(&["identity", "br"], false);
        check(&["identity, gzip"], false);
    }

    #[test]
    fn what_may_pass_by_itself_is_told_from_what_another_target_may_do_and_from_what_nobody_will() {
        let check = |statuses: &[u16], body: &str, expected: Retry| {
            for status in statuses {
                let failure = of_status(*status, &HeaderMap::new(), body.as_bytes(), MOST);
                assert_eq!(failure.retry, expected, "{status} {body}");
            }
        };
        check(&[408, 409, 429, 500, 502, 503, 504, 529], "", Retry::Again);
        check(&[307, 401, 402, 403, 404, 410, 451], "", Retry::Elsewhere);
        check(&[429], r#"{"error":{"code":"insufficient_quota"}}"#, Retry::Elsewhere);
        check(&[400], r#"{"error":{"code":"model_not_found"}}"#, Retry::Elsewhere);
        check(&[400, 413, 422], r#"{"error":"no such word"}"#, Retry::Never);
        check(&[400, 413, 422], "", Retry::Never);
        check(&[403], r#"{"error":{"message":"Your input was flagged by moderation"}}"#, Retry::Never);
    }

    #[test]
    fn anthropics_and_googles_refusals_are_understood() {
        let of = |kind: &str, said: &str| {
            format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{said}"}}}}"#)
        };
        let low = of("invalid_request_error", "Your credit balance is too low to access the API");
        check(400, &low, Fault::Credential, "the upstream answered 400: it refuses our key or our account");
        check(
            402,
            &of("billing_error", "x"),
            Fault::Credential,
            "the upstream answered 402: it refuses our key or our account",
        );
        check(529, &of("overloaded_error", "Overloaded"), Fault::Overload, "the upstream answered 529");
        let long = "input length and `max_tokens` exceed context limit: 9 + 2 > 10";
        let failure = check(400, &of("invalid_request_error", long), Fault::Caller, long);
        assert_eq!(failure.code, Some("context_length_exceeded"));

        let of = |code: u16, status: &str, said: &str| {
            format!(r#"{{"error":{{"code":{code},"status":"{status}","message":"{said}"}}}}"#)
        };
        let long = "The input token count (9) exceeds the maximum number of tokens allowed (8).";
        let failure = check(400, &of(400, "INVALID_ARGUMENT", long), Fault::Caller, long);
        assert_eq!(failure.code, Some("context_length_exceeded"));
        let key = of(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.");
        check(400, &key, Fault::Credential, "the upstream answered 400: it refuses our key or our account");
        check(429, &of(429, "RESOURCE_EXHAUSTED", "quota"), Fault::Overload, "the upstream answered 429");
        check(503, &of(503, "UNAVAILABLE", "overloaded"), Fault::Overload, "the upstream answered 503");
        check(403, &of(403, "PERMISSION_DENIED", "no"), Fault::Credential, "the upstream answered 403");
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

    #[test]
    fn an_error_inside_a_stream_may_have_been_billed() {
        let failure = of_event(&serde_json::json!({"error": {"code": 429, "message": "slow down"}}));
        assert_eq!((failure.fault, failure.unsent), (Fault::Overload, false));
        let failure = of_event(&serde_json::json!({"type": "overloaded_error", "message": "Overloaded"}));
        assert_eq!((failure.fault, failure.unsent), (Fault::Overload, false));
        let failure = of_event(&serde_json::json!({"error": {"message": "boom", "type": "server_error"}}));
        assert_eq!((failure.fault, failure.unsent), (Fault::Backend, false));
        assert_eq!(failure.message, "the upstream's stream ended in an error 500");
    }
}
