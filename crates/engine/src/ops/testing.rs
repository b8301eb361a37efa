//! What the ops' tests share: reproducible numbers, and closeness.

use stint_gguf::synth::noise;

use super::activation_rows::INT8_BLOCK;
use super::{ActivationRows, QuantiseRows};
use crate::gpu::{Gpu, submit};

/// So many numbers between -1 and 1.
pub(crate) fn numbers(seed: u64, count: u32) -> Vec<f32> {
    let mut state = seed;
    (0..count).map(|_| noise(&mut state)).collect()
}

/// Every number within `tolerance` of the expected one, relative to the largest expected.
pub(crate) fn close(got: &[f32], expected: &[f64], tolerance: f64) {
    assert_eq!(got.len(), expected.len());
    let largest = expected.iter().fold(1e-30f64, |most, v| most.max(v.abs()));
    for (at, (g, e)) in got.iter().zip(expected).enumerate() {
        let off = (f64::from(*g) - e).abs() / largest;
        assert!(off <= tolerance, "number {at} is {g}, not {e}: off by {off:e}");
    }
}

/// Rows of so many numbers on the device, in every form that it has for them.
pub(crate) fn rows_with(gpu: &Gpu, x: &[f32], columns: u32) -> ActivationRows {
    let count = u32::try_from(x.len()).unwrap() / columns;
    let rows = ActivationRows::new(gpu, "x", count, columns);
    rows.floats.fill(gpu, bytemuck::cast_slice(x));
    let quantise = QuantiseRows::new(gpu, columns);
    let bound = quantise.bind(gpu, &rows);
    submit(gpu, |pass| quantise.run(pass, bound.as_ref(), count));
    rows
}

/// What the bytes of so many rows stand for; nothing where there are none.
pub(crate) fn read_int8(gpu: &Gpu, rows: &ActivationRows, count: u32, columns: u32) -> Option<Vec<f32>> {
    let int8 = rows.int8.as_ref()?;
    let (width, blocks) = (columns as usize, (columns / INT8_BLOCK) as usize);
    let numbers: Vec<i8> = gpu.read(&int8.numbers, count as usize * width).unwrap();
    let scales: Vec<[u32; 2]> = gpu.read(&int8.scales, count as usize * blocks).unwrap();
    let number = |row: usize, k: usize| {
        let (block, side) = (k / 32, k % 32 / 16);
        let half = &numbers[row * width + (side * blocks + block) * 16..][..16];
        let [scale, sums] = scales[row * blocks + block];
        let sum: i32 = half.iter().map(|n| i32::from(*n)).sum();
        let stored = sums.cast_signed() << (16 - 16 * side) >> 16;
        assert_eq!(sum, stored, "row {row}, block {block}");
        f32::from(half[k % 16]) * f32::from_bits(scale)
    };
    Some(
        (0..count as usize)
            .flat_map(|row| (0..width).map(move |k| number(row, k)).collect::<Vec<_>>())
            .collect(),
    )
}

/// Bytes stand for numbers within half a step, which is a 127th of the largest of each 32.
pub(crate) fn close_in_bytes(bytes: &[f32], numbers: &[f32]) {
    for (bytes, numbers) in bytes.chunks(32).zip(numbers.chunks(32)) {
        let step = numbers.iter().fold(0f32, |most, n| most.max(n.abs())) / 127.0;
        for (byte, number) in bytes.iter().zip(numbers) {
            assert!((byte - number).abs() <= step * 0.501, "{byte} for {number}, in steps of {step}");
        }
    }
}
