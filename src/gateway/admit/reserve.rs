//! Plans a request on what its account has left, and reserves the worst case of the plan.

use std::sync::Arc;
use std::time::Duration;

use crate::gateway::request::{EXPIRY_MARGIN, ObservedPlan, needs, scope};
use crate::gateway::state::GatewayState;
use crate::gateway::{RequestRefusal, RequestStage};
use stint_decide::plan;
use stint_ledger::{RequestScope, Reservation, ReservationRequest, ReserveError, SpendRate, StepReservation};
use stint_types::catalog::{Plan, Tariff, WorstCase};
use stint_types::chat::Request;
use stint_types::units::{Money, Tokens, mix64};

use super::admission::{Admission, ReservedRequest};
use super::gather_inputs::gather_inputs;
use super::money_wait::{new_money_wait, wait_for_money};
use super::plan_inputs::PlanInputs;

/// Reserves a request that is no step of an episode.
pub(crate) async fn reserve_single(
    admission: &Admission<'_>,
    request: Arc<Request>,
) -> Result<ReservedRequest, RequestRefusal> {
    let inputs = gather_inputs(admission.state, admission.tenant, request)?;
    admission.reached(RequestStage::Estimated);
    let (plan, reservation) = reserve(admission, &inputs).await?;
    Ok(ReservedRequest { inputs, plan, reservation, step: None })
}

/// Plans on what is left and reserves the first offer. Another request may take it in between, or another replica
/// may return what it does not use: then the plan is made once more.
/// What other open requests merely hold is waited for.
async fn reserve(
    admission: &Admission<'_>,
    inputs: &PlanInputs,
) -> Result<(Plan, Reservation), RequestRefusal> {
    let (mut waiting, about) = (new_money_wait(admission), scope::of(&inputs.request.extra));
    loop {
        // From here on nothing that is given back goes unheard.
        let notified = admission.parts().ledger.account_notified(&admission.tenant.account);
        let goes_first = waiting.is_next(&admission.tenant.account);
        match reserve_now(admission, inputs, goes_first).await {
            Ok(reserved) => return Ok(reserved),
            Err(refusal) => wait_for_money(admission, &about, refusal, &mut waiting, notified).await?,
        }
    }
}

async fn reserve_now(
    admission: &Admission<'_>,
    inputs: &PlanInputs,
    goes_first: bool,
) -> Result<(Plan, Reservation), RequestRefusal> {
    match try_reserve(admission, inputs, goes_first).await {
        Err(RequestRefusal::LimitExceeded(ReserveError::Shortfall(_))) => {
            try_reserve(admission, inputs, goes_first).await
        }
        Err(RequestRefusal::Plan(plan::PlanRefusal::InsufficientQuota { .. }))
            if admission.parts().ledger.is_shared() =>
        {
            admission
                .parts()
                .ledger
                .refresh_limits(&admission.tenant.account, &scope::of(&inputs.request.extra))
                .await;
            try_reserve(admission, inputs, goes_first).await
        }
        reserved => reserved,
    }
}

async fn try_reserve(
    admission: &Admission<'_>,
    inputs: &PlanInputs,
    goes_first: bool,
) -> Result<(Plan, Reservation), RequestRefusal> {
    let now = admission.parts().ledger.now();
    let about = scope::of(&inputs.request.extra);
    let allowance = admission.parts().ledger.allowance(&admission.tenant.account, &about, now);
    let mut plan = inputs
        .plan(&allowance, mix64(admission.id.seed()))
        .map_err(|refusal| explain(admission.state, refusal, inputs))?;
    admission.reached(RequestStage::Planned);
    // Who came before waits for the same money; what costs nothing needs none.
    if !goes_first && plan.best.worst.money > Money::ZERO {
        return Err(RequestRefusal::behind_in_queue());
    }
    inputs.annotate(&mut plan.why, &plan.best.model);
    if let left @ [_, ..] = &*inputs.left_out(&plan.best.model) {
        plan.why = format!(
            "{}; {} left out: {} is not sent unknown members",
            plan.why,
            left.join(", "),
            plan.best.model
        );
    }
    let wanted = reservation_request(admission, inputs, &plan, about, None);
    let reservation = admission.parts().ledger.obtain(wanted).await?;
    admission.reached(RequestStage::Reserved);
    Ok((plan, reservation))
}

