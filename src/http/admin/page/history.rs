//! The last minutes of a few counters, so that the page has a course to show as soon as it is opened.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use stint_types::metrics::Metrics;
use stint_types::tasks::Tasks;
use stint_types::units::Timestamp;

use super::series::{self, Distribution, whole};

/// How often the counters are read, and how many readings are remembered: a quarter of an hour.
const EVERY: Duration = Duration::from_secs(5);
const READINGS_MAX: usize = 180;

/// Readings of a few counters. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct PageHistory(Arc<Mutex<VecDeque<Reading>>>);

/// What was counted since the start, at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    at: Timestamp,
    requests: u64,
    refused: u64,
    thinking: u64,
    solution: u64,
    dollars: f64,
}

impl PageHistory {
    /// Reads the counters every few seconds from now on.
    pub fn start(tasks: &Tasks, metrics: Arc<Metrics>) -> PageHistory {
        let (history, stopping) = (PageHistory::default(), tasks.stopping());
        let readings = history.clone();
        tasks.spawn(async move {
            tokio::pin!(stopping);
            loop {
                readings.add(Reading::now(&metrics));
                tokio::select! {
                    () = &mut stopping => return,
                    () = tokio::time::sleep(EVERY) => {}
                }
            }
        });
        history
    }

    fn add(&self, reading: Reading) {
        let mut readings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if readings.len() == READINGS_MAX {
            readings.pop_front();
        }
        readings.push_back(reading);
    }

    /// All readings, the oldest first.
    pub(super) fn page(&self) -> Vec<Value> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().map(Reading::page).collect()
    }
}

impl Reading {
    pub(super) fn now(metrics: &Metrics) -> Reading {
        let outcomes = series::by_label(&metrics.requests.total, "outcome");
        let used = series::distributions(&metrics.thinking.used, "class");
        let written = series::distributions(&metrics.thinking.solution_used, "class");
        Reading {
            at: Timestamp::now(),
            requests: whole(outcomes.values().sum()),
            refused: whole(outcomes.get("refused").copied().unwrap_or_default()),
            thinking: whole(Distribution::total(used.values()).sum),
            solution: whole(Distribution::total(written.values()).sum),
            dollars: series::sum(&metrics.money.spent),
        }
    }

    pub(super) fn page(&self) -> Value {
        json!({
            "at": self.at.0,
            "requests": self.requests,
            "refused": self.refused,
            "thinking_tokens": self.thinking,
            "solution_tokens": self.solution,
            "usd": self.dollars,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_readings_are_remembered() {
        let (history, metrics) = (PageHistory::default(), Metrics::new().unwrap());
        for count in 0..READINGS_MAX + 5 {
            metrics.requests.total.with_label_values(&["auto", "m", "answered"]).inc();
            assert_eq!(history.page().len(), count.min(READINGS_MAX));
            history.add(Reading::now(&metrics));
        }
        assert_eq!(history.page()[0]["requests"], 6);
    }
}
