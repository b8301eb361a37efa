//! `ReservationGuard`: resolves a reservation exactly once, at the latest when it is dropped.

use std::sync::Arc;

use crate::accounts::{ReservationRequest, ReserveError};
use crate::rows::{Amounts, SettlementDetail};
use stint_types::catalog::Prices;
use stint_types::units::{Money, RequestId, Tokens};

use super::ledger_core::LedgerCore;
use super::settlement::PendingSettlement;

/// Holds one reservation. Dropped unresolved, it gives everything back if nothing can have been sent, and posts it
/// otherwise.
pub(crate) struct ReservationGuard {
    pub(crate) core: Arc<LedgerCore>,
    pub(crate) id: RequestId,
    /// The prices in force when it was made.
    pub(crate) prices: Option<Prices>,
    is_open: bool,
}

impl ReservationGuard {
    /// Reserves the worst case at once, or says why not.
    pub(crate) fn reserve(
        core: &Arc<LedgerCore>,
        request: ReservationRequest,
    ) -> Result<ReservationGuard, ReserveError> {
        let (id, prices) = (request.id, request.prices);
        core.reserve(request)?;
        Ok(ReservationGuard { core: core.clone(), id, prices, is_open: true })
    }

    /// Charges what was used.
    pub(crate) fn settle(
        mut self,
        cost: Money,
        thinking: Tokens,
        detail: SettlementDetail,
    ) -> PendingSettlement {
        self.is_open = false;
        let spent = Amounts { money: cost, thinking, tool_calls: detail.tools.all, ..Amounts::ZERO };
        self.core.resolve(|accounts| accounts.settle(self.id, spent, detail, self.core.now()))
    }

    /// Gives everything back.
    pub(crate) fn void(mut self) -> PendingSettlement {
        self.is_open = false;
        self.core.resolve(|accounts| accounts.void(self.id, self.core.now()))
    }
}

impl Drop for ReservationGuard {
    fn drop(&mut self) {
        if self.is_open {
            drop(self.core.resolve(|accounts| accounts.abandon(self.id, self.core.now())));
        }
    }
}
