//! The series of the ledger.

#![expect(missing_docs, reason = "each series carries its help text")]

use prometheus::{Error, Gauge, Histogram, IntGauge};

use super::buckets;
use super::maker::Maker;

/// How the ledger keeps up.
#[derive(Debug)]
pub struct LedgerSeries {
    pub commit_seconds: Histogram,
    pub pending: IntGauge,
    pub stranded: Gauge,
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
