//! The series of requests.

#![expect(missing_docs, reason = "each series carries its help text")]

use prometheus::{Error, Histogram, HistogramVec, IntCounterVec, IntGauge};

use super::buckets;
use super::factory::MetricFactory;

/// How requests go.
#[derive(Debug)]
pub struct RequestMetrics {
    pub total: IntCounterVec,
    pub seconds: HistogramVec,
    pub overhead_seconds: Histogram,
    pub first_token_seconds: HistogramVec,
    pub first_solution_token_seconds: HistogramVec,
    pub token_seconds: HistogramVec,
    pub prompt_tokens: IntCounterVec,
    pub cached_tokens: IntCounterVec,
    pub refusals: IntCounterVec,
    pub fallbacks: IntCounterVec,
    pub rescues: IntCounterVec,
    pub success_predicted: HistogramVec,
    pub connections: IntGauge,
    pub turned_away: IntCounterVec,
}

impl RequestMetrics {
    pub(super) fn new(make: &MetricFactory<'_>) -> Result<RequestMetrics, Error> {
        let (model, times) = (&["model"], buckets::seconds);
        let (connections, turned_away) = connections(make)?;
        let (prompt_tokens, cached_tokens) = prompts(make)?;
        Ok(RequestMetrics {
            total: make.counter_vec(
                "requests_total",
                "Requests by how they ended",
                &["route", "model", "outcome"],
            )?,
            seconds: make.histogram_vec(
                "request_seconds",
                "Time from a request's arrival to its settled end",
                &["route"],
                times(),
            )?,
            overhead_seconds: make.histogram(
                "overhead_seconds",
                "Time of a request that the gateway took itself: to decide, to reserve and to settle; neither what an upstream took nor what was waited for",
                buckets::overhead_seconds(),
            )?,
            first_token_seconds: make.histogram_vec(
                "first_token_seconds",
                "Time to the first token, of thought or answer",
                model,
                times(),
            )?,
            first_solution_token_seconds: make.histogram_vec(
                "first_solution_token_seconds",
                "Time to the first token of the answer",
                model,
                times(),
            )?,
            token_seconds: make.histogram_vec(
                "token_seconds",
                "Time per token written, thought and answer together",
                model,
                buckets::token_seconds(),
            )?,
            prompt_tokens,
            cached_tokens,
            refusals: make.counter_vec(
                "refusals_total",
                "Requests refused, by the limit that refused them",
                &["limit"],
            )?,
            fallbacks: make.counter_vec("fallbacks_total", "Offers given up for the next one", model)?,
            rescues: make.counter_vec(
                "rescues_total",
                "Empty answers tried again, with the least thinking or without calls of tools",
                model,
            )?,
            success_predicted: make.histogram_vec(
                "success_predicted",
                "Predicted chance of a right answer",
                model,
                buckets::shares(),
            )?,
            connections,
            turned_away,
        })
    }
}

/// The series of callers' connections.
fn connections(make: &MetricFactory<'_>) -> Result<(IntGauge, IntCounterVec), Error> {
    let open = make.gauge("connections", "Open connections of callers")?;
    let turned_away = make.counter_vec(
        "connections_turned_away_total",
        "Connections closed or refused for lack of a place, by the cause; and requests beyond the share of an account, or of an address behind a proxy",
        &["why"],
    )?;
    Ok((open, turned_away))
}

/// The series of what is read.
fn prompts(make: &MetricFactory<'_>) -> Result<(IntCounterVec, IntCounterVec), Error> {
    let all = make.counter_vec("prompt_tokens_total", "Tokens of prompts, each prompt once", &["model"])?;
    let cached = make.counter_vec(
        "cached_tokens_total",
        "Tokens of prompts that an upstream read from its cache",
        &["model"],
    )?;
    Ok((all, cached))
}
