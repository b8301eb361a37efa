//! Attention of each row over its own sequence's cached keys and values, heads that share theirs together, long rows in splits.

use crate::gpu::{BufferAccess, Gpu, Kernel, KernelSource, Plane, PlaneStorage};
use crate::shape::ModelShape;

use super::BLOCK;
use super::activation_rows::{floats_writer, writes};
use super::cache::CacheLayout;
use super::combine::{CombineSplits, share_bytes, splits_max};

pub(crate) struct Attention {
    kernel: Kernel,
    combine: CombineSplits,
    /// Workgroups for one split of one row.
    groups: u32,
    /// Rows that have room for their splits at once.
    split_rows: u32,
}

/// The most heads that one workgroup does.
const TOGETHER_MAX: u32 = 4;

/// So many rows have room for their splits, or fewer where a device cannot bind so much; more take turns.
const SPLIT_ROWS: u32 = 32;

/// The buffers that one layer's run touches.
pub(crate) struct AttentionBuffers<'a> {
    pub(crate) qkv: &'a wgpu::Buffer,
    /// The queries, where they lie apart.
    pub(crate) queries: Option<&'a Plane>,
    pub(crate) keys: &'a Plane,
    pub(crate) values: &'a Plane,
    pub(crate) rows: &'a wgpu::Buffer,
    pub(crate) blocks: &'a wgpu::Buffer,
    pub(crate) y: &'a Plane,
    /// Room for splits, of [`split_bytes`].
    pub(crate) shares: &'a wgpu::Buffer,
}

/// A layer's buffers, tied to the kernels.
pub(crate) struct BoundAttention {
    attend: wgpu::BindGroup,
    combine: wgpu::BindGroup,
}

/// Bytes of the room that the splits of up to so many rows take, where one binding may span so many.
pub(crate) fn split_bytes(shape: &ModelShape, rows: u32, binding_max: u64) -> u64 {
    share_bytes(shape, rows.min(split_rows(shape, binding_max)))
}

/// How many rows have room for their splits at once. None where a device cannot bind the room of one.
pub(crate) fn split_rows(shape: &ModelShape, binding_max: u64) -> u32 {
    let fitting = binding_max / share_bytes(shape, 1);
    u32::try_from(fitting).map_or(SPLIT_ROWS, |fitting| fitting.min(SPLIT_ROWS))
}

impl Attention {
    /// `blocks` is the length of a slot's table.
    pub(crate) fn new(gpu: &Gpu, shape: &ModelShape, blocks: u32, layout: CacheLayout) -> Self {
        let sharing = shape.heads / shape.kv_heads;
        // Equal shares, as far as that goes.
        let teams = sharing.div_ceil(TOGETHER_MAX);
        let constants = [
            ("HEADS", f64::from(shape.heads)),
            ("KV_HEADS", f64::from(shape.kv_heads)),
            ("HEAD_DIM", f64::from(shape.head_dim)),
            ("BLOCK", f64::from(BLOCK)),
            ("BLOCKS", f64::from(blocks)),
            ("TOGETHER", f64::from(sharing.div_ceil(teams))),
            ("TEAMS", f64::from(sharing.div_ceil(sharing.div_ceil(teams)))),
        ];
        let (label, own, reader) = match (layout.storage, layout.is_scaled()) {
            (PlaneStorage::Buffers, _) => ("attend", include_str!("attend.wgsl"), ""),
            (PlaneStorage::Textures, false) => {
                ("attend by lanes", include_str!("attend_lanes.wgsl"), include_str!("attend_eights.wgsl"))
            }
            (PlaneStorage::Textures, true) => {
                ("attend by lanes", include_str!("attend_lanes.wgsl"), include_str!("attend_sixteens.wgsl"))
            }
        };
        use BufferAccess::{Read, Write};
        let bindings = &[&[layout.reads(); 3][..], &[Read; 2], &writes(gpu, false), &[Write]].concat();
        let writer = floats_writer(gpu, 5);
        let parts = [include_str!("splits.wgsl"), include_str!("attend_buffers.wgsl"), &writer, own, reader];
        let wgsl = layout.shader(&parts);
        let source = KernelSource { label, wgsl: &wgsl, constants: &constants, bindings, immediates: 2 };
        let groups = shape.kv_heads * sharing.div_ceil(sharing.div_ceil(teams));
        let (kernel, combine) = (Kernel::new(gpu, &source), CombineSplits::new(gpu, shape));
        Self { kernel, combine, groups, split_rows: split_rows(shape, gpu.binding_max).max(1) }
    }

