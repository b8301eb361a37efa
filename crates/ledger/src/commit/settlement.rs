//! A resolution on its way to the journal, and the wait until it is durable.

use std::time::Duration;

use stint_types::units::Money;

use super::queue::CommitReceiver;

/// A resolution on its way to the journal. It gets there whether anybody waits or not.
#[derive(Debug)]
pub struct PendingSettlement {
    overrun: Money,
    commit: Option<CommitReceiver>,
}

/// The result of settling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettlementReceipt {
    /// What was billed beyond the reservation.
    pub overrun: Money,
    /// False if the journal took longer than the caller waited; it will be journalled still.
    pub is_durable: bool,
}

impl PendingSettlement {
    pub(crate) fn new(overrun: Money, commit: Option<CommitReceiver>) -> PendingSettlement {
        PendingSettlement { overrun, commit }
    }

    /// What was billed beyond the reservation.
    pub fn overrun(&self) -> Money {
        self.overrun
    }

    /// Waits until it is durable, `patience` at most.
    pub async fn wait_durable(self, patience: Duration) -> SettlementReceipt {
        let is_durable = match self.commit {
            None => true,
            Some(answer) => matches!(tokio::time::timeout(patience, answer).await, Ok(Ok(Ok(())))),
        };
        SettlementReceipt { overrun: self.overrun, is_durable }
    }
}
