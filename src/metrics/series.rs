//! The series, by what they tell about.

#![expect(missing_docs, reason = "each series carries its help text")]

use prometheus::{
    CounterVec, Error, Gauge, GaugeVec, Histogram, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec,
};

use super::buckets;
use super::maker::Maker;

/// How requests go.
#[derive(Debug)]
pub struct Requests {
    pub total: IntCounterVec,
    pub seconds: HistogramVec,
    pub first_token_seconds: HistogramVec,
    pub first_solution_token_seconds: HistogramVec,
    pub token_seconds: HistogramVec,
    pub refusals: IntCounterVec,
    pub fallbacks: IntCounterVec,
    pub rescues: IntCounterVec,
    pub idempotency: IntCounterVec,
    pub stored: IntCounterVec,
    pub joined: IntCounterVec,
    pub success_predicted: HistogramVec,
    pub connections: IntGauge,
}

/// What budgets are given and used.
#[derive(Debug)]
pub struct Thinking {
    pub planned: HistogramVec,
    pub used: HistogramVec,
    pub ended: IntCounterVec,
    pub overshoot: HistogramVec,
    pub solution_used: HistogramVec,
    pub estimated: IntCounterVec,
    pub leaks: IntCounterVec,
    pub overran: IntCounterVec,
    pub demotions: IntCounterVec,
}

/// What is reserved, spent and left.
#[derive(Debug)]
pub struct Money {
    pub reserved: Gauge,
    pub spent: CounterVec,
    pub overrun: CounterVec,
    pub left: GaugeVec,
    pub warnings: IntCounterVec,
}

/// What the models' backends do.
#[derive(Debug)]
pub struct Backends {
    pub queue_depth: IntGaugeVec,
    pub in_flight: IntGaugeVec,
    pub concurrency_limit: IntGaugeVec,
    pub state: IntGaugeVec,
    pub trips: IntCounterVec,
    pub attempt_failures: IntCounterVec,
    pub retries: IntCounterVec,
    pub hedges: IntCounterVec,
    pub sheds: IntCounterVec,
    pub engine_tokens: IntCounterVec,
}

/// What is learned.
#[derive(Debug)]
pub struct Learned {
    pub feedback_score: HistogramVec,
    pub regret: HistogramVec,
    pub dropped: IntCounterVec,
    pub observations: IntGaugeVec,
}

/// How the ledger keeps up.
#[derive(Debug)]
pub struct LedgerSeries {
    pub commit_seconds: Histogram,
    pub pending: IntGauge,
    pub stranded: Gauge,
}

/// What is watched before it is switched on, and what money counts for.
#[derive(Debug)]
pub struct Rollout {
    pub requests: IntCounterVec,
    pub cuts: IntCounterVec,
    pub tokens: IntCounterVec,
    pub dollars: GaugeVec,
    pub shadow_price: GaugeVec,
    pub rate: GaugeVec,
    pub target: GaugeVec,
}

impl Rollout {
    pub(super) fn new(make: &Maker) -> Result<Rollout, Error> {
        let route = &["route"];
        Ok(Rollout {
            requests: make.counts(
                "observed_total",
                "Requests that ran as if nothing were decided, by whether another model would have been chosen",
                &["route", "would"],
            )?,
            cuts: make.counts("observed_cuts_total", "Thoughts of those that would have been cut", route)?,
            tokens: make.counts(
                "observed_saved_tokens_total",
                "Thinking tokens that cutting them would have saved",
                route,
            )?,
            dollars: make.levels(
                "observed_saved_usd",
                "What those requests cost beyond what the decisions were expected to",
                route,
            )?,
            shadow_price: make.levels(
                "shadow_price",
                "What a dollar of a declared tenant counts, 1 at its face",
                &["tenant"],
            )?,
            rate: make.levels(
                "spend_rate_usd_per_second",
                "What a declared tenant spends of the budget that is tightest to its pace",
                &["tenant"],
            )?,
            target: make.levels(
                "spend_target_usd_per_second",
                "What that tenant may spend for the budget to last",
                &["tenant"],
            )?,
        })
    }
}

impl Requests {
    pub(super) fn new(make: &Maker) -> Result<Requests, Error> {
        let (model, times) = (&["model"], buckets::seconds);
        Ok(Requests {
            total: make.counts(
                "requests_total",
                "Requests by how they ended",
                &["route", "model", "outcome"],
            )?,
            seconds: make.spreads(
                "request_seconds",
                "Time from a request's arrival to its settled end",
                &["route"],
                times(),
            )?,
            first_token_seconds: make.spreads(
                "first_token_seconds",
                "Time to the first token, of thought or answer",
                model,
                times(),
            )?,
            first_solution_token_seconds: make.spreads(
                "first_solution_token_seconds",
                "Time to the first token of the answer",
                model,
                times(),
            )?,
            token_seconds: make.spreads(
                "token_seconds",
                "Time per token written, thought and answer together",
                model,
                buckets::token_seconds(),
            )?,
            refusals: make.counts(
                "refusals_total",
                "Requests refused, by the limit that refused them",
                &["limit"],
            )?,
            fallbacks: make.counts("fallbacks_total", "Offers given up for the next one", model)?,
            rescues: make.counts(
                "rescues_total",
                "Empty answers tried again, with the least thinking or without tools",
                model,
            )?,
            idempotency: make.counts(
                "idempotency_total",
                "Requests with an idempotency key, by what there was under it",
                &["outcome"],
            )?,
            stored: make.counts(
                "responses_stored_total",
                "Responses that were to be kept, by what became of them",
                &["outcome"],
            )?,
            joined: make.counts(
                "conversations_lengthened_total",
                "Answers that were to be added to their conversations, by what became of them",
                &["outcome"],
            )?,
            success_predicted: make.spreads(
                "success_predicted",
                "Predicted chance of a right answer",
                model,
                buckets::shares(),
            )?,
            connections: make.number("connections", "Open connections of callers")?,
        })
    }
}

