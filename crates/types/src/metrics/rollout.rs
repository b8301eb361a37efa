//! The series of what is observed, and of what money counts for.

#![expect(missing_docs, reason = "each series carries its help text")]

use prometheus::{Error, GaugeVec, IntCounterVec};

use super::factory::MetricFactory;

/// What is watched before it is switched on, and what money counts for.
#[derive(Debug)]
pub struct RolloutMetrics {
    pub requests: IntCounterVec,
    pub cuts: IntCounterVec,
    pub tokens: IntCounterVec,
    pub dollars: GaugeVec,
    pub shadow_price: GaugeVec,
    pub rate: GaugeVec,
    pub target: GaugeVec,
}

impl RolloutMetrics {
    pub(super) fn new(make: &MetricFactory<'_>) -> Result<RolloutMetrics, Error> {
        let route = &["route"];
        Ok(RolloutMetrics {
            requests: make.counter_vec(
                "observed_total",
                "Requests that ran as if nothing were decided, by whether another model would have been chosen",
                &["route", "would"],
            )?,
            cuts: make.counter_vec("observed_cuts_total", "Thoughts of those that would have been cut", route)?,
            tokens: make.counter_vec(
                "observed_saved_tokens_total",
                "Thinking tokens that cutting them would have saved",
                route,
            )?,
            dollars: make.float_gauge_vec(
                "observed_saved_usd",
                "What those requests cost beyond what the decisions were expected to",
                route,
            )?,
            shadow_price: make.float_gauge_vec(
                "shadow_price",
                "The highest shadow price of a declared tenant since the last reading, else the current one; 1 is face value",
                &["tenant"],
            )?,
            rate: make.float_gauge_vec(
                "spend_rate_usd_per_second",
                "Spending of a declared tenant under the budget that is closest to its pace",
                &["tenant"],
            )?,
            target: make.float_gauge_vec(
                "spend_target_usd_per_second",
                "What that tenant may spend for the budget to last",
                &["tenant"],
            )?,
        })
    }
}
