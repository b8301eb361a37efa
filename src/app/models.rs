//! The backend of every model: embedded, from a file, or remote.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::backend::Backend;
use crate::backend::local::Local;
use crate::backend::remote::SettingsError;
use crate::backend::remote::llamacpp::LlamaCpp;
use crate::backend::remote::openai::OpenAi;
use crate::backend::remote::vllm::Vllm;
use crate::config::{self, Manner, Settings, Source};
use crate::engine::{self, Engine, EngineError, Gguf, GgufError};
use crate::metrics::Metrics;
use crate::prompt::{Format, PromptError, Vocabulary};

use super::build::{Backends, BuildError};

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
}

/// All backends, and the engines among them.
pub(super) struct Served {
    pub(super) backends: Backends,
    pub(super) engines: Vec<Watched>,
}

/// Makes every model's backend.
pub(super) fn serve(settings: &Settings) -> Result<Served, BuildError> {
    let mut served = Served { backends: Backends::new(), engines: Vec::new() };
    for model in settings.backends.iter().flat_map(|backend| &backend.models) {
        let backend = one(&settings.engine, &model.name, &model.source, &mut served.engines)
            .map_err(|error| BuildError::Model(model.name.clone(), error))?;
        served.backends.insert(model.name.clone(), backend);
    }
    Ok(served)
}

/// The backend of one model alone.
pub(super) fn only(
    engine: &engine::Settings,
    model: &config::Served,
) -> Result<Arc<dyn Backend>, ModelError> {
    one(engine, &model.name, &model.source, &mut Vec::new())
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
