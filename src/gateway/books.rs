//! One flight's money: what is set aside for it, and what was lost on offers that failed.

use std::sync::Arc;

use tokio::time::Instant;

use crate::catalog::{Offer, Spent, WorstCase};
use crate::idempotency::Ticket;
use crate::ledger::{Amounts, LedgerError, Part, Parts, Refused, Reservation, SettlementDetail, Shortfall};
use crate::units::{Money, Tokens};

use super::flying::depart;
use super::handle;
use super::{Refusal, Settings};

/// A reservation and what has become of it.
pub(super) struct Books {
    reservation: Reservation,
    held: WorstCase,
    /// Under whose limits it is.
    model: Arc<str>,
    /// The caller's own limit for the request.
    cost_max: Option<Money>,
    lost: Lost,
    departed: bool,
}

/// Why no more was set aside.
#[derive(Debug)]
pub(super) enum Uncovered {
    /// The request's own limit leaves so much.
    Own { left: Money },
    /// Another limit leaves too little.
    Short(Shortfall),
    /// The ledger does not say whether there is more.
    Silent,
}

impl From<LedgerError> for Uncovered {
    fn from(error: LedgerError) -> Uncovered {
        match error {
            LedgerError::Refused(Refused::Shortfall(shortfall)) => Uncovered::Short(shortfall),
            // An account that is gone, or a sum that no entry holds, has nothing more.
            LedgerError::Refused(Refused::NoAccount(_) | Refused::TooLarge) => {
                Uncovered::Own { left: Money::ZERO }
            }
            _ => Uncovered::Silent,
        }
    }
}

/// What one run took, and of which model.
#[derive(Clone, Copy)]
pub(super) struct Bill<'s> {
    pub(super) model: &'s Arc<str>,
    pub(super) cost: Money,
    pub(super) spent: &'s [Spent],
}

/// What offers took that were given up for the next one, and calls beside them.
#[derive(Debug, Clone, Default)]
pub(super) struct Lost {
    attempts: u32,
    /// How many of them were let go, or failed, while another was under way beside them.
    outrun: u32,
    /// True where some of it was reckoned.
    is_estimated: bool,
    /// Of each model.
    parts: Parts,
}

impl Bill<'_> {
    /// All of it, where none of it is delivered.
    fn lost(&self) -> Part {
        Part {
            money: self.cost,
            thinking: thought(self.spent),
            prompt: self.spent.iter().map(Spent::input).sum(),
            other: self.spent.iter().map(beside_thoughts).sum(),
            ..Part::default()
        }
    }

    /// All of it and what its tool calls cost, where it is delivered and sorted like that.
    fn delivered(&self, detail: &SettlementDetail) -> Part {
        let SettlementDetail { prompt, overhead, solution, other, tools_cost, .. } = *detail;
        Part {
            money: self.cost + tools_cost,
            thinking: thought(self.spent),
            prompt,
            overhead,
            solution,
            other,
        }
    }
}

impl Lost {
    /// This and what another run took.
    fn and(mut self, bill: Bill<'_>) -> Lost {
        self.take(bill);
        self
    }

    fn take(&mut self, bill: Bill<'_>) {
        self.parts.add(bill.model, bill.lost());
        self.is_estimated |= bill.spent.iter().any(|spent| spent.estimated);
    }

    /// The same, where that run was an attempt that was given up.
    fn and_given_up(self, bill: Bill<'_>) -> Lost {
        Lost { attempts: self.attempts + calls(bill.spent), ..self.and(bill) }
    }

    /// What all of it comes to.
    fn sum(&self) -> Part {
        self.parts.sum()
    }
}

impl Books {
    pub(super) fn new(reservation: Reservation, first: &Offer, cost_max: Option<Money>) -> Books {
        let (held, model) = (first.worst, first.model.clone());
        Books { reservation, held, model, cost_max, lost: Lost::default(), departed: false }
    }

    /// Makes durable, once, what must be before anything is sent.
    pub(super) async fn depart(
        &mut self,
        parts: &handle::Parts,
        ticket: Option<&Ticket>,
        deadline: Instant,
    ) -> Result<(), Refusal> {
        if !self.departed {
            depart(parts, ticket, deadline, &mut self.reservation).await?;
            self.departed = true;
        }
        Ok(())
    }

