//! Asks a small model for drafts of an answer: how far they agree shows how hard the question is.
//!
//! They are bought between two plans, within the request's own reservation, and only if they may pay. With q the chance
//! that a draft is right, k of d drafts agree as often as k are right, `P(k) = C(d,k) qᵏ (1−q)ᵈ⁻ᵏ` for k of 2 and more,
//! since wrong drafts seldom say the same; else none do. Each outcome would change the demand, and with it the plan. An
//! outcome is worth the difference between the plan made then and the one at hand, on the same changed demand:
//!
//! ```text
//! gain = Σ P(k) · (value of the best offer after k − value of the offer at hand after k)
//! ```
//!
//! If no outcome changes the plan, the gain is zero. Drafts are bought if the gain exceeds their price, with money at its
//! shadow price and waiting included. A quote buys none.

use crate::execute::EventSender;
use crate::execute::vote::answer_key;
use crate::gateway::RequestUpdate;
use crate::gateway::request::{RequestContext, RequestReservation, needs};
use stint_decide::estimate::{ProbeSignal, with_signal};
use stint_decide::plan;
use stint_types::catalog::{AnswerComparison, Demand, DifficultyProbe, Offer, Plan};
use stint_types::chat::{Budget, Request, SamplingOptions};

use super::auxiliary_call::{AuxiliaryCall, price_auxiliary, run_auxiliary};
use super::running_request::RunningRequest;

/// How drafts are drawn: greedy ones would all be the same.
const TEMPERATURE: f32 = 1.0;

/// What may come of drafts.
const SKIPPED: &str = "skipped";
const NOT_WORTH: &str = "not_worth";
const FAILED: &str = "failed";
const KEPT: &str = "kept";
const CHANGED: &str = "changed";
pub(crate) const OUTCOMES: [&str; 5] = [SKIPPED, NOT_WORTH, FAILED, KEPT, CHANGED];

/// Buys drafts if they may pay, and plans once more with their result. If no drafts can be bought, the plan stays.
pub(crate) async fn probe(
    context: &mut RequestContext,
    reservation: &mut RequestReservation,
    updates: &EventSender<RequestUpdate>,
) {
    let Some(probe) = context.policy.probe.clone().filter(|_| may_probe(context)) else { return };
    let outcome = match run_probe(RunningRequest { context, updates }, &probe, reservation).await {
        Ok((plan, demand)) => {
            (context.plan, context.demand) = (plan, demand);
            CHANGED
        }
        Err(outcome) => outcome,
    };
    context.parts().metrics.votes.probes.with_label_values(&[&*probe.model, outcome]).inc();
}

/// Where a model was drawn, the draw stands; a run keeps what its answer costs.
fn may_probe(context: &RequestContext) -> bool {
    context.plan.propensity >= 1.0 && context.step.is_none()
}

/// The plan that the drafts make better, and the demand that they changed; else what became of the probe.
async fn run_probe(
    running: RunningRequest<'_>,
    probe: &DifficultyProbe,
    reservation: &mut RequestReservation,
) -> Result<(Plan, Demand), &'static str> {
    let context = running.context;
    let call = price_auxiliary(context, &probe.model, drafts(probe, &context.request)).ok_or(SKIPPED)?;
    if gain(context, probe, &call) <= price(context, &call.offer) {
        return Err(NOT_WORTH);
    }
    // Nothing is sent before that is durable; where it cannot be, the request ends as any other.
    let (ledger, ticket) = (&context.parts().ledger, context.ticket.as_ref());
    reservation.record_dispatch(ledger, ticket, context.deadline).await.map_err(|_| SKIPPED)?;
    let answers = run_auxiliary(running, &call, context.plan.best.worst, reservation).await.ok_or(FAILED)?;
    let compare = context.policy.vote.as_ref().map_or(&AnswerComparison::Exact, |vote| &vote.compare);
    let agreed = count_agreeing(&answers, compare);
    let demand = with_agreement(&context.demand, probe, agreed);
    let mut plan = replan(context, &demand).ok_or(KEPT)?;
    plan.why = format!("{}; {agreed} of {} drafts of {} agreed", plan.why, probe.drafts, probe.model);
    if is_same_offer(&plan.best, &context.plan.best)
        || !reservation.switch_offer(&plan.best, context.bill(&plan.best, &[])).await
    {
        return Err(KEPT);
    }
    Ok((plan, demand))
}

/// What the drafts are expected to add to the value of the plan, in dollars.
fn gain(context: &RequestContext, probe: &DifficultyProbe, call: &AuxiliaryCall) -> f64 {
    let right = call.right.get();
    let outcomes = (1..=probe.drafts).map(|agreed| {
        let demand = with_agreement(&context.demand, probe, agreed);
        let other = replan(context, &demand).filter(|plan| !is_same_offer(&plan.best, &context.plan.best));
        let better = other.map_or(0.0, |plan| plan.best.value - value_at(context, &demand));
        agreement_probability(probe.drafts, agreed, right) * better.max(0.0)
    });
    outcomes.sum()
}

