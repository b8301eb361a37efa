//! The guard of what was set aside, and what becomes of it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::catalog::{Prices, WorstCase};
use crate::units::{Money, RequestId, Timestamp, Tokens};

use super::queue::CommitReceiver;
use super::quota_client::ExtendRequest;
use super::{Amounts, Ledger, LedgerError, SettlementDetail};

/// Money and thinking tokens set aside for one request; resolved exactly once.
///
/// Dropped unresolved, it gives everything back if nothing can have been sent, and is posted whole otherwise.
#[must_use = "an unresolved reservation is resolved where it is dropped"]
pub struct Reservation {
    ledger: Ledger,
    id: RequestId,
    prices: Option<Prices>,
    is_open: bool,
    /// The last extension, while its row is on its way.
    extending: Option<(WorstCase, CommitReceiver)>,
}

/// A resolution on its way to the journal. It gets there whether anybody waits or not.
#[derive(Debug)]
pub struct PendingSettlement {
    overrun: Money,
    commit: Option<CommitReceiver>,
}

/// What came of settling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettlementReceipt {
    /// What was billed beyond the reservation.
    pub overrun: Money,
    /// False where the journal took longer than the patience; it will be journalled still.
    pub is_durable: bool,
}

impl Reservation {
    pub(super) fn new(ledger: Ledger, id: RequestId, prices: Option<Prices>) -> Reservation {
        Reservation { ledger, id, prices, is_open: true, extending: None }
    }

    /// For which request.
    pub fn id(&self) -> RequestId {
        self.id
    }

    /// The prices in force when it was made, at which it is to be settled.
    pub fn prices(&self) -> Option<Prices> {
        self.prices
    }

    /// All that is set aside, extensions included; nothing, once it has expired.
    pub fn held(&self) -> Amounts {
        self.ledger.held(self.id)
    }

    /// Makes it durable, just before the first byte goes upstream. Nothing may be sent unless this succeeds.
    ///
    /// If it fails or is dropped halfway, it may be tried again.
    pub async fn dispatch(&mut self) -> Result<(), LedgerError> {
        let mut answer = self.ledger.dispatch(self.id)?;
        self.ledger.await_commit(&mut answer).await?;
        self.ledger.confirm_dispatch(self.id)
    }

    /// Sets more aside, durably where it is dispatched already; for another model, if one is named: all of it moves
    /// under that model's limits.
    ///
    /// If only the journal fails, the money stays set aside, since the row may be durable; it must not be used. If it is late, or
    /// this is dropped halfway, [`extended`](Reservation::extended) says later what came of it.
    pub async fn extend(&mut self, more: WorstCase, model: Option<&Arc<str>>) -> Result<(), LedgerError> {
        let extend = ExtendRequest { id: self.id, more, model: model.cloned() };
        let answer = self.ledger.extend(extend).await?;
        self.extending = answer.map(|answer| (more, answer));
        self.extended().await.map(|_| ())
    }

    /// Waits for the row of the last extension, and says how much is set aside by it; nothing where none is on its way.
    ///
    /// # Errors
    /// [`LedgerError::Stalled`] while it still is.
    pub async fn extended(&mut self) -> Result<WorstCase, LedgerError> {
        let Some((more, answer)) = &mut self.extending else { return Ok(WorstCase::default()) };
        let more = *more;
        let durable = self.ledger.await_commit(answer).await;
        if !matches!(durable, Err(LedgerError::Stalled)) {
            self.extending = None;
        }
        durable.map(|()| more)
    }

    /// Notes what was used so far, for the case that nobody comes back to settle it: tokens alone, since then all tool calls
    /// that are set aside are posted at their price. Never waits.
    pub fn meter(&self, cost: Money, thinking: Tokens) {
        self.ledger.meter(self.id, Amounts { money: cost, thinking, ..Amounts::ZERO });
    }

    /// Puts off the expiry.
    pub fn renew(&mut self, expires: Timestamp) -> Result<(), LedgerError> {
        self.ledger.renew(self.id, expires)
    }

    /// Charges what was used. Balances change at once; it cannot fail.
    pub fn settle(mut self, cost: Money, thinking: Tokens, detail: SettlementDetail) -> PendingSettlement {
        self.is_open = false;
        let spent = Amounts { money: cost, thinking, tool_calls: detail.tools.all, ..Amounts::ZERO };
        self.ledger.resolve(|accounts| accounts.settle(self.id, spent, detail, self.ledger.now()))
    }

    /// Gives everything back: nothing was sent, or nothing was billed.
    pub fn void(mut self) -> PendingSettlement {
        self.is_open = false;
        self.ledger.resolve(|accounts| accounts.void(self.id, self.ledger.now()))
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reservation({})", self.id)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.is_open {
            drop(self.ledger.resolve(|accounts| accounts.abandon(self.id, self.ledger.now())));
        }
    }
}

impl PendingSettlement {
    pub(super) fn new(overrun: Money, answer: Option<CommitReceiver>) -> PendingSettlement {
        PendingSettlement { overrun, commit: answer }
    }

    /// What was billed beyond the reservation.
    pub fn overrun(&self) -> Money {
        self.overrun
    }

    /// Waits until it is durable, at most so long.
    pub async fn wait_durable(self, patience: Duration) -> SettlementReceipt {
        let journalled = match self.commit {
            None => true,
            Some(answer) => matches!(tokio::time::timeout(patience, answer).await, Ok(Ok(Ok(())))),
        };
        SettlementReceipt { overrun: self.overrun, is_durable: journalled }
    }
}
