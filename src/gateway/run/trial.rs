//! Capability trials: a small request of our own, after an upstream refused a caller's. It shows whether the upstream
//! refuses the capability to everybody, or only this caller's use of it.
//!
//! A caller's failure alone teaches nothing, or one caller could take a capability from all others. A trial is made once
//! in a while for each model and capability, beside the caller's request. It is reserved and booked on the same account,
//! and delays nothing.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::execute::{ChoiceError, ChoiceJob, ChoiceProgress, collect_choice};
use crate::gateway::request::{
    Bill, EXPIRY_MARGIN, RequestContext, RequestReservation, needs, settlement_detail,
};
use crate::gateway::state::{GatewayState, SuspectFeature};
use stint_backend::Failure;
use stint_backend::fleet::{AffinityKey, FlowId, PermitRequest};
use stint_ledger::{AbandonPolicy, RequestScope, ReservationRequest};
use stint_types::catalog::{Capability, ChoiceUsage, EnforcementClass, Model, Offer};
use stint_types::chat::{Budget, Message, Request, Role, Tool};
use stint_types::units::{AccountId, Money, Priority, RequestId, Timestamp, Tokens};

use super::auxiliary_call::{AuxiliaryCall, price_auxiliary, price_auxiliary_as};
use super::choice_terms::terms;
use super::outcome::spent_by_choice;

/// How long a trial may take.
const TIME_MAX: Duration = Duration::from_secs(30);
/// Room for a short answer, and for a short thought.
const SOLUTION: Tokens = Tokens(32);
const THINKING: Tokens = Tokens(16);

/// What can be tried.
const TRIED: [Capability; 5] =
    [Capability::Tools, Capability::Json, Capability::Schema, Capability::Logprobs, Capability::Penalties];

/// All that a trial needs which is made when its caller's request may be over.
struct CapabilityTrial {
    state: Arc<GatewayState>,
    account: AccountId,
    flow: FlowId,
    model: Arc<Model>,
    /// The same request without anything beyond text.
    baseline: AuxiliaryCall,
}

/// An upstream refused the request: tries beside it what the request needs of the model.
pub(super) fn start_trials(context: &RequestContext, offer: &Offer, failure: &Failure) {
    if !failure.is_unnamed_refusal() {
        return;
    }
    let Some(model) = context.parts().catalog.models.get(&offer.model) else { return };
    let suspects = suspect_features(context, offer, model)
        .filter(|suspect| context.state.withdrawals.may_try(&model.name, *suspect));
    let priced = |suspect| Some((suspect, trial_request(context, model, Some(suspect))?));
    let trials: Vec<_> = suspects.filter_map(priced).collect();
    let Some(plain) = trial_request(context, model, None).filter(|_| !trials.is_empty()) else { return };
    let trial = CapabilityTrial {
        state: context.state.clone(),
        account: context.account.clone(),
        flow: context.flow,
        model: model.clone(),
        baseline: plain,
    };
    context.parts().tasks.spawn(async move { trial.run(trials).await });
}

/// What the request needs that an upstream may lack.
fn suspect_features(
    context: &RequestContext,
    offer: &Offer,
    model: &Model,
) -> impl Iterator<Item = SuspectFeature> {
    let needed = needs::of(&context.request).capabilities;
    let capabilities = needed.into_iter().filter(|capability| TRIED.contains(capability));
    let is_native = offer.class == EnforcementClass::Native && offer.thinking > Tokens::ZERO;
    // Without another way to hold its thoughts there is nothing to be learned.
    let is_held = is_native && model.classes.len() > 1;
    capabilities.map(SuspectFeature::Capability).chain(is_held.then_some(SuspectFeature::Budget))
}

/// A request that tries one thing, and how it would be served; nothing if it cannot be.
fn trial_request(
    context: &RequestContext,
    model: &Arc<Model>,
    suspect: Option<SuspectFeature>,
) -> Option<AuxiliaryCall> {
    let unthought = (!model.thinks_always).then_some(Tokens::ZERO);
    match suspect {
        Some(SuspectFeature::Budget) => {
            let held = Arc::new(Model { classes: vec![EnforcementClass::Native], ..(**model).clone() });
            let thinking = THINKING.max(model.thinking_min).min(model.thinking_max);
            price_auxiliary_as(context, &held, request(&model.name, None, Some(thinking)))
        }
        Some(SuspectFeature::Capability(capability)) => {
            price_auxiliary(context, &model.name, request(&model.name, Some(capability), unthought))
        }
        None => price_auxiliary(context, &model.name, request(&model.name, None, unthought)),
    }
}

impl CapabilityTrial {
    async fn run(self, trials: Vec<(SuspectFeature, AuxiliaryCall)>) {
        for (suspect, trial) in trials {
            // An upstream that refuses everything shows nothing about one feature.
            let is_refused = self.is_refused(&trial).await == Some(true);
            if !is_refused || self.is_refused(&self.baseline).await != Some(false) {
                continue;
            }
            match suspect {
                SuspectFeature::Capability(capability) => self.withdraw(capability),
                SuspectFeature::Budget => self.demote(),
            }
        }
    }