    pub(crate) fn bind(&self, gpu: &Gpu, buffers: &AttentionBuffers<'_>) -> BoundAttention {
        let AttentionBuffers { qkv, queries, keys, values, rows, blocks, y, shares } = buffers;
        let resources = [
            queries.map_or(qkv.as_entire_binding(), Plane::binding),
            keys.binding(),
            values.binding(),
            rows.as_entire_binding(),
            blocks.as_entire_binding(),
            y.binding(),
            shares.as_entire_binding(),
        ];
        BoundAttention {
            attend: self.kernel.bind_resources(gpu, resources),
            combine: self.combine.bind(gpu, shares, rows, y),
        }
    }

    /// `longest` is the most positions that one of the rows attends to.
    pub(crate) fn run(
        &self,
        pass: &mut wgpu::ComputePass<'_>,
        bound: &BoundAttention,
        rows: u32,
        longest: u32,
    ) {
        let splits = splits_max(longest);
        if splits == 1 {
            return self.kernel.run(pass, &bound.attend, &[rows, 0], (self.groups, rows));
        }
        for first in (0..rows).step_by(self.split_rows as usize) {
            let count = (rows - first).min(self.split_rows);
            self.kernel.run(pass, &bound.attend, &[rows, first], (self.groups * splits, count));
            self.combine.run(pass, &bound.combine, rows, first, count);
        }
    }
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
            experts: None,
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
    use crate::gpu::{in_every_grain, shared_binding, submit};
    use crate::kv_format::KvFormat;
    use crate::ops::activation_rows::float_rows;
    use crate::ops::cache::CachePart;
    use crate::ops::testing::{close, numbers};

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

    /// In each format other than bytes, by each kernel, with and without the shaders' checks.
    fn check(heads: u32, kv_heads: u32, head_dim: u32, rows: &[[u32; 4]]) {
        let shape = shape(heads, kv_heads, head_dim);
        in_every_grain(|gpu| {
            for format in [KvFormat::F32, KvFormat::F16] {
                check_by(gpu, format, &shape, rows);
            }
        });
    }

    /// The same in bytes, of fewer shapes and rows: debug builds take long for each.
    fn check_bytes(heads: u32, kv_heads: u32, head_dim: u32, rows: &[[u32; 4]]) {
        in_every_grain(|gpu| check_by(gpu, KvFormat::Q8_0, &shape(heads, kv_heads, head_dim), rows));
    }

    /// Against the numbers as the cache has them.
    fn check_by(gpu: &Gpu, format: KvFormat, shape: &ModelShape, rows: &[[u32; 4]]) {
        check_within(gpu, format, shape, rows, Reference { rounded: true, tolerance: 5e-6 });
    }

    /// What attention is compared with: the numbers that the cache got, or those that it made of them; and how far it may be off.
    #[derive(Clone, Copy)]
    struct Reference {
        rounded: bool,
        tolerance: f64,
    }

    fn check_within(gpu: &Gpu, format: KvFormat, shape: &ModelShape, rows: &[[u32; 4]], within: Reference) {
        let ModelShape { heads, kv_heads, head_dim, .. } = *shape;
        let longest = rows.iter().map(|row| row[2] + 1).max().unwrap();
        // Two slots whose blocks are interleaved backwards through the pool.
        let table = longest.div_ceil(BLOCK);
        let tables: Vec<u32> = (0..2 * table).map(|n| 2 * (table - 1 - n % table) + n / table).collect();
        let cache = 2 * table * BLOCK * kv_heads * head_dim;
        let count = u32::try_from(rows.len()).unwrap();
        let x: Vec<f32> = numbers(1, count * shape.qkv()).iter().map(|v| v * 4.0).collect();
        let layout = CacheLayout::new(gpu, shape, format);
        let filled = |part, seed| {
            let given = numbers(seed, cache);
            let (plane, rounded) = layout.filled(gpu, part, 2 * table, &given);
            (plane, if within.rounded { rounded } else { given })
        };
        let ((key_plane, keys), (value_plane, values)) =
            (filled(CachePart::Keys, 2), filled(CachePart::Values, 3));
        let queries = layout.queries(gpu, count, shape.queries());
        if let Some(plane) = &queries {
            let own = x.chunks(shape.qkv() as usize).map(|row| &row[..shape.queries() as usize]);
            plane.fill(gpu, bytemuck::cast_slice(&own.collect::<Vec<_>>().concat()));
        }
        let y = float_rows(gpu, "y", count, shape.queries());
        let attend = Attention::new(gpu, shape, table, layout);
        let bound = attend.bind(
            gpu,
            &AttentionBuffers {
                qkv: &gpu.buffer_with("qkv", &x),
                queries: queries.as_ref(),
                keys: &key_plane,
                values: &value_plane,
                rows: &gpu.buffer_with("rows", rows),
                blocks: &gpu.buffer_with("blocks", &tables),
                y: &y,
                shares: &gpu.buffer("shares", split_bytes(shape, count, gpu.binding_max)),
            },
        );
        submit(gpu, |pass| attend.run(pass, &bound, count, longest));
        let got: Vec<f32> = y.read(gpu, (count * shape.queries()) as usize);
        let size = head_dim as usize;
        for (row, [_, slot, position, _]) in rows.iter().enumerate() {
            for head in 0..heads {
                let cell = |p: u32| {
                    let block = tables[(slot * table + p / BLOCK) as usize];
                    ((block * kv_heads + head / (heads / kv_heads)) * BLOCK + p % BLOCK) as usize
                };
                let cells: Vec<_> = (0..=*position).map(cell).collect();
                let q = &x[row * shape.qkv() as usize + head as usize * size..][..size];
                let expected = reference(shape, q, &keys, &values, &cells);
                close(
                    &got[(row * heads as usize + head as usize) * size..][..size],
                    &expected,
                    within.tolerance,
                );
            }
        }
    }

