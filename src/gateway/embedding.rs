//! Serves embeddings (vectors of texts). They need no plan and no phases, but use the same keys, limits and ledger.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;

use stint_backend::fleet::{AffinityKey, Fleet, FlowId, Permit, PermitRequest};
use stint_backend::{EmbeddingResult, Failure, Fault, Retry};
use stint_decide::plan;
use stint_ledger::{RequestScope, Reservation, ReservationRequest, SettlementDetail};
use stint_prompt::token_bound;
use stint_sessions::agent::EpisodeOwner;
use stint_sessions::idempotency::IdempotencyTicket;
use stint_types::catalog::{BilledCall, MemberAction, Model, Service, WorstCase};
use stint_types::chat::{CacheTtl, EmbeddingInputs, EmbeddingRequest};
use stint_types::metrics::OTHER;
use stint_types::tenant::Tenant;
use stint_types::units::{Money, Priority, RequestId, Timestamp, Tokens};

use super::episodes::{EpisodeSnapshot, NonTurnSpend};
use super::finish::ended_word;
use super::handle::Gateway;
use super::request::{EXPIRY_MARGIN, record_dispatch, scope};
use super::state::{GatewayParts, GatewayState};
use super::{Denial, RequestRefusal, key_scope};

/// Vectors that were made, and what they cost.
#[derive(Debug)]
pub struct EmbeddingOutcome {
    /// The request.
    pub id: RequestId,
    /// Who made them.
    pub model: Arc<str>,
    /// One for each text, in order, as the upstream wrote them.
    pub vectors: EmbeddingResult,
    /// What was read.
    pub prompt: Tokens,
    /// True if that was reckoned, not reported.
    pub estimated: bool,
    /// What it cost, as the books have it; nothing if that is not known.
    pub cost: Option<Money>,
    /// What was reserved for it.
    pub reserved: Money,
    /// How the run stands whose money it spent.
    pub episode: Option<EpisodeSnapshot>,
}

/// Where an outcome goes.
type EmbeddingSender = oneshot::Sender<Result<EmbeddingOutcome, RequestRefusal>>;

/// One call for vectors with everything that was decided about it.
struct EmbeddingTask {
    state: Arc<GatewayState>,
    id: RequestId,
    model: Arc<Model>,
    ask: Arc<EmbeddingRequest>,
    ticket: Option<IdempotencyTicket>,
    bound: Tokens,
    reserved: Money,
    /// The run whose money it spends.
    episode: Option<NonTurnSpend>,
    flow: FlowId,
    priority: Priority,
    deadline: Instant,
}

/// What a request has taken until now.
#[derive(Debug, Default)]
struct EmbeddingSpend {
    /// What attempts that failed may have read, and its price.
    lost: Tokens,
    lost_cost: Money,
    /// When the attempt began that runs, or ran last.
    begun: Timestamp,
    is_calling: bool,
}

impl Gateway {
    /// Makes vectors. Dropping the future hangs up: the backend stops, and what it may have read is settled.
    ///
    /// # Errors
    /// When no model makes them, the account does not allow it, or the backend fails.
    pub async fn embed(
        &self,
        tenant: &Tenant,
        ask: EmbeddingRequest,
        ticket: Option<IdempotencyTicket>,
    ) -> Result<EmbeddingOutcome, Denial> {
        let (name, episode) = (ask.model.clone(), ask.episode.clone());
        let (answer, answered) = oneshot::channel();
        let result = match self.prepare(tenant, ask, ticket).await {
            Ok((place, task, reservation)) => {
                let model = task.model.name.clone();
                self.state.parts.tasks.spawn(async move {
                    task.run(reservation, answer).await;
                    drop(place);
                });
                let lost = || {
                    RequestRefusal::Failed(Failure::new(Fault::Backend, "the call ended without saying how"))
                };
                let heard = tokio::select! {
                    biased;
                    answered = answered => answered.unwrap_or_else(|_| Err(lost())),
                    () = self.state.parts.tasks.force_stopping() => Err(RequestRefusal::CutOff),
                };
                heard.map_err(|refusal| (model, refusal))
            }
            Err(refusal) => Err((OTHER.into(), refusal)),
        };
        let label = self.state.parts.route_label(&name);
        let (model, outcome) = match &result {
            Ok(vectors) => (vectors.model.clone(), "finished"),
            Err((
                model,
                RequestRefusal::Failed(_) | RequestRefusal::Incapable { .. } | RequestRefusal::CutOff,
            )) => (model.clone(), "failed"),
            Err(_) => ("none".into(), "refused"),
        };
        self.state.parts.metrics.requests.total.with_label_values(&[&*label, &*model, outcome]).inc();
        result.map_err(|(_, refusal)| Denial { refusal: Box::new(refusal), episode })
    }

