//! What serves each model of a configuration. `build` loads the first registry and `reload` the next, which takes over every
//! fleet and engine that would be built the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::{ModelConfig, Settings};
use stint_backend::fleet::{self, Fleet, LoadPoller};
use stint_backend::remote::Connections;
use stint_types::metrics::Metrics;
use stint_types::tasks::{EventLoopLag, Tasks};

use super::engine_limits;
use super::engines::{EngineRegistry, LoadedModel, MonitoredEngine, WeightsSpec};
use super::error::{BuildError, ModelError};
use super::model_fleet::{FleetBuilder, FleetSpec, ModelFleet};
use super::retired_fleets::RetiredFleets;

/// Fleets by the model that they serve.
pub(super) type Fleets = BTreeMap<Arc<str>, Arc<Fleet>>;

/// What serves each model.
#[derive(Debug, Default)]
pub(super) struct ModelRegistry {
    models: BTreeMap<Arc<str>, ModelFleet>,
    /// Those of all models, in this configuration and in earlier ones.
    connections: Connections,
    /// There where any engine publishes its load.
    poller: Option<LoadPoller>,
    /// The engines of this configuration and of earlier ones.
    engines: EngineRegistry,
    /// Those of earlier configurations whose last answers run.
    retired: RetiredFleets,
    /// How late this process's tasks wake: targets are not blamed for it.
    lag: EventLoopLag,
}

/// Builds every model's fleet, or keeps the one that it had before.
pub(super) fn load_models(
    settings: &Settings,
    before: &ModelRegistry,
    metrics: &Arc<Metrics>,
    tasks: &Tasks,
) -> Result<ModelRegistry, BuildError> {
    let mut registry = ModelRegistry {
        models: BTreeMap::new(),
        connections: before.connections.with_fresh_roots(),
        poller: load_poller(settings, before)?,
        engines: before.engines.clone(),
        retired: before.retired.clone(),
        lag: before.lag.clone(),
    };
    // What stays loaded comes first: the others have what is left.
    for stays in [true, false] {
        for backend in &settings.backends {
            for (number, model) in backend.models.iter().enumerate() {
                if model.source.stays_loaded() == stays {
                    let spec = FleetSpec::new(&backend.name, model, settings);
                    let builder = FleetBuilder {
                        settings,
                        metrics,
                        tasks,
                        engines: &registry.engines,
                        memory_taken: registry.memory_kept(),
                        poller: registry.poller.as_ref(),
                    };
                    let fleet = keep_or_build(
                        &builder,
                        before,
                        spec,
                        model,
                        &registry.connections.for_target(number),
                    )?;
                    fleet.fleet.set_lag(&registry.lag);
                    registry.models.insert(model.name.clone(), fleet);
                }
            }
        }
    }
    Ok(registry)
}

/// A model's fleet as it was before, where it would be built the same; else another one, on the same engine where it has the weights.
fn keep_or_build(
    builder: &FleetBuilder<'_>,
    before: &ModelRegistry,
    spec: FleetSpec,
    model: &ModelConfig,
    connections: &Connections,
) -> Result<ModelFleet, BuildError> {
    if let Some(kept) = before.reusable(&model.name, &spec, builder.memory_taken) {
        return Ok(kept.clone());
    }
    let local = before.loaded_model(&model.name, spec.weights.as_ref(), builder.memory_taken);
    match builder.build(spec.clone(), model, local, connections) {
        Err(error) if builder.settings.skips_unusable && spec.weights.is_some() => {
            Ok(builder.unavailable(spec, model, &error))
        }
        built => built.map_err(|error| BuildError::Model(model.name.clone(), error)),
    }
}

/// What polls engines that publish their load, where any does.
fn load_poller(settings: &Settings, before: &ModelRegistry) -> Result<Option<LoadPoller>, BuildError> {
    let mut models = settings.backends.iter().flat_map(|backend| &backend.models);
    let publishes = |model: &&ModelConfig| model.deployments.iter().any(|it| it.metrics_url.is_some());
    let Some(model) = models.find(publishes) else { return Ok(None) };
    let poller = before.poller.clone().map_or_else(LoadPoller::new, Ok);
    poller.map(Some).map_err(|error| BuildError::Model(model.name.clone(), ModelError::Poll(error)))
}

