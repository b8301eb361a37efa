//! `POST /admin/try`: a chat completion of the playground. It goes the whole way of the API, with the key that its user types,
//! under that key's limits: the admin's token alone spends nobody's money.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, Uri, header};
use axum::response::Response;
use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::http::admin::state::AdminState;
use crate::http::error::ApiError;
use crate::http::front;
use stint_types::catalog::Service;

/// Where the page puts the key: the other headers have the token.
const KEY: HeaderName = HeaderName::from_static("x-playground-key");

/// How many models and routes are listed.
const MODELS_MAX: usize = 1000;

const COMPLETIONS: &str = "/v1/chat/completions";

/// What is passed on of the page's headers.
const PASSED: [HeaderName; 4] = [header::HOST, header::CONTENT_TYPE, header::CONTENT_LENGTH, header::ACCEPT];

/// Answers as `POST /v1/chat/completions` does.
pub(in crate::http::admin) async fn ask(
    State(admin): State<Arc<AdminState>>,
    mut request: Request<Body>,
) -> Result<Response, ApiError> {
    let mut api = admin.require_page()?.api.clone();
    let headers = headers(request.headers())?;
    *request.headers_mut() = headers;
    *request.uri_mut() = Uri::from_static(COMPLETIONS);
    Ok(match tower_service::Service::call(&mut api, request).await {
        Ok(response) => response,
        Err(never) => match never {},
    })
}

/// Who can be asked, what, and whether a key is needed for it.
pub(super) fn models(admin: &AdminState, gateway: &Gateway) -> Value {
    let catalog = gateway.catalog();
    let routes = catalog.routes.keys().map(|name| json!({ "id": name, "thinking_max": null }));
    let chats = catalog.models.values().filter(|model| model.services.contains(&Service::Chat));
    let models = chats.map(|model| json!({ "id": model.name, "thinking_max": model.thinking_max }));
    json!({
        "models": routes.chain(models).take(MODELS_MAX).collect::<Vec<_>>(),
        "needs_key": !admin.directory.keys().is_open(),
        "example": front::question(catalog),
    })
}

fn headers(given: &HeaderMap) -> Result<HeaderMap, ApiError> {
    let mut headers = HeaderMap::new();
    for name in PASSED {
        if let Some(value) = given.get(&name) {
            headers.insert(name, value.clone());
        }
    }
    if let Some(key) = given.get(KEY).filter(|key| !key.is_empty()) {
        let bearer = [b"Bearer ", key.as_bytes()].concat();
        let wrong =
            |_| ApiError::invalid(Some(KEY.as_str()), "must be a key, as `stint keys new` makes them");
        let mut value = HeaderValue::from_bytes(&bearer).map_err(wrong)?;
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
    Ok(headers)
}
