//! A layer's feed-forward network: one that every token goes through, or experts, of which each goes through a few.

use stint_gguf::Gguf;

use crate::error::EngineError;
use crate::expert_shape::ExpertShape;
use crate::expert_weights::{ExpertMatrix, ExpertTensorSize};
use crate::gpu::Gpu;
use crate::ops::{
    ActivationRows, BoundExperts, BoundMatmul, ExpertBuffers, ExpertMatmul, Matmul, MixExperts, RouteExperts,
    SwiGlu, TeamPlaces, rows_for_teams, teams_max,
};
use crate::shape::ModelShape;
use crate::weights::WeightMatrix;

/// The kernels that the networks of all layers share, beside those for plain matrices.
pub(super) struct NetworkKernels {
    gate: SwiGlu,
    experts: Option<ExpertKernels>,
}

struct ExpertKernels {
    shape: ExpertShape,
    route: RouteExperts,
    team: TeamPlaces,
    wide: ExpertMatmul,
    down: ExpertMatmul,
    mix: MixExperts,
}

impl NetworkKernels {
    pub(super) fn new(gpu: &Gpu, shape: &ModelShape) -> Self {
        let experts = shape.experts.map(|experts| ExpertKernels {
            shape: experts,
            route: RouteExperts::new(gpu, experts),
            team: TeamPlaces::new(gpu, experts),
            wide: ExpertMatmul::new(experts, experts.used),
            down: ExpertMatmul::new(experts, 1),
            mix: MixExperts::new(gpu, shape.hidden, experts.used),
        });
        Self { gate: SwiGlu::new(gpu, shape.feed_forward), experts }
    }
}

/// What flows between a network's kernels.
pub(super) struct NetworkActivations {
    /// Gate and up, side by side; of experts, for each that a row goes through.
    wide: wgpu::Buffer,
    gated: ActivationRows,
    experts: Option<ExpertActivations>,
}

struct ExpertActivations {
    /// The router's numbers, one an expert.
    router: wgpu::Buffer,
    chosen: wgpu::Buffer,
    teams: wgpu::Buffer,
    /// What each expert that a row went through gives.
    given: wgpu::Buffer,
}

/// Numbers of four bytes that a row takes in [`NetworkActivations`].
pub(crate) fn network_numbers(shape: &ModelShape) -> u64 {
    let networks = u64::from(shape.networks());
    let dense = 3 * networks * u64::from(shape.feed_forward);
    let experts = shape.experts.map_or(0, |experts| {
        // A row's choices, and a team for each at most.
        u64::from(experts.count) + networks * (2 + 4 + u64::from(shape.hidden))
    });
    dense + experts
}

/// The most numbers that one buffer has for a row.
pub(super) fn widest(shape: &ModelShape) -> u64 {
    let network = u64::from(shape.hidden.max(2 * shape.feed_forward)) * u64::from(shape.networks());
    network.max(shape.experts.map_or(0, |experts| u64::from(experts.count)))
}

impl NetworkActivations {
    pub(super) fn new(gpu: &Gpu, shape: &ModelShape, rows: u32) -> Self {
        let places = rows * shape.networks();
        let buffer =
            |label, rows: u32, columns: u32| gpu.buffer(label, u64::from(rows) * u64::from(columns) * 4);
        let experts = shape.experts.map(|experts| ExpertActivations {
            router: buffer("router", rows, experts.count),
            chosen: buffer("chosen", places, 2),
            teams: buffer("teams", teams_max(places, experts.count), 4),
            given: buffer("given", places, shape.hidden),
        });
        Self {
            wide: buffer("wide", places, 2 * shape.feed_forward),
            gated: ActivationRows::new(gpu, "gated", places, shape.feed_forward),
            experts,
        }
    }
}

/// What a layer's network is loaded from, and tied to.
pub(super) struct NetworkContext<'a> {
    pub(super) gpu: &'a Gpu,
    pub(super) gguf: &'a Gguf,
    pub(super) shape: &'a ModelShape,
    /// The number of the layer.
    pub(super) index: u32,
    /// Its input, and what its output is added to.
    pub(super) normed: &'a ActivationRows,
    pub(super) h: &'a wgpu::Buffer,
    pub(super) activations: &'a NetworkActivations,
}

impl NetworkContext<'_> {
    fn matrix(&self, parts: &[&str], columns: u32, rows: u32) -> Result<WeightMatrix, EngineError> {
        WeightMatrix::load_rows(self.gpu, self.gguf, &self.names(parts), columns, rows)
    }

    fn names(&self, parts: &[&str]) -> Vec<String> {
        parts.iter().map(|part| format!("blk.{}.{part}.weight", self.index)).collect()
    }
}

