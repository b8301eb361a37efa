//! A flight from the inside: runs the offers, and settles whatever happens.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::backend::{Failure, Fault};
use crate::catalog::{Class, Demand, Market, Model, Offer, Plan, Spent};
use crate::chat::{Finish, Request};
use crate::execute::{Halt, Job, Meter, Progress, Terms, run};
use crate::idempotency::Ticket;
use crate::ledger::{Reservation, SettlementDetail};
use crate::units::{Money, RequestId, Tokens};

use super::admit::{EXPIRY_MARGIN, Parts};
use super::books::Books;
use super::demotions::Demotions;
use super::observe::{self, Landed};
use super::{Receipt, Refusal, Report, Settled};

/// An admitted request with all that was decided about it.
pub(super) struct Flying {
    pub(super) parts: Arc<Parts>,
    pub(super) demotions: Arc<Demotions>,
    pub(super) route: Arc<str>,
    pub(super) id: RequestId,
    pub(super) ticket: Option<Ticket>,
    pub(super) request: Arc<Request>,
    pub(super) demand: Demand,
    pub(super) market: Market,
    pub(super) plan: Plan,
    pub(super) arrived: Instant,
    pub(super) deadline: Instant,
}

/// How the run of one offer ended.
enum Landing {
    /// Every choice came to its end.
    Finished(Vec<Finish>),
    /// The backend failed.
    Failed(Failure),
    /// The caller is gone.
    HungUp,
}

impl Landing {
    /// The word in metrics and the journal.
    fn word(&self) -> &'static str {
        match self {
            Landing::Finished(_) => "finished",
            Landing::Failed(_) => "failed",
            Landing::HungUp => "hung_up",
        }
    }
}

impl Flying {
    /// Runs to the end and reports it. The reservation is resolved on every way out.
    pub(super) async fn fly(self, mut reservation: Reservation, reports: mpsc::Sender<Report>) {
        let departed = depart(&self.parts, self.ticket.as_ref(), self.deadline, &mut reservation).await;
        if let Err(refusal) = departed {
            tracing::error!(request = %self.id, error = &refusal as &dyn std::error::Error, "not dispatched");
            reservation.void();
            observe::request(&self, "none", "refused");
            let _ = reports.send(Report::Failed(refusal)).await;
            return;
        }
        let mut books = Books::new(reservation, self.plan.best.worst, self.request.budget.cost);
        let mut fallbacks = self.plan.fallbacks.iter();
        let mut offer = &self.plan.best;
        loop {
            let mut progress = self.prepare(offer);
            let landing = self.run(offer, &mut progress, &books, &reports).await;
            let next = match &landing {
                Landing::Failed(failure) if may_fall_back(failure, &progress) => fallbacks.next(),
                _ => None,
            };
            let lost = taken(&progress);
            // What does not fit any more is not tried; the first failure stands.
            match next {
                Some(next) if books.turn_to(next, self.cost(offer, &lost), &lost).await => {
                    self.give_up(offer, &landing);
                    offer = next;
                }
                _ => return self.land(offer, landing, &progress, books, reports).await,
            }
        }
    }

    /// Runs every choice of an offer at once, until all have ended, one has failed, or the caller is gone.
    async fn run(
        &self,
        offer: &Offer,
        progress: &mut [Progress],
        books: &Books,
        reports: &mpsc::Sender<Report>,
    ) -> Landing {
        let Some(backend) = self.parts.backends.get(&offer.model) else {
            return Landing::Failed(Failure::new(Fault::Backend, "no backend serves it").unsent());
        };
        let _aloft = observe::Aloft::new(&self.parts.metrics, &offer.model);
        let seed = self.request.sampling.seed.unwrap_or_else(|| self.id.seed());
        let jobs: Vec<Job> = (0..self.request.choices)
            .map(|index| Job {
                backend: backend.clone(),
                request: self.request.clone(),
                index,
                seed: seed.wrapping_add(u64::from(index)),
                deadline: self.deadline,
                cut_before: self.cut_before(offer),
            })
            .collect();
        let meters: Vec<Meter> = progress.iter().map(|choice| choice.meter.clone()).collect();
        let runs = jobs.iter().zip(progress).map(|(job, progress)| run(job, progress, reports));
        tokio::select! {
            biased;
            () = reports.closed() => Landing::HungUp,
            ended = try_join_all(runs) => match ended {
                Ok(finishes) => Landing::Finished(finishes),
                Err(Halt::HungUp) => Landing::HungUp,
                Err(Halt::Failed(failure)) => Landing::Failed(failure),
            },
            never = self.meter(offer, &meters, books) => match never {},
        }
    }