    /// Finds the model, and sets its worst case aside.
    async fn prepare(
        &self,
        tenant: &Tenant,
        ask: EmbeddingRequest,
        ticket: Option<IdempotencyTicket>,
    ) -> Result<(OwnedSemaphorePermit, EmbeddingTask, Reservation), RequestRefusal> {
        if self.state.parts.tasks.is_stopping() {
            return Err(RequestRefusal::Stopping);
        }
        let place = self.state.acquire_admission()?;
        let model = self.embedder(tenant, &ask.model)?;
        let (id, time) = (RequestId::new(), self.state.parts.settings.time_max);
        let (token_bound, deadline) = (token_bound::embedding_tokens(&ask), Instant::now() + time);
        check_context(&model, &ask.inputs)?;
        check_members(&model, &ask)?;
        let run = match &ask.episode {
            Some(id) => {
                let (episodes, limits, now) = (&self.state.parts.episodes, &ask.episode_limits, self.now());
                Some(NonTurnSpend::open(episodes, &EpisodeOwner::of(tenant), id, limits, now).await?)
            }
            None => None,
        };
        let limits_money = run.as_ref().is_some_and(NonTurnSpend::limits_money);
        let wanted = self.reservation_request(tenant, id, &ask, &model, token_bound, limits_money)?;
        let reserved = wanted.worst.money;
        let reservation = match &run {
            Some(run) => {
                let GatewayParts { episodes, ledger, settings, .. } = &self.state.parts;
                let wait = episodes.step_wait(deadline, settings.flights_max);
                run.obtain(episodes, ledger, wanted, wait).await?
            }
            None => self.state.parts.ledger.obtain(wanted).await?,
        };
        let (state, ask) = (self.state.clone(), Arc::new(ask));
        let (flow, priority) = (FlowId::of(&tenant.account), tenant.priority);
        let task = EmbeddingTask {
            state,
            id,
            model,
            ask,
            ticket,
            bound: token_bound,
            reserved,
            episode: run,
            flow,
            priority,
            deadline,
        };
        Ok((place, task, reservation))
    }

    /// What is set aside: all that may be read.
    fn reservation_request(
        &self,
        tenant: &Tenant,
        id: RequestId,
        ask: &EmbeddingRequest,
        model: &Model,
        token_bound: Tokens,
        limits_money: bool,
    ) -> Result<ReservationRequest, RequestRefusal> {
        let about = RequestScope { model: Some(model.name.clone()), ..scope::of(&ask.extra) };
        let now = self.state.parts.ledger.now();
        let allowance = self.state.parts.ledger.allowance(&tenant.account, &about, now);
        if model.tariff.is_none() && (limits_money || allowance.limits_money(&model.name)) {
            return Err(RequestRefusal::Plan(plan::PlanRefusal::Unpriced { model: model.name.clone() }));
        }
        let money = model
            .tariff
            .map_or(Money::ZERO, |tariff| tariff.worst_cost(token_bound, Tokens::ZERO, CacheTtl::Minutes));
        Ok(ReservationRequest {
            account: tenant.account.clone(),
            id,
            about,
            worst: WorstCase { money, thinking: Tokens::ZERO },
            step: None,
            prices: self.state.parts.prices(&model.name),
            if_abandoned: self.state.parts.if_abandoned(&model.name),
            rate: None,
            now,
            expires: now + self.state.parts.settings.time_max + EXPIRY_MARGIN,
        })
    }

