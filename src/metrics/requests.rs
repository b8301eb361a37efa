//! The series of requests.

#![expect(missing_docs, reason = "each series carries its help text")]

use prometheus::{Error, HistogramVec, IntCounterVec, IntGauge};

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
    pub success_predicted: HistogramVec,
    pub connections: IntGauge,
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
