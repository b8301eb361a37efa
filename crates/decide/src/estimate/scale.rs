//! How counts become the numbers that the linear models take.

use std::sync::LazyLock;

/// Most counts are small, and the logarithms of some thirty of them are taken of every text.
static SMALL: LazyLock<[f64; 256]> = LazyLock::new(|| std::array::from_fn(|count| as_number(count).ln_1p()));

/// ln(1 + count).
pub(super) fn log(count: usize) -> f64 {
    SMALL.get(count).copied().unwrap_or_else(|| as_number(count).ln_1p())
}

/// How large a part of the whole is; of nothing, the part itself.
pub(super) fn share(part: usize, of: usize) -> f64 {
    as_number(part) / as_number(of.max(1))
}

/// A count as it is.
#[expect(
    clippy::cast_precision_loss,
    reason = "a count of bytes in memory, of which far fewer than 2^53 are looked at"
)]
pub(super) fn as_number(count: usize) -> f64 {
    count as f64
}

/// 1 where it holds.
pub(super) fn flag(holds: bool) -> f64 {
    if holds { 1.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_of_small_and_large_counts_are_the_same_to_the_last_bit() {
        for count in 0..1_000 {
            assert_eq!(log(count).to_bits(), as_number(count).ln_1p().to_bits(), "{count}");
        }
    }
}
