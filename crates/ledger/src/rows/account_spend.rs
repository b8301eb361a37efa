//! `AccountSpend`: what an account spent on a group of its requests. A journal answers queries with such rows.

use stint_types::units::{AccountId, Money, Timestamp};

use super::amounts::Amounts;
use super::scope::RequestScope;

/// What an account spent on some of its requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountSpend {
    /// Whose; its ancestors' sums are not in it.
    pub account: AccountId,
    /// What those requests were about.
    pub about: RequestScope,
    /// They were admitted at this moment or later, within the same quarter of an hour.
    pub since: Timestamp,
    /// What they were charged.
    pub spent: Amounts,
    /// What of that was more money than reserved.
    pub overrun: Money,
    /// How many of them were settled; neither voided nor expired.
    pub settled: u64,
}

impl AccountSpend {
    /// Nothing spent.
    pub(crate) fn none(account: AccountId, about: RequestScope, since: Timestamp) -> AccountSpend {
        AccountSpend { account, about, since, spent: Amounts::ZERO, overrun: Money::ZERO, settled: 0 }
    }

    /// False if all requests were voided.
    pub fn is_nonzero(&self) -> bool {
        (self.spent, self.overrun, self.settled) != (Amounts::ZERO, Money::ZERO, 0)
    }
}
