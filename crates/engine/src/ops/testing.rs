//! What the ops' tests share: reproducible numbers, and closeness.

use stint_gguf::synth::noise;

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
