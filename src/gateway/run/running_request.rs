//! A flight from the inside: runs the offers, and settles whatever happens.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::backend::fleet::{AffinityKey, FlowId, Permit};
use crate::catalog::{ChoiceUsage, Demand, Market, Model, Offer, Plan, Route};
use crate::chat::Request;
use crate::execute::{ChoiceError, ChoiceJob, ChoiceProgress, ChoiceTerms, Meter, generate_choice};
use crate::idempotency::IdempotencyTicket;
use crate::ledger::{LimitStatus, RequestScope, Reservation};
use crate::units::{AccountId, Money, Priority, RequestId, Tokens};

use super::attempts::Attempts;
use super::growth::ReservationGrowth;
use super::join_choices::join_all;
use super::no_answer;
use crate::gateway::admit::rollout::ObservedPlan;
use crate::gateway::episodes::RunningStep;
use crate::gateway::finish::request_record::DecisionContext;
use crate::gateway::finish::{AttemptResult, request_metrics};
use crate::gateway::handle::{EXPIRY_MARGIN, GatewayParts};
use crate::gateway::request::reservation::{Bill, RequestReservation};
use crate::gateway::request::scope;
use crate::gateway::state::demotions::Demotions;
use crate::gateway::state::pacing::Pacing;
use crate::gateway::state::verifiers::Verifiers;
use crate::gateway::state::withdrawals::Withdrawals;
use crate::gateway::{RequestObserver, RequestRefusal, RequestUpdate, feedback};

/// An admitted request with all that was decided about it.
pub(in crate::gateway) struct RunningRequest {
    pub(in crate::gateway) parts: Arc<GatewayParts>,
    pub(in crate::gateway) demotions: Arc<Demotions>,
    pub(in crate::gateway) withdrawals: Arc<Withdrawals>,
    pub(in crate::gateway) verifiers: Arc<Verifiers>,
    pub(in crate::gateway) route: Arc<str>,
    /// What is wanted of whoever serves it.
    pub(in crate::gateway) policy: Route,
    /// Those who could.
    pub(in crate::gateway) models: Vec<Arc<Model>>,
    pub(in crate::gateway) account: AccountId,
    pub(in crate::gateway) id: RequestId,
    pub(in crate::gateway) ticket: Option<IdempotencyTicket>,
    pub(in crate::gateway) observer: Option<Arc<dyn RequestObserver>>,
    pub(in crate::gateway) request: Arc<Request>,
    pub(in crate::gateway) beginning: AffinityKey,
    pub(in crate::gateway) party: FlowId,
    pub(in crate::gateway) priority: Priority,
    pub(in crate::gateway) demand: Demand,
    pub(in crate::gateway) market: Market,
    pub(in crate::gateway) plan: Plan,
    pub(in crate::gateway) decision_context: DecisionContext,
    /// The step of a run that it is, if it is one.
    pub(in crate::gateway) step: Option<RunningStep>,
    /// By whose rules it was planned, in a word.
    pub(in crate::gateway) decided_by: Arc<str>,
    /// What would have been decided, where that is only watched.
    pub(in crate::gateway) observed: Option<ObservedPlan>,
    pub(in crate::gateway) pacing: Arc<Pacing>,
    /// Those limits whose pace it is held to, and what it was expected to cost.
    pub(in crate::gateway) paced: Vec<LimitStatus>,
    pub(in crate::gateway) expected: Money,
    pub(in crate::gateway) arrived: Instant,
    pub(in crate::gateway) deadline: Instant,
}

impl RunningRequest {
    /// Runs to the end and reports it. The reservation is resolved on every way out.
    pub(in crate::gateway) async fn serve(
        mut self,
        reservation: Reservation,
        reports: mpsc::Sender<RequestUpdate>,
    ) {
        let stepped = self.step.as_ref();
        let cost_max = [self.request.budget.cost, stepped.and_then(|stepping| stepping.money_max)];
        let cost_max = cost_max.into_iter().flatten().min();
        let mut books = RequestReservation::new(reservation, &self.plan.best, cost_max);
        self.probe(&mut books, &reports).await;
        let mut attempts = Attempts::at(&self);
        let mut boarded = self.acquire(&mut attempts, &reports).await;
        loop {
            let (mut progress, mut growth) = self.prepare(attempts.offer);
            let landing = match boarded {
                Ok(seat) => {
                    let (ticket, deadline) = (self.ticket.as_ref(), self.deadline);
                    if let Err(refusal) = books.record_dispatch(&self.parts, ticket, deadline).await {
                        // The ledger has said that its database is gone, once.
                        tracing::debug!(request = %self.id, error = &refusal as &dyn std::error::Error, "not dispatched");
                        return self.abort(books, Some(refusal), &reports).await;
                    }
                    let (landing, seat) = self
                        .attempt(seat, &mut attempts, (&mut progress, &mut growth), &mut books, &reports)
                        .await;
                    if let AttemptResult::Failed(failure) = &landing {
                        self.count_failure(attempts.offer, &seat, failure);
                        self.start_trials(attempts.offer, failure);
                    }
                    landing
                }
                Err(landing) => {
                    progress.clear();
                    landing
                }
            };
            match self.next_attempt(&mut attempts, (&landing, &progress), &mut books, &reports).await {
                Some(next) => boarded = next,
                None => {
                    let flown = self.conclude(attempts.offer, landing, progress, &mut books, &reports).await;
                    let flown = self.retry_mute_choices(flown, &mut books, &reports).await;
                    return self.finish(flown, books, reports).await;
                }
            }
        }
    }

