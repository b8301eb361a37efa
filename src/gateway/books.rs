//! One flight's money: what is set aside for it, and what was lost on offers that failed.

use std::sync::Arc;

use tokio::time::Instant;

use crate::catalog::{Offer, Spent, WorstCase};
use crate::idempotency::Ticket;
use crate::ledger::{Reservation, SettlementDetail};
use crate::units::{Money, Tokens};

use super::admit::Parts;
use super::flying::depart;
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

/// What offers took that were given up for the next one.
#[derive(Debug, Clone, Copy, Default)]
struct Lost {
    attempts: u32,
    cost: Money,
    thinking: Tokens,
    /// What they read.
    prompt: Tokens,
    /// What they wrote besides thoughts.
    other: Tokens,
}

impl Books {
    pub(super) fn new(reservation: Reservation, first: &Offer, cost_max: Option<Money>) -> Books {
        let (held, model) = (first.worst, first.model.clone());
        Books { reservation, held, model, cost_max, lost: Lost::default(), departed: false }
    }

    /// Makes durable, once, what must be before anything is sent.
    pub(super) async fn depart(
        &mut self,
        parts: &Parts,
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
    pub(super) async fn turn_to(&mut self, next: &Offer, cost: Money, spent: &[Spent]) -> bool {
        let lost = Lost {
            attempts: self.lost.attempts + u32::try_from(spent.len()).unwrap_or(u32::MAX),
            cost: self.lost.cost + cost,
            thinking: self.lost.thinking + thought(spent),
            prompt: self.lost.prompt + spent.iter().map(Spent::input).sum(),
            other: self.lost.other + spent.iter().map(beside_thoughts).sum(),
        };
        let whole =
            WorstCase { money: next.worst.money + lost.cost, thinking: next.worst.thinking + lost.thinking };
        if self.cost_max.is_some_and(|most| whole.money > most) {
            return false;
        }
        let more = WorstCase {
            money: whole.money.saturating_sub(self.held.money),
            thinking: whole.thinking.saturating_sub(self.held.thinking),
        };
        let moves = self.model != next.model || more != WorstCase::default();
        if moves && self.reservation.extend(more, Some(&next.model)).await.is_err() {
            return false;
        }
        self.model = next.model.clone();
        self.held =
            WorstCase { money: self.held.money + more.money, thinking: self.held.thinking + more.thinking };
        self.lost = lost;
        true
    }

    /// Notes what the running offer has taken so far and what was lost before.
    pub(super) fn meter(&self, cost: Money, spent: &[Spent]) {
        self.reservation.meter(cost + self.lost.cost, thought(spent) + self.lost.thinking);
    }

    /// How many attempts were given up.
    pub(super) fn attempts(&self) -> u32 {
        self.lost.attempts
    }

    /// All tokens of those.
    pub(super) fn given_up(&self) -> Tokens {
        self.lost.prompt + self.lost.thinking + self.lost.other
    }

    /// What was set aside at most.
    pub(super) fn reserved(&self) -> Money {
        self.held.money
    }

    /// Settles what the last offer took and what was lost before, waits a bounded time until that is durable, and
    /// says what the whole cost.
    pub(super) async fn settle(
        self,
        cost: Money,
        spent: &[Spent],
        detail: SettlementDetail,
        settings: &Settings,
    ) -> Money {
        let cost = cost + self.lost.cost;
        let detail = SettlementDetail {
            prompt: detail.prompt + self.lost.prompt,
            other: detail.other + self.lost.other,
            ..detail
        };
        let settling = self.reservation.settle(cost, thought(spent) + self.lost.thinking, detail);
        settling.journalled(settings.settle_patience).await;
        cost
    }
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
    }
}
