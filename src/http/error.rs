//! The one place that turns errors into a status and a body, in OpenAI's shape with a stable `code`.

pub(super) mod code;
pub(super) mod codes;
mod convert;
mod guardrail;
mod token;

use std::borrow::Cow;
use std::time::Duration;

use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use crate::gateway::FeedbackError;
use stint_ledger::Shortfall;
use stint_sessions::agent::EpisodesError;
use stint_sessions::history::HistoryStoreError;
use stint_types::units::{Amount, EpisodeId, Limit, RequestId, Timestamp};

use code::ErrorCode;

use super::headers::SHOULD_RETRY;
use super::json_response::json_response;

/// The most letters of a member's name, which is the caller's own, that an error repeats,
const NAME_MAX: usize = 256;
/// and of all that it says.
const MESSAGE_MAX: usize = 16 << 10;

/// An error as a caller sees it.
#[derive(Debug, Clone)]
pub(crate) struct ApiError(Box<ApiErrorParts>);

#[derive(Debug, Clone)]
struct ApiErrorParts {
    status: StatusCode,
    kind: &'static str,
    code: Option<Cow<'static, str>>,
    param: Option<String>,
    message: String,
    budget: Option<Value>,
    retry_after: Option<Duration>,
    is_final: bool,
    /// What `WWW-Authenticate` says, where that is more than how to bring a key.
    challenge: Option<HeaderValue>,
    /// The episode that the request belongs to.
    episode: Option<EpisodeId>,
}

impl ApiError {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> ApiError {
        ApiError(Box::new(ApiErrorParts {
            status,
            kind,
            code: None,
            param: None,
            message: shortened(message.into(), MESSAGE_MAX),
            budget: None,
            retry_after: None,
            is_final: false,
            challenge: None,
            episode: None,
        }))
    }

    /// 400: the caller can mend it. With `param`, the message says of it what it must be.
    pub(super) fn invalid(param: Option<&str>, message: impl Into<String>) -> ApiError {
        let param = param.map(|param| shortened(param.to_owned(), NAME_MAX));
        let message = match &param {
            Some(param) => format!("{param} {}", message.into()),
            None => message.into(),
        };
        let mut problem = ApiError::new(StatusCode::BAD_REQUEST, "invalid_request_error", message);
        problem.0.param = param;
        problem
    }

    /// 400: it must be there, and says what it must be.
    pub(super) fn missing(param: &str, must: &str) -> ApiError {
        ApiError::invalid(Some(param), format!("is missing; it must be {must}"))
            .with_code(codes::MISSING_REQUIRED_PARAMETER)
    }

    /// 401. A key that is refused stays so, whereas callers with tokens get a new one and come again.
    pub(super) fn unauthorized(code: ErrorCode, message: &str) -> ApiError {
        let problem = ApiError::new(StatusCode::UNAUTHORIZED, "invalid_request_error", message);
        let mut problem = problem.with_code(code);
        problem.0.is_final = code != codes::INVALID_TOKEN;
        problem
    }

    /// 403.
    pub(super) fn forbidden(message: &str) -> ApiError {
        ApiError::new(StatusCode::FORBIDDEN, "permission_error", message)
    }

