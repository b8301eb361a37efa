//! The money of one request: what is reserved for it, and what was lost on offers that failed.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use stint_ledger::{
    Amounts, Ledger, LedgerError, ModelSpend, Reservation, ReserveError, SettlementDetail, SettlementStatus,
    Shortfall,
};
use stint_sessions::idempotency::IdempotencyTicket;
use stint_types::catalog::{ChoiceUsage, Offer, WorstCase};
use stint_types::units::{Money, Tokens};

use super::bill::{Bill, UndeliveredSpend, calls, thinking_tokens};
use super::dispatch::record_dispatch;
use super::refusal::RequestRefusal;

/// A reservation and what has become of it.
pub(crate) struct RequestReservation {
    reservation: Reservation,
    reserved: WorstCase,
    /// Under whose limits it is.
    model: Arc<str>,
    /// The caller's own limit for the request.
    cost_max: Option<Money>,
    undelivered: UndeliveredSpend,
    is_dispatched: bool,
    /// How long it took to make the dispatch durable.
    dispatched_in: Duration,
}

/// Why no more was reserved.
#[derive(Debug)]
pub(crate) enum ExtensionError {
    /// The request's own limit leaves so much.
    RequestLimit { left: Money },
    /// Another limit leaves too little.
    Shortfall(Shortfall),
    /// The ledger does not answer whether there is more.
    LedgerUnavailable,
}

impl From<LedgerError> for ExtensionError {
    fn from(error: LedgerError) -> ExtensionError {
        match error {
            LedgerError::Refused(ReserveError::Shortfall(shortfall)) => ExtensionError::Shortfall(shortfall),
            // An account that is gone, or a sum that no entry holds, has nothing more.
            LedgerError::Refused(ReserveError::NoAccount(_) | ReserveError::TooLarge) => {
                ExtensionError::RequestLimit { left: Money::ZERO }
            }
            _ => ExtensionError::LedgerUnavailable,
        }
    }
}

impl RequestReservation {
    pub(crate) fn new(
        reservation: Reservation,
        first: &Offer,
        cost_max: Option<Money>,
    ) -> RequestReservation {
        let (held, model) = (first.worst, first.model.clone());
        RequestReservation {
            reservation,
            reserved: held,
            model,
            cost_max,
            undelivered: UndeliveredSpend::default(),
            is_dispatched: false,
            dispatched_in: Duration::ZERO,
        }
    }

    /// Makes durable, once, what must be before anything is sent.
    pub(crate) async fn record_dispatch(
        &mut self,
        ledger: &Ledger,
        ticket: Option<&IdempotencyTicket>,
        deadline: Instant,
    ) -> Result<(), RequestRefusal> {
        if !self.is_dispatched {
            let began = Instant::now();
            record_dispatch(ledger, ticket, deadline, &mut self.reservation).await?;
            (self.is_dispatched, self.dispatched_in) = (true, began.elapsed());
        }
        Ok(())
    }

    /// True from when on something may have been sent.
    pub(crate) fn is_dispatched(&self) -> bool {
        self.is_dispatched
    }

    /// How long it took to make the dispatch durable.
    pub(crate) fn dispatched_in(&self) -> Duration {
        self.dispatched_in
    }

    /// Gives everything back: nothing was sent.
    pub(crate) fn void(self) {
        drop(self.reservation.void());
    }

    /// Sets aside what another attempt needs beside what was lost; false if that does not fit, and then nothing
    /// has changed. One that costs no more than the last, after one that cost nothing, needs no more.
    pub(crate) async fn extend_for_retry(&mut self, next: &Offer, bill: Bill<'_>) -> bool {
        let lost = self.undelivered.clone().plus_failed(bill);
        self.cover(next.worst, lost, Some(&next.model)).await.is_ok()
    }

    /// Sets so much more aside than the worst case of the offer that runs, for an answer that grows.
    pub(crate) async fn extend_for_growth(
        &mut self,
        offer: &Offer,
        extra: Money,
    ) -> Result<(), ExtensionError> {
        let worst = WorstCase { money: offer.worst.money + extra, ..offer.worst };
        self.cover(worst, self.undelivered.clone(), None).await
    }

    /// All that is set aside.
    pub(crate) fn reserved_amounts(&self) -> Amounts {
        self.reserved.into()
    }

    /// Sets aside the worst case of an offer twice beside what was lost, for two attempts at once; false if that does not
    /// fit, and then nothing has changed.
    pub(crate) async fn extend_for_hedge(&mut self, offer: &Offer) -> bool {
        self.cover(offer.worst + offer.worst, self.undelivered.clone(), None).await.is_ok()
    }

    /// Books what the dropped one of two parallel attempts took.
    pub(crate) fn record_cancelled(&mut self, bill: Bill<'_>) {
        let lost = self.undelivered.clone().plus_failed(bill);
        self.undelivered = UndeliveredSpend { hedge_losers: lost.hedge_losers + calls(bill.spent), ..lost };
    }

    /// The same for the next step of a cascade: what came before is not delivered, and did not fail.
    pub(crate) async fn switch_offer(&mut self, next: &Offer, bill: Bill<'_>) -> bool {
        self.cover(next.worst, self.undelivered.clone().plus(bill), Some(&next.model)).await.is_ok()
    }

