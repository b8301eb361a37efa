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
use crate::gateway::{Agents, Gateway, Parts};
use crate::http::{self, Door, Service};
use crate::tenant::Keys;

use super::build::BuildError;
use super::models::Served;
use super::plant::Plant;
use super::reload::Reloads;
use super::{directory, refresh};

/// A configuration, and what was made of it.
pub(super) struct Generation {
    pub(super) settings: Settings,
    pub(super) served: Arc<Served>,
    pub(super) gateway: Gateway,
}

/// What has to be had for a generation, and may not be.
pub(super) struct Means {
    pub(super) served: Served,
    pub(super) calibration: Calibration,
}

impl Generation {
    /// The first one.
    pub(super) fn first(plant: &Plant, settings: Settings, means: Means) -> Generation {
        let (served, parts) = parts(plant, &settings, means, plant.agents.clone());
        Generation { gateway: Gateway::new(parts), settings, served }
    }

    /// The one after this.
    pub(super) fn next(&self, plant: &Plant, settings: Settings, means: Means) -> Generation {
        let agents = plant.agents.held_by(settings.agents.clone());
        let (served, parts) = parts(plant, &settings, means, agents);
        Generation { gateway: self.gateway.renewed(parts), settings, served }
    }

    /// What answers at each listener, for whoever has one of these keys.
    pub(super) fn routes(&self, plant: &Plant, keys: Keys, reloads: &Reloads) -> Routes {
        let settings = &self.settings;
        let service = Arc::new(Service {
            settings: settings.http.clone(),
            keys,
            gateway: self.gateway.clone(),
            idempotency: plant.idempotency.clone(),
            responses: plant.responses.clone(),
            conversations: plant.conversations.clone(),
            metrics: plant.metrics.clone(),
            refresh: self.refresh(plant),
        });
        let admin = settings.admin.clone().map(|access| {
            let standing = directory::standing(self.gateway.clone());
            let gateway = Some(self.gateway.clone());
            let admin = directory::admin(
                settings,
                access,
                plant.directory.clone(),
                standing,
                reloads.asker(),
                gateway,
            );
            http::admin::admin(&admin)
        });
        Routes {
            api: http::api_within(&service, plant.room.resized(&settings.http)),
            metrics: settings.http.metrics_listen.map(|_| http::monitoring(&service)),
            admin,
        }
    }

    /// Brings the series up to date that are read when somebody looks.
    fn refresh(&self, plant: &Plant) -> Box<dyn Fn() + Send + Sync> {
        let (metrics, ledger) = (plant.metrics.clone(), plant.ledger.clone());
        let (accounts, served) = (refresh::declared(&plant.directory.book()), self.served.clone());
        let gateway = self.gateway.clone();
        Box::new(move || {
            refresh::refresh(&metrics, &ledger, &accounts, &served);
            gateway.show_fleets();
            gateway.show_pace(&accounts);
        })
    }

    /// The models that it serves, for a line of the log.
    pub(super) fn models(&self) -> String {
        let models = self.settings.catalog.models.keys();
        models.map(|name| &**name).collect::<Vec<_>>().join(", ")
    }
}

fn parts(plant: &Plant, settings: &Settings, means: Means, agents: Agents) -> (Arc<Served>, Parts) {
    let parts = Parts {
        settings: settings.gateway.clone(),
        tasks: plant.work.clone(),
        metrics: plant.metrics.clone(),
        ledger: plant.ledger.clone(),
        catalog: settings.catalog.clone(),
        fleets: means.served.fleets(),
        calibration: means.calibration,
        learning: plant.learning.clone(),
        agents,
    };
    (Arc::new(means.served), parts)
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
pub(super) struct Routes {
    api: Router,
    metrics: Option<Router>,
    admin: Option<Router>,
}

/// The ways in, one for each listener. They stay while generations come and go.
#[derive(Debug, Clone)]
pub(super) struct Doors {
    pub(super) api: Door,
    pub(super) metrics: Option<Door>,
    pub(super) admin: Option<Door>,
}

impl Doors {
    pub(super) fn new(settings: &http::Settings, routes: Routes) -> Doors {
        let door = |routes| Door::new(settings.clone(), routes);
        let Routes { api, metrics, admin } = routes;
        Doors { api: door(api), metrics: metrics.map(door), admin: admin.map(door) }
    }

    /// Requests that begin from now on go this way.
    pub(super) fn lead_to(&self, settings: &http::Settings, routes: Routes) {
        let Routes { api, metrics, admin } = routes;
        let ways =
            [(Some(&self.api), Some(api)), (self.metrics.as_ref(), metrics), (self.admin.as_ref(), admin)];
        for (door, routes) in ways {
            if let (Some(door), Some(routes)) = (door, routes) {
                door.replace(settings.clone(), routes);
            }
        }
    }
}
