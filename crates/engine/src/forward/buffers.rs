//! How much room a model gets on the device, and the buffers that every step writes.

use crate::error::EngineError;
use crate::gpu::Gpu;
use crate::kv_format::KvFormat;
use crate::ops::{BLOCK, SLOT_WORDS};

/// How much of everything to make room for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EngineCapacity {
    /// Sequences at once.
    pub(crate) slots: u32,
    /// Rows in one step.
    pub(crate) rows: u32,
    /// Positions of one sequence.
    pub(crate) context: u32,
    /// Blocks of the cache, all sequences together.
    pub(crate) blocks: u32,
    /// What the cache keeps.
    pub(crate) kv_format: KvFormat,
}

impl EngineCapacity {
    /// The length of one slot's table of blocks.
    pub(crate) fn table_len(&self) -> u32 {
        self.context.div_ceil(BLOCK)
    }
}

/// The buffers that change from step to step, caches and activations aside.
pub(super) struct StepBuffers {
    pub(super) rows: wgpu::Buffer,
    pub(super) picks: wgpu::Buffer,
    pub(super) slots: wgpu::Buffer,
    pub(super) tables: wgpu::Buffer,
    pub(super) logits: wgpu::Buffer,
    pub(super) sampled: wgpu::Buffer,
    pub(super) sampled_readback: wgpu::Buffer,
}

impl StepBuffers {
    pub(super) fn new(gpu: &Gpu, capacity: &EngineCapacity, vocab: u32) -> Result<Self, EngineError> {
        let slots = u64::from(capacity.slots);
        let logits = slots * u64::from(vocab) * 4;
        if logits > gpu.binding_max {
            let message =
                format!("{slots} sequences are too many for this device and vocabulary: lower `sequences`");
            return Err(EngineError::Settings(message));
        }
        Ok(Self {
            rows: gpu.buffer("rows", u64::from(capacity.rows) * 16),
            picks: gpu.buffer("picks", slots * 8),
            slots: gpu.buffer("slots", slots * u64::from(SLOT_WORDS) * 4),
            tables: gpu.buffer("tables", slots * u64::from(capacity.table_len()) * 4),
            logits: gpu.buffer("logits", logits),
            sampled: gpu.buffer("drawn", slots * 16),
            sampled_readback: gpu.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("drawn back"),
                size: slots * 16,
                usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
                mapped_at_creation: false,
            }),
        })
    }
}
