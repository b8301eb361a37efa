//! The state that the API's handlers share. The route table in `routes` puts it beside each of them.

use std::fmt;
use std::sync::Arc;

use axum::response::Response;

use crate::gateway::Gateway;
use crate::guardrail::Guardrails;
use crate::oidc::TokenVerifier;
use crate::traces::Tracer;
use stint_ledger::RequestScope;
use stint_sessions::agent::conversations::ConversationService;
use stint_sessions::agent::stored::ResponseService;
use stint_sessions::idempotency::Idempotency;
use stint_types::metrics::Metrics;
use stint_types::tenant::{KeyLookup, Tenant};

use super::headers;
use super::settings::Settings;

/// What the API's handlers work with.
pub struct ApiState {
    /// Limits of requests, and the effort words.
    pub settings: Settings,
    /// Which key belongs to which tenant.
    pub keys: KeyLookup,
    /// Who takes tokens of issuers, where there are any.
    pub tokens: Option<TokenVerifier>,
    /// Who judges requests and answers.
    pub guardrails: Guardrails,
    /// Plans, runs and settles requests.
    pub gateway: Gateway,
    /// Answers that were given under callers' idempotency keys.
    pub idempotency: Idempotency,
    /// Stored responses.
    pub responses: ResponseService,
    /// Stored conversations.
    pub conversations: ConversationService,
    /// The series that Prometheus reads.
    pub metrics: Arc<Metrics>,
    /// Begins the traces of requests, where they go somewhere.
    pub tracer: Option<Tracer>,
    /// Sets the gauges that are computed on demand, before `/metrics` is rendered.
    pub refresh: Box<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for ApiState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiState").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl ApiState {
    /// The answer with headers that say how the tightest limit stands that a request of this scope is under.
    pub(super) fn with_limit_headers(
        &self,
        tenant: &Tenant,
        about: &RequestScope,
        mut response: Response,
    ) -> Response {
        let statement = self.gateway.request_statement(&tenant.account, about);
        headers::set_tightest_limit(response.headers_mut(), &statement, self.gateway.now());
        response
    }
}
