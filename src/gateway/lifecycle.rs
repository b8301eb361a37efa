//! The life of one request: admit → run → finish. Only this file knows all three stages, and passes the output of each to
//! the next.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::execute::{EventReceiver, EventSender, event_channel};
use stint_backend::fleet::{AffinityKey, FlowId};
use stint_ledger::Reservation;
use stint_prompt::token_estimate;
use stint_sessions::idempotency::IdempotencyTicket;
use stint_types::chat::Request;
use stint_types::tenant::Tenant;
use stint_types::units::{Money, RequestId};

use super::admit::{self, Admission, QuoteDetails, RequestQuote, ReservedRequest};
use super::episodes::is_step;
use super::finish::{abort, finish};
use super::handle::Gateway;
use super::request::refusal_labels::{limit, limit_label};
use super::request::{
    AnsweringModel, CutOff, DecisionContext, RequestContext, RequestReservation, WaitClock,
};
use super::run::{self, RunningRequest};
use super::state::GatewayState;
use super::{Denial, RequestObserver, RequestRefusal, RequestStage, RequestTask, RequestUpdate};

/// What a request came with, whatever is decided about it.
struct IncomingRequest {
    id: RequestId,
    /// Of its idempotency key.
    ticket: Option<IdempotencyTicket>,
    /// Is notified of its end.
    observer: Option<Arc<dyn RequestObserver>>,
    arrived: Instant,
    /// How long it waited for what others hold.
    waited: Duration,
    deadline: Instant,
    /// Its place among those in flight.
    permit: OwnedSemaphorePermit,
}

impl Gateway {
    /// Decides about a request, sets its worst case aside, and runs it in a task of its own. The `ticket` of its idempotency
    /// key is begun before anything is sent, and released if the request is refused. The `observer` is notified of its end.
    ///
    /// # Errors
    /// When no offer serves it or its account does not allow one; nothing is reserved then.
    pub async fn admit(
        &self,
        tenant: &Tenant,
        request: Box<Request>,
        ticket: Option<IdempotencyTicket>,
        observer: Option<Arc<dyn RequestObserver>>,
    ) -> Result<RequestTask, Denial> {
        let arrived = Instant::now();
        let (model, named) = (request.model.clone(), request.budget.episode.clone());
        let watching = observer.clone();
        watching.iter().for_each(|observer| observer.reached(RequestStage::Arrived));
        let mut admitted = self.start(tenant, request, ticket, observer, arrived).await;
        if let Err(denial) = &mut admitted {
            denial.episode = denial.episode.take().or(named);
            self.record_refusal(tenant, &model, denial, watching.as_deref());
        }
        admitted
    }

    /// Counts a request to this name that is refused.
    pub(super) fn record_refusal(
        &self,
        tenant: &Tenant,
        model: &str,
        Denial { refusal, .. }: &Denial,
        observer: Option<&dyn RequestObserver>,
    ) {
        let parts = &self.state.parts;
        if let Some(limit) = limit(refusal) {
            parts.ledger.record_refusal(&tenant.account, limit);
        }
        let requests = &parts.metrics.requests;
        requests.total.with_label_values(&[&*parts.route_label(model), "none", "refused"]).inc();
        let label = limit_label(refusal);
        requests.refusals.with_label_values(&[&label]).inc();
        observer.iter().for_each(|observer| observer.reached(RequestStage::Refused(&label)));
    }

    async fn start(
        &self,
        tenant: &Tenant,
        mut request: Box<Request>,
        ticket: Option<IdempotencyTicket>,
        observer: Option<Arc<dyn RequestObserver>>,
        arrived: Instant,
    ) -> Result<RequestTask, Denial> {
        let state = &self.state;
        request.cache_owner = tenant.key.is_some().then(|| tenant.account.as_str().into());
        request.priority = tenant.priority;
        if state.parts.tasks.is_stopping() {
            return Err(RequestRefusal::Stopping.into());
        }
        state.check_choices(&request)?;
        let permit = state.acquire_admission()?;
        let (id, deadline) = (RequestId::new(), arrived + state.parts.time_limit(&request));
        let waits = WaitClock::default();
        let watching = observer.as_deref();
        let admission = Admission { state, tenant, id, deadline, waits: &waits, observer: watching };
        let reserved = if is_step(&request) {
            Box::pin(admit::prepare_step(&admission, Arc::from(request))).await?
        } else {
            Box::pin(admit::reserve_single(&admission, Arc::from(request))).await?
        };
        let observed = admit::observe_plan(&admission, &reserved.inputs);
        let decision = Box::new(reserved.inputs.decision_context(&tenant.account, observed, &reserved.plan));
        let incoming =
            IncomingRequest { id, ticket, observer, arrived, waited: waits.waited(), deadline, permit };
        Ok(spawn(state, tenant, incoming, reserved, decision))
    }

