//! What the calls of a model cost: by the token, by where the prompt was kept, by its length, by the call.

use crate::chat::CacheTtl;
use crate::units::{Chance, Money, Price, Timestamp, Tokens};

use super::off_peak::OffPeak;

/// What a model's tokens cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prices {
    /// For the prompt.
    pub input: Price,
    /// For all that is generated: thought, overhead and solution.
    pub output: Price,
}

/// Prices that hold up to some length of the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// For tokens without any cache, read and written.
    pub list: Prices,
    /// For prompt tokens that the provider still had in its cache.
    pub cache_read: Price,
    /// For prompt tokens that it put into its cache, for some minutes.
    pub cache_write: Price,
    /// For prompt tokens that it put there for an hour.
    pub cache_hour: Price,
}

/// What one call of a model costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tariff {
    /// What holds for every prompt, or for all but long ones.
    pub rates: Rates,
    /// What holds for the whole of a call whose prompt is longer than that.
    pub long: Option<(Tokens, Rates)>,
    /// For each call, whatever its length.
    pub call: Money,
    /// What is taken outside the hours of the provider's peak, where that is less.
    pub off_peak: Option<OffPeak>,
}

/// What one call took, as its provider bills it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BilledCall {
    /// Everything read, from the cache or not.
    pub input: Tokens,
    /// How much of it came from the provider's cache.
    pub cache_read: Tokens,
    /// How much of it was put there.
    pub cache_write: Tokens,
    /// How much of that for an hour.
    pub cache_hour: Tokens,
    /// Everything written.
    pub output: Tokens,
}

impl Prices {
    /// The cost of so much prompt and so much output.
    pub fn cost(&self, input: Tokens, output: Tokens) -> Money {
        self.input.cost(input) + self.output.cost(output)
    }
}

impl Rates {
    /// Prices without a cache of their own: what is read from it costs what reading costs.
    pub const fn plain(list: Prices) -> Rates {
        Rates { list, cache_read: list.input, cache_write: list.input, cache_hour: list.input }
    }

    fn cost(&self, billed: &BilledCall) -> Money {
        let fresh = billed.input.saturating_sub(billed.cache_read + billed.cache_write);
        let read = Price::cost_of_all([
            (self.list.input, fresh),
            (self.cache_read, billed.cache_read),
            (self.cache_write, billed.cache_write.saturating_sub(billed.cache_hour)),
            (self.cache_hour, billed.cache_hour),
        ]);
        read + self.list.output.cost(billed.output)
    }

    /// How likely a prompt must be to come again, with more at its end, for it to pay to have it kept for some minutes: what
    /// keeping costs more, over what reading it again costs less. Nothing where it never pays.
    pub fn cache_break_even(&self) -> Option<Chance> {
        let price = Price::dollars_per_token;
        let saved = price(self.list.input) - price(self.cache_read);
        let more = price(self.cache_write) - price(self.list.input);
        (saved > 0.0).then(|| Chance::new(more / saved))
    }

    /// The same, each price changed alike.
    fn map(&self, price: impl Fn(Price) -> Price) -> Rates {
        Rates {
            list: Prices { input: price(self.list.input), output: price(self.list.output) },
            cache_read: price(self.cache_read),
            cache_write: price(self.cache_write),
            cache_hour: price(self.cache_hour),
        }
    }

    /// The highest price of a prompt token, if no cache entry is kept longer than that.
    fn input_price_max(&self, keep: CacheTtl) -> Price {
        let usual = self.list.input.max(self.cache_read).max(self.cache_write);
        match keep {
            CacheTtl::Minutes => usual,
            CacheTtl::Hour => usual.max(self.cache_hour),
        }
    }
}

impl Tariff {
    /// So much for a token read and for one written, and nothing else.
    pub const fn plain(prices: Prices) -> Tariff {
        Tariff { rates: Rates::plain(prices), long: None, call: Money::ZERO, off_peak: None }
    }

    /// What costs nothing.
    pub const FREE: Tariff = Tariff::plain(Prices { input: Price::FREE, output: Price::FREE });

    /// What holds for a call that begins and ends between two moments, by the provider's clock: the cheaper prices only where no
    /// part of that time lies in the hours of its peak.
    #[must_use]
    pub fn between(&self, from: Timestamp, until: Timestamp) -> Tariff {
        let Some(off_peak) = self.off_peak.filter(|off_peak| off_peak.holds(from, until)) else {
            return *self;
        };
        let cheaper = |rates: &Rates| rates.map(|price| off_peak.price(price));
        let long = self.long.as_ref().map(|(above, rates)| (*above, cheaper(rates)));
        Tariff { rates: cheaper(&self.rates), long, ..*self }
    }

    /// The cost of one call.
    pub fn cost(&self, billed: &BilledCall) -> Money {
        self.call + self.rates(billed.input).cost(billed)
    }

    /// The most that a call can cost that reads and writes no more than that: wherever its prompt is kept, and
    /// whichever rates its true length falls under. `keep` is the longest that its caller wants any of it kept.
    pub fn worst_cost(&self, input: Tokens, output: Tokens, keep: CacheTtl) -> Money {
        let under = |rates: &Rates| rates.input_price_max(keep).cost(input) + rates.list.output.cost(output);
        let long = self.long.as_ref().filter(|(above, _)| input > *above).map(|(_, rates)| under(rates));
        self.call + under(&self.rates).max(long.unwrap_or(Money::ZERO))
    }

    /// The most that so many more tokens of an answer can cost, however long its prompt is.
    pub fn output_cost_max(&self, tokens: Tokens) -> Money {
        self.output_price_max().cost(tokens)
    }

