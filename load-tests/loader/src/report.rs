//! What came of a run, for people and for programs.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::histogram::Summary;
use crate::processes::Usage;

/// What came of a run.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The scenario's.
    pub title: String,
    /// Seconds that were measured.
    pub seconds: f64,
    /// Requests that ended while it was measured, refused ones among them.
    pub requests: u64,
    /// Of those, how many were answered as they should have been.
    pub answered: u64,
    /// How many were refused, where that may be.
    pub refused: u64,
    /// How many were left by their callers.
    pub left: u64,
    /// Requests that were due and still had no answer when the run was over.
    pub unfinished: u64,
    /// What went wrong, and how often.
    pub faults: BTreeMap<String, u64>,
    /// Requests that ended in a second.
    pub per_second: f64,
    /// Events that arrived.
    pub events: u64,
    /// Words of thoughts that arrived.
    pub thoughts: u64,
    /// From when a request was due to the first byte of its answer's body, in milliseconds.
    pub first: Summary,
    /// Between two events of a stream.
    pub gap: Summary,
    /// From when a request was due to the end of its answer.
    pub total: Summary,
    /// The same of those that were refused.
    pub refusal: Summary,
    /// Shares of all requests, and how long they took at most in milliseconds.
    pub quantiles: Vec<(f64, f64)>,
    /// What the gateway took, where it was watched.
    pub gateway: Option<GatewayReport>,
}

/// What the gateway took.
#[derive(Debug, Serialize)]
pub struct GatewayReport {
    /// Microseconds of processor time for each request that ended.
    pub micros_per_request: f64,
    /// The same for each event that arrived, where there were any.
    pub micros_per_event: Option<f64>,
    /// Processors that it kept busy.
    pub processors: f64,
    /// When it was measured last.
    pub usage: Usage,
    /// Bytes of memory that it took more in each minute, by a straight line through all seconds.
    pub resident_slope: f64,
    /// Descriptors that it took more in each minute.
    pub descriptor_slope: f64,
    /// Seconds since the begin, bytes in memory and descriptors.
    pub samples: Vec<(f64, u64, u64)>,
}

const MEGABYTE: f64 = 1e6;

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}: {:.1} s", self.title, self.seconds)?;
        writeln!(
            out,
            "  requests {} ({:.0}/s), answered {}, refused {}, left {}, unfinished {}; events {}, words of thoughts {}",
            self.requests,
            self.per_second,
            self.answered,
            self.refused,
            self.left,
            self.unfinished,
            self.events,
            self.thoughts
        )?;
        let times =
            [("first", &self.first), ("gap", &self.gap), ("total", &self.total), ("refusal", &self.refusal)];
        for (name, times) in times.iter().filter(|(_, times)| times.count > 0) {
            writeln!(
                out,
                "  {name:<8} ms: p50 {:.3}  p90 {:.3}  p99 {:.3}  p99.9 {:.3}  max {:.3}",
                times.p50, times.p90, times.p99, times.p999, times.max
            )?;
        }
        if let Some(gateway) = &self.gateway {
            writeln!(out, "  {gateway}")?;
        }
        for (fault, count) in &self.faults {
            writeln!(out, "  FAULT {count} × {fault}")?;
        }
        Ok(())
    }
}

impl fmt::Display for GatewayReport {
    #[expect(clippy::cast_precision_loss, reason = "bytes of memory are far below 2^53")]
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = |bytes: u64| bytes as f64 / MEGABYTE;
        write!(out, "gateway: {:.1} µs of processor time a request", self.micros_per_request)?;
        if let Some(micros) = self.micros_per_event {
            write!(out, ", {micros:.2} an event")?;
        }
        write!(
            out,
            "; {:.2} processors, {:.1} MB now ({:+.2} a minute), {:.1} at most, {} descriptors ({:+.2} a minute), {} threads",
            self.processors,
            megabytes(self.usage.resident),
            self.resident_slope / MEGABYTE,
            megabytes(self.usage.resident_max),
            self.usage.descriptors,
            self.descriptor_slope,
            self.usage.threads
        )
    }
}
