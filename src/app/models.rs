//! The backend of every model: embedded, from a file, or remote.

use std::collections::BTreeMap;
use std::sync::Arc;

use reqwest::Url;

use crate::backend::fleet::{self, Fleet, LoadEndpoint, LoadPoller, OverloadSignal, Target};
use crate::backend::local::LocalModelLimits;
use crate::backend::remote::anthropic::AnthropicBackend;
use crate::backend::remote::gemini::GeminiBackend;
use crate::backend::remote::llamacpp::LlamaCppBackend;
use crate::backend::remote::openai::OpenAiBackend;
use crate::backend::remote::responses::OpenAiResponsesBackend;
use crate::backend::remote::vllm::VllmBackend;
use crate::backend::remote::{Connections, SettingsError};
use crate::backend::{Backend, UnavailableBackend};
use crate::catalog::Model;
use crate::config::{self, Deployment, ModelSource, Settings};
use crate::engine::{self, EngineError, GgufError};
use crate::metrics::Metrics;
use crate::prompt::PromptError;
use crate::tasks::{EventLoopLag, Tasks};

use super::build::BuildError;
use super::engine_limits;
use super::engines::{self, EngineRegistry, MonitoredEngine, WeightsSpec};

/// Fleets by the model that they serve.
pub(super) type Fleets = BTreeMap<Arc<str>, Arc<Fleet>>;

