//! Rows of activations times a matrix of weights of any format; activations stay f32.
//!
//! The kernels differ in how many tokens share one reading of the weights: one, for a sequence that runs alone, four, and on
//! GPUs 32 (`matmul_tile.rs`), for prompts and large batches. Formats of blocks have such a pair, of one and four, for each
//! [`ReductionStrategy`]. All kernels of a device add in the same order, so that a result's bits do not tell which ran.

use std::cell::OnceCell;
use std::sync::Arc;

use crate::gpu::{BufferAccess, Gpu, Kernel, KernelSource, ReductionStrategy, WORKGROUP};
use crate::weights::{WeightMatrix, interleaved_rows};
use stint_gguf::TensorType;

use super::formats::{has_blocks, shader};
use super::matmul_tile::{MatmulTile, TILE_TOKENS_MIN};

/// The kernels for few tokens and one kind of weights.
pub(super) struct MatmulKernels {
    pub(super) single_token: Kernel,
    pub(super) four_tokens: Kernel,
    sharing: RowSharing,
}

/// How rows are shared out among workgroups.
#[derive(Debug, Clone, Copy)]
enum RowSharing {
    /// Some lanes do four rows.
    Lanes,
    /// Teams of so many threads do four rows each, a thread every so-manieth block.
    Strands(u32),
}

/// What is multiplied with what: the part of the shaders in which plain matrices and those of experts differ.
pub(super) struct MatmulPlaces {
    pub(super) wgsl: &'static str,
    pub(super) bindings: &'static [BufferAccess],
    pub(super) immediates: u32,
}

/// Every token with every row.
const TOKENS: MatmulPlaces = MatmulPlaces {
    wgsl: include_str!("matmul_tokens.wgsl"),
    bindings: &[BufferAccess::Read, BufferAccess::Read, BufferAccess::Read, BufferAccess::Write],
    immediates: 5,
};

/// Rows that one team, or with [`ReductionStrategy::PerLane`] one lane, computes.
const ROWS: u32 = 4;

/// Blocks of a row that are read at once: as many as subgroups of most GPUs have threads, so that they are neighbours.
const STRANDS: u32 = 32;

/// The same on software drivers, whose subgroups have so many. What has fewer blocks leaves fewer threads idle there.
const STRANDS_SOFTWARE: u32 = 8;

/// Lanes in a workgroup with [`ReductionStrategy::PerLane`]: few, since a software driver goes through the motions for idle
/// ones as well, and has more cores than a narrow matrix has larger groups.
const LANES: u32 = 16;

/// The kernels of the formats that were asked for: those that store, then those that add.
pub(crate) struct Matmul {
    grain: ReductionStrategy,
    has_tiles: bool,
    kernels: [[OnceCell<Arc<PlainKernels>>; 2]; TensorType::ALL.len()],
}

/// The kernels for one kind of weights, when every token goes with every row.
struct PlainKernels {
    few: MatmulKernels,
    tile: Option<MatmulTile>,
}

/// A matrix tied to its input and output.
pub(crate) struct BoundMatmul {
    dispatches: Vec<MatmulDispatch>,
    columns: u32,
    rows: u32,
}

struct MatmulDispatch {
    kernels: Arc<PlainKernels>,
    bind_group: wgpu::BindGroup,
    first: u32,
    rows: u32,
}

impl Matmul {
    /// The kernels of the device's own grain.
    pub(crate) fn new(gpu: &Gpu) -> Self {
        Self { grain: gpu.reduction, has_tiles: !gpu.is_software, kernels: Default::default() }
    }

    /// From so many tokens on they share a tile of the weights, where the device has it.
    pub(crate) fn tile_tokens(&self) -> Option<u32> {
        self.has_tiles.then_some(TILE_TOKENS_MIN)
    }

