//! What an engine will be: sized by its file, its settings and the device, and counted before anything is loaded.

use stint_gguf::Gguf;

use super::error::EngineError;
use super::facts::describe;
use super::forward::{EngineCapacity, rows_fit};
use super::gpu::Gpu;
use super::handle::Settings;
use super::memory_needs::{MemoryNeeds, MemoryRoom};
use super::ops::{BLOCK, CacheLayout};
use super::shape::ModelShape;

/// What an engine is to be loaded as.
pub(crate) struct EnginePlan {
    pub(crate) shape: ModelShape,
    pub(crate) capacity: EngineCapacity,
    /// The context that the model has, or that the settings ask for where that is less.
    context_wanted: u32,
    /// Bytes of the weights.
    pub(crate) weights: u64,
    /// Bytes of the device's memory that all of it takes.
    pub(crate) memory: u64,
}

/// What an engine has and takes once it is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineSize {
    /// The most tokens that prompt and budgets of one job may have together.
    pub context: u32,
    /// The same as far as the model and the `context` of the settings go. The cache may hold less.
    pub context_wanted: u32,
    /// The size of the vocabulary.
    pub vocab: u32,
    /// Sequences that run at once.
    pub slots: u32,
    /// Blocks of the cache.
    pub blocks: u32,
    /// Bytes of the weights.
    pub weights: u64,
    /// Bytes of the device's memory that it takes: weights, cache, and what steps compute in.
    pub memory: u64,
    /// Bytes of the device's memory that all models may take together, as far as that is known.
    pub memory_max: Option<u64>,
}

impl EngineSize {
    /// Opens the device and counts. Nothing is loaded.
    ///
    /// # Errors
    /// Why such an engine could not run, as far as that can be told without loading it.
    pub fn measure(gguf: &Gguf, settings: &Settings) -> Result<Self, EngineError> {
        let gpu = Gpu::open(settings.adapter.as_deref(), settings.allow_cpu)?;
        let plan = EnginePlan::new(&gpu, gguf, settings)?;
        Ok(Self::of(&plan, settings.memory_max.or(gpu.memory)))
    }

    /// Counts without a device, for the memory that the settings state. An engine takes that much at least: it reads as little of
    /// a prompt at once as one on any device.
    ///
    /// # Errors
    /// Why such an engine could not run on any device.
    pub fn estimate(gguf: &Gguf, settings: &Settings) -> Result<Self, EngineError> {
        let shape = ModelShape::read(gguf)?;
        let block = shape.kv_token_bytes(settings.kv_format) * u64::from(BLOCK);
        let bounds = DeviceBounds { chunk: CHUNK_SOFTWARE, blocks_max: u32::MAX, block, memory: None };
        let plan = EnginePlan::within(&bounds, shape, describe(gguf)?.weight_bytes, settings)?;
        Ok(Self::of(&plan, settings.memory_max))
    }

    fn of(plan: &EnginePlan, memory_max: Option<u64>) -> Self {
        let EnginePlan { shape, capacity, context_wanted, weights, memory } = plan;
        Self {
            context: capacity.context,
            context_wanted: *context_wanted,
            vocab: shape.vocab,
            slots: capacity.slots,
            blocks: capacity.blocks,
            weights: *weights,
            memory: *memory,
            memory_max,
        }
    }

    /// Tokens that the cache holds, all sequences together.
    #[must_use]
    pub fn kv_tokens(&self) -> u32 {
        self.blocks * BLOCK
    }
}

/// What a device has room for.
struct DeviceBounds {
    /// Tokens of a prompt that are read at once, where the settings do not say.
    chunk: u32,
    /// Blocks of the cache that it can bind.
    blocks_max: u32,
    /// Bytes of memory that a block of the cache takes there.
    block: u64,
    /// Bytes of memory for models, where that is known.
    memory: Option<u64>,
}

