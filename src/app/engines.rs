//! The engines of local models, and which weights each runs: a reload does not load the same weights again, and the end of the
//! process stops every engine.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::config::{EngineSettings, KvCacheFormat, LocalModelSettings, ModelSource};
use stint_backend::Backend;
use stint_backend::local::{LocalBackend, LocalModelLimits};
pub(super) use stint_engine::ModelFacts;
use stint_engine::{
    self as engine, EngineError, FailureCause, KvFormat, SupervisedEngine, WeakSupervisedEngine,
};
use stint_gguf::{Gguf, GgufError};
use stint_prompt::{PromptFormat, Vocabulary};
use stint_types::metrics::Metrics;

use super::engine_log;
use super::error::ModelError;

/// The model that ships with the binary.
static EMBEDDED: &[u8] = include_bytes!("../../models/reasoner.gguf");

/// The weights that an engine runs, and how it runs them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WeightsSpec {
    /// None for those that ship with the binary.
    file: Option<FileIdentity>,
    settings: EngineSettings,
}

/// A file as it was found: another that was moved to its place is another.
#[derive(Debug, Clone, PartialEq)]
struct FileIdentity {
    path: PathBuf,
    /// Device, inode, length, and when it was written. None where it cannot be looked at; opening it says why.
    metadata: Option<(u64, u64, u64, i64, i64)>,
}

impl WeightsSpec {
    /// The embedded model's.
    pub(super) fn embedded(settings: &EngineSettings) -> WeightsSpec {
        WeightsSpec { file: None, settings: settings.clone() }
    }

    /// Those of a file.
    pub(super) fn in_file(path: &Path, settings: &EngineSettings) -> WeightsSpec {
        WeightsSpec { file: Some(FileIdentity::of(path)), settings: settings.clone() }
    }

    /// Those of a model, where it is a local one.
    pub(super) fn of(source: &ModelSource, settings: &EngineSettings) -> Option<WeightsSpec> {
        match source {
            ModelSource::Embedded(_) => Some(WeightsSpec::embedded(settings)),
            ModelSource::File(path, _) => Some(WeightsSpec::in_file(path, settings)),
            _ => None,
        }
    }

    fn open(&self) -> Result<Gguf, GgufError> {
        match &self.file {
            None => Gguf::from_static(EMBEDDED),
            Some(stamp) => Gguf::open(&stamp.path),
        }
    }

    /// The same weights once more. What another file has in its place is for a reload to take.
    fn open_again(&self) -> Result<Gguf, EngineError> {
        match &self.file {
            Some(known) if FileIdentity::of(&known.path) != *known => {
                let path = known.path.display();
                Err(EngineError::Model(format!(
                    "{path} is another file than the one that was loaded: reload"
                )))
            }
            Some(_) | None => Ok(self.open()?),
        }
    }
}

impl FileIdentity {
    fn of(path: &Path) -> FileIdentity {
        let stamp =
            |meta: std::fs::Metadata| (meta.dev(), meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec());
        FileIdentity { path: path.to_owned(), metadata: std::fs::metadata(path).ok().map(stamp) }
    }
}

/// Without being told to, a software driver runs models whose weights have fewer bytes: larger ones are too slow there to be meant.
const SOFTWARE_WEIGHTS_MAX: u64 = 100_000_000;

/// What a file's model is, as far as the engine is concerned.
pub(super) fn describe(gguf: &Gguf) -> Result<ModelFacts, ModelError> {
    Ok(engine::describe(gguf)?)
}

/// Whether the engine could run a file's model, without running it.
pub(super) fn examine(path: &Path, manner: &LocalModelSettings) -> Result<(), ModelError> {
    let gguf = Gguf::open(path)?;
    let vocabulary = Vocabulary::from_gguf(&gguf)?;
    PromptFormat::new(&vocabulary, &manner.start_tag, &manner.end_tag)?;
    Ok(engine::examine(&gguf)?)
}

