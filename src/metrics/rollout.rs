//! The series of what is observed, and of what money counts for.

#![expect(missing_docs, reason = "each series carries its help text")]

use prometheus::{Error, GaugeVec, IntCounterVec};

use super::maker::Maker;

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
