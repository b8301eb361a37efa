//! `POST /v1/embeddings`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Request};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::gateway::EmbeddingOutcome;
use stint_backend::EmbeddedText;
use stint_types::chat::{EmbeddingInputs, EmbeddingRequest};
use stint_types::tasks::write_json;

use super::api_state::ApiState;
use super::error::ApiError;
use super::fields::Fields;
use super::idempotency_key::{IdempotencyDecision, IdempotentRequest};
use super::json_response::json_text;
use super::received_request::{ReceivedRequest, RequestTerms};
use super::{access_log, budget, episodes, headers, idempotency_key, unknown_members};

/// The most texts of one request, as OpenAI has it.
const INPUTS_MAX: usize = 2048;

/// Token ids are one value each.
const TERMS: RequestTerms = RequestTerms { values_max: 1 << 20, ..RequestTerms::CHARGED };

/// Members that some upstreams understand and that do not change the bill.
const PASSED: &[&str] = &["encoding_format", "dimensions", "metadata", "safety_identifier", "user"];

/// Makes vectors of texts.
pub(super) async fn embeddings(
    State(service): State<Arc<ApiState>>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let ReceivedRequest { tenant, headers, members, digest, .. } =
        ReceivedRequest::receive(&service, request, TERMS).await?;
    let ask = read(members, &headers)?;
    service.settings.image_urls.check_members(&ask.unknown_members)?;
    let asked = IdempotentRequest { endpoint: "embeddings", digest: digest.as_ref() };
    let about = service.gateway.request_scope(&ask.model, &ask.extra);
    let ticket = match idempotency_key::check_key(&service, &tenant, &headers, asked).await? {
        IdempotencyDecision::Proceed(ticket) => ticket,
        IdempotencyDecision::Replay(response) => {
            return Ok(service.with_limit_headers(&tenant, &about, response));
        }
    };
    access_log::note(|record| record.set_requested_model(&ask.model));
    let made = service.gateway.embed(&tenant, ask, ticket.clone()).await;
    if let Ok(made) = &made {
        access_log::note(|record| record.set_served(&made.model, made.prompt, made.cost));
    }
    let mut response = match made {
        Ok(made) => render(made).await,
        Err(denial) => ApiError::from(denial).into_response(),
    };
    if let Some(ticket) = ticket {
        response = idempotency_key::store_answer(&ticket, response).await;
    }
    Ok(service.with_limit_headers(&tenant, &about, response))
}

/// An answer in OpenAI's form.
#[derive(Serialize)]
struct EmbeddingList {
    object: &'static str,
    data: Vec<EmbeddedText>,
    model: Arc<str>,
    usage: Value,
    budget: Value,
}

async fn render(made: EmbeddingOutcome) -> Response {
    let mut budget = json!({
        "id": made.id.to_string(),
        "model": &*made.model,
        "cost_usd": made.cost,
        "reserved_usd": made.reserved,
        "estimated": made.estimated,
    });
    if let Some(episode) = &made.episode {
        budget["episode"] = episodes::episode_members(episode).into();
    }
    let about = made.vectors.text_bytes();
    let list = EmbeddingList {
        object: "list",
        data: made.vectors.data,
        model: made.model,
        usage: json!({ "prompt_tokens": made.prompt, "total_tokens": made.prompt }),
        budget,
    };
    let text = match write_json(list, about).await {
        Ok(text) => text,
        Err(error) => return ApiError::internal(made.id, &error.to_string()).into_response(),
    };
    let mut response = json_text(text);
    headers::set_request_id(response.headers_mut(), made.id);
    made.cost.iter().for_each(|cost| headers::set_cost(response.headers_mut(), *cost));
    made.episode.iter().for_each(|episode| headers::set_episode(response.headers_mut(), &episode.id));
    response
}

fn read(members: Map<String, Value>, headers: &HeaderMap) -> Result<EmbeddingRequest, ApiError> {
    let mut fields = Fields::from_body(members);
    let model = fields.model()?;
    let inputs = inputs(&mut fields)?;
    let extra: Map<String, Value> = fields.take_all(PASSED);
    let (episode, run) = budget::episode_only(&mut fields, headers, &extra)?;
    let unknown_members = unknown_members::take_unknown(&mut fields)?;
    Ok(EmbeddingRequest { model, inputs, episode, episode_limits: run, extra, unknown_members })
}

/// A text, a list of texts, a list of token ids, or a list of such lists.
fn inputs(fields: &mut Fields) -> Result<EmbeddingInputs, ApiError> {
    let must = || "must be a text, a list of texts, or token ids".to_owned();
    let wrong = |must: String| ApiError::invalid(Some("input"), must);
    let inputs = match fields.take("input") {
        Some(Value::String(text)) => EmbeddingInputs::Texts(vec![text]),
        Some(list @ Value::Array(_)) => inputs_from_list(list).ok_or_else(|| wrong(must()))?,
        _ => return Err(wrong(must())),
    };
    let empty = match &inputs {
        EmbeddingInputs::Texts(texts) => texts.iter().any(String::is_empty),
        EmbeddingInputs::Tokens(lists) => lists.iter().any(Vec::is_empty),
    };
    match inputs.len() {
        1..=INPUTS_MAX if !empty => Ok(inputs),
        1..=INPUTS_MAX => Err(wrong("must not be empty, nor any of its texts".to_owned())),
        0 => Err(wrong("must not be empty, nor any of its texts".to_owned())),
        _ => Err(wrong(format!("must have at most {INPUTS_MAX} texts; send them in several requests"))),
    }
}

fn inputs_from_list(list: Value) -> Option<EmbeddingInputs> {
    if list.get(0).is_none_or(Value::is_string) {
        return serde_json::from_value(list).ok().map(EmbeddingInputs::Texts);
    }
    if list.get(0).is_some_and(Value::is_array) {
        return serde_json::from_value(list).ok().map(EmbeddingInputs::Tokens);
    }
    serde_json::from_value(list).ok().map(|ids| EmbeddingInputs::Tokens(vec![ids]))
}