/// A model in the local engine: in the one that is given, else in a new one, which is given back there.
pub(super) fn load_local(
    weights: WeightsSpec,
    name: &Arc<str>,
    manner: &LocalModelSettings,
    loaded: &mut Option<LoadedModel>,
) -> Result<Arc<dyn Backend>, ModelError> {
    let gguf = weights.open()?;
    let prompt_cache = weights.settings.prompt_cache.unwrap_or_default();
    let vocabulary = Vocabulary::from_gguf(&gguf)?;
    let format = Arc::new(PromptFormat::new(&vocabulary, &manner.start_tag, &manner.end_tag)?);
    let engine = match loaded.take() {
        Some(running) => running.engine,
        None => Arc::new(MonitoredEngine::start(&gguf, weights, name.clone())?),
    };
    let speech = stint_backend::local::Settings { prompt_cache, ..manner.settings.clone() };
    let local = LocalBackend::new(engine.engine.clone(), format, speech)?;
    *loaded = Some(LoadedModel { engine, limits: local.limits() });
    Ok(Arc::new(local))
}

/// The settings as the engine takes them.
fn settings_of(settings: &EngineSettings) -> engine::Settings {
    let EngineSettings {
        adapter,
        sequences,
        context,
        kv_tokens,
        kv_format,
        prompt_cache,
        prefill_chunk,
        queue,
        allow_cpu,
        memory_max,
        step_timeout,
    } = settings.clone();
    let cpu_weights_max = allow_cpu.is_none().then_some(SOFTWARE_WEIGHTS_MAX);
    // The embedded model is small enough for a software driver, and must run everywhere.
    let allow_cpu = allow_cpu.unwrap_or(true);
    engine::Settings {
        adapter,
        sequences,
        context,
        kv_tokens,
        kv_format: match kv_format {
            KvCacheFormat::F16 => KvFormat::F16,
            KvCacheFormat::F32 => KvFormat::F32,
        },
        prefix_reuse: prompt_cache.is_some(),
        prefill_chunk,
        queue,
        allow_cpu,
        cpu_weights_max,
        memory_max,
        step_timeout,
    }
}

/// A local model that is loaded.
#[derive(Debug, Clone)]
pub(super) struct LoadedModel {
    pub(super) engine: Arc<MonitoredEngine>,
    pub(super) limits: LocalModelLimits,
}

/// A local engine whose token counts and failures are shown.
#[derive(Debug)]
pub(super) struct MonitoredEngine {
    model: Arc<str>,
    engine: SupervisedEngine,
    weights: WeightsSpec,
    prefilled: AtomicU64,
    reused: AtomicU64,
    decoded: AtomicU64,
    preempted: AtomicU64,
    /// By the causes in their order.
    restarts: [AtomicU64; FailureCause::ALL.len()],
}

impl MonitoredEngine {
    fn start(gguf: &Gguf, weights: WeightsSpec, model: Arc<str>) -> Result<MonitoredEngine, ModelError> {
        let settings = settings_of(&weights.settings);
        let same = weights.clone();
        let again = Box::new(move || same.open_again());
        let engine = SupervisedEngine::start(gguf, again, &settings, engine_log::listener(model.clone()))?;
        let device = engine.device();
        let memory_mb = engine.memory_bytes() / 1_000_000;
        tracing::info!(model = %model, device = %device.name, driver = %device.driver, memory_mb, "loaded");
        Ok(MonitoredEngine {
            model,
            engine,
            weights,
            prefilled: AtomicU64::new(0),
            reused: AtomicU64::new(0),
            decoded: AtomicU64::new(0),
            preempted: AtomicU64::new(0),
            restarts: Default::default(),
        })
    }

    /// Lets a fault happen to it.
    #[cfg(test)]
    pub(super) fn inject(&self, fault: engine::InjectedFault) {
        self.engine.inject(fault);
    }

    /// Whether it still takes work.
    pub(super) fn is_alive(&self) -> bool {
        self.engine.is_alive()
    }

    /// Whether it still takes work, on these weights.
    pub(super) fn is_running(&self, weights: Option<&WeightsSpec>) -> bool {
        self.is_alive() && Some(&self.weights) == weights
    }

