//! A request whose caller is known and whose body has arrived: how every endpoint that takes a JSON body begins.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Request};

use stint_types::tenant::Tenant;

use super::api_state::ApiState;
use super::error::ApiError;
use super::{auth, body, body_limiter};

/// A request whose caller is known and whose body has arrived.
#[derive(Debug)]
pub(super) struct ReceivedRequest {
    pub(super) tenant: Arc<Tenant>,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl ReceivedRequest {
    /// Finds the tenant of the key, then reads the JSON body.
    ///
    /// # Errors
    /// 401 before a byte of the body is read; as [`body::read`].
    pub(super) async fn receive(
        service: &ApiState,
        request: Request<Body>,
    ) -> Result<ReceivedRequest, ApiError> {
        let (parts, body) = request.into_parts();
        let tenant = auth::tenant(&service.keys, &parts.headers)?;
        body_limiter::assign(&parts.extensions, &tenant);
        let body = body::read(&parts.headers, body, &service.settings).await?;
        Ok(ReceivedRequest { tenant, headers: parts.headers, body })
    }
}
