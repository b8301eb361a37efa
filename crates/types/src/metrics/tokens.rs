//! The series of callers' tokens.

#![expect(missing_docs, reason = "each series carries its help text")]

use prometheus::{Error, GaugeVec, IntCounterVec};

use super::factory::MetricFactory;

/// What becomes of tokens that callers come with, and of the keys of their issuers.
#[derive(Debug)]
pub struct TokenMetrics {
    pub checks: IntCounterVec,
    pub fetches: IntCounterVec,
    pub keys_fetched: GaugeVec,
}

impl TokenMetrics {
    pub(super) fn new(make: &MetricFactory<'_>) -> Result<TokenMetrics, Error> {
        let help = "Tokens of issuers that were checked, by the tree of accounts and by what came of it; one that is remembered is not checked again";
        let checks = make.counter_vec("token_checks_total", help, &["issuer", "outcome"])?;
        let help = "How often the keys of an issuer were fetched, by what came of it";
        let fetches = make.counter_vec("issuer_key_fetches_total", help, &["issuer", "outcome"])?;
        let help = "When the keys of an issuer were fetched last, in seconds since 1970";
        let keys_fetched =
            make.float_gauge_vec("issuer_keys_fetched_timestamp_seconds", help, &["issuer"])?;
        Ok(TokenMetrics { checks, fetches, keys_fetched })
    }
}