    /// Nothing was sent: everything is given back.
    pub(in crate::gateway) async fn abort(
        &self,
        books: RequestReservation,
        refusal: Option<RequestRefusal>,
        reports: &mpsc::Sender<RequestUpdate>,
    ) {
        books.void();
        self.pacing.record_settlement(&self.account, &self.paced, self.expected, Money::ZERO);
        let Some(refusal) = refusal else { return request_metrics::request(self, "none", "hung_up") };
        request_metrics::request(self, "none", "refused");
        let _ = reports.send(RequestUpdate::Failed(refusal)).await;
    }

    /// Runs every choice of an offer at once on one target, until all have ended, one has failed, or the caller is gone.
    pub(in crate::gateway) async fn run(
        &self,
        seat: &Permit,
        offer: &Offer,
        (progress, growth): (&mut Vec<ChoiceProgress>, &mut Option<ReservationGrowth>),
        books: &mut RequestReservation,
        reports: &mpsc::Sender<RequestUpdate>,
    ) -> AttemptResult {
        if self.votes(offer) {
            return self.vote(seat, offer, (progress, growth), books, reports).await;
        }
        let jobs = self.jobs(seat, offer, &self.request);
        let meters = meters(progress);
        tokio::select! {
            biased;
            () = reports.closed() => AttemptResult::HungUp,
            landing = choices(&jobs, progress, reports) => landing,
            never = self.meter_and_grow(offer, &meters, growth.as_mut(), books) => match never {},
        }
    }

    /// One for each choice.
    pub(in crate::gateway) fn jobs(
        &self,
        seat: &Permit,
        offer: &Offer,
        request: &Arc<Request>,
    ) -> Vec<ChoiceJob> {
        self.notify_dispatch(seat, offer);
        let backend = seat.backend();
        let seed = request.sampling.seed.unwrap_or_else(|| self.id.seed());
        let job = |index| ChoiceJob {
            backend: backend.clone(),
            request: request.clone(),
            index,
            seed: seed.wrapping_add(u64::from(index)),
            deadline: self.deadline,
            cut_before: self.cut_before(offer),
        };
        (0..request.choices).map(job).collect()
    }

    /// Tells who wants to know where it goes.
    pub(in crate::gateway) fn notify_dispatch(&self, seat: &Permit, offer: &Offer) {
        self.observer.iter().for_each(|observer| observer.dispatched(&offer.model, seat.target()));
    }

    /// How long before a stated deadline the thought must be over: what a usual answer takes at the measured speed,
    /// or a quarter of the time where nothing was measured yet.
    fn cut_before(&self, offer: &Offer) -> Option<Duration> {
        let stated = self.request.budget.deadline?;
        offer.resume?;
        let pace = self.market.conditions(&offer.model);
        if pace.token <= 0.0 {
            return Some(stated / 4);
        }
        let prompt = self.prompt(offer) + offer.thinking;
        let answer = self.usual_answer(offer) + offer.overhead;
        let seconds = answer.as_f64() * pace.token + prompt.as_f64() * pace.prefill;
        Some(Duration::try_from_secs_f64(seconds).unwrap_or(stated))
    }

    /// What an answer to an offer usually takes; its limit says nothing of that.
    fn usual_answer(&self, offer: &Offer) -> Tokens {
        let demand = self.demand.models.get(&offer.model);
        demand.map_or(offer.solution, |demand| demand.solution_usual().min(offer.solution))
    }

    /// A place for every sample of every choice, and how their answers grow beyond what is set aside at first, where they may.
    pub(in crate::gateway) fn prepare(
        &self,
        offer: &Offer,
    ) -> (Vec<ChoiceProgress>, Option<ReservationGrowth>) {
        let terms = terms(offer, self.model(offer), self.prompt(offer), &self.request);
        let growth = ReservationGrowth::of(offer, self.request.choices);
        let choice = |_| {
            let progress = feedback::with_transcript(&self.request, ChoiceProgress::new(terms.clone()));
            let progress = match &growth {
                Some(growth) => growth.join(progress, offer),
                None => progress,
            };
            match &self.step {
                Some(stepping) => progress.with_tool_filter(stepping.passing()),
                None => progress,
            }
        };
        let choices = (0..self.request.choices * offer.samples.max(1)).map(choice).collect();
        (choices, growth)
    }

    /// What it is about, as limits care, while that offer serves it.
    pub(in crate::gateway) fn limit_scope(&self, offer: &Offer) -> RequestScope {
        let episode = self.step.as_ref().map(|stepping| stepping.episode.id.clone());
        RequestScope { model: Some(offer.model.clone()), episode, ..scope::of(&self.request.extra) }
    }