    /// Notes in the ledger, now and then, what a long run has taken so far.
    async fn meter(&self, offer: &Offer, meters: &[Meter], books: &Books) -> Infallible {
        loop {
            tokio::time::sleep(self.parts.settings.meter_every).await;
            let spent: Vec<Spent> = meters.iter().map(Meter::read).collect();
            books.meter(self.cost(offer, &spent), &spent);
        }
    }

    /// How long before a stated deadline the thought must be over: what the answer takes at the measured speed,
    /// or a quarter of the time where nothing was measured yet.
    fn cut_before(&self, offer: &Offer) -> Option<Duration> {
        let stated = self.request.budget.deadline?;
        offer.resume?;
        let pace = self.market.conditions(&offer.model);
        if pace.token <= 0.0 {
            return Some(stated / 4);
        }
        let prompt = self.prompt(offer) + offer.thinking;
        let seconds =
            (offer.solution + offer.overhead).as_f64() * pace.token + prompt.as_f64() * pace.prefill;
        Some(Duration::try_from_secs_f64(seconds).unwrap_or(stated))
    }

    fn prepare(&self, offer: &Offer) -> Vec<Progress> {
        let least = self.model(offer).and_then(|model| model.efforts.first());
        let terms = Terms {
            class: offer.class,
            resume: offer.resume,
            thinking: offer.thinking,
            solution: offer.solution,
            overhead: offer.overhead,
            effort: offer.effort.clone(),
            rescue: offer.rescue,
            effort_least: least.map(|level| level.word.clone()),
            prompt: self.prompt(offer),
            stop: self.request.sampling.stop.clone(),
            form: self.request.form,
        };
        (0..self.request.choices).map(|_| Progress::new(terms.clone())).collect()
    }

    fn model(&self, offer: &Offer) -> Option<&Model> {
        self.parts.catalog.models.get(&offer.model).map(AsRef::as_ref)
    }

    /// An upper bound of the prompt.
    fn prompt(&self, offer: &Offer) -> Tokens {
        self.demand.models.get(&offer.model).map_or(Tokens::ZERO, |demand| demand.prompt)
    }

    fn cost(&self, offer: &Offer, spent: &[Spent]) -> Money {
        let Some(tariff) = self.model(offer).and_then(|model| model.tariff) else { return Money::ZERO };
        spent.iter().map(|spent| spent.cost(&tariff)).sum()
    }

    /// The next offer is tried instead.
    fn give_up(&self, offer: &Offer, landing: &Landing) {
        if let Landing::Failed(failure) = landing {
            tracing::warn!(request = %self.id, model = %offer.model, fault = failure.fault.word(), %failure, "fell back");
        }
        self.parts.metrics.requests.fallbacks.with_label_values(&[&*offer.model]).inc();
        observe::backend(&self.parts.metrics, &offer.model, false);
    }

    /// What decided; after a fallback, that too.
    fn why(&self, offer: &Offer, attempts: u32) -> String {
        let planned = &self.plan.why;
        match attempts {
            0 => planned.clone(),
            _ => format!(
                "{} failed and {} took over; planned was: {planned}",
                self.plan.best.model, offer.model
            ),
        }
    }

