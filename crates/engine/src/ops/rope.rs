//! From one row of queries, keys and values: normalise queries and keys per head, rotate them to their
//! position, and put keys and values into the cache.
//!
//! The cache is a list of blocks, `BLOCK` tokens each; within a block one head's tokens lie together.
//! A slot's table says which of the blocks are its own, in order.

use crate::gpu::{BufferAccess, Gpu, Kernel, KernelSource};
use crate::shape::ModelShape;

use super::BLOCK;

pub(crate) struct Rope {
    kernel: Kernel,
    heads: u32,
}

/// The buffers that one layer's run touches.
pub(crate) struct RopeBuffers<'a> {
    pub(crate) qkv: &'a wgpu::Buffer,
    pub(crate) q_norm: &'a wgpu::Buffer,
    pub(crate) k_norm: &'a wgpu::Buffer,
    pub(crate) rotations: &'a wgpu::Buffer,
    pub(crate) rows: &'a wgpu::Buffer,
    pub(crate) blocks: &'a wgpu::Buffer,
    pub(crate) keys: &'a wgpu::Buffer,
    pub(crate) values: &'a wgpu::Buffer,
}

/// Cosine and sine of every position and pair, made on the host: shaders' own are too coarse for large angles.
#[expect(clippy::cast_possible_truncation, reason = "the table is of f32")]
pub(crate) fn rotations(positions: u32, head_dim: u32, base: f32) -> Vec<[f32; 2]> {
    let half = head_dim / 2;
    let turn = |position: u32, pair: u32| {
        let frequency = f64::from(base).powf(-f64::from(pair) / f64::from(half));
        let (sine, cosine) = (f64::from(position) * frequency).sin_cos();
        [cosine as f32, sine as f32]
    };
    (0..positions).flat_map(|position| (0..half).map(move |pair| turn(position, pair))).collect()
}

impl Rope {
    /// `blocks` is the length of a slot's table.
    pub(crate) fn new(gpu: &Gpu, shape: &ModelShape, blocks: u32) -> Self {
        let constants = [
            ("HEADS", f64::from(shape.heads)),
            ("KV_HEADS", f64::from(shape.kv_heads)),
            ("HEAD_DIM", f64::from(shape.head_dim)),
            ("EPSILON", f64::from(shape.epsilon)),
            ("BLOCK", f64::from(BLOCK)),
            ("BLOCKS", f64::from(blocks)),
        ];
        use BufferAccess::{Read, Write};
        let source = KernelSource {
            label: "rope",
            wgsl: include_str!("rope.wgsl"),
            constants: &constants,
            bindings: &[Write, Read, Read, Read, Read, Read, Write, Write],
            immediates: 1,
        };
        Self { kernel: Kernel::new(gpu, &source), heads: shape.heads + 2 * shape.kv_heads }
    }

    pub(crate) fn bind(&self, gpu: &Gpu, tied: &RopeBuffers<'_>) -> wgpu::BindGroup {
        let RopeBuffers { qkv, q_norm, k_norm, rotations, rows, blocks, keys, values } = tied;
        self.kernel.bind(gpu, &[qkv, q_norm, k_norm, rotations, rows, blocks, keys, values])
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
    use crate::gpu::{shared, submit};
    use crate::ops::attend::testing::shape;
    use crate::ops::testing::{close, numbers};

    /// One head, normalised and rotated.
    fn turned(head: &[f32], norm: &[f32], position: u32, base: f32) -> Vec<f64> {
        let size = head.len();
        let mean = head.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / size as f64;
        let scale = 1.0 / (mean + 1e-6).sqrt();
        let v: Vec<f64> = head.iter().zip(norm).map(|(v, w)| f64::from(*v) * scale * f64::from(*w)).collect();
        let half = size / 2;
        let pair = |n: usize| {
            let angle = f64::from(position) * f64::from(base).powf(-2.0 * (n % half) as f64 / size as f64);
            let sign = if n < half { -1.0 } else { 1.0 };
            v[n] * angle.cos() + sign * v[(n + half) % size] * angle.sin()
        };
        (0..size).map(pair).collect()
    }

    fn check(heads: u32, kv_heads: u32, head_dim: u32, rows: &[[u32; 4]]) {
        let gpu = shared();
        let shape = shape(heads, kv_heads, head_dim);
        // Slot 0 owns blocks 2 and 0, slot 1 blocks 3 and 1.
        let tables = [2u32, 0, 3, 1];
        let count = u32::try_from(rows.len()).unwrap();
        let x = numbers(1, count * shape.qkv());
        let (q_norm, k_norm) = (numbers(2, head_dim), numbers(3, head_dim));
        let cache = 4 * BLOCK * kv_heads * head_dim;
        let qkv = gpu.buffer_with("qkv", &x);
        let (keys, values) = (gpu.buffer("k", u64::from(cache) * 4), gpu.buffer("v", u64::from(cache) * 4));
        let rope = Rope::new(&gpu, &shape, 2);
        let bound = rope.bind(
            &gpu,
            &RopeBuffers {
                qkv: &qkv,
                q_norm: &gpu.buffer_with("qn", &q_norm),
                k_norm: &gpu.buffer_with("kn", &k_norm),
                rotations: &gpu.buffer_with("rot", &rotations(32, head_dim, shape.rope_base)),
                rows: &gpu.buffer_with("rows", rows),
                blocks: &gpu.buffer_with("blocks", &tables),
                keys: &keys,
                values: &values,
            },
        );
        submit(&gpu, |pass| rope.run(&gpu, pass, &bound, count));
        let qkv: Vec<f32> = gpu.read(&qkv, x.len()).unwrap();
        let keys: Vec<f32> = gpu.read(&keys, cache as usize).unwrap();
        let values: Vec<f32> = gpu.read(&values, cache as usize).unwrap();
        let size = head_dim as usize;
        for (row, [_, slot, position, _]) in rows.iter().enumerate() {
            let head = |head: u32| row * shape.qkv() as usize + head as usize * size;
            for h in 0..heads {
                let expected = turned(&x[head(h)..][..size], &q_norm, *position, shape.rope_base);
                close(&qkv[head(h)..][..size], &expected, 3e-6);
            }
            let block = tables[(slot * 2 + position / BLOCK) as usize];
            for h in 0..kv_heads {
                let cell = (((block * kv_heads + h) * BLOCK + position % BLOCK) * head_dim) as usize;
                let expected = turned(&x[head(heads + h)..][..size], &k_norm, *position, shape.rope_base);
                close(&keys[cell..][..size], &expected, 3e-6);
                assert_eq!(values[cell..][..size], x[head(heads + kv_heads + h)..][..size]);
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
