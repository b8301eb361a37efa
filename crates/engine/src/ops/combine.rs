//! Combines what attention made of the splits of a row.

use crate::gpu::{BufferAccess, Gpu, Kernel, KernelSource, Plane};
use crate::shape::ModelShape;

use super::activation_rows::{floats_writer, writes};

/// Positions in a tile, as `splits.wgsl` has them.
const TILE: u32 = 256;

/// The most splits of a row, as `splits.wgsl` has them.
const SPLITS: u32 = 64;

/// The most splits that a row of up to so many positions has: a longer one may have fewer, of more tiles each.
pub(crate) fn splits_max(length: u32) -> u32 {
    length.div_ceil(TILE).min(SPLITS)
}

/// Bytes that the splits of so many rows take.
pub(crate) fn share_bytes(shape: &ModelShape, rows: u32) -> u64 {
    u64::from(rows * SPLITS) * u64::from(shape.heads) * u64::from(shape.head_dim / 4 + 1) * 16
}

pub(crate) struct CombineSplits {
    kernel: Kernel,
    groups: u32,
}

impl CombineSplits {
    pub(crate) fn new(gpu: &Gpu, shape: &ModelShape) -> Self {
        let constants = [("HEADS", f64::from(shape.heads)), ("HEAD_DIM", f64::from(shape.head_dim))];
        let wgsl =
            [include_str!("splits.wgsl"), &floats_writer(gpu, 2), include_str!("combine.wgsl")].join("\n");
        let bindings = &[&[BufferAccess::Read; 2][..], &writes(gpu, false)].concat();
        let source =
            KernelSource { label: "combine", wgsl: &wgsl, constants: &constants, bindings, immediates: 2 };
        Self { kernel: Kernel::new(gpu, &source), groups: (shape.queries() / 4).div_ceil(64) }
    }

    pub(crate) fn bind(
        &self,
        gpu: &Gpu,
        shares: &wgpu::Buffer,
        rows: &wgpu::Buffer,
        y: &Plane,
    ) -> wgpu::BindGroup {
        let read = [shares, rows].map(wgpu::Buffer::as_entire_binding);
        self.kernel.bind_resources(gpu, read.into_iter().chain([y.binding()]))
    }

    /// Of `rows` rows, so many from `first` on.
    pub(crate) fn run(
        &self,
        pass: &mut wgpu::ComputePass<'_>,
        bound: &wgpu::BindGroup,
        rows: u32,
        first: u32,
        count: u32,
    ) {
        self.kernel.run(pass, bound, &[rows, first], (self.groups, count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{in_every_grain, submit};
    use crate::ops::activation_rows::float_rows;
    use crate::ops::attend::testing::shape;
    use crate::ops::testing::{close, numbers};

    /// Into how many splits the positions of a row go, as `splits.wgsl` has it.
    fn split_count(length: u32) -> u32 {
        let span = length.div_ceil(TILE).div_ceil(SPLITS) * TILE;
        length.div_ceil(span)
    }

    /// What a head's numbers are, of the sums, peaks and totals of its splits.
    fn reference(splits: &[&[f32]], size: usize) -> Vec<f64> {
        let peak = splits.iter().map(|split| f64::from(split[size])).fold(f64::MIN, f64::max);
        let weight = |split: &[f32]| (f64::from(split[size]) - peak).exp();
        let total: f64 = splits.iter().map(|split| weight(split) * f64::from(split[size + 1])).sum();
        let number =
            |n: usize| splits.iter().map(|split| weight(split) * f64::from(split[n])).sum::<f64>() / total;
        (0..size).map(number).collect()
    }

    fn check(heads: u32, head_dim: u32, first: u32, positions: &[u32]) {
        in_every_grain(|gpu| {
            let shape = shape(heads, heads, head_dim);
            let rows: Vec<_> = positions.iter().map(|position| [0, 0, *position, 0]).collect();
            let count = u32::try_from(rows.len()).unwrap();
            let stride = (head_dim + 4) as usize;
            let done = count - first;
            let mut shares = numbers(5, done * SPLITS * heads * (head_dim + 4));
            for share in shares.chunks_mut(stride) {
                share[head_dim as usize] *= 3.0;
                share[head_dim as usize + 1] += 2.0;
            }
            let before = numbers(6, count * shape.queries());
            let y = float_rows(gpu, "y", count, shape.queries());
            y.fill(gpu, bytemuck::cast_slice(&before));
            let combine = CombineSplits::new(gpu, &shape);
            let bound =
                combine.bind(gpu, &gpu.buffer_with("shares", &shares), &gpu.buffer_with("rows", &rows), &y);
            submit(gpu, |pass| combine.run(pass, &bound, count, first, done));
            let got: Vec<f32> = y.read(gpu, before.len());
            let size = head_dim as usize;
            for (at, position) in positions.iter().enumerate() {
                for head in 0..heads as usize {
                    let place = (at * heads as usize + head) * size;
                    let splits = split_count(position + 1) as usize;
                    if at < first as usize || splits == 1 {
                        assert_eq!(got[place..][..size], before[place..][..size]);
                        continue;
                    }
                    let share = |split: usize| {
                        let at = (at - first as usize) * SPLITS as usize + split;
                        &shares[(at * heads as usize + head) * stride..][..stride]
                    };
                    let splits: Vec<_> = (0..splits).map(share).collect();
                    close(&got[place..][..size], &reference(&splits, size), 3e-6);
                }
            }
        });
    }

    #[test]
    fn splits_are_combined_by_their_share_and_rows_of_one_split_are_left() {
        check(4, 16, 0, &[3, 255, 256, 511, 512]);
        check(3, 20, 1, &[300, 16_383, 16_384, 100_000]);
        check(2, 256, 2, &[300, 300, 700]);
        check(17, 4, 0, &[1000]);
    }

    #[test]
    fn there_is_room_for_the_splits_of_every_row_up_to_the_longest() {
        let counts = [1, 256, 257, 8193, 16_384, 16_385, 16_640, 32_769, u32::MAX / 2];
        assert_eq!(counts.map(split_count), [1, 1, 2, 33, 64, 33, 33, 43, 64]);
        assert_eq!(counts.map(splits_max), [1, 1, 2, 33, 64, 64, 64, 64, 64]);
    }
}