    /// How many more tokens of an answer so much surely pays for.
    pub fn output_for(&self, money: Money) -> Tokens {
        self.output_price_max().affords(money)
    }

    fn output_price_max(&self) -> Price {
        let usual = self.rates.list.output;
        self.long.as_ref().map_or(usual, |(_, rates)| usual.max(rates.list.output))
    }

    /// True if reading costs nothing, wherever a prompt is kept and however long it is.
    pub fn has_free_input(&self) -> bool {
        let free = |rates: &Rates| rates.input_price_max(CacheTtl::Hour) == Price::FREE;
        free(&self.rates) && self.long.as_ref().is_none_or(|(_, rates)| free(rates))
    }

    /// List prices for prompts of that length.
    pub fn list(&self, input: Tokens) -> Prices {
        self.rates(input).list
    }

    /// What a token costs less that the provider still has in its cache, in dollars; less than nothing if it costs more.
    pub fn saved_by_cache(&self, input: Tokens) -> f64 {
        let rates = self.rates(input);
        rates.list.input.dollars_per_token() - rates.cache_read.dollars_per_token()
    }

    fn rates(&self, input: Tokens) -> &Rates {
        match &self.long {
            Some((above, rates)) if input > *above => rates,
            _ => &self.rates,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn price(per_million: u64) -> Price {
        Price { per_million_tokens: Money(per_million) }
    }

    fn rates(input: u64, output: u64, read: u64, write: u64) -> Rates {
        let list = Prices { input: price(input), output: price(output) };
        Rates { list, cache_read: price(read), cache_write: price(write), cache_hour: price(2 * input) }
    }

    fn billed(input: u64, cache_read: u64, cache_write: u64, output: u64) -> BilledCall {
        BilledCall {
            input: Tokens(input),
            cache_read: Tokens(cache_read),
            cache_write: Tokens(cache_write),
            cache_hour: Tokens::ZERO,
            output: Tokens(output),
        }
    }

    fn tariff() -> Tariff {
        let long = (Tokens(200), rates(6_000_000, 22_500_000, 600_000, 7_500_000));
        let rates = rates(3_000_000, 15_000_000, 300_000, 3_750_000);
        Tariff { rates, long: Some(long), call: Money(7), off_peak: None }
    }

    #[test]
    fn what_the_cache_had_what_it_took_and_what_was_new_are_priced_apart() {
        assert_eq!(tariff().cost(&billed(100, 60, 30, 10)), Money(7 + 161 + 150));
    }

    #[test]
    fn what_is_kept_for_an_hour_has_a_price_of_its_own_that_is_set_aside_where_it_is_wanted() {
        let kept = BilledCall { cache_hour: Tokens(20), ..billed(100, 60, 30, 10) };
        assert_eq!(tariff().cost(&kept), Money(7 + 30 + 18 + 38 + 120 + 150));
        let worst = |keep| tariff().worst_cost(Tokens(100), Tokens(10), keep);
        assert_eq!(worst(CacheTtl::Minutes), Money(7 + 375 + 150));
        assert_eq!(worst(CacheTtl::Hour), Money(7 + 600 + 150));
    }

    #[test]
    fn outside_the_hours_of_the_peak_every_token_is_cheaper_and_the_worst_case_is_not() {
        let off_peak = OffPeak { percent: 50, peak_hours: 0b10, weekends: false };
        let tariff = Tariff { off_peak: Some(off_peak), ..tariff() };
        let at = |minutes: i64| Timestamp(minutes * 60_000);
        let call = billed(100, 60, 30, 10);
        assert_eq!(tariff.between(at(60), at(119)).cost(&call), tariff.cost(&call));
        assert_eq!(tariff.between(at(0), at(60)).cost(&call), tariff.cost(&call), "its end is in the peak");
        assert_eq!(tariff.between(at(120), at(150)).cost(&call), Money(7 + 81 + 75));
        let long = billed(201, 0, 0, 1);
        assert_eq!(tariff.between(at(120), at(150)).cost(&long), Money(7 + 603 + 12));
        let worst = tariff.worst_cost(Tokens(100), Tokens(10), CacheTtl::Minutes);
        assert_eq!(worst, Money(7 + 375 + 150), "it is that of the peak");
    }

    #[test]
    fn a_long_prompt_is_dearer_from_its_first_token() {
        assert_eq!(tariff().cost(&billed(200, 0, 0, 1)), Money(7 + 600 + 15));
        assert_eq!(tariff().cost(&billed(201, 0, 0, 1)), Money(7 + 1206 + 23));
    }

    proptest! {
        #[test]
        fn no_call_within_its_bounds_costs_more_than_its_worst_case(
            input in 0..400u64, less in 0..400u64, share in 0.0..=1.0f64, rest in 0.0..=1.0f64, output in 0..99u64,
            hour in 0.0..=1.0f64,
        ) {
            let worst = |keep| tariff().worst_cost(Tokens(input), Tokens(output), keep);
            let read = input.saturating_sub(less);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss,
                reason = "a share of a small count")]
            let part = |of: u64, share: f64| (of as f64 * share) as u64;
            let from_cache = part(read, share);
            let into_cache = part(read - from_cache, rest);
            let minutes = billed(read, from_cache, into_cache, output);
            prop_assert!(tariff().cost(&minutes) <= worst(CacheTtl::Minutes));
            let kept = BilledCall { cache_hour: Tokens(part(into_cache, hour)), ..minutes };
            prop_assert!(tariff().cost(&kept) <= worst(CacheTtl::Hour));
        }
    }
}
