//! From one row of queries, keys and values: add their biases and normalise queries and keys per head, where the model does
//! that, rotate them to their position, and put keys and values into the cache. A slot's table says which of its blocks are its own,
//! in order.

use crate::family::RopePairs;
use crate::gpu::{BufferAccess, Gpu, Kernel, KernelSource, Plane, PlaneStorage};
use crate::shape::ModelShape;

use super::BLOCK;
use super::cache::CacheLayout;

pub(crate) struct Rope {
    kernel: Kernel,
    heads: u32,
}

/// The buffers that one layer's run touches.
pub(crate) struct RopeBuffers<'a> {
    pub(crate) qkv: &'a wgpu::Buffer,
    /// The weights of the norms of queries and of keys, if any, then the biases, if any.
    pub(crate) adjustments: &'a wgpu::Buffer,
    pub(crate) rotations: &'a wgpu::Buffer,
    pub(crate) rows: &'a wgpu::Buffer,
    pub(crate) blocks: &'a wgpu::Buffer,
    /// Where queries go; without it they stay where they are.
    pub(crate) queries: Option<&'a Plane>,
    pub(crate) keys: &'a Plane,
    pub(crate) values: &'a Plane,
}

impl Rope {
    /// `blocks` is the length of a slot's table.
    pub(crate) fn new(gpu: &Gpu, shape: &ModelShape, blocks: u32, layout: CacheLayout) -> Self {
        let constants = [
            ("HEADS", f64::from(shape.heads)),
            ("KV_HEADS", f64::from(shape.kv_heads)),
            ("HEAD_DIM", f64::from(shape.head_dim)),
            ("EPSILON", f64::from(shape.epsilon)),
            ("BLOCK", f64::from(BLOCK)),
            ("BLOCKS", f64::from(blocks)),
            ("NORMED", f64::from(u8::from(shape.qk_norm))),
            ("BIASED", f64::from(u8::from(shape.qkv_bias))),
            ("NEIGHBOURS", f64::from(u8::from(shape.rope_pairs == RopePairs::Neighbours))),
        ];
        use BufferAccess::{Read, Write, WriteTexture};
        let (common, bindings) = match layout.storage {
            PlaneStorage::Buffers => {
                (include_str!("rope.wgsl"), &[Write, Read, Read, Read, Read, Write, Write][..])
            }
            PlaneStorage::Textures => (
                include_str!("rope_lanes.wgsl"),
                &[Read, Read, Read, Read, Read, WriteTexture, WriteTexture, WriteTexture][..],
            ),
        };
        let writer = match (layout.storage, layout.is_scaled()) {
            (PlaneStorage::Buffers, false) => include_str!("rope_pairs.wgsl"),
            (PlaneStorage::Buffers, true) => include_str!("rope_scaled.wgsl"),
            (PlaneStorage::Textures, false) => include_str!("rope_eights.wgsl"),
            (PlaneStorage::Textures, true) => include_str!("rope_sixteens.wgsl"),
        };
        let wgsl = &layout.shader(&[common, writer]);
        let source = KernelSource { label: "rope", wgsl, constants: &constants, bindings, immediates: 1 };
        Self { kernel: Kernel::new(gpu, &source), heads: shape.heads + 2 * shape.kv_heads }
    }

    pub(crate) fn bind(&self, gpu: &Gpu, buffers: &RopeBuffers<'_>) -> wgpu::BindGroup {
        let &RopeBuffers { qkv, adjustments, rotations, rows, blocks, queries, keys, values } = buffers;
        let buffers = [qkv, adjustments, rotations, rows, blocks].map(wgpu::Buffer::as_entire_binding);
        let planes = queries.into_iter().chain([keys, values]).map(Plane::binding);
        self.kernel.bind_resources(gpu, buffers.into_iter().chain(planes))
    }

