//! From one row of queries, keys and values: add their biases and normalise queries and keys per head, where the model does
//! that, rotate them to their position, and put keys and values into the cache.
//!
//! The cache is a list of blocks, `BLOCK` tokens each. Within a block one head's tokens lie together: of its keys the first
//! four numbers of all tokens, then the next; of its values the first 32 numbers of each token, then the next. A slot's table
//! says which of the blocks are its own, in order.

use crate::family::RopePairs;
use crate::gpu::{BufferAccess, Gpu, Kernel, KernelSource};
use crate::kv_format::KvFormat;
use crate::shape::ModelShape;

use super::BLOCK;

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
    pub(crate) keys: &'a wgpu::Buffer,
    pub(crate) values: &'a wgpu::Buffer,
}

impl Rope {
    /// `blocks` is the length of a slot's table.
    pub(crate) fn new(gpu: &Gpu, shape: &ModelShape, blocks: u32, format: KvFormat) -> Self {
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
        use BufferAccess::{Read, Write};
        let source = KernelSource {
            label: "rope",
            wgsl: &format.shader(&[include_str!("rope.wgsl")]),
            constants: &constants,
            bindings: &[Write, Read, Read, Read, Read, Write, Write],
            immediates: 1,
        };
        Self { kernel: Kernel::new(gpu, &source), heads: shape.heads + 2 * shape.kv_heads }
    }

    pub(crate) fn bind(&self, gpu: &Gpu, tied: &RopeBuffers<'_>) -> wgpu::BindGroup {
        let RopeBuffers { qkv, adjustments, rotations, rows, blocks, keys, values } = tied;
        self.kernel.bind(gpu, &[qkv, adjustments, rotations, rows, blocks, keys, values])
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
    use crate::ops::attend::testing::shape;
    use crate::ops::testing::{close, numbers, uncached};

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

    fn check(heads: u32, kv_heads: u32, head_dim: u32, rows: &[[u32; 4]]) {
        for rope_pairs in [RopePairs::Halves, RopePairs::Neighbours] {
            for (qk_norm, qkv_bias) in [(true, false), (false, true), (false, false), (true, true)] {
                let plain = shape(heads, kv_heads, head_dim);
                let shape = ModelShape { rope_pairs, qk_norm, qkv_bias, ..plain };
                in_every_grain(|gpu| {
                    check_family(gpu, KvFormat::F32, &shape, rows);
                    check_family(gpu, KvFormat::F16, &shape, rows);
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
        }
    }

    /// The key of one of a block's positions.
    fn key_of(block: &[f32], head_dim: u32, position: u32) -> Vec<f32> {
        let four = |n: u32| block[((n * BLOCK + position) * 4) as usize..][..4].to_vec();
        (0..head_dim / 4).flat_map(four).collect()
    }

    /// The value of one of a block's positions.
    fn value_of(block: &[f32], head_dim: u32, position: u32) -> Vec<f32> {
        let part = |from: u32| {
            let width = (head_dim - from).min(32);
            block[(from * BLOCK + position * width) as usize..][..width as usize].to_vec()
        };
        (0..head_dim).step_by(32).flat_map(part).collect()
    }

    fn check_family(gpu: &Gpu, format: KvFormat, shape: &ModelShape, rows: &[[u32; 4]]) {
        let ModelShape { heads, kv_heads, head_dim, .. } = *shape;
        // Slot 0 owns blocks 2 and 0, slot 1 blocks 3 and 1.
        let tables = [2u32, 0, 3, 1];
        let count = u32::try_from(rows.len()).unwrap();
        let x = numbers(1, count * shape.qkv());
        let (q_norm, k_norm, bias) = (numbers(2, head_dim), numbers(3, head_dim), numbers(4, shape.qkv()));
        let mut adjustments = Vec::new();
        if shape.qk_norm {
            adjustments.extend([&*q_norm, &*k_norm].concat());
        }
        if shape.qkv_bias {
            adjustments.extend(&bias);
        }
        let cache = 4 * BLOCK * kv_heads * head_dim;
        let qkv = gpu.buffer_with("qkv", &x);
        let bytes = format.bytes(u64::from(cache));
        let (keys, values) = (gpu.buffer("k", bytes), gpu.buffer("v", bytes));
        let rope = Rope::new(gpu, shape, 2, format);
        let bound = rope.bind(
            gpu,
            &RopeBuffers {
                qkv: &qkv,
                adjustments: &gpu.buffer_with("adjustments", &adjustments),
                rotations: &gpu.buffer_with("rot", &shape.rope.rotations(32, head_dim)),
                rows: &gpu.buffer_with("rows", rows),
                blocks: &gpu.buffer_with("blocks", &tables),
                keys: &keys,
                values: &values,
            },
        );
        submit(gpu, |pass| rope.run(gpu, pass, &bound, count));
        let qkv: Vec<f32> = gpu.read(&qkv, x.len()).unwrap();
        let read =
            |buffer| uncached(format, &gpu.read::<u8>(buffer, usize::try_from(bytes).unwrap()).unwrap());
        let (keys, values) = (read(&keys), read(&values));
        let size = head_dim as usize;
        for (row, [_, slot, position, _]) in rows.iter().enumerate() {
            let head = |head: u32| row * shape.qkv() as usize + head as usize * size;
            let bias_of = |head: u32| &bias[head as usize * size..][..size];
            for h in 0..heads {
                let expected = turned(shape, &x[head(h)..][..size], bias_of(h), &q_norm, *position);
                close(&qkv[head(h)..][..size], &expected, 3e-6);
            }
            let block = tables[(slot * 2 + position / BLOCK) as usize];
            for h in 0..kv_heads {
                let begin = ((block * kv_heads + h) * BLOCK * head_dim) as usize;
                let own = |all: &[f32]| all[begin..][..(BLOCK * head_dim) as usize].to_vec();
                let (keys, values) = (own(&keys), own(&values));
                let (key_head, value_head) = (heads + h, heads + kv_heads + h);
                let expected =
                    turned(shape, &x[head(key_head)..][..size], bias_of(key_head), &k_norm, *position);
                let key = key_of(&keys, head_dim, position % BLOCK);
                close(&key, &expected, 3e-6 + rounding(format));
                let expected = biased(shape, &x[head(value_head)..][..size], bias_of(value_head));
                close(&value_of(&values, head_dim, position % BLOCK), &expected, 3e-7 + rounding(format));
            }
        }
    }

    #[test]
    fn heads_are_normalised_rotated_and_cached_at_block_edges_too() {
        let rows = [[0, 0, 0, 0], [0, 0, 15, 0], [0, 0, 16, 0], [0, 1, 31, 0], [0, 1, 1, 0]];
        check(4, 4, 16, &rows);
        check(4, 2, 32, &rows);
        check(4, 1, 20, &rows);
        check(3, 1, 128, &rows[..1]);
    }
}
