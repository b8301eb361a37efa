//! The end of a flight: settled, told to all who go by how requests end, and to the caller.

pub(super) mod request_metrics;
pub(super) mod request_record;

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::agent::CountedPrompt;
use crate::backend::Failure;
use crate::catalog::{ChoiceUsage, EnforcementClass, Offer};
use crate::chat::FinishReason;
use crate::execute::{ChoiceProgress, SamplingResult};
use crate::history::RequestRecord;
use crate::ledger::SettlementDetail;
use crate::units::{Chance, Money, Tokens};

use self::request_record::RequestEnding;
use super::episodes::PassedToolCalls;
use super::feedback;
use super::run::cascade::RequestOutcome;

use super::admit::rollout::ActualUsage;
use super::request::needs;
use super::request::reservation::{RequestReservation, settlement_detail};
use super::run::running_request::RunningRequest;
use super::{EpisodeSnapshot, RequestReceipt, RequestUpdate, SettledChoice};
use request_metrics::SettledRequest;

/// How the run of one offer ended.
pub(in crate::gateway) enum AttemptResult {
    /// Every choice came to its end.
    Finished(Vec<FinishReason>),
    /// Every choice was made, perhaps several times, and none was shown yet.
    Sampled(Vec<SamplingResult>),
    /// The backend failed.
    Failed(Failure),
    /// The caller is gone.
    HungUp,
}

impl AttemptResult {
    /// The word in metrics and the journal.
    fn as_str(&self) -> &'static str {
        match self {
            AttemptResult::Finished(_) | AttemptResult::Sampled(_) => "finished",
            AttemptResult::Failed(_) => "failed",
            AttemptResult::HungUp => "hung_up",
        }
    }

    /// What failed, in one word.
    fn error(&self) -> Option<&'static str> {
        match self {
            AttemptResult::Failed(failure) => Some(failure.code.unwrap_or(failure.fault.as_str())),
            AttemptResult::Finished(_) | AttemptResult::Sampled(_) | AttemptResult::HungUp => None,
        }
    }
}

/// The sums on a receipt.
#[derive(Clone, Copy)]
struct ReceiptTotals {
    cost: Money,
    reserved: Money,
    attempts: u32,
    /// How many of those were given up for one beside them.
    hedge_losers: u32,
    given_up: Tokens,
}

impl RunningRequest {
    /// Settles and reports the end.
    pub(in crate::gateway) async fn finish(
        &self,
        flown: RequestOutcome<'_>,
        books: RequestReservation,
        reports: mpsc::Sender<RequestUpdate>,
    ) {
        let RequestOutcome { offer, landing, progress, mut spent, tallies } = flown;
        if !books.is_dispatched() {
            let refusal = match landing {
                AttemptResult::Failed(failure) => Some(needs::failed(&self.request, failure)),
                AttemptResult::HungUp | AttemptResult::Finished(_) | AttemptResult::Sampled(_) => None,
            };
            return self.abort(books, refusal, &reports).await;
        }
        let (attempts, given_up, reserved) = (books.attempts(), books.given_up(), books.reserved());
        let outrun = books.hedge_losers();
        // What a caller is told of the cost is no surer than what was lost on the way to it.
        spent.iter_mut().for_each(|spent| spent.estimated |= books.is_estimated());
        let (passed, reserved) = (self.passed_tool_calls(&progress), reserved + self.tools_reserved());
        let detail = settlement_detail(&spent, landing.as_str());
        let detail = SettlementDetail { tools: passed.tools.clone(), tools_cost: passed.cost, ..detail };
        let kept = self.record_step(offer, &landing, &progress);
        let settled = books.settle(self.bill(offer, &spent), detail, &self.parts.settings);
        let (cost, ()) = futures_util::future::join(settled, kept).await;
        let used_nothing =
            cost == Money::ZERO && spent.iter().all(|spent| spent.thinking_total() == Tokens::ZERO);
        self.mark_uncharged_if(used_nothing, &landing);
        let (ended, error) = (landing.as_str(), landing.error());
        let close = RequestEnding {
            offer,
            progress: &progress,
            spent: &spent,
            ended,
            error,
            cost,
            reserved,
            attempts,
            given_up,
        };
        let story = self.publish_outcome(&close);
        let report = match landing {
            AttemptResult::HungUp | AttemptResult::Sampled(_) => return,
            AttemptResult::Failed(failure) => {
                tracing::warn!(request = %self.id, model = %offer.model, fault = failure.fault.as_str(), %failure, "failed");
                RequestUpdate::Failed(needs::failed(&self.request, failure))
            }
            AttemptResult::Finished(finishes) => {
                let mut tallies = tallies.into_iter();
                let settled = |(finish, spent): (FinishReason, ChoiceUsage)| SettledChoice {
                    finish,
                    spent,
                    tally: tallies.next(),
                };
                let choices = finishes.into_iter().zip(spent).map(settled).collect();
                let sums = ReceiptTotals { cost, reserved, attempts, hedge_losers: outrun, given_up };
                let episode = self.episode_snapshot(&passed);
                let mut receipt = RequestReceipt { episode, ..self.receipt(offer, choices, sums) };
                receipt.why.extend(passed.why());
                RequestUpdate::Done(Box::new(receipt))
            }
        };
        let _ = reports.send(report).await;
        self.parts.learning.record_signals(&story, feedback::of_form(&self.request, &progress));
    }

