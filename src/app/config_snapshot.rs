//! One configuration in force: the catalogue, what serves its models, and the routes of every listener.
//!
//! A snapshot never changes. A reload builds the next one beside it and swaps it in at the listeners. Requests hold the snapshot
//! that they began with. It is dropped after the last of them, with the connections, engines and tasks that no later snapshot
//! took over.

use std::sync::Arc;

use axum::{Extension, Router};

use crate::config::{ModelConfig, Settings};
use crate::gateway::{EpisodeManager, Gateway, GatewayParts};
use crate::guardrail::Guardrails;
use crate::http::admin::{AdminState, PageLink, PageState};
use crate::http::{self, AdminSettings, ApiState, SwappableRouter};
use crate::oidc::{IssuerSettings, TokenVerifier};
use stint_decide::estimate;
use stint_types::catalog::{Calibration, Model};
use stint_types::tenant::{AccountTerms, KeyLookup, NewKey, SecretToken};
use stint_types::units::Tokens;

use super::directory::{ServerParts, StoredParts};
use super::error::BuildError;
use super::ledger_monitor::{declared_accounts, limited_accounts, zero_warning_counters};
use super::model_registry::ModelRegistry;
use super::reload_handle::ReloadHandle;
use super::shared_state::SharedState;
use super::{directory, refresh};

/// A configuration, and what was built from it.
pub(super) struct ConfigSnapshot {
    pub(super) settings: Settings,
    pub(super) registry: Arc<ModelRegistry>,
    pub(super) gateway: Gateway,
    /// Who takes tokens of issuers, where there are any.
    pub(super) tokens: Option<TokenVerifier>,
    guardrails: Guardrails,
}

/// What a snapshot needs and what may fail to load.
pub(super) struct Loaded {
    pub(super) registry: ModelRegistry,
    pub(super) calibration: Calibration,
    pub(super) guardrails: Guardrails,
}

impl ConfigSnapshot {
    /// The first one.
    pub(super) fn first(
        shared: &SharedState,
        settings: Settings,
        loaded: Loaded,
        tokens: Option<TokenVerifier>,
    ) -> ConfigSnapshot {
        let guardrails = loaded.guardrails.clone();
        let (registry, parts) = gateway_parts(shared, &settings, loaded, shared.agents.clone());
        ConfigSnapshot { gateway: Gateway::new(parts), settings, registry, tokens, guardrails }
    }

    /// The one after this.
    pub(super) fn next(
        &self,
        shared: &SharedState,
        settings: Settings,
        loaded: Loaded,
        tokens: Option<TokenVerifier>,
    ) -> ConfigSnapshot {
        let agents = shared.agents.with_settings(settings.agents.clone());
        let guardrails = loaded.guardrails.clone();
        let (registry, parts) = gateway_parts(shared, &settings, loaded, agents);
        let gateway = self.gateway.with_parts(parts);
        ConfigSnapshot { gateway, settings, registry, tokens, guardrails }
    }

    /// The routers of all listeners, for callers with one of these keys.
    pub(super) fn routes(&self, shared: &SharedState, keys: KeyLookup, reloads: &ReloadHandle) -> RouterSet {
        let settings = &self.settings;
        let service = Arc::new(ApiState {
            settings: settings.http.clone(),
            keys,
            tokens: self.tokens.clone(),
            guardrails: self.guardrails.clone(),
            gateway: self.gateway.clone(),
            idempotency: shared.idempotency.clone(),
            responses: shared.responses.clone(),
            conversations: shared.conversations.clone(),
            metrics: shared.metrics.clone(),
            tracer: shared.tracer.clone(),
            refresh: self.metrics_refresher(shared),
        });
        let api = http::api_with_limits(
            &service,
            shared.body_limiter.resized(&settings.http),
            shared.account_requests.clone(),
        );
        let admin = |access| self.admin_state(shared, reloads, access, api.clone());
        let page = self.open_page_access().map(|access| http::admin::open_page(&admin(access)));
        RouterSet {
            admin: settings.admin.clone().map(|access| http::admin::admin(&admin(access))),
            metrics: settings.http.metrics_listen.map(|_| http::monitoring(&service)),
            api: match page {
                Some(page) => api.layer(Extension(PageLink)).merge(page),
                None => api,
            },
        }
    }

    /// What the admin API and its page work with.
    fn admin_state(
        &self,
        shared: &SharedState,
        reloads: &ReloadHandle,
        access: AdminSettings,
        api: Router,
    ) -> Arc<AdminState> {
        let statement = directory::ledger_statement(self.gateway.clone());
        let page = PageState { metrics: shared.metrics.clone(), history: shared.page_history.clone(), api };
        let (gateway, tokens) = (self.gateway.clone(), self.tokens.clone());
        let (keys, content) = (shared.directory.clone(), shared.stored.clone());
        let stored = StoredParts { keys, statement, content };
        let server = Some(ServerParts { gateway, page, tokens });
        directory::admin(&self.settings, access, "/token", stored, reloads.as_callback(), server)
    }

    /// How the page is reached on the API's listener: from this machine alone, where no `[admin]` says otherwise. There is no
    /// token that would open more. Behind a proxy all callers come from its machine, so nobody gets it there.
    fn open_page_access(&self) -> Option<AdminSettings> {
        let (listen, is_elsewhere) = (self.settings.http.listen, self.settings.admin.is_some());
        let is_behind_proxy = !self.settings.http.trusted_proxies.is_empty();
        let nobody_has = || NewKey::generate().ok().map(|key| SecretToken::new(key.reveal()));
        let is_open = listen.ip().is_loopback() && !is_elsewhere && !is_behind_proxy;
        is_open.then(nobody_has).flatten().map(|token| AdminSettings {
            listen,
            token,
            hosts: Vec::new(),
            tls: None,
        })
    }

