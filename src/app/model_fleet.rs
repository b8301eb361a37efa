//! The fleet of one model: its targets, built from a specification that tells whether a reload may keep it. The model registry
//! builds one for each model.

use std::sync::Arc;

use reqwest::Url;

use crate::config::{Deployment, ModelConfig, ModelSource, Settings};
use stint_backend::fleet::{Fleet, LoadEndpoint, LoadPoller, OverloadSignal, Target};
use stint_backend::remote::Connections;
use stint_backend::{Backend, UnavailableBackend};
use stint_gguf::GgufError;
use stint_types::metrics::Metrics;
use stint_types::tasks::Tasks;

use super::backends::{build_backend, deployment_source};
use super::engines::{EngineContext, EngineRegistry, LoadedModel, WeightsSpec};
use super::error::{ModelError, error_chain};

/// A model's fleet, and what it was built from.
#[derive(Debug, Clone)]
pub(super) struct ModelFleet {
    pub(super) spec: FleetSpec,
    pub(super) fleet: Arc<Fleet>,
    pub(super) local: Option<LoadedModel>,
}

/// All that a fleet is built from. A fleet with an equal specification is kept across a reload, with its connections and all
/// that it knows of its targets.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FleetSpec {
    backend: Arc<str>,
    source: ModelSource,
    deployments: Vec<Deployment>,
    /// Whether its clients may send a request again that may have been received.
    sent_too: bool,
    pub(super) weights: Option<WeightsSpec>,
}

impl FleetSpec {
    /// That of a backend's model.
    pub(super) fn new(backend: &Arc<str>, model: &ModelConfig, settings: &Settings) -> FleetSpec {
        FleetSpec {
            backend: backend.clone(),
            source: model.source.clone(),
            deployments: model.deployments.clone(),
            sent_too: settings.resilience.retry.sent_too,
            weights: WeightsSpec::of(&model.source, &settings.engine),
        }
    }
}

/// What all fleets of a configuration are built with.
pub(super) struct FleetBuilder<'a> {
    pub(super) settings: &'a Settings,
    pub(super) metrics: &'a Arc<Metrics>,
    pub(super) tasks: &'a Tasks,
    pub(super) engines: &'a EngineRegistry,
    /// Bytes of the device's memory that models of this configuration have and keep.
    pub(super) memory_taken: u64,
    /// There where any engine publishes its load.
    pub(super) poller: Option<&'a LoadPoller>,
}

impl FleetBuilder<'_> {
    /// Builds a fleet. Its targets are the model's deployments, or the engine in this process, which says itself when it is
    /// full. `local` is an engine of the same weights.
    pub(super) fn build(
        &self,
        spec: FleetSpec,
        model: &ModelConfig,
        mut local: Option<LoadedModel>,
        connections: &Connections,
    ) -> Result<ModelFleet, ModelError> {
        let FleetBuilder { settings, metrics, engines, memory_taken, .. } = *self;
        let context =
            EngineContext { settings: &settings.engine, engines, metrics: Some(metrics), memory_taken };
        let mut backend = |source: &ModelSource, place: usize| {
            let connections = connections.for_target(place);
            build_backend(context, &model.name, source, &mut local, &connections)
        };
        let mut resilience = self.settings.resilience;
        if let Some(concurrency) = &mut resilience.concurrency {
            concurrency.signal = overload_signal(&model.deployments);
        }
        let mut targets = Vec::new();
        for (place, deployment) in model.deployments.iter().enumerate() {
            let backend = backend(&deployment_source(model, deployment, &resilience), place)?;
            let tokenizer_id = model.tokenizer_key(deployment);
            targets.push(Target { name: deployment.name.clone(), backend, tokenizer_id });
        }
        if targets.is_empty() {
            let backend = backend(&model.source, 0)?;
            // It has the tokenizer itself.
            targets.push(Target { name: spec.backend.clone(), backend, tokenizer_id: None });
            resilience.concurrency = None;
        }
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).map_err(ModelError::Randomness)?;
        let seed = u64::from_le_bytes(seed);
        let fleet = Fleet::new(model.name.clone(), targets, self.metrics.clone(), resilience, seed);
        if let Some(poller) = self.poller {
            poll_load(poller, self.tasks, &fleet, model);
        }
        Ok(ModelFleet { spec, fleet, local })
    }

    /// What stands for a local model that cannot be loaded. The log says why; callers learn no paths of ours.
    pub(super) fn unavailable(&self, spec: FleetSpec, model: &ModelConfig, error: &ModelError) -> ModelFleet {
        let chain = error_chain(error);
        tracing::error!(model = %model.name, error = chain, "it cannot be served, and is left out until another configuration");
        let reason = match error {
            ModelError::File(GgufError::Open { .. }) => "its file cannot be opened".to_owned(),
            other => other.to_string(),
        };
        let backend: Arc<dyn Backend> = Arc::new(UnavailableBackend::new(reason));
        let targets = vec![Target { name: spec.backend.clone(), backend, tokenizer_id: None }];
        let fleet =
            Fleet::new(model.name.clone(), targets, self.metrics.clone(), self.settings.resilience, 0);
        ModelFleet { spec, fleet, local: None }
    }
}

/// What lowers the limits of a model's targets. Where one of them is a provider's, only refusals do: waits say nothing then.
fn overload_signal(deployments: &[Deployment]) -> OverloadSignal {
    let only_refusals = deployments.iter().any(|deployment| deployment.signal == OverloadSignal::Refusals);
    if only_refusals { OverloadSignal::Refusals } else { OverloadSignal::Waits }
}

/// Listens to engines that publish their load.
fn poll_load(poller: &LoadPoller, tasks: &Tasks, fleet: &Arc<Fleet>, model: &ModelConfig) {
    for (place, deployment) in model.deployments.iter().enumerate() {
        let Some(url) = deployment.metrics_url.clone() else { continue };
        // A page somewhere else gets no key.
        let is_there = host(&url).is_some() && host(&url) == host(&deployment.client.base_url);
        let api_key = deployment.client.api_key.clone().filter(|_| is_there);
        let page = LoadEndpoint { url, api_key };
        poller.poll(tasks, fleet, place, page);
    }
}

fn host(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
}
