//! Raises the price of money for an episode that spends faster than its work progresses.

use stint_types::units::{Count, Money};

/// The least share left that the exponent goes by, and the highest price.
const LEFT_MIN: f64 = 0.1;
const PRICE_MAX: f64 = 100.0;

/// By how much a dollar of an episode counts for more than one. With w the share of its work that is still to come and b the share
/// of its money that is left,
///
/// ```text
/// price = max(1, w / b) ^ (1 / b),   b at least 0.1, the price at most 100
/// ```
///
/// While money lasts as long as the work does, it is 1. Spent ahead of the work it rises, gently while there is plenty and
/// steeply when little is left: the exponent is that of BAVT (`P(n) ∝ V^(1/r)`, r the share of the budget that is left), which
/// explores early and is greedy at the end. The work to come is what such episodes usually take beyond the turns taken, and never less
/// than one turn.
pub fn pressure(left: Money, limit: Money, turns: Count, usual: Count) -> f64 {
    let whole = share(limit.0, 1);
    if whole <= 0.0 {
        return 1.0;
    }
    let left = (share(left.0, 1) / whole).clamp(0.0, 1.0);
    let to_come = usual.saturating_sub(turns).max(Count::ONE);
    let work = share(to_come.0, (turns + to_come).0);
    let ahead = (work / left.max(LEFT_MIN)).max(1.0);
    ahead.powf(1.0 / left.max(LEFT_MIN)).min(PRICE_MAX)
}

#[expect(clippy::cast_precision_loss, reason = "a share weighs a price, and is not spent")]
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(left: u64, turns: u64, usual: u64) -> f64 {
        pressure(Money(left), Money(100), Count(turns), Count(usual))
    }

    #[test]
    fn money_is_dear_where_it_runs_down_faster_than_the_work() {
        assert!((price(100, 0, 10) - 1.0).abs() < 1e-9, "nothing is spent");
        assert!((price(60, 5, 10) - 1.0).abs() < 1e-9, "half of the work for less than half of the money");
        let (early, late) = (price(80, 1, 10), price(30, 4, 10));
        assert!(early > 1.0 && early < 1.5, "{early}");
        assert!(late > 5.0, "{late}");
        assert!((price(0, 3, 10) - PRICE_MAX).abs() < 1e-9, "nothing is left");
        assert!(price(50, 20, 10) < 1.1, "the last turn of a long run");
    }

    #[test]
    fn it_never_falls_as_money_goes() {
        let prices: Vec<f64> = (0..=100).rev().map(|left| price(left, 3, 10)).collect();
        assert!(prices.is_sorted(), "{prices:?}");
    }
}
