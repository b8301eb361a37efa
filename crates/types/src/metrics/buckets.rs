//! The bounds of histogram buckets.

/// Times of whole requests: 5 ms to 10 minutes.
pub(super) fn seconds() -> Vec<f64> {
    vec![0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0]
}

/// Times that the gateway itself takes: 0.1 ms to 5 s.
pub(super) fn overhead_seconds() -> Vec<f64> {
    vec![0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0]
}

/// Times of one token: 0.1 ms to 1 s.
pub(super) fn token_seconds() -> Vec<f64> {
    vec![0.0001, 0.0003, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.3, 1.0]
}

/// Times of one commit: 0.1 ms to 3 s.
pub(super) fn commit_seconds() -> Vec<f64> {
    vec![0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0]
}

/// Counts of tokens: powers of two to 64 k, with 0 apart.
pub(super) fn tokens() -> Vec<f64> {
    std::iter::once(0.0).chain((0..=16).map(|power| f64::from(1 << power))).collect()
}

/// Shares of one.
pub(super) fn shares() -> Vec<f64> {
    (1..=10).map(|tenth| f64::from(tenth) / 10.0).collect()
}

/// Amounts in dollars: nothing, then a thousandth of a cent to ten dollars.
pub(super) fn dollars() -> Vec<f64> {
    vec![0.0, 0.000_01, 0.000_1, 0.000_3, 0.001, 0.003, 0.01, 0.03, 0.1, 1.0, 10.0]
}
