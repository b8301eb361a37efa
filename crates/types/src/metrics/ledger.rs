//! The series of the ledger.

#![expect(missing_docs, reason = "each series carries its help text")]

use prometheus::{Error, Gauge, Histogram, IntGauge};

use super::buckets;
use super::factory::MetricFactory;

/// How the ledger keeps up.
#[derive(Debug)]
pub struct LedgerMetrics {
    pub commit_seconds: Histogram,
    pub pending: IntGauge,
    pub stalled: IntGauge,
    pub stranded: Gauge,
}

impl LedgerMetrics {
    pub(super) fn new(make: &MetricFactory<'_>) -> Result<LedgerMetrics, Error> {
        Ok(LedgerMetrics {
            commit_seconds: make.histogram(
                "ledger_commit_seconds",
                "Time of one group commit",
                buckets::commit_seconds(),
            )?,
            pending: make.gauge("ledger_pending", "Ledger entries that wait for their commit")?,
            stalled: make.gauge(
                "ledger_stalled",
                "1 while the ledger can record nothing and new requests are refused, else 0",
            )?,
            stranded: make.float_gauge(
                "lease_stranded_usd",
                "Money of shared limits that this replica holds and neither spent nor reserved, in dollars",
            )?,
        })
    }
}
