//! The series of the configuration.

#![expect(missing_docs, reason = "each series carries its help text")]

use prometheus::{Error, Gauge, GaugeVec, IntGauge};

use super::factory::MetricFactory;

/// Whether what the operator wrote is in force.
#[derive(Debug)]
pub struct ConfigMetrics {
    pub state: IntGauge,
    pub loaded: Gauge,
    pub certificate_expiry: GaugeVec,
}

impl ConfigMetrics {
    pub(super) fn new(make: &MetricFactory<'_>) -> Result<ConfigMetrics, Error> {
        let help = "1 if the configuration was valid when it was last read, 0 if it was refused and the previous one is in force";
        let state = make.gauge("config_state", help)?;
        let help = "When the configuration in force was read, in seconds since 1970";
        let loaded = make.float_gauge("config_loaded_timestamp_seconds", help)?;
        let help = "When the certificate of a TLS listener, or the first of its chain, expires, in seconds since 1970";
        let certificate_expiry = make.float_gauge_vec("certificate_expiry_seconds", help, &["listener"])?;
        Ok(ConfigMetrics { state, loaded, certificate_expiry })
    }
}
