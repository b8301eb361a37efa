//! Rows of activations times a matrix of weights of any format; activations stay f32.
//!
//! Two kernels differ only in how many tokens share one reading of the weights: one, for a
//! sequence that runs alone, and four. Formats of blocks have such a pair for each [`ReductionStrategy`].

use std::cell::OnceCell;
use std::sync::Arc;

use crate::gpu::{BufferAccess, Gpu, Kernel, KernelSource, ReductionStrategy};
use crate::weights::{WeightMatrix, interleaved_rows};
use stint_gguf::TensorType;

use super::formats::{has_blocks, shader};

/// The kernels for one kind of weights.
pub(super) struct MatmulKernels {
    pub(super) single_token: Kernel,
    pub(super) four_tokens: Kernel,
    grain: ReductionStrategy,
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

/// Rows that one subgroup, or with [`ReductionStrategy::PerLane`] one lane, computes.
const ROWS: u32 = 4;

/// Lanes in a workgroup with [`ReductionStrategy::PerLane`]: few, since a software driver goes through the motions for idle
/// ones as well, and has more cores than a narrow matrix has larger groups.
const LANES: u32 = 16;

/// The kernels of the formats that were asked for: those that store, then those that add.
pub(crate) struct Matmul {
    grain: ReductionStrategy,
    kernels: [[OnceCell<Arc<MatmulKernels>>; 2]; TensorType::ALL.len()],
}

/// A matrix tied to its input and output.
pub(crate) struct BoundMatmul {
    dispatches: Vec<MatmulDispatch>,
    columns: u32,
    rows: u32,
}

struct MatmulDispatch {
    kernels: Arc<MatmulKernels>,
    bind_group: wgpu::BindGroup,
    first: u32,
    rows: u32,
}

impl Matmul {
    /// The kernels of the device's own grain.
    pub(crate) fn new(gpu: &Gpu) -> Self {
        Self { grain: gpu.reduction, kernels: Default::default() }
    }

