//! Rows of activations times a matrix of weights of any format. Weights of whole blocks meet activations in bytes on GPUs, and
//! floats everywhere else.

use std::cell::OnceCell;
use std::sync::Arc;

use crate::gpu::{ActivationFormat, Gpu, Plane};
use crate::weights::{MatrixPart, WeightMatrix};
use stint_gguf::TensorType;

use super::activation_rows::ActivationRows;
use super::matmul_kernels::{MatmulKernels, MatmulPlaces, WeightKind, tokens_many};

/// Every token with every row.
const TOKENS: MatmulPlaces =
    MatmulPlaces { wgsl: include_str!("matmul_tokens.wgsl"), more: &[], immediates: 5, plain: true };

/// The kernels of the formats that were asked for: those that store, then those that add; of each those for any number of rows, then
/// those for fours.
pub(crate) struct Matmul {
    kernels: [[[OnceCell<Arc<MatmulKernels>>; 2]; 2]; TensorType::ALL.len()],
    tokens_many: Vec<u32>,
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

/// What a kernel of this kind is tied to: weights, input and output, and what comes behind them.
pub(super) fn bind_weights(
    gpu: &Gpu,
    kernels: &MatmulKernels,
    part: &MatrixPart,
    x: &ActivationRows,
    y: &wgpu::Buffer,
    more: &[&wgpu::Buffer],
) -> wgpu::BindGroup {
    let (input, scales) = match (&x.int8, kernels.activations) {
        (Some(rows), ActivationFormat::Int8) => (rows.numbers.as_entire_binding(), Some(&rows.scales)),
        (_, ActivationFormat::F32) => (x.floats.binding(), None),
        (None, ActivationFormat::Int8) => unreachable!("rows that meet blocks are of whole blocks"),
    };
    let buffers = std::iter::once(y).chain(more.iter().copied()).chain(scales);
    let resources = part.planes().map(Plane::binding).into_iter().chain([input]);
    let resources = resources.chain(buffers.map(wgpu::Buffer::as_entire_binding));
    kernels.for_tokens(1).kernel.bind_resources(gpu, resources)
}

impl Matmul {
    /// The kernels of the device's own grain.
    pub(crate) fn new(gpu: &Gpu) -> Self {
        Self { kernels: Default::default(), tokens_many: tokens_many(gpu) }
    }

    /// The numbers of tokens, beyond two, from which on other kernels run than for fewer.
    pub(crate) fn tokens_many(&self) -> &[u32] {
        &self.tokens_many
    }

    /// A driver takes a while to make kernels, and a model has few formats.
    fn kernels(&self, gpu: &Gpu, weights: WeightKind, add: bool) -> &Arc<MatmulKernels> {
        let cells = &self.kernels[weights.kind as usize][usize::from(add)];
        let add = ("ADD", f64::from(u8::from(add)));
        cells[usize::from(weights.in_fours)]
            .get_or_init(|| Arc::new(MatmulKernels::new(gpu, weights, &TOKENS, &[add])))
    }