impl ModelRegistry {
    /// All fleets, by the model that they serve.
    pub(super) fn fleets(&self) -> Fleets {
        self.models.iter().map(|(name, made)| (name.clone(), made.fleet.clone())).collect()
    }

    /// Measures how late this process's tasks wake, until shutdown: for these fleets and all later ones.
    pub(super) fn measure_lag(&self, tasks: &Tasks, metrics: &Arc<Metrics>) {
        let metrics = metrics.clone();
        self.lag.measure(tasks, move |late| metrics.backends.event_loop_lag.inc_by(late.as_secs_f64()));
    }

    /// The engines among them.
    pub(super) fn engines(&self) -> impl Iterator<Item = &MonitoredEngine> {
        self.models.values().filter_map(|made| Some(&*made.local.as_ref()?.engine))
    }

    /// The engine of a model, where it has one.
    #[cfg(test)]
    pub(super) fn engine_of(&self, model: &str) -> Option<Arc<MonitoredEngine>> {
        Some(self.models.get(model)?.local.as_ref()?.engine.clone())
    }

    /// Lowers what the catalogue says of local models to what their engines have, so that no plan offers what would be refused.
    pub(super) fn apply_engine_limits(&self, settings: &mut Settings) {
        for served in settings.backends.iter().flat_map(|backend| &backend.models) {
            let local = self.models.get(&served.name).and_then(|fleet| fleet.local.as_ref());
            let model = settings.catalog.models.get_mut(&served.name);
            if let Some((model, local)) = model.zip(local) {
                engine_limits::apply_engine_limits(Arc::make_mut(model), served.context, local.limits);
            }
        }
    }

    /// How many HTTP clients its models and those of earlier configurations have in common.
    #[cfg(test)]
    pub(super) fn connections(&self) -> usize {
        self.connections.count()
    }

    /// They serve from now on: their series begin, and fleets that were kept take the new settings.
    pub(super) fn activate(&self, resilience: fleet::Settings) {
        self.engines.set_wait_max(resilience.wait_max);
        for made in self.models.values() {
            made.fleet.zero_metrics();
            made.fleet.reconfigure(resilience);
            made.local.iter().for_each(LoadedModel::activate);
        }
    }

    /// Stops every engine, those of earlier configurations too.
    pub(super) fn stop_engines(&self) {
        self.engines.stop();
    }

    /// Shows the calls that still run on fleets of earlier configurations.
    pub(super) fn refresh_retired(&self, metrics: &Metrics) {
        self.retired.refresh(&self.fleets(), metrics);
    }

    /// Removes the series of fleets that no longer serve.
    pub(super) fn remove_stale_series(&self, after: &ModelRegistry, metrics: &Metrics) {
        for (name, made) in &self.models {
            let is_kept = after.models.get(name).is_some_and(|next| Arc::ptr_eq(&next.fleet, &made.fleet));
            if !is_kept {
                made.fleet.remove_gauges();
                after.retired.add(name, &made.fleet);
                made.local.iter().for_each(|local| local.engine.remove_gauges(metrics));
            }
        }
    }

    fn reusable(&self, model: &str, spec: &FleetSpec, memory_taken: u64) -> Option<&ModelFleet> {
        let made = self.models.get(model).filter(|made| made.spec == *spec)?;
        if made.fleet.outage().is_some() {
            // The cause may be gone.
            return None;
        }
        let is_usable =
            |local: &LoadedModel| local.engine.is_alive() && local.engine.fits_beside(memory_taken);
        made.local.as_ref().is_none_or(is_usable).then_some(made)
    }

    /// The engine that has a model's weights already.
    fn loaded_model(
        &self,
        model: &str,
        weights: Option<&WeightsSpec>,
        memory_taken: u64,
    ) -> Option<LoadedModel> {
        let local = self.models.get(model)?.local.clone();
        local.filter(|local| local.engine.is_running(weights, memory_taken))
    }

    /// Bytes of the device's memory that its models have and keep.
    fn memory_kept(&self) -> u64 {
        self.models.values().filter_map(|made| made.local.as_ref()).map(LoadedModel::memory_kept).sum()
    }
}