/// Why a model cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// Its file cannot be read.
    #[error(transparent)]
    File(#[from] GgufError),
    /// The engine cannot run it.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Its tokenizer or template cannot be used.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// Its upstream cannot be set up.
    #[error(transparent)]
    Upstream(#[from] SettingsError),
    /// Its engine's load cannot be asked for.
    #[error("no HTTP client can be made that asks the engine for its load")]
    Poll(#[source] reqwest::Error),
    /// The system gives no random numbers.
    #[error("no random numbers: {0}")]
    Randomness(getrandom::Error),
}

/// What serves each model.
#[derive(Debug, Default)]
pub(super) struct ModelRegistry {
    models: BTreeMap<Arc<str>, ModelFleet>,
    /// Those of all models, before and after this.
    connections: Connections,
    /// Where any engine says how busy it is.
    poller: Option<LoadPoller>,
    /// The engines of this configuration and of those before it.
    engines: EngineRegistry,
    /// How late this process's tasks wake, by which no target is judged.
    lag: EventLoopLag,
}

/// A model's fleet, and what it was made of.
#[derive(Debug, Clone)]
struct ModelFleet {
    spec: FleetSpec,
    fleet: Arc<Fleet>,
    local: Option<LoadedModel>,
}

/// A local model that is loaded.
#[derive(Debug, Clone)]
pub(super) struct LoadedModel {
    pub(super) engine: Arc<MonitoredEngine>,
    pub(super) measure: LocalModelLimits,
}

/// All that a fleet is made of. One that would be made of the same is kept, with its connections and all that it knows of
/// its targets.
#[derive(Debug, Clone, PartialEq)]
struct FleetSpec {
    backend: Arc<str>,
    source: ModelSource,
    deployments: Vec<Deployment>,
    /// Whether its clients may send again what was sent.
    sent_too: bool,
    weights: Option<WeightsSpec>,
}

/// Makes every model's fleet, or keeps the one that it had before.
pub(super) fn load_models(
    settings: &Settings,
    before: &ModelRegistry,
    metrics: &Arc<Metrics>,
    work: &Tasks,
) -> Result<ModelRegistry, BuildError> {
    let (connections, poller) = (before.connections.with_fresh_roots(), poller(settings, before)?);
    let (started, lag) = (before.engines.clone(), before.lag.clone());
    let mut served = ModelRegistry { models: BTreeMap::new(), connections, poller, engines: started, lag };
    for backend in &settings.backends {
        for (number, model) in backend.models.iter().enumerate() {
            let recipe = FleetSpec {
                backend: backend.name.clone(),
                source: model.source.clone(),
                deployments: model.deployments.clone(),
                sent_too: settings.resilience.retry.sent_too,
                weights: WeightsSpec::of(&model.source, &settings.engine),
            };
            let made = match before.reusable(&model.name, &recipe) {
                Some(kept) => kept.clone(),
                None => {
                    let shared = (&served.connections.for_target(number), served.poller.as_ref());
                    let made =
                        build_model(recipe.clone(), (settings, before), model, shared, (metrics, work));
                    match made {
                        Err(error) if settings.skips_unusable && recipe.weights.is_some() => {
                            unavailable(recipe, settings, model, &error, metrics)
                        }
                        made => made.map_err(|error| BuildError::Model(model.name.clone(), error))?,
                    }
                }
            };
            made.fleet.set_lag(&served.lag);
            served.models.insert(model.name.clone(), made);
        }
    }
    Ok(served)
}

/// What stands for a local model that cannot be loaded. The log says why; callers learn no paths of ours.
fn unavailable(
    recipe: FleetSpec,
    settings: &Settings,
    model: &config::ModelConfig,
    error: &ModelError,
    metrics: &Arc<Metrics>,
) -> ModelFleet {
    let in_full = super::check::error_chain(error);
    tracing::error!(model = %model.name, error = in_full, "it cannot be served, and is left out until another configuration");
    let reason = match error {
        ModelError::File(GgufError::Open { .. }) => "its file cannot be opened".to_owned(),
        other => other.to_string(),
    };
    let backend: Arc<dyn Backend> = Arc::new(UnavailableBackend::new(reason));
    let targets = vec![Target { name: recipe.backend.clone(), backend, tokenizer_id: None }];
    let fleet = Fleet::new(model.name.clone(), targets, metrics.clone(), settings.resilience, 0);
    ModelFleet { spec: recipe, fleet, local: None }
}

/// What listens to engines that publish their load, where any does.
fn poller(settings: &Settings, before: &ModelRegistry) -> Result<Option<LoadPoller>, BuildError> {
    let models = settings.backends.iter().flat_map(|backend| &backend.models);
    let publishes =
        |model: &&config::ModelConfig| model.deployments.iter().any(|it| it.metrics_url.is_some());
    let Some(model) = models.into_iter().find(publishes) else { return Ok(None) };
    let made = before.poller.clone().map_or_else(LoadPoller::new, Ok);
    made.map(Some).map_err(|error| BuildError::Model(model.name.clone(), ModelError::Poll(error)))
}

impl ModelRegistry {
    /// All fleets, by the model that they serve.
    pub(super) fn fleets(&self) -> Fleets {
        self.models.iter().map(|(name, made)| (name.clone(), made.fleet.clone())).collect()
    }

    /// Measures how late this process's tasks wake, until shutdown: for these fleets and for all that come after them.
    pub(super) fn measure_lag(&self, work: &Tasks, metrics: &Arc<Metrics>) {
        let metrics = metrics.clone();
        self.lag.measure(work, move |late| metrics.backends.event_loop_lag.inc_by(late.as_secs_f64()));
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
            let measure =
                self.models.get(&served.name).and_then(|made| made.local.as_ref()).map(|local| local.measure);
            let model = settings.catalog.models.get_mut(&served.name);
            if let Some((model, measure)) = model.zip(measure) {
                engine_limits::apply_engine_limits(Arc::make_mut(model), served.context, measure);
            }
        }
    }

    /// How many HTTP clients its models and those of other generations have in common.
    #[cfg(test)]
    pub(super) fn connections(&self) -> usize {
        self.connections.count()
    }

    /// They serve from now on: their series begin, and those that were kept are treated as is said now.
    pub(super) fn activate(&self, resilience: fleet::Settings) {
        for made in self.models.values() {
            made.fleet.zero_metrics();
            made.fleet.reconfigure(resilience);
        }
    }

    /// Stops every engine, those of the configurations before this too.
    pub(super) fn stop_engines(&self) {
        self.engines.stop();
    }

    /// Takes away the series of fleets that serve no longer.
    pub(super) fn remove_stale_series(&self, after: &ModelRegistry) {
        for (name, made) in &self.models {
            let is_kept = after.models.get(name).is_some_and(|next| Arc::ptr_eq(&next.fleet, &made.fleet));
            if !is_kept {
                made.fleet.remove_gauges();
            }
        }
    }

    fn reusable(&self, model: &str, recipe: &FleetSpec) -> Option<&ModelFleet> {
        let made = self.models.get(model).filter(|made| made.spec == *recipe)?;
        if made.fleet.unavailable().is_some() {
            // What was in its way may be gone.
            return None;
        }
        made.local.as_ref().is_none_or(|local| local.engine.is_alive()).then_some(made)
    }

    /// The engine that has a model's weights loaded already.
    fn loaded_model(&self, model: &str, weights: Option<&WeightsSpec>) -> Option<LoadedModel> {
        self.models.get(model)?.local.clone().filter(|local| local.engine.is_running(weights))
    }
}

/// The targets of a model: its deployments, or the engine in this process, which says itself when it is full.
fn build_model(
    recipe: FleetSpec,
    (settings, before): (&Settings, &ModelRegistry),
    model: &config::ModelConfig,
    (connections, poller): (&Connections, Option<&LoadPoller>),
    (metrics, work): (&Arc<Metrics>, &Tasks),
) -> Result<ModelFleet, ModelError> {
    let mut local = before.loaded_model(&model.name, recipe.weights.as_ref());
    let mut made = |source: &ModelSource, place: usize| {
        build_backend(&settings.engine, &model.name, source, &mut local, &connections.for_target(place))
    };
    let mut resilience = settings.resilience;
    if let Some(concurrency) = &mut resilience.concurrency {
        concurrency.signal = signal(&model.deployments);
    }
    let mut targets = Vec::new();
    for (place, deployment) in model.deployments.iter().enumerate() {
        let backend = made(&deployment_source(model, deployment, &resilience), place)?;
        let reader = model.tokenizer_key(deployment);
        targets.push(Target { name: deployment.name.clone(), backend, tokenizer_id: reader });
    }
    if targets.is_empty() {
        let (name, backend) = (recipe.backend.clone(), made(&model.source, 0)?);
        // It has the tokenizer itself.
        targets.push(Target { name, backend, tokenizer_id: None });
        resilience.concurrency = None;
    }
    if let Some(local) = &local {
        before.engines.register(&local.engine);
    }
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).map_err(ModelError::Randomness)?;
    let seed = u64::from_le_bytes(seed);
    let fleet = Fleet::new(model.name.clone(), targets, metrics.clone(), resilience, seed);
    if let Some(poller) = poller {
        poll_load(poller, work, &fleet, model);
    }
    Ok(ModelFleet { spec: recipe, fleet, local })
}

