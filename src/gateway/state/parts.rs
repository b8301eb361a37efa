//! `GatewayParts`: settings, catalogue, ledger and fleets. They are built once for each configuration, and read by every
//! request.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::gateway::{EpisodeManager, Learning, Settings};
use stint_backend::fleet::Fleet;
use stint_ledger::{AbandonPolicy, Ledger};
use stint_types::catalog::{Calibration, Catalog, Prices};
use stint_types::chat::Request;
use stint_types::metrics::{Metrics, OTHER};
use stint_types::tasks::Tasks;

/// What a gateway is made of.
pub struct GatewayParts {
    /// Limits of a request.
    pub settings: Settings,
    /// Background work.
    pub tasks: Tasks,
    /// What Prometheus sees.
    pub metrics: Arc<Metrics>,
    /// Accounts and reservations.
    pub ledger: Ledger,
    /// Models and routes.
    pub catalog: Catalog,
    /// Who serves each model; a fleet for every model of the catalogue.
    pub fleets: BTreeMap<Arc<str>, Arc<Fleet>>,
    /// What was learned about lengths and success before.
    pub calibration: Calibration,
    /// What is learned from outcomes.
    pub learning: Learning,
    /// Episodes of agents.
    pub episodes: EpisodeManager,
}

impl std::fmt::Debug for GatewayParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GatewayParts").field("catalog", &self.catalog).finish_non_exhaustive()
    }
}

impl GatewayParts {
    /// How long a request may take altogether.
    pub(crate) fn time_limit(&self, request: &Request) -> Duration {
        let stated = request.budget.deadline.map(|stated| stated.min(self.settings.deadline_max));
        stated.unwrap_or(self.settings.time_max)
    }

    /// The list prices of a model, where it has some.
    pub(crate) fn prices(&self, model: &str) -> Option<Prices> {
        let tariff = self.catalog.models.get(model).and_then(|model| model.tariff);
        tariff.map(|tariff| tariff.rates.list)
    }

    /// What is posted if a call of this model is never settled.
    pub(crate) fn if_abandoned(&self, model: &str) -> AbandonPolicy {
        let stops = self.catalog.models.get(model).is_some_and(|model| model.stops_billing);
        if stops { AbandonPolicy::PostMetered } else { AbandonPolicy::PostWhole }
    }

    /// A name of the catalogue as it is; a caller's invention as `other`.
    pub(crate) fn route_label(&self, name: &str) -> Arc<str> {
        let catalog = &self.catalog;
        let known = catalog.routes.get_key_value(name).map(|(name, _)| name);
        let known = known.or_else(|| catalog.models.get_key_value(name).map(|(name, _)| name));
        known.cloned().unwrap_or_else(|| OTHER.into())
    }
}
