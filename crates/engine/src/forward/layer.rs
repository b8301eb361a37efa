//! One layer: attention and the feed-forward network, each added to what came in.

use crate::error::EngineError;
use crate::gpu::{Gpu, Plane};
use crate::ops::{
    ActivationRows, AttendTied, Attention, BoundAttention, BoundMatmul, CacheLayout, Matmul, PickRows,
    PickTied, QuantiseRows, RmsNorm, Rope, RopeTied, rows_for_teams, split_bytes, split_rows,
};
use crate::shape::ModelShape;
use crate::weights::{WeightMatrix, vector};
use stint_gguf::Gguf;

use super::buffers::{EngineCapacity, StepBuffers};
use super::extent::StepExtent;
use super::network::{Network, NetworkActivations, NetworkContext, NetworkKernels, widest};

/// The kernels that all layers share.
pub(super) struct LayerKernels {
    pub(super) matmul: Matmul,
    pub(super) norm: RmsNorm,
    rope: Rope,
    attend: Attention,
    quantise: QuantiseRows,
    pick: PickRows,
    network: NetworkKernels,
}

impl LayerKernels {
    pub(super) fn new(gpu: &Gpu, shape: &ModelShape, capacity: &EngineCapacity) -> Self {
        let (table, layout) = (capacity.table_len(), CacheLayout::new(gpu, shape, capacity.kv_format));
        Self {
            matmul: Matmul::new(gpu),
            norm: RmsNorm::new(gpu, shape.hidden, shape.epsilon),
            rope: Rope::new(gpu, shape, table, layout),
            attend: Attention::new(gpu, shape, table, layout),
            quantise: QuantiseRows::new(gpu, shape.queries()),
            pick: PickRows::new(gpu, shape.hidden, shape.queries()),
            network: NetworkKernels::new(gpu, shape),
        }
    }

    /// The numbers of rows from which on other kernels run than for fewer, beside two.
    pub(super) fn rows_many(&self, shape: &ModelShape) -> Vec<u32> {
        shape
            .experts
            .map(rows_for_teams)
            .into_iter()
            .chain(self.matmul.tokens_many().iter().copied())
            .collect()
    }
}

/// What flows between the kernels, one row a token.
pub(super) struct Activations {
    pub(super) stream: LayerStream,
    /// The same of the picked rows alone, which is all that the last layer's second half computes.
    pub(super) picked: LayerStream,
    pub(super) normed: ActivationRows,
    qkv: wgpu::Buffer,
    /// The queries, where attention wants them apart.
    queries: Option<Plane>,
    /// What attention makes of the splits of long rows.
    shares: wgpu::Buffer,
    network: NetworkActivations,
}

/// What a layer adds to, and what its attention gives.
pub(super) struct LayerStream {
    /// The residual stream.
    pub(super) h: wgpu::Buffer,
    attended: ActivationRows,
}

impl LayerStream {
    fn new(gpu: &Gpu, shape: &ModelShape, rows: u32) -> Self {
        Self {
            h: gpu.buffer("h", u64::from(rows) * u64::from(shape.hidden) * 4),
            attended: ActivationRows::new(gpu, "attended", rows, shape.queries()),
        }
    }
}

/// Whether a device can bind what so many rows of a step compute in, and reach each.
pub(crate) fn rows_fit(gpu: &Gpu, shape: &ModelShape, rows: u32) -> bool {
    let widest = widest(shape).max(u64::from(shape.qkv()));
    let places = u64::from(rows) * u64::from(shape.networks());
    let planes = u64::from(shape.hidden.max(shape.queries()).max(shape.feed_forward).div_ceil(4));
    u64::from(rows) * widest * 4 <= gpu.binding_max && places <= 65_535 && gpu.holds_grid(planes, places)
}

impl Activations {
    pub(super) fn new(gpu: &Gpu, shape: &ModelShape, capacity: &EngineCapacity) -> Result<Self, EngineError> {
        let bytes = |columns: u32| u64::from(capacity.rows) * u64::from(columns) * 4;
        if !rows_fit(gpu, shape, capacity.rows) {
            return Err(EngineError::Settings(
                "`prefill_chunk` is too large for this device: lower it".into(),
            ));
        }
        if split_rows(shape, gpu.binding_max) == 0 {
            return Err(EngineError::Model("its attention needs more room than this device can bind".into()));
        }
        let layout = CacheLayout::new(gpu, shape, capacity.kv_format);
        Ok(Self {
            stream: LayerStream::new(gpu, shape, capacity.rows),
            picked: LayerStream::new(gpu, shape, capacity.slots),
            normed: ActivationRows::new(gpu, "normed", capacity.rows, shape.hidden),
            qkv: gpu.buffer("qkv", bytes(shape.qkv())),
            queries: layout.queries(gpu, capacity.rows, shape.queries()),
            shares: gpu.buffer("shares", split_bytes(shape, capacity.rows, gpu.binding_max)),
            network: NetworkActivations::new(gpu, shape, capacity.rows),
        })
    }
}

/// What all layers are loaded from and into.
pub(super) struct LoadContext<'a> {
    pub(super) gpu: &'a Gpu,
    pub(super) gguf: &'a Gguf,
    pub(super) shape: &'a ModelShape,
    pub(super) state: &'a StepBuffers,
    pub(super) rotations: &'a wgpu::Buffer,
    pub(super) capacity: &'a EngineCapacity,
}

/// A layer's weights and cache, tied to the activations.
pub(super) struct Layer {
    attention_norm: wgpu::BindGroup,
    qkv: BoundMatmul,
    rope: wgpu::BindGroup,
    attend: BoundAttention,
    /// Of the last layer: from here on it computes the picked rows alone.
    pick: Option<wgpu::BindGroup>,
    /// The bytes of what attention gives.
    quantise: Option<wgpu::BindGroup>,
    output: BoundMatmul,
    network_norm: wgpu::BindGroup,
    network: Network,
    /// Bytes of weights that a token reads.
    pub(super) bytes: u64,
}