/// What the offer at hand is worth on another demand; a vote is taken to gain and lose like one answer.
fn value_at(context: &RequestContext, demand: &Demand) -> f64 {
    let best = &context.plan.best;
    let success = |demand: &Demand| {
        let success = demand
            .models
            .get(&best.model)
            .map(|model| context.answer_fits(model, best) * model.success(best.thinking).get());
        // As the plan counts it: finer differences are noise.
        (success.unwrap_or_default() * 1e4).round() / 1e4
    };
    let worth = context.policy.worth.as_dollars() * context.market.worth_factor;
    best.value + worth * (success(demand) - success(&context.demand))
}

fn price(context: &RequestContext, offer: &Offer) -> f64 {
    context.market.shadow_price.max(0.0) * offer.cost.as_dollars()
        + context.policy.cost_per_second.as_dollars() * offer.seconds
}

/// A plan on another demand, with what is left in addition to what is reserved.
fn replan(context: &RequestContext, demand: &Demand) -> Option<Plan> {
    let models: Vec<_> = context.models.iter().map(AsRef::as_ref).collect();
    let planned = plan::plan(&plan::PlanRequest {
        demand,
        models: &models,
        route: &context.policy,
        market: &context.market,
        allowance: &context.allowance(),
        budget: &context.request.budget,
        needs: &needs::of(&context.request),
        choices: context.request.choices,
        streams: context.request.streams,
        sticky: None,
        explore: None,
        opening_quantile: context.parts().settings.opening_quantile,
    });
    planned.ok()
}

fn with_agreement(demand: &Demand, probe: &DifficultyProbe, agreed: u32) -> Demand {
    with_signal(demand.clone(), ProbeSignal::Agreement { drafts: probe.drafts, agreed })
}

/// The chance that so many of the drafts agree, where one is right with this chance.
fn agreement_probability(drafts: u32, agreed: u32, right: f64) -> f64 {
    let exactly = |count: u32| {
        let ways: f64 = (0..count).map(|k| f64::from(drafts - k) / f64::from(k + 1)).product();
        ways * right.powi(count.cast_signed()) * (1.0 - right).powi((drafts - count).cast_signed())
    };
    if agreed > 1 { exactly(agreed) } else { exactly(0) + exactly(1) }
}

/// How many of the answers are the commonest one, at least one.
fn count_agreeing(answers: &[String], compare: &AnswerComparison) -> u32 {
    let keys: Vec<_> = answers.iter().filter_map(|answer| answer_key(answer, compare)).collect();
    let most = keys.iter().map(|one| keys.iter().filter(|other| *other == one).count()).max();
    u32::try_from(most.unwrap_or(1)).unwrap_or(1)
}

fn is_same_offer(one: &Offer, other: &Offer) -> bool {
    let chosen = |offer: &Offer| (offer.model.clone(), offer.thinking, offer.solution, offer.samples);
    chosen(one) == chosen(other) && one.escalate.is_some() == other.escalate.is_some()
}

/// The caller's question, to be answered briefly several times.
fn drafts(probe: &DifficultyProbe, asked: &Request) -> Request {
    Request {
        choices: probe.drafts,
        budget: Budget { thinking: Some(probe.thinking), solution: Some(probe.tokens), ..Budget::default() },
        sampling: SamplingOptions { temperature: Some(TEMPERATURE), ..SamplingOptions::default() },
        cache_owner: asked.cache_owner.clone(),
        priority: asked.priority,
        ..Request::new(&*probe.model, asked.messages.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chances_of_all_outcomes_are_one() {
        for (drafts, right) in [(2, 0.3), (3, 0.7), (8, 0.0), (5, 1.0)] {
            let sum: f64 = (1..=drafts).map(|agreed| agreement_probability(drafts, agreed, right)).sum();
            assert!((sum - 1.0).abs() < 1e-12, "{drafts} {right}: {sum}");
        }
        assert!((agreement_probability(3, 2, 0.5) - 0.375).abs() < 1e-12);
    }

    #[test]
    fn drafts_agree_by_what_is_compared() {
        let answers = ["it is 42", "42", "41"].map(str::to_owned);
        assert_eq!(
            (
                count_agreeing(&answers, &AnswerComparison::Number),
                count_agreeing(&answers, &AnswerComparison::Exact)
            ),
            (2, 1)
        );
        assert_eq!(count_agreeing(&[], &AnswerComparison::Number), 1);
    }
}