    /// A driver takes a while to make kernels, and a model has few formats.
    fn kernels(&self, gpu: &Gpu, kind: TensorType, add: bool) -> &Arc<PlainKernels> {
        let [storing, adding] = &self.kernels[kind as usize];
        let cell = if add { adding } else { storing };
        cell.get_or_init(|| Arc::new(PlainKernels::new(gpu, self.grain, kind, add)))
    }

    /// `y = x · matrixᵀ`, or `y += x · matrixᵀ` with `add`.
    pub(crate) fn bind(
        &self,
        gpu: &Gpu,
        matrix: &WeightMatrix,
        x: &wgpu::Buffer,
        y: &wgpu::Buffer,
        add: bool,
    ) -> BoundMatmul {
        let calls = matrix.parts.iter().map(|part| {
            let kernels = self.kernels(gpu, part.kind, add);
            let group = kernels.few.single_token.bind(gpu, &[&part.numbers, &part.scales, x, y]);
            MatmulDispatch {
                kernels: Arc::clone(kernels),
                bind_group: group,
                first: part.first,
                rows: part.rows,
            }
        });
        BoundMatmul { dispatches: calls.collect(), columns: matrix.columns, rows: matrix.rows }
    }
}

impl PlainKernels {
    fn new(gpu: &Gpu, grain: ReductionStrategy, kind: TensorType, add: bool) -> Self {
        let tile = (!gpu.is_software).then(|| MatmulTile::new(gpu, kind, TOKENS.bindings, add, STRANDS));
        let add = ("ADD", f64::from(u8::from(add)));
        Self { few: MatmulKernels::new(gpu, grain, kind, &TOKENS, &[add]), tile }
    }
}