impl EnginePlan {
    pub(crate) fn new(gpu: &Gpu, gguf: &Gguf, settings: &Settings) -> Result<Self, EngineError> {
        let shape = ModelShape::read(gguf)?;
        let weights = describe(gguf)?.weight_bytes;
        check_software(gpu, weights, settings)?;
        let chunk = suitable_chunk(gpu, &shape, settings.sequences);
        let layout = CacheLayout::new(gpu, &shape, settings.kv_format);
        let (blocks_max, block) = (layout.blocks_max(gpu), u64::from(shape.layers) * layout.block_memory());
        let bounds = DeviceBounds { chunk, blocks_max, block, memory: gpu.memory };
        Self::within(&bounds, shape, weights, settings)
    }

    fn within(
        bounds: &DeviceBounds,
        shape: ModelShape,
        weights: u64,
        settings: &Settings,
    ) -> Result<Self, EngineError> {
        let capacity = capacity(bounds, &shape, settings)?;
        let context_wanted = shape.context.min(settings.context.unwrap_or(u32::MAX));
        let (capacity, memory) = fit(bounds, &shape, weights, capacity, settings)?;
        Ok(Self { shape, capacity, context_wanted, weights, memory })
    }
}

/// Tokens of a prompt that a GPU reads at once: enough to keep it busy. A 512-token prompt takes 1.5 times as long in pieces of 128.
const CHUNK_GPU: u32 = 512;

/// A software driver gains nothing from more.
const CHUNK_SOFTWARE: u32 = 128;

/// As much of a prompt as suits the device, and as it can bind.
fn suitable_chunk(gpu: &Gpu, shape: &ModelShape, sequences: u32) -> u32 {
    let fits = |chunk: &u32| rows_fit(gpu, shape, chunk.saturating_add(sequences));
    let most = if gpu.mode.is_software() { CHUNK_SOFTWARE } else { CHUNK_GPU };
    let mut fitting = std::iter::successors(Some(most), |chunk| Some(chunk / 2))
        .take_while(|chunk| *chunk > CHUNK_SOFTWARE);
    fitting.find(fits).unwrap_or(CHUNK_SOFTWARE)
}

/// Refuses a model that is too large for a software driver.
fn check_software(gpu: &Gpu, weights: u64, settings: &Settings) -> Result<(), EngineError> {
    let limit = settings.cpu_weights_max.filter(|_| gpu.mode.is_software());
    let Some(weights_max) = limit else { return Ok(()) };
    if weights <= weights_max {
        return Ok(());
    }
    Err(EngineError::TooLargeForSoftware { device: gpu.info.name.clone(), weights, weights_max })
}

/// The same capacity with as many blocks as the device has memory for, and the bytes that all of it takes.
fn fit(
    bounds: &DeviceBounds,
    shape: &ModelShape,
    weights: u64,
    capacity: EngineCapacity,
    settings: &Settings,
) -> Result<(EngineCapacity, u64), EngineError> {
    let needs = MemoryNeeds::new(shape, weights, bounds.block, &capacity);
    let room = MemoryRoom { most: settings.memory_max.or(bounds.memory), taken: settings.memory_taken };
    let stated = settings.context.map(|_| capacity.context);
    let blocks = needs.blocks_within(room, capacity.blocks, stated)?;
    let context = capacity.context.min(blocks * BLOCK);
    Ok((EngineCapacity { blocks, context, ..capacity }, needs.total(blocks)))
}

