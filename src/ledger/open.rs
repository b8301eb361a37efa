//! An open reservation, and what comes out when it is closed.

use crate::units::{RequestId, Timestamp};

use super::{Amounts, Claim, Dispatched, Entry, Extended, How, Resolved, SettlementDetail};

/// How far a reservation got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Only in memory.
    Reserved,
    /// Its row is on the way to the journal, or got lost there. Nothing was sent.
    Dispatching,
    /// Its row is durable. Something may have been sent.
    Dispatched,
}

/// An open reservation.
#[derive(Debug)]
pub(super) struct Open {
    /// Its row in the journal; `held` in it is what was set aside until the dispatch.
    pub(super) row: Dispatched,
    /// All that is set aside, extensions included.
    pub(super) held: Amounts,
    pub(super) expires: Timestamp,
    pub(super) stage: Stage,
    step: u32,
}

/// A reservation that was just resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// Which one.
    pub id: RequestId,
    /// How.
    pub how: How,
    /// What it is charged.
    pub spent: Amounts,
    /// What of that was more than the reservation.
    pub overrun: Amounts,
    /// What is to be journalled; nothing, where the journal never heard of it.
    pub entries: Vec<Entry>,
}

impl Open {
    pub(super) fn new(claim: Claim, held: Amounts) -> Open {
        let Claim { account, id, prices, now, expires, .. } = claim;
        let row = Dispatched { id, account, held, prices, admitted: now, expires };
        Open { row, held, expires, stage: Stage::Reserved, step: 0 }
    }

    pub(super) fn dispatch(&mut self) -> Entry {
        if self.stage == Stage::Reserved {
            self.row.held = self.held;
            self.stage = Stage::Dispatching;
        }
        Entry::Dispatched(self.row.clone())
    }

    pub(super) fn extend(&mut self, more: Amounts) -> Option<Entry> {
        self.held += more;
        if self.stage == Stage::Reserved {
            return None;
        }
        self.step += 1;
        Some(Entry::Extended(Extended { id: self.row.id, step: self.step, more }))
    }

    pub(super) fn void(self, at: Timestamp) -> Closed {
        let detail = SettlementDetail { outcome: "voided".into(), ..SettlementDetail::default() };
        self.close(How::Voided, Amounts::ZERO, detail, at)
    }

    pub(super) fn abandon(self, at: Timestamp) -> Closed {
        if self.stage != Stage::Dispatched {
            return self.void(at);
        }
        let (held, detail) = (self.held, SettlementDetail::abandoned());
        self.close(How::Expired, held, detail, at)
    }

    pub(super) fn close(
        mut self,
        how: How,
        spent: Amounts,
        detail: SettlementDetail,
        at: Timestamp,
    ) -> Closed {
        let (id, overrun) = (self.row.id, spent.saturating_sub(self.held));
        let mut entries = Vec::new();
        // A row that may have got lost is journalled again, before the end that refers to it.
        if self.stage == Stage::Dispatching || (self.stage == Stage::Reserved && how != How::Voided) {
            entries.push(self.dispatch());
        }
        if self.stage != Stage::Reserved {
            let Dispatched { account, admitted, .. } = self.row;
            let resolved = Resolved { id, account, admitted, at, how, spent, overrun, detail };
            entries.push(Entry::Resolved(resolved));
        }
        Closed { id, how, spent, overrun, entries }
    }
}

impl SettlementDetail {
    /// The detail of a reservation that nobody settled.
    pub(super) fn abandoned() -> SettlementDetail {
        SettlementDetail { outcome: "abandoned".into(), ..SettlementDetail::default() }
    }
}
