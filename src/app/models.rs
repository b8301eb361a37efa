//! The backend of every model: embedded, from a file, or remote.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::backend::Backend;
use crate::backend::local::{self, Local};
use crate::backend::remote::SettingsError;
use crate::backend::remote::llamacpp::LlamaCpp;
use crate::backend::remote::openai::OpenAi;
use crate::config::{ModelFile, Settings, Source};
use crate::engine::{Engine, EngineError, Gguf, GgufError};
use crate::metrics::Metrics;
use crate::prompt::{Format, PromptError, Vocabulary};

use super::build::{Backends, BuildError};

/// The model that ships with the binary.
static EMBEDDED: &[u8] = include_bytes!("../../models/reasoner.gguf");

/// Its tags of thinking.
const TAGS: [&str; 2] = ["<think>", "</think>"];

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
        let backend = one(settings, &model.name, &model.source, &mut served.engines)
            .map_err(|error| BuildError::Model(model.name.clone(), error))?;
        served.backends.insert(model.name.clone(), backend);
    }
    Ok(served)
}

fn one(
    settings: &Settings,
    name: &Arc<str>,
    source: &Source,
    engines: &mut Vec<Watched>,
) -> Result<Arc<dyn Backend>, ModelError> {
    Ok(match source {
        Source::OpenAi(upstream) => Arc::new(OpenAi::new(upstream.clone())?),
        Source::LlamaCpp(upstream) => Arc::new(LlamaCpp::new(upstream.clone())?),
        // Arithmetic has one right answer: drawing among tokens only makes mistakes.
        Source::Embedded => {
            let manner = local::Settings { temperature: 0.0, ..hand_off(settings, name) };
            local(settings, name, (Gguf::from_static(EMBEDDED)?, &TAGS, manner), engines)?
        }
        Source::File(ModelFile { path, start_tag, end_tag }) => {
            let tags = [start_tag.as_str(), end_tag.as_str()];
            local(settings, name, (Gguf::open(path)?, &tags, hand_off(settings, name)), engines)?
        }
    })
}

/// How a local model is spoken to: by its own hand-off, else as usual.
fn hand_off(settings: &Settings, name: &str) -> local::Settings {
    let usual = local::Settings::default();
    let model = settings.catalog.models.get(name);
    local::Settings { hand_off: model.map_or(usual.hand_off, |model| model.hand_off.text.clone()), ..usual }
}

fn local(
    settings: &Settings,
    name: &Arc<str>,
    (gguf, [start_tag, end_tag], manner): (Gguf, &[&str; 2], local::Settings),
    engines: &mut Vec<Watched>,
) -> Result<Arc<dyn Backend>, ModelError> {
    let format = Arc::new(Format::new(&Vocabulary::from_gguf(&gguf)?, start_tag, end_tag)?);
    let engine = Engine::start(&gguf, &settings.engine)?;
    let device = engine.device();
    tracing::info!(model = %name, device = %device.name, driver = %device.driver, "loaded");
    engines.push(Watched::new(name.clone(), engine.clone()));
    Ok(Arc::new(Local::new(engine, format, manner)?))
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
