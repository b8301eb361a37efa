//! The series of money.

#![expect(missing_docs, reason = "each series carries its help text")]

use prometheus::{CounterVec, Error, Gauge, GaugeVec, IntCounterVec};

use super::factory::MetricFactory;

/// What is reserved, spent and left.
#[derive(Debug)]
pub struct MoneyMetrics {
    pub reserved: Gauge,
    pub spent: CounterVec,
    pub overrun: CounterVec,
    pub left: GaugeVec,
    pub warnings: IntCounterVec,
}

impl MoneyMetrics {
    pub(super) fn new(make: &MetricFactory<'_>) -> Result<MoneyMetrics, Error> {
        Ok(MoneyMetrics {
            reserved: make
                .float_gauge("money_reserved_usd", "Money set aside and not yet settled, in dollars")?,
            spent: make.float_counter_vec(
                "money_spent_usd_total",
                "Money settled, in dollars",
                &["model", "tenant"],
            )?,
            overrun: make.float_counter_vec(
                "money_overrun_usd_total",
                "Money settled beyond what was reserved, in dollars",
                &["model"],
            )?,
            left: make.float_gauge_vec(
                "budget_left_ratio",
                "What is left of a declared tenant's tightest budget, 0 to 1; rates and pauses do not count",
                &["tenant"],
            )?,
            warnings: make.counter_vec(
                "limit_warnings_total",
                "Limits that reached their warning threshold or refused before, by the kind of limit",
                &["limit"],
            )?,
        })
    }
}
