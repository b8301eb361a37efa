//! A flight from the inside: runs the offers, and settles whatever happens.

use std::sync::Arc;

use futures_util::future::try_join_all;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::backend::Failure;
use crate::catalog::{Class, Demand, Market, Model, Offer, Plan, Spent, WorstCase};
use crate::chat::{Finish, Request};
use crate::execute::{Halt, Job, Progress, Terms, run};
use crate::ledger::{Reservation, SettlementDetail};
use crate::units::{Money, RequestId, Tokens};

use super::admit::Parts;
use super::{Receipt, Refusal, Report, Settled, observe};

/// An admitted request with all that was decided about it.
pub(super) struct Flying {
    pub(super) parts: Arc<Parts>,
    pub(super) tenant: Arc<str>,
    pub(super) route: Arc<str>,
    pub(super) id: RequestId,
    pub(super) request: Arc<Request>,
    pub(super) demand: Demand,
    pub(super) market: Market,
    pub(super) plan: Plan,
    pub(super) arrived: Instant,
    pub(super) deadline: Instant,
}

/// How the run of one offer ended.
pub(super) enum Landing {
    /// Every choice came to its end.
    Finished(Vec<Finish>),
    /// The backend failed.
    Failed(Failure),
    /// The caller is gone.
    HungUp,
}

/// What offers took that were given up for the next one.
#[derive(Debug, Clone, Copy, Default)]
struct Lost {
    attempts: u32,
    cost: Money,
    thinking: Tokens,
}

impl Flying {
    /// Runs to the end and reports it. The reservation is resolved on every way out.
    pub(super) async fn fly(self, mut reservation: Reservation, reports: mpsc::Sender<Report>) {
        if let Err(error) = reservation.dispatch().await {
            tracing::error!(request = %self.id, error = &error as &dyn std::error::Error, "not dispatched");
            reservation.void();
            observe::outcome(&self, None, "refused");
            let _ = reports.send(Report::Failed(Refusal::Ledger(error))).await;
            return;
        }
        let mut held = self.plan.best.worst;
        let mut lost = Lost::default();
        let mut fallbacks = self.plan.fallbacks.iter();
        let mut offer = &self.plan.best;
        loop {
            let mut progress = self.prepare(offer);
            let landing = self.run(offer, &mut progress, &reports).await;
            let next = match &landing {
                Landing::Failed(failure) if may_fall_back(failure, &progress) => fallbacks.next(),
                _ => None,
            };
            let Some(next) = next else {
                return self.land(offer, landing, &progress, reservation, (held, lost), reports).await;
            };
            self.give_up(offer, &landing, &progress, &mut lost);
            let more = shortfall(next.worst, lost, held);
            match reservation.extend(more).await {
                Ok(()) => {
                    held =
                        WorstCase { money: held.money + more.money, thinking: held.thinking + more.thinking }
                }
                // What does not fit any more is not tried; the first failure stands.
                Err(_) => return self.land(offer, landing, &[], reservation, (held, lost), reports).await,
            }
            offer = next;
        }
    }

