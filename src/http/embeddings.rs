//! `POST /v1/embeddings`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Request, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use crate::chat::{Embedding, Inputs};
use crate::gateway::Vectors;

use super::error::Problem;
use super::fields::Fields;
use super::repeat::{Asked, Turn};
use super::router::Service;
use super::surface::{self, Opened, open};
use super::{access_log, budget, episodes, headers, repeat, strict};

/// The most texts of one request, as OpenAI has it.
const INPUTS_MAX: usize = 2048;

/// Members that some upstreams understand and that do not change the bill.
const PASSED: &[&str] = &["encoding_format", "dimensions", "metadata", "safety_identifier", "user"];

/// Makes vectors of texts.
pub(super) async fn embeddings(
    State(service): State<Arc<Service>>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let Opened { tenant, headers, body } = open(&service, request).await?;
    let ask = read(&body, &headers)?;
    let asked = Asked { of: "embeddings", body: &body };
    let ticket = match repeat::turn(&service, &tenant, &headers, asked).await? {
        Turn::Run(ticket) => ticket,
        Turn::Said(response) => return Ok(surface::with_limits(&service, &tenant, response)),
    };
    access_log::note(|record| record.asked(&ask.model));
    let made = service.gateway.embed(&tenant, ask, ticket.clone()).await;
    if let Ok(made) = &made {
        access_log::note(|record| record.served(&made.model, made.prompt, made.cost));
    }
    let mut response = made.map(|vectors| written(&vectors)).map_err(Problem::from).into_response();
    if let Some(ticket) = ticket {
        response = repeat::keep(&ticket, response).await;
    }
    Ok(surface::with_limits(&service, &tenant, response))
}

fn written(vectors: &Vectors) -> Response {
    let mut budget = json!({
        "id": vectors.id.to_string(),
        "model": &*vectors.model,
        "cost_usd": vectors.cost,
        "reserved_usd": vectors.reserved,
        "estimated": vectors.estimated,
    });
    if let Some(told) = &vectors.told {
        budget["episode"] = episodes::run(told).into();
    }
    let body = json!({
        "object": "list",
        "data": vectors.data,
        "model": &*vectors.model,
        "usage": { "prompt_tokens": vectors.prompt, "total_tokens": vectors.prompt },
        "budget": budget,
    });
    let mut response = ([(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response();
    headers::request_id(response.headers_mut(), vectors.id);
    headers::cost(response.headers_mut(), vectors.cost);
    vectors.told.iter().for_each(|told| headers::episode(response.headers_mut(), &told.id));
    response
}

fn read(body: &[u8], headers: &HeaderMap) -> Result<Embedding, Problem> {
    let mut fields = Fields::of_body(strict::object(body)?);
    let model = fields.text("model")?.filter(|model| !model.is_empty()).ok_or_else(Problem::no_model)?;
    let inputs = inputs(&mut fields)?;
    let extra: Map<String, Value> = fields.pass(PASSED);
    let (episode, run) = budget::of_run(&mut fields, headers, &extra)?;
    fields.end()?;
    Ok(Embedding { model, inputs, episode, run, extra })
}

/// A text, a list of texts, a list of token ids, or a list of such lists.
fn inputs(fields: &mut Fields) -> Result<Inputs, Problem> {
    let must = || "must be a text, a list of texts, or token ids".to_owned();
    let wrong = |must: String| Problem::invalid(Some("input"), must);
    let inputs = match fields.take("input") {
        Some(Value::String(text)) => Inputs::Texts(vec![text]),
        Some(list @ Value::Array(_)) => of_list(list).ok_or_else(|| wrong(must()))?,
        _ => return Err(wrong(must())),
    };
    let empty = match &inputs {
        Inputs::Texts(texts) => texts.iter().any(String::is_empty),
        Inputs::Tokens(lists) => lists.iter().any(Vec::is_empty),
    };
    match inputs.len() {
        1..=INPUTS_MAX if !empty => Ok(inputs),
        1..=INPUTS_MAX => Err(wrong("must not be empty, nor any of its texts".to_owned())),
        0 => Err(wrong("must not be empty, nor any of its texts".to_owned())),
        _ => Err(wrong(format!("must have at most {INPUTS_MAX} texts; send them in several requests"))),
    }
}

fn of_list(list: Value) -> Option<Inputs> {
    if list.get(0).is_none_or(Value::is_string) {
        return serde_json::from_value(list).ok().map(Inputs::Texts);
    }
    if list.get(0).is_some_and(Value::is_array) {
        return serde_json::from_value(list).ok().map(Inputs::Tokens);
    }
    serde_json::from_value(list).ok().map(|ids| Inputs::Tokens(vec![ids]))
}
