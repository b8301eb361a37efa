//! Retries answers that are empty after the tool calls that the model may not make were removed. The model is asked once
//! more: where other tools are left, for an answer that does without those that are not; and if it stays empty, or nothing
//! is left to call, for one without calls. An empty answer would look like a success.
//!
//! The tools stay declared, so that the prompt begins as it did before: a provider's cache goes on holding, and thoughts that are
//! bound to their prefix stay valid.
//!
//! A retry is made without a thought if the model can do without one. Its worst case comes on top of what was taken before. It
//! is paid from the reservation if that suffices for an answer; otherwise the reservation is extended. If there is no money for
//! it, the request fails. Where the last answer is empty too, its reader gets what is left of it: nothing, as cut short, and
//! `budget` says why.

use std::sync::Arc;

use tokio::time::Instant;

use crate::execute::{ChoiceProgress, ChoiceTerms};
use crate::gateway::request::{RequestContext, RequestReservation, needs};
use stint_backend::{Failure, Fault};
use stint_decide::plan;
use stint_sessions::agent::{AnswerCallLimits, CountedPrompt, StepRetry};
use stint_types::catalog::{Allowance, ChoiceUsage, Demand, Offer, Route, SolutionStopReason, WorstCase};
use stint_types::chat::{Budget, FinishReason, Request};
use stint_types::units::{Money, Tokens};

use super::attempt_result::AttemptResult;
use super::attempts::{Attempts, acquire};
use super::choice_terms::terms;
use super::choices::{jobs, meters, run_choices};
use super::growth::meter_and_grow;
use super::offer_attempt::limits_thoughts;
use super::outcome::RequestOutcome;
use super::running_request::RunningRequest;

const NOTHING_LEFT: &str = "the model only called tools that it may not call, and no money or time is left to ask it for \
                            an answer without calls; allow more of it, or leave it more calls";

/// Asks once more for the choices that are empty, if there are any.
pub(super) async fn retry_mute_choices<'p>(
    running: RunningRequest<'_>,
    mut outcome: RequestOutcome<'p>,
    reservation: &mut RequestReservation,
) -> RequestOutcome<'p> {
    let Some(step) = &running.context.step else {
        mark_mute(&mut outcome);
        return outcome;
    };
    let rules = running.context.model(outcome.offer).map(|model| model.conversation).unwrap_or_default();
    // Such a model is only told that it may call no more (see `stint_backend::remote::anthropic`).
    let request = &running.context.request;
    let are_withheld = !request.tools.is_empty() && request.withheld_tools.len() >= request.tools.len();
    let is_only_told = step.plan.is_final() && are_withheld && rules.late_instructions;
    if choices_to_retry(&outcome, is_only_told).is_empty() {
        return outcome;
    }
    let retries = step.plan.retries(&running.context.request, &step.manager.inner.settings);
    // What its provider counted of the prompt; only its end grows from try to try.
    let reported = outcome.progress.iter().filter_map(|choice| choice.phases.prompt_reported()).max();
    let counted = reported.and_then(|reported| running.context.counted_prompt(outcome.offer, reported));
    let mut is_paid = true;
    for retry in retries {
        let mute = choices_to_retry(&outcome, is_only_told);
        let AttemptResult::Finished(finishes) = &outcome.result else { return outcome };
        if mute.is_empty() {
            return outcome;
        }
        let finishes = finishes.clone();
        let is_needed = !choices_to_retry(&outcome, false).is_empty();
        let mute = MuteChoices { at: &mute, counted };
        let retried = retry_choices(running, &mut outcome, mute, finishes, retry, reservation).await;
        if !is_needed && matches!(retried, Some(AttemptResult::Failed(_))) {
            // There is an answer already, if not the whole of it.
            return outcome;
        }
        is_paid = retried.is_some();
        outcome.result = retried.unwrap_or(outcome.result);
    }
    if !is_paid && !choices_to_retry(&outcome, false).is_empty() {
        outcome.result = no_answer(NOTHING_LEFT);
    }
    mark_mute(&mut outcome);
    outcome
}