    /// 404.
    pub(super) fn not_found(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, "invalid_request_error", message).with_code(codes::NOT_FOUND)
    }

    /// 404, for a path that leads nowhere.
    pub(super) fn unknown_path() -> ApiError {
        ApiError::not_found("there is no such path; the API is under /v1")
    }

    /// 405.
    pub(super) fn wrong_method(method: &Method) -> ApiError {
        let message = format!("this path does not take {method}: the allow header says what it takes");
        ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "invalid_request_error", message)
            .with_code(codes::METHOD_NOT_ALLOWED)
    }

    /// 408.
    pub(super) fn body_timeout() -> ApiError {
        let message = "the body paused or took too long; send it in one go";
        ApiError::new(StatusCode::REQUEST_TIMEOUT, "invalid_request_error", message)
            .with_code(codes::BODY_TIMEOUT)
    }

    /// 413.
    pub(super) fn body_too_large(most: usize) -> ApiError {
        let message = format!("the body is larger than {most} bytes");
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "invalid_request_error", message)
            .with_code(codes::BODY_TOO_LARGE)
    }

    /// 431.
    pub(super) fn head_too_large(message: String) -> ApiError {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        ApiError::new(status, "invalid_request_error", message).with_code(codes::HEAD_TOO_LARGE)
    }

    /// 415.
    pub(super) fn not_json() -> ApiError {
        let message = "the content type must be application/json";
        ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid_request_error", message)
            .with_code(codes::UNSUPPORTED_MEDIA_TYPE)
    }

    /// 415: the body is compressed.
    pub(super) fn packed() -> ApiError {
        let message = "the body is compressed (content-encoding); send it as it is";
        ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid_request_error", message)
            .with_code(codes::UNSUPPORTED_CONTENT_ENCODING)
    }

    /// 409: what is there stands against it.
    pub(super) fn state_conflict(message: String, code: ErrorCode) -> ApiError {
        ApiError::new(StatusCode::CONFLICT, "invalid_request_error", message).with_code(code)
    }

    /// 415, where TOML is taken.
    pub(super) fn not_toml() -> ApiError {
        let message = "the content type must be application/toml";
        ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid_request_error", message)
            .with_code(codes::UNSUPPORTED_MEDIA_TYPE)
    }

    /// 409 that passes by itself: the request that uses the same idempotency key still runs.
    pub(super) fn key_in_flight() -> ApiError {
        let message = "a request with this idempotency key is in flight; ask again in a moment";
        let mut problem = ApiError::idempotency_conflict(codes::IDEMPOTENCY_IN_FLIGHT, message);
        problem.0.is_final = false;
        problem.0.retry_after = Some(Duration::from_secs(1));
        problem
    }

    /// 409 that another try does not change.
    pub(super) fn idempotency_conflict(code: ErrorCode, message: impl Into<String>) -> ApiError {
        let mut problem = ApiError::new(StatusCode::CONFLICT, "idempotency_error", message).with_code(code);
        problem.0.is_final = true;
        problem
    }

    /// 422: the key stands for something else.
    pub(super) fn key_reused() -> ApiError {
        let message = "this idempotency key was used for another request; choose a new one for a new request";
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_error", message)
            .with_code(codes::IDEMPOTENCY_KEY_REUSED)
    }

    /// 422: the configuration has these mistakes, and the one before stays in force.
    pub(super) fn invalid_config(mistakes: &[String]) -> ApiError {
        let message = format!("the configuration before stays in force:\n  {}", mistakes.join("\n  "));
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_request_error", message)
            .with_code(codes::CONFIG_REFUSED)
    }

    /// 500: our own mistake. The log has it under the id that the caller is given.
    pub(super) fn internal(id: RequestId, mistake: &str) -> ApiError {
        tracing::error!(request = %id, mistake, "the gateway made a mistake");
        let message = "the gateway made a mistake; it is in its log under this request's id";
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message)
            .with_code(codes::INTERNAL_ERROR)
    }

    /// The same with a code.
    #[must_use]
    pub(super) fn with_code(mut self, code: ErrorCode) -> ApiError {
        // The reference says of each code with which status it comes.
        let status = self.0.status.as_u16();
        debug_assert!(status == code.status || Some(status) == code.also, "{}: {status}", code.word);
        self.0.code = Some(code.word.into());
        self
    }

    /// The same with the episode that the request belongs to.
    #[must_use]
    pub(super) fn with_episode(mut self, episode: Option<&EpisodeId>) -> ApiError {
        self.0.episode = episode.cloned();
        self
    }

    /// The same with the parameter that it is about.
    #[must_use]
    fn with_param(mut self, param: &str) -> ApiError {
        self.0.param = Some(param.to_owned());
        self
    }

    /// The status that it is answered with.
    pub(super) fn status(&self) -> StatusCode {
        self.0.status
    }

    /// What it says.
    #[cfg(test)]
    pub(super) fn message(&self) -> &str {
        &self.0.message
    }

    /// The `error` member of a body or of an event.
    pub(super) fn to_json(&self) -> Value {
        let mut error = Map::new();
        error.insert("message".into(), self.0.message.clone().into());
        error.insert("type".into(), self.0.kind.into());
        error.insert("param".into(), self.0.param.clone().into());
        error.insert("code".into(), self.0.code.as_deref().into());
        if let Some(budget) = &self.0.budget {
            error.insert("budget".into(), budget.clone());
        }
        if let Some(episode) = &self.0.episode {
            error.insert("episode".into(), episode.as_str().into());
        }
        json!({ "error": error })
    }

    /// 429: what is left under a limit is too little. Of a rate there is more in moments. Of a budget there is not:
    /// the official SDKs would try again three times, so a header tells them not to.
    fn quota_exceeded(
        message: String,
        limit: &Limit,
        needed: Amount,
        left: Amount,
        resets_at: Option<Timestamp>,
    ) -> ApiError {
        let (kind, code) = if limit.is_rate() {
            ("rate_limit_error", codes::RATE_LIMIT_EXCEEDED)
        } else {
            ("insufficient_quota", codes::INSUFFICIENT_QUOTA)
        };
        let mut problem = ApiError::new(StatusCode::TOO_MANY_REQUESTS, kind, message).with_code(code);
        problem.0.budget = Some(json!({
            "limit": limit.to_string(), "needed": needed, "left": left, "resets_at": resets_at,
        }));
        problem.0.is_final = !limit.is_rate();
        problem.0.retry_after = limit.is_rate().then(|| retry_delay(resets_at));
        problem
    }

    /// The same of a request that needs more than a whole limit: even a rate never has so much.
    fn beyond_limit(self) -> ApiError {
        let mut problem = self.with_code(codes::INSUFFICIENT_QUOTA);
        problem.0.kind = "insufficient_quota";
        problem.0.is_final = true;
        problem.0.retry_after = None;
        problem
    }

    /// 429 that passes by itself: other requests hold what is left, and give back what they do not use.
    fn quota_reserved(message: String, shortfall: Option<Box<Shortfall>>, retry_after: Duration) -> ApiError {
        let problem = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message);
        let mut problem = problem.with_code(codes::RATE_LIMIT_EXCEEDED);
        problem.0.budget = shortfall.map(|shortfall| {
            let Shortfall { limit, needed, left, .. } = *shortfall;
            json!({ "limit": limit.to_string(), "needed": needed, "left": left })
        });
        problem.0.retry_after = Some(retry_after);
        problem
    }

    /// 429 that passes by itself: parallel steps of the episode are at work.
    fn episode_busy(message: String, retry_after: Duration) -> ApiError {
        let problem = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message);
        let mut problem = problem.with_code(codes::EPISODE_BUSY);
        problem.0.retry_after = Some(retry_after);
        problem
    }

    /// 400 that passes by itself, as OpenAI has it, whose agents wait for it: another request continues the conversation.
    pub(super) fn conversation_locked() -> ApiError {
        let why = "is being continued by another request, and only one may at a time; try again when that has its answer";
        let mut problem = ApiError::invalid(Some("conversation"), why).with_code(codes::CONVERSATION_LOCKED);
        problem.0.retry_after = Some(Duration::from_secs(1));
        problem
    }

    /// 404: the same for an episode that never was, that is gone, and that belongs to another key.
    pub(super) fn unknown_episode() -> ApiError {
        ApiError::not_found("there is no such run of this key, or it was too long ago")
            .with_code(codes::EPISODE_NOT_FOUND)
    }

    /// 503 where the store of episodes does not answer.
    pub(super) fn episodes_unavailable(error: &EpisodesError) -> ApiError {
        tracing::error!(error = error as &dyn std::error::Error, "a run cannot be shown");
        let message = "what is known of runs cannot be read right now; try again shortly";
        ApiError::overloaded(message.to_owned(), Duration::from_secs(2))
    }

    /// 503.
    pub(super) fn overloaded(message: String, retry_after: Duration) -> ApiError {
        let problem = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message);
        let mut problem = problem.with_code(codes::OVERLOADED);
        problem.0.retry_after = Some(retry_after);
        problem
    }

    /// 429 that passes by itself: something was done too often.
    pub(super) fn rate_exceeded(message: String, retry_after: Duration) -> ApiError {
        let mut problem = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message);
        problem.0.retry_after = Some(retry_after);
        problem.with_code(codes::RATE_LIMIT_EXCEEDED)
    }

    /// 404: the same for a request that never was, that is gone, and that belongs to another key.
    pub(super) fn unknown_request() -> ApiError {
        ApiError::not_found(FeedbackError::Unknown.to_string()).with_code(codes::REQUEST_NOT_FOUND)
    }

    /// 503 where the store of what was decided does not answer.
    pub(super) fn history_unavailable(error: &HistoryStoreError) -> ApiError {
        tracing::error!(error = error as &dyn std::error::Error, "a request's story cannot be had");
        let message = "what is known of requests cannot be read or recorded right now; try again shortly";
        ApiError::overloaded(message.to_owned(), Duration::from_secs(2))
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let code = self.0.code.as_deref().unwrap_or(self.0.kind);
        super::access_log::note(|record| record.set_error_code(code, self.0.param.as_deref()));
        let mut response = json_response(&self.to_json());
        *response.status_mut() = self.0.status;
        let headers = response.headers_mut();
        if let Some(wait) = self.0.retry_after {
            // Rounded up: an earlier try would be refused again.
            let seconds = u64::try_from(wait.as_millis().div_ceil(1_000)).unwrap_or(u64::MAX);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        let plain =
            || (self.0.status == StatusCode::UNAUTHORIZED).then(|| HeaderValue::from_static("Bearer"));
        if let Some(challenge) = self.0.challenge.clone().or_else(plain) {
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        if self.0.is_final {
            headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        self.0.episode.iter().for_each(|episode| super::headers::set_episode(headers, episode));
        // A layer rewrites it for another dialect.
        response.extensions_mut().insert(self);
        response
    }
}

/// Until a rate starts again; for requests at once nobody knows, so it is a moment.
fn retry_delay(resets_at: Option<Timestamp>) -> Duration {
    let Some(reset) = resets_at else { return Duration::from_secs(1) };
    Duration::from_millis(u64::try_from(reset.0.saturating_sub(Timestamp::now().0)).unwrap_or(0))
}

/// The beginning of a text that has more letters than these.
fn shortened(mut text: String, letters: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(letters) {
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_repeats_only_the_beginning_of_what_a_caller_named() {
        let problem = ApiError::invalid(Some(&"ü".repeat(1 << 20)), "is not known here; leave it out");
        assert!(problem.message().ends_with("ü… is not known here; leave it out"));
        assert_eq!(problem.to_json()["error"]["param"].as_str().map(|name| name.chars().count()), Some(257));
        let problem = ApiError::not_found("x".repeat(1 << 20));
        assert_eq!(problem.message().chars().count(), MESSAGE_MAX + 1);
        assert_eq!(ApiError::invalid(Some("n"), "must be 1").message(), "n must be 1");
    }

    #[test]
    fn nobody_comes_again_with_a_refused_key() {
        for (code, expected) in [
            (codes::MISSING_API_KEY, Some("false")),
            (codes::INVALID_API_KEY, Some("false")),
            (codes::INVALID_TOKEN, None),
        ] {
            let response = ApiError::unauthorized(code, "no").into_response();
            let told = response.headers().get("x-should-retry").map(|value| value.to_str().unwrap());
            assert_eq!((response.status(), told), (StatusCode::UNAUTHORIZED, expected), "{}", code.word);
        }
    }
}
