//! The kernels that multiply with one kind of weights. They differ in how many tokens share one reading of the weights: one, for a
//! sequence that runs alone, and more, for batches and prompts. All that a device has for a kind of weights add in the same
//! order, so that a result's bits do not tell which of them ran.

use crate::gpu::{ActivationFormat, BufferAccess, Gpu, Kernel, KernelSource, ReductionStrategy, WORKGROUP};
use crate::weights::{has_blocks, interleaved_rows, weight_storage};
use stint_gguf::TensorType;

use super::activation_rows::{floats_reader, reads_floats};
use super::formats::{has_halves, plane_access, shader, two_factors};

/// What is multiplied with what: the part of the shaders in which plain matrices and those of experts differ.
pub(super) struct MatmulPlaces {
    pub(super) wgsl: &'static str,
    /// What is bound behind weights, scales, input and output.
    pub(super) more: &'static [BufferAccess],
    pub(super) immediates: u32,
    /// Whether every token goes with every row, as many tokens at a time want it.
    pub(super) plain: bool,
}

/// Rows that one team, or with [`ReductionStrategy::PerLane`] one lane, computes of floats.
const ROWS: u32 = 4;

/// Blocks of a row that are read at once: as many as subgroups of most GPUs have threads, so that they are neighbours.
const STRANDS: u32 = 32;

/// The same on software drivers, which gain nothing from neighbours: rows of few blocks leave fewer threads idle.
const STRANDS_SOFTWARE: u32 = 8;

/// Lanes in a workgroup with [`ReductionStrategy::PerLane`]: few, since a software driver goes through the motions for idle
/// ones as well, and has more cores than a narrow matrix has larger groups.
const LANES: u32 = 16;

/// From so many tokens on lanes do eight of them with one reading of the weights, where every token meets the same.
const LANES_EIGHT: u32 = 5;

/// Rows that a workgroup computes where many tokens share a reading, as the shaders have it.
const TILE_ROWS: u32 = 64;

/// Weights as kernels tell them apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct WeightKind {
    pub(super) kind: TensorType,
    /// Whether a lane's rows begin with an even block, where that makes a difference.
    pub(super) in_fours: bool,
}

impl WeightKind {
    /// Of matrices of so many rows.
    pub(super) fn of(gpu: &Gpu, kind: TensorType, rows: u32) -> Self {
        let differs = gpu.mode.reduction() == ReductionStrategy::PerLane && has_halves(kind);
        Self { kind, in_fours: differs && rows.is_multiple_of(ROWS) }
    }
}

/// One kernel, and what of the work one of its workgroups does.
pub(super) struct MatmulKernel {
    pub(super) kernel: Kernel,
    /// It is the one to use from so many tokens on.
    from: u32,
    tokens: u32,
    rows: u32,
    /// Whether workgroups that share rows are neighbours, so that they find them in the device's cache.
    shares_rows: bool,
}

impl MatmulKernel {
    /// Workgroups for so many rows, and so many groups of tokens.
    pub(super) fn grid(&self, rows: u32, groups: u32) -> (u32, u32) {
        let rows = rows.div_ceil(self.rows);
        if self.shares_rows { (groups, rows) } else { (rows, groups) }
    }

    /// Workgroups for every token with every row.
    pub(super) fn grid_of_tokens(&self, rows: u32, tokens: u32) -> (u32, u32) {
        self.grid(rows, tokens.div_ceil(self.tokens))
    }
}

/// The kernels for one kind of weights, for the fewest tokens first.
pub(super) struct MatmulKernels {
    all: Vec<MatmulKernel>,
    /// What they multiply with.
    pub(super) activations: ActivationFormat,
}

/// What activations are multiplied as with weights of this kind.
pub(super) fn activations(gpu: &Gpu, kind: TensorType) -> ActivationFormat {
    if has_blocks(kind) { gpu.mode.activations() } else { ActivationFormat::F32 }
}