    /// A driver takes a while to make kernels, and a model has few formats.
    fn kernels(&self, gpu: &Gpu, kind: TensorType, add: bool) -> &Arc<MatmulKernels> {
        let [storing, adding] = &self.kernels[kind as usize];
        let cell = if add { adding } else { storing };
        let constants = [("ADD", f64::from(u8::from(add)))];
        cell.get_or_init(|| Arc::new(MatmulKernels::new(gpu, self.grain, kind, &TOKENS, &constants)))
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
            let group = kernels.single_token.bind(gpu, &[&part.numbers, &part.scales, x, y]);
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

impl MatmulKernels {
    /// `constants` are those that are not the same for all.
    pub(super) fn new(
        gpu: &Gpu,
        grain: ReductionStrategy,
        kind: TensorType,
        places: &MatmulPlaces,
        constants: &[(&'static str, f64)],
    ) -> Self {
        let grain = if has_blocks(kind) { grain } else { ReductionStrategy::Cooperative };
        let (label, wgsl) = match grain {
            ReductionStrategy::Cooperative => ("matmul", include_str!("matmul.wgsl")),
            ReductionStrategy::PerLane => ("matmul by lanes", include_str!("matmul_lanes.wgsl")),
        };
        let wgsl = shader(kind, &[places.wgsl, wgsl].join("\n"));
        let kernel = |tokens: u8| {
            let mut constants = [constants, &[("COLS", f64::from(tokens))]].concat();
            if grain == ReductionStrategy::PerLane {
                constants.push(("LANES", f64::from(LANES)));
                constants.push(("GROUP", f64::from(interleaved_rows(grain, kind))));
            }
            let MatmulPlaces { bindings, immediates, .. } = *places;
            Kernel::new(
                gpu,
                &KernelSource { label, wgsl: &wgsl, constants: &constants, bindings, immediates },
            )
        };
        Self { single_token: kernel(1), four_tokens: kernel(4), grain }
    }

    /// Workgroups for so many rows.
    pub(super) fn workgroups(&self, gpu: &Gpu, rows: u32) -> u32 {
        match self.grain {
            ReductionStrategy::Cooperative => gpu.workgroups(rows.div_ceil(ROWS)),
            ReductionStrategy::PerLane => rows.div_ceil(ROWS * LANES),
        }
    }
}

impl BoundMatmul {
    pub(crate) fn run(&self, gpu: &Gpu, pass: &mut wgpu::ComputePass<'_>, tokens: u32) {
        for call in &self.dispatches {
            let immediates = [call.rows, tokens, self.columns, self.rows, call.first];
            let groups = call.kernels.workgroups(gpu, call.rows);
            if tokens == 1 {
                call.kernels.single_token.run(pass, &call.bind_group, &immediates, (groups, 1));
            } else {
                call.kernels.four_tokens.run(
                    pass,
                    &call.bind_group,
                    &immediates,
                    (groups, tokens.div_ceil(4)),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{shared, shared_as, submit};
    use crate::ops::testing::{close, numbers};
    use crate::repack::number_bytes;
    use stint_gguf::Gguf;
    use stint_gguf::Tensor;
    use stint_gguf::synth::{SyntheticModel, decode, encode};

    fn reference(weights: &[f64], x: &[f32], columns: usize) -> Vec<f64> {
        let dot = |row: &[f64], x: &[f32]| row.iter().zip(x).map(|(w, v)| w * f64::from(*v)).sum();
        let rows = |x: &[f32]| weights.chunks(columns).map(|row| dot(row, x)).collect::<Vec<f64>>();
        x.chunks(columns).flat_map(rows).collect()
    }

    /// Multiplies with the kernels of every grain and compares; returns the results.
    fn check(kind: TensorType, columns: u32, rows: u32, tokens: u32, split: u32, add: bool) -> [Vec<f32>; 2] {
        [ReductionStrategy::Cooperative, ReductionStrategy::PerLane]
            .map(|grain| check_by(grain, kind, columns, rows, tokens, split, add))
    }

    fn check_by(
        grain: ReductionStrategy,
        kind: TensorType,
        columns: u32,
        rows: u32,
        tokens: u32,
        split: u32,
        add: bool,
    ) -> Vec<f32> {
        let gpu = shared_as(grain);
        let bytes = encode(kind, &numbers(5, columns * rows));
        let x = numbers(6, columns * tokens);
        let before = if add { numbers(7, rows * tokens) } else { vec![9.0; (rows * tokens) as usize] };
        let tensor = Tensor { kind, rows: rows as usize, columns: columns as usize, data: &bytes };
        let part_max = if split == 0 {
            u64::MAX
        } else {
            number_bytes(kind, columns as usize) as u64 * u64::from(split)
        };
        let matrix = WeightMatrix::upload(&gpu, &[tensor], columns, part_max).unwrap();
        assert_eq!(matrix.parts.len(), if split == 0 { 1 } else { rows.div_ceil(split) as usize });
        let y = gpu.buffer_with("y", &before);
        let matmul = Matmul::new(&gpu);
        let bound = matmul.bind(&gpu, &matrix, &gpu.buffer_with("x", &x), &y, add);
        submit(&gpu, |pass| bound.run(&gpu, pass, tokens));
        let got = gpu.read(&y, (rows * tokens) as usize).unwrap();
        let mut expected = reference(&decode(kind, &bytes), &x, columns as usize);
        if add {
            expected.iter_mut().zip(&before).for_each(|(e, b)| *e += f64::from(*b));
        }
        // A sum may cancel out to nearly nothing; what it rounds by is of the size that such sums have.
        let largest = expected.iter().fold(0f64, |most, v| most.max(v.abs()));
        let usual = f64::from(columns).sqrt() / 3.0;
        close(&got, &expected, 3e-6 * (usual / largest).max(1.0));
        got
    }

    #[test]
    fn every_kind_multiplies_over_awkward_shapes() {
        for kind in TensorType::ALL {
            let widths = match kind.block_numbers() {
                256 => [256, 512, 1280],
                32 => [32, 96, 416],
                _ if kind == TensorType::F32 => [4, 36, 100],
                _ => [8, 40, 264],
            };
            for columns in widths {
                for (rows, tokens) in [(1, 1), (4, 2), (7, 1), (33, 5), (130, 9)] {
                    check(kind, columns, rows, tokens, 0, false);
                }
            }
        }
    }

    #[test]
    fn the_result_can_be_added_to_what_is_there() {
        check(TensorType::F32, 36, 7, 1, 0, true);
        check(TensorType::Q8_0, 96, 33, 6, 0, true);
        check(TensorType::Q4K, 256, 33, 6, 0, true);
    }

    #[test]
    fn a_matrix_split_by_rows_is_still_one_matrix() {
        check(TensorType::F16, 40, 33, 1, 13, false);
        check(TensorType::Q8_0, 96, 33, 5, 32, false);
        check(TensorType::Q6K, 256, 33, 5, 13, false);
    }

    #[test]
    fn a_token_has_the_same_bits_alone_and_among_others() {
        for kind in TensorType::ALL {
            let columns = match kind.block_numbers() {
                256 => 1280,
                32 => 416,
                _ => 264,
            };
            let alone = check(kind, columns, 33, 1, 0, false);
            for tokens in [2, 5] {
                let among = check(kind, columns, 33, tokens, 0, false);
                let bits = |numbers: &[f32]| numbers.iter().map(|n| n.to_bits()).collect::<Vec<_>>();
                for (alone, among) in alone.iter().zip(&among) {
                    assert_eq!(bits(alone), bits(&among[..33]), "{kind:?}, {tokens} tokens");
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
            submit(&gpu, |pass| bound.run(&gpu, pass, 3));
            close(&gpu.read(&y, 128 * 3).unwrap(), &reference(&weights, &x, 32), 3e-6);
        }
    }
}