impl MatmulKernels {
    /// `constants` are those that are not the same for all.
    pub(super) fn new(
        gpu: &Gpu,
        grain: ReductionStrategy,
        kind: TensorType,
        places: &MatmulPlaces,
        constants: &[(&'static str, f64)],
    ) -> Self {
        let sharing = match grain {
            ReductionStrategy::PerLane if has_blocks(kind) => RowSharing::Lanes,
            _ if gpu.is_software => RowSharing::Strands(STRANDS_SOFTWARE),
            _ => RowSharing::Strands(STRANDS),
        };
        let (label, parts, own) = match sharing {
            RowSharing::Lanes => (
                "matmul by lanes",
                ["", include_str!("matmul_lanes.wgsl")],
                vec![("LANES", f64::from(LANES)), ("GROUP", f64::from(interleaved_rows(grain, kind)))],
            ),
            RowSharing::Strands(strands) => (
                "matmul",
                [include_str!("matmul_sums.wgsl"), include_str!("matmul.wgsl")],
                vec![("STRANDS", f64::from(strands))],
            ),
        };
        let wgsl = shader(kind, &[places.wgsl, parts[0], parts[1]].join("\n"));
        let kernel = |tokens: u8| {
            let constants = [constants, &[("COLS", f64::from(tokens))], &own].concat();
            let MatmulPlaces { bindings, immediates, .. } = *places;
            Kernel::new(
                gpu,
                &KernelSource { label, wgsl: &wgsl, constants: &constants, bindings, immediates },
            )
        };
        Self { single_token: kernel(1), four_tokens: kernel(4), sharing }
    }

    /// Workgroups for so many rows, and so many groups of tokens.
    pub(super) fn grid(&self, rows: u32, groups: u32) -> (u32, u32) {
        match self.sharing {
            RowSharing::Lanes => (rows.div_ceil(ROWS * LANES), groups),
            // What shares rows runs at the same time, and reads them once.
            RowSharing::Strands(strands) => (groups, rows.div_ceil(WORKGROUP / strands * ROWS)),
        }
    }
}

impl BoundMatmul {
    pub(crate) fn run(&self, pass: &mut wgpu::ComputePass<'_>, tokens: u32) {
        for call in &self.dispatches {
            let immediates = [call.rows, tokens, self.columns, self.rows, call.first];
            let PlainKernels { few, tile } = &*call.kernels;
            match tile {
                Some(tile) if tokens >= TILE_TOKENS_MIN => tile.run(pass, &call.bind_group, &immediates),
                _ if tokens == 1 => {
                    few.single_token.run(pass, &call.bind_group, &immediates, few.grid(call.rows, 1));
                }
                _ => {
                    let grid = few.grid(call.rows, tokens.div_ceil(4));
                    few.four_tokens.run(pass, &call.bind_group, &immediates, grid);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{in_every_mode, shared, shared_small_subgroups, submit};
    use crate::ops::testing::{close, numbers};
    use crate::repack::number_bytes;
    use std::cell::RefCell;
    use stint_gguf::Gguf;
    use stint_gguf::Tensor;
    use stint_gguf::synth::{SyntheticModel, decode, encode};

    fn reference(weights: &[f64], x: &[f32], columns: usize) -> Vec<f64> {
        let dot = |row: &[f64], x: &[f32]| row.iter().zip(x).map(|(w, v)| w * f64::from(*v)).sum();
        let rows = |x: &[f32]| weights.chunks(columns).map(|row| dot(row, x)).collect::<Vec<f64>>();
        x.chunks(columns).flat_map(rows).collect()
    }

    #[derive(Debug, Clone, Copy)]
    struct Shape {
        columns: u32,
        rows: u32,
        tokens: u32,
    }

    /// One multiplication, and what it should give.
    struct Case {
        shape: Shape,
        /// The most rows of a part of the matrix; all in one without.
        split: Option<u32>,
        add: bool,
        bytes: Vec<u8>,
        x: Vec<f32>,
        before: Vec<f32>,
        expected: Vec<f64>,
    }

    impl Case {
        fn new(kind: TensorType, shape: Shape, split: Option<u32>, add: bool) -> Self {
            let Shape { columns, rows, tokens } = shape;
            let bytes = encode(kind, &numbers(5, columns * rows));
            let x = numbers(6, columns * tokens);
            let before = if add { numbers(7, rows * tokens) } else { vec![9.0; (rows * tokens) as usize] };
            let mut expected = reference(&decode(kind, &bytes), &x, columns as usize);
            if add {
                expected.iter_mut().zip(&before).for_each(|(e, b)| *e += f64::from(*b));
            }
            Self { shape, split, add, bytes, x, before, expected }
        }

        fn run(&self, gpu: &Gpu, matmul: &Matmul, kind: TensorType) -> Vec<f32> {
            let Shape { columns, rows, tokens } = self.shape;
            let data = &self.bytes;
            let tensor = Tensor { kind, rows: rows as usize, columns: columns as usize, data };
            let row = number_bytes(kind, columns as usize) as u64;
            let part_max = self.split.map_or(u64::MAX, |most| row * u64::from(most));
            let matrix = WeightMatrix::upload(gpu, &[tensor], columns, part_max).unwrap();
            assert_eq!(matrix.parts.len(), self.split.map_or(1, |most| rows.div_ceil(most) as usize));
            let y = gpu.buffer_with("y", &self.before);
            let bound = matmul.bind(gpu, &matrix, &gpu.buffer_with("x", &self.x), &y, self.add);
            submit(gpu, |pass| bound.run(pass, tokens));
            let got = gpu.read(&y, (rows * tokens) as usize).unwrap();
            // A sum may cancel out to nearly nothing; what it rounds by is of the size that such sums have.
            let largest = self.expected.iter().fold(0f64, |most, v| most.max(v.abs()));
            let usual = f64::from(columns).sqrt() / 3.0;
            close(&got, &self.expected, 3e-6 * (usual / largest).max(1.0));
            got
        }
    }

    /// Multiplies with the kernels of every mode and compares; returns the results of each.
    fn check(kind: TensorType, cases: &[Case]) -> Vec<Vec<Vec<f32>>> {
        let results = RefCell::new(Vec::new());
        let run = |gpu: &Gpu| {
            let matmul = Matmul::new(gpu);
            let all = cases.iter().map(|case| case.run(gpu, &matmul, kind));
            results.borrow_mut().push(all.collect::<Vec<_>>());
        };
        in_every_mode(run);
        run(&shared_small_subgroups());
        results.into_inner()
    }

    /// Numbers of tokens that fill a tile in part, once, and more than once.
    const SHAPES: [(u32, u32); 9] =
        [(1, 1), (4, 2), (7, 1), (33, 5), (130, 9), (1, 16), (65, 31), (64, 32), (130, 41)];

    #[test]
    fn every_kind_multiplies_over_awkward_shapes() {
        for kind in TensorType::ALL {
            let widths = match kind.block_numbers() {
                256 => [256, 512, 1280],
                32 => [32, 96, 416],
                _ if kind == TensorType::F32 => [4, 36, 100],
                _ => [8, 40, 264],
            };
            let shapes = widths.into_iter().flat_map(|columns| {
                SHAPES.map(|(rows, tokens)| Case::new(kind, Shape { columns, rows, tokens }, None, false))
            });
            check(kind, &shapes.collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_result_can_be_added_to_what_is_there() {
        for (kind, columns) in [(TensorType::F32, 36), (TensorType::Q8_0, 96), (TensorType::Q4K, 256)] {
            let case = |(rows, tokens)| Case::new(kind, Shape { columns, rows, tokens }, None, true);
            check(kind, &[(7, 1), (33, 6), (70, 20)].map(case));
        }
    }

    #[test]
    fn a_matrix_split_by_rows_is_still_one_matrix() {
        for (kind, columns, split) in
            [(TensorType::F16, 40, 13), (TensorType::Q8_0, 96, 32), (TensorType::Q6K, 256, 13)]
        {
            let case = |tokens| Case::new(kind, Shape { columns, rows: 33, tokens }, Some(split), false);
            check(kind, &[1, 5, 17].map(case));
        }
    }

    #[test]
    fn a_token_has_the_same_bits_alone_and_among_others() {
        for kind in TensorType::ALL {
            // Some strands have more blocks than others.
            let columns = match kind.block_numbers() {
                256 => 1280,
                32 => 1312,
                _ => 1304,
            };
            let case = |tokens| Case::new(kind, Shape { columns, rows: 33, tokens }, None, false);
            let tokens = [1, 2, 5, 16, 40];
            for results in check(kind, &tokens.map(case)) {
                let bits = |numbers: &[f32]| numbers.iter().map(|n| n.to_bits()).collect::<Vec<_>>();
                for (among, tokens) in results.iter().zip(tokens) {
                    assert_eq!(bits(&results[0]), bits(&among[..33]), "{kind:?}, {tokens} tokens");
                }
            }
        }
    }

    #[test]
    fn tensors_of_a_file_are_stacked_into_one_matrix() {
        let gpu = shared();
        for kind in TensorType::ALL.into_iter().filter(|kind| kind.block_numbers() <= 32) {
            let gguf = Gguf::from_bytes(SyntheticModel { kind, ..SyntheticModel::default() }.bytes().into())
                .unwrap();
            let names = ["attn_q", "attn_k", "attn_v"].map(|name| format!("blk.0.{name}.weight"));
            let matrix = WeightMatrix::load(&gpu, &gguf, &names, 32).unwrap();
            assert_eq!((matrix.rows, matrix.parts.len()), (128, 1));
            let weights: Vec<_> =
                names.iter().flat_map(|name| decode(kind, gguf.tensor(name).unwrap().data)).collect();
            let (x, y) = (numbers(8, 32 * 3), gpu.buffer("y", 128 * 3 * 4));
            let bound = Matmul::new(&gpu).bind(&gpu, &matrix, &gpu.buffer_with("x", &x), &y, false);
            submit(&gpu, |pass| bound.run(pass, 3));
            close(&gpu.read(&y, 128 * 3).unwrap(), &reference(&weights, &x, 32), 3e-6);
        }
    }
}