    /// Removes the series of one that no longer serves.
    pub(super) fn remove_gauges(&self, metrics: &Metrics) {
        // A series that was never set need not be removed.
        let _ = metrics.backends.engine_up.remove_label_values(&[&*self.model]);
    }

    /// Adds what the engine did since the last look. What is left to do for one whose model was taken away is not counted.
    pub(super) fn refresh(&self, metrics: &Metrics) {
        let load = self.engine.load();
        let engine::EngineCounts { prefilled, reused, decoded, preempted } = load.counts;
        for (phase, seen, now) in [
            ("prefill", &self.prefilled, prefilled),
            ("reused", &self.reused, reused),
            ("decode", &self.decoded, decoded),
        ] {
            let before = seen.fetch_max(now, Ordering::Relaxed);
            let counter = metrics.backends.engine_tokens.with_label_values(&[&*self.model, phase]);
            counter.inc_by(now.saturating_sub(before));
        }
        let backends = &metrics.backends;
        let before = self.preempted.fetch_max(preempted, Ordering::Relaxed);
        let counter = backends.engine_preemptions.with_label_values(&[&*self.model]);
        counter.inc_by(preempted.saturating_sub(before));
        backends.engine_up.with_label_values(&[&*self.model]).set(i64::from(self.is_alive()));
        for (seen, (cause, now)) in self.restarts.iter().zip(self.engine.restarts()) {
            let before = seen.fetch_max(now, Ordering::Relaxed);
            let counter = backends.engine_restarts.with_label_values(&[&*self.model, cause.as_str()]);
            counter.inc_by(now.saturating_sub(before));
        }
    }
}

/// Every engine of a process that may still run, whichever configuration asked for it: each has a thread inside the
/// driver, which must have left it before the process ends. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct EngineRegistry(Arc<Mutex<RegistryState>>);

#[derive(Debug, Default)]
struct RegistryState {
    engines: Vec<WeakSupervisedEngine>,
    /// No more are to run.
    is_stopping: bool,
}

impl EngineRegistry {
    /// One more. Where the process ends already it is stopped at once.
    pub(super) fn register(&self, watched: &MonitoredEngine) {
        let mut running = self.lock();
        if running.is_stopping {
            drop(running);
            return watched.engine.stop();
        }
        running.engines.retain(|engine| engine.upgrade().is_some());
        running.engines.push(watched.engine.downgrade());
    }

    /// Stops all that run, and those that are still to come. Blocks for one step of each at most.
    pub(super) fn stop(&self) {
        let mut running = self.lock();
        running.is_stopping = true;
        let engines = std::mem::take(&mut running.engines);
        drop(running);
        engines.iter().filter_map(WeakSupervisedEngine::upgrade).for_each(|engine| engine.stop());
    }

    fn lock(&self) -> MutexGuard<'_, RegistryState> {
        // Every change is made whole between taking and letting go of the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_configuration_leaves_out_is_as_the_engine_has_it() {
        let settings =
            crate::config::load(None, &|name| (name == "STINT_LEDGER").then(|| ":memory:".into())).unwrap();
        let cpu_weights_max = Some(SOFTWARE_WEIGHTS_MAX);
        let expected = engine::Settings { allow_cpu: true, cpu_weights_max, ..engine::Settings::default() };
        assert_eq!(settings_of(&settings.engine), expected);
    }

    #[test]
    fn weights_are_opened_again_only_from_the_file_that_was_loaded() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("model.gguf");
        std::fs::write(&path, EMBEDDED).unwrap();
        let settings =
            crate::config::load(None, &|name| (name == "STINT_LEDGER").then(|| ":memory:".into())).unwrap();
        let weights = WeightsSpec::in_file(&path, &settings.engine);
        assert!(weights.open_again().is_ok());
        let other = folder.path().join("other.gguf");
        std::fs::write(&other, EMBEDDED).unwrap();
        std::fs::rename(&other, &path).unwrap();
        let error = weights.open_again().err().unwrap().to_string();
        assert!(error.contains("another file than the one that was loaded: reload"), "{error}");
        assert!(WeightsSpec::embedded(&settings.engine).open_again().is_ok());
    }
}