    /// The one model that makes vectors under that name: those of different models do not compare, so there is no
    /// choice among several.
    fn embedder(&self, tenant: &Tenant, name: &str) -> Result<Arc<Model>, RequestRefusal> {
        let catalog = &self.state.parts.catalog;
        let route = key_scope::route(catalog, &tenant.access, name)
            .ok_or_else(|| self.state.unknown(tenant, name))?;
        let all: Vec<&Arc<Model>> = catalog.candidates(&route).collect();
        let mut able = all.iter().filter(|model| model.services.contains(&Service::Embeddings));
        let refusal = plan::PlanRefusal::NotCapable { what: Service::Embeddings.as_str() };
        let only = if let [only] = all[..] { Some(&only.name) } else { None };
        let first = able.next().ok_or_else(|| refusal.for_caller(only, |_| "model"))?;
        match able.next() {
            None => Ok(Arc::clone(first)),
            Some(_) => Err(RequestRefusal::SeveralEmbedders(name.to_owned())),
        }
    }
}

/// A member that nobody here knows goes to whom takes such members, and to nobody else.
fn check_members(model: &Model, ask: &EmbeddingRequest) -> Result<(), RequestRefusal> {
    let is_refused = |name: &&String| model.members.action_for(name) == MemberAction::Refuse;
    let Some(member) = ask.unknown_members.keys().find(is_refused) else { return Ok(()) };
    let (member, by) = (member.as_str().into(), plan::RejectedBy::Backend);
    let refusal = plan::PlanRefusal::MemberRejected { member, by, model: None, others: Vec::new() };
    Err(refusal.for_caller(Some(&model.name), |_| "model").into())
}

/// Each text must fit alone.
fn check_context(model: &Model, inputs: &EmbeddingInputs) -> Result<(), RequestRefusal> {
    let EmbeddingInputs::Tokens(lists) = inputs else { return Ok(()) };
    let longest = lists.iter().map(|ids| u64::try_from(ids.len()).unwrap_or(u64::MAX)).max();
    match longest.map(Tokens).filter(|longest| *longest > model.context) {
        Some(needed) => {
            let (context, limited_by) = (model.context, model.context_limited_by);
            Err(plan::PlanRefusal::ContextExceeded { needed, context, limited_by, member: "input" }.into())
        }
        None => Ok(()),
    }
}

/// What the model cannot do is to make vectors.
fn failed(failure: Failure) -> RequestRefusal {
    match failure.unsupported {
        Some(_) => RequestRefusal::Incapable { failure: failure.into(), member: "model" },
        None => RequestRefusal::Failed(failure),
    }
}

/// Sets so much more aside; false if that does not fit.
async fn extends(reservation: &mut Reservation, more: Money) -> bool {
    let more = WorstCase { money: more, thinking: Tokens::ZERO };
    more == WorstCase::default() || reservation.extend(more, None).await.is_ok()
}

