//! The engines of local models, and which weights each runs: a reload does not load the same weights again, and the end of the
//! process stops every engine.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::config::{EngineSettings, KvCacheFormat, LocalModelSettings, ModelSource};
use stint_backend::Backend;
use stint_backend::local::{LocalBackend, LocalModelLimits};
pub(super) use stint_engine::ModelFacts;
use stint_engine::{
    self as engine, EngineError, EngineLoad, EnginePool, EngineSize, EngineSpec, KvFormat, PooledEngine,
    RemovalListener, Residency,
};
use stint_gguf::{Gguf, GgufError};
use stint_prompt::{PromptFormat, Vocabulary};
use stint_types::metrics::{EngineMetrics, Metrics};

use super::engine_counters::EngineCounters;
use super::engine_log;
use super::error::ModelError;
use super::local_model_report::{LocalModelReport, tags_note};

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
        let gguf = match &self.file {
            None => Gguf::from_static(EMBEDDED),
            Some(stamp) => Gguf::open(&stamp.path),
        }?;
        // Before anything is looked for in it that only models have.
        gguf.check_is_model().map(|()| gguf)
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
        let metadata = std::fs::metadata(path).ok().map(|file| identity(&file));
        FileIdentity { path: path.to_owned(), metadata }
    }
}

#[cfg(unix)]
fn identity(file: &std::fs::Metadata) -> (u64, u64, u64, i64, i64) {
    use std::os::unix::fs::MetadataExt;
    (file.dev(), file.ino(), file.len(), file.mtime(), file.mtime_nsec())
}

/// Without device and inode, length and time tell.
#[cfg(not(unix))]
fn identity(file: &std::fs::Metadata) -> (u64, u64, u64, i64, i64) {
    let modified = file.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    let modified = modified.unwrap_or_default();
    let seconds = i64::try_from(modified.as_secs()).unwrap_or(i64::MAX);
    (0, 0, file.len(), seconds, i64::from(modified.subsec_nanos()))
}

/// Without being told to, a software driver runs models whose weights have fewer bytes: larger ones are too slow there to be meant.
const SOFTWARE_WEIGHTS_MAX: u64 = 100_000_000;

/// What a file's model is, as far as the engine is concerned.
pub(super) fn describe(gguf: &Gguf) -> Result<ModelFacts, ModelError> {
    Ok(engine::describe(gguf)?)
}

/// Whether the engine could run a model on any device, beside models that keep so many bytes. Nothing is loaded. None of a model that
/// is not local.
pub(super) fn examine(
    source: &ModelSource,
    settings: &EngineSettings,
    memory_taken: u64,
) -> Option<Result<LocalModelReport, ModelError>> {
    let weights = WeightsSpec::of(source, settings)?;
    let (ModelSource::Embedded(local) | ModelSource::File(_, local)) = source else { return None };
    let settings = engine::Settings { memory_taken, ..settings_of(settings) };
    Some(report(&weights, local, &settings))
}

fn report(
    weights: &WeightsSpec,
    local: &LocalModelSettings,
    settings: &engine::Settings,
) -> Result<LocalModelReport, ModelError> {
    let gguf = weights.open()?;
    let format = prompt_format(&gguf, local)?;
    engine::examine(&gguf)?;
    let size = EngineSize::estimate(&gguf, settings)?;
    Ok(LocalModelReport { notes: notes(&format, local, &size), memory: size.memory })
}

/// How a file's model is spoken to, where that goes together with its configuration.
fn prompt_format(gguf: &Gguf, local: &LocalModelSettings) -> Result<PromptFormat, ModelError> {
    let vocabulary = Vocabulary::from_gguf(gguf)?;
    let new = if local.tags_are_stated { PromptFormat::with_stated_tags } else { PromptFormat::new };
    let format = new(&vocabulary, &local.start_tag, &local.end_tag)?;
    local.settings.hand_off_tokens(&format)?;
    let syntax = local.settings.syntax_in(&format);
    if local.calls_tools && syntax.is_none() { Err(ModelError::ToolSyntaxUnknown) } else { Ok(format) }
}

