//! Sums between moments, for journals that only know sums since one.

use std::collections::BTreeMap;

use crate::units::{Money, Timestamp};

use super::{About, AccountId, Amounts, Journal, JournalError, Spent};

/// What was spent since some moment, by account and by what the requests were about.
type Since = BTreeMap<(AccountId, About), (Amounts, Money, u64)>;

/// What each account spent between each of these moments and the next.
pub(super) async fn from(
    journal: &(impl Journal + ?Sized),
    moments: &[Timestamp],
) -> Result<Vec<Spent>, JournalError> {
    let (mut all, mut later) = (Vec::new(), Since::new());
    for &moment in moments.iter().rev() {
        let since = whole(journal.spent(moment).await?);
        let between = since.iter().map(|(key, sum)| spent(key, moment, less(*sum, later.get(key))));
        let mut between: Vec<Spent> = between.filter(Spent::is_something).collect();
        between.append(&mut all);
        (all, later) = (between, since);
    }
    Ok(all)
}

fn whole(rows: Vec<Spent>) -> Since {
    let mut sums = Since::new();
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

fn spent((account, about): &(AccountId, About), since: Timestamp, sum: (Amounts, Money, u64)) -> Spent {
    let (spent, overrun, settled) = sum;
    Spent { account: account.clone(), about: about.clone(), since, spent, overrun, settled }
}

impl Spent {
    /// False where all requests were voided.
    pub fn is_something(&self) -> bool {
        (self.spent, self.overrun, self.settled) != (Amounts::ZERO, Money::ZERO, 0)
    }
}
