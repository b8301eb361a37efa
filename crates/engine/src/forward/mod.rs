//! The forward pass: a model's weights and buffers on the device, and one step over a batch of rows.
//!
//! A row is one token of one sequence at one position. Rows of many sequences, being prefilled or
//! decoded, run together; each reads its own sequence's cache through its slot's table.

mod ahead;
mod buffers;
mod draw;
mod extent;
mod layer;
mod network;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use stint_gguf::Gguf;

use super::error::EngineError;
use super::gpu::{DEVICE_TIMEOUT, DispatchTimes, Gpu};
use super::ops::{
    AdjustLogits, BoundMatmul, Embed, LogitChange, MaskLogits, SLOT_WORDS, SampledToken, Sampler,
};
use super::shape::ModelShape;
use super::weights::{WeightMatrix, vector};

use ahead::RecordedStep;
use buffers::StepBuffers;
use draw::LogitsReadback;
use extent::StepExtent;
use layer::{Activations, Layer, LayerKernels};

pub(crate) use buffers::EngineCapacity;
pub(crate) use draw::{DrawOptions, DrawnTokens};
pub(crate) use layer::rows_fit;
pub(crate) use network::network_numbers;

/// Logits that a text may change beside those of its own tokens.
pub(crate) const LOGIT_BIASES: u32 = 1024;

/// One token to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchRow {
    /// Its id, or [`LAST_SAMPLED`](super::ops::LAST_SAMPLED) for the last that its slot sampled.
    pub(crate) token: u32,
    pub(crate) slot: u32,
    pub(crate) position: u32,
}

/// The rows of one step, and those among them whose next token is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ForwardBatch {
    pub(crate) rows: Vec<BatchRow>,
    /// Indices into `rows`.
    pub(crate) picks: Vec<u32>,
}

/// A model on a device.
pub(crate) struct EngineModel {
    gpu: Arc<Gpu>,
    capacity: EngineCapacity,
    vocab: u32,
    ops: LayerKernels,
    embed: Embed,
    layers: Vec<Layer>,
    last_norm: wgpu::BindGroup,
    lm_head: BoundMatmul,
    adjust: AdjustLogits,
    mask: MaskLogits,
    sample: Sampler,
    readback: LogitsReadback,
    state: StepBuffers,
    expected: RecordedStep,
    weight_bytes: u64,
    /// From so many rows in a step on other kernels run than for fewer.
    rows_many: Vec<u32>,
    /// The most that a step may take.
    step_max: Duration,
}

