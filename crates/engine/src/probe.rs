//! What the parity suite and the benchmark need and nobody else: logits, and the device's bandwidth.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use stint_gguf::Gguf;

use super::error::EngineError;
use super::forward::{BatchRow, EngineCapacity, EngineModel, ForwardBatch};
use super::gpu::Gpu;
use super::ops::{BLOCK, BandwidthKernel, SamplingParams, slot_words};
use super::phases::{PhaseBudgets, PhaseMachine};
use super::shape::ModelShape;

/// One sequence, fed by hand.
pub struct LogitsProbe {
    model: EngineModel,
    position: u32,
}

impl LogitsProbe {
    /// Loads a model for sequences of up to `context` tokens, on whatever device there is.
    pub fn open(path: &Path, context: u32) -> Result<Self, EngineError> {
        let gpu = Arc::new(Gpu::open(None, true)?);
        let gguf = Gguf::open(path)?;
        let shape = ModelShape::read(&gguf)?;
        let blocks = context.div_ceil(BLOCK);
        let extent = EngineCapacity { slots: 1, rows: context, context, blocks };
        let model = EngineModel::load(gpu, &gguf, &shape, extent)?;
        let sampling = SamplingParams { temperature: 0.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed: 0 };
        let machine = PhaseMachine::new(PhaseBudgets::without_thinking(1), Vec::new());
        model.init_slot(0, &slot_words(&machine, sampling));
        model.update_table(0, 0, &(0..blocks).collect::<Vec<_>>());
        Ok(Self { model, position: 0 })
    }

    /// Appends tokens, all in one step, and returns the logits of what follows them.
    pub fn feed(&mut self, tokens: &[u32]) -> Result<Vec<f32>, EngineError> {
        let row = |(position, token): (u32, &u32)| BatchRow { token: *token, slot: 0, position };
        let rows: Vec<_> = (self.position..).zip(tokens).map(row).collect();
        let count = u32::try_from(rows.len()).unwrap_or(u32::MAX);
        self.position += count;
        let logits = self.model.logits(&ForwardBatch { rows, picks: vec![count.saturating_sub(1)] })?;
        Ok(logits.into_iter().next().unwrap_or_default())
    }

    /// Forgets the sequence.
    pub fn restart(&mut self) {
        self.position = 0;
    }
}

/// Bytes per second that a shader can read on the best device there is: the best of five.
pub fn bandwidth() -> Result<f64, EngineError> {
    let gpu = Gpu::open(None, true)?;
    // Several times the last-level cache, where the device lets one binding be so large.
    let stream = BandwidthKernel::new(&gpu, gpu.binding_max.min(1 << 30));
    let run = |_| {
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        stream.run(&mut encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default()));
        let begin = Instant::now();
        gpu.queue.submit([encoder.finish()]);
        gpu.wait().map(|()| stream.bytes() as f64 / begin.elapsed().as_secs_f64())
    };
    (0..6).map(run).try_fold(0f64, |best, rate| rate.map(|rate| best.max(rate)))
}
