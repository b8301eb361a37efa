//! `Reservation`: the handle a request has on its reservation. It is dispatched, extended, and resolved exactly once.

use std::fmt;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::accounts::{ExtendRequest, LedgerError, ReserveError};
use crate::commit::{CommitReceiver, LedgerCore, PendingSettlement, ReservationGuard};
use crate::replica::{QuotaRequest, QuotaRequests};
use crate::rows::{Amounts, SettlementDetail};
use stint_types::catalog::{Prices, WorstCase};
use stint_types::units::{Money, RequestId, Timestamp, Tokens};

/// Money and thinking tokens reserved for one request; resolved exactly once.
///
/// Dropped unresolved, it gives everything back if nothing can have been sent, and is posted whole otherwise.
#[must_use = "an unresolved reservation is resolved where it is dropped"]
pub struct Reservation {
    guard: ReservationGuard,
    /// Where replicas share the accounts: where extensions wait for quota.
    requests: Option<Arc<QuotaRequests>>,
    /// The last extension, while its row is on its way.
    extending: Option<(WorstCase, CommitReceiver)>,
}

impl Reservation {
    pub(super) fn new(guard: ReservationGuard, requests: Option<Arc<QuotaRequests>>) -> Reservation {
        Reservation { guard, requests, extending: None }
    }

    fn core(&self) -> &LedgerCore {
        &self.guard.core
    }

    /// For which request.
    pub fn id(&self) -> RequestId {
        self.guard.id
    }

    /// The prices in force when it was made, at which it is to be settled.
    pub fn prices(&self) -> Option<Prices> {
        self.guard.prices
    }

    /// All that is reserved, extensions included; nothing, once it has expired.
    pub fn held(&self) -> Amounts {
        self.core().accounts().held(self.guard.id).unwrap_or_default()
    }

    /// Makes it durable, just before the first byte goes upstream. Nothing may be sent unless this succeeds.
    ///
    /// If it fails or is dropped halfway, it may be tried again.
    pub async fn dispatch(&mut self) -> Result<(), LedgerError> {
        let (core, id) = (self.core(), self.guard.id);
        let mut answer = core.dispatch(id)?;
        core.await_commit(&mut answer).await?;
        Ok(core.accounts().confirm_dispatch(id)?)
    }

    /// Reserves more, durably if it is dispatched already; for another model, if one is named: all of it moves under that
    /// model's limits.
    ///
    /// If only the journal fails, the money stays reserved, since the row may be durable; it must not be used. If it is
    /// late, or this is dropped halfway, [`extended`](Reservation::extended) returns the result later.
    pub async fn extend(&mut self, more: WorstCase, model: Option<&Arc<str>>) -> Result<(), LedgerError> {
        let extend = ExtendRequest { id: self.guard.id, more, model: model.cloned() };
        let answer = self.extend_with_quota(extend).await?;
        self.extending = answer.map(|answer| (more, answer));
        self.extended().await.map(|_| ())
    }

    /// Extends it, after waiting for quota where this replica holds too little. What comes out has to be awaited.
    async fn extend_with_quota(&self, extend: ExtendRequest) -> Result<Option<CommitReceiver>, LedgerError> {
        let core = self.core();
        let extended = core.extend(&extend);
        let Some(requests) = &self.requests else { return extended };
        match extended {
            Err(LedgerError::Refused(ReserveError::NeedsQuota(_))) => {}
            decided => return decided,
        }
        let (answer, answered) = oneshot::channel();
        requests.push(QuotaRequest::Extend(extend, answer), core.settings.dispatch_max);
        answered.await.unwrap_or(Err(LedgerError::Closed))
    }

    /// Waits for the row of the last extension, and returns how much it reserved; nothing if none is on its way.
    ///
    /// # Errors
    /// [`LedgerError::Stalled`] while it still is.
    pub async fn extended(&mut self) -> Result<WorstCase, LedgerError> {
        let Some((more, answer)) = &mut self.extending else { return Ok(WorstCase::default()) };
        let more = *more;
        let durable = self.guard.core.await_commit(answer).await;
        if !matches!(durable, Err(LedgerError::Stalled)) {
            self.extending = None;
        }
        durable.map(|()| more)
    }

    /// Notes what was used so far, in case nobody settles it: tokens alone, since all reserved tool calls are posted at
    /// their price then. Never waits.
    pub fn meter(&self, cost: Money, thinking: Tokens) {
        self.core().meter(self.guard.id, Amounts { money: cost, thinking, ..Amounts::ZERO });
    }

    /// Puts off the expiry.
    pub fn renew(&mut self, expires: Timestamp) -> Result<(), LedgerError> {
        Ok(self.core().accounts().renew(self.guard.id, expires)?)
    }

    /// Charges what was used. Balances change at once; it cannot fail.
    pub fn settle(self, cost: Money, thinking: Tokens, detail: SettlementDetail) -> PendingSettlement {
        self.guard.settle(cost, thinking, detail)
    }

    /// Gives everything back: nothing was sent, or nothing was billed.
    pub fn void(self) -> PendingSettlement {
        self.guard.void()
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reservation({})", self.guard.id)
    }
}