impl EngineModel {
    /// Uploads a model and makes room for what it needs to run.
    pub(crate) fn load(
        gpu: Arc<Gpu>,
        gguf: &Gguf,
        shape: &ModelShape,
        capacity: EngineCapacity,
    ) -> Result<Self, EngineError> {
        let state = StepBuffers::new(&gpu, &capacity, shape.vocab)?;
        let ops = LayerKernels::new(&gpu, shape, &capacity);
        let activations = Activations::new(&gpu, shape, &capacity)?;
        let table = WeightMatrix::load(&gpu, gguf, &["token_embd.weight".into()], shape.hidden)?;
        let embed = Embed::new(&gpu, &table, &state.rows, &state.slots, &activations.stream.h);
        let angles = shape.rope.rotations(capacity.context, shape.head_dim);
        let rotations = gpu.buffer_with("rotations", &angles);
        let context = layer::LoadContext {
            gpu: &gpu,
            gguf,
            shape,
            state: &state,
            rotations: &rotations,
            capacity: &capacity,
        };
        let layers = (0..shape.layers).map(|index| Layer::load(&context, &ops, &activations, index));
        let layers = layers.collect::<Result<Vec<_>, _>>()?;
        let weight = gpu.buffer_with("output norm", &vector(gguf, "output_norm.weight", shape.hidden)?);
        let last_norm = ops.norm.bind(&gpu, &activations.picked.h, &weight, &activations.normed);
        // Without a matrix of its own the output shares the embeddings'.
        let untied = gguf.has_tensor("output.weight");
        let own = untied
            .then(|| WeightMatrix::load(&gpu, gguf, &["output.weight".into()], shape.hidden))
            .transpose()?;
        let output = own.as_ref().unwrap_or(&table);
        let head = ops.matmul.bind(&gpu, output, &activations.normed, &state.logits, false);
        if output.rows != shape.vocab {
            return Err(EngineError::Model("its output and its embeddings differ in size".into()));
        }
        let changes = capacity.slots * shape.vocab.min(capacity.context.saturating_add(LOGIT_BIASES));
        if u64::from(changes) * LogitChange::BYTES > gpu.binding_max {
            let message =
                "penalties for so many sequences of such a context do not fit this device: lower `sequences`";
            return Err(EngineError::Settings(message.into()));
        }
        let adjust = AdjustLogits::new(&gpu, shape.vocab, &state.logits, changes);
        let mask = MaskLogits::new(&gpu, shape.vocab, &state.logits, capacity.slots);
        let sample =
            Sampler::new(&gpu, shape.vocab, &state.logits, &state.picks, &state.slots, &state.sampled);
        let weight_bytes = output.bytes + layers.iter().map(|layer| layer.bytes).sum::<u64>();
        gpu.wait()?;
        Ok(Self {
            gpu,
            capacity,
            vocab: shape.vocab,
            rows_many: ops.rows_many(shape),
            ops,
            embed,
            layers,
            last_norm,
            lm_head: head,
            adjust,
            mask,
            sample,
            readback: LogitsReadback::new(capacity.slots, shape.vocab),
            state,
            expected: RecordedStep::default(),
            weight_bytes,
            step_max: DEVICE_TIMEOUT,
        })
    }

    /// From now on a step that takes longer has failed.
    pub(crate) fn limit_steps(&mut self, most: Duration) {
        self.step_max = most;
    }

    /// Whether the device is still there.
    pub(crate) fn probe(&self) -> Result<(), EngineError> {
        self.gpu.probe(self.step_max)
    }

    /// Loses the device, as a driver does.
    #[cfg(any(test, feature = "faults"))]
    pub(crate) fn lose_device(&self) {
        self.gpu.device.destroy();
    }

    /// Kernels that were dispatched so far.
    #[cfg(test)]
    pub(crate) fn dispatches(&self) -> u64 {
        self.gpu.counts.dispatches.load(Ordering::Relaxed)
    }

    /// Bytes of weights that one token reads.
    pub(crate) fn weight_bytes(&self) -> u64 {
        self.weight_bytes
    }

    /// The numbers of rows in a step from which on other kernels run than for fewer, beside two.
    pub(crate) fn rows_many(&self) -> &[u32] {
        &self.rows_many
    }

    /// The size of the vocabulary.
    pub(crate) fn vocab(&self) -> u32 {
        self.vocab
    }

    /// How much room there is.
    pub(crate) fn capacity(&self) -> &EngineCapacity {
        &self.capacity
    }

    /// Puts a generation into a slot: its sampler's state.
    pub(crate) fn init_slot(&self, slot: u32, words: &[u32]) {
        let state = u64::from(slot) * u64::from(SLOT_WORDS) * 4;
        self.gpu.queue.write_buffer(&self.state.slots, state, bytemuck::cast_slice(words));
    }

    /// Writes blocks into a slot's table, from this place on.
    pub(crate) fn update_table(&self, slot: u32, first: u32, blocks: &[u32]) {
        let table = (u64::from(slot) * u64::from(self.capacity.table_len()) + u64::from(first)) * 4;
        self.gpu.queue.write_buffer(&self.state.tables, table, bytemuck::cast_slice(blocks));
    }

    /// Runs a batch, changes logits of its picks and draws a token for each, in their order.
    pub(crate) fn step(
        &self,
        batch: &ForwardBatch,
        changes: &[LogitChange],
    ) -> Result<Vec<SampledToken>, EngineError> {
        let extent = self.submit(batch, Some(changes));
        if batch.picks.is_empty() {
            self.gpu.wait_for(self.step_max)?;
            return Ok(Vec::new());
        }
        if let Some(next) = extent.next() {
            self.expected.keep(next, self.record(next));
        }
        let sampled = &self.state.sampled_readback;
        let words: Vec<[u32; 4]> = self.gpu.map_read(sampled, batch.picks.len(), self.step_max)?;
        Ok(SampledToken::all(&words))
    }