/// The numbers of tokens, beyond two, from which on a device uses other kernels than for fewer.
pub(super) fn tokens_many(gpu: &Gpu) -> Vec<u32> {
    let floats = if gpu.mode.is_software() { &[][..] } else { &[FLOAT_TILE.from][..] };
    let int8 = match gpu.mode.activations() {
        ActivationFormat::F32 => &[][..],
        ActivationFormat::Int8 => &[INT8_EIGHT.from, INT8_TILE.from][..],
    };
    let lanes = match gpu.mode.reduction() {
        ReductionStrategy::PerLane => &[LANES_EIGHT][..],
        ReductionStrategy::Cooperative => &[][..],
    };
    let mut all = [floats, int8, lanes].concat();
    all.sort_unstable();
    all.dedup();
    all
}

/// How the work is cut for one kernel.
struct WorkShare {
    from: u32,
    tokens: u32,
    rows: u32,
}

/// Of weights in floats alone.
const FLOAT_TILE: WorkShare = WorkShare { from: 65, tokens: 64, rows: TILE_ROWS };

/// Of bytes, one token and up to four, by a team.
const INT8_FEW: [WorkShare; 2] =
    [WorkShare { from: 1, tokens: 1, rows: 2 }, WorkShare { from: 2, tokens: 4, rows: 2 }];

/// Eight at a time.
const INT8_EIGHT: WorkShare = WorkShare { from: 5, tokens: 8, rows: 2 };

/// From here on a GPU is kept busy by tiles.
const INT8_TILE: WorkShare = WorkShare { from: 65, tokens: 64, rows: TILE_ROWS };

/// Teams of a workgroup.
const TEAMS_MAX: u32 = 2;

/// A thread's tokens of a tile.
const TILE_EACH: u32 = 8;

impl MatmulKernels {
    /// `constants` are those that are not the same for all.
    pub(super) fn new(
        gpu: &Gpu,
        weights: WeightKind,
        places: &MatmulPlaces,
        constants: &[(&'static str, f64)],
    ) -> Self {
        let kind = weights.kind;
        let activations = activations(gpu, kind);
        let maker = KernelMaker { gpu, kind, in_fours: weights.in_fours, places, constants };
        let all = match (activations, gpu.mode.reduction()) {
            (ActivationFormat::Int8, _) => maker.int8(),
            (_, ReductionStrategy::PerLane) if has_blocks(kind) => maker.lanes(),
            _ => maker.floats(),
        };
        Self { all, activations }
    }

    /// The one for so many tokens.
    pub(super) fn for_tokens(&self, tokens: u32) -> &MatmulKernel {
        let fitting = self.all.iter().rev().find(|kernel| kernel.from <= tokens);
        fitting.unwrap_or(&self.all[0])
    }
}

struct KernelMaker<'a> {
    gpu: &'a Gpu,
    kind: TensorType,
    in_fours: bool,
    places: &'a MatmulPlaces,
    constants: &'a [(&'static str, f64)],
}