    /// A retry of a request that failed and used nothing may begin anew under its idempotency key.
    fn mark_uncharged_if(&self, used_nothing: bool, result: &AttemptResult) {
        if let (Some(ticket), AttemptResult::Failed(_) | AttemptResult::HungUp) = (&self.ticket, result)
            && used_nothing
        {
            ticket.mark_uncharged();
        }
    }

    fn receipt(&self, offer: &Offer, choices: Vec<SettledChoice>, sums: ReceiptTotals) -> RequestReceipt {
        let ReceiptTotals { cost, reserved, attempts, hedge_losers: outrun, given_up } = sums;
        RequestReceipt {
            id: self.id,
            model: offer.model.clone(),
            class: offer.class,
            thinking: offer.thinking,
            solution: offer.solution,
            choices,
            cost,
            reserved,
            attempts,
            given_up,
            why: self.why(offer, attempts, outrun),
            episode: None,
        }
    }

    /// What passed of the tool calls.
    fn passed_tool_calls(&self, progress: &[ChoiceProgress]) -> PassedToolCalls {
        let metrics = &self.parts.metrics;
        match &self.step {
            Some(stepping) => stepping.passed(progress, metrics),
            None => PassedToolCalls::of_undeclared(progress, metrics),
        }
    }

    /// How the run stands that it was a step of.
    fn episode_snapshot(&self, passed: &PassedToolCalls) -> Option<EpisodeSnapshot> {
        let (stepping, ledger) = (self.step.as_ref(), &self.parts.ledger);
        stepping.map(|stepping| stepping.snapshot(ledger, &self.account, passed))
    }

    /// What was set aside for tool calls.
    fn tools_reserved(&self) -> Money {
        self.step.as_ref().map(|stepping| stepping.plan.tools_cost).unwrap_or_default()
    }

    /// Remembers a step that was answered, before its caller sees the end of the answer.
    async fn record_step(&self, offer: &Offer, landing: &AttemptResult, progress: &[ChoiceProgress]) {
        if let (Some(stepping), AttemptResult::Finished(finishes)) = (&self.step, landing) {
            let now = self.parts.ledger.now();
            let reading = |told| self.counted_prompt(offer, told);
            stepping.record(&self.account, (offer, progress), finishes, reading, now).await;
        }
    }

    /// What the provider counted of the prompt, where the next one can go by it.
    pub(in crate::gateway) fn counted_prompt(&self, offer: &Offer, told: Tokens) -> Option<CountedPrompt> {
        // Where a tokenizer told as much before, nothing is gained by it.
        if told >= self.prompt(offer) {
            return None;
        }
        let reader = self.parts.fleets.get(&offer.model)?.tokenizer_id()?;
        let before = self.step.as_ref().and_then(|stepping| stepping.previous_counted_prompt(&offer.model));
        CountedPrompt::of(&self.request, reader, told, before)
    }

