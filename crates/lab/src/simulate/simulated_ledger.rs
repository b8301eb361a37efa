//! The accounts of the tenants: the ledger's own machine, in virtual time.
//!
//! It takes the way of every request (reserve, dispatch, extend, settle) without a journal: the group commit waits for a
//! disk, of which a virtual world has none. What would be journalled is dropped.

use std::sync::Arc;
use std::time::Duration;

use stint_ledger::{
    AbandonPolicy, AccountId, Amounts, LedgerError, LedgerState, LimitStatus, RequestScope,
    ReservationRequest, ReserveError, SettlementDetail,
};
use stint_types::catalog::{Allowance, Prices, WorstCase};
use stint_types::tenant::AccountTerms;
use stint_types::units::{Count, Money, RequestId, Timestamp, Tokens};

/// How long a reservation lasts that nobody settles; longer than any queue.
const EXPIRES: Duration = Duration::from_secs(7 * 86_400);

/// The tenants' accounts.
#[derive(Debug)]
pub(super) struct SimulatedLedger {
    accounts: LedgerState,
    tenants: Vec<AccountId>,
    /// What was settled, of every tenant.
    pub spent: Vec<Money>,
}

impl SimulatedLedger {
    /// Accounts with these terms, one for every tenant.
    pub(super) fn new(terms: &[AccountTerms], tenants: &[AccountId]) -> SimulatedLedger {
        let mut accounts = LedgerState::default();
        accounts.declare(terms);
        SimulatedLedger { accounts, spent: vec![Money::ZERO; tenants.len()], tenants: tenants.to_vec() }
    }

    /// What is left to a tenant.
    pub(super) fn allowance(&self, tenant: usize, now: Timestamp) -> Allowance {
        self.accounts.allowance(&self.tenants[tenant], &RequestScope::default(), now)
    }

    /// How every limit of a tenant stands.
    pub(super) fn statement(&self, tenant: usize, now: Timestamp) -> Vec<LimitStatus> {
        self.accounts.statement(&self.tenants[tenant], &RequestScope::default(), now)
    }

    /// Sets a worst case aside and dispatches it.
    pub(super) fn reserve(
        &mut self,
        (request, tenant): (u64, usize),
        model: &Arc<str>,
        worst: WorstCase,
        prices: Option<Prices>,
        now: Timestamp,
    ) -> Result<(), ReserveError> {
        let id = request_id(request);
        let about = RequestScope { model: Some(model.clone()), ..RequestScope::default() };
        self.accounts.reserve(ReservationRequest {
            account: self.tenants[tenant].clone(),
            id,
            about,
            worst,
            step: None,
            prices,
            if_abandoned: AbandonPolicy::PostMetered,
            rate: None,
            now,
            expires: now + EXPIRES,
        })?;
        self.accounts.dispatch(id)?;
        self.accounts.confirm_dispatch(id)
    }

    /// Makes room for another attempt: its worst case beside what was spent so far.
    pub(super) fn extend(
        &mut self,
        request: u64,
        spent: Money,
        worst: WorstCase,
        model: &Arc<str>,
    ) -> Result<(), LedgerError> {
        let held = self.accounts.held(request_id(request)).unwrap_or_default();
        let needed = Amounts { money: spent + worst.money, thinking: worst.thinking, ..Amounts::ZERO };
        let more = needed.saturating_sub(held);
        let more = WorstCase { money: more.money, thinking: more.thinking };
        self.accounts.extend(request_id(request), more, Some(model)).map(|_| ())
    }

    /// Sets aside what an answer took beyond its first reservation, as is done while it is written, if its account has so much.
    pub(super) fn grow(&mut self, request: u64, spent: Money, model: &Arc<str>) {
        let held = self.accounts.held(request_id(request)).unwrap_or_default();
        if spent > held.money {
            let more = WorstCase { money: spent.saturating_sub(held.money), thinking: Tokens::ZERO };
            // Where there is no more, the settlement shows it as an overrun.
            let _ = self.accounts.extend(request_id(request), more, Some(model));
        }
    }

    /// Charges what was used. True if that was no more than was set aside.
    pub(super) fn settle(
        &mut self,
        (request, tenant): (u64, usize),
        money: Money,
        thinking: Tokens,
        at: Timestamp,
    ) -> bool {
        self.spent[tenant] += money;
        let spent = Amounts { money, thinking, requests: Count::ONE, ..Amounts::ZERO };
        let closed = self.accounts.settle(request_id(request), spent, SettlementDetail::default(), at);
        closed.is_some_and(|closed| closed.overrun == Amounts::ZERO)
    }

    /// What is set aside.
    pub(super) fn reserved(&self) -> Amounts {
        self.accounts.reserved()
    }
}

fn request_id(request: u64) -> RequestId {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&request.to_be_bytes());
    RequestId::from_bytes(bytes)
}
