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

    /// What tokens at several prices cost together, rounded up once.
    pub fn cost_of_all<const N: usize>(parts: [(Price, Tokens); N]) -> Money {
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