/// What is set aside for a plan's first offer, and for the step that it serves.
pub(super) fn reservation_request(
    admission: &Admission<'_>,
    inputs: &PlanInputs,
    plan: &Plan,
    about: RequestScope,
    step: Option<StepReservation>,
) -> ReservationRequest {
    let parts = admission.parts();
    let (offer, now) = (&plan.best, parts.ledger.now());
    let tools_cost = step.as_ref().map_or(Money::ZERO, |step| step.tools_cost);
    ReservationRequest {
        account: admission.tenant.account.clone(),
        id: admission.id,
        about: RequestScope { model: Some(offer.model.clone()), ..about },
        worst: WorstCase { money: offer.worst.money + tools_cost, ..offer.worst },
        step,
        prices: parts.prices(&offer.model),
        if_abandoned: parts.if_abandoned(&offer.model),
        rate: rate(admission.state, inputs, plan),
        now,
        expires: now + parts.time_limit(&inputs.request) + EXPIRY_MARGIN,
    }
}

/// How fast a plan's calls take money at most: what is posted if nobody comes back to settle them. Whichever model serves it in the
/// end, it is the most of all that may.
fn rate(state: &GatewayState, inputs: &PlanInputs, plan: &Plan) -> Option<SpendRate> {
    let second = plan.best.escalate.as_deref();
    let offers = std::iter::once(&plan.best).chain(second).chain(&plan.fallbacks);
    let each = offers.map(|offer| {
        let writing = state.parts.fleets.get(&offer.model)?.output_stats();
        let calls = u64::from(inputs.request.choices) * u64::from(offer.samples.max(1));
        let tokens = writing.max_tokens_in(Duration::from_secs(1)) * calls;
        let prompt = inputs.demand.models.get(&offer.model).map(|demand| demand.prompt)?;
        let tariff = state.parts.catalog.models.get(&offer.model)?.tariff;
        let money = |cost: &dyn Fn(Tariff) -> Money| tariff.map_or(Money::ZERO, cost);
        let read =
            money(&|tariff| tariff.worst_cost(prompt, Tokens::ZERO, inputs.request.cache_ttl()) * calls);
        let second = WorstCase { money: money(&|tariff| tariff.output_cost_max(tokens)), thinking: tokens };
        Some(SpendRate { prompt_cost: read, per_second: second })
    });
    each.reduce(|most, one| {
        let (most, one) = (most?, one?);
        let money = most.per_second.money.max(one.per_second.money);
        let second = WorstCase { money, thinking: most.per_second.thinking.max(one.per_second.thinking) };
        Some(SpendRate { prompt_cost: most.prompt_cost.max(one.prompt_cost), per_second: second })
    })?
}

/// What would have been decided, where that is only watched. It reserves nothing; that nothing fits changes nothing.
pub(crate) fn observe_plan(admission: &Admission<'_>, inputs: &PlanInputs) -> Option<ObservedPlan> {
    let watched = inputs.rules.observed_route.as_ref()?;
    let (ledger, about) = (&admission.parts().ledger, scope::of(&inputs.request.extra));
    let allowance = ledger.allowance(&admission.tenant.account, &about, ledger.now());
    let factor = admission.state.pacing.factor(watched);
    inputs.observed_offer(&allowance, mix64(admission.id.seed()), factor).as_ref().map(ObservedPlan::of)
}

/// Where no model can be asked because all are left alone, until when that is so; else in the caller's words, and where
/// there was but one model, which.
pub(super) fn explain(
    state: &GatewayState,
    refusal: plan::PlanRefusal,
    inputs: &PlanInputs,
) -> RequestRefusal {
    let fleets = || inputs.models.iter().filter_map(|model| state.parts.fleets.get(&model.name));
    if let (true, Some(model)) = (inputs.models.is_empty(), &inputs.wrong_specialty) {
        return RequestRefusal::WrongSpecialty { model: model.clone() };
    }
    let resting: Vec<_> =
        fleets().filter_map(|fleet| Some((fleet, fleet.unavailable_for_account(inputs.flow)?))).collect();
    match (&refusal, resting.iter().map(|(_, rest)| *rest).min()) {
        (plan::PlanRefusal::Unhealthy, Some(_))
            if resting.iter().all(|(fleet, _)| fleet.has_refused_credential(inputs.flow)) =>
        {
            RequestRefusal::CredentialRefused
        }
        (plan::PlanRefusal::Unhealthy, Some(retry_after))
            if fleets().all(|fleet| fleet.is_rate_limited(inputs.flow)) =>
        {
            RequestRefusal::RateLimited { retry_after }
        }
        (plan::PlanRefusal::Unhealthy, Some(retry_after)) => RequestRefusal::CoolingDown { retry_after },
        _ => {
            let only = if let [only] = &*inputs.models { Some(&only.name) } else { None };
            let refusal = refusal.for_caller(only, |word| needs::member(&inputs.original, word));
            refusal.with_alternatives(&inputs.takers).into()
        }
    }
}
