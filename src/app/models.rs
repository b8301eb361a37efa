//! The backend of every model: embedded, from a file, or remote.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use reqwest::Url;

use crate::backend::Backend;
use crate::backend::fleet::{self, Fleet, Page, Target};
use crate::backend::local::Local;
use crate::backend::remote::SettingsError;
use crate::backend::remote::anthropic::Anthropic;
use crate::backend::remote::gemini::Gemini;
use crate::backend::remote::llamacpp::LlamaCpp;
use crate::backend::remote::openai::OpenAi;
use crate::backend::remote::responses::Responses;
use crate::backend::remote::vllm::Vllm;
use crate::config::{self, Manner, Settings, Source};
use crate::engine::{self, Engine, EngineError, Gguf, GgufError};
use crate::metrics::Metrics;
use crate::prompt::{Format, PromptError, Vocabulary};
use crate::tasks::Tasks;

use super::build::{BuildError, Fleets};

/// The model that ships with the binary.
static EMBEDDED: &[u8] = include_bytes!("../../models/reasoner.gguf");

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

/// What serves each model, and the engines among it.
pub(super) struct Served {
    pub(super) fleets: Fleets,
    pub(super) engines: Vec<Watched>,
}

/// Makes every model's fleet.
pub(super) fn serve(settings: &Settings, metrics: &Arc<Metrics>, work: &Tasks) -> Result<Served, BuildError> {
    let mut served = Served { fleets: Fleets::new(), engines: Vec::new() };
    for backend in &settings.backends {
        for model in &backend.models {
            let fleet = fleet(settings, &backend.name, model, metrics, &mut served.engines)
                .and_then(|fleet| watch(work, &fleet, model).map(|()| fleet))
                .map_err(|error| BuildError::Model(model.name.clone(), error))?;
            served.fleets.insert(model.name.clone(), fleet);
        }
    }
    Ok(served)
}

/// The targets of a model: its deployments, or the engine in this process, which says itself when it is full.
fn fleet(
    settings: &Settings,
    backend: &Arc<str>,
    model: &config::Served,
    metrics: &Arc<Metrics>,
    engines: &mut Vec<Watched>,
) -> Result<Arc<Fleet>, ModelError> {
    let mut made = |source: &Source| one(&settings.engine, &model.name, source, engines);
    let mut resilience = settings.resilience;
    let mut targets = Vec::new();
    for deployment in &model.deployments {
        let backend = made(&model.source.reached(deployment))?;
        targets.push(Target { name: deployment.name.clone(), backend });
    }
    if targets.is_empty() {
        targets.push(Target { name: backend.clone(), backend: made(&model.source)? });
        resilience.concurrency = None;
    }
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).map_err(ModelError::Randomness)?;
    Ok(Fleet::new(model.name.clone(), targets, metrics.clone(), resilience, u64::from_le_bytes(seed)))
}

/// Listens to engines that publish their load.
fn watch(work: &Tasks, fleet: &Arc<Fleet>, model: &config::Served) -> Result<(), ModelError> {
    for (place, deployment) in model.deployments.iter().enumerate() {
        let Some(url) = deployment.metrics_url.clone() else { continue };
        // A page somewhere else gets no key.
        let is_there = host(&url).is_some() && host(&url) == host(&deployment.client.base_url);
        let api_key = deployment.client.api_key.clone().filter(|_| is_there);
        let page = Page { url, api_key };
        fleet::poll(work, fleet.clone(), place, page).map_err(ModelError::Poll)?;
    }
    Ok(())
}

fn host(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
}

/// The backend of one model alone, at its first deployment.
pub(super) fn only(
    engine: &engine::Settings,
    model: &config::Served,
) -> Result<Arc<dyn Backend>, ModelError> {
    let source = match model.deployments.first() {
        Some(deployment) => model.source.reached(deployment),
        None => model.source.clone(),
    };
    one(engine, &model.name, &source, &mut Vec::new())
}

fn one(
    settings: &engine::Settings,
    name: &Arc<str>,
    source: &Source,
    engines: &mut Vec<Watched>,
) -> Result<Arc<dyn Backend>, ModelError> {
    Ok(match source {
        Source::OpenAi(upstream) => Arc::new(OpenAi::new(upstream.clone())?),
        Source::Vllm(upstream) => Arc::new(Vllm::new(upstream.clone())?),
        Source::LlamaCpp(upstream) => Arc::new(LlamaCpp::new(upstream.clone())?),
        Source::Anthropic(upstream) => Arc::new(Anthropic::new(upstream.clone())?),
        Source::Gemini(upstream) => Arc::new(Gemini::new(upstream.clone())?),
        Source::Responses(upstream) => Arc::new(Responses::new(upstream.clone())?),
        Source::Embedded(manner) => {
            local(settings, &Loaded { name, gguf: Gguf::from_static(EMBEDDED)?, manner }, engines)?
        }
        Source::File(path, manner) => {
            local(settings, &Loaded { name, gguf: Gguf::open(path)?, manner }, engines)?
        }
    })
}

/// A local model before an engine runs it.
struct Loaded<'m> {
    name: &'m Arc<str>,
    gguf: Gguf,
    manner: &'m Manner,
}

fn local(
    settings: &engine::Settings,
    Loaded { name, gguf, manner }: &Loaded<'_>,
    engines: &mut Vec<Watched>,
) -> Result<Arc<dyn Backend>, ModelError> {
    let vocabulary = Vocabulary::from_gguf(gguf)?;
    let format = Arc::new(Format::new(&vocabulary, &manner.start_tag, &manner.end_tag)?);
    let engine = Engine::start(gguf, settings)?;
    let device = engine.device();
    tracing::info!(model = %name, device = %device.name, driver = %device.driver, "loaded");
    engines.push(Watched::new(Arc::clone(name), engine.clone()));
    Ok(Arc::new(Local::new(engine, format, manner.settings.clone())?))
}

/// A local engine whose token counts are shown.
#[derive(Debug)]
pub(super) struct Watched {
    model: Arc<str>,
    engine: Engine,
    prefilled: AtomicU64,
    decoded: AtomicU64,
}

impl Watched {
    fn new(model: Arc<str>, engine: Engine) -> Watched {
        Watched { model, engine, prefilled: AtomicU64::new(0), decoded: AtomicU64::new(0) }
    }

    pub(super) fn stop(&self) {
        self.engine.stop();
    }

    /// Adds what the engine did since the last look.
    pub(super) fn refresh(&self, metrics: &Metrics) {
        let load = self.engine.load();
        for (phase, seen, now) in
            [("prefill", &self.prefilled, load.prefilled), ("decode", &self.decoded, load.decoded)]
        {
            let before = seen.fetch_max(now, Ordering::Relaxed);
            let counter = metrics.backends.engine_tokens.with_label_values(&[&*self.model, phase]);
            counter.inc_by(now.saturating_sub(before));
        }
    }
}
