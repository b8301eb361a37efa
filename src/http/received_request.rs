//! A request whose caller is known and whose body has arrived: how every endpoint that takes a JSON body begins.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Request};
use serde_json::{Map, Value};

use stint_types::tenant::Tenant;

use super::api_state::ApiState;
use super::error::ApiError;
use super::{auth, body, body_limiter, strict};

/// A request whose caller is known and whose body has arrived.
#[derive(Debug)]
pub(super) struct ReceivedRequest {
    pub(super) tenant: Arc<Tenant>,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// What is in the body.
    pub(super) members: Map<String, Value>,
}

impl ReceivedRequest {
    /// Finds the tenant of the key, then reads the JSON body.
    ///
    /// # Errors
    /// 401 before a byte of the body is read; as [`body::read`] and [`body::object`].
    pub(super) async fn receive(
        service: &ApiState,
        request: Request<Body>,
    ) -> Result<ReceivedRequest, ApiError> {
        ReceivedRequest::receive_values(service, request, strict::VALUES_MAX).await
    }

    /// The same, of a body that may have so many values.
    pub(super) async fn receive_values(
        service: &ApiState,
        request: Request<Body>,
        values_max: usize,
    ) -> Result<ReceivedRequest, ApiError> {
        let (parts, body) = request.into_parts();
        let tenant = auth::tenant(&service.keys, &parts.headers)?;
        body_limiter::assign(&parts.extensions, &tenant);
        let body = body::read(&parts.headers, body, &service.settings).await?;
        let members = body::object(&parts.extensions, &body, values_max).await?;
        Ok(ReceivedRequest { tenant, headers: parts.headers, body, members })
    }
}
