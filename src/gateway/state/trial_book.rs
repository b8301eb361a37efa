//! `TrialBook`: how many requests of `auto` tried a model that looked worse, and what that cost, so that neither passes its
//! share at any time.

use std::sync::{Mutex, PoisonError};

use stint_decide::plan::TrialShare;
use stint_types::catalog::TrialBounds;
use stint_types::units::Money;

/// What a request is to the book.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrialUse {
    /// Nothing could be tried with it.
    Exempt,
    /// Something could, and was not.
    Usual,
    /// It tries a model that looks worse.
    Trial,
}

#[derive(Debug, Clone, Copy, Default)]
struct TrialSums {
    requests: f64,
    trials: f64,
    spent: Money,
    /// Of what is on its way, what it is expected to cost.
    spent_on_trials: Money,
}

/// The sums since the process began.
#[derive(Debug, Default)]
pub(crate) struct TrialBook {
    sums: Mutex<TrialSums>,
}

impl TrialBook {
    /// How much one more request may try; nothing while a trial would be more than its share of all.
    pub(crate) fn share(&self, bounds: TrialBounds) -> Option<TrialShare> {
        let sums = *self.sums();
        if sums.trials + 1.0 > bounds.requests.get() * (sums.requests + 1.0) {
            return None;
        }
        let allowed = bounds.spend.get() * sums.spent.as_dollars();
        Some(TrialShare { bounds, dollars_max: (allowed - sums.spent_on_trials.as_dollars()).max(0.0) })
    }

    /// A request sets out that is expected to cost so much.
    pub(crate) fn record_dispatch(&self, kind: TrialUse, expected: Money) {
        match kind {
            TrialUse::Exempt => {}
            TrialUse::Usual => self.sums().requests += 1.0,
            TrialUse::Trial => {
                let mut sums = self.sums();
                (sums.requests, sums.trials) = (sums.requests + 1.0, sums.trials + 1.0);
                sums.spent_on_trials += expected;
            }
        }
    }

    /// It has ended, and cost this.
    pub(crate) fn record_settlement(&self, kind: TrialUse, expected: Money, cost: Money) {
        match kind {
            TrialUse::Exempt => {}
            TrialUse::Usual => self.sums().spent += cost,
            TrialUse::Trial => {
                let mut sums = self.sums();
                sums.spent += cost;
                sums.spent_on_trials = sums.spent_on_trials.saturating_sub(expected) + cost;
            }
        }
    }

    fn sums(&self) -> std::sync::MutexGuard<'_, TrialSums> {
        // Sums are whole at every moment.
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(book: &TrialBook) -> Option<f64> {
        book.share(TrialBounds::usual()).map(|share| share.dollars_max)
    }

    #[test]
    fn the_first_forty_nine_requests_try_nothing_and_no_more_than_one_in_fifty_ever_do() {
        let book = TrialBook::default();
        let mut trials = 0;
        for request in 1..=5_000 {
            let kind = if share(&book).is_some() { TrialUse::Trial } else { TrialUse::Usual };
            trials += u32::from(kind == TrialUse::Trial);
            book.record_dispatch(kind, Money::ZERO);
            book.record_settlement(kind, Money::ZERO, Money::ZERO);
            assert!(f64::from(trials) <= 0.02 * f64::from(request), "{trials} of {request}");
        }
        assert_eq!(trials, 100);
    }

    #[test]
    fn what_trials_may_cost_is_a_hundredth_of_what_was_spent_those_on_their_way_included() {
        let book = TrialBook::default();
        for _ in 0..200 {
            book.record_dispatch(TrialUse::Usual, Money(1_000_000));
            book.record_settlement(TrialUse::Usual, Money(1_000_000), Money(1_000_000));
        }
        assert!((share(&book).unwrap() - 0.002).abs() < 1e-9);
        book.record_dispatch(TrialUse::Trial, Money(1_500_000));
        assert!((share(&book).unwrap() - 0.0005).abs() < 1e-9);
        book.record_settlement(TrialUse::Trial, Money(1_500_000), Money(400_000));
        assert!((share(&book).unwrap() - 0.001_604).abs() < 1e-9);
        book.record_dispatch(TrialUse::Exempt, Money(9_000_000));
        assert!((share(&book).unwrap() - 0.001_604).abs() < 1e-9);
    }
}
