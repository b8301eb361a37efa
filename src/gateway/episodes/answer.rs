//! What a run must not spend before its end: the price of an answer.

use crate::catalog::Allowance;
use crate::chat::EpisodeLimits;
use crate::gateway::considered::Considered;
use crate::plan;
use crate::units::Money;

impl Considered {
    /// What an answer in today's context takes at most, by the cheapest offer; nothing where the run's money is not limited,
    /// or no offer can be made.
    pub(super) fn answer_money(&self, limits: &EpisodeLimits) -> Money {
        if limits.cost.is_none() {
            return Money::ZERO;
        }
        let offers = self.ask(&Allowance::default(), 0, plan::quote).map(|quote| quote.offers);
        let single = |offer: &&crate::catalog::Offer| offer.samples == 1 && offer.escalate.is_none();
        let money = offers.iter().flatten().filter(single).map(|offer| offer.worst.money);
        money.min().unwrap_or_default()
    }
}
