//! `RequestContext`: what every stage needs to know of a request once it is planned and reserved. `run` and `finish` only
//! read it; each keeps its own mutable state to itself.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::gateway::episodes::RunningStep;
use crate::gateway::state::{GatewayParts, GatewayState};
use stint_backend::fleet::{AffinityKey, Fleet, FlowId};
use stint_backend::{Failure, Fault};
use stint_ledger::{Amounts, RequestScope, Shortfall};
use stint_sessions::agent::CountedPrompt;
use stint_sessions::idempotency::IdempotencyTicket;
use stint_types::catalog::{Allowance, ChoiceUsage, Demand, Market, Model, ModelDemand, Offer, Plan, Route};
use stint_types::chat::{CompletionKind, Request};
use stint_types::tenant::KeyId;
use stint_types::units::{AccountId, Money, Priority, RequestId, Timestamp, Tokens};

use super::answering_model::AnsweringModel;
use super::bill::Bill;
use super::observer::{RequestObserver, RequestStage};
use super::scope;

/// A planned request, as every stage after its reservation sees it.
pub(crate) struct RequestContext {
    pub(crate) state: Arc<GatewayState>,
    pub(crate) id: RequestId,
    pub(crate) account: AccountId,
    /// The id of the key that it came with.
    pub(crate) key: KeyId,
    pub(crate) priority: Priority,
    /// As its model is to have it.
    pub(crate) request: Arc<Request>,
    pub(crate) ticket: Option<IdempotencyTicket>,
    pub(crate) observer: Option<Arc<dyn RequestObserver>>,
    pub(crate) affinity: AffinityKey,
    pub(crate) flow: FlowId,
    /// The route or model that was named, as metrics know it.
    pub(crate) route: Arc<str>,
    /// What the route asks of the model that serves it.
    pub(crate) policy: Route,
    /// Those who could.
    pub(crate) models: Vec<Arc<Model>>,
    pub(crate) demand: Demand,
    pub(crate) market: Market,
    pub(crate) plan: Plan,
    /// The model that is asked, which may be another than the planned one.
    pub(crate) answering: AnsweringModel,
    /// The step of an episode that it is, if it is one.
    pub(crate) step: Option<RunningStep>,
    pub(crate) arrived: Instant,
    /// When it was reserved, and when it is over at the latest, by the clock of its providers.
    pub(crate) billed: (Timestamp, Timestamp),
    /// What the gateway itself took to decide and to reserve, without what was waited for.
    pub(crate) decided_in: Duration,
    pub(crate) deadline: Instant,
}

impl RequestContext {
    pub(crate) fn parts(&self) -> &GatewayParts {
        &self.state.parts
    }

    /// Tells the observer that a stage is over.
    pub(crate) fn reached(&self, stage: RequestStage<'_>) {
        self.observer.iter().for_each(|observer| observer.reached(stage));
    }

    /// What it may cost at most: by its caller's own limit, and by what its episode leaves it.
    pub(crate) fn cost_max(&self) -> Option<Money> {
        let of_step = self.step.as_ref().and_then(|step| step.money_max);
        [self.request.budget.cost, of_step].into_iter().flatten().min()
    }

    /// What it is about, as limits care, while that offer serves it.
    pub(crate) fn limit_scope(&self, offer: &Offer) -> RequestScope {
        let episode = self.step.as_ref().map(|step| step.id().clone());
        RequestScope { model: Some(offer.model.clone()), episode, ..scope::of(&self.request.extra) }
    }

    /// Whether what lacks for more of an offer is merely reserved by other requests. `own` is what this one has reserved.
    pub(crate) fn can_be_released(&self, offer: &Offer, shortfall: &Shortfall, own: Amounts) -> bool {
        self.parts().ledger.can_be_released(&self.account, &self.limit_scope(offer), shortfall, own)
    }

    /// What its account has left beside what is set aside for it.
    pub(crate) fn allowance(&self) -> Allowance {
        let ledger = &self.parts().ledger;
        ledger.allowance(&self.account, &scope::of(&self.request.extra), ledger.now())
    }

    pub(crate) fn fleet(&self, offer: &Offer) -> Result<&Arc<Fleet>, Failure> {
        let fleet = self.parts().fleets.get(&offer.model);
        fleet.ok_or_else(|| Failure::new(Fault::Backend, "no backend serves it").unsent().retry_elsewhere())
    }

    pub(crate) fn model(&self, offer: &Offer) -> Option<&Model> {
        self.parts().catalog.models.get(&offer.model).map(AsRef::as_ref)
    }

    /// An upper bound of the prompt.
    pub(crate) fn prompt(&self, offer: &Offer) -> Tokens {
        self.demand.models.get(&offer.model).map_or(Tokens::ZERO, |demand| demand.prompt)
    }

    /// How likely an answer fits the limit that an offer sets on it. A text that goes on has no end of its own, so that no limit is
    /// too small for it.
    pub(crate) fn answer_fits(&self, demand: &ModelDemand, offer: &Offer) -> f64 {
        if self.request.kind == CompletionKind::Text { 1.0 } else { demand.answer_fits(offer.solution) }
    }

    /// What the provider counted of the prompt, where the next one can go by it.
    pub(crate) fn counted_prompt(&self, offer: &Offer, reported: Tokens) -> Option<CountedPrompt> {
        // If a tokenizer reported as much before, nothing is gained by it.
        if reported >= self.prompt(offer) {
            return None;
        }
        let reader = self.parts().fleets.get(&offer.model)?.tokenizer_id()?;
        let before = self.step.as_ref().and_then(|step| step.previous_counted_prompt(&offer.model));
        CountedPrompt::of(&self.request, reader, reported, before)
    }

    /// What an attempt at an offer took.
    pub(crate) fn bill<'s>(&self, offer: &'s Offer, spent: &'s [ChoiceUsage]) -> Bill<'s> {
        Bill { model: &offer.model, cost: self.cost(offer, spent), spent }
    }

    pub(crate) fn cost(&self, offer: &Offer, spent: &[ChoiceUsage]) -> Money {
        let Some(tariff) = self.model(offer).and_then(|model| model.tariff) else { return Money::ZERO };
        let tariff = tariff.between(self.billed.0, self.billed.1);
        spent.iter().map(|spent| spent.cost(&tariff)).sum()
    }
}
