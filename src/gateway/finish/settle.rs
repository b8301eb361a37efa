//! Settles a request: posts what it really took and records its step, before its caller sees the end.

use crate::gateway::episodes::{PassedToolCalls, StepAnswers};
use crate::gateway::request::{RequestContext, RequestReservation, settlement_detail};
use crate::gateway::run::{AttemptResult, RequestOutcome};
use stint_ledger::{SettlementDetail, SettlementStatus};
use stint_types::catalog::ChoiceUsage;
use stint_types::units::{Money, Tokens};

use super::ended_word;

/// What a settled request cost, and what was lost on the way.
pub(super) struct Settlement {
    pub(super) cost: Money,
    /// Whether the books have that cost.
    pub(super) status: SettlementStatus,
    pub(super) reserved: Money,
    /// Attempts that were given up.
    pub(super) attempts: u32,
    /// How many of those were given up for one beside them.
    pub(super) hedge_losers: u32,
    /// All tokens of those.
    pub(super) given_up: Tokens,
    /// What passed of the tool calls.
    pub(super) passed: PassedToolCalls,
}

/// Settles, and waits a bounded time until that is durable. `is_heard` says whether the caller is still there.
pub(super) async fn settle(
    context: &RequestContext,
    outcome: &mut RequestOutcome<'_>,
    reservation: RequestReservation,
    is_heard: bool,
) -> Settlement {
    // If the cost of failed attempts is estimated, the reported cost is estimated too.
    outcome.spent.iter_mut().for_each(|spent| spent.estimated |= reservation.is_estimated());
    let metrics = &context.parts().metrics;
    let passed = match &context.step {
        Some(step) => step.passed(&outcome.progress, metrics),
        None => PassedToolCalls::of_undeclared(&outcome.progress, metrics),
    };
    let tools_reserved = context.step.as_ref().map(|step| step.plan.tools_cost).unwrap_or_default();
    let (attempts, hedge_losers) = (reservation.attempts(), reservation.hedge_losers());
    let (given_up, reserved) = (reservation.given_up(), reservation.reserved() + tools_reserved);
    let detail = settlement_detail(&outcome.spent, ended_word::of_outcome(context, outcome));
    let detail = SettlementDetail { tools: passed.tools.clone(), tools_cost: passed.cost, ..detail };
    let bill = context.bill(outcome.offer, &outcome.spent);
    let settled = reservation.settle(bill, detail, context.parts().settings.settle_patience);
    let ((cost, status), ()) =
        futures_util::future::join(settled, record_step(context, outcome, is_heard)).await;
    mark_uncharged(context, outcome, cost);
    Settlement { cost, status, reserved, attempts, hedge_losers, given_up, passed }
}

impl Settlement {
    /// The cost that the books have. Nobody is told any other.
    pub(super) fn booked_cost(&self) -> Option<Money> {
        match self.status {
            SettlementStatus::Recorded => Some(self.cost),
            SettlementStatus::Pending | SettlementStatus::Superseded => None,
        }
    }

    /// Why its cost is not known, where that is so.
    pub(super) fn why(&self) -> Option<&'static str> {
        match self.status {
            SettlementStatus::Recorded => None,
            SettlementStatus::Pending => Some("; its cost is not known yet: the ledger has not written it"),
            SettlementStatus::Superseded => {
                Some("; its cost is not known: the ledger had closed the request before it ended")
            }
        }
    }
}

/// Remembers a step that was answered, before its caller sees the end of the answer; of one that broke off, where its place
/// in the conversation was. Of one that said nothing, nothing stays.
async fn record_step(context: &RequestContext, outcome: &RequestOutcome<'_>, is_heard: bool) {
    let Some(step) = &context.step else { return };
    match &outcome.result {
        AttemptResult::Finished(finishes) => {
            let now = context.parts().ledger.now();
            let reading = |reported| context.counted_prompt(outcome.offer, reported);
            let answers = StepAnswers { progress: &outcome.progress, finishes, is_heard };
            step.record(&context.account, outcome.offer, answers, reading, now).await;
        }
        AttemptResult::Sampled(_) | AttemptResult::Failed(_) | AttemptResult::HungUp => {
            let now = context.parts().ledger.now();
            if outcome.progress.iter().any(|choice| choice.first.is_some()) {
                step.record_broken_off(&context.account, now).await;
            } else {
                step.take_back(&context.account, now).await;
            }
        }
    }
}

/// A retry of a request that failed and used nothing may begin again under its idempotency key.
fn mark_uncharged(context: &RequestContext, outcome: &RequestOutcome<'_>, cost: Money) {
    let is_unused = |spent: &ChoiceUsage| spent.thinking_total() == Tokens::ZERO;
    let used_nothing = cost == Money::ZERO && outcome.spent.iter().all(is_unused);
    if let (Some(ticket), AttemptResult::Failed(_) | AttemptResult::HungUp) =
        (&context.ticket, &outcome.result)
        && used_nothing
    {
        ticket.mark_uncharged();
    }
}
