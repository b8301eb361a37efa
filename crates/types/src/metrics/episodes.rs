//! The series of agents' runs.

#![expect(missing_docs, reason = "each series carries its help text")]

use prometheus::{Error, IntCounter, IntCounterVec};

use super::factory::MetricFactory;

/// How steps find their runs.
#[derive(Debug)]
pub struct EpisodeMetrics {
    pub steps: IntCounterVec,
    pub waits: IntCounter,
    pub ended: IntCounterVec,
}

impl EpisodeMetrics {
    pub(super) fn new(make: &MetricFactory<'_>) -> Result<EpisodeMetrics, Error> {
        let help = "Steps of agents' runs, by how their run was found; lost if the store of runs failed";
        let episodes = make.counter_vec("episode_steps_total", help, &["found"])?;
        for found in ["named", "found", "begun", "lost"] {
            episodes.with_label_values(&[found]);
        }
        let help = "Steps that had to wait for what parallel steps of their run had set aside";
        let waits = make.counter("episode_waits_total", help)?;
        let help = "Final answers of agents' runs, by the limit that ended the run; none if no limit did";
        let ended = make.counter_vec("episodes_ended_total", help, &["limit"])?;
        for limit in ["none", "turns", "route_turns", "money", "tools"] {
            ended.with_label_values(&[limit]);
        }
        Ok(EpisodeMetrics { steps: episodes, waits, ended })
    }
}