impl EmbeddingTask {
    /// Takes a place, calls the backend and settles whatever happens.
    async fn run(self, mut reservation: Reservation, mut answer: EmbeddingSender) {
        let permit = match self.dispatch(&mut reservation, &mut answer).await {
            Ok(permit) => permit,
            Err(refusal) => {
                reservation.void();
                if let Some(refusal) = refusal {
                    let _ = answer.send(Err(refusal));
                }
                return;
            }
        };
        let mut spend = EmbeddingSpend::default();
        let made = tokio::select! {
            biased;
            () = answer.closed() => None,
            made = self.attempt(permit, &mut reservation, &mut spend) => {
                Some(made.map(|embedded| self.believed(embedded)))
            }
        };
        let unheard = ended_word::of_unheard(&self.state.parts.tasks);
        let (read, outcome) = match &made {
            Some(Ok(embedded)) => (embedded.prompt.unwrap_or(self.bound), "finished"),
            // What it may have read is among what was lost.
            Some(Err(_)) => (Tokens::ZERO, "failed"),
            None if spend.is_calling => (self.bound, unheard),
            None => (Tokens::ZERO, unheard),
        };
        let (prompt, cost) = (read + spend.lost, self.cost(read, spend.begun) + spend.lost_cost);
        if let (Some(ticket), Some(Err(_)), Tokens::ZERO) = (&self.ticket, &made, prompt) {
            ticket.mark_uncharged();
        }
        let detail = SettlementDetail { prompt, outcome: outcome.into(), ..SettlementDetail::default() };
        let settling = reservation.settle(cost, Tokens::ZERO, detail);
        let receipt = settling.wait_durable(self.state.parts.settings.settle_patience).await;
        let cost = receipt.is_recorded().then_some(cost);
        let Some(made) = made else { return };
        if let Err(failure) = &made {
            tracing::warn!(request = %self.id, model = %self.model.name, fault = failure.fault.as_str(), %failure, "failed");
        }
        let answered = made.map(|embedded| self.outcome(embedded, cost, &spend));
        let _ = answer.send(answered.map_err(failed));
    }

    /// A place, with the reservation made durable; else why there is none, or nothing where nobody waits any more.
    async fn dispatch(
        &self,
        reservation: &mut Reservation,
        answer: &mut EmbeddingSender,
    ) -> Result<Permit, Option<RequestRefusal>> {
        let acquired = tokio::select! {
            biased;
            () = answer.closed() => return Err(None),
            acquired = self.acquire() => acquired,
        };
        let permit = acquired.map_err(|failure| Some(failed(failure)))?;
        let (ledger, ticket) = (&self.state.parts.ledger, self.ticket.as_ref());
        record_dispatch(ledger, ticket, self.deadline, reservation).await.map_err(Some)?;
        Ok(permit)
    }

    fn fleet(&self) -> Result<&Arc<Fleet>, Failure> {
        let fleet = self.state.parts.fleets.get(&self.model.name);
        fleet.ok_or_else(|| Failure::new(Fault::Backend, "no backend serves it").unsent().retry_elsewhere())
    }

    /// There is no conversation, so it goes anywhere.
    fn want(&self) -> PermitRequest {
        let beginning = AffinityKey::without_affinity(self.id.seed());
        PermitRequest {
            affinity: beginning,
            flow: self.flow,
            calls: 1,
            priority: self.priority,
            deadline: self.deadline,
        }
    }

    async fn acquire(&self) -> Result<Permit, Failure> {
        self.fleet()?.acquire(self.want()).await
    }

    /// Calls, and calls again where that may help and its price can be set aside beside what was lost.
    async fn attempt(
        &self,
        mut permit: Permit,
        reservation: &mut Reservation,
        spend: &mut EmbeddingSpend,
    ) -> Result<EmbeddingResult, Failure> {
        let mut been = Vec::new();
        loop {
            been.push(permit.target_index());
            (spend.begun, spend.is_calling) = (self.now(), true);
            let failure = match self.call(&permit).await {
                Ok(embedded) => return Ok(embedded),
                Err(failure) => failure,
            };
            let lost = self.record_lost(&failure, spend);
            let failed = permit.target().clone();
            self.count_failure(&failed, &failure);
            drop(permit);
            if !self.may_retry(&failure) {
                return Err(failure);
            }
            let Some(next) = self.retry_permit(&been, &failure).await else { return Err(failure) };
            if !extends(reservation, lost).await {
                return Err(failure);
            }
            self.log_retry(&failed, &failure, &next);
            permit = next;
        }
    }

