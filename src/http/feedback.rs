//! `POST /v1/feedback`: what a caller says of an answer.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::gateway::CallerFeedback;
use stint_types::units::{Chance, RequestId};

use super::api_state::ApiState;
use super::error::{ApiError, codes};
use super::fields::Fields;
use super::{auth, body, body_limiter, writes};

/// Takes it and says 202, and why nothing is learned from it where that is so.
pub(super) async fn feedback(
    State(service): State<Arc<ApiState>>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let tenant = auth::tenant(&service, request.headers())?;
    body_limiter::assign(request.extensions(), &tenant);
    let taken = writes::take(&service, &tenant, request.body())?;
    let feedback = read(body::fields(request, &service.settings).await?)?;
    let _turn = writes::begin(&service, &tenant, taken, 0).await;
    let recorded = match service.gateway.feedback(&tenant, feedback).await? {
        Ok(()) => json!({ "recorded": true, "learned": true }),
        Err(why) => json!({ "recorded": true, "learned": false, "why": why.to_string() }),
    };
    let headers = [(header::CONTENT_TYPE, "application/json")];
    Ok((StatusCode::ACCEPTED, headers, recorded.to_string()).into_response())
}

/// `{id, correct}`, `{id, score}` or `{preferred, over}`.
fn read(mut fields: Fields) -> Result<CallerFeedback, ApiError> {
    if let Some(preferred) = fields.text("preferred")? {
        let over = fields.require("over")?;
        fields.finish()?;
        let (better, worse) = (parse_request_id(&preferred)?, parse_request_id(&over)?);
        if better == worse {
            return Err(ApiError::invalid(Some("over"), "must be another request than preferred"));
        }
        return Ok(CallerFeedback::Preferred { better, worse });
    }
    let named = fields.require("id")?;
    let (correct, score) = (fields.boolean("correct")?, fields.number("score", 0.0, 1.0)?);
    fields.finish()?;
    let success = match (correct, score) {
        (Some(correct), None) => f64::from(u8::from(correct)),
        (None, Some(score)) => score,
        (Some(_), Some(_)) => {
            return Err(ApiError::invalid(Some("score"), "says what correct says; send one of them"));
        }
        (None, None) => {
            let message = "is missing: say correct, true or false, or a score from 0 to 1";
            return Err(
                ApiError::invalid(Some("correct"), message).with_code(codes::MISSING_REQUIRED_PARAMETER)
            );
        }
    };
    Ok(CallerFeedback::Score(parse_request_id(&named)?, Chance::new(success)))
}

/// A request's id as any of our answers shows it. What is no id names no request.
pub(super) fn parse_request_id(text: &str) -> Result<RequestId, ApiError> {
    let bare = ["req_", "chatcmpl-", "cmpl-", "msg_", "resp_"]
        .into_iter()
        .find_map(|prefix| text.strip_prefix(prefix));
    bare.and_then(|bare| bare.parse().ok()).ok_or_else(ApiError::unknown_request)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const ID: &str = "0192f0c1a2b34c5d8e6f708192a3b4c5";

    fn read_json(body: &Value) -> Result<CallerFeedback, ApiError> {
        read(Fields::from_body(body.as_object().unwrap().clone()))
    }

    fn check(body: &Value, message: &str) {
        let said = read_json(body).unwrap_err();
        assert!(said.message().starts_with(message), "{body}: {}", said.message());
    }

    #[test]
    fn an_answer_is_named_by_any_of_its_ids_and_judged_in_one_of_three_ways() {
        let expected = ID.parse::<RequestId>().unwrap();
        for prefix in ["req_", "chatcmpl-", "cmpl-", "msg_", "resp_"] {
            let said = read_json(&json!({ "id": format!("{prefix}{ID}"), "correct": true })).unwrap();
            assert_eq!(said, CallerFeedback::Score(expected, Chance::new(1.0)));
        }
        let said = read_json(&json!({ "id": format!("req_{ID}"), "score": 0.25 })).unwrap();
        assert_eq!(said, CallerFeedback::Score(expected, Chance::new(0.25)));
        let other = ID.replace('0', "1");
        let said =
            read_json(&json!({ "preferred": format!("req_{ID}"), "over": format!("cmpl-{other}") })).unwrap();
        assert_eq!(said, CallerFeedback::Preferred { better: expected, worse: other.parse().unwrap() });
    }

    #[test]
    fn what_is_wrong_is_named() {
        let id = format!("req_{ID}");
        check(&json!({}), "id is missing; it must be a string");
        check(&json!({ "id": 7 }), "id must be a string");
        check(&json!({ "id": id }), "correct is missing");
        check(&json!({ "id": id, "correct": "yes" }), "correct must be true or false");
        check(&json!({ "id": id, "score": 1.5 }), "score must be a number from 0 to 1");
        check(&json!({ "id": id, "score": 1, "correct": true }), "score says what correct says");
        check(&json!({ "id": id, "correct": true, "why": "x" }), "why is not known here");
        check(&json!({ "preferred": id }), "over is missing; it must be a string");
        check(&json!({ "preferred": id, "over": id }), "over must be another request");
        check(&json!({ "id": "resp_1", "correct": true }), "this key has no request of that id");
        check(&json!({ "id": ID, "correct": true }), "this key has no request of that id");
    }
}
