//! Rows of activations times a matrix of weights, each as F32, F16 or `Q8_0`; activations stay f32.
//!
//! Two kernels differ only in how many tokens share one reading of the weights: one, for a
//! sequence that runs alone, and four. `Q8_0` has such a pair for each [`ReductionStrategy`].

use std::sync::Arc;

use crate::gpu::{BufferAccess, Gpu, Kernel, KernelSource, ReductionStrategy};
use crate::weights::WeightMatrix;
use stint_gguf::TensorType;

/// The kernels for one kind of weights.
struct MatmulKernels {
    single_token: Kernel,
    four_tokens: Kernel,
    grain: ReductionStrategy,
}

/// Rows that one subgroup, or with [`ReductionStrategy::PerLane`] one lane, computes.
const ROWS: u32 = 4;

/// Lanes in a workgroup with [`ReductionStrategy::PerLane`]: few, since a software driver goes through the motions for idle
/// ones as well, and has more cores than a narrow matrix has larger groups.
const LANES: u32 = 16;

/// The kernels, for every kind of weights: those that store, then those that add.
pub(crate) struct Matmul([[Arc<MatmulKernels>; 2]; 3]);

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
        Self::with_reduction(gpu, gpu.reduction)
    }

    fn with_reduction(gpu: &Gpu, grain: ReductionStrategy) -> Self {
        // Only `Q8_0` has rows of whole blocks, which the lanes' kernel is made for.
        let grain = |kind| if kind == 2 { grain } else { ReductionStrategy::Cooperative };
        let pair = |kind, add| Arc::new(MatmulKernels::new(gpu, grain(kind), kind, add));
        Self([0, 1, 2].map(|kind| [false, true].map(|add| pair(kind, add))))
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
            let [storing, adding] = match part.kind {
                TensorType::F32 => &self.0[0],
                TensorType::F16 => &self.0[1],
                TensorType::Q8_0 => &self.0[2],
            };
            let kernels = if add { adding } else { storing };
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
    fn new(gpu: &Gpu, grain: ReductionStrategy, kind: u8, add: bool) -> Self {
        let kernel = |tokens: u8| {
            let (label, wgsl, own) = match grain {
                ReductionStrategy::Cooperative => {
                    ("matmul", include_str!("matmul.wgsl"), ("KIND", f64::from(kind)))
                }
                ReductionStrategy::PerLane => {
                    ("matmul by lanes", include_str!("matmul_lanes.wgsl"), ("LANES", f64::from(LANES)))
                }
            };
            let constants = &[("COLS", f64::from(tokens)), ("ADD", f64::from(u8::from(add))), own];
            let bindings = &[BufferAccess::Read, BufferAccess::Read, BufferAccess::Read, BufferAccess::Write];
            Kernel::new(gpu, &KernelSource { label, wgsl, constants, bindings, immediates: 5 })
        };
        Self { single_token: kernel(1), four_tokens: kernel(4), grain }
    }

    /// Workgroups for so many rows.
    fn workgroups(&self, gpu: &Gpu, rows: u32) -> u32 {
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
    use crate::gpu::{shared, submit};
    use crate::ops::testing::{close, numbers};
    use half::f16;
    use stint_gguf::Gguf;
    use stint_gguf::synth::{SyntheticModel, encode};

    /// What the encoded numbers stand for.
    fn decode(kind: TensorType, bytes: &[u8]) -> Vec<f64> {
        let half = |b: &[u8]| f64::from(f16::from_le_bytes([b[0], b[1]]).to_f32());
        match kind {
            TensorType::F32 => {
                bytes.chunks(4).map(|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]]))).collect()
            }
            TensorType::F16 => bytes.chunks(2).map(half).collect(),
            TensorType::Q8_0 => {
                let block = |b: &[u8]| {
                    b[2..].iter().map(|v| f64::from(i8::from_le_bytes([*v])) * half(b)).collect::<Vec<_>>()
                };
                bytes.chunks(34).flat_map(block).collect()
            }
        }
    }

    fn reference(weights: &[f64], x: &[f32], columns: usize) -> Vec<f64> {
        let dot = |row: &[f64], x: &[f32]| row.iter().zip(x).map(|(w, v)| w * f64::from(*v)).sum();
        let rows = |x: &[f32]| weights.chunks(columns).map(|row| dot(row, x)).collect::<Vec<f64>>();
        x.chunks(columns).flat_map(rows).collect()
    }

    fn part(gpu: &Gpu, kind: TensorType, first: u32, rows: u32, bytes: &[u8]) -> crate::weights::MatrixPart {
        let (numbers, scales): (Vec<u8>, Vec<u8>) = match kind {
            TensorType::Q8_0 => (
                bytes.chunks(34).flat_map(|b| b[2..].to_vec()).collect(),
                bytes.chunks(34).flat_map(|b| b[..2].to_vec()).collect(),
            ),
            _ => (bytes.to_vec(), Vec::new()),
        };
        let mut scales = scales;
        scales.resize(scales.len().next_multiple_of(4), 0);
        let (numbers, scales) = (gpu.buffer_with("w", &numbers), gpu.buffer_with("s", &scales));
        crate::weights::MatrixPart { kind, first, rows, numbers, scales }
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
        let gpu = shared();
        let bytes = encode(kind, &numbers(5, columns * rows));
        let x = numbers(6, columns * tokens);
        let before = if add { numbers(7, rows * tokens) } else { vec![9.0; (rows * tokens) as usize] };
        let row_bytes = bytes.len() / rows as usize;
        let (upper, lower) = bytes.split_at(split as usize * row_bytes);
        let mut parts = vec![part(&gpu, kind, split, rows - split, lower)];
        if split > 0 {
            parts.insert(0, part(&gpu, kind, 0, split, upper));
        }
        let matrix = WeightMatrix { columns, rows, parts, bytes: 0 };
        let y = gpu.buffer_with("y", &before);
        let matmul = Matmul::with_reduction(&gpu, grain);
        let bound = matmul.bind(&gpu, &matrix, &gpu.buffer_with("x", &x), &y, add);
        submit(&gpu, |pass| bound.run(&gpu, pass, tokens));
        let got = gpu.read(&y, (rows * tokens) as usize).unwrap();
        let mut expected = reference(&decode(kind, &bytes), &x, columns as usize);
        if add {
            expected.iter_mut().zip(&before).for_each(|(e, b)| *e += f64::from(*b));
        }
        close(&got, &expected, 3e-6);
        got
    }

    #[test]
    fn every_kind_multiplies_over_awkward_shapes() {
        for (kind, widths) in [
            (TensorType::F32, [4, 36, 100]),
            (TensorType::F16, [8, 40, 264]),
            (TensorType::Q8_0, [32, 96, 416]),
        ] {
            for columns in widths {
                for (rows, tokens) in [(1, 1), (4, 2), (7, 1), (33, 5), (130, 9), (259, 3)] {
                    check(kind, columns, rows, tokens, 0, false);
                }
            }
        }
    }

    #[test]
    fn the_result_can_be_added_to_what_is_there() {
        check(TensorType::F32, 36, 7, 1, 0, true);
        check(TensorType::Q8_0, 96, 33, 6, 0, true);
    }

    #[test]
    fn a_matrix_split_by_rows_is_still_one_matrix() {
        check(TensorType::F16, 40, 33, 1, 13, false);
        check(TensorType::Q8_0, 96, 33, 5, 32, false);
    }

    #[test]
    fn a_token_has_the_same_bits_alone_and_among_others() {
        for (kind, columns) in [(TensorType::F32, 100), (TensorType::F16, 264), (TensorType::Q8_0, 416)] {
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
        for kind in [TensorType::F32, TensorType::F16, TensorType::Q8_0] {
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
