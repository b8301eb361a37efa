//! The small pages: models, allowance, health, metrics.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use crate::gateway::{Gateway, PaceStatus, Readiness};
use crate::oidc::KeyWait;
use stint_ledger::{LimitStatus, OutageStatus};
use stint_types::catalog::{Catalog, Model, OffPeak, Prices, Rates, Tariff};
use stint_types::units::{Money, Unit};

use super::anthropic;
use super::api_state::ApiState;
use super::auth;
use super::error::{ApiError, codes};
use super::json_response::json_response;
use super::path_params::PathParams;
use super::rounding::rounded;

/// `GET /v1/models`: real models and routes, and what the effort words mean here.
pub(super) async fn models(
    State(service): State<Arc<ApiState>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let tenant = auth::tenant(&service, &headers)?;
    if anthropic::models::speaks(&headers) {
        let listed = listing(&service.gateway, &service.gateway.catalog_of(&tenant));
        return anthropic::models::page(&listed, query.as_deref()).map(|page| json_response(&page));
    }
    let efforts = service.settings.efforts.iter().map(|(word, effort)| (word.clone(), effort.get().into()));
    Ok(json_response(&json!({
        "object": "list",
        "data": listing(&service.gateway, &service.gateway.catalog_of(&tenant)),
        "efforts": efforts.collect::<Map<String, Value>>(),
    })))
}

/// `GET /v1/models/{id}`; names may have slashes.
pub(super) async fn model(
    State(service): State<Arc<ApiState>>,
    headers: HeaderMap,
    PathParams(name): PathParams<String>,
) -> Result<Response, ApiError> {
    let tenant = auth::tenant(&service, &headers)?;
    let found = listing(&service.gateway, &service.gateway.catalog_of(&tenant))
        .into_iter()
        .find(|model| model["id"] == name.as_str());
    let missing = || ApiError::from(service.gateway.unknown(&tenant, &name));
    let shown = |model: Value| {
        if anthropic::models::speaks(&headers) { anthropic::models::model(&model) } else { model }
    };
    found.map(|model| json_response(&shown(model))).ok_or_else(missing)
}

fn listing(gateway: &Gateway, catalog: &Catalog) -> Vec<Value> {
    let models = catalog.models.values().map(|model| {
        let mut shown = model_page(model);
        if let Some(outage) = gateway.outage(&model.name) {
            shown["unavailable"] = (*outage.reason).into();
        }
        if let Some(is_loaded) = gateway.is_loaded(&model.name) {
            shown["loaded"] = is_loaded.into();
        }
        shown
    });
    let routes = catalog.routes.values().map(|route| {
        let members: Vec<&str> = if route.models.is_empty() {
            catalog.models.keys().map(AsRef::as_ref).collect()
        } else {
            route.models.iter().map(AsRef::as_ref).collect()
        };
        json!({ "id": &*route.name, "object": "model", "created": 0, "owned_by": "stint", "route": members })
    });
    routes.chain(models).collect()
}

fn model_page(model: &Model) -> Value {
    let mut shown = json!({
        "id": &*model.name,
        "object": "model",
        "created": 0,
        "owned_by": "stint",
        "context_length": model.knows_context().then_some(model.context),
        "output_max": model.output_max,
        "thinking_max": model.thinking_max,
        "enforced": model.classes.first().map(|class| class.as_str()),
        "serves": model.services.iter().map(|service| service.as_str()).collect::<Vec<_>>(),
        "capabilities": model.capabilities.iter().map(|capability| capability.as_str()).collect::<Vec<_>>(),
        "price": model.tariff.map(price),
    });
    if let (None, Some(reference)) = (model.tariff, model.reference) {
        shown["weighed_at"] = price(reference);
    }
    shown
}

/// What a model costs: what differs from the list only where it does.
fn price(tariff: Tariff) -> Value {
    let mut price = rates(&tariff.rates);
    if let Some((above, long)) = &tariff.long {
        price["long_context"] = rates(long);
        price["long_context"]["above_tokens"] = json!(above);
    }
    if tariff.call > Money::ZERO {
        price["call_usd"] = json!(tariff.call);
    }
    if let Some(OffPeak { percent, peak_hours, weekends }) = tariff.off_peak {
        let hours: Vec<u32> = (0..24).filter(|hour| peak_hours & (1 << hour) != 0).collect();
        price["off_peak"] = json!({ "percent": percent, "peak_hours_utc": hours, "weekends": weekends });
    }
    price
}