/// What the settings ask for, checked against the model and the device.
fn capacity(
    bounds: &DeviceBounds,
    shape: &ModelShape,
    settings: &Settings,
) -> Result<EngineCapacity, EngineError> {
    let refuse = |what: String| Err(EngineError::Settings(what));
    let chunk = settings.prefill_chunk.unwrap_or(bounds.chunk);
    if settings.sequences == 0 || chunk == 0 {
        return refuse("`sequences` and `prefill_chunk` must be at least 1".into());
    }
    let blocks = settings.kv_tokens / BLOCK;
    let kv_format = settings.kv_format;
    if blocks == 0 || blocks > bounds.blocks_max {
        let most = u64::from(bounds.blocks_max) * u64::from(BLOCK);
        return refuse(format!("`kv_tokens` must be between {BLOCK} and {most} on this device"));
    }
    let context = shape.context.min(settings.context.unwrap_or(u32::MAX)).min(blocks * BLOCK);
    if context == 0 {
        return refuse("`context` must be at least 1".into());
    }
    let rows = chunk.min(context).saturating_add(settings.sequences);
    Ok(EngineCapacity { slots: settings.sequences, rows, context, blocks, kv_format })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{DeviceMode, shared_as, shared_binding};
    use crate::kv_format::KvFormat;
    use stint_gguf::synth::SyntheticModel;

    /// The chunk beside eight sequences on a device that can bind what so many rows compute in.
    fn chunk(mode: DeviceMode, rows: u64) -> u32 {
        let gguf = Gguf::from_bytes(SyntheticModel::default().bytes().into()).unwrap();
        let shape = ModelShape::read(&gguf).unwrap();
        let widest = u64::from(shape.hidden.max(2 * shape.feed_forward).max(shape.qkv()));
        let mut gpu = shared_binding(rows * widest * 4);
        gpu.mode = mode;
        suitable_chunk(&gpu, &shape, 8)
    }

    #[test]
    fn a_gpu_reads_as_much_of_a_prompt_at_once_as_it_can_bind_up_to_512_tokens() {
        assert_eq!(
            [520, 519, 264, 263, 10].map(|rows| chunk(DeviceMode::Gpu, rows)),
            [512, 256, 256, 128, 128]
        );
        assert_eq!([1 << 20, 10].map(|rows| chunk(DeviceMode::SoftwareByLanes, rows)), [128, 128]);
    }

    /// What a block of a cache of bytes is counted as.
    fn block_counted(mode: DeviceMode) -> u64 {
        let synth = SyntheticModel { head_dim: 64, ..SyntheticModel::default() };
        let gguf = Gguf::from_bytes(synth.bytes().into()).unwrap();
        let mut gpu = shared_as(DeviceMode::Gpu).altered(mode, true);
        (gpu.texture_side_max, gpu.binding_max) = (8192, 128 << 20);
        let memory = |kv_tokens| {
            let settings = Settings { kv_tokens, kv_format: KvFormat::Q8_0, ..Settings::default() };
            EnginePlan::new(&gpu, &gguf, &settings).unwrap().memory
        };
        (memory(2048) - memory(1024)) / u64::from(1024 / BLOCK)
    }

    #[test]
    fn a_cache_in_textures_is_counted_with_what_is_left_of_their_rows() {
        // Two layers, keys and values of two heads: 68 bytes of each token, or a twelfth of a row for each block.
        assert_eq!(block_counted(DeviceMode::Gpu), 2 * 2 * 2 * 68 * 16);
        assert_eq!(block_counted(DeviceMode::SoftwareByLanes), 2 * 2 * (2u64 * 16_384).div_ceil(12));
    }

    fn estimate(settings: &Settings) -> Result<EngineSize, EngineError> {
        EngineSize::estimate(&Gguf::from_bytes(SyntheticModel::default().bytes().into()).unwrap(), settings)
    }

    #[test]
    fn what_no_device_could_run_is_found_without_one() {
        let free = estimate(&Settings::default()).unwrap();
        let short = Settings { memory_max: Some(free.weights), ..Settings::default() };
        let error = estimate(&short).unwrap_err();
        assert!(matches!(error, EngineError::TooLargeForDevice { weights, .. } if weights == free.weights));
        let enough = Settings { memory_max: Some(free.memory), ..Settings::default() };
        assert_eq!(estimate(&enough).unwrap(), EngineSize { memory_max: Some(free.memory), ..free });
        let beside = Settings { memory_taken: free.memory, ..enough };
        assert!(estimate(&beside).is_err(), "others keep some of it");
    }

    #[test]
    fn a_context_that_the_cache_does_not_hold_is_told_beside_the_one_that_is_wanted() {
        let contexts = |kv_tokens, context| {
            let size = estimate(&Settings { kv_tokens, context, ..Settings::default() }).unwrap();
            (size.context, size.context_wanted, size.kv_tokens())
        };
        assert_eq!(contexts(8192, None), (128, 128, 8192));
        assert_eq!(contexts(48, None), (48, 128, 48));
        assert_eq!(contexts(48, Some(64)), (48, 64, 48));
        assert_eq!(contexts(48, Some(32)), (32, 32, 48));
    }
}
