//! All settings of a gateway.

use std::path::PathBuf;

use reqwest::Url;

use crate::gateway;
use crate::guardrail::GuardrailSettings;
use crate::http;
use crate::oidc::IssuerSettings;
use crate::traces;
use stint_backend::fleet;
use stint_types::catalog::Catalog;
use stint_types::tenant::{AccountTerms, Tenant};

use super::backend::{BackendConfig, OpenRouterPrices};
use super::engine::EngineSettings;
use super::reader::Diagnostic;
use super::server::LoggingSettings;

/// Everything that the parts of a running gateway need to know, each in its own words.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The wire.
    pub http: http::Settings,
    /// The life of a request.
    pub gateway: gateway::Settings,
    /// How runs of agents are held.
    pub agents: stint_sessions::agent::Settings,
    /// What is remembered of requests with an idempotency key.
    pub idempotency: stint_sessions::idempotency::Settings,
    /// What is kept of responses that callers may come back to.
    pub responses: stint_sessions::agent::stored::Settings,
    /// What is learned from outcomes, and what is kept of them.
    pub learn: gateway::LearnSettings,
    /// How the ledger keeps up with its journal.
    pub ledger: stint_ledger::Settings,
    /// Where the ledger's journal is.
    pub storage: stint_storage::Settings,
    /// The local engine.
    pub engine: EngineSettings,
    /// True if a local model that cannot be loaded does not keep the others from being served.
    pub skips_unusable: bool,
    /// Models and routes.
    pub catalog: Catalog,
    /// Where what was found out about models is written down, where there is a place for it.
    pub learned: Option<PathBuf>,
    /// Whose prices are asked for now and then, where that is `OpenRouter`.
    pub openrouter: Option<OpenRouterPrices>,
    /// What serves the models.
    pub backends: Vec<BackendConfig>,
    /// How the targets of a model are treated.
    pub resilience: fleet::Settings,
    /// What accounts may spend, those of the tenants included.
    pub terms: Vec<AccountTerms>,
    /// Who signs tokens that are taken in place of keys.
    pub issuers: Vec<IssuerSettings>,
    /// Who judges requests and answers.
    pub guardrails: Vec<GuardrailSettings>,
    /// Whom to tell of limits that are nearly used up, and of overruns.
    pub webhook: Option<Url>,
    /// Where traces of requests go, if anywhere.
    pub traces: Option<traces::Settings>,
    /// Who may call; open to everyone who reaches the address where empty, `first_key` is absent, no key was ever
    /// stored and none is required.
    pub tenants: Vec<Tenant>,
    /// True if nobody is served without a key, though there be none.
    pub keys_required: bool,
    /// The listener of those who manage keys and accounts.
    pub admin: Option<http::AdminSettings>,
    /// Where the first start writes a key that it makes, and later starts find it.
    pub first_key: Option<PathBuf>,
    /// The log.
    pub log: LoggingSettings,
    /// True if there is a file, and anything in it.
    pub is_written: bool,
    /// What is right and hardly meant, each with its remedy.
    pub warnings: Vec<Diagnostic>,
}
