//! One exchange with the coordinator: its quota windows, and what requests need of them.

use std::collections::HashMap;

use tokio::time::Instant;

use crate::accounts::{LeaseReturn, LedgerState, QuotaNeed, ReserveError};
use crate::quota::{LocalWindow, QuotaDemand, QuotaWindow};

use super::requests::QuotaWaiter;

/// The windows of one exchange.
#[derive(Default)]
pub(super) struct ExchangeRound {
    pub(super) windows: Vec<QuotaWindow>,
    /// By window, as this replica sees it.
    pub(super) items: Vec<LocalWindow>,
    indices: HashMap<QuotaWindow, usize>,
}

/// The requests that wait, and what they want.
#[derive(Default)]
pub(super) struct PreparedDemand {
    pub(super) demands: Vec<QuotaDemand>,
    /// The requests of these demands.
    pub(super) waiting: Vec<QuotaWaiter>,
    /// Requests for windows that are being opened: they wait for a later round.
    pub(super) parked: Vec<QuotaWaiter>,
}

impl ExchangeRound {
    /// The index of a window, which is added if it is new. The replica's own lease of it is frozen at what is used and
    /// `retain` beside. `None` if the window is over.
    pub(super) fn index_of(
        &mut self,
        accounts: &mut LedgerState,
        window: &QuotaWindow,
        max: u64,
        retain: Option<u64>,
    ) -> Option<usize> {
        if let Some(at) = self.indices.get(window) {
            return Some(*at);
        }
        let at = self.windows.len();
        let (used, is_idle) = accounts.freeze(window, retain.unwrap_or(0))?;
        self.items.push(LocalWindow { used, max, retain, is_idle });
        self.windows.push(window.clone());
        self.indices.insert(window.clone(), at);
        Some(at)
    }

    /// Adds what is to be returned.
    pub(super) fn add_returns(&mut self, accounts: &mut LedgerState, returns: &[LeaseReturn]) {
        for LeaseReturn { window, max, retain } in returns {
            self.index_of(accounts, window, *max, Some(*retain));
        }
    }

    /// What these needs come to, by index; `None` if a window is over.
    pub(super) fn places(
        &mut self,
        accounts: &mut LedgerState,
        needs: &[QuotaNeed],
    ) -> Option<Vec<(usize, u64)>> {
        let place = |need: &QuotaNeed| {
            let at = self.index_of(accounts, &need.window, need.max, None)?;
            Some((at, need.shortfall.needed.size()))
        };
        needs.iter().map(place).collect()
    }
}

impl PreparedDemand {
    /// Has a request wait for a later round; if its time is over, it is refused.
    pub(super) fn park(&mut self, one: QuotaWaiter, now: Instant, refused: impl FnOnce() -> ReserveError) {
        if one.deadline > now {
            self.parked.push(one);
        } else {
            one.refuse(refused());
        }
    }
}
