//! Errors in Anthropic's shape, wherever on its paths they come from.

use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::http::error::{ApiError, codes};
use crate::http::headers;

use super::models;

/// The paths whose callers speak this dialect.
const PATHS: &str = "/v1/messages";

/// The paths whose callers speak another one, whatever headers they send. Elsewhere a header tells.
const OTHERS: [&str; 5] =
    ["/v1/chat", "/v1/completions", "/v1/responses", "/v1/conversations", "/v1/embeddings"];

/// What the SDK calls a server that has no room.
const OVERLOADED: u16 = 529;

/// By these words clients of Anthropic's know that a conversation must be made shorter, whatever the code is.
const TOO_LONG: &str = "prompt is too long";

/// The body of an error.
pub(super) fn object(problem: &ApiError, id: &str) -> Value {
    let mut error = problem.to_json()["error"].take();
    let kind = kind(problem.status());
    let details = details(&error);
    if error["code"] == codes::CONTEXT_LENGTH_EXCEEDED.word
        && let Value::String(message) = &mut error["message"]
        && !message.contains(TOO_LONG)
    {
        *message = format!("{TOO_LONG}: {message}");
    }
    if let Some(members) = error.as_object_mut() {
        members.insert("type".into(), kind.into());
        members.extend(details.map(|details| ("details".to_owned(), details)));
    }
    json!({ "type": "error", "error": error, "request_id": id })
}

/// The code where Anthropic's SDK looks for it.
fn details(error: &Value) -> Option<Value> {
    let code = error["code"].as_str()?;
    let mut details = json!({ "error_code": code });
    if code == codes::THREAD_UNSUPPORTED_REQUEST.word {
        details["unsupported"] = json!([error["param"]]);
    }
    Some(details)
}

/// An error as an answer.
pub(in crate::http) fn error_response(problem: ApiError, id: &str) -> Response {
    let body = object(&problem, id).to_string();
    let status = match problem.status() {
        StatusCode::SERVICE_UNAVAILABLE => StatusCode::from_u16(OVERLOADED),
        status => Ok(status),
    };
    let mut response = problem.into_response();
    response.extensions_mut().remove::<ApiError>();
    *response.status_mut() = status.unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    response.headers_mut().remove(header::CONTENT_LENGTH);
    response.map(|_| Body::from(body))
}

/// Rewords what was refused before anybody looked at what dialect is spoken.
pub(in crate::http) async fn rewrite_errors<F: Future<Output = Response>>(
    request: Request<Body>,
    next: impl FnOnce(Request<Body>) -> F,
) -> Response {
    let is_ours = is_spoken(request.uri().path(), request.headers());
    let response = next(request).await;
    if is_ours { reword(response) } else { response }
}

/// Whether a request's caller reads this dialect's errors.
pub(in crate::http) fn is_spoken(path: &str, headers: &HeaderMap) -> bool {
    let is_below =
        |of: &str| path.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    is_below(PATHS) || (models::speaks(headers) && !OTHERS.iter().any(|path| is_below(path)))
}

/// An answer with its error, if it is one, in this dialect, and with its id where the SDK looks for it.
pub(in crate::http) fn reword(mut response: Response) -> Response {
    let id = headers::request_id_of(response.headers()).cloned();
    let text = id.as_ref().and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned();
    if let Some(refused) = response.extensions_mut().remove::<ApiError>() {
        let (parts, _) = response.into_parts();
        response = error_response(refused, &text);
        for (name, value) in &parts.headers {
            if *name != header::CONTENT_LENGTH {
                response.headers_mut().insert(name, value.clone());
            }
        }
    }
    if let Some(id) = id {
        response.headers_mut().insert(headers::ANTHROPIC_ID, id);
    }
    response
}

fn kind(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        503 | OVERLOADED => "overloaded_error",
        504 => "timeout_error",
        _ => "api_error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_that_is_too_long_is_told_in_anthropics_words() {
        let told = |message: &str, code| {
            let problem = ApiError::invalid(Some("messages"), message).with_code(code);
            object(&problem, "req_1")["error"]["message"].as_str().unwrap_or_default().to_owned()
        };
        let said = told("This model's maximum context length is 9 tokens", codes::CONTEXT_LENGTH_EXCEEDED);
        assert!(said.starts_with("prompt is too long: ") && said.ends_with("9 tokens"), "{said}");
        let own = told("prompt is too long: 9 tokens > 8 maximum", codes::CONTEXT_LENGTH_EXCEEDED);
        assert_eq!(own.matches(TOO_LONG).count(), 1, "{own}");
        assert!(!told("no", codes::MISSING_REQUIRED_PARAMETER).contains(TOO_LONG));
    }
}
