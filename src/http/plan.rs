//! `POST /v1/plan`: what a chat completion would be planned as, and what it would cost. Nothing is spent.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use crate::gateway::RequestQuote;
use stint_decide::plan::PlanRefusal;
use stint_types::catalog::{Contender, Demand, Offer};

use super::api_state::ApiState;
use super::error::ApiError;
use super::json_response::json_response;
use super::openai::read;
use super::plan_details;
use super::received_request::{ReceivedRequest, RequestTerms};
use super::rounding::rounded;
use super::{images, nested_json};

/// What a quote does not do, stated with each.
const NOTE: &str =
    "priced by average predictions: no model was drawn, no probe bought, nothing reserved or spent";

/// Answers with every offer, and the one that would be taken.
pub(super) async fn plan(
    State(service): State<Arc<ApiState>>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let details = plan_details::read(request.uri().query().unwrap_or_default())?;
    let ReceivedRequest { tenant, headers, body, members, extensions, .. } =
        ReceivedRequest::receive(&service, request, RequestTerms::FREE).await?;
    let (request, _) = read(members, &headers, &service.settings.efforts)?;
    nested_json::check(&request.messages, &extensions)?;
    images::check_urls(service.settings.image_urls, &request, &extensions, &body).await?;
    let about = service.gateway.request_scope(&request.model, &request.extra);
    let quoted = service.gateway.quote(&tenant, request, details).await;
    let answer = match quoted {
        Ok(quoted) => render(&quoted),
        Err(refusal) => {
            ApiError::from(images::with_image_path(refusal, &extensions, &body).await).into_response()
        }
    };
    Ok(service.with_limit_headers(&tenant, &about, answer))
}

fn render(quoted: &RequestQuote) -> Response {
    let RequestQuote { demand, quote, evidence, ranges, worth } = quoted;
    let refused = quote.refused.iter().map(|(model, refusal)| refused(model, refusal));
    let mut page = json!({
        "object": "plan",
        "demand": demand_page(demand),
        "offers": quote.offers.iter().map(offer).collect::<Vec<_>>(),
        "chosen": quote.chosen,
        "contenders": quote.contenders.iter().map(contender).collect::<Vec<_>>(),
        "refused": refused.collect::<Vec<_>>(),
        "why": quote.why,
        "note": NOTE,
    });
    if let Some(evidence) = evidence {
        page["explanation"] = plan_details::explanation(demand, evidence);
    }
    if let Some(ranges) = ranges {
        page["sweep"] = plan_details::sweep(ranges, *worth);
    }
    json_response(&rounded(page))
}

fn demand_page(demand: &Demand) -> Value {
    let class = demand.class.as_str();
    json!({ "class": class, "difficulty": demand.difficulty, "confidence": demand.confidence })
}

fn offer(offer: &Offer) -> Value {
    let mut shown = Map::new();
    let mut show = |name: &str, value: Value| shown.insert(name.to_owned(), value);
    show("model", (*offer.model).into());
    show("thinking_tokens", offer.thinking.0.into());
    show("solution_tokens", offer.solution.0.into());
    if let Some(word) = &offer.effort {
        show("reasoning_effort", word.as_str().into());
    }
    show("enforced", offer.class.as_str().into());
    show("samples", offer.samples.into());
    if let Some(second) = &offer.escalate {
        show("escalates_to", json!({ "model": &*second.model, "thinking_tokens": second.thinking.0 }));
    }
    show("success", json!(offer.success));
    show("cost_usd", json!(offer.cost));
    show("worst_case_usd", json!(offer.worst.money));
    show("seconds", offer.seconds_guess.unwrap_or(offer.seconds).into());
    if offer.seconds_guess.is_some() {
        show("seconds_guessed", true.into());
    }
    show("value_usd", offer.value.into());
    Value::Object(shown)
}

/// A model at its best, and the chance with which a request takes it: 1 or 0 on a route that does not explore.
fn contender(contender: &Contender) -> Value {
    json!({ "model": &*contender.model, "propensity": contender.propensity })
}

fn refused(model: &str, refusal: &PlanRefusal) -> Value {
    json!({ "model": model, "code": refusal.code(), "message": refusal.to_string() })
}