impl Thinking {
    pub(super) fn new(make: &Maker) -> Result<Thinking, Error> {
        let (model, both) = (&["model"], &["model", "class"]);
        let spread = |name, help, labels| make.spreads(name, help, labels, buckets::tokens());
        Ok(Thinking {
            planned: spread("thinking_tokens_planned", "Thinking budgets given", both)?,
            used: spread("thinking_tokens_used", "Thinking tokens used", both)?,
            ended: make.counts("thinking_ended_total", "Thoughts by how they ended", &["model", "ended"])?,
            overshoot: spread("thinking_overshoot_tokens", "Thinking tokens used beyond the budget", model)?,
            solution_used: spread("solution_tokens_used", "Solution tokens used", model)?,
            estimated: make.counts(
                "estimated_usage_total",
                "Answers whose usage was reckoned, not reported",
                model,
            )?,
            leaks: make.counts(
                "leaks_total",
                "Sentences of answers that went on like a thought which was cut",
                model,
            )?,
            overran: make.counts(
                "thinking_overran_total",
                "Requests on which a provider's own thinking budget did not hold",
                model,
            )?,
            demotions: make.counts(
                "demotions_total",
                "Models whose own thinking budget is no longer believed",
                model,
            )?,
        })
    }
}

impl Money {
    pub(super) fn new(make: &Maker) -> Result<Money, Error> {
        Ok(Money {
            reserved: make.level("money_reserved_usd", "Money set aside and not yet settled, in dollars")?,
            spent: make.sums("money_spent_usd_total", "Money settled, in dollars", &["model", "tenant"])?,
            overrun: make.sums(
                "money_overrun_usd_total",
                "Money settled beyond what was reserved, in dollars",
                &["model"],
            )?,
            left: make.levels(
                "budget_left_ratio",
                "What is left of a declared tenant's tightest limit, 0 to 1",
                &["tenant"],
            )?,
            warnings: make.counts(
                "limit_warnings_total",
                "Limits that reached their warning threshold or refused before, by the kind of limit",
                &["limit"],
            )?,
        })
    }
}

impl Backends {
    pub(super) fn new(make: &Maker) -> Result<Backends, Error> {
        let target = &["model", "target"];
        Ok(Backends {
            queue_depth: make.numbers(
                "queue_depth",
                "Requests that wait for a place on a target",
                &["model"],
            )?,
            in_flight: make.numbers("in_flight", "Calls under way", target)?,
            concurrency_limit: make.numbers(
                "concurrency_limit",
                "Calls that may be under way at once",
                target,
            )?,
            state: make.numbers(
                "backend_state",
                "1 where the target may be asked, 0 where it is left alone",
                target,
            )?,
            trips: make.counts(
                "backend_trips_total",
                "How often a target was left alone from then on, by why",
                &["model", "target", "cause"],
            )?,
            attempt_failures: make.counts(
                "attempt_failures_total",
                "Attempts that failed, by the target that failed and whose fault it was",
                &["model", "target", "fault"],
            )?,
            retries: make.counts(
                "retries_total",
                "Attempts after the first, by the target that got them",
                target,
            )?,
            hedges: make.counts(
                "hedges_total",
                "Second attempts that were due beside a silent one, by what became of them",
                &["model", "outcome"],
            )?,
            sheds: make.counts(
                "sheds_total",
                "Requests for which no place was found or waited for, by why",
                &["model", "cause"],
            )?,
            engine_tokens: make.counts(
                "engine_tokens_total",
                "Tokens that the local engine read and wrote",
                &["model", "phase"],
            )?,
        })
    }
}

impl Learned {
    pub(super) fn new(make: &Maker) -> Result<Learned, Error> {
        Ok(Learned {
            feedback_score: make.spreads(
                "feedback_score",
                "What callers say of answers, from 0 for wrong to 1 for right",
                &["model"],
                buckets::shares(),
            )?,
            regret: make.spreads(
                "regret",
                "By how much the best offer, as far as is believed, was worth more than the chosen one, in dollars",
                &["route"],
                buckets::dollars(),
            )?,
            dropped: make.counts(
                "outcomes_dropped_total",
                "Outcomes that were not learned from, kept or logged, by where there was no room or no answer",
                &["at"],
            )?,
            observations: make.numbers(
                "learned_observations",
                "Outcomes and judgements of answers that this process has learned from",
                &["model"],
            )?,
        })
    }
}

impl LedgerSeries {
    pub(super) fn new(make: &Maker) -> Result<LedgerSeries, Error> {
        Ok(LedgerSeries {
            commit_seconds: make.spread(
                "ledger_commit_seconds",
                "Time of one group commit",
                buckets::commit_seconds(),
            )?,
            pending: make.number("ledger_pending", "Ledger entries that wait for their commit")?,
            stranded: make.level(
                "lease_stranded_usd",
                "Money of shared limits that this replica holds and neither spent nor reserved, in dollars",
            )?,
        })
    }
}
