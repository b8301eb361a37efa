//! What a token costs.

use serde::{Deserialize, Serialize};

use super::{Money, Tokens};

/// A price for a million tokens, the unit in which providers publish theirs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Price {
    /// Dollars for a million tokens.
    pub per_million_tokens: Money,
}

impl Price {
    /// Nothing to pay. An explicit price of zero is a price; an absent one is not.
    pub const FREE: Price = Price { per_million_tokens: Money::ZERO };

    /// What `tokens` cost, rounded up: the ledger may hold a fraction of a nano-dollar too much, never too
    /// little.
    pub fn cost(self, tokens: Tokens) -> Money {
        Price::cost_of_all([(self, tokens)])
    }

    /// How many tokens so much pays for; nothing can be too many of what costs nothing.
    pub fn affords(self, money: Money) -> Tokens {
        let price = u128::from(self.per_million_tokens.0);
        let tokens = (u128::from(money.0) * 1_000_000).checked_div(price);
        tokens.map_or(Tokens::MAX, |tokens| Tokens(u64::try_from(tokens).unwrap_or(u64::MAX)))
    }

    /// What tokens at several prices cost together, rounded up once.
    pub fn cost_of_all<const N: usize>(parts: [(Price, Tokens); N]) -> Money {
        // Nearly always it fits 64 bits, which is several times as fast.
        let small = parts.iter().try_fold(0u64, |sum, (price, tokens)| {
            sum.checked_add(price.per_million_tokens.0.checked_mul(tokens.0)?)
        });
        if let Some(exact) = small {
            return Money(exact.div_ceil(1_000_000));
        }
        let exact = parts.iter().fold(0u128, |sum, (price, tokens)| {
            sum.saturating_add(u128::from(price.per_million_tokens.0) * u128::from(tokens.0))
        });
        Money(u64::try_from(exact.div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }

    /// Dollars for one token, for statistics.
    pub fn dollars_per_token(self) -> f64 {
        self.per_million_tokens.as_dollars() / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    proptest! {
        /// LB-14: a cost is the exact one rounded up, by less than a nano-dollar; so parts cost what the whole costs, or
        /// less than a nano-dollar more for each.
        #[test]
        fn a_cost_is_never_below_the_true_one_and_parts_make_the_whole(
            per_million in 0..1_000_000_000_000_u64, parts in prop::collection::vec(0..10_000_000_u64, 1..9),
        ) {
            let price = Price { per_million_tokens: Money(per_million) };
            let cost = |tokens: u64| u128::from(price.cost(Tokens(tokens)).0);
            let exact = |tokens: u64| u128::from(per_million) * u128::from(tokens);
            for &tokens in &parts {
                let million = cost(tokens) * 1_000_000;
                prop_assert!(million >= exact(tokens) && million < exact(tokens) + 1_000_000);
            }
            let (whole, sum) = (cost(parts.iter().sum()), parts.iter().map(|&part| cost(part)).sum::<u128>());
            prop_assert!(sum >= whole && sum < whole + parts.len() as u128);
        }

        /// LB-14: nothing wraps round, however much it is.
        #[test]
        fn sums_stop_at_the_most_there_is(one: u64, other: u64, tokens: u64) {
            let sum = Money(one) + Money(other);
            prop_assert_eq!(sum.0, u64::try_from(u128::from(one) + u128::from(other)).unwrap_or(u64::MAX));
            let cost = Price { per_million_tokens: Money(one) }.cost(Tokens(tokens)).0;
            let exact = (u128::from(one) * u128::from(tokens)).div_ceil(1_000_000);
            prop_assert_eq!(u128::from(cost), exact.min(u128::from(u64::MAX)));
            prop_assert_eq!(Money(one).to_string().parse(), Ok(Money(one)));
        }
    }

    fn check(per_million: u64, tokens: u64, expected: u64) {
        let price = Price { per_million_tokens: Money(per_million) };
        assert_eq!(price.cost(Tokens(tokens)), Money(expected));
    }

    #[test]
    fn a_fraction_of_a_nano_dollar_is_charged_as_a_whole_one() {
        check(150_000, 1, 1);
        check(150_000, 1_000_001, 150_001);
        check(0, 1_000, 0);
    }

    #[test]
    fn a_cost_beyond_counting_is_the_most_there_is() {
        check(u64::MAX, u64::MAX, u64::MAX);
    }
}
