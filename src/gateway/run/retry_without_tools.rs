//! Answers of which nothing is left once the calls are taken out that the model may not make: it is asked once more, without
//! tools. An empty answer would look like a success.
//!
//! The second try is made without a thought where the model can do without, and what it may cost is set aside beside what the
//! first took: inside the reservation where that suffices for an answer, else the reservation is extended. Where there is no
//! money for it, or nothing is said once more, the request has failed.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::agent::without_tools;
use crate::backend::{Failure, Fault};
use crate::catalog::{Allowance, ChoiceUsage, Demand, Offer, Route, WorstCase};
use crate::chat::{Budget, FinishReason, Request};
use crate::execute::{ChoiceProgress, ToolCallFilter};
use crate::plan;
use crate::units::Tokens;

use super::attempts::Attempts;
use super::cascade::RequestOutcome;
use super::running_request::{RunningRequest, choices, meters, terms};
use crate::gateway::RequestUpdate;
use crate::gateway::finish::AttemptResult;
use crate::gateway::request::reservation::RequestReservation;
use crate::gateway::request::{needs, scope};

const SILENT: &str = "the model only called tools that it may not call, and said nothing when it was asked without tools; \
                      ask another model, or leave it more calls";
const NOTHING_LEFT: &str = "the model only called tools that it may not call, and no money or time is left to ask it once more \
                            without tools; allow more of it, or leave it more calls";

