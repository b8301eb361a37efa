//! Computes sums between two moments from a journal's sums since each of them. Pure.

use std::collections::BTreeMap;

use crate::rows::{AccountSpend, RequestScope};
use stint_types::units::{AccountId, Timestamp};

/// What was spent since some moment, by account and by what the requests were about.
type SpendByScope = BTreeMap<(AccountId, RequestScope), AccountSpend>;

/// What each account spent between each moment and the next one, while it is summed up.
#[derive(Default)]
pub(super) struct SpendBetween {
    /// By moment, the latest first.
    periods: Vec<Vec<AccountSpend>>,
    /// What was spent since the moment that was added last.
    later: SpendByScope,
}

impl SpendBetween {
    /// Adds what was spent since a moment. Moments come latest first.
    pub(super) fn add_since(&mut self, moment: Timestamp, rows: Vec<AccountSpend>) {
        let mut since = SpendByScope::new();
        for row in rows {
            let scope = (row.account, row.about);
            let none = AccountSpend::none(scope.0.clone(), scope.1.clone(), moment);
            let sum = since.entry(scope).or_insert(none);
            sum.spent += row.spent;
            sum.overrun += row.overrun;
            sum.settled += row.settled;
        }
        let period = since.iter().map(|(scope, sum)| sum.without(self.later.get(scope)));
        self.periods.push(period.filter(AccountSpend::is_nonzero).collect());
        self.later = since;
    }

    /// All sums, the earliest moment's first.
    pub(super) fn finish(self) -> Vec<AccountSpend> {
        self.periods.into_iter().rev().flatten().collect()
    }
}

impl AccountSpend {
    /// What is left without a part of it.
    fn without(&self, part: Option<&AccountSpend>) -> AccountSpend {
        let Some(part) = part else { return self.clone() };
        AccountSpend {
            spent: self.spent.saturating_sub(part.spent),
            overrun: self.overrun.saturating_sub(part.overrun),
            settled: self.settled.saturating_sub(part.settled),
            ..self.clone()
        }
    }
}
