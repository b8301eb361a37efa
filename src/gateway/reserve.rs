//! Plans on what is left, and sets the worst case aside.

use std::time::Duration;

use tokio::time::Instant;

use crate::catalog::{Plan, Tariff, WorstCase};
use crate::ledger::{About, Claim, Rate, Refused, Reservation, Step};
use crate::plan;
use crate::tenant::Tenant;
use crate::units::{Money, RequestId, Tokens, mixed};

use super::considered::Considered;
use super::handle::EXPIRY_MARGIN;
use super::rollout::Observed;
use super::{Gateway, Refusal, about, needs};

impl Gateway {
    /// Plans on what is left and reserves the first offer. Another request may take it in between, or another replica
    /// may hand back what it does not use: then the plan is made once more.
    /// What other open requests merely hold is waited for.
    pub(super) async fn reserve(
        &self,
        tenant: &Tenant,
        id: RequestId,
        on: &Considered,
        deadline: Instant,
    ) -> Result<(Plan, Reservation), Refusal> {
        let (mut waiting, about) = (self.waiting(deadline), about::of(&on.request.extra));
        loop {
            // From here on nothing that is given back goes unheard.
            let heard = self.parts.ledger.resolved_under(&tenant.account);
            let goes_first = waiting.goes_first(&tenant.account);
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
        on: &Considered,
        goes_first: bool,
    ) -> Result<(Plan, Reservation), Refusal> {
        match self.try_reserve(tenant, id, on, goes_first).await {
            Err(Refusal::Spent(Refused::Shortfall(_))) => self.try_reserve(tenant, id, on, goes_first).await,
            Err(Refusal::Plan(plan::Refusal::DoesNotFit { .. })) if self.parts.ledger.is_shared() => {
                self.parts.ledger.gather(&tenant.account, &about::of(&on.request.extra)).await;
                self.try_reserve(tenant, id, on, goes_first).await
            }
            reserved => reserved,
        }
    }

    async fn try_reserve(
        &self,
        tenant: &Tenant,
        id: RequestId,
        on: &Considered,
        goes_first: bool,
    ) -> Result<(Plan, Reservation), Refusal> {
        let now = self.parts.ledger.now();
        let about = about::of(&on.request.extra);
        let allowance = self.parts.ledger.allowance(&tenant.account, &about, now);
        let mut plan =
            on.plan(&allowance, mixed(id.seed())).map_err(|refusal| self.explained(refusal, on))?;
        // Who came before waits for the same money; what costs nothing needs none.
        if !goes_first && plan.best.worst.money > Money::ZERO {
            return Err(Refusal::behind_others());
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
    pub(super) fn claim(
        &self,
        tenant: &Tenant,
        id: RequestId,
        on: &Considered,
        plan: &Plan,
        (about, step): (About, Option<Step>),
    ) -> Claim {
        let (offer, now) = (&plan.best, self.parts.ledger.now());
        let tools_cost = step.as_ref().map_or(Money::ZERO, |step| step.tools_cost);
        Claim {
            account: tenant.account.clone(),
            id,
            about: About { model: Some(offer.model.clone()), ..about },
            worst: WorstCase { money: offer.worst.money + tools_cost, ..offer.worst },
            step,
            prices: self.prices(&offer.model),
            if_abandoned: self.if_abandoned(&offer.model),
            rate: self.rate(on, plan),
            now,
            expires: now + self.time(&on.request) + EXPIRY_MARGIN,
        }
    }

    /// How fast a plan's calls take money at most: what is posted if nobody comes back to settle them. Whoever serves it in the
    /// end, it is the most of all that may.
    fn rate(&self, on: &Considered, plan: &Plan) -> Option<Rate> {
        let second = plan.best.escalate.as_deref();
        let offers = std::iter::once(&plan.best).chain(second).chain(&plan.fallbacks);
        let each = offers.map(|offer| {
            let writing = self.parts.fleets.get(&offer.model)?.writing();
            let calls = u64::from(on.request.choices) * u64::from(offer.samples.max(1));
            let tokens = writing.most_in(Duration::from_secs(1)) * calls;
            let prompt = on.demand.models.get(&offer.model).map(|demand| demand.prompt)?;
            let tariff = self.parts.catalog.models.get(&offer.model)?.tariff;
            let money = |cost: &dyn Fn(Tariff) -> Money| tariff.map_or(Money::ZERO, cost);
            let read = money(&|tariff| tariff.worst(prompt, Tokens::ZERO, on.request.keep()) * calls);
            let second = WorstCase { money: money(&|tariff| tariff.output_most(tokens)), thinking: tokens };
            Some(Rate { read, second })
        });
        each.reduce(|most, one| {
            let (most, one) = (most?, one?);
            let money = most.second.money.max(one.second.money);
            let second = WorstCase { money, thinking: most.second.thinking.max(one.second.thinking) };
            Some(Rate { read: most.read.max(one.read), second })
        })?
    }

    /// What would have been decided, where that is only watched. It reserves nothing; that nothing fits changes nothing.
    pub(super) fn observe(&self, tenant: &Tenant, id: RequestId, on: &Considered) -> Option<Observed> {
        let watched = on.rules.watched.as_ref()?;
        let (ledger, about) = (&self.parts.ledger, about::of(&on.request.extra));
        let allowance = ledger.allowance(&tenant.account, &about, ledger.now());
        let factor = self.pacing.factor(watched);
        on.watched(&allowance, mixed(id.seed()), factor).as_ref().map(Observed::of)
    }

    /// Where no model can be asked because all are left alone, until when that is so; else in the caller's words, and where
    /// there was but one model, which.
    pub(super) fn explained(&self, refusal: plan::Refusal, on: &Considered) -> Refusal {
        let fleets = on.models.iter().filter_map(|model| self.parts.fleets.get(&model.name));
        if let (true, Some(model)) = (on.models.is_empty(), &on.beyond) {
            return Refusal::Beyond { model: model.clone() };
        }
        match (&refusal, fleets.filter_map(|fleet| fleet.rest()).min()) {
            (plan::Refusal::Unhealthy, Some(retry_after)) => Refusal::Resting { retry_after },
            _ => {
                let only = if let [only] = &*on.models { Some(&only.name) } else { None };
                let refusal = refusal.in_words_of(only, |word| needs::member(&on.asked, word));
                refusal.taken_by(&on.takers).into()
            }
        }
    }
}