    pub(crate) fn run(
        &self,
        gpu: &Gpu,
        pass: &mut wgpu::ComputePass<'_>,
        bound: &wgpu::BindGroup,
        rows: u32,
    ) {
        self.kernel.run(pass, bound, &[rows], (gpu.workgroups(self.heads), rows));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{in_every_grain, submit};
    use crate::kv_format::KvFormat;
    use crate::ops::attend::testing::shape;
    use crate::ops::cache::CachePart;
    use crate::ops::testing::{close, numbers};

    /// One head, with its bias, normalised and rotated as the model does it.
    fn turned(shape: &ModelShape, head: &[f32], bias: &[f32], norm: &[f32], position: u32) -> Vec<f64> {
        let size = head.len();
        let v = biased(shape, head, bias);
        let mean = v.iter().map(|v| v.powi(2)).sum::<f64>() / size as f64;
        let scale = 1.0 / (mean + 1e-6).sqrt();
        let v: Vec<f64> = match shape.qk_norm {
            true => v.iter().zip(norm).map(|(v, w)| v * scale * f64::from(*w)).collect(),
            false => v,
        };
        let half = size / 2;
        let number = |n: usize| {
            // The pair, whether it is its first number, and where the other one is.
            let (pair, first, other) = match shape.rope_pairs {
                RopePairs::Halves => (n % half, n < half, (n + half) % size),
                RopePairs::Neighbours => (n / 2, n.is_multiple_of(2), n ^ 1),
            };
            let base = f64::from(shape.rope.base);
            let angle = f64::from(position) * base.powf(-2.0 * pair as f64 / size as f64);
            v[n] * angle.cos() + if first { -1.0 } else { 1.0 } * v[other] * angle.sin()
        };
        (0..size).map(number).collect()
    }

    fn biased(shape: &ModelShape, head: &[f32], bias: &[f32]) -> Vec<f64> {
        let bias = |n: usize| if shape.qkv_bias { f64::from(bias[n]) } else { 0.0 };
        head.iter().enumerate().map(|(n, v)| f64::from(*v) + bias(n)).collect()
    }

    /// Families differ in what is done before numbers are put into the cache, so two of each will do for bytes.
    fn formats(qk_norm: bool, qkv_bias: bool) -> &'static [KvFormat] {
        if qk_norm == qkv_bias {
            &[KvFormat::F32, KvFormat::F16, KvFormat::Q8_0]
        } else {
            &[KvFormat::F32, KvFormat::F16]
        }
    }

    fn check(heads: u32, kv_heads: u32, head_dim: u32, rows: &[[u32; 4]]) {
        for rope_pairs in [RopePairs::Halves, RopePairs::Neighbours] {
            for (qk_norm, qkv_bias) in [(true, false), (false, true), (false, false), (true, true)] {
                let plain = shape(heads, kv_heads, head_dim);
                let shape = ModelShape { rope_pairs, qk_norm, qkv_bias, ..plain };
                in_every_grain(|gpu| {
                    for format in formats(qk_norm, qkv_bias) {
                        check_family(gpu, *format, &shape, rows);
                    }
                });
            }
        }
    }

    /// How far a number of the cache may be from what it was made of.
    fn rounding(format: KvFormat) -> f64 {
        match format {
            KvFormat::F32 => 0.0,
            // A driver may round to the nearest or towards zero.
            KvFormat::F16 => 1e-3,
            // Half a step, of 127 that the largest number is. A scale may be one 128th larger than that takes.
            KvFormat::Q8_0 => 0.5 / 127.0 * (1.0 + 1.0 / 128.0),
        }
    }

    /// Whether a head of the cache has these numbers, and each part of it that has a scale of its own.
    fn check_kept(format: KvFormat, got: &[f32], expected: &[f64], tolerance: f64) {
        let part = if format == KvFormat::Q8_0 { 32 } else { got.len() };
        for (got, expected) in got.chunks(part).zip(expected.chunks(part)) {
            close(got, expected, tolerance + rounding(format));
        }
    }

