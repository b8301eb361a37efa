//! Limits how many requests of one account are in flight, from however many addresses they come: where there are keys, none takes
//! all connections, nor all places of the gateway, from the others.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use axum::response::{IntoResponse, Response};

use crate::oidc::KeyWait;
use stint_types::units::AccountId;

use super::api_state::ApiState;
use super::error::ApiError;
use super::held_body::hold;
use super::requests_in_flight::RequestsInFlight;
use super::{auth, body_limiter};

/// What the counter calls a request that was refused for its account.
pub(super) const ACCOUNT: &str = "account";

/// The requests in flight of each account. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct AccountRequests(RequestsInFlight<AccountId>);

/// Counts a request from its head to the end of its answer, and refuses those beyond the share of its account. A
/// token of an issuer is checked here; whose key is not accepted is told so by what is behind this.
pub(super) async fn limit<F: Future<Output = Response>>(
    service: &ApiState,
    requests: &AccountRequests,
    request: Request<Body>,
    next: impl FnOnce(Request<Body>) -> F,
) -> Response {
    let tokens = service.tokens.as_ref();
    if let Err(refused) = auth::admit_token(&service.keys, tokens, request.headers(), KeyWait::Shortly).await
    {
        return refused.into_response();
    }
    let tenant = auth::tenant(service, request.headers()).ok().filter(|tenant| tenant.key.is_some());
    let Some(tenant) = tenant else { return next(request).await };
    let most = service.settings.account_requests_max;
    let Some(counted) = requests.0.begin(tenant.account.clone(), most) else {
        service.metrics.requests.turned_away.with_label_values(&[ACCOUNT]).inc();
        return crowded(most).into_response();
    };
    body_limiter::assign(request.extensions(), &tenant);
    next(request).await.map(|body| hold(body, counted))
}

fn crowded(most: usize) -> ApiError {
    let message = format!(
        "this account has {most} requests in flight, as many as [server] account_requests_max allows; try again \
         when some of them have ended"
    );
    ApiError::rate_exceeded(message, Duration::from_secs(1))
}