/// What an operator should know of a model that can be served.
fn notes(format: &PromptFormat, local: &LocalModelSettings, size: &EngineSize) -> Vec<String> {
    let mut notes = Vec::new();
    let EngineSize { context, context_wanted, .. } = *size;
    if context < context_wanted {
        notes.push(format!(
            "its context is {context} tokens, though {context_wanted} are possible: the cache holds no more (raise `kv_tokens` in \
             [engine], and `memory_max` if memory is short)"
        ));
    }
    if local.calls_tools && !format.shows_tools() {
        notes.push(
            "its chat template tells the model of no tools: it calls those that it was trained to call, or where `tool_choice` forces a call"
                .to_owned(),
        );
    }
    notes.extend(format.unmentioned_tags().map(tags_note));
    notes
}

/// What local models are loaded with, and where.
#[derive(Debug, Clone, Copy)]
pub(super) struct EngineContext<'a> {
    pub(super) settings: &'a EngineSettings,
    pub(super) engines: &'a EngineRegistry,
    /// Where it is counted what they do; nothing where nobody looks.
    pub(super) metrics: Option<&'a Arc<Metrics>>,
    /// Bytes of the device's memory that models of the same configuration have and keep.
    pub(super) memory_taken: u64,
}

/// A model in the local engine: in the one that is given, else in a new one, which is given back there.
pub(super) fn load_local(
    context: EngineContext<'_>,
    weights: WeightsSpec,
    name: &Arc<str>,
    local: &LocalModelSettings,
    loaded: &mut Option<LoadedModel>,
) -> Result<Arc<dyn Backend>, ModelError> {
    let gguf = weights.open()?;
    let prompt_cache = weights.settings.prompt_cache.unwrap_or_default();
    let format = Arc::new(prompt_format(&gguf, local)?);
    let residency = Residency { load_on_startup: local.load_on_startup, keep_alive: local.keep_alive };
    let engine = match loaded.take() {
        Some(running) => running.engine,
        None => Arc::new(MonitoredEngine::add(context, &gguf, weights, name.clone(), residency)?),
    };
    for note in notes(&format, local, &engine.engine.size()) {
        tracing::warn!(model = %name, "{note}");
    }
    if residency.load_on_startup && !engine.engine.load_now()? {
        tracing::info!(model = %name, "other models have the memory: it is loaded at its first request");
    }
    let speech = stint_backend::local::Settings { prompt_cache, ..local.settings.clone() };
    let backend = LocalBackend::new(engine.engine.clone(), format, speech)?;
    *loaded = Some(LoadedModel { engine, limits: backend.limits(), residency });
    Ok(Arc::new(backend))
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
            KvCacheFormat::Q8_0 => KvFormat::Q8_0,
        },
        prefix_reuse: prompt_cache.is_some(),
        prefill_chunk,
        queue,
        allow_cpu,
        cpu_weights_max,
        memory_max,
        memory_taken: 0,
        step_timeout,
    }
}

/// A local model in the pool.
#[derive(Debug, Clone)]
pub(super) struct LoadedModel {
    pub(super) engine: Arc<MonitoredEngine>,
    pub(super) limits: LocalModelLimits,
    residency: Residency,
}

impl LoadedModel {
    /// Its configuration is in force: it stays loaded for as long as that says.
    pub(super) fn activate(&self) {
        if let Err(error) = self.engine.engine.activate(self.residency) {
            tracing::error!(model = %self.engine.model, %error, "it stays loaded");
        }
    }

    /// Bytes that it keeps for good.
    pub(super) fn memory_kept(&self) -> u64 {
        if self.residency.is_permanent() { self.engine.engine.memory_bytes() } else { 0 }
    }
}

/// A local model whose token counts, loads and failures are shown.
#[derive(Debug)]
pub(super) struct MonitoredEngine {
    model: Arc<str>,
    engine: PooledEngine,
    weights: WeightsSpec,
    counters: Arc<EngineCounters>,
}

