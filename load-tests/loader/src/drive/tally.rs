//! Counts what comes of requests.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::histogram::Histogram;
use crate::report::Report;

use super::Window;
use super::response::Content;
use super::watch::Watch;

const SHARES: [f64; 12] = [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9999, 1.0];

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ending {
    Answered,
    Refused,
    Left,
    Fault(String),
}

/// When something came of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timing {
    /// When it was due.
    pub(super) due: Instant,
    /// When the first bytes of the answer's body came.
    pub(super) first: Option<Instant>,
}

/// Counts of one run. Requests and events count if they end while it is measured, times if the request was due then.
#[derive(Debug)]
pub(super) struct Tally {
    window: Window,
    requests: u64,
    answered: u64,
    refused: u64,
    left: u64,
    begun: u64,
    ended: u64,
    events: u64,
    thoughts: u64,
    faults: BTreeMap<String, u64>,
    first: Histogram,
    gap: Histogram,
    total: Histogram,
    refusal: Histogram,
}

impl Tally {
    pub(super) fn new(window: Window) -> Tally {
        Tally {
            window,
            requests: 0,
            answered: 0,
            refused: 0,
            left: 0,
            begun: 0,
            ended: 0,
            events: 0,
            thoughts: 0,
            faults: BTreeMap::new(),
            first: Histogram::default(),
            gap: Histogram::default(),
            total: Histogram::default(),
            refusal: Histogram::default(),
        }
    }

    /// A request is sent; its number.
    pub(super) fn begin(&mut self) -> u64 {
        self.begun += 1;
        self.begun
    }

    /// So many events came `after` the last one before them.
    pub(super) fn events(&mut self, count: u64, after: Option<Duration>, now: Instant) {
        if !self.measures(now) {
            return;
        }
        self.events += count;
        if let Some(after) = after {
            self.gap.record(after);
        }
        // Those that came with the first were not waited for.
        for _ in 1..count {
            self.gap.record(Duration::ZERO);
        }
    }

    /// A request is over.
    pub(super) fn end(&mut self, ending: Ending, timing: Timing, content: Content) {
        let now = Instant::now();
        self.ended += 1;
        if self.measures(now) {
            self.requests += 1;
            self.thoughts += content.thoughts;
        }
        let is_due_in_window = self.measures(timing.due);
        let count = u64::from(self.measures(now));
        match ending {
            Ending::Answered => {
                self.answered += count;
                if is_due_in_window {
                    self.total.record(now - timing.due);
                    self.first.record(timing.first.unwrap_or(now) - timing.due);
                }
            }
            Ending::Refused => {
                self.refused += count;
                if is_due_in_window {
                    self.refusal.record(now - timing.due);
                }
            }
            Ending::Left => self.left += count,
            // What goes wrong before it is measured is wrong too.
            Ending::Fault(text) => *self.faults.entry(text).or_default() += 1,
        }
    }

    fn measures(&self, at: Instant) -> bool {
        self.window.begin <= at && at < self.window.end
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of requests are far below 2^53")]
    pub(super) fn report(&self, title: String, watched: Option<Watch>) -> Report {
        let seconds = (self.window.end - self.window.begin).as_secs_f64();
        let quantile = |share| (share, self.total.quantile(share).as_secs_f64() * 1000.0);
        Report {
            title,
            seconds,
            requests: self.requests,
            answered: self.answered,
            refused: self.refused,
            left: self.left,
            unfinished: self.begun - self.ended,
            faults: self.faults.clone(),
            per_second: self.requests as f64 / seconds,
            events: self.events,
            thoughts: self.thoughts,
            first: self.first.summary(),
            gap: self.gap.summary(),
            total: self.total.summary(),
            refusal: self.refusal.summary(),
            quantiles: SHARES.map(quantile).to_vec(),
            gateway: watched.map(|watched| watched.report(self.requests, self.events)),
        }
    }
}
