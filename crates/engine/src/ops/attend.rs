//! Attention of each row over its own sequence's cached keys and values, groups of heads sharing theirs.

use crate::gpu::{BufferAccess, Gpu, Kernel, KernelSource, ReductionStrategy};
use crate::shape::ModelShape;

use super::BLOCK;

pub(crate) struct Attention {
    kernel: Kernel,
    heads: u32,
    /// With [`ReductionStrategy::PerLane`], how many heads one lane does.
    heads_per_lane: Option<u32>,
}

/// Lanes in a workgroup with [`ReductionStrategy::PerLane`]: a software driver goes through the motions for idle ones, too.
const LANES: u32 = 8;

/// Workgroups that fit side by side; more go below.
const GRID_MAX: u32 = 65_535;

/// Numbers of queries that one lane has room for.
const LANE_MAX: u32 = 128;

/// The buffers that one layer's run touches.
pub(crate) struct AttentionBuffers<'a> {
    pub(crate) qkv: &'a wgpu::Buffer,
    pub(crate) keys: &'a wgpu::Buffer,
    pub(crate) values: &'a wgpu::Buffer,
    pub(crate) rows: &'a wgpu::Buffer,
    pub(crate) blocks: &'a wgpu::Buffer,
    pub(crate) y: &'a wgpu::Buffer,
}

impl Attention {
    /// `blocks` is the length of a slot's table.
    pub(crate) fn new(gpu: &Gpu, shape: &ModelShape, blocks: u32) -> Self {
        Self::with_reduction(gpu, gpu.reduction, shape, blocks)
    }

    fn with_reduction(gpu: &Gpu, grain: ReductionStrategy, shape: &ModelShape, blocks: u32) -> Self {
        let together = heads_per_lane(grain, shape);
        let mut constants = vec![
            ("HEADS", f64::from(shape.heads)),
            ("KV_HEADS", f64::from(shape.kv_heads)),
            ("HEAD_DIM", f64::from(shape.head_dim)),
            ("BLOCK", f64::from(BLOCK)),
            ("BLOCKS", f64::from(blocks)),
        ];
        let (label, wgsl) = match together {
            None => ("attend", include_str!("attend.wgsl")),
            Some(heads) => {
                constants.extend([("TOGETHER", f64::from(heads)), ("LANES", f64::from(LANES))]);
                ("attend by lanes", include_str!("attend_lanes.wgsl"))
            }
        };
        use BufferAccess::{Read, Write};
        let bindings = &[Read, Read, Read, Read, Read, Write];
        let source = KernelSource { label, wgsl, constants: &constants, bindings, immediates: 1 };
        Self { kernel: Kernel::new(gpu, &source), heads: shape.heads, heads_per_lane: together }
    }

    pub(crate) fn bind(&self, gpu: &Gpu, tied: &AttentionBuffers<'_>) -> wgpu::BindGroup {
        self.kernel.bind(gpu, &[tied.qkv, tied.keys, tied.values, tied.rows, tied.blocks, tied.y])
    }

    pub(crate) fn run(&self, pass: &mut wgpu::ComputePass<'_>, bound: &wgpu::BindGroup, rows: u32) {
        let grid = match self.heads_per_lane {
            None => (self.heads, rows),
            Some(together) => {
                let groups = (rows * (self.heads / together)).div_ceil(LANES);
                (groups.min(GRID_MAX), groups.div_ceil(GRID_MAX))
            }
        };
        self.kernel.run(pass, bound, &[rows], grid);
    }
}

/// How many heads one lane should do: all that share keys and values, where it has room for them. `None`
/// where lanes should not do heads at all, or have no room for even one.
fn heads_per_lane(grain: ReductionStrategy, shape: &ModelShape) -> Option<u32> {
    let sharing = shape.heads / shape.kv_heads;
    let fitting = [sharing, 1].into_iter().find(|heads| heads * shape.head_dim <= LANE_MAX);
    fitting.filter(|_| grain == ReductionStrategy::PerLane)
}

#[cfg(test)]
pub(super) mod testing {
    use crate::family::RopePairs;
    use crate::rope_scaling::{RopeScaling, RopeSpec};
    use crate::shape::ModelShape;