    /// Sets the gauges that are computed on demand.
    fn metrics_refresher(&self, shared: &SharedState) -> Box<dyn Fn() + Send + Sync> {
        let (metrics, ledger) = (shared.metrics.clone(), shared.ledger.clone());
        let directory = shared.directory.snapshot();
        let (accounts, limited) = (declared_accounts(&directory), limited_accounts(&directory));
        let (registry, gateway) = (self.registry.clone(), self.gateway.clone());
        Box::new(move || {
            refresh::refresh(&metrics, &ledger, &limited, &registry);
            gateway.refresh_fleet_metrics();
            registry.refresh_retired(&metrics);
            gateway.refresh_pacing_metrics(&accounts);
        })
    }

    /// The models that it serves, for a line of the log.
    pub(super) fn model_names(&self) -> String {
        let models = self.settings.catalog.models.keys();
        models.map(|name| &**name).collect::<Vec<_>>().join(", ")
    }
}

fn gateway_parts(
    shared: &SharedState,
    settings: &Settings,
    loaded: Loaded,
    agents: EpisodeManager,
) -> (Arc<ModelRegistry>, GatewayParts) {
    let parts = GatewayParts {
        settings: settings.gateway.clone(),
        tasks: shared.request_tasks.clone(),
        metrics: shared.metrics.clone(),
        ledger: shared.ledger.clone(),
        catalog: settings.catalog.clone(),
        fleets: loaded.registry.fleets(),
        calibration: loaded.calibration,
        learning: shared.learning.clone(),
        episodes: agents,
    };
    (Arc::new(loaded.registry), parts)
}

/// What takes tokens of the issuers of a configuration; nothing where there are none. The keys of the one before are kept.
pub(super) fn tokens(
    shared: &SharedState,
    settings: &Settings,
    before: Option<&TokenVerifier>,
) -> Result<Option<TokenVerifier>, BuildError> {
    if settings.issuers.is_empty() {
        return Ok(None);
    }
    let (directory, metrics) = (shared.directory.clone(), shared.metrics.clone());
    let issuers = settings.issuers.clone();
    zero_warning_counters(&metrics, &terms_of_profiles(&issuers));
    Ok(Some(TokenVerifier::start(issuers, before, directory, metrics, &shared.request_tasks)?))
}

/// What any account of a profile may spend.
fn terms_of_profiles(issuers: &[IssuerSettings]) -> Vec<AccountTerms> {
    let profiles =
        issuers.iter().flat_map(|issuer| issuer.profiles.iter().map(|profile| (&issuer.tree, profile)));
    let terms = profiles.map(|(tree, profile)| AccountTerms {
        limits: profile.limits.clone(),
        ..AccountTerms::unlimited(tree.clone())
    });
    terms.collect()
}

/// What ships with the binary, with each model's stated, published or guessed ability, its stated thinking length and what
/// was measured of it here.
pub(super) fn calibration(settings: &Settings) -> Result<Calibration, BuildError> {
    let shipped = estimate::shipped().map_err(BuildError::Calibration)?;
    let thinks = |name| {
        let model = settings.catalog.models.get(name);
        model.is_some_and(|model| model.thinking_max > Tokens::ZERO)
    };
    let served = settings.backends.iter().flat_map(|backend| &backend.models);
    let abilities = served.filter_map(|model| {
        let evidence = model.ability.as_ref()?;
        Some((model.name.clone(), evidence.ability(thinks(&model.name))))
    });
    let usual =
        |model: &Arc<Model>| Some((model.name.clone(), model.thought_usual()?.as_f64().max(1.0).ln()));
    let measured = |model: &ModelConfig| Some((model.name.clone(), model.curve.as_ref()?.curve));
    let curves = settings.backends.iter().flat_map(|backend| &backend.models).filter_map(measured).collect();
    let thoughts = settings.catalog.models.values().filter_map(usual).collect();
    Ok(Calibration { abilities: abilities.collect(), thoughts, curves, ..shipped })
}

/// The router of each listener.
pub(super) struct RouterSet {
    api: Router,
    metrics: Option<Router>,
    admin: Option<Router>,
}

/// The swappable router of each listener. They stay while snapshots come and go.
#[derive(Debug, Clone)]
pub(super) struct SwappableRouterSet {
    pub(super) api: SwappableRouter,
    pub(super) metrics: Option<SwappableRouter>,
    pub(super) admin: Option<SwappableRouter>,
}

impl SwappableRouterSet {
    pub(super) fn new(settings: &http::Settings, routes: RouterSet) -> SwappableRouterSet {
        let swappable = |routes| SwappableRouter::new(settings.clone(), routes);
        let RouterSet { api, metrics, admin } = routes;
        SwappableRouterSet {
            api: swappable(api),
            metrics: metrics.map(swappable),
            admin: admin.map(swappable),
        }
    }

    /// Sends requests that begin from now on to these routers.
    pub(super) fn replace_all(&self, settings: &http::Settings, routes: RouterSet) {
        let RouterSet { api, metrics, admin } = routes;
        let pairs =
            [(Some(&self.api), Some(api)), (self.metrics.as_ref(), metrics), (self.admin.as_ref(), admin)];
        for (router, routes) in pairs {
            if let (Some(router), Some(routes)) = (router, routes) {
                router.replace(settings.clone(), routes);
            }
        }
    }
}
