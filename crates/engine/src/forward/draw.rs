//! The second half of a step whose draws are not plain: what is known on the host while the device computes goes in between.

use std::sync::OnceLock;

use super::{EngineModel, ForwardBatch};
use crate::error::EngineError;
use crate::gpu::Gpu;
use crate::ops::{LogitChange, PickMask, SampledToken};

/// What happens to logits before tokens are drawn from them, and whose are told.
#[derive(Debug, Default)]
pub(crate) struct DrawOptions<'a> {
    pub(crate) changes: &'a [LogitChange],
    /// At most one for each pick.
    pub(crate) masks: &'a [PickMask],
    /// The picks whose logits the host reads, as the model made them.
    pub(crate) reported: &'a [u32],
}

/// What was drawn for the picks of a step, in their order.
#[derive(Debug, Default)]
pub(crate) struct DrawnTokens {
    pub(crate) tokens: Vec<SampledToken>,
    /// The logits of the picks that were asked for, in the order in which they were.
    pub(crate) logits: Vec<Vec<f32>>,
}

/// Where logits are copied for the host. Made when somebody first wants to read some.
pub(super) struct LogitsReadback {
    buffer: OnceLock<wgpu::Buffer>,
    rows: u32,
    vocab: u32,
}

impl LogitsReadback {
    pub(super) fn new(rows: u32, vocab: u32) -> Self {
        Self { buffer: OnceLock::new(), rows, vocab }
    }

    fn row_bytes(&self) -> u64 {
        u64::from(self.vocab) * 4
    }

    fn buffer(&self, gpu: &Gpu) -> &wgpu::Buffer {
        self.buffer.get_or_init(|| {
            gpu.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("logits back"),
                size: u64::from(self.rows) * self.row_bytes(),
                usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
                mapped_at_creation: false,
            })
        })
    }

    /// Copies the logits of these picks, one after another.
    fn copy(&self, gpu: &Gpu, encoder: &mut wgpu::CommandEncoder, logits: &wgpu::Buffer, picks: &[u32]) {
        let bytes = self.row_bytes();
        for (at, pick) in (0u64..).zip(picks) {
            let from = u64::from(*pick) * bytes;
            encoder.copy_buffer_to_buffer(logits, from, self.buffer(gpu), at * bytes, bytes);
        }
    }
}

impl EngineModel {
    /// Begins a step: the device computes the logits of its picks. [`draw`](Self::draw) must follow.
    pub(crate) fn begin(&self, batch: &ForwardBatch) {
        self.submit(batch, None);
    }

    /// Changes logits of the picks of the step that was begun, and draws a token for each.
    pub(crate) fn draw(&self, picks: usize, options: &DrawOptions<'_>) -> Result<DrawnTokens, EngineError> {
        let count = u32::try_from(picks).unwrap_or(u32::MAX);
        let (gpu, state) = (&self.gpu, &self.state);
        let changes = self.adjust.write(gpu, options.changes);
        let masks = self.mask.write(gpu, options.masks);
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        self.readback.copy(gpu, &mut encoder, &state.logits, options.reported);
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        self.adjust.run(&mut pass, changes);
        self.mask.run(&mut pass, masks);
        self.sample.run(&mut pass, count);
        drop(pass);
        encoder.copy_buffer_to_buffer(&state.sampled, 0, &state.sampled_readback, 0, u64::from(count) * 16);
        gpu.submit(encoder.finish());
        let words: Vec<[u32; 4]> = gpu.map_read(&state.sampled_readback, picks, self.step_max)?;
        let logits = self.read_logits(options.reported.len())?;
        Ok(DrawnTokens { tokens: SampledToken::all(&words), logits })
    }

    fn read_logits(&self, rows: usize) -> Result<Vec<Vec<f32>>, EngineError> {
        if rows == 0 {
            return Ok(Vec::new());
        }
        let vocab = self.vocab as usize;
        let buffer = self.readback.buffer(&self.gpu);
        let all: Vec<f32> = self.gpu.map_read(buffer, rows * vocab, self.step_max)?;
        Ok(all.chunks(vocab).map(<[f32]>::to_vec).collect())
    }
}
