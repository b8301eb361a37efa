//! Rows of activations times the matrices of the experts that were chosen for them. Only chosen experts' weights are read.
//!
//! The kernels are those of a plain matrix, told which rows of the weights are whose. A few rows are done each by itself; many
//! are put into teams first, which share one reading of their expert.

use std::cell::OnceCell;
use std::sync::Arc;

use crate::expert_shape::ExpertShape;
use crate::expert_weights::ExpertMatrix;
use crate::gpu::{BufferAccess, Gpu};
use crate::weights::MatrixPart;
use stint_gguf::TensorType;

use super::activation_rows::ActivationRows;
use super::matmul::bind_weights;
use super::matmul_kernels::{MatmulKernels, MatmulPlaces, WeightKind};
use super::team::teams_max;

const EXPERTS: MatmulPlaces = MatmulPlaces {
    wgsl: include_str!("matmul_experts.wgsl"),
    more: &[BufferAccess::Read, BufferAccess::Read],
    immediates: 7,
    plain: false,
};

/// Places in a team.
const TEAM: u32 = 4;

/// From so many rows on teams are worth it: there are twice as many places as experts.
pub(crate) fn rows_for_teams(experts: ExpertShape) -> u32 {
    (2 * experts.count).div_ceil(experts.used)
}

/// The kernels of the formats that were asked for.
pub(crate) struct ExpertMatmul {
    experts: ExpertShape,
    /// So many places in a row have their row of activations in common.
    sharing: u32,
    /// Of each format those for any number of rows of an expert, then those for fours.
    kernels: [[OnceCell<Arc<MatmulKernels>>; 2]; TensorType::ALL.len()],
}

/// The buffers that one run touches.
pub(crate) struct ExpertBuffers<'a> {
    pub(crate) x: &'a ActivationRows,
    pub(crate) y: &'a wgpu::Buffer,
    /// What [`RouteExperts`](super::RouteExperts) chose.
    pub(crate) chosen: &'a wgpu::Buffer,
    /// Those of [`TeamPlaces`](super::TeamPlaces).
    pub(crate) teams: &'a wgpu::Buffer,
}

/// Experts' matrices, tied to their input and output.
pub(crate) struct BoundExperts {
    dispatches: Vec<ExpertDispatch>,
    experts: ExpertShape,
    columns: u32,
    /// The numbers of a result.
    stride: u32,
}

struct ExpertDispatch {
    kernels: Arc<MatmulKernels>,
    bind_group: wgpu::BindGroup,
    /// Of one expert, and where their results begin.
    rows: u32,
    first: u32,
    /// The experts that lie here.
    expert: u32,
    experts: u32,
}

impl ExpertMatmul {
    pub(crate) fn new(experts: ExpertShape, sharing: u32) -> Self {
        Self { experts, sharing, kernels: Default::default() }
    }

    fn kernels(&self, gpu: &Gpu, weights: WeightKind) -> &Arc<MatmulKernels> {
        let constants = [("ADD", 0.0), ("SHARING", f64::from(self.sharing))];
        let make = || MatmulKernels::new(gpu, weights, &EXPERTS, &constants);
        self.kernels[weights.kind as usize][usize::from(weights.in_fours)].get_or_init(|| Arc::new(make()))
    }

    /// A result is what all matrices give, side by side.
    pub(crate) fn bind(
        &self,
        gpu: &Gpu,
        matrices: &[ExpertMatrix],
        buffers: &ExpertBuffers<'_>,
    ) -> BoundExperts {
        let &ExpertBuffers { x, y, chosen, teams } = buffers;
        let parts =
            matrices.iter().flat_map(|matrix| matrix.matrix.parts.iter().map(move |part| (matrix, part)));
        let dispatch = |(matrix, part): (&ExpertMatrix, &MatrixPart)| {
            let kernels = self.kernels(gpu, WeightKind::of(gpu, part.kind, matrix.rows));
            ExpertDispatch {
                kernels: Arc::clone(kernels),
                bind_group: bind_weights(gpu, kernels, part, x, y, &[chosen, teams]),
                rows: matrix.rows,
                first: matrix.first,
                expert: part.first / matrix.rows,
                experts: part.rows / matrix.rows,
            }
        };
        BoundExperts {
            dispatches: parts.map(dispatch).collect(),
            experts: self.experts,
            columns: matrices.first().map_or(0, |matrix| matrix.matrix.columns),
            stride: matrices.iter().map(|matrix| matrix.rows).sum(),
        }
    }
}