/// A layer's weights, tied to the activations.
pub(super) struct Network {
    way: NetworkWay,
    gate: wgpu::BindGroup,
    /// Bytes of weights that a token reads.
    pub(super) bytes: u64,
}

enum NetworkWay {
    Dense { wide: BoundMatmul, down: BoundMatmul },
    Experts(BoundNetwork),
}

struct BoundNetwork {
    router: BoundMatmul,
    route: wgpu::BindGroup,
    team: wgpu::BindGroup,
    wide: BoundExperts,
    down: BoundExperts,
    mix: wgpu::BindGroup,
}

impl Network {
    pub(super) fn load(
        context: &NetworkContext<'_>,
        matmul: &Matmul,
        kernels: &NetworkKernels,
    ) -> Result<Self, EngineError> {
        let &NetworkContext { gpu, activations, .. } = context;
        let gate = kernels.gate.bind(gpu, &activations.wide, &activations.gated);
        let (way, bytes) = match (&kernels.experts, &activations.experts) {
            (Some(kernels), Some(between)) => load_experts(context, matmul, kernels, between)?,
            _ => load_dense(context, matmul)?,
        };
        Ok(Self { way, gate, bytes })
    }

    pub(super) fn run(
        &self,
        gpu: &Gpu,
        kernels: &NetworkKernels,
        pass: &mut wgpu::ComputePass<'_>,
        rows: u32,
    ) {
        match (&self.way, &kernels.experts) {
            (NetworkWay::Experts(bound), Some(experts)) => {
                let places = rows * experts.shape.used;
                bound.router.run(pass, rows);
                experts.route.run(gpu, pass, &bound.route, rows);
                if rows >= rows_for_teams(experts.shape) {
                    experts.team.run(pass, &bound.team, places);
                }
                bound.wide.run(pass, rows);
                kernels.gate.run(pass, &self.gate, places);
                bound.down.run(pass, rows);
                experts.mix.run(pass, &bound.mix, rows);
            }
            (NetworkWay::Dense { wide, down }, _) => {
                wide.run(pass, rows);
                kernels.gate.run(pass, &self.gate, rows);
                down.run(pass, rows);
            }
            (NetworkWay::Experts(_), None) => {}
        }
    }
}

fn load_dense(context: &NetworkContext<'_>, matmul: &Matmul) -> Result<(NetworkWay, u64), EngineError> {
    let &NetworkContext { gpu, shape, normed, h, activations, .. } = context;
    let wide = context.matrix(&["ffn_gate", "ffn_up"], shape.hidden, 2 * shape.feed_forward)?;
    let down = context.matrix(&["ffn_down"], shape.feed_forward, shape.hidden)?;
    let bound = NetworkWay::Dense {
        wide: matmul.bind(gpu, &wide, normed, &activations.wide, false),
        down: matmul.bind(gpu, &down, &activations.gated, h, true),
    };
    Ok((bound, wide.bytes + down.bytes))
}

fn load_experts(
    context: &NetworkContext<'_>,
    matmul: &Matmul,
    kernels: &ExpertKernels,
    between: &ExpertActivations,
) -> Result<(NetworkWay, u64), EngineError> {
    let &NetworkContext { gpu, gguf, shape, normed, h, activations, .. } = context;
    let ExpertActivations { router, chosen, teams, given } = between;
    let ExpertShape { count: experts, used, .. } = kernels.shape;
    let load = |parts: &[&str], columns, rows| {
        let size = ExpertTensorSize { experts, rows, columns };
        ExpertMatrix::load(gpu, gguf, &context.names(parts), size, gpu.binding_max)
    };
    let chooses = context.matrix(&["ffn_gate_inp"], shape.hidden, experts)?;
    let wide = load(&["ffn_gate_exps", "ffn_up_exps"], shape.hidden, shape.feed_forward)?;
    let down = load(&["ffn_down_exps"], shape.feed_forward, shape.hidden)?;
    let all: u64 = wide.iter().chain(&down).map(|matrix| matrix.matrix.bytes).sum();
    let wide_buffers = ExpertBuffers { x: normed, y: &activations.wide, chosen, teams };
    let down_buffers = ExpertBuffers { x: &activations.gated, y: given, chosen, teams };
    let bound = BoundNetwork {
        router: matmul.bind(gpu, &chooses, normed, router, false),
        route: kernels.route.bind(gpu, router, chosen),
        team: kernels.team.bind(gpu, chosen, teams),
        wide: kernels.wide.bind(gpu, &wide, &wide_buffers),
        down: kernels.down.bind(gpu, &down, &down_buffers),
        mix: kernels.mix.bind(gpu, given, chosen, h),
    };
    let read = chooses.bytes + all / u64::from(experts) * u64::from(used);
    Ok((NetworkWay::Experts(bound), read))
}
