//! One configuration in force: the catalogue, what serves its models, and the routes of every listener.
//!
//! A generation never changes. The next one is built beside it and takes its place at the doors; requests hold the one that
//! they began with, and when the last of them has gone, so has it, with the connections, the engines and the tasks that no
//! other has taken over.

use std::sync::Arc;

use axum::Router;

use crate::catalog::{Calibration, Model};
use crate::config::Settings;
use crate::estimate;
use crate::gateway::{EpisodeManager, Gateway, GatewayParts};
use crate::http::{self, ApiState, SwappableRouter};
use crate::tenant::KeyLookup;

use super::build::BuildError;
use super::models::ModelRegistry;
use super::reload::ReloadHandle;
use super::shared_state::SharedState;
use super::{directory, refresh};

/// A configuration, and what was made of it.
pub(super) struct ConfigSnapshot {
    pub(super) settings: Settings,
    pub(super) registry: Arc<ModelRegistry>,
    pub(super) gateway: Gateway,
}

/// What has to be had for a generation, and may not be.
pub(super) struct Loaded {
    pub(super) registry: ModelRegistry,
    pub(super) calibration: Calibration,
}

impl ConfigSnapshot {
    /// The first one.
    pub(super) fn first(plant: &SharedState, settings: Settings, means: Loaded) -> ConfigSnapshot {
        let (served, parts) = gateway_parts(plant, &settings, means, plant.agents.clone());
        ConfigSnapshot { gateway: Gateway::new(parts), settings, registry: served }
    }

    /// The one after this.
    pub(super) fn next(&self, plant: &SharedState, settings: Settings, means: Loaded) -> ConfigSnapshot {
        let agents = plant.agents.with_settings(settings.agents.clone());
        let (served, parts) = gateway_parts(plant, &settings, means, agents);
        ConfigSnapshot { gateway: self.gateway.with_parts(parts), settings, registry: served }
    }

    /// What answers at each listener, for whoever has one of these keys.
    pub(super) fn routes(&self, plant: &SharedState, keys: KeyLookup, reloads: &ReloadHandle) -> RouterSet {
        let settings = &self.settings;
        let service = Arc::new(ApiState {
            settings: settings.http.clone(),
            keys,
            gateway: self.gateway.clone(),
            idempotency: plant.idempotency.clone(),
            responses: plant.responses.clone(),
            conversations: plant.conversations.clone(),
            metrics: plant.metrics.clone(),
            refresh: self.metrics_refresher(plant),
        });
        let admin = settings.admin.clone().map(|access| {
            let standing = directory::ledger_statement(self.gateway.clone());
            let gateway = Some(self.gateway.clone());
            let admin = directory::admin(
                settings,
                access,
                plant.directory.clone(),
                standing,
                reloads.as_callback(),
                gateway,
            );
            http::admin::admin(&admin)
        });
        RouterSet {
            api: http::api_with_limiter(&service, plant.body_limiter.resized(&settings.http)),
            metrics: settings.http.metrics_listen.map(|_| http::monitoring(&service)),
            admin,
        }
    }

    /// Brings the series up to date that are read when somebody looks.
    fn metrics_refresher(&self, plant: &SharedState) -> Box<dyn Fn() + Send + Sync> {
        let (metrics, ledger) = (plant.metrics.clone(), plant.ledger.clone());
        let (accounts, served) =
            (refresh::declared_accounts(&plant.directory.snapshot()), self.registry.clone());
        let gateway = self.gateway.clone();
        Box::new(move || {
            refresh::refresh(&metrics, &ledger, &accounts, &served);
            gateway.refresh_fleet_metrics();
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
    plant: &SharedState,
    settings: &Settings,
    means: Loaded,
    agents: EpisodeManager,
) -> (Arc<ModelRegistry>, GatewayParts) {
    let parts = GatewayParts {
        settings: settings.gateway.clone(),
        tasks: plant.request_tasks.clone(),
        metrics: plant.metrics.clone(),
        ledger: plant.ledger.clone(),
        catalog: settings.catalog.clone(),
        fleets: means.registry.fleets(),
        calibration: means.calibration,
        learning: plant.learning.clone(),
        episodes: agents,
    };
    (Arc::new(means.registry), parts)
}

/// What ships with the binary, how able each model is said or guessed to be, and how long it is said to think.
pub(super) fn calibration(settings: &Settings) -> Result<Calibration, BuildError> {
    let shipped = estimate::shipped().map_err(BuildError::Calibration)?;
    let tariff = |name| settings.catalog.models.get(name).and_then(|model| model.tariff.as_ref());
    let served = settings.backends.iter().flat_map(|backend| &backend.models);
    let abilities = served.map(|model| {
        let guess = || estimate::ability(tariff(&model.name));
        (model.name.clone(), model.ability.unwrap_or_else(guess))
    });
    let usual =
        |model: &Arc<Model>| Some((model.name.clone(), model.thought_usual()?.as_f64().max(1.0).ln()));
    let thoughts = settings.catalog.models.values().filter_map(usual).collect();
    Ok(Calibration { abilities: abilities.collect(), thoughts, ..shipped })
}

/// What answers at each listener.
pub(super) struct RouterSet {
    api: Router,
    metrics: Option<Router>,
    admin: Option<Router>,
}

/// The ways in, one for each listener. They stay while generations come and go.
#[derive(Debug, Clone)]
pub(super) struct SwappableRouterSet {
    pub(super) api: SwappableRouter,
    pub(super) metrics: Option<SwappableRouter>,
    pub(super) admin: Option<SwappableRouter>,
}

impl SwappableRouterSet {
    pub(super) fn new(settings: &http::Settings, routes: RouterSet) -> SwappableRouterSet {
        let door = |routes| SwappableRouter::new(settings.clone(), routes);
        let RouterSet { api, metrics, admin } = routes;
        SwappableRouterSet { api: door(api), metrics: metrics.map(door), admin: admin.map(door) }
    }

    /// Requests that begin from now on go this way.
    pub(super) fn replace_all(&self, settings: &http::Settings, routes: RouterSet) {
        let RouterSet { api, metrics, admin } = routes;
        let ways =
            [(Some(&self.api), Some(api)), (self.metrics.as_ref(), metrics), (self.admin.as_ref(), admin)];
        for (door, routes) in ways {
            if let (Some(door), Some(routes)) = (door, routes) {
                door.replace(settings.clone(), routes);
            }
        }
    }
}
