//! Plans on what is left, and sets the worst case aside.

use std::time::Duration;

use tokio::time::Instant;

use crate::catalog::{Plan, Tariff, WorstCase};
use crate::ledger::{
    RequestScope, Reservation, ReservationRequest, ReserveError, SpendRate, StepReservation,
};
use crate::plan;
use crate::tenant::Tenant;
use crate::units::{Money, RequestId, Tokens, mix64};

use super::plan_inputs::PlanInputs;
use super::rollout::ObservedPlan;
use crate::gateway::handle::EXPIRY_MARGIN;
use crate::gateway::request::{needs, scope};
use crate::gateway::{Gateway, RequestRefusal};

impl Gateway {
    /// Plans on what is left and reserves the first offer. Another request may take it in between, or another replica
    /// may hand back what it does not use: then the plan is made once more.
    /// What other open requests merely hold is waited for.
    pub(in crate::gateway) async fn reserve(
        &self,
        tenant: &Tenant,
        id: RequestId,
        on: &PlanInputs,
        deadline: Instant,
    ) -> Result<(Plan, Reservation), RequestRefusal> {
        let (mut waiting, about) = (self.new_money_wait(deadline), scope::of(&on.request.extra));
        loop {
            // From here on nothing that is given back goes unheard.
            let heard = self.parts.ledger.account_notified(&tenant.account);
            let goes_first = waiting.is_next(&tenant.account);
            match self.reserve_now(tenant, id, on, goes_first).await {
                Ok(reserved) => return Ok(reserved),
                Err(refusal) => self.wait_for_money(tenant, &about, refusal, &mut waiting, heard).await?,
            }
        }
    }

    async fn reserve_now(
        &self,
        tenant: &Tenant,
        id: RequestId,
        on: &PlanInputs,
        goes_first: bool,
    ) -> Result<(Plan, Reservation), RequestRefusal> {
        match self.try_reserve(tenant, id, on, goes_first).await {
            Err(RequestRefusal::LimitExceeded(ReserveError::Shortfall(_))) => {
                self.try_reserve(tenant, id, on, goes_first).await
            }
            Err(RequestRefusal::Plan(plan::PlanRefusal::InsufficientQuota { .. }))
                if self.parts.ledger.is_shared() =>
            {
                self.parts.ledger.refresh_limits(&tenant.account, &scope::of(&on.request.extra)).await;
                self.try_reserve(tenant, id, on, goes_first).await
            }
            reserved => reserved,
        }
    }

    async fn try_reserve(
        &self,
        tenant: &Tenant,
        id: RequestId,
        on: &PlanInputs,
        goes_first: bool,
    ) -> Result<(Plan, Reservation), RequestRefusal> {
        let now = self.parts.ledger.now();
        let about = scope::of(&on.request.extra);
        let allowance = self.parts.ledger.allowance(&tenant.account, &about, now);
        let mut plan = on.plan(&allowance, mix64(id.seed())).map_err(|refusal| self.explain(refusal, on))?;
        // Who came before waits for the same money; what costs nothing needs none.
        if !goes_first && plan.best.worst.money > Money::ZERO {
            return Err(RequestRefusal::behind_in_queue());
        }
        if let Some(no_vote) = on.no_vote {
            plan.why = format!("{}; {no_vote}", plan.why);
        }
        if let left @ [_, ..] = &*on.left_out(&plan.best.model) {
            plan.why = format!(
                "{}; {} left out: {} is not sent what nobody here knows",
                plan.why,
                left.join(", "),
                plan.best.model
            );
        }
        let reservation = self.parts.ledger.obtain(self.claim(tenant, id, on, &plan, (about, None))).await?;
        Ok((plan, reservation))
    }

    /// What is set aside for a plan's first offer, and for the step that it serves.
    pub(in crate::gateway) fn claim(
        &self,
        tenant: &Tenant,
        id: RequestId,
        on: &PlanInputs,
        plan: &Plan,
        (about, step): (RequestScope, Option<StepReservation>),
    ) -> ReservationRequest {
        let (offer, now) = (&plan.best, self.parts.ledger.now());
        let tools_cost = step.as_ref().map_or(Money::ZERO, |step| step.tools_cost);
        ReservationRequest {
            account: tenant.account.clone(),
            id,
            about: RequestScope { model: Some(offer.model.clone()), ..about },
            worst: WorstCase { money: offer.worst.money + tools_cost, ..offer.worst },
            step,
            prices: self.prices(&offer.model),
            if_abandoned: self.if_abandoned(&offer.model),
            rate: self.rate(on, plan),
            now,
            expires: now + self.time_limit(&on.request) + EXPIRY_MARGIN,
        }
    }

    /// How fast a plan's calls take money at most: what is posted if nobody comes back to settle them. Whoever serves it in the
    /// end, it is the most of all that may.
    fn rate(&self, on: &PlanInputs, plan: &Plan) -> Option<SpendRate> {
        let second = plan.best.escalate.as_deref();
        let offers = std::iter::once(&plan.best).chain(second).chain(&plan.fallbacks);
        let each = offers.map(|offer| {
            let writing = self.parts.fleets.get(&offer.model)?.output_stats();
            let calls = u64::from(on.request.choices) * u64::from(offer.samples.max(1));
            let tokens = writing.max_tokens_in(Duration::from_secs(1)) * calls;
            let prompt = on.demand.models.get(&offer.model).map(|demand| demand.prompt)?;
            let tariff = self.parts.catalog.models.get(&offer.model)?.tariff;
            let money = |cost: &dyn Fn(Tariff) -> Money| tariff.map_or(Money::ZERO, cost);
            let read =
                money(&|tariff| tariff.worst_cost(prompt, Tokens::ZERO, on.request.cache_ttl()) * calls);
            let second =
                WorstCase { money: money(&|tariff| tariff.output_cost_max(tokens)), thinking: tokens };
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
    pub(in crate::gateway) fn observe_plan(
        &self,
        tenant: &Tenant,
        id: RequestId,
        on: &PlanInputs,
    ) -> Option<ObservedPlan> {
        let watched = on.rules.observed_route.as_ref()?;
        let (ledger, about) = (&self.parts.ledger, scope::of(&on.request.extra));
        let allowance = ledger.allowance(&tenant.account, &about, ledger.now());
        let factor = self.pacing.factor(watched);
        on.observed_offer(&allowance, mix64(id.seed()), factor).as_ref().map(ObservedPlan::of)
    }

    /// Where no model can be asked because all are left alone, until when that is so; else in the caller's words, and where
    /// there was but one model, which.
    pub(in crate::gateway) fn explain(&self, refusal: plan::PlanRefusal, on: &PlanInputs) -> RequestRefusal {
        let fleets = on.models.iter().filter_map(|model| self.parts.fleets.get(&model.name));
        if let (true, Some(model)) = (on.models.is_empty(), &on.wrong_specialty) {
            return RequestRefusal::WrongSpecialty { model: model.clone() };
        }
        match (&refusal, fleets.filter_map(|fleet| fleet.unavailable_for()).min()) {
            (plan::PlanRefusal::Unhealthy, Some(retry_after)) => RequestRefusal::CoolingDown { retry_after },
            _ => {
                let only = if let [only] = &*on.models { Some(&only.name) } else { None };
                let refusal = refusal.for_caller(only, |word| needs::member(&on.original, word));
                refusal.with_alternatives(&on.takers).into()
            }
        }
    }
}