    /// True from when on something may have been sent.
    pub(super) fn departed(&self) -> bool {
        self.departed
    }

    /// Gives everything back: nothing was sent.
    pub(super) fn void(self) {
        drop(self.reservation.void());
    }

    /// Sets aside what another attempt needs beside what was lost; false where that does not fit, and then nothing
    /// has changed. One that costs no more than the last, after one that cost nothing, needs no more.
    pub(super) async fn turn_to(&mut self, next: &Offer, bill: Bill<'_>) -> bool {
        let lost = self.lost.clone().and_given_up(bill);
        self.cover(next.worst, lost, Some(&next.model)).await.is_ok()
    }

    /// Sets so much more aside than the worst case of the offer that runs, for an answer that grows.
    pub(super) async fn grow(&mut self, offer: &Offer, extra: Money) -> Result<(), Uncovered> {
        let worst = WorstCase { money: offer.worst.money + extra, ..offer.worst };
        self.cover(worst, self.lost.clone(), None).await
    }

    /// All that is set aside.
    pub(super) fn held(&self) -> Amounts {
        self.held.into()
    }

    /// Sets aside the worst case of an offer twice beside what was lost, for two attempts at once; false where that does not
    /// fit, and then nothing has changed.
    pub(super) async fn cover_two(&mut self, offer: &Offer) -> bool {
        self.cover(offer.worst + offer.worst, self.lost.clone(), None).await.is_ok()
    }

    /// Books what one of two attempts took that was let go for the other.
    pub(super) fn let_go(&mut self, bill: Bill<'_>) {
        let lost = self.lost.clone().and_given_up(bill);
        self.lost = Lost { outrun: lost.outrun + calls(bill.spent), ..lost };
    }

    /// The same for the next step of a cascade: what came before is not delivered, and did not fail.
    pub(super) async fn go_on_to(&mut self, next: &Offer, bill: Bill<'_>) -> bool {
        self.cover(next.worst, self.lost.clone().and(bill), Some(&next.model)).await.is_ok()
    }

    /// Lets what follows be paid from all that the caller's own limit for the request leaves: it is the answer, for which
    /// anything more was kept.
    pub(super) fn free(&mut self, cost_max: Option<Money>) {
        self.cost_max = cost_max;
    }

    /// How much is set aside and neither lost nor taken.
    pub(super) fn left(&self, taken: WorstCase) -> Money {
        self.held.money.saturating_sub(self.lost.sum().money + taken.money)
    }

    /// Sets aside what a call beside the offer needs, which has or will have taken so much itself.
    pub(super) async fn aside(&mut self, worst: WorstCase, own: WorstCase) -> bool {
        let whole = WorstCase { money: own.money + worst.money, thinking: own.thinking + worst.thinking };
        self.cover(whole, self.lost.clone(), None).await.is_ok()
    }

    /// Books what a call beside the offer took.
    pub(super) fn took(&mut self, bill: Bill<'_>) {
        self.lost.take(bill);
    }

    /// What was lost until now.
    pub(super) fn lost(&self) -> Lost {
        self.lost.clone()
    }

    /// The offer that was left is the one that is delivered after all: what was lost since then, it is not. The request is that
    /// model's again, where the limits on it still allow that.
    pub(super) async fn return_to(&mut self, first: &Offer, before: Lost, bill: Bill<'_>) {
        self.lost = before.and(bill);
        if self.reservation.extend(WorstCase::default(), Some(&first.model)).await.is_ok() {
            self.model = first.model.clone();
        }
    }