    /// `y = x · matrixᵀ`, or `y += x · matrixᵀ` with `add`.
    pub(crate) fn bind(
        &self,
        gpu: &Gpu,
        matrix: &WeightMatrix,
        x: &ActivationRows,
        y: &wgpu::Buffer,
        add: bool,
    ) -> BoundMatmul {
        let calls = matrix.parts.iter().map(|part| {
            let kernels = self.kernels(gpu, WeightKind::of(gpu, part.kind, part.rows), add);
            MatmulDispatch {
                kernels: Arc::clone(kernels),
                bind_group: bind_weights(gpu, kernels, part, x, y, &[]),
                first: part.first,
                rows: part.rows,
            }
        });
        BoundMatmul { dispatches: calls.collect(), columns: matrix.columns, rows: matrix.rows }
    }
}

impl BoundMatmul {
    pub(crate) fn run(&self, pass: &mut wgpu::ComputePass<'_>, tokens: u32) {
        for call in &self.dispatches {
            let immediates = [call.rows, tokens, self.columns, self.rows, call.first];
            let chosen = call.kernels.for_tokens(tokens);
            let grid = chosen.grid_of_tokens(call.rows, tokens);
            chosen.kernel.run(pass, &call.bind_group, &immediates, grid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{DeviceMode, in_every_mode, shared_as, shared_small_textures, submit};
    use crate::ops::matmul_kernels::activations;
    use crate::ops::testing::{close, numbers, read_int8, rows_with};
    use crate::repack::number_bytes;
    use crate::weights::has_blocks;
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
    struct Multiplication {
        shape: Shape,
        /// The most rows of a part of the matrix; all in one without.
        split: Option<u32>,
        add: bool,
        bytes: Vec<u8>,
        x: Vec<f32>,
        before: Vec<f32>,
        /// The weights as they are, and what they give with floats.
        weights: Vec<f64>,
        expected: Vec<f64>,
    }

    impl Multiplication {
        fn new(kind: TensorType, shape: Shape, split: Option<u32>, add: bool) -> Self {
            let Shape { columns, rows, tokens } = shape;
            let bytes = encode(kind, &numbers(5, columns * rows));
            let x = numbers(6, columns * tokens);
            let before = if add { numbers(7, rows * tokens) } else { vec![9.0; (rows * tokens) as usize] };
            let weights = decode(kind, &bytes);
            let expected = reference(&weights, &x, columns as usize);
            Self { shape, split, add, bytes, x, before, weights, expected }
        }

        /// What comes of these activations.
        fn expected(&self, bytes: Option<Vec<f32>>) -> Vec<f64> {
            let columns = self.shape.columns as usize;
            let mut expected =
                bytes.map_or_else(|| self.expected.clone(), |x| reference(&self.weights, &x, columns));
            if self.add {
                expected.iter_mut().zip(&self.before).for_each(|(e, b)| *e += f64::from(*b));
            }
            expected
        }

        fn run(&self, gpu: &Gpu, matmul: &Matmul, kind: TensorType) -> Vec<f32> {
            let Shape { columns, rows, tokens } = self.shape;
            let data = &self.bytes;
            let tensor = Tensor::in_memory(kind, rows as usize, columns as usize, data);
            let row = number_bytes(kind, columns as usize) as u64;
            let part_max = self.split.map_or(u64::MAX, |most| row * u64::from(most));
            let matrix = WeightMatrix::upload(gpu, &[tensor], columns, part_max).unwrap();
            assert_eq!(matrix.parts.len(), self.split.map_or(1, |most| rows.div_ceil(most) as usize));
            let y = gpu.buffer_with("y", &self.before);
            let given = rows_with(gpu, &self.x, columns);
            let bound = matmul.bind(gpu, &matrix, &given, &y, self.add);
            submit(gpu, |pass| bound.run(pass, tokens));
            let got = gpu.read(&y, (rows * tokens) as usize).unwrap();
            // A sum may cancel out to nearly nothing; what it rounds by is of the size that such sums have.
            let bytes = read_int8(gpu, &given, tokens, columns)
                .filter(|_| activations(gpu, kind) == ActivationFormat::Int8);
            let expected = self.expected(bytes);
            let largest = expected.iter().fold(0f64, |most, v| most.max(v.abs()));
            let usual = f64::from(columns).sqrt() / 3.0;
            close(&got, &expected, 3e-6 * (usual / largest).max(1.0));
            got
        }
    }

    /// Multiplies with the kernels of every mode and compares; returns the results of each.
    fn check(kind: TensorType, cases: &[Multiplication]) -> Vec<Vec<Vec<f32>>> {
        let results = RefCell::new(Vec::new());
        let run = |gpu: &Gpu| {
            let matmul = Matmul::new(gpu);
            let all = cases.iter().map(|case| case.run(gpu, &matmul, kind));
            results.borrow_mut().push(all.collect::<Vec<_>>());
        };
        in_every_mode(run);
        results.into_inner()
    }

    /// Numbers of tokens that fill a tile in part, once, and more than once.
    const SHAPES: [(u32, u32); 11] = [
        (1, 1),
        (4, 2),
        (7, 1),
        (36, 1),
        (33, 5),
        (130, 9),
        (1, 16),
        (65, 31),
        (64, 32),
        (130, 41),
        (70, 130),
    ];

    #[test]
    fn every_kind_multiplies_over_awkward_shapes() {
        for kind in TensorType::ALL {
            let widths = match kind.block_numbers() {
                256 => [256, 512, 1280],
                32 => [32, 96, 416],
                _ if kind == TensorType::F32 => [4, 36, 100],
                _ => [8, 40, 264],
            };
            // The largest with the narrowest rows alone.
            let shapes = widths.into_iter().enumerate().flat_map(|(at, columns)| {
                let some = &SHAPES[..SHAPES.len() - 2 * at];
                some.iter().map(move |&(rows, tokens)| {
                    Multiplication::new(kind, Shape { columns, rows, tokens }, None, false)
                })
            });
            check(kind, &shapes.collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_result_can_be_added_to_what_is_there() {
        for (kind, columns) in [(TensorType::F32, 36), (TensorType::Q8_0, 96), (TensorType::Q4K, 256)] {
            let case =
                |(rows, tokens)| Multiplication::new(kind, Shape { columns, rows, tokens }, None, true);
            check(kind, &[(7, 1), (33, 6), (70, 20)].map(case));
        }
    }

    #[test]
    fn a_matrix_split_by_rows_is_still_one_matrix() {
        for (kind, columns, split) in
            [(TensorType::F16, 40, 13), (TensorType::Q8_0, 96, 32), (TensorType::Q6K, 256, 13)]
        {
            let case =
                |tokens| Multiplication::new(kind, Shape { columns, rows: 33, tokens }, Some(split), false);
            check(kind, &[1, 5, 17].map(case));
        }
    }

    #[test]
    fn a_matrix_of_several_uploads_and_rows_that_are_longer_than_those_of_textures_are_multiplied() {
        for (kind, columns, rows) in [
            (TensorType::Q8_0, 1280, 1001),
            (TensorType::Q4K, 1280, 2050),
            (TensorType::Q8_0, 16_416, 5),
            (TensorType::Q6K, 33_024, 3),
        ] {
            check(kind, &[Multiplication::new(kind, Shape { columns, rows, tokens: 2 }, None, false)]);
        }
    }

    #[test]
    fn weights_have_the_same_bits_in_textures_as_in_buffers() {
        let (textures, buffers) = (shared_as(DeviceMode::SoftwareByLanes), shared_small_textures());
        for kind in TensorType::ALL.into_iter().filter(|kind| has_blocks(*kind)) {
            for (tokens, split) in [(1, None), (5, Some(64))] {
                let case =
                    Multiplication::new(kind, Shape { columns: 1280, rows: 130, tokens }, split, false);
                let [one, other] = [&textures, &buffers].map(|gpu| case.run(gpu, &Matmul::new(gpu), kind));
                assert_eq!(one, other, "{kind:?}, {tokens} tokens");
            }
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
            let case = |tokens| Multiplication::new(kind, Shape { columns, rows: 33, tokens }, None, false);
            let tokens = [1, 2, 5, 9, 16, 40, 66];
            for results in check(kind, &tokens.map(case)) {
                let bits = |numbers: &[f32]| numbers.iter().map(|n| n.to_bits()).collect::<Vec<_>>();
                for (pair, tokens) in results.windows(2).zip(tokens) {
                    let (fewer, more) = (bits(&pair[0]), bits(&pair[1]));
                    assert_eq!(fewer, more[..fewer.len()], "{kind:?}, {tokens} tokens");
                }
            }
        }
    }

    #[test]
    fn tensors_of_a_file_are_stacked_into_one_matrix() {
        in_every_mode(check_stacked);
    }

    fn check_stacked(gpu: &Gpu) {
        for kind in TensorType::ALL.into_iter().filter(|kind| kind.block_numbers() <= 32) {
            let gguf = Gguf::from_bytes(SyntheticModel { kind, ..SyntheticModel::default() }.bytes().into())
                .unwrap();
            let names = ["attn_q", "attn_k", "attn_v"].map(|name| format!("blk.0.{name}.weight"));
            let matrix = WeightMatrix::load(gpu, &gguf, &names, 32).unwrap();
            assert_eq!((matrix.rows, matrix.parts.len()), (128, 1));
            let weights: Vec<_> = names
                .iter()
                .flat_map(|name| decode(kind, &gguf.tensor(name).unwrap().read().unwrap()))
                .collect();
            let (x, y) = (numbers(8, 32 * 3), gpu.buffer("y", 128 * 3 * 4));
            let given = rows_with(gpu, &x, 32);
            let bound = Matmul::new(gpu).bind(gpu, &matrix, &given, &y, false);
            submit(gpu, |pass| bound.run(pass, 3));
            let bytes =
                read_int8(gpu, &given, 3, 32).filter(|_| activations(gpu, kind) == ActivationFormat::Int8);
            let expected = reference(&weights, &bytes.unwrap_or(x), 32);
            close(&gpu.read(&y, 128 * 3).unwrap(), &expected, 3e-6);
        }
    }
}