impl BoundExperts {
    /// For so many rows; their places are in teams if there are [`rows_for_teams`].
    pub(crate) fn run(&self, pass: &mut wgpu::ComputePass<'_>, rows: u32) {
        let places = rows * self.experts.used;
        let in_teams = rows >= rows_for_teams(self.experts);
        let groups = if in_teams { teams_max(places, self.experts.count) } else { places };
        for call in &self.dispatches {
            let immediates =
                [call.rows, places, self.columns, self.stride, call.first, call.expert, call.experts];
            let chosen = call.kernels.for_tokens(if in_teams { TEAM } else { 1 });
            chosen.kernel.run(pass, &call.bind_group, &immediates, chosen.grid(call.rows, groups));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expert_weights::ExpertTensorSize;
    use crate::gpu::{ActivationFormat, in_every_mode, shared, submit};
    use crate::ops::matmul_kernels::activations;
    use crate::ops::testing::{close, numbers, read_int8, rows_with};
    use crate::ops::{RouteExperts, TeamPlaces};
    use crate::repack::number_bytes;
    use stint_gguf::Gguf;
    use stint_gguf::synth::{SyntheticModel, decode};

    /// A layer's gate and up, or its down.
    #[derive(Clone, Copy)]
    enum Part {
        Wide,
        Down,
    }

    #[derive(Clone, Copy)]
    struct Case {
        kind: TensorType,
        hidden: u32,
        feed_forward: u32,
        experts: ExpertShape,
        /// The most experts of a part of the matrix; all in one without.
        experts_together: Option<u64>,
    }

    impl Case {
        fn gguf(&self) -> Gguf {
            let plain = SyntheticModel {
                kind: self.kind,
                layers: 1,
                hidden: self.hidden,
                head_dim: self.hidden / 4,
                feed_forward: self.feed_forward,
                ..SyntheticModel::default()
            };
            let synth = plain.qwen3moe(self.experts.count, self.experts.used);
            Gguf::from_bytes(synth.bytes().into()).unwrap()
        }

        fn size(&self, part: Part) -> ExpertTensorSize {
            let (rows, columns) = match part {
                Part::Wide => (self.feed_forward, self.hidden),
                Part::Down => (self.hidden, self.feed_forward),
            };
            ExpertTensorSize { experts: self.experts.count, rows, columns }
        }
    }

    fn names(part: Part) -> Vec<String> {
        let names: &[&str] = match part {
            Part::Wide => &["ffn_gate_exps", "ffn_up_exps"],
            Part::Down => &["ffn_down_exps"],
        };
        names.iter().map(|name| format!("blk.0.{name}.weight")).collect()
    }

    /// Each row through each of its experts, number by number.
    fn reference(gguf: &Gguf, part: Part, size: ExpertTensorSize, x: &[f32], chosen: &[u32]) -> Vec<f64> {
        let (rows, columns) = (size.rows as usize, size.columns as usize);
        let weights: Vec<_> = names(part)
            .iter()
            .map(|name| gguf.tensor(name).unwrap())
            .map(|tensor| decode(tensor.kind, &tensor.read().unwrap()))
            .collect();
        let sharing = chosen.len() * columns / x.len();
        let result = |(place, expert): (usize, &u32)| {
            let x = &x[place / sharing * columns..][..columns];
            let first = *expert as usize * rows;
            let dot = move |row: &[f64]| row.iter().zip(x).map(|(w, v)| w * f64::from(*v)).sum::<f64>();
            let of = |weights: &Vec<f64>| {
                weights.chunks(columns).skip(first).take(rows).map(dot).collect::<Vec<_>>()
            };
            weights.iter().flat_map(of).collect::<Vec<_>>()
        };
        chosen.iter().enumerate().flat_map(result).collect()
    }

    /// So many rows, each time. A row's results have the same bits each time.
    fn check(case: &Case, part: Part, steps: &[u32]) {
        let gguf = case.gguf();
        let size = case.size(part);
        let sharing = if let Part::Wide = part { case.experts.used } else { 1 };
        let tensors = names(part).len() as u64;
        in_every_mode(|gpu| {
            let expert =
                number_bytes(case.kind, size.columns as usize) as u64 * u64::from(size.rows) * tensors;
            let part_max = case.experts_together.map_or(u64::MAX, |most| expert * most);
            let matrices = ExpertMatrix::load(gpu, &gguf, &names(part), size, part_max).unwrap();
            let parts = case.experts_together.map_or(1, |most| u64::from(size.experts).div_ceil(most));
            assert_eq!(matrices.iter().map(|matrix| matrix.matrix.parts.len() as u64).sum::<u64>(), parts);
            let (route, team) = (RouteExperts::new(gpu, case.experts), TeamPlaces::new(gpu, case.experts));
            let matmul = ExpertMatmul::new(case.experts, sharing);
            let mut before: Vec<u32> = Vec::new();
            for rows in steps {
                let places = rows * case.experts.used;
                let x = numbers(6, places / sharing * size.columns);
                let router = gpu.buffer_with("router", &numbers(7, rows * case.experts.count));
                let results = places as usize * size.rows as usize * names(part).len();
                let chosen = gpu.buffer("chosen", u64::from(places) * 8);
                let teams = gpu.buffer("teams", u64::from(teams_max(places, size.experts)) * 16);
                let y = gpu.buffer_with("y", &vec![9f32; results]);
                let (routed, teamed) = (route.bind(gpu, &router, &chosen), team.bind(gpu, &chosen, &teams));
                let given = rows_with(gpu, &x, size.columns);
                let buffers = ExpertBuffers { x: &given, y: &y, chosen: &chosen, teams: &teams };
                let bound = matmul.bind(gpu, &matrices, &buffers);
                submit(gpu, |pass| {
                    route.run(gpu, pass, &routed, *rows);
                    team.run(pass, &teamed, places);
                    bound.run(pass, *rows);
                });
                let got: Vec<f32> = gpu.read(&y, results).unwrap();
                let chosen: Vec<[u32; 2]> = gpu.read(&chosen, places as usize).unwrap();
                let chosen: Vec<_> = chosen.iter().map(|choice| choice[0]).collect();
                let bytes = read_int8(gpu, &given, places / sharing, size.columns)
                    .filter(|_| activations(gpu, case.kind) == ActivationFormat::Int8);
                let x = bytes.unwrap_or(x);
                close(&got, &reference(&gguf, part, size, &x, &chosen), 3e-6);
                let bits: Vec<_> = got.iter().map(|number| number.to_bits()).collect();
                assert!(bits.iter().zip(&before).all(|(now, before)| now == before), "{:?}", case.kind);
                before = bits;
            }
        });
    }

    const SIX: ExpertShape = ExpertShape { count: 6, used: 2, normalised: true };

    const BYTES: Case =
        Case { kind: TensorType::Q8_0, hidden: 32, feed_forward: 96, experts: SIX, experts_together: None };

    #[test]
    fn every_format_multiplies_few_rows_and_many() {
        for kind in TensorType::ALL {
            let (hidden, feed_forward) = match kind.block_numbers() {
                256 => (256, 512),
                32 => (96, 32),
                _ => (40, 24),
            };
            let case = Case { kind, hidden, feed_forward, ..BYTES };
            check(&case, Part::Wide, &[1, 8]);
        }
    }

    #[test]
    fn experts_may_be_few_or_many_and_of_any_size() {
        for (count, used) in [(1, 1), (4, 4), (16, 8), (7, 3), (33, 2)] {
            let experts = ExpertShape { count, used, normalised: true };
            check(&Case { experts, ..BYTES }, Part::Down, &[1, 2, 5, 40]);
        }
        let floats = Case { kind: TensorType::F32, hidden: 36, feed_forward: 20, ..BYTES };
        check(&floats, Part::Wide, &[2, 20]);
        check(&floats, Part::Down, &[2, 20]);
        check(&Case { kind: TensorType::Q6K, hidden: 256, feed_forward: 256, ..BYTES }, Part::Down, &[2, 20]);
    }

    #[test]
    fn experts_that_lie_in_several_parts_are_found() {
        for most in [1, 4] {
            let case = Case { experts_together: Some(most), ..BYTES };
            check(&case, Part::Wide, &[2, 20]);
            check(&case, Part::Down, &[2, 20]);
        }
        check(&Case { kind: TensorType::F16, experts_together: Some(4), ..BYTES }, Part::Wide, &[2, 20]);
    }

    #[test]
    fn experts_of_another_size_and_such_as_no_binding_holds_are_refused() {
        let gguf = Case { kind: TensorType::F32, feed_forward: 32, ..BYTES }.gguf();
        let size = ExpertTensorSize { experts: 6, rows: 32, columns: 32 };
        let load = |size, most| {
            let loaded = ExpertMatrix::load(&shared(), &gguf, &names(Part::Down), size, most);
            loaded.map(|matrices| matrices.len()).map_err(|error| error.to_string())
        };
        assert_eq!(load(size, 4096), Ok(1));
        assert!(load(size, 4095).unwrap_err().contains("too large for this device"));
        assert!(load(ExpertTensorSize { experts: 7, ..size }, 4096).unwrap_err().contains("for 7 experts"));
    }
}