/// Answers that were trimmed to nothing look like such that were cut, and not like a success.
fn mark_mute(outcome: &mut RequestOutcome<'_>) {
    let mute = choices_to_retry(outcome, false);
    if let AttemptResult::Finished(finishes) = &mut outcome.result {
        for at in mute {
            finishes[at] = FinishReason::Length;
            outcome.spent[at].solution_ended = SolutionStopReason::None;
        }
    }
}

/// The choices that came to their end and say nothing; and, where the model was only told to call no tools, those that do not
/// say all because they called some.
fn choices_to_retry(outcome: &RequestOutcome<'_>, is_only_told: bool) -> Vec<usize> {
    let AttemptResult::Finished(finishes) = &outcome.result else { return Vec::new() };
    let is_due = |choice: &ChoiceProgress| {
        let filter = choice.tool_filter.as_ref();
        filter.is_some_and(|filter| filter.is_emptied() || is_only_told && filter.is_led_astray())
    };
    (0..finishes.len()).filter(|at| outcome.progress.get(*at).is_some_and(is_due)).collect()
}

/// The choices to ask for again.
#[derive(Clone, Copy)]
struct MuteChoices<'m> {
    /// Their indices.
    at: &'m [usize],
    /// What was counted of the prompt as it was first sent.
    counted: Option<CountedPrompt>,
}

/// Asks for these choices once more; nothing where no money or time is left for that.
async fn retry_choices(
    running: RunningRequest<'_>,
    outcome: &mut RequestOutcome<'_>,
    mute: MuteChoices<'_>,
    mut finishes: Vec<FinishReason>,
    retry: StepRetry,
    reservation: &mut RequestReservation,
) -> Option<AttemptResult> {
    let StepRetry { request, call_limits } = retry;
    let request = Arc::new(request);
    // What the episode keeps for an answer is for the one that is to be its last.
    let is_last = call_limits == AnswerCallLimits::none();
    let context = running.context;
    reservation.set_cost_max(if is_last { context.request.budget.cost } else { context.cost_max() });
    let (offer, prompt) = reserve_retry(context, outcome, mute, &request, is_last, reservation).await?;
    tracing::info!(
        request = %running.context.id, model = %offer.model, "asked once more, since it called what it may not"
    );
    let permit = match acquire(running, &mut Attempts::only(&offer)).await {
        Ok(permit) => permit,
        Err(result) => return Some(result),
    };
    let terms = ChoiceTerms {
        limits_thoughts: limits_thoughts(context, &offer),
        ..terms(&offer, context.model(&offer), prompt, &request)
    };
    let mut made: Vec<ChoiceProgress> =
        mute.at.iter().map(|at| outcome.progress[*at].retry(terms.clone(), &call_limits)).collect();
    let mut jobs = jobs(running.context, &permit, &offer, &request);
    jobs.retain(|job| mute.at.iter().any(|at| u32::try_from(*at) == Ok(job.index)));
    outcome.progress.iter().for_each(ChoiceProgress::update_meter);
    let meters = [meters(&outcome.progress), meters(&made)].concat();
    let result = tokio::select! {
        biased;
        () = running.updates.closed() => AttemptResult::HungUp,
        result = run_choices(&jobs, &mut made, running.updates) => result,
        never = meter_and_grow(running.context, outcome.offer, &meters, None, reservation) => match never {},
    };
    for (at, made) in mute.at.iter().zip(made) {
        replace(outcome, *at, made);
    }
    let AttemptResult::Finished(again) = result else { return Some(result) };
    mute.at.iter().zip(again).for_each(|(at, finish)| finishes[*at] = finish);
    Some(AttemptResult::Finished(finishes))
}