impl RunningRequest {
    /// Asks once more for the choices of which nothing is left, if there are any.
    pub(in crate::gateway) async fn retry_mute_choices<'p>(
        &self,
        mut flown: RequestOutcome<'p>,
        books: &mut RequestReservation,
        reports: &mpsc::Sender<RequestUpdate>,
    ) -> RequestOutcome<'p> {
        let AttemptResult::Finished(finishes) = &flown.landing else { return flown };
        let mute: Vec<usize> =
            (0..finishes.len()).filter(|at| flown.progress.get(*at).is_some_and(is_mute)).collect();
        if !mute.is_empty() {
            let finishes = finishes.clone();
            flown.landing = self.retry_choices(&mut flown, &mute, finishes, books, reports).await;
        }
        flown
    }

    async fn retry_choices(
        &self,
        flown: &mut RequestOutcome<'_>,
        mute: &[usize],
        mut finishes: Vec<FinishReason>,
        books: &mut RequestReservation,
        reports: &mpsc::Sender<RequestUpdate>,
    ) -> AttemptResult {
        let request = Arc::new(without_tools(&self.request));
        books.set_cost_max(self.request.budget.cost);
        let Some((offer, prompt)) = self.reserve_tool_free_retry(flown, mute, &request, books).await else {
            return no_answer(NOTHING_LEFT);
        };
        tracing::info!(
            request = %self.id, model = %offer.model, "asked once more without tools, since it called what it may not"
        );
        let seat = match self.acquire(&mut Attempts::only(&offer), reports).await {
            Ok(seat) => seat,
            Err(landing) => return landing,
        };
        let terms = terms(&offer, self.model(&offer), prompt, &request);
        let mut made: Vec<ChoiceProgress> =
            mute.iter().map(|at| flown.progress[*at].retry(terms.clone())).collect();
        let mut jobs = self.jobs(&seat, &offer, &request);
        jobs.retain(|job| mute.iter().any(|at| u32::try_from(*at) == Ok(job.index)));
        flown.progress.iter().for_each(ChoiceProgress::update_meter);
        let meters = [meters(&flown.progress), meters(&made)].concat();
        let landing = tokio::select! {
            biased;
            () = reports.closed() => AttemptResult::HungUp,
            landing = choices(&jobs, &mut made, reports) => landing,
            never = self.meter_and_grow(flown.offer, &meters, None, books) => match never {},
        };
        for (at, made) in mute.iter().zip(made) {
            flown.replace(*at, made);
        }
        let AttemptResult::Finished(again) = landing else { return landing };
        mute.iter().zip(again).for_each(|(at, finish)| finishes[*at] = finish);
        if flown.progress.iter().any(is_mute) { no_answer(SILENT) } else { AttemptResult::Finished(finishes) }
    }

    /// How it is asked again, and an upper bound of its prompt, with the money for it set aside; nothing where there is none.
    async fn reserve_tool_free_retry(
        &self,
        flown: &RequestOutcome<'_>,
        mute: &[usize],
        request: &Request,
        books: &mut RequestReservation,
    ) -> Option<(Offer, Tokens)> {
        let taken = WorstCase {
            money: self.cost(flown.offer, &flown.spent),
            thinking: flown.spent.iter().map(ChoiceUsage::thinking_total).sum(),
        };
        let (demand, prompt) = self.retry_demand(flown, mute, request)?;
        let stated = &self.request.budget;
        let deadline = stated.deadline.map(|_| self.deadline.saturating_duration_since(Instant::now()));
        for cost in [Some(books.remaining(taken)), None] {
            for thinking in [Some(Tokens::ZERO), stated.thinking] {
                let budget = Budget { thinking, cost, deadline, ..stated.clone() };
                let choices = u32::try_from(mute.len()).unwrap_or(u32::MAX);
                // Beyond what the request's own money pays for, what its account has left counts.
                let left = if cost.is_some() { Allowance::default() } else { self.remaining_allowance() };
                let limits = (&budget, &left);
                let offer = self.retry_offer(&flown.offer.model, &demand, request, limits, choices);
                if let Some(offer) = offer
                    && books.extend_for_auxiliary(offer.worst, taken).await
                {
                    return Some((offer, prompt));
                }
            }
        }
        None
    }

    /// The demand with the prompt by what its provider counted of the one with tools, where it did and whoever answers now counts
    /// alike.
    fn retry_demand(
        &self,
        flown: &RequestOutcome<'_>,
        mute: &[usize],
        request: &Request,
    ) -> Option<(Demand, Tokens)> {
        let mut demand = self.demand.clone();
        let of_model = demand.models.get_mut(&flown.offer.model)?;
        let fleet = self.parts.fleets.get(&flown.offer.model)?;
        let told = mute.iter().filter_map(|at| flown.progress[*at].phases.prompt_reported()).max();
        let reading = told.and_then(|told| self.counted_prompt(flown.offer, told));
        let counted = reading
            .zip(fleet.tokenizer_id())
            .and_then(|(reading, reader)| reading.upper_bound(&self.request, request, reader));
        let most = fleet.prompt_tokens(request);
        let prompt = counted.map_or(most, |counted| counted.min(most));
        of_model.prompt = prompt;
        of_model.prompt_least = of_model.prompt_least.min(prompt);
        Some((demand, prompt))
    }

    /// What its account has left beside what is set aside for it.
    fn remaining_allowance(&self) -> Allowance {
        let ledger = &self.parts.ledger;
        ledger.allowance(&self.account, &scope::of(&self.request.extra), ledger.now())
    }

    fn retry_offer(
        &self,
        model: &str,
        demand: &Demand,
        request: &Request,
        (budget, allowance): (&Budget, &Allowance),
        choices: u32,
    ) -> Option<Offer> {
        let model = self.models.iter().find(|known| *known.name == *model)?;
        let planned = plan::plan(&plan::PlanRequest {
            demand,
            models: &[&**model],
            route: &Route::with_defaults(&model.name),
            market: &self.market,
            allowance,
            budget,
            needs: &needs::of(request),
            choices,
            streams: request.streams,
            sticky: None,
            explore: None,
            opening_quantile: self.parts.settings.opening_quantile,
        });
        planned.ok().map(|plan| plan.best)
    }
}

impl RequestOutcome<'_> {
    /// The second try at a choice in the first one's place; what that took is not delivered.
    fn replace(&mut self, at: usize, made: ChoiceProgress) {
        let mut spent = made.spent();
        spent.absorb(&self.spent[at]);
        spent.extra_calls += 1;
        (self.spent[at], self.progress[at]) = (spent, made);
    }
}

fn is_mute(choice: &ChoiceProgress) -> bool {
    choice.tool_filter.as_ref().is_some_and(ToolCallFilter::is_emptied)
}

fn no_answer(message: &str) -> AttemptResult {
    AttemptResult::Failed(Failure::new(Fault::Backend, message).retry_elsewhere().code("no_answer"))
}
