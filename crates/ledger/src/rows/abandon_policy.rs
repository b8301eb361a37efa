//! What a dispatched reservation is charged if nobody settles it. The dispatch records the policy and the rate.

use std::time::Duration;

use stint_types::catalog::WorstCase;
use stint_types::units::{Money, Tokens};

use super::amounts::Amounts;

/// What a dispatched reservation is charged if nobody settles it and its rate is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AbandonPolicy {
    /// All of it: the upstream may go on, and bill, without us.
    #[default]
    PostWhole,
    /// What was metered last: the upstream stops, and so does its bill, when we are gone.
    PostMetered,
}

/// How fast a request takes money at most, as it was known at its dispatch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpendRate {
    /// What reading its prompt costs at most.
    pub prompt_cost: Money,
    /// What can be written in a second.
    pub per_second: WorstCase,
}

impl SpendRate {
    /// What can be written in this time.
    pub(super) fn max_in(self, time: Duration) -> Amounts {
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let of = |amount: u64| {
            let exact = u128::from(amount) * u128::from(millis);
            u64::try_from(exact.div_ceil(1_000)).unwrap_or(u64::MAX)
        };
        let (money, thinking) = (Money(of(self.per_second.money.0)), Tokens(of(self.per_second.thinking.0)));
        Amounts { money, thinking, ..Amounts::ZERO }
    }
}

impl AbandonPolicy {
    /// The word for it in the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            AbandonPolicy::PostWhole => "whole",
            AbandonPolicy::PostMetered => "metered",
        }
    }

    /// What a word of the journal means; whatever is not known is posted whole.
    pub fn parse(word: &str) -> AbandonPolicy {
        let is_metered = word == AbandonPolicy::PostMetered.as_str();
        if is_metered { AbandonPolicy::PostMetered } else { AbandonPolicy::PostWhole }
    }
}