    /// Runs every choice of an offer at once, until all have ended, one has failed, or the caller is gone.
    async fn run(&self, offer: &Offer, progress: &mut [Progress], reports: &mpsc::Sender<Report>) -> Landing {
        let Some(backend) = self.parts.backends.get(&offer.model) else {
            return Landing::Failed(
                Failure::new(crate::backend::Fault::Backend, "no backend serves it").unsent(),
            );
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
        let runs = jobs.iter().zip(progress).map(|(job, progress)| run(job, progress, reports));
        tokio::select! {
            biased;
            () = reports.closed() => Landing::HungUp,
            ended = try_join_all(runs) => match ended {
                Ok(finishes) => Landing::Finished(finishes),
                Err(Halt::HungUp) => Landing::HungUp,
                Err(Halt::Failed(failure)) => Landing::Failed(failure),
            },
        }
    }

    /// How long before a stated deadline the thought must be over: what the answer takes at the measured speed.
    fn cut_before(&self, offer: &Offer) -> Option<std::time::Duration> {
        self.request.budget.deadline?;
        if offer.class == Class::Effort {
            return None;
        }
        let pace = self.market.conditions(&offer.model);
        let overhead = self.model(offer).map_or(Tokens::ZERO, |model| model.hand_off.overhead);
        let prompt = self.prompt(offer) + offer.thinking;
        let seconds = (offer.solution + overhead).as_f64() * pace.token + prompt.as_f64() * pace.prefill;
        Some(std::time::Duration::try_from_secs_f64(seconds).unwrap_or_default())
    }

    fn prepare(&self, offer: &Offer) -> Vec<Progress> {
        let model = self.model(offer);
        let terms = Terms {
            class: offer.class,
            thinking: offer.thinking,
            solution: offer.solution,
            overhead: model.map_or(Tokens::ZERO, |model| model.hand_off.overhead),
            effort: offer.effort.clone(),
            effort_least: model.and_then(|model| model.efforts.first()).map(|level| level.word.clone()),
            prompt: self.prompt(offer),
            stop: self.request.sampling.stop.clone(),
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

    /// The next offer is tried: what this one took is added to what is lost.
    fn give_up(&self, offer: &Offer, landing: &Landing, progress: &[Progress], lost: &mut Lost) {
        if let Landing::Failed(failure) = landing {
            tracing::warn!(request = %self.id, model = %offer.model, fault = failure.fault.word(), %failure, "fell back");
            self.parts.metrics.requests.fallbacks.with_label_values(&[&*offer.model]).inc();
            observe::backend(&self.parts.metrics, &offer.model, false);
        }
        let spent = taken(landing, progress);
        lost.attempts += self.request.choices;
        lost.cost += self.cost(offer, &spent);
        lost.thinking += spent.iter().map(|spent| spent.thinking).sum();
    }

    fn cost(&self, offer: &Offer, spent: &[Spent]) -> Money {
        let Some(prices) = self.model(offer).and_then(|model| model.prices) else { return Money::ZERO };
        spent.iter().map(|spent| prices.cost(spent.input(), spent.output())).sum()
    }

    /// Settles and reports the end.
    async fn land(
        &self,
        offer: &Offer,
        landing: Landing,
        progress: &[Progress],
        reservation: Reservation,
        (held, lost): (WorstCase, Lost),
        reports: mpsc::Sender<Report>,
    ) {
        let spent = taken(&landing, progress);
        let cost = self.cost(offer, &spent) + lost.cost;
        let thinking = spent.iter().map(|spent| spent.thinking).sum::<Tokens>() + lost.thinking;
        let outcome = match &landing {
            Landing::Finished(_) => "finished",
            Landing::Failed(_) => "failed",
            Landing::HungUp => "hung_up",
        };
        let settling = reservation.settle(cost, thinking, detail(offer, &spent, outcome));
        let booked = settling.journalled(self.parts.settings.settle_patience).await;
        if booked.overrun > Money::ZERO {
            tracing::error!(request = %self.id, model = %offer.model, overrun = %booked.overrun, "overrun");
        }
        observe::landed(self, offer, progress, &spent, (cost, booked.overrun, outcome));
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
                    reserved: held.money,
                    attempts: lost.attempts,
                    why: self.plan.why.clone(),
                }))
            }
        };
        let _ = reports.send(report).await;
    }
}

/// Another offer may be tried while the caller has seen nothing and the fault is not the caller's.
fn may_fall_back(failure: &Failure, progress: &[Progress]) -> bool {
    let unseen = progress.iter().all(|choice| choice.first.is_none());
    unseen && failure.fault != crate::backend::Fault::Caller
}

/// What each choice took. A call that never reached a model took nothing.
fn taken(landing: &Landing, progress: &[Progress]) -> Vec<Spent> {
    let unsent = matches!(landing, Landing::Failed(failure) if failure.unsent);
    let spent = |choice: &Progress| {
        let spent = choice.phases.spent();
        if unsent && spent.output() == Tokens::ZERO { Spent::default() } else { spent }
    };
    progress.iter().map(spent).collect()
}

/// What is missing of the next offer's worst case, after what was lost.
fn shortfall(next: WorstCase, lost: Lost, held: WorstCase) -> WorstCase {
    WorstCase {
        money: (next.money + lost.cost).saturating_sub(held.money),
        thinking: (next.thinking + lost.thinking).saturating_sub(held.thinking),
    }
}

fn detail(offer: &Offer, spent: &[Spent], outcome: &'static str) -> SettlementDetail {
    let sum = |count: fn(&Spent) -> Tokens| spent.iter().map(count).sum();
    SettlementDetail {
        model: Some(offer.model.clone()),
        prompt: sum(Spent::input),
        overhead: sum(|spent| spent.overhead),
        solution: sum(|spent| spent.solution),
        other: sum(|spent| spent.other),
        outcome: outcome.into(),
    }
}
