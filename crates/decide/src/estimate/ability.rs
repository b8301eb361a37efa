//! Estimates the ability of a model that has no stated ability.

use stint_types::catalog::Tariff;
use stint_types::units::Chance;

/// The ability of a model without a price.
pub(super) const DEFAULT_ABILITY: f64 = 0.6;
/// What a million tokens of output cost for a model of that ability, in dollars.
const DEFAULT_PRICE: f64 = 2.0;
/// How much twice the price adds. A judgement: what is sold dearer is usually stronger.
const PER_DOUBLING: f64 = 0.04;

/// A guess at a model's ability, the share of MMLU-Pro that it gets right: 0.6 at two dollars for a million tokens
/// of output and where there is no price, 0.04 more for each doubling of it, from 0.4 to 0.8.
pub fn ability(tariff: Option<&Tariff>) -> Chance {
    let dollars = tariff.map_or(0.0, |tariff| tariff.rates.list.output.dollars_per_token() * 1e6);
    if dollars <= 0.0 {
        return Chance::new(DEFAULT_ABILITY);
    }
    let doublings = (dollars / DEFAULT_PRICE).log2();
    Chance::new((DEFAULT_ABILITY + PER_DOUBLING * doublings).clamp(0.4, 0.8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_types::catalog::{Prices, Rates};
    use stint_types::units::{Money, Price};

    fn check(dollars: u64, expected: f64) {
        let output = Price { per_million_tokens: Money(dollars * 1_000_000_000) };
        let rates = Rates::plain(Prices { input: Price::FREE, output });
        let found = ability(Some(&Tariff { rates, long: None, call: Money::ZERO })).get();
        assert!((found - expected).abs() < 1e-9, "{dollars}: {found}");
    }

    #[test]
    fn what_costs_more_is_guessed_to_be_stronger_within_bounds() {
        check(2, 0.6);
        check(8, 0.68);
        check(1_000_000, 0.8);
        check(0, 0.6);
        assert!((ability(None).get() - 0.6).abs() < 1e-9);
    }
}