fn rates(rates: &Rates) -> Value {
    let Prices { input, output } = rates.list;
    let mut price = json!({ "input_usd_per_million": input, "output_usd_per_million": output });
    let of_caches = [
        ("cache_read_usd_per_million", rates.cache_read),
        ("cache_write_usd_per_million", rates.cache_write),
        ("cache_write_hour_usd_per_million", rates.cache_hour),
    ];
    for (name, own) in of_caches.into_iter().filter(|(_, own)| *own != input) {
        price[name] = json!(own);
    }
    price
}

/// `GET /v1/allowance`: what this key has left.
pub(super) async fn allowance(
    State(service): State<Arc<ApiState>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let tenant = auth::tenant(&service, &headers)?;
    let statement = service.gateway.statement(&tenant).await;
    let lines = statement.iter().map(|line| {
        let mut shown = limit(line);
        if let Some(standing) = service.gateway.pace_status(&tenant.account, line) {
            shown["pace"] = pace(standing);
        }
        shown
    });
    Ok(json_response(&json!({ "limits": lines.collect::<Vec<_>>() })))
}

/// How a budget stands to its pace: what a dollar of it counts now, what is spent of it and what may be for it to last.
pub(super) fn pace(standing: PaceStatus) -> Value {
    let PaceStatus { price, rate, target } = standing;
    let (hourly, target) = (rate * 3_600.0, target * 3_600.0);
    rounded(json!({ "shadow_price": price, "usd_per_hour": hourly, "target_usd_per_hour": target }))
}

/// How one limit stands.
pub(super) fn limit(line: &LimitStatus) -> Value {
    let unit = match line.limit.unit {
        Unit::Money => "usd",
        Unit::Thinking => "tokens",
        Unit::Requests | Unit::Concurrency => "requests",
        Unit::ToolCalls => "tool_calls",
    };
    json!({
        "limit": line.limit.to_string(),
        "unit": unit,
        "max": line.max,
        "spent": line.spent,
        "reserved": line.reserved,
        "left": line.left,
        "resets_at": line.resets_at,
    })
}

/// `GET /healthz`: the process is alive.
pub(super) async fn healthz() -> &'static str {
    "alive\n"
}

/// `GET /readyz`: new requests can be served.
pub(super) async fn readyz(State(service): State<Arc<ApiState>>) -> (StatusCode, String) {
    match why_not_ready(&service.gateway.readiness()) {
        None => (StatusCode::OK, "ready\n".to_owned()),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")),
    }
}

/// Why new requests cannot be served, where that is so.
pub(super) fn why_not_ready(readiness: &Readiness) -> Option<String> {
    Some(match readiness {
        Readiness::Ready => return None,
        Readiness::Stopping => "shutting down".to_owned(),
        Readiness::LedgerUnavailable { outage: None } => {
            "the ledger cannot record new requests right now".to_owned()
        }
        Readiness::LedgerUnavailable { outage: Some(OutageStatus { since, fault }) } => {
            let why = fault.map_or(String::new(), |fault| format!(" ({})", fault.as_str()));
            format!("the database is gone since {since}{why}; new requests are refused until it is back")
        }
        Readiness::NoModel(outage) => format!("no model can be asked: {}", outage.reason),
    })
}

/// `GET /metrics` beside the API. It shows all accounts and what they spend, so that from the first key on it needs one that may
/// use the admin API: a reverse proxy on this machine calls from loopback too.
pub(super) async fn metrics_for_admins(
    State(service): State<Arc<ApiState>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    // What monitors this gateway learns at once how an issuer that does not answer makes it.
    auth::admit_token(&service.keys, service.tokens.as_ref(), &headers, KeyWait::Never).await?;
    let tenant = auth::tenant(&service, &headers)?;
    if tenant.key.is_some() && tenant.access.role.is_none() {
        let message = "the metrics show all accounts: ask with a key that has a role, or on the listener that \
                       [server] metrics_listen gives them";
        return Err(ApiError::forbidden(message).with_code(codes::NOT_ADMIN));
    }
    Ok(metrics(State(service)).await)
}

/// `GET /metrics` on a listener of its own.
pub(super) async fn metrics(State(service): State<Arc<ApiState>>) -> Response {
    (service.refresh)();
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], service.metrics.render())
        .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_shown_without_the_digits_that_its_sums_leave() {
        let shown = pace(PaceStatus { price: 0.1 + 0.2, rate: 1.0 / 3.0, target: 0.5 });
        let expected =
            json!({ "shadow_price": 0.3, "usd_per_hour": 1_200.0, "target_usd_per_hour": 1_800.0 });
        assert_eq!(shown, expected);
    }
}