    #[test]
    fn a_cache_of_bytes_moves_attention_by_a_hundredth_and_one_of_halves_by_a_tenth_of_that() {
        let shape = shape(4, 2, 64);
        let rows = [0, 30, 300].map(|position| [0, position % 2, position, 0]);
        for (format, tolerance) in [(KvFormat::F16, 1e-3), (KvFormat::Q8_0, 1e-2)] {
            in_every_grain(|gpu| {
                check_within(gpu, format, &shape, &rows, Reference { rounded: false, tolerance });
            });
        }
    }

    #[test]
    fn heads_attend_in_groups_of_one_to_eight() {
        let rows = [[0, 0, 5, 0], [0, 1, 40, 0], [0, 0, 6, 0]];
        check(4, 4, 16, &rows);
        check(4, 2, 32, &rows);
        check(4, 1, 128, &rows);
        check(2, 1, 256, &rows[..1]);
        check(3, 3, 20, &rows);
        check(8, 1, 16, &rows);
        check(6, 2, 64, &rows);
        check(2, 2, 96, &rows);
        check(5, 1, 20, &rows);
        check(14, 2, 64, &rows);
        check_bytes(3, 3, 20, &rows);
        check_bytes(8, 1, 16, &rows);
        check_bytes(6, 2, 64, &rows);
        check_bytes(4, 1, 128, &rows[..2]);
        check_bytes(2, 1, 256, &rows[..1]);
    }

    #[test]
    fn heads_of_any_size_attend_over_bytes() {
        let rows = [[0, 0, 5, 0], [0, 1, 40, 0]];
        for (heads, head_dim) in [(3, 48), (2, 80), (2, 192)] {
            check_bytes(heads, 1, head_dim, &rows);
        }
    }

    #[test]
    fn rows_at_the_first_position_and_at_the_edges_of_blocks_and_tiles_attend_rightly() {
        let rows = [0, 1, 7, 8, 15, 16, 17, 63, 64, 65, 127, 128, 159]
            .map(|position| [0, position % 2, position, 0]);
        check(4, 2, 32, &rows);
        check_bytes(2, 1, 32, &rows);
    }

    #[test]
    fn rows_of_one_split_of_several_and_of_splits_of_several_tiles_attend_rightly() {
        let rows =
            [3, 255, 256, 511, 512, 700, 4500, 16_384, 16_700].map(|position| [0, position % 2, position, 0]);
        check(3, 1, 20, &rows);
        // In textures, too.
        check_bytes(1, 1, 16, &[255, 256, 700, 16_700].map(|position| [0, position % 2, position, 0]));
    }

    /// llvmpipe ends a thread's loops after 65,536 turns in all, without a word. With checks no loop is unrolled, and one thread came
    /// to so many.
    #[test]
    fn a_row_of_so_many_positions_attends_rightly_that_one_thread_could_not_go_over_them() {
        check(1, 1, 128, &[[0, 0, 2000, 0]]);
        check_bytes(1, 1, 128, &[[0, 0, 2000, 0]]);
    }

    #[test]
    fn more_rows_than_have_room_for_their_splits_take_turns() {
        let rows: Vec<_> = (0..70).map(|n| [0, n % 2, 250 + n, 0]).collect();
        check(2, 1, 16, &rows);
    }

    #[test]
    fn rows_take_turns_in_as_much_room_as_a_device_can_bind() {
        let shape = shape(2, 1, 16);
        let rows: Vec<_> = (0..7).map(|n| [0, n % 2, 250 + 100 * n, 0]).collect();
        for (fitting, expected) in [(1, 1), (3, 3), (7, 7), (64, 7), (1000, 7)] {
            let most = share_bytes(&shape, fitting) + 5;
            assert_eq!(split_bytes(&shape, 7, most), share_bytes(&shape, expected));
            check_by(&shared_binding(most), KvFormat::F16, &shape, &rows);
        }
        assert_eq!(split_rows(&shape, share_bytes(&shape, 1) - 1), 0);
        assert_eq!(split_rows(&shape, u64::MAX), SPLIT_ROWS);
    }
}
