//! Stands in for the engines of local models in a build without them: a local model is refused with the reason.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::config::{EngineSettings, LocalModelSettings, ModelSource};
use stint_backend::Backend;
use stint_backend::local::LocalModelLimits;
use stint_gguf::Gguf;
use stint_types::metrics::Metrics;

use super::error::ModelError;
use super::local_model_report::LocalModelReport;

/// The weights that an engine would run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WeightsSpec;

impl WeightsSpec {
    pub(super) fn embedded(_settings: &EngineSettings) -> WeightsSpec {
        WeightsSpec
    }

    pub(super) fn in_file(_path: &Path, _settings: &EngineSettings) -> WeightsSpec {
        WeightsSpec
    }

    pub(super) fn of(source: &ModelSource, _settings: &EngineSettings) -> Option<WeightsSpec> {
        matches!(source, ModelSource::Embedded(_) | ModelSource::File(..)).then_some(WeightsSpec)
    }
}

/// What a model would be to an engine.
#[derive(Debug)]
pub(super) struct ModelFacts {
    pub(super) layers: u32,
    pub(super) parameters: u64,
    pub(super) experts: u32,
    pub(super) experts_used: u32,
    pub(super) parameters_used: u64,
    pub(super) context: u32,
    pub(super) weight_bytes: u64,
    pub(super) kv_token_bytes: u64,
    pub(super) kv_token_bytes_q8_0: u64,
}

/// No file's model is known.
pub(super) fn describe(_gguf: &Gguf) -> Result<ModelFacts, ModelError> {
    Err(ModelError::NoEngine)
}

/// No file's model can run.
pub(super) fn examine(
    source: &ModelSource,
    settings: &EngineSettings,
    _memory_taken: u64,
) -> Option<Result<LocalModelReport, ModelError>> {
    WeightsSpec::of(source, settings).map(|_| Err(ModelError::NoEngine))
}

/// What local models would be loaded with.
#[derive(Debug, Clone, Copy)]
#[expect(dead_code, reason = "nothing is loaded")]
pub(super) struct EngineContext<'a> {
    pub(super) settings: &'a EngineSettings,
    pub(super) engines: &'a EngineRegistry,
    pub(super) metrics: Option<&'a Arc<Metrics>>,
    pub(super) memory_taken: u64,
}

/// No local model can be loaded.
pub(super) fn load_local(
    _context: EngineContext<'_>,
    _weights: WeightsSpec,
    _name: &Arc<str>,
    _local: &LocalModelSettings,
    _loaded: &mut Option<LoadedModel>,
) -> Result<Arc<dyn Backend>, ModelError> {
    Err(ModelError::NoEngine)
}

/// A local model that is loaded: there is none.
#[derive(Debug, Clone)]
pub(super) struct LoadedModel {
    pub(super) engine: Arc<MonitoredEngine>,
    pub(super) limits: LocalModelLimits,
}

impl LoadedModel {
    pub(super) fn activate(&self) {
        match *self.engine {}
    }

    pub(super) fn memory_kept(&self) -> u64 {
        match *self.engine {}
    }
}

/// A local engine: there is none.
#[derive(Debug)]
pub(super) enum MonitoredEngine {}

impl MonitoredEngine {
    pub(super) fn is_alive(&self) -> bool {
        match *self {}
    }

    pub(super) fn is_running(&self, _weights: Option<&WeightsSpec>, _memory_taken: u64) -> bool {
        match *self {}
    }

    pub(super) fn fits_beside(&self, _memory_taken: u64) -> bool {
        match *self {}
    }

    pub(super) fn remove_gauges(&self, _metrics: &Metrics) {
        match *self {}
    }

    pub(super) fn refresh(&self, _metrics: &Metrics) {
        match *self {}
    }
}

/// The engines that may still run: none.
#[derive(Debug, Clone, Default)]
pub(super) struct EngineRegistry {}

impl EngineRegistry {
    pub(super) fn set_wait_max(&self, _wait_max: Duration) {}

    pub(super) fn stop(&self) {}
}