impl KernelMaker<'_> {
    fn kernel(&self, label: &str, parts: &[&str], own: &[(&'static str, f64)]) -> Kernel {
        use BufferAccess::{Read, Write};
        let (input, scales, reader) = match activations(self.gpu, self.kind) {
            ActivationFormat::F32 => (reads_floats(self.gpu), &[][..], floats_reader(self.gpu, 2)),
            ActivationFormat::Int8 => (Read, &[Read][..], String::new()),
        };
        let storage = weight_storage(self.gpu, self.kind);
        let bindings = [&plane_access(storage), &[input, Write], self.places.more, scales].concat();
        let wgsl = shader(storage, self.kind, &[&[&*reader], parts].concat().join("\n"));
        let constants = [self.constants, own].concat();
        let immediates = self.places.immediates;
        Kernel::new(
            self.gpu,
            &KernelSource { label, wgsl: &wgsl, constants: &constants, bindings: &bindings, immediates },
        )
    }

    fn lanes(&self) -> Vec<MatmulKernel> {
        let group = interleaved_rows(self.gpu.mode.reduction(), self.kind);
        let own = [("LANES", f64::from(LANES)), ("GROUP", f64::from(group))];
        let kernel = |tokens: u32, from| {
            let cols = format!("const COLS = {tokens}u;\nconst SETS = {}u;", tokens.div_ceil(4));
            let factors = two_factors(self.kind, self.in_fours);
            let parts = [&cols, factors, self.places.wgsl, include_str!("matmul_lanes.wgsl")];
            let kernel = self.kernel("matmul by lanes", &parts, &own);
            MatmulKernel { kernel, from, tokens, rows: ROWS * LANES, shares_rows: false }
        };
        let mut all = vec![kernel(1, 1), kernel(4, 2)];
        if self.places.plain {
            all.push(kernel(8, LANES_EIGHT));
        }
        all
    }

    fn floats(&self) -> Vec<MatmulKernel> {
        let strands = if self.gpu.mode.is_software() { STRANDS_SOFTWARE } else { STRANDS };
        let own = [("STRANDS", f64::from(strands))];
        let few = |tokens: u32, from| {
            let cols = format!("const COLS = {tokens}u;");
            let sums = include_str!("matmul_sums.wgsl");
            let parts = [&cols, self.places.wgsl, sums, include_str!("matmul.wgsl")];
            let kernel = self.kernel("matmul", &parts, &own);
            MatmulKernel { kernel, from, tokens, rows: WORKGROUP / strands * ROWS, shares_rows: true }
        };
        let mut all = vec![few(1, 1), few(4, 2)];
        if self.places.plain && !self.gpu.mode.is_software() && !has_blocks(self.kind) {
            let WorkShare { from, tokens, rows } = FLOAT_TILE;
            let parts = [include_str!("matmul_sums.wgsl"), include_str!("matmul_tile.wgsl")];
            let kernel = self.kernel("matmul tile", &parts, &own);
            all.push(MatmulKernel { kernel, from, tokens, rows, shares_rows: true });
        }
        all
    }

    fn int8(&self) -> Vec<MatmulKernel> {
        let few = INT8_FEW.iter().map(|share| self.int8_few(share));
        if !self.places.plain {
            return few.collect();
        }
        few.chain([self.int8_few(&INT8_EIGHT), self.int8_tile(&INT8_TILE)]).collect()
    }

    /// The binding of the scales of activations comes last.
    fn int8_scales(&self) -> String {
        let at = 4 + self.places.more.len();
        format!("@group(0) @binding({at}) var<storage, read> x_scales: array<vec2<u32>>;")
    }

    fn int8_few(&self, share: &WorkShare) -> MatmulKernel {
        let &WorkShare { from, tokens, .. } = share;
        // Smaller workgroups than subgroups would leave threads idle.
        let teams = (self.gpu.subgroup_max / STRANDS).clamp(1, TEAMS_MAX);
        let rows = int8_rows(self.kind, share);
        let text = int8_few_text(share, rows, self.places.wgsl, &self.int8_scales());
        let label = format!("matmul of bytes for {tokens}");
        let kernel = self.kernel(&label, &[&text], &[("TEAMS", f64::from(teams))]);
        MatmulKernel { kernel, from, tokens, rows: rows * teams, shares_rows: true }
    }

    fn int8_tile(&self, share: &WorkShare) -> MatmulKernel {
        let &WorkShare { from, tokens, rows } = share;
        let text = int8_tile_text(&self.int8_scales());
        let kernel = self.kernel("matmul of bytes by tiles", &[&text], &[]);
        MatmulKernel { kernel, from, tokens, rows, shares_rows: true }
    }
}

/// Rows of a team. Blocks of bytes take little to unpack: what counts there is how often the tokens are read.
fn int8_rows(kind: TensorType, share: &WorkShare) -> u32 {
    if kind == TensorType::Q8_0 && share.tokens > 4 { share.rows * 2 } else { share.rows }
}

/// The kernel for few tokens, behind the part that reads weights.
fn int8_few_text(share: &WorkShare, rows: u32, places: &str, scales: &str) -> String {
    let (tokens, sets) = (share.tokens, share.tokens.div_ceil(4));
    let sizes = format!("const COLS = {tokens}u;\nconst ROWS = {rows}u;\nconst SETS = {sets}u;");
    let (sums, few) = (include_str!("matmul_int8_sums.wgsl"), include_str!("matmul_int8.wgsl"));
    [&*sizes, places, scales, sums, few].join("\n")
}

/// The one for many.
fn int8_tile_text(scales: &str) -> String {
    let sizes = format!("const EACH = {TILE_EACH}u;");
    let (sums, tile) = (include_str!("matmul_int8_sums.wgsl"), include_str!("matmul_int8_tile.wgsl"));
    [&*sizes, scales, sums, tile].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{DeviceMode, PlaneStorage, in_every_mode, shared_as};
    use wgpu::naga;

    /// Bytes of workgroup memory that a kernel takes.
    fn workgroup_bytes(wgsl: &str, constants: &[(&str, f64)]) -> u32 {
        let module = naga::front::wgsl::parse_str(wgsl).unwrap();
        let flags = naga::valid::ValidationFlags::all();
        let info =
            naga::valid::Validator::new(flags, naga::valid::Capabilities::all()).validate(&module).unwrap();
        let constants = constants.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let entry = (naga::ShaderStage::Compute, "main");
        let (module, _) =
            naga::back::pipeline_constants::process_overrides(&module, &info, Some(entry), &constants)
                .unwrap();
        let shared = module.global_variables.iter().map(|(_, variable)| variable);
        let shared = shared.filter(|variable| variable.space == naga::AddressSpace::WorkGroup);
        shared.map(|variable| module.types[variable.ty].inner.size(module.to_ctx())).sum()
    }

    /// What every device has for a workgroup's memory: 16 KiB.
    #[test]
    fn the_kernels_fit_into_the_memory_that_every_device_has() {
        let scales = "@group(0) @binding(4) var<storage, read> x_scales: array<vec2<u32>>;";
        let places = include_str!("matmul_tokens.wgsl");
        for kind in TensorType::ALL {
            let (add, teams) = (("ADD", 0.0), ("TEAMS", f64::from(TEAMS_MAX)));
            let reader = floats_reader(&shared_as(DeviceMode::Gpu), 2);
            let shader = |text: &str| shader(PlaneStorage::Buffers, kind, text);
            let sizes = if has_blocks(kind) {
                let few = |share| int8_few_text(share, int8_rows(kind, share), places, scales);
                vec![
                    workgroup_bytes(&shader(&int8_tile_text(scales)), &[add]),
                    workgroup_bytes(&shader(&few(&INT8_EIGHT)), &[add, teams]),
                    workgroup_bytes(&shader(&few(&INT8_FEW[1])), &[add, teams]),
                ]
            } else {
                let parts = [&*reader, include_str!("matmul_sums.wgsl"), include_str!("matmul_tile.wgsl")];
                vec![workgroup_bytes(&shader(&parts.join("\n")), &[add, ("STRANDS", 32.0)])]
            };
            assert!(sizes.iter().all(|bytes| (1..=16 << 10).contains(bytes)), "{kind:?}: {sizes:?} bytes");
        }
    }

    #[test]
    fn other_kernels_than_for_two_tokens_run_from_the_numbers_of_tokens_that_are_told() {
        const PLAIN: MatmulPlaces =
            MatmulPlaces { wgsl: include_str!("matmul_tokens.wgsl"), more: &[], immediates: 5, plain: true };
        in_every_mode(|gpu| {
            let kernels = [TensorType::F16, TensorType::Q4_0]
                .map(|kind| MatmulKernels::new(gpu, WeightKind::of(gpu, kind, 64), &PLAIN, &[("ADD", 0.0)]));
            let mut more: Vec<_> = kernels
                .iter()
                .flat_map(|set| set.all.iter().map(|it| it.from))
                .filter(|from| *from > 2)
                .collect();
            more.sort_unstable();
            more.dedup();
            assert_eq!(tokens_many(gpu), more, "{:?}", gpu.mode);
        });
    }
}