    fn check_family(gpu: &Gpu, format: KvFormat, shape: &ModelShape, rows: &[[u32; 4]]) {
        let ModelShape { heads, kv_heads, head_dim, .. } = *shape;
        // Slot 0 owns blocks 2 and 0, slot 1 blocks 3 and 1.
        let tables = [2u32, 0, 3, 1];
        let count = u32::try_from(rows.len()).unwrap();
        let mut x = numbers(1, count * shape.qkv());
        // Real models have keys of which a few numbers are much larger than the others.
        x.iter_mut().step_by(37).for_each(|number| *number *= 30.0);
        let (q_norm, k_norm, bias) = (numbers(2, head_dim), numbers(3, head_dim), numbers(4, shape.qkv()));
        let mut adjustments = Vec::new();
        if shape.qk_norm {
            adjustments.extend([&*q_norm, &*k_norm].concat());
        }
        if shape.qkv_bias {
            adjustments.extend(&bias);
        }
        let qkv = gpu.buffer_with("qkv", &x);
        let layout = CacheLayout::new(gpu, shape, format);
        let [keys, values] = ["k", "v"].map(|label| layout.plane(gpu, label, 4));
        let queries = layout.queries(gpu, count, shape.queries());
        let rope = Rope::new(gpu, shape, 2, layout);
        let bound = rope.bind(
            gpu,
            &RopeBuffers {
                qkv: &qkv,
                adjustments: &gpu.buffer_with("adjustments", &adjustments),
                rotations: &gpu.buffer_with("rot", &shape.rope.rotations(32, head_dim)),
                rows: &gpu.buffer_with("rows", rows),
                blocks: &gpu.buffer_with("blocks", &tables),
                queries: queries.as_ref(),
                keys: &keys,
                values: &values,
            },
        );
        submit(gpu, |pass| rope.run(gpu, pass, &bound, count));
        // The queries of each row.
        let queries: Vec<f32> = match &queries {
            Some(plane) => plane.read(gpu, (count * shape.queries()) as usize),
            None => {
                let all: Vec<f32> = gpu.read(&qkv, x.len()).unwrap();
                let rows = all.chunks(shape.qkv() as usize).map(|row| &row[..shape.queries() as usize]);
                rows.collect::<Vec<_>>().concat()
            }
        };
        let [keys, values] = [(CachePart::Keys, &keys), (CachePart::Values, &values)]
            .map(|(part, plane)| layout.read(gpu, part, 4, plane));
        let size = head_dim as usize;
        for (row, [_, slot, position, _]) in rows.iter().enumerate() {
            let head = |head: u32| &x[row * shape.qkv() as usize + head as usize * size..][..size];
            let bias_of = |head: u32| &bias[head as usize * size..][..size];
            for h in 0..heads {
                let expected = turned(shape, head(h), bias_of(h), &q_norm, *position);
                close(&queries[(row * heads as usize + h as usize) * size..][..size], &expected, 3e-6);
            }
            let block = tables[(slot * 2 + position / BLOCK) as usize];
            for h in 0..kv_heads {
                let at = (((block * kv_heads + h) * BLOCK + position % BLOCK) * head_dim) as usize;
                let (key, value) = (heads + h, heads + kv_heads + h);
                let expected = turned(shape, head(key), bias_of(key), &k_norm, *position);
                check_kept(format, &keys[at..][..size], &expected, 3e-6);
                let expected = biased(shape, head(value), bias_of(value));
                check_kept(format, &values[at..][..size], &expected, 3e-7);
            }
        }
    }

