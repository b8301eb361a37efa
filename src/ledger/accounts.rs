//! The account machine: who spent and reserved what, under which limits.
//!
//! Pure: no I/O, no clock, no dice. Changes go in; what has to be journalled comes out.

use std::collections::HashMap;

use crate::catalog::{Allowance, Prices, WorstCase};
use crate::tenant::Tenant;
use crate::units::{RequestId, Timestamp, Window};

use super::account::Account;
use super::open::{Closed, Open, Stage};
use super::statement::tightest;
use super::{AccountId, Amounts, Entry, How, LedgerError, Line, Refused, SettlementDetail, Total, Totals};

/// What is to be set aside, for whom and until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Whose money it is.
    pub account: AccountId,
    /// For which request; also the reservation's id.
    pub id: RequestId,
    /// How much.
    pub worst: WorstCase,
    /// The prices in force.
    pub prices: Option<Prices>,
    /// Now: the moment of admission.
    pub now: Timestamp,
    /// When nobody will come back for it: the request's deadline and a margin.
    pub expires: Timestamp,
}

/// All accounts and all open reservations.
#[derive(Debug, Default)]
pub struct Accounts {
    accounts: HashMap<AccountId, Account>,
    open: HashMap<RequestId, Open>,
    /// The latest time seen; a clock that is set back does not open old windows again.
    latest: Timestamp,
}

impl Accounts {
    /// Puts these tenants and their limits in force. Others may finish what they began and no more.
    pub fn declare<'a>(&mut self, tenants: impl IntoIterator<Item = &'a Tenant>) {
        self.accounts.values_mut().for_each(|account| account.limit(None));
        for tenant in tenants {
            let account = self.accounts.entry(AccountId::from(tenant)).or_default();
            account.limit(Some(tenant.limits.clone()));
        }
    }

    /// Takes over what the journal says was spent in the window that holds `now`.
    pub fn recover(&mut self, window: Window, totals: &[Total], now: Timestamp) {
        let now = self.tick(now);
        for total in totals {
            self.accounts.entry(total.account.clone()).or_default().recover(window, total, now);
        }
    }

    /// Sets the worst case aside under every limit of the account, or under none.
    pub fn reserve(&mut self, claim: Claim) -> Result<(), Refused> {
        let now = self.tick(claim.now);
        let held = bounded(claim.worst)?;
        if self.open.contains_key(&claim.id) {
            return Err(Refused::Twice(claim.id));
        }
        let account = declared(&mut self.accounts, &claim.account)?;
        account.roll(now);
        account.check(held, now)?;
        account.reserve(held, now);
        self.open.insert(claim.id, Open::new(Claim { now, ..claim }, held));
        Ok(())
    }

    /// Sets more aside, in the windows of the admission. What comes out must be journalled before it is used.
    pub fn extend(&mut self, id: RequestId, more: WorstCase) -> Result<Option<Entry>, LedgerError> {
        let more = bounded(more)?;
        let open = self.open.get_mut(&id).ok_or(Refused::Expired(id))?;
        if open.stage == Stage::Dispatching {
            return Err(LedgerError::NotDispatched(id));
        }
        if (open.held + more) != (open.held + more).clamped() {
            return Err(Refused::TooLarge.into());
        }
        let account = declared(&mut self.accounts, &open.row.account)?;
        account.check(more, open.row.admitted).map_err(Refused::Shortfall)?;
        account.extend(more, open.row.admitted);
        Ok(open.extend(more))
    }

    /// Puts off the expiry.
    pub fn renew(&mut self, id: RequestId, expires: Timestamp) -> Result<(), Refused> {
        let open = self.open.get_mut(&id).ok_or(Refused::Expired(id))?;
        open.expires = expires;
        Ok(())
    }

    /// Says that something is about to be sent. What comes out must be journalled first.
    pub fn dispatch(&mut self, id: RequestId) -> Result<Entry, Refused> {
        let open = self.open.get_mut(&id).ok_or(Refused::Expired(id))?;
        Ok(open.dispatch())
    }

    /// Says that the dispatch is journalled: from now on something may have been sent.
    pub fn dispatched(&mut self, id: RequestId) -> Result<(), Refused> {
        let open = self.open.get_mut(&id).ok_or(Refused::Expired(id))?;
        open.stage = Stage::Dispatched;
        Ok(())
    }

    /// Charges what was used. Nothing, for a reservation that is resolved already: the first result stands.
    pub fn settle(
        &mut self,
        id: RequestId,
        spent: Amounts,
        detail: SettlementDetail,
        at: Timestamp,
    ) -> Option<Closed> {
        self.resolve(id, |open| open.close(How::Settled, spent.clamped(), detail, at))
    }

    /// Gives everything back.
    pub fn void(&mut self, id: RequestId, at: Timestamp) -> Option<Closed> {
        self.resolve(id, |open| open.void(at))
    }

    /// Resolves a reservation that nobody settled: posted whole if something may have been sent, else voided.
    pub fn abandon(&mut self, id: RequestId, at: Timestamp) -> Option<Closed> {
        self.resolve(id, |open| open.abandon(at))
    }

    /// Resolves all reservations whose time is over.
    pub fn expire(&mut self, now: Timestamp) -> Vec<Closed> {
        let over = self.open.iter().filter(|(_, open)| open.expires <= now);
        let over: Vec<RequestId> = over.map(|(id, _)| *id).collect();
        over.into_iter().filter_map(|id| self.abandon(id, now)).collect()
    }

    fn resolve(&mut self, id: RequestId, close: impl FnOnce(Open) -> Closed) -> Option<Closed> {
        let open = self.open.remove(&id)?;
        let (account, admitted, held) = (open.row.account.clone(), open.row.admitted, open.held);
        let closed = close(open);
        let account = self.accounts.entry(account).or_default();
        account.resolve(admitted, held, closed.spent, closed.how);
        Some(closed)
    }

    /// What is left under the tightest limit of each unit.
    pub fn allowance(&self, account: &AccountId, now: Timestamp) -> Allowance {
        tightest(&self.statement(account, now))
    }

    /// How every limit of the account stands.
    pub fn statement(&self, account: &AccountId, now: Timestamp) -> Vec<Line> {
        let now = now.max(self.latest);
        self.accounts.get(account).map(|account| account.lines(now)).unwrap_or_default()
    }

    /// Every account over all time, limited or not, by name.
    pub fn totals(&self) -> Vec<Totals> {
        let totals = self.accounts.iter().map(|(id, account)| account.totals(id.clone(), self.latest));
        let mut totals: Vec<Totals> = totals.collect();
        totals.sort_by(|one, other| one.account.cmp(&other.account));
        totals
    }

    /// All that is set aside for an open reservation.
    pub fn held(&self, id: RequestId) -> Option<Amounts> {
        self.open.get(&id).map(|open| open.held)
    }

    /// How many reservations are open.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    fn tick(&mut self, now: Timestamp) -> Timestamp {
        self.latest = self.latest.max(now);
        self.latest
    }
}

fn bounded(worst: WorstCase) -> Result<Amounts, Refused> {
    let amounts = Amounts::from(worst);
    if amounts == amounts.clamped() { Ok(amounts) } else { Err(Refused::TooLarge) }
}

fn declared<'a>(
    accounts: &'a mut HashMap<AccountId, Account>,
    id: &AccountId,
) -> Result<&'a mut Account, Refused> {
    let account = accounts.get_mut(id).filter(|account| account.is_declared());
    account.ok_or_else(|| Refused::NoAccount(id.clone()))
}