impl MonitoredEngine {
    fn add(
        context: EngineContext<'_>,
        gguf: &Gguf,
        weights: WeightsSpec,
        model: Arc<str>,
        residency: Residency,
    ) -> Result<MonitoredEngine, ModelError> {
        let settings =
            engine::Settings { memory_taken: context.memory_taken, ..settings_of(&weights.settings) };
        let same = weights.clone();
        let again = Box::new(move || same.open_again());
        let spec = EngineSpec::new(gguf, again, settings, engine_log::listener(model.clone()))?;
        let counters = Arc::new(EngineCounters::new(model.clone()));
        let spec = match context.metrics {
            Some(metrics) => spec.on_removal(final_counts(counters.clone(), metrics.clone())),
            None => spec,
        };
        let engine = context.engines.0.add(spec, residency);
        Ok(MonitoredEngine { model, engine, weights, counters })
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

    /// Whether it still takes work, on these weights, and fits beside models that keep so many bytes.
    pub(super) fn is_running(&self, weights: Option<&WeightsSpec>, memory_taken: u64) -> bool {
        self.is_alive() && Some(&self.weights) == weights && self.fits_beside(memory_taken)
    }

    /// Whether it fits beside models that keep so many bytes.
    pub(super) fn fits_beside(&self, memory_taken: u64) -> bool {
        self.engine.fits_beside(memory_taken)
    }

    /// Removes the series of one that no longer serves.
    pub(super) fn remove_gauges(&self, metrics: &Metrics) {
        // A series that was never set need not be removed.
        let engines = &metrics.backends.engines;
        let EngineMetrics { up, loaded, memory, requests_running, requests_waiting, .. } = engines;
        for gauge in [up, loaded, memory, requests_running, requests_waiting] {
            let _ = gauge.remove_label_values(&[&*self.model]);
        }
        let _ = engines.kv_cache_usage.remove_label_values(&[&*self.model]);
    }

    /// Adds what the engine did since the last look, and shows how it stands.
    pub(super) fn refresh(&self, metrics: &Metrics) {
        let (engines, load) = (&metrics.backends.engines, self.engine.load());
        self.counters.add(engines, load.counts, self.engine.totals());
        let is_loaded = self.engine.is_loaded();
        let memory =
            if is_loaded { i64::try_from(self.engine.memory_bytes()).unwrap_or(i64::MAX) } else { 0 };
        engines.up.with_label_values(&[&*self.model]).set(i64::from(self.is_alive()));
        engines.loaded.with_label_values(&[&*self.model]).set(i64::from(is_loaded));
        engines.memory.with_label_values(&[&*self.model]).set(memory);
        show_load(engines, &self.model, &load, self.is_alive());
    }
}

/// Counts what a model's engines did that was not counted before the last of them ended. One that a reload replaced is looked at no
/// more while its last answers run.
fn final_counts(counters: Arc<EngineCounters>, metrics: Arc<Metrics>) -> RemovalListener {
    Box::new(move |counts, totals| counters.add(&metrics.backends.engines, counts, totals))
}

/// Shows how full a model's engine is. Between two engines nothing is held.
#[expect(clippy::cast_precision_loss, reason = "no cache has 2^53 blocks")]
fn show_load(engines: &EngineMetrics, model: &str, load: &EngineLoad, is_alive: bool) {
    let count = |count| i64::try_from(count).unwrap_or(i64::MAX);
    engines.requests_running.with_label_values(&[model]).set(count(load.running));
    engines.requests_waiting.with_label_values(&[model]).set(count(load.waiting));
    let held = if is_alive { load.blocks_total.saturating_sub(load.blocks_free) } else { 0 };
    engines.kv_cache_usage.with_label_values(&[model]).set(held as f64 / load.blocks_total.max(1) as f64);
}

/// The local models of a process, whichever configuration asked for them: they share the device's memory, and each that is loaded
/// has a thread inside the driver, which must have left it before the process ends. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct EngineRegistry(EnginePool);

impl EngineRegistry {
    /// From now on a request waits for so long at most until others leave it room.
    pub(super) fn set_wait_max(&self, wait_max: Duration) {
        self.0.set_wait_max(wait_max);
    }

    /// Stops all that run, and those that are still to come. Blocks for one step of each at most, or for a load that is under way.
    pub(super) fn stop(&self) {
        self.0.stop();
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
    fn the_metrics_show_how_full_an_engine_is() {
        let (metrics, counts) = (Metrics::new().unwrap(), engine::EngineCounts::default());
        let load = EngineLoad { running: 2, waiting: 3, slots: 2, blocks_free: 30, blocks_total: 40, counts };
        let engines = &metrics.backends.engines;
        for (is_alive, usage) in [(true, 0.25), (false, 0.0)] {
            show_load(engines, "m", &load, is_alive);
            let shown = engines.kv_cache_usage.with_label_values(&["m"]).get();
            assert!((shown - usage).abs() < 1e-9, "{shown}");
        }
        assert_eq!(engines.requests_running.with_label_values(&["m"]).get(), 2);
        assert_eq!(engines.requests_waiting.with_label_values(&["m"]).get(), 3);
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