/// How it is asked again, and an upper bound of its prompt, with the money for it set aside; nothing if there is none.
async fn reserve_retry(
    context: &RequestContext,
    outcome: &RequestOutcome<'_>,
    mute: MuteChoices<'_>,
    request: &Request,
    is_last: bool,
    reservation: &mut RequestReservation,
) -> Option<(Offer, Tokens)> {
    let taken = WorstCase {
        money: context.cost(outcome.offer, &outcome.spent),
        thinking: outcome.spent.iter().map(ChoiceUsage::thinking_total).sum(),
    };
    let (demand, prompt) = retry_demand(context, outcome, mute, request)?;
    let stated = &context.request.budget;
    let deadline = stated.deadline.map(|_| context.deadline.saturating_duration_since(Instant::now()));
    let remaining = reservation.remaining(taken);
    let of_episode = money_of_episode(context, remaining);
    for (cost, is_extended) in [(Some(remaining), false), (of_episode, true)] {
        for thinking in [Some(Tokens::ZERO), stated.thinking] {
            let budget = Budget { thinking, cost, deadline, ..stated.clone() };
            let choices = u32::try_from(mute.at.len()).unwrap_or(u32::MAX);
            // Beyond what the request's own money pays for, what its account has left counts.
            let left = if is_extended { context.allowance() } else { Allowance::default() };
            let offer = retry_offer(context, &outcome.offer.model, &demand, request, &budget, &left, choices);
            // Where calls may follow, it may stay mute: then the last try must be paid for too.
            let leaves_enough =
                |offer: &Offer| is_last || of_episode.is_none_or(|left| left >= offer.worst.money * 2);
            if let Some(offer) = offer.filter(leaves_enough)
                && reservation.extend_for_auxiliary(offer.worst, taken).await
            {
                return Some((offer, prompt));
            }
        }
    }
    None
}

/// What the episode has left beside other steps, with what this one has not used of its own, where its money is limited; at most
/// what its caller's request may cost.
fn money_of_episode(context: &RequestContext, remaining: Money) -> Option<Money> {
    let of_episode = context.step.as_ref().and_then(|step| {
        let balance = context.parts().ledger.episode(&context.account, step.id());
        let taken = balance.spent.cost + balance.reserved.cost;
        step.limits.cost.map(|most| most.saturating_sub(taken) + remaining)
    });
    [context.request.budget.cost, of_episode].into_iter().flatten().min()
}

/// The demand with the prompt by what its provider counted of the one before, where it did and the model that answers now counts
/// alike.
fn retry_demand(
    context: &RequestContext,
    outcome: &RequestOutcome<'_>,
    mute: MuteChoices<'_>,
    request: &Request,
) -> Option<(Demand, Tokens)> {
    let mut demand = context.demand.clone();
    let of_model = demand.models.get_mut(&outcome.offer.model)?;
    let fleet = context.parts().fleets.get(&outcome.offer.model)?;
    let images = fleet.images();
    // What was read before, and what is added behind it now.
    let before = Request { messages: context.request.messages.clone(), ..request.clone() };
    let most = fleet.prompt_tokens(request);
    let added = most.saturating_sub(fleet.prompt_tokens(&before));
    let counted = mute
        .counted
        .zip(fleet.tokenizer_id())
        .and_then(|(reading, reader)| reading.upper_bound(&before, reader, &images))
        .map(|counted| counted + added);
    let prompt = counted.map_or(most, |counted| counted.min(most));
    of_model.prompt = prompt;
    of_model.prompt_least = of_model.prompt_least.min(prompt);
    Some((demand, prompt))
}

fn retry_offer(
    context: &RequestContext,
    model: &str,
    demand: &Demand,
    request: &Request,
    budget: &Budget,
    allowance: &Allowance,
    choices: u32,
) -> Option<Offer> {
    let model = context.models.iter().find(|known| *known.name == *model)?;
    let planned = plan::plan(&plan::PlanRequest {
        demand,
        models: &[&**model],
        route: &Route::with_defaults(&model.name),
        market: &context.market,
        allowance,
        budget,
        needs: &needs::of(request),
        choices,
        streams: request.streams,
        sticky: None,
        explore: None,
        opening_quantile: context.parts().settings.opening_quantile,
    });
    planned.ok().map(|plan| plan.best)
}

/// Puts the second try at a choice in the first one's place. What the first took is not delivered.
fn replace(outcome: &mut RequestOutcome<'_>, at: usize, made: ChoiceProgress) {
    let mut spent = made.spent();
    spent.absorb(&outcome.spent[at]);
    spent.extra_calls += 1;
    (outcome.spent[at], outcome.progress[at]) = (spent, made);
}

fn no_answer(message: &str) -> AttemptResult {
    AttemptResult::Failed(Failure::new(Fault::Backend, message).retry_elsewhere().code("no_answer"))
}