impl Layer {
    pub(super) fn load(
        context: &LoadContext<'_>,
        ops: &LayerKernels,
        activations: &Activations,
        index: u32,
    ) -> Result<Self, EngineError> {
        let &LoadContext { gpu, gguf, shape, state, .. } = context;
        let Activations { stream, picked, normed, qkv, .. } = activations;
        let is_last = index + 1 == shape.layers;
        let LayerStream { h, attended } = if is_last { picked } else { stream };
        let name = |part: &str| format!("blk.{index}.{part}.weight");
        let matrix = |parts: &[&str], columns: u32, rows: u32| {
            let names: Vec<_> = parts.iter().map(|part| name(part)).collect();
            WeightMatrix::load_rows(gpu, gguf, &names, columns, rows)
        };
        let projections = matrix(&["attn_q", "attn_k", "attn_v"], shape.hidden, shape.qkv())?;
        let output = matrix(&["attn_output"], shape.queries(), shape.hidden)?;
        let between = &activations.network;
        let network = NetworkContext { gpu, gguf, shape, index, normed, h, activations: between };
        let network = Network::load(&network, &ops.matmul, &ops.network)?;
        let (rope, attend) = bind_attention(context, ops, activations, index)?;
        let bind_norm = |h: &wgpu::Buffer, part: &str| -> Result<wgpu::BindGroup, EngineError> {
            let weight = gpu.buffer_with(part, &vector(gguf, &name(part), shape.hidden)?);
            Ok(ops.norm.bind(gpu, h, &weight, normed))
        };
        let pick = PickTied {
            picks: &state.picks,
            from: (&stream.h, &stream.attended.floats),
            to: (&picked.h, &picked.attended.floats),
        };
        Ok(Self {
            attention_norm: bind_norm(&stream.h, "attn_norm")?,
            qkv: ops.matmul.bind(gpu, &projections, normed, qkv, false),
            rope,
            attend,
            pick: is_last.then(|| ops.pick.bind(gpu, &pick)),
            quantise: ops.quantise.bind(gpu, attended),
            output: ops.matmul.bind(gpu, &output, attended, h, true),
            network_norm: bind_norm(h, "ffn_norm")?,
            bytes: projections.bytes + output.bytes + network.bytes,
            network,
        })
    }

    /// Nobody reads what the last layer makes of rows that no logits are wanted of, beside what its cache keeps.
    pub(super) fn run(
        &self,
        gpu: &Gpu,
        ops: &LayerKernels,
        pass: &mut wgpu::ComputePass<'_>,
        extent: StepExtent,
    ) {
        let StepExtent { rows, picks, longest, .. } = extent;
        ops.norm.run(gpu, pass, &self.attention_norm, rows);
        self.qkv.run(pass, rows);
        ops.rope.run(gpu, pass, &self.rope, rows);
        let wanted = if self.pick.is_some() { picks } else { rows };
        if wanted == 0 {
            return;
        }
        ops.attend.run(pass, &self.attend, rows, longest);
        if let Some(pick) = &self.pick {
            ops.pick.run(pass, pick, picks);
        }
        ops.quantise.run(pass, self.quantise.as_ref(), wanted);
        self.output.run(pass, wanted);
        ops.norm.run(gpu, pass, &self.network_norm, wanted);
        self.network.run(gpu, &ops.network, pass, wanted);
    }
}

/// Makes the layer's cache and ties rope and attention to it.
fn bind_attention(
    context: &LoadContext<'_>,
    ops: &LayerKernels,
    activations: &Activations,
    index: u32,
) -> Result<(wgpu::BindGroup, BoundAttention), EngineError> {
    let &LoadContext { gpu, shape, state, rotations, capacity, .. } = context;
    let layout = CacheLayout::new(gpu, shape, capacity.kv_format);
    let [keys, values] = ["keys", "values"].map(|label| layout.plane(gpu, label, capacity.blocks));
    let queries = activations.queries.as_ref();
    let rope = RopeTied {
        qkv: &activations.qkv,
        adjustments: &gpu.buffer_with("adjustments", &adjustments(context, index)?),
        rotations,
        rows: &state.rows,
        blocks: &state.tables,
        queries,
        keys: &keys,
        values: &values,
    };
    let attend = AttendTied {
        qkv: &activations.qkv,
        queries,
        keys: &keys,
        values: &values,
        rows: &state.rows,
        blocks: &state.tables,
        y: &activations.stream.attended.floats,
        shares: &activations.shares,
    };
    Ok((ops.rope.bind(gpu, &rope), ops.attend.bind(gpu, &attend)))
}

/// What the layer does to queries, keys and values before they are rotated, as the kernel wants it.
fn adjustments(context: &LoadContext<'_>, index: u32) -> Result<Vec<f32>, EngineError> {
    let &LoadContext { gguf, shape, .. } = context;
    let mut all = Vec::new();
    if shape.qk_norm {
        for part in ["attn_q_norm", "attn_k_norm"] {
            all.extend(vector(gguf, &format!("blk.{index}.{part}.weight"), shape.head_dim)?);
        }
    }
    if shape.qkv_bias {
        let values = shape.kv_heads * shape.head_dim;
        for (part, length) in [("attn_q", shape.queries()), ("attn_k", values), ("attn_v", values)] {
            all.extend(vector(gguf, &format!("blk.{index}.{part}.bias"), length)?);
        }
    }
    Ok(all)
}