    pub(crate) fn shape(heads: u32, kv_heads: u32, head_dim: u32) -> ModelShape {
        let hidden = heads * head_dim;
        ModelShape {
            layers: 1,
            hidden,
            heads,
            kv_heads,
            head_dim,
            feed_forward: hidden,
            vocab: 8,
            context: 256,
            epsilon: 1e-6,
            rope: RopeSpec { base: 10_000.0, scaling: RopeScaling::None, divisors: Vec::new() },
            rope_pairs: RopePairs::Halves,
            qk_norm: true,
            qkv_bias: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::shape;
    use super::*;
    use crate::gpu::{shared, submit};
    use crate::ops::testing::{close, numbers};

    const TABLE: u32 = 10;

    /// The obvious softmax over one slot's positions.
    fn reference(shape: &ModelShape, q: &[f32], keys: &[f32], values: &[f32], cells: &[usize]) -> Vec<f64> {
        let size = shape.head_dim as usize;
        let scores = cells.iter().map(|cell| {
            let key = &keys[cell * size..][..size];
            let dot: f64 = q.iter().zip(key).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            dot / (size as f64).sqrt()
        });
        let scores: Vec<f64> = scores.collect();
        let top = scores.iter().copied().fold(f64::MIN, f64::max);
        let total: f64 = scores.iter().map(|s| (s - top).exp()).sum();
        let number = |n: usize| {
            let terms = scores.iter().zip(cells);
            terms.map(|(s, cell)| (s - top).exp() / total * f64::from(values[cell * size + n])).sum()
        };
        (0..size).map(number).collect()
    }

    fn check(heads: u32, kv_heads: u32, head_dim: u32, rows: &[[u32; 4]]) {
        check_by(ReductionStrategy::Cooperative, heads, kv_heads, head_dim, rows);
        check_by(ReductionStrategy::PerLane, heads, kv_heads, head_dim, rows);
    }

    fn check_by(grain: ReductionStrategy, heads: u32, kv_heads: u32, head_dim: u32, rows: &[[u32; 4]]) {
        let gpu = shared();
        let shape = shape(heads, kv_heads, head_dim);
        // Two slots whose blocks are interleaved backwards through the pool.
        let tables: Vec<u32> = (0..2 * TABLE).map(|n| 2 * (TABLE - 1 - n % TABLE) + n / TABLE).collect();
        let cache = 2 * TABLE * BLOCK * kv_heads * head_dim;
        let count = u32::try_from(rows.len()).unwrap();
        let x: Vec<f32> = numbers(1, count * shape.qkv()).iter().map(|v| v * 4.0).collect();
        let (keys, values) = (numbers(2, cache), numbers(3, cache));
        let y = gpu.buffer("y", u64::from(count * shape.queries()) * 4);
        let attend = Attention::with_reduction(&gpu, grain, &shape, TABLE);
        let bound = attend.bind(
            &gpu,
            &AttentionBuffers {
                qkv: &gpu.buffer_with("qkv", &x),
                keys: &gpu.buffer_with("k", &keys),
                values: &gpu.buffer_with("v", &values),
                rows: &gpu.buffer_with("rows", rows),
                blocks: &gpu.buffer_with("blocks", &tables),
                y: &y,
            },
        );
        submit(&gpu, |pass| attend.run(pass, &bound, count));
        let got: Vec<f32> = gpu.read(&y, (count * shape.queries()) as usize).unwrap();
        let size = head_dim as usize;
        for (row, [_, slot, position, _]) in rows.iter().enumerate() {
            for head in 0..heads {
                let cell = |p: u32| {
                    let block = tables[(slot * TABLE + p / BLOCK) as usize];
                    ((block * kv_heads + head / (heads / kv_heads)) * BLOCK + p % BLOCK) as usize
                };
                let cells: Vec<_> = (0..=*position).map(cell).collect();
                let q = &x[row * shape.qkv() as usize + head as usize * size..][..size];
                let expected = reference(&shape, q, &keys, &values, &cells);
                close(&got[(row * heads as usize + head as usize) * size..][..size], &expected, 5e-6);
            }
        }
    }

    #[test]
    fn heads_attend_in_groups_of_one_two_and_four() {
        let rows = [[0, 0, 5, 0], [0, 1, 40, 0], [0, 0, 6, 0]];
        check(4, 4, 16, &rows);
        check(4, 2, 32, &rows);
        check(4, 1, 128, &rows);
        check(2, 1, 256, &rows[..1]);
        check(3, 3, 20, &rows);
        check(8, 1, 16, &rows);
        check(6, 2, 64, &rows);
        check(2, 2, 96, &rows);
    }

    #[test]
    fn rows_at_the_first_position_and_at_the_edges_of_blocks_and_tiles_attend_rightly() {
        let rows =
            [0, 1, 15, 16, 17, 63, 64, 65, 127, 128, 159].map(|position| [0, position % 2, position, 0]);
        check(4, 2, 32, &rows);
    }
}