/// What lowers the limits of a model's targets. Where one of them is a provider's, waits say nothing of any.
fn signal(deployments: &[Deployment]) -> OverloadSignal {
    let only_refusals = deployments.iter().any(|deployment| deployment.signal == OverloadSignal::Refusals);
    if only_refusals { OverloadSignal::Refusals } else { OverloadSignal::Waits }
}

/// Where a model's answers come from at one of its deployments.
fn deployment_source(
    model: &config::ModelConfig,
    deployment: &Deployment,
    resilience: &fleet::Settings,
) -> ModelSource {
    let mut deployment = deployment.clone();
    deployment.client.sent_too = resilience.retry.sent_too;
    model.source.at_deployment(&deployment)
}

/// Listens to engines that publish their load.
fn poll_load(poller: &LoadPoller, work: &Tasks, fleet: &Arc<Fleet>, model: &config::ModelConfig) {
    for (place, deployment) in model.deployments.iter().enumerate() {
        let Some(url) = deployment.metrics_url.clone() else { continue };
        // A page somewhere else gets no key.
        let is_there = host(&url).is_some() && host(&url) == host(&deployment.client.base_url);
        let api_key = deployment.client.api_key.clone().filter(|_| is_there);
        let page = LoadEndpoint { url, api_key };
        poller.poll(work, fleet, place, page);
    }
}

fn host(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
}

/// The backend of one model alone, at its first deployment; and the model, as far as its engine has what is said of it.
pub(super) fn single_backend(
    engine: &engine::Settings,
    served: &config::ModelConfig,
    model: &Arc<Model>,
) -> Result<(Arc<dyn Backend>, Arc<Model>), ModelError> {
    let source = match served.deployments.first() {
        Some(deployment) => served.source.at_deployment(deployment),
        None => served.source.clone(),
    };
    let (mut local, mut model) = (None, model.clone());
    let backend = build_backend(engine, &served.name, &source, &mut local, &Connections::default())?;
    if let Some(local) = local {
        engine_limits::apply_engine_limits(Arc::make_mut(&mut model), served.context, local.measure);
    }
    Ok((backend, model))
}

/// A local model runs in the engine that is given; where none is, in a new one, which is given back.
fn build_backend(
    settings: &engine::Settings,
    name: &Arc<str>,
    source: &ModelSource,
    loaded: &mut Option<LoadedModel>,
    connections: &Connections,
) -> Result<Arc<dyn Backend>, ModelError> {
    Ok(match source {
        ModelSource::OpenAi(upstream) => Arc::new(OpenAiBackend::new(connections, upstream.clone())?),
        ModelSource::Vllm(upstream) => Arc::new(VllmBackend::new(connections, upstream.clone())?),
        ModelSource::LlamaCpp(upstream) => Arc::new(LlamaCppBackend::new(connections, upstream.clone())?),
        ModelSource::Anthropic(upstream) => Arc::new(AnthropicBackend::new(connections, upstream.clone())?),
        ModelSource::Gemini(upstream) => Arc::new(GeminiBackend::new(connections, upstream.clone())?),
        ModelSource::Responses(upstream) => {
            Arc::new(OpenAiResponsesBackend::new(connections, upstream.clone())?)
        }
        ModelSource::Embedded(manner) => {
            Arc::new(engines::load_local(WeightsSpec::embedded(settings), name, manner, loaded)?)
        }
        ModelSource::File(path, manner) => {
            Arc::new(engines::load_local(WeightsSpec::in_file(path, settings), name, manner, loaded)?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(toml: &str, sent_too: bool) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let backend = "[[backend]]\nbase_url = \"http://127.0.0.1:1/v1\"\nmodels = [\"m\"]\n";
        std::fs::write(file.path(), format!("{toml}\n[engine]\nembedded = false\n{backend}")).unwrap();
        let ledger = |name: &str| (name == "STINT_LEDGER").then(|| ":memory:".to_owned());
        let settings = config::load(Some(file.path()), &ledger).unwrap();
        let model = &settings.backends[0].models[0];
        let ModelSource::OpenAi(upstream) =
            deployment_source(model, &model.deployments[0], &settings.resilience)
        else {
            panic!("{model:?}")
        };
        assert_eq!(upstream.client.sent_too, sent_too);
    }

    #[test]
    fn what_may_be_billed_twice_is_sent_once_where_the_operator_wants_that() {
        check("", true);
        check("[resilience]\nretry_sent = false", false);
    }
}
