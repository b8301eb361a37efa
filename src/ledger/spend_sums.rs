//! Sums between moments, for journals that only know sums since one.

use std::collections::BTreeMap;

use crate::units::{Money, Timestamp};

use super::{AccountId, AccountSpend, Amounts, Journal, JournalError, RequestScope};

/// What was spent since some moment, by account and by what the requests were about.
type SpendByScope = BTreeMap<(AccountId, RequestScope), (Amounts, Money, u64)>;

/// What each account spent between each of these moments and the next.
pub(super) async fn spend_between(
    journal: &(impl Journal + ?Sized),
    moments: &[Timestamp],
) -> Result<Vec<AccountSpend>, JournalError> {
    let (mut all, mut later) = (Vec::new(), SpendByScope::new());
    for &moment in moments.iter().rev() {
        let since = whole(journal.spend_since(moment).await?);
        let between = since.iter().map(|(key, sum)| spent(key, moment, less(*sum, later.get(key))));
        let mut between: Vec<AccountSpend> = between.filter(AccountSpend::is_nonzero).collect();
        between.append(&mut all);
        (all, later) = (between, since);
    }
    Ok(all)
}

fn whole(rows: Vec<AccountSpend>) -> SpendByScope {
    let mut sums = SpendByScope::new();
    for row in rows {
        let sum = sums.entry((row.account, row.about)).or_default();
        *sum = (sum.0 + row.spent, sum.1 + row.overrun, sum.2 + row.settled);
    }
    sums
}

fn less(sum: (Amounts, Money, u64), later: Option<&(Amounts, Money, u64)>) -> (Amounts, Money, u64) {
    let (spent, overrun, settled) = later.copied().unwrap_or_default();
    (sum.0.saturating_sub(spent), sum.1.saturating_sub(overrun), sum.2.saturating_sub(settled))
}

fn spent(
    (account, about): &(AccountId, RequestScope),
    since: Timestamp,
    sum: (Amounts, Money, u64),
) -> AccountSpend {
    let (spent, overrun, settled) = sum;
    AccountSpend { account: account.clone(), about: about.clone(), since, spent, overrun, settled }
}

impl AccountSpend {
    /// False where all requests were voided.
    pub fn is_nonzero(&self) -> bool {
        (self.spent, self.overrun, self.settled) != (Amounts::ZERO, Money::ZERO, 0)
    }
}
