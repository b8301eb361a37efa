//! A request whose caller is known and whose body has arrived: how every endpoint that takes a JSON body begins.

use std::sync::Arc;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Extensions, HeaderMap, Request};
use serde_json::{Map, Value};

use stint_types::tenant::Tenant;

use super::api_state::ApiState;
use super::body_limiter::ValueRoom;
use super::error::ApiError;
use super::idempotency_key::{BodyDigest, IDEMPOTENCY_KEY};
use super::{auth, body, body_limiter, strict};

/// A request whose caller is known and whose body has arrived.
#[derive(Debug)]
pub(super) struct ReceivedRequest {
    pub(super) tenant: Arc<Tenant>,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// What is in the body.
    pub(super) members: Map<String, Value>,
    /// What its idempotency key stands for, if it has one.
    pub(super) digest: Option<BodyDigest>,
    /// Where its body is counted.
    pub(super) extensions: Extensions,
}

/// What a request's endpoint makes of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestTerms {
    /// The most values of its body.
    pub(super) values_max: usize,
    /// True if it costs something: where nothing is left, it is not read.
    pub(super) is_charged: bool,
}

impl RequestTerms {
    /// Of a request that is answered by a model.
    pub(super) const CHARGED: RequestTerms =
        RequestTerms { values_max: strict::VALUES_MAX, is_charged: true };
    /// Of one that only asks about such a request.
    pub(super) const FREE: RequestTerms = RequestTerms { is_charged: false, ..RequestTerms::CHARGED };
}

/// The largest body that is read whatever is left: to refuse it later costs no more.
const READ_ALWAYS: u64 = 64 << 10;

impl ReceivedRequest {
    /// Finds the tenant of the key, then reads the JSON body.
    ///
    /// # Errors
    /// 401, or 429 where nothing is left to pay for a large one, before a byte of the body is read; as [`body::read`] and
    /// [`strict::object`].
    pub(super) async fn receive(
        service: &ApiState,
        request: Request<Body>,
        terms: RequestTerms,
    ) -> Result<ReceivedRequest, ApiError> {
        let (parts, body) = request.into_parts();
        let tenant = auth::tenant(service, &parts.headers)?;
        body_limiter::assign(&parts.extensions, &tenant);
        let is_large = body.size_hint().exact().is_none_or(|bytes| bytes > READ_ALWAYS);
        // A repeat gets the answer that was paid for.
        let may_repeat = parts.headers.contains_key(&IDEMPOTENCY_KEY);
        if terms.is_charged
            && is_large
            && !may_repeat
            && let Some(refusal) = service.gateway.spent(&tenant).await
        {
            return Err(refusal.into());
        }
        let body = body::read(&parts.headers, body, &service.settings).await?;
        let room = ValueRoom::of(&parts.extensions);
        let read = move |body: &[u8]| {
            let members = strict::object_within(body, terms.values_max, &room)?;
            let digest = may_repeat.then(|| BodyDigest::of(&members));
            Ok::<_, ApiError>((members, digest))
        };
        let (members, digest) = body::parse(&parts.extensions, &body, read).await??;
        let (headers, extensions) = (parts.headers, parts.extensions);
        Ok(ReceivedRequest { tenant, headers, body, members, digest, extensions })
    }
}