    /// Counts what a call that failed may have read; its price.
    fn record_lost(&self, failure: &Failure, spend: &mut EmbeddingSpend) -> Money {
        let counted = failure.read.map(|read| self.believable(Tokens(read.get().into())));
        let read = if failure.unsent { Tokens::ZERO } else { counted.unwrap_or(self.bound) };
        let cost = self.cost(read, spend.begun);
        spend.is_calling = false;
        spend.lost += read;
        spend.lost_cost += cost;
        cost
    }

    /// Whether another attempt may help, and is wanted: what reached a model may be paid for twice.
    fn may_retry(&self, failure: &Failure) -> bool {
        let is_wanted = failure.unsent || self.fleet().is_ok_and(|fleet| fleet.settings().retry.sent_too);
        is_wanted && failure.allows_another_attempt() && Instant::now() < self.deadline
    }

    async fn retry_permit(&self, been: &[usize], failure: &Failure) -> Option<Permit> {
        let (fleet, want) = (self.fleet().ok()?, self.want());
        let tried = u32::try_from(been.len()).unwrap_or(u32::MAX);
        if tried >= fleet.settings().retry.attempts_max {
            return None;
        }
        match fleet.acquire_retry(&want, been) {
            None if failure.retry == Retry::Again => {
                tokio::time::sleep(fleet.retry_wait(tried, &want)?).await;
                fleet.acquire_retry(&want, &[])
            }
            permit => permit,
        }
    }

    fn count_failure(&self, target: &str, failure: &Failure) {
        let labels = &[&*self.model.name, target, failure.fault.as_str()];
        self.state.parts.metrics.backends.attempt_failures.with_label_values(labels).inc();
    }

    fn log_retry(&self, failed: &str, failure: &Failure, next: &Permit) {
        let (model, next) = (&*self.model.name, &**next.target());
        tracing::info!(
            request = %self.id, model, target = failed, fault = failure.fault.as_str(), %failure, next, "tried again"
        );
        self.state.parts.metrics.backends.retries.with_label_values(&[model, next]).inc();
    }

    async fn call(&self, permit: &Permit) -> Result<EmbeddingResult, Failure> {
        let late = || Failure::new(Fault::Timeout, "the vectors did not come in time");
        let backend = permit.backend();
        let call = tokio::time::timeout_at(self.deadline, backend.embed(self.ask.clone()));
        call.await.unwrap_or_else(|_| Err(late()))
    }

    /// The time by the ledger's clock.
    fn now(&self) -> Timestamp {
        self.state.parts.ledger.now()
    }

    /// A call that may have reached a model is charged for all that it may have read, by the prices of the hour in which it ran;
    /// one that did not, for nothing.
    fn cost(&self, prompt: Tokens, begun: Timestamp) -> Money {
        let billed = BilledCall { input: prompt, ..BilledCall::default() };
        let tariff = self.model.tariff.filter(|_| prompt > Tokens::ZERO);
        tariff.map_or(Money::ZERO, |tariff| tariff.between(begun, self.now()).cost(&billed))
    }

    /// With no more of the prompt than it can have had.
    fn believed(&self, embedded: EmbeddingResult) -> EmbeddingResult {
        EmbeddingResult { prompt: embedded.prompt.map(|prompt| self.believable(prompt)), ..embedded }
    }

    fn believable(&self, prompt: Tokens) -> Tokens {
        prompt.min(token_bound::believable(self.bound))
    }

    fn outcome(
        &self,
        embedded: EmbeddingResult,
        cost: Option<Money>,
        spend: &EmbeddingSpend,
    ) -> EmbeddingOutcome {
        EmbeddingOutcome {
            id: self.id,
            model: self.model.name.clone(),
            prompt: embedded.prompt.unwrap_or(self.bound),
            estimated: embedded.prompt.is_none(),
            vectors: embedded,
            cost,
            reserved: self.reserved + spend.lost_cost,
            episode: self.episode.as_ref().map(|run| {
                let is_booked = cost.is_some();
                EpisodeSnapshot { is_booked, ..run.snapshot(&self.state.parts.ledger) }
            }),
        }
    }
}
