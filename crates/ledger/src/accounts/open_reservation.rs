//! An open reservation, and what it yields when it is closed: amounts to post and an entry to journal.

use crate::rows::{
    Amounts, DispatchEntry, ExtensionEntry, JournalEntry, MeterEntry, RequestScope, ResolutionEntry,
    ResolutionKind, SettlementDetail, StepReservation, abandoned_charge,
};
use stint_types::chat::ToolCounts;
use stint_types::units::{AccountId, Count, RequestId, Timestamp};

use super::request::ReservationRequest;
use super::tree::AccountIndex;
use super::warnings::LimitWarning;

/// How far a reservation got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReservationStage {
    /// Only in memory.
    Reserved,
    /// Its row is on the way to the journal, or got lost there. Nothing was sent.
    Dispatching,
    /// Its row is durable. Something may have been sent.
    Dispatched,
}

/// An open reservation.
#[derive(Debug)]
pub(crate) struct OpenReservation {
    /// Its row in the journal; `held` in it is what was reserved until the dispatch, `about` follows its model.
    pub(crate) row: DispatchEntry,
    /// Where its account stands.
    pub(crate) place: AccountIndex,
    /// All that is reserved, extensions included.
    pub(crate) held: Amounts,
    pub(crate) expires: Timestamp,
    pub(crate) stage: ReservationStage,
    step: u32,
    /// What was used when it was last metered, and how often that was.
    metered: Option<(u32, Amounts, Timestamp)>,
}

/// A reservation that was just resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedReservation {
    /// Which one.
    pub id: RequestId,
    /// Whose.
    pub account: AccountId,
    /// What it was about.
    pub about: RequestScope,
    /// How.
    pub how: ResolutionKind,
    /// What it is charged.
    pub spent: Amounts,
    /// The tool calls of that.
    pub tools: ToolCounts,
    /// What of that was more than the reservation.
    pub overrun: Amounts,
    /// What is to be journalled; nothing, if it is in no journal yet.
    pub entries: Vec<JournalEntry>,
    /// The limits that are nearly used up since.
    pub warnings: Vec<LimitWarning>,
}

impl ClosedReservation {
    /// A reservation that a process before, or another replica, left open, as this entry posts it.
    pub(crate) fn of_posted(entry: &JournalEntry) -> Option<ClosedReservation> {
        let JournalEntry::Resolved(row) = entry else { return None };
        Some(ClosedReservation {
            id: row.id,
            account: row.account.clone(),
            about: row.about.clone(),
            how: row.how,
            spent: row.spent,
            tools: row.detail.tools.clone(),
            overrun: row.overrun,
            entries: vec![entry.clone()],
            warnings: Vec::new(),
        })
    }
}

impl OpenReservation {
    pub(crate) fn new(request: ReservationRequest, place: AccountIndex, held: Amounts) -> OpenReservation {
        let ReservationRequest { account, id, about, step, prices, if_abandoned, rate, now, expires, .. } =
            request;
        let StepReservation { tools, tools_cost, .. } = step.unwrap_or_default();
        let row = DispatchEntry {
            id,
            account,
            about,
            held,
            tools,
            tools_cost,
            prices,
            if_abandoned,
            rate,
            metered: None,
            metered_at: None,
            admitted: now,
            expires,
        };
        OpenReservation {
            row,
            place,
            held,
            expires,
            stage: ReservationStage::Reserved,
            step: 0,
            metered: None,
        }
    }

    pub(crate) fn dispatch(&mut self) -> JournalEntry {
        if self.stage == ReservationStage::Reserved {
            self.row.held = self.held;
            self.stage = ReservationStage::Dispatching;
        }
        JournalEntry::Dispatched(self.row.clone())
    }

    pub(crate) fn extend(&mut self, more: Amounts, about: RequestScope) -> Option<JournalEntry> {
        self.held += more;
        self.row.about = about;
        if self.stage == ReservationStage::Reserved {
            return None;
        }
        self.step += 1;
        let model = self.row.about.model.clone();
        Some(JournalEntry::Extended(ExtensionEntry { id: self.row.id, step: self.step, more, model }))
    }

    /// Notes what was used; `None` if that was known, or nothing can have been used.
    pub(crate) fn meter(&mut self, spent: Amounts, at: Timestamp) -> Option<JournalEntry> {
        let last = self.metered.map(|(_, spent, _)| spent);
        if self.stage != ReservationStage::Dispatched || last == Some(spent) {
            return None;
        }
        let step = self.metered.map_or(1, |(step, ..)| step + 1);
        self.metered = Some((step, spent, at));
        Some(JournalEntry::Metered(MeterEntry { id: self.row.id, step, spent, at: Some(at) }))
    }

    pub(crate) fn void(self, at: Timestamp) -> ClosedReservation {
        let detail = SettlementDetail { outcome: "voided".into(), ..SettlementDetail::default() };
        self.close(ResolutionKind::Voided, Amounts::ZERO, detail, at)
    }

    pub(crate) fn abandon(self, at: Timestamp) -> ClosedReservation {
        if self.stage != ReservationStage::Dispatched {
            return self.void(at);
        }
        let metered = self.metered.map(|(_, spent, noted)| (spent, Some(noted)));
        let spent = abandoned_charge(&self.row, self.held, metered, at);
        let detail = SettlementDetail::abandoned(&self.row);
        self.close(ResolutionKind::Expired, spent, detail, at)
    }

    pub(crate) fn close(
        mut self,
        how: ResolutionKind,
        spent: Amounts,
        detail: SettlementDetail,
        at: Timestamp,
    ) -> ClosedReservation {
        let requests = if how == ResolutionKind::Voided { Count::ZERO } else { Count::ONE };
        let spent = Amounts { requests, tool_calls: detail.tools.all, ..spent };
        let tools = detail.tools.clone();
        // Calls of tools without a limit are counted, and were not reserved.
        let bounded = Amounts { requests: Count::ZERO, tool_calls: Count::ZERO, ..spent };
        let (id, overrun) = (self.row.id, bounded.saturating_sub(self.held));
        let mut entries = Vec::new();
        // A row that may have got lost is journalled again, before the end that refers to it.
        if self.stage == ReservationStage::Dispatching
            || (self.stage == ReservationStage::Reserved && how != ResolutionKind::Voided)
        {
            entries.push(self.dispatch());
        }
        if self.stage != ReservationStage::Reserved {
            let (admitted, about) = (self.row.admitted, self.row.about.clone());
            let account = self.row.account.clone();
            let mut resolved =
                ResolutionEntry { id, account, about, admitted, at, how, spent, overrun, detail };
            resolved.keep_other_models();
            entries.push(JournalEntry::Resolved(resolved));
        }
        let account = self.row.account;
        ClosedReservation {
            id,
            account,
            about: self.row.about,
            how,
            spent,
            tools,
            overrun,
            entries,
            warnings: Vec::new(),
        }
    }
}
