//! What the parity suite and the benchmark need and nobody else: logits, single steps, an engine of either grain and what it
//! gives its device to do, and the device's bandwidth.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use stint_gguf::Gguf;

use super::error::EngineError;
use super::forward::{BatchRow, EngineCapacity, EngineModel, ForwardBatch};
use super::gpu::{DeviceCounts, DeviceMode, Gpu};
use super::handle::{Engine, Settings};
use super::kv_format::KvFormat;
use super::ops::{BLOCK, BandwidthKernel, SamplingParams, slot_words};
use super::phases::{PhaseBudgets, PhaseMachine};
use super::shape::ModelShape;

/// Whose kernels run, whatever the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grain {
    /// A GPU's: threads meet at barriers, and bytes are multiplied.
    Cooperative,
    /// The same with floats.
    CooperativeFloats,
    /// A software driver's: a lane does its own sum.
    PerLane,
}

/// What an engine gave its device to do.
pub struct DeviceUse(Arc<DeviceCounts>);

impl DeviceUse {
    /// Submissions and dispatches so far, and submissions that were recorded while the device was busy.
    #[must_use]
    pub fn counts(&self) -> [u64; 3] {
        [&self.0.submissions, &self.0.dispatches, &self.0.recorded_ahead]
            .map(|count| count.load(Ordering::Relaxed))
    }
}

/// The best device there is, told to work in this grain, where one is named.
fn open_gpu(grain: Option<Grain>) -> Result<Gpu, EngineError> {
    let mut gpu = Gpu::open(None, true)?;
    match grain {
        Some(Grain::Cooperative) => gpu.mode = DeviceMode::Gpu,
        Some(Grain::CooperativeFloats) => gpu.mode = DeviceMode::GpuFloats,
        Some(Grain::PerLane) => gpu.mode = DeviceMode::SoftwareByLanes,
        None => {}
    }
    Ok(gpu)
}

/// An engine of this grain.
pub fn start(
    gguf: &Gguf,
    settings: &Settings,
    grain: Option<Grain>,
) -> Result<(Engine, DeviceUse), EngineError> {
    let gpu = open_gpu(grain)?;
    let counts = DeviceUse(Arc::clone(&gpu.counts));
    Ok((Engine::start_on(Arc::new(gpu), gguf, settings)?, counts))
}

/// The most rows of a step whose kernels are timed.
const PROBE_ROWS: u32 = 512;

/// Steps of one sequence at any position, without those before it.
pub struct StepProbe(EngineModel);

impl StepProbe {
    /// Loads a model for positions below `context`.
    pub fn open(
        gguf: &Gguf,
        context: u32,
        kv_format: KvFormat,
        grain: Option<Grain>,
    ) -> Result<Self, EngineError> {
        let blocks = context.div_ceil(BLOCK);
        let capacity = EngineCapacity { slots: 1, rows: PROBE_ROWS.min(context), context, blocks, kv_format };
        Ok(Self(one_slot(Arc::new(open_gpu(grain)?), gguf, capacity)?))
    }

    /// How long the kernels of a step take: their names, how often each ran, and the seconds of all of its runs together. `rows` rows
    /// up to that position, the last of which draws.
    pub fn kernels(&self, position: u32, rows: u32) -> Result<Vec<(String, u32, f64)>, EngineError> {
        let first = position + 1 - rows.min(position + 1);
        let rows: Vec<_> =
            (first..=position).map(|position| BatchRow { token: 1, slot: 0, position }).collect();
        let picks = vec![u32::try_from(rows.len()).unwrap_or(1) - 1];
        let mut all: Vec<(String, u32, f64)> = Vec::new();
        for (name, seconds) in self.0.time_dispatches(&ForwardBatch { rows, picks })? {
            match all.iter_mut().find(|known| known.0 == name) {
                Some((_, count, sum)) => (*count, *sum) = (*count + 1, *sum + seconds),
                None => all.push((name, 1, seconds)),
            }
        }
        Ok(all)
    }

    /// One step of one row.
    pub fn step(&self, position: u32) -> Result<(), EngineError> {
        let rows = vec![BatchRow { token: 1, slot: 0, position }];
        self.0.step(&ForwardBatch { rows, picks: vec![0] }, &[]).map(drop)
    }
}

/// A model whose one slot has all blocks.
fn one_slot(gpu: Arc<Gpu>, gguf: &Gguf, capacity: EngineCapacity) -> Result<EngineModel, EngineError> {
    let model = EngineModel::load(gpu, gguf, &ModelShape::read(gguf)?, capacity)?;
    let sampling = SamplingParams { temperature: 0.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed: 0 };
    let machine = PhaseMachine::new(PhaseBudgets::without_thinking(1), Vec::new());
    model.init_slot(0, &slot_words(&machine, sampling));
    model.update_table(0, 0, &(0..capacity.blocks).collect::<Vec<_>>());
    Ok(model)
}

/// One sequence, fed by hand.
pub struct LogitsProbe {
    model: EngineModel,
    position: u32,
}

impl LogitsProbe {
    /// Loads a model for sequences of up to `context` tokens, on whatever device there is.
    pub fn open(path: &Path, context: u32, kv_format: KvFormat) -> Result<Self, EngineError> {
        let gguf = Gguf::open(path)?;
        let blocks = context.div_ceil(BLOCK);
        let capacity = EngineCapacity { slots: 1, rows: context, context, blocks, kv_format };
        let model = one_slot(Arc::new(open_gpu(None)?), &gguf, capacity)?;
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
