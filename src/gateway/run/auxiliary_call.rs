//! Makes an auxiliary call: a small call of a model in order to decide about a request. It is reserved like any other call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::execute::{ChoiceJob, ChoiceProgress, ChoiceTerms, answer_text, collect_choice};
use crate::gateway::request::{RequestContext, RequestReservation, needs};
use stint_backend::fleet::{AffinityKey, Permit, PermitRequest};
use stint_decide::{estimate, plan};
use stint_types::catalog::{Allowance, ChoiceUsage, Market, Model, Offer, Route, WorstCase};
use stint_types::chat::Request;
use stint_types::units::Chance;

use super::choice_terms::terms;
use super::outcome::spent_by_choice;
use super::running_request::RunningRequest;

/// How long such a call may take.
const TIME_MAX: Duration = Duration::from_secs(30);
/// It may take so many times its expected time, and at least so long.
const LATENESS: f64 = 4.0;
const PATIENCE_MIN: Duration = Duration::from_secs(3);

/// A priced auxiliary call.
pub(super) struct AuxiliaryCall {
    model: Arc<Model>,
    pub(super) request: Arc<Request>,
    /// How it is served, and the most it can take.
    pub(super) offer: Offer,
    /// The chance that its answer is right, whatever limit is set on it.
    pub(super) right: Chance,
}

/// The auxiliary call with its price; nothing if its model cannot be called.
pub(super) fn price_auxiliary(
    context: &RequestContext,
    model: &str,
    request: Request,
) -> Option<AuxiliaryCall> {
    price_auxiliary_as(context, context.parts().catalog.models.get(model)?, request)
}

/// The same of a model as it is here taken to be.
pub(super) fn price_auxiliary_as(
    context: &RequestContext,
    model: &Arc<Model>,
    request: Request,
) -> Option<AuxiliaryCall> {
    let fleet = context.parts().fleets.get(&model.name)?;
    if model.tariff.is_none() && context.allowance().limits_money(&model.name) {
        return None;
    }
    let prompts = BTreeMap::from([(model.name.clone(), fleet.prompt_tokens(&request))]);
    let conditions = BTreeMap::from([(model.name.clone(), fleet.conditions_for(context.flow))]);
    let demand = estimate::estimate(&request, &prompts, &context.parts().calibration);
    // Whether it fits is for the reservation to say, which has room of its own.
    let planned = plan::plan(&plan::PlanRequest {
        demand: &demand,
        models: &[&**model],
        route: &Route::with_defaults(&model.name),
        market: &Market { models: conditions, ..Market::default() },
        allowance: &Allowance::default(),
        budget: &request.budget,
        needs: &needs::of(&request),
        choices: request.choices,
        streams: false,
        sticky: None,
        explore: None,
        opening_quantile: context.parts().settings.opening_quantile,
    });
    let offer = planned.ok()?.best;
    let right = demand.models.get(&offer.model)?.success(offer.thinking);
    Some(AuxiliaryCall { model: model.clone(), request: Arc::new(request), offer, right })
}

/// Reserves its worst case beside `own`, runs it, and returns its answer; nothing if there is no money, no
/// place, or no answer of every choice.
pub(super) async fn run_auxiliary(
    running: RunningRequest<'_>,
    call: &AuxiliaryCall,
    own: WorstCase,
    reservation: &mut RequestReservation,
) -> Option<Vec<String>> {
    if !reservation.extend_for_auxiliary(call.offer.worst, own).await {
        return None;
    }
    // A model that is much later than expected would not have been asked.
    let usual = Duration::try_from_secs_f64(LATENESS * call.offer.seconds).unwrap_or(TIME_MAX);
    let patience = usual.clamp(PATIENCE_MIN, TIME_MAX);
    let deadline = running.context.deadline.min(Instant::now() + patience);
    let want = PermitRequest {
        affinity: AffinityKey::of(&call.request),
        flow: running.context.flow,
        calls: call.request.choices,
        priority: running.context.priority,
        deadline,
    };
    let permit = tokio::select! {
        biased;
        () = running.updates.closed() => return None,
        permit = running.context.parts().fleets.get(&call.model.name)?.acquire(want) => permit.ok()?,
    };
    let mut progress: Vec<ChoiceProgress> = (0..call.request.choices)
        .map(|_| ChoiceProgress::new(auxiliary_terms(running.context, call)))
        .collect();
    let answers = tokio::select! {
        biased;
        () = running.updates.closed() => None,
        answers = auxiliary_answers(running.context, call, &permit, deadline, &mut progress) => answers,
    };
    let spent: Vec<ChoiceUsage> = spent_by_choice(&progress);
    reservation.record_auxiliary(running.context.bill(&call.offer, &spent));
    answers
}

async fn auxiliary_answers(
    context: &RequestContext,
    call: &AuxiliaryCall,
    permit: &Permit,
    deadline: Instant,
    progress: &mut [ChoiceProgress],
) -> Option<Vec<String>> {
    let seed = context.id.seed();
    let jobs: Vec<ChoiceJob> = (0..call.request.choices)
        .map(|index| ChoiceJob {
            backend: permit.backend(),
            request: call.request.clone(),
            index,
            seed: seed.wrapping_add(u64::from(index)),
            deadline,
            cut_before: None,
        })
        .collect();
    let runs = jobs.iter().zip(progress).map(|(job, progress)| collect_choice(job, progress));
    let ended = futures_util::future::join_all(runs).await;
    ended.into_iter().map(|(ended, events)| ended.ok().map(|_| answer_text(&events))).collect()
}

fn auxiliary_terms(context: &RequestContext, call: &AuxiliaryCall) -> ChoiceTerms {
    let AuxiliaryCall { model, request, offer, .. } = call;
    let fleet = context.parts().fleets.get(&model.name);
    let prompt = fleet.map(|fleet| fleet.prompt_tokens(request)).unwrap_or_default();
    terms(offer, Some(model), prompt, request)
}