    /// Plans a request as [`Gateway::admit`] would on what is left now, and returns all offers that it would choose from.
    ///
    /// # Errors
    /// As `admit`'s, where that would refuse before it reserves.
    pub async fn quote(
        &self,
        tenant: &Tenant,
        request: Request,
        details: QuoteDetails,
    ) -> Result<RequestQuote, RequestRefusal> {
        self.state.check_choices(&request)?;
        let _permit = self.state.acquire_admission()?;
        if is_step(&request) {
            return admit::quote_step(&self.state, tenant, request, details).await;
        }
        admit::quote_single(&self.state, tenant, Arc::new(request), details)
    }
}

/// Runs a reserved request in a task of its own, and gives its caller what is held of it.
fn spawn(
    state: &Arc<GatewayState>,
    tenant: &Tenant,
    incoming: IncomingRequest,
    reserved: ReservedRequest,
    decision: Box<DecisionContext>,
) -> RequestTask {
    let parts = &state.parts;
    let (updates, received) = event_channel(parts.settings.events);
    let IncomingRequest { id, ticket, observer, arrived, waited, deadline, permit } = incoming;
    let task = task_handle(state, id, &reserved, received);
    let work = admit::planned_work(state, &reserved.inputs, &reserved.plan.best);
    let ReservedRequest { inputs, plan, reservation, step } = reserved;
    let now = parts.ledger.now();
    // Boxed, as what was decided: both are large, and move with the task and into it.
    let context = Box::new(RequestContext {
        state: state.clone(),
        id,
        account: tenant.account.clone(),
        key: tenant.id,
        priority: tenant.priority,
        affinity: AffinityKey::of(&inputs.request),
        flow: FlowId::of(&tenant.account),
        request: inputs.request,
        ticket,
        observer,
        route: parts.route_label(&inputs.rules.named),
        policy: inputs.rules.route,
        models: inputs.models,
        demand: inputs.demand,
        market: inputs.market,
        plan,
        answering: task.model.clone(),
        step,
        arrived,
        billed: (now, now + deadline.saturating_duration_since(Instant::now())),
        decided_in: arrived.elapsed().saturating_sub(waited),
        deadline,
    });
    let DecisionContext { paced, expected, trial, .. } = &*decision;
    state.pacing.record_price(&tenant.account, context.market.shadow_price);
    state.pacing.record_dispatch(&tenant.account, paced, *expected, parts.ledger.now());
    state.trials.record_dispatch(*trial, *expected);
    let live = state.live.begin(id, &context.account, &context.route, arrived);
    // Boxed, since a task is moved several times before it runs, and this one is large.
    parts.tasks.spawn(Box::pin(async move {
        serve(context, decision, reservation, updates).await;
        // Until here those that are planned wait behind it.
        drop((permit, work, live));
    }));
    task
}

/// What the caller holds of a request.
fn task_handle(
    state: &GatewayState,
    id: RequestId,
    reserved: &ReservedRequest,
    updates: EventReceiver<RequestUpdate>,
) -> RequestTask {
    let ReservedRequest { inputs, plan, step, .. } = reserved;
    let model = &plan.best.model;
    let tools_cost = step.as_ref().map_or(Money::ZERO, |step| step.plan.tools_cost);
    let is_exact = state.parts.fleets.get(model).is_some_and(|fleet| fleet.counts_exactly());
    let counted = inputs.demand.models.get(model).map(|demand| demand.prompt).filter(|_| is_exact);
    let estimate = || token_estimate::prompt_tokens(&inputs.request);
    RequestTask {
        id,
        model: AnsweringModel::planned(model),
        episode: step.as_ref().map(|step| step.id().clone()),
        choices: inputs.request.choices,
        prompt: counted.unwrap_or_else(estimate),
        reserved: plan.best.worst.money + tools_cost,
        updates,
        cut_off: CutOff::of(&state.parts.tasks),
    }
}

/// Runs a request to its end and reports it. The reservation is resolved on every way out.
async fn serve(
    mut context: Box<RequestContext>,
    decision: Box<DecisionContext>,
    reservation: Reservation,
    updates: EventSender<RequestUpdate>,
) {
    let mut reservation = RequestReservation::new(reservation, &context.plan.best, context.cost_max());
    run::probe(&mut context, &mut reservation, &updates).await;
    let running = RunningRequest { context: &context, updates: &updates };
    match run::serve(running, &mut reservation).await {
        Ok(outcome) => finish(&context, &decision, outcome, reservation, &updates).await,
        Err(refusal) => abort(&context, &decision, reservation, Some(refusal), &updates).await,
    }
}