    fn withdraw(&self, capability: Capability) {
        let (model, word) = (&*self.model.name, capability.as_str());
        self.state.withdrawals.withdraw(&self.model.name, capability);
        self.state.parts.metrics.backends.withdrawals.with_label_values(&[model, word]).inc();
        tracing::warn!(
            model,
            capability = word,
            "withdrawn for a while: the upstream refuses it to a request of our own too; say capabilities without it, or \
             mend the upstream"
        );
    }

    /// Holds its thinking by another class from now on.
    fn demote(&self) {
        let model = &*self.model.name;
        if let Some((class, _)) = self.state.demotions.demote(&self.model, None) {
            self.state.parts.metrics.thinking.demotions.with_label_values(&[model]).inc();
            tracing::warn!(
                model,
                now = class.as_str(),
                "demoted: the upstream refuses a thinking budget of its own"
            );
        }
    }

    /// Whether the upstream refuses it; nothing if that could not be found out.
    async fn is_refused(&self, call: &AuxiliaryCall) -> Option<bool> {
        let AuxiliaryCall { request, offer, .. } = call;
        let fleet = self.state.parts.fleets.get(&self.model.name)?;
        let deadline = Instant::now() + TIME_MAX;
        let reservation = self.state.parts.ledger.obtain(self.reservation_request(offer)).await.ok()?;
        let mut reservation = RequestReservation::new(reservation, offer, None);
        let want = PermitRequest {
            affinity: AffinityKey::of(request),
            flow: self.flow,
            calls: 1,
            priority: Priority::Batch,
            deadline,
        };
        let Ok(permit) = fleet.acquire(want).await else {
            reservation.void();
            return None;
        };
        if reservation.record_dispatch(&self.state.parts.ledger, None, deadline).await.is_err() {
            reservation.void();
            return None;
        }
        let (backend, request) = (permit.backend(), request.clone());
        let mut progress =
            ChoiceProgress::new(terms(offer, Some(&self.model), fleet.prompt_tokens(&request), &request));
        let job = ChoiceJob { backend, request, index: 0, seed: 1, deadline, cut_before: None };
        let begun = self.state.parts.ledger.now();
        let (ended, _) = collect_choice(&job, &mut progress).await;
        let spent = spent_by_choice(std::slice::from_ref(&progress));
        let word = if ended.is_ok() { "finished" } else { "failed" };
        let bill = Bill { model: &offer.model, cost: self.cost(&spent, begun), spent: &spent };
        reservation
            .settle(bill, settlement_detail(&spent, word), self.state.parts.settings.settle_patience)
            .await;
        match ended {
            Ok(_) => Some(false),
            Err(ChoiceError::Failed(failure)) if failure.is_unnamed_refusal() => Some(true),
            Err(_) => None,
        }
    }

    fn reservation_request(&self, offer: &Offer) -> ReservationRequest {
        let now = self.state.parts.ledger.now();
        let stops = self.model.stops_billing;
        ReservationRequest {
            account: self.account.clone(),
            id: RequestId::new(),
            about: RequestScope { model: Some(self.model.name.clone()), ..RequestScope::default() },
            worst: offer.worst,
            step: None,
            prices: self.model.tariff.map(|tariff| tariff.rates.list),
            if_abandoned: if stops { AbandonPolicy::PostMetered } else { AbandonPolicy::PostWhole },
            rate: None,
            now,
            expires: now + TIME_MAX + EXPIRY_MARGIN,
        }
    }

    /// By the prices of the hour in which it ran.
    fn cost(&self, spent: &[ChoiceUsage], begun: Timestamp) -> Money {
        let Some(tariff) = self.model.tariff else { return Money::ZERO };
        let tariff = tariff.between(begun, self.state.parts.ledger.now());
        spent.iter().map(|spent| spent.cost(&tariff)).sum()
    }
}

/// The smallest request that needs the capability.
fn request(model: &str, capability: Option<Capability>, thinking: Option<Tokens>) -> Request {
    let budget = Budget { thinking, solution: Some(SOLUTION), ..Budget::default() };
    let mut request = Request::new(model, vec![Message::text(Role::User, "Say ok as JSON.")]);
    (request.budget, request.priority) = (budget, Priority::Batch);
    let schema = json!({ "type": "object", "properties": { "ok": { "type": "boolean" } }, "required": ["ok"],
        "additionalProperties": false });
    match capability {
        Some(Capability::Tools) => {
            let function = json!({ "name": "ok", "description": "Says ok.", "parameters": schema });
            let declaration = json!({ "type": "function", "function": function });
            request.tools = vec![Tool::new("ok", declaration)];
        }
        Some(Capability::Json) => request.response_format = Some(json!({ "type": "json_object" })),
        Some(Capability::Schema) => {
            let format = json!({ "name": "ok", "schema": schema });
            request.response_format = Some(json!({ "type": "json_schema", "json_schema": format }));
        }
        Some(Capability::Logprobs) => request.logprobs = Some(0),
        Some(Capability::Penalties) => {
            request.extra.insert("presence_penalty".to_owned(), json!(0.1));
        }
        Some(Capability::Images | Capability::Documents) | None => {}
    }
    request
}