    /// Sets aside so much beside what is lost then, for another model, if one is named.
    async fn cover(
        &mut self,
        worst: WorstCase,
        lost: Lost,
        model: Option<&Arc<str>>,
    ) -> Result<(), Uncovered> {
        // What was asked for before and came too late is there all the same: it is not asked for twice.
        match self.reservation.extended().await {
            Ok(late) => self.held = self.held + late,
            Err(LedgerError::Stalled) => return Err(Uncovered::Silent),
            Err(_) => {}
        }
        let Part { money, thinking, .. } = lost.sum();
        let whole = WorstCase { money: worst.money + money, thinking: worst.thinking + thinking };
        if let Some(most) = self.cost_max.filter(|most| whole.money > *most) {
            return Err(Uncovered::Own { left: most.saturating_sub(self.held.money) });
        }
        let more = WorstCase {
            money: whole.money.saturating_sub(self.held.money),
            thinking: whole.thinking.saturating_sub(self.held.thinking),
        };
        let moves = model.is_some_and(|model| self.model != *model) || more != WorstCase::default();
        if moves {
            self.reservation.extend(more, model).await?;
        }
        if let Some(model) = model {
            self.model = model.clone();
        }
        self.held =
            WorstCase { money: self.held.money + more.money, thinking: self.held.thinking + more.thinking };
        self.lost = lost;
        Ok(())
    }

    /// Notes what the running offer has taken so far and what was lost before: of what it is likely to have taken by the time that
    /// somebody reads this no more than is set aside, but all that it has taken.
    pub(super) fn meter(&self, cost: Money, likely: Money, spent: &[Spent]) {
        let Part { money, thinking, .. } = self.lost.sum();
        let most = self.held.money.saturating_sub(money);
        // What was counted is posted whole; what is reckoned is not taken for more than there is.
        let counted = if spent.iter().any(|spent| spent.estimated) { cost.min(most) } else { cost };
        let cost = likely.min(most).max(counted);
        self.reservation.meter(cost + money, thought(spent) + thinking);
    }

    /// True where what was lost is reckoned rather than reported.
    pub(super) fn is_estimated(&self) -> bool {
        self.lost.is_estimated
    }

    /// How many attempts were given up.
    pub(super) fn attempts(&self) -> u32 {
        self.lost.attempts
    }

    /// How many of those were given up for one beside them.
    pub(super) fn outrun(&self) -> u32 {
        self.lost.outrun
    }

    /// All tokens of those.
    pub(super) fn given_up(&self) -> Tokens {
        let Part { prompt, thinking, other, .. } = self.lost.sum();
        prompt + thinking + other
    }

    /// What was set aside at most.
    pub(super) fn reserved(&self) -> Money {
        self.held.money
    }

    /// Settles what the last offer took and what was lost before, waits a bounded time until that is durable, and
    /// says what the whole cost.
    pub(super) async fn settle(self, bill: Bill<'_>, detail: SettlementDetail, settings: &Settings) -> Money {
        let (lost, mut parts) = (self.lost.sum(), self.lost.parts);
        parts.add(bill.model, bill.delivered(&detail));
        let cost = bill.cost + lost.money + detail.tools_cost;
        let (prompt, other) = (detail.prompt + lost.prompt, detail.other + lost.other);
        let detail = SettlementDetail { prompt, other, parts, ..detail };
        let settling = self.reservation.settle(cost, thought(bill.spent) + lost.thinking, detail);
        settling.journalled(settings.settle_patience).await;
        cost
    }
}

fn calls(spent: &[Spent]) -> u32 {
    u32::try_from(spent.len()).unwrap_or(u32::MAX)
}

fn thought(spent: &[Spent]) -> Tokens {
    spent.iter().map(Spent::thought).sum()
}

/// What was written, delivered or not, that was no thought.
fn beside_thoughts(spent: &Spent) -> Tokens {
    (spent.completion() + spent.other).saturating_sub(spent.thought())
}

/// What the ledger is told of them, sorted by what it was for.
pub(super) fn detail(spent: &[Spent], outcome: &'static str) -> SettlementDetail {
    let sum = |count: fn(&Spent) -> Tokens| spent.iter().map(count).sum();
    SettlementDetail {
        prompt: sum(Spent::input),
        overhead: sum(|spent| spent.overhead),
        solution: sum(|spent| spent.solution),
        other: sum(|spent| spent.other.saturating_sub(spent.other_thinking)),
        outcome: outcome.into(),
        ..SettlementDetail::default()
    }
}