    /// What a cache of bytes keeps of three rows of one key and one value of 64 numbers each, two queries before them: the keys, and the
    /// values.
    fn kept_in_bytes(gpu: &Gpu, x: &[f32]) -> [Vec<f32>; 2] {
        let plain = shape(2, 1, 64);
        let shape = ModelShape { qk_norm: false, ..plain };
        let layout = CacheLayout::new(gpu, &shape, KvFormat::Q8_0);
        let [keys, values] = ["k", "v"].map(|label| layout.plane(gpu, label, 1));
        let queries = layout.queries(gpu, 3, shape.queries());
        let rope = Rope::new(gpu, &shape, 1, layout);
        let bound = rope.bind(
            gpu,
            &RopeBuffers {
                qkv: &gpu.buffer_with("qkv", x),
                adjustments: &gpu.buffer_with("adjustments", &[0f32]),
                rotations: &gpu.buffer_with("rot", &shape.rope.rotations(32, 64)),
                rows: &gpu.buffer_with("rows", &[[0u32, 0, 0, 0], [0, 0, 1, 0], [0, 0, 2, 0]]),
                blocks: &gpu.buffer_with("blocks", &[0u32]),
                queries: queries.as_ref(),
                keys: &keys,
                values: &values,
            },
        );
        submit(gpu, |pass| rope.run(gpu, pass, &bound, 3));
        [(CachePart::Keys, &keys), (CachePart::Values, &values)].map(|(part, plane)| {
            let mut kept = layout.read(gpu, part, 1, plane);
            kept.truncate(3 * 64);
            kept
        })
    }

    /// A model that computes no numbers is found by its logits, so those have to be none.
    #[test]
    fn numbers_that_are_none_or_infinite_make_none_of_those_with_their_scale_in_bytes() {
        let mut x = numbers(1, 3 * 256);
        // Of a value, of a key and of another value: four heads of 64 numbers make a row.
        for (at, bad) in
            [(192 + 40, f32::NAN), (256 + 128 + 3, f32::INFINITY), (512 + 192, f32::NEG_INFINITY)]
        {
            x[at] = bad;
        }
        in_every_grain(|gpu| {
            // Which halves of the three heads are numbers.
            let [keys, values] = kept_in_bytes(gpu, &x).map(|kept| -> Vec<bool> {
                kept.chunks(32).map(|own| own.iter().all(|number| number.is_finite())).collect()
            });
            assert_eq!(values, [true, false, true, true, false, true]);
            // Rotation mixes a number with the one that is half a head further on.
            assert_eq!(keys, [true, true, false, false, true, true]);
        });
    }

    #[test]
    fn zeros_and_what_is_next_to_nothing_are_kept_as_zeros_in_bytes_and_huge_numbers_as_they_are() {
        let mut x = numbers(1, 3 * 256);
        // Half of a value, a whole key, and another value.
        x[192..][..32].fill(0.0);
        x[256 + 128..][..64].fill(0.0);
        x[512 + 192..][..32].fill(1e-35);
        x[512 + 224..][..32].fill(-1e30);
        in_every_grain(|gpu| {
            let [keys, values] = kept_in_bytes(gpu, &x);
            assert!(keys[64..128].iter().chain(&values[..32]).chain(&values[128..160]).all(|v| *v == 0.0));
            assert!(values[160..].iter().all(|v| (v / -1e30 - 1.0).abs() < 0.01), "{:?}", &values[160..]);
        });
    }

    #[test]
    fn heads_are_normalised_rotated_and_cached_at_block_edges_too() {
        let rows = [[0, 0, 0, 0], [0, 0, 15, 0], [0, 0, 16, 0], [0, 1, 31, 0], [0, 1, 1, 0]];
        check(4, 4, 16, &rows);
        check(4, 2, 32, &rows);
        check(4, 1, 20, &rows);
        check(3, 1, 128, &rows[..1]);
    }

    /// A head whose last numbers have a scale alone, one whose last scale is alone in its word, and one with more scales than a texel has.
    #[test]
    fn heads_of_any_size_are_cached_in_bytes() {
        for (kv_heads, head_dim) in [(1, 48), (2, 96), (1, 256)] {
            for rope_pairs in [RopePairs::Halves, RopePairs::Neighbours] {
                let shape = ModelShape { rope_pairs, ..shape(2, kv_heads, head_dim) };
                in_every_grain(|gpu| {
                    check_family(gpu, KvFormat::Q8_0, &shape, &[[0, 0, 0, 0], [0, 1, 31, 0]]);
                });
            }
        }
    }
}