    /// Runs a batch and reads the logits of its picks instead of drawing from them.
    pub(crate) fn logits(&self, batch: &ForwardBatch) -> Result<Vec<Vec<f32>>, EngineError> {
        self.submit(batch, None);
        let vocab = self.vocab as usize;
        let all: Vec<f32> = self.gpu.read(&self.state.logits, batch.picks.len() * vocab)?;
        Ok(all.chunks(vocab).map(<[f32]>::to_vec).collect())
    }

    /// Without `changes` nothing is drawn.
    fn submit(&self, batch: &ForwardBatch, changes: Option<&[LogitChange]>) -> StepExtent {
        let extent = self.write(batch, changes);
        match self.expected.take(extent) {
            Some(commands) => {
                self.gpu.counts.recorded_ahead.fetch_add(1, Ordering::Relaxed);
                self.gpu.submit(commands);
            }
            None => self.gpu.submit(self.record(extent)),
        }
        extent
    }

    /// Writes what a step is about.
    fn write(&self, batch: &ForwardBatch, changes: Option<&[LogitChange]>) -> StepExtent {
        let rows: Vec<_> = batch.rows.iter().map(|row| [row.token, row.slot, row.position, 0]).collect();
        let slot = |row: u32| batch.rows.get(row as usize).map_or(0, |row| row.slot);
        let picks: Vec<_> = batch.picks.iter().map(|&row| [row, slot(row)]).collect();
        self.gpu.queue.write_buffer(&self.state.rows, 0, bytemuck::cast_slice(&rows));
        self.gpu.queue.write_buffer(&self.state.picks, 0, bytemuck::cast_slice(&picks));
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        StepExtent {
            rows: count(rows.len()),
            picks: count(picks.len()),
            longest: batch.rows.iter().map(|row| row.position + 1).max().unwrap_or(0),
            changes: changes.map(|changes| self.adjust.write(&self.gpu, changes)),
        }
    }

    /// Runs a batch, and tells how long each kernel took: their names and seconds, in their order. From then on every step is slower.
    pub(crate) fn time_dispatches(&self, batch: &ForwardBatch) -> Result<Vec<(String, f64)>, EngineError> {
        let absent = || EngineError::Settings("this device has no clock for its kernels".into());
        if self.gpu.times.get().is_none() {
            drop(self.gpu.times.set(DispatchTimes::new(&self.gpu).ok_or_else(absent)?));
        }
        let times = self.gpu.times.get().ok_or_else(absent)?;
        let extent = self.write(batch, Some(&[]));
        let mut encoder = self.gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        times.begin(&mut pass);
        self.record_pass(&mut pass, extent);
        drop(pass);
        times.submit(&self.gpu, encoder)
    }

    fn record(&self, extent: StepExtent) -> wgpu::CommandBuffer {
        let mut encoder = self.gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        self.record_pass(&mut pass, extent);
        drop(pass);
        if extent.changes.is_some() && extent.picks > 0 {
            let bytes = u64::from(extent.picks) * 16;
            encoder.copy_buffer_to_buffer(&self.state.sampled, 0, &self.state.sampled_readback, 0, bytes);
        }
        encoder.finish()
    }

    fn record_pass(&self, pass: &mut wgpu::ComputePass<'_>, extent: StepExtent) {
        let StepExtent { rows, picks, changes, .. } = extent;
        self.embed.run(pass, rows);
        for layer in &self.layers {
            layer.run(&self.gpu, &self.ops, pass, extent);
        }
        if picks == 0 {
            return;
        }
        self.ops.norm.run(&self.gpu, pass, &self.last_norm, picks);
        self.lm_head.run(pass, picks);
        if let Some(changes) = changes {
            self.adjust.run(pass, changes);
            self.sample.run(pass, picks);
        }
    }
}
