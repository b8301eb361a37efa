//! A resolution on its way to the journal, and the wait until it is durable.

use std::time::Duration;

use stint_types::units::Money;

use super::queue::CommitReceiver;

/// A resolution on its way to the journal. It gets there whether anybody waits or not.
#[derive(Debug)]
pub struct PendingSettlement {
    overrun: Money,
    commit: Option<CommitReceiver>,
    /// It came too late: the reservation had been resolved before.
    is_late: bool,
}

/// The result of settling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettlementReceipt {
    /// What was billed beyond the reservation.
    pub overrun: Money,
    /// Whether the books have it.
    pub status: SettlementStatus,
}

/// What the books have of a resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettlementStatus {
    /// Just that.
    Recorded,
    /// Nothing yet: the journal took longer than the caller waited. It is written as soon as that can be, unless the process
    /// ends before, or others reclaim the reservation.
    Pending,
    /// Something else: the reservation had expired, or this replica's lease was lost and others posted it.
    Superseded,
}

impl SettlementReceipt {
    /// True if the books have what was settled, for good.
    pub fn is_recorded(&self) -> bool {
        self.status == SettlementStatus::Recorded
    }
}

impl PendingSettlement {
    pub(crate) fn new(overrun: Money, commit: Option<CommitReceiver>) -> PendingSettlement {
        PendingSettlement { overrun, commit, is_late: false }
    }

    /// One of a reservation that was resolved before. It waits for that earlier result.
    pub(crate) fn late(commit: CommitReceiver) -> PendingSettlement {
        PendingSettlement { overrun: Money::ZERO, commit: Some(commit), is_late: true }
    }

    /// What was billed beyond the reservation.
    pub fn overrun(&self) -> Money {
        self.overrun
    }

    /// Waits until it is durable, `patience` at most.
    pub async fn wait_durable(self, patience: Duration) -> SettlementReceipt {
        let committed = match self.commit {
            None => SettlementStatus::Recorded,
            Some(answer) => match tokio::time::timeout(patience, answer).await {
                Ok(Ok(Ok(()))) => SettlementStatus::Recorded,
                // A settlement is tried again for as long as its lease holds.
                Ok(Ok(Err(_))) => SettlementStatus::Superseded,
                Ok(Err(_)) | Err(_) => SettlementStatus::Pending,
            },
        };
        let status = if self.is_late { SettlementStatus::Superseded } else { committed };
        SettlementReceipt { overrun: self.overrun, status }
    }
}