    pub(in crate::gateway) fn model(&self, offer: &Offer) -> Option<&Model> {
        self.parts.catalog.models.get(&offer.model).map(AsRef::as_ref)
    }

    /// An upper bound of the prompt.
    pub(in crate::gateway) fn prompt(&self, offer: &Offer) -> Tokens {
        self.demand.models.get(&offer.model).map_or(Tokens::ZERO, |demand| demand.prompt)
    }

    /// What a run of an offer took.
    pub(in crate::gateway) fn bill<'s>(&self, offer: &'s Offer, spent: &'s [ChoiceUsage]) -> Bill<'s> {
        Bill { model: &offer.model, cost: self.cost(offer, spent), spent }
    }

    pub(in crate::gateway) fn cost(&self, offer: &Offer, spent: &[ChoiceUsage]) -> Money {
        let Some(tariff) = self.model(offer).and_then(|model| model.tariff) else { return Money::ZERO };
        spent.iter().map(|spent| spent.cost(&tariff)).sum()
    }
}

/// Runs every choice to its end.
pub(in crate::gateway) async fn choices(
    jobs: &[ChoiceJob],
    progress: &mut [ChoiceProgress],
    reports: &mpsc::Sender<RequestUpdate>,
) -> AttemptResult {
    let meters = meters(progress);
    let runs =
        jobs.iter().zip(progress.iter_mut()).map(|(job, progress)| generate_choice(job, progress, reports));
    match join_all(runs, &meters).await {
        Ok(finishes) => {
            let failure =
                jobs.first().and_then(|job| no_answer::of(progress, &finishes, &job.request.budget));
            failure.map_or(AttemptResult::Finished(finishes), AttemptResult::Failed)
        }
        Err(ChoiceError::Disconnected) => AttemptResult::HungUp,
        Err(ChoiceError::Failed(failure)) => AttemptResult::Failed(failure),
    }
}

/// What can be watched of each choice.
pub(in crate::gateway) fn meters(progress: &[ChoiceProgress]) -> Vec<Meter> {
    progress.iter().map(|choice| choice.meter.clone()).collect()
}

/// How an offer is run on a request whose prompt is at most so long.
pub(in crate::gateway) fn terms(
    offer: &Offer,
    model: Option<&Model>,
    prompt: Tokens,
    request: &Request,
) -> ChoiceTerms {
    let least = model.and_then(|model| model.efforts.first());
    ChoiceTerms {
        class: offer.class,
        resume: offer.resume,
        thinking: offer.thinking,
        solution: offer.solution,
        answer_takes_rest: offer.answer_takes_rest,
        solution_by: offer.solution_by,
        tells_limit: offer.tells_limit,
        overhead: offer.overhead,
        effort: offer.effort.clone(),
        visible_max: visible_max(offer, request),
        continuation: offer.continuation,
        rescue: offer.rescue,
        effort_least: least.map(|level| level.word.clone()),
        prompt,
        has_free_input: model.and_then(|model| model.tariff).is_none_or(|tariff| tariff.has_free_input()),
        cache_ttl: request.cache_ttl(),
        stop: request.sampling.stop.clone(),
        kind: request.kind,
    }
}

/// A part of what a stated limit leaves a thought that shows though it was to be hidden: the rest is its answer's.
const THOUGHT_PARTS: (u64, u64) = (3, 4);

/// Where a thought is cut that shows, though its upstream was taken to hide it. A word for how hard to think cuts nothing by
/// itself: only where a limit was stated too must the thought leave room for its answer.
fn visible_max(offer: &Offer, request: &Request) -> Option<Tokens> {
    if let Some(stated) = request.budget.thinking {
        return Some(stated);
    }
    let (part, whole) = THOUGHT_PARTS;
    let most = Tokens((offer.thinking + offer.solution).0 / whole * part);
    offer.tells_limit.then(|| offer.thinking.max(most))
}

/// Makes durable what must be before anything is sent. The idempotency key goes first: a crash in between costs the
/// caller an answer, never a second charge.
pub(in crate::gateway) async fn record_dispatch(
    parts: &GatewayParts,
    ticket: Option<&IdempotencyTicket>,
    deadline: Instant,
    reservation: &mut Reservation,
) -> Result<(), RequestRefusal> {
    let Some(ticket) = ticket else {
        return reservation.dispatch().await.map_err(RequestRefusal::Ledger);
    };
    let now = parts.ledger.now();
    let until = now + deadline.saturating_duration_since(Instant::now()) + EXPIRY_MARGIN;
    ticket.begin(reservation.id(), now, until).await?;
    reservation.dispatch().await.map_err(RequestRefusal::Ledger)?;
    ticket.mark_sent();
    Ok(())
}

/// What each choice took.
pub(in crate::gateway) fn spent_by_choice(progress: &[ChoiceProgress]) -> Vec<ChoiceUsage> {
    progress.iter().map(ChoiceProgress::spent).collect()
}