    /// Believes a native budget only as long as it holds.
    fn verify(&self, offer: &Offer, spent: &[Spent]) {
        if offer.class != Class::Native || spent.iter().all(|spent| !spent.overran) {
            return;
        }
        let used = spent.iter().map(|spent| spent.thinking).max();
        self.parts.metrics.thinking.overran.with_label_values(&[&*offer.model]).inc();
        if let Some(class) = self.model(offer).and_then(|model| self.demotions.demote(model)) {
            self.parts.metrics.thinking.demotions.with_label_values(&[&*offer.model]).inc();
            tracing::warn!(
                request = %self.id, model = %offer.model, budget = %offer.thinking, used = ?used, now = class.word(),
                "demoted: the provider's thinking budget did not hold"
            );
        }
    }

    /// Settles and reports the end.
    async fn land(
        &self,
        offer: &Offer,
        landing: Landing,
        progress: &[Progress],
        books: Books,
        reports: mpsc::Sender<Report>,
    ) {
        let spent = taken(progress);
        let (attempts, given_up, reserved) = (books.attempts(), books.given_up(), books.reserved());
        let detail = detail(&spent, landing.word());
        let cost = books.settle(self.cost(offer, &spent), &spent, detail, &self.parts.settings).await;
        let used_nothing = cost == Money::ZERO && spent.iter().all(|spent| spent.thought() == Tokens::ZERO);
        match (&self.ticket, &landing) {
            (Some(ticket), Landing::Failed(_) | Landing::HungUp) if used_nothing => ticket.cost_nothing(),
            _ => {}
        }
        observe::landed(self, &Landed { offer, progress, spent: &spent, outcome: landing.word() });
        self.verify(offer, &spent);
        let report = match landing {
            Landing::HungUp => return,
            Landing::Failed(failure) => {
                tracing::warn!(request = %self.id, model = %offer.model, fault = failure.fault.word(), %failure, "failed");
                Report::Failed(Refusal::Failed(failure))
            }
            Landing::Finished(finishes) => {
                let choices =
                    finishes.into_iter().zip(spent).map(|(finish, spent)| Settled { finish, spent });
                Report::Done(Box::new(Receipt {
                    id: self.id,
                    model: offer.model.clone(),
                    class: offer.class,
                    thinking: offer.thinking,
                    solution: offer.solution,
                    choices: choices.collect(),
                    cost,
                    reserved,
                    attempts,
                    given_up,
                    why: self.why(offer, attempts),
                }))
            }
        };
        let _ = reports.send(report).await;
    }
}

/// Makes durable what must be before anything is sent. The idempotency key goes first: a crash in between costs the
/// caller an answer, never a second charge.
pub(super) async fn depart(
    parts: &Parts,
    ticket: Option<&Ticket>,
    deadline: Instant,
    reservation: &mut Reservation,
) -> Result<(), Refusal> {
    let Some(ticket) = ticket else {
        return reservation.dispatch().await.map_err(Refusal::Ledger);
    };
    let now = parts.ledger.now();
    let until = now + deadline.saturating_duration_since(Instant::now()) + EXPIRY_MARGIN;
    ticket.begin(reservation.id(), now, until).await?;
    reservation.dispatch().await.map_err(Refusal::Ledger)?;
    ticket.sent();
    Ok(())
}

/// Another offer may be tried while the caller has seen nothing and the fault is not the caller's.
fn may_fall_back(failure: &Failure, progress: &[Progress]) -> bool {
    let unseen = progress.iter().all(|choice| choice.first.is_none());
    unseen && failure.fault != Fault::Caller
}

/// What each choice took.
fn taken(progress: &[Progress]) -> Vec<Spent> {
    progress.iter().map(|choice| choice.phases.spent()).collect()
}

fn detail(spent: &[Spent], outcome: &'static str) -> SettlementDetail {
    let sum = |count: fn(&Spent) -> Tokens| spent.iter().map(count).sum();
    SettlementDetail {
        prompt: sum(Spent::input),
        overhead: sum(|spent| spent.overhead),
        solution: sum(|spent| spent.solution),
        other: sum(|spent| spent.other.saturating_sub(spent.other_thinking)),
        outcome: outcome.into(),
    }
}