    /// Tells everybody who goes by how requests end: Prometheus, the demotions, the prices, learning.
    fn publish_outcome(&self, close: &RequestEnding<'_>) -> Arc<RequestRecord> {
        let RequestEnding { offer, progress, spent, ended, cost, .. } = *close;
        request_metrics::settled(self, &SettledRequest { offer, progress, spent, outcome: ended });
        self.verify_native_budget(offer, spent);
        self.update_pacing(cost, ended, offer.success);
        if let Some(observed) = self.observed.as_ref().filter(|_| ended == "finished") {
            let ran = ActualUsage { model: &offer.model, spent, cost };
            observed.record_outcome(&self.parts.metrics, self.id, &self.route, &ran);
        }
        let story = self.request_record(close);
        self.observer.iter().for_each(|observer| observer.settled(&story.outcome));
        self.parts.learning.record_finished(&story, self.decision_context.question);
        self.parts.learning.record_signals(&story, feedback::of_ending(&story, &self.request));
        story
    }

    /// What decided; after failures, that too.
    fn why(&self, offer: &Offer, attempts: u32, outrun: u32) -> String {
        let (planned, best) = (&self.plan.why, &self.plan.best.model);
        let escalated = |from: &&Offer| from.escalate.as_deref() == Some(offer);
        let mut offers = std::iter::once(&self.plan.best).chain(&self.plan.fallbacks);
        match attempts {
            _ if let Some(from) = offers.find(escalated) => {
                format!("{planned}; {} was in doubt, so {} was asked", from.model, offer.model)
            }
            _ if offer.model != *best => {
                format!("{best} failed and {} took over; planned was: {planned}", offer.model)
            }
            0 => planned.clone(),
            all if all == outrun => {
                format!("{planned}; another target was asked beside the first, which was silent")
            }
            failed => format!("{planned}; {failed} failed before"),
        }
    }

    /// Believes a native budget only as long as it holds.
    fn verify_native_budget(&self, offer: &Offer, spent: &[ChoiceUsage]) {
        self.detect_thinking(offer, spent);
        self.detect_non_thinking(offer);
        if offer.class != EnforcementClass::Native || spent.iter().all(|spent| !spent.overran) {
            return;
        }
        let used = spent.iter().map(|spent| spent.thinking).max();
        self.parts.metrics.thinking.overran.with_label_values(&[&*offer.model]).inc();
        if let Some(class) = self.model(offer).and_then(|model| self.demotions.demote(model)) {
            self.parts.metrics.thinking.demotions.with_label_values(&[&*offer.model]).inc();
            tracing::warn!(
                request = %self.id, model = %offer.model, budget = %offer.thinking, used = ?used, now = class.as_str(),
                "demoted: the provider's thinking budget did not hold"
            );
        }
    }

    /// A model whose own server says that it does not think is planned for as one that does not.
    fn detect_non_thinking(&self, offer: &Offer) {
        let fleet = self.parts.fleets.get(&offer.model);
        let Some(model) = self.model(offer).filter(|_| fleet.is_some_and(|fleet| fleet.never_thinks()))
        else {
            return;
        };
        if self.demotions.mark_non_thinking(model) {
            tracing::info!(
                request = %self.id, model = %offer.model,
                "its chat template knows of no thoughts: nothing is held or handed over there"
            );
        }
    }

    /// A model that thinks, though nobody said so, is planned for as one that does.
    fn detect_thinking(&self, offer: &Offer, spent: &[ChoiceUsage]) {
        let used = spent.iter().map(ChoiceUsage::thinking_total).max().unwrap_or_default();
        let Some(model) = self.model(offer).filter(|_| used > Tokens::ZERO) else { return };
        if let Some(room) = self.demotions.mark_thinking(model, used) {
            tracing::warn!(
                request = %self.id, model = %offer.model, %used, %room,
                "it thinks, though nothing says so: say its kind and thinking_max, or run `stint probe`"
            );
        }
    }

    /// Lets the prices follow what was spent, and what success counts for what was reached.
    fn update_pacing(&self, cost: Money, ended: &str, success: Chance) {
        self.pacing.record_settlement(&self.account, &self.paced, self.expected, cost);
        if ended == "finished" {
            self.pacing.record_success(&self.policy, success);
        }
    }
}
