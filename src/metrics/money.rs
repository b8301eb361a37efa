//! The series of money.

#![expect(missing_docs, reason = "each series carries its help text")]

use prometheus::{CounterVec, Error, Gauge, GaugeVec, IntCounterVec};

use super::maker::Maker;

/// What is reserved, spent and left.
#[derive(Debug)]
pub struct Money {
    pub reserved: Gauge,
    pub spent: CounterVec,
    pub overrun: CounterVec,
    pub left: GaugeVec,
    pub warnings: IntCounterVec,
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