    /// Lets what follows be paid from all that the caller's own limit for the request leaves: it is the answer, for which
    /// anything more was kept.
    pub(crate) fn set_cost_max(&mut self, cost_max: Option<Money>) {
        self.cost_max = cost_max;
    }

    /// How much is set aside and neither lost nor taken.
    pub(crate) fn remaining(&self, taken: WorstCase) -> Money {
        self.reserved.money.saturating_sub(self.undelivered.sum().money + taken.money)
    }

    /// Sets aside what a call beside the offer needs, which has or will have taken so much itself.
    pub(crate) async fn extend_for_auxiliary(&mut self, worst: WorstCase, own: WorstCase) -> bool {
        let whole = WorstCase { money: own.money + worst.money, thinking: own.thinking + worst.thinking };
        self.cover(whole, self.undelivered.clone(), None).await.is_ok()
    }

    /// Books what a call beside the offer took.
    pub(crate) fn record_auxiliary(&mut self, bill: Bill<'_>) {
        self.undelivered.take(bill);
    }

    /// What was lost until now.
    pub(crate) fn undelivered(&self) -> UndeliveredSpend {
        self.undelivered.clone()
    }

    /// The offer that was left is the one that is delivered after all: what was lost since then, it is not. The request is that
    /// model's again, where the limits on it still allow that.
    pub(crate) async fn revert_to(&mut self, first: &Offer, before: UndeliveredSpend, bill: Bill<'_>) {
        self.undelivered = before.plus(bill);
        if self.reservation.extend(WorstCase::default(), Some(&first.model)).await.is_ok() {
            self.model = first.model.clone();
        }
    }

    /// Sets aside so much beside what is lost then, for another model, if one is named.
    async fn cover(
        &mut self,
        worst: WorstCase,
        lost: UndeliveredSpend,
        model: Option<&Arc<str>>,
    ) -> Result<(), ExtensionError> {
        // What was asked for before and came too late is there all the same: it is not asked for twice.
        match self.reservation.extended().await {
            Ok(late) => self.reserved = self.reserved + late,
            Err(LedgerError::Stalled) => return Err(ExtensionError::LedgerUnavailable),
            Err(_) => {}
        }
        let ModelSpend { money, thinking, .. } = lost.sum();
        let whole = WorstCase { money: worst.money + money, thinking: worst.thinking + thinking };
        if let Some(most) = self.cost_max.filter(|most| whole.money > *most) {
            return Err(ExtensionError::RequestLimit { left: most.saturating_sub(self.reserved.money) });
        }
        let more = WorstCase {
            money: whole.money.saturating_sub(self.reserved.money),
            thinking: whole.thinking.saturating_sub(self.reserved.thinking),
        };
        let moves = model.is_some_and(|model| self.model != *model) || more != WorstCase::default();
        if moves {
            self.reservation.extend(more, model).await?;
        }
        if let Some(model) = model {
            self.model = model.clone();
        }
        self.reserved = WorstCase {
            money: self.reserved.money + more.money,
            thinking: self.reserved.thinking + more.thinking,
        };
        self.undelivered = lost;
        Ok(())
    }

    /// Notes what the running offer has taken so far and what was lost before: of what it is likely to have taken by the time that
    /// somebody reads this no more than is set aside, but all that it has taken.
    pub(crate) fn meter(&self, cost: Money, likely: Money, spent: &[ChoiceUsage]) {
        let ModelSpend { money, thinking, .. } = self.undelivered.sum();
        let most = self.reserved.money.saturating_sub(money);
        // What was counted is posted whole; what is reckoned is not taken for more than there is.
        let counted = if spent.iter().any(|spent| spent.estimated) { cost.min(most) } else { cost };
        let cost = likely.min(most).max(counted);
        self.reservation.meter(cost + money, thinking_tokens(spent) + thinking);
    }

    /// True if what was lost is reckoned rather than reported.
    pub(crate) fn is_estimated(&self) -> bool {
        self.undelivered.is_estimated
    }

    /// How many attempts were given up.
    pub(crate) fn attempts(&self) -> u32 {
        self.undelivered.attempts
    }

    /// How many of those were given up for one beside them.
    pub(crate) fn hedge_losers(&self) -> u32 {
        self.undelivered.hedge_losers
    }

    /// All tokens of those.
    pub(crate) fn given_up(&self) -> Tokens {
        let ModelSpend { prompt, thinking, other, .. } = self.undelivered.sum();
        prompt + thinking + other
    }

    /// The most that was reserved.
    pub(crate) fn reserved(&self) -> Money {
        self.reserved.money
    }

    /// Settles what the last offer took and what was lost before, waits a bounded time until that is durable, and
    /// returns the whole cost, and whether the books have it.
    pub(crate) async fn settle(
        self,
        bill: Bill<'_>,
        detail: SettlementDetail,
        patience: Duration,
    ) -> (Money, SettlementStatus) {
        let (lost, mut parts) = (self.undelivered.sum(), self.undelivered.parts);
        parts.add(bill.model, bill.delivered(&detail));
        let cost = bill.cost + lost.money + detail.tools_cost;
        let (prompt, other) = (detail.prompt + lost.prompt, detail.other + lost.other);
        let detail = SettlementDetail { prompt, other, parts, ..detail };
        let settling = self.reservation.settle(cost, thinking_tokens(bill.spent) + lost.thinking, detail);
        (cost, settling.wait_durable(patience).await.status)
    }
}
